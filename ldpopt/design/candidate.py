"""A method that finds channels, and the candidate that it passes to `finish`, where designs are made."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from ldpopt.channel import Channel
from ldpopt.design.certificates.base import Certificate
from ldpopt.design.problems.problem import Problem
from ldpopt.distribution import Array

Ask = Callable[..., Any]
"""`optimal_channel` itself, handed to methods and proofs that need the optimum of another problem."""

Prove = Callable[[Problem, Channel], Iterable[Certificate]]
"""From a problem, and the channel made of a method's matrix, to the certificates that the method brings along."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A channel as a method found it, nearly feasible: `finish` repairs, measures and proves it.

    matrix : (n, m), one row for each of the n reduced inputs of a pair of hypotheses (`Problem.reduction`), and for
    each of the k inputs otherwise. method : how it was found, in words for a reader. prove : the certificates that came
    with it, best first. tolerance : the relative gap that counts as certified; None for the usual one.
    problem : the problem with the orders that were added for a constraint of infinitely many; None where none were.
    note : what else a reader should know. shortfall : why the bound may miss the tolerance, told where it does.
    """

    matrix: Array
    method: str
    prove: Prove | None = None
    tolerance: float | None = None
    problem: Problem | None = None
    note: str = ""
    shortfall: str = ""


class Method(Protocol):
    """A way to find a channel; an object of such a class can be passed to `optimal_channel` as `method=`.

    reference : the keys of its papers, e.g. ``"[SPR]"``, for `cite`. A method that finds multiples of 1/D also has the
    class attribute ``integral = True``; problems with a `Denominator` are given to such methods only.
    """

    reference: ClassVar[str]

    def refuses(self, problem: Problem) -> str:
        """Why this method does not apply to `problem`, as half a sentence; empty where it applies."""
        ...

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """A channel for a `problem` that this method does not refuse. ask : `optimal_channel`, for other problems.

        Its loops run over ``problem.deadline.rounds(...)``, which ends when the time is over.
        """
        ...
