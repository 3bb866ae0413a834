"""A method that finds channels, and the candidate that it passes to `finish`, where designs are made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from ldpopt.channel import Channel
from ldpopt.design.certificates.base import Certificate
from ldpopt.design.problems.problem import Problem
from ldpopt.design.registry import Kind
from ldpopt.design.utilities.base import Utility
from ldpopt.distribution import Array

Ask = Callable[..., Any]
"""`optimal_channel` itself, handed to methods and proofs that need the optimum of another problem."""
Prove = Callable[[Problem, Channel], Iterable[Certificate]]
"""From a problem, and the channel made of a method's matrix, to the certificates that the method brings along."""


def proved_by(kind: Callable[..., Certificate], *numbers: Any) -> Prove:
    """The proof that is one certificate of a kind, with these numbers, of the whole problem."""
    return lambda posed, channel: (kind(posed.whole, posed.constraints, channel, *numbers),)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A channel as a method found it, nearly feasible: `finish` repairs, measures and proves it. matrix : (n, m), one
    row for each of the n reduced inputs of a pair of hypotheses (`Problem.reduction`), and for each of the k inputs
    otherwise. method : how it was found, in words for a reader. prove : the certificates that came with it, best first.
    tolerance : the relative gap that counts as certified; None for the usual one. problem : the problem with the orders
    that were added for a constraint of infinitely many; None where none were. note : what else a reader should know.
    shortfall : why the bound may miss the tolerance, told where it does. reference : the papers of the way it was
    found, where they are not those of the method.
    """

    matrix: Array
    method: str
    prove: Prove | None = None
    tolerance: float | None = None
    problem: Problem | None = None
    note: str = ""
    shortfall: str = ""
    reference: str = ""


class Limit(str):
    """A reason to refuse a problem that is a matter of size only: the method is for problems of this kind."""

    __slots__ = ()


class Method(Kind, ABC):
    """A way to find a channel; an object of such a class can be passed to `optimal_channel` as `method=`.

    reference : the keys of its papers, e.g. ``"[SPR]"``, for `cite`. solves : the kind of utility that it is made for,
    where there is one. preference : its place in `METHODS`, which are tried in ascending order. integral : whether it
    finds multiples of 1/D; problems with a `Denominator` are given to such methods only. by_cvxpy :
    whether it solves programs through cvxpy.
    """

    reference: ClassVar[str] = ""
    solves: ClassVar[type] = Utility
    integral: ClassVar[bool] = False
    by_cvxpy: ClassVar[bool] = False

    @classmethod
    def usual(cls) -> Self:
        """The object that is tried where the caller names no method."""
        return cls()

    @abstractmethod
    def refuses(self, problem: Problem) -> str:
        """Why this method does not apply to `problem`, as half a sentence; empty where it applies.

        A `Limit` where it would apply to a smaller problem of the kind.
        """

    @abstractmethod
    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """A channel for a `problem` that this method does not refuse. ask : `optimal_channel`, for other problems.

        Its loops run over ``problem.deadline.rounds(...)``, which ends when the time is over.
        """

    def using(self, inner: Method) -> Method | None:
        """The same method with `inner` for the simpler problems that it asks for; None where it asks for none."""
        return None
