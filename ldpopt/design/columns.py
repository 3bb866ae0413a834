"""The columns that designs for estimation are made of: which there are, which pay, and what none of them exceeds.

A column is known by its logarithms (k,), in nats. Under plain LDP columns are staircase patterns, priced in halves or,
for large alphabets, by local search and a relaxation; under a policy graph they are its extreme columns, listed.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ldpopt.channel import Label
from ldpopt.design.constraints import LocalDP, TotalVariation
from ldpopt.design.extreme_columns import extreme_columns, shortest_limits
from ldpopt.design.pricing import EXACT_LIMIT, Prices
from ldpopt.distribution import Array
from ldpopt.errors import InvalidInput

if TYPE_CHECKING:
    from ldpopt.design.fisher import FisherInformation

FULL = 8
"""Up to this many inputs all patterns enter at once."""

FEW = 400
"""Up to this many extreme columns of a policy graph do."""

BATCH = 200
"""Columns that join in a round."""


class Columns(ABC):
    """The columns of the channels within a constraint."""

    epsilon: float
    """The largest log-ratio of two entries of a column; inf where entries may be 0."""

    kind: str
    """What they are called in reports."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What reports call them, with their number."""

    def values(self, heights: Array) -> Array:
        """The columns with these logarithms."""
        return np.asarray(np.exp(heights))

    @abstractmethod
    def start(self) -> Array:
        """Logarithms (n, k) of columns to begin with, of which some mixture is constant."""

    @abstractmethod
    def complete(self, heights: Array) -> bool:
        """Whether these are all columns."""

    @abstractmethod
    def paying(self, prices: Prices, used: Array, least: float) -> Array:
        """Columns priced above `least`, the best of them or ones near to `used`."""

    @property
    @abstractmethod
    def exact(self) -> bool:
        """Whether `most` is of all columns."""

    @abstractmethod
    def most(self, prices: Prices) -> float:
        """The largest price, when exact."""


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


class PolicyColumns(Columns):
    """The extreme columns under limits (k, k) of the log-ratios between inputs."""

    kind = "extreme columns of the policy graph"

    def __init__(self, limits: Array, ordered: bool) -> None:
        self.heights = extreme_columns(limits, ordered)
        self.epsilon = float(limits.max())

    @property
    def name(self) -> str:
        """What reports call them, with their number."""
        return f"{len(self.heights)} {self.kind}"

    def start(self) -> Array:
        """All of a short list; else every tenth or so, and for each input those where it stands out the most."""
        if len(self.heights) <= FEW:
            return self.heights
        spread = np.random.default_rng(len(self.heights)).choice(len(self.heights), FEW, replace=False)
        values = self.values(self.heights)
        share = values / values.sum(axis=1, keepdims=True)
        outstanding = np.concatenate([np.argsort(-share, axis=0)[:4].ravel(), np.argsort(share, axis=0)[:4].ravel()])
        return np.asarray(self.heights[np.unique(np.concatenate([spread, outstanding]))])

    def complete(self, heights: Array) -> bool:
        """Whether the whole list is there."""
        return len(heights) >= len(self.heights)

    def paying(self, prices: Prices, used: Array, least: float) -> Array:
        """The best of the whole list."""
        gains = self._gains(prices)
        best = np.argsort(-gains)[:BATCH]
        return np.asarray(self.heights[best[gains[best] > least]])

    @property
    def exact(self) -> bool:
        """The list is complete."""
        return True

    def most(self, prices: Prices) -> float:
        """The largest price of the list."""
        return float(self._gains(prices).max())

    def _gains(self, prices: Prices) -> Array:
        parts = np.array_split(self.heights, 1 + len(self.heights) // 4096)
        return np.asarray(np.concatenate([prices.gains(self.values(part)) for part in parts]))


def policy_limits(constraints: Sequence[Any], inputs: Sequence[Label]) -> Array:
    """The largest log-ratio (k, k) that all `LocalDP` among `constraints` together leave to every two inputs."""
    k = len(inputs)
    limits = np.full((k, k), np.inf)
    for constraint in constraints:
        if not isinstance(constraint, LocalDP):
            continue
        if constraint.listed is None:
            limits = np.minimum(limits, constraint.epsilon)
        else:
            left, right, weight = constraint.listed.needed(inputs)
            limits[left, right] = np.minimum(limits[left, right], weight * constraint.epsilon)
    np.fill_diagonal(limits, 0.0)
    return shortest_limits(limits)


def columns_for(utility: FisherInformation, constraints: Sequence[Any]) -> tuple[Columns, float | None]:
    """The columns within `constraints`, and the cap on total variation, None if it cannot bind.

    Raises `InvalidInput` where entries may be 0 for want of a path while the share of a category may be 0, too.
    """
    k = len(utility.prior)
    limits = policy_limits(constraints, tuple(utility.inputs or range(k)))
    apart = limits[~np.eye(k, dtype=bool)]
    widest = float(apart.max())
    eta = min((c.eta for c in constraints if isinstance(c, TotalVariation)), default=1.0)
    capped = eta < math.tanh(widest / 2)  # [GI, Prop 2], of every two inputs
    if math.isinf(widest) and (utility.prior.min() <= 0 or utility.neighbourhood is not None):
        raise InvalidInput(
            "policy graph: expected a path between any two inputs where the share of a category may be 0, got none"
        )
    if widest == apart.min():
        return StaircaseColumns(k, widest), eta if capped else None
    return PolicyColumns(limits, capped), eta if capped else None
