"""Turn the matrix of a candidate into a channel: repaired, with one row per input, and its outputs in order.

Outputs that are rare or nearly equal are merged first, and matrices with fixed outputs are repaired.
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
from ldpopt.design.constraints.base import (
    AlphabetConstraint,
    Constraint,
    Measured,
    meets_constraints,
    parts,
    plain_caps,
)
from ldpopt.design.constraints.repair import Unrepairable, repair, stochastic
from ldpopt.design.problems.problem import Problem
from ldpopt.design.problems.reduction import Pair, posteriors, value_of, values_of
from ldpopt.divergences import FDivergence
from ldpopt.errors import SolverError
from ldpopt.numbers.rounding import ULP, toward_privacy
from ldpopt.numbers.tolerances import (
    CENTRE_WEIGHT,
    CLOSE_ROWS,
    ERASURE_RTOL,
    MERGED_FREE,
    MERGED_SHARES,
    NOISE_SHARE,
    NOISE_SIZE,
)
from ldpopt.values.distribution import Array


@dataclass(frozen=True, eq=False)
class Arranged:
    """A channel within the constraints, and the cut points of its inputs where the answers are real numbers."""

    channel: Channel
    edges: Array | None = None


def arrange(problem: Problem, candidate: Candidate) -> Arranged:
    """Build the channel of a candidate.

    Raises `Unrepairable` if its matrix is too far from the constraints.
    """
    if problem.denominator is not None:
        return _arrange_rational(problem, candidate.matrix)
    if problem.output_constraints or problem.fixes_output_order or candidate.has_fixed_outputs:
        return _arrange_fixed_outputs(problem, candidate.matrix, candidate.has_fixed_outputs)
    if problem.utility.pair is not None:
        return _arrange_pair(problem, candidate.matrix)
    names = problem.utility.decisions
    matrix = repair(stochastic(candidate.matrix), problem.constraints, problem.labels)
    if names is not None:
        channel = Channel(matrix, problem.labels, names)
    else:
        matrix = Channel(matrix).merge().matrix
        order = _order_by_favored_inputs(matrix)
        channel = Channel(matrix[:, order], problem.labels, _output_labels(matrix[:, order], 1e-9))
    return Arranged(channel)


def rearrange(problem: Problem, arrangement: Arranged) -> Arranged:
    """Repair the channel once more, because merging outputs or copying rows may have raised a measure by an ulp.

    Raises `Unrepairable` if that does not help.
    """
    channel = arrangement.channel
    if problem.denominator is not None:  # a repaired matrix has no denominator
        raise Unrepairable(channel.matrix)
    matrix = (repair_fixed_outputs if problem.output_constraints or problem.user_expressions else repair)(
        channel.matrix, problem.constraints, channel.inputs
    )
    return Arranged(Channel(matrix, channel.inputs, channel.outputs), arrangement.edges)


def _arrange_fixed_outputs(problem: Problem, matrix: Array, keep_outputs: bool) -> Arranged:
    """Build a channel whose outputs the constraints fix: named outputs are unchanged, others are merged and sorted.

    If `keep_outputs`, outputs are merged only if that breaks no constraint.
    """
    is_reduced = problem.utility.pair is not None and problem.symmetric
    rows = repair_fixed_outputs(matrix, problem.constraints, None if is_reduced else problem.labels)
    matrix = rows[problem.reduction.classes] if is_reduced else rows
    names = next(
        (labels for c in problem.output_constraints if (labels := c.output_labels(problem.labels)) is not None), None
    )
    channel = Channel(matrix, problem.labels, problem.utility.decisions or names)
    if not problem.fixes_output_order and problem.utility.decisions is None:
        merged_matrix = channel.merge().matrix
        if keep_outputs and not meets_constraints(Channel(merged_matrix, problem.labels), problem.constraints):
            merged_matrix = channel.matrix
        if problem.utility.pair is not None:
            merged_matrix = merged_matrix[:, _order_by_ratio(merged_matrix, *problem.utility.pair)]
        channel = Channel(merged_matrix, problem.labels)
    return Arranged(channel)


def _arrange_rational(problem: Problem, matrix: Array) -> Arranged:
    """Build a channel of multiples of 1/D, which are not changed: one row per input, the outputs in order."""
    if problem.utility.decisions is not None:
        return Arranged(Channel(matrix, problem.labels, problem.utility.decisions))
    rows = matrix[problem.reduction.classes] if problem.utility.pair is not None else matrix
    rows = rows[:, _order_by_favored_inputs(rows)]
    return Arranged(Channel(rows, problem.labels, _output_labels(rows, ERASURE_RTOL)))


def _arrange_pair(problem: Problem, matrix: Array) -> Arranged:
    """Build a channel for two hypotheses: reports in order of likelihood ratio, uninformative ones last."""
    p0, p1 = problem.utility.pair
    if problem.symmetric:
        distinct, inverse = np.unique(matrix, axis=0, return_inverse=True)
    else:
        distinct, inverse = matrix, np.arange(len(matrix))
    merged_matrix = _merge_proportional(stochastic(distinct))
    class_of_input = inverse.reshape(-1)[problem.reduction.classes]
    first, second = (np.asarray(np.bincount(class_of_input, p, len(distinct)), dtype=np.float64) for p in (p0, p1))
    merged_matrix = np.asarray(merged_matrix[:, _order_by_ratio(merged_matrix, first, second)])
    rows = repair(merged_matrix, problem.constraints, None if problem.symmetric else problem.labels)
    utility, edges, classes = problem.utility, None, class_of_input
    if problem.cells is not None:
        # Neighbouring cells with equal rows become one input.
        starts = np.flatnonzero(np.concatenate([[True], np.diff(class_of_input) != 0]))
        classes, cells = class_of_input[starts], problem.cells.starts(starts)
        utility, edges = cells.divergence(problem.original_utility.f), cells.edges
    inputs = tuple(range(len(classes))) if utility.inputs is None else utility.inputs
    return Arranged(Channel(rows[classes], inputs, _output_labels(rows, ERASURE_RTOL)), edges)


def _merge_proportional(matrix: Array) -> Array:
    """Merge proportional columns.

    If all rows are nearly equal, merge columns whose relative deviations from their means agree.
    """
    mean = matrix.mean(axis=0)
    matrix, mean = matrix[:, mean > 0], mean[mean > 0]
    deviation = matrix / mean - 1
    largest_deviation = float(np.abs(deviation).max())
    if not 0 < largest_deviation < 1e-2:
        return Channel(matrix).merge().matrix
    # The deviations are compared to twelve digits, or to as many as floats hold.
    digits = min(12, int(np.log10(largest_deviation / 1e-15)))
    _, group = np.unique(np.round(deviation / largest_deviation, max(digits, 1)), axis=1, return_inverse=True)
    merged_matrix = np.zeros((len(matrix), int(group.max()) + 1))
    np.add.at(merged_matrix.T, group.reshape(-1), matrix.T)
    return stochastic(merged_matrix)


def _order_by_ratio(matrix: Array, p0: Array, p1: Array) -> npt.NDArray[np.intp]:
    """Order the outputs by likelihood ratio, the uninformative ones last."""
    return np.lexsort((posteriors(Pair.from_distributions(p0, p1), matrix), _is_uninformative(matrix, ERASURE_RTOL)))


def _order_by_favored_inputs(matrix: Array) -> list[int]:
    """Order the outputs by the inputs that they favor, the uninformative ones last."""
    is_favored = matrix > 0.5 * (matrix.max(axis=0) + matrix.min(axis=0))
    uninformative = _is_uninformative(matrix, 1e-9)
    return sorted(
        range(matrix.shape[1]),
        key=lambda y: (bool(uninformative[y]), int(is_favored[:, y].sum()), tuple(np.flatnonzero(is_favored[:, y]))),
    )


def _is_uninformative(matrix: Array, tolerance: float) -> npt.NDArray[np.bool_]:
    return np.asarray(np.ptp(matrix, axis=0) <= tolerance * matrix.max(axis=0))


def _output_labels(matrix: Array, tolerance: float) -> tuple[Label, ...] | None:
    """Return numbers, with `ERASED` for the uninformative report; None unless there is exactly one such report."""
    uninformative = _is_uninformative(matrix, tolerance)
    if uninformative.sum() != 1:
        return None
    return tuple(ERASED if is_erasure else y for y, is_erasure in enumerate(uninformative.tolist()))


def simplify(problem: Problem, matrix: Array, improve: Callable[[Array], Array]) -> Array:
    """Return the channel with the fewest outputs among those of `MERGED_SHARES` that preserve the most utility.

    Each candidate is repaired before its utility is measured. Merging preserves the sums of rows and every constraint
    that is a convex sum over outputs.

    improve : a function that may improve each merged channel before it is measured.
    """
    pair, f = problem.reduction.pair, problem.utility.f
    best, best_value, previous = None, -np.inf, np.zeros(0)
    for level in MERGED_SHARES:
        q = merge_outputs(matrix, f, pair, level)
        if not problem.deadline.late:
            q = improve(q)
        q = merge_outputs(q, f, pair, 1e-13)
        if np.array_equal(q, previous):
            continue
        previous = q
        try:
            q = repair(q, problem.constraints, problem.inputs)
        except SolverError:
            continue
        value = value_of(f, pair, q)
        if value > best_value + MERGED_FREE * abs(best_value) or best is None:
            best, best_value = q, value
    return matrix if best is None else best


def merge_outputs(matrix: Array, f: FDivergence, pair: Pair, max_loss_fraction: float) -> Array:
    """Merge outputs of neighboring likelihood ratio, those with the least loss first.

    The loss of a merger is the utility that the two outputs lose. It may be at most `max_loss_fraction` of the total
    utility. A frequent uninformative output is not merged with rare informative ones, because their sum would lose the
    digits of the rare ones.
    """
    q = np.maximum(matrix, 0.0)
    q = q[:, q.max(axis=0) > 0]
    q = q[:, np.argsort(posteriors(pair, q), kind="stable")]
    values = values_of(f, pair, q)
    max_loss = max_loss_fraction * float(values.sum())
    rows_are_close = float(np.ptp(q, axis=0).max(initial=0.0)) < CLOSE_ROWS
    if q.shape[1] > 1:
        losses = _merging_losses(f, pair, q, values, rows_are_close)
    while q.shape[1] > 1:
        cheapest = int(losses.argmin())
        if not losses[cheapest] <= max_loss:
            break
        q = np.add.reduceat(q, np.delete(np.arange(q.shape[1]), cheapest + 1), axis=1)
        neighbors = q[:, max(cheapest - 1, 0) : cheapest + 2]
        neighbor_values = values_of(f, pair, neighbors)
        values = np.concatenate([values[: max(cheapest - 1, 0)], neighbor_values, values[cheapest + 3 :]])
        losses = np.delete(losses, cheapest)
        if neighbors.shape[1] > 1:
            start = max(cheapest - 1, 0)
            losses[start : start + neighbors.shape[1] - 1] = _merging_losses(
                f, pair, neighbors, neighbor_values, rows_are_close
            )
    return stochastic(q)


def _merging_losses(f: FDivergence, pair: Pair, q: Array, values: Array, rows_are_close: bool) -> Array:
    """Compute the losses of merging neighboring columns."""
    losses = values[:-1] + values[1:] - values_of(f, pair, q[:, :-1] + q[:, 1:])
    if rows_are_close:
        spread = np.ptp(q, axis=0) / q.max(axis=0)
        smaller_spread, larger_spread = np.minimum(spread[:-1], spread[1:]), np.maximum(spread[:-1], spread[1:])
        losses = np.where(1e3 * smaller_spread < larger_spread, np.inf, losses)
    return np.asarray(losses)


def repair_fixed_outputs(matrix: Array, constraints: Sequence[Constraint], inputs: tuple[Label, ...] | None) -> Array:
    """Return a matrix near `matrix` (k, m) that is measured to meet all constraints.

    Equations are restored first. Then the matrix is mixed with a central channel that strictly satisfies the
    constraints, constant if possible, and the equations are restored again. A matrix that already meets its constraints
    is returned unchanged. Raises `Unrepairable` if this does not help.
    """
    alphabet_constraints = [constraint for constraint in constraints if isinstance(constraint, AlphabetConstraint)]

    def restore_equations(q: Array) -> Array:
        for constraint in sorted(alphabet_constraints, key=lambda constraint: constraint.balances):
            q = constraint.repair(q)
        return np.asarray(q / q.sum(axis=1, keepdims=True))

    epsilon, _ = plain_caps(constraints)
    if _is_valid(matrix, constraints, inputs):
        return matrix
    denoised_matrix = _remove_noise(matrix)
    # Even a small weight of the center would swamp ratios of e^40: ratios are corrected before it is added.
    smallest_ratio = math.exp(-toward_privacy(epsilon)) if epsilon < math.inf else 0.0
    start = restore_equations(np.maximum(denoised_matrix, denoised_matrix.max(axis=0) * smallest_ratio))
    center = _central_channel(matrix.shape, constraints, inputs, restore_equations, start)

    def mix_with_center(weight: float) -> Array | None:
        channel = Channel(restore_equations((1 - weight) * start + weight * center), inputs)
        return channel.matrix if meets_constraints(channel, constraints) else None

    weight, repaired_matrix = 0.0, mix_with_center(0.0)
    while repaired_matrix is None and weight < 1:
        weight = min(1.0, max(1e-16, 2 * weight))
        repaired_matrix = mix_with_center(weight)
    if repaired_matrix is None:
        raise Unrepairable(start)
    if weight > CENTRE_WEIGHT:
        low, high = weight / 2, weight
        for _ in range(20):
            middle = (low + high) / 2
            candidate = mix_with_center(middle)
            low, high, repaired_matrix = (
                (middle, high, repaired_matrix) if candidate is None else (low, middle, candidate)
            )
    return repaired_matrix


def _is_valid(matrix: Array, constraints: Sequence[Constraint], inputs: tuple[Label, ...] | None) -> bool:
    """Return True if a matrix is a channel up to rounding of row sums, free of noise and within every constraint."""
    noise = (matrix != 0) & ~(matrix > NOISE_SHARE * matrix.max(axis=0))  # of a solver, or below zero
    rows_sum_to_one = np.abs(matrix.sum(axis=1) - 1).max() <= matrix.shape[1] * ULP
    return bool(rows_sum_to_one and not noise.any() and meets_constraints(Channel(matrix, inputs), constraints))


def _remove_noise(matrix: Array) -> Array:
    """Set the noise of a solver to zero."""
    top = matrix.max(axis=0)
    return np.where((matrix > NOISE_SHARE * top) & (top > NOISE_SIZE), matrix, 0.0)


def _central_channel(
    shape: tuple[int, int], constraints: Sequence[Constraint], inputs: Any, restore_equations: Callable[[Array], Array],
    start: Array,
) -> Array:  # fmt: skip
    """Return a channel that meets the constraints: a constant one if possible, else the most central one found."""
    constant_rows = [
        constraint.constant(shape) for constraint in constraints if isinstance(constraint, AlphabetConstraint)
    ]
    for row in [*(row for row in constant_rows if row is not None), start.mean(axis=0)]:
        constant = np.tile(row, (shape[0], 1))
        if meets_constraints(Channel(constant, inputs), constraints):
            return constant
    from ldpopt.design.outputs.program import AlphabetProgram

    # Tighter constraints have solutions in the middle of the set.
    tighter = [c.centred() if isinstance(c, Measured) else c for c in constraints]
    for attempt in (tighter, constraints):
        terms, output_constraints, expressions = parts(attempt, inputs or range(shape[0]))
        try:
            central = AlphabetProgram(shape, terms, output_constraints, expressions).solve(np.zeros((1, *shape[::-1])))[
                0
            ]
        except SolverError:
            continue
        return restore_equations(_remove_noise(central))
    return start
