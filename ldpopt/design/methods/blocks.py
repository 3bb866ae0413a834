"""Sort, partition, randomize: the exact optimum over block partitions of the sorted inputs.

A channel that cuts the sorted inputs into m blocks and applies m-ary randomized response to the block label has
utility V / (E + m - 1), with E = exp(epsilon) and V = sum over blocks of mu(1 + (E-1) P0(B), 1 + (E-1) P1(B)).
Without a TV constraint the best such channel is optimal among all channels [SPR]. With one, the upper concave
envelope in eta of the points (0, 0) and ((E-1)/(E+m-1), V_m/(E+m-1)) is conjectured to be the optimum; it is
always attained, by a publicly tossed coin between two partitions (one block is erasure), and a design's certificate
(`cut_dual`, `certificate`) proves it for the problem at hand.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ldpopt.design.problems.reduction import Pair
from ldpopt.distribution import Array, Index
from ldpopt.divergences import FDivergence

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
    """The values of blocks of one pair under one divergence and one ratio E = exp(epsilon)."""

    f: FDivergence
    pair: Pair
    ratio: float

    def value(self, start: Index, stop: Index) -> Array:
        """mu(1 + (E-1) P0(B), 1 + (E-1) P1(B)) for blocks [start, stop), element by element."""
        a, b = self.pair.prefix
        gain = self.ratio - 1
        return self.f.positive_excess(1 + gain * (a[stop] - a[start]), 1 + gain * (b[stop] - b[start]))

    def cut(self, cuts: list[int]) -> Cut:
        """The partition at `cuts`, valued."""
        at = np.asarray(cuts, dtype=np.intp)
        return Cut(tuple(int(c) for c in cuts), float(self.value(at[:-1], at[1:]).sum()))

    def rate(self, cut: Cut) -> float:
        """The utility V / (E + m - 1) of the partition's channel."""
        return cut.total / (self.ratio + cut.blocks - 1)

    def variation(self, cut: Cut) -> float:
        """The total variation (E-1) / (E + m - 1) of the partition's channel; 0 for a single block."""
        return (self.ratio - 1) / (self.ratio + cut.blocks - 1) if cut.blocks > 1 else 0.0

    def best(self, penalty: float) -> Cut:
        """The partition that maximises V - penalty * m, by dynamic programming over prefixes: O(k^2)."""
        a, b = self.pair.prefix
        gain = self.ratio - 1
        a, b = 1 + gain * a, 1 + gain * b
        k = len(self.pair)
        reach = np.empty(k + 1)
        reach[0] = 0.0
        came = np.zeros(k + 1, dtype=np.intp)
        excess = self.f.positive_excess
        for j in range(1, k + 1):
            gained = excess(a[j] + 1 - a[:j], b[j] + 1 - b[:j])
            gained += reach[:j]
            at = int(gained.argmax())
            came[j] = at
            reach[j] = gained[at] - penalty
        cuts = [k]
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
        """The partition of the largest rate V / (E + m - 1), by Dinkelbach's method on `best`."""
        cut = self._start()
        while True:
            better = self.best(max(self.rate(cut), 0.0))
            if self.rate(better) <= self.rate(cut) * (1 + 1e-14):
                return cut
            cut = better

    def _start(self) -> Cut:
        """A good partition to start from: the optimum of a merged problem, its boundaries then moved."""
        k = len(self.pair)
        if k <= 2 * COARSE:
            return Cut((0, k), 0.0)
        starts = merge_starts(self.pair, COARSE)
        coarse = Blocks(self.f, self.pair.merge(starts), self.ratio).optimum()
        edges = [*starts.tolist(), k]
        return self.improve(self.cut([edges[c] for c in coarse.cuts]))

    def envelope(self, eta: float) -> tuple[tuple[float, Cut], ...]:
        """The publicly tossed coin over partitions that attains the envelope at `eta`: (weight, partition) pairs.

        In the plane of (m, V) the envelope is the concave hull of V, because (t, U) = ((E-1), V) / (E+m-1) is a
        projective map: every chord found here is one linear trade of V against the number of blocks.
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
