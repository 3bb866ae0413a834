"""Multipliers of the program over the extreme columns of a policy graph, checked against every one of them.

Primal, over weights theta_c >= 0 of the extreme columns c (`columns.extreme`), for criteria mu_j:

    max  min_j sum_c theta_c mu_j(c)   s.t.  sum_c theta_c c = 1,  sum_c theta_c (c_x - c_x')_+ <= eta

Dual, for weights w >= 0 of the criteria that sum to one:

    min  sum lambda + eta sum nu   s.t.  lambda.c + sum nu[x,x'] (c_x - c_x')_+ >= sum_j w_j mu_j(c)

As for `patterns`, multipliers that fall short by a factor kappa prove kappa times their bound, and the tangent at the
constant column, worth the same on every channel, is set aside before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ldpopt.design.certificates.base import Certificate, Unproved
from ldpopt.design.certificates.numbers import nonnegative_array, real_array
from ldpopt.design.certificates.plain import Mixed, factor
from ldpopt.design.columns.choose import policy_limits
from ldpopt.design.columns.policy import PolicyColumns, listable
from ldpopt.design.constraints.total_variation import TotalVariation
from ldpopt.design.utilities.base import ColumnUtility
from ldpopt.distribution import Array
from ldpopt.enclosures import Arithmetic, Enclosure
from ldpopt.rounding import exact_sum

BLOCK = 4096
"""Columns that are looked at together."""


@dataclass(frozen=True, eq=False, repr=False)
class PolicyDual(Certificate):
    """Multipliers of the program over all extreme columns of the policy graphs of `LocalDP`, for any column utility.

    rows : (k,); pairs : (k, k) non-negative, of the TV caps, entry (x, x') for columns larger at x than at x', the
    diagonal of no meaning; weights : (criteria,) non-negative, of the criteria, not all zero. Rows and pairs are for
    the utility less its tangent at the constant column.
    """

    proves = ColumnUtility

    rows: Array
    pairs: Array
    weights: Array

    argument = "linear-programming duality over all extreme columns of the policy graph"

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """sum l, and sum rows + eta sum pairs times the factor by which the multipliers fall short."""
        utility = self.utility
        if utility.continuous:
            raise Unproved(f"{utility.name} is no sum over outputs of convex functions of a finite column")
        k = utility.size
        limits = policy_limits(self.constraints, tuple(utility.inputs or range(k)))
        if not np.isfinite(limits[~np.eye(k, dtype=bool)]).any():
            raise Unproved("no constraint asks for LocalDP between any two inputs")
        if not listable(limits):
            raise Unproved("a graph of so many edges has too many extreme columns to look at all of them")
        rows = real_array(self.rows, (k,), "rows")
        pairs = nonnegative_array(self.pairs, (k, k), "pairs") * ~np.eye(k, dtype=bool)
        eta = min((c.eta for c in self.constraints if isinstance(c, TotalVariation)), default=1.0)
        mixed = Mixed.of(utility, self.weights, arithmetic)
        base, rise = PolicyColumns(limits, bool(pairs.any())).enclosed(arithmetic)
        total, kappa = arithmetic.of(exact_sum(rows)), 1.0
        left, right = np.nonzero(pairs)
        for start in range(0, len(base), BLOCK):
            low, above = base[start : start + BLOCK], rise[start : start + BLOCK]
            worth = mixed.shares @ utility.enclosed_columns(low, above.T)
            if mixed.linear.any():
                worth = worth - (low * mixed.kept + above @ arithmetic.of(mixed.linear))
            paid = low * total + above @ arithmetic.of(rows)
            if len(left):
                paid = paid + (above[:, left] - above[:, right]).positive() @ arithmetic.of(pairs[left, right])
            kappa = max(kappa, factor(worth, paid))
            if not kappa < math.inf:
                raise Unproved("a column that may pay nothing may be worth something")
        return mixed.kept + (total + arithmetic.of(pairs).sum() * eta) * kappa
