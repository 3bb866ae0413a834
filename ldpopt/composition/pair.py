"""The pair of distributions that composition is about: finite, exact, one for each mechanism."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.channel import ChannelLike, as_channel
from ldpopt.composition.parameters import checked, erasure_mass, point_at_least_zero
from ldpopt.distribution import Array, distribution
from ldpopt.errors import invalid
from ldpopt.privacy.loss import log_ratios
from ldpopt.privacy.policy import Policy, ordered_pairs
from ldpopt.rounding import ULP


@dataclass(frozen=True, eq=False, repr=False)
class FinitePair:
    """Two distributions on one finite set: the reports of two inputs that must stay indistinguishable.

    p, q : probability vectors of one length; an outcome that neither gives is dropped, outcomes are sorted by
        likelihood ratio, largest first. Equal pairs compare equal.

    >>> pair = FinitePair([0.25, 0.75], [0.5, 0.5])
    >>> pair.losses.round(6)
    array([ 0.405465, -0.693147])
    >>> round(pair.hockey_stick(0.0), 6)
    0.25
    """

    p: Array
    q: Array

    def __post_init__(self) -> None:
        p = distribution(self.p, "p")
        q = distribution(self.q, "q", size=len(p))
        if np.array_equal(p, q) and not np.array_equal(self.p, self.q):
            # What rounding made equal keeps a loss of an ulp, so that the slack for rounding counts.
            q = q.copy()
            q[q.argmax()] = np.nextafter(q.max(), 0.0)
        order = np.argsort(-_losses(p, q), kind="stable")
        order = order[(p[order] > 0) | (q[order] > 0)]
        for name, array in (("p", p[order]), ("q", q[order])):
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @classmethod
    def of_parameters(cls, epsilon: Any, delta: Any = 0.0, eta: Any = None) -> FinitePair:
        """The pair that dominates every (epsilon, delta)-DP and eta-TV mechanism [GI, eq. 7-8, 70-71].

        >>> FinitePair.of_parameters(1.0, eta=0.25).p.round(6)
        array([0.395494, 0.459012, 0.145494])
        """
        epsilon, delta, eta = checked(epsilon, delta, eta)
        delta, erasure = erasure_mass(epsilon, delta, eta)
        kept, low = (1 - delta) * (1 - erasure), 1 / (1 + math.exp(epsilon))
        p = np.array([delta, kept * (1 - low), (1 - delta) * erasure, kept * low, 0.0])
        return cls(p, p[::-1])

    @classmethod
    def of_channel(cls, channel: ChannelLike, graph: Policy = None) -> FinitePair:
        """The least pair that dominates every ordered pair of rows: its tests beat all of theirs.

        Its test curve (power against size) is the concave hull of the curves of all pairs, so composing it covers
        every adaptive choice of inputs. With a policy `graph`, only adjacent inputs are compared.
        """
        channel = as_channel(channel)
        i, j = ordered_pairs(channel, graph)
        curves = [cls(channel.matrix[a], channel.matrix[b]) for a, b in zip(i, j, strict=True)]
        distinct = list(dict.fromkeys(curves))
        if not distinct:
            return cls(np.ones(1), np.ones(1))
        return distinct[0] if len(distinct) == 1 else _hull(distinct)

    def both_ways(self) -> FinitePair:
        """The least pair that dominates this one in either direction; itself when it is symmetric."""
        return self if self.symmetric else _hull([self, self.swapped])

    @classmethod
    def of_rows(cls, channel: ChannelLike) -> Iterator[tuple[Any, Any, FinitePair]]:
        """(x, x', pair of rows) for every ordered pair of distinct inputs of a channel."""
        channel = as_channel(channel)
        for a, b in zip(*ordered_pairs(channel), strict=True):
            yield channel.inputs[a], channel.inputs[b], cls(channel.matrix[a], channel.matrix[b])

    @property
    def losses(self) -> Array:
        """The privacy losses log p/q, inf where q is 0 and -inf where p is 0."""
        return _losses(self.p, self.q)

    @property
    def infinite(self) -> float:
        """The probability of an infinite privacy loss under p."""
        return float(self.p[self.q == 0].sum())

    @property
    def swapped(self) -> FinitePair:
        """The same pair in the other direction."""
        return FinitePair(self.q, self.p)

    @property
    def symmetric(self) -> bool:
        """Whether both directions have the same law, exactly."""
        return np.array_equal(self.p, self.q[::-1])

    def hockey_stick(self, epsilon: Any) -> float:
        """sum (p - e^epsilon q)_+, in this direction; not rounded outward."""
        epsilon = point_at_least_zero(epsilon)
        losses = self.losses
        over = (losses > epsilon) & np.isfinite(losses)
        return math.fsum([self.infinite, *(-self.p[over] * np.expm1(epsilon - losses[over])).tolist()])

    def renyi(self, orders: Any) -> Array:
        """D_alpha(p || q) for an array of orders >= 1 (1 is KL, inf the largest loss), in nats, not rounded."""
        orders = np.atleast_1d(np.asarray(orders, dtype=np.float64))
        if not (orders >= 1).all():
            raise invalid("orders", "orders of at least 1", orders)
        if self.infinite > 0:
            return np.full(len(orders), np.inf)
        return _renyi(self.p, self.q, self.losses, orders)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FinitePair):
            return NotImplemented
        return np.array_equal(self.p, other.p) and np.array_equal(self.q, other.q)

    def __hash__(self) -> int:
        return hash((self.p.tobytes(), self.q.tobytes()))

    def __repr__(self) -> str:
        return f"FinitePair({len(self.p)} outcomes, largest loss {self.losses[0]:.6g})"


def _losses(p: Array, q: Array) -> Array:
    """log p/q to a few units in the last place, near p = q too; inf and -inf on one-sided outcomes."""
    both = (p > 0) & (q > 0)
    loss = log_ratios(np.where(both, p, 1.0), np.where(both, q, 1.0))
    return np.asarray(np.where(both, loss, np.where(p > 0, np.inf, np.where(q > 0, -np.inf, 0.0))))


def _renyi(p: Array, q: Array, losses: Array, orders: Array) -> Array:
    """D_order of a pair without infinite losses, to a few ulps of itself however small it is.

    With k = order - 1, sum p e^(k L) - 1 = sum q (e^L (e^(k L) - 1) - k (e^L - 1)): every term is non-negative.
    """
    largest = max(0.0, float(losses.max()))
    values = np.full(len(orders), largest)
    finite = np.where(np.isfinite(orders), orders, 1.0)
    steep = np.isfinite(orders) & (finite * largest > 50)
    if steep.any():
        inside = p > 0
        exponents = (orders[steep, None] - 1) * (losses[inside] - losses.max())
        values[steep] = losses.max() + np.log(np.exp(exponents) @ p[inside]) / (orders[steep] - 1)
    flat = np.isfinite(orders) & ~steep
    order = orders[flat, None]
    k = order - 1
    growth = np.expm1(losses)
    with np.errstate(invalid="ignore", divide="ignore"):
        slope = np.where(k > 0, np.expm1(k * losses) / k, losses)
        terms = np.where(np.isneginf(losses), 1.0, (1 + growth) * slope - growth)
    small = order * np.abs(losses) < 0.01
    # sum over n of order (1 + order + ... + order^(n - 2)) L^n / n!
    tiny = np.where(np.isneginf(losses), 0.0, losses)
    series, coefficient = np.zeros_like(terms), np.zeros_like(order)
    for n in range(2, 10):
        coefficient = order * (coefficient + 1) if n > 2 else order
        series += coefficient * np.where(small, tiny, 0.0) ** n / math.factorial(n)
    total = np.maximum(np.where(small, series, terms), 0.0) @ q
    k = k[:, 0]
    values[flat] = np.where(k > 0, np.log1p(k * total) / np.where(k > 0, k, 1.0), total)
    return np.asarray(np.maximum(values, 0.0), dtype=np.float64)


def _hull(pairs: list[FinitePair]) -> FinitePair:
    """The pair whose test curve is the concave hull of the curves of `pairs`.

    Masses are summed from the end with the larger ratios down to ratio one and from the other end up to it, so
    that rare telling outcomes keep their relative accuracy.
    """
    above, below = [], []
    for pair in pairs:
        split = int(np.searchsorted(-pair.losses, 0.0, side="left"))  # the ratios above one come first
        above.append(np.stack([np.cumsum(pair.q[:split]), np.cumsum(pair.p[:split])], axis=1))
        below.append(np.stack([np.cumsum(pair.p[split:][::-1]), np.cumsum(pair.q[split:][::-1])], axis=1))
    top, bottom = _chain(np.concatenate(above)), _chain(np.concatenate(below))
    # What lies between has ratio one: the two ends gain the same total variation.
    middle = max(0.0, 1 - math.fsum(top[:, 1].tolist()) - math.fsum(bottom[:, 0].tolist()))
    return FinitePair(
        np.concatenate([top[:, 1], [middle], bottom[:, 0]]), np.concatenate([top[:, 0], [middle], bottom[:, 1]])
    )


def _chain(points: Array) -> Array:
    """The steps (dx, dy) of the concave hull of `points` from the origin to the point with the largest y - x.

    The chain ends at the first point that nothing exceeds by more than the rounding of both: what a later point adds
    is at most 16 ulps of its own height, so its steps are that flat, or that small beside the rest. A corner within
    16 ulps of its chord counts as on it. `LossLaw.slack` makes up for both.
    """
    if not len(points):
        return np.empty((0, 2))
    gain, error = points[:, 1] - points[:, 0], 8 * ULP * points[:, 1]
    end = float(points[gain + error >= (gain - error).max(), 0].min())
    points = points[points[:, 0] <= end]
    points = points[np.lexsort((-points[:, 1], points[:, 0]))]
    chain: list[tuple[float, float]] = [(0.0, 0.0)]
    for x, y in points.tolist():
        if y <= chain[-1][1]:  # also on the axis, where several pairs have reports of infinite ratio
            continue
        while len(chain) > 1:
            (x0, y0), (x1, y1) = chain[-2], chain[-1]
            if (y1 - y0) * (x - x0) > (y - y0) * (x1 - x0) * (1 + 16 * ULP):
                break
            chain.pop()
        chain.append((x, y))
    return np.diff(np.array(chain), axis=0)
