"""The program of `programs.fisher` for a sum of variances without a cap, by Newton's method on weights and prices.

    min  tr(F J^-1 F)   s.t.  sum_y theta_y S_y = 1,  theta >= 0,   J = sum_y theta_y S_y S_y^T / (S_y . p)

for a diagonal F. With J^ = F^-1 J F^-1 = U diag(j) U^T and rows v_y = F^-1 S_y / (S_y . p)^(1/2) turned by U, the slope
is -|v_y / j|^2 and the Hessian Phi Phi^T over the k (k + 1) / 2 products v_x v_x', so that a step costs little more
than one product of thin matrices, however many columns there are.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from ldpopt.design.programs.fisher import FisherSolution
from ldpopt.distribution import Array
from ldpopt.errors import SolverError

STEPS = 80
"""The most steps; about 20 are enough."""

REACH = 0.99
"""How much of the way to the nearest zero a step goes."""


def survey_program(prior: Array, columns: Array, factor: Array, accuracy: float) -> FisherSolution:
    """The best weights of `columns` (n, k), whose mixtures include a constant, to a relative `accuracy`."""
    n, k = columns.shape
    mass = columns @ prior
    v = columns / np.sqrt(mass)[:, None] / factor
    theta = np.full(n, k / columns.sum())
    left, right = np.triu_indices(k)
    rows, slack = np.zeros(k), np.zeros(0)
    target = 0.1
    for _ in range(STEPS):
        values, vectors = np.linalg.eigh((v * theta[:, None]).T @ v)
        if not values[0] > 0:
            raise SolverError("design for estimation: the columns leave some share unknown; pass another method")
        value = float((1 / values).sum())
        turned = v @ vectors
        slope = -(turned**2) @ (1 / values**2)
        if len(slack) == 0:
            slack, rows = 0.1 * value / n / theta, value * prior
        bend = 1 / np.outer(values, values**2)
        bend = 2 * (bend + bend.T)
        bend[np.diag_indices(k)] /= 2
        products = turned[:, left] * turned[:, right] * np.sqrt(bend[left, right])
        mu = target * value / n
        short = 1 - columns.T @ theta
        ratio = theta / slack
        right_side = mu / theta - slope - columns @ rows
        weighed = products * np.sqrt(ratio)[:, None]
        normal = weighed.T @ weighed
        normal[np.diag_indices(len(left))] += 1.0
        try:
            lower = scipy.linalg.cho_factor(normal, lower=True, overwrite_a=True)
            scaled = np.column_stack([columns, right_side]) * ratio[:, None]
            solved = scaled - (products * ratio[:, None]) @ scipy.linalg.cho_solve(lower, products.T @ scaled)
            change = np.linalg.solve(columns.T @ solved[:, :k], columns.T @ solved[:, k] - short)
        except (np.linalg.LinAlgError, ValueError) as error:
            raise SolverError("design for estimation: Newton's method failed; pass another method") from error
        d_theta = solved[:, k] - solved[:, :k] @ change
        d_slack = (mu - slack * d_theta) / theta - slack
        ahead = min(1.0, REACH / max(1e-300, float((-d_theta / theta).max())))
        priced = min(1.0, REACH / max(1e-300, float((-d_slack / slack).max())))
        theta, rows, slack = theta + ahead * d_theta, rows + priced * change, slack + priced * d_slack
        gap = float(theta @ slack) / value
        if min(ahead, priced) > 0.9 and gap <= 1.5 * accuracy and np.abs(short).max() < 1e-9:
            break
        faster = min(ahead, priced)
        target = max(accuracy, (0.1 if faster > 0.9 else 0.3 if faster > 0.5 else 0.8) * gap)
    information = (columns * (theta / mass)[:, None]).T @ columns
    kernel = factor[:, None] * np.linalg.inv(information)
    # The same prices for the kernel centred at p.
    even = kernel.sum(axis=1)
    rows = rows - 2 * kernel.T @ even + even @ even * prior
    return FisherSolution(theta, rows, np.zeros((k, k)), kernel, np.ones(1))
