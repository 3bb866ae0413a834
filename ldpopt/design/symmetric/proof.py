r"""The symmetric envelope: uniform priors and pilots under LocalDP and a cap on total variation.

*Primal.* Let E = e^epsilon, and let U be convex and homogeneous on columns, zero on constant ones, and invariant under
permuting the k answers. Maximize the sum of U over the columns of a channel, epsilon-LDP and eta-TV.

*Theorem.* The optimum is the least non-decreasing concave majorant, at eta, of (0, 0) and of the points (eta_w, u_w),
w = 1, ..., k - 1: with t = 1/(E - 1),

    eta_w = w (k - w) / ((k - 1) (k t + w)),      u_w = the utility of the channel that selects sets of w answers.

*Proof.* The hyperplanes q_x = q_x' cut [1, E]^k into simplices of one order. On each, U less linear prices and prices
of total variation is convex, so that columns with values in {1, E} suffice. The program is invariant under
permutations: averaging over them preserves the rows' sums and the value, and increases no distance of two rows. The
weights depend on the size of the set alone, and all pairs of rows are at one distance. One row sum and one cap are
left.

*Dual.* For any slope a >= 0 no channel has more than a eta + max(0, max_w (u_w - a eta_w)): the certificate is a.

Mutual information at a uniform prior has u_w = h(w/k)/(t + w/k) (`information.proof`). For estimation at a uniform
pilot, U is the trace T of the centered information M = sum_y m_y u_y u_y^T, and u_w is k w (k - w)/(k t + w)^2. Let a
criterion be convex and decreasing in M, and invariant. It is smallest at the average of M over permutations, which is
T/(k - 1) on all contrasts. The sum of variances is at least (k - 1)^2/T, the largest of them (k - 1)^2/(k T), and the
generalized variance has log det >= -(k - 1) log(T/(k - 1)) - log k.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.design.information.proof import information
from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.kernel.listed import Caps
from ldpopt.design.kernel.numbers import Unproved, nonnegative, require
from ldpopt.design.utilities.column import MutualInformation
from ldpopt.design.utilities.criteria import AOptimal, DOptimal, MVOptimal
from ldpopt.design.utilities.fisher_information import FisherInformation
from ldpopt.design.work import Work
from ldpopt.numbers.enclosures import Arithmetic, Enclosure


def even_inputs(utility: Any) -> int:
    """Return the number of inputs that occur, or 0 if the utility treats them differently."""
    if isinstance(utility, MutualInformation):
        positive = utility.prior[utility.prior > 0]
        return len(positive) if np.ptp(positive) == 0 else 0
    if not isinstance(utility, FisherInformation) or utility.neighbourhood is not None or np.ptp(utility.prior) > 0:
        return 0
    return utility.size if is_invariant(utility.criterion) else 0


def is_invariant(criterion: Any) -> bool:
    """Return True if the criterion does not change when categories are permuted."""
    if type(criterion) is AOptimal:
        return criterion.weights is None or (criterion.single is not None and np.ptp(criterion.single) == 0)
    return type(criterion) is DOptimal or (type(criterion) is MVOptimal and criterion.contrasts is None)


def points(utility: Any, inputs: int, level: Enclosure) -> tuple[Enclosure, Enclosure]:
    """Return (eta_w, u_w), (inputs - 1,) each, for sets of w = 1, 2, ... inputs; level : t."""
    enclose = level.arithmetic.of
    size = enclose(np.arange(1.0, inputs))
    complement = enclose(np.arange(inputs - 1.0, 0.0, -1.0))
    mean = level * inputs + size
    spread = size * complement / (mean * (inputs - 1))
    if isinstance(utility, MutualInformation):
        return spread, information(size / inputs, complement / inputs, level) / (level + size / inputs)
    return spread, size * complement * inputs / mean.square()


@dataclass(frozen=True, eq=False, repr=False)
class SymmetricEnvelope(Certificate):
    """The slope of a line above the envelope of all sizes of sets, for utilities that treat all inputs equally.

    slope : a >= 0, the multiplier of the cap on total variation. Any slope proves a bound.
    """

    slope: float
    argument = "one multiplier of the cap on total variation, and the envelope of all sizes of sets of answers"

    def work(self) -> Work:
        """Bound the work: some operations on each size of a set."""
        return Work.on(self.answers, 2000.0)

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """Compute a eta + max(0, max over w of u_w - a eta_w), or the criterion's bound from it."""
        utility: Any = self.utility
        inputs = even_inputs(utility)
        if inputs == 0:
            raise Unproved("the prior is not even, or the utility does not treat all answers alike")
        require(inputs > 1, "only one answer occurs")
        slope, caps = nonnegative(self.slope, "the slope"), Caps.from_constraints(self.constraints, arithmetic)
        spread, values = points(utility, inputs, caps.level)
        bound = (values - spread * slope).max().positive() + caps.eta * slope
        if isinstance(utility, MutualInformation):
            return bound
        bound = bound.ends[1]
        require(np.isfinite(bound.upper) and bound.lower > 0, "the slope does not bound the information")
        if isinstance(utility.criterion, DOptimal):
            return -(bound / (inputs - 1)).log() * (inputs - 1) - arithmetic.of(float(inputs)).log()
        contrasts = arithmetic.of(float(inputs - 1)).square() / bound
        if isinstance(utility.criterion, MVOptimal):
            return contrasts / inputs
        return contrasts if utility.criterion.weights is None else contrasts * float(utility.criterion.single[0])
