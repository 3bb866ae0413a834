"""Exchange over ratio intervals: the optimum under any constraint that is a convex sum over outputs.

Cut the likelihood ratios M0/M1 into intervals. On each, the chord of the divergence is linear in the column and above
the divergence. So the best channel with one output per interval solves a convex program. Its optimum is an upper bound,
because outputs of one interval may be merged without loss. Its channel, measured, gives a lower bound. If an output
lies strictly inside its interval, the interval is cut at the ratio of that output, and closely around it. Conic
constraints enter the program only for pairs of inputs that some channel violated (linear ones are for
`interval_program`). Both bounds meet after a handful of rounds, and the last dual values are the certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.arrange import merge_outputs, simplify
from ldpopt.design.candidate import Ask, Candidate, Limit, Method, needs_ratios, too_many_pairs
from ldpopt.design.constraints.base import ColumnConstraint, Expression, parts
from ldpopt.design.constraints.hockey_stick import ApproximateLDP
from ldpopt.design.constraints.repair import mix_until_repairable, mixing_cost
from ldpopt.design.constraints.terms import ByKind, Term
from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.kernel.proof import Dominated
from ldpopt.design.patterns.method import single_approximate_ldp
from ldpopt.design.problems.problem import Problem
from ldpopt.design.problems.reduction import (
    Pair,
    dominating_pair,
    excess_at,
    excess_from_difference,
    posteriors,
    value_of,
    values_of,
)
from ldpopt.design.ratios.program import (
    MAX_SLACKS,
    LabelGains,
    LabelSolution,
    allowed_posteriors,
    chord_gains,
    cut_knots,
    graded_knots,
    label_program,
    tangent_gains,
    tangents_at,
    uniform_knots,
    widest_ratio,
)
from ldpopt.design.ratios.program_barrier import first_pairs, tight_pairs, violated_pairs
from ldpopt.design.ratios.program_intervals import ActiveIntervals, close_dual_constraints, interval_program
from ldpopt.design.ratios.proof import IntervalDual, TermMultiplier
from ldpopt.design.ratios.proof_chords import posterior_range, residual, sufficient_ratio
from ldpopt.design.utilities.divergence import Divergence
from ldpopt.divergences import FDivergence
from ldpopt.errors import InvalidInput, SolverError
from ldpopt.numbers.tolerances import CLIMB_GAIN, CONIC_GAP, EXCHANGE_GAP
from ldpopt.values.deadline import UNLIMITED, Deadline
from ldpopt.values.distribution import Array, Index, at_least_two, positive, positive_integer

MAX_CORRECTED_INPUTS = 100  # With more inputs, the multipliers of the solver are not corrected


@dataclass(frozen=True, eq=False)
class SolvedRound:
    """One solved program: its intervals (between `knots`), its active pairs and its channel (`matrix`).

    scale : the program's unit of utility. gap : the relative gap between its bound and the best value, inf if pairs are
    missing.
    """

    solution: LabelSolution
    knots: Array
    active: tuple[Index, ...]
    scale: float
    terms: tuple[Term, ...]
    gap: float
    matrix: Array

    def prove(self, problem: Problem, channel: Channel) -> Iterator[Certificate]:
        """Generate certificates of the dual values, corrected and unchanged.

        There are none if a constraint has no column form.
        """
        if problem.user_expressions:
            return
        if not any(term.pure for term in self.terms):
            yield self._certificate(problem, channel, *self._closed(problem))
        yield self._certificate(problem, channel, self.solution.rows, self.solution.multipliers)

    def _certificate(self, problem: Problem, channel: Channel, rows: Array, values: Sequence[Array]) -> IntervalDual:
        multipliers = []
        for number, (term, pairs, term_values) in enumerate(zip(self.terms, self.active, values, strict=True)):
            if len(pairs) and not term.conic:
                priced_pairs = np.flatnonzero(term_values.any(axis=0))
                pairs, term_values = pairs[priced_pairs], term_values[:, priced_pairs]
            multipliers.append(TermMultiplier(number, pairs, term.scaled(term_values, self.scale)))
        fields = (problem.original_utility, problem.constraints, channel, rows * self.scale, tuple(multipliers))
        return IntervalDual(*fields, problem.reduction.classes if problem.symmetric else None, self.knots)

    def _closed(self, problem: Problem) -> tuple[Array, Sequence[Array]]:
        """Return the multipliers of rows and terms, corrected up to rounding by `close_dual_constraints`."""
        active_terms = [term.take(pairs) for term, pairs in zip(self.terms, self.active, strict=True)]
        if self.solution.rows.size > MAX_CORRECTED_INPUTS or not ByKind(active_terms).sticks:
            return self.solution.rows, self.solution.multipliers
        pair = problem.reduction.pair
        profits = chord_gains(problem.utility.f, pair, self.knots).entries / self.scale - self.solution.rows
        return close_dual_constraints(profits, self.solution.rows, active_terms, self.solution.multipliers)


MAX_ROUNDS = 40
INITIAL_KNOTS = 25
FEW_INITIAL_KNOTS = 13
MAX_SMOOTH_ORDER = 1.2  # `TangentExchange` solves divergences of orders up to this
MAX_RESCALINGS = 12  # How often, at most, a program is solved again in units nearer to its optimum
MAX_THINNINGS = 3  # How often, at most, a third of the knots is dropped because a solver fails


@dataclass(frozen=True)
class Exchange(
    Method,
    rounds=positive_integer,
    accuracy=positive,
    reference="[HK]",
    needs=(needs_ratios,),
    preference=210,
    by_cvxpy=True,
):
    """The ratio-labeled program, whose labels are exchanged until they fit; for every convex constraint, with a proof.

    A label is an interval of likelihood ratios of the reports, with one report each. In rounds, a convex program over
    the labels is solved, and labels are cut where its bound and its channel differ.

    - `rounds` : the largest number of programs to solve.
    - `accuracy` : the relative gap that ends the search.

    >>> from ldpopt import Divergence, LocalDP, TotalVariation, optimal_channel
    >>> from ldpopt.divergences import KL
    >>> u = Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
    >>> optimal_channel(u, [LocalDP(1.0), TotalVariation(0.3)], method=Exchange()).certified
    True
    """

    rounds: int = MAX_ROUNDS
    accuracy: float = EXCHANGE_GAP

    def refuses(self, problem: Problem) -> str:
        """Return why it does not apply: it needs two hypotheses, free outputs, and constraints for its programs."""
        if any(hasattr(c, "tightened") for c in problem.constraints):
            return "a constraint has infinitely many orders, which TangentExchange finds"
        near_one = [term for _, term in ByKind(problem.terms).moments if term.order <= MAX_SMOOTH_ORDER]
        if near_one and len(near_one) == len(problem.terms) and not problem.user_expressions:
            return "divergences of an order near 1 stall its cone programs; TangentExchange solves them"
        return too_many_pairs(problem, len(problem.reduction.pair))

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """Find the channel of the last program, with outputs merged that are too rare to matter."""
        labels = LabelSearch.from_problem(problem)
        best, rounds = labels.refine(self.rounds, self.accuracy, labels.start())
        description = f"exchange over {len(best.knots) - 1} ratio intervals in {rounds} rounds"
        simplified_matrix = simplify(problem, best.matrix, labels.ascend)
        matrix = mix_until_repairable(simplified_matrix, problem.constraints, problem.inputs)
        note = mixing_cost(labels.value(simplified_matrix), labels.value(matrix)) if problem.user_expressions else ""
        return Candidate(matrix, description, best.prove, note=note)


MAX_MEASURED_INPUTS = 20_000  # Beyond this, measuring a channel takes minutes
MAX_EPSILON = 30.0  # A larger epsilon adds a fraction e^-30 of the utility, and solvers fail at e^100
MERGED_SHORTFALL = "answers of nearly equal ratio are merged, and the bound is that of fewer, extremer answers"


@dataclass(frozen=True)
class MergedExchange(
    Method,
    bins=at_least_two,
    points=partial(positive_integer, minimum=3),
    reference="[HK]",
    needs=(needs_ratios,),
    preference=220,
    by_cvxpy=True,
):
    """`Exchange` on at most `bins` runs of answers of nearly equal ratio, which are merged, under ApproximateLDP.

    - `bins` : the largest number of runs.
    - `points` : the number of points, at least 3, that dominate the hypotheses in the proof. The distance of the bound
      from the optimum falls with the square of this number, and the time grows with it.

    >>> from ldpopt import ApproximateLDP, Divergence, optimal_channel
    >>> from ldpopt.divergences import KL
    >>> u = Divergence(KL, [0.5, 0.25, 0.15, 0.1], [0.1, 0.2, 0.3, 0.4])
    >>> made = optimal_channel(u, ApproximateLDP(1.0, 0.01), method=MergedExchange(3))
    >>> made.value <= made.upper_bound < 1.1 * made.value
    True
    """

    bins: int = 20
    points: int = 16

    def refuses(self, problem: Problem) -> str:
        """Return why it does not apply: it needs one ApproximateLDP, and a divergence finite at full disclosure."""
        utility = problem.utility
        if problem.cells is not None or single_approximate_ldp(problem) is None:
            return "it merges answers under ApproximateLDP alone, with epsilon and delta above 0"
        if utility.size > MAX_MEASURED_INPUTS:
            return Limit(f"{utility.size} inputs are too many to measure a channel of (at most {MAX_MEASURED_INPUTS})")
        if not np.isfinite(utility.value_without_privacy):
            return f"{utility.name} of full disclosure is infinite, and delta allows for some of it"
        return ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """Find the channel of the merged answers; without merging if they are few."""
        constraint, pair, f = single_approximate_ldp(problem), problem.reduction.pair, problem.utility.f
        assert constraint is not None
        if len(pair) <= self.bins:
            return Exchange().find(problem, ask)
        starts = run_starts(f, pair, self.bins)
        merged_pair = pair.merge(starts)
        # The excess of many inputs is measured with more rounding than that of the few rows that they have in common.
        delta = constraint.delta * (1 - 2.0**-36) - min(2.0**-50, 2.0**-24 * constraint.delta)
        tighter = ApproximateLDP(min(constraint.epsilon, MAX_EPSILON), delta)
        design = ask(Divergence(f, merged_pair.p0, merged_pair.p1), tighter, method=Exchange(), certify=False)
        matrix = np.repeat(design.channel.matrix, np.diff(np.append(starts, len(pair))), axis=0)

        def prove(checked_problem: Problem, channel: Channel) -> Iterator[Certificate]:
            ends = np.append(run_starts(f, pair, self.points - 1), len(pair) - 1)
            a0, a1 = dominating_pair(pair.p0, pair.p1, pair.posterior[np.unique(ends)])
            try:
                certificate = ask(
                    Divergence(f, a0 / a0.sum(), a1 / a1.sum()), constraint, method=Exchange()
                ).certificate
            except (SolverError, InvalidInput):  # one proof fewer
                return
            if certificate is not None:
                points = np.column_stack([certificate.utility.p0, certificate.utility.p1])
                yield Dominated(
                    checked_problem.original_utility, checked_problem.constraints, channel, points, certificate
                )

        return Candidate(matrix, f"exchange on {len(starts)} merged inputs", prove, shortfall=MERGED_SHORTFALL)


def run_starts(f: FDivergence, pair: Pair, count: int) -> Index:
    """Return the starts of at most `count` runs of sorted inputs; the run with the largest loss is split first.

    Merging a run replaces the sum of its inputs' parts of the divergence by the part of their sum.
    """
    sums = [np.concatenate([[0.0], np.cumsum(part)]) for part in (pair.difference, pair.p0, pair.p1)]

    def value(first: Index, last: Index) -> Array:
        return excess_from_difference(f, *(part[last] - part[first] for part in sums))

    def best_cut(first: int, last: int) -> tuple[float, int, int, int]:
        """Return the gain of the best cut of a run, the cut, and the run."""
        inner = np.arange(first + 1, last)
        if not len(inner):
            return 0.0, first, first, last
        ends = np.full_like(inner, first), np.full_like(inner, last)
        gain = value(ends[0], inner) + value(inner, ends[1]) - value(*ends)
        best = int(np.argmax(gain))
        return float(gain[best]), int(inner[best]), first, last

    starts, candidates = [0], [best_cut(0, len(pair))]
    while len(starts) < count:
        gain, cut_place, first, last = candidates.pop(candidates.index(max(candidates)))
        if not gain > 0:
            break
        starts.append(cut_place)
        candidates += [best_cut(first, cut_place), best_cut(cut_place, last)]
    return np.sort(np.array(starts, dtype=np.intp))


@dataclass(frozen=True, eq=False)
class LabelSearch:
    """The ratio-labeled program of a problem, to be solved on finer and finer intervals."""

    f: FDivergence
    pair: Pair
    terms: tuple[Term, ...]
    expressions: tuple[Expression, ...]
    low: float
    high: float
    inner: tuple[float, float]
    deadline: Deadline = UNLIMITED

    @classmethod
    def from_problem(cls, problem: Problem) -> LabelSearch:
        """Build the program; raise `InvalidInput` if the utility could be infinite."""
        pair, f = problem.reduction.pair, problem.utility.f
        terms, _, expressions = parts(problem.constraints, problem.inputs)
        columns = [c for c in problem.constraints if isinstance(c, ColumnConstraint)]
        ends = posterior_range(f, pair.p0, pair.p1, columns, problem.inputs)
        if ends is None:
            raise InvalidInput(
                f"constraints: {f.name} may be infinite for these hypotheses; add LocalDP or take a bounded divergence"
            )
        inner = list(ends)
        for end, is_mirrored in ((0, True), (1, False)):
            if not np.isfinite(f.excess(ends[end], 1 - ends[end])):
                far_ratio = sufficient_ratio(f, is_mirrored, columns) or 1.0
                inner[end] = 1 / (1 + far_ratio) if is_mirrored else far_ratio / (1 + far_ratio)
        return cls(f, pair, terms, expressions, *ends, (inner[0], inner[1]), problem.deadline)

    def first(self, count: int) -> Array:
        """Return uniform knots over the ratios of reports, and the ends of the range that the proof must cover."""
        low, high = allowed_posteriors(self.pair, self.terms, *self.inner)
        return np.unique(np.concatenate([[self.low, self.high], uniform_knots(low, high, count)]))

    @property
    def conic(self) -> bool:
        """True if the program has cones, whose solutions are interior and less accurate."""
        return bool(self.expressions) or any(term.conic for term in self.terms)

    def start(self) -> Array | None:
        """Return a channel around whose ratios the first intervals are short: the best for a few tangents."""
        inner = self.first(INITIAL_KNOTS)[1:-1:2]
        if not self.conic or not len(inner):
            return None
        gains = tangents_at(self.f, self.pair, inner)
        first = label_program(gains / np.abs(gains.entries).max(), self.terms, self.expressions, True)
        return self.ascend(merge_outputs(first.with_erasure, self.f, self.pair, 1e-6))

    def refine(self, rounds: int, accuracy: float, start: Array | None) -> tuple[SolvedRound, int]:
        """Solve on finer and finer intervals; return the round with the smallest bound, and the number of rounds.

        start : a good channel, or None. The intervals begin fine around its ratios, and the pairs that it binds are
        active.
        """
        knots, value = self.first(INITIAL_KNOTS if start is None or self.conic else FEW_INITIAL_KNOTS), 0.0
        active = [first_pairs(term, self.pair) for term in self.terms]
        scale = self._guess(knots)
        if start is not None:
            value = scale = self.value(start) or scale
            knots = graded_knots(knots, self.contributing(start))
            if self.conic:
                active = [np.union1d(old, tight_pairs(t, start)) for old, t in zip(active, self.terms, strict=True)]
        best_round: SolvedRound | None = None
        best_channel, stale_rounds, thinnings = start, 0, 0
        memory: ActiveIntervals | None = None
        for number in self.deadline.rounds(range(1, rounds + 1)):
            is_large = not self.conic and sum(len(term) for term in self.terms) * len(knots) > MAX_SLACKS
            if is_large:
                active = [np.arange(len(term)) for term in self.terms]
            active_terms = [term.take(pairs) for term, pairs in zip(self.terms, active, strict=True)]
            chords = chord_gains(self.f, self.pair, knots)
            try:
                gains = chords / scale
                solution, memory = self._solve(gains, active_terms, knots, memory, is_large)
                for _ in range(1, MAX_RESCALINGS):
                    if self.conic or 1e-5 < solution.value < 1e5:
                        break
                    if solution.value <= 0 and self._bound(gains, active_terms, solution) <= 0:
                        break  # the multipliers prove that the optimum is 0
                    # An optimum far from one is below the solver's tolerance, or too large for it.
                    new_scale = scale * max(solution.value, 1e-6)
                    try:
                        solution, memory = self._solve(chords / new_scale, active_terms, knots, memory, is_large)
                    except SolverError:
                        break  # an optimum of zero is never near one: keep the last units
                    gains, scale = chords / new_scale, new_scale
            except SolverError:
                # The cone program is too degenerate for the solver: take fewer intervals, or the best round so far.
                if self.conic and thinnings < MAX_THINNINGS:
                    thinnings += 1
                    ends = (knots == knots[0]) | (knots == knots[-1])
                    knots = knots[(np.arange(len(knots)) % 3 != thinnings % 3) | (knots == 0.5) | ends]
                    continue
                if best_round is None or best_round.gap == np.inf:
                    raise
                break
            q = np.maximum(solution.matrix, 0.0)
            violated = violated_pairs(self.terms, q, active)
            smallest_entries = q.min(axis=0)
            chord_values = (gains.entries.T * (q - smallest_entries)).sum(axis=0) + gains.constant * smallest_entries
            losses = chord_values - values_of(self.f, self.pair, q) / scale
            is_feasible = not any(len(pairs) for pairs in violated)
            channel = solution.with_erasure
            if self.conic:
                channel = self.ascend(merge_outputs(channel, self.f, self.pair, 1e-4 if number == 1 else 1e-6))
            if (is_feasible or self.conic) and (best_channel is None or self.value(channel) > value):
                best_channel, value = channel, self.value(channel)
            bound = self._bound(gains, active_terms, solution) * scale
            gap = (bound - value) / max(bound, 1e-300) if is_feasible else np.inf
            stale_rounds = 0 if best_round is None or gap < 0.7 * best_round.gap else stale_rounds + 1
            if best_round is None or gap <= best_round.gap:
                best_round = SolvedRound(solution, knots, tuple(active), scale, self.terms, gap, q)
            if gap <= (CONIC_GAP if self.conic else accuracy) or (self.conic and stale_rounds == 3):
                break
            if is_feasible and value <= 0 and bound <= 0:
                break
            active = [np.union1d(old, new).astype(np.intp) for old, new in zip(active, violated, strict=True)]
            old = len(knots)
            total_loss = float(losses.sum())
            loss_threshold = (
                0.01 * total_loss if self.conic else max(accuracy * solution.value, 0.2 * total_loss) / len(knots)
            )
            cut_at_losses = cut_knots(knots, posteriors(self.pair, q), losses > loss_threshold)
            is_graded = best_channel is channel and self.conic
            knots = graded_knots(cut_at_losses, self.contributing(channel)) if is_graded else cut_at_losses
            if is_feasible and not self.conic and len(knots) == old:
                break
            if solution.value > 0:
                scale *= solution.value
        if best_round is None:
            raise SolverError("exchange: no program was solved in the time there was")
        return replace(best_round, matrix=best_round.solution.matrix if best_channel is None else best_channel), number

    def _solve(
        self,
        gains: LabelGains,
        active_terms: Sequence[Term],
        knots: Array,
        memory: ActiveIntervals | None,
        is_large: bool,
    ) -> tuple[LabelSolution, ActiveIntervals | None]:
        """Solve the program of the intervals, by the method for large programs or the default one."""
        if is_large:
            return interval_program(gains.entries, active_terms, knots, memory, self.deadline)
        return label_program(gains, active_terms, self.expressions, True), memory

    def value(self, matrix: Array) -> float:
        """Return the divergence that a matrix preserves."""
        return value_of(self.f, self.pair, np.maximum(matrix, 0.0))

    def _guess(self, knots: Array) -> float:
        """Guess the size of the optimum for the first program, from the ratios that reports can have."""
        inner = excess_at(self.f, knots[1:-1])
        size = float(np.max(inner[np.isfinite(inner)], initial=0.0)) or float(excess_at(self.f, knots).max()) or 1.0
        sticks = [term for _, term in ByKind(self.terms).sticks if len(term)]
        caps = [float(np.max(term.cap)) for term in sticks if term.factor.max() == 1]
        variation = min(1.0, (widest_ratio(self.terms, len(self.pair)) - 1) / 2)
        return size * min([1.0, *(cap / variation for cap in caps if cap > 0)])

    def _bound(self, gains: LabelGains, active_terms: Sequence[Term], solution: LabelSolution) -> float:
        """Return the bound of a solved program, in its units; its value if user-defined constraints have no dual."""
        if self.expressions:
            return solution.value
        reduced_gains, bound = gains.entries - solution.rows, float(solution.rows.sum())
        for term, multiplier in zip(active_terms, solution.multipliers, strict=True):
            if len(term):
                reduced_gains = reduced_gains - term.support(multiplier, len(reduced_gains), len(self.pair))
                bound += term.charge(multiplier)
        return bound + residual(reduced_gains, ByKind(active_terms).ratio)

    def ascend(self, matrix: Array) -> Array:
        """Return a channel of at least the utility of `matrix`, (k, n), for programs with cones.

        Other programs return the matrix unchanged. Solutions of cone programs are less accurate. The few labels of a
        nearly optimal channel make a small program, which is solved to more digits than one with all intervals.
        """
        if not self.conic:
            return matrix

        def solve_for_gains(gains: LabelGains) -> Array:
            return np.maximum(label_program(gains, self.terms, self.expressions, True).with_erasure, 0.0)

        with suppress(SolverError):
            for improved_matrix in self.climb(matrix, solve_for_gains, 8, 1e-8):
                matrix = improved_matrix
        return matrix

    def climb(
        self,
        matrix: Array,
        solve_for_gains: Callable[[LabelGains], Array],
        steps: int,
        max_loss_fraction: float,
        accept_first: bool = False,
    ) -> Iterator[Array]:
        """Generate better and better channels, each the best for the tangents at the ratios of the outputs.

        solve_for_gains : returns the best channel for linear gains. max_loss_fraction : of the utility, by a merger of
        outputs. If `accept_first`, the first channel is accepted even if it is worse, for a `matrix` outside the
        constraints.
        """
        value = self.value(matrix)
        for _ in self.deadline.inner.rounds(range(steps)):
            new = solve_for_gains(tangent_gains(self.f, self.pair, matrix) / (value if value > 0 else 1.0))
            new_value = self.value(new)
            if not accept_first and new_value <= value * (1 + CLIMB_GAIN):
                return
            matrix, value, accept_first = merge_outputs(new, self.f, self.pair, max_loss_fraction), new_value, False
            yield matrix

    def contributing(self, matrix: Array) -> Array:
        """Return the posteriors of the outputs that contribute to the utility."""
        values = values_of(self.f, self.pair, matrix)
        return np.asarray(posteriors(self.pair, matrix)[values > 1e-6 * values.sum()])
