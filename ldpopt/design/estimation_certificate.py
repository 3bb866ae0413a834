"""Certificates of designs for estimation: no channel within the constraints has a smaller criterion."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.certificate import Verification
from ldpopt.design.constraints import Constraint
from ldpopt.design.pricing import EXACT_LIMIT, Prices, relaxed_violation
from ldpopt.distribution import Array
from ldpopt.tolerances import VERIFY

if TYPE_CHECKING:
    from ldpopt.design.fisher import FisherInformation


@dataclass(frozen=True, eq=False, repr=False)
class EquivalenceDual:
    """A proof that no channel within the caps has a criterion below `lower_bound` [KW].

    utility : the `FisherInformation`. channel : one that meets the constraints.
    epsilon, eta : the caps; eta is 1 where there is none that binds.
    prior : the distribution that the bound is for: the utility's, or one of its neighbourhood, whose criterion the
        worst case is never below.
    kernel : K (r, k); rows, pairs : multipliers lambda (k,) and nu (k, k) of what sum_y w_y |K u_y|^2 can be.
    squares : d (k,) of Shor's relaxation, for alphabets too large to price every pattern; else None.
    """

    utility: FisherInformation
    constraints: tuple[Constraint, ...]
    channel: Channel
    epsilon: float
    eta: float
    prior: Array
    kernel: Array
    rows: Array
    pairs: Array
    squares: Array | None = None

    @property
    def lower_bound(self) -> float:
        """The bound, recomputed from the numbers of the certificate; -inf if they prove nothing."""
        p, criterion = self.prior, self.utility.criterion
        around = self.utility.neighbourhood
        inside = np.array_equal(p, self.utility.prior) if around is None else around.contains(p, self.utility.prior)
        if not inside or abs(p.sum() - 1) > 1e-12 or p.min() < 0:
            return -math.inf
        pairs = np.maximum(self.pairs, 0.0)
        np.fill_diagonal(pairs, 0.0)
        # |K u|^2 S.p is quadratic in S over S.p, with K centred at p.
        centred = self.kernel - np.outer(self.kernel.sum(axis=1), p)
        ratio = math.exp(self.epsilon)
        if len(p) <= EXACT_LIMIT:
            violation, _ = Prices(centred.T @ centred, p, self.rows, pairs, ratio).best(0, math.inf)
        elif self.squares is not None:
            violation = relaxed_violation(centred.T @ centred, p, self.rows, self.squares, ratio)
        else:
            return -math.inf
        # Both parts are sums of k^2 terms of the size of G: their rounding is charged too.
        rounding = 1e-13 * float(np.abs(centred.T @ centred).sum() + np.abs(self.rows).sum())
        most = float(self.rows.sum()) + self.eta * float(pairs.sum()) + max(violation, 0.0) + rounding * ratio
        return criterion.bound(self.kernel, most, p) if most > 0 else -math.inf

    @property
    def argument(self) -> str:
        """Why the bound holds."""
        k = len(self.prior)
        how = f"over all {2**k} staircase patterns" if k <= EXACT_LIMIT else "with Shor's relaxation of the patterns"
        return f"the equivalence theorem of optimal design, {how}"

    def verify(self) -> Verification:
        """Recompute the channel's guarantees, its criterion and the bound from scratch."""
        from ldpopt.privacy import local_dp, total_variation

        value, bound = self.utility.value(self.channel), self.lower_bound
        failures = []
        for constraint in self.constraints:
            guarantee = constraint.measure(self.channel)
            if float(guarantee) > constraint.bound:
                failures.append(f"the channel has {guarantee.notion} {float(guarantee)!r}, not {constraint.bound!r}")
        if not value >= bound - VERIFY * max(1.0, abs(bound)):
            failures.append(f"the value {value!r} is below the bound {bound!r}")
        if not math.isfinite(bound):
            failures.append("the numbers prove no bound")
        epsilon, eta = float(local_dp(self.channel)), float(total_variation(self.channel))
        return Verification(value, bound, epsilon, eta, tuple(failures))

    def __repr__(self) -> str:
        return f"EquivalenceDual(lower_bound={self.lower_bound:.9g})"
