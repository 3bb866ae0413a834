"""Find the staircase patterns that an optimal channel uses, and the epsilons where they change."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from ldpopt.channel import Label
from ldpopt.design.constraints import LocalDP, TotalVariation
from ldpopt.design.patterns.method import MAX_INPUTS, pattern_program
from ldpopt.design.problems.problem import build_problem
from ldpopt.design.two_hypotheses.program import Blocks, Cut
from ldpopt.design.utilities.base import ColumnUtility
from ldpopt.design.utilities.divergence import Divergence
from ldpopt.errors import SolverError, invalid
from ldpopt.numbers.rounding import ceil_digits
from ldpopt.values.deadline import Deadline, Progress, watched
from ldpopt.values.distribution import Array, number, positive_epsilon, positive_integer, unit_interval
from ldpopt.values.results import Pictured, Result, Rows

MAX_STRUCTURES = 500  # A larger number of pieces means ties that rounding decides.
Pattern = tuple[Label, ...]


@dataclass(frozen=True, eq=False)
class Structure(Result):
    """The sets of answers that the reports of an optimal channel favor, on a range of epsilon.

    low, high : the range, in nats. patterns : for every possible report, the answers that it favors. Under these it is
    exp(epsilon) times as likely as under the others. The empty pattern is erasure, a report that favors no answer.
    classes : the number of answers, or groups of answers of one likelihood ratio, that a channel can distinguish.

    >>> Structure(0.1, 1.6, ((0,), (1, 2)), 3).name
    'binary mechanism'
    """

    low: float
    high: float
    patterns: tuple[Pattern, ...]
    classes: int

    @property
    def name(self) -> str:
        """Binary mechanism, randomized response, randomized response on blocks, or a mixture of patterns."""
        informative = [pattern for pattern in self.patterns if pattern]
        answers = [x for pattern in informative for x in pattern]
        suffix = " with erasure" if len(informative) < len(self.patterns) else ""
        if not informative:
            return "erasure"
        if len(set(answers)) < len(answers) or len(informative) == 1:
            return f"mixture of {len(informative)} patterns{suffix}"
        if len(informative) == 2:
            return f"binary mechanism{suffix}"
        separates_all = len(informative) == self.classes
        return (
            "randomized response" if separates_all else f"randomized response on {len(informative)} blocks"
        ) + suffix


@dataclass(frozen=True, eq=False, repr=False)
class Structures(Rows[Structure], Pictured):
    """The distinct optimal structures over a range of epsilon, in order, with the break points between them.

    The break point lies between one structure's `high` and the next one's `low`, which are at most `tolerance` apart. A
    structure that is optimal only strictly between two neighboring points of the search grid can be missed.
    """

    pieces: tuple[Structure, ...]
    utility: Divergence | ColumnUtility
    eta: float
    tolerance: float
    _picture, _records = "structures", "pieces"

    @property
    def breaks(self) -> Array:
        """Brackets of the break points, shape (pieces - 1, 2), in nats."""
        ends = [(a.high, b.low) for a, b in pairwise(self.pieces)]
        return np.array(ends, dtype=np.float64).reshape(-1, 2)

    def structure_at(self, epsilon: float) -> Structure:
        """Return the structure at an epsilon of the range, in nats; at a break point, the one before."""
        for piece in self.pieces:
            if self.pieces[0].low <= epsilon <= piece.high + self.tolerance:
                return piece
        raise invalid("epsilon", f"a number in [{self.pieces[0].low:g}, {self.pieces[-1].high:g}]", epsilon)

    def _columns(self) -> dict[str, list[Any]]:
        return {
            "low": [piece.low for piece in self.pieces],
            "high": [piece.high for piece in self.pieces],
            "structure": [piece.name for piece in self.pieces],
            "patterns": [" ".join(map(_pattern_text, piece.patterns)) for piece in self.pieces],
        }

    def _cells(self) -> list[tuple[str, list[str]]]:
        columns = self._columns()
        ends = [(head, [f"{end:.7g}" for end in columns[name]]) for head, name in (("from", "low"), ("to", "high"))]
        return [*ends, ("structure", columns["structure"]), ("patterns", columns["patterns"])]

    def _title(self) -> str:
        cap = f", eta = {ceil_digits(self.eta)}" if self.eta < 1 else ""
        return f"Structures of {self.utility.name}{cap}; break points to {self.tolerance:g}"

    def __repr__(self) -> str:
        lines = [self._title()]
        for piece in self.pieces:
            text = " ".join(map(_pattern_text, piece.patterns))
            text = text if len(text) <= 60 else text[:59] + "…"
            lines.append(f"  epsilon {piece.low:<10.7g} to {piece.high:<10.7g} {piece.name}: {text}")
        return "\n".join(lines)


def structures(
    utility: Divergence | ColumnUtility,
    low: float,
    high: float,
    *,
    eta: float = 1.0,
    tolerance: float = 1e-9,
    grid: int = 64,
    time_limit: float | None = None,
    progress: Progress = False,
) -> Structures:
    """Find the staircase patterns of the optimal channel, and the epsilons where they change [KOV14, Thm 2].

    A staircase pattern is a set of answers. Under these a report is exp(epsilon) times as likely as under the others.

    Parameters
    ----------
    utility : A finite `Divergence`, whose patterns come from the best partitions [SPR]. Or a `MutualInformation`,
        `WorstOf` or `WeightedSum` of up to 14 answers, whose patterns come from a linear program.
    low, high : The range of epsilon in nats.
    eta : A cap on the total variation.
    tolerance : The width of the bracket of every break point, by bisection; at least 1e-12.
    grid : The number of values of epsilon that are evaluated first, uniform on a logarithmic scale.
    time_limit, progress : As for `optimal_channel`.

    Returns
    -------
    Structures
        The structures in order, with brackets of their break points. When the time is over, its `tolerance` is the
        width of the widest bracket by then.

    Raises
    ------
    InvalidInput
        If a value is out of range, or the utility is another one.
    SolverError
        If the time is over before the first `grid` values have been evaluated.

    Examples
    --------
    >>> from ldpopt.divergences import KL
    >>> structures(Divergence(KL, [0.6, 0.3, 0.1], [0.1, 0.3, 0.6]), 0.1, 5.0, tolerance=1e-6)
    Structures of KL divergence; break points to 1e-06
        epsilon 0.1        to 1.661086   binary mechanism: {0} {1|2}
        epsilon 1.661087   to 5          randomized response: {0} {1} {2}
    """
    low, high, eta = positive_epsilon(low, "low"), positive_epsilon(high, "high"), unit_interval(eta, "eta")
    if not low < high:
        raise invalid("high", f"a number above low = {low:g}", high)
    tolerance = number(tolerance, "tolerance", "a positive number")
    if not tolerance >= 1e-12:
        raise invalid("tolerance", "at least 1e-12", tolerance)
    if isinstance(utility, Divergence) and not utility.continuous:
        search_patterns: Any = _partition_patterns
        classes = len(build_problem(utility, LocalDP(1.0)).reduction.pair)
    elif isinstance(utility, ColumnUtility) and utility.size <= MAX_INPUTS:
        search_patterns, classes = _program_patterns, utility.size
    else:
        expected = f"a Divergence of finite distributions, or a column utility of up to {MAX_INPUTS} answers"
        raise invalid("utility", expected, utility)
    patterns = cache(lambda epsilon: search_patterns(utility, epsilon, eta))
    points = np.geomspace(low, high, positive_integer(grid, "grid", 2))
    points[[0, -1]] = low, high
    with watched(time_limit, progress, "looking for structures") as deadline:
        for point in deadline.part(0.0, 0.5).rounds(points.tolist()):
            patterns(point)
        if deadline.late:
            raise SolverError(f"time_limit: {deadline.seconds:g} s were over before the grid was looked at; allow more")
        brackets = _brackets(patterns, points, tolerance, deadline.part(0.5, 1.0))
    tolerance = max([tolerance, *(b - a for a, b in brackets)])
    lower_ends, upper_ends = [low, *(b for _, b in brackets)], [*(a for a, _ in brackets), high]
    pieces = tuple(Structure(a, b, patterns(a), classes) for a, b in zip(lower_ends, upper_ends, strict=True))
    return Structures(pieces, utility, eta, tolerance)


def _brackets(patterns: Any, points: Array, tolerance: float, deadline: Deadline) -> list[tuple[float, float]]:
    """Bracket the changes of structure between neighboring points, to the tolerance or until the time is over."""
    brackets: list[tuple[float, float]] = []
    intervals = [(float(a), float(b)) for a, b in zip(points[-2::-1], points[:0:-1], strict=True)]
    while intervals:
        deadline.tell(1 - len(intervals) / max(len(intervals), len(points)))
        a, b = intervals.pop()
        if patterns(a) == patterns(b):
            continue
        middle = (a + b) / 2
        if b - a <= tolerance or not a < middle < b or deadline.over():
            brackets.append((a, b))
            if len(brackets) > MAX_STRUCTURES:
                raise SolverError("structures: the optimum is tied along a range of epsilon; take a larger tolerance")
        else:
            intervals += [(middle, b), (a, middle)]
    return brackets


class _FewestBlocks(Blocks):
    """Blocks that prefer fewer of them among partitions of equal value; otherwise rounding would decide ties."""

    def best(self, penalty: float) -> Cut:
        positions = np.arange(len(self.pair))
        return super().best(penalty + 1e-13 * float(self.value(positions, positions + 1).sum()))


def _partition_patterns(utility: Divergence, epsilon: float, eta: float) -> tuple[Pattern, ...]:
    problem = build_problem(utility, [LocalDP(epsilon), TotalVariation(eta)])
    coin = _FewestBlocks(utility.f, problem.reduction.pair, problem.epsilon).coin(problem.cap)
    cuts = [cut.cuts for weight, cut in coin.parts if weight > 1e-12]
    runs = {(a, b) for cut in cuts for a, b in pairwise(cut)}
    classes = problem.reduction.classes
    members = [(classes >= a) & (classes < b) for a, b in runs]
    return _labeled_patterns(members, utility.inputs or tuple(range(len(utility.p0))))


def _program_patterns(utility: ColumnUtility, epsilon: float, eta: float) -> tuple[Pattern, ...]:
    sets, theta, _ = pattern_program(utility, epsilon, eta)
    # Erasure takes the remaining weight, which may be much larger: the others are compared only with each other.
    min_weights = np.append(1e-9, np.full(len(theta) - 1, 1e-9 * theta[1:].max(initial=0.0)))
    return _labeled_patterns(list(sets[theta > min_weights]), utility.inputs or tuple(range(utility.size)))


def _labeled_patterns(members: list[Any], labels: tuple[Hashable, ...]) -> tuple[Pattern, ...]:
    """Sort the patterns by their answers. A pattern of all answers favors none, and becomes the empty one."""
    positions = sorted({tuple(np.flatnonzero(member).tolist()) if not member.all() else () for member in members})
    return tuple(tuple(labels[x] for x in pattern) for pattern in positions)


def _pattern_text(pattern: Pattern) -> str:
    return "{" + "|".join(map(str, pattern)) + "}" if pattern else "{}"
