"""Certificates of designs for estimation: no channel within the constraints has a smaller criterion."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ldpopt.design.certificates.base import Certificate
from ldpopt.design.columns.base import AnyRelaxation
from ldpopt.design.columns.choose import columns_for
from ldpopt.design.columns.prices import Prices
from ldpopt.distribution import Array
from ldpopt.enclosures import Arithmetic, Enclosure


@dataclass(frozen=True, eq=False, repr=False)
class EquivalenceDual(Certificate):
    """A proof that no channel within the caps has a criterion below `lower_bound` [KW].

    prior : the distribution that the bound is for: the utility's, or one of its neighbourhood, whose criterion the
        worst case is never below.
    kernel : K (r, k); rows, pairs : multipliers lambda (k,) and nu (k, k) of what sum_y w_y |K u_y|^2 can be.
    relaxed : the relaxation of the columns, where they are too many to price every one; else None.
    """

    prior: Array
    kernel: Array
    rows: Array
    pairs: Array
    relaxed: AnyRelaxation | None = None

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """The bound, recomputed from the numbers of the certificate; -inf if they prove nothing."""
        return arithmetic.of(self._bound())

    def _bound(self) -> float:
        """The bound in floats."""
        p, criterion = self.prior, self.utility.criterion
        around = self.utility.neighbourhood
        inside = np.array_equal(p, self.utility.prior) if around is None else around.contains(p, self.utility.prior)
        if not inside or abs(p.sum() - 1) > 1e-12 or p.min() < 0:
            return -math.inf
        pairs = np.maximum(self.pairs, 0.0)
        np.fill_diagonal(pairs, 0.0)
        # |K u|^2 S.p is quadratic in S over S.p, with K centred at p.
        centred = self.kernel - np.outer(self.kernel.sum(axis=1), p)
        columns, eta = columns_for(self.utility, self.constraints)
        gram, ratio = centred.T @ centred, math.exp(min(columns.epsilon, 350.0))
        prices = Prices(gram, p, self.rows, pairs, ratio)
        if columns.exact:
            violation = columns.most(prices)
        elif self.relaxed is not None:
            violation = columns.relaxed_most(self.relaxed, prices)
        else:
            return -math.inf
        # Both parts are sums of k^2 terms of the size of G: their rounding is charged too.
        rounding = (
            1e-13 * float(np.abs(gram).sum() + np.abs(self.rows).sum()) * min(ratio, 1 / max(float(p.min()), 1e-300))
        )
        most = float(self.rows.sum()) + (eta or 0.0) * float(pairs.sum()) + max(violation, 0.0) + rounding
        return criterion.bound(self.kernel, most, p) if most > 0 else -math.inf

    @property
    def argument(self) -> str:
        """Why the bound holds."""
        columns, _ = columns_for(self.utility, self.constraints)
        how = f"over all {columns.name}" if columns.exact else f"with Shor's relaxation of the {columns.kind}"
        return f"the equivalence theorem of optimal design, {how}"
