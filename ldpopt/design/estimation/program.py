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
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from scipy import sparse

from ldpopt.design.cones import ConeProgram
from ldpopt.design.estimation.relaxation import CLASSES, PolicyCone, PolicyRelaxation, Relaxation
from ldpopt.design.estimation.staircase import AnyRelaxation, Columns
from ldpopt.design.solve import CONIC, INTERIOR, SIMPLEX, solve, solve_cones
from ldpopt.design.utilities.criterion import Criterion, Weights, differences, scores
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
        posed.append(criterion.posed((columns / law[:, None] - 1) / gain, Weights(program, w, law / mass)))
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
