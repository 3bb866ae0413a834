"""The criteria of `programs.survey_program` as functions of the weights: values, slopes and curvature.

With J = sum_y theta_y v_y v_y^T, v_y = S_y / (S_y . p)^(1/2), and W = F F^T, the slope of tr(W J^-1) in theta_y is
-|F^T J^-1 v_y|^2. In coordinates where J is the identity and W has the diagonal d, its Hessian is Phi Phi^T with

    Phi_y,ij = z_i z_j (d_i + d_j)^(1/2),    z = v_y in these coordinates,  i <= j,

where products with i < j count twice. For -log det J the factor with d is left out. The largest variance is the least
level that no single variance exceeds; its W is diagonal and holds the multipliers of these limits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ldpopt.design.utilities.criteria import AOptimal, DOptimal, MVOptimal, differences
from ldpopt.distribution import Array
from ldpopt.errors import SolverError

Smooth = AOptimal | DOptimal | MVOptimal
"""The criteria that `Shape` knows."""


@dataclass(frozen=True, eq=False)
class Local:
    """A criterion near given weights theta.

    size : -slope . theta. slope : (n,) in the weights. products : Phi (n, k (k + 1) / 2). each, by : the single
    variances (l,) and their slopes (n, l) for the largest variance, where l = k; for other criteria l = 0.
    """

    size: float
    slope: Array
    products: Array
    each: Array
    by: Array


class Shape:
    """A criterion over columns v (n, k)."""

    def __init__(self, criterion: Smooth, v: Array, prior: Array) -> None:
        k = len(prior)
        self.v, self.prior = v, prior
        self.limits = k if isinstance(criterion, MVOptimal) else 0
        self.logarithmic = criterion.logarithmic
        self.factor = criterion.factor(k) if isinstance(criterion, AOptimal) else None
        self.left, self.right = np.triu_indices(k)
        self.twice = np.where(self.left == self.right, 1.0, 2.0)

    def at(self, theta: Array, weights: Array) -> Local:
        """At weights `theta` (n,) of the columns and `weights` (l,) of the single variances."""
        information = (self.v * theta[:, None]).T @ self.v
        values, vectors = np.linalg.eigh(information)
        if not values[0] > 0:
            raise SolverError("design for estimation: the columns leave some share unknown; pass another method")
        root = vectors / np.sqrt(values)
        if self.logarithmic:
            z = self.v @ root
            slope = -(z**2).sum(axis=1)
            return Local(float(len(values)), slope, self._products(z, None), *self._alone())
        half = root.T @ self._root(weights)
        d, turn = np.linalg.eigh(half @ half.T)
        d = np.maximum(d, 0.0)
        z = self.v @ (root @ turn)
        each, by = self._alone()
        if self.limits:
            inverse = root @ root.T
            each, by = np.diag(inverse) - self.prior**2, -((self.v @ inverse) ** 2)
        return Local(float(d.sum()), -(z**2) @ d, self._products(z, d), each, by)

    def kernel(self, information: Array, weights: Array) -> Array:
        """K (r, k) for which |K S|^2 / (S . p) is minus the slope; for `DOptimal`, for centred columns: |K u|^2."""
        if not self.logarithmic:
            return np.asarray(self._root(weights).T @ np.linalg.inv(information))
        t = differences(len(information))
        values, vectors = np.linalg.eigh(t.T @ information @ t)
        return np.asarray((vectors / np.sqrt(values)).T @ t.T)

    def _root(self, weights: Array) -> Array:
        return np.diag(np.sqrt(weights)) if self.factor is None else self.factor

    def _alone(self) -> tuple[Array, Array]:
        return np.zeros(0), np.zeros((len(self.v), 0))

    def _products(self, z: Array, d: Array | None) -> Array:
        weight = self.twice if d is None else self.twice * (d[self.left] + d[self.right])
        return np.asarray(z[:, self.left] * z[:, self.right] * np.sqrt(weight))
