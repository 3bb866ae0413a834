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

The program of `estimation.program` by Newton's method on weights and prices together.

    min  criterion(J)   s.t.  sum_y theta_y S_y = 1,  theta >= 0,   J = sum_y theta_y S_y S_y^T / (S_y . p)
                              sum_y theta_y (S_y[x] - S_y[x'])_+ <= eta   for x < x', under a cap

The largest variance is the least level with (F^T J^-1 F)[j,j] - (p.F_j)^2 <= level for every j, where F is the identity
for the shares themselves. These limits have prices, like the caps of the pairs. With v_y = S_y / (S_y . p)^(1/2) and
W = F F^T, the slope of tr(W J^-1) in theta_y is -|F^T J^-1 v_y|^2. In coordinates where J is the identity and W has the
diagonal d, the Hessian is Phi Phi^T with

    Phi_y,ij = z_i z_j (d_i + d_j)^(1/2),    z = v_y in these coordinates,  i <= j,

where products with i < j count twice, and those with d_i = d_j = 0 are left out: F may have few columns. For -log det J
the factor with d is left out; for the largest variance, W = F diag(the multipliers of the limits) F^T. Phi has at most
k (k + 1) / 2 columns, so that a step costs one product of a thin matrix with itself, however many columns S there are.
The search can start from the solution for fewer columns. Columns that join get little weight and much slack, and about
ten steps bring all of them back to the central path.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from ldpopt.design.cones import ConeProgram
from ldpopt.design.estimation.relaxation import MASS_CLASSES, PolicyCone, PolicyRelaxation, Relaxation
from ldpopt.design.estimation.staircase import AnyRelaxation, Columns
from ldpopt.design.solve import CONIC, INTERIOR, solve, solve_cones, solve_linear
from ldpopt.design.utilities.criteria import MVOptimal
from ldpopt.design.utilities.criterion import Criterion, LinearCriterion, Weights, differences, scores
from ldpopt.errors import SolverError
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


MAX_NEWTON_STEPS = 80  # About 20 are enough.
STEP_FRACTION = 0.99  # The largest fraction of the way to where a weight, a slack or a price becomes zero.
MAX_STALLED_STEPS = 8  # Without gain, rounding is assumed to prevent progress.
FEASIBILITY_RTOL = 0.01  # Relative error of rows and limits: this fraction of the gap, plus 1e-9.
INITIAL_GAP = 0.1  # Relative to the criterion.
NEW_COLUMN_WEIGHT = 0.1  # In units of a usual weight.


@dataclass(frozen=True, eq=False)
class Central:
    """A point near the central path.

    - `theta`, `slack` : (n,) the weights and the slacks of the columns.
    - `rows` : lambda (k,).
    - `limit_slack`, `prices` : (m,) of all limits, first those of single variances, then those of pairs.
    - `level` : the limit of the single variances.
    """

    theta: Array
    slack: Array
    rows: Array
    limit_slack: Array
    prices: Array
    level: float

    def with_columns(self, is_selected: npt.NDArray[np.bool_], count: int) -> Central:
        """Select columns, and append `count` new ones."""
        product = float(self.theta @ self.slack + self.limit_slack @ self.prices) / (
            len(self.theta) + len(self.limit_slack)
        )
        usual_weight = min(
            product / float(np.median(self.slack[is_selected])), float(np.median(self.theta[is_selected]))
        )
        theta = np.append(self.theta[is_selected], np.full(count, NEW_COLUMN_WEIGHT * usual_weight))
        slack = np.append(self.slack[is_selected], np.full(count, product / (NEW_COLUMN_WEIGHT * usual_weight)))
        return Central(theta, slack, self.rows, self.limit_slack, self.prices, self.level)


@dataclass(frozen=True, eq=False)
class SurveySolution(FisherSolution):
    """A solution with its point near the central path."""

    central: Central


def survey_program(
    criterion: Criterion,
    prior: Array,
    columns: Array,
    accuracy: float,
    eta: float | None = None,
    start: Central | None = None,
) -> SurveySolution:
    """Solve for the best weights of `columns` (n, k) to a relative `accuracy`.

    - `criterion` : a sum of variances, the largest variance, or the log generalized variance. The columns identify all
      proportions, and their mixtures include a constant.
    - `eta` : a cap on total variation.
    - `start` : the first point, with as many columns.
    """
    program = _Program(criterion, prior, columns, eta)
    point, goal = program.start() if start is None else start, None
    best_point, smallest_error, stalled_steps = point, np.inf, 0
    for _ in range(MAX_NEWTON_STEPS):
        neighborhood = program.neighborhood(point)
        if neighborhood.largest_error < smallest_error:
            best_point, smallest_error, stalled_steps = point, neighborhood.largest_error, 0
        elif neighborhood.gap <= 1.5 * accuracy:  # Rounding may mislead at the end.
            stalled_steps += 1
        if smallest_error <= 1.5 * accuracy or stalled_steps > MAX_STALLED_STEPS:
            break
        point, step_fraction = program.step(
            point, neighborhood, max(accuracy, neighborhood.gap if goal is None else goal)
        )
        goal = (0.1 if step_fraction > 0.9 else 0.3 if step_fraction > 0.5 else 0.8) * neighborhood.gap
    return program.solution(best_point)


@dataclass(frozen=True, eq=False)
class _Near:
    """The criterion near a point (`_Program.local`), and the errors of the point's equations.

    - `dual` : (n,) the slacks that the prices imply.
    - `short` : (k,) the shortfall of the row sums.
    - `missing` : (m,) the slack of the limits, less the point's.
    - `used` : (n, m) the columns' consumption of the limits.
    - `gap` : relative to the criterion.
    - `largest_error` : the largest of the gap and of the relative errors. Errors of rows and limits count
      1/`FEASIBILITY_RTOL` times.
    """

    size: float
    products: Array
    dual: Array
    short: Array
    missing: Array
    used: Array
    gap: float
    largest_error: float


class _Program:
    """Columns S (n, k), their consumption of the caps (n, pairs), and the criterion over v = S / (S . p)^(1/2)."""

    def __init__(self, criterion: Criterion, prior: Array, columns: Array, eta: float | None) -> None:
        n, k = columns.shape
        self.pairs = np.triu_indices(k, 1)
        x, other = self.pairs
        is_capped = eta is not None
        self.columns, self.prior, self.mass, self.largest_entries = columns, prior, columns @ prior, columns.max(axis=1)
        self.above = np.maximum(columns[:, x] - columns[:, other], 0.0) if is_capped else np.zeros((n, 0))
        self.caps = np.full(self.above.shape[1], eta if is_capped else 1.0)
        self.logarithmic = criterion.logarithmic
        self.root = criterion.factor(k) if isinstance(criterion, LinearCriterion | MVOptimal) else np.eye(k)
        self.v, self.limits = columns / np.sqrt(self.mass)[:, None], self.root.shape[1] if criterion.limited else 0
        self.rank = int(np.linalg.matrix_rank(self.root)) if criterion.limited else self.root.shape[1]
        first_inputs, second_inputs = np.triu_indices(k)
        is_used = second_inputs >= k - self.rank
        self.left, self.right = first_inputs[is_used], second_inputs[is_used]
        self.twice = np.where(self.left == self.right, 1.0, 2.0)

    def local(self, theta: Array, weights: Array) -> tuple[float, Array, Array, Array, Array]:
        """Compute the criterion at weights `theta` (n,) of the columns.

        weights : (l,) of the single variances. Returns its size, -slope . theta; its slope (n,); Phi (n, k (k + 1) /
        2); and the single variances (l,) with their slopes (n, l). Here l = k for the largest variance and 0 for other
        criteria.
        """
        information = (self.v * theta[:, None]).T @ self.v
        eigenvalues, eigenvectors = np.linalg.eigh(information)
        if not eigenvalues[0] > 0:
            raise SolverError("design for estimation: the columns leave some share unknown; pass another method")
        inverse_root = eigenvectors / np.sqrt(eigenvalues)
        variances, variance_slopes = np.zeros(0), np.zeros((len(self.v), 0))
        if self.logarithmic:
            z, criterion_size, slope, doubled_weights = (
                self.v @ inverse_root,
                float(len(eigenvalues)),
                np.ones(len(eigenvalues)),
                self.twice,
            )
        else:
            slope, rotation = np.linalg.eigh((half := inverse_root.T @ self.factor(weights)) @ half.T)
            slope = np.maximum(slope, 0.0)
            slope[: len(slope) - self.rank] = 0.0
            z, criterion_size = self.v @ (inverse_root @ rotation), float(slope.sum())
            doubled_weights = self.twice * (slope[self.left] + slope[self.right])
        if self.limits:
            inverse = inverse_root @ (inverse_root.T @ self.root)
            variances, variance_slopes = (
                (self.root * inverse).sum(axis=0) - (self.prior @ self.root) ** 2,
                -((self.v @ inverse) ** 2),
            )
        products = z[:, self.left] * z[:, self.right] * np.sqrt(doubled_weights)
        return criterion_size, -(z**2) @ slope, products, variances, variance_slopes

    def factor(self, weights: Array) -> Array:
        """Return F; for the largest variance, that of its weights."""
        return self.root * np.sqrt(weights) if self.limits else self.root

    def kernel(self, information: Array, weights: Array) -> Array:
        """Compute K (r, k) such that |K S|^2 / (S . p) is minus the slope.

        For `DOptimal` and centered columns it is |K u|^2.
        """
        if not self.logarithmic:
            return np.asarray(self.factor(weights).T @ np.linalg.inv(information))
        t = differences(len(information))
        eigenvalues, eigenvectors = np.linalg.eigh(t.T @ information @ t)
        return np.asarray((eigenvectors / np.sqrt(eigenvalues)).T @ t.T)

    def start(self) -> Central:
        """Build a point of equal weights, with a gap of about `INITIAL_GAP`."""
        (n, k), limits = self.columns.shape, self.limits
        theta, weights = np.full(n, k / self.columns.sum()), np.full(limits, 1 / max(1, limits))
        size, _, _, variances, _ = self.local(theta, weights)
        products = INITIAL_GAP * size / (n + limits + len(self.caps))
        slacks = np.maximum(self.caps - self.above.T @ theta, INITIAL_GAP * self.caps)
        level = float(variances.max(initial=0.0)) + INITIAL_GAP * size
        slack = INITIAL_GAP * size / n / theta
        all_slacks, prices = np.append(level - variances, slacks), np.append(weights, products / slacks)
        return Central(theta, slack, size * self.prior, all_slacks, prices, level)

    def neighborhood(self, point: Central) -> _Near:
        """Compute the criterion and the errors of the equations at a point."""
        limits = self.limits
        size, slope, products, variances, variance_slopes = self.local(point.theta, point.prices[:limits])
        row_shortfall = 1 - self.columns.T @ point.theta
        slack_error = np.append(point.level - variances, self.caps - self.above.T @ point.theta) - point.limit_slack
        dual = slope + self.columns @ point.rows + self.above @ point.prices[limits:]
        scale = np.append(np.full(limits, size), self.caps)
        feasibility_error = max(
            float(np.abs(row_shortfall).max() / self.caps.min(initial=1.0)),
            float(np.abs(slack_error / scale).max(initial=0.0)),
        )
        gap = float(point.theta @ point.slack + point.limit_slack @ point.prices) / size
        dual_error = float(np.abs((dual - point.slack) / self.largest_entries).max()) / size
        error = max(gap, dual_error, (feasibility_error - 1e-9) / FEASIBILITY_RTOL)
        return _Near(
            size, products, dual, row_shortfall, slack_error, np.hstack([variance_slopes, self.above]), gap, error
        )

    def step(self, point: Central, neighborhood: _Near, goal: float) -> tuple[Central, float]:
        """Compute a Newton step toward the relative gap `goal`.

        Returns the point, and the fraction of the step that was taken.
        """
        limits, k = self.limits, len(self.prior)
        mu = goal * neighborhood.size / (len(point.theta) + len(point.limit_slack))
        try:
            change, d_level, d_theta = self._newton_step(point, neighborhood, mu)
        except (np.linalg.LinAlgError, ValueError) as error:
            raise SolverError("design for estimation: Newton's method failed; pass another method") from error
        d_slack = (mu - point.slack * d_theta) / point.theta - point.slack
        d_limit_slack = neighborhood.missing - neighborhood.used.T @ d_theta
        d_limit_slack[:limits] += d_level
        primal_length = _step_length((point.theta, d_theta), (point.limit_slack, d_limit_slack))
        dual_length = _step_length((point.slack, d_slack), (point.prices, change[k:]))
        if limits:  # the curvature depends on the prices
            primal_length = dual_length = min(primal_length, dual_length)
        next_point = Central(
            point.theta + primal_length * d_theta,
            point.slack + dual_length * d_slack,
            point.rows + dual_length * change[:k],
            point.limit_slack + primal_length * d_limit_slack,
            point.prices + dual_length * change[k:],
            point.level + primal_length * d_level,
        )
        return next_point, min(primal_length, dual_length)

    def _newton_step(self, point: Central, neighborhood: _Near, mu: float) -> tuple[Array, float, Array]:
        """Solve for the changes of lambda and of the prices together, of the level, and of theta."""
        k, m, limits = len(self.prior), len(point.limit_slack), self.limits
        products, usage = neighborhood.products, neighborhood.used
        ratio, residuals = point.theta / point.slack, mu / point.theta - neighborhood.dual
        scaled_factor = np.hstack([products, self.columns, usage]) * np.sqrt(ratio)[:, None]
        gram, right_side = scaled_factor.T @ scaled_factor, scaled_factor.T @ (residuals * np.sqrt(ratio))
        q = products.shape[1]
        normal, cross = gram[:q, :q], gram[:q, q:]
        normal[np.diag_indices(q)] += 1.0
        cholesky_factor = scipy.linalg.cho_factor(normal, lower=True, overwrite_a=True)
        solutions = scipy.linalg.cho_solve(cholesky_factor, np.column_stack([cross, right_side[:q]]))
        level_count = int(limits > 0)
        schur, right_hand_side = np.zeros((k + m + level_count, k + m + level_count)), np.zeros(k + m + level_count)
        schur[: k + m, : k + m] = gram[q:, q:] - cross.T @ solutions[:, :-1]
        price_rows = np.arange(k, k + m)
        schur[price_rows, price_rows] += point.limit_slack / point.prices
        right_hand_side[: k + m] = (
            right_side[q:]
            - cross.T @ solutions[:, -1]
            - np.append(neighborhood.short, neighborhood.missing + point.limit_slack - mu / point.prices)
        )
        if level_count:  # the weights of the variances sum to one: the level is their price
            schur[k : k + limits, -1] = schur[-1, k : k + limits] = 1.0
            right_hand_side[-1] = 1 - point.prices[:limits].sum()
        solution = np.linalg.solve(schur, right_hand_side)
        change, level = np.asarray(solution[: k + m]), float(solution[-1]) if level_count else 0.0
        coefficients = solutions[:, -1] - solutions[:, :-1] @ change
        changes = residuals - self.columns @ change[:k] - usage @ change[k:] - products @ coefficients
        return change, level, np.asarray(ratio * changes)

    def solution(self, point: Central) -> SurveySolution:
        """Build the weights, and multipliers for the kernel centered at p."""
        k, limits = len(self.prior), self.limits
        nu = np.zeros((k, k))
        if len(self.caps):
            nu[self.pairs] = point.prices[limits:]
        information = (self.columns * (point.theta / self.mass)[:, None]).T @ self.columns
        kernel = self.kernel(information, point.prices[:limits])
        if self.logarithmic:
            # |J^-1/2 S|^2 / (S.p)^2 is 1 + |K u|^2 for u = S / (S.p) - 1.
            return SurveySolution(point.theta, point.rows - self.prior, nu, kernel, np.ones(1), point)
        row_sums = kernel.sum(axis=1)
        rows = point.rows - 2 * kernel.T @ row_sums + row_sums @ row_sums * self.prior
        return SurveySolution(point.theta, rows, nu, kernel, np.ones(1), point)


def _step_length(*moves: tuple[Array, Array]) -> float:
    """Compute the fraction of a step that keeps all these numbers positive."""
    return min(1.0, *(STEP_FRACTION / max(1e-300, float((-step / value).max(initial=0.0))) for value, step in moves))
