"""Certificates of designs for estimation: no channel within the constraints has a smaller criterion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.design.certificates.base import Certificate, Unproved
from ldpopt.design.certificates.numbers import expect, nonnegative_array, real_array
from ldpopt.design.columns.base import AnyRelaxation, Columns
from ldpopt.design.columns.charges import Charges
from ldpopt.design.columns.choose import columns_for
from ldpopt.design.constraints.total_variation import TotalVariation
from ldpopt.design.utilities.fisher_information import FisherInformation
from ldpopt.distribution import Array
from ldpopt.enclosures import Arithmetic, Enclosure
from ldpopt.errors import InvalidInput


@dataclass(frozen=True, eq=False, repr=False)
class EquivalenceDual(Certificate):
    """A proof, by the equivalence theorem, that no channel within the caps has a criterion below `bound` [KW].

    For any K (r, k), every channel has sum_y w_y |K u_y|^2 at most sum lambda + eta sum nu + t, where no column is
    priced above t (`columns.charges`), and the criterion turns this into a bound on itself.

    prior : the distribution that the bound is for: the utility's, or one of its neighbourhood, whose criterion the
        worst case is never below.
    kernel : K (r, k), of the shape that the criterion asks for. rows, pairs : multipliers lambda (k,) and nu (k, k),
        the latter none below zero.
    relaxed : the relaxation of the columns, or how sets branch, where they are too many to price every one; else None.

    In exact arithmetic the patterns of up to 12 categories are priced in balls; those of more, branches, and the least
    eigenvalue of a relaxation, in floats with a proved error, which is rigorous, too, but no sharper than in floats.
    """

    proves = FisherInformation

    prior: Array
    kernel: Array
    rows: Array
    pairs: Array
    relaxed: AnyRelaxation | None = None

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """The bound that the criterion makes of the most that sum_y w_y |K u_y|^2 can be."""
        utility = self.utility
        k, criterion = utility.size, utility.criterion
        prior = nonnegative_array(self.prior, (k,), "the prior")
        if not utility.stands_for(prior):
            raise Unproved("the bound is for a distribution that is neither the prior nor in its neighbourhood")
        kernel = real_array(self.kernel, (criterion.kernel_rows(k), k), "the kernel")
        rows = real_array(self.rows, (k,), "the row multipliers")
        pairs = nonnegative_array(self.pairs, (k, k), "the pair multipliers")
        earning = criterion.kernel(kernel, arithmetic)
        charges = Charges.of(earning, prior, rows, pairs)
        priced = self._column_form(utility).most(charges, self.relaxed)
        eta = min((c.eta for c in self.constraints if isinstance(c, TotalVariation)), default=1.0)
        most = (charges.total + arithmetic.of(pairs).sum() * eta + priced).ends[1]
        if not (np.isfinite(most.upper) and most.lower > 0):
            raise Unproved("the multipliers do not bound what the kernel can earn")
        bound: Enclosure | None = criterion.bound(earning, most, charges.prior)
        if bound is None:
            raise Unproved("the kernel is singular")
        return bound

    def _column_form(self, utility: FisherInformation) -> Columns:
        try:
            return columns_for(utility, self.constraints)[0]
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
