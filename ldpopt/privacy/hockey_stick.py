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
from ldpopt.privacy.pairs import stacked, worst_pair
from ldpopt.privacy.policy import Policy
from ldpopt.rounding import SUBNORMAL, ULP

REFERENCE = "[GI, Def 1]"


def hockey_stick(channel: ChannelLike, epsilon: float, graph: Policy = None) -> Guarantee:
    """The smallest delta in [0, 1] for which the channel is (epsilon, delta)-LDP, for epsilon >= 0 in nats.

    delta = max over pairs of sum_y (Q[x, y] - exp(epsilon) Q[x', y])_+ [GI, Def 1]; at epsilon = 0 it is the
    total variation. The witness's outputs are the event that attains it.

    >>> g = hockey_stick([[0.75, 0.25], [0.25, 0.75]], 0.5)
    >>> round(float(g), 9), g.witness.outputs
    (0.337819682, (0,))
    """
    eps = nonnegative(epsilon, "epsilon")
    channel = as_channel(channel)
    factor = _exp(eps)
    return worst_pair(
        "hockey_stick", channel, graph, lambda p, q: hockey_stick_of_pairs(p, q, eps), REFERENCE,
        parameters={"epsilon": eps}, event=lambda p, q: _positive_part(p, q, factor)[0] > 0,
        screen=lambda matrix: screen(matrix, eps),
    )  # fmt: skip


def nonnegative(value: Any, what: str) -> float:
    """`value` as a non-negative finite float."""
    result = number(value, what, "a non-negative finite number")
    if result < 0:
        raise invalid(what, "a non-negative finite number", result)
    return result


def hockey_stick_of_pairs(p: Array, q: Array, epsilon: float) -> tuple[Array, Array]:
    """Bounds below and above on sum (p - e^epsilon q)_+ of each stacked pair, arrays (n, m) -> (n,), (n,)."""
    p, q = stacked(p, q)
    eps = nonnegative(epsilon, "epsilon")
    identical = (p == q).all(axis=1)
    above, scale = _positive_part(p, q, _exp(eps))
    value = above.sum(axis=1)
    # exp is right to 2 units, the product and the difference to one each; where p = e^eps q to rounding, the
    # sign is unsure, and the term is within the same error.
    error = np.where(identical, 0.0, 6 * ULP * scale.sum(axis=1) + (above.shape[1] + 4) * ULP * value)
    if eps == 0:  # then the differences are exact to a unit each
        error = np.where(identical, 0.0, (above.shape[1] + 4) * ULP * value)
    # Subnormal products and sums are off by a unit each, which no relative error covers.
    error += np.where(~identical & ((value > 0) | (scale > 0).any(axis=1)), above.shape[1] * 2 * SUBNORMAL, 0.0)
    low = np.where(value > error, value - error, 0.0)
    return np.minimum(low, 1.0), np.minimum(value + error, 1.0)


def _positive_part(p: Array, q: Array, factor: float) -> tuple[Array, Array]:
    """(p - factor q)_+ and the entries p whose rounding enters it."""
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.where(q > 0, factor * q, 0.0)
    margin = scaled * (1 - 16 * ULP)
    return np.maximum(p - scaled, 0.0), np.where((p >= margin) & (p > 0) & (q > 0), p, 0.0)


def _exp(epsilon: float) -> float:
    return math.exp(epsilon) if epsilon < 709.0 else math.inf


def screen(matrix: Array, epsilon: float) -> tuple[Array, Array]:
    """Bounds on every ordered pair: sum (p - v)_+ = (sum p - sum v + sum |p - v|)/2 with v = e^epsilon q.

    v is cut at the largest entry of its column, which changes nothing and keeps the sums small.
    """
    from scipy.spatial.distance import cdist

    with np.errstate(over="ignore", invalid="ignore"):
        v = np.where(matrix > 0, _exp(epsilon) * matrix, 0.0)
    v = np.minimum(v, matrix.max(axis=0))
    p_sum, v_sum = matrix.sum(axis=1)[:, None], v.sum(axis=1)
    value = (p_sum - v_sum + cdist(matrix, v, "cityblock")) / 2
    error = (matrix.shape[1] + 16) * ULP * (p_sum + v_sum)  # sums of rows: subnormal errors are nothing to them
    bounds: tuple[npt.NDArray[np.float64], Array] = (value - error, np.minimum(value + error, 1.0))
    return bounds
