"""Caps on divergences between rows where likelihood ratios have no finite end, and the utility is infinite there.

The program is that of `programs.labels`. The gain on every interval is the chord of the utility; beyond the last cut
towards the infinite end it is the tangent there, and moments pay for the rest (`certificates.tails`). The program's
prices are the certificate as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ldpopt.design.certificates.intervals import IntervalDual, TermMultiplier
from ldpopt.design.constraints.moment import Moment
from ldpopt.design.constraints.terms import ByKind
from ldpopt.design.methods.clean import merge
from ldpopt.design.methods.exchange import Labels
from ldpopt.design.problems.problem import Problem
from ldpopt.design.programs.knots import graded_knots, parted_knots
from ldpopt.design.programs.labels import chord_gains, excess_at, posteriors, tangent_gains, value_of, values_of
from ldpopt.design.programs.moments import Priced, moment_program
from ldpopt.distribution import Array, Index
from ldpopt.enclosures import FLOAT

GRID = 25
SHARE = 0.1
MIN_GAIN = 1e-9  # The search ends with a step that gains a smaller share than this
# Terms of up to this many pairs are posed whole; of larger ones, and of orders added later, pairs that bind join.
MAX_WHOLE = 300


def endless(problem: Problem) -> bool:
    """Whether the utility is infinite at an end of the ratios, and every constraint caps a moment of finite order."""
    labels = Labels.of(problem)
    infinite = not np.isfinite(excess_at(labels.f, np.array([labels.low, labels.high]))).all()
    return infinite and all(term.conic for term in labels.terms)


def moments(problem: Problem) -> tuple[Moment, ...]:
    """The terms of a problem that has only moments."""
    terms = Labels.of(problem).terms
    assert all(term.conic for term in terms), "terms are numbered among all of the problem's"
    return tuple(term for _, term in ByKind(terms).moments)


class EndlessExchange:
    """The state: the orders and pairs posed so far, the intervals, the best channel, and the best bound."""

    def __init__(self, problem: Problem) -> None:
        labels = Labels.of(problem)
        self.f, self.pair = labels.f, labels.pair
        self.knots = labels.first(GRID)
        self.champion = np.ones((len(self.pair), 1))
        self.active: dict[tuple[float, float], Index] = {}
        self.proof: IntervalDual | None = None
        self.why = ""
        self.asked = problem
        self.pose(problem)

    def pose(self, problem: Problem) -> None:
        """Take the problem's orders; the terms of new orders begin with the pairs that the champion nearly binds."""
        self.problem = problem
        self.terms = moments(problem)
        first = not self.active
        for term in self.terms:
            if (term.order, term.cap) in self.active:
                continue
            if not first:
                pairs = np.flatnonzero(term.excess(self.champion) > -0.2 * term.cap)
            elif len(term) <= MAX_WHOLE:
                pairs = np.arange(len(term))
            else:
                order = np.argsort(self.pair.posterior)
                pairs = np.flatnonzero(np.isin(term.left, order[[0, -1]]) | np.isin(term.right, order[[0, -1]]))
            self.active[term.order, term.cap] = pairs

    def value(self, matrix: Array) -> float:
        """The divergence that a matrix keeps."""
        return value_of(self.f, self.pair, matrix)

    def run(self, rounds: int, accuracy: float) -> int:
        """Solve on finer and finer intervals until bound and value meet; returns the number of programs."""
        least, stale, value = np.inf, 0, 0.0
        for number in self.asked.deadline.rounds(range(1, rounds + 1)):
            gains = chord_gains(self.f, self.pair, self.knots)
            # The median, because labels near an end where the utility is steep say nothing about the optimum.
            scale = value if value > 0 else float(np.median(np.abs(gains.each).max(axis=1))) or 1.0
            solved, posed = self.solve((gains / scale).each, min(max(1e-3 * (least - value) / scale, 1e-9), 1e-5))
            q = _channel(solved)
            better = self.ascend(merge(q, self.f, self.pair, 1e-4 if number == 1 else 1e-6))
            if self.value(better) > value:
                self.champion, value = better, self.value(better)
            proof = self.certificate(solved, posed, scale)
            proved = proof.bound_in(FLOAT)
            bound, self.why = proved.value, proved.why
            stale = 0 if bound - value < 0.9 * (least - value) else stale + 1
            if bound < least:
                self.proof, least = proof, bound
            while (tighter := self.problem.tightened(self.champion)) is not None:
                # The channel meets fewer orders, and is only a start: the next one meets the added orders as well.
                self.pose(tighter)
                self.champion = self.ascend(self.champion, anew=True)
                value, stale = self.value(self.champion), 0
            if least * (1 - accuracy) <= value or stale >= 3 or least <= 0:
                break
            cut = self.cut(solved, scale, (least - value) / scale / len(self.pair))
            self.knots = graded_knots(cut, self.posterior(self.champion))
        return number

    def cut(self, solved: Priced, scale: float, gap: float) -> Array:
        """The knots, with further ones that quarter the intervals that may still matter.

        An interval matters while its slack is within about the `gap`, and its chord lies above the utility by a share
        of the gap.
        """
        middle = (self.knots[1:] + self.knots[:-1]) / 2
        height = excess_at(self.f, self.knots)
        above = (height[1:] + height[:-1]) / 2 - excess_at(self.f, middle)
        above = above * (solved.columns @ (self.pair.p0 + self.pair.p1)) / solved.columns.sum(axis=1) / scale
        # Beyond the last cut towards an end where the utility is infinite, moments pay for the rest.
        closed = np.isfinite(height[1:]) & np.isfinite(height[:-1])
        at = np.flatnonzero((solved.slack <= 3 * gap) & (above > SHARE * gap) & closed)
        # Where intervals are far from mattering, every other knot is dropped: the chord stays well below its price.
        idle = (solved.slack > 10 * gap) & (solved.slack > 20 * above)
        gone = np.flatnonzero(idle[1:] & idle[:-1]) + 1
        gone = self.knots[gone[gone % 2 == 1]]
        cut = parted_knots(self.knots, np.where(np.isin(np.arange(len(middle)), at), 4, 1))
        return np.asarray(cut[~np.isin(cut, gone) | (cut == 0.5)])

    def posterior(self, matrix: Array) -> Array:
        """The posteriors of the outputs that contribute to the utility."""
        worth = values_of(self.f, self.pair, matrix)
        return np.asarray(posteriors(self.pair, matrix)[worth > 1e-6 * worth.sum()])

    def solve(self, gains: Array, accuracy: float = 1e-9) -> tuple[Priced, list[Index]]:
        """The solution of the program, and the pairs of every term that were posed; pairs that bind join in rounds."""
        for _ in range(12):
            posed = [self.active[term.order, term.cap] for term in self.terms]
            taken = [term.take(pairs) for term, pairs in zip(self.terms, posed, strict=True)]
            solved = moment_program(gains, taken, accuracy)
            q = _channel(solved)
            grown = False
            for term, pairs in zip(self.terms, posed, strict=True):
                excess = term.excess(q)
                excess[pairs] = -np.inf
                new = np.flatnonzero(excess > 1e-8 * term.cap)
                new = new[np.argsort(-excess[new])][: 4 * len(self.pair)]
                grown |= len(new) > 0
                self.active[term.order, term.cap] = np.union1d(pairs, new).astype(np.intp)
            if not grown:
                break
        return solved, posed

    def ascend(self, matrix: Array, anew: bool = False) -> Array:
        """A channel of no smaller utility: the best for the tangents at the outputs' own ratios, repeated.

        `anew` takes the first one even if it is worse, for a `matrix` that does not meet the constraints.
        """
        value = self.value(matrix)
        for _ in range(10):
            gains = tangent_gains(self.f, self.pair, matrix) / (value if value > 0 else 1.0)
            new = _channel(self.solve(gains.each)[0])
            reached = self.value(new)
            if not anew and reached <= value * (1 + MIN_GAIN):
                break
            matrix, value, anew = merge(new, self.f, self.pair, 1e-10), reached, False
        return matrix

    def better(self, matrix: Array) -> Array:
        """A channel of no smaller utility."""
        return self.ascend(matrix)

    def certificate(self, solved: Priced, posed: Sequence[Index], scale: float) -> IntervalDual:
        """The multipliers, and the tangent planes of psi at the columns."""
        multipliers, n = [], len(solved.columns)
        for number, (pairs, weights) in enumerate(zip(posed, solved.weights, strict=True)):
            term = self.terms[number].take(pairs)
            top = np.exp(min(200.0, 500 / term.order))  # the tangent plane's slopes stay finite
            t = np.clip(solved.columns[:, term.left] / solved.columns[:, term.right], 1e-80, top)
            pair, label = np.tile(np.arange(len(term)), n), np.repeat(np.arange(n), len(term))
            values = np.stack([pair, label, t.ravel(), np.tile(weights * scale, n)])
            multipliers.append(TermMultiplier(number, pairs, values))
        problem = self.problem
        fields = (problem.whole, self.asked.constraints, None, solved.rows * scale, tuple(multipliers))
        classes = problem.reduction.classes if problem.symmetric else None
        return IntervalDual(*fields, classes, self.knots, posed=problem.constraints)


def _channel(solved: Priced) -> Array:
    """The columns as a matrix (k, n) whose rows sum to one."""
    return np.asarray(solved.columns.T / solved.columns.sum(axis=0)[:, None])
