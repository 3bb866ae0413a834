"""Composition of any list of finite pairs, channels or parameters, with certified brackets."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ldpopt.channel import Channel, ChannelLike, as_channel
from ldpopt.composition.lattice import Rounding, atom_law, exact_lattice, finite_part, grid, rare_error
from ldpopt.composition.laws import UNDERFLOW, AtomLaw, LatticeLaw
from ldpopt.composition.mechanism import as_pair
from ldpopt.composition.parametric import ParametricPair
from ldpopt.composition.totals import float_down, float_up, union_up
from ldpopt.distribution import Array, positive_integer, unit_interval
from ldpopt.errors import invalid
from ldpopt.privacy.finite_pair import FinitePair
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.privacy.parameters import point_at_least_zero
from ldpopt.privacy.renyi import renyi_of_pairs, renyi_order
from ldpopt.privacy.trade_off import TradeOffCurve
from ldpopt.rounding import ULP, down, exact_sum, up

REFERENCE = "[GI, Thm 2; KOV15]"

Parts = tuple[tuple[FinitePair, int], ...]


@dataclass(frozen=True, eq=False, repr=False)
class _Direction:
    """One direction of a composed pair: a law of finite losses, the mass of infinite ones, the cost of a grid.

    infinite, lost : the mass of infinite losses, and the least float that is certainly not below it.
    top : no finite loss is larger. raised : more than what the losses of rare outcomes were raised by.
    """

    law: AtomLaw | LatticeLaw
    infinite: float
    lost: float
    top: float
    drift: float = 0.0
    spread: float = 0.0
    raised: float = 0.0

    @classmethod
    def of(cls, pairs: Parts) -> _Direction:
        log_finite = math.fsum(count * math.log1p(-min(pair.infinite, 1.0)) if pair.infinite < 1 else -math.inf
                               for pair, count in pairs)  # fmt: skip
        infinite = -math.expm1(log_finite)
        if infinite == 1.0:
            return cls(AtomLaw(np.zeros(1), np.zeros(1), 0.0), 1.0, 1.0, 0.0)
        lost, top = union_up([(infinite_mass(pair), count) for pair, count in pairs]), largest_loss(pairs)[1]
        parts, rounding = [(*finite_part(pair), count) for pair, count in pairs], Rounding.of(pairs)
        law = atom_law(parts, rounding) or exact_lattice(parts, rounding)
        raised = 2 * math.fsum(count * rare_error(pair) for pair, count in pairs)
        if law is not None:
            return cls(law, infinite, lost, top, raised=raised)
        law, drift, spread = grid(parts, rounding=rounding)
        return cls(law, infinite, lost, top, drift, spread, raised)

    @property
    def slack(self) -> float:
        return self.law.slack

    @property
    def relative(self) -> float:
        return self.law.relative

    def upper(self, epsilon: float) -> float:
        return self._above(epsilon, *self.law.delta(epsilon - self.slack))

    def bulk(self, epsilon: float) -> float:
        """As `upper`, with an absolute error of about 1e-14."""
        return self._above(epsilon, *self.law.bulk(epsilon - self.slack))

    def _above(self, epsilon: float, value: float, error: float) -> float:
        if not error or epsilon >= self.top:
            return self.lost
        return min(1.0, up(self.lost + UNDERFLOW + (value + error) * (1 + self.relative), 64))

    def lower(self, epsilon: float) -> float:
        """A bound from below; on a grid, by Hoeffding's bound on the noise that splitting added."""
        if self.spread == 0:
            value, error = self.law.delta(epsilon + self.slack + self.raised)
            return down(max(0.0, self.infinite - UNDERFLOW + (value - error) * (1 - self.relative)), 64)
        chance = 0.01 * self.law.delta(epsilon)[0]
        if chance <= 0:
            return down(max(0.0, self.infinite - UNDERFLOW), 64)
        value, error = self.law.delta(epsilon + self.shift(chance))
        return down(max(0.0, self.infinite - UNDERFLOW + max(0.0, value - error - chance) * (1 - self.relative)), 64)

    def shift(self, chance: float) -> float:
        """More than the losses were raised by, but for a probability of at most `chance` (Hoeffding)."""
        return self.slack + self.raised + self.drift + math.sqrt(self.spread * math.log(1 / chance) / 2)

    def epsilon(self, delta: float) -> float:
        if delta < self.lost:
            return math.inf
        # What is lost is exact; what is left of delta is a difference of floats, right to an ulp of delta.
        room = (delta - self.lost) / (1 + self.relative + 128 * ULP) - (2 * ULP * delta if self.lost > 0 else 0.0)
        found = self.law.epsilon(max(0.0, room - UNDERFLOW)) + self.slack
        return min(up(max(0.0, found), 16), self.top)


def _swapped(parts: Parts) -> Parts:
    return tuple((pair.swapped.ordered, count) for pair, count in parts)


def infinite_mass(pair: FinitePair) -> Fraction:
    """The probability of an infinite loss, exactly: of the law that is proportional to the masses."""
    if isinstance(pair, ParametricPair):
        return Fraction(pair.delta)
    lost = exact_sum(pair.p[pair.q == 0])
    return lost / exact_sum(pair.p) if lost else Fraction(0)


def largest_loss(parts: Parts) -> tuple[float, float]:
    """Bounds on the largest finite total loss: exact, but for rounding up, when the losses are known."""
    known, low, high = Fraction(0), 0.0, 0.0
    for pair, count in parts:
        finite = pair.losses[np.isfinite(pair.losses)]
        largest = float(finite.max(initial=-math.inf))
        if math.isinf(largest):
            continue
        if isinstance(pair, ParametricPair):
            known += Fraction(largest) * count
            continue
        slack = count * ULP * (16 + 16 * abs(largest)) + count * rare_error(pair) if finite.any() else 0.0
        low, high = low + count * largest - slack, high + count * largest + slack
    if not (low or high):
        return float_down(known), float_up(known)
    return down(max(0.0, float(known) + low), 64), up(max(0.0, float(known) + high), 64)


def _summed_renyi(parts: Parts, order: float) -> Array:
    """Bounds below and above on the divergence of p from q, shape (2,)."""
    return np.asarray(np.sum([n * np.array(renyi_of_pairs(pair.p, pair.q, order))[:, 0] for pair, n in parts], axis=0))


@dataclass(frozen=True, eq=False, repr=False)
class ComposedPair:
    """The composition of finite pairs: its whole (epsilon, delta) curve, in both directions.

    parts : the pairs with their counts, equal ones together.

    Every answer is a `Guarantee` or a number on the safe side. The curve is exact (to the stated rounding) when
    there are few outcomes or all privacy losses lie on one lattice, else bracketed: see `exact`.
    """

    parts: Parts
    _forward: _Direction
    _backward: _Direction

    @classmethod
    def of(cls, pairs: Iterable[tuple[FinitePair, int]]) -> ComposedPair:
        """The composition of pairs with counts; equal pairs are counted together."""
        counted: Counter[FinitePair] = Counter()
        for pair, count in pairs:
            counted[pair.ordered] += count
        parts = tuple(sorted(counted.items(), key=lambda part: (part[0].p.tobytes(), part[0].q.tobytes())))
        forward = _Direction.of(parts)
        if all(pair.symmetric for pair, _ in parts):
            return cls(parts, forward, forward)
        return cls(parts, forward, _Direction.of(_swapped(parts)))

    @property
    def _directions(self) -> tuple[_Direction, ...]:
        return (self._forward,) if self._forward is self._backward else (self._forward, self._backward)

    @property
    def exact(self) -> bool:
        """Whether the curve is exact up to rounding, not bracketed on a grid."""
        return all(direction.spread == 0 for direction in self._directions)

    @property
    def count(self) -> int:
        """How many mechanisms were composed."""
        return sum(count for _, count in self.parts)

    def hockey_stick(self, epsilon: Any) -> Guarantee:
        """The delta at `epsilon` >= 0 nats: the true value lies between `lower` and `value`."""
        epsilon = point_at_least_zero(epsilon)
        directions = self._directions
        value = max(direction.upper(epsilon) for direction in directions)
        lower = min(value, max(direction.lower(epsilon) for direction in directions))
        return Guarantee("hockey_stick", value, lower, None, self.exact, REFERENCE, {"epsilon": epsilon})

    def approximate_dp(self, delta: Any) -> Guarantee:
        """The epsilon at `delta` in [0, 1], in nats; inf when infinite losses alone exceed `delta`."""
        delta = unit_interval(delta, "delta")
        value = self.epsilon_at(delta)
        lower = self._lower_epsilon(delta, value)
        return Guarantee("approximate_dp", value, lower, None, self.exact, REFERENCE, {"delta": delta})

    def _lower_epsilon(self, delta: float, value: float) -> float:
        """Some epsilon at which delta is certainly exceeded, close below `value`."""
        if math.isinf(value):
            return math.inf
        step = 1e-12 * value
        for direction in self._directions:
            step = max(step, 2 * direction.shift(min(1.0, 0.005 * delta)) if delta > 0 else 1e-6 * value)
        while step < value:
            if max(direction.lower(value - step) for direction in self._directions) > delta:
                return value - step
            step *= 1.5
        return 0.0

    def delta_at(self, epsilon: Any) -> float:
        """`hockey_stick(epsilon)` as a number, rounded up."""
        return self.hockey_stick(epsilon).value

    def epsilon_at(self, delta: Any) -> float:
        """`approximate_dp(delta)` as a number, rounded up."""
        delta = unit_interval(delta, "delta")
        if delta == 0:
            return self.local_dp().value
        if self.delta_at(0.0) <= delta:
            return 0.0
        return max(direction.epsilon(delta) for direction in self._directions)

    def total_variation(self) -> Guarantee:
        """The total variation distance of the composed pair."""
        found = self.hockey_stick(0.0)
        return Guarantee("total_variation", found.value, found.lower, None, self.exact, "[GI, Thm 2]")

    def local_dp(self) -> Guarantee:
        """Pure epsilon: the sum of the largest losses in the worse direction, inf when one is infinite."""
        if any(direction.infinite for direction in self._directions):
            return Guarantee("local_dp", math.inf, math.inf, None, True, "[GI, Def 6]")
        low, high = np.max([largest_loss(parts) for parts in (self.parts, _swapped(self.parts))], axis=0)
        return Guarantee("local_dp", float(high), float(low), None, True, "[GI, Def 6]")

    def renyi(self, order: Any) -> Any:
        """The Rényi divergence at `order`, or a tuple for an array of orders: orders add [M, Prop 1]."""
        if np.ndim(order) == 1:
            return tuple(self.renyi(one) for one in order)
        order = renyi_order(order)
        low, high = np.max([_summed_renyi(parts, order) for parts in (self.parts, _swapped(self.parts))], axis=0)
        # At most log q errors once and log p order/(order - 1) times; for orders near 1, p where it is common only.
        slack = 2 * math.fsum(n * rare_error(pair) for pair, n in self.parts)
        value, lower = min(up(high, 64) + slack, self.local_dp().value), max(0.0, down(low, 64) - slack)
        return Guarantee("renyi", value, lower, None, True, "[M, Prop 1]", {"order": order})

    def trade_off(self, points: int = 129) -> TradeOffCurve:
        """A trade-off curve nowhere above the true one: its supporting lines at `points` slopes, both directions.

        Its losses of more than 700 nats count as infinite.
        """
        points = positive_integer(points, "points", minimum=2)
        infinite = max(direction.infinite for direction in self._directions)
        top = min(self.epsilon_at(min(1.0, infinite * (1 + 1e-9) + 1e-12)), 700.0)
        at = np.linspace(0.0, top, points) if top > 0 else np.zeros(1)
        deltas = [max(direction.bulk(float(epsilon)) for direction in self._directions) for epsilon in at]
        return FinitePair.through(at, np.array(deltas)).trade_off()

    def law(self) -> tuple[Array, Array]:
        """(finite privacy losses, their masses) of the forward direction; on a grid, split outward."""
        return self._forward.law.atoms()

    def __repr__(self) -> str:
        return f"ComposedPair({self.count} mechanisms, {len(self.parts)} distinct, {'exact' if self.exact else 'grid'})"


def compose(mechanisms: Iterable[Any], count: int = 1) -> ComposedPair:
    """The adaptive composition of a list of mechanisms, the whole list `count` times.

    mechanisms : channels (or matrices), named mechanisms, claims, `FinitePair`s, or tuples (epsilon, delta, eta), in
        any mixture, as `Ledger.add` takes them; each is replaced by the least pair that dominates it, which covers
        every adaptive choice of inputs and, for a tuple, every mechanism with those parameters [GI, Thm 2]. A
        `FinitePair` is taken as it stands: its p goes with the other pairs' p.

    The same answer sent through the same channels is no worse; `compose_same_input` is exact for that.

    >>> both = compose([(0.5, 0.0, 0.2), [[0.75, 0.25], [0.25, 0.75]]])
    >>> round(both.delta_at(0.0), 9), round(both.epsilon_at(0.01), 6)
    (0.5, 1.572031)
    """
    count = positive_integer(count, "count")
    if isinstance(mechanisms, (FinitePair, Channel, str, bytes)) or not isinstance(mechanisms, Iterable):
        raise invalid("mechanisms", "a list of mechanisms", type(mechanisms).__name__)
    pairs = [as_pair(mechanism) for mechanism in mechanisms]
    if not pairs:
        raise invalid("mechanisms", "at least one mechanism", "none")
    return ComposedPair.of((pair, count) for pair in pairs)


def compose_same_input(channels: Iterable[ChannelLike], count: int = 1) -> dict[tuple[Any, Any], ComposedPair]:
    """One composition for each ordered pair of inputs: the same answer through every channel, `count` times.

    The channels must have the same inputs. The guarantee at a point is the largest over the pairs; each pair covers
    both directions, so (x, x') stands for (x', x) too.

    >>> q = [[0.75, 0.25], [0.25, 0.75]]
    >>> {pair: round(c.delta_at(1.0), 6) for pair, c in compose_same_input([q], count=2).items()}
    {(0, 1): 0.392607}
    """
    count = positive_integer(count, "count")
    made = [as_channel(channel) for channel in channels]
    if not made:
        raise invalid("channels", "at least one channel", "none")
    inputs = made[0].inputs
    for channel in made:
        if channel.inputs != inputs:
            raise invalid("channels", f"the same inputs {inputs[:8]}", channel.inputs[:8])
    return {
        (inputs[a], inputs[b]): ComposedPair.of(
            (FinitePair(channel.matrix[a], channel.matrix[b]), count) for channel in made
        )
        for a in range(len(inputs))
        for b in range(a + 1, len(inputs))
    }
