"""The method that solves the program over the extreme columns of (epsilon, delta)-LDP, for any column utility."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ldpopt.channel import Channel
from ldpopt.design.candidate import Ask, Candidate, Limit, Method
from ldpopt.design.certificates.base import Certificate
from ldpopt.design.certificates.levels import LevelDual, LevelVariationDual
from ldpopt.design.columns.levels import LIMIT, level_columns
from ldpopt.design.constraints.hockey_stick import ApproximateLDP, TotalVariation
from ldpopt.design.methods.patterns import of_classes
from ldpopt.design.problems.problem import Problem
from ldpopt.design.programs.levels import level_program
from ldpopt.design.utilities.base import ColumnUtility


@dataclass(frozen=True)
class LevelLP(Method):
    """The program over all extreme columns of (epsilon, delta)-LDP: exact for column utilities of up to six inputs.

    These columns are unit vectors, and whole powers of e^epsilon on a set of inputs with zero elsewhere: staircases
    with more than two steps. Where total variation is capped too, there are also columns constant on a set.

    >>> from ldpopt import ApproximateLDP, MutualInformation, optimal_channel
    >>> optimal_channel(MutualInformation([0.5, 0.3, 0.2]), ApproximateLDP(1.0, 0.01), method=LevelLP()).certified
    True
    """

    reference: ClassVar[str] = "[KOV14, Thm 2 and 4]"
    preference: ClassVar[int] = 180

    def refuses(self, problem: Problem) -> str:
        """These columns suffice under one `ApproximateLDP`, with or without `TotalVariation`; few inputs have few."""
        utility = problem.utility
        if not isinstance(utility, ColumnUtility):
            return f"{utility.name} is no sum over outputs of functions of the column"
        if _approximate(problem) is None:
            return "its columns are optimal under ApproximateLDP and TotalVariation, with all their caps above 0"
        if not math.isfinite(utility.unprivate):
            return f"{utility.name} of full disclosure is infinite, and delta allows for some of it"
        k = utility.size
        return Limit(f"{k} inputs have too many extreme columns to list (at most {LIMIT})") if k > LIMIT else ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The channel of the optimal weights."""
        utility, posed = problem.utility, _approximate(problem)
        assert posed is not None
        constraint, eta = posed
        # A little less than the caps: to leave room for the rounding of rows here costs less than a repair later.
        delta, cap = (c - min(2.0**-50, 2.0**-24 * c) if c < 1 else c for c in (constraint.delta, eta))
        found = level_program(utility, constraint.epsilon, delta, cap)

        def prove(posed: Problem, channel: Channel) -> Iterator[Certificate]:
            fields = (posed.whole, posed.constraints, channel, found.rows, found.pairs, found.weights)
            yield LevelDual(*fields) if eta == 1 else LevelVariationDual(*fields, found.spreads)

        matrix = found.columns if utility.pair is None else found.columns[of_classes(problem)]
        count = len(level_columns(utility.size, eta < 1))
        return Candidate(matrix, f"extreme columns of (epsilon, delta)-LDP, {count} in a linear program", prove)


def approximate_only(problem: Problem) -> ApproximateLDP | None:
    """The constraint of a problem whose only one is an `ApproximateLDP` with epsilon and delta above 0; else None."""
    only = problem.constraints[0]
    alone = len(problem.constraints) == 1 and isinstance(only, ApproximateLDP) and not problem.plain
    return only if alone and isinstance(only, ApproximateLDP) else None


def _approximate(problem: Problem) -> tuple[ApproximateLDP, float] | None:
    """The one `ApproximateLDP` of a problem and the cap on total variation, 1 for none; None with other constraints."""
    found = [c for c in problem.constraints if isinstance(c, ApproximateLDP)]
    rest = [c for c in problem.constraints if c not in found]
    if len(found) != 1 or not all(isinstance(c, TotalVariation) for c in rest) or problem.plain or not problem.eta > 0:
        return None
    return found[0], problem.eta
