"""From a utility and constraints to the optimal channel: pose a problem, choose a method, find a channel, finish it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import cache, partial
from typing import Any

from ldpopt.design.candidate import Ask, Candidate, Limit, Method, declared, refusal
from ldpopt.design.constraints.base import Constraint
from ldpopt.design.constraints.hockey_stick import ApproximateLDP
from ldpopt.design.constraints.local_dp import LocalDP
from ldpopt.design.constraints.repair import Unrepairable
from ldpopt.design.design import Design
from ldpopt.design.finish import finish
from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.problems.problem import Problem
from ldpopt.design.registry import METHOD_MODULES, kinds
from ldpopt.design.utilities.base import ColumnUtility, Utility, probed
from ldpopt.errors import InvalidInput, Phrase, SolverError, invalid
from ldpopt.values.deadline import Progress, watched

METHODS: tuple[Method, ...]
"""All methods, in the order in which they are tried; those without a preference of their own only where named."""


def __getattr__(name: str) -> Any:
    """`METHODS`, when it is first used: whoever reads plans and designs needs no method."""
    if name == "METHODS":
        return _methods()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@cache
def _methods() -> tuple[Method, ...]:
    usual = (kind.usual() for kind in kinds(METHOD_MODULES).values() if issubclass(kind, Method))
    return tuple(sorted(usual, key=lambda method: method.preference))


def choose(problem: Problem, named: Method | None) -> Method:
    """The method that the caller named, or the first that does not refuse; `InvalidInput` says why none does."""
    if named is not None:
        if not isinstance(named, Method):
            called = ", ".join(type(method).__name__ for method in _methods() if method.by_cvxpy)
            raise invalid("method", f"a method object such as Partition(), or one that calls cvxpy ({called})", named)
        if why := refusal(named, problem):
            # A method for pairs of hypotheses may be used by one for sets of hypotheses.
            outer = (other.using(named) for other in _methods() if not refusal(other, problem))
            if (method := next(filter(None, outer), None)) is not None:
                return method
            raise invalid("method", "one that applies", Phrase(f"{type(named).__name__}: {why}"))
        return named
    reasons: list[str] = []
    for known in declared(METHOD_MODULES):
        if not known.may_apply(problem):
            continue
        method = known.method
        if not (why := refusal(method, problem)):
            return method
        if method.integral or isinstance(why, Limit) or method.solves is not Utility:
            reasons.append(why)
    # What the last and most general of the methods for such problems say, limits of size before anything else.
    limits = [why for why in reasons if isinstance(why, Limit)]
    matter = dict.fromkeys([*limits, *reasons[-1:]] if limits else reasons[-2:])
    words = ", and ".join(list(matter)[-2:])
    asked = f"{problem.utility.name} under {', '.join(type(c).__name__ for c in problem.constraints)}"
    raise InvalidInput(f"problem: expected one that a method solves, got {asked}{words and f': {words}'}")


def numbers_near(problem: Problem, near: Any) -> Certificate | None:
    """The certificate of the design `near`; `InvalidInput` for anything but a design with the same kind of utility. Its
    numbers are checked as a proof about this problem, so that any neighbouring design may be tried.
    """
    if near is None:
        return None
    if not isinstance(near, Design):
        raise invalid("near", "a Design", type(near).__name__)
    if type(near.utility) is not type(problem.whole):
        raise invalid("near", f"a Design of a {type(problem.whole).__name__}", Phrase(f"one of {near.utility.name}"))
    return near.certificate


SEARCH = 0.9  # The share of the progress bar that the search takes; repair and proof take the rest.


def optimal_channel(
    utility: Utility,
    constraints: Constraint | Iterable[Constraint],
    *,
    method: Method | None = None,
    certify: bool = True,
    near: Design | None = None,
    time_limit: float | None = None,
    progress: Progress = False,
) -> Design:
    """The channel that keeps the most of `utility` within `constraints`, with a proof of how close it is.

    For two hypotheses P0 and P1, and an f-divergence D_f:

    max over channels Q of D_f(P0 Q || P1 Q)  subject to  Q epsilon-LDP, Q eta-TV          [GI, section VII]

    Parameters
    ----------
    utility : a `Divergence` between two hypotheses, finite or `scipy.stats` distributions; a `MutualInformation`,
        `WorstOf` or `WeightedSum`; an `AgainstSet`; an `ExpectedLoss`; a `PrivateSampling`; a `FisherInformation`,
        which is an error and is made small; or one of your own (docs/how-to/design/custom-utility.md).
    constraints : one or several of `LocalDP`, `TotalVariation`, `ApproximateLDP`, `RenyiLDP`, `ConcentratedLDP`,
        `TradeOff`; of `Outputs`, `Support`, `Invariant`, `CapacityBounded`, which fix the outputs; of
        `Denominator`, for channels that can be run with dice; or of your own (docs/how-to/design/custom-constraint.md).
    method : a method object such as `Partition()`, `PatternLP()`, `Exchange()` or
        `LocalSearch(starts)`; `METHODS` lists them all. None chooses one that suits the problem. A method that does
        not apply is refused, with the reason.
    certify : False skips the certificate, and with it the bound.
    near : a design of the same utility under slightly different caps, whose certificate is tried as a proof before a
        new one is computed. Along eta it often suffices, because the optimum is piecewise linear in eta.
    time_limit : seconds, above 0, for search and proof together; None or inf for no limit. When they are over, the
        search ends after its current round. The best design so far is returned with the bound proved by then, and its
        `note` says so.
    progress : True shows a bar on standard error. A function is called with the share of the work that is done, in
        [0, 1], which never falls; an exception that it raises ends the work and is passed on.

    Returns a `Design`. Its guarantees are measured of the returned matrix itself. Raises `InvalidInput` for a problem
    that cannot be posed or a method that does not apply, and `SolverError` when no solver gives a usable answer
    or the time is over before any channel is known.

    >>> from ldpopt import LocalDP, TotalVariation
    >>> from ldpopt.design import Divergence
    >>> from ldpopt.divergences import KL
    >>> u = Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
    >>> design = optimal_channel(u, [LocalDP(1.0), TotalVariation(0.3)])
    >>> round(design.value, 6), design.certified
    (0.029225, True)
    """
    if time_limit is not None:
        _methods()  # loaded before the clock runs
    with watched(time_limit, progress) as deadline:
        problem = Problem.of(utility, constraints, deadline.part(0.0, SEARCH))
        if isinstance(problem.utility, ColumnUtility):
            probed(problem.utility, ratios_of(problem.constraints))
        return designed(problem, method, certify, near)


def ratios_of(constraints: Iterable[Any]) -> tuple[float, ...]:
    """The ratios e^epsilon of two entries of a column that constraints name, as far as floats hold them."""
    named = {constraint.epsilon for constraint in constraints if isinstance(constraint, LocalDP | ApproximateLDP)}
    return tuple(math.exp(epsilon) for epsilon in sorted(named) if epsilon > 0)


def _candidate(method: Method, problem: Problem, ask: Ask) -> Candidate:
    """What a method finds. Raises `InvalidInput` where that is no `Candidate`."""
    candidate = method.find(problem, ask)
    if not isinstance(candidate, Candidate):
        name, kind = type(method).__name__, Phrase(type(candidate).__name__)
        raise invalid(f"{name}.find", "a design.Candidate(matrix, method='how it was found')", kind)
    return candidate


def designed(problem: Problem, method: Method | None, certify: bool, near: Design | None) -> Design:
    """The design of a problem, within its deadline."""

    def ask(
        utility: Utility,
        constraints: Constraint | Iterable[Constraint],
        *,
        method: Method | None = None,
        certify: bool = True,
    ) -> Design:
        return designed(Problem.of(utility, constraints, problem.deadline.inner), method, certify, None)

    known = numbers_near(problem, near)
    problem = replace(problem, proving=certify)
    while True:
        try:
            chosen = choose(problem, method)
            find = partial(_candidate, chosen, problem, ask)
            candidate = _of_own(problem, find, ask, method, certify) if problem.others else find()
            problem.deadline.tell(1.0)
            design = finish(candidate.problem or problem, candidate, certify, known, ask)
            return replace(design, reference=candidate.reference or chosen.reference)
        except Unrepairable as failure:
            # Constraints of infinitely many orders are posed for a few; orders that the channel exceeds are added.
            tighter = problem.tightened(failure.matrix)
            if tighter is None or problem.deadline.over():
                _say_late(problem, failure)
                raise
            problem = tighter
        except SolverError as failure:
            _say_late(problem, failure)
            raise


def _of_own(problem: Problem, *how: Any) -> Candidate:
    """The candidate under constraints of users' own (`own_constraints`)."""
    from ldpopt.design.own_constraints import best_of_own

    return best_of_own(problem, *how)


def _say_late(problem: Problem, failure: SolverError) -> None:
    """Raise the error that says that the time was over before a channel was known; return where it was not over."""
    if problem.deadline.late:
        spent = f"{problem.deadline.seconds:g} s"
        told = f"time_limit: {spent} were over before any channel was known: allow more time ({failure})"
        raise SolverError(told) from failure
