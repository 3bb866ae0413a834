"""The best channel over a denominator for few answers: a mixed-integer program over columns of integers.

A sum over outputs is linear in how often each column is used. A sum of variances is not. But by the equivalence theorem
[KW] its reciprocal is the least of sum_y w_y |K u_y|^2 / N(K)^2 over all K, and each of these is a sum over outputs,
called a cut. The program gets one cut after another, at the channels that it finds, until such a channel is as good as
the program's bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.candidate import Ask, Candidate, Limit, Method
from ldpopt.design.certificates.base import Certificate
from ldpopt.design.columns.integer import Integers, integer_columns
from ldpopt.design.design import Design
from ldpopt.design.methods.integer_moves import Moves, worth_of
from ldpopt.design.methods.integer_search import Task, cost, proofs, refusal, unrestricted
from ldpopt.design.methods.rounded import roundings
from ldpopt.design.problems.problem import Problem
from ldpopt.design.programs.integer import IntegerColumnsProgram, as_matrix
from ldpopt.design.utilities.base import ColumnUtility, columns_of
from ldpopt.design.utilities.criterion import scores
from ldpopt.distribution import Array
from ldpopt.errors import SolverError

MOST = 4
"""The most inputs; with more, the columns are too many for a search, and `Rounded` does better."""

CUTS = 8
"""The most cuts at weights that need not be integers, which cost one linear program each."""

SEARCHES = 4
"""The most searches for integer weights, each with all cuts so far."""

CLOSE = 1e-5
"""The relative gap to the solver's bound at which no further cut is made."""


@dataclass(frozen=True)
class IntegerProgram(Method):
    """A mixed-integer program over columns of integers [KOV14, Thm 2], for up to 4 inputs.

    >>> from ldpopt import Denominator, Divergence, LocalDP, optimal_channel
    >>> from ldpopt.divergences import KL
    >>> u = Divergence(KL, [0.7, 0.3], [0.4, 0.6])
    >>> made = optimal_channel(u, [LocalDP(1.0), Denominator(6)], method=IntegerProgram())
    >>> (6 * made.channel.matrix).round(9).tolist()
    [[4.0, 2.0], [2.0, 4.0]]
    """

    reference: ClassVar[str] = "[KOV14]"
    preference: ClassVar[int] = 10
    integral: ClassVar[bool] = True

    def refuses(self, problem: Problem) -> str:
        """It needs a denominator, few inputs, and a sum over outputs or a sum of variances."""
        if why := refusal(problem):
            return why
        if len(problem.inputs) > MOST:
            return Limit(f"{len(problem.inputs)} inputs have too many columns of integers (at most {MOST})")
        if not isinstance(problem.utility, ColumnUtility) and not _reciprocal(problem.utility):
            return f"{problem.utility.name} is neither a sum over outputs nor a sum of variances at a pilot"
        return ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The channel of the program, improved by moving units between outputs."""
        free = unrestricted(problem, ask)
        for tighter in (False, True):
            task = Task.of(problem, tighter)
            columns, complete = integer_columns(task.inputs, task.ratio, task.total)
            program = IntegerColumnsProgram(columns, task.total, task.cap)
            weights, ended = _searched(task, program, free)
            if task.measured(weights):
                break
        else:
            raise SolverError("integer columns: the floats of what was found exceed the constraints")
        listed = "all" if complete else "some of the"
        note = "" if complete and ended else "the search was not exhaustive: a better channel may exist"
        told = cost(free, task.value(weights))

        def prove(posed: Problem, channel: Channel) -> Iterator[Certificate]:
            return proofs(free, posed, channel)

        method = f"mixed-integer program over {listed} {columns.shape[1]} columns of integers"
        return Candidate(
            as_matrix(weights, task.total), method, prove, note="; ".join(one for one in (told, note) if one),
            shortfall="the bound is that of channels without a denominator",
        )  # fmt: skip


def _searched(task: Task, program: IntegerColumnsProgram, free: Design | None) -> tuple[Integers, bool]:
    """The best weights, and whether the solver says that its columns allow no better ones."""
    rounded = roundings(task, free)
    worth, deadline = worth_of(task), task.problem.deadline
    assert worth is not None
    moves = Moves(task, worth)
    if deadline.over():
        return rounded, False
    if isinstance(task.utility, ColumnUtility):
        weights, _, ended = program.best(columns_of(task.on_rows, program.columns.astype(np.float64)))
        return max((rounded, moves.best(weights, 0)), key=lambda one: (task.value(one), -one.shape[1])), ended
    best, ended = rounded, False
    away = None if free is None else free.channel.matrix
    cuts = [_cut(task.utility, _mixed(task, best, away), program.columns)]
    if away is not None:
        cuts.append(_cut(task.utility, away, program.columns))
    for _ in deadline.inner.rounds(range(CUTS)):  # cheap ones, at weights that need not be whole
        cuts.append(_cut(task.utility, _mixed(task, program.relaxed(np.array(cuts)), away), program.columns))
    for _ in deadline.rounds(range(SEARCHES)):
        weights, bound, ended = program.best(np.array(cuts))
        if (found := moves.climb(weights)) is not None and task.value(found) > task.value(best):
            best = found
        # The solver's bound is on D divided by the error.
        ended = ended and -task.value(best) * bound <= (1 + CLOSE) * task.total
        if ended:
            break
        cuts.append(_cut(task.utility, _mixed(task, weights, away), program.columns))
    return best, ended


def _mixed(task: Task, weights: Array | Integers, away: Array | None) -> Array:
    """The channel of the weights, mixed with a little of another where it does not tell all answers apart."""
    rows = np.asarray(weights / float(task.total))
    scored = scores(rows, np.asarray(task.utility.prior))
    values = np.linalg.svd(scored, compute_uv=False)
    if away is None or values[-1] > 0.05 * values[0]:
        return rows
    return np.hstack([0.8 * rows, 0.2 * away])


def _reciprocal(utility: Any) -> bool:
    """Whether a utility is a sum of variances at a pilot, without a neighbourhood."""
    criterion = getattr(utility, "criterion", None)
    return bool(getattr(criterion, "additive", False)) and getattr(utility, "neighbourhood", None) is None


def _cut(utility: Any, matrix: Array, columns: Integers) -> Array:
    """(n,) the terms |K u|^2 of columns of integers for the best kernel K of a channel, over the square of N(K)."""
    prior = np.asarray(utility.prior)
    scored = scores(matrix, prior)
    loadings = utility.criterion.influence(scored).loadings
    kernel = loadings @ np.linalg.pinv(scored, rcond=1e-10)
    given = columns.astype(np.float64)
    earned = ((kernel @ (given[:-1] - given[-1])) ** 2).sum(axis=0) / (prior @ given)
    return np.asarray(earned / float((loadings**2).sum()) ** 2)
