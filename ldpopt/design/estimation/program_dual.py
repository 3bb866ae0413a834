"""Weighted variances of an estimate under epsilon-LDP without pricing: a bound, and the best mixture of given columns.

With W = F F^T, F diagonal, every channel has tr(W J^-1) >= 2 tr (F M F)^(1/2) - tr(M J). Let

    M = diag(d) + a p^T + p a^T - c d d^T / |d|,    |d| = sum d > 0,  d >= 0,  c = (E + 1)^2 / (4 E),  E = exp(epsilon).

For every column S with entries in [1, E], S_x^2 <= (E + 1) S_x - E, so that S^T M S <= 2 (a.S) (p.S) minus a square. So
the row multipliers 2 a cover all columns at once, and

    tr(W J^-1) >= (tr (F M F)^(1/2))^2 / (2 sum a)

for every M of this form, by Cauchy and Schwarz. Newton's method computes the best M in (d, a), with a barrier log det M
whose weight goes to zero. J0 = F (F M F)^(-1/2) F is the information of a channel that would reach the bound. The
relaxation of `estimation.relaxation` proves the bound, with d as its squares.

`mirror_descent` computes the best mixture of given columns for tr(W J^-1), by entropic mirror descent with exact rows.
The columns are Y = S / (S.p), with probabilities w. The rows sum to one where sum w Y = 1, and the information is J =
sum w Y Y^T. With W = F F^T, the derivative of tr(W J^-1) by w_y is -|F^T J^-1 Y_y|^2. A step multiplies each w_y by the
exponential of that, with a correction that preserves sum w Y. The remainder, r = sum w Y - 1, is removed by w_y (1 -
Y_y.J^-1 r), which makes the rows exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.design.kernel.sets import Members, balanced_sets
from ldpopt.design.solve import INTERIOR, solve
from ldpopt.errors import SolverError
from ldpopt.values.deadline import UNLIMITED, Deadline
from ldpopt.values.distribution import Array

MAX_NEWTON_STEPS = 80  # Half of them are enough in practice.


@dataclass(frozen=True, eq=False)
class SurveyDual:
    """The numbers of a bound without pricing.

    They are d (k,) and a (k,), the form M (k, k), its root (F M F)^(1/2) (k, k) and the target J0 (k, k).

    prior, ratio, factor : p (k,), E, and the diagonal of F (k,), which determine them.
    """

    prior: Array
    ratio: float
    factor: Array
    squares: Array
    shifts: Array
    form: Array
    root: Array
    target: Array

    @property
    def bound(self) -> float:
        """The bound on tr(W J^-1)."""
        return float(np.trace(self.root) ** 2 / (2 * self.shifts.sum()))

    def draw_sets(self, count: int, rng: np.random.Generator, eta: float | None = None) -> Members:
        """Draw up to `count` sets (n, k) near the best ones.

        eta : a cap on total variation, which makes sets smaller.
        """
        return balanced_sets(self.prior, self.squares, self.target, self.ratio, count, rng, eta)

    def columns(self, sets: Members) -> tuple[Array, Array]:
        """Compute columns (n, k), each with S.p = 1, and the masses (n,) of the patterns."""
        entries = np.where(sets, self.ratio, 1.0)
        masses = entries @ self.prior
        return entries / masses[:, None], masses


def survey_dual(prior: Array, ratio: float, factor: Array) -> SurveyDual:
    """Compute the best bound for a positive `prior` (k,), and F = diag(`factor`).

    The columns have entries from 1 to `ratio`.
    """
    search = _Search(prior, factor, ratio)
    x = search.start()
    point = search.evaluate(x)
    if point is None:
        raise SolverError("bound of a survey design: no multipliers to begin with were found")
    barrier = 0.02 * point.trace / len(prior)
    for _ in range(MAX_NEWTON_STEPS):
        slope, curvature = search.slopes(x, point, barrier)
        step = np.linalg.solve(curvature, slope)
        expected_gain = float(slope @ step)
        step_length, next_point = 1.0, None
        objective = point.height(barrier)
        while step_length > 1e-8:
            candidate = search.evaluate(x + step_length * step)
            if candidate is not None and candidate.height(
                barrier
            ) >= objective + 1e-3 * step_length * expected_gain - 1e-13 * abs(objective):
                next_point = candidate
                break
            step_length /= 2
        if next_point is not None:
            x, point = x + step_length * step, next_point
        if next_point is None or (step_length > 0.9 and expected_gain < max(0.3 * barrier, 1e-12 * abs(objective))):
            if barrier == 0:
                break
            barrier = 0.1 * barrier if barrier > 1e-7 * abs(objective) / len(prior) else 0.0
    return search.dual(x, point)


@dataclass(frozen=True, eq=False)
class _DualPoint:
    """The eigenvalues of F M F, its eigenvectors, and 2 sum a."""

    values: Array
    vectors: Array
    cost: float

    @property
    def trace(self) -> float:
        return float(np.sqrt(self.values).sum())

    def height(self, barrier: float) -> float:
        """Compute the objective, with a barrier of this weight."""
        return 2 * self.trace - self.cost + barrier * float(np.log(self.values).sum())


@dataclass(frozen=True, eq=False)
class _Search:
    """Newton's method over x = (d, a)."""

    prior: Array
    factor: Array
    ratio: float

    @property
    def bend(self) -> float:
        """The number c."""
        return (self.ratio + 1) ** 2 / (4 * self.ratio)

    def form(self, x: Array) -> Array:
        """Compute M."""
        d, a = np.split(x, 2)
        shift_form = np.outer(a, self.prior)
        return np.asarray(np.diag(d) + shift_form + shift_form.T - self.bend / d.sum() * np.outer(d, d))

    def evaluate(self, x: Array) -> _DualPoint | None:
        """Compute the point; None if M is not positive definite."""
        k = len(self.prior)
        if not (np.isfinite(x).all() and x[:k].min() > 0):
            return None
        eigenvalues, eigenvectors = np.linalg.eigh(self.form(x) * self.factor[:, None] * self.factor)
        return _DualPoint(eigenvalues, eigenvectors, 2 * float(x[k:].sum())) if eigenvalues[0] > 0 else None

    def start(self) -> Array:
        """Find the best x of a grid of simple ones.

        It is scaled so that its objective is the bound that it proves.
        """
        k, p = len(self.prior), self.prior
        shift_parts = np.array([0.0, *np.geomspace(0.3, 1000, 9), *(self.bend * k * np.geomspace(0.3, 30, 5))])
        uniform_parts, prior_parts = np.repeat(np.geomspace(0.1, 5, 6), len(shift_parts)), np.tile(shift_parts, 6)
        # At a weight of 1 a large enough `prior_parts` will do.
        for prior_weight in (0.0, 0.3, 0.6, 0.8, 0.9, 0.97, 0.99, 0.999, 1.0):
            d = (1 - prior_weight) + prior_weight * k * p
            a = uniform_parts[:, None] * d + prior_parts[:, None] * p
            shift_forms = a[:, :, None] * p
            forms = shift_forms + shift_forms.transpose(0, 2, 1) + np.diag(d) - self.bend / d.sum() * np.outer(d, d)
            eigenvalues = np.linalg.eigvalsh(forms * np.outer(self.factor, self.factor))
            costs = 2 * a.sum(axis=1)
            is_valid = (eigenvalues[:, 0] > 0) & (costs > 0)
            if is_valid.any():
                eigenvalues, a, costs = eigenvalues[is_valid], a[is_valid], costs[is_valid]
                traces = np.sqrt(eigenvalues).sum(axis=1)
                scales, bounds = (traces / costs) ** 2, traces**2 / costs
                heights = bounds + 0.3 * bounds / k * np.log(scales[:, None] * eigenvalues[:, :2]).sum(axis=1)
                for place in np.argsort(-heights):
                    x = np.asarray(scales[place] * np.concatenate([d, a[place]]))
                    if self.evaluate(x) is not None:  # It may differ by the rounding of the eigenvalues.
                        return x
        return np.concatenate([np.ones(k), p])

    def slopes(self, x: Array, point: _DualPoint, barrier: float) -> tuple[Array, Array]:
        """Compute the gradient (2k,) and minus the Hessian (2k, 2k)."""
        k, p = len(self.prior), self.prior
        d, total = x[:k], float(x[:k].sum())
        roots = np.sqrt(point.values)
        rotated_factor = self.factor[:, None] * point.vectors
        slope = (rotated_factor * (1 / roots + barrier / point.values)) @ rotated_factor.T
        slope_d = slope @ d
        gradient = np.concatenate([
            np.diag(slope) - self.bend * (2 * slope_d / total - d @ slope_d / total**2),
            2 * slope @ p - 2,
        ])  # fmt: skip
        # The directions in the eigenbasis, upper triangle, times the root of the second derivative there.
        left, right = np.triu_indices(k)
        second_derivative = 1 / (roots[left] * roots[right] * (roots[left] + roots[right]))
        second_derivative = second_derivative + barrier / (point.values[left] * point.values[right])
        weight = np.sqrt(second_derivative * np.where(left == right, 1.0, 2.0))
        rotated_d, rotated_p = rotated_factor.T @ d, rotated_factor.T @ p
        scale = self.bend / total
        directions = np.empty((2 * k, len(left)))
        directions[:k] = rotated_factor[:, left] * rotated_factor[:, right] + scale / total * (
            rotated_d[left] * rotated_d[right]
        )
        directions[:k] -= scale * (
            rotated_factor[:, left] * rotated_d[right] + rotated_factor[:, right] * rotated_d[left]
        )
        directions[k:] = rotated_factor[:, left] * rotated_p[right] + rotated_factor[:, right] * rotated_p[left]
        directions *= weight
        curvature = directions @ directions.T
        # The curvature of - c d d^T / |d|.
        centering = np.eye(k) - np.outer(d, np.ones(k)) / total
        curvature[:k, :k] += 2 * scale * centering.T @ slope @ centering
        curvature[np.diag_indices(2 * k)] += 1e-13 * np.trace(curvature) / (2 * k)
        return gradient, curvature

    def dual(self, x: Array, point: _DualPoint) -> SurveyDual:
        """Build the dual at a point."""
        d, a = np.split(x, 2)
        roots = np.sqrt(point.values)
        root = (point.vectors * roots) @ point.vectors.T
        rotated_factor = self.factor[:, None] * point.vectors
        target = (rotated_factor / roots) @ rotated_factor.T
        return SurveyDual(self.prior, self.ratio, self.factor, d, a, self.form(x), root, target)


BALANCING_STEPS = 12  # First steps, which only bring the rows near to one.
STEPS_PER_CHECK = 5  # Steps between two checks of the value.
STEP_SIZE = 1.5  # In units of the inverse of the columns' average slope.
MOMENTUM_FRACTION = 0.85  # The repeated fraction of the last step; it saves four fifths of the steps.


def mirror_descent(
    columns: Array, factor: Array, steps: int, gain: float, enough_value: float = 0.0, deadline: Deadline = UNLIMITED
) -> Array | None:
    """Compute (n,) probabilities of `columns` (n, k), each with S.p = 1.

    It is None if their rows cannot be made one.

    - `factor` : (k,) the diagonal of F.
    - `steps` : the largest number of steps.
    - `gain` : the search ends if the relative progress between two checks is smaller.
    - `enough_value` : the search ends if tr(W J^-1) is at most this.
    """
    n = len(columns)
    logs, best = np.full(n, -np.log(n)), np.inf
    weights: Array | None = None
    for _ in range(BALANCING_STEPS):
        w = np.exp(logs)
        row_error = columns.T @ w - 1
        if np.abs(row_error).max() < 1e-9:
            break
        move = columns @ np.linalg.lstsq((columns * w[:, None]).T @ columns, row_error, rcond=1e-13)[0]
        logs = logs - min(1.0, 2 / float(np.abs(move).max())) * move
    pace, log_step = STEP_SIZE, np.zeros(n)
    for step in deadline.rounds(range(steps)):
        w = np.exp(logs)
        inverse = _inverse(columns, w)
        if inverse is None:
            break
        row_error = columns.T @ w - 1
        if step % STEPS_PER_CHECK == 0:
            exact_weights = w * (1 - columns @ (inverse @ row_error))
            variances = _inverse(columns, exact_weights)
            value = np.inf if variances is None else float(np.diag(variances) @ factor**2)
            if value < best * (1 - gain):
                best, weights, last_logs = value, np.asarray(exact_weights), logs
                if best <= enough_value:
                    break
            elif value < best:
                return np.asarray(exact_weights)
            elif weights is not None:  # Too far: back, and slower.
                logs, pace, log_step = last_logs, pace / 2, np.zeros(n)
                if pace < 0.1:
                    break
                continue
        scores = columns @ inverse * factor
        slopes = np.einsum("ij,ij->i", scores, scores)
        step_length = pace / float(w @ slopes)
        correction = inverse @ (columns.T @ (w * step_length * slopes) + row_error)
        log_step = np.clip(step_length * slopes - columns @ correction, -1.0, 1.0) + MOMENTUM_FRACTION * log_step
        logs = logs + log_step
    return weights


def _inverse(columns: Array, weights: Array) -> Array | None:
    """Invert sum w Y Y^T; None if it has no inverse, or a weight is negative."""
    if not weights.min() >= 0:
        return None
    weighted_columns = columns * np.sqrt(weights)[:, None]
    try:
        inverse = np.linalg.inv(weighted_columns.T @ weighted_columns)  # Of a square: half of the work.
    except np.linalg.LinAlgError:
        return None
    return np.asarray(inverse) if np.isfinite(inverse).all() and np.diag(inverse).min() > 0 else None


def best_squares(gram: Array, rows: Array, prior: Array, ratio: float) -> Array:
    """Compute d (k,) that makes the form of `estimation.branches` convex.

    Its least value over real numbers is as large as possible, by a semidefinite program [Shor].

    - `gram` : K^T K (k, k).
    - `rows` : lambda (k,).
    - `ratio` : E.
    """
    import cvxpy as cp

    k, t = len(rows), 1 / (ratio - 1)
    price_form = np.outer(prior, rows)
    form, linear, constant = (price_form + price_form.T) / 2 - gram, t * (rows + rows.sum() * prior), t * t * rows.sum()
    scale = float(np.abs(np.diag(form)).mean())
    d, minimum = cp.Variable(k), cp.Variable()
    linear_part: Any = cp.reshape((linear / scale - d) / 2, (k, 1), order="C")
    constant_part = cp.reshape(constant / scale - minimum, (1, 1), order="C")
    cone = cp.bmat([[form / scale + cp.diag(d), linear_part], [linear_part.T, constant_part]]) >> 0
    solve(cp.Problem(cp.Maximize(minimum), [cone]), "squares of a search over sets", INTERIOR)
    squares = np.asarray(d.value) * scale
    shortfall = -float(np.linalg.eigvalsh(form + np.diag(squares))[0])
    return np.asarray(squares + max(shortfall, 0.0) + 1e-9 * scale)
