"""Many inputs under (epsilon, delta)-LDP: unimodal level shapes, and a bound from points that dominate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.candidate import Ask, Candidate, Limit, Method
from ldpopt.design.certificates.base import Certificate
from ldpopt.design.certificates.relaxed import Dominated
from ldpopt.design.methods.blocks import merge_starts
from ldpopt.design.methods.exchange import Exchange
from ldpopt.design.methods.levels import approximate_only
from ldpopt.design.problems.problem import Problem
from ldpopt.design.problems.reduction import Pair, dominating
from ldpopt.design.programs.gains import heights
from ldpopt.design.programs.shapes import shape_program
from ldpopt.design.utilities.divergence import Divergence
from ldpopt.distribution import Array, Index, positive_integer
from ldpopt.divergences import FDivergence
from ldpopt.errors import InvalidInput, SolverError, invalid

LIMIT = 20_000
"""The most inputs: the time for measuring a channel grows with their number, and is minutes beyond."""

SHORT = "the shapes are enough in every case that was looked at, but the bound is that of fewer, extremer answers"


@dataclass(frozen=True)
class LevelShapes(Method):
    """The best channel of unit vectors and unimodal level shapes, for two hypotheses and any number of inputs.

    A level shape is a column whose entries are 1, exp(-epsilon) or exp(-2 epsilon) on blocks of neighbours in the order
    of likelihood ratios (`columns.levels`). In every case that was looked at these columns reach the optimum, but that
    is not proved: see docs/research/approximate-ldp.md.

    bins : the most runs of answers of neighbouring ratios, each of which is merged; with a run for each answer nothing
    is lost. points : the number of points, at least 3, that dominate the hypotheses in the proof; the distance of the
    bound from the optimum falls with the square of this number, and the time grows with it.

    >>> from ldpopt import ApproximateLDP, Divergence, optimal_channel
    >>> from ldpopt.divergences import KL
    >>> u = Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
    >>> made = optimal_channel(u, ApproximateLDP(1.0, 0.01), method=LevelShapes())
    >>> made.value <= made.upper_bound < 1.1 * made.value
    True
    """

    bins: int = 60
    points: int = 16

    reference: ClassVar[str] = "[KOV14, Thm 2]"
    preference: ClassVar[int] = 220

    def __post_init__(self) -> None:
        positive_integer(self.bins, "bins")
        positive_integer(self.points, "points")
        if self.bins < 2 or self.points < 3:
            raise invalid("bins and points", "at least 2 bins and 3 points", (self.bins, self.points))

    def refuses(self, problem: Problem) -> str:
        """It needs two hypotheses, and one ApproximateLDP between all inputs."""
        utility = problem.utility
        if utility.pair is None or problem.cells is not None:
            return f"it goes by the likelihood ratio of two finite hypotheses, and {utility.name} has none, or several"
        if approximate_only(problem) is None:
            return "its shapes are for ApproximateLDP alone, with epsilon and delta above 0"
        if utility.size > LIMIT:
            return Limit(f"{utility.size} inputs are too many to measure a channel of (at most {LIMIT})")
        if not np.isfinite(utility.unprivate):
            return f"{utility.name} of full disclosure is infinite, and delta allows for some of it"
        return ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The channel of the best weights."""
        constraint, pair = approximate_only(problem), problem.reduction.pair
        assert constraint is not None
        starts = merge_starts(pair, self.bins) if len(pair) > self.bins else np.arange(len(pair))
        # The excess of many inputs is measured with more rounding than that of the few rows that they share.
        delta = constraint.delta * (1 - 2.0**-36) - min(2.0**-50, 2.0**-24 * constraint.delta)
        f = problem.utility.f
        columns = shape_program(f, pair.merge(starts), constraint.epsilon, delta, problem.deadline)
        matrix = np.repeat(columns, np.diff(np.append(starts, len(pair))), axis=0)

        def prove(posed: Problem, channel: Channel) -> Iterator[Certificate]:
            a0, a1 = self._points(f, pair, columns, starts)
            try:
                found = ask(Divergence(f, a0, a1), constraint, method=Exchange()).certificate
            except (SolverError, InvalidInput):  # one proof fewer
                return
            if found is not None:
                points = np.column_stack([found.utility.p0, found.utility.p1])
                yield Dominated(posed.whole, posed.constraints, channel, points, found)

        merged = f" of {len(starts)} merged inputs" if len(starts) < len(pair) else ""
        return Candidate(matrix, f"unimodal level shapes{merged}", prove, shortfall=SHORT)

    def _points(self, f: FDivergence, pair: Pair, columns: Array, starts: Index) -> tuple[Array, Array]:
        """Points that dominate the pair, dense where rows differ most and where spreading inputs costs most."""
        s = pair.posterior
        apart = np.abs(np.diff(columns, axis=0)).sum(axis=1)
        most = starts[np.sort(np.argsort(-apart)[: max(1, self.points // 8)]) + 1]
        cuts = np.unique(np.concatenate([[0, len(s) - 1], most - 1, most])).tolist()
        mass = pair.p0 + pair.p1
        worth = mass * heights(f, s)
        while len(cuts) < self.points:
            costs = [_cost(f, s, mass, worth, low, high) for low, high in pairwise(cuts)]
            at = int(np.argmax(costs))
            if not costs[at] > 0:
                break
            # The input nearest to the mean posterior of the interval.
            inside = np.arange(cuts[at] + 1, cuts[at + 1])
            middle = float(s[inside] @ mass[inside] / mass[inside].sum())
            cuts.insert(at + 1, int(inside[np.abs(s[inside] - middle).argmin()]))
        a0, a1 = dominating(pair.p0, pair.p1, s[cuts])
        return a0 / a0.sum(), a1 / a1.sum()


def _cost(f: FDivergence, s: Array, mass: Array, worth: Array, low: int, high: int) -> float:
    """By how much the divergence grows when the inputs between two are spread onto these two."""
    if high - low < 2:
        return 0.0
    inside, ends = slice(low + 1, high), heights(f, s[[low, high]])
    share = (s[inside] - s[low]) / (s[high] - s[low])
    return float(mass[inside] @ ((1 - share) * ends[0] + share * ends[1]) - worth[inside].sum())
