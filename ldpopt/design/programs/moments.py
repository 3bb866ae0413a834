"""The ratio-labelled program under divergences between rows, by a primal-dual interior-point method of its own.

    max  sum_i c_i . q_i   s.t.  sum_i q_i = 1  (lambda),  q_i >= 0  (z),  sum_i psi_c(q_i) <= cap_c  (nu)

for every pair c of every moment term. As a cone program it has a slack for each pair and label, and where many pairs
bind at once solvers stop early or fail. Here each pair has one slack and one multiplier; the constant channel with its
prices is a strictly feasible start, and a Newton step eliminates the k numbers of each label separately.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import scipy.linalg

from ldpopt.design.constraints.moment import Moment
from ldpopt.design.programs.barrier import Iterate, PairsPriced, cholesky, largest, longest_step
from ldpopt.design.programs.row_pairs import Pairs
from ldpopt.distribution import Array

STEPS = 150


def moment_program(gains: Array, terms: Sequence[Moment], accuracy: float = 1e-9) -> PairsPriced:
    """Solve for `gains` (n, k) in units of the optimum, to a duality gap of about `accuracy`.

    Returns the best iterate, which is only nearly feasible and nearly dual feasible.
    """
    n, k = gains.shape
    pairs = Pairs(terms, k)
    q, s = np.full((n, k), 1 / n), np.ones(len(pairs.left))
    rows = gains.max(axis=0) + 0.1 * max(float(np.ptp(gains, axis=0).max()), 1.0)
    z = rows - gains
    best, least = _Point(pairs, gains, q, z, s, float((q * z).mean()) * s, rows).descended(accuracy, STEPS)
    slack = (best.q * best.z).sum(axis=1) / best.q.sum(axis=1)
    return PairsPriced(best.q, best.rows, pairs.split(best.nu / pairs.caps), slack, least)


class _Point(Iterate):
    """An iterate, and how far it is from optimal."""

    patience = STEPS  # where the utility is infinite, gains are so uneven that nothing improves for many steps

    def __init__(self, pairs: Pairs, gains: Array, q: Array, z: Array, s: Array, nu: Array, rows: Array) -> None:
        self.pairs, self.gains, self.q, self.z, self.s, self.nu, self.rows = pairs, gains, q, z, s, nu, rows
        level, self.on_left, self.on_right, self.bend, self.t = pairs.psi(q)
        with np.errstate(all="ignore"):
            self.dual = gains - rows - pairs.gather(nu * self.on_left, nu * self.on_right) + z
        self.over = 1 - level.sum(axis=0) - s
        self.gap = float((q * z).sum() + s @ nu)
        self.count = q.size + len(s)

    @property
    def off(self) -> float:
        return largest(self.dual)

    @property
    def far(self) -> float:
        return largest(self.over)

    @property
    def missing(self) -> float:
        unpaid = np.maximum(self.dual - self.z, 0.0).max(axis=0).sum()
        return float(unpaid + np.abs(1 - self.q.sum(axis=0)) @ np.abs(self.rows) + np.abs(self.over) @ self.nu)

    def settled(self, accuracy: float) -> bool:
        return self.gap <= accuracy and self.off <= accuracy

    def toward(self, mu: float) -> tuple[float, Callable[[float], _Point]]:
        q, z, s, nu = self.q, self.z, self.s, self.nu
        dq, dnu, drows = self.solved(self.dual + mu / q - z, self.over - mu / nu + s, 1 - q.sum(axis=0))
        dz, ds = mu / q - z - z / q * dq, mu / nu - s - s / nu * dnu
        length = longest_step([(q, dq), (z, dz), (s, ds), (nu, dnu)])
        return float(length), lambda size: _Point(
            self.pairs, self.gains, q + size * dq, z + size * dz, s + size * ds, nu + size * dnu,
            self.rows + size * drows,
        )  # fmt: skip

    @cached_property
    def system(self) -> tuple[Array, Array, Array]:
        """The inverse roots of the labels' blocks (n, k, k), and the system that is left, in units of the columns."""
        q, pairs, t = self.q, self.pairs, self.t
        n, k = q.shape
        at = np.arange(k)
        curve, weighted = np.zeros((n, k, k)), self.bend * self.nu
        for part in pairs.parts:  # the pairs of a term are distinct, so that no entry is met twice
            curve[:, pairs.left[part], pairs.right[part]] -= (weighted * t)[:, part]
            curve[:, pairs.right[part], pairs.left[part]] -= (weighted * t)[:, part]
        curve[:, at, at] += pairs.gather(weighted, weighted * t * t)
        block = curve * q[:, :, None] * q[:, None, :]
        block[:, at, at] += q * self.z
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
