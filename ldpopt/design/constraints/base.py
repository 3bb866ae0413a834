"""The shape of a privacy constraint."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

from ldpopt.channel import Channel, Label
from ldpopt.design.constraints.terms import Ratio, Term
from ldpopt.design.registry import Kind
from ldpopt.enclosures import Arithmetic, Enclosure
from ldpopt.privacy import Guarantee
from ldpopt.results import ByValue


@runtime_checkable
class Constraint(Protocol):
    """A cap on one measure of a channel.

    A constraint of your own needs these members and no more; see docs/add-a-constraint.md. It may also have
    `symmetric`, True where all inputs are treated alike, so that inputs of equal likelihood ratio may be merged;
    without it, the constraint is taken to treat inputs differently (`parts.symmetric`).
    """

    @property
    def bound(self) -> float:
        """The cap."""
        ...

    def measure(self, channel: Channel) -> Guarantee:
        """The capped measure of a channel; the constraint holds when its value is at most `bound`."""
        ...

    def expression(self, q: Any) -> Sequence[Any]:
        """The constraint as cvxpy constraints on the channel's matrix, a variable `q` of shape (k, m)."""
        ...


def within(channel: Channel, constraints: Iterable[Constraint]) -> bool:
    """Whether the channel, measured, meets every constraint."""
    return all(float(constraint.measure(channel)) <= constraint.bound for constraint in constraints)


class Measured(Kind, ByValue, ABC):
    """What the constraints of this package share: a cap, and the measure that re-checks every design."""

    @property
    def symmetric(self) -> bool:
        """Whether all inputs are treated alike, so that inputs of equal likelihood ratio may be merged."""
        return True

    @property
    def plain(self) -> tuple[float, float] | None:
        """(epsilon, eta) where the constraint amounts to `LocalDP` and `TotalVariation` between all inputs; else None.

        epsilon is inf, and eta 1, where it does not cap them.
        """
        return None

    @property
    @abstractmethod
    def bound(self) -> float:
        """The cap."""

    @abstractmethod
    def measure(self, channel: Channel) -> Guarantee:
        """The capped measure of a channel; the constraint holds when its value is at most `bound`."""

    def centred(self) -> Measured:
        """A tighter constraint, whose channels lie well inside this one; by default this one itself."""
        return self

    def variation(self, arithmetic: Arithmetic) -> Enclosure:
        """A cap that the constraint implies on the total variation between any two rows; 1 where none is known."""
        return arithmetic.of(1.0)

    def implies(self, other: Any) -> bool:
        """Whether every channel that meets this constraint surely meets `other`; False where that is not known."""
        return bool(self == other)


class ColumnConstraint(Measured):
    """A constraint that is a sum over outputs of convex, homogeneous functions of the columns.

    A column holds the probabilities of one output, one for each input. Merging outputs of equal likelihood ratio never
    breaks such a constraint, so that a program with one output for each ratio is exact (`Exchange`). Certificates have
    one multiplier for each of its terms.
    """

    @abstractmethod
    def columns(self, inputs: Sequence[Label]) -> tuple[Term | Ratio, ...]:
        """The constraint in column form, for a channel with these inputs."""

    def spread(self, inputs: Sequence[Label], arithmetic: Arithmetic) -> Enclosure | None:
        """A cap D >= 0, in nats, on the log-ratio of any two entries of any column; None where there is no such cap."""
        return None

    def moment(self, order: float, arithmetic: Arithmetic) -> Enclosure | None:
        """A cap on the moment of `order` >= 1 between any two rows (`moment.Moment`); None where no cap is known."""
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
    """The (epsilon, eta) that a constraint amounts to (`Measured.plain`); None for others, and for a user's own."""
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
