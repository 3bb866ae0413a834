"""Composition of any list of pairs, channels or parameters, with certified lower and upper bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from ldpopt.channel import Channel, ChannelLike, Label, as_channel
from ldpopt.composition.direction import Direction, GaussianLaw, Parts, largest_loss, variation
from ldpopt.composition.lattice import COARSE_CELLS, EXACT, WINDOW_CELLS, Rounding
from ldpopt.composition.mechanism import Mechanism, as_mechanism, best_in_order, best_pair
from ldpopt.composition.parametric import MAX_USES, any_loss, rare_error, tally, union
from ldpopt.errors import Phrase, invalid
from ldpopt.mechanisms.continuous_pair import MERGED_MASS_RTOL, ContinuousPair
from ldpopt.mechanisms.noise import GaussianPair
from ldpopt.numbers.rounding import ULP, down, up
from ldpopt.numbers.tolerances import ATTAINED_GAP
from ldpopt.privacy.approximate_dp import mirrored
from ldpopt.privacy.finite_pair import FinitePair
from ldpopt.privacy.guarantee import Guarantee, Witness
from ldpopt.privacy.renyi import renyi_of_pairs, renyi_order
from ldpopt.privacy.trade_off import TradeOffCurve
from ldpopt.values.distribution import Array, positive_integer, unit_interval
from ldpopt.values.results import Pictured

REFERENCE = "[GI, Thm 2; KOV15]"


def _swapped(parts: Parts) -> Parts:
    return tuple((pair.swapped.ordered, count) for pair, count in parts)


def _summed_renyi(parts: Parts, order: float) -> Array:
    """A lower and an upper bound on the sum of the divergences of p from q, shape (2,)."""
    return np.asarray(np.sum([n * np.array(renyi_of_pairs(pair.p, pair.q, order))[:, 0] for pair, n in parts], axis=0))


@dataclass(frozen=True, eq=False, repr=False)
class ComposedPair(Pictured):
    """The composition of pairs of distributions: its full (epsilon, delta) curve, for both directions of the pairs.

    parts : the pairs with their counts.
    attained : True if an adaptive strategy attains the curve; False if the pairs only dominate the mechanisms.

    Guarantees and numbers are rounded so that they hold. The curve is exact up to rounding if there are few outcomes,
    or if all privacy losses are multiples of one number. Otherwise it has a lower and an upper bound. See `exact`.
    """

    parts: Parts
    _forward: Direction
    _backward: Direction
    attained: bool = True
    _lower_compositions: tuple[tuple[ComposedPair, float], ...] | None = None
    """Compositions that give lower bounds, each with a slack to subtract; None for this composition itself."""
    _pure: tuple[float, float] | None = None
    """Bounds on the largest total loss of the channels behind the pairs; None to compute it from the pairs."""
    _uses: tuple[tuple[Mechanism | FinitePair, int], ...] = ()
    """The mechanisms, if some are densities: their divergences are known better than those of finite pairs."""

    _picture = "profile"

    def _columns(self) -> dict[str, list[Any]]:
        """The epsilon at a few deltas, in nats."""
        deltas = [0.0, 1e-9, 1e-6, 1e-3, 1e-2]
        return {"delta": deltas, "epsilon": [self.approximate_dp(delta).value for delta in deltas]}

    def _title(self) -> str:
        return f"Composition of {self.count}"

    @classmethod
    def from_pairs(
        cls, pairs: Iterable[tuple[FinitePair, int]], extra_rounding: Rounding = EXACT, cells: int = WINDOW_CELLS
    ) -> ComposedPair:
        """Compose pairs with counts; `extra_rounding` and `cells` are those of `Direction.from_pairs`."""
        parts = counted(pairs)
        forward = Direction.from_pairs(parts, extra_rounding, cells)
        if all(pair.symmetric for pair, _ in parts):
            return cls(parts, forward, forward)
        return cls(parts, forward, Direction.from_pairs(_swapped(parts), extra_rounding, cells))

    @property
    def _directions(self) -> tuple[Direction, ...]:
        return (self._forward,) if self._forward is self._backward else (self._forward, self._backward)

    @property
    def exact(self) -> bool:
        """True if the curve is exact up to rounding: a strategy attains it, and no grid was needed."""
        return self.attained and all(direction.spread == 0 for direction in self._directions)

    @property
    def count(self) -> int:
        """The number of composed mechanisms."""
        return sum(count for _, count in self.parts)

    def hockey_stick(self, epsilon: Any) -> Guarantee:
        """Return the delta at `epsilon`, in nats, of any sign; it lies between `lower` and `value` of the result."""
        epsilon = any_loss(epsilon)
        if epsilon < 0:  # both directions are there, so that each is the mirror image of the other
            opposite = self.hockey_stick(-epsilon)
            low, high = mirrored(opposite.lower, opposite.value, epsilon)
            return Guarantee("hockey_stick", high, low, None, opposite.exact, REFERENCE, {"epsilon": epsilon})
        directions = self._directions
        value = min(self._variation, max(direction.upper(epsilon) for direction in directions))
        lower = min(value, self._lower(epsilon))
        return Guarantee("hockey_stick", value, lower, None, self.exact, REFERENCE, {"epsilon": epsilon})

    @cached_property
    def _variation(self) -> float:
        """The bound 1 - prod (1 - eta) on delta; for tiny etas it is below the rounding error of the losses."""
        return union((variation(pair), count) for pair, count in self.parts)

    def _lower(self, epsilon: float) -> float:
        if self._lower_compositions is None:
            return max(direction.lower(epsilon) for direction in self._directions)
        bounds = [part._lower(epsilon) * (1 - slack) - slack for part, slack in self._lower_compositions]
        return max([0.0, *bounds])

    def approximate_dp(self, delta: Any) -> Guarantee:
        """Compute the epsilon at `delta` in [0, 1], in nats."""
        delta = unit_interval(delta, "delta")
        value = self.epsilon_at(delta)
        lower = self._lower_epsilon(delta, value)
        return Guarantee("approximate_dp", value, lower, None, self.exact, REFERENCE, {"delta": delta})

    def _lower_epsilon(self, delta: float, value: float) -> float:
        """An epsilon close below `value` with a true delta certainly above `delta`; 0 if none is proved."""
        if math.isinf(value):
            return math.inf if self._lower_compositions is None else 0.0
        step = 1e-12 * value
        for direction in self._directions:
            step = max(step, 2 * direction.shift(min(1.0, 0.005 * delta)) if delta > 0 else 1e-6 * value)
        while step < value:
            if self._lower(value - step) > delta:
                return value - step
            step *= 1.5
        return 0.0

    def delta_at(self, epsilon: Any) -> float:
        """Return `hockey_stick(epsilon)` as a number, rounded up."""
        return self.hockey_stick(epsilon).value

    def epsilon_at(self, delta: Any) -> float:
        """Return `approximate_dp(delta)` as a number, rounded up."""
        delta = unit_interval(delta, "delta")
        if delta == 0:
            return self.local_dp().value
        if self.delta_at(0.0) <= delta:
            return 0.0
        return max(direction.epsilon(delta) for direction in self._directions)

    def total_variation(self) -> Guarantee:
        """Compute the total variation distance of the composed pair: its delta at epsilon 0."""
        at_zero = self.hockey_stick(0.0)
        return Guarantee("total_variation", at_zero.value, at_zero.lower, None, self.exact, "[GI, Thm 2]")

    def local_dp(self) -> Guarantee:
        """Compute the pure epsilon, in nats: the sum of the largest losses in the worse direction."""
        if self._pure is not None:
            return Guarantee("local_dp", self._pure[1], self._pure[0], None, True, "[GI, Def 6]")
        if any(direction.infinite for direction in self._directions):
            return Guarantee("local_dp", math.inf, math.inf, None, True, "[GI, Def 6]")
        low, high = np.max([largest_loss(parts) for parts in (self.parts, _swapped(self.parts))], axis=0)
        return Guarantee("local_dp", float(high), float(low), None, True, "[GI, Def 6]")

    def renyi(self, order: Any) -> Any:
        """Compute the sum of the Rényi divergences of `order` in [1, inf], in nats [M, Prop 1]."""
        if np.ndim(order) == 1:
            return tuple(self.renyi(own_order) for own_order in order)
        order = renyi_order(order)
        low, high = np.max([_summed_renyi(parts, order) for parts in (self.parts, _swapped(self.parts))], axis=0)
        # The error of log q counts once, that of log p order/(order - 1) times; near order 1 only common p matter.
        slack = 2 * math.fsum(n * rare_error(pair) for pair, n in self.parts)
        value, lower = min(up(high, 64) + slack, self.local_dp().value), max(0.0, down(low, 64) - slack)
        if self._lower_compositions is not None:
            lower = max([0.0, *(part.renyi(order).lower for part, slack in self._lower_compositions if slack == 0)])
        if self._uses:  # the pairs only dominate the mechanisms
            ends = [
                (use.renyi(order) if isinstance(use, FinitePair) else use.renyi(order - 1), n) for use, n in self._uses
            ]
            bounds = [((end.lower, end.value) if isinstance(end, Guarantee) else end, n) for end, n in ends]
            value = min(value, up(math.fsum(n * upper for (_, upper), n in bounds), 8))
            lower = down(math.fsum(n * low_end for (low_end, _), n in bounds), 8) if self._same_way else 0.0
            exact = 0 < lower >= value * (1 - ATTAINED_GAP)
            return Guarantee("renyi", value, lower, None, exact, "[M, Prop 1]", {"order": order})
        return Guarantee("renyi", value, lower, None, self._lower_compositions is None, "[M, Prop 1]", {"order": order})

    @property
    def _same_way(self) -> bool:
        """True if all mechanisms are named noise, sampled or not, with the largest divergence from p to q."""
        return all(isinstance(use, Mechanism) and getattr(use.source, "enclosed", False) for use, _ in self._uses)

    def trade_off(self, points: int = 129) -> TradeOffCurve:
        """Build a trade-off curve nowhere above the true one, from delta at `points` epsilons.

        It covers both directions. Losses of more than 700 nats count as infinite.
        """
        points = positive_integer(points, "points", minimum=2)
        infinite = max(direction.infinite for direction in self._directions)
        top = min(self.epsilon_at(min(1.0, infinite * (1 + 1e-9) + 1e-12)), 700.0)
        epsilons = np.linspace(0.0, top, points) if top > 0 else np.zeros(1)
        deltas = [max(direction.bulk(float(epsilon)) for direction in self._directions) for epsilon in epsilons]
        return FinitePair.through(epsilons, np.array(deltas)).trade_off()

    def law(self) -> tuple[Array, Array]:
        """Return (finite privacy losses, their masses) of the forward direction; a grid splits losses."""
        return self._forward.law.atoms()

    def __repr__(self) -> str:
        return f"ComposedPair({self.count} mechanisms, {len(self.parts)} distinct, {'exact' if self.exact else 'grid'})"


def counted(pairs: Iterable[tuple[FinitePair, int]]) -> Parts:
    """Merge equal pairs with counts, and sort them so that the result is independent of their order."""
    pair_counts = tally((pair.ordered, count) for pair, count in pairs)
    return tuple(
        sorted(pair_counts.items(), key=lambda part: (part[0].p.tobytes(), part[0].q.tobytes(), part[0].losses[0]))
    )


def composition(items: Sequence[tuple[Mechanism | FinitePair, int]]) -> ComposedPair:
    """Compose mechanisms with counts, and pairs in their own direction; exact for short lists.

    Where it is too large, the pairs that dominate channels are composed, and perhaps no strategy attains the curve.
    """
    parts = counted((item if isinstance(item, FinitePair) else item.pair, count) for item, count in items)
    noise = [
        (item.source, n) for item, n in items if isinstance(item, Mechanism) and isinstance(item.source, GaussianPair)
    ]
    others = [
        (item, n) for item, n in items if isinstance(item, FinitePair) or not isinstance(item.source, GaussianPair)
    ]
    if noise and not others:
        direction = Direction(GaussianLaw.from_pairs(noise), 0.0, 0.0, math.inf)
        return ComposedPair(parts, direction, direction, _uses=tuple(items))
    channels = [(item, n) for item, n in others if isinstance(item, Mechanism) and len(item.rows) > 1]
    pairs = [(item if isinstance(item, FinitePair) else item.pair, n) for item, n in others
              if isinstance(item, FinitePair) or len(item.rows) <= 1]  # fmt: skip
    best = best_pair(_together(channels)) if channels else None
    composed_parts = [*pairs, *([(best, 1)] if best else [(item.pair, n) for item, n in channels])]
    steps = sum(n for _, n in channels)
    composed_parts += [(GaussianLaw.from_pairs(noise).finite_pair(), 1)] if noise else []
    dense = any(isinstance(item, Mechanism) and isinstance(item.source, ContinuousPair) for item, _ in items)
    cells = COARSE_CELLS if dense else WINDOW_CELLS
    pair_of_parts = ComposedPair.from_pairs(composed_parts, Rounding(16 * steps * ULP, 64 * steps * ULP), cells)
    farthest = [(max(item.rows, key=lambda pair: float(np.abs(pair.p - pair.q).sum())), n) for item, n in channels]
    if dense:
        return replace(
            pair_of_parts, parts=parts, attained=False, _lower_compositions=_merged(items, farthest), _uses=tuple(items)
        )
    if not channels:
        return replace(pair_of_parts, parts=parts)
    pure = _pure(channels, pairs)
    # Products of rare masses may underflow in the pair of the best strategy, but their losses still count.
    pair_of_parts = replace(
        pair_of_parts, _forward=pair_of_parts._forward.up_to(pure[1]), _backward=pair_of_parts._backward.up_to(pure[1])
    )
    composed_pair = ComposedPair.from_pairs([*pairs, *farthest])
    lower_compositions = [(composed_pair, 0.0)]
    best_order = best_in_order([((item,), n) if isinstance(item, FinitePair) else (item.rows or (item.pair,), n)
                             for item, n in others])  # fmt: skip
    if best_order is not None:
        lower_compositions.append((ComposedPair.from_pairs([(best_order, 1)]), 1024 * ULP * sum(n for _, n in others)))
    is_attained = best is not None and not pairs and len(_together(channels)) == 1
    return replace(
        pair_of_parts, parts=parts, attained=is_attained, _lower_compositions=tuple(lower_compositions), _pure=pure
    )


def _merged(
    items: Sequence[tuple[Mechanism | FinitePair, int]], farthest: Sequence[tuple[FinitePair, int]]
) -> tuple[tuple[ComposedPair, float], ...]:
    """A composition that bounds one with continuous pairs from below: their outcomes are merged in cells.

    Channels stand as the pairs of rows in `farthest`. Empty if a pair's cells have no known masses.
    """
    merged_pairs, steps = list(farthest), 0
    for item, n in items:
        if isinstance(item, FinitePair) or not isinstance(item.source, ContinuousPair):
            if isinstance(item, FinitePair) or len(item.rows) <= 1:
                merged_pairs.append((item if isinstance(item, FinitePair) else item.pair, n))
            continue
        pair = item.source.merged_pair()
        if pair is None:
            return ()
        merged_pairs.append((pair, n))
        steps += n
    return (
        (
            ComposedPair.from_pairs(
                merged_pairs, Rounding(4 * steps * MERGED_MASS_RTOL, 4 * steps * MERGED_MASS_RTOL), COARSE_CELLS
            ),
            0.0,
        ),
    )


def _pure(several: Sequence[tuple[Mechanism, int]], single: Sequence[tuple[FinitePair, int]]) -> tuple[float, float]:
    """Bounds on the largest total loss: channels count by their worst pair, other pairs by the worse direction."""
    low = math.fsum(n * mechanism.pure[0] for mechanism, n in several)
    high = math.fsum(n * mechanism.pure[1] for mechanism, n in several)
    if single:
        rest = ComposedPair.from_pairs(single).local_dp()
        low, high = low + rest.lower, high + rest.value
    return down(low, 64), up(high, 64)


def _together(mechanisms: Sequence[tuple[Mechanism, int]]) -> list[tuple[tuple[FinitePair, ...], int]]:
    """The pairs of rows of mechanisms, with counts, equal ones together."""

    def laws(pair: FinitePair) -> bytes:
        return bytes(pair.p.tobytes() + pair.q.tobytes())

    row_counts = tally((tuple(sorted(mechanism.rows, key=laws)), count) for mechanism, count in mechanisms)
    return sorted(row_counts.items(), key=lambda part: list(map(laws, part[0])))


SEVERAL_EXPECTED = "a list of mechanisms (that of a single one is [mechanism])"


def _single_kind(mechanisms: Any) -> str | None:
    """The kind of a single mechanism that stands where a list of them belongs; None for a list.

    A tuple of numbers is (epsilon, delta, eta). Read as a list, its delta would count as one more epsilon.
    """
    if isinstance(mechanisms, (Channel, FinitePair)):
        return type(mechanisms).__name__
    if isinstance(mechanisms, tuple) and 0 < len(mechanisms) <= 3 and all(map(_is_number, mechanisms)):
        return "one tuple (epsilon, delta, eta)"
    if isinstance(mechanisms, np.ndarray) and mechanisms.ndim == 2:
        return "one matrix"
    if isinstance(mechanisms, list) and mechanisms and all(isinstance(row, list) for row in mechanisms):
        return "one matrix" if all(_is_number(entry) for row in mechanisms for entry in row) else None
    return None


def _is_number(value: Any) -> bool:
    return value is None or isinstance(value, (int, float, np.number))


def compose(mechanisms: Iterable[Any], count: int = 1) -> ComposedPair:
    """Compose a list of mechanisms adaptively, the whole list `count` times.

    The result holds for every choice of inputs, and of the order of the mechanisms, that depends on the reports so far.
    For a tuple, it holds for every mechanism with these parameters [GI, Thm 2]. For a short list of small channels the
    best such strategy is computed. For others, the pairs that dominate them are composed, which gives a bound, and
    `exact` is False. A `FinitePair` keeps its direction: its p is combined with the p of the other pairs.

    If the same answer passes through all channels, the result is a bound, and `compose_same_input` is exact.

    Parameters
    ----------
    mechanisms : Channels (or matrices), named mechanisms, claims, `FinitePair`s, or tuples (epsilon, delta, eta), in
        any mixture, as `Ledger.add` takes them. Epsilons are in nats.
    count : The number of times that the whole list is used, at least 1.

    Returns
    -------
    ComposedPair
        The pair of distributions of the total privacy loss; `delta_at` and `epsilon_at` read its guarantees.

    Raises
    ------
    InvalidInput
        If the list is empty, an item is not a mechanism, or the count is out of range.

    Examples
    --------
    >>> both = compose([(0.5, 0.0, 0.2), [[0.75, 0.25], [0.25, 0.75]]])
    >>> round(both.delta_at(0.0), 9), round(both.epsilon_at(0.01), 6)
    (0.5, 1.572031)
    """
    count = positive_integer(count, "count", maximum=MAX_USES)
    if isinstance(mechanisms, (str, bytes)) or not isinstance(mechanisms, Iterable):
        raise invalid("mechanisms", SEVERAL_EXPECTED, type(mechanisms).__name__)
    mechanisms = list(mechanisms) if isinstance(mechanisms, Iterator) else mechanisms
    if (single := _single_kind(mechanisms)) is not None:
        raise invalid("mechanisms", SEVERAL_EXPECTED, Phrase(single))
    uses = [
        mechanism.ordered if isinstance(mechanism, FinitePair) else as_mechanism(mechanism) for mechanism in mechanisms
    ]
    if not uses:
        raise invalid("mechanisms", "at least one mechanism", "none")
    return composition([(item, 1) for _ in range(count) for item in uses] if len(uses) * count <= 64
                       else [(item, count) for item in uses])  # fmt: skip


@dataclass(frozen=True, eq=False)
class SameInput(Mapping[tuple[Label, Label], ComposedPair]):
    """The composition of channels that one answer passes through: a mapping from pairs of inputs to `ComposedPair`.

    Its methods state the worst case over the pairs, with the pair that attains it as the witness.

    >>> both = compose_same_input([[[0.75, 0.25], [0.25, 0.75]]], count=2)
    >>> round(both.hockey_stick(1.0).value, 6), both.hockey_stick(1.0).witness.inputs
    (0.392607, (0, 1))
    """

    pairs: Mapping[tuple[Label, Label], ComposedPair]

    def __getitem__(self, inputs: tuple[Label, Label]) -> ComposedPair:
        return self.pairs[inputs]

    def __iter__(self) -> Iterator[tuple[Label, Label]]:
        return iter(self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    def hockey_stick(self, epsilon: Any) -> Guarantee:
        """Return the delta at `epsilon`, in nats, for the worst pair of inputs."""
        return self._worst("hockey_stick", lambda pair: pair.hockey_stick(epsilon), {"epsilon": any_loss(epsilon)})

    def approximate_dp(self, delta: Any) -> Guarantee:
        """Return the epsilon at `delta` in [0, 1], in nats, for the worst pair of inputs."""
        level = unit_interval(delta, "delta")
        return self._worst("approximate_dp", lambda pair: pair.approximate_dp(level), {"delta": level})

    def total_variation(self) -> Guarantee:
        """Return the total variation of the worst pair: the Dobrushin coefficient of the joint channel."""
        return self._worst("total_variation", lambda pair: pair.total_variation(), {})

    def local_dp(self) -> Guarantee:
        """Return the pure epsilon of the worst pair, in nats."""
        return self._worst("local_dp", lambda pair: pair.local_dp(), {})

    def renyi(self, order: Any) -> Guarantee:
        """Return the Rényi divergence of an `order` in [1, inf] of the worst pair, in nats."""
        order = renyi_order(order)
        return self._worst("renyi", lambda pair: pair.renyi(order), {"order": order})

    def _worst(
        self, notion: str, measure: Callable[[ComposedPair], Guarantee], parameters: Mapping[str, float]
    ) -> Guarantee:
        guarantees = [(inputs, measure(pair)) for inputs, pair in self.pairs.items()]
        if not guarantees:
            return Guarantee(notion, 0.0, 0.0, None, True, REFERENCE, parameters)
        inputs, worst = max(guarantees, key=lambda item: item[1].value)
        lower = max(guarantee.lower for _, guarantee in guarantees)
        witness = Witness(inputs) if worst.value > 0 else None
        return Guarantee(notion, worst.value, lower, witness, worst.exact, worst.reference, parameters)

    def __repr__(self) -> str:
        return f"SameInput({len(self.pairs)} pairs of inputs, worst {self.total_variation()})"


def compose_same_input(channels: Iterable[ChannelLike], count: int = 1) -> SameInput:
    """Compose channels that one answer passes through, the whole list `count` times.

    Parameters
    ----------
    channels : Channels or (k, m) arrays with the same k inputs.
    count : The number of times that the whole list is used, at least 1.

    Returns
    -------
    SameInput
        The worst case, whose measures are the largest over the pairs. It is also a mapping from pairs of inputs to
        compositions; each covers both directions, so (x, x') also stands for (x', x).

    Raises
    ------
    InvalidInput
        If the channels have different inputs, or the count is out of range.

    Examples
    --------
    >>> q = [[0.75, 0.25], [0.25, 0.75]]
    >>> both = compose_same_input([q], count=2)
    >>> round(float(both.hockey_stick(1.0)), 6), list(both)
    (0.392607, [(0, 1)])
    """
    count = positive_integer(count, "count", maximum=MAX_USES)
    checked_channels = [as_channel(channel) for channel in channels]
    if not checked_channels:
        raise invalid("channels", "at least one channel", "none")
    inputs = checked_channels[0].inputs
    for channel in checked_channels:
        if channel.inputs != inputs:
            raise invalid("channels", f"the same inputs {inputs[:8]}", channel.inputs[:8])
    pairs = {
        (inputs[a], inputs[b]): ComposedPair.from_pairs(
            (FinitePair(channel.matrix[a], channel.matrix[b]), count) for channel in checked_channels
        )
        for a in range(len(inputs))
        for b in range(a + 1, len(inputs))
    }
    return SameInput(MappingProxyType(pairs))
