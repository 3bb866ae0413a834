"""The certificate of an expected loss under constraints in column form, with one column for each decision."""

from __future__ import annotations

from dataclasses import dataclass

from ldpopt.design.certificates.base import Unproved
from ldpopt.design.certificates.chords import Gains
from ldpopt.design.certificates.intervals import ColumnDual
from ldpopt.design.certificates.numbers import nonnegative_array
from ldpopt.design.utilities.expected_loss import ExpectedLoss
from ldpopt.design.utilities.laws import law
from ldpopt.distribution import Array
from ldpopt.enclosures import Arithmetic, Enclosure


@dataclass(frozen=True, eq=False, repr=False)
class LossDual(ColumnDual):
    """Multipliers of the linear program of an expected loss, with one column for each decision.

    weights : (priors,) non-negative, not all zero: the mixture of the priors whose loss is bounded.
    """

    proves = ExpectedLoss

    weights: Array

    argument = "linear-programming duality, one column a decision"

    def gains(self, spread: Enclosure | None, arithmetic: Arithmetic) -> tuple[Gains]:
        """Minus the loss of every decision under the mixture of the priors, whose loss is at most the worst."""
        priors = self.utility.priors
        weights = arithmetic.of(nonnegative_array(self.weights, (len(priors),), "the weights of the priors"))
        total = weights.sum()
        if not total.lower > 0:
            raise Unproved("the weights of the priors are all zero")
        mixture = (weights / total) @ arithmetic.stack([law(prior, arithmetic) for prior in priors])
        values = -(mixture * self.utility.loss.T)
        return (Gains(values, values.sum(axis=1), arithmetic.zeros(())),)
