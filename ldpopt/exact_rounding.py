"""Rounding a float matrix to an exact channel that keeps its privacy; probabilities move by a few units of 2**-bits."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.distribution import Array, number, positive_integer
from ldpopt.errors import invalid
from ldpopt.exact import (
    MAXIMUM_BITS,
    ExactChannel,
    Integers,
    exp_lower,
    largest_distance,
    largest_ratio,
    log_up,
    probabilities,
    row_sums,
)
from ldpopt.labels import Label
from ldpopt.rounding import up
from ldpopt.tolerances import FEASIBILITY


def round_exact(
    matrix: Any,
    bits: int = MAXIMUM_BITS,
    epsilon: float | None = None,
    eta: float | None = None,
    inputs: Iterable[Label] | None = None,
    outputs: Iterable[Label] | None = None,
) -> ExactChannel:
    """`matrix`, shape (k, m), in integers, rounded so that `epsilon` (nats) and `eta` are proved.

    epsilon and eta default to those of the float matrix, rounded up. Raises `InvalidInput` for a claim that is more
    than `tolerances.FEASIBILITY` below what the matrix measures. This includes a finite epsilon for a column in which
    only some entries are zero.

    In every column the weights lie in an interval [low, high] with high <= exp(epsilon) low, which also contains the
    entry of the mean row. Where rounding leaves a row with too small or too large a sum, weights move inside their
    intervals. If the distance of two rows then exceeds eta, every row is pulled towards the mean row.

    >>> round_exact([[0.75, 0.25], [0.25, 0.75]], bits=10).weights.tolist()
    [[768, 256], [256, 768]]
    """
    given = probabilities(matrix)
    bits = positive_integer(bits, "bits")
    if bits > MAXIMUM_BITS:
        raise invalid("bits", f"an integer from 1 to {MAXIMUM_BITS}", bits)
    measured_epsilon = log_up(largest_ratio(given)[0])
    measured_eta = max(largest_distance(given)[0], largest_distance(given[::-1])[0])
    measured_eta = min(1.0, up(measured_eta, 2.0 * given.shape[1] + 8))
    epsilon = measured_epsilon if epsilon is None else _claim(epsilon, measured_epsilon, "epsilon", math.inf)
    eta = measured_eta if eta is None else _claim(eta, measured_eta, "eta", 1.0)

    total, m = 1 << bits, given.shape[1]
    scaled = _scale(given, total)
    centre = _scale(given.mean(axis=0, keepdims=True), total)
    order = np.argsort(-centre[0], kind="stable")
    _balance(centre, np.zeros((1, m), np.int64), np.full((1, m), total), total, order)
    if math.isinf(epsilon):
        low, high = np.zeros_like(scaled), np.where(given > 0, total, 0)  # zeros stay zeros
    else:
        low, high = _intervals(scaled, centre[0], exp_lower(epsilon), total)
    weights = np.clip(scaled, low, high)
    _balance(weights, low, high, total, order)
    allowed = math.floor(Fraction(eta) * total)
    distance = int(largest_distance(weights)[0])
    if distance > allowed:
        # Truncation and balancing move a distance by less than 3 m units.
        weights = _contract(weights, centre[0], max(allowed - 3 * m, 0), distance)
        if math.isinf(epsilon):
            low, high = np.zeros_like(weights), np.full_like(weights, total)
        _balance(weights, low, high, total, order)
    made = ExactChannel(weights, bits, inputs, outputs)
    made.verify(epsilon, eta)
    return made


def _claim(value: float, measured: float, what: str, largest: float) -> float:
    claimed = value if isinstance(value, float) and value == math.inf else number(value, what)
    if not 0 <= claimed <= largest:
        raise invalid(what, f"a number between 0 and {largest:g}", claimed)
    if measured > claimed + FEASIBILITY:
        raise invalid(what, f"a claim that the matrix meets within {FEASIBILITY:g}: at least {measured!r}", claimed)
    return claimed


def _scale(given: Array, total: int) -> Integers:
    """`given` times `total`, rounded to integers. Row sums are corrected in proportion, up to a few units."""
    scaled = np.rint(given * float(total)).astype(np.int64)  # the product with a power of two is exact
    missing = np.array([[float(total - found)] for found in row_sums(scaled)])
    return np.clip(scaled + np.rint(missing * given).astype(np.int64), 0, total)


def _intervals(scaled: Integers, centre: Integers, ratio: Fraction, total: int) -> tuple[Integers, Integers]:
    """For every column, low and high with low <= centre <= high <= ratio * low."""
    top, bottom = scaled.max(axis=0), scaled.min(axis=0)
    # Some room above the largest weight, for units that `_balance` adds to rows with too small a sum.
    room = np.minimum(scaled.shape[1], top >> 32)
    numerator, denominator = ratio.numerator, ratio.denominator
    low, high = [], []
    for most, least, middle in zip((top + room).tolist(), bottom.tolist(), centre.tolist(), strict=True):
        most = max(most, middle)
        floor = min(max(least, -(-most * denominator // numerator)), middle)
        low.append(floor)
        high.append(min(floor * numerator // denominator, total))
    shape = scaled.shape
    return np.broadcast_to(np.array(low, np.int64), shape), np.broadcast_to(np.array(high, np.int64), shape)


def _balance(weights: Integers, low: Integers, high: Integers, total: int, order: npt.NDArray[np.intp]) -> None:
    """Move `weights` inside [low, high], largest columns first, until every row sums to `total`."""
    missing = np.array([total - found for found in row_sums(weights)], dtype=np.int64)
    for y in order.tolist():
        if not missing.any():
            return
        step = np.clip(missing, low[:, y] - weights[:, y], high[:, y] - weights[:, y])
        weights[:, y] += step
        missing -= step


def _contract(weights: Integers, centre: Integers, numerator: int, denominator: int) -> Integers:
    """centre + (weights - centre) * numerator / denominator, truncated toward the centre."""
    away = (weights - centre).astype(object)
    return np.asarray(centre + np.sign(away) * (abs(away) * numerator // denominator), dtype=np.int64)
