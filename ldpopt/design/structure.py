"""The extreme points that are optimal: which staircase patterns a best channel uses, and where that changes."""

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
from ldpopt.design.problems.problem import pose
from ldpopt.design.two_hypotheses.program import Blocks, Cut
from ldpopt.design.utilities.base import ColumnUtility
from ldpopt.design.utilities.divergence import Divergence
from ldpopt.errors import SolverError, invalid
from ldpopt.numbers.rounding import ceil_digits
from ldpopt.values.deadline import Deadline, Progress, watched
from ldpopt.values.distribution import Array, number, positive_epsilon, positive_integer, unit_interval
from ldpopt.values.results import Pictured, Result, Rows

MAX_PIECES = 500  # More pieces than this are no structures, but ties that rounding decides.
Pattern = tuple[Label, ...]


@dataclass(frozen=True, eq=False)
class Structure(Result):
    """The sets of answers that the reports of an optimal channel favour, on a range of epsilon.

    low, high : the range, in nats. patterns : for every report that occurs, the answers that it favours: under these
    it is exp(epsilon) times as likely as under the others. The empty pattern is erasure, a report that favours none.
    classes : how many answers, or groups of answers of one likelihood ratio, could have been told apart.

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
        told = [pattern for pattern in self.patterns if pattern]
        answers = [x for pattern in told for x in pattern]
        erased = " with erasure" if len(told) < len(self.patterns) else ""
        if not told:
            return "erasure"
        if len(set(answers)) < len(answers) or len(told) == 1:
            return f"mixture of {len(told)} patterns{erased}"
        if len(told) == 2:
            return f"binary mechanism{erased}"
        everyone = len(told) == self.classes
        return ("randomized response" if everyone else f"randomized response on {len(told)} blocks") + erased


@dataclass(frozen=True, eq=False, repr=False)
class Structures(Rows[Structure], Pictured):
    """The distinct optimal structures over a range of epsilon, in order, with the points at which they change.

    The break point lies between one structure's `high` and the next one's `low`, which are at most `tolerance` apart.
    A structure that is optimal only strictly between two neighbouring points of the search grid can be missed.
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

    def at(self, epsilon: float) -> Structure:
        """The structure at an epsilon of the range, in nats; at a break point, the one before."""
        for piece in self.pieces:
            if self.pieces[0].low <= epsilon <= piece.high + self.tolerance:
                return piece
        raise invalid("epsilon", f"a number in [{self.pieces[0].low:g}, {self.pieces[-1].high:g}]", epsilon)

    def _columns(self) -> dict[str, list[Any]]:
        return {
            "low": [piece.low for piece in self.pieces],
            "high": [piece.high for piece in self.pieces],
            "structure": [piece.name for piece in self.pieces],
            "patterns": [" ".join(map(_shown, piece.patterns)) for piece in self.pieces],
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
            shown = " ".join(map(_shown, piece.patterns))
            shown = shown if len(shown) <= 60 else shown[:59] + "…"
            lines.append(f"  epsilon {piece.low:<10.7g} to {piece.high:<10.7g} {piece.name}: {shown}")
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
    """The staircase patterns that the optimal channel uses, and the epsilons at which they change [KOV14, Thm 2].

    A staircase pattern is a set of answers under which a report is exp(epsilon) times as likely as under the others.

    utility : a finite `Divergence`, whose patterns come from the best partitions [SPR]; or a `MutualInformation`,
    `WorstOf` or `WeightedSum` of up to 14 answers, whose patterns come from a linear program. low, high : the range of
    epsilon in nats. eta : a cap on the total variation. tolerance : the width to which every break point is bracketed,
    by bisection; at least 1e-12. grid : how many values of epsilon are looked at first, evenly in its logarithm.
    time_limit, progress : as for `optimal_channel`. When the time is over, `tolerance` is the width of the widest
    bracket found by then; `SolverError` if the first `grid` values have not been looked at.

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
        search: Any = _of_partitions
        classes = len(pose(utility, LocalDP(1.0)).reduction.pair)
    elif isinstance(utility, ColumnUtility) and utility.size <= MAX_INPUTS:
        search, classes = _of_patterns, utility.size
    else:
        expected = f"a Divergence of finite distributions, or a column utility of up to {MAX_INPUTS} answers"
        raise invalid("utility", expected, utility)
    patterns = cache(lambda epsilon: search(utility, epsilon, eta))
    points = np.geomspace(low, high, positive_integer(grid, "grid", 2))
    points[[0, -1]] = low, high
    with watched(time_limit, progress, "looking for structures") as deadline:
        for point in deadline.part(0.0, 0.5).rounds(points.tolist()):
            patterns(point)
        if deadline.late:
            raise SolverError(f"time_limit: {deadline.seconds:g} s were over before the grid was looked at; allow more")
        ends = _brackets(patterns, points, tolerance, deadline.part(0.5, 1.0))
    tolerance = max([tolerance, *(b - a for a, b in ends)])
    starts, stops = [low, *(b for _, b in ends)], [*(a for a, _ in ends), high]
    pieces = tuple(Structure(a, b, patterns(a), classes) for a, b in zip(starts, stops, strict=True))
    return Structures(pieces, utility, eta, tolerance)


def _brackets(patterns: Any, points: Array, tolerance: float, deadline: Deadline) -> list[tuple[float, float]]:
    """Where the structure changes between neighbouring points, bisected to the tolerance or until the time is over."""
    ends: list[tuple[float, float]] = []
    waiting = [(float(a), float(b)) for a, b in zip(points[-2::-1], points[:0:-1], strict=True)]
    while waiting:
        deadline.tell(1 - len(waiting) / max(len(waiting), len(points)))
        a, b = waiting.pop()
        if patterns(a) == patterns(b):
            continue
        middle = (a + b) / 2
        if b - a <= tolerance or not a < middle < b or deadline.over():
            ends.append((a, b))
            if len(ends) > MAX_PIECES:
                raise SolverError("structures: the optimum is tied along a range of epsilon; take a larger tolerance")
        else:
            waiting += [(middle, b), (a, middle)]
    return ends


class _Fewest(Blocks):
    """Blocks that prefer fewer of them among partitions of equal worth; otherwise rounding would decide ties."""

    def best(self, penalty: float) -> Cut:
        every = np.arange(len(self.pair))
        return super().best(penalty + 1e-13 * float(self.value(every, every + 1).sum()))


def _of_partitions(utility: Divergence, epsilon: float, eta: float) -> tuple[Pattern, ...]:
    problem = pose(utility, [LocalDP(epsilon), TotalVariation(eta)])
    coin = _Fewest(utility.f, problem.reduction.pair, problem.epsilon).coin(problem.cap)
    cuts = [cut.cuts for weight, cut in coin.parts if weight > 1e-12]
    runs = {(a, b) for cut in cuts for a, b in pairwise(cut)}
    classes = problem.reduction.classes
    inside = [(classes >= a) & (classes < b) for a, b in runs]
    return _sorted(inside, utility.inputs or tuple(range(len(utility.p0))))


def _of_patterns(utility: ColumnUtility, epsilon: float, eta: float) -> tuple[Pattern, ...]:
    sets, theta, _ = pattern_program(utility, epsilon, eta)
    # Erasure weighs what the other reports leave, and may dwarf them: they are compared with each other only.
    least = np.append(1e-9, np.full(len(theta) - 1, 1e-9 * theta[1:].max(initial=0.0)))
    return _sorted(list(sets[theta > least]), utility.inputs or tuple(range(utility.size)))


def _sorted(inside: list[Any], labels: tuple[Hashable, ...]) -> tuple[Pattern, ...]:
    """The patterns in order of their answers. A pattern of all answers favours none, and becomes the empty one."""
    places = sorted({tuple(np.flatnonzero(each).tolist()) if not each.all() else () for each in inside})
    return tuple(tuple(labels[x] for x in place) for place in places)


def _shown(pattern: Pattern) -> str:
    return "{" + "|".join(map(str, pattern)) + "}" if pattern else "{}"
