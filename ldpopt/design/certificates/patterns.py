"""Multipliers of the staircase-pattern program, checked against every one of its 2^k columns.

Primal, over weights theta_A >= 0 of the patterns S_A = t + 1_A, t = 1/(e^epsilon - 1), for criteria mu_j:

    max  min_j sum_A theta_A mu_j(S_A)   s.t.  sum_A theta_A S_A = 1,  sum_{A with x, without x'} theta_A <= eta

Dual, for weights w >= 0 of the criteria that sum to one:

    min  sum lambda + eta sum nu   s.t.  lambda.S_A + sum_{x in A, x' not in A} nu[x,x'] >= sum_j w_j mu_j(S_A)  for all A

Multipliers that fall short of a constraint by a factor kappa prove kappa times their bound, as all of it is homogeneous.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ldpopt.design.certificates.base import Certificate, Unproved
from ldpopt.design.certificates.numbers import nonnegative_array, real_array
from ldpopt.design.certificates.plain import Caps, factor
from ldpopt.design.columns.masks import members
from ldpopt.distribution import Array
from ldpopt.enclosures import Arithmetic, Enclosure

MOST = 20
"""The most inputs whose patterns are all looked at."""

BLOCK = 4096


@dataclass(frozen=True, eq=False, repr=False)
class PatternDual(Certificate):
    """Multipliers of the pattern program of any column utility [KOV14, Thm 4], with a cap on total variation or none.

    rows : (k,); pairs : (k, k) non-negative, of the TV caps, entry (x, x') for patterns with x and without x';
    weights : (criteria,) non-negative, of the criteria, not all zero.
    """

    rows: Array
    pairs: Array
    weights: Array

    argument = "linear-programming duality over all staircase patterns"

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """sum rows + eta sum pairs, times the factor by which the multipliers fall short."""
        k = self.utility.size
        if k > MOST:
            raise Unproved(f"{k} inputs have too many patterns to look at all of them")
        caps = Caps.of(self.constraints, arithmetic)
        rows = arithmetic.of(real_array(self.rows, (k,), "rows"))
        given = nonnegative_array(self.pairs, (k, k), "pairs") * ~np.eye(k, dtype=bool)
        weights = nonnegative_array(self.weights, (len(self.weights),), "weights")
        if not weights.sum() > 0:
            raise Unproved("the weights of the criteria are all zero")
        shares = arithmetic.of(weights) / arithmetic.of(weights).sum()
        pairs, total = arithmetic.of(given), rows.sum()
        kappa = 1.0
        for block in np.array_split(np.arange(2**k, dtype=np.int64), max(1, 2**k // BLOCK)):
            inside = members(block, k).astype(np.float64)
            columns = self.utility.enclosed_columns(caps.level * np.ones(len(block)), arithmetic.of(inside.T))
            worth = shares @ columns
            paid = caps.level * total + inside @ rows
            if given.any():
                paid = paid + ((inside @ pairs) * (1 - inside)).sum(axis=1)
            kappa = max(kappa, factor(worth, paid))
        bound = total + caps.eta * pairs.sum()
        if not bound.lower >= 0 or not math.isfinite(kappa):
            raise Unproved("the multipliers sum to less than zero, or a pattern that pays nothing is worth something")
        return bound * kappa
