"""Designs whose outputs are given, for utilities without a likelihood ratio: local search and linear programs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.candidate import Ask, Candidate, Method
from ldpopt.design.certificates.base import Certificate
from ldpopt.design.certificates.capacity import nearest_half
from ldpopt.design.certificates.decisions import AlphabetLossDual, gains_of
from ldpopt.design.constraints.base import outputs_of
from ldpopt.design.methods.budgets import possible, without_budget
from ldpopt.design.methods.local_search import STARTS, Climb, too_large_to_climb
from ldpopt.design.problems.problem import Problem
from ldpopt.design.programs.alphabet import AlphabetProgram
from ldpopt.design.utilities.base import ColumnUtility
from ldpopt.design.utilities.expected_loss import ExpectedLoss
from ldpopt.distribution import Array


@dataclass(frozen=True)
class GivenSearch(Method):
    """Local search over channels with given outputs, for column utilities; the bound is that of free outputs.

    >>> from ldpopt.design import LocalDP, MutualInformation, Outputs, optimal_channel
    >>> design = optimal_channel(MutualInformation([0.5, 0.5]), [LocalDP(1.0), Outputs(2)])
    >>> round(design.value, 6), design.certified
    (0.110944, True)
    """

    reference: ClassVar[str] = "[CCP]"
    preference: ClassVar[int] = 80

    def refuses(self, problem: Problem) -> str:
        """It needs constraints on the outputs and a utility with gradients."""
        if not problem.given:
            return "it needs a constraint on the outputs, such as Outputs(m)"
        if not isinstance(problem.utility, ColumnUtility):
            return f"{problem.utility.name} is no sum over outputs of functions of the column"
        return too_large_to_climb(problem, outputs_of(problem.given, len(problem.inputs)))

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The best channel of all starts, or the optimum without constraints on the outputs if it meets them."""
        possible(problem)
        if (found := without_budget(problem, ask)) is not None:
            return found
        matrix, _ = Climb.of(problem).best(STARTS, np.random.default_rng(0), tuple(_halves(problem)))
        return Candidate(matrix, f"local search from {STARTS} starts")


def _halves(problem: Problem) -> Iterator[Array]:
    """For mutual information with two outputs under pure LDP: randomized response about the set nearest to one half."""
    utility = problem.utility
    two = outputs_of(problem.given, utility.size) == 2
    if two and utility.information and math.isfinite(problem.epsilon):
        chosen = nearest_half(np.asarray(utility.prior))[0]
        high = 1 / (1 + math.exp(-problem.epsilon))
        first = np.where(chosen, high, 1 - high)
        yield np.stack([first, 1 - first], axis=1)


@dataclass(frozen=True)
class GivenDecisions(Method):
    """The linear program of an expected loss whose constraints fix the decisions.

    >>> from ldpopt.design import ExpectedLoss, LocalDP, Outputs, optimal_channel
    >>> design = optimal_channel(ExpectedLoss([0.5, 0.5], [[0.0, 1.0], [1.0, 0.0]]), [LocalDP(1.0), Outputs(2)])
    >>> round(design.value, 6), design.certified
    (-0.268941, True)
    """

    reference: ClassVar[str] = "[BCP]"
    solves = ExpectedLoss
    preference: ClassVar[int] = 70

    def refuses(self, problem: Problem) -> str:
        """It needs an expected loss and constraints on its decisions."""
        if not isinstance(problem.utility, ExpectedLoss):
            return f"{problem.utility.name} is no expected loss"
        if not problem.given:
            return "no constraint fixes the outputs"
        count = outputs_of(problem.given, problem.utility.size)
        m = problem.utility.loss.shape[1]
        if count != m and (count < m or any(one.labelled for one in problem.given)):
            return f"the constraints fix {count} outputs, and the loss has {m} decisions"
        return too_large_to_climb(problem, m)

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The channel with the least loss, and its multipliers."""
        utility = problem.utility
        program = AlphabetProgram(utility.loss.shape, problem.terms, problem.given, problem.others, len(utility.priors))
        matrix, leaf = program.solve(gains_of(utility.priors, utility.loss))

        def prove(posed: Problem, channel: Channel) -> Iterator[Certificate]:
            if not posed.others:
                yield AlphabetLossDual(posed.whole, posed.constraints, channel, leaf)

        return Candidate(matrix, "linear program on the decisions", prove)
