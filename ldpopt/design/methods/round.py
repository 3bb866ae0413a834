"""One round of the exchange: a solved program over ratio intervals, whose dual values are a certificate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.certificates.base import Certificate
from ldpopt.design.certificates.intervals import IntervalDual, TermMultiplier
from ldpopt.design.constraints.hockey_stick import HockeyStick
from ldpopt.design.constraints.terms import Ratio, Term
from ldpopt.design.problems.problem import Problem
from ldpopt.design.programs.flows import closed
from ldpopt.design.programs.gains import chord_gains
from ldpopt.design.programs.labels import Solved, scaled
from ldpopt.distribution import Array, Index

MANY = 100
"""With more inputs than this, multipliers are taken from the solver without correction."""


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
    terms: tuple[Term | Ratio, ...]
    gap: float
    matrix: Array

    def prove(self, problem: Problem, channel: Channel) -> Iterator[Certificate]:
        """Certificates of the dual values, corrected and as they are; none where a constraint has no column form."""
        if problem.others:
            return
        if not any(isinstance(term, Ratio) for term in self.terms):
            yield self._certificate(problem, channel, *self._closed(problem))
        yield self._certificate(problem, channel, self.solved.rows, self.solved.multipliers)

    def _certificate(self, problem: Problem, channel: Channel, rows: Array, values: Sequence[Array]) -> IntervalDual:
        multipliers = []
        for number, (pairs, each) in enumerate(zip(self.active, values, strict=True)):
            if isinstance(self.terms[number], HockeyStick) and len(pairs):
                paid = np.flatnonzero(each.any(axis=0))
                pairs, each = pairs[paid], each[:, paid]
            multipliers.append(TermMultiplier(number, pairs, scaled(self.terms[number], each, self.scale)))
        fields = (problem.whole, problem.constraints, channel, rows * self.scale, tuple(multipliers))
        return IntervalDual(*fields, problem.reduction.classes if problem.symmetric else None, self.knots)

    def _closed(self, problem: Problem) -> tuple[Array, Sequence[Array]]:
        """The multipliers of the rows and of the terms, corrected up to rounding by `flows.closed`."""
        kept = [t if isinstance(t, Ratio) else t.take(a) for t, a in zip(self.terms, self.active, strict=True)]
        if self.solved.rows.size > MANY or not any(isinstance(term, HockeyStick) for term in kept):
            return self.solved.rows, self.solved.multipliers
        pair = problem.reduction.pair
        profits = chord_gains(problem.utility.f, pair, self.knots).each / self.scale - self.solved.rows
        return closed(profits, self.solved.rows, kept, self.solved.multipliers)
