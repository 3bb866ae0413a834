"""A problem over a denominator -> the task in integers, with its ratio, its cap and the value of weights."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ldpopt.channel import Channel
from ldpopt.design.candidate import Ask, Candidate
from ldpopt.design.constraints.base import meets_constraints
from ldpopt.design.design import Design
from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.kernel.proof import Relaxed
from ldpopt.design.patterns.proof_levels import IntegerColumns, Integers, as_matrix
from ldpopt.design.problems.problem import Problem
from ldpopt.errors import InvalidInput, SolverError
from ldpopt.exact import exp_lower, largest_distance
from ldpopt.numbers.tolerances import ZERO_VALUE
from ldpopt.values.distribution import Array


@dataclass(frozen=True, eq=False)
class Task:
    """A problem over a denominator, in integers.

    - `total` : D.
    - `ratio` : the largest ratio of two entries of a column, a rational not above e^epsilon; None without a cap.
    - `cap` : the largest total variation of two rows, in units of 1/D; None where it cannot bind.
    """

    problem: Problem
    total: int
    ratio: Fraction | None
    cap: int | None

    @classmethod
    def from_problem(cls, problem: Problem, tighter: bool = False) -> Task:
        """Build the task of a problem.

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
        """Return True if integers (k, m) meet the ratio and the cap."""
        low, high = weights.min(axis=0), weights.max(axis=0)
        if self.ratio is not None and not all(
            b * self.ratio.denominator <= a * self.ratio.numerator
            for a, b in zip(low.tolist(), high.tolist(), strict=True)
        ):
            return False
        return self.is_within_cap(weights)

    def is_within_cap(self, weights: Integers) -> bool:
        """Return True if integers (k, m) meet the cap on total variation."""
        return self.cap is None or int(largest_distance(weights)[0]) <= self.cap

    def rows(self, weights: Integers) -> Array:
        """Build the channel of floats, with one row per input of the problem."""
        rows = as_matrix(weights, self.total)
        return rows if self.utility.pair is None else rows[self.problem.reduction.classes]

    def value(self, weights: Integers) -> float:
        """Compute the channel's utility, or minus its error, so that larger is better."""
        value = float(self.utility.value(Channel(self.rows(weights))))
        return -math.inf if math.isnan(value) else -value if self.utility.error else value

    def measured(self, weights: Integers) -> bool:
        """Return True if the channel of floats, measured, meets every constraint of the problem."""
        return meets_constraints(Channel(self.rows(weights), self.problem.labels), self.problem.constraints)

    def candidate(self, free: Design | None, weights: Integers, description: str, note: str) -> Candidate:
        """Build the candidate of the weights, with the bound of the optimum without a denominator."""
        value, cost = self.value(weights), ""
        if free is not None and abs(free.value) > ZERO_VALUE and math.isfinite(value):
            has_larger_error = self.utility.error or free.value < 0
            share = (
                f"{abs(value / free.value) - 1:.2%} more error"
                if has_larger_error
                else f"{1 - value / free.value:.2%} less"
            )
            cost = f"{share} than without a denominator"

        def prove(problem: Problem, channel: Channel) -> Iterator[Certificate]:
            if free is not None and free.certificate is not None:
                yield Relaxed(problem.original_utility, problem.constraints, channel, free.certificate)
            if IntegerColumns.applies(problem.original_utility, problem.constraints):
                yield IntegerColumns(problem.original_utility, problem.constraints, channel)

        return Candidate(
            as_matrix(weights, self.total), description, prove, note="; ".join(filter(None, (cost, note))),
            shortfall="the bound is that of channels without a denominator",
        )  # fmt: skip


def refusal(problem: Problem) -> str:
    """Return the reason why no method for a denominator applies; empty if one may."""
    if problem.denominator is None:
        return "no constraint gives a denominator"
    if problem.cells is not None or problem.utility.continuous:
        return "the answers are real numbers"
    if problem.output_constraints:
        return "it knows no constraints on the outputs beside a denominator"
    rest = problem.without_denominator
    if rest is None or not rest.has_only_ldp_and_tv:
        return "it knows LocalDP and TotalVariation between all inputs, and no other constraint beside a denominator"
    return ""


def unrestricted(problem: Problem, ask: Ask) -> Design | None:
    """Design the optimum without a denominator; None if there is none, or the search fails."""
    if (rest := problem.without_denominator) is not None:
        with suppress(SolverError, InvalidInput):
            design: Design = ask(problem.original_utility, rest.constraints, certify=problem.proving)
            return design
    return None
