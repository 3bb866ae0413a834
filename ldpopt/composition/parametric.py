"""The pair that dominates all mechanisms with given (epsilon, delta, eta), with its exact privacy losses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ldpopt.distribution import Array
from ldpopt.privacy.finite_pair import FinitePair
from ldpopt.privacy.parameters import checked, kept_mass


@dataclass(frozen=True, eq=False, repr=False)
class ParametricPair(FinitePair):
    """The pair that dominates every (epsilon, delta)-DP and eta-TV mechanism [GI, Thm 2], ordered, without labels.

    It stores its finite losses exactly: epsilon, 0 and -epsilon. Losses that are computed from its rounded masses would
    be wrong by a relative 1e-8 at epsilon = 1e-8. delta is the probability of an infinite loss. epsilon : nats, 0 to
    700.

    >>> ParametricPair.of(1e-12).losses.tolist()
    [1e-12, -1e-12]
    """

    epsilon: float = 0.0
    delta: float = 0.0
    kept: float = 1.0

    @classmethod
    def of(cls, epsilon: Any, delta: Any = 0.0, eta: Any = None) -> ParametricPair:
        """The pair of the parameters, checked."""
        epsilon, delta, eta = checked(epsilon, delta, eta)
        delta, kept = kept_mass(epsilon, delta, eta)
        low = 1 / (1 + math.exp(epsilon))
        p = (1 - delta) * np.array([kept / (1 + math.exp(-epsilon)), 1 - kept, kept * low])
        if p[0] > 0 and p[0] <= p[2]:
            p[0] = np.nextafter(p[2], 1.0)  # masses that rounding made equal keep a difference of an ulp
        p = np.concatenate([[delta], p, [0.0]])
        p = p[(p > 0) | (p[::-1] > 0)]
        return cls(p, p[::-1], None, epsilon, delta, kept)

    @cached_property
    def losses(self) -> Array:
        """The privacy losses, from the largest to the smallest."""
        top = [math.inf] * (self.delta > 0) + [self.epsilon] * (self.kept > 0 and self.delta < 1)
        middle = [0.0] * (len(self.p) - 2 * len(top))
        return np.array([*top, *middle, *(-loss for loss in reversed(top))])

    @cached_property
    def ordered(self) -> FinitePair:
        """The pair itself."""
        return self

    @property
    def swapped(self) -> FinitePair:
        """The pair itself, up to the order of its outcomes."""
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ParametricPair) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[float, float, float]:
        return self.epsilon, self.delta, self.kept
