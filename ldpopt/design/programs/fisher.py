"""The convex program of a design for estimation, over the probabilities w of given report columns.

    min   criterion(sum_y w_y u_y u_y^T),   u_y = S_y / (S_y . p) - 1
    s.t.  sum w = 1                                                (mu_0)
          sum_y w_y u_y = 0                                        (mu)
          sum_y w_y (S_y[x] - S_y[x'])_+ / (S_y . p) <= eta        (nu >= 0, one per pair x < x')
          w >= 0

The first two say that the rows of Q = (w_y S_y / (S_y . p))_y sum to one. Where eta leaves little weight to columns
other than the constant one, the weights are posed in units of what it leaves, and the constant column takes the rest;
so the program has the same form at every eta. For several distributions at once, the criterion is the largest of
theirs, and w belongs to the first of them. The dual values price further columns (`columns.prices`), with
lambda = mu_0 p + mu - p (1 . mu).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ldpopt.design.solve import INTERIOR, SIMPLEX, solve
from ldpopt.design.utilities.criterion import Criterion, differences, scores
from ldpopt.distribution import Array


@dataclass(frozen=True, eq=False)
class FisherSolution:
    """Weights `theta` (n,) of the columns, Q[:, y] = theta_y S_y, and dual values.

    rows, pairs, kernel : lambda (k,), nu (k, k) and K (r, k), for a single distribution; zero otherwise. Their scale
    (t^2 for the first two, t for the third, for some t) is the program's own.
    shares : the weight of each distribution in the worst case; they sum to 1.
    """

    theta: Array
    rows: Array
    pairs: Array
    kernel: Array
    shares: Array


def fisher_program(
    criterion: Criterion, priors: Sequence[Array], columns: Array, epsilon: float, eta: float | None
) -> FisherSolution:
    """The best weights of `columns` (n, k), entries within a factor exp(epsilon), for the worst of `priors`."""
    import cvxpy as cp

    gain = math.expm1(min(epsilon, math.log(2)))  # brings the columns u to the order of 1
    k = columns.shape[1]
    w = cp.Variable(len(columns), nonneg=True)
    silent = np.ptp(columns, axis=1) == 0
    unit = 1.0 if eta is None or not silent.any() else min(1.0, eta / gain)
    prior, mass = priors[0], columns @ priors[0]
    kept = np.arange(k) != int(np.argmax(prior))  # p . u = 0: one row follows from the others
    units = np.where(silent, 1.0, unit)  # of the weights w
    total, balance = units @ w == 1, ((columns / mass[:, None] - 1) / gain).T[kept] @ w == 0
    constraints = [total, balance]
    x, other = np.triu_indices(k, 1)
    if eta is not None:
        above = np.maximum(columns[:, x] - columns[:, other], 0.0) / (gain * mass[:, None])
        cap = above.T @ w <= eta / gain / unit
        constraints.append(cap)
    posed = []
    for p in priors:
        at = columns @ p
        # At another distribution, the same weights theta mean w times the ratio of the masses.
        posed.append(criterion.posed((columns / at[:, None] - 1) / gain, cp.multiply(at / mass, w)))
        constraints += posed[-1].constraints
    if len(priors) == 1:
        objective, ties = posed[0].expression, []
    else:
        objective = cp.Variable()
        ties = [one.expression <= objective for one in posed]
    solve(cp.Problem(cp.Minimize(objective), [*constraints, *ties]), "design for estimation", INTERIOR)

    rows, pairs, kernel, shares = np.zeros(k), np.zeros((k, k)), np.zeros((1, k)), np.ones(1)
    if ties:
        shares = np.maximum([float(np.squeeze(tie.dual_value)) for tie in ties], 0.0)
        shares = shares / shares.sum()
    else:
        # The program's columns are u / gain; its slopes are those of the criterion, divided by `factor`.
        factor, kernel = posed[0].factor, posed[0].kernel() / gain
        slopes = np.zeros(k)
        slopes[kept] = np.asarray(balance.dual_value) * factor / gain
        rows = float(total.dual_value) * unit * factor * prior + slopes - prior * slopes.sum()
        if eta is not None:
            pairs[x, other] = np.maximum(cap.dual_value, 0.0) * factor / gain
    return FisherSolution(np.maximum(np.asarray(w.value), 0.0) * units / mass, rows, pairs, kernel, shares)


def kernel_at(criterion: Criterion, matrix: Array, prior: Array) -> Array:
    """K (r, k) for which K u_y is the best influence of report y, where u_y = q_y / (q_y . p) - 1."""
    reduced = scores(matrix, prior)
    scale = np.linalg.norm(reduced, axis=1)
    scale[scale == 0] = 1.0
    found = np.linalg.lstsq((reduced / scale[:, None]).T, criterion.loadings(reduced).T, rcond=1e-10)[0]
    return np.asarray((found / scale[:, None]).T @ differences(len(prior)).T)


def least_multipliers(
    kernel: Array, prior: Array, values: Array, eta: float | None, worth: Array | None
) -> tuple[Array, Array, Array]:
    """Multipliers lambda (k,) and nu (k, k) with least sum lambda + eta sum nu for which no column gains; the kernel.

    That is, |K S|^2 / (S.p) <= lambda.S + sum_{x<x'} nu[x,x'] (S_x - S_x')_+ for every column S of `values` (n, k),
    with K centred at p. Where the rows of the kernel may have weights (`worth` (r,) is what each adds to the bound),
    the best weights are found, too, with an unchanged total worth, and the kernel that is returned has them.
    """
    import cvxpy as cp

    k = len(prior)
    unit = values / (values @ prior)[:, None]
    each = ((unit - 1) @ (kernel - np.outer(kernel.sum(axis=1), prior)).T) ** 2
    rows, pairs, weights = cp.Variable(k), np.zeros((k, k)), np.ones(len(kernel))
    scale = float(each.sum(axis=1).max()) or 1.0
    earned, ties = each.sum(axis=1) / scale, []
    if worth is not None and worth.max() > 0:
        share = cp.Variable(len(kernel), nonneg=True)
        earned, ties = each / scale @ share, [worth / worth.max() @ share == 1]
    paid, cost = unit @ rows, cp.sum(rows)
    if eta is not None:
        x, other = np.triu_indices(k, 1)
        cap = cp.Variable(len(x), nonneg=True)
        paid = paid + np.maximum(unit[:, x] - unit[:, other], 0.0) @ cap
        cost = cost + eta * cp.sum(cap)
    solve(cp.Problem(cp.Minimize(cost), [paid >= earned, *ties]), "multipliers of the equivalence bound", SIMPLEX)
    if eta is not None:
        pairs[x, other] = np.maximum(np.asarray(cap.value), 0.0) * scale
    if ties:
        weights = np.maximum(np.asarray(share.value), 0.0)
    return np.asarray(rows.value) * scale, pairs, kernel * np.sqrt(weights)[:, None]
