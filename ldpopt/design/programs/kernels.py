"""The staircase-pattern program by column generation: only patterns that improve it join, for any number of inputs.

Primal, over weights theta_A of the patterns S_A (E = exp(epsilon) on A, 1 elsewhere), in the form of `patterns`: all
inputs lie in patterns of the same total weight N, and sum theta + (E-1) N <= 1. The cap on total variation enters as

    (E-1) sum_A theta_A sum_{x in A, x' not in A} K[x,x'] <= eta     for kernels K >= 0 that sum to one.

A single pair is such a kernel; all k (k-1)/2 pairs together are the cap, but too many to pose. Let
e_s = (1-s) P0 - s P1; its positive and its negative part are what the best test at posterior s compares. The kernels

    K[x,x'] = (e_low(x))_- (e_high(x'))_+ / their sum,     low <= high,

are a relaxation, and a few dozen of them are nearly always enough. Kernels that a solution violates join, and then
single pairs. Patterns are priced at the dual values: all blocks of the sorted inputs at once, from prefix sums; other
patterns by a minimum cut for each likelihood ratio, which without a cap means only to look at signs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ldpopt.design.certificates.minimum_cut import Members, Network
from ldpopt.design.problems.reduction import Pair
from ldpopt.design.programs.column_gains import largest_violation
from ldpopt.design.solve import solve
from ldpopt.distribution import Array, Index
from ldpopt.divergences import FDivergence

LABELS = 48
"""The number of likelihood ratios at which patterns are priced, besides those of the current solution."""


FINE = 400
"""The number of ratios at which patterns are looked for when the multipliers are good already."""


NEAR = 24
"""The number of patterns whose own ratios are priced next."""


LEAST = 2e-9
"""Gains below this, in units of the optimum, are within the solver's accuracy."""


VIOLATED = 1e-6
"""How far, relatively, a cap may be exceeded before its row joins."""


COARSE = 40
"""Where no better patterns are known, the inputs are cut into this many runs, and all blocks of runs are there."""


FLOWS = 2000


@dataclass(eq=False)
class PatternProgram:
    """The patterns `inside` (k, n) and the kernels found so far, for one pair, E = `ratio` and a TV cap or none.

    Utilities are in units of `scale`, which should be near the optimum.
    """

    f: FDivergence
    pair: Pair
    ratio: float
    eta: float | None
    scale: float
    inside: Members
    kernels: list[tuple[Array, Array]] = field(default_factory=list)
    singles: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        k = len(self.pair)
        first = [self.inside, np.eye(k, dtype=bool), ~np.eye(k, dtype=bool)]
        if self.inside.shape[1] == 0 or k <= COARSE:
            # Blocks of runs of inputs keep the first multipliers from being extreme.
            ends = np.linspace(0, k, min(k, COARSE) + 1).round().astype(np.intp)
            i, j = np.triu_indices(len(ends), 1)
            first.append(blocks(ends[i], ends[j], k))
        self.inside = np.zeros((k, 0), dtype=bool)
        self.add(np.hstack(first))
        if self.eta is not None:
            low, high = self.pair.posterior[[0, -1]]
            at = (np.arange(12) + 0.5) / 12
            for s in np.unique(np.concatenate([low + (high - low) * at, _even_odds(low, high, at), [0.5]])):
                self.join(float(s), float(s))

    @property
    def caps(self) -> float:
        """The cap on total variation, 0 without one: the cost of a unit of the pairs' multipliers."""
        return self.eta or 0.0

    def add(self, new: Members) -> int:
        """Add patterns (k, n) that are not there yet, and return their number."""
        new = new[:, new.any(axis=0) & ~new.all(axis=0)]
        both = np.hstack([self.inside, new])
        _, first = np.unique(np.packbits(both, axis=0), axis=1, return_index=True)
        before = self.inside.shape[1]
        self.inside = both[:, np.sort(first)]
        return int(self.inside.shape[1] - before)

    def join(self, low: float, high: float) -> None:
        """Add the kernel of the tests at posteriors `low` and `high`, if neither side of it is empty."""
        down, up = (side[0] for side in self._sides(np.array([low]), np.array([high])))
        if down.sum() > 0 and up.sum() > 0:
            self.kernels.append((down / down.sum(), up / up.sum()))

    def _sides(self, low: Array, high: Array) -> tuple[Array, Array]:
        p0, p1 = self.pair.p0, self.pair.p1
        down = np.maximum(low[:, None] * p1 - (1 - low)[:, None] * p0, 0.0)
        return down, np.maximum((1 - high)[:, None] * p0 - high[:, None] * p1, 0.0)

    def worth(self, inside: Members) -> Array:
        """(n,) the worth mu of patterns (k, n), in units of `scale`."""
        gain = self.ratio - 1
        a, b = 1 + gain * (self.pair.p0 @ inside), 1 + gain * (self.pair.p1 @ inside)
        return self.f.positive_excess(a, b) / self.scale

    def pairs(self, weights: Array) -> Array:
        """The (k, k) multipliers that weights of the kernels and single pairs add up to."""
        total = np.zeros((len(self.pair), len(self.pair)))
        if self.kernels:
            down, up = (np.array(side) for side in zip(*self.kernels, strict=True))
            total += (weights[: len(self.kernels), None] * down).T @ up
        for (x, y), weight in zip(self.singles, weights[len(self.kernels) :], strict=True):
            total[x, y] += weight
        return total

    def solve(self, solvers: Sequence[str]) -> tuple[Array, Array, Array]:
        """Weights theta (n,) of the patterns, and the multipliers of rows, (k,), and pairs, (k, k)."""
        import cvxpy as cp
        import scipy.sparse as sparse

        gain = self.ratio - 1
        # The solver's unit of weight is what a binary mechanism, with erasure down to the cap, puts on a pattern.
        unit = (1.0 if self.eta is None else min(1.0, self.eta * (self.ratio + 1) / gain)) / (self.ratio + 1)
        size = max(1.0, gain)
        member = self.inside.astype(np.float64)
        tau, level = cp.Variable(member.shape[1], nonneg=True), cp.Variable()
        # The rows are differences of neighbouring inputs, so that a block has two entries, whatever its length.
        first = np.zeros(len(member))
        first[0] = 1.0
        balance = sparse.csr_array(np.diff(member, axis=0, prepend=0.0)) @ tau - first * level == 0
        mass = (cp.sum(tau) + gain * level) / size <= 1 / (unit * size)
        constraints = [balance, mass]
        if self.eta is not None:
            used = [(down @ member) * (up @ (1 - member)) for down, up in self.kernels]
            used += [member[x] * (1 - member[y]) for x, y in self.singles]
            cap = np.array(used) @ tau <= self.eta / (gain * unit)
            constraints.append(cap)
        objective = cp.Maximize((self.worth(self.inside) * unit) @ tau)
        solve(cp.Problem(objective, constraints), "column generation", solvers)
        theta = np.maximum(np.asarray(tau.value), 0.0) * unit
        weights = np.zeros(len(self.kernels) + len(self.singles))
        if self.eta is not None:
            weights = np.maximum(np.asarray(cap.dual_value), 0.0) / (gain * unit)
        rows = -np.diff(np.asarray(balance.dual_value), append=0.0) / (gain * unit)
        pairs = self.pairs(weights)
        return theta, self._mended(rows, pairs, max(0.0, float(mass.dual_value) / (size * unit))), pairs

    def _mended(self, rows: Array, pairs: Array, total: float) -> Array:
        """The row multipliers, shifted to sum to `total` or to 0, and raised until no pattern here gains."""
        mass = 1 + (self.ratio - 1) * (self.pair.p1 @ self.inside)
        mended = []
        for level in (0.0, total):
            made = rows + self.pair.p1 * (level - rows.sum())
            mended.append(made + self.pair.p1 * max(0.0, float((self.gains(self.inside, made, pairs) / mass).max())))
        return np.asarray(mended[0] if mended[0].sum() <= mended[1].sum() else mended[1])

    def gains(self, inside: Members, rows: Array, pairs: Array) -> Array:
        """(n,) the worth of patterns (k, n) above their price at the multipliers."""
        member = inside.astype(np.float64)
        cut = np.einsum("xa,xa->a", member, pairs @ (1 - member))
        return np.asarray(self.worth(inside) - rows.sum() - (self.ratio - 1) * (rows @ member + cut))

    def price(self, theta: Array, rows: Array, pairs: Array) -> tuple[float, Members]:
        """The largest gain found at the multipliers, and patterns that gain: among blocks, and at some ratios."""
        start, stop = every_block(len(self.pair))
        gain = self._block_gains(start, stop, rows, pairs)
        chosen = np.unique(np.concatenate([_best(start, gain), _best(stop, gain)]))
        top, found = float(gain.max()), blocks(start[chosen], stop[chosen], len(self.pair))
        used = self.inside[:, theta > 1e-6 * theta.max()]
        sets = self._best_sets(np.concatenate([self._labels(), self.ratios(used)]), rows, pairs)
        # Then the best sets at the ratios that the best of these have.
        near = sets[:, np.argsort(-self.gains(sets, rows, pairs))[:NEAR]]
        sets = np.hstack([sets, self._best_sets(self.ratios(near), rows, pairs)])
        gain = self.gains(sets, rows, pairs)
        return max(top, float(gain.max())), np.hstack([found, sets[:, gain > LEAST]])

    def search(self, rows: Array, pairs: Array) -> tuple[float, Members]:
        """The same at every ratio: a bound on the largest gain, and the patterns met on the way that gain."""
        v, p0, p1 = self.scale, self.pair.p0, self.pair.p1
        bound, found = largest_violation(self.f, p0, p1, rows * v, pairs * v, self.ratio, LEAST * v, FLOWS)
        return bound / v, found

    def _block_gains(self, start: Index, stop: Index, rows: Array, pairs: Array) -> Array:
        """`gains` of the blocks [start, stop), from prefix sums."""
        gain = self.ratio - 1
        a, b = self.pair.prefix
        worth = self.f.positive_excess(1 + gain * (a[stop] - a[start]), 1 + gain * (b[stop] - b[start])) / self.scale
        paid = np.concatenate([[0.0], np.cumsum(rows + pairs.sum(axis=1))])
        kept = np.zeros((len(rows) + 1, len(rows) + 1))
        kept[1:, 1:] = pairs.cumsum(axis=0).cumsum(axis=1)
        within = kept[stop, stop] - kept[start, stop] - kept[stop, start] + kept[start, start]
        return np.asarray(worth - rows.sum() - gain * (paid[stop] - paid[start] - within))

    def _labels(self) -> Array:
        """Ratios that outputs can have: half even in their logarithm, half from the inputs' own ratios."""
        s = self.pair.posterior
        low, high = max(s[0], 1 / (1 + self.ratio)), min(s[-1], self.ratio / (1 + self.ratio))
        half = LABELS // 2
        own = np.clip(s[np.linspace(0, len(s) - 1, half).round().astype(np.intp)], low, high)
        at = np.concatenate([own, _even_odds(low, high, (np.arange(half) + 0.5) / half)])
        at = np.clip(at, 1e-12, 1 - 1e-12)
        return np.asarray(at / (1 - at))

    def ratios(self, inside: Members) -> Array:
        """The likelihood ratios of patterns (k, n)."""
        gain = self.ratio - 1
        return np.asarray((1 + gain * (self.pair.p0 @ inside)) / (1 + gain * (self.pair.p1 @ inside)))

    def best_sets(self, rows: Array) -> Members:
        """The patterns that gain most by the tangents at a fine grid of ratios, without a cap; few are different."""
        s = self.pair.posterior
        low, high = max(s[0], 1 / (1 + self.ratio)), min(s[-1], self.ratio / (1 + self.ratio))
        at = np.clip(_even_odds(low, high, np.linspace(0, 1, FINE)), 1e-12, 1 - 1e-12)
        return self._best_sets(at / (1 - at), rows, np.zeros((len(rows), len(rows))))

    def _best_sets(self, ratios: Array, rows: Array, pairs: Array) -> Members:
        """(k, labels) the pattern that gains most by the tangent of mu at each ratio."""
        r = np.unique(ratios)
        slope = np.asarray(self.f.derivative(r)) - self.f.derivative(1.0)
        level = np.asarray(self.f.excess(r, np.ones_like(r))) - r * slope
        profits = (slope[:, None] * self.pair.p0 + level[:, None] * self.pair.p1) / self.scale - rows
        return np.asarray(Network(pairs, 1).route(profits)[1].T)

    def violated(self, theta: Array) -> tuple[list[tuple[float, float]], list[tuple[int, int]]]:
        """Posteriors (low, high) of kernels, and single pairs, whose caps the weights exceed most."""
        assert self.eta is not None
        member = self.inside[:, theta > 0].astype(np.float64)
        apart = (self.ratio - 1) * (member * theta[theta > 0]) @ (1 - member).T
        s, limit = self.pair.posterior, self.eta * (1 + VIOLATED)
        at = np.unique(np.concatenate([(s[1:] + s[:-1]) / 2, s[0] + (s[-1] - s[0]) * np.linspace(0.01, 0.99, 99)]))
        down, up = self._sides(at, at)
        use = np.triu(down @ apart @ up.T / np.maximum(np.outer(down.sum(axis=1), up.sum(axis=1)), 1e-300))
        kernels = [(float(at[i]), float(at[j])) for i, j in _peaks(use, limit, 10, 4)]
        new = [pair for pair in _peaks(apart, limit, 1, len(s)) if pair not in self.singles]
        return kernels, new


def every_block(k: int) -> tuple[Index, Index]:
    """The starts and stops of all contiguous blocks of k inputs, except the whole."""
    start, stop = np.triu_indices(k + 1, 1)
    proper = stop - start < k
    return start[proper], stop[proper]


def blocks(start: Index, stop: Index, k: int) -> Members:
    """(k, n) membership in the blocks [start, stop)."""
    at = np.arange(k)[:, None]
    return np.asarray((at >= start) & (at < stop))


def _best(group: Index, gain: Array) -> Index:
    """The position of the largest gain in every group, where it is above `LEAST`."""
    order = np.lexsort((-gain, group))
    first = order[np.concatenate([[True], np.diff(group[order]) > 0])]
    return np.asarray(first[gain[first] > LEAST])


def _peaks(values: Array, limit: float, apart: int, most: int) -> list[tuple[int, int]]:
    """Up to `most` places of the largest entries above `limit`, whose rows and columns are at least `apart`."""
    i, j = np.nonzero(values > limit)
    found: list[tuple[int, int]] = []
    for n in np.argsort(-values[i, j]):
        place = (int(i[n]), int(j[n]))
        if all(abs(place[0] - a) >= apart and abs(place[1] - b) >= apart for a, b in found):
            found.append(place)
        if len(found) == most:
            break
    return found


def _even_odds(low: float, high: float, at: Array) -> Array:
    """Posteriors between two, at fractions `at` of the way in log odds."""
    ends = np.clip(np.array([low, high]), 1e-9, 1 - 1e-9)
    first, last = np.log(ends) - np.log1p(-ends)
    return np.asarray(1 / (1 + np.exp(-(first + (last - first) * at))))
