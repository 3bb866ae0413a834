"""The certificate: numbers that prove a bound on every channel within some constraints, and their check.

Nothing here trusts a solver. A certificate holds the problem, a channel, and the numbers that a solver or a search
returned. The kernel recomputes the rest in arithmetic that is rounded outward (`ldpopt.numbers.enclosures`). The bound
follows from weak duality: it depends on the problem and the numbers alone, and it is valid for any numbers. `verify`
compares it with the channel's guarantees and utility, which it also recomputes.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ldpopt.channel import Channel
from ldpopt.design.constraints.base import Constraint, Measured
from ldpopt.design.constraints.hockey_stick import TotalVariation
from ldpopt.design.kernel.numbers import Unproved, expect, expect_each, increasing, require
from ldpopt.design.problems.labelling import require_one_labelling
from ldpopt.design.problems.reduction import Cells
from ldpopt.design.registry import Kind
from ldpopt.design.utilities.base import ColumnUtility, Utility
from ldpopt.design.work import Work, count_numbers, positive_budget
from ldpopt.divergences import FDivergence
from ldpopt.errors import InvalidInput, LdpoptError, NotChecked
from ldpopt.numbers.enclosures import Arithmetic, Enclosure, arithmetic
from ldpopt.numbers.rounding import ceil_digits
from ldpopt.privacy import Guarantee, local_dp, total_variation
from ldpopt.values.distribution import Array
from ldpopt.values.results import Result

__all__ = ["Certificate", "Unproved", "Verification"]


class Bounded:
    """A result with a bound: an upper bound on a utility, or a lower bound on an error."""

    if TYPE_CHECKING:  # a field or a property

        @property
        def bound(self) -> float: ...

    @property
    def upper_bound(self) -> float:
        """The bound on a utility, which is to be maximized."""
        return self.bound

    @property
    def lower_bound(self) -> float:
        """The bound on an error, which is to be minimized."""
        return self.bound


PROVED, REFUTED, NOT_CHECKED = "proved", "refuted", "not checked"
"""The outcomes of a check. Proved: all claims hold. Refuted: a claim does not hold, or its proof proves less. Not
checked: no claim was refuted, and at least one was not checked."""


@dataclass(frozen=True, eq=False)
class Verification(Bounded, Result):
    """The result of a check that recomputes everything.

    - `value` : the channel's utility, rounded down, or its error, rounded up.
    - `bound` : no channel within the constraints has a better value.
    - `epsilon`, `total_variation` : the channel's guarantees, rounded up; epsilon in nats.
    - `failures` : the claims that do not hold, one sentence each.
    - `guarantees` : one measured guarantee of the channel for each constraint.
    - `trusted` : unproved assumptions about functions and classes from outside the package. An example is the convexity
      of a user-defined f. It is empty if there are none.
    - `unchecked` : the reasons why claims were not checked, one sentence each. It is empty if all claims were checked.

    `outcome` is "proved", "refuted" or "not checked". `bool` is True for the first and False for the second. For the
    third it raises `NotChecked`, because neither answer is known.

    >>> verification = Verification(0.1, 0.1, 1.0, 0.3, ("the value is 0.1, not 0.2",))
    >>> verification.outcome, bool(verification)
    ('refuted', False)
    """

    value: float
    bound: float
    epsilon: float
    total_variation: float
    failures: tuple[str, ...]
    guarantees: tuple[Guarantee, ...] = ()
    trusted: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()

    @property
    def outcome(self) -> str:
        """``"proved"``, ``"refuted"`` or ``"not checked"``."""
        if self.failures:
            return REFUTED
        return NOT_CHECKED if self.unchecked else PROVED

    @property
    def proved(self) -> bool:
        """True if all claims were checked and hold."""
        return self.outcome == PROVED

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons why the outcome is not "proved": first the refuted claims, then the unchecked ones."""
        return (*self.failures, *self.unchecked)

    def __bool__(self) -> bool:
        if self.outcome == NOT_CHECKED:
            raise NotChecked(f"{'; '.join(self.unchecked)}. That is neither true nor false: ask for `outcome`")
        return self.proved

    def __repr__(self) -> str:
        verdict = ": ".join([self.outcome, "; ".join(self.reasons)] if self.reasons else [self.outcome])
        verdict += trust_suffix(self.trusted)
        return (
            f"Verification({verdict}: value {self.value:.9g}, bound {self.bound:.9g}, "
            f"epsilon {ceil_digits(self.epsilon, 9)}, total variation {ceil_digits(self.total_variation, 9)})"
        )


def unproved_assumptions(utility: Any, constraints: Sequence[Any] = ()) -> tuple[str, ...]:
    """List the unproved assumptions of a proof about a problem.

    They are properties of user-defined functions and classes, and values taken from SciPy. The list is empty if there
    are none.
    """
    assumptions = list[str]()
    for problem_part in (utility, *constraints):
        if getattr(problem_part, "function", None) is not None and isinstance(problem_part, Constraint):
            assumptions.append("what the function of a constraint says")
        if not type(problem_part).__module__.startswith("ldpopt."):
            assumptions.append(f"what the class {type(problem_part).__name__} computes")
            if isinstance(problem_part, ColumnUtility):
                assumptions.append(
                    f"that {problem_part.name} is convex and homogeneous beyond the columns that were probed"
                )
        if getattr(problem_part, "continuous", False):
            assumptions.append("the probabilities and densities that scipy.stats computes")
        f = getattr(problem_part, "f", None)
        if isinstance(f, FDivergence) and (f.recipe is None or type(f) is not FDivergence):
            assumptions.append(f"the floats of {f.name}, and that it is convex")
        for component in (
            *(problem_part.parts() if isinstance(problem_part, Utility) else ()),
            getattr(problem_part, "criterion", None),
        ):
            assumptions += unproved_assumptions(component) if component is not None else ()
    return tuple(dict.fromkeys(assumptions))


def unchecked_verification(reason: str) -> Verification:
    """Build the result of a check that was not started."""
    return Verification(math.nan, math.nan, math.nan, math.nan, (), unchecked=(reason,))


def trust_suffix(assumptions: Sequence[str]) -> str:
    """Format the unproved assumptions as the end of a verdict; empty if there are none."""
    return f"; taken on trust: {', '.join(assumptions)}" if assumptions else ""


@dataclass(frozen=True)
class Bound:
    """A bound that numbers prove about a problem, for every channel.

    - `value` : no channel within the constraints has a better value. It is infinitely bad if nothing is proved.
    - `reason` : the reason, if nothing is proved.
    """

    value: float
    reason: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Certificate(Bounded, Kind, Result, ABC):
    """A proof that no channel within `constraints` has a better utility than `bound`, and a claim about `channel`.

    - `utility`, `constraints` : the problem.
    - `channel` : a channel that meets the constraints. It is None if only the bound is needed, which depends on the
      problem and the numbers alone.
    - `edges` : the interior cut points of the channel's inputs, for real-valued answers.

    Every type of certificate adds fields with its numbers, which are all checked. Wrong numbers give a worse bound or
    none, never a false one.
    """

    utility: Any
    constraints: tuple[Constraint, ...]
    channel: Channel | None
    edges: Array | None = field(default=None, kw_only=True)
    proves: ClassVar[Any] = Utility
    """The type of utility to which certificates of this class apply."""

    @property
    def rounding_margin(self) -> float:
        """The relative margin of the stated bound: a design weakens it so that other programs confirm it."""
        return 0.0

    @property
    def tight(self) -> bool:
        """True if the best numbers prove the optimum itself, not the optimum of an easier problem."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """Convert the certificate's type, problem, channel and numbers to JSON-ready values."""
        return {"certificate": type(self).__name__, **super().to_dict()}

    def _columns(self) -> dict[str, list[Any]]:
        k, m = (0, 0) if self.channel is None else self.channel.shape
        problem = {"utility": [self.utility.name], "constraints": ["; ".join(map(repr, self.constraints))]}
        return {"certificate": [type(self).__name__], **problem, "inputs": [k], "outputs": [m]}

    @abstractmethod
    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """Enclose the bound; its worse endpoint counts.

        It is infinite if the numbers prove nothing. May raise `Unproved`, which states the reason.
        """

    def work(self) -> Work:
        """Bound the work of `enclosed_bound` in floats; by default some operations per number."""
        return Work.on(count_numbers(self) + self.answers, 1000.0)

    def applicable_work(self) -> Work:
        """Return `work()`, or no work if the utility has the wrong type.

        In that case `checked_bound` fails before it computes anything.
        """
        return self.work() if isinstance(self.utility, self.proves) else Work()

    def work_within(self, inner: Any, utility: Any = None, constraints: Any = None) -> Work:
        """Bound the work of a certificate within this one, for this problem or another one.

        An object that is not a certificate takes no work.
        """
        if not isinstance(inner, Certificate):
            return Work()
        utility, edges = (self.utility, self.edges) if utility is None else (utility, None)
        inner_constraints = self.constraints if constraints is None else constraints
        return inner.rebind(utility, inner_constraints, self.channel, edges).applicable_work()

    @property
    def answers(self) -> int:
        """The number k of inputs; for real-valued answers, the number of intervals."""
        utility: Any = self.utility
        return int(utility.size) if not utility.continuous else count_numbers(self.edges) + 1

    def cost(self, exact: bool = False) -> Work:
        """Bound the work of `verify`.

        It measures the channel, computes the utility, and proves the bound.
        """
        channel = self.check_claim()
        constraint_checks = (
            constraint.work(channel) for constraint in self.constraints if isinstance(constraint, Measured)
        )
        utility_and_bound = self.utility.work(channel) + self.applicable_work()
        cell_masses = Work() if self.cells is None else self.cells.work()
        return sum(
            (
                *constraint_checks,
                cell_masses,
                TotalVariation(1.0).work(channel),
                utility_and_bound.in_balls if exact else utility_and_bound,
            ),
            Work(),
        )

    @property
    @abstractmethod
    def argument(self) -> str:
        """The reason why the bound holds, in one sentence."""

    def check_problem(self) -> None:
        """Raise `Unproved` unless the utility and the constraints have the right types."""
        expect(self.utility, Utility, "the utility")
        expect_each(self.constraints, Constraint, "the constraints")

    def check_claim(self) -> Channel:
        """Return the channel, after a check of its type and labels.

        Raises `Unproved` unless problem and channel have the right types and the same labels.
        """
        self.check_problem()
        channel: Channel = expect(self.channel, Channel, "the channel")
        try:
            require_one_labelling(self.utility, self.constraints, channel)
        except InvalidInput as error:
            raise Unproved(str(error)) from None
        return channel

    def checked_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """Enclose the bound, after a check of the problem's type.

        Raises `Unproved` if this class of certificates does not apply to the problem.
        """
        self.check_problem()
        if not isinstance(self.utility, self.proves):
            raise Unproved(
                f"{type(self).__name__} is about a {self.proves.__name__}, not a {type(self.utility).__name__}"
            )
        try:
            return self.enclosed_bound(arithmetic)
        except InvalidInput as error:
            raise Unproved(str(error)) from None

    def proved(self, arithmetic: Arithmetic) -> float:
        """Return the bound, rounded outward.

        Raises `Unproved` if the problem has the wrong type, or if the numbers prove nothing.
        """
        bound_enclosure = self.checked_bound(arithmetic)
        bound = float(bound_enclosure.lower if self.utility.error else bound_enclosure.upper)
        require(math.isfinite(bound), "the numbers prove no finite bound")
        return bound

    def bound_in(self, arithmetic: Arithmetic) -> Bound:
        """Return the bound, rounded outward, or the reason why the numbers prove none.

        Raises `Unproved` if the utility or the constraints are objects of the wrong type.
        """
        self.check_problem()
        try:
            return Bound(self.proved(arithmetic))
        except (Unproved, NotChecked) as error:
            return Bound(-math.inf if self.utility.error else math.inf, str(error))

    @property
    def bound(self) -> float:
        """The bound that no channel within the constraints exceeds: an upper bound, or for an error a lower one.

        It is infinitely bad if the numbers prove nothing; `bound_in` gives the reason.
        """
        return self.bound_in(arithmetic(False)).value

    @property
    def finite(self) -> Any:
        """The utility; for real-valued answers, the utility of the intervals."""
        utility: Any = self.utility
        return utility if self.cells is None else self.cells.divergence(utility.f)

    @cached_property
    def cells(self) -> Cells | None:
        """The intervals that partition real-valued answers; None for finitely many answers."""
        utility: Any = self.utility
        if not utility.continuous:
            return None
        if self.edges is None:
            raise Unproved("the answers are real numbers, and no cut points are given")
        return Cells(utility.p0, utility.p1, increasing(self.edges, "cut points"))

    def enclosed_value(self, arithmetic: Arithmetic) -> Enclosure:
        """Enclose the channel's utility."""
        value_enclosure: Enclosure = self.finite.enclosed_value(self.finite.check(self.check_claim()), arithmetic)
        return value_enclosure

    def value_in(self, arithmetic: Arithmetic) -> float:
        """Return the channel's utility, rounded to the worse side.

        It is infinitely bad if it cannot be computed.
        """
        enclosed_value = self.enclosed_value(arithmetic)
        value = float(enclosed_value.upper if self.utility.error else enclosed_value.lower)
        worst = math.inf if self.utility.error else -math.inf
        return worst if math.isnan(value) else value

    def rebind(
        self, utility: Utility, constraints: tuple[Constraint, ...], channel: Channel | None, edges: Array | None = None
    ) -> Self:
        """Copy the same numbers to another problem; they may prove nothing about it."""
        return replace(self, utility=utility, constraints=constraints, channel=channel, edges=edges)

    def verify(self, exact: bool = False, budget: float = 1.0) -> Verification:
        """Recompute the channel's guarantees, its utility and the bound from scratch.

        Parameters
        ----------
        exact : bool
            True for 256-bit ball arithmetic. The default is outward-rounded float64, where balls only decide
            comparisons. Both are proofs; balls lose fewer digits.
        budget : float
            How many times the usual limits of work and memory (`work`) are allowed. A larger check is not started, and
            its outcome is "not checked".

        Returns
        -------
        Verification
        """
        budget = positive_budget(budget)
        value = bound = math.nan
        try:
            channel = self.check_claim()
            if refusal := self.cost(exact).refusal(budget):
                return unchecked_verification(refusal)
            guarantees = tuple(constraint.measure(channel) for constraint in self.constraints)
        except LdpoptError as error:
            return Verification(value, bound, math.nan, math.nan, (str(error),))
        arithmetic_used = arithmetic(exact)
        failures, not_checked = list[str](), list[str]()
        for constraint, guarantee in zip(self.constraints, guarantees, strict=True):
            if not guarantee.value <= constraint.bound:
                failures.append(f"the channel's {guarantee.title} is {guarantee.value!r}, not {constraint.bound!r}")
        if not self.constraints:
            failures.append("no constraint is stated, so nothing is bounded")
        try:
            value = self.value_in(arithmetic_used)
            bound = self.proved(arithmetic_used)
            if not (value >= bound if self.utility.error else value <= bound):
                failures.append(f"the value {value!r} is on the wrong side of the bound {bound!r}")
        except NotChecked as reason:
            not_checked.append(str(reason))
        except LdpoptError as error:
            failures.append(str(error))
        epsilon, total_variation_bound = float(local_dp(channel)), float(total_variation(channel))
        assumptions = unproved_assumptions(self.utility, self.constraints)
        return Verification(
            value, bound, epsilon, total_variation_bound, tuple(failures), guarantees, assumptions, tuple(not_checked)
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}(bound={self.bound:.9g})"


@dataclass(frozen=True, eq=False, repr=False)
class Unbounded(Certificate):
    """A certificate without a bound: only the channel's guarantees and its utility are recomputed."""

    argument = "nothing is proved"

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """Raise `NotChecked`, because a bound is missing."""
        raise NotChecked(
            "there is no certificate, so that nothing about the optimum is proved; what is said of the channel itself "
            "is recomputed, and holds unless another failure names it"
        )
