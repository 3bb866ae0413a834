"""The hockey-stick divergence: the delta of (epsilon, delta)-LDP at a given epsilon."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import ChannelLike, as_channel
from ldpopt.distribution import Array, number
from ldpopt.errors import invalid
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.privacy.laws import Shift, centred, scaled, shift
from ldpopt.privacy.pairs import named_event, normalised, stacked, worst_pair
from ldpopt.privacy.policy import Policy
from ldpopt.rounding import SUBNORMAL, ULP

REFERENCE = "[GI, Def 1]"


def hockey_stick(channel: ChannelLike, epsilon: float, graph: Policy = None) -> Guarantee:
    """The smallest delta in [0, 1] for which the channel is (epsilon, delta)-LDP, for epsilon >= 0 in nats.

    delta = max over inputs x, x' of sum_y (Q[x, y] - exp(epsilon) Q[x', y])_+, the hockey-stick divergence of two rows,
    after rows are divided by their sums [GI, Def 1]. At epsilon = 0 it is the total variation. The outputs of the
    witness are the event that attains it. With a policy `graph`, only adjacent inputs are compared.

    >>> g = hockey_stick([[0.75, 0.25], [0.25, 0.75]], 0.5)
    >>> round(float(g), 9), g.witness.outputs
    (0.337819682, (0,))
    """
    eps = nonnegative(epsilon, "epsilon")
    channel = as_channel(channel)
    return worst_pair(
        "hockey_stick", channel, graph, lambda p, q: hockey_stick_of_pairs(p, q, eps), REFERENCE,
        parameters={"epsilon": eps}, event=lambda p, q: positive_event(p, q, eps),
        screen=lambda matrix: screen(matrix, eps),
    )  # fmt: skip


def nonnegative(value: Any, what: str) -> float:
    """`value` as a non-negative finite float."""
    result = number(value, what, "a non-negative finite number")
    if result < 0:
        raise invalid(what, "a non-negative finite number", result)
    return result


def hockey_stick_of_pairs(p: Array, q: Array, epsilon: float) -> tuple[Array, Array]:
    """Lower and upper bounds on sum (p - e^epsilon q)_+ of n pairs of laws, arrays (n, m) -> (n,), (n,)."""
    p, q = stacked(p, q)
    eps = nonnegative(epsilon, "epsilon")
    identical = (p == q).all(axis=1)
    by = shift(p, q)
    above, error = _positive_part(p, q, eps, by)
    m, value = p.shape[1], above.sum(axis=1)
    error = error.sum(axis=1) + (m + 2) * ULP * value
    # Subnormal products and sums have an absolute error of a unit each, which a relative error does not cover.
    error = np.where((error > 0) | (value > 0), error + (2 * m + 8) * SUBNORMAL, 0.0)
    total = 1 + by.above
    low = np.where(value > error, (value - error) / total * (1 - 4 * ULP), 0.0)
    high = (value + error) / total * (1 + 4 * ULP)
    return np.where(identical, 0.0, np.minimum(low, 1.0)), np.where(identical, 0.0, np.minimum(high, 1.0))


def _positive_part(p: Array, q: Array, epsilon: float, by: Shift) -> tuple[Array, Array]:
    """(p - e^(epsilon + c) q)_+ of stacked rows, where c = `by.value`, and a bound on the error of each entry."""
    exponent = epsilon + by.value
    rounding = by.error + ULP * np.where(by.value == 0, 0.0, np.abs(exponent))
    if epsilon <= 0.5:  # p - q is exact where the two are close, and the rest that is subtracted is small
        growth = np.expm1(exponent)
        taken = growth[:, None] * q
        difference = (p - q) - taken
        off = ULP * (np.abs(p - q) + 4 * np.abs(taken)) + (4 * ULP * np.abs(growth) + 3 * rounding)[:, None] * q
        off = np.where(((growth == 0) & (rounding == 0))[:, None], 0.0, off + _tiny(p))
    else:
        limit = scaled(q, exponent)
        with np.errstate(over="ignore", invalid="ignore"):
            difference = p - limit
            ulps = np.where(np.abs(exponent) <= 700, 6.0, 6 + 4 * np.abs(exponent))
            off = np.where(limit < np.inf, (ulps * ULP + 3 * rounding)[:, None] * limit + ULP * p + _tiny(p), 0.0)
    off = np.where((q > 0) & (p > 0), off, 0.0)
    return np.maximum(difference, 0.0), np.where(difference + off > 0, off, 0.0)


def _tiny(p: Array) -> Array:
    """The absolute error of an operation on entries that are so small that they have lost digits."""
    return np.where(p < 2.0**-960, 4 * SUBNORMAL, 0.0)


def positive_event(p: Array, q: Array, epsilon: float) -> npt.NDArray[np.bool_]:
    """The outputs whose probability under the law of p exceeds e^epsilon times that under the law of q."""
    return named_event(p, _positive_part(p, q, epsilon, shift(p, q))[0])


def screen(matrix: Array, epsilon: float) -> tuple[Array, Array]:
    """Bounds on the hockey stick of every ordered pair of rows, (k, k) each, from a matrix of distances.

    For laws p, q and v = e^epsilon q it is sum (p - v)_+ = (1 - e^epsilon + sum |p - v|)/2. Entries of v above the
    largest entry of their column are lowered to it; the result is the same, and the sums stay small. Where all rows
    are close and epsilon is small, the differences from the first row are used, which keep more digits.
    """
    from scipy.spatial.distance import cdist

    m = matrix.shape[1]
    reference, away, lost = centred(matrix)
    if epsilon <= 0.5 and (np.abs(away) <= 0.5 * reference).all():
        growth = math.expm1(epsilon)
        value = (cdist(away, away + growth * (away + reference), "cityblock") - growth) / 2
        size = np.abs(away).sum(axis=1)
        error: Array = (m + 32) * ULP * (2 * (size[:, None] + size) + 4 * growth) + 2 * (lost[:, None] + lost)
    else:
        p = normalised(matrix)
        uncut, top = scaled(p, np.full(len(p), epsilon)), p.max(axis=0)
        v = np.minimum(uncut, top)
        ulps = 8.0 if epsilon <= 700 else 8 + 4 * epsilon
        unsure = ulps * np.where(uncut * (1 - 2 * ulps * ULP) < top, v, 0.0).sum(axis=1)
        p_sum, v_sum = p.sum(axis=1)[:, None], v.sum(axis=1)
        value = (p_sum - v_sum + cdist(p, v, "cityblock")) / 2
        error = ULP * ((m + 32) * (p_sum + v_sum) + unsure)  # subnormal errors do not matter beside sums of rows
    bounds: tuple[Array, Array] = (value - error, np.minimum(value + error, 1.0))
    return bounds
