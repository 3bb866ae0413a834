"""Two hypotheses that are only known to lie in convex sets: the divergence of the least favorable pair.

    U(Q) = min over P0 in C0, P1 in C1 of D_f(P0 Q || P1 Q)

The divergence is jointly convex in the pair, so the worst pair of a channel solves a convex program. The function mu(a,
b) = b f(a/b) lies above its tangents, linear functions that touch it where a/b is a given ratio. A few ratios per
output make the program linear; `least_pair` adds ratios in rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ldpopt.channel import Channel, ChannelLike, Label
from ldpopt.design.kernel.numbers import mixture, nonnegative_list, require
from ldpopt.design.solve import INTERIOR, SIMPLEX, solve
from ldpopt.design.utilities.base import Utility
from ldpopt.design.utilities.divergence import tangents_of_ratios
from ldpopt.design.utilities.laws import f_divergence
from ldpopt.design.utilities.sets import HypothesisSet, as_set
from ldpopt.divergences import FDivergence
from ldpopt.divergences.enclosed import enclosed_slopes
from ldpopt.errors import SolverError, invalid
from ldpopt.numbers.enclosures import FLOAT, Arithmetic, Enclosure
from ldpopt.numbers.tolerances import MEETING_DISTANCE, SAME_TANGENT, TANGENT_GAP
from ldpopt.values.distribution import Array, Index, distribution
from ldpopt.values.labels import aligned, distinct_labels
from ldpopt.values.results import ByValue

MAX_ROUNDS = 40
INITIAL_RATIOS = np.geomspace(0.05, 20.0, 12)  # The ratios of the first tangents.
Sets = tuple[HypothesisSet, HypothesisSet]


@dataclass(frozen=True, eq=False)
class LowerLine(ByValue):
    """A linear function below the divergence: for every output, tangents of mu at `ratios` (n,) with `weights` (m, n).

    Each tangent lies below the convex mu, and so does any mixture of tangents. The least value of the mixture over the
    two sets is a lower bound for every pair.
    """

    ratios: Array
    weights: Array

    def enclosed_bound(self, f: FDivergence, sets: Sets, channel: Channel, arithmetic: Arithmetic) -> Enclosure:
        """Enclose a lower bound, at least 0, on the divergence of every pair of the sets.

        It is valid for any ratios and weights; raises `Unproved` if these are malformed.
        """
        k, m = channel.shape
        require(k == sets[0].size, f"the channel has {k} inputs, and the sets have {sets[0].size}")
        ratios = nonnegative_list(self.ratios, "ratios of tangents")
        require((ratios > 0).all(), "the ratios of tangents are not all positive")
        shares = mixture(self.weights, (m, len(ratios)), "weights of tangents", "an output's tangents", arithmetic)
        matrix = arithmetic.of(channel.matrix)
        rows = matrix / matrix.sum(axis=1)[:, None]
        on_p0, on_p1 = (rows @ (shares @ slopes) for slopes in enclosed_slopes(f, ratios, arithmetic))
        first, second = sets
        return (first.enclosed_least(on_p0) + second.enclosed_least(on_p1)).positive()


@dataclass(frozen=True, eq=False)
class LeastPair:
    """The pair (p0, p1) that minimizes the largest divergence after any of several channels.

    - `value` : that divergence, from below.
    - `coin` : (channels,) the probabilities of a random choice of channel that preserves `value` against every pair.
    - `support` : the proof of `value`, for a single channel.
    - `ratios` : for every output of the channels, the ratios of its tangents.
    """

    p0: Array
    p1: Array
    value: float
    coin: Array
    support: LowerLine
    ratios: list[Array]


def least_pair(
    f: FDivergence,
    sets: Sets,
    channels: Sequence[Array],
    known_ratios: Sequence[Array] = (),
    solvers: Sequence[str] = INTERIOR,
) -> LeastPair:
    """Find the pair that attains the min over the sets of the max over `channels` (k, m_i) of the divergence.

    A linear program is solved in rounds; each adds the tangents at the ratios of the last pair.

    known_ratios : initial ratios, for the outputs of the first channels.
    solvers : interior-point by default, which finds a pair in the middle of equally bad ones. A vertex has fewer
        channels in the coin, but a pair at the edge.
    """
    import cvxpy as cp

    stacked_channels, size = np.hstack(channels), sets[0].size
    owner = np.repeat(np.arange(len(channels)), [q.shape[1] for q in channels])
    tangent_ratios = [*known_ratios, *[INITIAL_RATIOS] * (stacked_channels.shape[1] - len(known_ratios))]
    channel_of_output = np.equal.outer(np.arange(len(channels)), owner).astype(float)
    centers = [s.centre @ stacked_channels for s in sets]
    # The program is in units of its expected value, so that the solver's tolerances are small in comparison.
    scale = float((channel_of_output @ f.excess(*centers)).max())
    scale = scale if scale > 1e-9 else 1.0
    last_solution: tuple[Index, Array, Array] | None = None
    gap, stale = np.inf, 0
    for _ in range(MAX_ROUNDS):
        p0, p1 = cp.Variable(size, nonneg=True), cp.Variable(size, nonneg=True)
        output_values, worst_value = cp.Variable(stacked_channels.shape[1]), cp.Variable()
        row = np.repeat(np.arange(stacked_channels.shape[1]), [len(r) for r in tangent_ratios])
        ratios = np.concatenate(tangent_ratios)
        slope, level = (values / scale for values in tangents_of_ratios(f, ratios))
        tangent_constraints = (
            output_values[row]
            >= (slope[:, None] * stacked_channels.T[row]) @ p0 + (level[:, None] * stacked_channels.T[row]) @ p1
        )
        channel_constraints = channel_of_output @ output_values <= worst_value * np.ones(len(channels))
        first, second = sets
        limits = [cp.sum(p0) == 1, cp.sum(p1) == 1, *first.expression(p0), *second.expression(p1)]
        try:
            solve(
                cp.Problem(cp.Minimize(worst_value), [tangent_constraints, channel_constraints, *limits]),
                "least favourable pair",
                solvers,
            )
        except SolverError:
            # The tangents are too nearly equal for the solver: keep the result of the previous round.
            if last_solution is None:
                raise
            break
        a, b = (s.member(np.maximum(p.value, 0.0)) for s, p in zip(sets, (p0, p1), strict=True))
        m0, m1 = a @ stacked_channels, b @ stacked_channels
        value, largest_divergence = (
            float(worst_value.value) * scale,
            float((channel_of_output @ f.excess(m0, m1)).max()),
        )
        last_solution = (row, ratios, np.maximum(np.asarray(tangent_constraints.dual_value), 0.0))
        coin = np.maximum(np.asarray(channel_constraints.dual_value), 0.0)
        stale = 0 if largest_divergence - value < 0.5 * gap else stale + 1
        gap = min(gap, largest_divergence - value)
        if gap <= TANGENT_GAP * max(largest_divergence, 1e-3 * scale) or stale == 4:
            break
        ratio = np.clip(m0, 1e-12, None) / np.clip(m1, 1e-12, None)
        tangent_ratios = [
            np.append(old, r) if np.abs(old / r - 1).min() > SAME_TANGENT else old
            for old, r in zip(tangent_ratios, ratio, strict=True)
        ]
        scale = max(largest_divergence, 1e-2 * scale)
    assert last_solution is not None
    row, ratios, duals = last_solution
    distinct_ratios, ratio_index = np.unique(ratios, return_inverse=True)
    weights = np.zeros((stacked_channels.shape[1], len(distinct_ratios)))
    np.add.at(weights, (row, ratio_index), duals)
    weights[weights.sum(axis=1) <= 0, int(np.argmin(np.abs(np.log(distinct_ratios))))] = 1.0
    # Tangents without weight are dropped, except the first ones.
    output_ratios = [np.union1d(INITIAL_RATIOS, ratios[(row == y) & (duals > 0)]) for y in range(len(tangent_ratios))]
    return LeastPair(a, b, value, coin / coin.sum(), LowerLine(distinct_ratios, weights), output_ratios)


MAX_SEPARATION_STEPS = 1000
"""Steps towards a linear function that separates two sets, before a solver computes their distance."""


@dataclass(frozen=True, eq=False)
class AgainstSet(Utility, f=f_divergence):
    """The least D_f(P0 Q || P1 Q) over all P0 and P1 of two convex sets [HS; Huber].

    f : an `FDivergence`. p0, p1 : each a distribution of shape (k,), or the `Hull` of several distributions, or those
    `Around` one. inputs : labels of the k answers.

    Raises `InvalidInput` for sets of different sizes, and for sets with a common distribution, which no channel can
    distinguish.

    >>> import numpy as np
    >>> from ldpopt.design import Around, Contamination
    >>> from ldpopt.divergences import TOTAL_VARIATION
    >>> u = AgainstSet(TOTAL_VARIATION, [0.5, 0.5], Around([0.1, 0.9], Contamination(0.1)))
    >>> round(u.value(np.eye(2)), 9)
    0.31
    """

    f: FDivergence
    p0: Any
    p1: Any
    inputs: tuple[Label, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        (p0, p1), inputs = aligned((("p0", self.p0), ("p1", self.p1)), self.inputs)
        first, second = as_set(p0, "p0"), as_set(p1, "p1")
        if first.size != second.size:
            raise invalid("p1", f"{first.size} inputs, as many as p0", second.size)
        labels = None if inputs is None else distinct_labels(inputs, first.size, "inputs")
        vars(self).update(inputs=labels, sets=(first, second))
        for name, hypothesis in (("p0", p0), ("p1", p1)):
            object.__setattr__(
                self, name, hypothesis if isinstance(hypothesis, HypothesisSet) else distribution(hypothesis, name)
            )
        if not _are_surely_separated(first, second) and _distance(first, second) <= MEETING_DISTANCE:
            raise invalid("p0 and p1", "sets that do not meet (nothing tells apart what is in both)", "sets that do")

    sets: tuple[HypothesisSet, HypothesisSet] = field(init=False)

    @property
    def value_without_privacy(self) -> float:
        """The least divergence of the sets themselves."""
        return self.value(np.eye(self.size))

    @property
    def size(self) -> int:
        """The number k of inputs."""
        return self.sets[0].size

    @property
    def name(self) -> str:
        """The name of the utility in designs and printed tables, with its divergence."""
        return f"least {self.f.name} of two sets"

    def value(self, channel: ChannelLike) -> float:
        """Return a proved lower bound on the least divergence of any pair of the sets after this channel."""
        return float(self.enclosed_value(self.check(channel), FLOAT).lower)

    def enclosed_value(self, channel: Channel, arithmetic: Arithmetic) -> Enclosure:
        """Enclose a proved lower bound on the least divergence; a program finds the proof for this channel."""
        support = least_pair(self.f, self.sets, [channel.matrix]).support
        return support.enclosed_bound(self.f, self.sets, channel, arithmetic)

    def __repr__(self) -> str:
        return f"AgainstSet({self.f.name}, {self.size} inputs)"


def _are_surely_separated(first: HypothesisSet, second: HypothesisSet) -> bool:
    """Return True if a linear function is found that separates the two sets.

    Gilbert's algorithm needs no solver. z is a difference of two members, and approaches 0. Let s be the difference
    that is least along z. Once z . s > 0, the sets are at least z . s / |z| apart in the Euclidean norm; total
    variation is at least half of that.
    """
    z = first.centre - second.centre
    for _ in range(MAX_SEPARATION_STEPS):
        s = first.highest(-z) - second.highest(z)
        if z @ s > 4 * MEETING_DISTANCE * np.linalg.norm(z):
            return True
        step = z - s
        if not step @ step > 0:
            return False
        z = z - min(1.0, max(0.0, float(z @ step) / float(step @ step))) * step
    return False


def _distance(first: HypothesisSet, second: HypothesisSet) -> float:
    """Compute the least total variation between members of two sets; 1 if no solver is installed.

    Without a solver nothing can be designed, and proofs are valid whether the sets meet or not.
    """
    try:
        import cvxpy as cp
    except ImportError:
        return 1.0

    p0, p1 = cp.Variable(first.size, nonneg=True), cp.Variable(second.size, nonneg=True)
    sets = [cp.sum(p0) == 1, cp.sum(p1) == 1, *first.expression(p0), *second.expression(p1)]
    problem = cp.Problem(cp.Minimize(cp.sum(cp.pos(p0 - p1))), sets)
    solve(problem, "distance of two sets", SIMPLEX)
    return float(problem.value)
