"""Full disclosure with probability eta, and erasure otherwise: a report that says nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ldpopt.design.candidate import Ask, Candidate, Limit, Method
from ldpopt.design.problems.problem import Problem

INPUTS = 2000
"""The most inputs: full disclosure has a report for each, and measuring it compares all pairs of rows."""


@dataclass(frozen=True)
class Erasure(Method):
    """Full disclosure with probability eta, erasure otherwise: the optimum under `TotalVariation` alone [Dobrushin].

    Erasure is a report that is equally likely under all answers, so that it says nothing.

    >>> from ldpopt import Divergence, LocalDP, TotalVariation, optimal_channel
    >>> from ldpopt.divergences import KL
    >>> u = Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
    >>> round(optimal_channel(u, TotalVariation(0.3), method=Erasure()).value / u.unprivate, 9)
    0.3
    """

    reference: ClassVar[str] = "[Dobrushin]"
    preference: ClassVar[int] = 30

    def refuses(self, problem: Problem) -> str:
        """It needs a cap on total variation and nothing else, and a utility that full disclosure keeps finite.

        Where a cap is zero, other constraints do not matter.
        """
        if not problem.utility.contracts:
            return f"{problem.utility.name} is not known to contract with total variation"
        if _nothing(problem):
            return ""
        if not problem.plain or math.isfinite(problem.epsilon):
            return "it takes a cap on total variation alone: full disclosure is not private"
        if math.isinf(problem.utility.unprivate):
            return (f"{problem.utility.name} is infinite for these hypotheses under a cap on total variation alone; "
                    "add LocalDP or take a bounded divergence")  # fmt: skip
        k = len(problem.inputs)
        return Limit(f"{k} inputs make a channel of {k} x {k + 1} (at most {INPUTS} inputs)") if k > INPUTS else ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The identity channel, erased with probability 1 - eta."""
        k = len(problem.inputs)
        if _nothing(problem):
            return Candidate(np.ones((k, 1)), "erasure of everything")
        matrix = np.hstack([problem.eta * np.eye(k), np.full((k, 1), 1 - problem.eta)])
        return Candidate(matrix, "erasure")


def _nothing(problem: Problem) -> bool:
    """Whether a cap of zero allows no report to depend on the answer."""
    return not problem.given and min(problem.epsilon, problem.eta) == 0
