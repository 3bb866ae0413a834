"""Designs whose outputs are decisions or given: one linear or cone program each, or a local search."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.candidate import Ask, Candidate, Limit, Method, needs_columns, needs_outputs, proved_by, too_large
from ldpopt.design.certificates.base import Certificate
from ldpopt.design.certificates.capacity import nearest_half
from ldpopt.design.certificates.decisions import AlphabetLossDual, SamplingDual, gains_of, linearised
from ldpopt.design.certificates.intervals import LossDual, TermMultiplier
from ldpopt.design.constraints.base import outputs_of, within
from ldpopt.design.constraints.repair import Unrepairable, private, repair, stochastic
from ldpopt.design.methods.local_search import STARTS, Climb, too_large_to_climb, without_budget
from ldpopt.design.problems.problem import Problem
from ldpopt.design.programs.alphabet import AlphabetProgram, sampling_program, stretched, tangents_at
from ldpopt.design.programs.labels import FARTHEST, SPLIT, MatrixVariable, Solved, label_program
from ldpopt.design.utilities.decisions import ExpectedLoss, PrivateSampling
from ldpopt.errors import SolverError
from ldpopt.values.distribution import Array

ENTRIES = 250_000  # The most decisions times inputs and constrained pairs of inputs
DRAWS = 1000  # The most entries of the distributions of a private sampling: every round adds a tangent to each


@dataclass(frozen=True)
class DecisionProgram(Method, reference="[BCP]", solves=ExpectedLoss, preference=90, by_cvxpy=True):
    """One linear (or cone) program on the decisions of an expected loss, which is linear in the channel.

    >>> from ldpopt.design import ExpectedLoss, LocalDP, optimal_channel
    >>> design = optimal_channel(ExpectedLoss([0.5, 0.5], [[0.0, 1.0], [1.0, 0.0]]), LocalDP(1.0))
    >>> round(design.value, 6), design.certified
    (-0.268941, True)
    """

    def refuses(self, problem: Problem) -> str:
        """It needs an expected loss, and no constraint on the outputs or one that fits its decisions."""
        if not isinstance(problem.utility, ExpectedLoss):
            return f"{problem.utility.name} is no expected loss"
        inputs, decisions = problem.utility.loss.shape
        if not problem.given:
            return too_large(problem, inputs, decisions, ENTRIES)
        count = outputs_of(problem.given, inputs)
        if count != decisions and (count < decisions or any(constraint.labelled for constraint in problem.given)):
            return f"the constraints fix {count} outputs, and the loss has {decisions} decisions"
        return too_large_to_climb(problem, decisions)

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The channel with the smallest loss, and the multipliers of the program."""
        utility = problem.utility
        gains = gains_of(utility.priors, utility.loss)
        if problem.given:
            shape, posed = utility.loss.shape, (problem.terms, problem.given, problem.others)
            matrix, leaf = AlphabetProgram(shape, *posed, len(utility.priors)).solve(gains)
            proved = None if problem.others else proved_by(AlphabetLossDual, leaf)
            return Candidate(matrix, "linear program on the decisions", proved)
        scale = float(np.abs(utility.loss).max()) or 1.0
        every = _solved(gains / scale, problem)
        widest = max((term.farthest for term in problem.terms), default=1.0)
        close = MatrixVariable.unit_of(problem.terms) <= SPLIT
        matrices = []
        for solved in every:
            used = stretched(np.maximum(solved.matrix, 0.0), widest)
            used[:, used.max(axis=0) <= 1e-9] = 0.0  # decisions that come only from a solver's noise
            matrices.append(stochastic(used) if close else used / used.sum(axis=1, keepdims=True))
        best = matrices[int(np.argmax([utility.value(matrix) for matrix in matrices]))]

        def prove(posed: Problem, channel: Channel) -> Iterator[Certificate]:
            if posed.others:
                return
            for solved in every:
                multipliers = tuple(
                    TermMultiplier(i, np.arange(len(term)), term.scaled(values, scale))
                    for i, (term, values) in enumerate(zip(problem.terms, solved.multipliers, strict=True))
                    if not term.pure
                )
                fields = (posed.whole, posed.constraints, channel)
                yield LossDual(*fields, solved.rows * scale, multipliers, solved.weights)
                most = np.tensordot(solved.weights, gains, 1).max(axis=0)
                for rows in _far_rows(solved.rows * scale, most, problem):
                    yield LossDual(*fields, rows, multipliers, solved.weights)
                if solved.total is not None:
                    yield LossDual(*fields, solved.shifted * scale, multipliers, solved.weights)

        return Candidate(best, "linear program on the decisions", prove)


def _far_rows(rows: Array, most: Array, problem: Problem) -> Iterator[Array]:
    """Row multipliers for a ratio beyond the largest that programs pose, extrapolated from those of the program.

    most : (k,) their values at an infinite ratio, where every input has its best decision. From there they change in
    proportion to the inverse of the ratio, up to terms of its square.
    """
    ratio = max((term.ratio for term in problem.terms if term.pure), default=1.0)
    for farthest in FARTHEST:
        if ratio > farthest:
            yield most + (rows - most) * ((farthest - 1) / (ratio - 1))


def _solved(gains: Array, problem: Problem) -> list[Solved]:
    """The solved program; where rows are close and columns may be wide, also in other units.

    The usual unit is that of the smallest columns within the constraints, in which a whole row may sum to 1e13. No
    solver then finds the decisions that are best for all inputs alike, which make up nearly all of the loss. The other
    unit is that of the part that all rows share.
    """
    wide = max((term.width for term in problem.terms), default=0.0) > 2 * MatrixVariable.unit_of(problem.terms)
    solved, failure = [], SolverError("linear program on the decisions: no program was solved")
    for level in (1.0, None) if wide and not problem.others else (None,):
        try:
            solved.append(label_program(gains, problem.terms, problem.others, level=level))
        except SolverError as error:
            failure = error
    if not solved:
        raise failure
    return solved


@dataclass(frozen=True)
class SamplingProgram(Method, reference="[PAL]", solves=PrivateSampling, preference=100, by_cvxpy=True):
    """Private sampling by linear programs on tangents of the risks, which are added in rounds [PAL].

    >>> from ldpopt.design import LocalDP, PrivateSampling, optimal_channel
    >>> from ldpopt.divergences import TOTAL_VARIATION
    >>> design = optimal_channel(PrivateSampling(TOTAL_VARIATION, [[0.9, 0.1], [0.1, 0.9]]), LocalDP(1.0))
    >>> round(design.value, 6), design.certified
    (-0.168941, True)
    """

    def refuses(self, problem: Problem) -> str:
        """It needs a private sampling, and no constraint on the outputs."""
        if not isinstance(problem.utility, PrivateSampling):
            return f"{problem.utility.name} is no private sampling"
        if problem.given:
            return "constraints fix the outputs"
        n, k = problem.utility.distributions.shape
        if n * k > DRAWS:
            return Limit(f"{n} distributions of {k} answers have {n * k} shares, and it takes at most {DRAWS}")
        return too_large(problem, n, k, ENTRIES)

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The channel whose largest risk is smallest, and an expected loss below the risk as its proof."""
        utility = problem.utility
        note, how = "", "linear program on tangents of the risks"
        if within(Channel(utility.distributions, problem.labels), problem.constraints):
            how, tangents = "distributions themselves, which are private", tangents_at(utility, utility.distributions)
        else:
            try:
                tangents = sampling_program(utility, problem.terms, problem.others, problem.deadline)
                tangents = (_mendable(stochastic(tangents[0]), problem), *tangents[1:])
            except Unrepairable:
                raise
            except SolverError as failure:
                mixed = private(np.asarray(utility.distributions), problem.constraints, problem.labels)
                how, tangents = "distributions mixed with their mean", tangents_at(utility, stochastic(mixed))
                note = f"no solver gave an answer, so this is no optimum ({failure})"
        matrix, ratios, mixture, prior = tangents
        shares = prior / prior.sum()

        def prove(posed: Problem, channel: Channel) -> Iterator[Certificate]:
            _, slopes = linearised(utility, ratios, mixture, shares)
            loss = ExpectedLoss(shares, slopes, utility.inputs, utility.answers)
            try:
                proof = ask(loss, posed.constraints).certificate
            except SolverError:
                return
            if proof is not None:
                yield SamplingDual(posed.whole, posed.constraints, channel, ratios, mixture, shares, proof)

        return Candidate(matrix, how, prove, note=note)


def _mendable(matrix: Array, problem: Problem) -> Array:
    """The matrix, mixed with its mean row as far as `repair` needs; `Unrepairable` where further orders may do."""
    try:
        repair(matrix, problem.constraints, problem.labels)
    except Unrepairable as failure:
        if problem.tightened(failure.matrix) is not None:
            raise
        return stochastic(private(matrix, problem.constraints, problem.labels))
    return matrix


@dataclass(frozen=True)
class GivenSearch(Method, reference="[CCP]", needs=(needs_outputs, needs_columns), preference=80, by_cvxpy=True):
    """Local search over channels with given outputs, for column utilities; the bound is that of free outputs.

    >>> from ldpopt.design import LocalDP, MutualInformation, Outputs, optimal_channel
    >>> design = optimal_channel(MutualInformation([0.5, 0.5]), [LocalDP(1.0), Outputs(2)])
    >>> round(design.value, 6), design.certified
    (0.110944, True)
    """

    def refuses(self, problem: Problem) -> str:
        """It needs constraints on the outputs and a utility with gradients."""
        return too_large_to_climb(problem, outputs_of(problem.given, len(problem.inputs)))

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The best channel of all starts, or the optimum without constraints on the outputs if it meets them."""
        if (unlimited := without_budget(problem, ask)) is not None:
            return unlimited
        utility, given = problem.utility, []
        two = outputs_of(problem.given, utility.size) == 2
        if two and utility.information and math.isfinite(problem.epsilon):
            # Randomized response about the set nearest to one half.
            high = 1 / (1 + math.exp(-problem.epsilon))
            first = np.where(nearest_half(np.asarray(utility.prior))[0], high, 1 - high)
            given.append(np.stack([first, 1 - first], axis=1))
        matrix, _ = Climb.of(problem).best(STARTS, np.random.default_rng(0), given)
        return Candidate(matrix, f"local search from {STARTS} starts")
