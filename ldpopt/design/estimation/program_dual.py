"""Weighted variances of an estimate under epsilon-LDP without pricing: a bound, and the best mixture of given columns.

With W = F F^T, F diagonal, every channel has tr(W J^-1) >= 2 tr (F M F)^(1/2) - tr(M J). Let

    M = diag(d) + a p^T + p a^T - c d d^T / |d|,    |d| = sum d > 0,  d >= 0,  c = (E + 1)^2 / (4 E),  E = exp(epsilon).

For every column S with entries in [1, E], S_x^2 <= (E + 1) S_x - E, so that S^T M S <= 2 (a.S) (p.S) minus a square. So
the row multipliers 2 a pay for all columns at once, and

    tr(W J^-1) >= (tr (F M F)^(1/2))^2 / (2 sum a)

for every M of this form, by Cauchy and Schwarz. The best M is found by Newton's method in (d, a), with a barrier
log det M whose weight goes to zero. J0 = F (F M F)^(-1/2) F is the information of a channel that would reach the bound.
The relaxation of `estimation.relaxation` proves the bound, with d as its squares.

`mixture` finds the best mixture of given columns for tr(W J^-1), by entropic mirror descent with exact rows. Columns
Y = S / (S.p) with probabilities w have rows that sum to one where sum w Y = 1, and the information is J = sum w Y Y^T.
With W = F F^T, the derivative of tr(W J^-1) by w_y is -|F^T J^-1 Y_y|^2. A step multiplies each w_y by the exponential
of that, with a correction that keeps sum w Y where it is. What remains, r = sum w Y - 1, is removed by
w_y (1 - Y_y.J^-1 r), which makes the rows exact.
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

STEPS = 80  # The most Newton steps; half of them are enough in practice


@dataclass(frozen=True, eq=False)
class SurveyDual:
    """d (k,) and a (k,), the form M (k, k), its root (F M F)^(1/2) (k, k) and the target J0 (k, k).

    prior, ratio, factor : p (k,), E, and the diagonal of F (k,), for which they are.
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
    def least(self) -> float:
        """The bound on tr(W J^-1)."""
        return float(np.trace(self.root) ** 2 / (2 * self.shifts.sum()))

    def drawn(self, count: int, rng: np.random.Generator, eta: float | None = None) -> Members:
        """(n, k) up to `count` sets near the best ones. eta : a cap on total variation, which makes sets smaller."""
        return balanced_sets(self.prior, self.squares, self.target, self.ratio, count, rng, eta)

    def columns(self, sets: Members) -> tuple[Array, Array]:
        """Columns (n, k), each with S.p = 1, and the masses (n,) by which the patterns of the sets were divided."""
        values = np.where(sets, self.ratio, 1.0)
        mass = values @ self.prior
        return values / mass[:, None], mass


def survey_dual(prior: Array, ratio: float, factor: Array) -> SurveyDual:
    """The best bound for a positive `prior` (k,), columns with entries from 1 to `ratio`, and F = diag(`factor`)."""
    search = _Search(prior, factor, ratio)
    x = search.start()
    point = search.at(x)
    if point is None:
        raise SolverError("bound of a survey design: no multipliers to begin with were found")
    barrier = 0.02 * point.trace / len(prior)
    for _ in range(STEPS):
        slope, curve = search.slopes(x, point, barrier)
        step = np.linalg.solve(curve, slope)
        promised = float(slope @ step)
        length, moved = 1.0, None
        height = point.height(barrier)
        while length > 1e-8:
            new = search.at(x + length * step)
            if new is not None and new.height(barrier) >= height + 1e-3 * length * promised - 1e-13 * abs(height):
                moved = new
                break
            length /= 2
        if moved is not None:
            x, point = x + length * step, moved
        if moved is None or (length > 0.9 and promised < max(0.3 * barrier, 1e-12 * abs(height))):
            if barrier == 0:
                break
            barrier = 0.1 * barrier if barrier > 1e-7 * abs(height) / len(prior) else 0.0
    return search.dual(x, point)


@dataclass(frozen=True, eq=False)
class _At:
    """The eigenvalues of F M F, its eigenvectors, and 2 sum a."""

    values: Array
    vectors: Array
    cost: float

    @property
    def trace(self) -> float:
        return float(np.sqrt(self.values).sum())

    def height(self, barrier: float) -> float:
        """The objective, with a barrier of this weight."""
        return 2 * self.trace - self.cost + barrier * float(np.log(self.values).sum())


@dataclass(frozen=True, eq=False)
class _Search:
    """Newton's method over x = (d, a)."""

    prior: Array
    factor: Array
    ratio: float

    @property
    def bend(self) -> float:
        """c."""
        return (self.ratio + 1) ** 2 / (4 * self.ratio)

    def form(self, x: Array) -> Array:
        """M."""
        d, a = np.split(x, 2)
        shift = np.outer(a, self.prior)
        return np.asarray(np.diag(d) + shift + shift.T - self.bend / d.sum() * np.outer(d, d))

    def at(self, x: Array) -> _At | None:
        """The point, or None where M is not positive definite."""
        k = len(self.prior)
        if not (np.isfinite(x).all() and x[:k].min() > 0):
            return None
        values, vectors = np.linalg.eigh(self.form(x) * self.factor[:, None] * self.factor)
        return _At(values, vectors, 2 * float(x[k:].sum())) if values[0] > 0 else None

    def start(self) -> Array:
        """The best x of a grid of simple ones, scaled so that its objective is the bound that it proves."""
        k, best, best_x = len(self.prior), -np.inf, np.concatenate([np.ones(len(self.prior)), self.prior])
        for share in (0.0, 0.3, 0.6, 0.8, 0.9, 0.97, 0.99, 0.999, 1.0):  # at 1 a large enough `own` will do
            d = (1 - share) + share * k * self.prior
            for even in np.geomspace(0.1, 5, 6):
                for own in (0.0, *np.geomspace(0.3, 1000, 9), *(self.bend * k * np.geomspace(0.3, 30, 5))):
                    x = np.concatenate([d, even * d + own * self.prior])
                    point = self.at(x)
                    if point is None or not point.cost > 0:
                        continue
                    scale, bound = (point.trace / point.cost) ** 2, point.trace**2 / point.cost
                    height = bound + 0.3 * bound / k * float(np.log(scale * point.values[:2]).sum())
                    if height > best:
                        best, best_x = height, scale * x
            if best > -np.inf:
                break
        return best_x

    def slopes(self, x: Array, point: _At, barrier: float) -> tuple[Array, Array]:
        """The gradient (2k,) and minus the Hessian (2k, 2k)."""
        k, p = len(self.prior), self.prior
        d, total = x[:k], float(x[:k].sum())
        roots = np.sqrt(point.values)
        turned = self.factor[:, None] * point.vectors
        slope = (turned * (1 / roots + barrier / point.values)) @ turned.T
        on_d = slope @ d
        gradient = np.concatenate([
            np.diag(slope) - self.bend * (2 * on_d / total - d @ on_d / total**2),
            2 * slope @ p - 2,
        ])  # fmt: skip
        # The directions in the eigenbasis, upper triangle, times the root of the second derivative there.
        left, right = np.triu_indices(k)
        second = 1 / (roots[left] * roots[right] * (roots[left] + roots[right]))
        second = second + barrier / (point.values[left] * point.values[right])
        weight = np.sqrt(second * np.where(left == right, 1.0, 2.0))
        at_d, at_p = turned.T @ d, turned.T @ p
        share = self.bend / total
        moves = np.empty((2 * k, len(left)))
        moves[:k] = turned[:, left] * turned[:, right] + share / total * (at_d[left] * at_d[right])
        moves[:k] -= share * (turned[:, left] * at_d[right] + turned[:, right] * at_d[left])
        moves[k:] = turned[:, left] * at_p[right] + turned[:, right] * at_p[left]
        moves *= weight
        curve = moves @ moves.T
        # The curvature of - c d d^T / |d|.
        away = np.eye(k) - np.outer(d, np.ones(k)) / total
        curve[:k, :k] += 2 * share * away.T @ slope @ away
        curve[np.diag_indices(2 * k)] += 1e-13 * np.trace(curve) / (2 * k)
        return gradient, curve

    def dual(self, x: Array, point: _At) -> SurveyDual:
        """The dual at a point."""
        d, a = np.split(x, 2)
        roots = np.sqrt(point.values)
        root = (point.vectors * roots) @ point.vectors.T
        turned = self.factor[:, None] * point.vectors
        target = (turned / roots) @ turned.T
        return SurveyDual(self.prior, self.ratio, self.factor, d, a, self.form(x), root, target)


BALANCED = 12  # The number of first steps, which only bring the rows near to one
PATIENCE = 5  # The number of steps between two looks at the value reached
PACE = 1.5  # The length of a step, in units of the inverse of the columns' average slope
HEAVY = 0.85  # How much of the last step is taken again: a fifth of the steps are enough


def mixture(
    columns: Array, factor: Array, steps: int, gain: float, enough: float = 0.0, deadline: Deadline = UNLIMITED
) -> Array | None:
    """(n,) probabilities of `columns` (n, k), each with S.p = 1; None where their rows cannot be made one.

    factor : (k,) the diagonal of F. steps : the most steps. It ends earlier if the relative progress between two looks
    is less than `gain`, or if tr(W J^-1) is at most `enough`.
    """
    n = len(columns)
    logs, best = np.full(n, -np.log(n)), np.inf
    weights: Array | None = None
    for _ in range(BALANCED):
        w = np.exp(logs)
        off = columns.T @ w - 1
        if np.abs(off).max() < 1e-9:
            break
        move = columns @ np.linalg.lstsq((columns * w[:, None]).T @ columns, off, rcond=1e-13)[0]
        logs = logs - min(1.0, 2 / float(np.abs(move).max())) * move
    pace, moved = PACE, np.zeros(n)
    for step in deadline.rounds(range(steps)):
        w = np.exp(logs)
        inverse = _inverse(columns, w)
        if inverse is None:
            break
        off = columns.T @ w - 1
        if step % PATIENCE == 0:
            exact = w * (1 - columns @ (inverse @ off))
            variances = _inverse(columns, exact)
            reached = np.inf if variances is None else float(np.diag(variances) @ factor**2)
            if reached < best * (1 - gain):
                best, weights, last_logs = reached, np.asarray(exact), logs
                if best <= enough:
                    break
            elif reached < best:
                return np.asarray(exact)
            elif weights is not None:  # too far: back, and slower
                logs, pace, moved = last_logs, pace / 2, np.zeros(n)
                if pace < 0.1:
                    break
                continue
        scored = columns @ inverse * factor
        worth = np.einsum("ij,ij->i", scored, scored)
        stride = pace / float(w @ worth)
        kept = inverse @ (columns.T @ (w * stride * worth) + off)
        moved = np.clip(stride * worth - columns @ kept, -1.0, 1.0) + HEAVY * moved
        logs = logs + moved
    return weights


def _inverse(columns: Array, weights: Array) -> Array | None:
    """The inverse of sum w Y Y^T; None where it has none, or a weight is negative."""
    if not weights.min() >= 0:
        return None
    rooted = columns * np.sqrt(weights)[:, None]
    try:
        inverse = np.linalg.inv(rooted.T @ rooted)  # of a square: half of the work
    except np.linalg.LinAlgError:
        return None
    return np.asarray(inverse) if np.isfinite(inverse).all() and np.diag(inverse).min() > 0 else None


def best_squares(gram: Array, rows: Array, prior: Array, ratio: float) -> Array:
    """d (k,) with which the form of `estimation.branches` is convex, and its least value over real numbers the largest.

    gram : K^T K (k, k). rows : lambda (k,). ratio : E. A semidefinite program [Shor].
    """
    import cvxpy as cp

    k, t = len(rows), 1 / (ratio - 1)
    paid = np.outer(prior, rows)
    form, linear, constant = (paid + paid.T) / 2 - gram, t * (rows + rows.sum() * prior), t * t * rows.sum()
    scale = float(np.abs(np.diag(form)).mean())
    d, least = cp.Variable(k), cp.Variable()
    edge: Any = cp.reshape((linear / scale - d) / 2, (k, 1), order="C")
    corner = cp.reshape(constant / scale - least, (1, 1), order="C")
    cone = cp.bmat([[form / scale + cp.diag(d), edge], [edge.T, corner]]) >> 0
    solve(cp.Problem(cp.Maximize(least), [cone]), "squares of a search over sets", INTERIOR)
    squares = np.asarray(d.value) * scale
    below = -float(np.linalg.eigvalsh(form + np.diag(squares))[0])
    return np.asarray(squares + max(below, 0.0) + 1e-9 * scale)
