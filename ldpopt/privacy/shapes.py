"""Exact restricted divergences for adversaries with thresholds of one number of a report.

The class H holds the positive combinations of thresholds 1{phi(y) >= t}, which are the rising functions of phi, their
negatives, and the constants. For rising functions let p~ be the distribution with p~/q the rising fit of p/q:
neighboring outputs are pooled as long as a later ratio is below an earlier one. Within a pool the tails of p are at
most those of p~. So E_p h <= E_p~ h for every rising h, with equality for those that are constant on the pools. For
every divergence

    sup_h E_p h - E_q f*(h) <= sup_h E_p~ h - E_q f*(h) <= D_f(p~ || q),

and the h that attains the last term rises with p~/q and is constant on the pools: all are equal. So the restricted
divergence is the unrestricted one of the pooled distributions, also for Rényi of every order. With values in [0, 1]
it is the Kolmogorov distance, the largest difference of two tails. Pools are computed in integers, without rounding,
and the pooled divergence in 256-bit ball arithmetic. The tails that prove the inequality are compared exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ldpopt.errors import invalid
from ldpopt.numbers.enclosures import EXACT, Enclosure
from ldpopt.numbers.rounding import float_down, float_up
from ldpopt.values.distribution import Array, Checked, finite_array
from ldpopt.values.results import ByValue

Masses = list[tuple[int, int]]
"""Masses under p and under q of outputs in order, in one unit each."""


def line(features: Any, name: str) -> Array:
    """Check features of one number for each output, (m,), as a field."""
    array = finite_array(features, name, 1)
    if not array.size:
        raise invalid(name, "one number for each output", f"shape {array.shape}")
    array.setflags(write=False)
    return array


@dataclass(frozen=True, eq=False)
class Thresholds(Checked, ByValue, features=line):
    """The positive combinations of thresholds of one number, 1{phi(y) >= t} for any t, or of 1{phi(y) <= t}.

    features : array (m,), the number phi of each output of the channel. These functions are all that rise with phi,
    and all that fall. The restricted total variation is the Kolmogorov distance of the two laws of phi [CIM, Def 4].

    >>> from ldpopt.privacy import RestrictedTotalVariation, capacity_bounded
    >>> q = [[0.5, 0.2, 0.3], [0.3, 0.5, 0.2]]
    >>> round(float(capacity_bounded(q, Thresholds([0, 1, 2]), RestrictedTotalVariation())), 6)
    0.2
    """

    features: Any

    def check(self, outputs: int) -> None:
        """Raise `InvalidInput` unless there is one number for each of the outputs."""
        if len(self.features) != outputs:
            raise invalid("features", f"one number for each of the {outputs} outputs", len(self.features))

    def renyi(self, p: Array, q: Array, order: float) -> tuple[float, float]:
        """Bound the restricted Rényi divergence of `order` >= 1 (nats) of rows p, q (m,)."""
        ends = [_divergence(_pooled(masses), order) for masses in self._both_ways(p, q)]
        return max(low for low, _ in ends), max(high for _, high in ends)

    def total_variation(self, p: Array, q: Array) -> tuple[float, float]:
        """Bound the largest difference in the probability of a half-line of phi."""
        masses = self._both_ways(p, q)[0]
        totals = [sum(side) for side in zip(*masses, strict=True)]
        tails, distance = [0, 0], Fraction(0)
        for level_masses in masses:
            tails = [tail + mass for tail, mass in zip(tails, level_masses, strict=True)]
            distance = max(distance, abs(Fraction(tails[0], totals[0]) - Fraction(tails[1], totals[1])))
        return float_down(distance), float_up(distance)

    def _both_ways(self, p: Array, q: Array) -> tuple[Masses, Masses]:
        """The masses by rising phi, outputs of one phi together, and by falling phi."""
        levels, place = np.unique(self.features, return_inverse=True)
        level_masses = [[0, 0] for _ in levels]
        for level, *masses in zip(place.tolist(), p.tolist(), q.tolist(), strict=True):
            level_masses[level] = [
                total + _units(mass) for total, mass in zip(level_masses[level], masses, strict=True)
            ]
        rising_masses = [(a, b) for a, b in level_masses if a or b]
        return rising_masses, rising_masses[::-1]


def _units(mass: float) -> int:
    """A float as an integer multiple of 2^-1074."""
    numerator, denominator = mass.as_integer_ratio()
    return numerator * (2**1074 // denominator)


def _pooled(masses: Masses) -> Masses:
    """Neighbours pooled until the ratios p/q rise: within each pool every later part has a ratio of at most the pool's.

    >>> _pooled([(1, 2), (3, 2), (2, 2)])
    [(1, 2), (5, 4)]
    """
    pools: Masses = []
    for a, b in masses:
        while pools and pools[-1][0] * b >= a * pools[-1][1]:
            previous_pool = pools.pop()
            a, b = a + previous_pool[0], b + previous_pool[1]
        pools.append((a, b))
    return pools


def _divergence(pools: Masses, order: float) -> tuple[float, float]:
    """Bounds on the Rényi divergence of two distributions in proportion to integers."""
    totals = [sum(side) for side in zip(*pools, strict=True)]
    if any(a > 0 and b == 0 for a, b in pools):
        return math.inf, math.inf
    laws = [[Fraction(mass, totals[side]) for mass in masses] for side, masses in enumerate(zip(*pools, strict=True))]
    p, q = (
        EXACT.of(np.array([law[index] for index, (a, _) in enumerate(pools) if a > 0], dtype=object)) for law in laws
    )
    log = (p / q).log()
    if order == 1:
        divergence: Enclosure = (p * log).sum()
    else:
        divergence = (p * (log * EXACT.of(Fraction(order) - 1)).exp()).sum().log() / EXACT.of(Fraction(order) - 1)
    low, high = float(np.asarray(divergence.lower)), float(np.asarray(divergence.upper))
    return max(low, 0.0), max(high, 0.0) if len(pools) > 1 else 0.0
