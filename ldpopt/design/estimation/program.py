"""The convex program of a design for estimation, over the probabilities w of given report columns.

    min   criterion(sum_y w_y u_y u_y^T),   u_y = S_y / (S_y . p) - 1
    s.t.  sum w = 1                                                (mu_0)
          sum_y w_y u_y = 0                                        (mu)
          sum_y w_y (S_y[x] - S_y[x'])_+ / (S_y . p) <= eta        (nu >= 0, one per pair x < x')
          w >= 0

The first two say that the rows of Q = (w_y S_y / (S_y . p))_y sum to one. Where eta leaves little weight to columns
other than the constant one, the weights are in units of that remainder, and the constant column takes the rest. So the
program has the same form at every eta. For several distributions at once, the criterion is the largest of theirs, and w
belongs to the first of them. The dual values price further columns (`estimation.prices`), with lambda = mu_0 p + mu - p
(1 . mu).

Fewer weights with the same moments: at most as many as there are moments (Caratheodory).

Multipliers for a proof: `least_multipliers` from columns that are priced, and `relax` where they are too many, by
semidefinite programs whose answers `estimation.relaxation` proves [Shor]. Of a staircase pattern S, with entries 1 and
E = exp(epsilon), the relaxation knows only its mass and (S_x - 1)(S_x - E) = 0. Of a column of a policy graph it knows
only products of two limits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from ldpopt.design.cones import ConeProgram
from ldpopt.design.estimation.relaxation import MASS_CLASSES, PolicyCone, PolicyRelaxation, Relaxation
from ldpopt.design.estimation.staircase import AnyRelaxation, Columns
from ldpopt.design.solve import CONIC, INTERIOR, solve, solve_cones, solve_linear
from ldpopt.design.utilities.criterion import Criterion, Weights, differences, scores
from ldpopt.numbers.enclosures import FLOAT
from ldpopt.values.distribution import Array


@dataclass(frozen=True, eq=False)
class FisherSolution:
    """Weights `theta` (n,) of the columns, Q[:, y] = theta_y S_y, and dual values.

    - `rows`, `pairs`, `kernel` : lambda (k,), nu (k, k) and K (r, k), for a single distribution; zero otherwise. Their
      scale is specific to the program (t^2 for the first two, t for the third, for some t).
    - `shares` : the weight of each distribution in the worst case; they sum to 1.
    """

    theta: Array
    rows: Array
    pairs: Array
    kernel: Array
    shares: Array


def fisher_program(
    criterion: Criterion, priors: Sequence[Array], columns: Array, epsilon: float, eta: float | None
) -> FisherSolution:
    """Solve for the best weights of `columns` (n, k) for the worst of `priors`.

    The entries of a column are within a factor exp(epsilon).
    """
    gain = math.expm1(min(epsilon, math.log(2)))  # Brings the columns u to the order of 1.
    n, k = columns.shape
    is_constant = np.ptp(columns, axis=1) == 0
    constant_unit = 1.0 if eta is None or not is_constant.any() else min(1.0, eta / gain)
    prior, prior_masses = priors[0], columns @ priors[0]
    is_independent = np.arange(k) != int(np.argmax(prior))  # p . u = 0: one row follows from the others
    units = np.where(is_constant, 1.0, constant_unit)  # of the weights w
    program = ConeProgram()
    w, level = program.variables(n), program.variables(1)
    program.put("nonnegative", np.zeros(n), (w, scipy.sparse.eye_array(n)))
    total_equation = program.put("zero", -np.ones(1), (w, units[None]))
    balance_equations = program.put(
        "zero", np.zeros(k - 1), (w, ((columns / prior_masses[:, None] - 1) / gain).T[is_independent])
    )
    first_inputs, second_inputs = np.triu_indices(k, 1)
    if eta is not None:
        excess = np.maximum(columns[:, first_inputs] - columns[:, second_inputs], 0.0) / (gain * prior_masses[:, None])
        cap_inequalities = program.put(
            "nonnegative", np.full(len(first_inputs), eta / gain / constant_unit), (w, -excess.T)
        )
    expressions, level_inequalities = [], []
    for p in priors:
        masses = columns @ p
        # At another distribution, the same weights theta mean w times the ratio of the masses.
        expressions.append(
            criterion.build_program((columns / masses[:, None] - 1) / gain, Weights(program, w, masses / prior_masses))
        )
        cost = (expressions[-1].variables, -expressions[-1].slopes[None])
        level_inequalities.append(program.put("nonnegative", np.zeros(1), (level, np.ones((1, 1))), cost))
    values, duals = solve_cones(program, level, "design for estimation")

    shares = np.array([float(duals[level_inequality][0]) for level_inequality in level_inequalities]).clip(0.0)
    rows, pairs, kernel = np.zeros(k), np.zeros((k, k)), np.zeros((1, k))
    if len(priors) == 1:
        # The program's columns are u / gain; its slopes are those of the criterion, divided by `factor`.
        factor, kernel = expressions[0].factor, expressions[0].kernel(duals) / gain
        slopes = np.zeros(k)
        slopes[is_independent] = -duals[balance_equations] * factor / gain
        rows = -float(duals[total_equation][0]) * constant_unit * factor * prior + slopes - prior * slopes.sum()
        if eta is not None:
            pairs[first_inputs, second_inputs] = np.maximum(duals[cap_inequalities], 0.0) * factor / gain
    return FisherSolution(np.maximum(values[w], 0.0) * units / prior_masses, rows, pairs, kernel, shares / shares.sum())


def kernel_at(criterion: Criterion, matrix: Array, prior: Array) -> Array:
    """Compute K (r, k) such that K u_y is the best influence of report y.

    Here u_y = q_y / (q_y . p) - 1.
    """
    reduced_scores = scores(matrix, prior)
    scale = np.linalg.norm(reduced_scores, axis=1)
    scale[scale == 0] = 1.0
    kernel = np.linalg.lstsq((reduced_scores / scale[:, None]).T, criterion.loadings(reduced_scores).T, rcond=1e-10)[0]
    return np.asarray((kernel / scale[:, None]).T @ differences(len(prior)).T)


def least_multipliers(
    kernel: Array, prior: Array, values: Array, eta: float | None, bound_terms: Array | None
) -> tuple[Array, Array, Array]:
    """Compute multipliers with the least bound that leave no column a gain.

    They are lambda (k,) and nu (k, k) with least sum lambda + eta sum nu. That is, |K S|^2 / (S.p) <= lambda.S +
    sum_{x<x'} nu[x,x'] (S_x - S_x')_+ for every column S of `values` (n, k), with K centered at p. The rows of the
    kernel may have weights: `bound_terms` (r,) is the contribution of each to the bound. Then the best weights with an
    unchanged total are computed, too. Also returns the kernel with these weights.
    """
    k = len(prior)
    scaled_columns = values / (values @ prior)[:, None]
    row_information = ((scaled_columns - 1) @ (kernel - np.outer(kernel.sum(axis=1), prior)).T) ** 2
    scale = float(row_information.sum(axis=1).max()) or 1.0
    first_inputs, second_inputs = np.triu_indices(k, 1) if eta is not None else np.zeros((2, 0), dtype=np.intp)
    has_weights = bound_terms is not None and bound_terms.max() > 0
    weighted = row_information / scale if has_weights else np.zeros((len(values), 0))
    # The variables are the prices of pairs, the weights of rows, and the prices of rows, which have any sign.
    excess = np.maximum(scaled_columns[:, first_inputs] - scaled_columns[:, second_inputs], 0.0)
    costs = np.concatenate([np.full(len(first_inputs), eta or 0.0), np.zeros(weighted.shape[1]), np.ones(k)])
    equation = equation_value = None
    if bound_terms is not None and has_weights:
        terms = bound_terms / bound_terms.max()
        equation, equation_value = (
            np.concatenate([0 * costs[: len(first_inputs)], terms, np.zeros(k)])[None],
            np.ones(1),
        )
    gains = np.zeros(len(values)) if has_weights else row_information.sum(axis=1) / scale
    x, *_ = solve_linear(
        -costs, equation, equation_value, np.hstack([-excess, weighted, -scaled_columns]), -gains,
        "multipliers of the equivalence bound", free=k,
    )  # fmt: skip
    pair_prices, row_weights, rows = np.split(x, [len(first_inputs), len(costs) - k])
    pairs = np.zeros((k, k))
    pairs[first_inputs, second_inputs] = np.maximum(pair_prices, 0.0) * scale
    weights = np.maximum(row_weights, 0.0) if has_weights else np.ones(len(kernel))
    return rows * scale, pairs, kernel * np.sqrt(weights)[:, None]


def reduce_columns(columns: Array, weights: Array) -> Array:
    """Compute (n,) new weights with the same information, at most k (k + 1)/2 positive.

    `columns` is (n, k) with S.p = 1. The products of their entries give the information, and, as p.S = 1, the row sums
    as well.
    """
    first_inputs, second_inputs = np.triu_indices(columns.shape[1])
    return reduce_weights(columns[:, first_inputs] * columns[:, second_inputs], weights)


def reduce_weights(moments: Array, weights: Array) -> Array:
    """Compute (n,) weights >= 0 with unchanged moments, at most r of them positive.

    The moments are `moments`.T @ weights, for (n, r) `moments`. Of twice as many columns as moments, half can go. The
    weights move along a combination that changes no moment, until one weight is zero. That weight is then eliminated
    from the other such combinations. If there are more columns, they are put into twice as many groups as there are
    moments, and half of the groups go at once.

    >>> fewer = reduce_weights(np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]), np.array([1.0, 1.0, 1.0]))
    >>> int((fewer > 0).sum()) <= 2, round(float(fewer.sum()), 6), round(float(fewer @ [0.0, 1.0, 2.0]), 6)
    (True, 3.0, 3.0)
    """
    w = np.array(weights)
    r = moments.shape[1]
    moment_scale = np.abs(moments).max(axis=0)
    scaled_moments = moments / np.where(moment_scale > 0, moment_scale, 1.0)
    while True:
        positive_indices = np.flatnonzero(w > 0)
        group_numbers = np.arange(len(positive_indices)) % (2 * r)
        group_count = min(len(positive_indices), 2 * r)
        group_weights: Array = np.bincount(group_numbers, w[positive_indices], group_count).astype(np.float64)
        group_means = scaled_moments[positive_indices]
        if group_count < len(positive_indices):  # of every `group_count`-th row
            padded_means = np.pad(
                group_means * w[positive_indices, None], ((0, -len(positive_indices) % group_count), (0, 0))
            )
            group_means = padded_means.reshape(-1, group_count, r).sum(axis=0) / group_weights[:, None]
        new_weights = _eliminate_weights(group_means, group_weights)
        if new_weights is None:
            return w
        w[positive_indices] *= (new_weights / group_weights)[group_numbers]


def _eliminate_weights(rows: Array, weights: Array) -> Array | None:
    """Compute (n,) weights with the same sum of `rows`, with a zero for each relation; None without relations."""
    q, triangle, _ = scipy.linalg.qr(rows, pivoting=True)
    diagonal = np.abs(np.diag(triangle))
    rank = int((diagonal > 1e-13 * diagonal.max(initial=0.0) * len(rows)).sum())
    if rank == len(rows):
        return None
    null_space, remaining_weights, threshold = np.asfortranarray(q[:, rank:]), weights, 1e-15 * float(weights.max())
    for last in range(null_space.shape[1] - 1, -1, -1):
        direction = null_space[:, last]
        if not direction.max() > 0:
            direction = -direction
        with np.errstate(divide="ignore", invalid="ignore"):
            step_lengths = np.where(direction > 1e-12 * np.abs(direction).max(), remaining_weights / direction, np.inf)
        i = int(step_lengths.argmin())
        remaining_weights = remaining_weights - step_lengths[i] * direction
        remaining_weights[remaining_weights < threshold] = 0.0
        remaining_weights[i] = 0.0
        if last:
            null_space = scipy.linalg.blas.dger(
                -1.0, direction / direction[i], null_space[i, :last], a=null_space[:, :last], overwrite_a=True
            )
            null_space[i] = 0.0
    return np.asarray(remaining_weights)


def relax_policy(
    gram: Array, prior: Array, limits: Array, eta: float | None = None
) -> tuple[Array, Array, PolicyRelaxation]:
    """Compute multipliers of a policy graph, and weights that prove that no column gains.

    They are lambda (k,) and nu (k, k) with least sum lambda + eta sum nu; nu is 0 without `eta`. limits : (k, k)
    log-ratios, the lengths of shortest paths.
    """
    import cvxpy as cp

    k, cone = len(prior), PolicyCone.from_limits(limits, FLOAT.of(prior))
    first_faces, second_faces = cone.products
    faces = np.asarray(cone.faces.midpoint)

    def form_of(square: Any, rows: Any) -> Array:
        return np.asarray(cone.form(FLOAT.of(square), FLOAT.of(rows)).midpoint)

    zeros, pairs = np.zeros((k, k)), np.zeros((k, k))
    scale = float(np.abs(form_of(gram, np.zeros(k))).max()) or 1.0
    rows, weights = cp.Variable(k), cp.Variable(len(first_faces), nonneg=True)
    face_products = np.einsum("nx,ny->nxy", faces[first_faces], faces[second_faces])
    products_matrix = scipy.sparse.csr_array(
        ((face_products + face_products.transpose(0, 2, 1)) / 2).reshape(len(first_faces), k * k).T
    )
    # (s.p)(rows.s) is linear in `rows`: one matrix for each of its entries.
    row_forms = np.array([form_of(zeros, entry).ravel() for entry in np.eye(k)]).T
    form: Any = row_forms @ rows - products_matrix @ weights + form_of(gram / scale, np.zeros(k)).ravel()
    cost: Any = cp.sum(rows)
    if eta is not None:
        first_inputs, second_inputs = np.triu_indices(k, 1)
        pair_variables = cp.Variable(len(first_inputs), nonneg=True)
        single_pairs = np.zeros((len(first_inputs), k, k))
        single_pairs[np.arange(len(first_inputs)), first_inputs, second_inputs] = 1.0
        square_terms = [(-square, shift) for shift, square in map(cone.split_squares, single_pairs)]
        form = (
            form
            + np.array([np.asarray(cone.form(*entry).midpoint).ravel() for entry in square_terms]).T @ pair_variables
        )
        cost = cost + eta * cp.sum(pair_variables)
    square = cp.reshape(form, (k, k), order="C")
    solve(cp.Problem(cp.Minimize(cost), [square >> 0]), "relaxed bound of a policy graph", CONIC)
    if eta is not None:
        pairs[first_inputs, second_inputs] = np.maximum(np.asarray(pair_variables.value), 0.0) * scale
    return np.asarray(rows.value) * scale, pairs, PolicyRelaxation(np.maximum(weights.value, 0.0) * scale)


def relax(columns: Columns, gram: Array, prior: Array, eta: float | None) -> tuple[Array, Array, AnyRelaxation]:
    """Compute multipliers with the least bound, and a relaxation where no column gains.

    They are lambda (k,) and nu (k, k) with least sum lambda + eta sum nu; nu is 0 without `eta`.

    - `columns` : staircase patterns, or those of a policy graph, which have `limits`.
    """
    limits = getattr(columns, "limits", None)
    if limits is not None:
        return relax_policy(gram, prior, limits, eta)
    return relax_patterns(gram, prior, math.exp(columns.epsilon), eta)


def relax_patterns(gram: Array, prior: Array, ratio: float, eta: float | None) -> tuple[Array, Array, Relaxation]:
    """Compute multipliers of staircase patterns, and the relaxation.

    They are lambda (k,) and nu (k, k) with least sum lambda + eta sum nu; nu is 0 without `eta`.
    """
    import cvxpy as cp

    k = len(prior)
    scale = float(np.trace(gram))
    class_count = 1 if eta is None else MASS_CLASSES
    rows, pairs = cp.Variable(k), np.zeros((k, k))
    squares, spans = cp.Variable((class_count, k)), cp.Variable(class_count, nonneg=True)
    cost: Any = cp.sum(rows)
    pair_prices: Any = pairs
    if eta is not None:
        first_inputs, second_inputs = np.triu_indices(k, 1)
        pair_variables = cp.Variable(len(first_inputs), nonneg=True)
        positions = np.zeros((k * k, len(first_inputs)))
        positions[first_inputs * k + second_inputs, np.arange(len(first_inputs))] = 1.0
        pair_prices = cp.reshape(positions @ pair_variables, (k, k), order="C")
        cost = cost + eta * cp.sum(pair_variables)
    mass = ratio ** (np.arange(class_count + 1) / class_count)  # the ends of the classes
    cones = []
    for size in range(class_count):
        class_ends = (float(mass[size]), float(mass[size + 1]), ratio)
        top, edge, corner = _relaxed_form(
            gram / scale, prior, rows, pair_prices, squares[size], spans[size], class_ends
        )
        edge = cp.reshape(edge, (k, 1), order="C")
        cones.append(cp.bmat([[top, edge], [edge.T, cp.reshape(corner, (1, 1), order="C")]]) >> 0)
    solve(cp.Problem(cp.Minimize(cost), cones), "relaxed equivalence bound", INTERIOR)
    if eta is not None:
        pairs[first_inputs, second_inputs] = np.maximum(np.asarray(pair_variables.value), 0.0) * scale
    relaxation = Relaxation(np.asarray(squares.value) * scale, np.maximum(np.asarray(spans.value), 0.0) * scale)
    return np.asarray(rows.value) * scale, pairs, relaxation


def _relaxed_form(
    gram: Array, prior: Array, rows: Any, pairs: Any, d: Any, span: Any, ends: tuple[float, float, float]
) -> tuple[Any, Any, Any]:
    """Build the quadratic, linear (halved) and constant part of N in S, as cvxpy expressions."""
    import cvxpy as cp

    low, high, ratio = ends
    k, gain, ones = len(prior), ratio - 1, np.ones(len(prior))
    row = cp.reshape(rows, (1, k), order="C")
    square = (prior[:, None] @ row + row.T @ prior[None]) / 2 - gram
    quadratic = square - low / gain * (pairs + pairs.T) / 2 + cp.diag(d) + span * np.outer(prior, prior)
    outgoing, incoming = pairs @ ones, pairs.T @ ones
    linear = low / gain * (ratio * outgoing + incoming) / 2 - (1 + ratio) / 2 * d - span * (low + high) / 2 * prior
    constant = ones @ (ratio * d - low * ratio / gain * outgoing) + span * low * high
    return quadratic, linear, constant
