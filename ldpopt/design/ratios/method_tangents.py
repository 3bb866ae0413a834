"""Two hypotheses under divergences between rows -> the best channel, by the interior-point methods of `row_exchange`.

Some constraints do not fit these methods. Then the optimum under one type of constraint alone is often that of both
types. If not, the programs of `Exchange` include both types. If their solvers fail, a local search follows.

The methods find the best channel under caps on divergences between rows, and the numbers of its proof, in rounds.

The program is that of `ratios.program`: the best channel with one output for each of a few likelihood ratios.

`FiniteExchange` is for utilities that are finite at both ends of the ratios. The gain of a label is the tangent of the
utility there. `smooth_program` solves it with one price for each pair of inputs, to about 1e-9, however many pairs bind
at once. Its prices are then tried at all ratios. On each interval the chord lies above the utility, and `best_columns`
finds the gains of columns beyond the prices. If columns gain, their ratios are added; if only the chord gains, the
interval is cut. When neither happens, the prices are the certificate.

`EndlessExchange` is for moments alone if ratios have no finite end, and the utility is infinite there. The gain on
every interval is the chord of the utility. Beyond the last cut towards the infinite end it is the tangent there, and
moments pay for the remainder (`ratios.proof_chords`). The program's prices are the certificate.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ldpopt.design.arrange import merge_outputs, simplify
from ldpopt.design.candidate import Ask, Candidate, Method, needs_ratios, proof_by, too_many_pairs
from ldpopt.design.constraints import ColumnConstraint, ConcentratedLDP, Constraint
from ldpopt.design.constraints.repair import mix_until_repairable, repair, stochastic
from ldpopt.design.constraints.terms import ByKind
from ldpopt.design.kernel.proof import Relaxed
from ldpopt.design.outputs.method_search import LocalSearch
from ldpopt.design.problems.problem import Problem
from ldpopt.design.problems.reduction import excess_at, posteriors, value_of
from ldpopt.design.ratios.method import INITIAL_KNOTS, Exchange, LabelSearch
from ldpopt.design.ratios.program import (
    LabelGains,
    chord_gains,
    first_labels,
    graded_knots,
    is_not_adjacent,
    joined_knots,
    subdivided_knots,
    tangent_gains,
    tangents_at,
)
from ldpopt.design.ratios.program_barrier import PairPrices
from ldpopt.design.ratios.program_smooth import (
    CLOSE_ROWS_BOUND,
    LabelPrices,
    moment_program,
    smooth_program,
    tangent_planes,
    try_everywhere,
)
from ldpopt.design.ratios.proof import IntervalDual, TermMultiplier
from ldpopt.errors import InvalidInput, SolverError
from ldpopt.numbers.enclosures import FLOAT
from ldpopt.numbers.tolerances import CERTIFIED_GAP, IDLE_PRICE, ORDER_PAID, REPAIR_LOSS, ROW_GAP
from ldpopt.values.distribution import Array, Index, optional, positive, positive_integer


def solve_mixed_constraints(problem: Problem, ask: Ask) -> Candidate:
    """Find a channel under both types of constraints: the optimum under one type if it is that of both.

    Otherwise, solve a program of both.
    """
    one_type = _solve_under_one_type(problem, ask)
    if one_type is not None and one_type[1] >= 1 - REPAIR_LOSS:
        return one_type[0]
    try:
        candidate = _solve_under_both_types(problem, ask)
        if one_type is None or _value(problem, candidate.matrix) >= _value(problem, one_type[0].matrix):
            return candidate
    except SolverError:
        if one_type is None:  # a local search still gives a channel, and the gap tells how good it is
            candidate = LocalSearch(3, outputs=3).find(problem, ask)
            return replace(
                candidate, matrix=mix_until_repairable(candidate.matrix, problem.constraints, problem.inputs)
            )
    return one_type[0]


def _value(problem: Problem, matrix: Array) -> float:
    return value_of(problem.utility.f, problem.reduction.pair, matrix)


def _solve_under_one_type(problem: Problem, ask: Ask) -> tuple[Candidate, float] | None:
    """Return the optimum under one type of constraint, repaired for the other, and the fraction of its value left.

    An optimum that needs no repair is that of the whole problem, and its proof is valid for the whole problem.
    """
    inputs = range(len(problem.reduction.pair))
    constraints_by_type: tuple[list[Constraint], list[Constraint]] = ([], [])
    for constraint in problem.constraints:
        if not isinstance(constraint, ColumnConstraint):
            return None
        constraints_by_type[any(term.conic for term in constraint.columns(inputs))].append(constraint)
    best: tuple[Candidate, float] | None = None
    for constraints in constraints_by_type:
        if not constraints:
            continue
        with suppress(SolverError, InvalidInput):
            design = ask(problem.original_utility, constraints)
            rows = [int(np.argmax(problem.reduction.classes == x)) for x in inputs]
            matrix = mix_until_repairable(design.channel.matrix[rows], problem.constraints, problem.inputs)
            repaired_matrix = repair(matrix, problem.constraints, problem.inputs)
            value_fraction = _value(problem, repaired_matrix) / design.value if design.value > 0 else 0.0
            if best is None or _value(problem, repaired_matrix) > _value(problem, best[0].matrix):
                proof = design.certificate
                prove = None if proof is None else proof_by(Relaxed, proof)
                best = Candidate(repaired_matrix, design.method, prove), value_fraction
            if value_fraction >= 1 - REPAIR_LOSS:
                break
    return best


def _solve_under_both_types(problem: Problem, ask: Ask) -> Candidate:
    """Solve the programs of `Exchange`, repeated for the orders that their channels exceed."""
    while True:
        candidate = Exchange().find(problem, ask)
        tighter = problem.tighten(candidate.matrix)
        if tighter is None or problem.deadline.over():
            break
        problem = tighter
    matrix = simplify(problem, candidate.matrix, LabelSearch.from_problem(problem).ascend)
    return Candidate(
        mix_until_repairable(matrix, problem.constraints, problem.inputs),
        candidate.method + orders_text(problem),
        candidate.prove,
        problem=problem,
        note=candidate.note,
    )


def orders_text(problem: Problem) -> str:
    """Describe the orders used for concentrated LDP, as words to append to a method's name."""
    orders = [f"{a:.4g}" for c in problem.constraints if isinstance(c, ConcentratedLDP) for a in c.orders]
    return f", orders {', '.join(orders)}" if orders else ""


MAX_ROUNDS = 25
MIN_TV_BOUND = 0.01  # Other constraints that keep rows closer than this need programs in other units


@dataclass(frozen=True)
class TangentExchange(
    Method,
    rounds=positive_integer,
    accuracy=optional(positive),
    reference="[HK]",
    needs=(needs_ratios,),
    preference=200,
):
    """The ratio-labeled program for divergences between rows: `RenyiLDP` and `ConcentratedLDP` [BS, Def 1.1].

    It solves a convex program with one report for each of a few likelihood ratios, and adds ratios until its bound and
    its channel agree. There may also be pure and approximate LDP, total variation and trade-off curves; with other
    constraints it uses the programs of `Exchange`, repeated for the orders that their channels exceed.

    - `rounds` : the largest number of programs to solve.
    - `accuracy` : the relative gap that ends the search, by default 5e-8.

    >>> from ldpopt.design import ConcentratedLDP, Divergence, optimal_channel
    >>> from ldpopt.divergences import KL
    >>> design = optimal_channel(Divergence(KL, [0.8, 0.2], [0.3, 0.7]), ConcentratedLDP(0.5), method=TangentExchange())
    >>> design.guarantees[0].value <= 0.5, design.relative_gap < 1e-6
    (True, True)
    """

    rounds: int = MAX_ROUNDS
    accuracy: float | None = None

    def refuses(self, problem: Problem) -> str:
        """Return why it does not apply: it needs two hypotheses, and a cap on divergences between rows."""
        if reason := too_many_pairs(problem, len(problem.reduction.pair)):
            return reason
        has_cone = any(term.conic for term in problem.terms)
        return "" if has_cone else "no constraint is a cap on a divergence between rows"

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """Find the best channel of the programs, after adding orders that it exceeds."""
        if not is_interior_point_problem(problem) or len(problem.reduction.pair) < 2:
            return solve_mixed_constraints(problem, ask)
        exchange, rounds = row_exchange(problem, self.rounds, self.accuracy or ROW_GAP)
        description = f"exchange over {len(exchange.knots) - 1} ratio intervals in {rounds} rounds" + orders_text(
            exchange.problem
        )
        proof = exchange.proof
        matrix = mix_until_repairable(
            simplify(problem, exchange.champion, exchange.ascend_once), problem.constraints, problem.inputs
        )
        if proof is None:
            return Candidate(matrix, description, shortfall=exchange.reason)
        return Candidate(
            matrix,
            description,
            lambda final, channel: (proof.rebind(final.original_utility, final.constraints, channel),),
        )


def is_interior_point_problem(problem: Problem) -> bool:
    """Return True if the interior-point programs apply: every constraint has an interior and is not tight.

    Moments may be tight.
    """
    if not all(isinstance(constraint, ColumnConstraint) for constraint in problem.constraints):
        return False
    return all(np.all(term.cap > 0) and (term.conic or term.tv_bound >= MIN_TV_BOUND) for term in problem.terms)


MAX_STALE_ROUNDS = 5  # Consecutive rounds that do not reduce the gap
MAX_CLIMB_STEPS = 10  # Steps of a search from a channel with fewer outputs
MAX_OLD_LABELS = 6  # Labels of a program that remain in the next one
MAX_NEW_ORDERS = 3  # Orders that are added at a time
CUT_GAP_FRACTION = 0.1  # Intervals are cut if the chord exceeds the utility by more than this fraction of the gap
# Terms of up to this many pairs are included completely; of larger or later ones, pairs are added when they bind.
MAX_PAIRS_AT_ONCE = 300


def row_exchange(problem: Problem, rounds: int, accuracy: float) -> tuple[RowExchange, int]:
    """Run the exchange that suits a problem and return it with the number of its rounds.

    `EndlessExchange` is for an infinite end of the ratios under moments alone, `FiniteExchange` for other problems. If
    the first ends without a certificate, as under small caps, the second is run too, and the one with the smaller gap
    is returned.
    """
    labels = LabelSearch.from_problem(problem)
    infinite = not np.isfinite(excess_at(labels.f, np.array([labels.low, labels.high]))).all()
    is_endless = infinite and all(term.conic for term in labels.terms)
    exchange = (EndlessExchange if is_endless else FiniteExchange)(problem)
    number = exchange.run(rounds, accuracy)
    if is_endless and exchange.gap > CERTIFIED_GAP and not problem.deadline.over():
        with suppress(SolverError):
            other = FiniteExchange(problem)
            further_rounds = other.run(rounds, accuracy)
            if other.gap < exchange.gap:
                return other, number + further_rounds
    return exchange, number


class RowExchange(ABC):
    """The state of a search: the current orders, the intervals, the best channel, and the best bound with its proof."""

    def __init__(self, problem: Problem) -> None:
        self.range = LabelSearch.from_problem(problem)
        self.f, self.pair, self.original_problem = self.range.f, self.range.pair, problem
        self.knots = self.grid = self.range.first(INITIAL_KNOTS)
        self.champion, self.value, self.stale_rounds = np.ones((len(self.pair), 1)), 0.0, 0
        self.best_bound, self.reason, self.is_feasible = np.inf, "", True  # is_feasible: the champion exceeds no order
        self.proof: IntervalDual | None = None
        self.ascended: dict[int, Array] = {}
        self.set_problem(problem)

    def set_problem(self, problem: Problem) -> None:
        """Set the problem's orders."""
        self.problem, self.terms = problem, problem.terms

    @property
    def gap(self) -> float:
        """The gap relative to the bound; 1 without a bound."""
        return 1 - self.value / self.best_bound if self.best_bound > 0 else 0.0

    @abstractmethod
    def round(self, number: int, accuracy: float) -> None:
        """Solve a program, improve channel and bound with it, and prepare the next one."""

    @abstractmethod
    def best_for_gains(self, gains: LabelGains) -> Array:
        """Return the best channel for linear gains."""

    def run(self, rounds: int, accuracy: float) -> int:
        """Solve more and more programs until bound and value meet; return their number."""
        for number in self.original_problem.deadline.rounds(range(1, rounds + 1)):
            self.round(number, accuracy)
            has_met = self.is_feasible and self.best_bound * (1 - accuracy) <= self.value
            if has_met or self.stale_rounds >= MAX_STALE_ROUNDS or self.best_bound <= 0:
                break
        return number

    def improve(self, matrix: Array) -> None:
        """Replace the best channel if this one is better."""
        if (value := self.range.value(matrix)) > self.value:
            self.champion, self.value = matrix, value

    def ascend(self, matrix: Array, steps: int, accept_first: bool = False) -> Array:
        """Return the last channel of `LabelSearch.climb`, or the given one."""
        for improved_matrix in self.range.climb(matrix, self.best_for_gains, steps, 1e-10, accept_first):
            matrix = improved_matrix
        return matrix

    def ascend_once(self, matrix: Array) -> Array:
        """Return `ascend` of a channel with merged outputs, computed once per number of outputs."""
        size = matrix.shape[1]
        if size == self.champion.shape[1]:
            return self.champion
        if size not in self.ascended:
            self.ascended[size] = self.ascend(matrix, MAX_CLIMB_STEPS)
        return self.ascended[size]

    def prove(self, rows: Array, multipliers: Sequence[TermMultiplier]) -> None:
        """Record the certificate of these numbers if it is the best so far."""
        problem, previous_bound = self.problem, self.best_bound
        fields = (problem.original_utility, self.original_problem.constraints, None, rows, tuple(multipliers))
        classes = problem.reduction.classes if problem.symmetric else None
        proof = IntervalDual(*fields, classes, self.knots, posed=problem.constraints)
        bound = proof.bound_in(FLOAT)
        self.reason = bound.reason
        if bound.value < self.best_bound:
            self.proof, self.best_bound = proof, bound.value
        self.stale_rounds = (
            0 if self.best_bound - self.value < 0.9 * (previous_bound - self.value) else self.stale_rounds + 1
        )


class FiniteExchange(RowExchange):
    """The exchange for utilities that are finite at both ends, whose labels are single ratios."""

    last: PairPrices | None = None

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.tv_bound = max(term.tv_bound for term in self.terms if term.conic)
        self.labels = first_labels(*self.range.inner, self.tv_bound)

    def best_for_gains(self, gains: LabelGains) -> Array:
        """Return the best channel for linear gains."""
        return channel_of(smooth_program(gains.entries, self.terms, 1e-10))

    def round(self, number: int, accuracy: float) -> None:
        """Solve for the labels; add orders that the channel exceeds, and the ratios of the columns that gain."""
        # Not at the end of a round: the last channel is simplified under all its orders. Nor if one was added: orders
        # that are dropped and needed again could alternate.
        if self.last is not None and self.is_feasible:
            self.prune(self.last)
        gains = tangents_at(self.f, self.pair, self.labels)
        scale = self.value if self.value > 0 else self.guess()
        gap = min((self.best_bound - self.value) / scale, 1.0)
        solution = smooth_program((gains / scale).entries, self.terms, float(np.clip(1e-3 * gap, 1e-10, 1e-6)))
        max_loss_fraction = 1e-4 if number == 1 else 1e-6 if self.tv_bound > CLOSE_ROWS_BOUND else 1e-5
        improved_matrix = self.ascend(merge_outputs(channel_of(solution), self.f, self.pair, max_loss_fraction), 2)
        feasible, last_solution, scale = self.meet(improved_matrix, solution, scale)
        if feasible is improved_matrix and self.is_feasible:
            self.improve(improved_matrix)
        else:  # the champion was that of fewer orders
            self.champion, self.value = feasible, self.range.value(feasible)
        self.is_feasible = feasible is improved_matrix
        peaks = self.prove_everywhere(last_solution, scale, accuracy / 4)
        self.stale_rounds *= self.is_feasible
        self.join(np.concatenate([posteriors(self.pair, self.champion), peaks]), solution)
        self.last = last_solution

    def meet(self, matrix: Array, solution: PairPrices, scale: float) -> tuple[Array, PairPrices, float]:
        """Return a channel that meets further orders, which are added, its program and its unit.

        If no order is exceeded, the arguments are returned.
        """
        for _ in self.original_problem.deadline.inner.rounds(range(MAX_NEW_ORDERS)):
            tighter = self.problem.tighten(matrix)
            if tighter is None:
                break
            self.set_problem(tighter)
            scale = self.range.value(matrix) or 1.0
            solution = smooth_program((tangent_gains(self.f, self.pair, matrix) / scale).entries, self.terms, 1e-10)
            matrix = merge_outputs(channel_of(solution), self.f, self.pair, 1e-10)
        return matrix, solution, scale

    def prune(self, solution: PairPrices) -> None:
        """Drop orders whose prices are nearly zero; they return if a channel exceeds them."""
        costs = {
            term.order: float((solution.weights[number] * term.cap).sum())
            for number, term in ByKind(self.terms).moments
        }
        constraints: list[Any] = list(self.problem.constraints)
        for index, constraint in enumerate(constraints):
            if hasattr(constraint, "tightened"):
                costly_orders = tuple(order for order in constraint.orders if costs[order] > ORDER_PAID)
                constraints[index] = replace(constraint, orders=costly_orders) if costly_orders else constraint
        self.set_problem(replace(self.problem, constraints=tuple(constraints)))

    def guess(self) -> float:
        """Estimate the optimum from the divergence at the labels' ratios."""
        divergences = excess_at(self.f, self.labels)
        return float(
            np.median(
                divergences[np.isfinite(divergences) & (divergences > 0)] if (divergences > 0).any() else np.ones(1)
            )
        )

    def join(self, new_labels: Array, solution: PairPrices) -> None:
        """Set the labels to the new ones and the old ones whose value is nearly their price."""
        old_labels = np.flatnonzero(is_not_adjacent(self.labels, new_labels))
        # If rows are close, labels are nearly equal, and a program with many of them has few digits.
        kept_labels = old_labels[
            np.argsort(solution.slack[old_labels], kind="stable")[
                : MAX_OLD_LABELS if self.tv_bound > CLOSE_ROWS_BOUND else 1
            ]
        ]
        self.labels = np.unique(np.concatenate([new_labels, self.labels[kept_labels]]))

    def prove_everywhere(self, solution: PairPrices, scale: float, min_gain: float) -> Array:
        """Prove with a program's prices at all ratios; return the posteriors of the largest gains beyond them."""
        prices = LabelPrices.from_solution(self.terms, solution, IDLE_PRICE * min_gain)
        first = joined_knots(posteriors(self.pair, self.champion), self.grid)
        trial = try_everywhere(self.f, self.pair, prices, first, scale, self.value / scale, min_gain)
        self.knots = trial.knots
        self.prove(*trial.multipliers(prices, scale))
        return posteriors(self.pair, trial.columns[trial.peaks(min_gain)].T)


class EndlessExchange(RowExchange):
    """The exchange for moments where the utility is infinite at an end, whose labels are intervals."""

    active: dict[tuple[float, float], Index]
    last: tuple[PairPrices, float]

    def set_problem(self, problem: Problem) -> None:
        """Set the problem's orders; terms of new orders start with nearly binding pairs."""
        super().set_problem(problem)
        first = problem is self.original_problem
        self.active = {} if first else self.active
        for _, term in ByKind(self.terms).moments:
            if (term.order, term.cap) in self.active:
                continue
            if not first:
                pairs = np.flatnonzero(term.excess(self.champion) > -0.2 * term.cap)
            elif len(term) <= MAX_PAIRS_AT_ONCE:
                pairs = np.arange(len(term))
            else:
                ends = np.argsort(self.pair.posterior)[[0, -1]]
                pairs = np.flatnonzero(np.isin(term.left, ends) | np.isin(term.right, ends))
            self.active[term.order, term.cap] = pairs

    def best_for_gains(self, gains: LabelGains) -> Array:
        """Return the best channel for linear gains."""
        return channel_of(self.solve(gains.entries)[0])

    def round(self, number: int, accuracy: float) -> None:
        """Split the intervals that may matter, solve for all, and add the orders that the channel exceeds."""
        if number > 1:
            self.knots = graded_knots(self.cut(*self.last), self.range.contributing(self.champion))
        gains = chord_gains(self.f, self.pair, self.knots)
        # The median, because labels near an end with a steep utility do not indicate the optimum.
        scale = self.value if self.value > 0 else float(np.median(np.abs(gains.entries).max(axis=1))) or 1.0
        gap = (self.best_bound - self.value) / scale
        solution, active_pairs = self.solve((gains / scale).entries, min(max(1e-3 * gap, 1e-9), 1e-5))
        max_loss_fraction = 1e-4 if number == 1 else 1e-6
        self.improve(
            self.ascend(merge_outputs(channel_of(solution), self.f, self.pair, max_loss_fraction), MAX_CLIMB_STEPS)
        )
        self.prove(solution.rows * scale, [
            tangent_planes(number, term.take(pairs), pairs, weights * scale, solution.columns)
            for number, (term, pairs, weights) in enumerate(
                zip(self.terms, active_pairs, solution.weights, strict=True)
            )
        ])  # fmt: skip
        while (tighter := self.problem.tighten(self.champion)) is not None:
            # The channel meets fewer orders, and is only a start: the next one meets the added orders as well.
            self.set_problem(tighter)
            self.champion = self.ascend(self.champion, MAX_CLIMB_STEPS, accept_first=True)
            self.value, self.stale_rounds = self.range.value(self.champion), 0
        self.last = solution, scale

    def cut(self, solution: PairPrices, scale: float) -> Array:
        """Return the knots, with further ones that quarter the intervals that may still matter.

        An interval matters while its slack is within about the gap, and its chord exceeds the utility by a fraction of
        the gap.
        """
        gap = (self.best_bound - self.value) / scale / len(self.pair)
        middle = (self.knots[1:] + self.knots[:-1]) / 2
        height = excess_at(self.f, self.knots)
        chord_excess = (height[1:] + height[:-1]) / 2 - excess_at(self.f, middle)
        chord_excess = (
            chord_excess * (solution.columns @ (self.pair.p0 + self.pair.p1)) / solution.columns.sum(axis=1) / scale
        )
        # Beyond the last cut towards an end where the utility is infinite, moments pay for the rest.
        is_closed = np.isfinite(height[1:]) & np.isfinite(height[:-1])
        matters = (solution.slack <= 3 * gap) & (chord_excess > CUT_GAP_FRACTION * gap) & is_closed
        # Between irrelevant intervals, every other knot is dropped: the chord stays well below its price.
        is_idle = (solution.slack > 10 * gap) & (solution.slack > 20 * chord_excess)
        dropped_knots = np.flatnonzero(is_idle[1:] & is_idle[:-1]) + 1
        dropped_knots = self.knots[dropped_knots[dropped_knots % 2 == 1]]
        cut = subdivided_knots(self.knots, np.where(matters, 4, 1))
        return np.asarray(cut[~np.isin(cut, dropped_knots) | (cut == 0.5)])

    def solve(self, gains: Array, accuracy: float = 1e-9) -> tuple[PairPrices, list[Index]]:
        """Solve the program and return the solution and the active pairs of every term.

        Pairs that bind are added in rounds.
        """
        terms = [term for _, term in ByKind(self.terms).moments]
        for _ in range(12):
            active_pairs = [self.active[term.order, term.cap] for term in terms]
            solution = moment_program(
                gains, [term.take(p) for term, p in zip(terms, active_pairs, strict=True)], accuracy
            )
            q, has_grown = channel_of(solution), False
            for term, pairs in zip(terms, active_pairs, strict=True):
                excess = term.excess(q)
                excess[pairs] = -np.inf
                violated_pairs = np.flatnonzero(excess > 1e-8 * term.cap)
                violated_pairs = violated_pairs[np.argsort(-excess[violated_pairs])][: 4 * len(self.pair)]
                has_grown |= len(violated_pairs) > 0
                self.active[term.order, term.cap] = np.union1d(pairs, violated_pairs).astype(np.intp)
            if not has_grown:
                break
        return solution, active_pairs


def channel_of(solution: PairPrices) -> Array:
    """Return the columns as a matrix (k, n) whose rows sum to one."""
    return stochastic(solution.columns.T)
