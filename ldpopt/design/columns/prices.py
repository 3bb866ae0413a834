"""Pricing staircase patterns at the multipliers of a design for estimation: which would improve it, and by how much.

For a pattern S (E = exp(epsilon) on a set A, 1 elsewhere) the gain per unit of probability is

    v(S) = (S^T G S / (S.p) - lambda.S - sum_{x,x'} nu[x,x'] (S_x - S_x')_+) / (S.p),       G = K^T K.

With t >= max v over all patterns, sum lambda + eta sum nu + t bounds sum_y w_y |K u_y|^2 over every channel within the
constraints. The reason is that every column is a sum of patterns, that S^T G S / (S.p) is convex and homogeneous, and
that t p.S makes up for every violated dual constraint. All 2^k patterns are priced in two halves; for more inputs
`relaxation` bounds t. These are floats for searches; `charges` and `halves` compute proved gains.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldpopt.design.columns.line import line_sets
from ldpopt.distribution import Array

EXACT_LIMIT = 24
"""The most inputs whose 2^k patterns are all priced; 2^24 patterns take about a second."""


Members = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Prices:
    """gram : G (k, k). prior : p (k,). rows : lambda (k,). pairs : nu (k, k). ratio : E."""

    gram: Array
    prior: Array
    rows: Array
    pairs: Array
    ratio: float

    def gains(self, columns: Array) -> Array:
        """(n,) the gains v of `columns` (n, k), whose entries may be any positive numbers."""
        mass = columns @ self.prior
        earned = np.einsum("nx,nx->n", columns @ self.gram, columns) / mass
        paid = columns @ self.rows
        if self.pairs.any():
            x, other = np.nonzero(self.pairs)
            paid = paid + np.maximum(columns[:, x] - columns[:, other], 0.0) @ self.pairs[x, other]
        return np.asarray((earned - paid) / mass)

    def best(self, count: int, above: float) -> tuple[float, Members]:
        """The largest v over all 2^k patterns, and up to `count` of the patterns with v above `above`, best first."""
        k, gain = len(self.prior), self.ratio - 1
        # With S = 1 + gain a, every part of v is a quadratic in the indicator a of the set.
        earned = _Quadratic(float(self.gram.sum()), 2 * gain * self.gram.sum(axis=1), gain**2 * self.gram)
        paid = _Quadratic(
            float(self.rows.sum()), gain * (self.rows + self.pairs.sum(axis=1)),
            -gain * (self.pairs + self.pairs.T) / 2,
        )  # fmt: skip
        low = k // 2
        first, second = subsets(low), subsets(k - low)
        mass = 1 + gain * (first @ self.prior[:low])
        parts = earned.halves(first, low), paid.halves(first, low)
        top, kept, found = -np.inf, np.empty(0), np.empty((0, k), dtype=bool)
        step = max(1, 2**21 // len(first))
        for start in range(0, len(second), step):
            block = second[start : start + step]
            m = gain * (block @ self.prior[low:])[:, None] + mass
            value = (earned.over(block, *parts[0], low) / m - paid.over(block, *parts[1], low)) / m
            top = max(top, float(value.max()))
            flat = value.ravel()
            good = np.flatnonzero(flat > above)
            if len(good) > count:
                good = good[np.argpartition(-flat[good], count)[:count]]
            if len(good):
                here = np.hstack([first[good % len(first)], block[good // len(first)]]) > 0.5
                kept, found = np.append(kept, flat[good]), np.vstack([found, here])
                order = np.argsort(-kept, kind="stable")[:count]
                kept, found = kept[order], found[order]
        return top, found

    def line(self) -> Members:
        """(n, k) the sets that can be best where G has rank one and nothing is charged for pairs."""
        at = int(np.argmax(np.diag(self.gram)))
        kernel = self.gram[at] / np.sqrt(max(float(self.gram[at, at]), 1e-300))
        return np.unique(line_sets(kernel, self.prior, self.rows)[0], axis=0)

    def climb(self, starts: Members, count: int, above: float) -> Members:
        """Patterns with v above `above`, by moving one input at a time from `starts` until no move helps."""
        sets = np.unique(starts, axis=0)
        k = sets.shape[1]
        value = self.gains(_columns(sets, self.ratio))
        active = np.arange(len(sets))
        for _ in range(4 * k):
            flipped = np.repeat(sets[active, None, :], k, axis=1)
            flipped[:, np.arange(k), np.arange(k)] ^= True
            near = self.gains(_columns(flipped.reshape(-1, k), self.ratio)).reshape(len(active), k)
            at = near.argmax(axis=1)
            better = near[np.arange(len(active)), at] > value[active] + 1e-15
            if not better.any():
                break
            value[active[better]] = near[better, at[better]]
            sets[active[better], at[better]] ^= True
            active = active[better]
        sets, index = np.unique(sets, axis=0, return_index=True)
        value = value[index]
        order = np.argsort(-value)[:count]
        return np.asarray(sets[order[value[order] > above]])


@dataclass(frozen=True, eq=False)
class _Quadratic:
    """The function constant + linear . a + a^T square a."""

    constant: float
    linear: Array
    square: Array

    def halves(self, first: Array, low: int) -> tuple[Array, Array]:
        """The part of the first half alone, (n,), and its cross terms with the second half, (k - low, n)."""
        own = self.constant + first @ self.linear[:low]
        own += np.einsum("nx,nx->n", first @ self.square[:low, :low], first)
        return own, np.asarray(2 * self.square[low:, :low] @ first.T)

    def over(self, block: Array, own: Array, cross: Array, low: int) -> Array:
        """Values for every (second half in `block`, first half)."""
        other = block @ self.linear[low:] + np.einsum("nx,nx->n", block @ self.square[low:, low:], block)
        return np.asarray(block @ cross + own + other[:, None])


def subsets(k: int) -> Array:
    """(2^k, k) indicators of all subsets."""
    return ((np.arange(2**k)[:, None] >> np.arange(k)) & 1).astype(np.float64)


def _columns(members: Members, ratio: float) -> Array:
    return np.where(members, ratio, 1.0)
