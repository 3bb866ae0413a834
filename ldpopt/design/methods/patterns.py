"""The method that solves the staircase-pattern program."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ldpopt.design.candidate import Candidate
from ldpopt.design.columns.masks import members
from ldpopt.design.methods.plain import needs_epsilon
from ldpopt.design.problems.problem import Problem
from ldpopt.design.programs.patterns import pattern_lp
from ldpopt.rounding import toward_privacy


@dataclass(frozen=True)
class PatternLP:
    """The staircase-pattern linear program [KOV14, Thm 4], with TV rows: exact for up to 16 distinct ratios."""

    def find(self, problem: Problem) -> Candidate:
        """The channel of the optimal pattern weights."""
        needs_epsilon(problem, "PatternLP")
        pair = problem.reduction.pair
        solution = pattern_lp(problem.utility.f, pair, problem.ratio, problem.cap)
        used = np.maximum(solution.theta, 0.0) > 1e-12
        inside = members(solution.masks[used], len(pair)).T
        matrix = np.where(inside, math.exp(toward_privacy(problem.epsilon)), 1.0) * solution.theta[used]
        return Candidate(matrix, f"pattern LP over {2 ** len(pair) - 1} staircase patterns")
