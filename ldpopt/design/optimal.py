"""Choose and run a method for a utility and constraints, then finish the design."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import cache, partial
from typing import Any

from ldpopt.design.candidate import Ask, Candidate, Limit, Method, declared_methods, refusal
from ldpopt.design.constraints.base import Constraint
from ldpopt.design.constraints.hockey_stick import ApproximateLDP
from ldpopt.design.constraints.local_dp import LocalDP
from ldpopt.design.constraints.repair import Unrepairable
from ldpopt.design.design import Design
from ldpopt.design.finish import finish
from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.problems.problem import Problem
from ldpopt.design.registry import METHOD_MODULES, registered_types
from ldpopt.design.utilities.base import ColumnUtility, Utility, probe_user_utility
from ldpopt.errors import InvalidInput, Phrase, SolverError, invalid
from ldpopt.values.deadline import Progress, watched

METHODS: tuple[Method, ...]
"""All methods, in the order in which they are tried; those without a preference only if the caller names them."""


def __getattr__(name: str) -> Any:
    """Load `METHODS` when it is first used: reading plans and designs needs no method."""
    if name == "METHODS":
        return _methods()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@cache
def _methods() -> tuple[Method, ...]:
    defaults = (kind.default() for kind in registered_types(METHOD_MODULES).values() if issubclass(kind, Method))
    return tuple(sorted(defaults, key=lambda method: method.preference))


def choose(problem: Problem, requested_method: Method | None) -> Method:
    """Return the method that the caller named, or the first that applies.

    Raises `InvalidInput` with the reason if none applies.
    """
    if requested_method is not None:
        if not isinstance(requested_method, Method):
            cvxpy_methods = ", ".join(type(method).__name__ for method in _methods() if method.by_cvxpy)
            raise invalid(
                "method",
                f"a method object such as Partition(), or one that calls cvxpy ({cvxpy_methods})",
                requested_method,
            )
        if reason := refusal(requested_method, problem):
            # A method for sets of hypotheses may use one for pairs of hypotheses.
            outer = (other.with_inner(requested_method) for other in _methods() if not refusal(other, problem))
            if (method := next(filter(None, outer), None)) is not None:
                return method
            raise invalid("method", "one that applies", Phrase(f"{type(requested_method).__name__}: {reason}"))
        return requested_method
    reasons: list[str] = []
    for entry in declared_methods(METHOD_MODULES):
        if not entry.may_apply(problem):
            continue
        method = entry.method
        if not (reason := refusal(method, problem)):
            return method
        if method.integral or isinstance(reason, Limit) or method.solves is not Utility:
            reasons.append(reason)
    # Give the reasons of the last and most general methods for such problems, limits of size first.
    limits = [reason for reason in reasons if isinstance(reason, Limit)]
    selected_reasons = dict.fromkeys([*limits, *reasons[-1:]] if limits else reasons[-2:])
    reason_text = ", and ".join(list(selected_reasons)[-2:])
    problem_text = f"{problem.utility.name} under {', '.join(type(c).__name__ for c in problem.constraints)}"
    raise InvalidInput(
        f"problem: expected one that a method solves, got {problem_text}{reason_text and f': {reason_text}'}"
    )


def certificate_of_neighbor(problem: Problem, neighbor: Any) -> Certificate | None:
    """Return the certificate of a neighboring design.

    Raises `InvalidInput` for anything but a design with the same type of utility. Its numbers are checked as a proof
    about this problem, so any neighboring design may be tried.
    """
    if neighbor is None:
        return None
    if not isinstance(neighbor, Design):
        raise invalid("neighbor", "a Design", type(neighbor).__name__)
    if type(neighbor.utility) is not type(problem.original_utility):
        raise invalid(
            "neighbor",
            f"a Design of a {type(problem.original_utility).__name__}",
            Phrase(f"one of {neighbor.utility.name}"),
        )
    return neighbor.certificate


SEARCH_PROGRESS_FRACTION = 0.9  # The fraction of the progress bar for the search; repair and proof take the rest.


def optimal_channel(
    utility: Utility,
    constraints: Constraint | Iterable[Constraint],
    *,
    method: Method | None = None,
    certify: bool = True,
    neighbor: Design | None = None,
    time_limit: float | None = None,
    progress: Progress = False,
) -> Design:
    """Design the channel that maximizes `utility` subject to `constraints`, with a certified optimality gap.

    For two hypotheses P0 and P1, and an f-divergence D_f:

    max over channels Q of D_f(P0 Q || P1 Q)  subject to  Q epsilon-LDP, Q eta-TV          [GI, section VII]

    Parameters
    ----------
    utility : A utility for two hypotheses (`Divergence`, finite or `scipy.stats` distributions) or for more answers
        (`MutualInformation`, `WorstOf`, `WeightedSum`, `AgainstSet`, `ExpectedLoss`, `PrivateSampling`). A
        `FisherInformation` is an error and is minimized. A user-defined utility is described in
        docs/how-to/design/custom-utility.md.
    constraints : One or several. Privacy is limited by `LocalDP`, `TotalVariation`, `ApproximateLDP`, `RenyiLDP`,
        `ConcentratedLDP` and `TradeOff`. The outputs are fixed by `Outputs`, `Support`, `Invariant` and
        `CapacityBounded`. With `Denominator` a channel can be run with dice. A user-defined constraint is described in
        docs/how-to/design/custom-constraint.md.
    method : A method object such as `Partition()`, `PatternLP()`, `Exchange()` or
        `LocalSearch(starts)`; `METHODS` lists them all. None chooses one that suits the problem. A method that does
        not apply is refused, with the reason.
    certify : False skips the certificate, and with it the bound.
    neighbor : A design of the same utility under slightly different caps, whose certificate is tried as a proof first.
        Along eta it often suffices, because the optimum is piecewise linear in eta.
    time_limit : Seconds, above 0, for search and proof together; None or inf for no limit. When they are over, the
        search ends after its current round. The best design so far is returned with the bound proved by then, and its
        `note` states the time limit.
    progress : True shows a bar on standard error. A function is called with the completed fraction of the work, in
        [0, 1], which never decreases; an exception that it raises ends the work and is passed on.

    Returns
    -------
    Design
        The channel, its value, the proved bound and the certificate. The guarantees are measured on the returned matrix
        itself.

    Raises
    ------
    InvalidInput
        If the problem is invalid, or the method does not apply.
    SolverError
        If no solver gives a usable solution, or the time is over before any channel is known.

    Examples
    --------
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
        problem = Problem.build(utility, constraints, deadline.part(0.0, SEARCH_PROGRESS_FRACTION))
        if isinstance(problem.utility, ColumnUtility):
            probe_user_utility(problem.utility, ratios_of(problem.constraints))
        return solve_problem(problem, method, certify, neighbor)


def ratios_of(constraints: Iterable[Any]) -> tuple[float, ...]:
    """Return the ratios e^epsilon of two entries of a column that constraints name, as far as floats hold them."""
    epsilons = {constraint.epsilon for constraint in constraints if isinstance(constraint, LocalDP | ApproximateLDP)}
    return tuple(math.exp(epsilon) for epsilon in sorted(epsilons) if epsilon > 0)


def _find_candidate(method: Method, problem: Problem, ask: Ask) -> Candidate:
    """Run a method and check its result; raises `InvalidInput` unless that is a `Candidate`."""
    candidate = method.find(problem, ask)
    if not isinstance(candidate, Candidate):
        name, kind = type(method).__name__, Phrase(type(candidate).__name__)
        raise invalid(f"{name}.find", "a design.Candidate(matrix, method='how it was found')", kind)
    return candidate


def solve_problem(problem: Problem, method: Method | None, certify: bool, neighbor: Design | None) -> Design:
    """Design the channel of a problem within its deadline."""

    def ask(
        utility: Utility,
        constraints: Constraint | Iterable[Constraint],
        *,
        method: Method | None = None,
        certify: bool = True,
    ) -> Design:
        return solve_problem(Problem.build(utility, constraints, problem.deadline.inner), method, certify, None)

    neighbor_certificate = certificate_of_neighbor(problem, neighbor)
    problem = replace(problem, proving=certify)
    while True:
        try:
            chosen_method = choose(problem, method)
            find = partial(_find_candidate, chosen_method, problem, ask)
            candidate = (
                _find_under_user_constraints(problem, find, ask, method, certify)
                if problem.user_expressions
                else find()
            )
            problem.deadline.tell(1.0)
            design = finish(candidate.problem or problem, candidate, certify, neighbor_certificate, ask)
            return replace(design, reference=candidate.reference or chosen_method.reference)
        except Unrepairable as failure:
            # Constraints of infinitely many orders start with a few; orders that the channel exceeds are added.
            tighter = problem.tighten(failure.matrix)
            if tighter is None or problem.deadline.over():
                _raise_if_late(problem, failure)
                raise
            problem = tighter
        except SolverError as failure:
            _raise_if_late(problem, failure)
            raise


def _find_under_user_constraints(problem: Problem, *arguments: Any) -> Candidate:
    """Find a candidate under user-defined constraints (`own_constraints`)."""
    from ldpopt.design.own_constraints import best_under_user_constraints

    return best_under_user_constraints(problem, *arguments)


def _raise_if_late(problem: Problem, failure: SolverError) -> None:
    """Raise the error that the time was over before a channel was known; return if it was not over."""
    if problem.deadline.late:
        time_limit = f"{problem.deadline.seconds:g} s"
        message = f"time_limit: {time_limit} were over before any channel was known: allow more time ({failure})"
        raise SolverError(message) from failure
