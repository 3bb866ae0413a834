"""From a problem to the method for it: the first in order of preference that does not refuse."""

from __future__ import annotations

from ldpopt.design import methods
from ldpopt.design.candidate import Limit, Method
from ldpopt.design.problems.problem import Problem
from ldpopt.design.registry import kinds
from ldpopt.design.utilities.base import Utility
from ldpopt.errors import InvalidInput, Phrase, invalid

METHODS: tuple[Method, ...] = tuple(
    sorted(
        (kind.usual() for kind in kinds(methods).values() if issubclass(kind, Method)),
        key=lambda method: method.preference,
    )
)
"""All methods, in the order in which they are tried; those without a preference of their own only where named."""


def choose(problem: Problem, named: Method | None) -> Method:
    """The method that the caller named, or the first that does not refuse; `InvalidInput` says why none does."""
    if named is not None:
        if not isinstance(named, Method):
            called = ", ".join(type(method).__name__ for method in METHODS if method.by_cvxpy)
            raise invalid("method", f"a method object such as Partition(), or one that calls cvxpy ({called})", named)
        if why := refusal(named, problem):
            # A method for pairs of hypotheses may be used by one for sets of hypotheses.
            outer = (other.using(named) for other in METHODS if not refusal(other, problem))
            if (method := next(filter(None, outer), None)) is not None:
                return method
            raise invalid("method", "one that applies", Phrase(f"{type(named).__name__}: {why}"))
        return named
    reasons: list[str] = []
    for method in (one for one in METHODS if one.preference < Method.preference):
        if not (why := refusal(method, problem)):
            return method
        own = method.solves is not Utility and isinstance(problem.utility, method.solves)
        if method.integral if problem.denominator is not None else isinstance(why, Limit) or own:
            reasons.append(why)
    # What the last and most general of the methods for such problems say, limits of size before anything else.
    limits = [why for why in reasons if isinstance(why, Limit)]
    matter = dict.fromkeys([*limits, *reasons[-1:]] if limits else reasons[-2:])
    words = ", and ".join(list(matter)[-2:])
    asked = f"{problem.utility.name} under {', '.join(type(c).__name__ for c in problem.constraints)}"
    raise InvalidInput(f"problem: expected one that a method solves, got {asked}{words and f': {words}'}")


def refusal(method: Method, problem: Problem) -> str:
    """Why a method does not apply, as half a sentence; empty where it does."""
    if problem.denominator is not None and not method.integral:
        return f"it finds no multiples of 1/{problem.denominator}"
    return method.refuses(problem)
