"""Constraints on channels, in three shapes: terms over columns, rules about given outputs, and expressions of your own.

A constraint measures a channel (`privacy`) and says what a program may pose of it. `parts` sorts the constraints of a
problem by shape.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from ldpopt.channel import Channel, Label
from ldpopt.design.constraints.terms import Term
from ldpopt.design.registry import Kind, Parameter
from ldpopt.design.work import Work, pairwise_work
from ldpopt.errors import invalid
from ldpopt.numbers.enclosures import Arithmetic, Enclosure
from ldpopt.numbers.tolerances import OTHER_PROCESSOR
from ldpopt.privacy import Guarantee
from ldpopt.values.distribution import Array, Index
from ldpopt.values.results import ByValue


@runtime_checkable
class Constraint(Protocol):
    """A cap on one measure of a channel.

    A constraint of your own needs these members and no more; see
    docs/how-to/design/custom-constraint.md. It may also have
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


def stated_guarantees(channel: Channel, constraints: Iterable[Constraint]) -> tuple[Guarantee, ...]:
    """The measure of each constraint, with room for the rounding of other processors as far as the cap leaves it."""
    return tuple(_with_room(constraint.measure(channel), constraint.bound) for constraint in constraints)


def _with_room(measured: Guarantee, cap: float) -> Guarantee:
    room = min(measured.value - measured.lower, OTHER_PROCESSOR * measured.value)
    value = min(measured.value + room, cap)
    return replace(measured, value=value) if measured.value < value < math.inf else measured


EPSILON = Parameter("epsilon", "Limit of local differential privacy, in nats.", "NATS")


class Measured(Kind, ByValue, ABC):
    """What the constraints of this package share: a cap, and the measure that re-checks every design."""

    private: ClassVar[bool] = False
    """Whether it alone is a limit of privacy, as a command asks for at least one."""
    capped: ClassVar[str] = ""
    """The field that is the cap; a constraint without one says what `bound` is."""

    @property
    def input_labels(self) -> tuple[Label, ...] | None:
        """The labels of the inputs, in the order in which it goes by them; None where it names none."""
        return None

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
    def bound(self) -> float:
        """The cap."""
        return float(getattr(self, self.capped))

    @abstractmethod
    def measure(self, channel: Channel) -> Guarantee:
        """The capped measure of a channel; the constraint holds when its value is at most `bound`."""

    effort: ClassVar[tuple[float, ...]] = (0.0, 0.0)
    """Of a measure of pairs of rows, for `pairwise_work`: the operations on each entry of a pair, the most entries
    that are compared, and, if they are not the usual ones, the operations and bytes of the screen for each pair."""

    def work(self, channel: Channel) -> Work:
        """What `measure` takes at most."""
        k, m = channel.shape
        return pairwise_work(k, m, *self.effort) if self.effort[0] else Work.on(k * m, 10.0).in_floats

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
    def columns(self, inputs: Sequence[Label]) -> tuple[Term, ...]:
        """The constraint in column form, for a channel with these inputs."""

    def spread(self, inputs: Sequence[Label], arithmetic: Arithmetic) -> Enclosure | None:
        """A cap D >= 0, in nats, on the log-ratio of any two entries of any column; None where there is no such cap."""
        epsilon = math.inf if self.plain is None else self.plain[0]
        return arithmetic.of(epsilon) if epsilon < math.inf else None

    def log_limits(self, inputs: Sequence[Label]) -> Array | None:
        """(k, k) caps, in nats, on log Q[x, y] / Q[x', y], inf for none; None where it caps no ratio of two inputs."""
        return None

    def moment(self, order: float, arithmetic: Arithmetic) -> Enclosure | None:
        """A cap on the moment of `order` >= 1 between any two rows (`moment.Moment`); None where no cap is known."""
        return None

    def beyond(self, reach: float, arithmetic: Arithmetic) -> Enclosure | None:
        """A cap on sum_y (Q[x, y] - e^reach Q[x', y])_+ between any two rows, reach >= 0; None where none is known."""
        return None

    def expression(self, q: Any) -> Sequence[Any]:
        """The constraint as cvxpy constraints on a matrix variable `q` (k, m) with inputs 0..k-1."""
        return [posed for term in self.columns(range(q.shape[0])) for posed in term.pose(q)]


def plain_caps(constraints: Iterable[Any]) -> tuple[float, float]:
    """The least epsilon, and the least eta, of the constraints that amount to `LocalDP` or `TotalVariation`."""
    caps = [(math.inf, 1.0), *(plain for constraint in constraints if (plain := plain_of(constraint)) is not None)]
    return min(epsilon for epsilon, _ in caps), min(eta for _, eta in caps)


def plain_of(constraint: Any) -> tuple[float, float] | None:
    """The (epsilon, eta) that a constraint amounts to (`Measured.plain`); None for others, and for a user's own."""
    return constraint.plain if isinstance(constraint, Measured) else None


def least_cap(
    constraints: Iterable[Any], implied_by: Callable[[ColumnConstraint], Enclosure | None]
) -> Enclosure | None:
    """The cap with the smallest upper end of those that the constraints in column form imply; None without any."""
    caps = [cap for c in constraints if isinstance(c, ColumnConstraint) and (cap := implied_by(c)) is not None]
    return min(caps, key=lambda cap: float(cap.upper), default=None)


def moment_bound(constraints: Iterable[Any], order: float, arithmetic: Arithmetic) -> Enclosure | None:
    """The least cap on the moment of an order between any two rows."""
    return least_cap(constraints, lambda constraint: constraint.moment(order, arithmetic))


def least_spread(constraints: Iterable[Any], inputs: Sequence[Label], arithmetic: Arithmetic) -> Enclosure | None:
    """The least cap on the log-ratio of two entries of a column."""
    return least_cap(constraints, lambda constraint: constraint.spread(inputs, arithmetic))


def excess_cap(constraints: Sequence[Any], reach: float, arithmetic: Arithmetic) -> Enclosure:
    """The least cap, at most 1, on sum_y (Q[x, y] - e^reach Q[x', y])_+ between any two rows."""
    variation = variation_cap(constraints, arithmetic)
    beyond = least_cap(constraints, lambda constraint: constraint.beyond(reach, arithmetic))
    return variation if beyond is None else variation.minimum(beyond)


def variation_cap(constraints: Iterable[Any], arithmetic: Arithmetic) -> Enclosure:
    """The least cap, at most 1, that constraints imply on the total variation between any two rows."""
    caps = (constraint.variation(arithmetic) for constraint in constraints if isinstance(constraint, Measured))
    return reduce(Enclosure.minimum, caps, arithmetic.of(1.0))


def tanh_of_half(epsilon: Enclosure) -> Enclosure:
    """(e^epsilon - 1)/(e^epsilon + 1): the largest total variation between two rows of an epsilon-LDP channel."""
    # Through e^-epsilon, which does not overflow.
    shrunk = (-epsilon).expm1()
    return -shrunk / (shrunk + 2)


class AlphabetConstraint(Measured):
    """A convex constraint on a matrix (k, m) with a fixed number m of outputs.

    As outputs cannot be split, staircase patterns do not suffice, and designs are found and bounded by branching
    (`design.BranchAndBound`). Each constraint has multipliers of its own form: `pose` says how to read them off a
    solved program, `enclosed_support` and `enclosed_charge` what they prove.
    """

    labelled: ClassVar[bool] = True
    """Whether outputs have names, so that exchanging two of them makes another channel."""
    balances: ClassVar[bool] = False
    """Whether `mend` moves mass between outputs; it then comes after constraints that set single entries."""

    @abstractmethod
    def outputs(self, inputs: int) -> int:
        """The number m of outputs of a channel with this many inputs; `InvalidInput` where there is no such channel."""

    def kinds(self, outputs: int) -> Index:
        """(m,) a number for each output; outputs of the same number are treated alike by the constraint."""
        return np.arange(outputs)

    def pairs(self, inputs: int) -> int:
        """How many pairs of inputs the program compares, from which its cost is estimated."""
        return 0

    def output_labels(self, inputs: Sequence[Label]) -> tuple[Label, ...] | None:
        """The labels of the outputs where the constraint names them, else None."""
        return None

    @abstractmethod
    def pose(self, q: Any, give: Any = 0.0) -> tuple[list[Any], Callable[[], Any]]:
        """cvxpy constraints on the variable `q` (k, m), and a function that reads the multiplier after solving.

        give : a cvxpy expression, the amount by which equations may be violated so that the program stays feasible.
        """

    def expression(self, q: Any) -> Sequence[Any]:
        """The constraint as cvxpy constraints on a matrix variable `q` (k, m)."""
        return self.pose(q)[0]

    def allowed(self, shape: tuple[int, int]) -> Array:
        """(k, m) booleans: False where the constraint makes the entry of a matrix zero."""
        return np.ones(shape, dtype=bool)

    def enclosed_support(self, multiplier: Any, shape: tuple[int, int], arithmetic: Arithmetic) -> Enclosure:
        """(m, k) prices u: the sum of u[y, x] Q[x, y] is at most `enclosed_charge` for every Q within the constraint.

        Q has shape (k, m) and rows that sum to one exactly. The multiplier is checked: `Unproved` if it is malformed.
        """
        return arithmetic.zeros(shape[::-1])

    def enclosed_charge(self, multiplier: Any, shape: tuple[int, int], arithmetic: Arithmetic) -> Enclosure:
        """What the multiplier adds to the bound."""
        return arithmetic.of(0.0)

    def idle(self, shape: tuple[int, int]) -> Any:
        """The multiplier that charges nothing."""
        return None

    def scaled(self, multiplier: Any, scale: float) -> Any:
        """The multiplier of a program whose utility is `scale` times as large."""
        return multiplier

    def mend(self, matrix: Array) -> Array:
        """The matrix (k, m) with the constraint's equations restored, which a solver meets only nearly."""
        return matrix

    def constant(self, shape: tuple[int, int]) -> Array | None:
        """A row (m,) that meets the constraint when all inputs have it; None if any row does, or none."""
        return None


Expression = Callable[[Any], Sequence[Any]]  # From the cvxpy variable Q (k, n) to cvxpy constraints on it.


def outputs_of(fixed: Sequence[Any], inputs: int) -> int:
    """The number of outputs that the alphabet constraints agree on; where all are budgets, the smallest."""
    exact = {constraint.outputs(inputs) for constraint in fixed if constraint.labelled}
    budgets = [constraint.outputs(inputs) for constraint in fixed if not constraint.labelled]
    if len(exact) > 1:
        raise invalid("constraints", "one number of outputs", sorted(exact))
    if exact and budgets and min(budgets) < min(exact):
        expected = f"a budget of at least the {min(exact)} outputs that others name"
        raise invalid("constraints", expected, min(budgets))
    return int(min(exact or budgets))


def implied(constraints: Sequence[Any], posed: Any) -> bool:
    """Whether some constraint is `posed` itself or implies it."""
    return any(c is posed or (hasattr(c, "implies") and c.implies(posed)) for c in constraints)


def pairs_of(constraints: Sequence[Any], inputs: int) -> Work:
    """What it takes to list the pairs of inputs that constraints in column form compare."""
    listed = [c for c in constraints if isinstance(c, ColumnConstraint) and not (c.plain and c.plain[1] == 1)]
    return Work.on(float(inputs) ** 2 * len(listed), 200.0, float(inputs) ** 2).in_floats


def symmetric(constraints: Sequence[Any]) -> bool:
    """Whether every constraint says that it treats all inputs alike."""
    return all(getattr(constraint, "symmetric", False) for constraint in constraints)


def parts(
    constraints: Sequence[Any], inputs: Sequence[Any]
) -> tuple[tuple[Term, ...], tuple[AlphabetConstraint, ...], tuple[Expression, ...]]:
    """The constraints by kind: column terms, constraints on given outputs, and expressions of users' own."""
    terms = tuple(term for c in constraints if isinstance(c, ColumnConstraint) for term in c.columns(inputs))
    fixed = tuple(c for c in constraints if isinstance(c, AlphabetConstraint))
    own = tuple(c.expression for c in constraints if not isinstance(c, ColumnConstraint | AlphabetConstraint))
    return terms, fixed, own
