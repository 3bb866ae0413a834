"""Multipliers of the staircase-pattern program, checked against every one of its 2^k - 1 columns.

Primal, over weights theta_A >= 0 of the patterns S_A = t + 1_A, t = 1/(e^epsilon - 1), for criteria mu_j:

    max  min_j sum_A theta_A mu_j(S_A)   s.t.  sum_A theta_A S_A = 1,  sum_{A with x, without x'} theta_A <= eta

Dual, for weights w >= 0 of the criteria that sum to one:

    min  sum lambda + eta sum nu   s.t.  lambda.S_A + sum_{x in A, x' not in A} nu[x,x'] >= sum_j w_j mu_j(S_A)

Multipliers that fall short of a constraint by a factor kappa prove kappa times their bound: all of it is homogeneous.
A linear utility l is set aside before, worth sum l on every channel: the one that touches sum_j w_j mu_j at the
constant column, so that no pattern is worth less than nothing. Any other would only make the bound larger.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ldpopt.design.certificates.base import Certificate, Unproved
from ldpopt.design.certificates.numbers import nonnegative_array, real_array
from ldpopt.design.certificates.plain import Caps, Mixed, factor
from ldpopt.design.columns.masks import members
from ldpopt.design.utilities.base import ColumnUtility
from ldpopt.distribution import Array
from ldpopt.enclosures import Arithmetic, Enclosure
from ldpopt.rounding import exact_sum

MOST = 20
"""The most inputs whose patterns are all looked at."""

BLOCK = 4096
"""Patterns that are looked at together."""


@dataclass(frozen=True, eq=False, repr=False)
class PatternDual(Certificate):
    """Multipliers of the pattern program of any column utility [KOV14, Thm 4], with a cap on total variation or none.

    rows : (k,); pairs : (k, k) non-negative, of the TV caps, entry (x, x') for patterns with x and without x', the
    diagonal of no meaning; weights : (criteria,) non-negative, of the criteria, not all zero. Rows and pairs are for
    the utility less its tangent at the constant column.
    """

    proves = ColumnUtility

    rows: Array
    pairs: Array
    weights: Array

    argument = "linear-programming duality over all staircase patterns"

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """sum l, and sum rows + eta sum pairs times the factor by which the multipliers fall short."""
        if self.utility.continuous:
            raise Unproved(f"{self.utility.name} is no sum over outputs of convex functions of a finite column")
        k = self.utility.size
        if k > MOST:
            raise Unproved(f"{k} inputs have too many patterns to look at all of them")
        caps = Caps.of(self.constraints, arithmetic)
        rows = real_array(self.rows, (k,), "rows")
        given = nonnegative_array(self.pairs, (k, k), "pairs") * ~np.eye(k, dtype=bool)
        mixed = Mixed.of(self.utility, self.weights, arithmetic)
        # Without rounding, as it is charged t times: a total of zero stays zero.
        total = arithmetic.of(exact_sum(rows))
        prices, pairs = arithmetic.of(rows), arithmetic.of(given)
        kappa = 1.0
        count = 2**k - 1  # the full pattern is a multiple of the empty one
        for start in range(0, count, BLOCK):
            inside = members(np.arange(start, min(start + BLOCK, count), dtype=np.int64), k).astype(np.float64)
            columns = self.utility.enclosed_columns(caps.level * np.ones(len(inside)), arithmetic.of(inside.T))
            worth = mixed.shares @ columns
            if mixed.linear.any():
                worth = worth - (caps.level * mixed.kept + inside @ arithmetic.of(mixed.linear))
            paid = caps.level * total + inside @ prices
            if given.any():
                paid = paid + ((inside @ pairs) * (1 - inside)).sum(axis=1)
            kappa = max(kappa, factor(worth, paid))
            if not kappa < math.inf:
                raise Unproved("a pattern that may pay nothing may be worth something")
        return mixed.kept + (total + caps.eta * pairs.sum()) * kappa
