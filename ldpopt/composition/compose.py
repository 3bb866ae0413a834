"""Composition of any list of pairs, channels or parameters, with certified lower and upper bounds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ldpopt.channel import Channel, ChannelLike, as_channel
from ldpopt.composition.direction import Direction, GaussianLaw, Parts, largest_loss, variation
from ldpopt.composition.lattice import EXACT, Rounding
from ldpopt.composition.mechanism import Mechanism, as_mechanism, best_in_order, best_pair
from ldpopt.composition.parametric import MAX_USES, rare_error, tally, union
from ldpopt.errors import invalid
from ldpopt.mechanisms.continuous_pair import ContinuousPair
from ldpopt.mechanisms.noise import GaussianPair
from ldpopt.numbers.rounding import ULP, down, up
from ldpopt.privacy.finite_pair import FinitePair
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.privacy.renyi import renyi_of_pairs, renyi_order
from ldpopt.privacy.trade_off import TradeOffCurve
from ldpopt.values.distribution import Array, nonnegative, positive_integer, unit_interval
from ldpopt.values.results import Pictured

REFERENCE = "[GI, Thm 2; KOV15]"


def _swapped(parts: Parts) -> Parts:
    return tuple((pair.swapped.ordered, count) for pair, count in parts)


def _summed_renyi(parts: Parts, order: float) -> Array:
    """A lower and an upper bound on the sum of the divergences of p from q, shape (2,)."""
    return np.asarray(np.sum([n * np.array(renyi_of_pairs(pair.p, pair.q, order))[:, 0] for pair, n in parts], axis=0))


@dataclass(frozen=True, eq=False, repr=False)
class ComposedPair(Pictured):
    """The composition of pairs of distributions: its whole (epsilon, delta) curve, for both directions of the pairs.

    parts : the pairs with their counts. attained : whether an adaptive strategy attains the curve; False if the pairs
    only dominate the mechanisms.

    Guarantees and numbers are rounded so that they hold. The curve is exact up to rounding if there are few outcomes,
    or if all privacy losses are multiples of one number; else it has a lower and an upper bound. See `exact`.
    """

    parts: Parts
    _forward: Direction
    _backward: Direction
    attained: bool = True
    _below: tuple[tuple[ComposedPair, float], ...] | None = None
    """Compositions that give lower bounds, each with a slack to subtract; None for this composition itself."""
    _pure: tuple[float, float] | None = None
    """Bounds on the largest total loss of the channels behind the pairs; None to compute it from the pairs."""

    _picture = "profile"

    def _columns(self) -> dict[str, list[Any]]:
        """The epsilon at a few deltas, in nats."""
        deltas = [0.0, 1e-9, 1e-6, 1e-3, 1e-2]
        return {"delta": deltas, "epsilon": [self.approximate_dp(delta).value for delta in deltas]}

    def _title(self) -> str:
        return f"Composition of {self.count}"

    @classmethod
    def of(cls, pairs: Iterable[tuple[FinitePair, int]], more: Rounding = EXACT) -> ComposedPair:
        """The composition of pairs with counts; `more` adds rounding errors, of pairs that were computed."""
        parts = counted(pairs)
        forward = Direction.of(parts, more)
        if all(pair.symmetric for pair, _ in parts):
            return cls(parts, forward, forward)
        return cls(parts, forward, Direction.of(_swapped(parts), more))

    @property
    def _directions(self) -> tuple[Direction, ...]:
        return (self._forward,) if self._forward is self._backward else (self._forward, self._backward)

    @property
    def exact(self) -> bool:
        """Whether the curve is exact up to rounding: a strategy attains it, and no grid was needed."""
        return self.attained and all(direction.spread == 0 for direction in self._directions)

    @property
    def count(self) -> int:
        """How many mechanisms were composed."""
        return sum(count for _, count in self.parts)

    def hockey_stick(self, epsilon: Any) -> Guarantee:
        """The delta at `epsilon` >= 0 nats. The true value lies between `lower` and `value` of the `Guarantee`."""
        epsilon = nonnegative(epsilon, "epsilon", infinite=True)
        directions = self._directions
        value = min(self._variation, max(direction.upper(epsilon) for direction in directions))
        lower = min(value, self._lower(epsilon))
        return Guarantee("hockey_stick", value, lower, None, self.exact, REFERENCE, {"epsilon": epsilon})

    @cached_property
    def _variation(self) -> float:
        """1 - prod (1 - eta), a bound on delta; for tiny etas it is below what rounding adds to losses."""
        return union((variation(pair), count) for pair, count in self.parts)

    def _lower(self, epsilon: float) -> float:
        if self._below is None:
            return max(direction.lower(epsilon) for direction in self._directions)
        below = [part._lower(epsilon) * (1 - slack) - slack for part, slack in self._below]
        return max([0.0, *below])

    def approximate_dp(self, delta: Any) -> Guarantee:
        """The epsilon at `delta` in [0, 1], in nats; inf if infinite losses have more probability than `delta`."""
        delta = unit_interval(delta, "delta")
        value = self.epsilon_at(delta)
        lower = self._lower_epsilon(delta, value)
        return Guarantee("approximate_dp", value, lower, None, self.exact, REFERENCE, {"delta": delta})

    def _lower_epsilon(self, delta: float, value: float) -> float:
        """An epsilon, close below `value`, at which the true delta certainly exceeds `delta`; 0 if none is found."""
        if math.isinf(value):
            return math.inf if self._below is None else 0.0
        step = 1e-12 * value
        for direction in self._directions:
            step = max(step, 2 * direction.shift(min(1.0, 0.005 * delta)) if delta > 0 else 1e-6 * value)
        while step < value:
            if self._lower(value - step) > delta:
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
        """The total variation distance of the composed pair: its delta at epsilon 0."""
        at_zero = self.hockey_stick(0.0)
        return Guarantee("total_variation", at_zero.value, at_zero.lower, None, self.exact, "[GI, Thm 2]")

    def local_dp(self) -> Guarantee:
        """The pure epsilon, in nats: the sum of the largest losses in the worse direction, inf if one is infinite."""
        if self._pure is not None:
            return Guarantee("local_dp", self._pure[1], self._pure[0], None, True, "[GI, Def 6]")
        if any(direction.infinite for direction in self._directions):
            return Guarantee("local_dp", math.inf, math.inf, None, True, "[GI, Def 6]")
        low, high = np.max([largest_loss(parts) for parts in (self.parts, _swapped(self.parts))], axis=0)
        return Guarantee("local_dp", float(high), float(low), None, True, "[GI, Def 6]")

    def renyi(self, order: Any) -> Any:
        """The sum of the Rényi divergences of `order` in [1, inf], in nats; a tuple for several orders [M, Prop 1]."""
        if np.ndim(order) == 1:
            return tuple(self.renyi(own_order) for own_order in order)
        order = renyi_order(order)
        low, high = np.max([_summed_renyi(parts, order) for parts in (self.parts, _swapped(self.parts))], axis=0)
        # The error of log q counts once, that of log p order/(order - 1) times; near order 1 only common p matter.
        slack = 2 * math.fsum(n * rare_error(pair) for pair, n in self.parts)
        value, lower = min(up(high, 64) + slack, self.local_dp().value), max(0.0, down(low, 64) - slack)
        if self._below is not None:
            lower = max([0.0, *(part.renyi(order).lower for part, slack in self._below if slack == 0)])
        return Guarantee("renyi", value, lower, None, self._below is None, "[M, Prop 1]", {"order": order})

    def trade_off(self, points: int = 129) -> TradeOffCurve:
        """A trade-off curve nowhere above the true one, for both directions, from delta at `points` epsilons.

        Losses of more than 700 nats count as infinite.
        """
        points = positive_integer(points, "points", minimum=2)
        infinite = max(direction.infinite for direction in self._directions)
        top = min(self.epsilon_at(min(1.0, infinite * (1 + 1e-9) + 1e-12)), 700.0)
        epsilons = np.linspace(0.0, top, points) if top > 0 else np.zeros(1)
        deltas = [max(direction.bulk(float(epsilon)) for direction in self._directions) for epsilon in epsilons]
        return FinitePair.through(epsilons, np.array(deltas)).trade_off()

    def law(self) -> tuple[Array, Array]:
        """(finite privacy losses, their masses) of the forward direction; on a grid, losses are split."""
        return self._forward.law.atoms()

    def __repr__(self) -> str:
        return f"ComposedPair({self.count} mechanisms, {len(self.parts)} distinct, {'exact' if self.exact else 'grid'})"


def counted(pairs: Iterable[tuple[FinitePair, int]]) -> Parts:
    """Pairs with counts, equal ones together, sorted so that the order in which they were given does not matter."""
    together = tally((pair.ordered, count) for pair, count in pairs)
    return tuple(
        sorted(together.items(), key=lambda part: (part[0].p.tobytes(), part[0].q.tobytes(), part[0].losses[0]))
    )


def composition(items: Sequence[tuple[Mechanism | FinitePair, int]]) -> ComposedPair:
    """The composition of mechanisms with counts and of pairs in their own direction; exact for short lists.

    Where it is too large, the pairs that dominate channels are composed, and perhaps no strategy attains the curve.
    """
    parts = counted((item if isinstance(item, FinitePair) else item.pair, count) for item, count in items)
    noise = [(item.own, n) for item, n in items if isinstance(item, Mechanism) and isinstance(item.own, GaussianPair)]
    others = [(item, n) for item, n in items if isinstance(item, FinitePair) or not isinstance(item.own, GaussianPair)]
    if noise and not others:
        direction = Direction(GaussianLaw.of(noise), 0.0, 0.0, math.inf)
        return ComposedPair(parts, direction, direction)
    several = [(item, n) for item, n in others if isinstance(item, Mechanism) and len(item.rows) > 1]
    single = [(item if isinstance(item, FinitePair) else item.pair, n) for item, n in others
              if isinstance(item, FinitePair) or len(item.rows) <= 1]  # fmt: skip
    best = best_pair(_together(several)) if several else None
    taken = [*single, *([(best, 1)] if best else [(item.pair, n) for item, n in several])]
    steps = sum(n for _, n in several)
    taken += [(GaussianLaw.of(noise).finite_pair(), 1)] if noise else []
    composed = ComposedPair.of(taken, Rounding(16 * steps * ULP, 64 * steps * ULP))
    dominated = any(isinstance(item, Mechanism) and isinstance(item.own, ContinuousPair) for item, _ in items)
    if dominated:
        return replace(composed, parts=parts, attained=False, _below=())
    if not several:
        return replace(composed, parts=parts)
    pure = _pure(several, single)
    # Products of rare masses may underflow in the pair of the best strategy, but their losses still count.
    composed = replace(composed, _forward=composed._forward.up_to(pure[1]), _backward=composed._backward.up_to(pure[1]))
    farthest = [(max(item.rows, key=lambda pair: float(np.abs(pair.p - pair.q).sum())), n) for item, n in several]
    fixed = ComposedPair.of([*single, *farthest])
    below = [(fixed, 0.0)]
    ordered = best_in_order([((item,), n) if isinstance(item, FinitePair) else (item.rows or (item.pair,), n)
                             for item, n in others])  # fmt: skip
    if ordered is not None:
        below.append((ComposedPair.of([(ordered, 1)]), 1024 * ULP * sum(n for _, n in others)))
    alone = best is not None and not single and len(_together(several)) == 1
    return replace(composed, parts=parts, attained=alone, _below=tuple(below), _pure=pure)


def _pure(several: Sequence[tuple[Mechanism, int]], single: Sequence[tuple[FinitePair, int]]) -> tuple[float, float]:
    """Bounds on the largest total loss: channels count by their worst pair, other pairs by the worse direction."""
    low = math.fsum(n * mechanism.pure[0] for mechanism, n in several)
    high = math.fsum(n * mechanism.pure[1] for mechanism, n in several)
    if single:
        rest = ComposedPair.of(single).local_dp()
        low, high = low + rest.lower, high + rest.value
    return down(low, 64), up(high, 64)


def _together(mechanisms: Sequence[tuple[Mechanism, int]]) -> list[tuple[tuple[FinitePair, ...], int]]:
    """The pairs of rows of mechanisms, with counts, equal ones together."""

    def laws(pair: FinitePair) -> bytes:
        return bytes(pair.p.tobytes() + pair.q.tobytes())

    together = tally((tuple(sorted(mechanism.rows, key=laws)), count) for mechanism, count in mechanisms)
    return sorted(together.items(), key=lambda part: list(map(laws, part[0])))


def compose(mechanisms: Iterable[Any], count: int = 1) -> ComposedPair:
    """The adaptive composition of a list of mechanisms, the whole list `count` times.

    mechanisms : channels (or matrices), named mechanisms, claims, `FinitePair`s, or tuples (epsilon, delta, eta), in
        any mixture, as `Ledger.add` takes them.

    The result holds for every choice of inputs, and of the order of the mechanisms, that depends on the reports so far;
    for a tuple, it holds for every mechanism with these parameters [GI, Thm 2]. For a short list of small channels the
    best such strategy is computed. For others, the pairs that dominate them are composed, which gives a bound, and
    `exact` is False. A `FinitePair` keeps its direction: its p is combined with the p of the other pairs.

    If the same answer passes through all channels, the result is a bound, and `compose_same_input` is exact.

    >>> both = compose([(0.5, 0.0, 0.2), [[0.75, 0.25], [0.25, 0.75]]])
    >>> round(both.delta_at(0.0), 9), round(both.epsilon_at(0.01), 6)
    (0.5, 1.572031)
    """
    count = positive_integer(count, "count", maximum=MAX_USES)
    if isinstance(mechanisms, (FinitePair, Channel, str, bytes)) or not isinstance(mechanisms, Iterable):
        raise invalid("mechanisms", "a list of mechanisms", type(mechanisms).__name__)
    uses = [given.ordered if isinstance(given, FinitePair) else as_mechanism(given) for given in mechanisms]
    if not uses:
        raise invalid("mechanisms", "at least one mechanism", "none")
    return composition([(item, 1) for _ in range(count) for item in uses] if len(uses) * count <= 64
                       else [(item, count) for item in uses])  # fmt: skip


def compose_same_input(channels: Iterable[ChannelLike], count: int = 1) -> dict[tuple[Any, Any], ComposedPair]:
    """The composition if one answer passes through every channel, `count` times: a dictionary by pairs of inputs.

    The channels must have the same inputs. The guarantee is the largest over the pairs. Each pair covers both
    directions, so (x, x') also stands for (x', x).

    >>> q = [[0.75, 0.25], [0.25, 0.75]]
    >>> {pair: round(c.delta_at(1.0), 6) for pair, c in compose_same_input([q], count=2).items()}
    {(0, 1): 0.392607}
    """
    count = positive_integer(count, "count", maximum=MAX_USES)
    taken = [as_channel(channel) for channel in channels]
    if not taken:
        raise invalid("channels", "at least one channel", "none")
    inputs = taken[0].inputs
    for channel in taken:
        if channel.inputs != inputs:
            raise invalid("channels", f"the same inputs {inputs[:8]}", channel.inputs[:8])
    return {
        (inputs[a], inputs[b]): ComposedPair.of(
            (FinitePair(channel.matrix[a], channel.matrix[b]), count) for channel in taken
        )
        for a in range(len(inputs))
        for b in range(a + 1, len(inputs))
    }
