"""Private sampling: release one draw from, nearly, a distribution that is secret."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.distribution import Array, distribution, positive_epsilon, positive_integer
from ldpopt.divergences import FDivergence
from ldpopt.labels import Label
from ldpopt.rounding import toward_privacy


@dataclass(frozen=True)
class PrivateSampler:
    """The minimax sampler from distributions on k answers: raise small probabilities, shrink the others [PAL].

    The holder of a secret distribution P releases one draw from Q_P = max(P / r, 1/(e + k - 1)), where e = exp(epsilon)
    and r makes Q_P sum to one. All probabilities lie between 1/(e + k - 1) and e/(e + k - 1), so the draw is
    epsilon-LDP for every P. For every f-divergence, no epsilon-LDP sampler has a smaller largest D_f(P || Q_P).
    k >= 2; epsilon in nats; raises `InvalidInput` for values out of range.

    >>> PrivateSampler(3, 1.0).row([1.0, 0.0, 0.0]).round(6)
    array([0.576117, 0.211942, 0.211942])
    """

    k: int
    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", positive_integer(self.k, "k", 2))
        object.__setattr__(self, "epsilon", positive_epsilon(self.epsilon))

    def row(self, p: Any) -> Array:
        """Q_P, shape (k,), for a distribution P of shape (k,)."""
        p = distribution(p, "p", size=self.k)
        floor = 1 / (math.exp(toward_privacy(self.epsilon)) + self.k - 1)
        falling = np.sort(p)[::-1]
        kept = np.arange(1, self.k + 1)
        # If the n largest probabilities stay above the floor, r is their sum over the mass that the floors of the
        # others leave. The right n is the first one for which the next probability falls below the floor.
        r = np.cumsum(falling) / (1 - (self.k - kept) * floor)
        below = np.append(falling[1:], 0.0) <= floor * r
        row = np.maximum(p / r[int(np.argmax(below))], floor)
        return np.asarray(row / row.sum())

    def channel(self, distributions: Any, *, inputs: Iterable[Label] | None = None) -> Channel:
        """The (n, k) channel whose n inputs are possible secret distributions, the rows of an array (n, k)."""
        rows = np.atleast_2d(np.asarray(distributions, dtype=np.float64))
        return Channel(np.stack([self.row(p) for p in rows]), inputs)

    def risk(self, f: FDivergence) -> float:
        """The largest D_f(P || Q_P) over all P, which no epsilon-LDP sampler can make smaller.

        It is e/(e+k-1) f((e+k-1)/e) + (k-1)/(e+k-1) f(0).

        >>> from ldpopt.divergences import KL, TOTAL_VARIATION
        >>> sampler = PrivateSampler(3, 1.0)
        >>> round(sampler.risk(KL), 9), round(sampler.risk(TOTAL_VARIATION), 9)
        (0.551444714, 0.423883115)
        """
        floor = 1 / (math.exp(self.epsilon) + self.k - 1)
        likely = math.exp(self.epsilon) * floor
        return float(f.excess(1.0, likely) + (self.k - 1) * f.excess(0.0, floor))
