"""The program of `programs.fisher` by Newton's method on weights and prices together.

    min  criterion(J)   s.t.  sum_y theta_y S_y = 1,  theta >= 0,   J = sum_y theta_y S_y S_y^T / (S_y . p)
                              sum_y theta_y (S_y[x] - S_y[x'])_+ <= eta   for x < x', under a cap

Let J = U diag(j) U^T, and turn the rows v_y = S_y / (S_y . p)^(1/2) by U. Then the slope of tr J^-1 is -|v_y / j|^2,
and its Hessian is Phi Phi^T over the k (k + 1) / 2 products v_x v_x'. So a step costs little more than one product of
thin matrices, however many columns there are; each pair of inputs under a cap adds one product. The same holds for -log
det J. Weights of the variances are moved into the columns: tr(F J^-1 F) is tr J^-1 of the columns F^-1 S.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg

from ldpopt.design.programs.fisher import FisherSolution
from ldpopt.design.utilities.criteria import AOptimal, DOptimal, differences
from ldpopt.distribution import Array
from ldpopt.errors import SolverError

STEPS = 80
"""The most steps; about 20 are enough in practice."""

REACH = 0.99
"""The share of the way to the nearest zero that a step goes."""


def survey_program(
    criterion: AOptimal | DOptimal, prior: Array, columns: Array, accuracy: float, eta: float | None = None
) -> FisherSolution:
    """The best weights of `columns` (n, k), whose mixtures include a constant, to a relative `accuracy`.

    criterion : a sum of variances, with a positive weight for each, or the log generalised variance. eta : a cap on
    total variation.
    """
    n, k = columns.shape
    x, other = np.triu_indices(k, 1)
    above = np.zeros((n, 0)) if eta is None else np.maximum(columns[:, x] - columns[:, other], 0.0)
    cap = 1.0 if eta is None else eta
    priced_by, held = np.hstack([columns, above]), np.arange(k, k + above.shape[1])
    mass = columns @ prior
    factor, shaped = _shape(criterion, k)
    v = columns / np.sqrt(mass)[:, None] / factor
    theta = np.full(n, k / columns.sum())
    rows, slack = np.zeros(k), np.zeros(0)
    room, pairs = np.zeros(0), np.zeros(0)
    target = 0.1
    for _ in range(STEPS):
        values, vectors = np.linalg.eigh((v * theta[:, None]).T @ v)
        if not values[0] > 0:
            raise SolverError("design for estimation: the columns leave some share unknown; pass another method")
        slope, products = shaped(values, v @ vectors)
        value = float(-slope @ theta)
        if len(slack) == 0:
            slack, rows = 0.1 * value / n / theta, value * prior
            room = np.maximum(cap - above.T @ theta, 0.1 * cap)
            pairs = 0.1 * value / (n + len(room)) / room
        mu = target * value / (n + len(room))
        short = 1 - columns.T @ theta
        missing = cap - above.T @ theta - room
        ratio = theta / slack
        right_side = mu / theta - slope - columns @ rows - above @ pairs
        weighed = products * np.sqrt(ratio)[:, None]
        normal = weighed.T @ weighed
        normal[np.diag_indices(len(normal))] += 1.0
        try:
            lower = scipy.linalg.cho_factor(normal, lower=True, overwrite_a=True)
            scaled = np.column_stack([priced_by, right_side]) * ratio[:, None]
            solved = scaled - (products * ratio[:, None]) @ scipy.linalg.cho_solve(lower, products.T @ scaled)
            schur = priced_by.T @ solved[:, :-1]
            schur[held, held] += room / pairs
            change = np.linalg.solve(schur, priced_by.T @ solved[:, -1] - np.append(short, missing + room - mu / pairs))
        except (np.linalg.LinAlgError, ValueError) as error:
            raise SolverError("design for estimation: Newton's method failed; pass another method") from error
        d_theta = solved[:, -1] - solved[:, :-1] @ change
        d_slack = (mu - slack * d_theta) / theta - slack
        d_room = missing - above.T @ d_theta
        d_pairs = change[k:]
        ahead, priced = _reach((theta, d_theta), (room, d_room)), _reach((slack, d_slack), (pairs, d_pairs))
        theta, rows, slack = theta + ahead * d_theta, rows + priced * change[:k], slack + priced * d_slack
        room, pairs = room + ahead * d_room, pairs + priced * d_pairs
        gap = float(theta @ slack + room @ pairs) / value
        kept = max(float(np.abs(short).max()), float(np.abs(missing).max(initial=0.0)) / cap)
        if min(ahead, priced) > 0.9 and gap <= 1.5 * accuracy and kept < 1e-9:
            break
        faster = min(ahead, priced)
        target = max(accuracy, (0.1 if faster > 0.9 else 0.3 if faster > 0.5 else 0.8) * gap)
    information = (columns * (theta / mass)[:, None]).T @ columns
    nu = np.zeros((k, k))
    if eta is not None:
        nu[x, other] = pairs
    if isinstance(criterion, DOptimal):
        # |J^-1/2 S|^2 / (S.p) is 1 more than the same for u = S / (S.p) - 1.
        return FisherSolution(theta, rows - prior, nu, _half(information), np.ones(1))
    kernel = factor[:, None] * np.linalg.inv(information)
    # The same prices for the kernel centred at p.
    even = kernel.sum(axis=1)
    rows = rows - 2 * kernel.T @ even + even @ even * prior
    return FisherSolution(theta, rows, nu, kernel, np.ones(1))


def _reach(*moves: tuple[Array, Array]) -> float:
    """The length, at most 1, up to which a step keeps all these numbers positive."""
    return min(1.0, *(REACH / max(1e-300, float((-step / now).max(initial=0.0))) for now, step in moves))


Shaped = Callable[[Array, Array], tuple[Array, Array]]
"""From the eigenvalues j and v U: the slopes (n,), and Phi (n, k (k + 1) / 2)."""


def _shape(criterion: AOptimal | DOptimal, k: int) -> tuple[Array, Shaped]:
    """The factors (k,) by which columns are divided, and a function for the slopes of the criterion."""
    left, right = np.triu_indices(k)

    def variances(values: Array, turned: Array) -> tuple[Array, Array]:
        bend = 1 / np.outer(values, values**2)
        return -(turned**2) @ (1 / values**2), _products(turned, bend + bend.T)

    def determinant(values: Array, turned: Array) -> tuple[Array, Array]:
        return -(turned**2) @ (1 / values), _products(turned, 1 / np.outer(values, values))

    def _products(turned: Array, bend: Array) -> Array:
        weight = np.sqrt(bend[left, right] * np.where(left == right, 1.0, 2.0))
        return turned[:, left] * turned[:, right] * weight

    if isinstance(criterion, AOptimal):
        diagonal = criterion.diagonal(k)
        assert diagonal is not None
        return diagonal, variances
    return np.ones(k), determinant


def _half(information: Array) -> Array:
    """K (k - 1, k) with |K u|^2 = u^T J^-1 u for every centred column u."""
    t = differences(len(information))
    values, vectors = np.linalg.eigh(t.T @ information @ t)
    return np.asarray((vectors / np.sqrt(values)).T @ t.T)
