"""Publicly tossed coins between partitions: the envelope theorem for partitions that are known.

With t = 1/(exp(epsilon) - 1), a partition into m blocks that are together worth V has total variation 1 / (1 + t m) and
keeps V / (1 + t m). This is a projective map of (m, V), which maps lines to lines: the envelope over eta is the concave
hull of the points (m, V). The slope of a chord of the hull is the price of a block. If no partition at all, known or
not, lies above the chord at that price, the coin between its two ends is optimal.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


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
        """The utility V / (1 + t m) of the partition's channel, for t = `level`."""
        return self.total / (1 + level * self.blocks)

    def variation(self, level: float) -> float:
        """Its total variation 1 / (1 + t m); 0 for one block, which says nothing."""
        return 0.0 if self.blocks == 1 else 1 / (1 + level * self.blocks)


@dataclass(frozen=True)
class Coin:
    """A coin between at most two partitions, and the line of the envelope on which both lie.

    parts : (weight, partition) pairs; one block is erasure. price : the price of a block, at least 0, at which both are
    best. most : V less the price of the blocks, which is the same for both.
    """

    parts: tuple[tuple[float, Cut], ...]
    price: float
    most: float

    def beaten(self, cut: Cut) -> bool:
        """Whether a partition lies above the line by more than rounding."""
        return cut.total - self.price * cut.blocks > self.most + 1e-14 * abs(cut.total)


def best_coin(known: Iterable[Cut], eta: float, level: float) -> Coin:
    """The coin over the partitions that keeps the most with a total variation of at most `eta`, for t = `level`.

    known : partitions, among them the one with one block, which is erasure.

    >>> coin = best_coin([Cut((0, 3), 0.0), Cut((0, 2, 3), 0.9), Cut((0, 1, 2, 3), 1.2)], 0.3, 1.0)
    >>> [(round(weight, 9), cut.blocks) for weight, cut in coin.parts], round(coin.price, 9)
    ([(0.6, 2), (0.4, 3)], 0.3)
    """
    best: dict[int, Cut] = {}
    for cut in known:
        if cut.blocks not in best or cut.total > best[cut.blocks].total:
            best[cut.blocks] = cut
    # From the partition that keeps the most, along the hull, to more blocks and less total variation.
    at = max(sorted(best.values(), key=lambda cut: cut.blocks), key=lambda cut: cut.rate(level))
    if at.variation(level) <= eta:
        price = max(at.rate(level), 0.0) * level
        return Coin(((1.0, at),), price, at.total - price * at.blocks)
    while True:
        further = [cut for cut in best.values() if cut.blocks > at.blocks and cut.total > at.total]
        if not further:
            weight = eta / at.variation(level)
            return Coin(((weight, at), (1 - weight, best[1])), 0.0, at.total)
        price, _, after = max(((x.total - at.total) / (x.blocks - at.blocks), x.blocks, x) for x in further)
        high, low = at.variation(level), after.variation(level)
        if low <= eta:
            weight = (eta - low) / (high - low)
            return Coin(((weight, at), (1 - weight, after)), price, at.total - price * at.blocks)
        at = after
