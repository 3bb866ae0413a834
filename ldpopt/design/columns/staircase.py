"""The staircase patterns of k inputs."""

from __future__ import annotations

import math

import numpy as np

from ldpopt.design.columns.base import BATCH, AnyRelaxation, Columns
from ldpopt.design.columns.prices import EXACT_LIMIT, Prices
from ldpopt.design.columns.relaxation import Relaxation, relax
from ldpopt.distribution import Array

FULL = 8
"""Up to this many inputs all patterns enter at once."""


class StaircaseColumns(Columns):
    """The 2^k - 1 staircase patterns of k inputs: exp(epsilon) on a set, 1 elsewhere."""

    kind = "staircase patterns"

    def __init__(self, k: int, epsilon: float) -> None:
        self.k = k
        self.epsilon = epsilon

    @property
    def name(self) -> str:
        """What reports call them, with their number."""
        return f"{2**self.k} {self.kind}"

    def start(self) -> Array:
        """All of a small alphabet; else singletons, their complements, and sets of near-best size."""
        k = self.k
        if k <= FULL:
            return np.asarray(((np.arange(2**k - 1)[:, None] >> np.arange(k)) & 1) * self.epsilon)
        rng = np.random.default_rng(k)
        best = min(max(round(k / (math.exp(self.epsilon) + 1)), 1), k - 1)
        sets = [np.zeros((1, k), dtype=bool), np.eye(k, dtype=bool), ~np.eye(k, dtype=bool)]
        for size in {max(best - 1, 1), best, min(best + 1, k - 1)}:
            circle = np.arange(k) < size
            for order in (np.arange(k), rng.permutation(k)):
                turned = np.array([np.roll(circle, turn) for turn in range(k)])
                sets.append(turned[:, order])
        return np.asarray(np.unique(np.vstack(sets), axis=0) * self.epsilon)

    def complete(self, heights: Array) -> bool:
        """Whether all patterns but the full one, which is the empty one again, are there."""
        return bool(len(heights) >= 2**self.k - 1)

    def paying(self, prices: Prices, used: Array, least: float) -> Array:
        """Those that local search finds; if it finds none, those of all patterns where they can be priced."""
        found = prices.climb(used > 0, BATCH, least)
        if len(found) == 0 and self.exact:
            found = prices.best(BATCH, least)[1]
        return np.asarray(found * self.epsilon)

    @property
    def exact(self) -> bool:
        """Whether all patterns can be priced."""
        return self.k <= EXACT_LIMIT

    def most(self, prices: Prices) -> float:
        """The largest price of all 2^k patterns."""
        return prices.best(0, math.inf)[0]

    def relax(self, gram: Array, prior: Array, eta: float | None) -> tuple[Array, Array, AnyRelaxation]:
        """Those of Shor's relaxation of the patterns."""
        return relax(gram, prior, math.exp(self.epsilon), eta)

    def relaxed_most(self, relaxed: AnyRelaxation, prices: Prices) -> float:
        """No price is above it, by Shor's relaxation of the patterns."""
        if not isinstance(relaxed, Relaxation):
            return math.inf
        return relaxed.violation(prices.gram, prices.prior, prices.rows, prices.pairs, prices.ratio)
