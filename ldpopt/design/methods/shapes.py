"""Many inputs under (epsilon, delta)-LDP -> a channel of unimodal level shapes, and a bound from points that dominate.

Three facts keep the program small. The value of a shape is a function of sums over blocks, so that all shapes are
priced by prefix sums. Where a shape has an excess, its level 0 lies at an end of the list, so that only pairs with the
first or the last input are needed: about 3 k rows. Only shapes that gain at the dual values join the program.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.candidate import Ask, Candidate, Limit, Method
from ldpopt.design.certificates.base import Certificate
from ldpopt.design.certificates.relaxed import Dominated
from ldpopt.design.columns.levels import ABSENT, SHAPES, Levels
from ldpopt.design.methods.blocks import merge_starts
from ldpopt.design.methods.exchange import Exchange
from ldpopt.design.methods.listed import approximate, leveled_columns, leveled_excesses
from ldpopt.design.problems.problem import Problem
from ldpopt.design.problems.reduction import Pair, dominating
from ldpopt.design.programs.columns import ExcessCaps, Weighed, weigh, with_erasure
from ldpopt.design.programs.labels import excess_apart, excess_at
from ldpopt.design.utilities.divergence import Divergence
from ldpopt.divergences import FDivergence
from ldpopt.errors import InvalidInput, SolverError
from ldpopt.numbers.tolerances import SHAPE_GAIN
from ldpopt.values.deadline import UNLIMITED, Deadline
from ldpopt.values.distribution import Array, Index, at_least_two, positive_integer

JOIN = 40  # The most shapes of one kind that join in one round
ROUNDS = 40  # The most rounds


@dataclass(frozen=True, eq=False)
class Family:
    """All shapes of one kind: `digits` (blocks,) their levels, `edges` (n, blocks + 1) the ends of their blocks.

    value : (n,) the worth of each shape, scaled to a largest entry of one.
    """

    digits: Levels
    edges: Index
    value: Array

    @classmethod
    def of(cls, shape: str, f: FDivergence, pair: Pair, epsilon: float) -> Family:
        """The shapes of a kind on sorted inputs."""
        k, digits = len(pair), np.array([int(digit) for digit in shape], dtype=np.int64)
        cuts = np.array(list(itertools.combinations(range(1, k), len(shape) - 1)), dtype=np.intp)
        cuts = cuts.reshape(-1, len(shape) - 1)
        edges = np.hstack([np.zeros((len(cuts), 1), dtype=np.intp), cuts, np.full((len(cuts), 1), k, dtype=np.intp)])
        base, rise = _excess_at(digits, epsilon)
        # The constant part of a column has the same mass under both hypotheses: only the rises count.
        sums = [_blocks(part, edges) @ rise for part in (pair.difference, pair.p0, pair.p1)]
        return cls(digits, edges, excess_apart(f, sums[0], base + sums[1], base + sums[2]))

    def gains(self, best: Weighed, k: int, epsilon: float) -> Array:
        """(n,) the worth of each shape above its price; best.prices : of pairs with the first input, then the last."""
        base, rise = _excess_at(self.digits, epsilon)
        paid = base * math.fsum(best.rows) + _blocks(best.rows, self.edges) @ rise
        if self.digits.max() == 2:
            on_first, on_last = np.zeros(k), np.zeros(k)
            on_first[1:], on_last[:-1] = best.prices[: k - 1], best.prices[k - 1 :]
            top = int(self.digits.argmax())
            over = _blocks(on_first if self.digits[0] == 0 else on_last, self.edges)[:, top]
            paid = paid - math.expm1(-epsilon) * over
        return np.asarray(self.value - paid)

    def levels(self, chosen: Index, k: int) -> Levels:
        """(n, k) levels of some of the shapes."""
        block = (np.arange(k)[None, :, None] >= self.edges[chosen][:, None, 1:-1]).sum(axis=2)
        return np.asarray(self.digits[block])


def shape_program(f: FDivergence, pair: Pair, epsilon: float, delta: float, deadline: Deadline = UNLIMITED) -> Array:
    """The columns (k, n) of the best channel of unit vectors and unimodal shapes, within ApproximateLDP; erasure last.

    `pair` : sorted by ratio, without ties, at least two inputs. Raises `SolverError` when no solver is accurate.
    """
    k = len(pair)
    families = [Family.of(shape, f, pair, epsilon) for shape in SHAPES]
    units = np.where(np.eye(k, dtype=bool), 0, ABSENT).astype(np.int64)
    two_valued = [family.levels(np.arange(k - 1), k) for family in families[:2]]
    levels = np.concatenate([units, *two_valued])
    left = np.concatenate([np.arange(1, k), np.arange(k - 1)])
    right = np.repeat([0, k - 1], k - 1)
    caps = ExcessCaps(left, right, np.full(len(left), delta), np.full(len(left), False))
    for _ in deadline.rounds(range(ROUNDS)):
        base, rise = leveled_columns(levels, epsilon)
        columns, excess = base + rise, leveled_excesses(levels, epsilon, left, right)
        mu = excess_apart(f, pair.difference @ rise, pair.p0 @ columns, pair.p1 @ columns)[None]
        best = weigh(base, rise, excess, caps, mu, np.zeros(1))
        optimum, joining = float(mu[0] @ best.weights), []
        for family in families:
            gain = family.gains(best, k, epsilon)
            most = np.argsort(-gain)[:JOIN]
            joining.append(family.levels(most[gain[most] > SHAPE_GAIN * optimum], k))
        if not sum(map(len, joining)):
            break
        # Shapes that are far from gaining are dropped.
        paid = base * math.fsum(best.rows) + best.rows @ rise + best.prices @ excess
        short = mu[0] - paid > -0.1 * np.abs(mu[0]).max()
        short[:k] = True
        levels = np.unique(np.concatenate([levels[short | (best.weights > 0)], *joining]), axis=0)
        levels = np.concatenate([units, levels[levels.min(axis=1) >= 0]])
    return with_erasure(columns * best.weights)


def _excess_at(digits: Levels, epsilon: float) -> tuple[float, Array]:
    """The least entry of a shape whose largest entry is one, and the rise of each block above it."""
    height = int(digits.max())
    return math.exp(-height * epsilon), np.exp(-(height - digits) * epsilon) * -np.expm1(-digits * epsilon)


def _blocks(values: Array, edges: Index) -> Array:
    """(n, blocks) sums of `values` over the blocks."""
    running = np.concatenate([[0.0], np.cumsum(values)])
    return np.asarray(running[edges[:, 1:]] - running[edges[:, :-1]])


LIMIT = 20_000  # The most inputs: the time for measuring a channel grows with their number, and is minutes beyond
SHORT = "the shapes are enough in every case that was looked at, but the bound is that of fewer, extremer answers"


@dataclass(frozen=True)
class LevelShapes(
    Method,
    bins=at_least_two,
    points=partial(positive_integer, minimum=3),
    reference="[KOV14, Thm 2]",
    preference=220,
    by_cvxpy=True,
):
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

    def refuses(self, problem: Problem) -> str:
        """It needs two hypotheses, and one ApproximateLDP between all inputs."""
        utility = problem.utility
        if utility.pair is None or problem.cells is not None:
            return f"it goes by the likelihood ratio of two finite hypotheses, and {utility.name} has none, or several"
        if approximate(problem) is None:
            return "its shapes are for ApproximateLDP alone, with epsilon and delta above 0"
        if utility.size > LIMIT:
            return Limit(f"{utility.size} inputs are too many to measure a channel of (at most {LIMIT})")
        if not np.isfinite(utility.unprivate):
            return f"{utility.name} of full disclosure is infinite, and delta allows for some of it"
        return ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The channel of the best weights."""
        constraint, pair = approximate(problem), problem.reduction.pair
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
                certificate = ask(Divergence(f, a0, a1), constraint, method=Exchange()).certificate
            except (SolverError, InvalidInput):  # one proof fewer
                return
            if certificate is not None:
                points = np.column_stack([certificate.utility.p0, certificate.utility.p1])
                yield Dominated(posed.whole, posed.constraints, channel, points, certificate)

        merged = f" of {len(starts)} merged inputs" if len(starts) < len(pair) else ""
        return Candidate(matrix, f"unimodal level shapes{merged}", prove, shortfall=SHORT)

    def _points(self, f: FDivergence, pair: Pair, columns: Array, starts: Index) -> tuple[Array, Array]:
        """Points that dominate the pair, dense where rows differ most and where spreading inputs costs most."""
        s = pair.posterior
        apart = np.abs(np.diff(columns, axis=0)).sum(axis=1)
        most = starts[np.sort(np.argsort(-apart)[: max(1, self.points // 8)]) + 1]
        cuts = np.unique(np.concatenate([[0, len(s) - 1], most - 1, most])).tolist()
        mass = pair.p0 + pair.p1
        worth = mass * excess_at(f, s)
        while len(cuts) < self.points:
            costs = [_cost(f, s, mass, worth, low, high) for low, high in pairwise(cuts)]
            costliest = int(np.argmax(costs))
            if not costs[costliest] > 0:
                break
            # The input nearest to the mean posterior of the interval.
            inside = np.arange(cuts[costliest] + 1, cuts[costliest + 1])
            middle = float(s[inside] @ mass[inside] / mass[inside].sum())
            cuts.insert(costliest + 1, int(inside[np.abs(s[inside] - middle).argmin()]))
        a0, a1 = dominating(pair.p0, pair.p1, s[cuts])
        return a0 / a0.sum(), a1 / a1.sum()


def _cost(f: FDivergence, s: Array, mass: Array, worth: Array, low: int, high: int) -> float:
    """By how much the divergence grows when the inputs between two are spread onto these two."""
    if high - low < 2:
        return 0.0
    inside, ends = slice(low + 1, high), excess_at(f, s[[low, high]])
    share = (s[inside] - s[low]) / (s[high] - s[low])
    return float(mass[inside] @ ((1 - share) * ends[0] + share * ends[1]) - worth[inside].sum())
