"""Exchange over ratio intervals for divergences between rows, by interior-point methods made for them.

The program is that of `programs.labels`: the best channel with one output for each of a few likelihood ratios, whose
gain is the tangent of the utility there. `smooth_program` solves it with one price for each pair of inputs, to about
1e-9, however many pairs bind at once. Its prices are then tried at all ratios. On each interval the chord lies above
the utility, and `best_columns` finds what columns gain beyond the prices. Where they gain, their ratios join; where
only the chord gains, the interval is cut. When neither happens any more, the prices are the certificate as they are.

Beside constraints that the interior-point program cannot hold, the optimum under one kind of constraint alone is often
the optimum under both. Where it is not, the programs of `Exchange` hold both kinds. Where their solvers fail, there is
a local search.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.candidate import Ask, Candidate, Method
from ldpopt.design.certificates.base import Certificate
from ldpopt.design.certificates.intervals import IntervalDual
from ldpopt.design.certificates.relaxed import Relaxed
from ldpopt.design.constraints import ColumnConstraint, ConcentratedLDP, Constraint
from ldpopt.design.constraints.repair import private, repair, stochastic
from ldpopt.design.constraints.terms import ByKind, Term
from ldpopt.design.methods.clean import cleanest, merge
from ldpopt.design.methods.endless import EndlessExchange, endless
from ldpopt.design.methods.exchange import Exchange, Labels
from ldpopt.design.methods.local_search import LocalSearch
from ldpopt.design.methods.refusals import too_many_pairs
from ldpopt.design.problems.problem import Problem, check_rounds
from ldpopt.design.programs.knots import far_from, first_labels, joined_knots
from ldpopt.design.programs.labels import excess_at, posteriors, tangent_gains, tangents_at, value_of
from ldpopt.design.programs.prices import LabelPrices, tried_everywhere
from ldpopt.design.programs.row_pairs import served
from ldpopt.design.programs.smooth import CLOSE, PairsPriced, smooth_program
from ldpopt.distribution import Array
from ldpopt.enclosures import FLOAT
from ldpopt.errors import InvalidInput, SolverError

# An easier problem's optimum is taken if its repair for the whole problem costs at most this share.
MAX_REPAIR_LOSS = 1e-7


def beside(problem: Problem, ask: Ask) -> Candidate:
    """A channel under both kinds: the optimum under one kind if it is that of both, else a program of both."""
    easier = _under_one_kind(problem, ask)
    if easier is not None and easier[1] >= 1 - MAX_REPAIR_LOSS:
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
            if share >= 1 - MAX_REPAIR_LOSS:
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


ROUNDS = 25
ACCURACY = 5e-8
GRID = 25
MIN_GAIN = 1e-9  # The search ends with a step that gains a smaller share than this
MIN_TV_BOUND = 0.01  # Other constraints that keep rows closer than this are left to programs in units of their own
MAX_OLD_LABELS = 6  # The most labels of a program that stay in the next one
MAX_NEW_ORDERS = 3  # The most orders that are added at a time
MIN_PAID = 1e-6  # An order stays while its prices add up to more than this share of the optimum
MAX_STEPS = 10  # The most steps of a search from a channel with fewer outputs
IDLE = 1e-6  # Prices below this share of the accuracy, and pairs of them, are left out of a proof


@dataclass(frozen=True)
class TangentExchange(Method):
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
    reference: ClassVar[str] = "[HK]"
    preference: ClassVar[int] = 200

    def __post_init__(self) -> None:
        check_rounds(self.rounds, ACCURACY if self.accuracy is None else self.accuracy)

    def refuses(self, problem: Problem) -> str:
        """It needs two hypotheses, free outputs, and a cap on divergences between rows."""
        if problem.utility.pair is None:
            return f"it goes by the likelihood ratio of two hypotheses, and {problem.utility.name} has none, or several"
        if problem.given:
            return "constraints fix the outputs, which it chooses by likelihood ratio"
        if why := too_many_pairs(problem, len(problem.reduction.pair)):
            return why
        if not any(term.conic for term in problem.terms):
            return "no constraint is a cap on a divergence between rows"
        return ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The best channel of the programs, after orders that it exceeds were added."""
        if not applies(problem) or len(problem.reduction.pair) < 2:
            return beside(problem, ask)
        exchange: _Exchange | EndlessExchange = EndlessExchange(problem) if endless(problem) else _Exchange(problem)
        rounds = exchange.run(self.rounds, self.accuracy or ACCURACY)
        how = f"exchange over {len(exchange.knots) - 1} ratio intervals in {rounds} rounds" + orders(exchange.problem)
        proof = exchange.proof
        matrix = private(cleanest(problem, exchange.champion, exchange.better), problem.constraints, problem.inputs)
        if proof is None:
            return Candidate(matrix, how, shortfall=exchange.why)

        def prove(posed: Problem, channel: Channel) -> Iterator[Certificate]:
            yield proof.of(posed.whole, posed.constraints, channel)

        return Candidate(matrix, how, prove)


def applies(problem: Problem) -> bool:
    """Whether the interior-point programs hold every constraint; those other than moments must not be too tight."""
    if not all(isinstance(constraint, ColumnConstraint) for constraint in problem.constraints):
        return False
    return served(problem.terms) and all(term.conic or term.tv_bound >= MIN_TV_BOUND for term in problem.terms)


class _Exchange:
    """The state: the orders posed so far, the labels and intervals, the best channel, and the best bound."""

    def __init__(self, problem: Problem) -> None:
        labels = Labels.of(problem)
        self.f, self.pair = labels.f, labels.pair
        self.knots = self.grid = labels.first(GRID)
        self.champion = np.ones((len(self.pair), 1))
        self.least, self.proof, self.why = np.inf, None, ""
        self.asked = problem
        self.pose(problem)
        self.tv_bound = max(term.tv_bound for term in self.terms if term.conic)
        self.labels = first_labels(*labels.inner, self.tv_bound)
        self.known: dict[int, Array] = {}

    proof: IntervalDual | None

    def pose(self, problem: Problem) -> None:
        """Take over the problem's orders."""
        self.problem = problem
        self.terms: tuple[Term, ...] = Labels.of(problem).terms

    def value(self, matrix: Array) -> float:
        """The divergence that a matrix keeps."""
        return value_of(self.f, self.pair, matrix)

    def run(self, rounds: int, accuracy: float) -> int:
        """Solve for more and more labels until bound and value meet; returns the number of programs."""
        stale, value = 0, 0.0
        for number in self.asked.deadline.rounds(range(1, rounds + 1)):
            gains = tangents_at(self.f, self.pair, self.labels)
            scale = value if value > 0 else self.guess()
            gap = min((self.least - value) / scale, 1.0)
            solved = smooth_program((gains / scale).each, self.terms, float(np.clip(1e-3 * gap, 1e-10, 1e-6)))
            better = merge(
                _channel(solved), self.f, self.pair, 1e-4 if number == 1 else 1e-6 if self.tv_bound > CLOSE else 1e-5
            )
            better = self.ascend(better, 2)
            met, last = self.meet(better, solved)
            if met is not better:
                # The prices of fewer orders are of little use: those of all orders come with the next program.
                self.champion, self.least, self.proof, value, stale = met, np.inf, None, self.value(met), 0
                self.joined(posteriors(self.pair, met), solved)
                self.prune(last)
                continue
            if self.value(better) > value:
                self.champion, value = better, self.value(better)
            before = self.least
            peaks = self.prove(solved, scale, value, accuracy)
            stale = 0 if self.least - value < 0.9 * (before - value) else stale + 1
            if (
                (np.isfinite(self.least) and self.least - value <= accuracy * self.least)
                or stale >= 3
                or self.least <= 0
            ):
                break
            self.joined(np.concatenate([posteriors(self.pair, self.champion), peaks]), solved)
            self.prune(solved)
        return number

    def meet(self, matrix: Array, solved: PairsPriced) -> tuple[Array, PairsPriced]:
        """A channel that meets further orders, which are added, and its program; the given ones if none is exceeded."""
        for _ in self.asked.deadline.inner.rounds(range(MAX_NEW_ORDERS)):
            tighter = self.problem.tightened(matrix)
            if tighter is None:
                break
            self.pose(tighter)
            gains = tangent_gains(self.f, self.pair, matrix) / (self.value(matrix) or 1.0)
            solved = smooth_program(gains.each, self.terms, 1e-10)
            matrix = merge(_channel(solved), self.f, self.pair, 1e-10)
        return matrix, solved

    def prune(self, solved: PairsPriced) -> None:
        """Drop orders whose prices are nearly zero; they come back where a channel exceeds them."""
        paid = {
            term.order: float((solved.weights[number] * term.cap).sum()) for number, term in ByKind(self.terms).moments
        }
        made = []
        for one in self.problem.constraints:
            if isinstance(one, ConcentratedLDP):
                dear = tuple(order for order in one.orders if paid[order] > MIN_PAID)
                one = replace(one, orders=dear) if dear else one
            made.append(one)
        self.pose(replace(self.problem, constraints=tuple(made)))

    def guess(self) -> float:
        """A guess of the optimum, from the divergence at the labels' ratios."""
        each = excess_at(self.f, self.labels)
        return float(np.median(each[np.isfinite(each) & (each > 0)] if (each > 0).any() else np.ones(1)))

    def joined(self, new: Array, solved: PairsPriced) -> None:
        """Set the labels to the new ones and the old ones that are nearly worth their price."""
        old = np.flatnonzero(far_from(self.labels, new))
        # Where rows are close, labels are nearly alike, and a program with many of them has few digits.
        near = old[np.argsort(solved.slack[old], kind="stable")[: MAX_OLD_LABELS if self.tv_bound > CLOSE else 1]]
        self.labels = np.unique(np.concatenate([new, self.labels[near]]))

    def ascend(self, matrix: Array, steps: int) -> Array:
        """A channel of no smaller utility: the best for the tangents at the outputs' own ratios, repeated."""
        value = self.value(matrix)
        for _ in self.asked.deadline.inner.rounds(range(steps)):
            gains = tangent_gains(self.f, self.pair, matrix) / (value if value > 0 else 1.0)
            new = _channel(smooth_program(gains.each, self.terms, 1e-10))
            reached = self.value(new)
            if reached <= value * (1 + MIN_GAIN):
                break
            matrix, value = merge(new, self.f, self.pair, 1e-10), reached
        return matrix

    def better(self, matrix: Array) -> Array:
        """`ascend` for a channel of merged outputs, computed once for each number of outputs."""
        size = matrix.shape[1]
        if size == self.champion.shape[1]:
            return self.champion
        if size not in self.known:
            self.known[size] = self.ascend(matrix, MAX_STEPS)
        return self.known[size]

    def prove(self, solved: PairsPriced, scale: float, value: float, accuracy: float) -> Array:
        """Keep a program's certificate if it is the best so far; the posteriors where columns gain most."""
        least = accuracy / 4
        prices = LabelPrices.of(self.terms, solved, IDLE * least)
        first = joined_knots(posteriors(self.pair, self.champion), self.grid)
        tried = tried_everywhere(self.f, self.pair, prices, first, scale, value / scale, least)
        self.knots = tried.knots
        problem = self.problem
        rows, multipliers = tried.multipliers(prices, scale)
        fields = (problem.whole, self.asked.constraints, None, rows, multipliers)
        classes = problem.reduction.classes if problem.symmetric else None
        proof = IntervalDual(*fields, classes, self.knots, posed=problem.constraints)
        bound = proof.bound_in(FLOAT)
        if bound.value < self.least:
            self.proof, self.least = proof, bound.value
        self.why = bound.why
        return posteriors(self.pair, tried.columns[tried.peaks(least)].T)


def _channel(solved: PairsPriced) -> Array:
    """The columns as a matrix (k, n) whose rows sum to one."""
    return stochastic(solved.columns.T)
