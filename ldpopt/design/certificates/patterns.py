"""Multipliers of the staircase-pattern program, checked against every one of its 2^k - 1 columns.

In terms of `listed`: the columns are the patterns S_A = t + 1_A with t = 1/(e^epsilon - 1), and the cap is eta, on
sum_{A with x, without x'} theta_A.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ldpopt.design.certificates.base import Unproved
from ldpopt.design.certificates.listed import BLOCK, Listed, ListedDual
from ldpopt.design.certificates.plain import Caps
from ldpopt.design.columns.sets import members
from ldpopt.enclosures import Arithmetic, Enclosure

MOST = 20
"""The most inputs whose patterns are all looked at."""


@dataclass(frozen=True, eq=False, repr=False)
class PatternDual(ListedDual):
    """Multipliers of the pattern program of any column utility [KOV14, Thm 4], with a cap on total variation or none.

    rows : (k,) multipliers of the row sums. pairs : (k, k) non-negative multipliers of the caps on total variation;
    entry (x, x') is for patterns with x and without x', and the diagonal is ignored. weights : (criteria,)
    non-negative, of the criteria, not all zero. Rows and pairs are for the utility less its tangent at the constant
    column.
    """

    argument = "linear-programming duality over all staircase patterns"

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """sum l + kappa (sum rows + eta sum pairs), with l and kappa as in `listed`."""
        k = self._size()
        if k > MOST:
            raise Unproved(f"{k} inputs have too many patterns to look at all of them")
        caps = Caps.of(self.constraints, arithmetic)
        return self._proved(self._patterns(caps, arithmetic), caps.eta, arithmetic)

    def _patterns(self, caps: Caps, arithmetic: Arithmetic) -> Iterator[Listed]:
        _, pairs = self._multipliers()
        k = len(pairs)
        prices = arithmetic.of(pairs) if pairs.any() else None
        count = 2**k - 1  # the full pattern is a multiple of the empty one
        for start in range(0, count, BLOCK):
            inside = members(np.arange(start, min(start + BLOCK, count), dtype=np.int64), k).astype(np.float64)
            charged = None if prices is None else ((inside @ prices) * (1 - inside)).sum(axis=1)
            yield Listed(caps.level * np.ones(len(inside)), arithmetic.of(inside.T), charged)
