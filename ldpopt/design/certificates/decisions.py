"""Certificates where the outputs are decisions: of an expected loss, and of private sampling."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ldpopt.design.certificates.base import Certificate
from ldpopt.design.certificates.boxes import Leaf, leaf_bound
from ldpopt.design.constraints.parts import parts
from ldpopt.design.utilities.expected_loss import ExpectedLoss
from ldpopt.design.utilities.least_pair import tangents
from ldpopt.design.utilities.private_sampling import PrivateSampling
from ldpopt.distribution import Array
from ldpopt.enclosures import Arithmetic, Enclosure


@dataclass(frozen=True, eq=False, repr=False)
class SamplingDual(Certificate):
    """Tangents of the risk, mixed, and the certificate of the expected loss that they are.

    ratios : (j,) of the tangents, the last one 0. mixture : (n, k, j) non-negative weights. prior : (n,) of the risks.
    loss : the certificate of the least expected loss with this prior, and the tangents' slopes as the loss.
    """

    ratios: Array
    mixture: Array
    prior: Array
    loss: Certificate

    argument = "tangents below the risk, and linear-programming duality for the expected loss that they are"

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """Minus (the tangents' constants and the least expected loss); inf if the loss is not that of the tangents."""
        return arithmetic.of(self._bound())

    def _bound(self) -> float:
        """The bound in floats."""
        offset, slopes = linearised(self.utility, self.ratios, self.mixture, self.prior)
        posed = ExpectedLoss(self.prior, slopes, self.utility.inputs, self.utility.answers)
        return self.loss.of(posed, self.constraints, self.channel).bound - offset


def linearised(utility: PrivateSampling, ratios: Array, mixture: Array, prior: Array) -> tuple[float, Array]:
    """The constant and the loss (n, k) of the linear function below the risks mixed by `prior` (n,)."""
    mixture = np.maximum(mixture, 0.0)
    mixture = mixture / mixture.sum(axis=2, keepdims=True)
    held = utility.distributions
    on_held, on_drawn = tangents(utility.f, ratios[:-1])
    # At ratio 0, reached where nothing is held, mu(0, b) itself is linear.
    at_zero = float(utility.f.excess(0.0, 1.0)) if (held == 0).any() else 0.0
    constant = prior @ (held * (mixture[..., :-1] @ on_held)).sum(axis=1)
    slopes = np.where(held > 0, mixture[..., :-1] @ on_drawn, at_zero)
    return float(constant), slopes


@dataclass(frozen=True, eq=False, repr=False)
class AlphabetLossDual(Certificate):
    """Multipliers of the program of an expected loss whose constraints fix the decisions: linear, hence exact.

    constraints : all of them. leaf : the multipliers, checked against every decision.
    """

    leaf: Leaf

    argument = "linear-programming duality, one column a decision"

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """The bound, recomputed."""
        return arithmetic.of(self._bound())

    def _bound(self) -> float:
        """The bound in floats."""
        terms, fixed, _ = parts(self.constraints, self.utility.inputs)
        return leaf_bound(self.leaf, losses(self.utility), terms, fixed, None)


def losses(utility: ExpectedLoss) -> Array:
    """(priors, m, k) linear utilities."""
    return np.asarray(-(utility.priors[:, None, :] * utility.loss.T[None]))
