"""Composition of any list of finite pairs, channels or parameters, with certified brackets."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.channel import Channel, ChannelLike, as_channel
from ldpopt.composition.lattice import atom_law, exact_lattice, finite_part, grid
from ldpopt.composition.laws import UNDERFLOW, AtomLaw, LatticeLaw
from ldpopt.composition.pair import FinitePair
from ldpopt.composition.parameters import point_at_least_zero
from ldpopt.distribution import Array, positive_integer, unit_interval
from ldpopt.errors import invalid
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.rounding import ULP, down, up

REFERENCE = "[GI, Thm 2; KOV15]"

Mechanism = FinitePair | ChannelLike | tuple[float, ...] | float


@dataclass(frozen=True, eq=False, repr=False)
class _Direction:
    """One direction of a composed pair: a law of finite losses, the mass of infinite ones, the cost of a grid."""

    law: AtomLaw | LatticeLaw
    infinite: float
    drift: float = 0.0
    spread: float = 0.0

    @classmethod
    def of(cls, pairs: tuple[tuple[FinitePair, int], ...]) -> _Direction:
        log_finite = math.fsum(count * math.log1p(-min(pair.infinite, 1.0)) if pair.infinite < 1 else -math.inf
                               for pair, count in pairs)  # fmt: skip
        infinite = -math.expm1(log_finite)
        if infinite == 1.0:
            return cls(AtomLaw(np.zeros(1), np.zeros(1), 0.0), 1.0)
        parts = [(*finite_part(pair), count) for pair, count in pairs]
        law = atom_law(parts) or exact_lattice(parts)
        if law is not None:
            return cls(law, infinite)
        return cls(*_swap(infinite, grid(parts)))

    @property
    def slack(self) -> float:
        return self.law.slack

    def upper(self, epsilon: float) -> float:
        value, error = self.law.delta(epsilon - self.slack)
        return min(1.0, up(self.infinite + (value + error) * (1 + self.slack), 64) if error or self.infinite else 0.0)

    def lower(self, epsilon: float) -> float:
        """A bound from below; on a grid, by Hoeffding's bound on the noise that splitting added."""
        if self.spread == 0:
            value, error = self.law.delta(epsilon + self.slack)
            return down(max(0.0, self.infinite + (value - error) * (1 - self.slack)), 64)
        chance = 0.01 * self.law.delta(epsilon)[0]
        if chance <= 0:
            return down(self.infinite, 64)
        value, error = self.law.delta(epsilon + self.shift(chance))
        return down(self.infinite + max(0.0, value - error - chance) * (1 - self.slack), 64)

    def shift(self, chance: float) -> float:
        """More than the losses were raised by, but for a probability of at most `chance` (Hoeffding)."""
        return self.slack + self.drift + math.sqrt(self.spread * math.log(1 / chance) / 2)

    def epsilon(self, delta: float) -> float:
        room = (delta - self.infinite * (1 + 128 * ULP)) / (1 + self.slack + 128 * ULP)
        if self.infinite > 0 and delta < self.infinite * (1 + 128 * ULP):
            return math.inf
        return max(0.0, self.law.epsilon(max(0.0, room - UNDERFLOW)) + self.slack)


def _swap(infinite: float, made: tuple[LatticeLaw, float, float]) -> tuple[LatticeLaw, float, float, float]:
    law, drift, spread = made
    return law, infinite, drift, spread


@dataclass(frozen=True, eq=False, repr=False)
class ComposedPair:
    """The composition of finite pairs: its whole (epsilon, delta) curve, in both directions.

    parts : the pairs with their counts, equal ones together.

    Every answer is a `Guarantee` or a number on the safe side. The curve is exact (to the stated rounding) when
    there are few outcomes or all privacy losses lie on one lattice, else bracketed: see `exact`.
    """

    parts: tuple[tuple[FinitePair, int], ...]
    _forward: _Direction
    _backward: _Direction

    @classmethod
    def of(cls, pairs: Iterable[tuple[FinitePair, int]]) -> ComposedPair:
        """The composition of pairs with counts; equal pairs are counted together."""
        counted: Counter[FinitePair] = Counter()
        for pair, count in pairs:
            counted[pair] += count
        parts = tuple(sorted(counted.items(), key=lambda part: (part[0].p.tobytes(), part[0].q.tobytes())))
        forward = _Direction.of(parts)
        if all(pair.symmetric for pair, _ in parts):
            return cls(parts, forward, forward)
        return cls(parts, forward, _Direction.of(tuple((pair.swapped, count) for pair, count in parts)))

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
        value = max(direction.epsilon(delta) for direction in self._directions)
        return up(min(value, self.local_dp().value), 16)

    def total_variation(self) -> Guarantee:
        """The total variation distance of the composed pair."""
        found = self.hockey_stick(0.0)
        return Guarantee("total_variation", found.value, found.lower, None, self.exact, "[GI, Thm 2]")

    def local_dp(self) -> Guarantee:
        """Pure epsilon: the sum of the largest losses in the worse direction, inf when one is infinite."""
        value = max(
            math.fsum(count * float(pair.losses[0]) for pair, count in self.parts),
            math.fsum(-count * float(pair.losses[-1]) for pair, count in self.parts),
        )
        return Guarantee("local_dp", up(value, 16), down(value, 16), None, True, "[GI, Def 6]")

    def renyi(self, orders: Any) -> Array:
        """The Rényi divergence at an array of orders in the worse direction, rounded up: orders add [M, Prop 1]."""
        forward = sum(count * pair.renyi(orders) for pair, count in self.parts)
        backward = sum(count * pair.swapped.renyi(orders) for pair, count in self.parts)
        return np.asarray(np.maximum(forward, backward) * (1 + 256 * ULP))

    def law(self) -> tuple[Array, Array]:
        """(finite privacy losses, their masses) of the forward direction; on a grid, split outward."""
        return self._forward.law.atoms()

    def __repr__(self) -> str:
        return f"ComposedPair({self.count} mechanisms, {len(self.parts)} distinct, {'exact' if self.exact else 'grid'})"


def is_parameters(mechanism: Any) -> bool:
    """Whether `mechanism` is epsilon or a tuple (epsilon, delta, eta), not a matrix written as tuples."""
    if isinstance(mechanism, tuple):
        return bool(mechanism) and not isinstance(mechanism[0], (list, tuple, np.ndarray))
    return isinstance(mechanism, (int, float, np.floating, np.integer)) and not isinstance(mechanism, bool)


def as_pair(mechanism: Any) -> FinitePair:
    """The pair that dominates a mechanism: itself, a channel's, or that of epsilon or (epsilon, delta, eta)."""
    if isinstance(mechanism, FinitePair):
        return mechanism
    if is_parameters(mechanism):
        given = mechanism if isinstance(mechanism, tuple) else (mechanism,)
        if len(given) > 3:
            raise invalid("mechanism", "(epsilon,), (epsilon, delta) or (epsilon, delta, eta)", mechanism)
        return FinitePair.of_parameters(*given)
    return FinitePair.of_channel(as_channel(mechanism, "mechanism"))


def compose(mechanisms: Iterable[Mechanism], count: int = 1) -> ComposedPair:
    """The adaptive composition of a list of mechanisms, the whole list `count` times.

    mechanisms : channels (or matrices), `FinitePair`s, or tuples (epsilon, delta, eta), in any mixture; each is
        replaced by the least pair that dominates it, which covers every adaptive choice of inputs and, for a
        tuple, every mechanism with those parameters [GI, Thm 2]. A `FinitePair` is taken as it stands: its p goes
        with the other pairs' p.

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
