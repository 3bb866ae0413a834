"""Improve the weights of columns for a sum of variances, or for the largest one, by multiplicative steps.

Each step solves a small program.

Let K = F^T J^-1 be the best influence at the weights w of the columns Y = S / (S . p), as in `program_newton`. Other
weights w' may use it with the estimate (w_y / w'_y) K Y_y for report y. So

    tr(F^T J'^-1 F)  <=  sum_y w_y^2 |K Y_y|^2 / w'_y,    with equality at w' = w.

With prices nu of the caps of pairs, the bound is least, among weights whose rows sum to one, at

    w'_y = w_y |K Y_y| / price_y^(1/2),    price_y = lambda . Y_y + sum_{x<x'} nu[x,x'] (Y_y[x] - Y_y[x'])_+,

where lambda maximizes 2 sum_y w_y |K Y_y| price_y^(1/2) - sum lambda, by Newton's method in k numbers. A step never
raises the variances, and has no length. Momentum makes them fewer. The price of a cap is multiplied by its use. The
largest variance is the largest of all their weighted means; the weight of each is multiplied by the variance. A step
takes a millisecond, and one of `program_newton` ten; but only the latter come near the optimum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ldpopt.errors import SolverError
from ldpopt.values.distribution import Array

# This fraction of the mean of |K Y|^2 is added to all. It changes no optimum, as p.Y = 1, and weights change less.
PROXIMAL_FRACTION = 0.2
MAX_MOMENTUM, MAX_STEP_RATIO = 0.9, 3.0  # The repeated fraction of the last step, and its largest factor
NEGLIGIBLE_WEIGHT = 1e-9  # Relative to the largest: smaller weights become zero.
MAX_PRICE_STEPS, PRICE_RTOL = 60, 1e-5  # Of Newton's method for the prices, and the relative gain of its last step
MAX_BALANCING_STEPS, ROW_TOLERANCE = 100, 1e-3  # Of Newton's method for the rows, and their error at its end
FIRST_CAP_PRICES = 0.3  # Of the criterion, for all caps together
# The price of a variance is multiplied by this power of its ratio to their mean, which is clipped.
LIMIT_POWER, MAX_LIMIT_RATIO = 0.5, 2.0
MAX_RISE = 1.2  # Momentum begins anew where the criterion rises by a larger factor.
CAP_POWER = 1.0  # The price of a cap is multiplied by this power of its use.
LEAST_CAP_PRICES = 1e-6  # Of the criterion, for all caps together: a price may rise again
LEAST_LIMIT_PRICE = 1e-4  # Of a single variance, relative to the largest


@dataclass(frozen=True, eq=False)
class Improved:
    """Weights of columns, and the multipliers of the last step.

    - `weights` : w (n,).
    - `kernel` : K (d, k).
    - `rows`, `pairs` : lambda (k,), nu (k, k).
    - `limits` : (d,) the prices of the single variances, which sum to one if the largest is minimized; else ones.
    - `variances` : (d,) those of the columns of F before the last step.
    - `value` : their sum with these prices as weights, plus the price of a use of the caps that exceeds them.
    """

    weights: Array
    kernel: Array
    rows: Array
    pairs: Array
    limits: Array
    variances: Array
    value: float


def balance(columns: Array, weights: Array) -> Array:
    """Multiply weights (n,) of `columns` (n, k) by factors exp(mu . Y), so that the rows sum to one."""
    for _ in range(MAX_BALANCING_STEPS):
        error = columns.T @ weights - 1
        if np.abs(error).max() < ROW_TOLERANCE:
            return weights
        move = columns @ np.linalg.solve((columns * weights[:, None]).T @ columns, error)
        weights = weights * np.exp(-min(1.0, 2 / float(np.abs(move).max())) * move)
    raise SolverError("design for estimation: the rows of the columns cannot be made one; pass another method")


def improve(
    columns: Array, prior: Array, factor: Array, limited: bool, eta: float | None, weights: Array, steps: int,
    start: Improved | None,
) -> Improved:  # fmt: skip
    """Compute better `weights` (n,) of `columns` (n, k), each of two values with Y.p = 1, by a number of steps.

    - `factor` : F (k, d), with p.F = 0.
    - `limited` : True to minimize the largest of the variances.
    - `weights` : (n,) with rows that sum to one.
    - `start` : a solution for other columns, whose prices are the first ones.
    """
    k, pairs, previous_weights = len(prior), np.zeros((len(prior), len(prior))), weights
    rows = prior if start is None else start.rows
    x, other = np.triu_indices(k, 1)
    cap_part = np.zeros(len(columns))
    rises = columns - columns.min(axis=1, keepdims=True)
    is_low = (rises == 0).astype(np.float64)  # (Y[x] - Y[x'])_+ is the rise at x where x' is low
    cap_prices = np.zeros(len(x)) if start is None else start.pairs[x, other]
    limits = np.full(factor.shape[1], 1 / factor.shape[1] if limited else 1.0) if start is None else start.limits
    momentum_steps, previous_size = 0, np.inf
    for number in range(steps):
        if momentum_steps:
            is_positive = (weights > 0) & (previous_weights > 0)
            ratios = np.divide(weights, previous_weights, out=np.ones(len(weights)), where=is_positive)
            momentum = min(MAX_MOMENTUM, momentum_steps / (momentum_steps + 3))
            previous_weights = weights
            weights = weights * np.clip(ratios, 1 / MAX_STEP_RATIO, MAX_STEP_RATIO) ** momentum
        kernel = factor.T @ np.linalg.inv((columns * weights[:, None]).T @ columns)
        products = (columns @ kernel.T) ** 2
        variances = weights @ products
        size = float(variances.max() if limited else variances.sum())
        momentum_steps, previous_size = (momentum_steps + 1 if size < MAX_RISE * previous_size else 0), size
        if limited:
            limits = (
                limits * np.clip(variances / (limits @ variances), 1 / MAX_LIMIT_RATIO, MAX_LIMIT_RATIO) ** LIMIT_POWER
            )
            limits = np.maximum(limits, LEAST_LIMIT_PRICE * limits.max())
            limits = limits / limits.sum()
        squares = products @ limits
        value = float(weights @ squares)
        margin = PROXIMAL_FRACTION * value
        if not 0 < value < np.inf:
            raise SolverError("design for estimation: the weights of the columns diverge; pass another method")
        roots = weights * np.sqrt(squares + margin)
        is_used = roots > NEGLIGIBLE_WEIGHT * roots.max()
        if eta is not None:
            unit = value / (len(x) * eta)
            use = (rises.T @ (weights[:, None] * is_low))[x, other] / eta
            value += float(cap_prices @ (use - 1)) * eta
            if not cap_prices.any():
                cap_prices = np.full(len(x), FIRST_CAP_PRICES * unit)
            cap_prices = np.maximum(cap_prices * use**CAP_POWER, LEAST_CAP_PRICES * unit)
            pairs[x, other] = cap_prices
            cap_part = ((rises @ pairs) * is_low).sum(axis=1)
        if number == 0 and start is None:
            rows = value * prior
        used_columns, used_prices, used_roots = columns[is_used], cap_part[is_used], roots[is_used]
        rows, prices = _row_prices(used_columns, used_prices, used_roots, prior, rows + margin * prior)
        weights = np.zeros(len(roots))
        weights[is_used] = used_roots / np.sqrt(prices)
        rows = rows - margin * prior
    return Improved(weights, np.sqrt(limits)[:, None] * kernel, rows, pairs, limits, variances, value)


def _row_prices(columns: Array, fixed_prices: Array, roots: Array, prior: Array, rows: Array) -> tuple[Array, Array]:
    """Maximize 2 sum_y roots_y price_y^(1/2) - sum lambda, where price_y = lambda . Y_y + fixed_prices_y.

    Returns lambda, searched from `rows` if they are valid, and the prices.
    """
    if not (columns @ rows + fixed_prices).min() > 0:
        rows = float(roots.sum()) ** 2 * prior
    prices = columns @ rows + fixed_prices
    height = float(2 * roots @ np.sqrt(prices) - rows.sum())
    for _ in range(MAX_PRICE_STEPS):
        weights = roots / np.sqrt(prices)
        slope = columns.T @ weights - 1
        half = columns * np.sqrt(weights / (2 * prices))[:, None]
        curvature = half.T @ half
        curvature[np.diag_indices(len(slope))] += 1e-14 * np.trace(curvature)
        step = np.linalg.solve(curvature, slope)
        if float(slope @ step) <= PRICE_RTOL * abs(height):
            return rows, prices
        change = columns @ step
        length = min(1.0, 0.9 / max(1e-300, float((-change / prices).max())))
        while True:
            new_prices = prices + length * change
            new_height = float(2 * roots @ np.sqrt(new_prices) - (rows + length * step).sum())
            if new_height >= height - 1e-13 * abs(height):
                break
            length /= 2
            if length < 1e-6:
                raise SolverError("design for estimation: prices of the rows were not found; pass another method")
        rows, prices, height = rows + length * step, new_prices, new_height
    raise SolverError("design for estimation: prices of the rows were not found; pass another method")
