"""Pure local differential privacy: how much likelier any report can be under one input than under another."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Channel, ChannelLike, as_channel
from ldpopt.numbers.rounding import ULP, first_largest
from ldpopt.numbers.tolerances import ROUGH_SPREAD, TIE_RTOL
from ldpopt.privacy.guarantee import Guarantee, Witness
from ldpopt.privacy.loss import log_ratios, log_sums, shift
from ldpopt.privacy.pairs import Policy, worst_pair
from ldpopt.values.distribution import Array

REFERENCE = "[GI, Def 6]"


def local_dp(channel: ChannelLike, graph: Policy = None) -> Guarantee:
    """Compute the smallest epsilon, in nats, such that the channel is epsilon-LDP [GI, Def 6].

    epsilon = max over inputs x, x' and outputs y of log Q[x, y] / Q[x', y], with the rows divided by their sums. It
    takes O(k m) time without a graph, O(edges m) with one.

    Parameters
    ----------
    channel : `Channel`, or a (k, m) array whose rows sum to 1.
    graph : Policy graph over the inputs (networkx); only adjacent inputs are compared. None compares all.

    Returns
    -------
    Guarantee
        The smallest epsilon, in nats; inf if supports differ. Its witness names two inputs and an output that attain
        it.

    Raises
    ------
    InvalidInput
        If the matrix is not a channel, or the graph does not fit the inputs.

    Examples
    --------
    >>> g = local_dp([[0.75, 0.25], [0.25, 0.75]])
    >>> round(float(g), 9), g.witness.inputs
    (1.098612289, (0, 1))
    """
    channel = as_channel(channel)
    if graph is not None:
        return worst_pair("local_dp", channel, graph, _largest, REFERENCE, event=_attaining)
    low, high, best = _every_pair(channel)
    if best is None:
        return Guarantee("local_dp", 0.0, 0.0, None, True, REFERENCE)
    x, other, y = best
    witness = Witness((channel.inputs[x], channel.inputs[other]), (channel.outputs[y],))
    return Guarantee("local_dp", high, low, witness, True, REFERENCE)


Found = tuple[float, float, tuple[int, int, int] | None]


def _every_pair(channel: Channel) -> Found:
    """The largest spread of logarithms within a column, after rows are divided by their sums; and where it occurs."""
    q = channel.matrix
    used_outputs = np.flatnonzero(q.max(axis=0) > 0)
    if (q == q[0]).all():
        return 0.0, 0.0, None
    partly_zero_outputs = used_outputs[q[:, used_outputs].min(axis=0) == 0]
    if len(partly_zero_outputs):
        y = int(partly_zero_outputs[0])
        return math.inf, math.inf, (first_largest(q[:, y]), int(q[:, y].argmin()), y)
    sums = log_sums(q)[:, None]
    q = q[:, used_outputs]
    rough = q / q.sum(axis=1, keepdims=True)
    with np.errstate(over="ignore"):
        rough = np.log(rough.max(axis=0) / rough.min(axis=0))
    # The other columns cannot attain the largest spread.
    close = rough >= rough.max() * (1 - ROUGH_SPREAD) - ROUGH_SPREAD**2
    q, used_outputs = q[:, close], used_outputs[close]
    raw = log_ratios(q, np.broadcast_to(q.max(axis=0), q.shape))
    logs = raw - sums
    error = _log_error(raw) + 4 * ULP * np.abs(sums) + ULP / 2 * np.abs(logs)
    low = (logs - error).max(axis=0) - (logs + error).min(axis=0)
    high = (logs + error).max(axis=0) - (logs - error).min(axis=0)
    spread = np.ptp(logs, axis=0)
    if not spread.any():
        return 0.0, 0.0, None
    y = first_largest(np.where(spread > 0, high, 0.0))
    x, other = first_largest(logs[:, y], spread[y]), first_largest(-logs[:, y], spread[y])
    return _down(float(low.max())), _up(float(high.max())), (x, other, int(used_outputs[y]))


def _log_ratios(p: Array, q: Array) -> tuple[Array, Array]:
    """Bounds on the log-ratios of the distributions of stacked pairs, (n, m) each."""
    row_shift = shift(p, q)
    in_both = (p > 0) & (q > 0)
    raw = log_ratios(np.where(in_both, p, 1.0), np.where(in_both, q, 1.0))
    logs = raw - row_shift.value[:, None]
    error = _log_error(raw) + row_shift.error[:, None] + ULP / 2 * np.abs(logs)
    infinite = np.where(p > 0, np.inf, -np.inf)
    return np.where(in_both, logs - error, infinite), np.where(in_both, logs + error, infinite)


def _largest(p: Array, q: Array) -> tuple[Array, Array]:
    """Bounds on the largest log-ratio of the distributions of stacked pairs."""
    is_equal = (p == q).all(axis=1)
    low, high = (np.where(is_equal, 0.0, ends.max(axis=1)) for ends in _log_ratios(p, q))
    return np.array([_down(value) for value in low.tolist()]), np.array([_up(value) for value in high.tolist()])


def _attaining(p: Array, q: Array) -> npt.NDArray[np.bool_]:
    """The first output of each pair with the largest log-ratio."""
    upper = _log_ratios(p, q)[1]
    top = upper.max(axis=1, keepdims=True)
    first = (upper >= top * (1 - TIE_RTOL * np.sign(top))).argmax(axis=1)
    return np.asarray(np.arange(p.shape[1]) == first[:, None])


def _log_error(raw: Array) -> Array:
    """A bound on the error of `log_ratios`. Most of a large logarithm is the exponent's, which is accurate."""
    size = np.abs(raw)
    return np.asarray(ULP * (2 * size + 4 * np.minimum(size, 1.0)))


def _up(value: float) -> float:
    return value if math.isinf(value) else math.nextafter(value * (1 + 2 * ULP), math.inf) if value > 0 else 0.0


def _down(value: float) -> float:
    return value if math.isinf(value) else max(0.0, value * (1 - 2 * ULP))
