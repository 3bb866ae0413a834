"""Constraints on the outputs: which are impossible, and when the optimum without them meets them anyway."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.candidate import Ask, Candidate
from ldpopt.design.certificates.base import Certificate
from ldpopt.design.certificates.relaxed import Relaxed
from ldpopt.design.constraints.base import outputs_of, within
from ldpopt.design.problems.problem import Problem
from ldpopt.errors import InvalidInput, SolverError

# The most inputs for which the optimum without constraints on the outputs is tried under other than plain ones.
SMALL = 16


def possible(problem: Problem) -> None:
    """Raise `InvalidInput` for constraints that no channel can meet under pure LDP."""
    k = problem.utility.size
    shape = (k, outputs_of(problem.given, k))
    allowed = np.logical_and.reduce([constraint.allowed(shape) for constraint in problem.given])
    if problem.epsilon < np.inf and not allowed.all(axis=0).any():
        raise InvalidInput(
            "constraints: expected an output that every input allows, because pure LDP makes what is impossible under "
            "one input impossible under all [GI, Def 6], got a mask without one"
        )


def without_budget(problem: Problem, ask: Ask) -> Candidate | None:
    """The optimum without constraints on the outputs if it meets them; else None. It is tried where it is found fast.

    Under other constraints than pure LDP and total variation it is not tried for one or two outputs, which are rarely
    enough, nor for more than `SMALL` inputs.
    """
    free = problem.free
    if free is None or any(c.labelled for c in problem.given):
        return None
    k = len(problem.inputs)
    few = outputs_of(problem.given, problem.utility.size) < 3
    if not free.plain and (few or k > SMALL or problem.others or problem.utility.pair is None):
        return None
    with suppress(SolverError, InvalidInput):
        design = ask(problem.whole, free.constraints)
        if within(design.channel, problem.given):

            def prove(posed: Problem, channel: Channel) -> Iterator[Certificate]:
                if design.certificate is not None:
                    yield Relaxed(posed.whole, posed.constraints, channel, design.certificate)

            matrix = design.channel.matrix
            if problem.utility.pair is not None and problem.symmetric:
                matrix = matrix[np.unique(problem.reduction.classes, return_index=True)[1]]
            return Candidate(matrix, design.method, prove, reference=design.reference)
    return None
