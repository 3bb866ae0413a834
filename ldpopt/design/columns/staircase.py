"""The staircase patterns of k inputs."""

from __future__ import annotations

import math

import numpy as np

from ldpopt.design.columns.base import BATCH, AnyRelaxation, Columns
from ldpopt.design.columns.branches import Branches
from ldpopt.design.columns.charges import Charges
from ldpopt.design.columns.halves import most_of_patterns
from ldpopt.design.columns.line import most_of_line
from ldpopt.design.columns.prices import EXACT_LIMIT, Prices, subsets
from ldpopt.design.columns.relaxation import Relaxation
from ldpopt.design.columns.sizes import Sizes
from ldpopt.design.columns.thresholds import Scarf, Thresholds
from ldpopt.distribution import Array

FULL = 8
"""Up to this many inputs, all patterns are there from the start."""


LISTED = 12
"""Up to this many inputs, proofs price all patterns one by one in the given arithmetic; beyond, in floats."""


class StaircaseColumns(Columns):
    """The 2^k - 1 staircase patterns of k inputs: exp(epsilon) on a set, 1 elsewhere."""

    kind = "staircase patterns"

    def __init__(self, k: int, epsilon: float, line: bool = False) -> None:
        """line : whether the kernel has one row and nothing is charged for pairs, so that only few sets can be best."""
        self.k = k
        self.epsilon = epsilon
        self.line = line

    @property
    def name(self) -> str:
        """The name of the columns in printed texts, with their number."""
        return f"{2**self.k} {self.kind}"

    def start(self) -> Array:
        """All patterns of a small alphabet; else singletons, their complements, and sets of nearly the best size."""
        k = self.k
        if k <= FULL:
            return np.asarray(((np.arange(2**k - 1)[:, None] >> np.arange(k)) & 1) * self.epsilon)
        if self.line:  # few patterns join in any case
            return np.zeros((1, k))
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
        """Whether all patterns are there; the full one is not counted, as it is a multiple of the empty one."""
        return bool(len(heights) >= 2**self.k - 1)

    def paying(self, prices: Prices, used: Array, least: float) -> Array:
        """The patterns that local search finds; if it finds none, the best of all, where all can be priced."""
        if self.line:
            sets = prices.line()
            gains = prices.gains(np.where(sets, prices.ratio, 1.0))
            order = np.argsort(-gains, kind="stable")[:BATCH]
            return np.asarray(sets[order[gains[order] > least]] * self.epsilon)
        found = prices.climb(used > 0, BATCH, least)
        if len(found) == 0 and self.exact:
            found = prices.best(BATCH, least)[1]
        return np.asarray(found * self.epsilon)

    @property
    def exact(self) -> bool:
        """Whether all patterns can be priced."""
        return self.line or self.k <= EXACT_LIMIT

    def most(self, charges: Charges, relaxed: AnyRelaxation | None) -> float:
        """The largest gain of all 2^k patterns, one by one or in two halves; for too many, as `relaxed` says."""
        epsilon = charges.arithmetic.of(self.epsilon)
        # Patterns are divided by exp(epsilon) - 1: t on all inputs, and t + 1 on a set.
        level = 1 / epsilon.expm1()
        if self.k > LISTED and len(charges.kernel) == 1 and not charges.pairs.any():
            found = most_of_line(charges, level)
            if found < math.inf or self.k > EXACT_LIMIT:
                return found
        if isinstance(relaxed, Sizes | Thresholds | Scarf):
            return relaxed.most(charges, epsilon)
        if not self.exact:
            return relaxed.most(charges, epsilon) if isinstance(relaxed, Relaxation | Branches) else math.inf
        if self.k > LISTED:
            return most_of_patterns(charges, level)
        sets = subsets(self.k)
        sets = sets[:-1]  # the full pattern is a multiple of the empty one, which is priced without rounding
        return charges.most(level * np.ones(len(sets)), charges.arithmetic.of(sets))
