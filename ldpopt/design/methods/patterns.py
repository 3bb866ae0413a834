"""The method that solves the staircase-pattern program, exact for any utility that is a sum over columns."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.candidate import Ask, Candidate, Limit, Method
from ldpopt.design.certificates.base import Certificate
from ldpopt.design.certificates.listed import PatternDual
from ldpopt.design.columns.sets import members
from ldpopt.design.problems.problem import Problem
from ldpopt.design.programs.patterns import pattern_program
from ldpopt.design.utilities.base import ColumnUtility
from ldpopt.distribution import Index
from ldpopt.rounding import toward_privacy

LIMIT = 14
"""The most inputs for which all patterns are priced."""


@dataclass(frozen=True)
class PatternLP(Method):
    """The staircase-pattern program [KOV14, Thm 4]: exact for column utilities of up to 14 inputs.

    A linear program over the weights of all staircase patterns (columns with two values, a factor exp(epsilon) apart),
    under `LocalDP`, with a cap on total variation or without.
    """

    reference: ClassVar[str] = "[KOV14, Thm 2 and 4]"
    preference: ClassVar[int] = 160

    def refuses(self, problem: Problem) -> str:
        """Staircase patterns are enough under LocalDP and TotalVariation, and few inputs have few of them."""
        if not isinstance(problem.utility, ColumnUtility):
            return f"{problem.utility.name} is no sum over outputs of functions of the column"
        if not problem.plain or math.isinf(problem.epsilon):
            return "staircase patterns are optimal under LocalDP between all inputs, with TotalVariation or without"
        k = problem.utility.size
        return Limit(f"{k} inputs have too many staircase patterns to price all (at most {LIMIT})") if k > LIMIT else ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The channel of the optimal pattern weights."""
        utility = problem.utility
        found = pattern_program(utility, problem.epsilon, problem.eta, problem.deadline)
        used = found.theta > 0
        inside = members(found.masks[used], utility.size).T
        matrix = np.where(inside, 1.0, math.exp(-toward_privacy(problem.epsilon))) * found.theta[used]

        def prove(posed: Problem, channel: Channel) -> Iterator[Certificate]:
            yield PatternDual(posed.whole, posed.constraints, channel, found.rows, found.pairs, found.weights)

        if utility.pair is not None:
            matrix = matrix[of_classes(problem)]
        return Candidate(matrix, f"pattern LP over {2**utility.size - 1} staircase patterns", prove)


def of_classes(problem: Problem) -> Index:
    """(classes,) for each class of the reduction, the input with the largest mass."""
    p0, p1 = problem.utility.pair
    order = np.argsort(-(p0 + p1), kind="stable")
    return np.asarray(order[np.unique(problem.reduction.classes[order], return_index=True)[1]])
