"""The ratio-labelled program under divergences between rows, by a primal-dual interior-point method of its own.

    max  sum_i c_i . q_i   s.t.  sum_i q_i = 1  (lambda),  q_i >= 0  (z),  sum_i psi_c(q_i) <= cap_c  (nu)

for every pair c of every moment term. As a cone program it has a slack for each pair and label, and where many pairs
bind at once solvers stop early or fail. Here each pair has one slack and one multiplier; the constant channel with its
prices is a strictly feasible start, and a Newton step eliminates the k numbers of each label separately.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ldpopt.design.constraints.moment import Moment
from ldpopt.distribution import Array

STEPS = 150
GROWTH = 3.0  # How much a step may raise the residuals before it is halved
REACH = 0.98  # The share of the way to the boundary that a step goes


@dataclass(frozen=True, eq=False)
class Priced:
    """The columns (n, k), the row multipliers (k,), a weight on psi for every pair of every term, and slacks (n,).

    A label's slack is by how much its best column is worth less than its price, per unit of the column's sum.
    """

    columns: Array
    rows: Array
    weights: tuple[Array, ...]
    slack: Array


def moment_program(gains: Array, terms: Sequence[Moment], accuracy: float = 1e-9) -> Priced:
    """Solve for `gains` (n, k) in units of the optimum, to a duality gap of about `accuracy`.

    Returns the best iterate, which is only nearly feasible and nearly dual feasible.
    """
    n, k = gains.shape
    pairs = _Pairs(terms, k)
    p = len(pairs.left)
    q, s = np.full((n, k), 1 / n), np.ones(p)
    spread = max(float(np.ptp(gains, axis=0).max()), 1.0)
    rows = gains.max(axis=0) + 0.1 * spread
    z = rows - gains
    nu = np.full(p, float((q * z).mean()))
    count = n * k + p
    least, sigma = np.inf, 0.3
    best = at = _Point.of(pairs, gains, q, z, s, nu, rows)
    for _ in range(STEPS):
        gap = at.gap
        error = gap + at.missing
        if error < least:
            best, least = at, error
        if gap <= accuracy and at.off <= accuracy:
            break
        mu = max(sigma * gap, 0.3 * accuracy) / count
        try:
            q, z, s, nu, rows = at.q, at.z, at.s, at.nu, at.rows
            dq, dnu, drows = _Newton.of(pairs, at).step(at.dual + mu / q - z, at.over - mu / nu + s, 1 - q.sum(axis=0))
        except np.linalg.LinAlgError:
            break
        dz = mu / q - z - z / q * dq
        ds = mu / nu - s - s / nu * dnu
        step = 1.0
        for value, change in ((q, dq), (z, dz), (s, ds), (nu, dnu)):
            step = min(step, REACH / max(float((-change / value).max(initial=0.0)), 1e-300))
        while step > 1e-10:
            new = _Point.of(
                pairs, gains, q + step * dq, z + step * dz, s + step * ds, nu + step * dnu, rows + step * drows
            )
            if new.off <= GROWTH * max(at.off, 0.1) and new.far <= max(GROWTH * at.far, 0.3):
                break
            step /= 2
        else:
            if sigma == 1.0:
                break
            sigma = 1.0
            continue
        at = new
        sigma = 0.5 if step < 0.3 else 0.2 if step < 0.8 else 0.08
    slack = (best.q * best.z).sum(axis=1) / best.q.sum(axis=1)
    return Priced(best.q, best.rows, pairs.split(best.nu), slack)


@dataclass(frozen=True, eq=False)
class _Point:
    """An iterate, and how far it is from optimal."""

    q: Array
    z: Array
    s: Array
    nu: Array
    rows: Array
    on_left: Array
    on_right: Array
    bend: Array
    t: Array
    dual: Array
    over: Array

    @classmethod
    def of(cls, pairs: _Pairs, gains: Array, q: Array, z: Array, s: Array, nu: Array, rows: Array) -> _Point:
        level, on_left, on_right, bend, t = pairs.parts(q)
        dual = gains - rows - pairs.gather(nu * on_left, nu * on_right) + z
        return cls(q, z, s, nu, rows, on_left, on_right, bend, t, dual, 1 - level.sum(axis=0) - s)

    @property
    def gap(self) -> float:
        """The sum of all slacks times their multipliers."""
        return float((self.q * self.z).sum() + self.s @ self.nu)

    @property
    def off(self) -> float:
        """The largest dual residual, inf where something overflowed."""
        worst = float(np.abs(self.dual).max())
        return worst if np.isfinite(worst) else np.inf

    @property
    def far(self) -> float:
        """The largest violation of a cap."""
        worst = float(np.abs(self.over).max(initial=0.0))
        return worst if np.isfinite(worst) else np.inf

    @property
    def missing(self) -> float:
        """The gains above the prices, and what the matrix's violations may be worth."""
        unpaid = np.maximum(self.dual - self.z, 0.0).max(axis=0).sum()
        return float(unpaid + np.abs(1 - self.q.sum(axis=0)) @ np.abs(self.rows) + np.abs(self.over) @ self.nu)


class _Pairs:
    """The pairs of all terms in one row, psi in units of the cap."""

    def __init__(self, terms: Sequence[Moment], k: int) -> None:
        self.terms = terms
        self.ends = np.cumsum([len(term) for term in terms])
        self.left = np.concatenate([term.left for term in terms])
        self.right = np.concatenate([term.right for term in terms])
        self.on = np.eye(k)[self.left], np.eye(k)[self.right]

    def split(self, nu: Array) -> tuple[Array, ...]:
        parts = np.split(nu, self.ends[:-1])
        return tuple(part / term.cap for part, term in zip(parts, self.terms, strict=True))

    def gather(self, on_left: Array, on_right: Array) -> Array:
        """(n, k) sums by input of what falls on either side, (n, pairs) each."""
        return np.asarray(on_left @ self.on[0] + on_right @ self.on[1])

    def parts(self, q: Array) -> tuple[Array, Array, Array, Array, Array]:
        """psi, its two slopes, its second derivative in a, and t = a/b, each (n, pairs)."""
        a, b = q[:, self.left], q[:, self.right]
        with np.errstate(all="ignore"):
            return self._parts(a, b, a / b)

    def _parts(self, a: Array, b: Array, t: Array) -> tuple[Array, Array, Array, Array, Array]:
        log = np.log(t)
        found = []
        for term, part in zip(self.terms, np.split(np.arange(len(self.left)), self.ends[:-1]), strict=True):
            x, y, u, g = a[:, part], b[:, part], t[:, part], log[:, part]
            o = term.order
            if o == 1:
                on_left, on_right, bend = g, 1 - u, 1 / x
            else:
                rise = np.expm1((o - 1) * g)
                on_left, on_right = o * rise, -(o - 1) * np.expm1(o * g)
                bend = o * (o - 1) * (1 + rise) / x
            # By homogeneity psi is a times one slope and b times the other.
            found.append([each / term.cap for each in (x * on_left + y * on_right, on_left, on_right, bend)])
        level, on_left, on_right, bend = (np.concatenate(each, axis=1) for each in zip(*found, strict=True))
        return level, on_left, on_right, bend, t


@dataclass(frozen=True, eq=False)
class _Newton:
    """The linear system of a step, with every label's block in units of its q."""

    q: Array
    root: Array
    wide: Array
    lower: Array
    size: Array

    @classmethod
    def of(cls, pairs: _Pairs, point: _Point) -> _Newton:
        q, z, s, nu, t = point.q, point.z, point.s, point.nu, point.t
        on_left, on_right = point.on_left, point.on_right
        n, k = q.shape
        at = np.arange(k)
        curve = np.zeros((n, k, k))
        weighted = point.bend * nu
        start = 0
        for end in pairs.ends:
            left, right = pairs.left[start:end], pairs.right[start:end]
            # The pairs of a term are distinct, so that no entry is met twice.
            curve[:, left, right] -= (weighted * t)[:, start:end]
            curve[:, right, left] -= (weighted * t)[:, start:end]
            start = end
        curve[:, at, at] += pairs.gather(weighted, weighted * t * t)
        block = curve * q[:, :, None] * q[:, None, :]
        block[:, at, at] += q * z
        lower = _root(block)
        root = np.linalg.inv(lower) * q[:, None, :]
        wide = root[:, :, pairs.left] * on_left[:, None, :] + root[:, :, pairs.right] * on_right[:, None, :]
        wide = np.concatenate([wide, root], axis=2).reshape(n * k, -1)
        whole = wide.T @ wide
        p = len(s)
        whole[np.arange(p), np.arange(p)] += s / nu
        size = np.sqrt(np.diagonal(whole))
        lowest = _root(whole / size / size[:, None])
        return cls(q, root, wide, lowest, size)

    def step(self, b: Array, over: Array, lack: Array) -> tuple[Array, Array, Array]:
        """The changes of q, nu and the rows."""
        n, k = self.q.shape
        inner = np.einsum("nij,nj->ni", self.root, b).ravel()
        right = self.wide.T @ inner - np.concatenate([over, lack])
        if not np.isfinite(right).all():
            raise np.linalg.LinAlgError("the iterate is at the edge of what floats hold")
        y = scipy.linalg.cho_solve((self.lower, True), right / self.size) / self.size
        rest = (inner - self.wide @ y).reshape(n, k)
        return np.einsum("nji,nj->ni", self.root, rest), y[: len(over)], y[len(over) :]


def _root(matrices: Array) -> Array:
    """Cholesky factors of (..., k, k) matrices, after the least of a few additions to the diagonal that works."""
    at = np.arange(matrices.shape[-1])
    for weight in (1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10):
        heavier = matrices.copy()
        heavier[..., at, at] *= 1 + weight
        try:
            return np.asarray(np.linalg.cholesky(heavier))
        except np.linalg.LinAlgError:
            continue
    raise np.linalg.LinAlgError("not positive definite")
