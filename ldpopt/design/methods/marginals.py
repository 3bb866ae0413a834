"""The method for several hypotheses: the pattern program of utilities that compare the marginals of a few laws."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.candidate import Ask, Candidate, Limit, Method
from ldpopt.design.certificates.base import Certificate
from ldpopt.design.certificates.marginals import MarginalDual
from ldpopt.design.certificates.simplices import FEW
from ldpopt.design.columns.shares import level_of
from ldpopt.design.methods.patterns import of_classes
from ldpopt.design.problems.problem import Problem
from ldpopt.design.programs.marginals import MarginalProgram
from ldpopt.design.utilities.base import ColumnUtility
from ldpopt.rounding import toward_privacy

MOST = 100
"""The most inputs."""

CAPPED = 40
"""The most inputs under a cap on total variation, where every pair of inputs has a row in the program."""


@dataclass(frozen=True)
class MarginalPatterns(Method):
    """The pattern program for several hypotheses, whose patterns are searched by marginals, not listed [KOV14, Thm 4].

    For utilities that compare the marginals of two to five laws: `WorstOf`, and `WeightedSum` of divergences, of up to
    100 inputs, or 40 under a cap on total variation that can bind.

    >>> from ldpopt.design import LocalDP, WorstOf, optimal_channel
    >>> from ldpopt.divergences import KL
    >>> p0, p1, p2 = [0.2, 0.3, 0.5], [0.3, 0.5, 0.2], [0.5, 0.2, 0.3]
    >>> design = optimal_channel(WorstOf(KL, p0, [p1, p2]), LocalDP(1.0), method=MarginalPatterns())
    >>> round(design.value, 6), design.certified
    (0.027163, True)
    """

    reference: ClassVar[str] = "[KOV14]"
    preference: ClassVar[int] = 170

    def refuses(self, problem: Problem) -> str:
        """It needs a utility that compares the marginals of few laws, under LocalDP."""
        utility = problem.utility
        compared = utility.compared if isinstance(utility, ColumnUtility) else None
        if compared is None:
            return f"{utility.name} is no utility of the marginals of a few laws"
        if not problem.plain or math.isinf(problem.epsilon):
            return "staircase patterns are optimal under LocalDP between all inputs, with TotalVariation or without"
        if len(compared.laws) > FEW:
            return Limit(f"{len(compared.laws)} laws are too many to search through their marginals (at most {FEW})")
        if problem.eta == 0:
            return "a total variation of 0 leaves nothing to search for"
        k, most = utility.size, MOST if problem.cap is None else CAPPED
        return Limit(f"{k} inputs make programs too large (at most {most})") if k > most else ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The channel of the optimal pattern weights."""
        utility: ColumnUtility = problem.utility
        compared = utility.compared
        assert compared is not None
        level = level_of(problem.epsilon)
        found = MarginalProgram(utility, compared, level, min(problem.eta, 1.0)).solve(problem.deadline)
        used = found.phi > 0
        inside = found.inside[used].T
        matrix = np.where(inside, 1.0, math.exp(-toward_privacy(problem.epsilon))) * (found.phi[used] * (level + 1))

        def prove(posed: Problem, channel: Channel) -> Iterator[Certificate]:
            yield MarginalDual(posed.whole, posed.constraints, channel, found.rows, found.pairs, found.weights)

        if utility.pair is not None:
            matrix = matrix[of_classes(problem)]
        how = f"{len(found.inside) - 1} staircase patterns in {found.rounds} rounds, priced by the marginals"
        return Candidate(matrix, how, prove)
