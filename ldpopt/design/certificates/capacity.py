"""The bound on mutual information that holds for every prior and any number of inputs under epsilon-LDP."""

from __future__ import annotations

from dataclasses import dataclass

from ldpopt.design.certificates.base import Certificate, Unproved
from ldpopt.design.certificates.plain import Caps
from ldpopt.design.utilities.base import ColumnUtility
from ldpopt.enclosures import Arithmetic, Enclosure


@dataclass(frozen=True, eq=False, repr=False)
class InformationCapacity(Certificate):
    """No epsilon-LDP channel keeps more mutual information than x - 1 - log x, x = epsilon/(1 - e^-epsilon).

    On a staircase pattern S_A, E = e^epsilon on A and 1 elsewhere, the information is h(a) = E epsilon a - m log m at
    a = P(A), with m = 1 + (E - 1) a the column's mean. Let c be the largest h(a)/m. Then the row multipliers c P_x
    pay c m >= h(a) on every pattern, and prove c for every prior P [KOV14, Thm 4]. It is nearly reached where sets of
    answers have about any probability, as for many answers of small probability.
    """

    proves = ColumnUtility

    argument = "row multipliers in proportion to the prior pay for every staircase pattern"
    tight = False

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """x - 1 - log x = y - log(1 + y), y = x - 1."""
        if not self.utility.information:
            raise Unproved(f"{self.utility.name} is no mutual information")
        # t = 1/(e^epsilon - 1), so that epsilon = log(1 + 1/t).
        return information_capacity((1 / Caps.of(self.constraints, arithmetic).level).log1p())


def information_capacity(epsilon: Enclosure) -> Enclosure:
    """The most nats of mutual information that epsilon-LDP leaves, between two ends."""
    of = epsilon.arithmetic
    if epsilon.upper < SMALL:
        # x = 1 + epsilon/2 + epsilon^2/12 - epsilon^4/720 + ..., and y - log(1 + y) alternates in y: both between sums.
        high = epsilon / 2 + epsilon.square() / 12
        low = high - epsilon.square().square() / 720
        first = [of.of(0.5) - y / 3 + y.square() / 4 for y in (low, high)]
        at_least = low.square() * (first[0] - low * low.square() / 5)
        return of.between(at_least.lower, (high.square() * first[1]).upper)
    y = epsilon / -(-epsilon).expm1() - 1
    return y - y.log1p()


SMALL = 3e-3
"""Below this epsilon the closed form cancels, and its expansion is as good."""
