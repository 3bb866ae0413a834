"""Sorted inputs -> the exact optimum over block partitions of them, or over publicly tossed coins between two [SPR].

A channel cuts the sorted inputs into m blocks and applies m-ary randomized response to the block label. It has the
utility V / (1 + t m), with t = 1/(exp(epsilon) - 1) and V = sum over blocks of mu(t + P0(B), t + P1(B)). Without a TV
constraint the best such channel is optimal among all channels [SPR]. With one, the least non-decreasing concave
majorant in eta of the points (0, 0) and (1/(1 + t m), V_m/(1 + t m)) is the optimum: the envelope theorem. It is
attained by a publicly tossed coin between two partitions; the partition into one block is erasure
(`two_hypotheses.proof`).

The map from (m, V) to total variation and utility is projective and takes lines to lines: the envelope over eta is the
concave hull of the points (m, V). The slope of a chord of the hull is the price of a block. If no partition at all,
known or not, lies above the chord at that price, the coin between its two endpoints is optimal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from ldpopt.design.kernel.sets import level_of
from ldpopt.design.problems.reduction import Pair
from ldpopt.design.two_hypotheses.proof import RunningSums, SortedBlocks
from ldpopt.divergences import FDivergence
from ldpopt.values.deadline import UNLIMITED, Deadline
from ldpopt.values.distribution import Array, Index


@dataclass(frozen=True)
class Cut:
    """A partition of the sorted inputs: blocks [cuts[i], cuts[i+1]), and the sum V of their values."""

    cuts: tuple[int, ...]
    total: float

    @property
    def blocks(self) -> int:
        """The number m of blocks."""
        return len(self.cuts) - 1

    def rate(self, level: float) -> float:
        """Compute the utility V / (1 + t m) of the partition's channel, for t = `level`."""
        return self.total / (1 + level * self.blocks)

    def variation(self, level: float) -> float:
        """Compute its total variation 1 / (1 + t m); 0 for one block, which is uninformative."""
        return 0.0 if self.blocks == 1 else 1 / (1 + level * self.blocks)


@dataclass(frozen=True)
class Coin:
    """A coin between at most two partitions, and the line of the envelope through both.

    - `parts` : (weight, partition) pairs; one block is erasure.
    - `price` : the price of a block, at least 0, that makes both best.
    - `constant` : V less the price of the blocks, which is the same for both.
    """

    parts: tuple[tuple[float, Cut], ...]
    price: float
    constant: float


def optimal_coin(partitions: Iterable[Cut], eta: float, level: float) -> Coin:
    """Find the best coin over partitions with a total variation of at most `eta`.

    partitions : known partitions, among them the one with one block, which is erasure. level : t.

    >>> coin = optimal_coin([Cut((0, 3), 0.0), Cut((0, 2, 3), 0.9), Cut((0, 1, 2, 3), 1.2)], 0.3, 1.0)
    >>> [(round(weight, 9), cut.blocks) for weight, cut in coin.parts], round(coin.price, 9)
    ([(0.6, 2), (0.4, 3)], 0.3)
    """
    best: dict[int, Cut] = {}
    for cut in partitions:
        if cut.blocks not in best or cut.total > best[cut.blocks].total:
            best[cut.blocks] = cut
    # From the best partition along the hull, to more blocks and less total variation.
    corner = max(sorted(best.values(), key=lambda cut: cut.blocks), key=lambda cut: cut.rate(level))
    if corner.variation(level) <= eta:
        price = max(corner.rate(level), 0.0) * level
        return Coin(((1.0, corner),), price, corner.total - price * corner.blocks)
    while True:
        larger_cuts = [cut for cut in best.values() if cut.blocks > corner.blocks and cut.total > corner.total]
        if not larger_cuts:
            weight = eta / corner.variation(level)
            return Coin(((weight, corner), (1 - weight, best[1])), 0.0, corner.total)
        price, _, next_corner = max(
            ((x.total - corner.total) / (x.blocks - corner.blocks), x.blocks, x) for x in larger_cuts
        )
        high, low = corner.variation(level), next_corner.variation(level)
        if low <= eta:
            weight = (eta - low) / (high - low)
            return Coin(((weight, corner), (1 - weight, next_corner)), price, corner.total - price * corner.blocks)
        corner = next_corner


FLOAT_MAX = float(np.finfo(np.float64).max)
VALUES_PER_CHUNK = 1 << 15  # Values of blocks that are computed at once.
MAX_INPUTS_WITHOUT_COARSENING = 4000  # With more, last cuts are near those of a problem with fewer inputs.
MAX_WINDOW_ROUNDS, MAX_UNPAID_BLOCKS = 6, 100_000  # How often windows become wider, and for how many blocks.
PRICE_RTOL_FACTOR = 1 + 2.0**-36  # A block whose value is at most so many times its price counts as paid.
COARSENING_FACTOR = 4  # Inputs that are merged into one in that problem.
MAX_INPUTS_CACHED = 1500  # Up to this many, all values are stored between passes, in 9 MB.
COARSE_INPUTS = 400  # With more than twice as many, a merged problem of this size gives the first partitions.


@dataclass(frozen=True, eq=False)
class Blocks:
    """The values of the blocks of one pair of hypotheses, for one divergence and one epsilon, in nats.

    A block is a set of inputs that are neighbors in the order of likelihood ratios. Columns are divided by E - 1, so
    that nothing overflows at any epsilon. A block B has the value mu(t + P0(B), t + P1(B)) with t = 1/(E-1), E =
    e^epsilon.
    """

    f: FDivergence
    pair: Pair
    epsilon: float

    @cached_property
    def level(self) -> float:
        """The level t = 1/(e^epsilon - 1), held above 0 where it underflows."""
        return level_of(self.epsilon)

    @cached_property
    def _parts(self) -> tuple[Array, Array, Array]:
        """p0 - p1, p1 and p0 of the inputs, shape (k,) each."""
        return self.pair.difference, self.pair.p1, self.pair.p0

    @cached_property
    def _sums(self) -> list[Array]:
        """The (k+1,) prefix sums of each of the three."""
        return [np.concatenate([[0.0], np.cumsum(part)]) for part in self._parts]

    @cached_property
    def _running(self) -> list[RunningSums]:
        """The same to more digits."""
        return [RunningSums.from_values(part) for part in self._parts]

    def _worth(self, d: Array, p1: Array, p0: Array) -> Array:
        """Compute mu(t + p0, t + p1) for d = p0 - p1."""
        return np.asarray(self.f.excess_of(d, self.level + p1, self.level + p0))

    @cached_property
    def _fine(self) -> bool:
        """True if differences of prefix sums would lose digits: where the level or some mass is tiny."""
        masses = np.concatenate([self.pair.p0, self.pair.p1])
        return self.level < 1e-6 or bool(masses[masses > 0].min() < 1e-12)

    def value(self, start: Index, stop: Index) -> Array:
        """Compute mu(t + P0(B), t + P1(B)) for blocks [start, stop), elementwise."""
        if self._fine and np.size(start) < 10_000:
            ends = np.stack([start, stop], axis=1).ravel()
            return self._worth(*(np.add.reduceat(np.append(part, 0.0), ends)[::2] for part in self._parts))
        return self._worth(*(part.between(start, stop) for part in self._running))

    def _ending(self, low: int, high: int) -> Array:
        """Compute the (high - low, high) values of the blocks [i, j) for low < j <= high; 0 where i >= j."""
        is_nonempty = np.arange(high) < np.arange(low + 1, high + 1)[:, None]
        if self._fine:
            summands = (np.where(is_nonempty, part[:high], 0.0) for part in self._parts)
            return self._worth(*(np.cumsum(rows[:, ::-1], axis=1)[:, ::-1] for rows in summands))
        return self._worth(
            *(np.where(is_nonempty, part[low + 1 : high + 1, None] - part[:high], 0.0) for part in self._sums)
        )

    @cached_property
    def _chunks(self) -> list[tuple[int, int]]:
        """The stops of the blocks, cut into runs whose values fit into a processor's cache."""
        edges = [0]
        while edges[-1] < len(self.pair):
            edges.append(min(len(self.pair), edges[-1] + max(1, min(VALUES_PER_CHUNK // (edges[-1] + 1), 64))))
        return list(pairwise(edges))

    @cached_property
    def _cached_values(self) -> list[Array]:
        """The values of all blocks, for problems that are small enough to cache them."""
        return [self._ending(low, high) for low, high in self._chunks]

    def _values(self) -> Iterator[tuple[int, Array]]:
        """Generate (j, values of the blocks [i, j) for i = 0 .. j-1) for j = 1 .. k."""
        for index, (low, high) in enumerate(self._chunks):
            rows = self._cached_values[index] if len(self.pair) <= MAX_INPUTS_CACHED else self._ending(low, high)
            for j in range(low + 1, high + 1):
                yield j, rows[j - low - 1, :j]

    def cut(self, cuts: list[int]) -> Cut:
        """Build the partition at `cuts`, with its value."""
        ends = np.asarray(cuts, dtype=np.intp)
        return Cut(tuple(int(c) for c in cuts), float(self.value(ends[:-1], ends[1:]).sum()))

    def potentials(self, price: float) -> tuple[Array, Index]:
        """Compute the best value of a partition of the first j inputs, less `price` per block.

        Returns it for every j, (k+1,), and the last cut of that partition.
        """
        k, price = len(self.pair), min(price, FLOAT_MAX)
        if k > MAX_INPUTS_WITHOUT_COARSENING:
            return self._windowed_potentials(price, *self._windows(price))
        best_value, last_cut = np.zeros(k + 1), np.zeros(k + 1, dtype=np.intp)
        for j, values in self._values():
            totals = values + best_value[:j]
            last_cut[j] = start = int(totals.argmax())
            best_value[j] = totals[start] - price
        return best_value, last_cut

    def _windows(self, price: float) -> tuple[Index, Index]:
        """Return (k+1,) the range of last cuts to search for every j: near those of a smaller problem."""
        k = len(self.pair)
        _, last_cut = Blocks(self.f, self.pair.merge(np.arange(0, k, COARSENING_FACTOR)), self.epsilon).potentials(
            price
        )
        parent = np.arange(k + 1) // COARSENING_FACTOR
        coarse_cuts = [last_cut[np.clip(parent + offset, 0, len(last_cut) - 1)] for offset in (-1, 0, 1, 2)]
        last_input = np.arange(k + 1) - 1
        low, high = np.min(coarse_cuts, axis=0) - 1, np.max(coarse_cuts, axis=0) + 1
        return np.clip(COARSENING_FACTOR * low, 0, np.maximum(last_input, 0)), np.clip(
            COARSENING_FACTOR * high, 0, np.maximum(last_input, 0)
        )

    def paying(self, price: float, margin: float) -> Array:
        """Compute `potentials` with a margin, which cover the values of nearly all blocks.

        Each is raised by `margin`, relative to the last one, more than the one before. Windows become wider where a
        block's value exceeds the difference of its potentials.
        """
        price = min(price, FLOAT_MAX)
        best_value, _ = self.potentials(price)
        increments = margin * min(max(float(best_value[-1]), 0.0), FLOAT_MAX) * np.arange(len(self.pair) + 1)
        if len(self.pair) <= MAX_INPUTS_WITHOUT_COARSENING:
            return best_value + increments
        low, high = self._windows(price)
        for _ in range(MAX_WINDOW_ROUNDS):
            masses = (self.pair.p0, self.pair.p1, self.pair.difference, self.pair.difference)
            multipliers = (self.level, price * PRICE_RTOL_FACTOR, (best_value + increments) * PRICE_RTOL_FACTOR)
            unpaid = SortedBlocks(self.f, *masses, *multipliers).unsettled(MAX_UNPAID_BLOCKS)
            if unpaid is None or not len(unpaid[0]):
                break
            start, stop = unpaid
            np.minimum.at(low, stop, start)
            np.maximum.at(high, stop, start)
            best_value, _ = self._windowed_potentials(price, low, high)
        return best_value + increments

    def _windowed_potentials(self, price: float, low: Index, high: Index) -> tuple[Array, Index]:
        """Compute `potentials`, with last cuts from windows, for as many j at a time as are independent."""
        k = len(self.pair)
        best_value, last_cut = np.zeros(k + 1), np.zeros(k + 1, dtype=np.intp)
        reachable = np.maximum.accumulate(high)
        block_start = 1
        while block_start <= k:
            block_end = min(
                max(block_start + 1, int(np.searchsorted(reachable, block_start))),
                k + 1,
                block_start + VALUES_PER_CHUNK // 8,
            )
            sizes = high[block_start:block_end] - low[block_start:block_end] + 1
            first = np.cumsum(sizes) - sizes
            stop = np.repeat(np.arange(block_start, block_end), sizes)
            start = np.arange(len(stop)) - np.repeat(first - low[block_start:block_end], sizes)
            totals = self.value(start, stop) + best_value[start]
            best = np.maximum.reduceat(totals, first)
            best_value[block_start:block_end] = best - price
            hits = np.flatnonzero(totals == np.repeat(best, sizes))
            last_cut[stop[hits[::-1]]] = start[hits[::-1]]
            block_start = block_end
        return best_value, last_cut

    def best(self, price: float) -> Cut:
        """Find the partition with the largest V minus `price` times the number of blocks."""
        _, last_cut = self.potentials(price)
        cuts = [len(self.pair)]
        while cuts[-1]:
            cuts.append(int(last_cut[cuts[-1]]))
        return self.cut(cuts[::-1])

    def improve(self, cut: Cut) -> Cut:
        """Move one boundary at a time to its best position until none moves; a sweep is O(k)."""
        cuts = list(cut.cuts)
        has_moved = True
        while has_moved:
            has_moved = False
            for i in range(1, len(cuts) - 1):
                left, right = cuts[i - 1], cuts[i + 1]
                middle = np.arange(left + 1, right)
                value = self.value(np.full_like(middle, left), middle) + self.value(middle, np.full_like(middle, right))
                best = int(middle[value.argmax()])
                if best != cuts[i] and value.max() > value[cuts[i] - left - 1] * (1 + 1e-14):
                    cuts[i], has_moved = best, True
        return self.cut(cuts)

    def coin(self, eta: float | None, deadline: Deadline = UNLIMITED) -> Coin:
        """Find the publicly tossed coin over partitions that is optimal with or without a cap.

        The best coin over a few known partitions gives a price of a block. Then the best of all partitions at that
        price is computed. If it is no better than those of the coin, the coin is optimal; else it joins the known
        partitions. Without a cap this is Dinkelbach's method for the largest V / (1 + t m).
        """
        cap = 1.0 if eta is None else eta
        partitions, tried_prices = self._start(eta), set[float]()
        while True:
            coin = optimal_coin(partitions, cap, self.level)
            if coin.price in tried_prices or (tried_prices and deadline.over()):
                return coin
            deadline.tell(1 - 0.5 ** len(tried_prices))
            tried_prices.add(coin.price)
            candidate = self.best(coin.price)
            if not candidate.total - coin.price * candidate.blocks > coin.constant + 1e-14 * abs(candidate.total):
                return coin  # Up to rounding, no partition lies above the line.
            partitions.append(candidate)

    def _start(self, eta: float | None) -> list[Cut]:
        """List the first partitions: erasure and, for many inputs, the improved coin of a merged problem."""
        k = len(self.pair)
        partitions = [Cut((0, k), 0.0)]
        if k > 2 * COARSE_INPUTS:
            starts = merge_starts(self.pair, COARSE_INPUTS)
            edges = [*starts.tolist(), k]
            parts = Blocks(self.f, self.pair.merge(starts), self.epsilon).coin(eta).parts
            partitions += [self.improve(self.cut([edges[c] for c in cut.cuts])) for _, cut in parts if cut.blocks > 1]
        return partitions


def merge_starts(pair: Pair, bins: int) -> Index:
    """Choose the starts of at most `bins` runs of inputs of nearly equal ratio.

    The runs are about uniform in mass and in posterior.
    """
    mass = np.cumsum(pair.p0 + pair.p1)
    s = pair.posterior
    spread = (s - s[0]) / (s[-1] - s[0])
    level = mass / mass[-1] + spread
    cell = np.minimum((level / level[-1] * bins).astype(np.intp), bins - 1)
    return np.flatnonzero(np.concatenate([[True], np.diff(cell) > 0]))
