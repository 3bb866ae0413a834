"""The matrix mechanism: strategy queries answered with Laplace noise, and the queries of interest from their answers.

For unit Laplace variables Y, a shift v and w in a linear space, the divergence restricted to w.y + b is -log min F.
Here F(w) = E|w.Y + 1 - w.v|^A and A = order/(order - 1) [CIM, eq. 3]. w.Y has a mixture of Laplace distributions.
Therefore F is a sum of incomplete gamma functions, which ball arithmetic encloses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ldpopt.errors import invalid
from ldpopt.mechanisms.additive import answers, guarantee
from ldpopt.mechanisms.noise import Laplace, LaplacePair, laplace_power
from ldpopt.numbers.enclosures.adaptive import enclosed
from ldpopt.numbers.enclosures.exact import precision
from ldpopt.numbers.rounding import ULP, exact_sum, float_up
from ldpopt.numbers.tolerances import MINIMUM_EPSILON, QUERY_RANK, SPAN_RTOL, UNSEEN_SHIFT
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.values.distribution import Array, Rng, finite_array, generator, positive_epsilon
from ldpopt.values.results import ByValue

if TYPE_CHECKING:
    from flint import arb

LOWEST_ORDER = 1.5
"""Below this order F has a sharp minimum, and only the bound for one strategy answer is given."""

_RADIUS = math.sqrt(3)
"""Every w with F(w) <= 1 has |w| <= sqrt(3): E|w.Y| <= 1, and E X^2 and E X^4 bound E|X| from below."""


def vector_divergence(shift: Array, space: Array, order: float) -> tuple[float, float]:
    """Bound the divergence of order >= `LOWEST_ORDER` for a `shift` (s,) and a linear space.

    w lies in the span of `space` (s, r), whose columns are orthonormal. The convex F rises by at most d from the
    computed point to any point within h of it in the 1-norm. Along the line from the minimum through that point, it
    rises no slower beyond than before. So the minimum, at most R away, lies at most R d/h below.
    """
    from scipy.optimize import minimize

    visible_shift = space.T @ shift
    if not np.any(np.abs(visible_shift) > UNSEEN_SHIFT):
        return 0.0, 0.0
    start = (
        visible_shift / (2 + visible_shift @ visible_shift) * min(1.0, order - 1)
    )  # at order 2 the minimum is a least squares problem
    size = float(np.linalg.norm(start))

    def rough(u: Array) -> float:
        with precision(ROUGH_BITS):
            return float(_excess(space, visible_shift, size * u, order, 0).mid()) / size**2

    def rise_to(neighbor: Array, _: int) -> arb:
        return _excess(space, visible_shift, neighbor, order, 1) - _excess(space, visible_shift, best, order, -1)

    minimum = minimize(rough, start / size, jac=lambda u: _gradient(rough, u), options={"gtol": 1e-10})
    best = size * np.asarray(minimum.x)
    step = NEIGHBOR_STEP * min(1.0, size * size)
    value = enclosed(lambda _: -(1 + _excess(space, visible_shift, best, order, 1)).log())[0]
    rise = 0.0
    for i in range(len(best)):
        for sign in (-step, step):
            neighbor = best.copy()
            neighbor[i] += sign
            rise = max(rise, enclosed(partial(rise_to, neighbor), RISE_WIDTH)[1])
    reach = math.sqrt(len(best)) * (_RADIUS + float(np.linalg.norm(best)) * (1 + 8 * ULP))
    lowest = -math.expm1(-enclosed(lambda _: -(1 + _excess(space, visible_shift, best, order, -1)).log())[1]) * (
        1 + 8 * ULP
    )
    lowest += reach / (step * (1 - 1e-6)) * rise
    return value, -math.log1p(-lowest) if lowest < 1 else math.inf


ROUGH_BITS = 512
"""The precision of the search for the minimum, whose values need not be enclosed."""

NEIGHBOR_STEP = 1e-10
"""Relative distance from the minimum of the neighbors that bound it."""

RISE_WIDTH = 1e-3
"""The relative accuracy of the rise to a neighbor, which is a small correction."""

SPLIT_BITS = 100
"""Coefficients of equal size are moved apart by this many bits, in the direction that keeps a bound."""


def _gradient(function: Callable[[Array], float], t: Array, step: float = 1e-3) -> Array:
    """Five-point central differences: their error is of fourth order in the step."""
    slopes = np.empty(len(t))
    for i in range(len(t)):
        e = np.zeros(len(t))
        e[i] = step
        inner_difference, outer_difference = (
            function(t + e) - function(t - e),
            function(t + 2 * e) - function(t - 2 * e),
        )
        slopes[i] = (8 * inner_difference - outer_difference) / (12 * step)
    return slopes


def _excess(space: Array, visible_shift: Array, t: Array, order: float, side: int) -> arb:
    """A ball around F - 1 at w = space t; for `side` 1 or -1, around a number not below or not above it."""
    from flint import arb

    exact = [arb(x) for x in t.tolist()]
    w = [sum((arb(c) * x for c, x in zip(row, exact, strict=True)), arb(0)) for row in space.tolist()]
    signal = sum((arb(c) * x for c, x in zip(visible_shift.tolist(), exact, strict=True)), arb(0))
    return weighted_moment(w, 1 - signal, arb(order) / (arb(order) - 1), side) - 1


def weighted_moment(w: Sequence[arb], b: arb, power: arb, side: int = 0) -> arb:
    """Return a ball around E|w.Y + b|^power for independent unit Laplace Y, or a bound on it.

    w.Y has a mixture, with positive and negative weights, of Laplace distributions of scales |w_i|, if these differ.
    The moment does not fall as a coefficient grows in size. So coefficients of nearly equal size are separated: all up
    for `side` 1, all down for -1, and either way for 0. The result for 0 is only near the moment.
    """
    from flint import arb

    relative_distance = arb(2) ** -SPLIT_BITS
    sizes = sorted((abs(x) for x in w if not x.contains(0)), key=lambda ball: float(ball.mid()))
    if side > 0 and len(sizes) < len(w):
        return (
            arb("inf")
            if any(x.contains(0) and not x.is_zero() for x in w)
            else weighted_moment([x for x in w if not x.is_zero()], b, power, side)
        )
    if not sizes:
        return abs(b) ** power
    spread: list[arb] = []
    for x in sizes if side >= 0 else reversed(sizes):
        end = x.upper() if side > 0 else x.lower() if side < 0 else x
        if spread:
            limit = spread[-1] * (1 + relative_distance) if side >= 0 else spread[-1] * (1 - relative_distance)
            end = end.max(limit) if side >= 0 else end.min(limit)
        spread.append(end.upper() if side > 0 else end.lower() if side < 0 else end.mid())
    total = arb(0)
    for i, x in enumerate(spread):
        weight = arb(1)
        for j, other in enumerate(spread):
            if j != i:
                weight *= x * x / (x * x - other * other)
        total += weight * x**power * laplace_power(abs(b) / x, power)
    return total


@dataclass(frozen=True, eq=False)
class MatrixMechanism(ByValue):
    """Release W A^+ (A x + |A|_1 Lap(1/epsilon)^s) for a vector x of counts [CIM, section 5].

    - `workload` : the matrix W, (d, n), of the d queries of interest, each a row of coefficients of the n counts.
    - `strategy` : the matrix A, (s, n), of the queries that are answered with noise; its rows must span those of W.
    - `epsilon` : in nats.

    A person changes one count by one, and so A x by a column of A. Therefore the sensitivity is |A|_1, the largest
    1-norm of a column, and the mechanism is epsilon-DP. Raises `InvalidInput` for other shapes or values, and for a
    workload that the strategy cannot answer.

    >>> m = MatrixMechanism([[1, 1], [1, 0]], [[1, 1], [1, -1]], 1.0)
    >>> m.sensitivity, round(m.expected_squared_error, 6)
    (2.0, 12.0)
    """

    workload: Any
    strategy: Any
    epsilon: float

    def __post_init__(self) -> None:
        workload, strategy = finite_array(self.workload, "workload", 2), finite_array(self.strategy, "strategy", 2)
        if workload.shape[1] != strategy.shape[1] or 0 in workload.shape + strategy.shape:
            raise invalid("strategy", f"{workload.shape[1]} columns, as the workload", strategy.shape)
        if not workload.any():
            raise invalid("workload", "at least one entry other than 0", "none")
        for matrix in (workload, strategy):
            matrix.setflags(write=False)
        object.__setattr__(self, "workload", workload)
        object.__setattr__(self, "strategy", strategy)
        object.__setattr__(self, "epsilon", positive_epsilon(self.epsilon))
        reconstruction_error = np.abs(self.reconstruction @ strategy - workload).max()
        if reconstruction_error > SPAN_RTOL * np.abs(workload).max():
            raise invalid(
                "strategy", "rows that span those of the workload", f"a query missed by {reconstruction_error:.3g}"
            )

    @property
    def reconstruction(self) -> Array:
        """W A^+, shape (d, s), with the pseudoinverse of A: it turns strategy answers into workload answers."""
        return np.asarray(self.workload @ np.linalg.pinv(self.strategy), dtype=np.float64)

    @property
    def sensitivity(self) -> float:
        """|A|_1, the largest 1-norm of a column of the strategy, rounded up."""
        return max(float_up(exact_sum(column)) for column in np.abs(self.strategy.T))

    @property
    def expected_squared_error(self) -> float:
        """The expected sum of squared errors over the workload, 2 (|A|_1/epsilon)^2 |W A^+|_F^2."""
        return 2 * (self.sensitivity / self.epsilon) ** 2 * float(np.square(self.reconstruction).sum())

    def renyi(self, order: float) -> Guarantee:
        """Compute the Rényi divergence of the release, in nats, of an order in [1, inf].

        It is a sum of Laplace terms [CIM, Thm 11]. It is exact if the workload's answers determine the strategy's
        answers. Otherwise it is an upper bound, because post-processing can only lower the divergence.
        """
        low = high = 0.0
        columns = np.sort(np.abs(self.strategy.T), axis=1) * (self.epsilon / self.sensitivity)
        for shift in np.unique(columns, axis=0):
            parts = [LaplacePair(max(size, MINIMUM_EPSILON)).renyi(order) for size in shift[shift > 0].tolist()]
            low = max(low, sum(p.lower for p in parts) - len(parts) * MINIMUM_EPSILON)
            high = max(high, sum(p.value for p in parts))
        exact, high = bool(np.linalg.matrix_rank(self.reconstruction) == len(self.strategy)), min(high, self.epsilon)
        return guarantee("renyi", low if exact else 0.0, high, "[CIM, Thm 11]", exact, order=float(order))

    def restricted_renyi(self, order: float) -> Guarantee:
        """Compute the Rényi divergence restricted to affine functions of the answers, in nats.

        The order is at least 1.01 [CIM, eq. 3]. From order 1.5 on, a convex program is solved for every column of the
        strategy. Below, `value` is an upper bound, for a change of one strategy answer by the full sensitivity. [CIM,
        Thm 5] is too low at small epsilon, and not used.
        """
        bound = Laplace(self.epsilon).restricted_renyi(order)
        order = bound.parameters["order"]
        if order < LOWEST_ORDER:
            return guarantee("restricted_renyi", 0.0, bound.value, "[CIM, eq. 3]", False, order=order)
        u, singular, _ = np.linalg.svd(self.reconstruction.T, full_matrices=False)
        space = u[:, singular > QUERY_RANK * singular[0]]
        scaled_strategy = self.strategy * (self.epsilon / self.sensitivity)
        low = high = 0.0
        for column in np.unique(scaled_strategy.T, axis=0):
            lower, upper = vector_divergence(column, space, order)
            low, high = max(low, lower), max(high, upper)
        # The divergence is convex in the shift, so no column gives more than a vertex of the 1-norm ball.
        return guarantee("restricted_renyi", low, min(high, bound.value), "[CIM, eq. 3]", order=order)

    def sample(self, x: Any, rng: Rng = None) -> Array:
        """Simulate a release, shape (d,), for counts x of shape (n,)."""
        x, rng = answers(x), generator(rng)
        if x.shape != (self.strategy.shape[1],):
            raise invalid("counts", f"shape ({self.strategy.shape[1]},)", x.shape)
        noise = rng.laplace(0.0, self.sensitivity / self.epsilon, len(self.strategy))
        return np.asarray(self.reconstruction @ (self.strategy @ x + noise))

    def __repr__(self) -> str:
        d, (s, n) = len(self.workload), self.strategy.shape
        return f"MatrixMechanism({d} queries on {n} counts, {s} strategy answers, epsilon={self.epsilon!r})"


matrix_mechanism = MatrixMechanism
