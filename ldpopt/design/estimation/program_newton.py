"""The program of `estimation.program` by Newton's method on weights and prices together.

    min  criterion(J)   s.t.  sum_y theta_y S_y = 1,  theta >= 0,   J = sum_y theta_y S_y S_y^T / (S_y . p)
                              sum_y theta_y (S_y[x] - S_y[x'])_+ <= eta   for x < x', under a cap

The largest variance is the least level with (F^T J^-1 F)[j,j] - (p.F_j)^2 <= level for every j, where F is the identity
for the shares themselves. These limits have prices, like the caps of the pairs. With v_y = S_y / (S_y . p)^(1/2) and
W = F F^T, the slope of tr(W J^-1) in theta_y is -|F^T J^-1 v_y|^2. In coordinates where J is the identity and W has the
diagonal d, the Hessian is Phi Phi^T with

    Phi_y,ij = z_i z_j (d_i + d_j)^(1/2),    z = v_y in these coordinates,  i <= j,

where products with i < j count twice, and those with d_i = d_j = 0 are left out: F may have few columns. For
-log det J the factor with d is left out; for the largest variance, W = F diag(the multipliers of the limits) F^T.
Phi has at most k (k + 1) / 2 columns, so that a step costs one product of a thin matrix with itself, however
many columns S there are. The search can start from the solution for fewer columns: columns that join get little weight
and much slack, and about ten steps bring all of them back to the central path.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.linalg

from ldpopt.design.estimation.program import FisherSolution
from ldpopt.design.utilities.criteria import MVOptimal
from ldpopt.design.utilities.criterion import Criterion, LinearCriterion, differences
from ldpopt.errors import SolverError
from ldpopt.values.distribution import Array

STEPS = 80  # The most steps; about 20 are enough
REACH = 0.99  # A step goes at most this share of the way to where a weight, a slack, a room or a price becomes zero
IDLE = 8  # Steps without gain after which rounding is taken to be in the way
STRICT = 0.01  # Rows and limits may be missed by this share of the gap and one part in 10^9, relatively
FIRST = 0.1  # The gap that is aimed at first, relative to the criterion
MODEST = 0.1  # The weight of a column that joins, in units of a usual one


@dataclass(frozen=True, eq=False)
class Central:
    """A point near the central path.

    theta, slack : (n,) the weights and the slacks of the columns. rows : lambda (k,). room, prices : (m,) of all
    limits, first those of single variances, then those of pairs. level : the limit of the single variances.
    """

    theta: Array
    slack: Array
    rows: Array
    room: Array
    prices: Array
    level: float

    def joined(self, kept: npt.NDArray[np.bool_], more: int) -> Central:
        """The point with the columns `kept` alone, and after them `more` new ones."""
        product = float(self.theta @ self.slack + self.room @ self.prices) / (len(self.theta) + len(self.room))
        usual = min(product / float(np.median(self.slack[kept])), float(np.median(self.theta[kept])))
        theta = np.append(self.theta[kept], np.full(more, MODEST * usual))
        slack = np.append(self.slack[kept], np.full(more, product / (MODEST * usual)))
        return Central(theta, slack, self.rows, self.room, self.prices, self.level)


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
    """The best weights of `columns` (n, k), whose mixtures include a constant, to a relative `accuracy`.

    criterion : a sum of variances, the largest variance, or the log generalised variance. The columns tell all shares.
    eta : a cap on total variation. start : the point to begin at, with as many columns.
    """
    program = _Program(criterion, prior, columns, eta)
    point, goal = program.start() if start is None else start, None
    best, least, idle = point, np.inf, 0
    for _ in range(STEPS):
        near = program.near(point)
        if near.off < least:
            best, least, idle = point, near.off, 0
        elif near.gap <= 1.5 * accuracy:  # rounding may lead astray at the end
            idle += 1
        if least <= 1.5 * accuracy or idle > IDLE:
            break
        point, length = program.step(point, near, max(accuracy, near.gap if goal is None else goal))
        goal = (0.1 if length > 0.9 else 0.3 if length > 0.5 else 0.8) * near.gap
    return program.solution(best)


@dataclass(frozen=True, eq=False)
class _Near:
    """The criterion near a point (`_Program.local`), and how far the point is from meeting its equations.

    dual : (n,) the slacks that the prices imply. short : (k,) what the row sums lack. missing : (m,) the room that the
    limits leave, less the point's. used : (n, m) what the columns use of the limits. gap : relative to the criterion.
    off : the largest of the gap and of the relative errors, where errors of rows and limits count 1/`STRICT` times.
    """

    size: float
    products: Array
    dual: Array
    short: Array
    missing: Array
    used: Array
    gap: float
    off: float


class _Program:
    """Columns S (n, k), what they use of the caps (n, pairs), and the criterion over v = S / (S . p)^(1/2)."""

    def __init__(self, criterion: Criterion, prior: Array, columns: Array, eta: float | None) -> None:
        n, k = columns.shape
        self.pairs = np.triu_indices(k, 1)
        x, other = self.pairs
        capped = eta is not None
        self.columns, self.prior, self.mass, self.most = columns, prior, columns @ prior, columns.max(axis=1)
        self.above = np.maximum(columns[:, x] - columns[:, other], 0.0) if capped else np.zeros((n, 0))
        self.caps = np.full(self.above.shape[1], eta if capped else 1.0)
        self.logarithmic = criterion.logarithmic
        self.root = criterion.factor(k) if isinstance(criterion, LinearCriterion | MVOptimal) else np.eye(k)
        self.v, self.limits = columns / np.sqrt(self.mass)[:, None], self.root.shape[1] if criterion.limited else 0
        self.rank = int(np.linalg.matrix_rank(self.root)) if criterion.limited else self.root.shape[1]
        left, right = np.triu_indices(k)
        used = right >= k - self.rank
        self.left, self.right = left[used], right[used]
        self.twice = np.where(self.left == self.right, 1.0, 2.0)

    def local(self, theta: Array, weights: Array) -> tuple[float, Array, Array, Array, Array]:
        """The criterion at weights `theta` (n,) of the columns and `weights` (l,) of the single variances.

        Its size, -slope . theta; its slope (n,); Phi (n, k (k + 1) / 2); and the single variances (l,) with their
        slopes (n, l), where l = k for the largest variance and 0 for other criteria.
        """
        information = (self.v * theta[:, None]).T @ self.v
        values, vectors = np.linalg.eigh(information)
        if not values[0] > 0:
            raise SolverError("design for estimation: the columns leave some share unknown; pass another method")
        root = vectors / np.sqrt(values)
        each, by = np.zeros(0), np.zeros((len(self.v), 0))
        if self.logarithmic:
            z, size, slope, twice = self.v @ root, float(len(values)), np.ones(len(values)), self.twice
        else:
            slope, turn = np.linalg.eigh((half := root.T @ self.factor(weights)) @ half.T)
            slope = np.maximum(slope, 0.0)
            slope[: len(slope) - self.rank] = 0.0
            z, size = self.v @ (root @ turn), float(slope.sum())
            twice = self.twice * (slope[self.left] + slope[self.right])
        if self.limits:
            inverse = root @ (root.T @ self.root)
            each, by = (self.root * inverse).sum(axis=0) - (self.prior @ self.root) ** 2, -((self.v @ inverse) ** 2)
        products = z[:, self.left] * z[:, self.right] * np.sqrt(twice)
        return size, -(z**2) @ slope, products, each, by

    def factor(self, weights: Array) -> Array:
        """F, which for the largest variance is that of its weights."""
        return self.root * np.sqrt(weights) if self.limits else self.root

    def kernel(self, information: Array, weights: Array) -> Array:
        """K (r, k) for which |K S|^2 / (S . p) is minus the slope; for `DOptimal`, for centred columns: |K u|^2."""
        if not self.logarithmic:
            return np.asarray(self.factor(weights).T @ np.linalg.inv(information))
        t = differences(len(information))
        values, vectors = np.linalg.eigh(t.T @ information @ t)
        return np.asarray((vectors / np.sqrt(values)).T @ t.T)

    def start(self) -> Central:
        """Equal weights, and slacks and prices for which the gap is about `FIRST`."""
        (n, k), limits = self.columns.shape, self.limits
        theta, weights = np.full(n, k / self.columns.sum()), np.full(limits, 1 / max(1, limits))
        size, _, _, each, _ = self.local(theta, weights)
        share = FIRST * size / (n + limits + len(self.caps))
        room = np.maximum(self.caps - self.above.T @ theta, FIRST * self.caps)
        level = float(each.max(initial=0.0)) + FIRST * size
        slack = FIRST * size / n / theta
        rooms, prices = np.append(level - each, room), np.append(weights, share / room)
        return Central(theta, slack, size * self.prior, rooms, prices, level)

    def near(self, point: Central) -> _Near:
        """The criterion and the errors of the equations at a point."""
        limits = self.limits
        size, slope, products, each, by = self.local(point.theta, point.prices[:limits])
        short = 1 - self.columns.T @ point.theta
        missing = np.append(point.level - each, self.caps - self.above.T @ point.theta) - point.room
        dual = slope + self.columns @ point.rows + self.above @ point.prices[limits:]
        scale = np.append(np.full(limits, size), self.caps)
        missed = max(
            float(np.abs(short).max() / self.caps.min(initial=1.0)), float(np.abs(missing / scale).max(initial=0.0))
        )
        gap = float(point.theta @ point.slack + point.room @ point.prices) / size
        unpaid = float(np.abs((dual - point.slack) / self.most).max()) / size
        off = max(gap, unpaid, (missed - 1e-9) / STRICT)
        return _Near(size, products, dual, short, missing, np.hstack([by, self.above]), gap, off)

    def step(self, point: Central, near: _Near, goal: float) -> tuple[Central, float]:
        """The point after a Newton step towards the relative gap `goal`, and the share of the step that was taken."""
        limits, k = self.limits, len(self.prior)
        mu = goal * near.size / (len(point.theta) + len(point.room))
        try:
            change, d_level, d_theta = self._solved(point, near, mu)
        except (np.linalg.LinAlgError, ValueError) as error:
            raise SolverError("design for estimation: Newton's method failed; pass another method") from error
        d_slack = (mu - point.slack * d_theta) / point.theta - point.slack
        d_room = near.missing - near.used.T @ d_theta
        d_room[:limits] += d_level
        ahead = _reach((point.theta, d_theta), (point.room, d_room))
        priced = _reach((point.slack, d_slack), (point.prices, change[k:]))
        if limits:  # the curvature depends on the prices
            ahead = priced = min(ahead, priced)
        moved = Central(
            point.theta + ahead * d_theta, point.slack + priced * d_slack, point.rows + priced * change[:k],
            point.room + ahead * d_room, point.prices + priced * change[k:], point.level + ahead * d_level,
        )  # fmt: skip
        return moved, min(ahead, priced)

    def _solved(self, point: Central, near: _Near, mu: float) -> tuple[Array, float, Array]:
        """The changes of lambda and of the prices together, of the level, and of theta."""
        k, m, limits = len(self.prior), len(point.room), self.limits
        products, used = near.products, near.used
        ratio, right = point.theta / point.slack, mu / point.theta - near.dual
        whole = np.hstack([products, self.columns, used]) * np.sqrt(ratio)[:, None]
        gram, side = whole.T @ whole, whole.T @ (right * np.sqrt(ratio))
        q = products.shape[1]
        normal, cross = gram[:q, :q], gram[:q, q:]
        normal[np.diag_indices(q)] += 1.0
        lower = scipy.linalg.cho_factor(normal, lower=True, overwrite_a=True)
        solved = scipy.linalg.cho_solve(lower, np.column_stack([cross, side[:q]]))
        extra = int(limits > 0)
        schur, known = np.zeros((k + m + extra, k + m + extra)), np.zeros(k + m + extra)
        schur[: k + m, : k + m] = gram[q:, q:] - cross.T @ solved[:, :-1]
        held = np.arange(k, k + m)
        schur[held, held] += point.room / point.prices
        known[: k + m] = (
            side[q:] - cross.T @ solved[:, -1] - np.append(near.short, near.missing + point.room - mu / point.prices)
        )
        if extra:  # the weights of the variances sum to one: the level is their price
            schur[k : k + limits, -1] = schur[-1, k : k + limits] = 1.0
            known[-1] = 1 - point.prices[:limits].sum()
        solution = np.linalg.solve(schur, known)
        change, level = np.asarray(solution[: k + m]), float(solution[-1]) if extra else 0.0
        inner = solved[:, -1] - solved[:, :-1] @ change
        moved = right - self.columns @ change[:k] - used @ change[k:] - products @ inner
        return change, level, np.asarray(ratio * moved)

    def solution(self, point: Central) -> SurveySolution:
        """The weights, and multipliers for the kernel centred at p."""
        k, limits = len(self.prior), self.limits
        nu = np.zeros((k, k))
        if len(self.caps):
            nu[self.pairs] = point.prices[limits:]
        information = (self.columns * (point.theta / self.mass)[:, None]).T @ self.columns
        kernel = self.kernel(information, point.prices[:limits])
        if self.logarithmic:
            # |J^-1/2 S|^2 / (S.p)^2 is 1 + |K u|^2 for u = S / (S.p) - 1.
            return SurveySolution(point.theta, point.rows - self.prior, nu, kernel, np.ones(1), point)
        even = kernel.sum(axis=1)
        rows = point.rows - 2 * kernel.T @ even + even @ even * self.prior
        return SurveySolution(point.theta, rows, nu, kernel, np.ones(1), point)


def _reach(*moves: tuple[Array, Array]) -> float:
    """The share of a step that keeps all these numbers positive."""
    return min(1.0, *(REACH / max(1e-300, float((-step / now).max(initial=0.0))) for now, step in moves))
