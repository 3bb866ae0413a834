"""The best weights of given columns for a sum of variances, by Newton's method, from where it stood before.

    min  tr(F J^-1 F)   s.t.  sum_y theta_y S_y = 1,  theta >= 0,   J = sum_y theta_y S_y S_y^T / (S_y . p)

With F^-1 J F^-1 = U diag(j) U^T and the rows v_y = F^-1 S_y / (S_y . p)^(1/2) turned by U, the slope is -|v_y / j|^2,
and the Hessian is Phi^T Phi over the k (k + 1) / 2 products v_x v_x'. A step is little more than one product of thin
matrices, however many columns there are. Columns may join or leave between two runs, which then take few steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ldpopt.design.programs.fisher import FisherSolution
from ldpopt.distribution import Array
from ldpopt.errors import SolverError

STEPS = 80
"""The most steps; about 20 are enough."""

REACH = 0.99
"""How much of the way to the nearest zero a step goes."""


@dataclass(frozen=True, eq=False)
class WeighedColumns:
    """Weights theta (n,) of `columns` (n, k), what each lacks to pay (n,), both positive, and the rows' prices (k,)."""

    columns: Array
    theta: Array
    slack: Array
    rows: Array

    def joined(self, kept: Array, new: Array, lacking: Array) -> WeighedColumns:
        """What to go on from: the columns `kept`, and `new` ones (m, k) that lack so much (m,), or pay, to pay."""
        centre = float(self.theta @ self.slack) / len(self.theta)
        slack = np.maximum(lacking, np.abs(lacking).max(initial=0.0))
        return WeighedColumns(
            np.vstack([self.columns[kept], new]),
            np.concatenate([self.theta[kept], centre / slack]),
            np.concatenate([self.slack[kept], slack]),
            self.rows,
        )

    def solution(self, prior: Array, factor: Array) -> FisherSolution:
        """The same with the kernel F J^-1, at prices for it centred at p."""
        k = len(prior)
        information = (self.columns * (self.theta / (self.columns @ prior))[:, None]).T @ self.columns
        kernel = factor[:, None] * np.linalg.inv(information)
        even = kernel.sum(axis=1)
        rows = self.rows - 2 * kernel.T @ even + even @ even * prior
        return FisherSolution(self.theta, rows, np.zeros((k, k)), kernel, np.ones(1))


def begun(prior: Array, columns: Array, factor: Array) -> WeighedColumns:
    """Where to begin: equal weights."""
    n, k = columns.shape
    theta = np.full(n, k / columns.sum())
    thin = columns / np.sqrt(columns @ prior)[:, None] / factor
    value = float(np.trace(np.linalg.inv((thin.T * theta) @ thin)))
    return WeighedColumns(columns, theta, 0.1 * value / n / theta, value * prior)


def weigh(prior: Array, factor: Array, start: WeighedColumns, accuracy: float) -> WeighedColumns:
    """The best weights of the columns of `start`, whose mixtures include a constant, to a relative `accuracy`."""
    columns, theta, slack, rows = start.columns, start.theta, start.slack, start.rows
    n, k = columns.shape
    thin = np.ascontiguousarray((columns / np.sqrt(columns @ prior)[:, None] / factor).T)
    products, target, least = np.empty((k * (k + 1) // 2, n)), 0.1, 0.0
    for step in range(STEPS):
        values, vectors = np.linalg.eigh((thin * theta) @ thin.T)
        if not values[0] > 0:
            raise SolverError("design for estimation: the columns leave some share unknown; pass another method")
        turned = vectors.T @ thin
        slope = -(1 / values**2) @ turned**2
        value = float(-slope @ theta)
        gap = float(theta @ slack) / value
        lacking = slope + columns @ rows
        if step == 0:
            target = min(target, gap)
        else:
            kept = float(np.abs(1 - columns.T @ theta).max()) < 1e-9
            if kept and gap <= 1.5 * accuracy and float(theta @ np.abs(lacking - slack)) <= accuracy * value:
                break
            target = max(accuracy, (0.1 if least > 0.9 else 0.3 if least > 0.5 else 0.8) * gap)
        centre = target * value / n
        ratio = np.sqrt(theta / slack)
        _multiply(turned * np.sqrt(ratio), 1 / np.outer(values, values**2), products)
        normal = products @ products.T
        normal[np.diag_indices(len(normal))] += 1.0
        try:
            lower = scipy.linalg.cho_factor(normal, lower=True, overwrite_a=True)
            scaled = np.column_stack([columns, centre / theta - lacking]) * ratio[:, None]
            solved = (scaled - products.T @ scipy.linalg.cho_solve(lower, products @ scaled)) * ratio[:, None]
            short = 1 - columns.T @ theta
            change = np.linalg.solve(columns.T @ solved[:, :-1], columns.T @ solved[:, -1] - short)
        except (np.linalg.LinAlgError, ValueError) as error:
            raise SolverError("design for estimation: Newton's method failed; pass another method") from error
        d_theta = solved[:, -1] - solved[:, :-1] @ change
        d_slack = (centre - slack * d_theta) / theta - slack
        ahead, priced = _reach(theta, d_theta), _reach(slack, d_slack)
        theta, rows, slack = theta + ahead * d_theta, rows + priced * change, slack + priced * d_slack
        least = min(ahead, priced)
    return WeighedColumns(columns, theta, slack, rows)


def _multiply(turned: Array, bend: Array, out: Array) -> None:
    """All products of two rows of `turned` (k, n), weighed by the roots of `bend` + `bend`^T, into `out`."""
    at, k = 0, len(turned)
    for x in range(k):
        weight = bend[x, x:] + bend[x:, x]
        weight[1:] *= 2
        np.multiply(np.sqrt(weight)[:, None] * turned[x], turned[x:], out=out[at : at + k - x])
        at += k - x


def _reach(now: Array, step: Array) -> float:
    """How much of a step keeps all these numbers positive."""
    return min(1.0, REACH / max(1e-300, float((-step / now).max())))
