"""The common part of methods for channels over a denominator: the task, and moves of single units between outputs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ldpopt.channel import Channel
from ldpopt.design.candidate import Ask
from ldpopt.design.certificates.base import Certificate
from ldpopt.design.certificates.integer_columns import IntegerColumns
from ldpopt.design.certificates.relaxed import Relaxed
from ldpopt.design.columns.integer import Integers
from ldpopt.design.constraints.base import within
from ldpopt.design.design import Design
from ldpopt.design.problems.problem import Problem
from ldpopt.design.programs.integer import as_matrix
from ldpopt.errors import InvalidInput, SolverError
from ldpopt.exact import exp_lower, largest_distance

MOVES = 400
"""The most units that are moved."""


@dataclass(frozen=True, eq=False)
class Task:
    """A problem over a denominator, in integers.

    total : D. ratio : the largest ratio of two entries of a column, a rational not above e^epsilon; None without a cap.
    cap : the largest total variation of two rows, in units of 1/D; None where it cannot bind.
    """

    problem: Problem
    total: int
    ratio: Fraction | None
    cap: int | None

    @classmethod
    def of(cls, problem: Problem, tighter: bool = False) -> Task:
        """The task of a problem.

        tighter : make both caps a little tighter, where a channel of floats measures an ulp more than its integers.
        """
        assert problem.denominator is not None
        D, epsilon, eta = problem.denominator, problem.epsilon, problem.eta
        ratio = None if math.isinf(epsilon) else exp_lower(epsilon) * (1 - Fraction(tighter, 1 << 48))
        cap = math.floor(Fraction(eta) * D) - tighter if eta < 1 else None
        return cls(problem, D, None if ratio is None else max(ratio, Fraction(1)), None if cap is None else max(cap, 0))

    @property
    def inputs(self) -> int:
        """The number of rows; inputs of a pair of hypotheses with equal likelihood ratios share a row."""
        return len(self.problem.inputs)

    @property
    def utility(self) -> Any:
        """The problem's utility, of all inputs."""
        return self.problem.utility

    @property
    def on_rows(self) -> Any:
        """The utility of the merged rows of a pair of hypotheses; else the utility itself."""
        if self.utility.pair is None:
            return self.utility
        pair = self.problem.reduction.pair
        return type(self.utility)(self.utility.f, pair.p0, pair.p1)

    def allows(self, weights: Integers) -> bool:
        """Whether integers (k, m) are within the ratio and the cap."""
        low, high = weights.min(axis=0), weights.max(axis=0)
        if self.ratio is not None and not all(
            b * self.ratio.denominator <= a * self.ratio.numerator
            for a, b in zip(low.tolist(), high.tolist(), strict=True)
        ):
            return False
        return self.cap is None or int(largest_distance(weights)[0]) <= self.cap

    def value(self, weights: Integers) -> float:
        """The channel's utility, or minus its error, so that larger is better."""
        rows = as_matrix(weights, self.total)
        if self.utility.pair is not None:
            rows = rows[self.problem.reduction.classes]
        found = float(self.utility.value(Channel(rows)))
        if math.isnan(found):
            return -math.inf
        return -found if self.utility.error else found

    def measured(self, weights: Integers) -> bool:
        """Whether the channel of floats meets every constraint of the problem by measurement."""
        rows = as_matrix(weights, self.total)
        if self.utility.pair is not None:
            rows = rows[self.problem.reduction.classes]
        return within(Channel(rows, self.problem.labels), self.problem.constraints)


def polished(task: Task, weights: Integers) -> Integers:
    """The weights after moving one unit of a row from one output to another, as long as that helps."""
    best, value = weights, task.value(weights)
    for _ in task.problem.deadline.inner.rounds(range(MOVES)):
        found = max(
            ((task.value(one), at, one) for at, one in enumerate(_moved(task, best))),
            key=lambda item: (item[0], -item[1]),
            default=None,
        )
        if found is None or not found[0] > value + 1e-12 * abs(value):
            return best
        value, _, best = found
    return best


def _moved(task: Task, weights: Integers) -> Iterator[Integers]:
    k, m = weights.shape
    for x in range(k):
        for gives in range(m):
            for takes in range(m):
                if gives != takes and weights[x, gives] > 0:
                    made = weights.copy()
                    made[x, gives] -= 1
                    made[x, takes] += 1
                    if task.allows(made):
                        yield made


def refusal(problem: Problem) -> str:
    """Why no method for a denominator applies; empty where one may."""
    if problem.denominator is None:
        return "no constraint gives a denominator"
    if problem.cells is not None or problem.utility.continuous:
        return "the answers are real numbers"
    if problem.given:
        return "it knows no constraints on the outputs beside a denominator"
    rest = problem.undivided
    if rest is None or not rest.plain:
        return "it knows LocalDP and TotalVariation between all inputs, and no other constraint beside a denominator"
    return ""


def unrestricted(problem: Problem, ask: Ask) -> Design | None:
    """The optimum of the same problem without a denominator; None where there is none, or it is not found."""
    rest = problem.undivided
    if rest is None:
        return None
    with suppress(SolverError, InvalidInput):
        found: Design = ask(problem.whole, rest.constraints)
        return found
    return None


def proofs(free: Design | None, posed: Problem, channel: Channel) -> Iterator[Certificate]:
    """The bound of the problem without a denominator, and for small problems the count of all integer columns."""
    if free is not None and free.certificate is not None:
        yield Relaxed(posed.whole, posed.constraints, channel, free.certificate)
    if IntegerColumns.applies(posed.whole, posed.constraints):
        yield IntegerColumns(posed.whole, posed.constraints, channel)


def cost(free: Design | None, value: float) -> str:
    """A note on what the denominator costs; value : as `Task.value` gives it."""
    if free is None or not free.value or not math.isfinite(value):
        return ""
    if free.utility.error:
        return f"{(-value / free.value - 1):.2%} more error than without a denominator"
    return f"{(1 - value / free.value):.2%} less than without a denominator"
