"""What passes from a method to the one place that makes a design of it, and what a method is."""

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
"""The certificates that a method brings along, for the channel that was made of its matrix."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A channel as a method found it, nearly feasible: `finish` repairs, measures and proves it.

    matrix : (n, m) rows of the reduced inputs of a pair of hypotheses (`Problem.reduction`), of all k inputs otherwise.
    method : how it was found, for a reader. prove : the certificates that came with it, best first.
    tolerance : the relative gap that counts as certified; None for the usual one. problem : the problem with the orders
    that a constraint of infinitely many was posed for; None for the problem as it was.
    note : what else a reader should know. shortfall : why the bound may not be within the tolerance, to say where it is
    not.
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

    reference : the keys of its papers, e.g. ``"[SPR]"``, for `cite`. A method that finds multiples of 1/D also has a
    class attribute `integral`, True; no other is asked for them.
    """

    reference: ClassVar[str]

    def refuses(self, problem: Problem) -> str:
        """Why it does not apply to `problem`, as half a sentence; empty where it does."""
        ...

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """A channel for a `problem` that it does not refuse.

        Its loops go by ``problem.deadline.rounds(...)``, which ends them when the time is over.
        """
        ...
