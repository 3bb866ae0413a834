"""Exchange over ratio intervals: the optimum under any constraint that is a convex sum over outputs.

Cut the likelihood ratios M0/M1 into intervals. On each, the chord of the divergence is linear in the column and above
the divergence, so that the best channel with one output for each interval solves a convex program. Its optimum is an
upper bound, because outputs of one interval may be merged without loss. Its channel, measured, gives a lower bound.
Where an output lies strictly inside its interval, the interval is cut at that output's own ratio, and closely around
it. Of conic constraints, only pairs of inputs are posed that some channel violated (linear ones are for
`interval_program`). Both bounds meet after a handful of rounds, and the last dual values are the certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.arrange import cleanest, merge
from ldpopt.design.candidate import Ask, Candidate, Limit, Method, needs_ratios, too_many_pairs
from ldpopt.design.constraints.base import ColumnConstraint, Expression, parts
from ldpopt.design.constraints.hockey_stick import ApproximateLDP
from ldpopt.design.constraints.repair import cost_of_mixing, private
from ldpopt.design.constraints.terms import ByKind, Term
from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.kernel.proof import Dominated
from ldpopt.design.patterns.method import approximate
from ldpopt.design.problems.problem import Problem
from ldpopt.design.problems.reduction import Pair, dominating, excess_apart, excess_at, posteriors, value_of, values_of
from ldpopt.design.ratios.program import (
    MAX_SLACKS,
    LabelGains,
    Solved,
    allowed_posteriors,
    chord_gains,
    cut_knots,
    even_knots,
    graded_knots,
    label_program,
    tangent_gains,
    tangents_at,
    widest_ratio,
)
from ldpopt.design.ratios.program_barrier import first_pairs, tight_pairs, violated_pairs
from ldpopt.design.ratios.program_intervals import Memory, closed, interval_program
from ldpopt.design.ratios.proof import IntervalDual, TermMultiplier
from ldpopt.design.ratios.proof_chords import far_enough, posterior_range, residual
from ldpopt.design.utilities.divergence import Divergence
from ldpopt.divergences import FDivergence
from ldpopt.errors import InvalidInput, SolverError
from ldpopt.numbers.tolerances import CLIMB_GAIN, CONIC_GAP, EXCHANGE_GAP
from ldpopt.values.deadline import UNLIMITED, Deadline
from ldpopt.values.distribution import Array, Index, at_least_two, positive, positive_integer

MAX_CORRECTED_INPUTS = 100  # With more inputs than this, multipliers are taken from the solver without correction


@dataclass(frozen=True, eq=False)
class Round:
    """One solved program: its intervals (between `knots`), its posed pairs (`active`), and its channel (`matrix`).

    scale : the program's unit of utility. gap : the relative gap between its bound and the best value, inf where pairs
    are missing.
    """

    solved: Solved
    knots: Array
    active: tuple[Index, ...]
    scale: float
    terms: tuple[Term, ...]
    gap: float
    matrix: Array

    def prove(self, problem: Problem, channel: Channel) -> Iterator[Certificate]:
        """Certificates of the dual values, corrected and as they are; none where a constraint has no column form."""
        if problem.others:
            return
        if not any(term.pure for term in self.terms):
            yield self._certificate(problem, channel, *self._closed(problem))
        yield self._certificate(problem, channel, self.solved.rows, self.solved.multipliers)

    def _certificate(self, problem: Problem, channel: Channel, rows: Array, values: Sequence[Array]) -> IntervalDual:
        multipliers = []
        for number, (term, pairs, each) in enumerate(zip(self.terms, self.active, values, strict=True)):
            if len(pairs) and not term.conic:
                paid = np.flatnonzero(each.any(axis=0))
                pairs, each = pairs[paid], each[:, paid]
            multipliers.append(TermMultiplier(number, pairs, term.scaled(each, self.scale)))
        fields = (problem.whole, problem.constraints, channel, rows * self.scale, tuple(multipliers))
        return IntervalDual(*fields, problem.reduction.classes if problem.symmetric else None, self.knots)

    def _closed(self, problem: Problem) -> tuple[Array, Sequence[Array]]:
        """The multipliers of the rows and of the terms, corrected up to rounding by `flows.closed`."""
        kept = [term.take(pairs) for term, pairs in zip(self.terms, self.active, strict=True)]
        if self.solved.rows.size > MAX_CORRECTED_INPUTS or not ByKind(kept).sticks:
            return self.solved.rows, self.solved.multipliers
        pair = problem.reduction.pair
        profits = chord_gains(problem.utility.f, pair, self.knots).each / self.scale - self.solved.rows
        return closed(profits, self.solved.rows, kept, self.solved.multipliers)


ROUNDS = 40
GRID = 25
FIRST_KNOTS = 13
MAX_SMOOTH_ORDER = 1.2  # Divergences of orders up to this are left to the interior-point method of `TangentExchange`
MAX_RESCALED = 12  # How often, at most, a program is posed again in units nearer to its optimum
MAX_THINNED = 3  # How often, at most, a third of the knots is dropped when a solver fails


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
    """The ratio-labelled program, whose labels are exchanged until they fit; for every convex constraint, with a proof.

    A label is an interval of likelihood ratios of the reports, with one report each. In rounds, a convex program over
    the labels is solved, and labels are cut where its bound and its channel differ.

    rounds : the most programs to solve. accuracy : the relative gap at which to stop.

    >>> from ldpopt import Divergence, LocalDP, TotalVariation, optimal_channel
    >>> from ldpopt.divergences import KL
    >>> u = Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
    >>> optimal_channel(u, [LocalDP(1.0), TotalVariation(0.3)], method=Exchange()).certified
    True
    """

    rounds: int = ROUNDS
    accuracy: float = EXCHANGE_GAP

    def refuses(self, problem: Problem) -> str:
        """It needs two hypotheses, free outputs, and constraints that a program can pose well."""
        if any(hasattr(c, "tightened") for c in problem.constraints):
            return "a constraint has infinitely many orders, which TangentExchange finds"
        near_one = [term for _, term in ByKind(problem.terms).moments if term.order <= MAX_SMOOTH_ORDER]
        if near_one and len(near_one) == len(problem.terms) and not problem.others:
            return "divergences of an order near 1 stall its cone programs; TangentExchange solves them"
        return too_many_pairs(problem, len(problem.reduction.pair))

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The channel of the last program, its outputs merged where they are too rare to matter."""
        labels = Labels.of(problem)
        best, rounds = labels.refine(self.rounds, self.accuracy, labels.start())
        how = f"exchange over {len(best.knots) - 1} ratio intervals in {rounds} rounds"
        clean = cleanest(problem, best.matrix, labels.ascend)
        matrix = private(clean, problem.constraints, problem.inputs)
        note = cost_of_mixing(labels.value(clean), labels.value(matrix)) if problem.others else ""
        return Candidate(matrix, how, best.prove, note=note)


MAX_MEASURED = 20_000  # The most inputs: measuring a channel takes minutes beyond
STEEPEST = 30.0  # A larger epsilon is not posed: it adds e^-30 of the utility, and solvers fail at e^100
MERGED = "answers of nearly equal ratio are merged, and the bound is that of fewer, extremer answers"


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

    bins : the most runs. points : the number of points, at least 3, that dominate the hypotheses in the proof; the
    distance of the bound from the optimum falls with the square of this number, and the time grows with it.

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
        """It needs one ApproximateLDP between all inputs, and a divergence that full disclosure keeps finite."""
        utility = problem.utility
        if problem.cells is not None or approximate(problem) is None:
            return "it merges answers under ApproximateLDP alone, with epsilon and delta above 0"
        if utility.size > MAX_MEASURED:
            return Limit(f"{utility.size} inputs are too many to measure a channel of (at most {MAX_MEASURED})")
        if not np.isfinite(utility.unprivate):
            return f"{utility.name} of full disclosure is infinite, and delta allows for some of it"
        return ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The channel of the merged answers; without merging where they are few."""
        constraint, pair, f = approximate(problem), problem.reduction.pair, problem.utility.f
        assert constraint is not None
        if len(pair) <= self.bins:
            return Exchange().find(problem, ask)
        starts = runs(f, pair, self.bins)
        merged = pair.merge(starts)
        # The excess of many inputs is measured with more rounding than that of the few rows that they share.
        delta = constraint.delta * (1 - 2.0**-36) - min(2.0**-50, 2.0**-24 * constraint.delta)
        tighter = ApproximateLDP(min(constraint.epsilon, STEEPEST), delta)
        made = ask(Divergence(f, merged.p0, merged.p1), tighter, method=Exchange(), certify=False)
        matrix = np.repeat(made.channel.matrix, np.diff(np.append(starts, len(pair))), axis=0)

        def prove(posed: Problem, channel: Channel) -> Iterator[Certificate]:
            ends = np.append(runs(f, pair, self.points - 1), len(pair) - 1)
            a0, a1 = dominating(pair.p0, pair.p1, pair.posterior[np.unique(ends)])
            try:
                known = ask(Divergence(f, a0 / a0.sum(), a1 / a1.sum()), constraint, method=Exchange()).certificate
            except (SolverError, InvalidInput):  # one proof fewer
                return
            if known is not None:
                points = np.column_stack([known.utility.p0, known.utility.p1])
                yield Dominated(posed.whole, posed.constraints, channel, points, known)

        return Candidate(matrix, f"exchange on {len(starts)} merged inputs", prove, shortfall=MERGED)


def runs(f: FDivergence, pair: Pair, count: int) -> Index:
    """The starts of at most `count` runs of sorted inputs: the run whose merging costs the most is halved best first.

    Merging a run replaces the sum of its inputs' parts of the divergence by the part of their sum.
    """
    sums = [np.concatenate([[0.0], np.cumsum(part)]) for part in (pair.difference, pair.p0, pair.p1)]

    def worth(first: Index, last: Index) -> Array:
        return excess_apart(f, *(part[last] - part[first] for part in sums))

    def split(first: int, last: int) -> tuple[float, int, int, int]:
        """What the best cut of a run gains, the cut, and the run."""
        inner = np.arange(first + 1, last)
        if not len(inner):
            return 0.0, first, first, last
        ends = np.full_like(inner, first), np.full_like(inner, last)
        gain = worth(ends[0], inner) + worth(inner, ends[1]) - worth(*ends)
        best = int(np.argmax(gain))
        return float(gain[best]), int(inner[best]), first, last

    starts, waiting = [0], [split(0, len(pair))]
    while len(starts) < count:
        gain, cut, first, last = waiting.pop(waiting.index(max(waiting)))
        if not gain > 0:
            break
        starts.append(cut)
        waiting += [split(first, cut), split(cut, last)]
    return np.sort(np.array(starts, dtype=np.intp))


@dataclass(frozen=True, eq=False)
class Labels:
    """The ratio-labelled program of a problem, to be solved on finer and finer intervals."""

    f: FDivergence
    pair: Pair
    terms: tuple[Term, ...]
    expressions: tuple[Expression, ...]
    low: float
    high: float
    inner: tuple[float, float]
    deadline: Deadline = UNLIMITED

    @classmethod
    def of(cls, problem: Problem) -> Labels:
        """The program. Raises `InvalidInput` when the utility could be infinite."""
        pair, f = problem.reduction.pair, problem.utility.f
        terms, _, expressions = parts(problem.constraints, problem.inputs)
        columns = [c for c in problem.constraints if isinstance(c, ColumnConstraint)]
        ends = posterior_range(f, pair.p0, pair.p1, columns, problem.inputs)
        if ends is None:
            raise InvalidInput(
                f"constraints: {f.name} may be infinite for these hypotheses; add LocalDP or take a bounded divergence"
            )
        inner = list(ends)
        for end, mirrored in ((0, True), (1, False)):
            if not np.isfinite(f.excess(ends[end], 1 - ends[end])):
                far = far_enough(f, mirrored, columns) or 1.0
                inner[end] = 1 / (1 + far) if mirrored else far / (1 + far)
        return cls(f, pair, terms, expressions, *ends, (inner[0], inner[1]), problem.deadline)

    def first(self, count: int) -> Array:
        """Even knots over the ratios that reports can have, and the ends of the range that the proof must cover."""
        low, high = allowed_posteriors(self.pair, self.terms, *self.inner)
        return np.unique(np.concatenate([[self.low, self.high], even_knots(low, high, count)]))

    @property
    def conic(self) -> bool:
        """Whether the program has cones, whose solutions are interior and less accurate."""
        return bool(self.expressions) or any(term.conic for term in self.terms)

    def start(self) -> Array | None:
        """A channel near whose ratios the first intervals are short: the best for a few tangents, after `ascend`."""
        inner = self.first(GRID)[1:-1:2]
        if not self.conic or not len(inner):
            return None
        gains = tangents_at(self.f, self.pair, inner)
        first = label_program(gains / np.abs(gains.each).max(), self.terms, self.expressions, True)
        return self.ascend(merge(first.whole, self.f, self.pair, 1e-6))

    def refine(self, rounds: int, accuracy: float, start: Array | None) -> tuple[Round, int]:
        """Solve on finer and finer intervals; the round with the smallest bound, and the number of rounds.

        start : a good channel, or None. The intervals begin fine around its ratios, and pairs that it binds are posed.
        """
        knots, value = self.first(GRID if start is None or self.conic else FIRST_KNOTS), 0.0
        active = [first_pairs(term, self.pair) for term in self.terms]
        scale = self._guess(knots)
        if start is not None:
            value = scale = self.value(start) or scale
            knots = graded_knots(knots, self.contributing(start))
            if self.conic:
                active = [np.union1d(old, tight_pairs(t, start)) for old, t in zip(active, self.terms, strict=True)]
        best: Round | None = None
        champion, stale, thinned = start, 0, 0
        memory: Memory | None = None
        for number in self.deadline.rounds(range(1, rounds + 1)):
            large = not self.conic and sum(len(term) for term in self.terms) * len(knots) > MAX_SLACKS
            if large:
                active = [np.arange(len(term)) for term in self.terms]
            kept = [term.take(pairs) for term, pairs in zip(self.terms, active, strict=True)]
            chords = chord_gains(self.f, self.pair, knots)
            try:
                gains = chords / scale
                solved, memory = self._solve(gains, kept, knots, memory, large)
                for _ in range(1, MAX_RESCALED):
                    if self.conic or 1e-5 < solved.value < 1e5:
                        break
                    if solved.value <= 0 and self._bound(gains, kept, solved) <= 0:
                        break  # the multipliers prove that nothing can be kept
                    # An optimum far from one is below the solver's tolerance, or too large for it.
                    nearer = scale * max(solved.value, 1e-6)
                    try:
                        solved, memory = self._solve(chords / nearer, kept, knots, memory, large)
                    except SolverError:
                        break  # an optimum of zero is never near one: the last units stand
                    gains, scale = chords / nearer, nearer
            except SolverError:
                # The cone program is too degenerate for the solver: take fewer intervals, or the best round so far.
                if self.conic and thinned < MAX_THINNED:
                    thinned += 1
                    ends = (knots == knots[0]) | (knots == knots[-1])
                    knots = knots[(np.arange(len(knots)) % 3 != thinned % 3) | (knots == 0.5) | ends]
                    continue
                if best is None or best.gap == np.inf:
                    raise
                break
            q = np.maximum(solved.matrix, 0.0)
            violated = violated_pairs(self.terms, q, active)
            own = q.min(axis=0)
            gained = (gains.each.T * (q - own)).sum(axis=0) + gains.flat * own
            lost = gained - values_of(self.f, self.pair, q) / scale
            settled = not any(len(pairs) for pairs in violated)
            better = solved.whole
            if self.conic:
                better = self.ascend(merge(better, self.f, self.pair, 1e-4 if number == 1 else 1e-6))
            if (settled or self.conic) and (champion is None or self.value(better) > value):
                champion, value = better, self.value(better)
            bound = self._bound(gains, kept, solved) * scale
            gap = (bound - value) / max(bound, 1e-300) if settled else np.inf
            stale = 0 if best is None or gap < 0.7 * best.gap else stale + 1
            if best is None or gap <= best.gap:
                best = Round(solved, knots, tuple(active), scale, self.terms, gap, q)
            if gap <= (CONIC_GAP if self.conic else accuracy) or (self.conic and stale == 3):
                break
            if settled and value <= 0 and bound <= 0:
                break
            active = [np.union1d(old, new).astype(np.intp) for old, new in zip(active, violated, strict=True)]
            old = len(knots)
            whole = float(lost.sum())
            enough = 0.01 * whole if self.conic else max(accuracy * solved.value, 0.2 * whole) / len(knots)
            cut = cut_knots(knots, posteriors(self.pair, q), lost > enough)
            graded = champion is better and self.conic
            knots = graded_knots(cut, self.contributing(better)) if graded else cut
            if settled and not self.conic and len(knots) == old:
                break
            if solved.value > 0:
                scale *= solved.value
        if best is None:
            raise SolverError("exchange: no program was solved in the time there was")
        return replace(best, matrix=best.solved.matrix if champion is None else champion), number

    def _solve(
        self, gains: LabelGains, kept: Sequence[Term], knots: Array, memory: Memory | None, large: bool
    ) -> tuple[Solved, Memory | None]:
        """The solved program of the intervals, by the method for large ones or the usual one."""
        if large:
            return interval_program(gains.each, kept, knots, memory, self.deadline)
        return label_program(gains, kept, self.expressions, True), memory

    def value(self, matrix: Array) -> float:
        """The divergence that a matrix keeps."""
        return value_of(self.f, self.pair, np.maximum(matrix, 0.0))

    def _guess(self, knots: Array) -> float:
        """A guess of the optimum's size, for the first program, from the ratios that reports can have."""
        inner = excess_at(self.f, knots[1:-1])
        size = float(np.max(inner[np.isfinite(inner)], initial=0.0)) or float(excess_at(self.f, knots).max()) or 1.0
        sticks = [term for _, term in ByKind(self.terms).sticks if len(term)]
        capped = [float(np.max(term.cap)) for term in sticks if term.factor.max() == 1]
        variation = min(1.0, (widest_ratio(self.terms, len(self.pair)) - 1) / 2)
        return size * min([1.0, *(cap / variation for cap in capped if cap > 0)])

    def _bound(self, gains: LabelGains, kept: Sequence[Term], solved: Solved) -> float:
        """The bound of a solved program, in its own scale; its value where users' constraints have no dual."""
        if self.expressions:
            return solved.value
        reduced, charged = gains.each - solved.rows, float(solved.rows.sum())
        for term, multiplier in zip(kept, solved.multipliers, strict=True):
            if len(term):
                reduced = reduced - term.support(multiplier, len(reduced), len(self.pair))
                charged += term.charge(multiplier)
        return charged + residual(reduced, ByKind(kept).ratio)

    def ascend(self, matrix: Array) -> Array:
        """A channel of no smaller utility than `matrix`, (k, n), for programs with cones; the same matrix for others.

        Solutions of cone programs are less accurate. The few labels of a nearly optimal channel make a small program,
        which is solved to more digits than one with all intervals.
        """
        if not self.conic:
            return matrix

        def best(gains: LabelGains) -> Array:
            return np.maximum(label_program(gains, self.terms, self.expressions, True).whole, 0.0)

        with suppress(SolverError):
            for better in self.climb(matrix, best, 8, 1e-8):
                matrix = better
        return matrix

    def climb(
        self, matrix: Array, best: Callable[[LabelGains], Array], steps: int, share: float, anew: bool = False
    ) -> Iterator[Array]:
        """Better and better channels: the best one for the tangents at the outputs' own ratios, repeated.

        best : the best channel for linear gains. share : of the utility that a merger of outputs may cost. `anew`
        takes the first one even if it is worse, for a `matrix` that does not meet the constraints.
        """
        value = self.value(matrix)
        for _ in self.deadline.inner.rounds(range(steps)):
            new = best(tangent_gains(self.f, self.pair, matrix) / (value if value > 0 else 1.0))
            reached = self.value(new)
            if not anew and reached <= value * (1 + CLIMB_GAIN):
                return
            matrix, value, anew = merge(new, self.f, self.pair, share), reached, False
            yield matrix

    def contributing(self, matrix: Array) -> Array:
        """The posteriors of the outputs that contribute to the utility."""
        values = values_of(self.f, self.pair, matrix)
        return np.asarray(posteriors(self.pair, matrix)[values > 1e-6 * values.sum()])
