"""What an estimate should be good at: the criteria of optimal design, as objects.

Each is a convex, decreasing function of the information, and a function of the covariance C = J^-1 - p p^T of one
report's estimate; smaller is better. With the centred columns u = S/(S.p) - 1 and the probabilities w of the reports,
the information about differences of p is sum_y w_y u_y u_y^T, and a matrix K (r, k) turns the most that
sum_y w_y |K u_y|^2 can be into a lower bound on the criterion (`bound`): the equivalence theorem [KW], in a form that
needs no optimality of K.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ldpopt.distribution import Array, finite_array
from ldpopt.errors import InvalidInput, Phrase, invalid


@dataclass(frozen=True, eq=False)
class Influence:
    """The estimate that a criterion is about: its `value`, F (k, r) with F^T C F of trace value or identity, and the
    centred influence h (r, m) of every report, times the root of the report's probability.
    """

    value: float
    factor: Array
    loadings: Array


@dataclass(frozen=True, eq=False)
class Posed:
    """A criterion in cvxpy: an expression to minimise and its constraints.

    factor : from the slope of the expression to that of the criterion. kernel : K (r, k) from the dual values,
    once solved, for which |K column|^2 is the slope of the criterion.
    """

    expression: Any
    constraints: list[Any]
    factor: float
    kernel: Callable[[], Array]


@runtime_checkable
class Criterion(Protocol):
    """A number to make small."""

    @property
    def name(self) -> str:
        """What reports call it."""
        ...

    def check(self, k: int) -> None:
        """`InvalidInput` if the criterion does not fit k categories."""
        ...

    def value(self, covariance: Array) -> float:
        """The criterion of the covariance (k, k) of one report's estimate."""
        ...

    def influence(self, scores: Array) -> Influence:
        """The best unbiased estimate for `scores` (k-1, m), the columns sqrt(w_y) T^T u_y."""
        ...

    def bound(self, kernel: Array, most: float, prior: Array) -> float:
        """A lower bound on the criterion of every channel for which sum_y w_y |K u_y|^2 is at most `most`."""
        ...

    def pose(self, columns: Array, mass: Any) -> Posed:
        """The criterion of the cvxpy variable w = `mass` (n,) with `columns` (n, k) in the place of u."""
        ...


class _Linear(ABC):
    """tr(W C) with W = F F^T: what A- and c-optimality share."""

    @abstractmethod
    def _factor(self, k: int) -> Array:
        """F (k, r)."""

    def value(self, covariance: Array) -> float:
        """tr(W C)."""
        f = self._factor(len(covariance))
        return float(np.einsum("xr,xy,yr->", f, covariance, f))

    def influence(self, scores: Array) -> Influence:
        """The smallest h with T^T F = scores h^T; value inf where there is none."""
        f = self._factor(len(scores) + 1)
        target = differences(len(f)).T @ f
        scale = np.linalg.norm(scores, axis=1, keepdims=True)
        scale[scale == 0] = 1.0
        h = np.linalg.lstsq(scores / scale, target / scale, rcond=1e-10)[0]
        missed = np.abs(scores @ h - target).max() > 1e-8 * np.abs(target).max()
        return Influence(math.inf if missed else float((h**2).sum()), f, h.T)

    def bound(self, kernel: Array, most: float, prior: Array) -> float:
        """tr(K F_c)^2 / most, with F_c = F - 1 p^T F: Cauchy and Schwarz, for any unbiased estimate [KW]."""
        f = self._factor(len(prior))
        return float(np.sum(kernel.T * (f - prior @ f))) ** 2 / most

    def pose(self, columns: Array, mass: Any) -> Posed:
        """min of tr(F_r^T X^-1 F_r), F_r = T^T F, as tr Y with [[Y, F_r^T], [F_r, X]] positive semidefinite."""
        import cvxpy as cp

        information, tie, t = _information(columns, mass)
        left, size, right = np.linalg.svd(t.T @ self._factor(columns.shape[1]), full_matrices=False)
        seen = size > 1e-12 * size.max()  # tr(W C) depends on F F^T alone
        unit = float(np.linalg.norm(size))
        target = (left * size)[:, seen] / unit
        r = target.shape[1]
        y = cp.Variable((r, r), symmetric=True)
        cone = cp.bmat([[y, target.T], [target, information]]) >> 0

        def kernel() -> Array:
            return np.asarray(unit * right[seen].T @ np.asarray(cone.dual_value)[:r, r:] @ t.T)

        return Posed(cp.trace(y), [tie, cone], unit**2, kernel)


@dataclass(frozen=True, eq=False)
class AOptimal(_Linear):
    """The sum of the variances of the estimated proportions, or tr(W C) for weights of one's own [KW].

    weights : (k,) non-negative, one a category; or W, (k, k) symmetric and positive semidefinite; all 1 by default.

    >>> AOptimal().value(np.diag([0.5, 0.25]))
    0.75
    """

    weights: Any = None
    root: Array | None = field(init=False, repr=False, default=None)
    """F (k, r) with W = F F^T; None for the identity."""

    def __post_init__(self) -> None:
        if self.weights is None:
            return
        w = finite_array(self.weights, "weights", np.ndim(self.weights))
        if w.ndim == 1:
            if w.min() < 0 or w.max() == 0:
                raise invalid("weights", "non-negative numbers, not all zero", float(w.min()))
            w = np.diag(w)
        if w.ndim != 2 or w.shape[0] != w.shape[1]:
            raise invalid("weights", "one number a category, or a square matrix", Phrase(f"shape {w.shape}"))
        if np.abs(w - w.T).max() > 1e-12 * np.abs(w).max() or not w.any():
            raise invalid("weights", "a symmetric matrix, not zero", Phrase("another"))
        values, vectors = np.linalg.eigh((w + w.T) / 2)
        if values[0] < -1e-12 * values[-1]:
            raise invalid("weights", "a positive semidefinite matrix", Phrase(f"eigenvalue {values[0]:.3g}"))
        factor = vectors * np.sqrt(np.maximum(values, 0.0))
        object.__setattr__(self, "weights", w)
        object.__setattr__(self, "root", factor[:, values > 1e-14 * values[-1]])

    @property
    def name(self) -> str:
        """What reports call it."""
        return "sum of variances" if self.weights is None else "weighted sum of variances"

    def check(self, k: int) -> None:
        """`InvalidInput` if the weights are not for k categories."""
        if self.weights is not None and len(self.weights) != k:
            raise invalid("weights", f"{k} categories", len(self.weights))
        if not (self._factor(k) - self._factor(k).mean(axis=0)).any():
            raise InvalidInput("weights: expected a contrast of the proportions, got only their sum, which is 1")

    def _factor(self, k: int) -> Array:
        return np.eye(k) if self.root is None else self.root

    def __repr__(self) -> str:
        return "AOptimal()" if self.weights is None else f"AOptimal({self.weights.shape[0]} categories)"


@dataclass(frozen=True, eq=False)
class COptimal(_Linear):
    """The variance of one contrast a . p, for instance the share of one sensitive category.

    contrast : (k,) weights, not all equal.

    >>> COptimal([1, 0]).value(np.array([[0.5, -0.5], [-0.5, 0.5]]))
    0.5
    """

    contrast: Any

    def __post_init__(self) -> None:
        a = finite_array(self.contrast, "contrast", 1)
        if len(a) < 2 or np.ptp(a) == 0:
            raise invalid("contrast", "weights that are not all equal", a)
        object.__setattr__(self, "contrast", a)

    @property
    def name(self) -> str:
        """What reports call it."""
        return "variance of a contrast"

    def check(self, k: int) -> None:
        """`InvalidInput` if the contrast is not of k categories."""
        if len(self.contrast) != k:
            raise invalid("contrast", f"{k} weights", len(self.contrast))

    def _factor(self, k: int) -> Array:
        return np.asarray(self.contrast[:, None])

    def __repr__(self) -> str:
        return f"COptimal({self.contrast.tolist()})"


@dataclass(frozen=True)
class MVOptimal:
    """The largest variance of the estimated proportions: what the widest of equal-level intervals is made of.

    >>> MVOptimal().value(np.diag([0.5, 0.25]))
    0.5
    """

    @property
    def name(self) -> str:
        """What reports call it."""
        return "largest variance"

    def check(self, k: int) -> None:
        """Every k will do."""

    def value(self, covariance: Array) -> float:
        """The largest diagonal entry of C."""
        return float(np.diag(covariance).max())

    def influence(self, scores: Array) -> Influence:
        """That of the proportion with the largest variance."""
        k = len(scores) + 1
        whole = AOptimal().influence(scores)
        variances = (whole.loadings**2).sum(axis=1)
        worst = int(np.argmax(variances))
        value = whole.value if math.isinf(whole.value) else float(variances[worst])
        return Influence(value, np.eye(k)[:, [worst]], whole.loadings[[worst]])

    def bound(self, kernel: Array, most: float, prior: Array) -> float:
        """sum_x (a_x)_+^2 / most, a_x = K_x.(e_x - p_x 1): the bound of a weighted sum, at the best weights [KW]."""
        own = np.diag(kernel) - prior * kernel.sum(axis=1)
        return float((np.maximum(own, 0.0) ** 2).sum()) / most

    def pose(self, columns: Array, mass: Any) -> Posed:
        """min of max diag Y with [[Y, T], [T^T, X]] positive semidefinite, so that Y is above T X^-1 T^T."""
        import cvxpy as cp

        information, tie, t = _information(columns, mass)
        k = columns.shape[1]
        y = cp.Variable((k, k), symmetric=True)
        cone = cp.bmat([[y, t], [t.T, information]]) >> 0

        def kernel() -> Array:
            dual = np.asarray(cone.dual_value)
            weights = np.maximum(np.diag(dual)[:k], 0.0)
            root = np.sqrt(np.where(weights > 1e-9 * weights.max(), weights, np.inf))
            made = dual[:k, k:] / root[:, None] @ t.T
            return np.asarray(made * np.sign(np.trace(made)))

        return Posed(cp.max(cp.diag(y)), [tie, cone], 1.0, kernel)


@dataclass(frozen=True)
class DOptimal:
    """log det of the covariance of any k - 1 of the proportions, which is -log det J [KW].

    >>> round(DOptimal().value(np.array([[0.5, -0.5], [-0.5, 0.5]])), 6)
    -0.693147
    """

    @property
    def name(self) -> str:
        """What reports call it."""
        return "log generalised variance"

    def check(self, k: int) -> None:
        """Every k will do."""

    def value(self, covariance: Array) -> float:
        """log det of C without its last row and column; inf where there is no covariance."""
        sign, log = np.linalg.slogdet(covariance[:-1, :-1])
        return float(log) if sign > 0 else math.inf

    def influence(self, scores: Array) -> Influence:
        """With scores^T = H R, the influence of R times the first k - 1 proportions is H^T."""
        k = len(scores) + 1
        if scores.shape[1] < k - 1:
            return Influence(math.inf, np.zeros((k, k - 1)), np.zeros((k - 1, scores.shape[1])))
        basis, triangle = np.linalg.qr(scores.T)
        size = np.abs(np.diag(triangle))
        whole = size.min() > 1e-11 * size.max()
        value = -2 * float(np.log(size).sum()) if whole else math.inf
        return Influence(value, np.vstack([triangle.T, np.zeros((1, k - 1))]), basis.T)

    def bound(self, kernel: Array, most: float, prior: Array) -> float:
        """log det R^T R - (k-1) log(most / (k-1)): means of eigenvalues, arithmetic and geometric [KW]."""
        root = kernel[:, :-1]
        sign, log = np.linalg.slogdet(root)
        off = np.abs(kernel[:, -1] + root.sum(axis=1)).max()
        if sign == 0 or off > 1e-9 * np.abs(root).max():
            return -math.inf
        free = len(prior) - 1
        return float(2 * log - free * math.log(most / free))

    def pose(self, columns: Array, mass: Any) -> Posed:
        """min of -log det X."""
        import cvxpy as cp

        information, tie, t = _information(columns, mass)

        def kernel() -> Array:
            dual = np.asarray(tie.dual_value)
            dual = (dual + dual.T) / 2 * np.sign(np.trace(dual))
            values, vectors = np.linalg.eigh(dual)
            return np.asarray((vectors * np.sqrt(np.maximum(values, 1e-300))).T @ t.T)

        return Posed(-cp.log_det(information), [tie], 1.0, kernel)


def _information(columns: Array, mass: Any) -> tuple[Any, Any, Array]:
    """A cvxpy variable X, its tie to sum_y w_y (T^T u_y)(T^T u_y)^T, and T."""
    import cvxpy as cp

    t = differences(columns.shape[1])
    reduced = columns @ t
    information = cp.Variable((t.shape[1], t.shape[1]), symmetric=True)
    return information, information == reduced.T @ cp.diag(mass) @ reduced, t


def differences(k: int) -> Array:
    """T (k, k-1): the direction of each of the first k-1 proportions, taken from the last."""
    return np.vstack([np.eye(k - 1), -np.ones((1, k - 1))])
