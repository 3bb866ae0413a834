"""The matrix mechanism: answer strategy queries with Laplace noise, and compute the queries of interest from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.distribution import Array, finite_array, positive_epsilon
from ldpopt.errors import invalid
from ldpopt.exact import float_up
from ldpopt.mechanisms.additive import answers
from ldpopt.mechanisms.laplace import Laplace, LaplacePair
from ldpopt.mechanisms.outward import guarantee
from ldpopt.mechanisms.restricted_vectors import LOWEST_ORDER, vector_divergence
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.results import ByValue
from ldpopt.rounding import exact_sum
from ldpopt.tolerances import MINIMUM_EPSILON

_SUPPORTED = 1e-9


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
        if missed > _SUPPORTED * np.abs(workload).max():
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
        exact = np.linalg.matrix_rank(self.reconstruction) == len(self.strategy)
        parameters = {"order": float(order)}
        return guarantee(
            "renyi", low if exact else 0.0, min(high, self.epsilon), "[CIM, Thm 11]", exact=bool(exact),
            parameters=parameters,
        )  # fmt: skip

    def restricted_renyi(self, order: float) -> Guarantee:
        """The Rényi divergence restricted to affine functions of the released answers, in nats [CIM, eq. 3].

        order in [1.01, inf). From order 1.5 on, a convex program is solved for every column of the strategy, and
        `lower` and `value` enclose its result. Below that order, `value` is an upper bound, for a change of one
        strategy answer by the whole sensitivity. The bound of [CIM, Thm 5] is not used: it is too low at small epsilon.
        """
        bound = Laplace(self.epsilon).restricted_renyi(order)
        order = bound.parameters["order"]
        if order < LOWEST_ORDER:
            parameters = {"order": order}
            return guarantee("restricted_renyi", 0.0, bound.value, "[CIM, eq. 3]", exact=False, parameters=parameters)
        u, singular, _ = np.linalg.svd(self.reconstruction.T, full_matrices=False)
        space = u[:, singular > 1e-12 * singular[0]]
        signed = self.strategy * (self.epsilon / self.sensitivity)
        low = high = 0.0
        for column in np.unique(signed.T, axis=0):
            below, above = vector_divergence(column, space, order)
            low, high = max(low, below), max(high, above)
        # The divergence is convex in the shift, so no column gives more than a vertex of the 1-norm ball.
        return guarantee("restricted_renyi", low, min(high, bound.value), "[CIM, eq. 3]", parameters={"order": order})

    def sample(self, x: Any, rng: np.random.Generator) -> Array:
        """A simulated release, shape (d,), for counts x of shape (n,)."""
        x = answers(x, rng)
        if x.shape != (self.strategy.shape[1],):
            raise invalid("counts", f"shape ({self.strategy.shape[1]},)", x.shape)
        noise = rng.laplace(0.0, self.sensitivity / self.epsilon, len(self.strategy))
        return np.asarray(self.reconstruction @ (self.strategy @ x + noise))

    def __repr__(self) -> str:
        d, (s, n) = len(self.workload), self.strategy.shape
        return f"MatrixMechanism({d} queries on {n} counts, {s} strategy answers, epsilon={self.epsilon!r})"


matrix_mechanism = MatrixMechanism
