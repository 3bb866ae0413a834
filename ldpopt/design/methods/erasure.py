"""Full disclosure with probability eta, erasure otherwise."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ldpopt.design.candidate import Candidate
from ldpopt.design.problems.problem import Problem
from ldpopt.errors import invalid


@dataclass(frozen=True)
class Erasure:
    """Full disclosure with probability eta, erasure otherwise: the optimum under a TV cap alone [Dobrushin]."""

    def find(self, problem: Problem) -> Candidate:
        """The identity channel, erased with probability 1 - eta."""
        if not problem.plain:
            raise invalid("Erasure", "a TotalVariation constraint alone", "others")
        if math.isfinite(problem.epsilon):
            raise invalid("Erasure", "no LocalDP constraint (full disclosure is not private)", problem.epsilon)
        k = len(problem.reduction.pair)
        matrix = np.hstack([problem.eta * np.eye(k), np.full((k, 1), 1 - problem.eta)])
        return Candidate(matrix, "erasure")
