"""Constraints of users' own: the best of several channels, none worse than the optimum without them, mixed and split.

A method for two hypotheses or for any column utility merges and splits outputs. This is free where a constraint is a
sum over outputs of homogeneous functions of the column. One of a user's own may be another kind: a cap on single
entries is met by splitting an output into equal copies, which say the same, and broken by merging them. So beside the
method's channel, the channels tried are the optimum without the user's constraints, with each output split into equal
copies, mixed with a constant channel as far as the constraints need; and local searches that keep their outputs apart.
A function of the matrix may speak of outputs by position: then there are no more of them than a search has by default.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.arrange import arrange, mend
from ldpopt.design.candidate import Ask, Candidate, Method, proved_by
from ldpopt.design.constraints.base import Measured, within
from ldpopt.design.constraints.outputs import Denominator
from ldpopt.design.constraints.repair import cost_of_mixing, stochastic
from ldpopt.design.kernel.proof import Relaxed
from ldpopt.design.outputs.method_search import Climb, LocalSearch
from ldpopt.design.problems.problem import Problem
from ldpopt.design.utilities.base import ColumnUtility
from ldpopt.design.utilities.decisions import ExpectedLoss, PrivateSampling
from ldpopt.errors import InvalidInput, SolverError
from ldpopt.numbers.tolerances import REPAIR_LOSS
from ldpopt.values.distribution import Array

FAILURES = (SolverError, InvalidInput, ArithmeticError, LookupError, TypeError, ValueError)
"""What a user's expression or measure may raise for a number of outputs that it was not written for."""
COPIES = 1024  # The most outputs to which equal copies may lead
CLIMBED = 500  # The most entries of a channel from which a local search starts again
WIDE = 2000  # The most pairs of inputs times outputs of a search with more outputs than usual


@dataclass(frozen=True, eq=False)
class _Tried:
    """A candidate, and what its channel is worth: more is better, -inf where it breaks a constraint."""

    candidate: Candidate
    worth: float


def best_of_own(
    problem: Problem, find: Callable[[], Candidate], ask: Ask, method: Method | None, certify: bool
) -> Candidate:
    """The best of what the chosen method finds and of the channels of this module, under constraints of users' own.

    find : what the chosen method finds. method : the one that the caller named; None also runs local searches.
    Raises the `SolverError` or `InvalidInput` of `find` where no channel at all meets the constraints.
    """
    tried: list[_Tried] = []
    baseline = _without_own(problem, ask, certify)
    enough = np.inf
    if baseline is not None:
        matrix, known = baseline
        tried += [
            _judged(problem, candidate) for candidate in _mixtures(problem, matrix, known, _most(problem, method))
        ]
        worth = _worth(problem, matrix)
        enough = worth - REPAIR_LOSS * abs(worth)
    if method is None and _best(tried).worth >= enough:
        return _best(tried).candidate  # no channel is better even without the users' own constraints
    failure: Exception | None = None
    try:
        tried.insert(0, _judged(problem, find()))  # first among equals
    except FAILURES as error:
        failure = error
    divisible = isinstance(problem.utility, ColumnUtility) and not (problem.given or problem.placed)
    if method is None and divisible and not (baseline and homogeneous(problem, baseline[0])):
        for candidate in _searches(problem, ask, tried):
            if _best(tried).worth >= enough or problem.deadline.over():
                break
            tried.append(_judged(problem, candidate))
    if failure is not None and not _best(tried).worth > -np.inf:
        raise failure
    return _best(tried).candidate


def _cost(problem: Problem, before: float, after: float) -> str:
    """What a repair costs of worth, in words."""
    sign = _sign(problem)
    return cost_of_mixing(sign * before, sign * after, problem.whole.error)


def _best(tried: list[_Tried]) -> _Tried:
    """The best so far, the first of equals; one that is worth nothing where none is known."""
    return max(tried, key=lambda each: each.worth, default=_Tried(Candidate(np.zeros((0, 0)), ""), -np.inf))


def homogeneous(problem: Problem, matrix: Array) -> bool:
    """Whether no own constraint tells the matrix from the same with every output split into two copies."""
    own = [c for c in problem.constraints if not isinstance(c, Measured | Denominator)]
    try:
        once, twice = (Channel(_all_rows(problem, stochastic(split(matrix, n)))) for n in (1, 2))
        return all(math.isclose(float(c.measure(once)), float(c.measure(twice)), rel_tol=1e-6) for c in own)
    except FAILURES:
        return False


def _most(problem: Problem, method: Method | None) -> int:
    """The most outputs of a channel: those that the caller's method names, or that a function of the matrix expects."""
    return getattr(method, "outputs", None) or (len(problem.inputs) + 1 if problem.placed else COPIES)


def _sign(problem: Problem) -> int:
    return -1 if problem.whole.error else 1


def _worth(problem: Problem, matrix: Array) -> float:
    """What a matrix of the problem's rows is worth, whether it meets the constraints or not."""
    with suppress(*FAILURES):
        return _sign(problem) * float(problem.whole.value(Channel(_all_rows(problem, stochastic(matrix)))))
    return -np.inf


def _reduced(problem: Problem) -> bool:
    """Whether a candidate has a row for each class of inputs, not for each input."""
    return problem.utility.pair is not None and problem.symmetric


def _all_rows(problem: Problem, matrix: Array) -> Array:
    return matrix[problem.reduction.classes] if _reduced(problem) else matrix


def _judged(problem: Problem, candidate: Candidate) -> _Tried:
    """A candidate with the worth of the channel that is made of it, and a note of what its repair costs."""
    try:
        channel = arrange(problem, candidate).channel
        if not within(channel, problem.constraints):
            return _Tried(candidate, -np.inf)
        worth = _sign(problem) * float(problem.whole.value(channel))
    except FAILURES:
        return _Tried(candidate, -np.inf)
    if not candidate.note and (note := _cost(problem, _worth(problem, candidate.matrix), worth)):
        candidate = replace(candidate, note=note)
    return _Tried(candidate, worth)


def _without_own(problem: Problem, ask: Ask, certify: bool) -> tuple[Array, Any] | None:
    """The optimum without the users' own constraints, a row for each of the problem's inputs, and its design."""
    fewer, utility = problem.known, problem.whole
    if fewer is None:  # nothing else limits the channel, so that the answers themselves are reported
        return (free, None) if (free := _disclosed(problem)) is not None else None
    with suppress(*FAILURES):
        design = ask(utility, fewer.constraints, certify=certify)
        matrix = design.channel.matrix
        if _reduced(problem):
            matrix = matrix[np.unique(problem.reduction.classes, return_index=True)[1]]
        return matrix, design
    return None


def _disclosed(problem: Problem) -> Array | None:
    """The channel of full disclosure; None where given outputs leave none."""
    utility = problem.utility
    if problem.given:
        return None
    if isinstance(utility, ExpectedLoss):
        best = (utility.priors.sum(axis=0)[:, None] * utility.loss).argmin(axis=1)
        return np.asarray(np.eye(utility.loss.shape[1])[best])
    if isinstance(utility, PrivateSampling):
        return np.asarray(utility.distributions)
    return np.eye(len(problem.inputs))


def _mixtures(problem: Problem, matrix: Array, known: Any, most: int) -> Iterator[Candidate]:
    """The matrix (k, m), as it is and with outputs split into copies, mixed as far as the constraints need."""
    inputs = None if _reduced(problem) else problem.labels
    prove = None if known is None or known.certificate is None else proved_by(Relaxed, known.certificate)
    found = "full disclosure" if known is None else known.method
    fixed = bool(problem.given) or problem.utility.decisions is not None
    fixed = fixed or not isinstance(problem.utility, ColumnUtility)
    for copies in _copies(problem, matrix, 1 if fixed else most // matrix.shape[1]):
        how = f"{found}, each output split into {copies}" if copies > 1 else found
        with suppress(*FAILURES):
            apart = split(matrix, copies)
            if problem.placed and not fixed and apart.shape[1] < most:  # a function speaks of outputs by position
                apart = np.pad(apart, ((0, 0), (0, most - apart.shape[1])))
            mended = mend(apart, problem.constraints, inputs)
            note = _cost(problem, _worth(problem, apart), _worth(problem, mended))
            reference = "" if known is None else known.reference
            yield Candidate(mended, how, prove, note=note, reference=reference, apart=True)


def split(matrix: Array, copies: int) -> Array:
    """Every output as that many equal ones, beside each other.

    >>> split(np.array([[0.75, 0.25]]), 2)
    array([[0.375, 0.375, 0.125, 0.125]])
    """
    return np.asarray(np.repeat(matrix / copies, copies, axis=1))


def _copies(problem: Problem, matrix: Array, most: int) -> Iterator[int]:
    """1, and if copies help the least number of them, up to `most`, that meets the constraints as it is, or the last.

    Copies do not change a constraint that is a sum over outputs of homogeneous functions of the column.
    """
    yield 1

    def excess(copies: int) -> float:
        channel = Channel(_all_rows(problem, stochastic(split(matrix, copies))), problem.labels)
        return max(float(c.measure(channel)) - c.bound for c in problem.constraints)

    with suppress(*FAILURES):
        low, at = 1, excess(1)
        while at > 0 and 2 * low <= most:
            now = excess(2 * low)
            if not now < at - 1e-9 * abs(at):
                break
            low, at = 2 * low, now
        if low == 1:
            return
        if at > 0:
            yield low
            return
        high, low = low, low // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if excess(middle) <= 0 else (middle, high)
        yield high


def _searches(problem: Problem, ask: Ask, tried: list[_Tried]) -> Iterator[Candidate]:
    """Local searches whose outputs stay apart: from the best channel so far, and with more outputs than usual."""
    k = len(problem.inputs)
    best = max(tried, key=lambda each: each.worth, default=None)
    for search in (LocalSearch(8), LocalSearch(8, outputs=2 * k), LocalSearch(4, outputs=4 * k)):
        small = search.outputs is None or k * k * search.outputs <= WIDE
        if small and not search.refuses(problem):
            with suppress(*FAILURES):
                yield replace(search.find(problem, ask), apart=True, reference=LocalSearch.reference)
    if best is None or not best.worth > -np.inf or best.candidate.matrix.size > CLIMBED:
        return
    with suppress(*FAILURES):
        climb = Climb.of(problem, best.candidate.matrix.shape[1])
        matrix, _ = climb.best(0, np.random.default_rng(0), (best.candidate.matrix,))
        how = f"local search from {best.candidate.method}"
        yield Candidate(matrix, how, apart=True, reference=LocalSearch.reference)
