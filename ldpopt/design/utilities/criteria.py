"""The criteria of optimal design: the errors of an estimate to be minimized.

Each is a function of the covariance C = J^-1 - p p^T of one report's estimate of the proportions p. It is a convex,
decreasing function of the information J, and smaller is better.

Let S_y be the column of report y, w_y = S_y.p its probability, and u_y = S_y/(S_y.p) - 1 the centred column. The
information about differences of p is sum_y w_y u_y u_y^T. Any matrix K (r, k), called a kernel, gives a lower bound on
the criterion from the most that sum_y w_y |K u_y|^2 can be (`bound`). This is the equivalence theorem [KW], in a form
that does not need an optimal K.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ldpopt.design.cones import matrix_of, triangle
from ldpopt.design.utilities.criterion import (
    Criterion,
    CriterionProgram,
    Influence,
    LinearCriterion,
    Weights,
    differences,
    information_in,
    least_influence,
    least_variances,
    log_det,
    log_det_information,
    matrix_bound,
)
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.numbers.enclosures import Arithmetic, Enclosure
from ldpopt.values.distribution import Array, finite_array

MAX_WEIGHTS = 5000  # Categories with weights: these make a matrix.


@dataclass(frozen=True, eq=False)
class AOptimal(LinearCriterion):
    """The sum of the variances of the estimated proportions, optionally weighted: tr(W C) [KW].

    C is the covariance (k, k) of one report's estimate. weights : (k,) non-negative numbers, one per category; or W
    itself, (k, k), symmetric and positive semidefinite. None weighs every variance by 1.

    >>> AOptimal().value(np.diag([0.5, 0.25]))
    0.75
    """

    weights: Any = None
    root: Array | None = field(init=False, repr=False, default=None)
    """F (k, r) with W = F F^T; None for the identity."""
    single: Array | None = field(init=False, repr=False, default=None)
    """The weights (k,) where there is one for each category; else None."""

    def __post_init__(self) -> None:
        if self.weights is None:
            return
        w = finite_array(self.weights, "weights", np.ndim(self.weights))
        if len(w) > MAX_WEIGHTS:
            raise invalid("weights", f"at most {MAX_WEIGHTS} categories", len(w))
        if w.ndim == 1:
            if w.min() < 0 or w.max() == 0:
                raise invalid("weights", "non-negative numbers, not all zero", float(w.min()))
            w = np.diag(w)
        if w.ndim != 2 or w.shape[0] != w.shape[1]:
            raise invalid("weights", "one number a category, or a square matrix", Phrase(f"shape {w.shape}"))
        if not w.any():
            raise invalid("weights", "a matrix that is not zero", Phrase("zeros only"))
        if np.abs(w - w.T).max() > 1e-12 * np.abs(w).max():
            raise invalid("weights", "a symmetric matrix", Phrase("an asymmetric one"))
        diagonal = np.diag(w)
        if np.array_equal(w, np.diag(diagonal)) and diagonal.min() >= 0:
            vars(self).update(weights=w, single=diagonal, root=np.diag(np.sqrt(diagonal))[:, diagonal > 0])
            return
        values, vectors = np.linalg.eigh((w + w.T) / 2)
        if values[0] < -1e-12 * values[-1]:
            raise invalid("weights", "a positive semidefinite matrix", Phrase(f"eigenvalue {values[0]:.3g}"))
        factor = vectors * np.sqrt(np.maximum(values, 0.0))
        vars(self).update(weights=w, root=factor[:, values > 1e-14 * values[-1]])

    def diagonal(self, k: int) -> Array | None:
        """Return the roots of the weights of the variances, (k,); None if W is not diagonal or some weight is zero."""
        if self.weights is None:
            return np.ones(k)
        return np.sqrt(self.single) if self.single is not None and self.single.min() > 0 else None

    @property
    def name(self) -> str:
        """The name of the criterion, including whether the variances are weighted."""
        return "sum of variances" if self.weights is None else "weighted sum of variances"

    def check(self, k: int) -> None:
        """Raise `InvalidInput` if the weights are not for k categories."""
        if self.weights is not None and len(self.weights) != k:
            raise invalid("weights", f"{k} categories", len(self.weights))
        if not (self.factor(k) - self.factor(k).mean(axis=0)).any():
            raise InvalidInput("weights: expected a contrast of the proportions, got only their sum, which is 1")

    def factor(self, k: int) -> Array:
        """Return a root F (k, r) of the weights: W = F F^T."""
        return np.eye(k) if self.root is None else self.root

    def enclosed_factor(self, k: int, arithmetic: Arithmetic) -> Enclosure:
        """Enclose F for weights of single categories; for other weights W is taken as F F^T for the float root F."""
        if self.single is None:
            return arithmetic.of(self.factor(k))
        return arithmetic.of(self.single).sqrt()[:, None] * np.eye(k)[:, self.single > 0]

    def __repr__(self) -> str:
        return "AOptimal()" if self.weights is None else f"AOptimal({self.weights.shape[0]} categories)"


@dataclass(frozen=True, eq=False)
class COptimal(LinearCriterion):
    """The variance of one contrast a . p, for instance the share of one sensitive category.

    contrast : (k,) weights, not all equal.

    >>> COptimal([1, 0]).value(np.array([[0.5, -0.5], [-0.5, 0.5]]))
    0.5
    """

    contrast: Any
    name: ClassVar[str] = "variance of a contrast"

    def __post_init__(self) -> None:
        a = finite_array(self.contrast, "contrast", 1)
        if len(a) < 2 or np.ptp(a) == 0:
            raise invalid("contrast", "weights that are not all equal", a)
        object.__setattr__(self, "contrast", a)

    def check(self, k: int) -> None:
        """Raise `InvalidInput` if the contrast is not of k categories."""
        if len(self.contrast) != k:
            raise invalid("contrast", f"{k} weights", len(self.contrast))

    def factor(self, k: int) -> Array:
        """Return the contrast as a column."""
        return np.asarray(self.contrast[:, None])

    def build_program(self, columns: Array, weights: Weights) -> CriterionProgram:
        """Build the min of sum f_y^2 / w_y over influences f_y / w_y with sum f_y u_y = a.

        The information may be singular. There is one cone per column, w_y + v_y >= |(2 f_y, w_y - v_y)|; K is half the
        multiplier of the contrast.
        """
        from scipy import sparse

        t, program, n = differences(columns.shape[1]), weights.program, len(columns)
        influences, variances = program.variables(n), program.variables(n)
        aim = t.T @ self.contrast
        unit = float(np.linalg.norm(aim))
        tie = program.put("zero", -aim / unit, (influences, (columns @ t).T))
        program.put(
            "second order",
            np.zeros(3 * n),
            (weights.variables, sparse.kron(sparse.diags_array(weights.ratios), [[1.0], [0.0], [1.0]])),
            (influences, sparse.kron(sparse.eye_array(n), [[0.0], [2.0], [0.0]])),
            (variances, sparse.kron(sparse.eye_array(n), [[1.0], [0.0], [-1.0]])),
        )

        def kernel(duals: list[Array]) -> Array:
            direction = t @ duals[tie]
            return np.asarray(direction[None] * (unit / 2 * np.sign(direction @ self.contrast)))

        return CriterionProgram(variances, np.ones(n), unit**2, kernel)

    def __repr__(self) -> str:
        return f"COptimal({self.contrast.tolist()})"


@dataclass(frozen=True, eq=False)
class MVOptimal(Criterion):
    """The largest variance of the estimated proportions, which determines the widest of their confidence intervals.

    contrasts : F (k, r), linear functions of the proportions whose variances count instead of those of the proportions.
        Divided by the standard errors that are wanted of them, the largest variance is the number of reports needed.

    >>> MVOptimal().value(np.diag([0.5, 0.25]))
    0.5
    >>> MVOptimal([[1.0, 0.0], [0.0, 2.0]]).value(np.diag([0.5, 0.25]))
    1.0
    """

    contrasts: Any = None
    newton: ClassVar[bool] = True
    limited: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.contrasts is not None:
            vars(self).update(contrasts=finite_array(self.contrasts, "contrasts", 2))

    @property
    def name(self) -> str:
        """The name of the criterion, including the number of contrasts."""
        return "largest variance" + ("" if self.contrasts is None else f" of {self.contrasts.shape[1]} contrasts")

    def check(self, k: int) -> None:
        """Raise `InvalidInput` if the contrasts are not of k categories, or one is of their sum alone."""
        if self.contrasts is None:
            return
        if len(self.contrasts) != k:
            raise invalid("contrasts", f"{k} rows", len(self.contrasts))
        if not (np.ptp(self.contrasts, axis=0) > 0).all():
            raise InvalidInput("contrasts: expected contrasts of the proportions, got their sum, which is 1")

    def factor(self, k: int) -> Array:
        """Return F (k, r), the identity for the proportions themselves."""
        return np.eye(k) if self.contrasts is None else np.asarray(self.contrasts)

    def value(self, covariance: Array) -> float:
        """Compute the largest diagonal entry of F^T C F."""
        f = self.factor(len(covariance))
        return float(np.einsum("xr,xy,yr->r", f, covariance, f).max())

    def influence(self, scores: Array) -> Influence:
        """Return the best estimate of the function with the largest variance."""
        influence = least_influence(scores, self.factor(len(scores) + 1))
        variances = (influence.loadings**2).sum(axis=1)
        worst = int(np.argmax(variances))
        value = influence.value if math.isinf(influence.value) else float(variances[worst])
        return Influence(value, influence.factor[:, [worst]], influence.loadings[[worst]])

    def enclosed(self, scores: Enclosure) -> Enclosure | None:
        """Enclose the largest of the least variances of the functions."""
        f = scores.arithmetic.of(self.factor(len(scores) + 1))
        variances = least_variances(scores, f[:-1] - f[-1][None, :])
        return None if variances is None else variances.max()

    def kernel_rows(self, k: int) -> int:
        """Return r, one row per function."""
        return int(self.factor(k).shape[1])

    def loadings(self, scores: Array) -> Array:
        """Compute the influence of every report on the estimate of each function."""
        return least_influence(scores, self.factor(len(scores) + 1)).loadings

    def row_values(self, kernel: Array, prior: Array) -> Array | None:
        """Compute the squares a_j^2, (r,), whose sum over `max_information` is the bound.

        Rows have the weights of their variances.
        """
        f = self.factor(len(prior))
        return np.asarray((kernel.T * (f - prior @ f)).sum(axis=0) ** 2)

    def build_program(self, columns: Array, weights: Weights) -> CriterionProgram:
        """Build the min of max diag Y with [[Y, F_r^T], [F_r, X]] positive semidefinite, F_r = T^T F."""
        f, t, program = self.factor(columns.shape[1]), differences(columns.shape[1]), weights.program
        unit, r = float(np.abs(f).max()), f.shape[1]
        variances, cone = matrix_bound(weights, columns, t.T @ f / unit)
        largest = program.variables(1)
        program.put("nonnegative", np.zeros(r), (largest, np.ones((r, 1))), (variances, -np.eye(r)))

        def kernel(duals: list[Array]) -> Array:
            dual = matrix_of(duals[cone])
            shares = np.maximum(np.diag(dual)[:r], 0.0)
            root = np.sqrt(np.where(shares > 1e-9 * shares.max(), shares, np.inf))
            rows = unit * dual[:r, r:] / root[:, None] @ t.T
            return np.asarray(rows * np.sign((rows.T * f).sum()))

        return CriterionProgram(largest, np.ones(1), unit**2, kernel)

    def bound(self, kernel: Enclosure, max_information: Enclosure, prior: Enclosure) -> Enclosure | None:
        """Bound by sum_j a_j^2 / max_information, a_j = K_j.(F_j - 1 p^T F_j), at the best weights [KW]."""
        f = kernel.arithmetic.of(self.factor(len(prior)))
        return (kernel.T * (f - (prior @ f)[None, :])).sum(axis=0).square().sum() / max_information

    def __repr__(self) -> str:
        return "MVOptimal()" if self.contrasts is None else f"MVOptimal({self.contrasts.shape[1]} contrasts)"


@dataclass(frozen=True)
class DOptimal(Criterion):
    """log det of the covariance of any k - 1 of the proportions, which is -log det J [KW].

    >>> round(DOptimal().value(np.array([[0.5, -0.5], [-0.5, 0.5]])), 6)
    -0.693147
    """

    name: ClassVar[str] = "log generalized variance"
    logarithmic: ClassVar[bool] = True
    newton: ClassVar[bool] = True

    def value(self, covariance: Array) -> float:
        """Compute log det of C without its last row and column; inf if that is not positive definite."""
        sign, log = np.linalg.slogdet(covariance[:-1, :-1])
        return float(log) if sign > 0 else math.inf

    def influence(self, scores: Array) -> Influence:
        """Return the influence H^T of R times the first k - 1 proportions, with scores^T = H R."""
        k = len(scores) + 1
        if scores.shape[1] < k - 1:
            return Influence(math.inf, np.zeros((k, k - 1)), np.zeros((k - 1, scores.shape[1])))
        basis, triangle = np.linalg.qr(scores.T)
        size = np.abs(np.diag(triangle))
        has_full_rank = size.min() > 1e-11 * size.max()
        value = -2 * float(np.log(size).sum()) if has_full_rank else math.inf
        return Influence(value, np.vstack([triangle.T, np.zeros((1, k - 1))]), basis.T)

    def enclosed(self, scores: Enclosure) -> Enclosure | None:
        """Enclose minus log det of the information."""
        log = log_det_information(scores)
        return None if log is None else -log

    def kernel_rows(self, k: int) -> int:
        """Return k - 1."""
        return k - 1

    def kernel(self, numbers: Array, arithmetic: Arithmetic) -> Enclosure:
        """Return R T^T for the first k - 1 columns R of `numbers`: the last column makes K 1 = 0."""
        root = arithmetic.of(numbers[:, :-1])
        return arithmetic.concatenate([root, -root.sum(axis=1)[:, None]], 1)

    def build_program(self, columns: Array, weights: Weights) -> CriterionProgram:
        """Build the min of -log det D with Z^T D^-1 Z at most X, for upper triangular Z with diagonal D."""
        t, program, rest = differences(columns.shape[1]), weights.program, columns.shape[1] - 1
        i, j, factor = triangle(2 * rest)
        row, column, _ = triangle(rest)
        z, logarithms, square = program.variables(len(row)), program.variables(rest), np.arange(len(row))
        factor_entries = np.zeros((len(row), 2 * rest, 2 * rest))
        factor_entries[square, row, rest + column] = 1.0
        factor_entries[square[row == column], np.arange(rest), np.arange(rest)] = 1.0
        information = np.zeros((len(i), len(columns)))
        information[i >= rest] = information_in(weights, columns @ t)
        parts = ((z, (factor_entries[:, i, j] * factor).T), (weights.variables, information))
        cone = program.put("semidefinite", np.zeros(len(i)), *parts)
        first, third = (np.kron(np.eye(rest), np.eye(3)[:, [axis]]) for axis in (0, 2))
        ones = np.tile([0.0, 1.0, 0.0], rest)
        program.put("exponential", ones, (logarithms, first), (z[row == column], third))

        def kernel(duals: list[Array]) -> Array:
            values, vectors = np.linalg.eigh(matrix_of(duals[cone])[rest:, rest:])
            return np.asarray((vectors * np.sqrt(np.maximum(values, 1e-300))).T @ t.T)

        return CriterionProgram(logarithms, -np.ones(rest), 1.0, kernel)

    def bound(self, kernel: Enclosure, max_information: Enclosure, prior: Enclosure) -> Enclosure | None:
        """Bound by log det R^T R - (k-1) log(max_information / (k-1)) [KW].

        The geometric mean of eigenvalues is at most the arithmetic one.
        """
        dimension = len(prior) - 1
        root = log_det(kernel[:, :-1])
        return None if root is None else root * 2 - (max_information / dimension).log() * dimension
