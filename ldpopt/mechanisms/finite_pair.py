"""The finite dominating pair: two distributions between which telling apart is hardest to beat."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ldpopt.channel import Channel, Label
from ldpopt.distribution import Array, distribution, positive_epsilon, unit_interval
from ldpopt.mechanisms.outward import enlarge


@dataclass(frozen=True, eq=False)
class FinitePair:
    """Two distributions p and q on one finite alphabet; `channel` is the two-row channel that every measure takes.

    p, q : distributions of shape (m,). Raises `InvalidInput` for anything else.

    >>> FinitePair([0.75, 0.25], [0.25, 0.75]).channel
    Channel(2 inputs -> 2 outputs)
    """

    p: Array
    q: Array
    outputs: tuple[Label, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", distribution(self.p, "p"))
        object.__setattr__(self, "q", distribution(self.q, "q", size=len(self.p)))
        labels: Iterable[Label] = range(len(self.p)) if self.outputs is None else self.outputs
        object.__setattr__(self, "outputs", self._channel(tuple(labels)).outputs)

    def _channel(self, outputs: tuple[Label, ...]) -> Channel:
        return Channel(np.stack([self.p, self.q]), ("p", "q"), outputs)

    @property
    def channel(self) -> Channel:
        """The channel with rows p and q."""
        return self._channel(self.outputs or ())

    def __eq__(self, other: object) -> bool:
        return self.channel == other.channel if isinstance(other, FinitePair) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.channel)


def dominating_pair(epsilon: float, delta: float = 0.0, eta: float = 1.0) -> FinitePair:
    """The five-point pair that dominates every (epsilon, delta)-DP mechanism of total variation eta [GI, eq. 7-8].

    epsilon in nats; delta and eta in [0, 1]. With e = exp(epsilon) and
    1 - alpha = (eta - delta)(e + 1)/((1 - delta)(e - 1)), p is
    (delta, (1-delta)(1-alpha) e/(1+e), alpha (1-delta), (1-delta)(1-alpha)/(1+e), 0) and q is p reversed.
    An eta that does not bind (above delta + (1 - delta) tanh(epsilon/2)) is lowered to where it does, and a delta
    above eta to eta. Parameters are enlarged by a few units in the last place: the float64 pair dominates too.

    >>> dominating_pair(1.0, 0.0, 0.7 * 0.46211715726).p.round(4)
    array([0.    , 0.5117, 0.3   , 0.1883, 0.    ])
    """
    epsilon = enlarge(positive_epsilon(epsilon))
    eta = min(enlarge(unit_interval(eta, "eta")), 1.0)
    delta = min(unit_interval(delta, "delta"), eta)
    tanh = math.tanh(epsilon / 2)
    shown = 1.0 if delta == 1 else min((eta - delta) / ((1 - delta) * tanh), 1.0)
    high, low = shown / (1 + math.exp(-epsilon)), shown * math.exp(-epsilon) / (1 + math.exp(-epsilon))
    # Computed from the other entries, so that the row sums to one.
    p = [delta, (1 - delta) * high, (1 - delta) * max(1 - high - low, 0.0), (1 - delta) * low, 0.0]
    return FinitePair(np.array(p), np.array(p[::-1]), ("p only", "p", "erased", "q", "q only"))
