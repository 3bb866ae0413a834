"""Approximate LDP of a channel: delta at an epsilon (hockey stick), epsilon at a delta, total variation."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import compress

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Channel, ChannelLike, as_channel
from ldpopt.numbers.rounding import SUBNORMAL, ULP, down, exact_sum, first_largest, up
from ldpopt.numbers.tolerances import EXACT_GAP, TIE_RTOL
from ldpopt.privacy.guarantee import Guarantee, Witness
from ldpopt.privacy.loss import Shift, centred, log_ratios, scaled, shift
from ldpopt.privacy.pairs import Policy, distances, in_blocks, named_event, normalised, ordered_pairs, worst_pair
from ldpopt.values.distribution import Array, Index, number, unit_interval

REFERENCE = "[GI, Def 1]"
TOTAL_VARIATION_REFERENCE = "[GI, Def 7]"


def hockey_stick(channel: ChannelLike, epsilon: float, graph: Policy = None) -> Guarantee:
    """Return the smallest delta in [0, 1] such that the channel is (epsilon, delta)-LDP.

    delta is the largest sum_y (Q[x, y] - exp(epsilon) Q[x', y])_+ over inputs x and x'. This is the hockey-stick
    divergence of two rows, after rows are divided by their sums [GI, Def 1]. At epsilon = 0 it is the total variation.
    Below 0 it is at least 1 - exp(epsilon), which even equal rows have.

    Parameters
    ----------
    channel : `Channel`, or a (k, m) array whose rows sum to 1.
    epsilon : In nats, of any sign.
    graph : Policy graph over the inputs (networkx); only adjacent inputs are compared. None compares all.

    Returns
    -------
    Guarantee
        The smallest delta. The outputs of its witness are the event that attains it.

    Raises
    ------
    InvalidInput
        If the matrix is not a channel, epsilon is NaN, or the graph does not fit the inputs.

    Examples
    --------
    >>> g = hockey_stick([[0.75, 0.25], [0.25, 0.75]], 0.5)
    >>> round(float(g), 9), g.witness.outputs
    (0.337819682, (0,))
    >>> round(float(hockey_stick([[0.75, 0.25], [0.25, 0.75]], -0.5)), 9)  # 1 - e^-0.5 (1 - delta(0.5))
    0.598367335
    """
    checked_epsilon = number(epsilon, "epsilon")
    channel = as_channel(channel)
    if checked_epsilon < 0:
        reversed_graph = graph.reverse() if hasattr(graph, "reverse") and graph.is_directed() else graph
        return _mirrored(hockey_stick(channel, -checked_epsilon, reversed_graph), channel, checked_epsilon)
    return worst_pair(
        "hockey_stick", channel, graph, lambda p, q: hockey_stick_of_pairs(p, q, checked_epsilon), REFERENCE,
        parameters={"epsilon": checked_epsilon}, event=lambda p, q: positive_event(p, q, checked_epsilon),
        screen=lambda matrix: screen(matrix, checked_epsilon),
    )  # fmt: skip


def mirrored(low: float, high: float, epsilon: float) -> tuple[float, float]:
    """Return bounds on the hockey stick of p from q at `epsilon` < 0, from those of q from p at -epsilon.

    With E = e^epsilon, sum (p - E q)_+ = 1 - E + E sum (q - p/E)_+.
    """
    smallest, factor = -math.expm1(epsilon), math.exp(epsilon)
    return down(smallest + factor * low, 8), min(1.0, up(smallest + factor * high, 8))


def _mirrored(opposite: Guarantee, channel: Channel, epsilon: float) -> Guarantee:
    low, high = mirrored(opposite.lower, opposite.value, epsilon)
    witness = None
    if opposite.witness is not None:
        x, other = opposite.witness.inputs
        opposite_outputs = set(opposite.witness.outputs)
        witness = Witness((other, x), tuple(output for output in channel.outputs if output not in opposite_outputs))
    return Guarantee("hockey_stick", high, low, witness, opposite.exact, REFERENCE, {"epsilon": epsilon})


def hockey_stick_of_pairs(p: Array, q: Array, epsilon: float) -> tuple[Array, Array]:
    """Bound sum (p - e^epsilon q)_+ of n pairs of distributions, (n, m) -> (n,), (n,)."""
    p, q = np.atleast_2d(p, q)
    is_identical = (p == q).all(axis=1)
    row_shift = shift(p, q)
    positive_parts, error = _positive_part(p, q, epsilon, row_shift)
    m, value = p.shape[1], positive_parts.sum(axis=1)
    error = error.sum(axis=1) + (m + 2) * ULP * value
    # Subnormal products and sums have an absolute error of a unit each, which a relative error does not cover.
    error = np.where((error > 0) | (value > 0), error + (2 * m + 8) * SUBNORMAL, 0.0)
    p_sum = 1 + row_shift.defect
    low = np.where(value > error, (value - error) / p_sum * (1 - 4 * ULP), 0.0)
    high = (value + error) / p_sum * (1 + 4 * ULP)
    return np.where(is_identical, 0.0, np.minimum(low, 1.0)), np.where(is_identical, 0.0, np.minimum(high, 1.0))


def _positive_part(p: Array, q: Array, epsilon: float, row_shift: Shift) -> tuple[Array, Array]:
    """The entries (p - e^(epsilon + c) q)_+ with c = `row_shift.value`, and a bound on the error of each."""
    exponent = epsilon + row_shift.value
    rounding = row_shift.error + ULP * np.where(row_shift.value == 0, 0.0, np.abs(exponent))
    if epsilon <= 0.5:  # p - q is exact where the two are close, and the rest that is subtracted is small
        growth = np.expm1(exponent)
        growth_part = growth[:, None] * q
        difference = (p - q) - growth_part
        entry_error = (
            ULP * (np.abs(p - q) + 4 * np.abs(growth_part)) + (4 * ULP * np.abs(growth) + 3 * rounding)[:, None] * q
        )
        entry_error = np.where(((growth == 0) & (rounding == 0))[:, None], 0.0, entry_error + _tiny(p))
    else:
        limit = scaled(q, exponent)
        with np.errstate(over="ignore", invalid="ignore"):
            difference = p - limit
            ulps = np.where(np.abs(exponent) <= 700, 6.0, 6 + 4 * np.abs(exponent))
            entry_error = np.where(
                limit < np.inf, (ulps * ULP + 3 * rounding)[:, None] * limit + ULP * p + _tiny(p), 0.0
            )
    entry_error = np.where((q > 0) & (p > 0), entry_error, 0.0)
    return np.maximum(difference, 0.0), np.where(difference + entry_error > 0, entry_error, 0.0)


def _tiny(p: Array) -> Array:
    """The absolute error of an operation on entries that are so small that they have lost digits."""
    return np.where(p < 2.0**-960, 4 * SUBNORMAL, 0.0)


def positive_event(p: Array, q: Array, epsilon: float) -> npt.NDArray[np.bool_]:
    """Return the outputs with a probability under p above e^epsilon times that under q."""
    return named_event(p, _positive_part(p, q, epsilon, shift(p, q))[0])


def screen(matrix: Array, epsilon: float) -> tuple[Array, Array]:
    """Bound the hockey stick of every ordered pair of rows, (k, k) each, by distances.

    With v = e^epsilon q the hockey stick is (1 - e^epsilon + sum |p - v|)/2. Entries of v above the largest entry of
    their column are lowered to it. Where all rows are close, the differences from the first row keep more digits.
    """
    m = matrix.shape[1]
    reference, deviation, deviation_error = centred(matrix)
    if epsilon <= 0.5 and (np.abs(deviation) <= 0.5 * reference).all():
        growth = math.expm1(epsilon)
        value = (distances(deviation, deviation + growth * (deviation + reference)) - growth) / 2
        absolute_deviations = np.abs(deviation).sum(axis=1)
        error: Array = (m + 32) * ULP * (2 * (absolute_deviations[:, None] + absolute_deviations) + 4 * growth) + 2 * (
            deviation_error[:, None] + deviation_error
        )
    else:
        p = normalised(matrix)
        scaled_rows, column_maxima = scaled(p, np.full(len(p), epsilon)), p.max(axis=0)
        capped_rows = np.minimum(scaled_rows, column_maxima)
        ulps = 8.0 if epsilon <= 700 else 8 + 4 * epsilon
        scaling_error = ulps * np.where(scaled_rows * (1 - 2 * ulps * ULP) < column_maxima, capped_rows, 0.0).sum(
            axis=1
        )
        p_sum, v_sum = p.sum(axis=1)[:, None], capped_rows.sum(axis=1)
        value = (p_sum - v_sum + distances(p, capped_rows)) / 2
        error = ULP * (
            (m + 32) * (p_sum + v_sum) + scaling_error
        )  # subnormal errors are negligible compared with sums of rows
    return np.asarray(value - error), np.minimum(value + error, 1.0)


_MAX_EXACT_ENTRIES = 1 << 21
"""Largest number of entries compared exactly, of pairs that are nearly as far apart as the farthest pair."""


def total_variation(channel: ChannelLike, graph: Policy = None) -> Guarantee:
    """Return the smallest eta in [0, 1] such that the channel is eta-TV.

    eta is the largest distance between two rows, the Dobrushin coefficient of the channel [GI, Def 7]. The distance of
    two rows is half the sum of |Q[x, y] - Q[x', y]| over y, after both are divided by their sums. For k distinct rows
    it takes O(k^2 m) time and O(k^2 + k m) memory.

    Parameters
    ----------
    channel : `Channel`, or a (k, m) array whose rows sum to 1.
    graph : Policy graph over the inputs (networkx); only adjacent inputs are compared. None compares all.

    Returns
    -------
    Guarantee
        The smallest eta. Its witness names two rows at this distance, and the event with different probabilities.

    Raises
    ------
    InvalidInput
        If the matrix is not a channel, or the graph does not fit the inputs.

    Examples
    --------
    >>> g = total_variation([[0.75, 0.25], [0.25, 0.75]])
    >>> round(float(g), 9), g.witness
    (0.5, Witness(inputs=(0, 1), outputs=(0,)))
    """
    channel = as_channel(channel)
    q = channel.matrix
    if graph is None:
        i, j, unlisted_distance = _candidates(q)
    else:
        (i, j), unlisted_distance = ordered_pairs(channel, graph), 0.0
        if len(i) == 0:
            return Guarantee("total_variation", 0.0, 0.0, None, True, TOTAL_VARIATION_REFERENCE)
    bounds = [hockey_stick_of_pairs(q[a], q[b], 0.0) for a, b in in_blocks(i, j, q.shape[1])]
    lower, upper = (np.concatenate(bounds_of_blocks) for bounds_of_blocks in zip(*bounds, strict=True))
    low, high = float(lower.max()), float(upper.max())
    if high == 0:
        return Guarantee("total_variation", unlisted_distance, 0.0, None, True, TOTAL_VARIATION_REFERENCE)
    x, other = (int(positions[first_largest(upper)]) for positions in (i, j))
    is_in_event = positive_event(q[[x]], q[[other]], 0.0)[0]
    witness = Witness((channel.inputs[x], channel.inputs[other]), tuple(compress(channel.outputs, is_in_event)))
    value, exact = min(1.0, high + unlisted_distance), unlisted_distance <= EXACT_GAP * high
    return Guarantee("total_variation", value, low, witness, exact, TOTAL_VARIATION_REFERENCE)


def _candidates(q: Array) -> tuple[Index, Index, float]:
    """Pairs of rows that include a farthest one, and how much farther apart an omitted pair may be."""
    k, m = q.shape
    first_positions: dict[bytes, int] = {}
    for x in range(k):
        first_positions.setdefault(q[x].tobytes(), x)
    distinct_rows = np.fromiter(first_positions.values(), np.intp)
    _, deviation, deviation_error = centred(q[distinct_rows])
    distance = distances(deviation, deviation)
    distance[np.tril_indices(len(distinct_rows))] = 0.0
    farthest = float(distance.max())
    if farthest == 0:
        return distinct_rows[:1], distinct_rows[:1], float(deviation_error.max()) if (q != q[0]).any() else 0.0
    error = 2 * float(deviation_error.max())
    is_farthest = distance >= farthest * (1 - max(TIE_RTOL, 2 * (m + 8) * ULP)) - 2 * error
    i, j = np.divmod(np.flatnonzero(np.triu(is_farthest, 1)), len(distinct_rows))
    if len(i) * m > _MAX_EXACT_ENTRIES:
        flat_distances = distance.ravel()
        i, j = np.divmod(np.unique([first_largest(flat_distances), flat_distances.argmax()]), len(distinct_rows))
        return distinct_rows[i], distinct_rows[j], error + (m + 8) * ULP * farthest
    return distinct_rows[i], distinct_rows[j], 0.0


def approximate_dp(channel: ChannelLike, delta: float, graph: Policy = None) -> Guarantee:
    """Return the smallest epsilon (nats) such that the channel is (epsilon, delta)-LDP.

    The value is exact: delta is the maximum of finitely many lines in e^epsilon, one for each event that a
    likelihood-ratio test can accept [GI, Thm 1].

    Where a row sums to one up to rounding, its entries are not divided by the sum if the other row has a zero there. So
    (0.1, 0, 0.9) against (0, 0.1, 0.9) is (0, 0.1)-LDP.

    Parameters
    ----------
    channel : `Channel`, or a (k, m) array whose rows sum to 1.
    delta : In [0, 1]; 0 gives pure LDP.
    graph : Policy graph over the inputs (networkx); only adjacent inputs are compared. None compares all.

    Returns
    -------
    Guarantee
        The smallest epsilon, in nats; inf if no epsilon suffices.

    Raises
    ------
    InvalidInput
        If the matrix is not a channel, delta is out of range, or the graph does not fit the inputs.

    Examples
    --------
    >>> g = approximate_dp([[0.75, 0.25], [0.25, 0.75]], 0.25)
    >>> round(float(g), 9)
    0.693147181
    """
    channel = as_channel(channel)
    level = unit_interval(delta, "delta")
    return worst_pair(
        "approximate_dp", channel, graph, lambda p, q: epsilon_of_pairs(p, q, level), REFERENCE,
        parameters={"delta": level}, event=lambda p, q: _event(p, q, level),
        screen=lambda matrix: _screen(matrix, level),
    )  # fmt: skip


def epsilon_of_pairs(p: Array, q: Array, delta: float) -> tuple[Array, Array]:
    """Bound the epsilon at `delta` of n pairs of rows, arrays (n, m) -> (n,), (n,)."""
    p, q = np.atleast_2d(p, q)
    is_identical = (p == q).all(axis=1)
    row_shift = shift(p, q)
    p_sums, q_sums, difference_sums, absolute_difference_sums = _events(p, q)
    error = (p.shape[1] + 4) * ULP
    allowed_excess = delta * (1 + row_shift.defect)[:, None]
    growth = np.expm1(row_shift.value)[:, None]
    bounds = []
    for sign in (-1, 1):
        # delta(t) = max_n P_n/P - t Q_n/Q <= delta  iff  t P/Q >= (P_n - delta P)/Q_n for every n.
        excess = p_sums * (1 + sign * error) - allowed_excess * (1 - sign * 2 * ULP) + sign * 8 * SUBNORMAL
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            event_epsilons = np.log(np.maximum(excess, 5e-324)) - np.log(q_sums) - row_shift.value[:, None]
            event_epsilons += sign * (
                2 * error
                + 4 * ULP * np.abs(np.log(q_sums))
                + 4 * ULP * np.abs(event_epsilons)
                + row_shift.error[:, None]
            )
            # Near t = 1 the logarithm of the quotient loses digits, which the difference keeps.
            difference_error = (
                error * absolute_difference_sums
                + 4 * ULP * (allowed_excess + q_sums * np.abs(growth))
                + 2 * q_sums * row_shift.error[:, None]
            )
            relative_excess = (
                difference_sums - allowed_excess - q_sums * growth + sign * (difference_error + 8 * SUBNORMAL)
            ) / (q_sums * (1 + growth))
            near_epsilons = np.log1p(
                np.clip(relative_excess * (1 + sign * np.sign(relative_excess) * (error + 8 * ULP)), -0.5, 1.0)
            )
            event_epsilons = np.where(
                np.abs(relative_excess) < 0.5, near_epsilons * (1 + sign * 4 * ULP), event_epsilons
            )
        event_epsilons = np.where(excess > 0, np.where(q_sums > 0, event_epsilons, np.inf), -np.inf)
        bounds.append(event_epsilons)
    for pair, event in np.argwhere(
        (q_sums == 0) & (bounds[0] < bounds[1])
    ):  # rounding hides whether epsilon is infinite
        bounds[0][pair, event] = bounds[1][pair, event] = np.inf if _exceeds(p[pair], q[pair], delta) else -np.inf
    low, high = (np.where(is_identical, 0.0, np.maximum(event_epsilons.max(axis=1), 0.0)) for event_epsilons in bounds)
    return low, high


def _exceeds(p: Array, q: Array, level: float) -> bool:
    """True if the outputs impossible under q have a probability above `level` under p, computed exactly.

    A row that sums to one up to rounding is not divided by its sum: 1 - d and d, both rounded, need not sum to one.
    """
    excluded_mass = exact_sum(p[(q == 0) & (p > 0)])
    total = exact_sum(p)
    is_rounded_sum = abs(total - 1) <= Fraction(1, 2**53)
    return excluded_mass > Fraction(level) * (1 if is_rounded_sum else total)


def _events(p: Array, q: Array) -> tuple[Array, Array, Array, Array]:
    """Running sums of p, q, p - q and |p - q| over the outputs, sorted by falling likelihood ratio p/q."""
    is_in_both = (p > 0) & (q > 0)
    ratio = log_ratios(np.where(is_in_both, p, 1.0), np.where(is_in_both, q, 1.0))
    order = np.argsort(-np.select([is_in_both, p > 0], [ratio, np.inf], -np.inf), axis=1, kind="stable")
    p, q = np.take_along_axis(p, order, 1), np.take_along_axis(q, order, 1)
    d = p - q
    return p.cumsum(axis=1), q.cumsum(axis=1), d.cumsum(axis=1), np.abs(d).cumsum(axis=1)


def _event(p: Array, q: Array, level: float) -> npt.NDArray[np.bool_]:
    # Outputs whose ratio is e^epsilon up to rounding belong to the event.
    epsilon = min(float(epsilon_of_pairs(p, q, level)[0][0]), 1e6)
    return positive_event(p, q, max(0.0, epsilon - max(16 * TIE_RTOL * epsilon, 64 * ULP)))


def _screen(matrix: Array, level: float) -> tuple[Array, Array]:
    """Bounds on the epsilon of every pair, from Newton's method on the worst pair; few pairs can exceed its answer."""
    epsilon, k = 0.0, len(matrix)
    while True:
        low, high = screen(matrix, epsilon)
        np.fill_diagonal(high, 0.0)
        x, other = np.unravel_index(first_largest(low.ravel()), low.shape)
        next_epsilon = float(epsilon_of_pairs(matrix[[x]], matrix[[other]], level)[0][0])
        if not next_epsilon > epsilon or next_epsilon == np.inf:
            break
        epsilon = next_epsilon
    if next_epsilon == np.inf:
        bound = np.zeros((k, k))
        bound[x, other] = np.inf
        return bound, bound
    # If the delta of a pair at some epsilon is at most the level, this epsilon is large enough for the pair.
    slightly_larger_epsilon = epsilon * (1 + 1e-9) + 1e-15
    upper = np.where(
        high <= level,
        epsilon,
        np.where(screen(matrix, slightly_larger_epsilon)[1] <= level, slightly_larger_epsilon, np.inf),
    )
    is_tied = screen(matrix, epsilon * (1 - TIE_RTOL))[0] > level
    lower = np.where(is_tied, epsilon * (1 - TIE_RTOL), -np.inf)
    lower[x, other] = epsilon
    return lower, upper
