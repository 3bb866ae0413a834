"""Solve the program of `estimation.program` by Newton's method on weights and prices together.

    min  criterion(J)   s.t.  sum_y theta_y S_y = 1,  theta >= 0,   J = sum_y theta_y S_y S_y^T / (S_y . p)
                              sum_y theta_y (S_y[x] - S_y[x'])_+ <= eta   for x < x', under a cap

The largest variance is the least level with (F^T J^-1 F)[j,j] - (p.F_j)^2 <= level for every j, where F is the identity
for the shares themselves. These limits have prices, like the caps of the pairs. With v_y = S_y / (S_y . p)^(1/2) and
W = F F^T, the slope of tr(W J^-1) in theta_y is -|F^T J^-1 v_y|^2. In coordinates where J is the identity and W has the
diagonal d, the Hessian is Phi Phi^T with

    Phi_y,ij = z_i z_j (d_i + d_j)^(1/2),    z = v_y in these coordinates,  i <= j,

where products with i < j count twice, and those with d_i = d_j = 0 are left out: F may have few columns. For -log det J
all d are 1/2; for the largest variance, W = F diag(the multipliers of the limits) F^T. A step factors I + Phi^T Phi,
with at most k (k + 1) / 2 rows, or I + Phi Phi^T if that is less work. For the latter, Phi Phi^T is the product of
sum_i 2 d_i z_i z'_i and sum_i z_i z'_i. The search can start from the solution for fewer columns. Columns that join get
little weight and much slack, and about ten steps bring all of them back to the central path.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import scipy

from ldpopt.design.estimation.program import FisherSolution
from ldpopt.design.utilities.criteria import MVOptimal
from ldpopt.design.utilities.criterion import Criterion, LinearCriterion, differences
from ldpopt.errors import SolverError
from ldpopt.values.distribution import Array

MAX_NEWTON_STEPS = 80  # About 20 are enough.
STEP_FRACTION = 0.99  # The largest fraction of the way to where a weight, a slack or a price becomes zero.
MAX_STALLED_STEPS = 8  # Without gain, rounding is assumed to prevent progress.
LEAST_CENTERING = 0.05  # The least part of the gap that a step aims at: less would leave the central path.
FEASIBILITY_RTOL = 0.01  # Relative error of rows and limits: this fraction of the gap, plus 1e-9.
INITIAL_GAP = 0.1  # Relative to the criterion.
NEW_COLUMN_WEIGHT = 0.1  # In units of a usual weight.
IDLE_CAP_SLACK, LEAST_CAP_SLACK = 0.03, 0.01  # In units of a cap: the slack of caps left out, and the least of new ones


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

    @property
    def gap(self) -> float:
        """The sum of the products of weights and slacks, and of slacks and prices of limits."""
        return float(self.theta @ self.slack + self.limit_slack @ self.prices)

    def next_point(self, change: Central, limits: int) -> tuple[float, Central]:
        """Return the fraction of a change that is taken, and the next point, where all numbers are positive."""
        primal_length = _step_length((self.theta, change.theta), (self.limit_slack, change.limit_slack))
        dual_length = _step_length((self.slack, change.slack), (self.prices, change.prices))
        if limits:  # the curvature depends on the prices
            primal_length = dual_length = min(primal_length, dual_length)
        point = Central(
            self.theta + primal_length * change.theta,
            self.slack + dual_length * change.slack,
            self.rows + dual_length * change.rows,
            self.limit_slack + primal_length * change.limit_slack,
            self.prices + dual_length * change.prices,
            self.level + primal_length * change.level,
        )
        return min(primal_length, dual_length), point

    def with_columns(self, is_selected: npt.NDArray[np.bool_], count: int) -> Central:
        """Select columns, and append `count` new ones."""
        product = self.gap / (len(self.theta) + len(self.limit_slack))
        usual_weight = min(
            product / float(np.median(self.slack[is_selected])), float(np.median(self.theta[is_selected]))
        )
        theta = np.append(self.theta[is_selected], np.full(count, NEW_COLUMN_WEIGHT * usual_weight))
        slack = np.append(self.slack[is_selected], np.full(count, product / (NEW_COLUMN_WEIGHT * usual_weight)))
        return Central(theta, slack, self.rows, self.limit_slack, self.prices, self.level)

    def with_limits(self, is_selected: npt.NDArray[np.bool_]) -> Central:
        """Select limits."""
        return replace(self, limit_slack=self.limit_slack[is_selected], prices=self.prices[is_selected])


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
    - `start` : the first point, with as many columns. Caps with much slack there are left out until they are exceeded.
    """
    program = _Program(criterion, prior, columns, eta)
    point, limits, cap_count = program.start() if start is None else start, program.limits, len(program.caps)
    is_active = np.ones(limits + cap_count, dtype=bool)
    if start is not None:
        is_active[limits:] = start.limit_slack[limits:] <= IDLE_CAP_SLACK * program.caps
    while True:
        active_program = program.with_caps(is_active[limits:])
        best_point = _solve(active_program, point.with_limits(is_active), accuracy)
        use = program.above.T @ best_point.theta / program.caps
        is_exceeded = np.append(np.zeros(limits, dtype=bool), use > 1 + FEASIBILITY_RTOL * 1.5 * accuracy + 1e-9)
        if not (is_exceeded & ~is_active).any():
            return active_program.solution(best_point, program.with_all_limits(best_point, is_active))
        # From the first point: where weights are near zero, caps cannot join.
        is_active |= is_exceeded


def _solve(program: _Program, point: Central, accuracy: float) -> Central:
    """Find a central point of relative `accuracy`, from a first point."""
    best_point, smallest_error, stalled_steps = point, np.inf, 0
    for _ in range(MAX_NEWTON_STEPS):
        neighborhood = program.neighborhood(point)
        if neighborhood.largest_error < smallest_error:
            best_point, smallest_error, stalled_steps = point, neighborhood.largest_error, 0
        elif neighborhood.gap <= 1.5 * accuracy:  # Rounding may mislead at the end.
            stalled_steps += 1
        if smallest_error <= 1.5 * accuracy or stalled_steps > MAX_STALLED_STEPS:
            break
        point = program.step(point, neighborhood, accuracy)
    return best_point


@dataclass(frozen=True, eq=False)
class _Near:
    """The criterion near a point (`_Program.local`), and the errors of the point's equations.

    - `z`, `values` : z (n, k) and d (k,), the factors of the Hessian.
    - `dual` : (n,) the slacks that the prices imply.
    - `short` : (k,) the shortfall of the row sums.
    - `missing` : (m,) the slack of the limits, less the point's.
    - `variance_slopes` : (n, l) the slopes of the single variances.
    - `gap` : relative to the criterion.
    - `largest_error` : the largest of the gap and of the relative errors. Errors of rows and limits count
      1/`FEASIBILITY_RTOL` times.
    """

    size: float
    z: Array
    values: Array
    dual: Array
    short: Array
    missing: Array
    variance_slopes: Array
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

    def with_caps(self, is_selected: npt.NDArray[np.bool_]) -> _Program:
        """Return the program with some of the caps."""
        if is_selected.all():
            return self
        program = copy(self)
        program.above, program.caps = self.above[:, is_selected], self.caps[is_selected]
        program.pairs = (self.pairs[0][is_selected], self.pairs[1][is_selected])
        return program

    def with_all_limits(self, point: Central, is_active: npt.NDArray[np.bool_]) -> Central:
        """Return a point of the program with some limits as one with all of them."""
        product = point.gap / (len(point.theta) + len(point.limit_slack))
        limit_slack = np.append(np.zeros(self.limits), self.caps - self.above.T @ point.theta)
        limit_slack = np.maximum(limit_slack, LEAST_CAP_SLACK * self.caps.min(initial=1.0))
        limit_slack[is_active] = point.limit_slack
        prices = product / limit_slack
        prices[is_active] = point.prices
        return replace(point, limit_slack=limit_slack, prices=prices)

    def local(self, theta: Array, weights: Array) -> tuple[float, Array, Array, Array, Array, Array]:
        """Compute the criterion at weights `theta` (n,) of the columns.

        weights : (l,) of the single variances. Returns its size, -slope . theta; its slope (n,); z (n, k) and d (k,);
        and the single variances (l,) with their slopes (n, l). Here l = k for the largest variance and 0 for other
        criteria.
        """
        information = (self.v * theta[:, None]).T @ self.v
        eigenvalues, eigenvectors = np.linalg.eigh(information)
        if not eigenvalues[0] > 0:
            raise SolverError("design for estimation: the columns leave some share unknown; pass another method")
        inverse_root = eigenvectors / np.sqrt(eigenvalues)
        variances, variance_slopes = np.zeros(0), np.zeros((len(self.v), 0))
        if self.logarithmic:
            z, criterion_size, slope = self.v @ inverse_root, float(len(eigenvalues)), np.ones(len(eigenvalues))
        else:
            slope, rotation = np.linalg.eigh((half := inverse_root.T @ self.factor(weights)) @ half.T)
            slope = np.maximum(slope, 0.0)
            slope[: len(slope) - self.rank] = 0.0
            z, criterion_size = self.v @ (inverse_root @ rotation), float(slope.sum())
        if self.limits:
            inverse = inverse_root @ (inverse_root.T @ self.root)
            variances, variance_slopes = (
                (self.root * inverse).sum(axis=0) - (self.prior @ self.root) ** 2,
                -((self.v @ inverse) ** 2),
            )
        values = slope / 2 if self.logarithmic else slope
        return criterion_size, -(z**2) @ slope, z, values, variances, variance_slopes

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
        size, _, _, _, variances, _ = self.local(theta, weights)
        products = INITIAL_GAP * size / (n + limits + len(self.caps))
        slacks = np.maximum(self.caps - self.above.T @ theta, INITIAL_GAP * self.caps)
        level = float(variances.max(initial=0.0)) + INITIAL_GAP * size
        slack = INITIAL_GAP * size / n / theta
        all_slacks, prices = np.append(level - variances, slacks), np.append(weights, products / slacks)
        return Central(theta, slack, size * self.prior, all_slacks, prices, level)

    def neighborhood(self, point: Central) -> _Near:
        """Compute the criterion and the errors of the equations at a point."""
        limits = self.limits
        size, slope, z, values, variances, variance_slopes = self.local(point.theta, point.prices[:limits])
        row_shortfall = 1 - self.columns.T @ point.theta
        slack_error = np.append(point.level - variances, self.caps - self.above.T @ point.theta) - point.limit_slack
        dual = slope + self.columns @ point.rows + self.above @ point.prices[limits:]
        scale = np.append(np.full(limits, size), self.caps)
        feasibility_error = max(
            float(np.abs(row_shortfall).max() / self.caps.min(initial=1.0)),
            float(np.abs(slack_error / scale).max(initial=0.0)),
        )
        gap = point.gap / size
        dual_error = float(np.abs((dual - point.slack) / self.largest_entries).max()) / size
        error = max(gap, dual_error, (feasibility_error - 1e-9) / FEASIBILITY_RTOL)
        return _Near(size, z, values, dual, row_shortfall, slack_error, variance_slopes, gap, error)

    def step(self, point: Central, neighborhood: _Near, accuracy: float) -> Central:
        """Compute the next point by a predictor-corrector step [Mehrotra], toward a gap of at least `accuracy`.

        The gap that a step without centering could reach decides how much the step is centered.
        """
        try:
            system = _System.factored(self, point, neighborhood)
            change = system.change(np.zeros(len(point.theta)), np.zeros(len(point.limit_slack)))
            length, reached = point.next_point(change, self.limits)
            part_left = max((reached.gap / point.gap) ** 3, LEAST_CENTERING)
            goal = max(accuracy, part_left * neighborhood.gap)
            mu = goal * neighborhood.size / (len(point.theta) + len(point.limit_slack))
            part = length**2  # A short step tells little of the second order.
            change = system.change(
                mu - part * change.theta * change.slack, mu - part * change.limit_slack * change.prices
            )
            return point.next_point(change, self.limits)[1]
        except (np.linalg.LinAlgError, ValueError) as error:
            raise SolverError("design for estimation: Newton's method failed; pass another method") from error

    def solution(self, point: Central, central: Central) -> SurveySolution:
        """Build the weights, and multipliers for the kernel centered at p, with the point of all limits."""
        k, limits = len(self.prior), self.limits
        nu = np.zeros((k, k))
        if len(self.caps):
            nu[self.pairs] = point.prices[limits:]
        information = (self.columns * (point.theta / self.mass)[:, None]).T @ self.columns
        kernel = self.kernel(information, point.prices[:limits])
        if self.logarithmic:
            # |J^-1/2 S|^2 / (S.p)^2 is 1 + |K u|^2 for u = S / (S.p) - 1.
            return SurveySolution(point.theta, point.rows - self.prior, nu, kernel, np.ones(1), central)
        row_sums = kernel.sum(axis=1)
        rows = point.rows - 2 * kernel.T @ row_sums + row_sums @ row_sums * self.prior
        return SurveySolution(point.theta, rows, nu, kernel, np.ones(1), central)


def _step_length(*moves: tuple[Array, Array]) -> float:
    """Compute the fraction of a step that keeps all these numbers positive."""
    return min(1.0, *(STEP_FRACTION / max(1e-300, float((-step / value).max(initial=0.0))) for value, step in moves))


@dataclass(frozen=True, eq=False)
class _System:
    """The equations of Newton's method at a point, factored.

    - `root` : (n,) the scale of the columns.
    - `slopes` : (k + m, n) the consumption of rows and limits by each scaled column.
    - `schur` : the factors of the system for the changes of lambda, of the prices, and of the level.
    """

    limits: int
    point: Central
    neighborhood: _Near
    root: Array
    slopes: Array
    hessian: _Hessian
    schur: tuple[Array, npt.NDArray[np.int32]]

    @classmethod
    def factored(cls, program: _Program, point: Central, neighborhood: _Near) -> _System:
        """Build the factored system."""
        k, m, limits = len(program.prior), len(point.limit_slack), program.limits
        root = np.sqrt(point.theta / point.slack)
        slopes = np.empty((k + m, len(root)))
        slopes[:k], slopes[k : k + limits] = program.columns.T, neighborhood.variance_slopes.T
        slopes[k + limits :] = program.above.T
        slopes *= root
        hessian = _Hessian.from_columns(
            neighborhood.z * np.sqrt(root)[:, None], neighborhood.values, program.rank, slopes
        )
        size = k + m + int(limits > 0)
        schur = np.zeros((size, size))
        schur[: k + m, : k + m] = hessian.form
        price_rows = np.arange(k, k + m)
        schur[price_rows, price_rows] += point.limit_slack / point.prices
        if limits:  # the weights of the variances sum to one: the level is their price
            schur[k : k + limits, -1] = schur[-1, k : k + limits] = 1.0
        return cls(limits, point, neighborhood, root, slopes, hessian, scipy.linalg.lu_factor(schur, overwrite_a=True))

    def change(self, products: Array, limit_products: Array) -> Central:
        """Compute the change to these products (n,), (m,) of weights and slacks, and of slacks and prices of limits."""
        point, neighborhood, k, limits = self.point, self.neighborhood, len(self.point.rows), self.limits
        slope = self.root * (products / point.theta - neighborhood.dual)
        halved = self.hessian.halved(slope)
        right_hand_side = self.hessian.values(slope, halved) - np.append(
            neighborhood.short, neighborhood.missing + point.limit_slack - limit_products / point.prices
        )
        if limits:
            right_hand_side = np.append(right_hand_side, 1 - point.prices[:limits].sum())
        solution = scipy.linalg.lu_solve(self.schur, right_hand_side)
        change, d_level = np.asarray(solution[: len(self.slopes)]), float(solution[-1]) if limits else 0.0
        d_theta = self.root * self.hessian.solve(slope, halved, change)
        d_slack = (products - point.slack * d_theta) / point.theta - point.slack
        d_limit_slack = neighborhood.missing - self.slopes[k:] @ (d_theta / self.root)
        d_limit_slack[:limits] += d_level
        return Central(d_theta, d_slack, change[:k], d_limit_slack, change[k:], d_level)


@dataclass(frozen=True, eq=False)
class _Hessian:
    """The Hessian of a step, I + Phi Phi^T, for columns that are scaled so that their slacks count 1.

    - `products` : Phi^T (q, n); None if Phi Phi^T is factored.
    - `rows` : (r, n) vectors.
    - `factor` : the Cholesky factor of I + Phi^T Phi or of I + Phi Phi^T.
    - `half` : the solution of a system of the factor for Phi^T times the vectors, or for the vectors.
    - `form` : (r, r) the values of the inverse Hessian between the vectors.
    """

    products: Array | None
    rows: Array
    factor: Array
    half: Array
    form: Array

    @classmethod
    def from_columns(cls, z: Array, values: Array, rank: int, rows: Array) -> _Hessian:
        """Build the Hessian from d = `values` (k,); only the last `rank` are positive."""
        (n, k), r = z.shape, len(rows)
        q = k * (k + 1) // 2 - (k - rank) * (k - rank + 1) // 2
        # Operations: Phi Phi^T has more that are limited by memory.
        if n**3 / 2 + n**2 * (3 * k + r) < n * (q + r) ** 2 + q**3 / 3 + q**2 * r:
            weighted = z * np.sqrt(2 * values)
            matrix = (z @ z.T) * (weighted @ weighted.T)
            matrix[np.diag_indices(n)] += 1.0
            factor = scipy.linalg.cholesky(matrix.T, lower=True, overwrite_a=True)
            half = scipy.linalg.solve_triangular(factor, rows.T, lower=True)
            return cls(None, rows, factor, half, half.T @ half)
        z_rows, products, start = np.ascontiguousarray(z.T), np.empty((q + r, n)), 0
        for j in range(k - rank, k):
            weights = np.sqrt(2 * (values[: j + 1] + values[j]))
            weights[-1] /= np.sqrt(2)
            np.multiply(z_rows[: j + 1], z_rows[j], out=products[start : start + j + 1])
            products[start : start + j + 1] *= weights[:, None]
            start += j + 1
        products[q:] = rows
        gram = products @ products.T
        matrix = gram[:q, :q].copy()
        matrix[np.diag_indices(q)] += 1.0
        factor = scipy.linalg.cholesky(matrix.T, lower=True, overwrite_a=True)
        half = scipy.linalg.solve_triangular(factor, gram[q:, :q].T, lower=True)
        return cls(products[:q], rows, factor, half, gram[q:, q:] - half.T @ half)

    def halved(self, vector: Array) -> Array:
        """Solve the system of the factor for a vector (n,), as `half` does for the vectors of `rows`."""
        right_hand_side = vector if self.products is None else self.products @ vector
        return np.asarray(scipy.linalg.solve_triangular(self.factor, right_hand_side, lower=True))

    def values(self, vector: Array, halved: Array) -> Array:
        """Compute (r,) the values of the inverse Hessian between `rows` and a vector (n,)."""
        values = halved @ self.half
        return np.asarray(values if self.products is None else self.rows @ vector - values)

    def solve(self, vector: Array, halved: Array, weights: Array) -> Array:
        """Solve for (n,) the inverse Hessian times a vector (n,) less the sum of `rows` with `weights` (r,)."""
        solution = scipy.linalg.solve_triangular(self.factor, halved - self.half @ weights, lower=True, trans=1)
        if self.products is None:
            return np.asarray(solution)
        return np.asarray(vector - weights @ self.rows - solution @ self.products)
