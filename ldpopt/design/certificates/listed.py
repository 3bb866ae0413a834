"""The part that is common to proofs which look at every extreme column of a list.

Primal, over weights theta_c >= 0 of the columns c, for criteria mu_j and caps r on the sums of some v[x,x'](c) >= 0:

    max  min_j sum_c theta_c mu_j(c)   s.t.  sum_c theta_c c = 1,  sum_c theta_c v[x,x'](c) <= r

Dual, for weights w >= 0 of the criteria that sum to one:

    min  sum lambda + r sum nu   s.t.  lambda.c + sum nu[x,x'] v[x,x'](c) >= sum_j w_j mu_j(c)

Everything is homogeneous, so that multipliers which fall short of the constraints by a factor kappa prove kappa times
their bound. First, a linear utility l is subtracted, which is worth sum l on every channel: the tangent of
sum_j w_j mu_j at the constant column. No column is then worth less than nothing. Any other l would only make the bound
larger.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ldpopt.design.certificates.base import Certificate, Unproved
from ldpopt.design.certificates.numbers import nonnegative_array, real_array
from ldpopt.design.certificates.plain import Mixed, factor
from ldpopt.design.utilities.base import ColumnUtility
from ldpopt.distribution import Array, Index
from ldpopt.enclosures import FLOAT, Arithmetic, Enclosure
from ldpopt.rounding import exact_sum

BLOCK = 4096
"""Columns that are looked at together."""


@dataclass(frozen=True, eq=False)
class Listed:
    """Columns base (n,) + rise (k, n) in any scale, and what the multipliers of the caps charge for them (n,)."""

    base: Enclosure
    rise: Enclosure
    charged: Enclosure | None = None


@dataclass(frozen=True, eq=False, repr=False)
class ListedDual(Certificate):
    """Multipliers of a program over listed columns, for any column utility.

    rows : (k,) multipliers of the row sums. pairs : (k, k) non-negative multipliers of the caps; entry (x, x') is for
    columns larger at x than at x', and the diagonal is ignored. weights : (criteria,) non-negative, of the criteria,
    not all zero. Rows and pairs are for the utility less its tangent at the constant column.
    """

    proves = ColumnUtility

    rows: Array
    pairs: Array
    weights: Array

    def _size(self) -> int:
        """The number of inputs k; `Unproved` for a utility that is no sum over columns."""
        if self.utility.continuous:
            raise Unproved(f"{self.utility.name} is no sum over outputs of convex functions of a finite column")
        size: int = self.utility.size
        return size

    def _multipliers(self) -> tuple[Array, Array]:
        """The rows (k,) and the pairs (k, k), whose diagonal is zero."""
        k = self._size()
        pairs = nonnegative_array(self.pairs, (k, k), "pairs")
        return real_array(self.rows, (k,), "rows"), pairs * ~np.eye(k, dtype=bool)

    def _proved(self, columns: Iterable[Listed], cap: Enclosure | float, arithmetic: Arithmetic) -> Enclosure:
        """sum l + kappa (sum rows + cap sum pairs), kappa the factor by which the multipliers fall short."""
        return self._paid(columns, arithmetic.of(self._multipliers()[1]).sum() * cap, arithmetic)

    def _paid(self, columns: Iterable[Listed], charge: Enclosure, arithmetic: Arithmetic) -> Enclosure:
        """The bound, given what all caps charge together: the sum of each multiplier times its cap."""
        rows, mixed = self._multipliers()[0], Mixed.of(self.utility, self.weights, arithmetic)
        kappa = 1.0
        for some in columns:
            kappa = max(kappa, factor(*self._sides(some, rows, mixed)))
            if not kappa < math.inf:
                raise Unproved("a column that may pay nothing may be worth something")
        return mixed.kept + (arithmetic.of(exact_sum(rows)) + charge) * kappa

    def _unsettled(self, columns: Iterable[Listed]) -> Index:
        """Positions of the columns that floats do not settle: they may be worth more than they pay, or pay below 0."""
        rows, mixed = self._multipliers()[0], Mixed.of(self.utility, self.weights, FLOAT)
        found = []
        for some in columns:
            worth, paid = self._sides(some, rows, mixed)
            least = np.asarray(paid.lower)
            found.append((np.asarray(worth.upper) <= least) & (least >= 0))
        return np.flatnonzero(~np.concatenate(found)).astype(np.intp)

    def _sides(self, some: Listed, rows: Array, mixed: Mixed) -> tuple[Enclosure, Enclosure]:
        """(n,) the worth of the columns, less the tangent, and (n,) their prices."""
        of = some.base.arithmetic
        worth = mixed.shares @ self.utility.enclosed_columns(some.base, some.rise)
        if mixed.linear.any():
            worth = worth - (some.base * mixed.kept + of.of(mixed.linear) @ some.rise)
        # The exact sum, because it is multiplied by every base: a total of zero stays zero.
        paid = some.base * of.of(exact_sum(rows)) + of.of(rows) @ some.rise
        return worth, paid if some.charged is None else paid + some.charged
