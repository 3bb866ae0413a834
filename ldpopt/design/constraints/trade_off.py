"""The constraint that a channel be f-DP for a piecewise-linear trade-off curve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ldpopt.channel import Channel, Label
from ldpopt.design.constraints.base import ColumnConstraint, tanh_of_half
from ldpopt.design.constraints.hockey_stick import approximate
from ldpopt.design.constraints.terms import Ratio, Term
from ldpopt.enclosures import Arithmetic, Enclosure
from ldpopt.errors import invalid
from ldpopt.privacy import Guarantee, TradeOffCurve, hockey_stick


@dataclass(frozen=True)
class TradeOff(ColumnConstraint):
    """T(Q[x], Q[x']) >= curve for all pairs of inputs, for a `privacy.TradeOffCurve` [DRS, Def 2.2].

    T is the trade-off curve of two rows: the least error of the second kind for each error of the first. Every segment
    of the given curve is a line that says (epsilon_i, delta_i)-LDP [DRS, Prop 2.12]. The measure is the largest excess
    of the channel's delta at epsilon_i over delta_i, which must be 0. The constraint is on all ordered pairs, so that a
    curve that is not its own inverse also asks for its inverse.

    >>> curve = TradeOffCurve.of_pair([0.75, 0.25], [0.25, 0.75])
    >>> [(round(e, 4), d) for e, d in TradeOff(curve).levels]
    [(1.0986, 0.0)]
    """

    curve: TradeOffCurve
    levels: tuple[tuple[float, float], ...] = field(init=False, repr=False, compare=False, default=())

    def __post_init__(self) -> None:
        if not isinstance(self.curve, TradeOffCurve):
            raise invalid("curve", "a TradeOffCurve", type(self.curve).__name__)
        a, b = self.curve.knots.T
        # Beyond the last knot the curve is flat at 0, which every pair meets.
        slopes = -np.diff(b) / np.diff(a)
        heights = b[:-1] + slopes * a[:-1]
        found = set()
        for slope, height in zip(slopes.tolist(), heights.tolist(), strict=True):
            if slope > 0:
                # A line flatter than -1 says the same of the pair in the other order, where it is steeper.
                reached = height if slope >= 1 else height / slope
                epsilon, delta = abs(math.log(slope)), 1 - reached
                found.add((epsilon if epsilon > 1e-12 else 0.0, delta if delta > 1e-12 else 0.0))
        object.__setattr__(self, "levels", _distinct(sorted(found)))

    @property
    def plain(self) -> tuple[float, float] | None:
        """(epsilon, eta) where each line of the curve amounts to `LocalDP` or `TotalVariation`; else None."""
        if not all(epsilon == 0 or delta == 0 for epsilon, delta in self.levels):
            return None
        return (
            min((epsilon for epsilon, delta in self.levels if epsilon > 0 and delta == 0), default=math.inf),
            min((delta for epsilon, delta in self.levels if epsilon == 0), default=1.0),
        )

    @property
    def bound(self) -> float:
        """0: no line may be exceeded."""
        return 0.0

    def measure(self, channel: Channel) -> Guarantee:
        """The largest excess of the channel's delta over the curve's lines."""
        worst = max((hockey_stick(channel, e).value - d for e, d in self.levels), default=0.0)
        return Guarantee("trade_off", max(worst, 0.0), 0.0, None, False, "[DRS, Prop 2.12]")

    def columns(self, inputs: Sequence[Label]) -> tuple[Term | Ratio, ...]:
        """One hockey-stick sum for each line and ordered pair; a `Ratio` for a line with delta = 0."""
        return tuple(approximate(len(inputs), e, d) for e, d in self.levels)

    def variation(self, arithmetic: Arithmetic) -> Enclosure:
        """The least of delta + (1 - delta) tanh(epsilon/2) over the lines [GI, eq. 7]."""
        least = arithmetic.of(1.0)
        for epsilon, delta in self.levels:
            least = least.minimum(delta + (1 - arithmetic.of(delta)) * tanh_of_half(arithmetic.of(epsilon)))
        return least

    def spread(self, inputs: Sequence[Label], arithmetic: Arithmetic) -> Enclosure | None:
        """The least epsilon of the lines with delta = 0; None without such a line."""
        pure = min((e for e, d in self.levels if d == 0), default=None)
        return None if pure is None else arithmetic.of(pure)


def _distinct(levels: list[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """The levels that no other implies. With increasing epsilon, each has a smaller delta than the one before."""
    kept: list[tuple[float, float]] = []
    for epsilon, delta in levels:
        if kept and epsilon - kept[-1][0] <= 1e-12 * (1 + epsilon):
            # Rounding alone tells apart a line and its mirror image in a symmetric curve.
            kept[-1] = (kept[-1][0], min(delta, kept[-1][1]))
        elif not kept or delta < kept[-1][1]:
            kept.append((epsilon, delta))
    return tuple(kept)
