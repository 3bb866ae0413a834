"""The certificate of designs for estimation: no channel within the constraints has a smaller criterion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.design.constraints.base import plain_caps
from ldpopt.design.estimation.policy import columns_for, pricing
from ldpopt.design.estimation.prices import Charges
from ldpopt.design.estimation.staircase import AnyRelaxation, Columns
from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.kernel.listed import Caps
from ldpopt.design.kernel.numbers import Unproved, expect, nonnegative_array, pair_prices, real_array, require
from ldpopt.design.utilities.fisher_information import FisherInformation
from ldpopt.design.work import Work, size
from ldpopt.errors import InvalidInput
from ldpopt.numbers.enclosures import Arithmetic, Enclosure
from ldpopt.values.distribution import Array


@dataclass(frozen=True, eq=False, repr=False)
class EquivalenceDual(Certificate):
    """A proof, by the equivalence theorem, that no channel within the caps has a criterion below `bound` [KW].

    Let report y have the probability w_y and the centred column u_y (`utilities.criteria`). For any matrix K (r, k),
    every channel has sum_y w_y |K u_y|^2 <= sum lambda + eta sum nu + t, where t is the most that any column earns
    above its price at the multipliers lambda and nu (`estimation.prices`). The criterion turns this into a bound on
    itself.

    prior : the distribution that the bound is for: the utility's own, or a member of its neighbourhood, because the
        worst case is at least the criterion there.
    kernel : K (r, k), of the shape that the criterion asks for. rows, pairs : multipliers lambda (k,) and nu >= 0
        (k, k), of which the diagonal is ignored.
    relaxed : the relaxation of the columns, or how sets branch, where there are too many to price every one; else None.

    In exact arithmetic, patterns of up to 12 categories are priced in balls. Patterns of more categories, branches,
    and the least eigenvalue of a relaxation, are computed in floats with a proved error: as rigorous, but not sharper.
    """

    proves = FisherInformation
    prior: Array
    kernel: Array
    rows: Array
    pairs: Array
    relaxed: AnyRelaxation | None = None

    def work(self) -> Work:
        """Products with the kernel, and pricing all columns, or what a relaxation of them takes."""
        k, rows = self.answers, size(self.kernel) / max(self.answers, 1)
        return Work.on(float(k) ** 2, 40.0 + 10.0 * rows) + pricing(k, rows, self.constraints, self.relaxed)

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """The bound that the criterion derives from the most that sum_y w_y |K u_y|^2 can be."""
        utility = self.utility
        k, criterion = utility.size, utility.criterion
        prior = nonnegative_array(self.prior, (k,), "the prior")
        if not utility.stands_for(prior):
            raise Unproved("the bound is for a distribution that is neither the prior nor in its neighbourhood")
        kernel = real_array(self.kernel, (criterion.kernel_rows(k), k), "the kernel")
        rows = real_array(self.rows, (k,), "the row multipliers")
        pairs = pair_prices(self.pairs, k, "the pair multipliers")
        earning = criterion.kernel(kernel, arithmetic)
        charges = Charges.of(earning, prior, rows, pairs)
        priced = self._column_form(utility, bool(pairs.any())).most(charges, self.relaxed)
        epsilon, eta = plain_caps(self.constraints)
        cap = Caps.of(self.constraints, arithmetic).eta if epsilon < np.inf else eta
        most = (charges.total + arithmetic.of(pairs).sum() * cap + priced).ends[1]
        require(np.isfinite(most.upper) and most.lower > 0, "the multipliers do not bound what the kernel can earn")
        bound: Enclosure | None = criterion.bound(earning, most, charges.prior)
        if bound is None:
            raise Unproved("the kernel is singular")
        return bound

    def _column_form(self, utility: FisherInformation, priced: bool = False) -> Columns:
        try:
            return columns_for(utility, self.constraints, priced)[0]
        except InvalidInput as error:
            raise Unproved(str(error)) from None

    @property
    def argument(self) -> str:
        """Why the bound holds."""
        utility: Any = self.utility
        try:
            columns = self._column_form(expect(utility, FisherInformation, "the utility"))
        except Unproved:
            return "the equivalence theorem of optimal design"
        words = getattr(self.relaxed, "words", "nothing said of")
        how = (
            f"over all {columns.name}" if columns.exact and self.relaxed is None else f"with {words} the {columns.kind}"
        )
        return f"the equivalence theorem of optimal design, {how}"
