"""Certificates where the outputs are decisions: of an expected loss with given decisions, and of private sampling."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.kernel.numbers import Unproved, expect, nonnegative_array, nonnegative_list
from ldpopt.design.kernel.numbers import mixture as shares_of
from ldpopt.design.outputs.proof import Leaf, Limits, leaf_bound
from ldpopt.design.utilities.decisions import ExpectedLoss, PrivateSampling
from ldpopt.design.utilities.laws import law
from ldpopt.design.work import Work, count_numbers
from ldpopt.divergences.enclosed import enclosed_excess, enclosed_slopes
from ldpopt.errors import InvalidInput
from ldpopt.numbers.enclosures import FLOAT, Arithmetic, Enclosure
from ldpopt.values.distribution import Array


@dataclass(frozen=True, eq=False, repr=False)
class SamplingDual(Certificate):
    """A bound on the risk of private sampling by tangents, which make an expected loss that is never above the risk.

    The largest risk is at least any mixture of the risks. Each risk is at least any mixture of its tangents: a constant
    plus an expected loss, which is linear in the channel.

    - `ratios` : (j,) the touching points of the tangents, positive except for the last, 0, which stands for the
      function 0.
    - `mixture` : (n, k, j) non-negative weights of the tangents.
    - `prior` : (n,) weights of the risks.
    - `loss` : the certificate of the least expected loss, whose numbers are applied to this very prior and to the
      tangents' slopes.
    """

    proves = PrivateSampling
    ratios: Array
    mixture: Array
    prior: Array
    loss: Certificate
    argument = "tangents below the risk, and linear-programming duality for the expected loss that they are"

    def work(self) -> Work:
        """Bound the work to mix the tangents for each answer, and that of the loss's certificate."""
        return Work.on(count_numbers(self.mixture) + count_numbers(self.utility), 500.0) + self.work_within(self.loss)

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """Compute minus the sum of the tangents' constants and the least expected loss."""
        utility = self.utility
        held_slopes, slopes = tangent_planes(utility, self.ratios, self.mixture, arithmetic)
        prior = nonnegative_array(self.prior, (utility.size,), "the prior")
        loss: Certificate = expect(self.loss, Certificate, "the certificate of the loss")
        try:
            expected_loss = ExpectedLoss(prior, slopes, utility.inputs, utility.answers)
        except InvalidInput as error:
            raise Unproved(str(error)) from None
        distributions = arithmetic.stack([law(p, arithmetic) for p in utility.distributions])
        # The prior of the posed loss is used, because posing divides the floats by their sum.
        constant = law(expected_loss.priors[0], arithmetic) @ (distributions * held_slopes).sum(axis=1)
        return loss.rebind(expected_loss, self.constraints, self.channel).checked_bound(arithmetic) - constant


def tangent_planes(
    utility: PrivateSampling, ratios: Array, mixture: Array, arithmetic: Arithmetic = FLOAT
) -> tuple[Enclosure, Array]:
    """Compute planes below mu(held, drawn).

    Returns slopes (n, k) in the held probability, and floats not above those in the drawn one.

    - `held` : the probability of an answer in the true distribution.
    - `drawn` : that in the row of the draw.
    """
    distributions = np.asarray(utility.distributions)
    n, k = distributions.shape
    checked_ratios = nonnegative_list(ratios, "ratios")
    if len(checked_ratios) < 2 or not (checked_ratios[:-1] > 0).all() or checked_ratios[-1] != 0:
        raise Unproved("the ratios of tangents are not positive, followed by 0")
    shares = shares_of(mixture, (n, k, len(checked_ratios)), "weights of tangents", "some tangents", arithmetic)
    slopes = enclosed_slopes(utility.f, checked_ratios[:-1], arithmetic)
    held_slopes, drawn_slopes = ((shares.reshape(n * k, -1)[:, :-1] @ part).reshape(n, k) for part in slopes)
    # Where the held probability is zero, mu itself is linear in the drawn one.
    is_zero = distributions == 0
    at_zero = enclosed_excess(utility.f, arithmetic.of(-1.0), arithmetic.of(1.0)) if is_zero.any() else 0.0
    return held_slopes, np.asarray(arithmetic.where(is_zero, at_zero, drawn_slopes).lower)


def linearized_risk(utility: PrivateSampling, ratios: Array, mixture: Array, prior: Array) -> tuple[float, Array]:
    """Compute a linear function below the risks mixed by `prior` (n,).

    Returns the constant, in floats, and the loss (n, k).
    """
    held_slopes, loss = tangent_planes(utility, ratios, mixture)
    return float(prior @ (utility.distributions * held_slopes.midpoint).sum(axis=1)), loss


@dataclass(frozen=True, eq=False, repr=False)
class AlphabetLossDual(Certificate):
    """Multipliers of the linear program of an expected loss, where constraints on the outputs fix the decisions.

    leaf : the multipliers, checked against every decision.
    """

    proves = ExpectedLoss
    leaf: Leaf
    argument = "linear-programming duality, one column a decision"

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """Enclose the bound of weak duality on minus the loss under a mixture of the priors.

        That is at least the utility.
        """
        utility = self.utility
        limits = Limits.from_constraints(self.constraints, utility.labels, arithmetic)
        decisions = utility.loss.shape[1]
        if any(constraint.labelled for constraint in limits.fixed) and limits.outputs != decisions:
            raise Unproved(f"the constraints fix {limits.outputs} outputs, and the loss has {decisions} decisions")
        # A budget of outputs is left out, which can only raise the bound.
        priors = arithmetic.stack([law(prior, arithmetic) for prior in utility.priors])
        gains = gains_of(priors, utility.loss)
        return leaf_bound(self.leaf, gains, replace(limits, outputs=decisions), None, arithmetic)


def gains_of(priors: Any, loss: Array) -> Any:
    """Compute (priors, m, k) minus the loss (k, m) of each decision.

    priors : (priors, k), an array or an enclosure.
    """
    return -(priors[:, None, :] * loss.T[None])
