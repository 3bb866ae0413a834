"""The shape of a privacy constraint."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

from ldpopt.channel import Channel, Label
from ldpopt.design.constraints.terms import Ratio, Term
from ldpopt.enclosures import Arithmetic, Enclosure
from ldpopt.privacy import Guarantee
from ldpopt.results import ByValue


@runtime_checkable
class Constraint(Protocol):
    """A cap on one measure of a channel.

    A class with these members is all that a constraint of one's own needs; see docs/add-a-constraint.md. It may also
    have `symmetric`, True where all inputs are treated alike, so that inputs of one likelihood ratio may be merged;
    without it, it is taken to tell inputs apart (`parts.symmetric`).
    """

    @property
    def bound(self) -> float:
        """The cap."""
        ...

    def measure(self, channel: Channel) -> Guarantee:
        """The namesake measure of a channel; the constraint holds when its value is at most `bound`."""
        ...

    def expression(self, q: Any) -> Sequence[Any]:
        """The constraint as cvxpy constraints on the channel's matrix, a variable `q` of shape (k, m)."""
        ...


def within(channel: Channel, constraints: Iterable[Constraint]) -> bool:
    """Whether the channel, measured, meets every constraint."""
    return all(float(constraint.measure(channel)) <= constraint.bound for constraint in constraints)


class Measured(ByValue, ABC):
    """What the constraints of this package share: a cap, and the measure that re-checks every design."""

    @property
    def symmetric(self) -> bool:
        """Whether all inputs are treated alike, so that inputs of equal likelihood ratio may be merged."""
        return True

    @property
    def plain(self) -> tuple[float, float] | None:
        """The (epsilon, eta) of `LocalDP` and `TotalVariation` between all inputs that it amounts to, else None."""
        return None

    @property
    @abstractmethod
    def bound(self) -> float:
        """The cap."""

    @abstractmethod
    def measure(self, channel: Channel) -> Guarantee:
        """The namesake measure of a channel, at most `bound` where the constraint holds."""

    def centred(self) -> Measured:
        """A tighter constraint, which channels in the middle of this one meet; itself where none is needed."""
        return self

    def variation(self, arithmetic: Arithmetic) -> Enclosure:
        """A cap that the constraint implies on the total variation between any two rows; 1 where none is known."""
        return arithmetic.of(1.0)

    def implies(self, other: Any) -> bool:
        """Whether every channel that meets this constraint meets `other`; may say no where it is so."""
        return bool(self == other)


class ColumnConstraint(Measured):
    """A constraint that is a sum over outputs of convex, homogeneous functions of the columns.

    Such a constraint survives the merging of outputs with equal likelihood ratios, so that the ratio-labelled
    program is exact for it, and its terms carry the multipliers of certificates.
    """

    @abstractmethod
    def columns(self, inputs: Sequence[Label]) -> tuple[Term | Ratio, ...]:
        """The constraint in column form, for a channel with these inputs."""

    def spread(self, inputs: Sequence[Label], arithmetic: Arithmetic) -> Enclosure | None:
        """A cap D >= 0 on the log-ratio of any two entries of any column; None where there is none."""
        return None

    def moment(self, order: float, arithmetic: Arithmetic) -> Enclosure | None:
        """A cap on the moment of an order from 1 between any two rows (`moment.Moment`); None where none is known."""
        return None

    def beyond(self, reach: float, arithmetic: Arithmetic) -> Enclosure | None:
        """A cap on sum_y (Q[x, y] - e^reach Q[x', y])_+ between any two rows, reach >= 0; None where none is known."""
        return None

    def expression(self, q: Any) -> Sequence[Any]:
        """The constraint as cvxpy constraints on a matrix variable `q` (k, m) with inputs 0..k-1."""
        return [made for term in self.columns(range(q.shape[0])) for made in term.pose(q)]


def plain_caps(constraints: Iterable[Any]) -> tuple[float, float]:
    """The least epsilon, and the least eta, of the constraints that amount to `LocalDP` or `TotalVariation`."""
    found = [plain for one in constraints if (plain := plain_of(one)) is not None]
    return min((epsilon for epsilon, _ in found), default=math.inf), min((eta for _, eta in found), default=1.0)


def plain_of(constraint: Any) -> tuple[float, float] | None:
    """The (epsilon, eta) that a constraint amounts to; None for others, and for a user's own."""
    return constraint.plain if isinstance(constraint, Measured) else None


def variation_of(constraint: Any, arithmetic: Arithmetic) -> Enclosure:
    """The cap that a constraint implies on the total variation between any two rows; 1 for a user's own."""
    capped = constraint.variation(arithmetic) if isinstance(constraint, Measured) else arithmetic.of(1.0)
    return capped.minimum(1.0)


def tanh_of_half(epsilon: Enclosure) -> Enclosure:
    """(e^epsilon - 1)/(e^epsilon + 1): the largest total variation between two rows of an epsilon-LDP channel."""
    # Through e^-epsilon, which does not overflow.
    shrunk = (-epsilon).expm1()
    return -shrunk / (shrunk + 2)
