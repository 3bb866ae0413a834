"""The method that solves the program over the extreme columns of a policy graph, for any column utility."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.candidate import Ask, Candidate, Limit, Method
from ldpopt.design.certificates.base import Certificate
from ldpopt.design.certificates.listed import PolicyDual
from ldpopt.design.columns.extreme import TooManyColumns
from ldpopt.design.columns.policy import PolicyColumns, listable, policy_limits
from ldpopt.design.constraints import LocalDP, TotalVariation
from ldpopt.design.problems.problem import Problem
from ldpopt.design.programs.columns import ColumnProgram, ExcessCaps, with_erasure
from ldpopt.design.utilities.base import ColumnUtility
from ldpopt.enclosures import FLOAT, Enclosure


@dataclass(frozen=True)
class PolicyLP(Method):
    """The program over all extreme columns of a policy graph: exact for column utilities where they are few [KOV14].

    It takes connected graphs without weights that have up to 262,144 such columns. Examples are a grid of 4 by 5 inputs
    and a path of 16, or one of 12 under a cap on total variation. It takes other graphs of up to 8 inputs, and of up to
    14 if they have no more edges than inputs.

    >>> import networkx as nx
    >>> from ldpopt.design import LocalDP, MutualInformation, optimal_channel
    >>> design = optimal_channel(MutualInformation([0.5, 0.3, 0.2]), LocalDP(1.0, graph=nx.path_graph(3)))
    >>> round(design.value, 6), design.certified
    (0.210332, True)
    """

    reference: ClassVar[str] = "[KOV14, Thm 2 and 4]"
    preference: ClassVar[int] = 230

    def refuses(self, problem: Problem) -> str:
        """Extreme columns are enough under LocalDP and TotalVariation, and small graphs have few."""
        utility = problem.utility
        if not isinstance(utility, ColumnUtility):
            return f"{utility.name} is no sum over outputs of functions of the column"
        if problem.plain or not all(isinstance(c, LocalDP | TotalVariation) for c in problem.constraints):
            return "its columns are those of LocalDP along a graph, with TotalVariation or without"
        if not listable(policy_limits(problem.constraints, problem.labels)):
            return Limit("more than 8 inputs with uneven limits have too many extreme columns")
        try:
            columns = _columns(problem)
        except TooManyColumns as error:
            return str(error)
        # Columns of positive entries have a finite worth; one with zeros may have an infinite worth.
        silent = np.isneginf(columns.steps).any(axis=1)
        if silent.any():
            base, rise = _floats(columns)
            if not np.isfinite(np.asarray(utility.enclosed_columns(base[silent], rise[:, silent]).upper)).all():
                return f"an extreme column is worth no finite number of {utility.name}"
        return ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The channel of the optimal weights."""
        columns, eta = _columns(problem), _cap(problem)
        base, rise = (np.asarray(part.midpoint) for part in _floats(columns))
        # A little less than eta: to leave room for the rounding of rows here costs less than a repair later.
        cap = ExcessCaps.variation(len(rise), eta - min(2.0**-50, 2.0**-24 * eta) if eta < 1 else eta)
        found = ColumnProgram.of(problem.utility, base, rise, cap).solve(problem.deadline)

        def prove(posed: Problem, channel: Channel) -> Iterator[Certificate]:
            yield PolicyDual(posed.whole, posed.constraints, channel, found.rows, found.pairs(), found.criteria)

        matrix = with_erasure((base + rise)[:, found.used] * found.weights)
        return Candidate(matrix, f"{columns.name} in a linear program", prove)


def _columns(problem: Problem) -> PolicyColumns:
    return PolicyColumns(policy_limits(problem.constraints, problem.labels), _cap(problem) < 1)


def _floats(columns: PolicyColumns) -> tuple[Enclosure, Enclosure]:
    base, rise = columns.enclosed(FLOAT)
    return base, rise.T


def _cap(problem: Problem) -> float:
    return min((c.eta for c in problem.constraints if isinstance(c, TotalVariation)), default=1.0)
