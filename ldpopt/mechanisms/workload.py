"""The matrix mechanism: strategy queries answered with Laplace noise, and the queries of interest made from them.

For unit Laplace variables Y, a shift v and w in a linear space, the divergence restricted to w.y + b is -log min F with
F(w) = E|w.Y + 1 - w.v|^A, A = order/(order - 1) [CIM, eq. 3]. The moment of w.Y is that of one Laplace variable of the
same variance, plus a cosine integral of the difference of the two characteristic functions [OM].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ldpopt.errors import invalid
from ldpopt.mechanisms.additive import answers, guarantee, log_growth
from ldpopt.mechanisms.noise import Laplace, LaplacePair, laplace_noise
from ldpopt.numbers.rounding import exact_sum, float_up
from ldpopt.numbers.tolerances import MINIMUM_EPSILON, QUERY_RANK, SPANNED, UNSEEN
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.values.distribution import Array, Rng, finite_array, generator, positive_epsilon
from ldpopt.values.results import ByValue

LOWEST_ORDER = 1.5
"""Below this order the cosine integral is too singular at 0 to be computed accurately."""

_RADIUS = math.sqrt(3)
"""Every w with F(w) <= 1 has |w| <= sqrt(3): E|w.Y| <= 1, and E X^2 and E X^4 bound E|X| from below."""


def vector_divergence(shift: Array, space: Array, order: float) -> tuple[float, float]:
    """Bounds on the divergence, order >= `LOWEST_ORDER`, for a `shift` (s,) and w in the span of `space` (s, r).

    The upper bound uses that the convex F lies above its tangent plane, over a ball that contains the minimiser.
    """
    from scipy.optimize import minimize

    power = order / (order - 1)
    seen = space.T @ shift
    if not np.any(np.abs(seen) > UNSEEN):
        return 0.0, 0.0

    def excess(t: Array) -> float:
        return weighted_excess(space @ t, float(seen @ t), power)[0]

    start = seen / (2 + seen @ seen)  # the minimiser at order 2: least squares
    minimum = minimize(excess, start * min(1.0, order - 1), jac=lambda t: _gradient(excess, t), options={"gtol": 1e-10})
    best = np.asarray(minimum.x)
    value, error = weighted_excess(space @ best, float(seen @ best), power)
    slope = float(np.linalg.norm(_gradient(excess, best))) + 1e-11 * math.sqrt(len(best))
    lowest = value - error - slope * (_RADIUS + float(np.linalg.norm(best)))
    return -math.log1p(value + error), -math.log1p(lowest) if lowest > -1 else math.inf


def _gradient(function: Callable[[Array], float], t: Array, step: float = 1e-3) -> Array:
    """Five-point central differences: their error is of fourth order in the step."""
    slopes = np.empty(len(t))
    for i in range(len(t)):
        e = np.zeros(len(t))
        e[i] = step
        near, far = function(t + e) - function(t - e), function(t + 2 * e) - function(t - 2 * e)
        slopes[i] = (8 * near - far) / (12 * step)
    return slopes


def weighted_excess(w: Array, signal: float, power: float) -> tuple[float, float]:
    """E|w.Y + 1 - signal|^power - 1 for independent unit Laplace Y, power <= 3, and its error."""
    scale, b = float(np.linalg.norm(w)), max(abs(1 - signal), 1e-60)
    if scale == 0:
        return math.expm1(power * math.log(b)), 1e-15
    growth, error = log_growth(laplace_noise(scale), b, power)
    coarse, fine = (_correction(np.abs(w) / b, power, panels) for panels in (90, 130))
    logarithm = growth + math.log1p(fine * math.exp(-growth))
    value = math.expm1(power * math.log(b) + logarithm)
    error += abs(fine - coarse) * math.exp(-logarithm) + 2e-15 * (power * abs(math.log(b)) + abs(logarithm))
    return value, error * (1 + value)


def _correction(ratio: Array, power: float, panels: int) -> float:
    """E|1 + X|^power for X = ratio.Y, less that for the Laplace variable of the same variance."""
    if np.count_nonzero(ratio) < 2:
        return 0.0
    u, weight = _cosine_rule(panels)
    total, higher = np.zeros_like(u), np.zeros_like(u)
    # prod(1 + z) = 1 + total + higher, of non-negative terms: the difference of the two functions does not cancel.
    for z in (np.square(r * u) for r in ratio):
        higher = higher * (1 + z) + z * total
        total = total + z
    difference = higher / ((1 + total) * (1 + total + higher)) * u ** (-1 - power)
    constant = 2 / math.pi * math.gamma(1 + power) * math.sin(math.pi * power / 2)
    return constant * float(weight @ difference)


@cache
def _cosine_rule(panels: int) -> tuple[Array, Array]:
    """Nodes and weights for integrals of g(u) cos u over (0, inf): double exponential, for singular slow g [OM]."""
    step, beta = math.pi / panels, 0.25
    slope = beta / math.sqrt(1 + panels * math.log1p(panels) / (4 * math.pi))
    n = np.arange(-math.floor(8 / step), math.floor(5.5 / step))
    t = (n + 0.5) * step
    exponent = 2 * t + slope * -np.expm1(-t) + beta * np.expm1(t)
    rate = 2 + slope * np.exp(-t) + beta * np.exp(t)
    # t/(1 - e^-E) and its derivative, in the decaying exponential of either sign.
    decay = np.exp(-np.abs(exponent))
    ratio = np.where(exponent > 0, 1 / (1 - decay), -decay / (1 - decay))
    slope_term = t * rate * decay / (1 - decay) ** 2
    phi, derivative = t * ratio, ratio - slope_term
    # For t > 0 the node is close to a zero of the cosine; its distance is computed, not its difference.
    gap = t * decay / (1 - decay)
    cosine = np.where(t > 0, np.where(n % 2 == 0, -1.0, 1.0) * np.sin(panels * gap), np.cos(panels * phi))
    keep = phi > 1e-60
    return panels * phi[keep], (panels * step * derivative * cosine)[keep]


@dataclass(frozen=True, eq=False)
class MatrixMechanism(ByValue):
    """Release W A^+ (A x + |A|_1 Lap(1/epsilon)^s) for a vector x of counts [CIM, section 5].

    workload : the matrix W, (d, n), of the d queries of interest, each a row of coefficients of the n counts.
    strategy : the matrix A, (s, n), of the queries that are answered with noise; its rows must span those of W.
    epsilon : in nats.

    A person changes one count by one, which moves A x by a column of A. So the sensitivity is |A|_1, the largest 1-norm
    of a column, and the mechanism is epsilon-DP. Raises `InvalidInput` for other shapes or values, and for a workload
    that the strategy cannot answer.

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
        missed = np.abs(self.reconstruction @ strategy - workload).max()
        if missed > SPANNED * np.abs(workload).max():
            raise invalid("strategy", "rows that span those of the workload", f"a query missed by {missed:.3g}")

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
        """The Rényi divergence of the release, in nats, of an order in [1, inf]: a sum of Laplace terms [CIM, Thm 11].

        It is exact if the workload's answers determine the strategy's answers. Otherwise it is an upper bound, because
        post-processing can only lower the divergence.
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
        """The Rényi divergence restricted to affine functions of the answers, in nats; order >= 1.01 [CIM, eq. 3].

        From order 1.5 on, a convex program is solved for every column of the strategy. Below, `value` is an upper
        bound, for a change of one strategy answer by the whole sensitivity. [CIM, Thm 5] is too low at small epsilon,
        and not used.
        """
        bound = Laplace(self.epsilon).restricted_renyi(order)
        order = bound.parameters["order"]
        if order < LOWEST_ORDER:
            return guarantee("restricted_renyi", 0.0, bound.value, "[CIM, eq. 3]", False, order=order)
        u, singular, _ = np.linalg.svd(self.reconstruction.T, full_matrices=False)
        space = u[:, singular > QUERY_RANK * singular[0]]
        signed = self.strategy * (self.epsilon / self.sensitivity)
        low = high = 0.0
        for column in np.unique(signed.T, axis=0):
            below, above = vector_divergence(column, space, order)
            low, high = max(low, below), max(high, above)
        # The divergence is convex in the shift, so no column gives more than a vertex of the 1-norm ball.
        return guarantee("restricted_renyi", low, min(high, bound.value), "[CIM, eq. 3]", order=order)

    def sample(self, x: Any, rng: Rng = None) -> Array:
        """A simulated release, shape (d,), for counts x of shape (n,)."""
        x, rng = answers(x), generator(rng)
        if x.shape != (self.strategy.shape[1],):
            raise invalid("counts", f"shape ({self.strategy.shape[1]},)", x.shape)
        noise = rng.laplace(0.0, self.sensitivity / self.epsilon, len(self.strategy))
        return np.asarray(self.reconstruction @ (self.strategy @ x + noise))

    def __repr__(self) -> str:
        d, (s, n) = len(self.workload), self.strategy.shape
        return f"MatrixMechanism({d} queries on {n} counts, {s} strategy answers, epsilon={self.epsilon!r})"


matrix_mechanism = MatrixMechanism
