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
from ldpopt.design.constraints.base import meets_constraints, outputs_of
from ldpopt.design.constraints.hockey_stick import HockeyStick
from ldpopt.design.constraints.repair import Unrepairable, mix_until_repairable, repair, stochastic
from ldpopt.design.constraints.terms import Term
from ldpopt.design.decisions.proof import AlphabetLossDual, SamplingDual, gains_of, linearized_risk
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
from ldpopt.numbers.tolerances import CAP_ROOM, IDLE_WEIGHT, LOSS_RTOL
from ldpopt.values.distribution import Array

if TYPE_CHECKING:  # loaded where an expected loss is designed for
    from ldpopt.design.decisions.program import Excess

DESCRIPTION = "linear program on the decisions"
MAX_PROGRAM_ENTRIES = 250_000  # Decisions times inputs and constrained pairs of inputs.
RARE_DECISION_LIMITS = (1e-9, 1e-6, 1e-4)  # Decisions that are nowhere more probable may be a solver's noise.
MAX_USUAL_EPSILON = 9.0  # Above it, the least loss is tiny, and ratios are beyond solvers.
MAX_DISTRIBUTION_ENTRIES = 1000  # Of a private sampling: every round adds a tangent to each entry.


@dataclass(frozen=True)
class DecisionProgram(Method, reference="[BCP]", solves=ExpectedLoss, preference=90, by_cvxpy=True):
    """One linear (or cone) program on the decisions of an expected loss, which is linear in the channel.

    >>> from ldpopt.design import ExpectedLoss, LocalDP, optimal_channel
    >>> design = optimal_channel(ExpectedLoss([0.5, 0.5], [[0.0, 1.0], [1.0, 0.0]]), LocalDP(1.0))
    >>> round(design.value, 6), design.certified
    (-0.268941, True)
    """

    def refuses(self, problem: Problem) -> str:
        """Return the reason to refuse the problem.

        The method needs an expected loss, and no constraint on the outputs or one that fits its decisions.
        """
        if not isinstance(problem.utility, ExpectedLoss):
            return f"{problem.utility.name} is no expected loss"
        inputs, decisions = problem.utility.loss.shape
        if not problem.output_constraints:
            return too_large(problem, inputs, decisions, MAX_PROGRAM_ENTRIES)
        count = outputs_of(problem.output_constraints, inputs)
        if count != decisions and (
            count < decisions or any(constraint.labelled for constraint in problem.output_constraints)
        ):
            return f"the constraints fix {count} outputs, and the loss has {decisions} decisions"
        return too_large_to_climb(problem, decisions)

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """Find the channel with the smallest loss, and the multipliers of the program."""
        from ldpopt.design.decisions.program import Excess

        utility = problem.utility
        excess = Excess.from_loss(utility.priors, utility.loss)
        if excess.prohibitive(utility.loss) or (_only_ratios(problem) and problem.epsilon > MAX_USUAL_EPSILON):
            return _candidate_for_prohibitive_losses(problem, excess)
        gains = gains_of(utility.priors, utility.loss)
        if problem.output_constraints:
            shape, restrictions = (
                utility.loss.shape,
                (problem.terms, problem.output_constraints, problem.user_expressions),
            )
            matrix, leaf = AlphabetProgram(shape, *restrictions, len(utility.priors)).solve(gains)
            prove_leaf = None if problem.user_expressions else proof_by(AlphabetLossDual, leaf)
            return Candidate(matrix, DESCRIPTION, prove_leaf)
        scale = float(np.abs(utility.loss[utility.priors.any(axis=0)]).max()) or 1.0
        solutions = _label_solutions(gains / scale, problem.terms, problem.user_expressions)
        largest_ratio = max((term.farthest for term in problem.terms), default=1.0)
        is_close = MatrixVariable.unit_of(problem.terms) <= SPLIT_TV_BOUND
        matrices = []
        for solution in solutions:
            cleaned_matrix = stretch_ratios(np.maximum(solution.matrix, 0.0), largest_ratio)
            cleaned_matrix[:, cleaned_matrix.max(axis=0) <= 1e-9] = (
                0.0  # Decisions that come only from a solver's noise.
            )
            matrices.append(
                stochastic(cleaned_matrix) if is_close else cleaned_matrix / cleaned_matrix.sum(axis=1, keepdims=True)
            )
        best = matrices[int(np.argmax([utility.value(matrix) for matrix in matrices]))]

        def prove(restrictions: Problem, channel: Channel) -> Iterator[Certificate]:
            if restrictions.user_expressions:
                return
            for solution in solutions:
                multipliers = tuple(
                    TermMultiplier(i, np.arange(len(term)), term.scaled(values, scale))
                    for i, (term, values) in enumerate(zip(problem.terms, solution.multipliers, strict=True))
                    if not term.pure
                )
                fields = (restrictions.original_utility, restrictions.constraints, channel)
                yield LossDual(*fields, solution.rows * scale, multipliers, solution.weights)
                best_gains = np.tensordot(solution.weights, gains, 1).max(axis=0)
                for rows in _far_rows(solution.rows * scale, best_gains, problem):
                    yield LossDual(*fields, rows, multipliers, solution.weights)
                if solution.total is not None:
                    yield LossDual(*fields, solution.shifted * scale, multipliers, solution.weights)

        return Candidate(best, DESCRIPTION, prove)


def _only_ratios(problem: Problem) -> bool:
    """Return True if pure LDP between all inputs is the only constraint."""
    return (
        bool(problem.terms)
        and all(t.pure for t in problem.terms)
        and not (problem.output_constraints or problem.user_expressions)
    )


def _candidate_for_prohibitive_losses(problem: Problem, excess: Excess) -> Candidate:
    """Find the best channel for losses, some of them prohibitive, and the multipliers of its programs.

    It is no worse than the best common decision for all inputs, if the constraints allow that.
    """
    from ldpopt.design.decisions.program import (
        CONIC_COST_LIMITS,
        COST_LIMITS,
        Excess,
        best_common_decision,
        constant_channel,
        ratio_program,
    )

    utility, loss = problem.utility, problem.utility.loss
    matrices, proofs = [constant_channel(loss.shape, best_common_decision(utility.priors, loss))], list[Prove]()
    if not problem.output_constraints and not excess.unit > 0:  # One decision is the best for every input.
        rows, weights = np.zeros(problem.utility.size), np.eye(len(excess.priors))[int(excess.ahead.argmax())]
        proofs.append(proof_by(LossDual, excess.rows(rows, weights), (), weights))
    elif _only_ratios(problem):
        for rescaled_excess in filter(None, (excess, excess.raise_inactive(loss), excess.over_common_decision(loss))):
            for matrix, rows, weights in reversed(ratio_program(rescaled_excess, problem.epsilon)):
                matrices.append(matrix)
                proofs += [proof_by(LossDual, *numbers) for numbers in _multipliers(problem, rows, weights)]
    else:
        unit = excess.unit or float(excess.costs[np.isfinite(excess.costs)].max(initial=0.0)) or 1.0
        conic = any(term.conic for term in problem.terms)
        failure = SolverError("linear program on the decisions: no program was solved")
        problems = filter(
            None, (replace(excess, unit=unit), excess.raise_inactive(loss), excess.over_common_decision(loss))
        )
        for rescaled_excess, steep in product(problems, CONIC_COST_LIMITS if conic else COST_LIMITS):
            try:
                matrix, weights, proof, missed_value = _solve_in_excess_units(problem, rescaled_excess, steep)
                matrices.append(matrix)
                proofs.append(proof)
                if missed_value <= LOSS_RTOL * abs(utility.value(matrix)):
                    break
                active_weights = _drop_idle_weights(weights)
                mixture_excess = Excess.from_loss((active_weights @ utility.priors)[None], loss)
                if len(weights) > 1 and mixture_excess.unit > 0:
                    proofs.append(_solve_in_excess_units(problem, mixture_excess, steep, active_weights)[2])
            except SolverError as error:
                failure = error
        if len(matrices) == 1 and problem.output_constraints:
            raise failure
    usable = []
    for matrix in matrices:
        if (repaired_candidate := _repaired_or_none(problem, matrix)) is not None:
            usable.append(repaired_candidate)
        elif problem.tighten(matrix) is not None:
            raise Unrepairable(matrix)  # The program is solved again with the orders that the channel exceeds.
    if not usable:
        raise Unrepairable(matrices[-1])
    best = max(usable, key=lambda repaired_candidate: utility.value(repaired_candidate))

    def prove(problems: Problem, channel: Channel) -> Iterator[Certificate]:
        if not problems.user_expressions:
            for proof in proofs:
                yield from proof(problems, channel)

    return Candidate(best, DESCRIPTION, prove)


def _multipliers(problem: Problem, rows: Array, weights: Array) -> Iterator[tuple[Array, tuple[()], Array]]:
    """Generate the multipliers of a program.

    For several priors, those for the mixture of the active priors follow.
    """
    from ldpopt.design.decisions.program import Excess, ratio_program

    yield rows, (), weights
    if len(weights) == 1:
        return
    active_weights = _drop_idle_weights(weights)
    mixture_excess = Excess.from_loss((active_weights @ problem.utility.priors)[None], problem.utility.loss)
    if mixture_excess.unit > 0:
        with suppress(SolverError):
            for _, mixed_rows, _ in reversed(ratio_program(mixture_excess, problem.epsilon)):
                yield mixed_rows, (), active_weights


def _drop_idle_weights(weights: Array) -> Array:
    """Drop the weights of inactive priors."""
    active = np.where(weights > IDLE_WEIGHT, weights, 0.0)
    return np.asarray(active / active.sum())


def _repaired_or_none(problem: Problem, matrix: Array) -> Array | None:
    """Repair the matrix as `finish` would; None if that is impossible."""
    inputs = problem.labels
    try:
        if problem.output_constraints or problem.fixes_output_order:
            return repair_fixed_outputs(matrix, problem.constraints, inputs)
        return repair(stochastic(matrix), problem.constraints, inputs)
    except SolverError:
        return None


def _solve_in_excess_units(
    problem: Problem, excess: Excess, steep: float, mixture: Array | None = None
) -> tuple[Array, Array, Prove, float]:
    """Solve the program in units of the excess.

    Returns the channel, the weights of its priors, the proof of its multipliers, and the excess of the channel's loss
    over the program's. The program is solved again while the units are far too large. mixture : (j,) the weights of the
    utility's priors, if the excess is that of their mixture.
    """
    while True:
        gains = excess.gains(steep)
        if problem.output_constraints:
            restrictions = (problem.terms, problem.output_constraints, problem.user_expressions)
            program = AlphabetProgram(problem.utility.loss.shape, *restrictions, len(excess.priors))
            matrix, leaf = program.solve(gains, scale=1.0)
            leaf = _multipliers_in_loss_units(leaf, problem, excess)
            weights = leaf.weights
            proof = proof_by(AlphabetLossDual, leaf if mixture is None else replace(leaf, weights=mixture))
        else:
            solution = _label_solutions(
                gains, [_tighten_caps(term) for term in problem.terms], problem.user_expressions
            )[0]
            matrix, weights = np.maximum(solution.matrix, 0.0), solution.weights
            multipliers = tuple(
                TermMultiplier(i, np.arange(len(term)), term.scaled(values, excess.unit))
                for i, (term, values) in enumerate(zip(problem.terms, solution.multipliers, strict=True))
                if not term.pure
            )
            rows = excess.rows(solution.rows, weights, includes_ahead=True)
            proof = proof_by(LossDual, rows, multipliers, weights if mixture is None else mixture)
        is_cut = (excess.costs > steep * excess.unit).any(axis=0)
        program_loss = -excess.unit * float(np.einsum("jyx,xy->j", gains, matrix).min())
        matrix = min(_drop_noise(matrix, np.asarray(is_cut)), key=excess.worst_excess)
        excess_loss = excess.worst_excess(matrix)
        if not 0 < excess_loss < 1e-2 * excess.unit:
            return matrix, weights, proof, excess_loss - program_loss
        excess = replace(excess, unit=excess_loss)


def _drop_noise(matrix: Array, is_cut: Array) -> list[Array]:
    """Drop entries that may be noise from the matrix of a solver; each result drops more of them.

    is_cut : (k, m) where a loss was cut, so that an entry of the size of a tolerance may cost any amount.
    """
    cleaned_matrices, largest = [], matrix.max(axis=0)
    for rare in RARE_DECISION_LIMITS:
        is_unused = (largest <= RARE_DECISION_LIMITS[0]) | (is_cut.any(axis=0) & (largest <= rare))
        clean = np.where((is_cut & (matrix <= 1e-7 * largest)) | is_unused, 0.0, matrix)
        if (clean.sum(axis=1) > 0).all():
            cleaned_matrices.append(clean / clean.sum(axis=1, keepdims=True))
    if not cleaned_matrices:
        raise SolverError("linear program on the decisions: the solver gave some input no decision at all")
    return cleaned_matrices


def _tighten_caps(term: Term) -> Term:
    """Tighten the term's caps slightly, for the rounding of a solver.

    Mixing a channel with a constant one instead would put some of every decision where it is prohibitive.
    """
    return replace(term, caps=term.caps * (1 - CAP_ROOM)) if isinstance(term, HockeyStick) else term


def _multipliers_in_loss_units(leaf: Leaf, problem: Problem, excess: Excess) -> Leaf:
    """Convert the multipliers of a program in units of the excess to the losses themselves."""
    terms = tuple(
        replace(multiplier, values=problem.terms[multiplier.term].scaled(multiplier.values, excess.unit))
        for multiplier in leaf.terms
    )
    alphabet_multipliers = tuple(
        c.scaled(multiplier, excess.unit) for c, multiplier in zip(problem.output_constraints, leaf.fixed, strict=True)
    )
    rows = excess.rows(leaf.rows, leaf.weights / leaf.weights.sum(), includes_ahead=True)
    return replace(leaf, rows=rows, terms=terms, fixed=alphabet_multipliers)


def _far_rows(rows: Array, rows_at_infinity: Array, problem: Problem) -> Iterator[Array]:
    """Row multipliers for a ratio beyond the largest that programs pose, extrapolated from those of the program.

    rows_at_infinity : (k,) their values at an infinite ratio, where every input has its best decision. From there they
        change in proportion to the inverse of the ratio, up to terms of its square.
    """
    ratio = max((term.ratio for term in problem.terms if term.pure), default=1.0)
    for farthest in RATIO_LIMITS:
        if ratio > farthest:
            yield rows_at_infinity + (rows - rows_at_infinity) * ((farthest - 1) / (ratio - 1))


def _label_solutions(gains: Array, terms: Sequence[Term], others: Sequence[Any]) -> list[LabelSolution]:
    """Solve the program; if rows are close and columns may be wide, also in other units.

    The usual unit is that of the smallest columns within the constraints; a row may then sum to 1e13. No solver
    then finds the best common decisions for all inputs, which make up nearly all of the loss. The other unit is that of
    the part that all rows share.
    """
    is_wide = max((term.width for term in terms), default=0.0) > 2 * MatrixVariable.unit_of(terms)
    solutions, failure = [], SolverError("linear program on the decisions: no program was solved")
    for level in (1.0, None) if is_wide and not others else (None,):
        try:
            solutions.append(label_program(gains, terms, others, level=level))
        except SolverError as error:
            failure = error
    if not solutions:
        raise failure
    return solutions


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
        """Return the reason to refuse the problem.

        The method needs a private sampling, and no constraint on the outputs.
        """
        if not isinstance(problem.utility, PrivateSampling):
            return f"{problem.utility.name} is no private sampling"
        if problem.output_constraints:
            return "constraints fix the outputs"
        n, k = problem.utility.distributions.shape
        if n * k > MAX_DISTRIBUTION_ENTRIES:
            return Limit(
                f"{n} distributions of {k} answers have {n * k} shares, and it takes at most {MAX_DISTRIBUTION_ENTRIES}"
            )
        return too_large(problem, n, k, MAX_PROGRAM_ENTRIES)

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """Find the channel with the smallest largest risk.

        An expected loss below the risk is its proof.
        """
        utility = problem.utility
        note, description = "", "linear program on tangents of the risks"
        if meets_constraints(Channel(utility.distributions, problem.labels), problem.constraints):
            description, tangents = (
                "distributions themselves, which are private",
                tangents_at(utility, utility.distributions),
            )
        else:
            try:
                tangents = sampling_program(utility, problem.terms, problem.user_expressions, problem.deadline)
                tangents = (_mix_if_needed(stochastic(tangents[0]), problem), *tangents[1:])
            except Unrepairable:
                raise
            except SolverError as failure:
                mixed_distributions = mix_until_repairable(
                    np.asarray(utility.distributions), problem.constraints, problem.labels
                )
                description, tangents = (
                    "distributions mixed with their mean",
                    tangents_at(utility, stochastic(mixed_distributions)),
                )
                note = f"no solver gave an answer, so this is no optimum ({failure})"
        matrix, ratios, mixture, prior = tangents
        shares = prior / prior.sum()

        def prove(reduced_problem: Problem, channel: Channel) -> Iterator[Certificate]:
            _, slopes = linearized_risk(utility, ratios, mixture, shares)
            loss = ExpectedLoss(shares, slopes, utility.inputs, utility.answers)
            try:
                proof = ask(loss, reduced_problem.constraints).certificate
            except SolverError:
                return
            if proof is not None:
                yield SamplingDual(
                    reduced_problem.original_utility,
                    reduced_problem.constraints,
                    channel,
                    ratios,
                    mixture,
                    shares,
                    proof,
                )

        return Candidate(matrix, description, prove, note=note)


def _mix_if_needed(matrix: Array, problem: Problem) -> Array:
    """Mix the matrix with its mean row as far as `repair` needs; raise `Unrepairable` if further orders may help."""
    try:
        repair(matrix, problem.constraints, problem.labels)
    except Unrepairable as failure:
        if problem.tighten(failure.matrix) is not None:
            raise
        return stochastic(mix_until_repairable(matrix, problem.constraints, problem.labels))
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
        """Return the reason to refuse the problem.

        The method needs constraints on the outputs and a utility with gradients.
        """
        return too_large_to_climb(problem, outputs_of(problem.output_constraints, len(problem.inputs)))

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """Find the best channel of all starts.

        It is the optimum without constraints on the outputs if that meets them.
        """
        if (unlimited_candidate := optimum_within_budget(problem, ask)) is not None:
            return unlimited_candidate
        utility, starts = problem.utility, []
        has_two_outputs = outputs_of(problem.output_constraints, utility.size) == 2
        if has_two_outputs and utility.information and math.isfinite(problem.epsilon):
            # Randomized response about the set nearest to one half.
            truth_probability = 1 / (1 + math.exp(-problem.epsilon))
            first_column = np.where(
                nearest_half(np.asarray(utility.prior))[0], truth_probability, 1 - truth_probability
            )
            starts.append(np.stack([first_column, 1 - first_column], axis=1))
        matrix, _ = Climb.from_problem(problem).best(DEFAULT_STARTS, np.random.default_rng(0), starts)
        return Candidate(matrix, f"local search from {DEFAULT_STARTS} starts")
