"""Designs whose outputs are decisions or given: one linear or cone program each, or a local search."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.arrange import repair_fixed_outputs
from ldpopt.design.candidate import (
    Ask,
    Candidate,
    Limit,
    Method,
    Prove,
    needs_columns,
    needs_outputs,
    proof_by,
    too_large,
)
from ldpopt.design.constraints.base import outputs_of, within
from ldpopt.design.constraints.hockey_stick import HockeyStick
from ldpopt.design.constraints.repair import Unrepairable, private, repair, stochastic
from ldpopt.design.constraints.terms import Term
from ldpopt.design.decisions.proof import AlphabetLossDual, SamplingDual, gains_of, linearised
from ldpopt.design.information.proof_capacity import nearest_half
from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.outputs.method_search import DEFAULT_STARTS, Climb, optimum_within_budget, too_large_to_climb
from ldpopt.design.outputs.program import AlphabetProgram, sampling_program, stretch_ratios, tangents_at
from ldpopt.design.outputs.proof import Leaf
from ldpopt.design.problems.problem import Problem
from ldpopt.design.ratios.program import RATIO_LIMITS, SPLIT_TV_BOUND, LabelSolution, MatrixVariable, label_program
from ldpopt.design.ratios.proof import LossDual, TermMultiplier
from ldpopt.design.utilities.decisions import ExpectedLoss, PrivateSampling
from ldpopt.errors import SolverError
from ldpopt.numbers.tolerances import CAP_ROOM, IDLE_WEIGHT, MISSED
from ldpopt.values.distribution import Array

if TYPE_CHECKING:  # loaded where an expected loss is designed for
    from ldpopt.design.decisions.program import Excess

HOW = "linear program on the decisions"
ENTRIES = 250_000  # The most decisions times inputs and constrained pairs of inputs
RARE = (1e-9, 1e-6, 1e-4)  # Decisions that are nowhere more probable may be a solver's noise
LARGE_EPSILON = 9.0  # Above it, the least loss is far below that of one decision for all, and ratios are beyond solvers
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
        if not problem.output_constraints:
            return too_large(problem, inputs, decisions, ENTRIES)
        count = outputs_of(problem.output_constraints, inputs)
        if count != decisions and (
            count < decisions or any(constraint.labelled for constraint in problem.output_constraints)
        ):
            return f"the constraints fix {count} outputs, and the loss has {decisions} decisions"
        return too_large_to_climb(problem, decisions)

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The channel with the smallest loss, and the multipliers of the program."""
        from ldpopt.design.decisions.program import Excess

        utility = problem.utility
        excess = Excess.of(utility.priors, utility.loss)
        if excess.prohibitive(utility.loss) or (_only_ratios(problem) and problem.epsilon > LARGE_EPSILON):
            return _far_apart(problem, excess)
        gains = gains_of(utility.priors, utility.loss)
        if problem.output_constraints:
            shape, posed = utility.loss.shape, (problem.terms, problem.output_constraints, problem.user_expressions)
            matrix, leaf = AlphabetProgram(shape, *posed, len(utility.priors)).solve(gains)
            proved = None if problem.user_expressions else proof_by(AlphabetLossDual, leaf)
            return Candidate(matrix, HOW, proved)
        scale = float(np.abs(utility.loss[utility.priors.any(axis=0)]).max()) or 1.0
        every = _solved(gains / scale, problem.terms, problem.user_expressions)
        widest = max((term.farthest for term in problem.terms), default=1.0)
        close = MatrixVariable.unit_of(problem.terms) <= SPLIT_TV_BOUND
        matrices = []
        for solved in every:
            used = stretch_ratios(np.maximum(solved.matrix, 0.0), widest)
            used[:, used.max(axis=0) <= 1e-9] = 0.0  # decisions that come only from a solver's noise
            matrices.append(stochastic(used) if close else used / used.sum(axis=1, keepdims=True))
        best = matrices[int(np.argmax([utility.value(matrix) for matrix in matrices]))]

        def prove(posed: Problem, channel: Channel) -> Iterator[Certificate]:
            if posed.user_expressions:
                return
            for solved in every:
                multipliers = tuple(
                    TermMultiplier(i, np.arange(len(term)), term.scaled(values, scale))
                    for i, (term, values) in enumerate(zip(problem.terms, solved.multipliers, strict=True))
                    if not term.pure
                )
                fields = (posed.original_utility, posed.constraints, channel)
                yield LossDual(*fields, solved.rows * scale, multipliers, solved.weights)
                most = np.tensordot(solved.weights, gains, 1).max(axis=0)
                for rows in _far_rows(solved.rows * scale, most, problem):
                    yield LossDual(*fields, rows, multipliers, solved.weights)
                if solved.total is not None:
                    yield LossDual(*fields, solved.shifted * scale, multipliers, solved.weights)

        return Candidate(best, HOW, prove)


def _only_ratios(problem: Problem) -> bool:
    """Whether pure LDP between all inputs is all that limits the channel."""
    return (
        bool(problem.terms)
        and all(t.pure for t in problem.terms)
        and not (problem.output_constraints or problem.user_expressions)
    )


def _far_apart(problem: Problem, excess: Excess) -> Candidate:
    """The best channel for losses of which some are prohibitive, and the multipliers of its programs.

    It is no worse than the best decision for all inputs alike, where the constraints allow that.
    """
    from ldpopt.design.decisions.program import (
        CONIC_STEEP,
        STEEP,
        Excess,
        best_alike,
        constant_channel,
        ratio_program,
    )

    utility, loss = problem.utility, problem.utility.loss
    tried, proofs = [constant_channel(loss.shape, best_alike(utility.priors, loss))], list[Prove]()
    if not problem.output_constraints and not excess.unit > 0:  # one decision is the best for every input
        rows, weights = np.zeros(problem.utility.size), np.eye(len(excess.priors))[int(excess.ahead.argmax())]
        proofs.append(proof_by(LossDual, excess.rows(rows, weights), (), weights))
    elif _only_ratios(problem):
        for each in filter(None, (excess, excess.raised(loss), excess.beside(loss))):
            for matrix, rows, weights in reversed(ratio_program(each, problem.epsilon)):
                tried.append(matrix)
                proofs += [proof_by(LossDual, *numbers) for numbers in _multipliers(problem, rows, weights)]
    else:
        unit = excess.unit or float(excess.costs[np.isfinite(excess.costs)].max(initial=0.0)) or 1.0
        conic = any(term.conic for term in problem.terms)
        failure = SolverError("linear program on the decisions: no program was solved")
        posed = filter(None, (replace(excess, unit=unit), excess.raised(loss), excess.beside(loss)))
        for each, steep in product(posed, CONIC_STEEP if conic else STEEP):
            try:
                matrix, weights, proof, missed = _in_units(problem, each, steep)
                tried.append(matrix)
                proofs.append(proof)
                if missed <= MISSED * abs(utility.value(matrix)):
                    break
                few = _deciding(weights)
                mixed = Excess.of((few @ utility.priors)[None], loss)
                if len(weights) > 1 and mixed.unit > 0:
                    proofs.append(_in_units(problem, mixed, steep, few)[2])
            except SolverError as error:
                failure = error
        if len(tried) == 1 and problem.output_constraints:
            raise failure
    usable = []
    for matrix in tried:
        if (made := _usable(problem, matrix)) is not None:
            usable.append(made)
        elif problem.tighten(matrix) is not None:
            raise Unrepairable(matrix)  # the program is posed again with the orders that the channel exceeds
    if not usable:
        raise Unrepairable(tried[-1])
    best = max(usable, key=lambda made: utility.value(made))

    def prove(posed: Problem, channel: Channel) -> Iterator[Certificate]:
        if not posed.user_expressions:
            for proof in proofs:
                yield from proof(posed, channel)

    return Candidate(best, HOW, prove)


def _multipliers(problem: Problem, rows: Array, weights: Array) -> Iterator[tuple[Array, tuple[()], Array]]:
    """The multipliers of a program; and for several priors, those for the mixture of the priors that decide alone."""
    from ldpopt.design.decisions.program import Excess, ratio_program

    yield rows, (), weights
    if len(weights) == 1:
        return
    few = _deciding(weights)
    mixed = Excess.of((few @ problem.utility.priors)[None], problem.utility.loss)
    if mixed.unit > 0:
        with suppress(SolverError):
            for _, own, _ in reversed(ratio_program(mixed, problem.epsilon)):
                yield own, (), few


def _deciding(weights: Array) -> Array:
    """The weights without those that decide nothing."""
    few = np.where(weights > IDLE_WEIGHT, weights, 0.0)
    return np.asarray(few / few.sum())


def _usable(problem: Problem, matrix: Array) -> Array | None:
    """The matrix as `finish` would repair it; None where it cannot."""
    inputs = problem.labels
    try:
        if problem.output_constraints or problem.fixes_output_order:
            return repair_fixed_outputs(matrix, problem.constraints, inputs)
        return repair(stochastic(matrix), problem.constraints, inputs)
    except SolverError:
        return None


def _in_units(
    problem: Problem, excess: Excess, steep: float, mixture: Array | None = None
) -> tuple[Array, Array, Prove, float]:
    """The channel of the program in units of the excess, the weights of its priors, the proof of its multipliers, and
    how much more the channel loses than the program says.

    The program is posed again while the units are far too large. mixture : (j,) the weights of the utility's priors, if
    the excess is that of their mixture.
    """
    while True:
        gains = excess.gains(steep)
        if problem.output_constraints:
            posed = (problem.terms, problem.output_constraints, problem.user_expressions)
            program = AlphabetProgram(problem.utility.loss.shape, *posed, len(excess.priors))
            matrix, leaf = program.solve(gains, scale=1.0)
            leaf = _in_own_units(leaf, problem, excess)
            weights = leaf.weights
            proof = proof_by(AlphabetLossDual, leaf if mixture is None else replace(leaf, weights=mixture))
        else:
            solved = _solved(gains, [_tightened(term) for term in problem.terms], problem.user_expressions)[0]
            matrix, weights = np.maximum(solved.matrix, 0.0), solved.weights
            multipliers = tuple(
                TermMultiplier(i, np.arange(len(term)), term.scaled(values, excess.unit))
                for i, (term, values) in enumerate(zip(problem.terms, solved.multipliers, strict=True))
                if not term.pure
            )
            rows = excess.rows(solved.rows, weights, ahead=True)
            proof = proof_by(LossDual, rows, multipliers, weights if mixture is None else mixture)
        cut = (excess.costs > steep * excess.unit).any(axis=0)
        said = -excess.unit * float(np.einsum("jyx,xy->j", gains, matrix).min())
        matrix = min(_without_noise(matrix, np.asarray(cut)), key=excess.lost)
        lost = excess.lost(matrix)
        if not 0 < lost < 1e-2 * excess.unit:
            return matrix, weights, proof, lost - said
        excess = replace(excess, unit=lost)


def _without_noise(matrix: Array, cut: Array) -> list[Array]:
    """The matrix of a solver without entries that may be noise, with more and more of them left out.

    cut : (k, m) where a loss was cut, so that an entry of the size of a tolerance may cost any amount.
    """
    made, top = [], matrix.max(axis=0)
    for rare in RARE:
        unused = (top <= RARE[0]) | (cut.any(axis=0) & (top <= rare))
        clean = np.where((cut & (matrix <= 1e-7 * top)) | unused, 0.0, matrix)
        if (clean.sum(axis=1) > 0).all():
            made.append(clean / clean.sum(axis=1, keepdims=True))
    if not made:
        raise SolverError("linear program on the decisions: the solver gave some input no decision at all")
    return made


def _tightened(term: Term) -> Term:
    """The term with a little room below its caps, for the rounding of a solver. Mixing a channel with a constant one
    to make room would put some of every decision where it is prohibitive.
    """
    return replace(term, caps=term.caps * (1 - CAP_ROOM)) if isinstance(term, HockeyStick) else term


def _in_own_units(leaf: Leaf, problem: Problem, excess: Excess) -> Leaf:
    """The multipliers for the losses themselves, from those of a program in units of the excess."""
    terms = tuple(
        replace(paid, values=problem.terms[paid.term].scaled(paid.values, excess.unit)) for paid in leaf.terms
    )
    fixed = tuple(c.scaled(paid, excess.unit) for c, paid in zip(problem.output_constraints, leaf.fixed, strict=True))
    rows = excess.rows(leaf.rows, leaf.weights / leaf.weights.sum(), ahead=True)
    return replace(leaf, rows=rows, terms=terms, fixed=fixed)


def _far_rows(rows: Array, most: Array, problem: Problem) -> Iterator[Array]:
    """Row multipliers for a ratio beyond the largest that programs pose, extrapolated from those of the program.

    most : (k,) their values at an infinite ratio, where every input has its best decision. From there they change in
    proportion to the inverse of the ratio, up to terms of its square.
    """
    ratio = max((term.ratio for term in problem.terms if term.pure), default=1.0)
    for farthest in RATIO_LIMITS:
        if ratio > farthest:
            yield most + (rows - most) * ((farthest - 1) / (ratio - 1))


def _solved(gains: Array, terms: Sequence[Term], others: Sequence[Any]) -> list[LabelSolution]:
    """The solved program; where rows are close and columns may be wide, also in other units.

    The usual unit is that of the smallest columns within the constraints, in which a whole row may sum to 1e13. No
    solver then finds the decisions that are best for all inputs alike, which make up nearly all of the loss. The other
    unit is that of the part that all rows share.
    """
    wide = max((term.width for term in terms), default=0.0) > 2 * MatrixVariable.unit_of(terms)
    solved, failure = [], SolverError("linear program on the decisions: no program was solved")
    for level in (1.0, None) if wide and not others else (None,):
        try:
            solved.append(label_program(gains, terms, others, level=level))
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
        if problem.output_constraints:
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
                tangents = sampling_program(utility, problem.terms, problem.user_expressions, problem.deadline)
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
                yield SamplingDual(posed.original_utility, posed.constraints, channel, ratios, mixture, shares, proof)

        return Candidate(matrix, how, prove, note=note)


def _mendable(matrix: Array, problem: Problem) -> Array:
    """The matrix, mixed with its mean row as far as `repair` needs; `Unrepairable` where further orders may do."""
    try:
        repair(matrix, problem.constraints, problem.labels)
    except Unrepairable as failure:
        if problem.tighten(failure.matrix) is not None:
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
        return too_large_to_climb(problem, outputs_of(problem.output_constraints, len(problem.inputs)))

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The best channel of all starts, or the optimum without constraints on the outputs if it meets them."""
        if (unlimited := optimum_within_budget(problem, ask)) is not None:
            return unlimited
        utility, given = problem.utility, []
        two = outputs_of(problem.output_constraints, utility.size) == 2
        if two and utility.information and math.isfinite(problem.epsilon):
            # Randomized response about the set nearest to one half.
            high = 1 / (1 + math.exp(-problem.epsilon))
            first = np.where(nearest_half(np.asarray(utility.prior))[0], high, 1 - high)
            given.append(np.stack([first, 1 - first], axis=1))
        matrix, _ = Climb.of(problem).best(DEFAULT_STARTS, np.random.default_rng(0), given)
        return Candidate(matrix, f"local search from {DEFAULT_STARTS} starts")
