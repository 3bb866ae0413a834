"""Multipliers of the program over the extreme columns of a policy graph, checked against every one of them.

In terms of `listed`: the columns are those of `columns.extreme`, and the cap is eta, on sum_c theta_c (c_x - c_x')_+.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.design.certificates.base import Unproved
from ldpopt.design.certificates.listed import BLOCK, Listed, ListedDual
from ldpopt.design.columns.policy import PolicyColumns, listable, policy_limits
from ldpopt.design.constraints.hockey_stick import TotalVariation
from ldpopt.enclosures import FLOAT, Arithmetic, Enclosure


@dataclass(frozen=True, eq=False, repr=False)
class PolicyDual(ListedDual):
    """Multipliers of the program over all extreme columns of the policy graphs of `LocalDP`, for any column utility.

    rows : (k,) multipliers of the row sums. pairs : (k, k) non-negative multipliers of the caps on total variation;
    entry (x, x') is for columns larger at x than at x', and the diagonal is ignored. weights : (criteria,)
    non-negative, of the criteria, not all zero. Rows and pairs are for the utility less its tangent at the constant
    column.
    """

    argument = "linear-programming duality over all extreme columns of the policy graph"

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """sum l + kappa (sum rows + eta sum pairs), with l and kappa as in `listed`."""
        k = self._size()
        limits = policy_limits(self.constraints, tuple(self.utility.inputs or range(k)))
        if not np.isfinite(limits[~np.eye(k, dtype=bool)]).any():
            raise Unproved("no constraint asks for LocalDP between any two inputs")
        if not listable(limits):
            raise Unproved("a graph of such weights and so many edges has too many extreme columns to look at all")
        eta = min((c.eta for c in self.constraints if isinstance(c, TotalVariation)), default=1.0)
        columns = PolicyColumns(limits, bool(self._multipliers()[1].any()))
        every = self._listed(columns, FLOAT)
        if arithmetic.exact:
            # Floats settle most columns; only the others are checked again in exact arithmetic.
            every = self._listed(columns, arithmetic, self._unsettled(every))
        return self._proved(every, eta, arithmetic)

    def _listed(self, columns: PolicyColumns, arithmetic: Arithmetic, at: Any = slice(None)) -> Iterator[Listed]:
        left, right = np.nonzero(self._multipliers()[1])
        prices = arithmetic.of(self._multipliers()[1][left, right])
        base, rise = columns.enclosed(arithmetic, at)
        for start in range(0, len(base), BLOCK):
            above = rise[start : start + BLOCK]
            charged = (above[:, left] - above[:, right]).positive() @ prices if len(left) else None
            yield Listed(base[start : start + BLOCK], above.T, charged)
