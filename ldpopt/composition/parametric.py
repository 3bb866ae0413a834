"""The pair that dominates all mechanisms with given (epsilon, delta, eta), and sums and unions that are rounded once.

Outcomes so rare that their masses have lost digits cause an error of the privacy loss.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ldpopt.errors import invalid
from ldpopt.numbers.rounding import float_down, float_up, up
from ldpopt.numbers.tolerances import ROW_SUM
from ldpopt.privacy.claims import Claim
from ldpopt.privacy.finite_pair import FinitePair
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.privacy.least_pair import checked, kept_mass
from ldpopt.values.distribution import Array, number

H = TypeVar("H", bound=Hashable)


@dataclass(frozen=True, eq=False, repr=False)
class ParametricPair(FinitePair):
    """The pair that dominates every (epsilon, delta)-DP and eta-TV mechanism [GI, Thm 2], ordered, without labels.

    Its finite losses epsilon, 0 and -epsilon are exact; from the rounded masses they would be wrong by 1e-8 at 1e-8.
    """

    epsilon: float = 0.0
    delta: float = 0.0
    not_erased: float = 1.0

    @classmethod
    def from_parameters(cls, epsilon: Any, delta: Any = 0.0, eta: Any = None) -> ParametricPair:
        """Build the pair of the checked parameters."""
        epsilon, delta, eta = checked(epsilon, delta, eta)
        delta, not_erased = kept_mass(epsilon, delta, eta)
        low = 1 / (1 + math.exp(epsilon))
        p = (1 - delta) * np.array([not_erased / (1 + math.exp(-epsilon)), 1 - not_erased, not_erased * low])
        if p[0] > 0 and p[0] <= p[2]:
            p[0] = np.nextafter(p[2], 1.0)  # masses that rounding made equal keep a difference of an ulp
        p = np.concatenate([[delta], p, [0.0]])
        p = p[(p > 0) | (p[::-1] > 0)]
        return cls(p, p[::-1], None, epsilon, delta, not_erased)

    @cached_property
    def losses(self) -> Array:
        """The privacy losses, from the largest to the smallest."""
        top = [math.inf] * (self.delta > 0) + [self.epsilon] * (self.not_erased > 0 and self.delta < 1)
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
        return self.epsilon, self.delta, self.not_erased


RARE = 4 * ROW_SUM
"""A bound on how much a loss changes if a subnormal mass is divided by the sum of its row, within `ROW_SUM` of 1."""


def rare(pair: FinitePair) -> npt.NDArray[np.bool_]:
    """Mark masses so small that they may have lost digits, also before a merge."""
    if isinstance(pair, ParametricPair):
        return np.zeros(len(pair.p), dtype=np.bool_)
    rarest = np.minimum(pair.p, pair.q)
    return np.asarray((rarest > 0) & (rarest < 2.0**-1000))


def rare_error(pair: FinitePair) -> float:
    """Bound the rounding error of log p and of log q together, beyond a few ulps."""
    return RARE if rare(pair).any() else 0.0


MAX_USES = 2**53
"""The largest number of uses of one mechanism; floats count exactly up to it."""

_MAX_EXACT = 64
"""Up to this many items, a product of rational numbers is computed exactly."""


def tally(items: Iterable[tuple[H, int]]) -> Counter[H]:
    """Sum the counts of equal items."""
    counts: Counter[H] = Counter()
    for item, count in items:
        counts[item] += count
    return counts


def total(parts: Iterable[tuple[float, int]]) -> float:
    """Sum value * count exactly, and round up."""
    exact = Fraction(0)
    for value, n in parts:
        if math.isinf(value):
            return math.inf
        exact += Fraction(value) * n
    return float_up(exact)


def total_down(parts: Iterable[tuple[float, int]]) -> float:
    """Sum value * count exactly, and round down; infinite where a value is."""
    exact = Fraction(0)
    for value, n in parts:
        if math.isinf(value):
            return math.inf
        exact += Fraction(value) * n
    return float_down(exact)


def union(deltas: Iterable[tuple[float, int]]) -> float:
    """Compute 1 - prod (1 - delta)^count, rounded up."""
    # To the next float for few items, by a few units for many.
    return union_up((Fraction(delta), n) for delta, n in deltas)


def union_up(deltas: Iterable[tuple[Fraction, int]]) -> float:
    """Compute `union` of exact fractions."""
    positive = [(delta, n) for delta, n in deltas if delta > 0]
    if sum(n for _, n in positive) <= _MAX_EXACT:
        return min(1.0, float_up(1 - math.prod(((1 - delta) ** n for delta, n in positive), start=Fraction(1))))
    logs = [n * math.log1p(-float(delta)) if delta < 1 else -math.inf for delta, n in positive]
    return min(1.0, up(abs(math.expm1(math.fsum(logs))), 16))


def largest_integer(holds: Callable[[int], bool], limit: int) -> int:
    """Find the largest count up to `limit` that meets a monotone condition; 0 for none."""
    low, high = 0, 1
    while high <= limit and holds(high):
        low, high = high, 2 * high
    candidates = range(low + 1, min(high, limit + 1))
    return low + bisect_left(candidates, True, key=lambda count: not holds(count))


def any_loss(epsilon: Any) -> float:
    """Return a number of nats as a float; inf is allowed."""
    if isinstance(epsilon, float) and epsilon == math.inf:
        return math.inf
    return number(epsilon, "epsilon", "a number above -inf")


def listed(items: Iterable[Any], name: str) -> list[Any]:
    """List at least one item; a claim or a text is rejected."""
    if isinstance(items, (Claim, Guarantee, str)) or not isinstance(items, Iterable):
        raise invalid(name, "a list", type(items).__name__)
    if not (members := list(items)):
        raise invalid(name, "at least one", "none")
    return members
