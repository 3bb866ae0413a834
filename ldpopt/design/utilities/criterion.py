"""The shape of a criterion of optimal design: a number made of the errors of an estimate, and a proved bound on it.

A criterion is a function of the scores B (k-1, m) of a channel's reports, which say how the likelihood of each report
changes with the proportions. Here are the scores, as floats and enclosed, and errors of the best estimate between two
proved ends.

The columns of B are sqrt(m_y) T^T u_y. Let h be the influence of the reports on an estimate of F^T p, times the roots
of their probabilities. The estimate is unbiased when B h = T^T F, and its variance is |h|^2. From above: a float h may
leave a residual r. With a near inverse Z of B, B Z = I + E and |E| < 1, a correction of norm at most
|Z| |r| / (1 - |E|) makes it unbiased. From below: |h|^2 >= (mu . T^T F)^2 / |B^T mu|^2 for any mu,
by Cauchy and Schwarz.
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
    """The best estimate in the sense of a criterion. value : the criterion. factor : F (k, r), of which F^T p is
    estimated; the trace of F^T C F is the value, or F^T C F is the identity. loadings : (r, m) the influence of every
    report on the estimate, less its mean, times the root of the report's probability.
    """

    value: float
    factor: Array
    loadings: Array


@dataclass(frozen=True, eq=False)
class Posed:
    """A criterion in a program over cones: the variables and `slopes` of the linear cost that it is.

    factor : the slope of the criterion over that of the cost. kernel : from the dual values of all blocks to K (r, k)
    for which |K column|^2 is the slope of the criterion.
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
    """A number that a design for estimation makes as small as possible, such as the sum of the variances.

    name : its name in designs and printed tables, such as "sum of variances". logarithmic : whether it is a logarithm,
    so that gaps are differences. additive : whether it is a sum of variances of fixed contrasts. limited : whether it
    is the largest of the variances of the single proportions.
    """

    logarithmic: ClassVar[bool] = False
    additive: ClassVar[bool] = False
    limited: ClassVar[bool] = False
    newton: ClassVar[bool] = False
    """Whether Newton's method of `estimation.program` knows it for all numbers of categories."""

    if TYPE_CHECKING:  # an attribute of a class or a property

        @property
        def name(self) -> str:
            """The name."""

    def check(self, k: int) -> None:
        """Raises `InvalidInput` if the criterion does not fit k categories; by default every k fits."""

    @abstractmethod
    def value(self, covariance: Array) -> float:
        """The criterion of the covariance (k, k) of one report's estimate."""

    @abstractmethod
    def influence(self, scores: Array) -> Influence:
        """The best unbiased estimate for `scores` (k-1, m), whose columns are sqrt(w_y) T^T u_y (see `criteria`).

        T is `differences(k)`.
        """

    @abstractmethod
    def enclosed(self, scores: Enclosure) -> Enclosure | None:
        """The criterion of `scores`, enclosed; None where they do not surely tell the proportions apart."""

    @abstractmethod
    def kernel_rows(self, k: int) -> int:
        """The number r of rows of a kernel K (r, k) for k categories."""

    @abstractmethod
    def bound(self, kernel: Enclosure, most: Enclosure, prior: Enclosure) -> Enclosure | None:
        """A lower bound on the criterion of every channel for which sum_y w_y |K u_y|^2 is at most `most` > 0.

        None where the kernel proves nothing.
        """

    @abstractmethod
    def posed(self, columns: Array, weights: Weights) -> Posed:
        """The criterion of the `weights` (n,) of the centred columns u = `columns` (n, k), put into their program."""

    def kernel(self, given: Array, arithmetic: Arithmetic) -> Enclosure:
        """The kernel that the numbers `given` (r, k) stand for; by default these numbers."""
        return arithmetic.of(given)

    def loadings(self, scores: Array) -> Array:
        """(r, m) K u_y sqrt(w_y) for the best kernel K of `scores`, up to weights of its rows: the influence itself."""
        return self.influence(scores).loadings

    def worth(self, kernel: Array, prior: Array) -> Array | None:
        """(r,) what each row of a kernel adds to the bound, where rows may have different weights; else None."""
        return None

    def diagonal(self, k: int) -> Array | None:
        """(k,) positive roots of the weights, where it is a weighted sum of the variances of all proportions."""
        return None

    def smooth(self, k: int) -> bool:
        """Whether Newton's method knows it for k categories."""
        return self.newton or self.diagonal(k) is not None


def differences(k: int) -> Array:
    """T (k, k-1): column i moves mass from the last proportion to proportion i."""
    return np.vstack([np.eye(k - 1), -np.ones((1, k - 1))])


def criterion_at(criterion: Criterion, matrix: Array, prior: Array) -> float:
    """The criterion of a channel's matrix (k, m) at `prior` (k,); inf where the channel cannot estimate its target."""
    return criterion.influence(scores(matrix, prior)).value


def scores(matrix: Array, prior: Array) -> Array:
    """sqrt(m_y) T^T u_y, (k-1, m), with m = p Q, u_y = q_y / m_y - 1; zero for reports that never occur. They are about
    differences of the proportions, so that they are accurate for channels that say little, unlike J.
    """
    mass = prior @ matrix
    root = np.sqrt(np.where(mass > 0, mass, 1.0))
    return np.asarray(np.where(mass > 0, (matrix[:-1] - matrix[-1]) / root, 0.0))


def enclosed_scores(channel: Channel, prior: Array, arithmetic: Arithmetic) -> Enclosure:
    """The scores sqrt(m_y) T^T u_y, (k-1, m), enclosed, without reports that never occur. Rows and prior are the laws
    proportional to their floats.
    """
    used = np.flatnonzero(channel.matrix[prior > 0].max(axis=0) > 0)
    rows, base = channel.matrix[:, used], channel.matrix[:, used].min(axis=0)
    # A row stands for the law q / T. Small differences of rows keep their digits in q - q (T - 1)/T, with T - 1 exact.
    off = arithmetic.of([1 - 1 / exact_sum(row) for row in channel.matrix])
    rise = (arithmetic.of(rows) - base[None, :]) - arithmetic.of(rows) * off[:, None]
    mass = law(prior, arithmetic) @ rise + base
    scaled: Enclosure = (rise[:-1] - rise[-1][None, :]) / mass.sqrt()[None, :]
    return scaled


def least_variances(scores: Enclosure, target: Enclosure) -> Enclosure | None:
    """(r,) the least variances, enclosed, of unbiased estimates for the columns of `target` (k-1, r). None where the
    scores may not have full rank: then rounding decides which proportions can be estimated at all.
    """
    size = np.linalg.norm(np.asarray(scores.midpoint), axis=1, keepdims=True)
    if not (np.isfinite(size).all() and (size > 0).all()):
        return None
    scaled, aim = scores / size, target / size
    b, t = np.asarray(scaled.midpoint), np.asarray(aim.midpoint)
    if not np.isfinite(b).all():
        return None
    near = np.linalg.pinv(b, rcond=1e-14)
    h = near @ t
    h = h + near @ np.asarray((aim - scaled @ h).midpoint)
    off = (scaled @ near - np.eye(len(b))).square().sum().sqrt()
    if not off.upper < 0.5:
        return None
    arithmetic = scores.arithmetic
    missing = (aim - scaled @ h).square().sum(axis=0).sqrt()
    mend = missing * arithmetic.of(near).square().sum().sqrt() / (1 - off)
    most = (arithmetic.of(h).square().sum(axis=0).sqrt() + mend).square()
    mu = near.T @ h
    least = (aim * mu).sum(axis=0).square() / (scaled.T @ mu).square().sum(axis=0)
    return arithmetic.between(least.ends[0], most.ends[1])


def log_det_information(scores: Enclosure) -> Enclosure | None:
    """log det of scores scores^T, enclosed, by a nearly orthogonal basis; None where that may be singular."""
    b = np.asarray(scores.midpoint)
    n = len(b)
    if not np.isfinite(b).all() or b.shape[1] < n:
        return None
    triangle = np.linalg.qr(b.T, mode="r")
    if not (np.abs(np.diag(triangle)) > 0).all():
        return None
    inverse = np.triu(np.linalg.solve(triangle, np.eye(n)))
    near = scores.T @ inverse
    log = _log_det_near_identity(near.T @ near)
    # det(Y^T X Y) = det X det Y^2 for the triangular Y.
    return None if log is None else log - scores.arithmetic.of(np.abs(np.diag(inverse))).log().sum() * 2


def log_det(square: Enclosure) -> Enclosure | None:
    """log |det| of a matrix (n, n), enclosed, by near inverses of its triangular factors; None where it may be zero."""
    from scipy.linalg import lu

    a = np.asarray(square.midpoint)
    if not np.isfinite(a).all():
        return None
    order, lower, upper = lu(a, p_indices=True)
    if not (np.abs(np.diag(upper)) > 0).all():
        return None
    n = len(a)
    left, right = np.tril(np.linalg.inv(lower)), np.triu(np.linalg.solve(upper, np.eye(n)))
    np.fill_diagonal(left, 1.0)
    arithmetic = square.arithmetic
    log = _log_det_near_identity(arithmetic.of(left) @ square[np.argsort(order)] @ right)
    return None if log is None else log - arithmetic.of(np.abs(np.diag(right))).log().sum()


def _log_det_near_identity(square: Enclosure) -> Enclosure | None:
    """log det of I + E: the trace of E up to n |E|^2 / (2 (1 - |E|)), as no eigenvalue of E exceeds |E| in size."""
    n = len(square)
    off = square - np.eye(n)
    size = off.square().sum().sqrt()
    if not size.upper < 0.5:
        return None
    slack = (size.square() * n / (1 - size) / 2).upper
    return off[np.arange(n), np.arange(n)].sum() + off.arithmetic.between(-slack, slack)


def information_in(weights: Weights, reduced: Array) -> Array:
    """(m, n) sum_y w_y (T^T u_y)(T^T u_y)^T as a vector (`cones.triangle`), for `reduced` (n, k-1) T^T u_y."""
    i, j, factor = triangle(reduced.shape[1])
    return np.asarray((reduced[:, i] * reduced[:, j] * factor * weights.ratios[:, None]).T)


def posed_above(weights: Weights, columns: Array, target: Array) -> tuple[Indices, int]:
    """The variables of the diagonal of Y (r, r), and the place of the cone [[Y, A^T], [A, X]] in which it is above
    A^T X^-1 A, for the information X of the weights and a `target` A (k-1, r).
    """
    rest, r = target.shape
    i, j, factor = triangle(r + rest)
    y = weights.program.variables(r * (r + 1) // 2)  # its triangle comes first
    whole = np.zeros((r + rest, r + rest))
    whole[:r, r:] = target.T
    information = np.zeros((len(i), len(columns)))
    information[i >= r] = information_in(weights, columns @ differences(columns.shape[1]))
    parts = ((y, np.eye(len(i), len(y))), (weights.variables, information))
    return y[(i == j)[: len(y)]], weights.program.put("semidefinite", whole[i, j] * factor, *parts)


class LinearCriterion(Criterion):
    """tr(W C) with W = F F^T: the part that A- and c-optimality share."""

    additive: ClassVar[bool] = True

    @abstractmethod
    def factor(self, k: int) -> Array:
        """The matrix F (k, r) with W = F F^T."""

    def value(self, covariance: Array) -> float:
        """tr(W C)."""
        f = self.factor(len(covariance))
        return float(np.einsum("xr,xy,yr->", f, covariance, f))

    def influence(self, scores: Array) -> Influence:
        """The smallest influence h with T^T F = scores h^T; the value is inf where there is none."""
        return least_influence(scores, self.factor(len(scores) + 1))

    def enclosed(self, scores: Enclosure) -> Enclosure | None:
        """The sum of the least variances of unbiased estimates of F^T p."""
        f = self.enclosed_factor(len(scores) + 1, scores.arithmetic)
        variances = least_variances(scores, f[:-1] - f[-1][None, :])
        return None if variances is None else variances.sum()

    def enclosed_factor(self, k: int, arithmetic: Arithmetic) -> Enclosure:
        """F, enclosed."""
        return arithmetic.of(self.factor(k))

    def kernel_rows(self, k: int) -> int:
        """The number of columns of F."""
        return int(self.factor(k).shape[1])

    def posed(self, columns: Array, weights: Weights) -> Posed:
        """min of tr(F_r^T X^-1 F_r), F_r = T^T F, as tr Y with [[Y, F_r^T], [F_r, X]] positive semidefinite."""
        t = differences(columns.shape[1])
        left, size, right = np.linalg.svd(t.T @ self.factor(columns.shape[1]), full_matrices=False)
        seen = size > 1e-12 * size.max()  # tr(W C) depends on F F^T alone
        unit, r = float(np.linalg.norm(size)), int(seen.sum())
        variances, cone = posed_above(weights, columns, (left * size)[:, seen] / unit)

        def kernel(duals: list[Array]) -> Array:
            return np.asarray(unit * right[seen].T @ matrix_of(duals[cone])[:r, r:] @ t.T)

        return Posed(variances, np.ones(r), unit**2, kernel)

    def bound(self, kernel: Enclosure, most: Enclosure, prior: Enclosure) -> Enclosure | None:
        """tr(K F_c)^2 / most with F_c = F - 1 p^T F, by Cauchy and Schwarz for any unbiased estimate [KW]."""
        f = self.enclosed_factor(len(prior), kernel.arithmetic)
        return (kernel.T * (f - (prior @ f)[None, :])).sum().square() / most


def least_influence(scores: Array, f: Array) -> Influence:
    """The smallest influence h with T^T F = scores h^T, for F (k, r); the value is inf where there is none."""
    target = differences(len(f)).T @ f
    scale = np.linalg.norm(scores, axis=1, keepdims=True)
    scale[scale == 0] = 1.0
    h = np.linalg.lstsq(scores / scale, target / scale, rcond=1e-10)[0]
    missed = np.abs(scores @ h - target).max() > 1e-8 * np.abs(target).max()
    return Influence(math.inf if missed else float((h**2).sum()), f, h.T)
