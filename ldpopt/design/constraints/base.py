"""Constraints on channels, in three forms: terms over columns, rules about given outputs, and custom expressions.

A constraint measures a channel (`privacy`) and states its form in a program. `parts` sorts the constraints of a problem
by form.
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

    A custom constraint needs only these members; see docs/how-to/design/custom-constraint.md. It may also have
    `symmetric`, which is True if all inputs are treated equally, so that inputs of equal likelihood ratio may be
    merged. Without it, the constraint is assumed to treat inputs differently (`parts.symmetric`).
    """

    @property
    def bound(self) -> float:
        """The cap."""
        ...

    def measure(self, channel: Channel) -> Guarantee:
        """Measure a channel; the constraint holds when the value is at most `bound`."""
        ...

    def expression(self, q: Any) -> Sequence[Any]:
        """List the constraint as cvxpy constraints on the channel's matrix.

        q : a variable of shape (k, m).
        """
        ...


def meets_constraints(channel: Channel, constraints: Iterable[Constraint]) -> bool:
    """Return True if the channel, measured, meets every constraint."""
    return all(float(constraint.measure(channel)) <= constraint.bound for constraint in constraints)


def stated_guarantees(channel: Channel, constraints: Iterable[Constraint]) -> tuple[Guarantee, ...]:
    """Measure each constraint, with a margin for the rounding of other processors.

    The margin is limited by the cap.
    """
    return tuple(_with_rounding_margin(constraint.measure(channel), constraint.bound) for constraint in constraints)


def _with_rounding_margin(guarantee: Guarantee, cap: float) -> Guarantee:
    margin = min(guarantee.value - guarantee.lower, OTHER_PROCESSOR * guarantee.value)
    value = min(guarantee.value + margin, cap)
    return replace(guarantee, value=value) if guarantee.value < value < math.inf else guarantee


EPSILON = Parameter("epsilon", "Limit of local differential privacy, in nats.", "NATS")


class Measured(Kind, ByValue, ABC):
    """The common part of this package's constraints: a cap, and the measure that re-checks every design."""

    private: ClassVar[bool] = False
    """True if it is a privacy constraint by itself; a command requires at least one."""
    capped: ClassVar[str] = ""
    """The field that is the cap; a constraint without one defines `bound`."""

    @property
    def input_labels(self) -> tuple[Label, ...] | None:
        """The labels of the inputs, in order; None if the constraint names no inputs."""
        return None

    @property
    def symmetric(self) -> bool:
        """True if all inputs are treated equally, so that inputs of equal likelihood ratio may be merged."""
        return True

    @property
    def equivalent_caps(self) -> tuple[float, float] | None:
        """The pair (epsilon, eta) if the constraint is equivalent to `LocalDP` and `TotalVariation` between all inputs;
        else None.

        epsilon is inf, and eta 1, if it does not cap them.
        """
        return None

    @property
    def bound(self) -> float:
        """The cap."""
        return float(getattr(self, self.capped))

    @abstractmethod
    def measure(self, channel: Channel) -> Guarantee:
        """Measure a channel; the constraint holds when the value is at most `bound`."""

    effort: ClassVar[tuple[float, ...]] = (0.0, 0.0)
    """The arguments of `of_pairs` for a measure of pairs of rows: the operations on each entry of a pair, the largest
    number of compared entries, and optionally the operations and bytes of the screen for each pair."""

    def work(self, channel: Channel) -> Work:
        """Bound the work of `measure`."""
        k, m = channel.shape
        return pairwise_work(k, m, *self.effort) if self.effort[0] else Work.on(k * m, 10.0).in_floats

    def centred(self) -> Measured:
        """Return a tighter constraint, whose channels lie well inside this one.

        By default it is this constraint itself.
        """
        return self

    def variation(self, arithmetic: Arithmetic) -> Enclosure:
        """Return a cap that the constraint implies on the total variation between any two rows.

        It is 1 if none is known.
        """
        return arithmetic.of(1.0)

    def implies(self, other: Any) -> bool:
        """Return True if every channel that meets this constraint surely meets `other`.

        It is False if that is not known.
        """
        return bool(self == other)


class ColumnConstraint(Measured):
    """A constraint that is a sum over outputs of convex, homogeneous functions of the columns.

    A column holds the probabilities of one output, one for each input. Merging outputs of equal likelihood ratio never
    breaks such a constraint, so that a program with one output for each ratio is exact (`Exchange`). Certificates have
    one multiplier for each of its terms.
    """

    @abstractmethod
    def columns(self, inputs: Sequence[Label]) -> tuple[Term, ...]:
        """List the terms of the constraint in column form, for a channel with these inputs."""

    def spread(self, inputs: Sequence[Label], arithmetic: Arithmetic) -> Enclosure | None:
        """Return a cap D >= 0, in nats, on the log-ratio of any two entries of any column.

        It is None without such a cap.
        """
        epsilon = math.inf if self.equivalent_caps is None else self.equivalent_caps[0]
        return arithmetic.of(epsilon) if epsilon < math.inf else None

    def log_limits(self, inputs: Sequence[Label]) -> Array | None:
        """Return (k, k) caps, in nats, on log Q[x, y] / Q[x', y], inf for none.

        It is None if the constraint caps no ratio of two inputs.
        """
        return None

    def moment(self, order: float, arithmetic: Arithmetic) -> Enclosure | None:
        """Return a cap on the moment of `order` >= 1 between any two rows (`moment.Moment`).

        It is None if no cap is known.
        """
        return None

    def beyond(self, reach: float, arithmetic: Arithmetic) -> Enclosure | None:
        """Return a cap on sum_y (Q[x, y] - e^reach Q[x', y])_+ between any two rows, reach >= 0.

        It is None if no cap is known.
        """
        return None

    def expression(self, q: Any) -> Sequence[Any]:
        """List the constraint as cvxpy constraints on a matrix variable.

        q : of shape (k, m), with inputs 0..k-1.
        """
        return [condition for term in self.columns(range(q.shape[0])) for condition in term.pose(q)]


def plain_caps(constraints: Iterable[Any]) -> tuple[float, float]:
    """Return the smallest epsilon, and the smallest eta, of the plain constraints.

    These are equivalent to `LocalDP` or `TotalVariation`.
    """
    plain_limits = [
        (math.inf, 1.0),
        *(caps for constraint in constraints if (caps := plain_of(constraint)) is not None),
    ]
    return min(epsilon for epsilon, _ in plain_limits), min(eta for _, eta in plain_limits)


def plain_of(constraint: Any) -> tuple[float, float] | None:
    """Return the (epsilon, eta) of a plain constraint (`Measured.equivalent_caps`).

    It is None for others, and for custom constraints.
    """
    return constraint.equivalent_caps if isinstance(constraint, Measured) else None


def least_cap(
    constraints: Iterable[Any], implied_by: Callable[[ColumnConstraint], Enclosure | None]
) -> Enclosure | None:
    """Return the cap with the smallest upper bound that constraints in column form imply.

    It is None if there is none.
    """
    caps = [cap for c in constraints if isinstance(c, ColumnConstraint) and (cap := implied_by(c)) is not None]
    return min(caps, key=lambda cap: float(cap.upper), default=None)


def moment_bound(constraints: Iterable[Any], order: float, arithmetic: Arithmetic) -> Enclosure | None:
    """Return the smallest cap on the moment of an order between any two rows."""
    return least_cap(constraints, lambda constraint: constraint.moment(order, arithmetic))


def least_spread(constraints: Iterable[Any], inputs: Sequence[Label], arithmetic: Arithmetic) -> Enclosure | None:
    """Return the smallest cap on the log-ratio of two entries of a column."""
    return least_cap(constraints, lambda constraint: constraint.spread(inputs, arithmetic))


def excess_cap(constraints: Sequence[Any], reach: float, arithmetic: Arithmetic) -> Enclosure:
    """Return the smallest cap on sum_y (Q[x, y] - e^reach Q[x', y])_+ between any two rows.

    It is at most 1.
    """
    variation = variation_cap(constraints, arithmetic)
    cap = least_cap(constraints, lambda constraint: constraint.beyond(reach, arithmetic))
    return variation if cap is None else variation.minimum(cap)


def variation_cap(constraints: Iterable[Any], arithmetic: Arithmetic) -> Enclosure:
    """Return the smallest cap that constraints imply on the total variation between two rows.

    It is at most 1.
    """
    caps = (constraint.variation(arithmetic) for constraint in constraints if isinstance(constraint, Measured))
    return reduce(Enclosure.minimum, caps, arithmetic.of(1.0))


def tanh_of_half(epsilon: Enclosure) -> Enclosure:
    """Compute (e^epsilon - 1)/(e^epsilon + 1).

    It is the largest total variation between two rows of an epsilon-LDP channel.
    """
    # Through e^-epsilon, which does not overflow.
    inverse_less_one = (-epsilon).expm1()
    return -inverse_less_one / (inverse_less_one + 2)


class AlphabetConstraint(Measured):
    """A convex constraint on a matrix (k, m) with a fixed number m of outputs.

    As outputs cannot be split, staircase patterns do not suffice, and designs are computed and bounded by branching
    (`design.BranchAndBound`). The multipliers of each constraint have a specific form: `pose` reads them from a solved
    program, and `enclosed_support` and `enclosed_charge` compute the bound that they prove.
    """

    labelled: ClassVar[bool] = True
    """True if outputs have names, so that exchanging two of them makes another channel."""
    balances: ClassVar[bool] = False
    """True if `repair` moves mass between outputs; it then follows constraints that set single entries."""

    @abstractmethod
    def outputs(self, inputs: int) -> int:
        """Return the number m of outputs of a channel with this many inputs.

        Raises `InvalidInput` if such a channel does not exist.
        """

    def kinds(self, outputs: int) -> Index:
        """Return (m,) a number for each output.

        The constraint treats outputs of the same number equally.
        """
        return np.arange(outputs)

    def pairs(self, inputs: int) -> int:
        """Return the number of pairs of inputs in the program, which determines its cost."""
        return 0

    def output_labels(self, inputs: Sequence[Label]) -> tuple[Label, ...] | None:
        """Return the labels of the outputs if the constraint names them, else None."""
        return None

    @abstractmethod
    def pose(self, q: Any, give: Any = 0.0) -> tuple[list[Any], Callable[[], Any]]:
        """Build cvxpy constraints on the variable `q` (k, m).

        Also returns a function that reads the multiplier after solving.

        - `give` : a cvxpy expression, the allowed violation of equations, so that the program stays feasible.
        """

    def expression(self, q: Any) -> Sequence[Any]:
        """List the constraint as cvxpy constraints on a matrix variable `q` (k, m)."""
        return self.pose(q)[0]

    def allowed(self, shape: tuple[int, int]) -> Array:
        """Return (k, m) booleans: False where the constraint makes the entry of a matrix zero."""
        return np.ones(shape, dtype=bool)

    def enclosed_support(self, multiplier: Any, shape: tuple[int, int], arithmetic: Arithmetic) -> Enclosure:
        """Enclose (m, k) prices u of a multiplier.

        The sum of u[y, x] Q[x, y] is at most `enclosed_charge` for every Q within the constraint. Q has shape (k, m)
        and rows that sum to one exactly. Raises `Unproved` if the multiplier is malformed.
        """
        return arithmetic.zeros(shape[::-1])

    def enclosed_charge(self, multiplier: Any, shape: tuple[int, int], arithmetic: Arithmetic) -> Enclosure:
        """Enclose the multiplier's contribution to the bound."""
        return arithmetic.of(0.0)

    def idle(self, shape: tuple[int, int]) -> Any:
        """Return the multiplier without a price."""
        return None

    def scaled(self, multiplier: Any, scale: float) -> Any:
        """Scale the multiplier to a program whose utility is `scale` times as large."""
        return multiplier

    def repair(self, matrix: Array) -> Array:
        """Restore the constraint's equations in the matrix (k, m).

        A solver meets them only nearly.
        """
        return matrix

    def constant(self, shape: tuple[int, int]) -> Array | None:
        """Return a row (m,) that meets the constraint when all inputs have it.

        It is None if any row meets it, or none.
        """
        return None


Expression = Callable[[Any], Sequence[Any]]  # From the cvxpy variable Q (k, n) to cvxpy constraints on it.


def outputs_of(alphabet_constraints: Sequence[Any], inputs: int) -> int:
    """Return the number of outputs that the alphabet constraints agree on.

    If all are budgets, it is the smallest.
    """
    fixed_counts = {constraint.outputs(inputs) for constraint in alphabet_constraints if constraint.labelled}
    budgets = [constraint.outputs(inputs) for constraint in alphabet_constraints if not constraint.labelled]
    if len(fixed_counts) > 1:
        raise invalid("constraints", "one number of outputs", sorted(fixed_counts))
    if fixed_counts and budgets and min(budgets) < min(fixed_counts):
        expected = f"a budget of at least the {min(fixed_counts)} outputs that others name"
        raise invalid("constraints", expected, min(budgets))
    return int(min(fixed_counts or budgets))


def implied(constraints: Sequence[Any], target: Any) -> bool:
    """Return True if some constraint is `target` itself or implies it."""
    return any(c is target or (hasattr(c, "implies") and c.implies(target)) for c in constraints)


def pairs_of(constraints: Sequence[Any], inputs: int) -> Work:
    """Bound the work to list the pairs of inputs that constraints in column form compare."""
    compared_pairs = [
        c
        for c in constraints
        if isinstance(c, ColumnConstraint) and not (c.equivalent_caps and c.equivalent_caps[1] == 1)
    ]
    return Work.on(float(inputs) ** 2 * len(compared_pairs), 200.0, float(inputs) ** 2).in_floats


def symmetric(constraints: Sequence[Any]) -> bool:
    """Return True if every constraint states that it treats all inputs equally."""
    return all(getattr(constraint, "symmetric", False) for constraint in constraints)


def parts(
    constraints: Sequence[Any], inputs: Sequence[Any]
) -> tuple[tuple[Term, ...], tuple[AlphabetConstraint, ...], tuple[Expression, ...]]:
    """Sort the constraints by form.

    Returns the column terms, the constraints on given outputs, and the custom expressions.
    """
    terms = tuple(term for c in constraints if isinstance(c, ColumnConstraint) for term in c.columns(inputs))
    alphabet_constraints = tuple(c for c in constraints if isinstance(c, AlphabetConstraint))
    custom_expressions = tuple(
        c.expression for c in constraints if not isinstance(c, ColumnConstraint | AlphabetConstraint)
    )
    return terms, alphabet_constraints, custom_expressions
