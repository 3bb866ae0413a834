"""The certificate: numbers that prove a bound on every channel within some constraints, and their check.

Nothing here trusts a solver. A certificate holds the problem, a channel, and the numbers that a solver or a search
found. The kernel recomputes the rest in arithmetic that is rounded outward (`ldpopt.numbers.enclosures`): a bound from
weak duality, which depends on problem and numbers alone and is right whatever the numbers are, and the channel's
guarantees and utility, which `verify` compares with it.
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
    """What has a bound, which is an upper one, or for an error a lower one."""

    if TYPE_CHECKING:  # a field or a property

        @property
        def bound(self) -> float: ...

    @property
    def upper_bound(self) -> float:
        """The bound, for a utility of which more is better."""
        return self.bound

    @property
    def lower_bound(self) -> float:
        """The bound, for an error, of which less is better."""
        return self.bound


PROVED, REFUTED, NOT_CHECKED = "proved", "refuted", "not checked"
"""The outcomes of a check: all claims hold; one does not, or its proof proves less; no claim was found false, and one
was not checked."""


@dataclass(frozen=True, eq=False)
class Verification(Bounded, Result):
    """The result of a check, all of it recomputed.

    value : the channel's utility, rounded down; an error, rounded up. bound : no channel within the constraints is
    better. epsilon, total_variation : of the channel, rounded up; epsilon in nats. failures : the claims that do not
    hold, a sentence each. guarantees : one measure of the channel for each constraint. trusted : what was believed of
    functions and classes that are not the package's own, such as that an own f is convex; empty for all else.
    unchecked : why a claim was not checked, a sentence each; empty if all claims were.

    `outcome` is "proved", "refuted" or "not checked". `bool` is True for the first and False for the second. For the
    third it raises `NotChecked`, as nothing is known then.

    >>> found = Verification(0.1, 0.1, 1.0, 0.3, ("the value is 0.1, not 0.2",))
    >>> found.outcome, bool(found)
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
        """Whether all claims were checked and hold."""
        return self.outcome == PROVED

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the outcome is not "proved": the claims that do not hold, then those that were not checked."""
        return (*self.failures, *self.unchecked)

    def __bool__(self) -> bool:
        if self.outcome == NOT_CHECKED:
            raise NotChecked(f"{'; '.join(self.unchecked)}. That is neither true nor false: ask for `outcome`")
        return self.proved

    def __repr__(self) -> str:
        verdict = ": ".join([self.outcome, "; ".join(self.reasons)] if self.reasons else [self.outcome])
        verdict += taken_on_trust(self.trusted)
        return (
            f"Verification({verdict}: value {self.value:.9g}, bound {self.bound:.9g}, "
            f"epsilon {ceil_digits(self.epsilon, 9)}, total variation {ceil_digits(self.total_variation, 9)})"
        )


def believed(utility: Any, constraints: Sequence[Any] = ()) -> tuple[str, ...]:
    """What a proof about a problem believes of a user's functions and classes, and of scipy's laws; () for nothing."""
    trusted = list[str]()
    for part in (utility, *constraints):
        if getattr(part, "function", None) is not None and isinstance(part, Constraint):
            trusted.append("what the function of a constraint says")
        if not type(part).__module__.startswith("ldpopt."):
            trusted.append(f"what the class {type(part).__name__} computes")
            if isinstance(part, ColumnUtility):
                trusted.append(f"that {part.name} is convex and homogeneous beyond the columns that were probed")
        if getattr(part, "continuous", False):
            trusted.append("the probabilities and densities that scipy.stats computes")
        f = getattr(part, "f", None)
        if isinstance(f, FDivergence) and (f.recipe is None or type(f) is not FDivergence):
            trusted.append(f"the floats of {f.name}, and that it is convex")
        for inner in (*(part.parts() if isinstance(part, Utility) else ()), getattr(part, "criterion", None)):
            trusted += believed(inner) if inner is not None else ()
    return tuple(dict.fromkeys(trusted))


def unchecked(reason: str) -> Verification:
    """The result of a check that was not begun."""
    return Verification(math.nan, math.nan, math.nan, math.nan, (), unchecked=(reason,))


def taken_on_trust(trusted: Sequence[str]) -> str:
    """The end of a verdict that says what was believed; empty for nothing."""
    return f"; taken on trust: {', '.join(trusted)}" if trusted else ""


@dataclass(frozen=True)
class Bound:
    """What numbers prove about a problem, whatever the channel. value : no channel within the constraints is better;
    infinitely bad where nothing is proved. why : then, the reason.
    """

    value: float
    why: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Certificate(Bounded, Kind, Result, ABC):
    """A proof that no channel within `constraints` has a better utility than `bound`, and a claim about `channel`.

    utility, constraints : the problem. channel : one that meets the constraints; None where only the bound is asked
    for, which depends on the problem and the numbers alone. edges : where the answers are real numbers, the interior
    cut points of the channel's inputs. Every kind of certificate adds fields with its numbers, which are all checked:
    wrong numbers give a worse bound or none, never a wrong one.
    """

    utility: Any
    constraints: tuple[Constraint, ...]
    channel: Channel | None
    edges: Array | None = field(default=None, kw_only=True)
    proves: ClassVar[Any] = Utility
    """The kind of utility that certificates of this class are about."""

    @property
    def room(self) -> float:
        """The share by which a design states the bound weaker than it was computed, so that other programs find it."""
        return 0.0

    @property
    def tight(self) -> bool:
        """Whether the best numbers prove the optimum itself; otherwise they prove the optimum of an easier problem."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """The kind of the certificate, its problem, its channel and its numbers as JSON-ready values."""
        return {"certificate": type(self).__name__, **super().to_dict()}

    def _columns(self) -> dict[str, list[Any]]:
        k, m = (0, 0) if self.channel is None else self.channel.shape
        posed = {"utility": [self.utility.name], "constraints": ["; ".join(map(repr, self.constraints))]}
        return {"certificate": [type(self).__name__], **posed, "inputs": [k], "outputs": [m]}

    @abstractmethod
    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """The bound, enclosed; its worse end counts. It is infinite where the numbers prove nothing.

        May raise `Unproved`, which says why.
        """

    def work(self) -> Work:
        """What `enclosed_bound` takes at most, in floats; by default some operations on each number."""
        return Work.on(count_numbers(self) + self.answers, 1000.0)

    def begun(self) -> Work:
        """`work`; none for a utility of another kind, of which `checked_bound` computes nothing."""
        return self.work() if isinstance(self.utility, self.proves) else Work()

    def work_within(self, inner: Any, utility: Any = None, constraints: Any = None) -> Work:
        """What a certificate within this one takes, for this problem or another; nothing for what is no certificate."""
        if not isinstance(inner, Certificate):
            return Work()
        utility, edges = (self.utility, self.edges) if utility is None else (utility, None)
        asked = self.constraints if constraints is None else constraints
        return inner.of(utility, asked, self.channel, edges).begun()

    @property
    def answers(self) -> int:
        """The number k of inputs; for real answers that of the intervals."""
        utility: Any = self.utility
        return int(utility.size) if not utility.continuous else count_numbers(self.edges) + 1

    def cost(self, exact: bool = False) -> Work:
        """What `verify` takes at most: to measure the channel, to compute the utility, and to prove the bound."""
        channel = self.check_claim()
        checks = (constraint.work(channel) for constraint in self.constraints if isinstance(constraint, Measured))
        own = self.utility.work(channel) + self.begun()
        laws = Work() if self.cells is None else self.cells.work()
        return sum((*checks, laws, TotalVariation(1.0).work(channel), own.in_balls if exact else own), Work())

    @property
    @abstractmethod
    def argument(self) -> str:
        """Why the bound holds, in a sentence."""

    def check_problem(self) -> None:
        """Raise `Unproved` unless the utility and the constraints are objects of these kinds."""
        expect(self.utility, Utility, "the utility")
        expect_each(self.constraints, Constraint, "the constraints")

    def check_claim(self) -> Channel:
        """The channel. Raises `Unproved` unless problem and channel are of these kinds, and have the same labels."""
        self.check_problem()
        channel: Channel = expect(self.channel, Channel, "the channel")
        try:
            require_one_labelling(self.utility, self.constraints, channel)
        except InvalidInput as error:
            raise Unproved(str(error)) from None
        return channel

    def checked_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """`enclosed_bound`. Raises `Unproved` where this class of certificates is about other problems."""
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
        """The bound, rounded outward. `Unproved` for a problem of another kind, or numbers that prove nothing."""
        enclosed = self.checked_bound(arithmetic)
        bound = float(enclosed.lower if self.utility.error else enclosed.upper)
        require(math.isfinite(bound), "the numbers prove no finite bound")
        return bound

    def bound_in(self, arithmetic: Arithmetic) -> Bound:
        """The bound, rounded outward, or the reason why the numbers prove none.

        Raises `Unproved` where the utility or the constraints are objects of another kind.
        """
        self.check_problem()
        try:
            return Bound(self.proved(arithmetic))
        except (Unproved, NotChecked) as error:
            return Bound(-math.inf if self.utility.error else math.inf, str(error))

    @property
    def bound(self) -> float:
        """The bound that no channel within the constraints beats: an upper one, or for an error a lower one.

        It is infinitely bad where the numbers prove nothing; `bound_in` says why.
        """
        return self.bound_in(arithmetic(False)).value

    @property
    def finite(self) -> Any:
        """The utility; where the answers are real numbers, that of the intervals."""
        utility: Any = self.utility
        return utility if self.cells is None else self.cells.divergence(utility.f)

    @cached_property
    def cells(self) -> Cells | None:
        """The intervals that real answers are cut into; None for finitely many answers."""
        utility: Any = self.utility
        if not utility.continuous:
            return None
        if self.edges is None:
            raise Unproved("the answers are real numbers, and no cut points are given")
        return Cells(utility.p0, utility.p1, increasing(self.edges, "cut points"))

    def enclosed_value(self, arithmetic: Arithmetic) -> Enclosure:
        """The channel's utility, enclosed."""
        enclosed: Enclosure = self.finite.enclosed_value(self.finite.check(self.check_claim()), arithmetic)
        return enclosed

    def value_in(self, arithmetic: Arithmetic) -> float:
        """The channel's utility, rounded to the worse side; infinitely bad where it cannot be computed."""
        enclosed = self.enclosed_value(arithmetic)
        value = float(enclosed.upper if self.utility.error else enclosed.lower)
        nothing = math.inf if self.utility.error else -math.inf
        return nothing if math.isnan(value) else value

    def of(
        self, utility: Utility, constraints: tuple[Constraint, ...], channel: Channel | None, edges: Array | None = None
    ) -> Self:
        """The same numbers as a certificate for another problem, about which they may prove nothing."""
        return replace(self, utility=utility, constraints=constraints, channel=channel, edges=edges)

    def verify(self, exact: bool = False, budget: float = 1.0) -> Verification:
        """Recompute the channel's guarantees, its utility and the bound from scratch.

        exact : compute in ball arithmetic of 256 bits instead of float64 rounded outward, which then only settles
        comparisons. Both are proofs; balls lose fewer digits. budget : how many times the usual work and memory
        (`work`) are allowed; more is not begun, and the outcome is "not checked".
        """
        budget = positive_budget(budget)
        value = bound = math.nan
        try:
            channel = self.check_claim()
            if refused := self.cost(exact).refusal(budget):
                return unchecked(refused)
            guarantees = tuple(constraint.measure(channel) for constraint in self.constraints)
        except LdpoptError as error:
            return Verification(value, bound, math.nan, math.nan, (str(error),))
        ground = arithmetic(exact)
        failures, left_out = list[str](), list[str]()
        for constraint, guarantee in zip(self.constraints, guarantees, strict=True):
            if not guarantee.value <= constraint.bound:
                failures.append(f"the channel's {guarantee.title} is {guarantee.value!r}, not {constraint.bound!r}")
        if not self.constraints:
            failures.append("no constraint is stated, so nothing is bounded")
        try:
            value = self.value_in(ground)
            bound = self.proved(ground)
            if not (value >= bound if self.utility.error else value <= bound):
                failures.append(f"the value {value!r} is on the wrong side of the bound {bound!r}")
        except NotChecked as reason:
            left_out.append(str(reason))
        except LdpoptError as error:
            failures.append(str(error))
        epsilon, eta = float(local_dp(channel)), float(total_variation(channel))
        trusted = believed(self.utility, self.constraints)
        return Verification(value, bound, epsilon, eta, tuple(failures), guarantees, trusted, tuple(left_out))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(bound={self.bound:.9g})"


@dataclass(frozen=True, eq=False, repr=False)
class Unbounded(Certificate):
    """No bound at all: the channel's guarantees and its utility are recomputed, and nothing else."""

    argument = "nothing is proved"

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """Raises `NotChecked`, as there is no bound."""
        raise NotChecked(
            "there is no certificate, so that nothing about the optimum is proved; what is said of the channel itself "
            "is recomputed, and holds unless another failure names it"
        )
