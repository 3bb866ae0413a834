"""Multipliers of the program over the extreme columns of (epsilon, delta)-LDP, checked against every one of them.

In terms of `listed`: the columns are those of `columns.levels`, scaled to a largest entry of one, so that an entry of
level l is exp(-(h - l) epsilon) for the highest level h. The cap is delta, on sum_c theta_c (c_x - e^epsilon c_x')_+.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ldpopt.design.certificates.base import Unproved
from ldpopt.design.certificates.listed import Listed, ListedDual
from ldpopt.design.columns.levels import LIMIT, Levels, level_columns
from ldpopt.design.constraints.approximate_dp import ApproximateLDP
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
        used = {(c.epsilon, c.delta) for c in self.constraints if isinstance(c, ApproximateLDP)}
        refused, bounds = Unproved("no constraint asks for ApproximateLDP"), []
        for epsilon in sorted({epsilon for epsilon, _ in used}):
            least = min(delta for one, delta in used if one == epsilon)
            try:
                bounds.append(self._proved(self._listed(arithmetic.of(epsilon)), least, arithmetic))
            except Unproved as error:
                refused = error
        if not bounds:
            raise refused
        return min(bounds, key=lambda one: float(one.upper))

    def _listed(self, epsilon: Enclosure) -> Iterator[Listed]:
        _, pairs = self._multipliers()
        every = level_columns(len(pairs))
        for start in range(0, len(every), BLOCK):
            columns = LeveledColumns.of(every[start : start + BLOCK], epsilon)
            charged = None
            for x, y in zip(*np.nonzero(pairs), strict=True):
                more = columns.excess(int(x), int(y)) * float(pairs[x, y])
                charged = more if charged is None else charged + more
            yield Listed(columns.base, columns.rise, charged)


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

    def excess(self, x: int, y: int) -> Enclosure:
        """(n,) (c_x - e^epsilon c_y)_+ of the columns: c_x (1 - e^(-(d - 1) epsilon)) where x is d levels above y."""
        of, upper, lower = self.power.arithmetic, self.levels[:, x], self.levels[:, y]
        entry = self.power[np.where(upper >= 0, self.height - upper, 0)]
        above = np.where(lower >= 0, np.maximum(upper - lower - 1, 0), 0)
        part = of.where(lower >= 0, self.rest[above], of.of(np.ones(len(upper))))
        return of.where(upper >= 0, entry * part, of.zeros(len(upper)))
