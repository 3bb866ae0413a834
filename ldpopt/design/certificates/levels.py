"""Multipliers of the program over the extreme columns of (epsilon, delta)-LDP, checked against every one of them.

The columns of `listed` are those of `columns.levels`, scaled to a largest entry of one: an entry of level l is
exp(-(h - l) epsilon) for the highest level h. The cap is delta, on sum_c theta_c (c_x - e^epsilon c_x')_+. Where total
variation is limited, too, there is the cap eta on sum_c theta_c (c_x - c_x')_+.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.design.certificates.base import Unproved
from ldpopt.design.certificates.listed import Listed, ListedDual
from ldpopt.design.certificates.numbers import nonnegative_array
from ldpopt.design.columns.levels import LIMIT, Levels, level_columns
from ldpopt.design.constraints.hockey_stick import ApproximateLDP, TotalVariation
from ldpopt.distribution import Array
from ldpopt.enclosures import Arithmetic, Enclosure

BLOCK = 2048
"""Columns that are looked at together."""


@dataclass(frozen=True, eq=False, repr=False)
class LevelDual(ListedDual):
    """Multipliers of the exact program of any column utility under `ApproximateLDP`, for up to six inputs.

    rows : (k,) multipliers of the row sums. pairs : (k, k) non-negative multipliers of the caps; entry (x, x') is for
    the excess of row x over e^epsilon times row x', and the diagonal is ignored. weights : (criteria,) non-negative, of
    the criteria, not all zero. Rows and pairs are for the utility less its tangent at the constant column. Where there
    are several such constraints, the one that gives the best bound counts.
    """

    argument = "linear-programming duality over all extreme columns of (epsilon, delta)-LDP"

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """sum l + kappa (sum rows + delta sum pairs), with l and kappa as in `listed`."""
        k = self._size()
        if k > LIMIT:
            raise Unproved(f"{k} inputs have too many extreme columns to look at all of them")
        refused, bounds = Unproved("no constraint asks for ApproximateLDP"), []
        for epsilon, delta in least_caps(self.constraints):
            try:
                bounds.append(self._within(arithmetic.of(epsilon), delta))
            except Unproved as error:
                refused = error
        if not bounds:
            raise refused
        return min(bounds, key=lambda one: float(one.upper))

    def _within(self, epsilon: Enclosure, delta: float) -> Enclosure:
        """The bound by one epsilon, and the least delta at it."""
        of, (_, pairs) = epsilon.arithmetic, self._multipliers()
        listed = (columns.charged(pairs) for columns in leveled(level_columns(len(pairs)), epsilon))
        return self._paid(listed, of.of(pairs).sum() * delta, of)


@dataclass(frozen=True, eq=False, repr=False)
class LevelVariationDual(LevelDual):
    """Multipliers of the exact program of a column utility under `ApproximateLDP` and `TotalVariation` together.

    The numbers of `LevelDual`, and spreads : (k, k) non-negative; entry (x, x') is the multiplier of the cap on
    sum_y (Q[x, y] - Q[x', y])_+, and the diagonal is ignored. For up to six inputs.
    """

    spreads: Array

    argument = "linear-programming duality over all extreme columns of (epsilon, delta)-LDP and total variation"

    def _within(self, epsilon: Enclosure, delta: float) -> Enclosure:
        """The bound by one epsilon, the least delta at it, and the least cap on total variation."""
        of, (_, pairs) = epsilon.arithmetic, self._multipliers()
        spreads = nonnegative_array(self.spreads, pairs.shape, "spreads") * ~np.eye(len(pairs), dtype=bool)
        eta = min((c.eta for c in self.constraints if isinstance(c, TotalVariation)), default=1.0)
        listed = (c.charged(pairs, spreads) for c in leveled(level_columns(len(pairs), flat=True), epsilon))
        return self._paid(listed, of.of(pairs).sum() * delta + of.of(spreads).sum() * eta, of)


def least_caps(constraints: tuple[Any, ...]) -> Iterator[tuple[float, float]]:
    """(epsilon, delta) of `ApproximateLDP`, the least delta for each epsilon."""
    used = {(c.epsilon, c.delta) for c in constraints if isinstance(c, ApproximateLDP)}
    for epsilon in sorted({epsilon for epsilon, _ in used}):
        yield epsilon, min(delta for one, delta in used if one == epsilon)


def leveled(every: Levels, epsilon: Enclosure) -> Iterator[LeveledColumns]:
    """The columns of these levels, some at a time."""
    for start in range(0, len(every), BLOCK):
        yield LeveledColumns.of(every[start : start + BLOCK], epsilon)


@dataclass(frozen=True, eq=False)
class LeveledColumns:
    """Columns of given `levels` (n, k), scaled to a largest entry of one: `base` (n,) + `rise` (k, n).

    power : (k + 1,) e^(-j epsilon); rest : (k + 1,) 1 - e^(-j epsilon), with all digits where epsilon is small.
    """

    levels: Levels
    height: Levels
    power: Enclosure
    rest: Enclosure
    base: Enclosure
    rise: Enclosure

    @classmethod
    def of(cls, levels: Levels, epsilon: Enclosure) -> LeveledColumns:
        """The columns at this epsilon."""
        of, k = epsilon.arithmetic, levels.shape[1]
        exponents = -(epsilon * np.arange(k + 1.0))
        power, rest = exponents.exp(), -exponents.expm1()
        height, full, inside = levels.max(axis=1), np.all(levels >= 0, axis=1), np.asarray(levels >= 0)
        base = of.where(full, power[height], of.zeros(len(levels)))
        entry = power[np.where(inside, height[:, None] - levels, 0)]
        above = entry * rest[np.where(inside, levels, 0)]
        rise = of.where(full[:, None], above, of.where(inside, entry, of.zeros(levels.shape)))
        return cls(levels, height, power, rest, base, rise.T)

    def charged(self, pairs: Array, spreads: Array | None = None) -> Listed:
        """The columns, with what each pays at these prices of its excesses (k, k) and its total variation (k, k)."""
        charged = None
        for prices, step in ((pairs, 1), *(() if spreads is None else ((spreads, 0),))):
            for x, y in zip(*np.nonzero(prices), strict=True):
                more = self.excess(int(x), int(y), step) * float(prices[x, y])
                charged = more if charged is None else charged + more
        return Listed(self.base, self.rise, charged)

    def excess(self, x: int, y: int, step: int = 1) -> Enclosure:
        """(n,) the excess (c_x - e^(step epsilon) c_y)_+ of the columns, for a step of 1 or 0.

        It is c_x (1 - e^(-(d - step) epsilon)) at d levels above.
        """
        of, upper, lower = self.power.arithmetic, self.levels[:, x], self.levels[:, y]
        entry = self.power[np.where(upper >= 0, self.height - upper, 0)]
        above = np.where(lower >= 0, np.maximum(upper - lower - step, 0), 0)
        part = of.where(lower >= 0, self.rest[above], of.of(np.ones(len(upper))))
        return of.where(upper >= 0, entry * part, of.zeros(len(upper)))
