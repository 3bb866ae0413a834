"""Repair a matrix that nearly meets its constraints, so that the result, measured, meets them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ldpopt.channel import Channel, Label
from ldpopt.design.constraints.base import ColumnConstraint, Constraint, meets_constraints, plain_caps
from ldpopt.design.constraints.terms import ByKind, Term
from ldpopt.errors import Phrase, SolverError, invalid
from ldpopt.numbers.rounding import SUBNORMAL, ULP
from ldpopt.numbers.tolerances import MAX_WEIGHT, MIXED_LOSS
from ldpopt.values.distribution import Array


class Unrepairable(SolverError):
    """The matrix (k, m) of a solver is too far from its constraints."""

    def __init__(self, matrix: Array) -> None:
        super().__init__("repair: the solver's matrix is too far from private to mend; pass another method")
        self.matrix = matrix


def repair(matrix: Array, constraints: Sequence[Constraint], inputs: tuple[Label, ...] | None = None) -> Array:
    """Return a stochastic matrix near `matrix` whose measures are within all constraints.

    First, entries too small for epsilon are raised: to the largest of their column over exp(epsilon), or as the edges
    of a policy graph require. Rows are given equal sums. Then the matrix is mixed with the constant channel of its mean
    row. The weight is the smallest, to a few percent, that makes every guarantee hold when measured and rounded
    outward. All differences between rows shrink by that weight. Under a cap of zero every row becomes the mean row.

    Parameters
    ----------
    matrix : Array (k, m), nearly a channel.
    constraints : The constraints to meet.
    inputs : Labels of the k rows, which a policy graph needs.

    Returns
    -------
    Array
        The repaired matrix, shape (k, m).

    Raises
    ------
    InvalidInput
        If the matrix has another shape.
    Unrepairable
        If a weight above `MAX_WEIGHT` would be needed, or raising moves an entry by more than 1e-3, or by more than
        half of the largest difference between rows.

    Examples
    --------
    >>> from ldpopt.design import LocalDP
    >>> from ldpopt.privacy import local_dp
    >>> matrix = np.array([[0.73107, 0.26893], [0.26893, 0.73107]])
    >>> local_dp(matrix).value > 1, local_dp(repair(matrix, [LocalDP(1.0)])).value <= 1
    (True, True)
    """
    matrix = np.maximum(np.asarray(matrix, dtype=np.float64), 0.0)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise invalid("matrix", "an array of shape (k, m)", Phrase(str(matrix.shape)))
    caps = plain_caps(constraints)
    if not min(caps) > 0:  # Rows are equal, or they are not private.
        matrix = np.tile(stochastic(matrix).mean(axis=0), (len(matrix), 1))
    smallest_allowed = matrix.max(axis=0) * math.exp(-_epsilon_less_rounding(caps[0]))
    # A subnormal number is a multiple of the smallest one, which may round it down by more than epsilon allows.
    clipped_matrix = np.maximum(matrix, np.where(smallest_allowed > 0, smallest_allowed + 2 * SUBNORMAL, 0.0))
    for constraint in constraints:
        if isinstance(constraint, ColumnConstraint) and not constraint.symmetric:
            clipped_matrix = _raise_to_ratios(clipped_matrix, constraint.columns(inputs or range(len(clipped_matrix))))
    largest_change = np.abs(clipped_matrix - matrix).max()
    if not largest_change <= 1e-3 or not largest_change <= max(0.5 * np.ptp(clipped_matrix, axis=0).max(), 1e-15):
        raise Unrepairable(matrix)
    mixed_matrix = _mix_until_private(stochastic(clipped_matrix), constraints, inputs)
    if mixed_matrix is None:
        raise Unrepairable(clipped_matrix)
    return mixed_matrix


def _epsilon_less_rounding(epsilon: float) -> float:
    """Return epsilon less the possible rounding of entries and of their logarithm.

    The difference is at most 2^-49 of epsilon. Columns then meet epsilon without any mixing, which would raise entries
    of size e^-epsilon out of all proportion.
    """
    return epsilon if math.isinf(epsilon) else epsilon - min(8 * ULP * epsilon, (4 + 6 * epsilon) * ULP)


def mix_until_repairable(
    matrix: Array, constraints: Sequence[Constraint], inputs: tuple[Label, ...] | None = None
) -> Array:
    """Mix `matrix` with the constant channel of its mean row until `repair` accepts it.

    Raises `Unrepairable` if even the constant channel breaks a constraint.
    """
    mean = matrix.mean(axis=0)
    for weight in (0.0, 1e-6, 1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 0.95, 1.0):
        mixed_matrix = np.asarray((1 - weight) * matrix + weight * mean)
        try:
            repair(mixed_matrix, constraints, inputs)
        except Unrepairable:
            continue
        return mixed_matrix
    raise Unrepairable(matrix)


def mixing_cost(value_before: float, value_after: float, error: bool = False) -> str:
    """Describe the effect of mixing with a constant channel on a utility.

    The text is empty if the effect is negligible. error : True if a smaller value is better.

    >>> mixing_cost(0.0697, 0.0028)
    'the channel was mixed with a constant one to meet the constraints, which took the utility from 0.0697 to 0.0028'
    """
    loss = value_after - value_before if error else value_before - value_after
    if not loss > MIXED_LOSS * abs(value_before):
        return ""
    change = f"which took the utility from {value_before:.6g} to {value_after:.6g}"
    return f"the channel was mixed with a constant one to meet the constraints, {change}"


def stochastic(matrix: Array) -> Array:
    """Normalize the rows to sum 1, preserving equal entries of a column and small differences.

    The shortfall of a row from the largest row sum is divided among its entries in proportion to the columns' smallest
    entries. Dividing each row by its own sum instead would move every entry by an ulp, which may be more than the rows
    differ.
    """
    q = np.maximum(matrix, 0.0)
    base = q.min(axis=0)
    excess = (q - base).sum(axis=1)
    shortfall, base_sum = excess.max() - excess, float(base.sum())
    if not base_sum > shortfall.max():
        sums = q.sum(axis=1, keepdims=True)
        return np.asarray(q / sums)
    if shortfall.max() > 1e-15 * excess.max():
        q = q + shortfall[:, None] * (base / base_sum)
    return np.asarray(q / (base_sum + excess.max()))


def _mix_until_private(
    matrix: Array, constraints: Sequence[Constraint], inputs: tuple[Label, ...] | None
) -> Array | None:
    """Mix `matrix` with the least fraction of its mean row, to a few percent, that meets the constraints.

    It is None beyond the largest weight.
    """
    mean = matrix.mean(axis=0)

    def mixture_if_private(weight: float) -> Array | None:
        channel = Channel((1 - weight) * matrix + weight * mean if weight else matrix, inputs)
        return channel.matrix if meets_constraints(channel, constraints) else None

    weight, rejected_weight, private_matrix = 0.0, 0.0, mixture_if_private(0.0)
    while private_matrix is None:
        rejected_weight, weight = weight, max(1e-16, (2 if weight < 1e-6 else 1.4) * weight)
        if weight > MAX_WEIGHT:
            return None
        private_matrix = mixture_if_private(weight)
    # A weight below 1e-12 costs nothing worth a search.
    while weight > 1e-12 and weight > 1.04 * rejected_weight:
        middle = math.sqrt(weight * max(rejected_weight, weight / 2))
        candidate = mixture_if_private(middle)
        if candidate is None:
            rejected_weight = middle
        else:
            weight, private_matrix = middle, candidate
    return private_matrix


def _raise_to_ratios(matrix: Array, terms: Sequence[Term]) -> Array:
    """Compute the least matrix above `matrix` that meets the ratios along all edges, by longest paths."""
    larger = matrix.copy()
    for term in (stick_terms for _, stick_terms in ByKind(terms).sticks if not stick_terms.caps.any()):
        for _ in range(len(matrix)):
            previous = larger.copy()
            np.maximum.at(larger, term.right, larger[term.left] / term.factor[:, None])
            if np.array_equal(larger, previous):
                break
    return larger
