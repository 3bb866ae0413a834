"""Exchange over ratio intervals: the optimum under any constraint that is a convex sum over outputs.

Cut the likelihood ratios M0/M1 into intervals. Above each, the chord of the divergence is linear in the column, so the
best channel with one output an interval is a convex program: an upper bound, because outputs of one interval merge for
free. Its channel, re-measured, is a lower bound. Where an output lies strictly inside its interval the interval is cut
at that output's own ratio, and closely around it; pairs of inputs join when the channel violates their constraint. Both
bounds meet after a handful of rounds, and the last dual values are the certificate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.certificate import Certificate
from ldpopt.design.constraints.base import ColumnConstraint
from ldpopt.design.interval_dual import IntervalDual, Multiplier, chords
from ldpopt.design.methods import Found
from ldpopt.design.problem import Problem
from ldpopt.design.program import Expression, Solved, label_program
from ldpopt.design.terms import Box, Index, Term
from ldpopt.distribution import Array
from ldpopt.divergences import FDivergence
from ldpopt.errors import InvalidInput, invalid

ROUNDS = 40
GRID = 25
ACCURACY = 1e-8
EVERY = 60
"""Terms of up to this many pairs are posed whole; of larger ones, the pairs that bind are found round by round."""


@dataclass(frozen=True)
class Exchange:
    """Ratio-labelled exchange, for every constraint, with a bound from each program's dual values.

    rounds : the most programs to solve. accuracy : the relative gap at which to stop.
    """

    rounds: int = ROUNDS
    accuracy: float = ACCURACY

    def __post_init__(self) -> None:
        if not isinstance(self.rounds, int) or self.rounds < 1:
            raise invalid("rounds", "an integer of at least 1", self.rounds)
        if not self.accuracy > 0:
            raise invalid("accuracy", "a positive number", self.accuracy)

    def find(self, problem: Problem) -> Found:
        """The channel of the last program, its outputs merged where they are too rare to matter."""
        labels = Labels.of(problem)
        best, rounds = labels.refine(self.rounds, self.accuracy)
        matrix = tidy(best.solved.matrix, labels.p0, labels.p1)
        how = f"exchange over {len(best.knots) - 1} ratio intervals in {rounds} rounds"
        return Found(matrix, how, best.certificate)


@dataclass(frozen=True, eq=False)
class Round:
    """One solved program: its intervals, its active pairs, and the dual values as a certificate."""

    solved: Solved
    knots: Array
    active: tuple[Index, ...]
    scale: float

    def certificate(self, problem: Problem, channel: Channel) -> Certificate | None:
        """The certificate of the dual values; None where a constraint has no column form."""
        constraints = tuple(c for c in problem.constraints if isinstance(c, ColumnConstraint))
        if len(constraints) < len(problem.constraints):
            return None
        multipliers = tuple(
            Multiplier(number, pairs, _scaled(values, self.scale))
            for number, (pairs, values) in enumerate(zip(self.active, self.solved.multipliers, strict=True))
        )
        points = np.column_stack([problem.reduction.pair.p0, problem.reduction.pair.p1])
        return IntervalDual(
            problem.utility, channel, problem.epsilon, problem.eta,
            constraints, points, self.knots, self.solved.rows * self.scale, multipliers,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Labels:
    """The ratio-labelled program of a problem, to be solved on finer and finer intervals."""

    f: FDivergence
    p0: Array
    p1: Array
    terms: tuple[Term | Box, ...]
    expressions: tuple[Expression, ...]
    low: float
    high: float

    @classmethod
    def of(cls, problem: Problem) -> Labels:
        """The program, or `InvalidInput` when the utility would be infinite."""
        pair, f = problem.reduction.pair, problem.utility.f
        terms: list[Term | Box] = []
        expressions: list[Expression] = []
        for constraint in problem.constraints:
            if isinstance(constraint, ColumnConstraint):
                terms += constraint.columns(problem.inputs)
            else:
                expressions.append(constraint.expression)  # type: ignore[attr-defined]
        total = pair.p0 + pair.p1
        posterior = (pair.p0 / np.where(total > 0, total, 1.0))[total > 0]
        low, high = float(posterior.min()), float(posterior.max())
        ratio = min((term.ratio for term in terms if isinstance(term, Box)), default=np.inf)
        if np.isfinite(ratio):
            # Slightly outward, so that rounding leaves no ratio uncovered.
            low = max(low, 1 / (1 + ratio) * (1 - 1e-12))
            high = min(high, 1 - 1 / (1 + ratio) * (1 - 1e-12))
        made = cls(f, pair.p0, pair.p1, tuple(terms), tuple(expressions), low, high)
        if not np.isfinite(f.excess(np.array([low, high]), 1 - np.array([low, high]))).all():
            raise InvalidInput(
                f"constraints: {f.name} may be infinite for these hypotheses; "
                "add LocalDP or take a bounded divergence"
            )
        return made

    def refine(self, rounds: int, accuracy: float) -> tuple[Round, int]:
        """Solve on finer and finer intervals; the round with the smallest gap, and how many there were."""
        knots = self._grid()
        active = [self._first(term) for term in self.terms]
        scale = float(self.f.excess(knots, 1 - knots).max()) or 1.0
        best: Round | None = None
        least = np.inf
        for number in range(1, rounds + 1):
            gains = chords(self.f, self.p0, self.p1, knots) / scale
            kept = [t if isinstance(t, Box) else t.take(a) for t, a in zip(self.terms, active, strict=True)]
            solved = label_program(gains, kept, self.expressions)
            made = Round(solved, knots, tuple(active), scale)
            violated = self._violated(solved.matrix, active)
            a, b = np.maximum(self.p0 @ solved.matrix, 0.0), np.maximum(self.p1 @ solved.matrix, 0.0)
            lost = (gains.T * solved.matrix).sum(axis=0) - self.f.excess(a, b) / scale
            gap = float(lost.sum())
            settled = not any(len(pairs) for pairs in violated)
            if best is None or (settled and gap < least):
                best, least = made, gap if settled else np.inf
            if settled and gap <= accuracy * solved.value + 1e-12:
                break
            active = [np.union1d(old, new).astype(np.intp) for old, new in zip(active, violated, strict=True)]
            knots = self._cut(knots, a, b, lost, accuracy * abs(solved.value) / len(knots))
            if solved.value > 1e-6:
                scale *= solved.value
        assert best is not None
        return best, number

    def _grid(self) -> Array:
        """Even in log-ratio, and the ratio one, where many divergences have a kink."""
        low, high = (np.log(max(s, 1e-9)) - np.log(max(1 - s, 1e-9)) for s in (self.low, self.high))
        inner = 1 / (1 + np.exp(-np.linspace(low, high, GRID)[1:-1]))
        knots = np.unique(np.concatenate([[self.low, self.high, 0.5], inner]))
        knots = knots[(knots >= self.low) & (knots <= self.high)]
        return _apart(knots)

    def _first(self, term: Term | Box) -> Index:
        """The pairs to begin with."""
        if len(term) <= max(EVERY, 2 * len(self.p0)) or not hasattr(term, "left"):
            return np.arange(len(term))
        total = np.maximum(self.p0 + self.p1, 1e-300)
        order = np.argsort(self.p0 / total)
        ends = order[[0, -1]]
        return np.flatnonzero(np.isin(term.left, ends) & np.isin(term.right, ends))

    def _violated(self, matrix: Array, active: Sequence[Index]) -> list[Index]:
        """The pairs outside the active ones that the matrix violates most, a few for every input."""
        found = []
        for term, pairs in zip(self.terms, active, strict=True):
            if isinstance(term, Box) or len(pairs) == len(term):
                found.append(np.zeros(0, dtype=np.intp))
                continue
            excess = term.excess(np.maximum(matrix, 0.0))
            excess[pairs] = -np.inf
            worst = np.argsort(-excess)[: 4 * len(matrix)]
            found.append(worst[excess[worst] > 1e-9])
        return found

    def _cut(self, knots: Array, a: Array, b: Array, lost: Array, enough: float) -> Array:
        """Cut the intervals where outputs lose, at their own ratios and a sixteenth of the interval around them."""
        at = np.flatnonzero((lost > enough) & (a + b > 1e-9))
        inside = np.clip(a[at] / (a[at] + b[at]), knots[at], knots[at + 1])
        step = np.diff(knots)[at] / 16
        new = np.concatenate([inside, inside - step, inside + step])
        return _apart(np.unique(np.concatenate([knots, np.clip(new, self.low, self.high)])))


def tidy(matrix: Array, p0: Array, p1: Array) -> Array:
    """Merge every output too rare to matter into the frequent output of the nearest posterior.

    Merging keeps the rows' sums and every constraint that is a convex sum over outputs.
    """
    q = np.maximum(matrix, 0.0)
    mass = q.max(axis=0)
    big = np.flatnonzero(mass > 1e-7)
    total = np.maximum((p0 + p1) @ q, 1e-300)
    posterior = p0 @ q / total
    out = q[:, big].copy()
    for y in np.flatnonzero((mass <= 1e-7) & (mass > 0)):
        out[:, int(np.argmin(np.abs(posterior[big] - posterior[y])))] += q[:, y]
    return out


def _apart(knots: Array) -> Array:
    """Knots with at least 1e-9 between them, both ends kept."""
    kept = knots[np.concatenate([[True], np.diff(knots) > 1e-9])]
    kept[-1] = knots[-1]
    return kept


def _scaled(values: Array, scale: float) -> Array:
    """A multiplier times `scale`; of a moment's (weights, ratios) only the weights scale."""
    return values * np.array([scale, 1.0])[:, None, None] if values.ndim == 3 else values * scale
