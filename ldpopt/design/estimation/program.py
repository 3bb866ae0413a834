"""The convex program of a design for estimation, over the probabilities w of given report columns.

    min   criterion(sum_y w_y u_y u_y^T),   u_y = S_y / (S_y . p) - 1
    s.t.  sum w = 1                                                (mu_0)
          sum_y w_y u_y = 0                                        (mu)
          sum_y w_y (S_y[x] - S_y[x'])_+ / (S_y . p) <= eta        (nu >= 0, one per pair x < x')
          w >= 0

The first two say that the rows of Q = (w_y S_y / (S_y . p))_y sum to one. Where eta leaves little weight to columns
other than the constant one, the weights are posed in units of what it leaves, and the constant column takes the rest;
so the program has the same form at every eta. For several distributions at once, the criterion is the largest of
theirs, and w belongs to the first of them. The dual values price further columns (`estimation.prices`), with
lambda = mu_0 p + mu - p (1 . mu).

Fewer weights with the same moments: at most as many as there are moments (Caratheodory).

Multipliers for a proof: `least_multipliers` from columns that are priced, and `relax` where they are too many, by
semidefinite programs whose answers `estimation.relaxation` proves [Shor]. The relaxation knows of a staircase pattern
S, with entries 1 and E = exp(epsilon), only its mass and (S_x - 1)(S_x - E) = 0; of a column of a policy graph, only
products of two limits.

The program of `estimation.program` by Newton's method on weights and prices together.

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

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
from scipy import sparse

from ldpopt.design.cones import ConeProgram
from ldpopt.design.estimation.relaxation import CLASSES, PolicyCone, PolicyRelaxation, Relaxation
from ldpopt.design.estimation.staircase import AnyRelaxation, Columns
from ldpopt.design.solve import CONIC, INTERIOR, SIMPLEX, solve, solve_cones
from ldpopt.design.utilities.criteria import MVOptimal
from ldpopt.design.utilities.criterion import Criterion, LinearCriterion, Weights, differences, scores
from ldpopt.errors import SolverError
from ldpopt.numbers.enclosures import FLOAT
from ldpopt.values.distribution import Array


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
    gain = math.expm1(min(epsilon, math.log(2)))  # brings the columns u to the order of 1
    n, k = columns.shape
    silent = np.ptp(columns, axis=1) == 0
    unit = 1.0 if eta is None or not silent.any() else min(1.0, eta / gain)
    prior, mass = priors[0], columns @ priors[0]
    kept = np.arange(k) != int(np.argmax(prior))  # p . u = 0: one row follows from the others
    units = np.where(silent, 1.0, unit)  # of the weights w
    program = ConeProgram()
    w, level = program.variables(n), program.variables(1)
    program.put("nonnegative", np.zeros(n), (w, sparse.eye_array(n)))
    total = program.put("zero", -np.ones(1), (w, units[None]))
    balance = program.put("zero", np.zeros(k - 1), (w, ((columns / mass[:, None] - 1) / gain).T[kept]))
    x, other = np.triu_indices(k, 1)
    if eta is not None:
        above = np.maximum(columns[:, x] - columns[:, other], 0.0) / (gain * mass[:, None])
        cap = program.put("nonnegative", np.full(len(x), eta / gain / unit), (w, -above.T))
    posed, ties = [], []
    for p in priors:
        law = columns @ p
        # At another distribution, the same weights theta mean w times the ratio of the masses.
        posed.append(criterion.build_program((columns / law[:, None] - 1) / gain, Weights(program, w, law / mass)))
        cost = (posed[-1].variables, -posed[-1].slopes[None])
        ties.append(program.put("nonnegative", np.zeros(1), (level, np.ones((1, 1))), cost))
    values, duals = solve_cones(program, level, "design for estimation")

    shares = np.array([float(duals[tie][0]) for tie in ties]).clip(0.0)
    rows, pairs, kernel = np.zeros(k), np.zeros((k, k)), np.zeros((1, k))
    if len(priors) == 1:
        # The program's columns are u / gain; its slopes are those of the criterion, divided by `factor`.
        factor, kernel = posed[0].factor, posed[0].kernel(duals) / gain
        slopes = np.zeros(k)
        slopes[kept] = -duals[balance] * factor / gain
        rows = -float(duals[total][0]) * unit * factor * prior + slopes - prior * slopes.sum()
        if eta is not None:
            pairs[x, other] = np.maximum(duals[cap], 0.0) * factor / gain
    return FisherSolution(np.maximum(values[w], 0.0) * units / mass, rows, pairs, kernel, shares / shares.sum())


def kernel_at(criterion: Criterion, matrix: Array, prior: Array) -> Array:
    """K (r, k) for which K u_y is the best influence of report y, where u_y = q_y / (q_y . p) - 1."""
    reduced = scores(matrix, prior)
    scale = np.linalg.norm(reduced, axis=1)
    scale[scale == 0] = 1.0
    kernel = np.linalg.lstsq((reduced / scale[:, None]).T, criterion.loadings(reduced).T, rcond=1e-10)[0]
    return np.asarray((kernel / scale[:, None]).T @ differences(len(prior)).T)


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


def fewer_columns(columns: Array, weights: Array) -> Array:
    """(n,) new weights with the same information, at most k (k + 1)/2 positive, of `columns` (n, k) with S.p = 1.

    The products of their entries give the information, and, as p.S = 1, the row sums as well.
    """
    x, other = np.triu_indices(columns.shape[1])
    return fewer_weights(columns[:, x] * columns[:, other], weights)


def fewer_weights(moments: Array, weights: Array) -> Array:
    """(n,) weights >= 0 with `moments`.T @ weights unchanged, of which at most r are positive, for (n, r) `moments`.

    Of twice as many columns as moments, half can go. The weights move along a combination that changes no moment, until
    one weight is zero. That weight is then eliminated from the other such combinations. If there are more columns, they
    are put into twice as many groups as there are moments, and half of the groups go at once.

    >>> fewer = fewer_weights(np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]), np.array([1.0, 1.0, 1.0]))
    >>> int((fewer > 0).sum()) <= 2, round(float(fewer.sum()), 6), round(float(fewer @ [0.0, 1.0, 2.0]), 6)
    (True, 3.0, 3.0)
    """
    w = np.array(weights)
    r = moments.shape[1]
    size = np.abs(moments).max(axis=0)
    scaled = moments / np.where(size > 0, size, 1.0)
    while True:
        used = np.flatnonzero(w > 0)
        group = np.arange(len(used)) % (2 * r)
        count = min(len(used), 2 * r)
        total: Array = np.bincount(group, w[used], count).astype(np.float64)
        means = scaled[used]
        if count < len(used):  # of every `count`-th row
            filled = np.pad(means * w[used, None], ((0, -len(used) % count), (0, 0)))
            means = filled.reshape(-1, count, r).sum(axis=0) / total[:, None]
        left = _fewer(means, total)
        if left is None:
            return w
        w[used] *= (left / total)[group]


def _fewer(rows: Array, weights: Array) -> Array | None:
    """(n,) weights with the same sum of `rows`, as many of them 0 as there are relations; None if there are none."""
    q, triangle, _ = scipy.linalg.qr(rows, pivoting=True)
    diagonal = np.abs(np.diag(triangle))
    rank = int((diagonal > 1e-13 * diagonal.max(initial=0.0) * len(rows)).sum())
    if rank == len(rows):
        return None
    free, left, least = np.asfortranarray(q[:, rank:]), weights, 1e-15 * float(weights.max())
    for last in range(free.shape[1] - 1, -1, -1):
        along = free[:, last]
        if not along.max() > 0:
            along = -along
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(along > 1e-12 * np.abs(along).max(), left / along, np.inf)
        i = int(reach.argmin())
        left = left - reach[i] * along
        left[left < least] = 0.0
        left[i] = 0.0
        if last:
            free = scipy.linalg.blas.dger(-1.0, along / along[i], free[i, :last], a=free[:, :last], overwrite_a=True)
            free[i] = 0.0
    return np.asarray(left)


def relax_policy(
    gram: Array, prior: Array, limits: Array, eta: float | None = None
) -> tuple[Array, Array, PolicyRelaxation]:
    """lambda (k,) and nu (k, k) with least sum lambda + eta sum nu, and weights that prove that no column gains.

    limits : (k, k) log-ratios, the lengths of shortest paths. nu is 0 without `eta`.
    """
    import cvxpy as cp

    k, cone = len(prior), PolicyCone.of(limits, FLOAT.of(prior))
    first, second = cone.products
    faces = np.asarray(cone.faces.midpoint)

    def form_of(square: Any, rows: Any) -> Array:
        return np.asarray(cone.form(FLOAT.of(square), FLOAT.of(rows)).midpoint)

    nothing, pairs = np.zeros((k, k)), np.zeros((k, k))
    scale = float(np.abs(form_of(gram, np.zeros(k))).max()) or 1.0
    rows, weights = cp.Variable(k), cp.Variable(len(first), nonneg=True)
    each = np.einsum("nx,ny->nxy", faces[first], faces[second])
    spread = sparse.csr_array(((each + each.transpose(0, 2, 1)) / 2).reshape(len(first), k * k).T)
    # (s.p)(rows.s) is linear in `rows`: one matrix for each of its entries.
    priced = np.array([form_of(nothing, entry).ravel() for entry in np.eye(k)]).T
    form: Any = priced @ rows - spread @ weights + form_of(gram / scale, np.zeros(k)).ravel()
    cost: Any = cp.sum(rows)
    if eta is not None:
        x, other = np.triu_indices(k, 1)
        caps = cp.Variable(len(x), nonneg=True)
        single = np.zeros((len(x), k, k))
        single[np.arange(len(x)), x, other] = 1.0
        bent = [(-square, shift) for shift, square in map(cone.apart, single)]
        form = form + np.array([np.asarray(cone.form(*entry).midpoint).ravel() for entry in bent]).T @ caps
        cost = cost + eta * cp.sum(caps)
    square = cp.reshape(form, (k, k), order="C")
    solve(cp.Problem(cp.Minimize(cost), [square >> 0]), "relaxed bound of a policy graph", CONIC)
    if eta is not None:
        pairs[x, other] = np.maximum(np.asarray(caps.value), 0.0) * scale
    return np.asarray(rows.value) * scale, pairs, PolicyRelaxation(np.maximum(weights.value, 0.0) * scale)


def relax(columns: Columns, gram: Array, prior: Array, eta: float | None) -> tuple[Array, Array, AnyRelaxation]:
    """Multipliers lambda (k,) and nu (k, k) with least sum lambda + eta sum nu, and a relaxation where none gains.

    nu is 0 without `eta`. columns : staircase patterns, or those of a policy graph, which have `limits`.
    """
    limits = getattr(columns, "limits", None)
    if limits is not None:
        return relax_policy(gram, prior, limits, eta)
    return relax_patterns(gram, prior, math.exp(columns.epsilon), eta)


def relax_patterns(gram: Array, prior: Array, ratio: float, eta: float | None) -> tuple[Array, Array, Relaxation]:
    """lambda (k,) and nu (k, k) with least sum lambda + eta sum nu, and the relaxation; nu is 0 without `eta`."""
    import cvxpy as cp

    k = len(prior)
    scale = float(np.trace(gram))
    classes = 1 if eta is None else CLASSES
    rows, pairs = cp.Variable(k), np.zeros((k, k))
    squares, spans = cp.Variable((classes, k)), cp.Variable(classes, nonneg=True)
    cost: Any = cp.sum(rows)
    spent: Any = pairs
    if eta is not None:
        x, other = np.triu_indices(k, 1)
        each = cp.Variable(len(x), nonneg=True)
        place = np.zeros((k * k, len(x)))
        place[x * k + other, np.arange(len(x))] = 1.0
        spent = cp.reshape(place @ each, (k, k), order="C")
        cost = cost + eta * cp.sum(each)
    mass = ratio ** (np.arange(classes + 1) / classes)  # the ends of the classes
    cones = []
    for size in range(classes):
        ends = (float(mass[size]), float(mass[size + 1]), ratio)
        top, edge, corner = _form(gram / scale, prior, rows, spent, squares[size], spans[size], ends)
        edge = cp.reshape(edge, (k, 1), order="C")
        cones.append(cp.bmat([[top, edge], [edge.T, cp.reshape(corner, (1, 1), order="C")]]) >> 0)
    solve(cp.Problem(cp.Minimize(cost), cones), "relaxed equivalence bound", INTERIOR)
    if eta is not None:
        pairs[x, other] = np.maximum(np.asarray(each.value), 0.0) * scale
    relaxation = Relaxation(np.asarray(squares.value) * scale, np.maximum(np.asarray(spans.value), 0.0) * scale)
    return np.asarray(rows.value) * scale, pairs, relaxation


def _form(
    gram: Array, prior: Array, rows: Any, pairs: Any, d: Any, span: Any, ends: tuple[float, float, float]
) -> tuple[Any, Any, Any]:
    """The quadratic, linear (halved) and constant part of N in S, as cvxpy expressions."""
    import cvxpy as cp

    low, high, ratio = ends
    k, gain, ones = len(prior), ratio - 1, np.ones(len(prior))
    row = cp.reshape(rows, (1, k), order="C")
    square = (prior[:, None] @ row + row.T @ prior[None]) / 2 - gram
    top = square - low / gain * (pairs + pairs.T) / 2 + cp.diag(d) + span * np.outer(prior, prior)
    out, into = pairs @ ones, pairs.T @ ones
    edge = low / gain * (ratio * out + into) / 2 - (1 + ratio) / 2 * d - span * (low + high) / 2 * prior
    corner = ones @ (ratio * d - low * ratio / gain * out) + span * low * high
    return top, edge, corner


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
