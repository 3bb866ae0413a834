"""What passes from a method to the one place that makes a design of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ldpopt.channel import Channel
from ldpopt.design.certificates.base import Certificate
from ldpopt.design.problems.problem import Problem
from ldpopt.distribution import Array


@dataclass(frozen=True, eq=False)
class Candidate:
    """A channel on the reduced inputs, shape (k, m), how it was found, and the proof that came with it, if any."""

    matrix: Array
    method: str
    prove: Callable[[Problem, Channel], Certificate | None] | None = None


class Method(Protocol):
    """A way to find a channel."""

    def find(self, problem: Problem) -> Candidate:
        """A channel for `problem`, nearly feasible: it is repaired and measured afterwards."""
        ...
