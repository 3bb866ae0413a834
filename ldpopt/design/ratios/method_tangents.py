"""Two hypotheses under divergences between rows -> the best channel, by the interior-point methods of `row_exchange`.

Beside constraints that these cannot hold, the optimum under one kind of constraint alone is often that of both. Where
it is not, the programs of `Exchange` hold both kinds. Where their solvers fail, there is a local search.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from ldpopt.design.candidate import Ask, Candidate, Method, needs_ratios, proved_by, too_many_pairs
from ldpopt.design.clean import cleanest
from ldpopt.design.constraints import ColumnConstraint, ConcentratedLDP, Constraint
from ldpopt.design.constraints.repair import private, repair
from ldpopt.design.kernel.proof import Relaxed
from ldpopt.design.outputs.method_search import LocalSearch
from ldpopt.design.problems.pair_values import value_of
from ldpopt.design.problems.problem import Problem
from ldpopt.design.ratios.method import Exchange, Labels
from ldpopt.design.ratios.program_exchange import row_exchange
from ldpopt.errors import InvalidInput, SolverError
from ldpopt.numbers.tolerances import REPAIR_LOSS, ROW_GAP
from ldpopt.values.distribution import Array, optional, positive, positive_integer


def beside(problem: Problem, ask: Ask) -> Candidate:
    """A channel under both kinds: the optimum under one kind if it is that of both, else a program of both."""
    easier = _under_one_kind(problem, ask)
    if easier is not None and easier[1] >= 1 - REPAIR_LOSS:
        return easier[0]
    try:
        candidate = _of_both(problem, ask)
        if easier is None or _value(problem, candidate.matrix) >= _value(problem, easier[0].matrix):
            return candidate
    except SolverError:
        if easier is None:  # a local search still gives a channel, and the gap tells how good it is
            candidate = LocalSearch(3, outputs=3).find(problem, ask)
            return replace(candidate, matrix=private(candidate.matrix, problem.constraints, problem.inputs))
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
                proof = design.certificate
                prove = None if proof is None else proved_by(Relaxed, proof)
                best = Candidate(mended, design.method, prove), share
            if share >= 1 - REPAIR_LOSS:
                break
    return best


def _of_both(problem: Problem, ask: Ask) -> Candidate:
    """The programs of `Exchange`, repeated for the orders that their channels exceed."""
    while True:
        candidate = Exchange().find(problem, ask)
        tighter = problem.tightened(candidate.matrix)
        if tighter is None or problem.deadline.over():
            break
        problem = tighter
    matrix = cleanest(problem, candidate.matrix, Labels.of(problem).ascend)
    return Candidate(
        private(matrix, problem.constraints, problem.inputs),
        candidate.method + orders(problem),
        candidate.prove,
        problem=problem,
        note=candidate.note,
    )


def orders(problem: Problem) -> str:
    """The orders that were posed for concentrated LDP, as words to append to a method's name."""
    orders = [f"{a:.4g}" for c in problem.constraints if isinstance(c, ConcentratedLDP) for a in c.orders]
    return f", orders {', '.join(orders)}" if orders else ""


ROUNDS = 25
MIN_TV_BOUND = 0.01  # Other constraints that keep rows closer than this are left to programs in units of their own


@dataclass(frozen=True)
class TangentExchange(
    Method,
    rounds=positive_integer,
    accuracy=optional(positive),
    reference="[HK]",
    needs=(needs_ratios,),
    preference=200,
):
    """The ratio-labelled program for divergences between rows: `RenyiLDP` and `ConcentratedLDP` [BS, Def 1.1].

    It solves a convex program with one report for each of a few likelihood ratios, and adds ratios until its bound and
    its channel agree. There may also be pure and approximate LDP, total variation and trade-off curves; with other
    constraints it uses the programs of `Exchange`, repeated for the orders that their channels exceed.

    rounds : the most programs to solve. accuracy : the relative gap at which to stop, by default 5e-8.

    >>> from ldpopt.design import ConcentratedLDP, Divergence, optimal_channel
    >>> from ldpopt.divergences import KL
    >>> design = optimal_channel(Divergence(KL, [0.8, 0.2], [0.3, 0.7]), ConcentratedLDP(0.5), method=TangentExchange())
    >>> design.guarantees[0].value <= 0.5, design.relative_gap < 1e-6
    (True, True)
    """

    rounds: int = ROUNDS
    accuracy: float | None = None

    def refuses(self, problem: Problem) -> str:
        """It needs two hypotheses, free outputs, and a cap on divergences between rows."""
        if why := too_many_pairs(problem, len(problem.reduction.pair)):
            return why
        conic = any(term.conic for term in problem.terms)
        return "" if conic else "no constraint is a cap on a divergence between rows"

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The best channel of the programs, after orders that it exceeds were added."""
        if not applies(problem) or len(problem.reduction.pair) < 2:
            return beside(problem, ask)
        exchange, rounds = row_exchange(problem, self.rounds, self.accuracy or ROW_GAP)
        how = f"exchange over {len(exchange.knots) - 1} ratio intervals in {rounds} rounds" + orders(exchange.problem)
        proof = exchange.proof
        matrix = private(cleanest(problem, exchange.champion, exchange.better), problem.constraints, problem.inputs)
        if proof is None:
            return Candidate(matrix, how, shortfall=exchange.why)
        return Candidate(matrix, how, lambda posed, channel: (proof.of(posed.whole, posed.constraints, channel),))


def applies(problem: Problem) -> bool:
    """Whether the interior-point programs hold every constraint: not empty inside and, but for moments, not tight."""
    if not all(isinstance(constraint, ColumnConstraint) for constraint in problem.constraints):
        return False
    return all(np.all(term.cap > 0) and (term.conic or term.tv_bound >= MIN_TV_BOUND) for term in problem.terms)
