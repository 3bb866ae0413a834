"""A float matrix rounded to an exact channel within its privacy claims: to bits, or to a small denominator.

With a small denominator, as dice and cards have, every column of weights gets an interval [low, high] with
high <= exp(epsilon) low near the column of the matrix, so that all weights inside satisfy epsilon. Each row is rounded
inside the intervals; rows still farther apart than eta allows are moved towards the middle, one unit at a time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.errors import invalid
from ldpopt.exact import (
    MAXIMUM_BITS,
    ExactChannel,
    Integers,
    checked_denominator,
    exp_lower,
    largest_distance,
    largest_ratio,
    log_up,
    row_sums,
)
from ldpopt.numbers.rounding import float_up, up
from ldpopt.numbers.tolerances import FEASIBILITY
from ldpopt.values.distribution import Array, number, stochastic
from ldpopt.values.labels import Label

__all__ = ["MAX_DENOMINATOR", "integers_near", "reach", "round_exact", "round_to_denominator"]


def round_exact(
    matrix: Any,
    bits: int = MAXIMUM_BITS,
    epsilon: float | None = None,
    eta: float | None = None,
    inputs: Iterable[Label] | None = None,
    outputs: Iterable[Label] | None = None,
) -> ExactChannel:
    """`matrix`, shape (k, m), in integers over 2**bits, rounded so that `epsilon` (nats) and `eta` are proved.

    Both default to those of the matrix, rounded up; a claim more than `tolerances.FEASIBILITY` below them is refused.
    Weights of a column stay in an interval [low, high] with high <= exp(epsilon) low around the mean row, where sums
    are balanced; if eta is exceeded, every row is pulled towards the mean row.
    """
    given = stochastic(matrix, "matrix")
    total = checked_denominator(bits)
    measured_epsilon = log_up(largest_ratio(given)[0])
    measured_eta = max(largest_distance(given)[0], largest_distance(given[::-1])[0])
    measured_eta = min(1.0, up(measured_eta, 2.0 * given.shape[1] + 8))
    epsilon = measured_epsilon if epsilon is None else _claim(epsilon, measured_epsilon, "epsilon", math.inf)
    eta = measured_eta if eta is None else _claim(eta, measured_eta, "eta", 1.0)

    m = given.shape[1]
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
    channel = ExactChannel(weights, bits, inputs, outputs)
    channel.verify(epsilon, eta)
    return channel


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
    missing = np.array([[float(total - row_sum)] for row_sum in row_sums(scaled)])
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
    missing = np.array([total - row_sum for row_sum in row_sums(weights)], dtype=np.int64)
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


MAX_DENOMINATOR = 10**6
"""The largest denominator. Units move one by one, so larger ones would be slow: use the rounding to bits for them."""


def round_to_denominator(
    matrix: Any,
    denominator: int,
    epsilon: float | None = None,
    eta: float | None = None,
    inputs: Iterable[Label] | None = None,
    outputs: Iterable[Label] | None = None,
) -> ExactChannel:
    """`matrix`, shape (k, m), in multiples of 1/denominator, rounded so that `epsilon` (nats) and `eta` are proved.

    Both default to those of the matrix, rounded up. An output too rare for the denominator gets the weight 0. Raises
    `InvalidInput` for a denominator above a million, and for one so small that rows that differ would become equal.
    """
    given = stochastic(matrix, "matrix")
    total = checked_denominator(denominator=denominator)
    if total > MAX_DENOMINATOR:
        raise invalid("denominator", f"at most {MAX_DENOMINATOR:,} (give bits for a finer one)", total)
    if epsilon is None:
        epsilon = log_up(largest_ratio(given)[0])
    if eta is None:
        # The float sum is right to a few units of its last place; the weights are far coarser.
        distance = max(float(largest_distance(given)[0]), float(largest_distance(given[::-1])[0]))
        eta = min(1.0, float_up(Fraction(distance) * (1 + Fraction(given.shape[1] + 4, 1 << 51))))
    weights = integers_near(given, total, None if math.isinf(epsilon) else exp_lower(epsilon), eta)
    if (weights == weights[0]).all() and not (given == given[0]).all():
        least = "a larger one: multiples of it keep nothing of this channel within its privacy"
        raise invalid("denominator", least, total)
    channel = ExactChannel(weights, None, inputs, outputs, denominator=total)
    channel.verify(epsilon, eta)
    return channel


def integers_near(given: Array, total: int, ratio: Fraction | None, eta: float | Fraction = 1) -> Integers:
    """Weights (k, m) near `total` times `given`, within `ratio` (None for any) and eta. Their rows may all be equal."""
    scaled = given * float(total)
    low, high = _column_intervals(scaled, given, ratio, total)
    weights = np.array([_row(row, low, high, total) for row in scaled], dtype=np.int64)
    centre = np.array(_row(scaled.mean(axis=0), low, high, total), dtype=np.int64)
    return _nearer(weights, centre, math.floor(Fraction(eta) * total))


def reach(low: int, ratio: Fraction | None, total: int) -> int:
    """The largest weight that may stand in a column whose smallest weight is `low`."""
    return total if ratio is None else min(low * ratio.numerator // ratio.denominator, total)


def _column_intervals(scaled: Array, given: Array, ratio: Fraction | None, total: int) -> tuple[list[int], list[int]]:
    """The lower and upper ends of the columns' intervals, with room for rows that sum to `total`."""
    m = scaled.shape[1]
    top, bottom = scaled.max(axis=0), scaled.min(axis=0)
    if ratio is None:
        return [0] * m, [total if given[:, y].max() > 0 else 0 for y in range(m)]
    low = []
    for y in range(m):
        # The interval should reach both ends of the column: the squares of what it misses are added up.
        middle = top[y] / float(ratio)
        start = max(0, math.floor(min(bottom[y], middle)) - 1)
        tried = range(start, math.ceil(max(bottom[y], middle)) + 2)
        low.append(min(tried, key=lambda a: _missed(a, reach(a, ratio, total), float(bottom[y]), float(top[y]))))
    order = sorted(range(m), key=lambda y: float(top[y]))
    while sum(low) > total:  # the least used columns are lowered first
        y = next(y for y in order if low[y] > 0)
        low[y] -= 1
    while sum(reach(a, ratio, total) for a in low) < total:
        y = max(range(m), key=lambda y: float(bottom[y]) - low[y])
        low[y] += 1
    return low, [reach(a, ratio, total) for a in low]


def _missed(low: int, high: int, bottom: float, top: float) -> float:
    return max(low - bottom, 0.0) ** 2 + max(top - high, 0.0) ** 2 + 1e-3 * max(bottom - low, 0.0) ** 2


def _row(row: Array, low: list[int], high: list[int], total: int) -> list[int]:
    """Integers within [low, high] that sum to `total`, near `row`: rounded, then moved unit by unit to the sum."""
    weights = [min(max(round(value), a), b) for value, a, b in zip(row.tolist(), low, high, strict=True)]
    missing = total - sum(weights)
    step = 1 if missing > 0 else -1
    for _ in range(abs(missing)):
        free = [y for y in range(len(weights)) if low[y] <= weights[y] + step <= high[y]]
        y = max(free, key=lambda y: step * (float(row[y]) - weights[y]))
        weights[y] += step
    return weights


def _nearer(weights: Integers, centre: Integers, allowed: int) -> Integers:
    """Move, of the two rows farthest apart, the one farther from the centre there by a unit, until eta is met."""
    weights = weights.copy()
    while True:
        distance, (x, other) = largest_distance(weights)
        if int(distance) <= allowed:
            return weights
        if np.abs(weights[other] - centre).sum() > np.abs(weights[x] - centre).sum():
            x = other
        away = weights[x] - centre
        weights[x, int(away.argmax())] -= 1
        weights[x, int(away.argmin())] += 1
