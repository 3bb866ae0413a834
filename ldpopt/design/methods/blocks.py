"""Sort, partition, randomize: the exact optimum over block partitions of the sorted inputs.

A channel that cuts the sorted inputs into m blocks and applies m-ary randomized response to the block label has
utility V / (1 + t m), with t = 1/(exp(epsilon) - 1) and V = sum over blocks of mu(t + P0(B), t + P1(B)).
Without a TV constraint the best such channel is optimal among all channels [SPR]. With one, the least non-decreasing
concave majorant in eta of the points (0, 0) and (1/(1 + t m), V_m/(1 + t m)) is the optimum: the envelope theorem. It
is attained by a publicly tossed coin between two partitions, of which one block is erasure (`certificates.envelope`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ldpopt.design.problems.reduction import Pair
from ldpopt.distribution import Array, Index
from ldpopt.divergences import FDivergence

LARGEST = float(np.finfo(np.float64).max)

COARSE = 400
"""Above twice this many inputs, a merged problem of this size finds where to start."""


@dataclass(frozen=True)
class Cut:
    """A partition of the sorted inputs: blocks [cuts[i], cuts[i+1]), and the sum V of their values."""

    cuts: tuple[int, ...]
    total: float

    @property
    def blocks(self) -> int:
        """The number m of blocks."""
        return len(self.cuts) - 1


@dataclass(frozen=True, eq=False)
class Blocks:
    """The values of blocks of one pair under one divergence and one epsilon, in nats.

    Columns are divided by E - 1, so that nothing grows or vanishes with epsilon: a block is worth
    mu(t + P0(B), t + P1(B)) with t = 1/(E-1).
    """

    f: FDivergence
    pair: Pair
    epsilon: float

    @cached_property
    def level(self) -> float:
        """t = 1/(e^epsilon - 1), above 0 also where it underflows."""
        return max(math.exp(-self.epsilon) / -math.expm1(-self.epsilon), 1e-306)

    @cached_property
    def _parts(self) -> tuple[Array, Array, Array]:
        """p0 - p1, p1 and p0 of the inputs, shape (k,) each."""
        return self.pair.apart, self.pair.p1, self.pair.p0

    @cached_property
    def _sums(self) -> list[Array]:
        """(k+1,) prefix sums of each."""
        return [np.concatenate([[0.0], np.cumsum(part)]) for part in self._parts]

    def _worth(self, d: Array, p1: Array, p0: Array) -> Array:
        """mu(t + p0, t + p1) for d = p0 - p1."""
        return np.asarray(self.f.excess_of(d, self.level + p1, self.level + p0))

    @cached_property
    def _fine(self) -> bool:
        """Whether differences of prefix sums would lose masses that count: beside a tiny level, or tiny themselves."""
        masses = np.concatenate([self.pair.p0, self.pair.p1])
        return self.level < 1e-6 or bool(masses[masses > 0].min() < 1e-12)

    def value(self, start: Index, stop: Index) -> Array:
        """mu(t + P0(B), t + P1(B)) for blocks [start, stop), element by element."""
        if self._fine and np.size(start) < 10_000:
            ends = [slice(i, j) for i, j in zip(start, stop, strict=True)]
            return self._worth(*(np.array([part[block].sum() for block in ends]) for part in self._parts))
        return self._worth(*(part[stop] - part[start] for part in self._sums))

    def _ending_at(self, j: int) -> Array:
        """(j,) values of the blocks [i, j) for i = 0 .. j-1."""
        if self._fine:
            return self._worth(*(np.cumsum(part[j - 1 :: -1] if j else part[:0])[::-1] for part in self._parts))
        return self._worth(*(part[j] - part[:j] for part in self._sums))

    def cut(self, cuts: list[int]) -> Cut:
        """The partition at `cuts`, valued."""
        at = np.asarray(cuts, dtype=np.intp)
        return Cut(tuple(int(c) for c in cuts), float(self.value(at[:-1], at[1:]).sum()))

    def rate(self, cut: Cut) -> float:
        """The utility V / (1 + t m) of the partition's channel."""
        return cut.total / (1 + self.level * cut.blocks)

    def variation(self, cut: Cut) -> float:
        """Its total variation 1 / (1 + t m); 0 for one block, which says nothing."""
        return 0.0 if cut.blocks == 1 else 1 / (1 + self.level * cut.blocks)

    def potentials(self, price: float) -> tuple[Array, npt.NDArray[np.intp]]:
        """(k+1,) the most that partitions of the first j inputs are worth, a block costing `price`; the last cuts."""
        k, price = len(self.pair), min(price, LARGEST)
        reach, came = np.zeros(k + 1), np.zeros(k + 1, dtype=np.intp)
        for j in range(1, k + 1):
            gained = self._ending_at(j)
            gained = gained + reach[:j]
            came[j] = at = int(gained.argmax())
            reach[j] = gained[at] - price
        return reach, came

    def best(self, price: float) -> Cut:
        """The partition of the largest V minus `price` times the number of blocks: O(k^2)."""
        _, came = self.potentials(price)
        cuts = [len(self.pair)]
        while cuts[-1]:
            cuts.append(int(came[cuts[-1]]))
        return self.cut(cuts[::-1])

    def improve(self, cut: Cut) -> Cut:
        """Move one boundary at a time to its best place, until none moves: O(k) a sweep."""
        cuts = list(cut.cuts)
        moved = True
        while moved:
            moved = False
            for i in range(1, len(cuts) - 1):
                left, right = cuts[i - 1], cuts[i + 1]
                middle = np.arange(left + 1, right)
                value = self.value(np.full_like(middle, left), middle) + self.value(middle, np.full_like(middle, right))
                best = int(middle[value.argmax()])
                if best != cuts[i] and value.max() > value[cuts[i] - left - 1] * (1 + 1e-14):
                    cuts[i], moved = best, True
        return self.cut(cuts)

    def optimum(self) -> Cut:
        """The partition of the largest rate V / (1 + t m), by Dinkelbach's method on `best`."""
        cut = self._start()
        while True:
            better = self.best(max(self.rate(cut), 0.0) * self.level)
            if self.rate(better) <= self.rate(cut) * (1 + 1e-14):
                return cut
            cut = better

    def _start(self) -> Cut:
        """A good partition to start from: the optimum of a merged problem, its boundaries then moved."""
        k = len(self.pair)
        if k <= 2 * COARSE:
            return Cut((0, k), 0.0)
        starts = merge_starts(self.pair, COARSE)
        coarse = Blocks(self.f, self.pair.merge(starts), self.epsilon).optimum()
        edges = [*starts.tolist(), k]
        return self.improve(self.cut([edges[c] for c in coarse.cuts]))

    def coin(self, eta: float | None) -> tuple[tuple[float, Cut], ...]:
        """The best partition, or under a cap that binds the best coin between two: (weight, partition) pairs."""
        return ((1.0, self.optimum()),) if eta is None else self.envelope(eta)

    def price(self, coin: tuple[tuple[float, Cut], ...]) -> float:
        """The price of a block at which both partitions of an optimal coin are best: t times the line's level."""
        cuts = [cut for weight, cut in coin if weight]
        if len(cuts) == 1 and len(coin) == 1:
            return max(self.rate(cuts[0]), 0.0) * self.level
        first, second = (cut for _, cut in coin)
        if 1 in (first.blocks, second.blocks):
            return 0.0  # the line through the origin
        return max((first.total - second.total) / (first.blocks - second.blocks), 0.0)

    def envelope(self, eta: float) -> tuple[tuple[float, Cut], ...]:
        """The publicly tossed coin over partitions that attains the envelope at `eta`: (weight, partition) pairs.

        In the plane of (m, V) the envelope is the concave hull of V, because (1, V) / (1 + t m) is a projective map:
        every chord found here is one linear trade of V against the number of blocks.
        """
        high = self.optimum()
        if self.variation(high) <= eta:
            return ((1.0, high),)
        low = self.best(0.0)
        if self.variation(low) >= eta or low.blocks <= high.blocks:
            weight = eta / self.variation(low)
            return ((weight, low), (1 - weight, Cut((0, len(self.pair)), 0.0)))
        while True:
            slope = (low.total - high.total) / (low.blocks - high.blocks)
            found = self.best(slope)
            level = high.total - slope * high.blocks
            if found.total - slope * found.blocks <= level + 1e-13 * abs(high.total):
                break
            if self.variation(found) >= eta:
                high = found
            else:
                low = found
        weight = (eta - self.variation(low)) / (self.variation(high) - self.variation(low))
        return ((weight, high), (1 - weight, low))


def merge_starts(pair: Pair, bins: int) -> Index:
    """Where to start `bins` runs of inputs so that each run has nearly one ratio: even in mass and in posterior."""
    mass = np.cumsum(pair.p0 + pair.p1)
    s = pair.posterior
    spread = (s - s[0]) / (s[-1] - s[0])
    level = mass / mass[-1] + spread
    cell = np.minimum((level / level[-1] * bins).astype(np.intp), bins - 1)
    return np.flatnonzero(np.concatenate([[True], np.diff(cell) > 0]))
