"""Optimize under user-defined constraints by comparing several channels, mixed and split.

No result is worse than the repaired optimum without these constraints. A method for two hypotheses or for any column
utility merges and splits outputs. This is free if a constraint is a sum over outputs of homogeneous functions of the
column. A user-defined constraint may be of another type. For example, a cap on single entries is met by splitting an
output into equal copies, and broken by merging them.

So three types of channels are compared:

- the channel of the method;
- the optimum without the user's constraints, with each output split into equal copies, mixed with a constant channel as
  far as necessary;
- the channels of local searches that do not merge outputs.

A function of the matrix may refer to outputs by position. Then there are at most as many outputs as a search has by
default.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.arrange import arrange, repair_fixed_outputs
from ldpopt.design.candidate import Ask, Candidate, Method, proof_by
from ldpopt.design.constraints.base import Measured, meets_constraints
from ldpopt.design.constraints.outputs import Denominator
from ldpopt.design.constraints.repair import mixing_cost, stochastic
from ldpopt.design.kernel.proof import Relaxed
from ldpopt.design.outputs.method_search import Climb, LocalSearch
from ldpopt.design.problems.problem import Problem
from ldpopt.design.utilities.base import ColumnUtility
from ldpopt.design.utilities.decisions import ExpectedLoss, PrivateSampling
from ldpopt.errors import InvalidInput, SolverError
from ldpopt.numbers.tolerances import REPAIR_LOSS
from ldpopt.values.distribution import Array

FAILURES = (SolverError, InvalidInput, ArithmeticError, LookupError, TypeError, ValueError)
"""Errors of a user's expression or measure for a number of outputs that it was not written for."""
MAX_OUTPUTS_OF_COPIES = 1024  # Outputs after splitting into equal copies
MAX_ENTRIES_TO_CLIMB = 500  # Entries of a channel that starts a local search
MAX_PAIRS_TIMES_OUTPUTS = 2000  # Pairs of inputs times outputs of a search with more outputs than by default


@dataclass(frozen=True, eq=False)
class _ScoredCandidate:
    """A candidate and the score of its channel: more is better, -inf if it breaks a constraint."""

    candidate: Candidate
    score: float


def best_under_user_constraints(
    problem: Problem, find: Callable[[], Candidate], ask: Ask, method: Method | None, certify: bool
) -> Candidate:
    """Return the best candidate under user-defined constraints.

    find : the search of the chosen method. method : the one that the caller named; None also runs local searches.
    Raises the `SolverError` or `InvalidInput` of `find` if no channel at all meets the constraints.
    """
    candidates: list[_ScoredCandidate] = []
    baseline = _optimum_without_user_constraints(problem, ask, certify)
    sufficient_score = np.inf
    if baseline is not None:
        matrix, design = baseline
        candidates += [
            _scored_candidate(problem, candidate)
            for candidate in _mixtures(problem, matrix, design, _max_outputs(problem, method))
        ]
        score = _score(problem, matrix)
        sufficient_score = score - REPAIR_LOSS * abs(score)
    if method is None and _best(candidates).score >= sufficient_score:
        return _best(candidates).candidate  # no channel is better even without the user-defined constraints
    failure: Exception | None = None
    try:
        candidates.insert(0, _scored_candidate(problem, find()))  # first among equals
    except FAILURES as error:
        failure = error
    can_split_outputs = isinstance(problem.utility, ColumnUtility) and not (
        problem.output_constraints or problem.fixes_output_order
    )
    if method is None and can_split_outputs and not (baseline and is_homogeneous(problem, baseline[0])):
        for candidate in _local_searches(problem, ask, candidates):
            if _best(candidates).score >= sufficient_score or problem.deadline.over():
                break
            candidates.append(_scored_candidate(problem, candidate))
    if failure is not None and not _best(candidates).score > -np.inf:
        raise failure
    return _best(candidates).candidate


def _repair_note(problem: Problem, value_before: float, value_after: float) -> str:
    """Describe the loss of score by a repair."""
    sign = _sign(problem)
    return mixing_cost(sign * value_before, sign * value_after, problem.original_utility.error)


def _best(candidates: list[_ScoredCandidate]) -> _ScoredCandidate:
    """Return the best candidate so far, the first of equals; one of score -inf if there is none."""
    return max(
        candidates,
        key=lambda candidate: candidate.score,
        default=_ScoredCandidate(Candidate(np.zeros((0, 0)), ""), -np.inf),
    )


def is_homogeneous(problem: Problem, matrix: Array) -> bool:
    """Return True if splitting every output into two copies changes no user-defined constraint."""
    user_constraints = [c for c in problem.constraints if not isinstance(c, Measured | Denominator)]
    try:
        unsplit_channel, split_channel = (
            Channel(_all_rows(problem, stochastic(split_outputs(matrix, n)))) for n in (1, 2)
        )
        return all(
            math.isclose(float(c.measure(unsplit_channel)), float(c.measure(split_channel)), rel_tol=1e-6)
            for c in user_constraints
        )
    except FAILURES:
        return False


def _max_outputs(problem: Problem, method: Method | None) -> int:
    """Return the largest number of outputs: that of the caller's method, or that a function of the matrix expects."""
    return getattr(method, "outputs", None) or (
        len(problem.inputs) + 1 if problem.fixes_output_order else MAX_OUTPUTS_OF_COPIES
    )


def _sign(problem: Problem) -> int:
    return -1 if problem.original_utility.error else 1


def _score(problem: Problem, matrix: Array) -> float:
    """Compute the score of a matrix of the problem's rows, even if it does not meet the constraints."""
    with suppress(*FAILURES):
        return _sign(problem) * float(problem.original_utility.value(Channel(_all_rows(problem, stochastic(matrix)))))
    return -np.inf


def _has_reduced_rows(problem: Problem) -> bool:
    """Return True if a candidate has one row per class of inputs, not per input."""
    return problem.utility.pair is not None and problem.symmetric


def _all_rows(problem: Problem, matrix: Array) -> Array:
    return matrix[problem.reduction.classes] if _has_reduced_rows(problem) else matrix


def _scored_candidate(problem: Problem, candidate: Candidate) -> _ScoredCandidate:
    """Return a candidate with the score of its repaired channel, and a note of the loss by the repair."""
    try:
        channel = arrange(problem, candidate).channel
        if not meets_constraints(channel, problem.constraints):
            return _ScoredCandidate(candidate, -np.inf)
        score = _sign(problem) * float(problem.original_utility.value(channel))
    except FAILURES:
        return _ScoredCandidate(candidate, -np.inf)
    if not candidate.note and (note := _repair_note(problem, _score(problem, candidate.matrix), score)):
        candidate = replace(candidate, note=note)
    return _ScoredCandidate(candidate, score)


def _optimum_without_user_constraints(problem: Problem, ask: Ask, certify: bool) -> tuple[Array, Any] | None:
    """Return the optimum without user-defined constraints, one row per input of the problem, and its design."""
    relaxed_problem, utility = problem.without_user_constraints, problem.original_utility
    if relaxed_problem is None:  # nothing else limits the channel: the answers themselves are reported
        return (disclosure, None) if (disclosure := _full_disclosure(problem)) is not None else None
    with suppress(*FAILURES):
        design = ask(utility, relaxed_problem.constraints, certify=certify)
        matrix = design.channel.matrix
        if _has_reduced_rows(problem):
            matrix = matrix[np.unique(problem.reduction.classes, return_index=True)[1]]
        return matrix, design
    return None


def _full_disclosure(problem: Problem) -> Array | None:
    """Return the channel of full disclosure; None if fixed outputs do not allow it."""
    utility = problem.utility
    if problem.output_constraints:
        return None
    if isinstance(utility, ExpectedLoss):
        best = (utility.priors.sum(axis=0)[:, None] * utility.loss).argmin(axis=1)
        return np.asarray(np.eye(utility.loss.shape[1])[best])
    if isinstance(utility, PrivateSampling):
        return np.asarray(utility.distributions)
    return np.eye(len(problem.inputs))


def _mixtures(problem: Problem, matrix: Array, design: Any, max_outputs: int) -> Iterator[Candidate]:
    """Generate the matrix (k, m), unchanged and with split outputs, mixed as far as the constraints need."""
    inputs = None if _has_reduced_rows(problem) else problem.labels
    prove = None if design is None or design.certificate is None else proof_by(Relaxed, design.certificate)
    base_description = "full disclosure" if design is None else design.method
    has_fixed_outputs = bool(problem.output_constraints) or problem.utility.decisions is not None
    has_fixed_outputs = has_fixed_outputs or not isinstance(problem.utility, ColumnUtility)
    for copies in _copy_counts(problem, matrix, 1 if has_fixed_outputs else max_outputs // matrix.shape[1]):
        description = f"{base_description}, each output split into {copies}" if copies > 1 else base_description
        with suppress(*FAILURES):
            split_matrix = split_outputs(matrix, copies)
            if (
                problem.fixes_output_order and not has_fixed_outputs and split_matrix.shape[1] < max_outputs
            ):  # a function refers to outputs by position
                split_matrix = np.pad(split_matrix, ((0, 0), (0, max_outputs - split_matrix.shape[1])))
            repaired_matrix = repair_fixed_outputs(split_matrix, problem.constraints, inputs)
            note = _repair_note(problem, _score(problem, split_matrix), _score(problem, repaired_matrix))
            reference = "" if design is None else design.reference
            yield Candidate(repaired_matrix, description, prove, note=note, reference=reference, has_fixed_outputs=True)


def split_outputs(matrix: Array, copies: int) -> Array:
    """Split every output into `copies` adjacent equal ones.

    >>> split_outputs(np.array([[0.75, 0.25]]), 2)
    array([[0.375, 0.375, 0.125, 0.125]])
    """
    return np.asarray(np.repeat(matrix / copies, copies, axis=1))


def _copy_counts(problem: Problem, matrix: Array, max_copies: int) -> Iterator[int]:
    """Generate 1, and if copies help, the least number up to `max_copies` that needs no mixing, or the last.

    Copies do not change a constraint that is a sum over outputs of homogeneous functions of the column.
    """
    yield 1

    def excess(copies: int) -> float:
        channel = Channel(_all_rows(problem, stochastic(split_outputs(matrix, copies))), problem.labels)
        return max(float(c.measure(channel)) - c.bound for c in problem.constraints)

    with suppress(*FAILURES):
        low, current_excess = 1, excess(1)
        while current_excess > 0 and 2 * low <= max_copies:
            next_excess = excess(2 * low)
            if not next_excess < current_excess - 1e-9 * abs(current_excess):
                break
            low, current_excess = 2 * low, next_excess
        if low == 1:
            return
        if current_excess > 0:
            yield low
            return
        high, low = low, low // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if excess(middle) <= 0 else (middle, high)
        yield high


def _local_searches(problem: Problem, ask: Ask, candidates: list[_ScoredCandidate]) -> Iterator[Candidate]:
    """Generate local searches with fixed outputs: from the best channel so far, and with more outputs."""
    k = len(problem.inputs)
    best = max(candidates, key=lambda candidate: candidate.score, default=None)
    for search in (LocalSearch(8), LocalSearch(8, outputs=2 * k), LocalSearch(4, outputs=4 * k)):
        is_small_enough = search.outputs is None or k * k * search.outputs <= MAX_PAIRS_TIMES_OUTPUTS
        if is_small_enough and not search.refuses(problem):
            with suppress(*FAILURES):
                yield replace(search.find(problem, ask), has_fixed_outputs=True, reference=LocalSearch.reference)
    if best is None or not best.score > -np.inf or best.candidate.matrix.size > MAX_ENTRIES_TO_CLIMB:
        return
    with suppress(*FAILURES):
        climb = Climb.from_problem(problem, best.candidate.matrix.shape[1])
        matrix, _ = climb.best(0, np.random.default_rng(0), (best.candidate.matrix,))
        description = f"local search from {best.candidate.method}"
        yield Candidate(matrix, description, has_fixed_outputs=True, reference=LocalSearch.reference)
