"""The method that solves the staircase-pattern program, exact for any utility that is a sum over columns."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.candidate import Ask, Candidate
from ldpopt.design.certificates.base import Certificate
from ldpopt.design.certificates.patterns import PatternDual
from ldpopt.design.columns.masks import members
from ldpopt.design.problems.problem import Problem
from ldpopt.design.programs.column_patterns import pattern_columns
from ldpopt.design.utilities.base import ColumnUtility
from ldpopt.rounding import toward_privacy

LIMIT = 14
"""The most inputs for which all patterns are priced."""


@dataclass(frozen=True)
class PatternLP:
    """The staircase-pattern linear program [KOV14, Thm 4], with TV rows: exact for any column utility of up to 14 inputs."""

    reference = "[KOV14]"

    def refuses(self, problem: Problem) -> str:
        """Staircase patterns are enough under LocalDP and TotalVariation, and few inputs have few of them."""
        if not isinstance(problem.utility, ColumnUtility):
            return f"{problem.utility.name} is no sum over outputs of functions of the column"
        if not problem.plain or math.isinf(problem.epsilon):
            return "staircase patterns are optimal under LocalDP between all inputs, with TotalVariation or without"
        k = problem.utility.size
        return f"{k} inputs have too many staircase patterns to price all (at most {LIMIT})" if k > LIMIT else ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The channel of the optimal pattern weights."""
        utility = problem.utility
        masks, theta, rows, pairs, weights = pattern_columns(utility, problem.epsilon, problem.eta)
        inside = members(masks, utility.size).T
        matrix = np.where(inside, math.exp(toward_privacy(problem.epsilon)), 1.0) * np.maximum(theta, 0.0)
        matrix = matrix[:, matrix.max(axis=0) > 1e-12]

        def prove(posed: Problem, channel: Channel) -> Iterator[Certificate]:
            yield PatternDual(posed.whole, posed.constraints, channel, rows, pairs, weights)

        if utility.pair is not None and problem.symmetric:  # the rows of the reduced inputs
            matrix = matrix[np.unique(problem.reduction.classes, return_index=True)[1]]
        return Candidate(matrix, f"pattern LP over {2**utility.size - 1} staircase patterns", prove)
