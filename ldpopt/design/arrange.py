"""From the matrix of a candidate to a channel: repaired, with a row for every input, its outputs in order.

Matrices made better before they become channels: rare and nearly equal outputs merged, given outputs repaired.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import ERASED, Channel, Label
from ldpopt.design.candidate import Candidate
from ldpopt.design.constraints.base import AlphabetConstraint, Constraint, Measured, parts, plain_caps, within
from ldpopt.design.constraints.repair import Unrepairable, repair, stochastic
from ldpopt.design.problems.problem import Problem
from ldpopt.design.problems.reduction import Pair, posteriors, value_of, values_of
from ldpopt.divergences import FDivergence
from ldpopt.errors import SolverError
from ldpopt.numbers.rounding import ULP, toward_privacy
from ldpopt.numbers.tolerances import (
    CENTRE_WEIGHT,
    CLOSE_ROWS,
    MERGED_FREE,
    MERGED_SHARES,
    NOISE_SHARE,
    NOISE_SIZE,
    SILENT,
)
from ldpopt.values.distribution import Array


@dataclass(frozen=True, eq=False)
class Arranged:
    """A channel within the constraints, and the cut points of its inputs where the answers are real numbers."""

    channel: Channel
    edges: Array | None = None


def arrange(problem: Problem, candidate: Candidate) -> Arranged:
    """The channel of a candidate. Raises `Unrepairable` where its matrix is too far from the constraints."""
    if problem.denominator is not None:
        return _of_integers(problem, candidate.matrix)
    if problem.given or problem.placed or candidate.apart:
        return _given(problem, candidate.matrix, candidate.apart)
    if problem.utility.pair is not None:
        return _of_pair(problem, candidate.matrix)
    names = problem.utility.decisions
    matrix = repair(stochastic(candidate.matrix), problem.constraints, problem.labels)
    if names is not None:
        channel = Channel(matrix, problem.labels, names)
    else:
        matrix = Channel(matrix).merge().matrix
        order = _by_favour(matrix)
        channel = Channel(matrix[:, order], problem.labels, _output_labels(matrix[:, order], 1e-9))
    return Arranged(channel)


def rearranged(problem: Problem, arranged: Arranged) -> Arranged:
    """The channel repaired once more: merging outputs and copying rows may have raised a measure by an ulp. Raises
    `Unrepairable` where that does not help.
    """
    channel = arranged.channel
    if problem.denominator is not None:  # what is repaired has no denominator
        raise Unrepairable(channel.matrix)
    mended = (mend if problem.given or problem.others else repair)(channel.matrix, problem.constraints, channel.inputs)
    return Arranged(Channel(mended, channel.inputs, channel.outputs), arranged.edges)


def _given(problem: Problem, matrix: Array, apart: bool) -> Arranged:
    """The channel where constraints fix the outputs: named ones stay as they are, others are merged and sorted.

    Outputs that are kept `apart` are merged only where that breaks no constraint.
    """
    reduced = problem.utility.pair is not None and problem.symmetric
    rows = mend(matrix, problem.constraints, None if reduced else problem.labels)
    matrix = rows[problem.reduction.classes] if reduced else rows
    names = next((labels for c in problem.given if (labels := c.output_labels(problem.labels)) is not None), None)
    channel = Channel(matrix, problem.labels, problem.utility.decisions or names)
    if not problem.placed and problem.utility.decisions is None:
        merged = channel.merge().matrix
        if apart and not within(Channel(merged, problem.labels), problem.constraints):
            merged = channel.matrix
        if problem.utility.pair is not None:
            merged = merged[:, _by_ratio(merged, *problem.utility.pair)]
        channel = Channel(merged, problem.labels)
    return Arranged(channel)


def _of_integers(problem: Problem, matrix: Array) -> Arranged:
    """The channel of multiples of 1/D, which stay as they are: a row for every input, the outputs in order."""
    if problem.utility.decisions is not None:
        return Arranged(Channel(matrix, problem.labels, problem.utility.decisions))
    rows = matrix[problem.reduction.classes] if problem.utility.pair is not None else matrix
    rows = rows[:, _by_favour(rows)]
    return Arranged(Channel(rows, problem.labels, _output_labels(rows, SILENT)))


def _of_pair(problem: Problem, matrix: Array) -> Arranged:
    """The channel for two hypotheses: reports in order of likelihood ratio, and last the ones that say nothing."""
    p0, p1 = problem.utility.pair
    if problem.symmetric:
        distinct, inverse = np.unique(matrix, axis=0, return_inverse=True)
    else:
        distinct, inverse = matrix, np.arange(len(matrix))
    merged = _without_twins(stochastic(distinct))
    which = inverse.reshape(-1)[problem.reduction.classes]
    first, second = (np.asarray(np.bincount(which, p, len(distinct)), dtype=np.float64) for p in (p0, p1))
    merged = np.asarray(merged[:, _by_ratio(merged, first, second)])
    rows = repair(merged, problem.constraints, None if problem.symmetric else problem.labels)
    utility, edges, classes = problem.utility, None, which
    if problem.cells is not None:
        # Neighbouring cells with equal rows become one input.
        starts = np.flatnonzero(np.concatenate([[True], np.diff(which) != 0]))
        classes, cells = which[starts], problem.cells.starts(starts)
        utility, edges = cells.divergence(problem.whole.f), cells.edges
    inputs = tuple(range(len(classes))) if utility.inputs is None else utility.inputs
    return Arranged(Channel(rows[classes], inputs, _output_labels(rows, SILENT)), edges)


def _without_twins(matrix: Array) -> Array:
    """The matrix with proportional columns merged. Where all rows are nearly equal, columns are merged whose relative
    deviations from their means agree.
    """
    mean = matrix.mean(axis=0)
    matrix, mean = matrix[:, mean > 0], mean[mean > 0]
    away = matrix / mean - 1
    widest = float(np.abs(away).max())
    if not 0 < widest < 1e-2:
        return Channel(matrix).merge().matrix
    # The deviations are compared to twelve digits, or to as many as floats hold.
    digits = min(12, int(np.log10(widest / 1e-15)))
    _, which = np.unique(np.round(away / widest, max(digits, 1)), axis=1, return_inverse=True)
    merged = np.zeros((len(matrix), int(which.max()) + 1))
    np.add.at(merged.T, which.reshape(-1), matrix.T)
    return stochastic(merged)


def _by_ratio(matrix: Array, p0: Array, p1: Array) -> npt.NDArray[np.intp]:
    """The outputs in order of likelihood ratio, the silent ones last."""
    return np.lexsort((posteriors(Pair.of(p0, p1), matrix), _silent(matrix, SILENT)))


def _by_favour(matrix: Array) -> list[int]:
    """The outputs in order of the inputs that they favour, the silent ones last."""
    favoured = matrix > 0.5 * (matrix.max(axis=0) + matrix.min(axis=0))
    silent = _silent(matrix, 1e-9)
    return sorted(
        range(matrix.shape[1]),
        key=lambda y: (bool(silent[y]), int(favoured[:, y].sum()), tuple(np.flatnonzero(favoured[:, y]))),
    )


def _silent(matrix: Array, share: float) -> npt.NDArray[np.bool_]:
    return np.asarray(np.ptp(matrix, axis=0) <= share * matrix.max(axis=0))


def _output_labels(matrix: Array, share: float) -> tuple[Label, ...] | None:
    """Numbers, with `ERASED` for the report that says nothing; None unless there is exactly one such report."""
    silent = _silent(matrix, share)
    if silent.sum() != 1:
        return None
    return tuple(ERASED if quiet else y for y, quiet in enumerate(silent.tolist()))


def cleanest(problem: Problem, matrix: Array, improve: Callable[[Array], Array]) -> Array:
    """The channel with the fewest outputs among those of `MERGED_SHARES` that keep the most utility once repaired.

    Merging keeps the sums of rows and every constraint that is a convex sum over outputs. improve : a function that may
    improve each merged channel before it is measured.
    """
    pair, f = problem.reduction.pair, problem.utility.f
    best, most, last = None, -np.inf, np.zeros(0)
    for level in MERGED_SHARES:
        q = merge(matrix, f, pair, level)
        if not problem.deadline.late:
            q = improve(q)
        q = merge(q, f, pair, 1e-13)
        if np.array_equal(q, last):
            continue
        last = q
        try:
            q = repair(q, problem.constraints, problem.inputs)
        except SolverError:
            continue
        value = value_of(f, pair, q)
        if value > most + MERGED_FREE * abs(most) or best is None:
            best, most = q, value
    return matrix if best is None else best


def merge(matrix: Array, f: FDivergence, pair: Pair, share: float) -> Array:
    """The channel with outputs of neighbouring likelihood ratio merged, the cheapest first, for at most `share` each.

    A merger costs the utility that the two outputs lose by it, as a share of the whole utility. A frequent output that
    says nothing is not merged with rare ones that say something: their sum would lose the digits of these.
    """
    q = np.maximum(matrix, 0.0)
    q = q[:, q.max(axis=0) > 0]
    q = q[:, np.argsort(posteriors(pair, q), kind="stable")]
    worth = values_of(f, pair, q)
    most = share * float(worth.sum())
    fine = float(np.ptp(q, axis=0).max(initial=0.0)) < CLOSE_ROWS
    if q.shape[1] > 1:
        cost = _cost(f, pair, q, worth, fine)
    while q.shape[1] > 1:
        cheapest = int(cost.argmin())
        if not cost[cheapest] <= most:
            break
        q = np.add.reduceat(q, np.delete(np.arange(q.shape[1]), cheapest + 1), axis=1)
        near = q[:, max(cheapest - 1, 0) : cheapest + 2]
        own = values_of(f, pair, near)
        worth = np.concatenate([worth[: max(cheapest - 1, 0)], own, worth[cheapest + 3 :]])
        cost = np.delete(cost, cheapest)
        if near.shape[1] > 1:
            start = max(cheapest - 1, 0)
            cost[start : start + near.shape[1] - 1] = _cost(f, pair, near, own, fine)
    return stochastic(q)


def _cost(f: FDivergence, pair: Pair, q: Array, worth: Array, fine: bool) -> Array:
    """The costs of merging neighbouring columns."""
    cost = worth[:-1] + worth[1:] - values_of(f, pair, q[:, :-1] + q[:, 1:])
    if fine:
        spread = np.ptp(q, axis=0) / q.max(axis=0)
        least, most = np.minimum(spread[:-1], spread[1:]), np.maximum(spread[:-1], spread[1:])
        cost = np.where(1e3 * least < most, np.inf, cost)
    return np.asarray(cost)


def mend(matrix: Array, constraints: Sequence[Constraint], inputs: tuple[Label, ...] | None) -> Array:
    """A matrix near `matrix` (k, m) that is measured to meet all constraints.

    Equations are restored first. Then the matrix is mixed with a central channel that meets the constraints with room
    to spare, constant if possible, and the equations are restored again. A matrix that meets its constraints already
    stays as it is. Raises `Unrepairable` where this does not help.
    """
    fixed = [constraint for constraint in constraints if isinstance(constraint, AlphabetConstraint)]

    def restored(q: Array) -> Array:
        for constraint in sorted(fixed, key=lambda constraint: constraint.balances):
            q = constraint.mend(q)
        return np.asarray(q / q.sum(axis=1, keepdims=True))

    epsilon, _ = plain_caps(constraints)
    if _finished(matrix, constraints, inputs):
        return matrix
    clean = _clean(matrix)
    # Even a small share of the centre would drown ratios of e^40, so that ratios are corrected before it is added.
    least = math.exp(-toward_privacy(epsilon)) if epsilon < math.inf else 0.0
    start = restored(np.maximum(clean, clean.max(axis=0) * least))
    centre = _centre(matrix.shape, constraints, inputs, restored, start)

    def mixed(weight: float) -> Array | None:
        channel = Channel(restored((1 - weight) * start + weight * centre), inputs)
        return channel.matrix if within(channel, constraints) else None

    weight, mended = 0.0, mixed(0.0)
    while mended is None and weight < 1:
        weight = min(1.0, max(1e-16, 2 * weight))
        mended = mixed(weight)
    if mended is None:
        raise Unrepairable(start)
    if weight > CENTRE_WEIGHT:
        low, high = weight / 2, weight
        for _ in range(20):
            middle = (low + high) / 2
            better = mixed(middle)
            low, high, mended = (middle, high, mended) if better is None else (low, middle, better)
    return mended


def _finished(matrix: Array, constraints: Sequence[Constraint], inputs: tuple[Label, ...] | None) -> bool:
    """Whether a matrix is a channel, up to rounding of its rows' sums, without noise and within every constraint."""
    noise = (matrix != 0) & ~(matrix > NOISE_SHARE * matrix.max(axis=0))  # of a solver, or below zero
    stochastic = np.abs(matrix.sum(axis=1) - 1).max() <= matrix.shape[1] * ULP
    return bool(stochastic and not noise.any() and within(Channel(matrix, inputs), constraints))


def _clean(matrix: Array) -> Array:
    """The matrix with a solver's noise set to zero."""
    top = matrix.max(axis=0)
    return np.where((matrix > NOISE_SHARE * top) & (top > NOISE_SIZE), matrix, 0.0)


def _centre(
    shape: tuple[int, int], constraints: Sequence[Constraint], inputs: Any, restored: Callable[[Array], Array],
    start: Array,
) -> Array:  # fmt: skip
    """A channel that meets the constraints, constant if one does, else the most central one a solver finds."""
    rows = [constraint.constant(shape) for constraint in constraints if isinstance(constraint, AlphabetConstraint)]
    for row in [*(row for row in rows if row is not None), start.mean(axis=0)]:
        constant = np.tile(row, (shape[0], 1))
        if within(Channel(constant, inputs), constraints):
            return constant
    from ldpopt.design.outputs.program import AlphabetProgram

    # Tighter constraints have solutions in the middle of the set.
    tighter = [c.centred() if isinstance(c, Measured) else c for c in constraints]
    for tried in (tighter, constraints):
        terms, fixed, expressions = parts(tried, inputs or range(shape[0]))
        try:
            central = AlphabetProgram(shape, terms, fixed, expressions).solve(np.zeros((1, *shape[::-1])))[0]
        except SolverError:
            continue
        return restored(_clean(central))
    return start
