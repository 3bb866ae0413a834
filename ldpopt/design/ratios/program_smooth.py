"""The ratio-labelled program with divergences between rows, by interior-point methods.

    max  sum_i c_i . q_i   s.t.  sum_i q_i = 1  (lambda),  q_i >= 0  (z),  the terms of `row_pairs`  (nu).

As a cone program it has a slack for each pair and label, and where many pairs bind at once solvers stop early or fail.
Here each pair has one slack and one price, and constant columns with their prices are a strictly feasible start.

`smooth_program` is for few labels under any terms: a Newton step is one linear system in all columns, whatever the
number of pairs. `moment_program` is for many labels under moments alone: a step eliminates the k numbers of each label
separately, and the system that is left is in the prices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import scipy.linalg

from ldpopt.design.constraints.moment import Moment
from ldpopt.design.constraints.terms import Term
from ldpopt.design.ratios.program_barrier import Inside, Iterate, Linear, PairsPriced, cholesky, largest, longest_step
from ldpopt.design.ratios.program_pairs import Pairs
from ldpopt.values.distribution import Array

STEPS, MOMENT_STEPS = 120, 150  # The most Newton steps of either program
START = 4.0  # The first gap, in units of the optimum
CLOSE_BOUND = 0.2  # Where constraints keep rows closer than this, columns are nearly constant, and prices begin small


def smooth_program(gains: Array, terms: Sequence[Term], accuracy: float = 1e-9) -> PairsPriced:
    """Solve for `gains` (n, k) in units of the optimum, to a duality gap of about `accuracy`.

    Returns the best iterate, which is only nearly feasible and nearly dual feasible.
    """
    n, k = gains.shape
    pairs = Pairs(terms, k)
    q = np.full((n, k), 1 / n)
    if pairs.tv_bound < CLOSE_BOUND:
        inside, rows = Inside.middle(pairs, q, START / (n * k + len(pairs.left))), gains.mean(axis=0)
    else:
        # Prices above every label's gains; a label that is far below them begins small.
        rows = gains.max(axis=0)
        rows = rows + 0.1 * max(float(np.median((rows - gains).mean(axis=1))), 1.0)
        z = rows - gains
        q = np.tile((1 / z.mean(axis=1) / (1 / z.mean(axis=1)).sum())[:, None], k)
        inside = replace(Inside.middle(pairs, q, float((q * z).mean())), z=z)
    s = np.ones(len(pairs.left))
    nu = float((inside.q * inside.z).mean()) / s
    best, least = _Point(pairs, gains, inside, s, nu, rows).descended(accuracy, STEPS)
    return _priced(pairs, best.inside.q, best.inside.z, best.nu, best.rows, least)


def moment_program(gains: Array, terms: Sequence[Moment], accuracy: float = 1e-9) -> PairsPriced:
    """The same for moments alone, whatever the number of labels."""
    n, k = gains.shape
    pairs = Pairs(terms, k)
    q, s = np.full((n, k), 1 / n), np.ones(len(pairs.left))
    rows = gains.max(axis=0) + 0.1 * max(float(np.ptp(gains, axis=0).max()), 1.0)
    z = rows - gains
    first = _Moments(pairs, gains, q, z, s, float((q * z).mean()) * s, rows)
    best, least = first.descended(accuracy, MOMENT_STEPS)
    return _priced(pairs, best.q, best.z, best.nu, best.rows, least)


def _priced(pairs: Pairs, q: Array, z: Array, nu: Array, rows: Array, gap: float) -> PairsPriced:
    return PairsPriced(q, rows, pairs.split(nu / pairs.caps), (q * z).sum(axis=1) / q.sum(axis=1), gap)


class _Point(Iterate):
    """An iterate of `smooth_program`."""

    def __init__(self, pairs: Pairs, gains: Array, inside: Inside, s: Array, nu: Array, rows: Array) -> None:
        self.pairs, self.gains, self.inside, self.s, self.nu, self.rows = pairs, gains, inside, s, nu, rows
        self.linear = Linear.of(pairs, inside, nu)
        self.left = self.linear.left(gains - rows)
        self.over = 1 - self.linear.spent - s
        self.lack = 1 - inside.q.sum(axis=0)
        products = [*inside.sides(pairs), (s, nu)]
        self.gap = sum(float((value * price).sum()) for value, price in products)
        self.count = sum(value.size for value, _ in products)
        self.off = largest(self.left, inside.by_zero + inside.by_excess - nu[pairs.count :])
        self.far = largest(self.over, self.lack)
        # Where rows are close, columns are nearly constant, and differences between inputs count for less.
        with np.errstate(all="ignore"):
            mean = self.left.mean(axis=1, keepdims=True)
            unpaid = np.maximum(mean + pairs.tv_bound * np.abs(self.left - mean), 0.0).max(axis=0).sum()
            self.missing = float(unpaid + np.abs(self.lack) @ np.abs(rows) + np.abs(self.over) @ nu)

    @cached_property
    def newton(self) -> _Newton:
        return _Newton(self)

    def toward(self, mu: float) -> tuple[float, Callable[[float], _Point]]:
        by, ds, dnu, drows = self.newton.step(mu)
        length = longest_step([*self.inside.limits(self.pairs, by), (self.s, ds), (self.nu, dnu)])
        return float(length), lambda size: _Point(
            self.pairs, self.gains, self.inside.moved(size, by), self.s + size * ds, self.nu + size * dnu,
            self.rows + size * drows,
        )  # fmt: skip


_SUM = "ip,jp,px->xij"


@lru_cache(maxsize=1000)
def _order(labels: int, pairs: int, inputs: int) -> Any:
    """The order in which `_SUM` is fastest, False for all at once: to look for it takes longer than the sum."""
    each = np.empty((labels, pairs))
    path, _ = np.einsum_path(_SUM, each, each, np.empty((pairs, inputs)), optimize=True)
    return path if len(path) > 2 else False


def _summed(each: Array, on: Array) -> Array:
    """(k, n, n) the products of what pairs do to labels (n, pairs), summed for the input (pairs, k) of each pair."""
    return np.asarray(np.einsum(_SUM, each, each, on, optimize=_order(*each.shape, on.shape[1])))


class _Newton:
    """The system of a step in the columns, in units of them, with the prices of pairs eliminated."""

    def __init__(self, point: _Point) -> None:
        self.point, self.linear = point, point.linear
        pairs, linear, q = point.pairs, point.linear, point.inside.q
        n, k = q.shape
        self.loose = point.s / point.nu + linear.loose
        # The contribution of two labels and a pair, (n, n, pairs), belongs to the entries of the pair's inputs.
        tight = np.sqrt(1 / self.loose)
        on_left, on_right = linear.on_left * tight, linear.on_right * tight
        whole = np.zeros((n, k, n, k))
        inputs = np.arange(k)
        whole[:, inputs, :, inputs] += _summed(on_left, pairs.on[0])
        whole[:, inputs, :, inputs] += _summed(on_right, pairs.on[1])
        for part in pairs.parts:
            both = np.einsum("ip,jp->pij", on_left[:, part], on_right[:, part])
            whole[:, pairs.left[part], :, pairs.right[part]] += both
            whole[:, pairs.right[part], :, pairs.left[part]] += both.transpose(0, 2, 1)
        labels = np.arange(n)
        whole[labels, :, labels, :] += linear.block
        whole *= q[:, :, None, None] * q
        # The first unknown of a label is the growth of its whole column, along which psi has no curvature.
        growth = np.einsum("ip,jp->ij", linear.levels / self.loose, linear.levels)
        growth[labels, labels] += (linear.along * q).sum(axis=1)
        tied = np.stack([pairs.gather(w * linear.on_left, w * linear.on_right) for w in linear.levels / self.loose])
        tied[labels, labels] += linear.along
        tied *= q
        whole[:, 0] = tied
        whole[:, :, :, 0] = tied.transpose(1, 2, 0)
        whole[:, 0, :, 0] = growth
        self.matrix = whole.reshape(n * k, n * k)
        self.lower = cholesky(self.matrix)
        rows = np.tile(np.eye(k), (n, 1, 1)) * q[:, :, None]
        rows[:, 0] = q
        self.rows = rows.reshape(n * k, k).T
        self.half = scipy.linalg.solve_triangular(self.lower, self.rows.T, lower=True)
        self.whole = cholesky(self.half.T @ self.half)

    def step(self, mu: float) -> tuple[Inside, Array, Array, Array]:
        """The changes of columns with their slacks, of the caps' slacks, and of both kinds of prices."""
        point, linear, pairs = self.point, self.linear, self.point.pairs
        aims = linear.aims(mu)
        right, on_slack, on_least = linear.right(point.left, aims)
        on_cap = mu / point.nu - point.s
        over = point.over - on_cap
        over[pairs.count :] -= (on_slack / linear.rate).sum(axis=0)
        eased = over / self.loose
        dq, drows = self.solve(right + pairs.gather(linear.on_left * eased, linear.on_right * eased), point.lack)
        along = (linear.on_left * dq[:, pairs.left] + linear.on_right * dq[:, pairs.right]).sum(axis=0)
        dnu = (along - over) / self.loose
        return linear.step(dq, dnu, aims, on_slack, on_least), on_cap - point.s / point.nu * dnu, dnu, drows

    def solve(self, wanted: Array, lack: Array) -> tuple[Array, Array]:
        """The columns' and the rows' changes, refined once."""
        q = self.point.inside.q
        first = wanted * q
        first[:, 0] = first.sum(axis=1)
        first, short = first.ravel(), lack
        x, y = np.zeros(first.shape), np.zeros(len(lack))
        for _ in range(2):
            off, missing = first - self.matrix @ x - self.rows.T @ y, short - self.rows @ x
            if not np.isfinite(off).all():
                raise np.linalg.LinAlgError("the iterate is at the edge of what floats hold")
            inner = scipy.linalg.solve_triangular(self.lower, off, lower=True)
            more = scipy.linalg.cho_solve((self.whole, True), self.half.T @ inner - missing)
            x = x + scipy.linalg.solve_triangular(self.lower, inner - self.half @ more, lower=True, trans=1)
            y = y + more
        changes = x.reshape(q.shape)
        changes[:, 1:] += changes[:, :1]
        return changes * q, y


class _Moments(Iterate):
    """An iterate of `moment_program`."""

    patience = MOMENT_STEPS  # where the utility is infinite, gains are so uneven that nothing improves for many steps

    def __init__(self, pairs: Pairs, gains: Array, q: Array, z: Array, s: Array, nu: Array, rows: Array) -> None:
        self.pairs, self.gains, self.q, self.z, self.s, self.nu, self.rows = pairs, gains, q, z, s, nu, rows
        level, self.on_left, self.on_right, self.bend, self.t = pairs.psi(q)
        with np.errstate(all="ignore"):
            self.dual = gains - rows - pairs.gather(nu * self.on_left, nu * self.on_right) + z
        self.over = 1 - level.sum(axis=0) - s
        self.gap = float((q * z).sum() + s @ nu)
        self.count = q.size + len(s)
        self.off, self.far = largest(self.dual), largest(self.over)
        with np.errstate(all="ignore"):
            unpaid = np.maximum(self.dual - z, 0.0).max(axis=0).sum()
            self.missing = float(unpaid + np.abs(1 - q.sum(axis=0)) @ np.abs(rows) + np.abs(self.over) @ nu)

    def settled(self, accuracy: float) -> bool:
        return self.gap <= accuracy and self.off <= accuracy

    def toward(self, mu: float) -> tuple[float, Callable[[float], _Moments]]:
        q, z, s, nu = self.q, self.z, self.s, self.nu
        dq, dnu, drows = self.solved(self.dual + mu / q - z, self.over - mu / nu + s, 1 - q.sum(axis=0))
        dz, ds = mu / q - z - z / q * dq, mu / nu - s - s / nu * dnu
        length = longest_step([(q, dq), (z, dz), (s, ds), (nu, dnu)])
        return float(length), lambda size: _Moments(
            self.pairs, self.gains, q + size * dq, z + size * dz, s + size * ds, nu + size * dnu,
            self.rows + size * drows,
        )  # fmt: skip

    @cached_property
    def system(self) -> tuple[Array, Array, Array]:
        """The inverse roots of the labels' blocks (n, k, k), and the system that is left, in units of the columns."""
        q, pairs, t = self.q, self.pairs, self.t
        n, k = q.shape
        diagonal = np.arange(k)
        curve, weighted = np.zeros((n, k, k)), self.bend * self.nu
        for part in pairs.parts:  # the pairs of a term are distinct, so that no entry is met twice
            curve[:, pairs.left[part], pairs.right[part]] -= (weighted * t)[:, part]
            curve[:, pairs.right[part], pairs.left[part]] -= (weighted * t)[:, part]
        curve[:, diagonal, diagonal] += pairs.gather(weighted, weighted * t * t)
        block = curve * q[:, :, None] * q[:, None, :]
        block[:, diagonal, diagonal] += q * self.z
        root = np.linalg.inv(cholesky(block)) * q[:, None, :]
        wide = root[:, :, pairs.left] * self.on_left[:, None, :] + root[:, :, pairs.right] * self.on_right[:, None, :]
        wide = np.concatenate([wide, root], axis=2).reshape(n * k, -1)
        whole = wide.T @ wide
        own = np.arange(len(self.s))
        whole[own, own] += self.s / self.nu
        return root, wide, cholesky(whole)

    def solved(self, b: Array, over: Array, lack: Array) -> tuple[Array, Array, Array]:
        """The changes of q, nu and the rows."""
        root, wide, lower = self.system
        inner = np.einsum("nij,nj->ni", root, b).ravel()
        right = wide.T @ inner - np.concatenate([over, lack])
        if not np.isfinite(right).all():
            raise np.linalg.LinAlgError("the iterate is at the edge of what floats hold")
        y = scipy.linalg.cho_solve((lower, True), right)
        rest = (inner - wide @ y).reshape(b.shape)
        return np.einsum("nji,nj->ni", root, rest), y[: len(over)], y[len(over) :]
