"""Multipliers of the program over the extreme columns of (epsilon, delta)-LDP, checked against every one of them.

Primal, over weights theta_c >= 0 of the extreme columns c (`columns.levels`), for criteria mu_j:

    max  min_j sum_c theta_c mu_j(c)   s.t.  sum_c theta_c c = 1,  sum_c theta_c (c_x - e^epsilon c_x')_+ <= delta

Dual, for weights w >= 0 of the criteria that sum to one:

    min  sum lambda + delta sum nu   s.t.  lambda.c + sum nu[x,x'] (c_x - e^epsilon c_x')_+ >= sum_j w_j mu_j(c)

Columns are scaled to a largest entry of one: an entry of level l is exp(-(h - l) epsilon). As for `patterns`,
multipliers that fall short by a factor kappa prove kappa times their bound, and the tangent at the constant column,
worth the same on every channel, is set aside before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ldpopt.design.certificates.base import Certificate, Unproved
from ldpopt.design.certificates.numbers import nonnegative_array, real_array
from ldpopt.design.certificates.plain import Mixed, factor
from ldpopt.design.columns.levels import LIMIT, Levels, level_columns
from ldpopt.design.constraints.approximate_dp import ApproximateLDP
from ldpopt.design.utilities.base import ColumnUtility
from ldpopt.distribution import Array
from ldpopt.enclosures import Arithmetic, Enclosure
from ldpopt.rounding import exact_sum

BLOCK = 2048
"""Columns that are looked at together."""


@dataclass(frozen=True, eq=False, repr=False)
class LevelDual(Certificate):
    """Multipliers of the exact program of any column utility under `ApproximateLDP`, for up to six inputs.

    rows : (k,); pairs : (k, k) non-negative, entry (x, x') for what row x exceeds e^epsilon times row x' by, the
    diagonal of no meaning; weights : (criteria,) non-negative, of the criteria, not all zero. Rows and pairs are for
    the utility less its tangent at the constant column. Of several such constraints the one that proves most counts.
    """

    proves = ColumnUtility

    rows: Array
    pairs: Array
    weights: Array

    argument = "linear-programming duality over all extreme columns of (epsilon, delta)-LDP"

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """sum l, and sum rows + delta sum pairs times the factor by which the multipliers fall short."""
        utility = self.utility
        if utility.continuous:
            raise Unproved(f"{utility.name} is no sum over outputs of convex functions of a finite column")
        k = utility.size
        if k > LIMIT:
            raise Unproved(f"{k} inputs have too many extreme columns to look at all of them")
        used = {(c.epsilon, c.delta) for c in self.constraints if isinstance(c, ApproximateLDP)}
        if not used:
            raise Unproved("no constraint asks for ApproximateLDP")
        rows = real_array(self.rows, (k,), "rows")
        pairs = nonnegative_array(self.pairs, (k, k), "pairs") * ~np.eye(k, dtype=bool)
        mixed = Mixed.of(utility, self.weights, arithmetic)
        total, given = arithmetic.of(exact_sum(rows)), arithmetic.of(pairs)
        bounds = []
        for epsilon in sorted({epsilon for epsilon, _ in used}):
            kappa = self._shortfall(rows, pairs, mixed, arithmetic.of(epsilon))
            least = min(delta for one, delta in used if one == epsilon)
            if kappa < math.inf:
                bounds.append(mixed.kept + (total + given.sum() * least) * kappa)
        if not bounds:
            raise Unproved("a column that may pay nothing may be worth something")
        return min(bounds, key=lambda one: float(one.upper))

    def _shortfall(self, rows: Array, pairs: Array, mixed: Mixed, epsilon: Enclosure) -> float:
        """The factor by which the multipliers fall short on the worst column."""
        of, kappa, every = epsilon.arithmetic, 1.0, level_columns(len(rows))
        total = of.of(exact_sum(rows))
        for start in range(0, len(every), BLOCK):
            columns = LeveledColumns.of(every[start : start + BLOCK], epsilon)
            worth = mixed.shares @ self.utility.enclosed_columns(columns.base, columns.rise)
            if mixed.linear.any():
                worth = worth - (columns.base * mixed.kept + of.of(mixed.linear) @ columns.rise)
            paid = columns.base * total + of.of(rows) @ columns.rise
            for x, y in zip(*np.nonzero(pairs), strict=True):
                paid = paid + columns.excess(int(x), int(y)) * float(pairs[x, y])
            kappa = max(kappa, factor(worth, paid))
            if not kappa < math.inf:
                break
        return kappa


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
        """(n,) the excess (c_x - e^epsilon c_y)_+ of the columns: c_x (1 - e^(-(d - 1) epsilon)) at d levels above."""
        of, upper, lower = self.power.arithmetic, self.levels[:, x], self.levels[:, y]
        entry = self.power[np.where(upper >= 0, self.height - upper, 0)]
        above = np.where(lower >= 0, np.maximum(upper - lower - 1, 0), 0)
        part = of.where(lower >= 0, self.rest[above], of.of(np.ones(len(upper))))
        return of.where(upper >= 0, entry * part, of.zeros(len(upper)))
