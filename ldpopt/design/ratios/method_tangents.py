"""Two hypotheses under divergences between rows -> the best channel, by the interior-point methods of `row_exchange`.

Beside constraints that these cannot hold, the optimum under one kind of constraint alone is often that of both. Where
it is not, the programs of `Exchange` hold both kinds. Where their solvers fail, there is a local search.

Caps on divergences between rows -> the best channel and the numbers of its proof, in rounds over ratio intervals.

The program is that of `ratios.program`: the best channel with one output for each of a few likelihood ratios.

`FiniteExchange` is for utilities that are finite at both ends of the ratios. The gain of a label is the tangent of the
utility there. `smooth_program` solves it with one price for each pair of inputs, to about 1e-9, however many pairs bind
at once. Its prices are then tried at all ratios. On each interval the chord lies above the utility, and `best_columns`
finds what columns gain beyond the prices. Where they gain, their ratios join; where only the chord gains, the interval
is cut. When neither happens any more, the prices are the certificate as they are.

`EndlessExchange` is for moments alone where ratios have no finite end, and the utility is infinite there. The gain on
every interval is the chord of the utility; beyond the last cut towards the infinite end it is the tangent there, and
moments pay for the rest (`ratios.proof_chords`). The program's prices are the certificate as they are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ldpopt.design.arrange import cleanest, merge
from ldpopt.design.candidate import Ask, Candidate, Method, needs_ratios, proved_by, too_many_pairs
from ldpopt.design.constraints import ColumnConstraint, ConcentratedLDP, Constraint
from ldpopt.design.constraints.repair import private, repair, stochastic
from ldpopt.design.constraints.terms import ByKind
from ldpopt.design.kernel.proof import Relaxed
from ldpopt.design.outputs.method_search import LocalSearch
from ldpopt.design.problems.problem import Problem
from ldpopt.design.problems.reduction import excess_at, posteriors, value_of
from ldpopt.design.ratios.method import GRID, Exchange, Labels
from ldpopt.design.ratios.program import (
    LabelGains,
    chord_gains,
    far_from,
    first_labels,
    graded_knots,
    joined_knots,
    parted_knots,
    tangent_gains,
    tangents_at,
)
from ldpopt.design.ratios.program_barrier import PairsPriced
from ldpopt.design.ratios.program_smooth import (
    CLOSE_BOUND,
    LabelPrices,
    moment_program,
    smooth_program,
    tangent_planes,
    tried_everywhere,
)
from ldpopt.design.ratios.proof import IntervalDual, TermMultiplier
from ldpopt.errors import InvalidInput, SolverError
from ldpopt.numbers.enclosures import FLOAT
from ldpopt.numbers.tolerances import CERTIFIED_GAP, IDLE_PRICE, ORDER_PAID, REPAIR_LOSS, ROW_GAP
from ldpopt.values.distribution import Array, Index, optional, positive, positive_integer


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


MAX_STALE = 5  # The most rounds in turn that bring bound and value no nearer
MAX_STEPS = 10  # The most steps of a search from a channel with fewer outputs
MAX_OLD_LABELS = 6  # The most labels of a program that stay in the next one
MAX_NEW_ORDERS = 3  # The most orders that are added at a time
SHARE = 0.1  # Intervals are cut where the chord is above the utility by more than this share of the gap
# Terms of up to this many pairs are posed whole; of larger ones, and of orders added later, pairs that bind join.
MAX_WHOLE = 300


def row_exchange(problem: Problem, rounds: int, accuracy: float) -> tuple[RowExchange, int]:
    """The exchange that suits a problem, after its rounds, and their number.

    It is the one for an infinite end of the ratios under moments alone, or for the others. Where the first ends without
    a certificate, as under small caps, the second is run too, and the one whose bound is nearer is taken.
    """
    labels = Labels.of(problem)
    infinite = not np.isfinite(excess_at(labels.f, np.array([labels.low, labels.high]))).all()
    endless = infinite and all(term.conic for term in labels.terms)
    exchange = (EndlessExchange if endless else FiniteExchange)(problem)
    number = exchange.run(rounds, accuracy)
    if endless and exchange.gap > CERTIFIED_GAP and not problem.deadline.over():
        with suppress(SolverError):
            other = FiniteExchange(problem)
            more = other.run(rounds, accuracy)
            if other.gap < exchange.gap:
                return other, number + more
    return exchange, number


class RowExchange(ABC):
    """The state: the orders posed so far, the intervals, the best channel, and the best bound with its proof."""

    def __init__(self, problem: Problem) -> None:
        self.range = Labels.of(problem)
        self.f, self.pair, self.asked = self.range.f, self.range.pair, problem
        self.knots = self.grid = self.range.first(GRID)
        self.champion, self.value, self.stale = np.ones((len(self.pair), 1)), 0.0, 0
        self.least, self.why, self.settled = np.inf, "", True  # settled: the champion exceeds no order
        self.proof: IntervalDual | None = None
        self.known: dict[int, Array] = {}
        self.pose(problem)

    def pose(self, problem: Problem) -> None:
        """Take over the problem's orders."""
        self.problem, self.terms = problem, problem.terms

    @property
    def gap(self) -> float:
        """By which share of the bound the value is below it; 1 without a bound."""
        return 1 - self.value / self.least if self.least > 0 else 0.0

    @abstractmethod
    def round(self, number: int, accuracy: float) -> None:
        """Solve a program, improve channel and bound by it, and prepare the next one."""

    @abstractmethod
    def best(self, gains: LabelGains) -> Array:
        """The best channel for linear gains."""

    def run(self, rounds: int, accuracy: float) -> int:
        """Solve more and more programs until bound and value meet; returns their number."""
        for number in self.asked.deadline.rounds(range(1, rounds + 1)):
            self.round(number, accuracy)
            met = self.settled and self.least * (1 - accuracy) <= self.value
            if met or self.stale >= MAX_STALE or self.least <= 0:
                break
        return number

    def improve(self, matrix: Array) -> None:
        """Take over a channel if it is better."""
        if (value := self.range.value(matrix)) > self.value:
            self.champion, self.value = matrix, value

    def ascend(self, matrix: Array, steps: int, anew: bool = False) -> Array:
        """The last channel of `Labels.climb`, or the given one."""
        for better in self.range.climb(matrix, self.best, steps, 1e-10, anew):
            matrix = better
        return matrix

    def better(self, matrix: Array) -> Array:
        """`ascend` for a channel of merged outputs, computed once for each number of outputs."""
        size = matrix.shape[1]
        if size == self.champion.shape[1]:
            return self.champion
        if size not in self.known:
            self.known[size] = self.ascend(matrix, MAX_STEPS)
        return self.known[size]

    def prove(self, rows: Array, multipliers: Sequence[TermMultiplier]) -> None:
        """Keep the certificate of these numbers if it is the best so far."""
        problem, before = self.problem, self.least
        fields = (problem.whole, self.asked.constraints, None, rows, tuple(multipliers))
        classes = problem.reduction.classes if problem.symmetric else None
        proof = IntervalDual(*fields, classes, self.knots, posed=problem.constraints)
        bound = proof.bound_in(FLOAT)
        self.why = bound.why
        if bound.value < self.least:
            self.proof, self.least = proof, bound.value
        self.stale = 0 if self.least - self.value < 0.9 * (before - self.value) else self.stale + 1


class FiniteExchange(RowExchange):
    """The exchange for utilities that are finite at both ends, whose labels are single ratios."""

    last: PairsPriced | None = None

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.tv_bound = max(term.tv_bound for term in self.terms if term.conic)
        self.labels = first_labels(*self.range.inner, self.tv_bound)

    def best(self, gains: LabelGains) -> Array:
        """The best channel for linear gains."""
        return channel_of(smooth_program(gains.each, self.terms, 1e-10))

    def round(self, number: int, accuracy: float) -> None:
        """Solve for the labels; add orders that the channel exceeds, and the ratios of the columns that gain."""
        # Not at the end of a round: the last channel is cleaned under all its orders. Nor where one was added: orders
        # that are dropped and wanted again could take turns.
        if self.last is not None and self.settled:
            self.prune(self.last)
        gains = tangents_at(self.f, self.pair, self.labels)
        scale = self.value if self.value > 0 else self.guess()
        gap = min((self.least - self.value) / scale, 1.0)
        solved = smooth_program((gains / scale).each, self.terms, float(np.clip(1e-3 * gap, 1e-10, 1e-6)))
        share = 1e-4 if number == 1 else 1e-6 if self.tv_bound > CLOSE_BOUND else 1e-5
        better = self.ascend(merge(channel_of(solved), self.f, self.pair, share), 2)
        met, last, scale = self.meet(better, solved, scale)
        if met is better and self.settled:
            self.improve(better)
        else:  # the champion was that of fewer orders
            self.champion, self.value = met, self.range.value(met)
        self.settled = met is better
        peaks = self.tried(last, scale, accuracy / 4)
        self.stale *= self.settled
        self.join(np.concatenate([posteriors(self.pair, self.champion), peaks]), solved)
        self.last = last

    def meet(self, matrix: Array, solved: PairsPriced, scale: float) -> tuple[Array, PairsPriced, float]:
        """A channel that meets further orders, which are added, its program and its unit; the given ones if none is
        exceeded.
        """
        for _ in self.asked.deadline.inner.rounds(range(MAX_NEW_ORDERS)):
            tighter = self.problem.tightened(matrix)
            if tighter is None:
                break
            self.pose(tighter)
            scale = self.range.value(matrix) or 1.0
            solved = smooth_program((tangent_gains(self.f, self.pair, matrix) / scale).each, self.terms, 1e-10)
            matrix = merge(channel_of(solved), self.f, self.pair, 1e-10)
        return matrix, solved, scale

    def prune(self, solved: PairsPriced) -> None:
        """Drop orders whose prices are nearly zero; they come back where a channel exceeds them."""
        paid = {
            term.order: float((solved.weights[number] * term.cap).sum()) for number, term in ByKind(self.terms).moments
        }
        constraints: list[Any] = list(self.problem.constraints)
        for index, constraint in enumerate(constraints):
            if hasattr(constraint, "tightened"):
                dear = tuple(order for order in constraint.orders if paid[order] > ORDER_PAID)
                constraints[index] = replace(constraint, orders=dear) if dear else constraint
        self.pose(replace(self.problem, constraints=tuple(constraints)))

    def guess(self) -> float:
        """A guess of the optimum, from the divergence at the labels' ratios."""
        each = excess_at(self.f, self.labels)
        return float(np.median(each[np.isfinite(each) & (each > 0)] if (each > 0).any() else np.ones(1)))

    def join(self, new: Array, solved: PairsPriced) -> None:
        """Set the labels to the new ones and the old ones that are nearly worth their price."""
        old = np.flatnonzero(far_from(self.labels, new))
        # Where rows are close, labels are nearly alike, and a program with many of them has few digits.
        near = old[np.argsort(solved.slack[old], kind="stable")[: MAX_OLD_LABELS if self.tv_bound > CLOSE_BOUND else 1]]
        self.labels = np.unique(np.concatenate([new, self.labels[near]]))

    def tried(self, solved: PairsPriced, scale: float, least: float) -> Array:
        """Prove by a program's prices at all ratios; the posteriors where columns gain most beyond them."""
        prices = LabelPrices.of(self.terms, solved, IDLE_PRICE * least)
        first = joined_knots(posteriors(self.pair, self.champion), self.grid)
        tried = tried_everywhere(self.f, self.pair, prices, first, scale, self.value / scale, least)
        self.knots = tried.knots
        self.prove(*tried.multipliers(prices, scale))
        return posteriors(self.pair, tried.columns[tried.peaks(least)].T)


class EndlessExchange(RowExchange):
    """The exchange for moments where the utility is infinite at an end, whose labels are intervals."""

    active: dict[tuple[float, float], Index]
    last: tuple[PairsPriced, float]

    def pose(self, problem: Problem) -> None:
        """Take over the problem's orders; terms of new orders begin with the pairs that the channel nearly binds."""
        super().pose(problem)
        first = problem is self.asked
        self.active = {} if first else self.active
        for _, term in ByKind(self.terms).moments:
            if (term.order, term.cap) in self.active:
                continue
            if not first:
                pairs = np.flatnonzero(term.excess(self.champion) > -0.2 * term.cap)
            elif len(term) <= MAX_WHOLE:
                pairs = np.arange(len(term))
            else:
                ends = np.argsort(self.pair.posterior)[[0, -1]]
                pairs = np.flatnonzero(np.isin(term.left, ends) | np.isin(term.right, ends))
            self.active[term.order, term.cap] = pairs

    def best(self, gains: LabelGains) -> Array:
        """The best channel for linear gains."""
        return channel_of(self.solve(gains.each)[0])

    def round(self, number: int, accuracy: float) -> None:
        """Cut the intervals that may matter, solve for all, and add the orders that the channel exceeds."""
        if number > 1:
            self.knots = graded_knots(self.cut(*self.last), self.range.contributing(self.champion))
        gains = chord_gains(self.f, self.pair, self.knots)
        # The median, because labels near an end where the utility is steep say nothing about the optimum.
        scale = self.value if self.value > 0 else float(np.median(np.abs(gains.each).max(axis=1))) or 1.0
        gap = (self.least - self.value) / scale
        solved, posed = self.solve((gains / scale).each, min(max(1e-3 * gap, 1e-9), 1e-5))
        share = 1e-4 if number == 1 else 1e-6
        self.improve(self.ascend(merge(channel_of(solved), self.f, self.pair, share), MAX_STEPS))
        self.prove(solved.rows * scale, [
            tangent_planes(number, term.take(pairs), pairs, weights * scale, solved.columns)
            for number, (term, pairs, weights) in enumerate(zip(self.terms, posed, solved.weights, strict=True))
        ])  # fmt: skip
        while (tighter := self.problem.tightened(self.champion)) is not None:
            # The channel meets fewer orders, and is only a start: the next one meets the added orders as well.
            self.pose(tighter)
            self.champion = self.ascend(self.champion, MAX_STEPS, anew=True)
            self.value, self.stale = self.range.value(self.champion), 0
        self.last = solved, scale

    def cut(self, solved: PairsPriced, scale: float) -> Array:
        """The knots, with further ones that quarter the intervals that may still matter.

        An interval matters while its slack is within about the gap, and its chord lies above the utility by a share of
        the gap.
        """
        gap = (self.least - self.value) / scale / len(self.pair)
        middle = (self.knots[1:] + self.knots[:-1]) / 2
        height = excess_at(self.f, self.knots)
        above = (height[1:] + height[:-1]) / 2 - excess_at(self.f, middle)
        above = above * (solved.columns @ (self.pair.p0 + self.pair.p1)) / solved.columns.sum(axis=1) / scale
        # Beyond the last cut towards an end where the utility is infinite, moments pay for the rest.
        closed = np.isfinite(height[1:]) & np.isfinite(height[:-1])
        matter = (solved.slack <= 3 * gap) & (above > SHARE * gap) & closed
        # Where intervals are far from mattering, every other knot is dropped: the chord stays well below its price.
        idle = (solved.slack > 10 * gap) & (solved.slack > 20 * above)
        gone = np.flatnonzero(idle[1:] & idle[:-1]) + 1
        gone = self.knots[gone[gone % 2 == 1]]
        cut = parted_knots(self.knots, np.where(matter, 4, 1))
        return np.asarray(cut[~np.isin(cut, gone) | (cut == 0.5)])

    def solve(self, gains: Array, accuracy: float = 1e-9) -> tuple[PairsPriced, list[Index]]:
        """The solution of the program, and the pairs of every term that were posed; pairs that bind join in rounds."""
        terms = [term for _, term in ByKind(self.terms).moments]
        for _ in range(12):
            posed = [self.active[term.order, term.cap] for term in terms]
            solved = moment_program(gains, [term.take(p) for term, p in zip(terms, posed, strict=True)], accuracy)
            q, grown = channel_of(solved), False
            for term, pairs in zip(terms, posed, strict=True):
                excess = term.excess(q)
                excess[pairs] = -np.inf
                new = np.flatnonzero(excess > 1e-8 * term.cap)
                new = new[np.argsort(-excess[new])][: 4 * len(self.pair)]
                grown |= len(new) > 0
                self.active[term.order, term.cap] = np.union1d(pairs, new).astype(np.intp)
            if not grown:
                break
        return solved, posed


def channel_of(solved: PairsPriced) -> Array:
    """The columns as a matrix (k, n) whose rows sum to one."""
    return stochastic(solved.columns.T)
