"""Caps on divergences between rows together with constraints that the interior-point program cannot hold.

The optimum under one kind of constraint alone is often the optimum under both. Where it is not, the programs of
`Exchange` hold both kinds. Where their solvers fail, there is a local search.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.candidate import Ask, Candidate
from ldpopt.design.certificates.base import Certificate
from ldpopt.design.certificates.relaxed import Relaxed
from ldpopt.design.constraints import ColumnConstraint, ConcentratedLDP, Constraint
from ldpopt.design.constraints.repair import private, repair
from ldpopt.design.methods.clean import cleanest
from ldpopt.design.methods.exchange import Exchange, Labels
from ldpopt.design.methods.local_search import LocalSearch
from ldpopt.design.problems.problem import Problem
from ldpopt.design.programs.gains import value_of
from ldpopt.distribution import Array
from ldpopt.errors import InvalidInput, SolverError

NEARLY = 1e-7
"""An easier problem's optimum is taken if its repair for the whole problem costs at most this share."""


def beside(problem: Problem, ask: Ask) -> Candidate:
    """A channel under both kinds: the optimum under one kind if it is that of both, else a program of both."""
    easier = _under_one_kind(problem, ask)
    if easier is not None and easier[1] >= 1 - NEARLY:
        return easier[0]
    try:
        found = _of_both(problem, ask)
        if easier is None or _value(problem, found.matrix) >= _value(problem, easier[0].matrix):
            return found
    except SolverError:
        # Where cone programs fail, a local search still gives a channel, and the gap tells how good it is.
        if easier is None:
            found = LocalSearch(3, outputs=3).find(problem, ask)
            return replace(found, matrix=private(found.matrix, problem.constraints, problem.inputs))
    return easier[0]


def _value(problem: Problem, matrix: Array) -> float:
    return value_of(problem.utility.f, problem.reduction.pair, matrix)


def _under_one_kind(problem: Problem, ask: Ask) -> tuple[Candidate, float] | None:
    """The optimum under one kind alone, repaired for the other kind, and the share of its value that is left.

    An optimum that needs no repair is that of the whole problem, and its proof holds for the whole problem.
    """
    inputs = range(len(problem.reduction.pair))
    kinds: tuple[list[Constraint], list[Constraint]] = ([], [])
    for constraint in problem.constraints:
        if not isinstance(constraint, ColumnConstraint):
            return None
        kinds[any(term.conic for term in constraint.columns(inputs))].append(constraint)
    best: tuple[Candidate, float] | None = None
    for kind in kinds:
        if not kind:
            continue
        with suppress(SolverError, InvalidInput):
            design = ask(problem.whole, kind)
            rows = [int(np.argmax(problem.reduction.classes == x)) for x in inputs]
            matrix = private(design.channel.matrix[rows], problem.constraints, problem.inputs)
            mended = repair(matrix, problem.constraints, problem.inputs)
            share = _value(problem, mended) / design.value if design.value > 0 else 0.0
            if best is None or _value(problem, mended) > _value(problem, best[0].matrix):
                certificate = design.certificate

                def prove(posed: Problem, channel: Channel, known: Any = certificate) -> Iterator[Certificate]:
                    if known is not None:
                        yield Relaxed(posed.whole, posed.constraints, channel, known)

                best = Candidate(mended, design.method, prove), share
            if share >= 1 - NEARLY:
                break
    return best


def _of_both(problem: Problem, ask: Ask) -> Candidate:
    """The programs of `Exchange`, repeated for the orders that their channels exceed."""
    while True:
        found = Exchange().find(problem, ask)
        tighter = problem.tightened(found.matrix)
        if tighter is None or problem.deadline.over():
            break
        problem = tighter
    matrix = cleanest(problem, found.matrix, Labels.of(problem).ascend)
    return Candidate(
        private(matrix, problem.constraints, problem.inputs),
        found.method + orders(problem),
        found.prove,
        problem=problem,
    )


def orders(problem: Problem) -> str:
    """The orders that were posed for concentrated LDP, as words to append to a method's name."""
    orders = [f"{a:.4g}" for c in problem.constraints if isinstance(c, ConcentratedLDP) for a in c.orders]
    return f", orders {', '.join(orders)}" if orders else ""
