"""The base class of criteria of optimal design: a function of the errors of an estimate, and a proved bound on it.

A criterion is a function of the scores B (k-1, m) of a channel's reports, the derivatives of the log-likelihood of each
report by the proportions. This module computes the scores, as floats and enclosed, and proved bounds on the errors of
the best estimate.

The columns of B are sqrt(m_y) T^T u_y. Let h be the influence of the reports on an estimate of F^T p, times the roots
of their probabilities. The estimate is unbiased when B h = T^T F, and its variance is |h|^2. From above: a float h may
leave a residual r. Let Z be a near inverse of B, with B Z = I + E and |E| < 1. A correction of norm at most |Z| |r| /
(1 - |E|) makes it unbiased. From below: |h|^2 >= (mu . T^T F)^2 / |B^T mu|^2 for any mu, by Cauchy and Schwarz.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.cones import ConeProgram, Indices, matrix_of, triangle
from ldpopt.design.registry import Kind
from ldpopt.design.utilities.laws import law
from ldpopt.numbers.enclosures import Arithmetic, Enclosure
from ldpopt.numbers.rounding import exact_sum
from ldpopt.values.distribution import Array
from ldpopt.values.results import ByValue


@dataclass(frozen=True, eq=False)
class Influence:
    """The best estimate for a criterion.

    value : the criterion.
    factor : F (k, r) of the target F^T p; the trace of F^T C F is the value, or F^T C F is the identity.
    loadings : (r, m) the influence of every report on the estimate, less its mean, times the root of the report's
        probability.
    """

    value: float
    factor: Array
    loadings: Array


@dataclass(frozen=True, eq=False)
class CriterionProgram:
    """A criterion in a program over cones: the variables and `slopes` of its linear cost.

    - `factor` : the slope of the criterion over that of the cost.
    - `kernel` : a function from the dual values of all blocks to K (r, k) such that |K column|^2 is the slope of the
      criterion.
    """

    variables: Indices
    slopes: Array
    factor: float
    kernel: Callable[[list[Array]], Array]


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights (n,) of columns in a program: those of its `variables` times `ratios`."""

    program: ConeProgram
    variables: Indices
    ratios: Array


class Criterion(Kind, ByValue, ABC):
    """A number that a design for estimation minimizes, such as the sum of the variances.

    name : its name in designs and printed tables, such as "sum of variances".
    logarithmic : True if it is a logarithm, so that gaps are differences.
    additive : True if it is a sum of variances of fixed contrasts.
    limited : True if it is the largest of the variances of the single proportions.
    """

    logarithmic: ClassVar[bool] = False
    additive: ClassVar[bool] = False
    limited: ClassVar[bool] = False
    newton: ClassVar[bool] = False
    """True if Newton's method of `estimation.program` supports it for all numbers of categories."""

    if TYPE_CHECKING:  # an attribute of a class or a property

        @property
        def name(self) -> str:
            """The name."""

    def check(self, k: int) -> None:
        """Raise `InvalidInput` if the criterion does not fit k categories; by default every k fits."""

    @abstractmethod
    def value(self, covariance: Array) -> float:
        """Compute the criterion of the covariance (k, k) of one report's estimate."""

    @abstractmethod
    def influence(self, scores: Array) -> Influence:
        """Return the best unbiased estimate for `scores` (k-1, m), with columns sqrt(w_y) T^T u_y (see `criteria`).

        T is `differences(k)`.
        """

    @abstractmethod
    def enclosed(self, scores: Enclosure) -> Enclosure | None:
        """Enclose the criterion of `scores`; None if they may not distinguish all proportions."""

    @abstractmethod
    def kernel_rows(self, k: int) -> int:
        """Return the number r of rows of a kernel K (r, k) for k categories."""

    @abstractmethod
    def bound(self, kernel: Enclosure, max_information: Enclosure, prior: Enclosure) -> Enclosure | None:
        """Bound the criterion from below for every channel with sum_y w_y |K u_y|^2 at most `max_information` > 0.

        None if the kernel proves nothing.
        """

    @abstractmethod
    def build_program(self, columns: Array, weights: Weights) -> CriterionProgram:
        """Build the criterion of the `weights` (n,) of the centered columns u = `columns` (n, k) in their program."""

    def kernel(self, numbers: Array, arithmetic: Arithmetic) -> Enclosure:
        """Return the kernel that `numbers` (r, k) represent; by default these numbers."""
        return arithmetic.of(numbers)

    def loadings(self, scores: Array) -> Array:
        """Return K u_y sqrt(w_y), (r, m), for the best kernel K of `scores`, up to weights of its rows.

        By default the influence itself.
        """
        return self.influence(scores).loadings

    def row_values(self, kernel: Array, prior: Array) -> Array | None:
        """Return the contribution of each row of a kernel to the bound, (r,), if rows may have weights; else None."""
        return None

    def diagonal(self, k: int) -> Array | None:
        """Return positive roots of the weights, (k,), of a weighted sum of the variances; else None."""
        return None

    def smooth(self, k: int) -> bool:
        """Return True if Newton's method supports it for k categories."""
        return self.newton or self.diagonal(k) is not None


def differences(k: int) -> Array:
    """Return T (k, k-1): column i moves mass from the last proportion to proportion i."""
    return np.vstack([np.eye(k - 1), -np.ones((1, k - 1))])


def criterion_at(criterion: Criterion, matrix: Array, prior: Array) -> float:
    """Compute the criterion of a channel's matrix (k, m) at `prior` (k,); inf if the target is not estimable."""
    return criterion.influence(scores(matrix, prior)).value


def scores(matrix: Array, prior: Array) -> Array:
    """Compute sqrt(m_y) T^T u_y, (k-1, m), with m = p Q, u_y = q_y / m_y - 1; zero for reports that never occur.

    They are about differences of the proportions. So unlike J they are accurate for nearly uninformative channels.
    """
    mass = prior @ matrix
    root = np.sqrt(np.where(mass > 0, mass, 1.0))
    return np.asarray(np.where(mass > 0, (matrix[:-1] - matrix[-1]) / root, 0.0))


def enclosed_scores(channel: Channel, prior: Array, arithmetic: Arithmetic) -> Enclosure:
    """Enclose the scores sqrt(m_y) T^T u_y, (k-1, m), without reports that never occur.

    Rows and prior are the distributions proportional to their floats.
    """
    used_outputs = np.flatnonzero(channel.matrix[prior > 0].max(axis=0) > 0)
    rows, column_minima = channel.matrix[:, used_outputs], channel.matrix[:, used_outputs].min(axis=0)
    # A row represents the distribution q / T. Small differences of rows keep their digits in q - q (T - 1)/T.
    sums_above_one = arithmetic.of([1 - 1 / exact_sum(row) for row in channel.matrix])
    above_minima = (arithmetic.of(rows) - column_minima[None, :]) - arithmetic.of(rows) * sums_above_one[:, None]
    mass = law(prior, arithmetic) @ above_minima + column_minima
    scaled_scores: Enclosure = (above_minima[:-1] - above_minima[-1][None, :]) / mass.sqrt()[None, :]
    return scaled_scores


def least_variances(scores: Enclosure, target: Enclosure) -> Enclosure | None:
    """Enclose the least variances, (r,), of unbiased estimates for the columns of `target` (k-1, r).

    None if the scores may not have full rank: then rounding decides which proportions can be estimated at all.
    """
    row_norms = np.linalg.norm(np.asarray(scores.midpoint), axis=1, keepdims=True)
    if not (np.isfinite(row_norms).all() and (row_norms > 0).all()):
        return None
    scaled_scores, scaled_target = scores / row_norms, target / row_norms
    scores_midpoint, target_midpoint = np.asarray(scaled_scores.midpoint), np.asarray(scaled_target.midpoint)
    if not np.isfinite(scores_midpoint).all():
        return None
    near_inverse = np.linalg.pinv(scores_midpoint, rcond=1e-14)
    h = near_inverse @ target_midpoint
    h = h + near_inverse @ np.asarray((scaled_target - scaled_scores @ h).midpoint)
    residual_norm = (scaled_scores @ near_inverse - np.eye(len(scores_midpoint))).square().sum().sqrt()
    if not residual_norm.upper < 0.5:
        return None
    arithmetic = scores.arithmetic
    shortfall = (scaled_target - scaled_scores @ h).square().sum(axis=0).sqrt()
    correction = shortfall * arithmetic.of(near_inverse).square().sum().sqrt() / (1 - residual_norm)
    upper = (arithmetic.of(h).square().sum(axis=0).sqrt() + correction).square()
    mu = near_inverse.T @ h
    lower = (scaled_target * mu).sum(axis=0).square() / (scaled_scores.T @ mu).square().sum(axis=0)
    return arithmetic.between(lower.ends[0], upper.ends[1])


def log_det_information(scores: Enclosure) -> Enclosure | None:
    """Enclose log det of scores scores^T, by a nearly orthogonal basis; None if that may be singular."""
    midpoint = np.asarray(scores.midpoint)
    n = len(midpoint)
    if not np.isfinite(midpoint).all() or midpoint.shape[1] < n:
        return None
    r_factor = np.linalg.qr(midpoint.T, mode="r")
    if not (np.abs(np.diag(r_factor)) > 0).all():
        return None
    r_inverse = np.triu(np.linalg.solve(r_factor, np.eye(n)))
    orthogonal_scores = scores.T @ r_inverse
    log_det_near_identity = _log_det_near_identity(orthogonal_scores.T @ orthogonal_scores)
    # det(Y^T X Y) = det X det Y^2 for the triangular Y.
    return (
        None
        if log_det_near_identity is None
        else log_det_near_identity - scores.arithmetic.of(np.abs(np.diag(r_inverse))).log().sum() * 2
    )


def log_det(square: Enclosure) -> Enclosure | None:
    """Enclose log |det| of a matrix (n, n), by near inverses of its triangular factors; None if it may be zero."""
    from scipy.linalg import lu

    midpoint = np.asarray(square.midpoint)
    if not np.isfinite(midpoint).all():
        return None
    row_order, lower_factor, upper_factor = lu(midpoint, p_indices=True)
    if not (np.abs(np.diag(upper_factor)) > 0).all():
        return None
    n = len(midpoint)
    lower_inverse, upper_inverse = (
        np.tril(np.linalg.inv(lower_factor)),
        np.triu(np.linalg.solve(upper_factor, np.eye(n))),
    )
    np.fill_diagonal(lower_inverse, 1.0)
    arithmetic = square.arithmetic
    log_det_near_identity = _log_det_near_identity(
        arithmetic.of(lower_inverse) @ square[np.argsort(row_order)] @ upper_inverse
    )
    return (
        None
        if log_det_near_identity is None
        else log_det_near_identity - arithmetic.of(np.abs(np.diag(upper_inverse))).log().sum()
    )


def _log_det_near_identity(square: Enclosure) -> Enclosure | None:
    """Enclose log det of I + E: the trace of E up to n |E|^2 / (2 (1 - |E|)).

    No eigenvalue of E exceeds |E| in size.
    """
    n = len(square)
    deviation = square - np.eye(n)
    deviation_norm = deviation.square().sum().sqrt()
    if not deviation_norm.upper < 0.5:
        return None
    slack = (deviation_norm.square() * n / (1 - deviation_norm) / 2).upper
    return deviation[np.arange(n), np.arange(n)].sum() + deviation.arithmetic.between(-slack, slack)


def information_in(weights: Weights, reduced_scores: Array) -> Array:
    """Return sum_y w_y (T^T u_y)(T^T u_y)^T as a vector (`cones.triangle`), (m, n).

    reduced_scores : (n, k-1), the T^T u_y.
    """
    i, j, factor = triangle(reduced_scores.shape[1])
    return np.asarray((reduced_scores[:, i] * reduced_scores[:, j] * factor * weights.ratios[:, None]).T)


def matrix_bound(weights: Weights, columns: Array, target: Array) -> tuple[Indices, int]:
    """Add the cone [[Y, A^T], [A, X]] for the information X of the weights and a `target` A (k-1, r).

    In the cone Y (r, r) is above A^T X^-1 A. Returns the variables of the diagonal of Y, and the position of the cone.
    """
    information_size, r = target.shape
    i, j, factor = triangle(r + information_size)
    y = weights.program.variables(r * (r + 1) // 2)  # its triangle comes first
    offset = np.zeros((r + information_size, r + information_size))
    offset[:r, r:] = target.T
    information = np.zeros((len(i), len(columns)))
    information[i >= r] = information_in(weights, columns @ differences(columns.shape[1]))
    terms = ((y, np.eye(len(i), len(y))), (weights.variables, information))
    return y[(i == j)[: len(y)]], weights.program.put("semidefinite", offset[i, j] * factor, *terms)


class LinearCriterion(Criterion):
    """tr(W C) with W = F F^T: the common part of A- and c-optimality."""

    additive: ClassVar[bool] = True

    @abstractmethod
    def factor(self, k: int) -> Array:
        """Return the matrix F (k, r) with W = F F^T."""

    def value(self, covariance: Array) -> float:
        """Compute tr(W C)."""
        f = self.factor(len(covariance))
        return float(np.einsum("xr,xy,yr->", f, covariance, f))

    def influence(self, scores: Array) -> Influence:
        """Return the smallest influence h with T^T F = scores h^T; the value is inf if there is none."""
        return least_influence(scores, self.factor(len(scores) + 1))

    def enclosed(self, scores: Enclosure) -> Enclosure | None:
        """Enclose the sum of the least variances of unbiased estimates of F^T p."""
        f = self.enclosed_factor(len(scores) + 1, scores.arithmetic)
        variances = least_variances(scores, f[:-1] - f[-1][None, :])
        return None if variances is None else variances.sum()

    def enclosed_factor(self, k: int, arithmetic: Arithmetic) -> Enclosure:
        """Enclose F."""
        return arithmetic.of(self.factor(k))

    def kernel_rows(self, k: int) -> int:
        """Return the number of columns of F."""
        return int(self.factor(k).shape[1])

    def build_program(self, columns: Array, weights: Weights) -> CriterionProgram:
        """Build the min of tr(F_r^T X^-1 F_r), F_r = T^T F, as tr Y with [[Y, F_r^T], [F_r, X]] semidefinite."""
        t = differences(columns.shape[1])
        left_vectors, singular_values, right_vectors = np.linalg.svd(
            t.T @ self.factor(columns.shape[1]), full_matrices=False
        )
        is_nonzero = singular_values > 1e-12 * singular_values.max()  # tr(W C) depends on F F^T alone
        singular_norm, r = float(np.linalg.norm(singular_values)), int(is_nonzero.sum())
        variances, cone = matrix_bound(
            weights, columns, (left_vectors * singular_values)[:, is_nonzero] / singular_norm
        )

        def kernel(duals: list[Array]) -> Array:
            return np.asarray(singular_norm * right_vectors[is_nonzero].T @ matrix_of(duals[cone])[:r, r:] @ t.T)

        return CriterionProgram(variances, np.ones(r), singular_norm**2, kernel)

    def bound(self, kernel: Enclosure, max_information: Enclosure, prior: Enclosure) -> Enclosure | None:
        """Bound by tr(K F_c)^2 / max_information, F_c = F - 1 p^T F, for any unbiased estimate [KW].

        The bound follows by Cauchy and Schwarz.
        """
        f = self.enclosed_factor(len(prior), kernel.arithmetic)
        return (kernel.T * (f - (prior @ f)[None, :])).sum().square() / max_information


def least_influence(scores: Array, f: Array) -> Influence:
    """Return the smallest influence h with T^T F = scores h^T, for F (k, r); the value is inf if there is none."""
    target = differences(len(f)).T @ f
    row_norms = np.linalg.norm(scores, axis=1, keepdims=True)
    row_norms[row_norms == 0] = 1.0
    h = np.linalg.lstsq(scores / row_norms, target / row_norms, rcond=1e-10)[0]
    is_infeasible = np.abs(scores @ h - target).max() > 1e-8 * np.abs(target).max()
    return Influence(math.inf if is_infeasible else float((h**2).sum()), f, h.T)
