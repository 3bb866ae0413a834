"""Several populations and privacy constraints: the best decision rate, and the channel that attains it.

With M hypotheses the largest error falls like exp(-n C), where C is the smallest Chernoff information of two of them
[Chernoff]. For two distributions of a report let G(s) = 1 - sum_y M_i(y)^s M_j(y)^(1-s), a sum over the columns of the
channel. So C is the minimum over pairs of the maximum of -log(1 - G_ij(s)), 0 <= s <= 1. Each column's part h(s) is
concave in s, and for a fixed s convex and homogeneous in the column. So staircase columns suffice, and G is linear in
their weights.

*Branch and bound.* For the best channel let s* be the orders that maximize its G_ij. In a box of orders that
holds s*, with ends a, b for a pair, G'(a) >= 0 >= G'(b). By concavity the largest value is at most G(a) + (b - a) G'(a)
and at most G(b) - (b - a) G'(b). Both are linear in the weights, so a linear program bounds the smallest G of the best
channel, with an error of second order in the widths. Boxes are cut where the error is largest. The orders that can be
s* lie between the maximizers of the single columns, all near 1/2.

*Proof.* The dual variables of the program prove its bound. Any numbers do, rounded outward and raised until every
column's reduced cost is nonnegative.

*Beyond `LISTED_INPUTS` answers* the columns are not listed. Choosing between channels by a public coin averages H =
G(1/2). So the best minimum of H is the value of a game of weights on the pairs against channels; each reply is an
optimum of a weighted sum. No report is more than e^epsilon times likelier under one hypothesis than under another. For
such distributions G(s) <= kappa H for every s. Let f_s(t) = s t + 1 - s - t^s, which is 0 and flat at t = 1. The
quotient of the second derivatives of f_s and f_(1/2) is 4 s (1 - s) t^(s - 1/2), monotone in t, and so is f_s/f_(1/2).
At t = e^epsilon it is largest, because f_s is concave in s, where t^s log t = t - 1. So C <= -log(1 - kappa H).
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from ldpopt.bounds.comparison import limits_of
from ldpopt.channel import Channel
from ldpopt.design import Constraint, Divergence, WeightedSum, optimal_channel
from ldpopt.design.solve import solve_linear
from ldpopt.divergences.enclosed import enclosed_excess
from ldpopt.divergences.named import alpha as alpha_divergence
from ldpopt.errors import Phrase, invalid
from ldpopt.numbers.enclosures import FLOAT, Enclosure
from ldpopt.numbers.rounding import toward_privacy
from ldpopt.privacy import Guarantee, local_dp, total_variation
from ldpopt.values.deadline import Deadline, watched
from ldpopt.values.distribution import Array, number
from ldpopt.values.labels import vectors
from ldpopt.values.results import Result

LISTED_INPUTS = 10
"""Largest number of answers whose staircase columns are all listed."""

_MAX_BOXES = 2000
_MAX_GAME_ROUNDS = 60
_MAX_POLISHING_STEPS = 12
_ORDER_MARGIN = 1e-4
"""Widening of the range of orders, so that slopes at its ends exceed rounding; it costs 1e-7 at most."""


@dataclass(frozen=True, eq=False)
class SeveralExponent(Result):
    """The rate of distinguishing all hypotheses with the best channel, in nats per respondent.

    - `lower`, `upper` : bounds on the best rate of a channel, chosen with or without a public coin.
    - `channel` : a channel that reaches `lower`.
    - `guarantees` : its measured epsilon and eta.
    """

    lower: float
    upper: float
    channel: Channel
    guarantees: tuple[Guarantee, ...]


def chernoff_of_several(
    hypotheses: Any,
    epsilon: float,
    eta: float | None = None,
    *,
    tolerance: float = 1e-4,
    time_limit: float | None = None,
) -> SeveralExponent:
    """Bound the best Chernoff exponent of a decision between several populations [Chernoff].

    The exponent is that of the two hypotheses that are hardest to distinguish. Up to 10 answers it is enclosed to the
    tolerance, by branch and bound over the orders of the pairs: three or four hypotheses take less than a second.
    Beyond, the two bounds differ by a factor of about kappa: 1.007, 1.03, 1.06 at epsilon = 1, 2, 3. Every respondent
    uses one channel, fixed in advance.

    Parameters
    ----------
    hypotheses : Array (M, k), M >= 2 distributions of the answer.
    epsilon : In nats.
    eta : Cap on the total variation, in [0, 1]; None for no cap.
    tolerance : Of upper over lower, relative.
    time_limit : In seconds; the bounds reached by then are returned.

    Returns
    -------
    SeveralExponent
        Lower and upper bounds on the exponent, in nats for each respondent.

    Raises
    ------
    InvalidInput
        If a value is out of range.

    Examples
    --------
    >>> exponent = chernoff_of_several([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]], 1.0)
    >>> round(exponent.lower, 5), round(exponent.upper, 5)
    (0.04557, 0.04557)
    """
    laws = vectors(hypotheses)
    if len(laws) < 2:
        raise invalid("hypotheses", "at least two distributions", Phrase(f"{len(laws)}"))
    relative_tolerance = number(tolerance, "tolerance")
    if not 0 < relative_tolerance < 1:
        raise invalid("tolerance", "a number between 0 and 1", tolerance)
    limits = limits_of(epsilon, eta)
    divergences = [Divergence(_HELLINGER, p, q) for p, q in itertools.combinations(laws, 2)]
    with watched(time_limit, False) as deadline:
        if divergences[0].size <= LISTED_INPUTS:
            channel, largest_affinity_gap = _by_boxes(divergences, limits, relative_tolerance, deadline)
        else:
            channel, largest_affinity_gap = _by_averages(divergences, limits, relative_tolerance, deadline)
    lower = min(_information(divergence, channel) for divergence in divergences)
    upper = -math.log1p(-largest_affinity_gap) * (1 + 1e-15) if largest_affinity_gap < 1 else math.inf
    return SeveralExponent(lower, max(lower, upper), channel, (local_dp(channel), total_variation(channel)))


_HELLINGER = alpha_divergence(0.5)
"""4 H, as a divergence."""


# --- Branch and bound over the orders ---------------------------------------------------------------------------------


class _Columns:
    """All staircase columns, share + 1 on a set A, share = 1/(e^epsilon - 1), and their value for each pair."""

    def __init__(self, divergences: Sequence[Divergence], epsilon: float, eta: float) -> None:
        k = divergences[0].size
        self.sets = np.array(list(itertools.product((0.0, 1.0), repeat=k)))[1:-1]
        self.share, self.eta = 1 / FLOAT.of(epsilon).expm1(), eta
        self.masses = []
        for divergence in divergences:
            laws = divergence.laws(FLOAT)
            difference, p1, p0 = (FLOAT.of(self.sets) @ law for law in (laws.difference, laws.p1, laws.p0))
            self.masses.append((difference, p1 + self.share, p0 + self.share))
        self._mass = np.array([np.asarray(b.midpoint) for _, b, _ in self.masses])
        self._logs = np.array([np.asarray((d / b).log1p().midpoint) for d, b, _ in self.masses])
        first, second = np.array(list(itertools.permutations(range(k), 2))).T
        self.separations = self.sets[:, first] * (
            1 - self.sets[:, second]
        )  # (columns, pairs of inputs): the coefficients of a cap
        self._worth: dict[tuple[int, float], tuple[Enclosure, Enclosure]] = {}

    def worth(self, pair: int, s: float) -> tuple[Enclosure, Enclosure]:
        """Compute h(s) and h'(s) of every column."""
        # h = s a + (1 - s) b - a^s b^(1-s), and h' = a - b - a^s b^(1-s) log(a/b).
        if (pair, s) not in self._worth:
            d, b, a = self.masses[pair]
            column_values = enclosed_excess(alpha_divergence(s), d, b, a) * FLOAT.of(s) * (1 - FLOAT.of(s))
            log_ratio = (d / b).log1p()
            # With u = d/b and x = log(1 + u): u - x (1 + u)^s = (u - x) - x (e^(s x) - 1).
            self._worth[pair, s] = (
                column_values.positive(),
                b * ((d / b - log_ratio) - log_ratio * (log_ratio * s).expm1()),
            )
        return self._worth[pair, s]

    def reached(self, weights: Array) -> tuple[Array, Array]:
        """Compute the largest G of each pair for these weights, in floats, and the orders there."""
        low, high = np.zeros(len(self.masses)), np.ones(len(self.masses))
        log_ratios, mass, ratio_minus_one = self._logs, self._mass, np.expm1(self._logs)
        for _ in range(50):
            s = (low + high) / 2
            is_rising = (
                (mass * ((ratio_minus_one - log_ratios) - log_ratios * np.expm1(log_ratios * s[:, None]))) @ weights
            ) > 0
            low, high = np.where(is_rising, s, low), np.where(is_rising, high, s)
        s = (low + high) / 2
        return (mass * (s[:, None] * ratio_minus_one - np.expm1(log_ratios * s[:, None]))) @ weights, s

    def range(self, pair: int) -> tuple[float, float]:
        """Bound the orders with the largest G, for every channel.

        All columns rise before the first order and fall after the last. With x = log(a/b) a column is largest at
        K(x)/x. Here K(x) = log((e^x - 1)/x) is the cumulant function of a uniform variable on [0, 1]. It is convex and
        0 at 0, so K(x)/x rises with x.
        """
        d, b, _ = self.masses[pair]
        x = (d / b).log1p()
        extreme_log_ratios = float(np.asarray(x.lower).min()), float(np.asarray(x.upper).max())
        low, high = (0.5 + t / 24 if abs(t) < 1e-3 else math.log(math.expm1(t) / t) / t for t in extreme_log_ratios)
        return max(low - _ORDER_MARGIN, 0.0), min(high + _ORDER_MARGIN, 1.0)


@dataclass(frozen=True)
class _Solved:
    """The program of a box. bound : no channel whose s* is in the box has a larger least G. weights : of the columns,
    as the solver says.
    """

    bound: float
    weights: Array


def _solve_box(columns: _Columns, box: Sequence[tuple[float, float]], wherever: bool = False) -> _Solved:
    """Solve and prove the linear program of a box. wherever : omit the condition that the orders lie in it."""
    n, pairs, k = len(columns.sets), len(box), columns.sets.shape[1]
    bounds, slopes = list[Enclosure](), list[Enclosure]()
    for pair, (low, high) in enumerate(box):
        (low_value, low_slope), (high_value, high_slope) = columns.worth(pair, low), columns.worth(pair, high)
        width = FLOAT.of(high) - low
        bounds += [low_value + width * low_slope, high_value - width * high_slope]
        slopes += [low_slope, -high_slope]
    end_bounds = FLOAT.concatenate([bound_row[None] for bound_row in bounds])
    end_slopes = FLOAT.concatenate([bound_row[None] for bound_row in slopes])
    # Variables: the mass of the columns with entries scaled to at most 1, erasure, v. One row, and the differences of
    # the others from it.
    unit = float(columns.share.midpoint) + 1
    # In the unit of the pair that is worth least; rows of pairs that are worth far more are scaled down.
    largest_bounds = np.abs(np.asarray(end_bounds.midpoint)).max(axis=1)
    scale = max(float(largest_bounds.reshape(pairs, 2).max(axis=1).min()) / unit, 1e-300)
    scale_floor = np.maximum(largest_bounds / unit / scale, 1.0)
    largest_slopes = np.maximum(np.abs(np.asarray(end_slopes.midpoint)).max(axis=1), 1e-300)
    scaled_bounds = np.asarray(end_bounds.midpoint) / unit / scale / scale_floor[:, None]
    scaled_slopes = np.asarray(end_slopes.midpoint) / largest_slopes[:, None]
    # Limits: v below every bound, slopes of the right sign, the cap.
    inequality_rows = [np.hstack([-scaled_bounds, np.zeros((2 * pairs, 1)), 1 / scale_floor[:, None]])]
    inequality_rows += [] if wherever else [np.hstack([-scaled_slopes, np.zeros((2 * pairs, 2))])]
    has_cap = columns.eta < 1
    inequality_rows += (
        [np.hstack([columns.separations.T, np.zeros((columns.separations.shape[1], 2))])] if has_cap else []
    )
    limit_bounds = np.concatenate([np.zeros(len(block)) for block in inequality_rows])
    if has_cap:
        limit_bounds[-len(inequality_rows[-1]) :] = columns.eta * unit
    rows = np.zeros((k, n + 2))
    rows[0, :n] = (columns.sets[:, 0] + (unit - 1)) / unit
    rows[0, n] = 1.0
    rows[1:, :n] = (columns.sets[:, 1:] - columns.sets[:, :1]).T
    objective, row_sums = np.append(np.zeros(n + 1), 1.0), np.append(1.0, np.zeros(k - 1))
    weights, _, prices, inequality_prices = solve_linear(
        objective, rows, row_sums, np.vstack(inequality_rows), limit_bounds, "the exponent of several"
    )
    inequality_prices = np.maximum(inequality_prices, 0.0)
    mix, inequality_prices = inequality_prices[: 2 * pairs] / scale_floor, inequality_prices[2 * pairs :]
    signs, caps = (
        (np.zeros(0), inequality_prices)
        if wherever
        else (inequality_prices[: 2 * pairs] * (scale * unit / largest_slopes), inequality_prices[2 * pairs :])
    )
    shifts = np.append(prices[0], prices[1:] * unit) * scale
    bound = _proved(columns, end_bounds, end_slopes, mix, signs, shifts, caps * (unit * scale))
    return _Solved(bound, np.maximum(weights[:n], 0.0) / unit)


def _proved(
    columns: _Columns,
    end_bounds: Enclosure,
    end_slopes: Enclosure,
    mix: Array,
    signs: Array,
    prices: Array,
    caps: Array,
) -> float:
    """The bound that any dual variables prove, rounded up.

    - `mix` : the weights of the bounds, nonnegative.
    - `signs` : the weights of the slopes, nonnegative.
    - `caps` : the prices of the caps on total variation, nonnegative.
    - `prices` : of the first row, and of the differences of the others from it. The largest negative reduced cost is
      added to the prices of all rows.
    """
    if not mix.sum() > 0:
        return math.inf
    column_values = FLOAT.of(mix) @ end_bounds
    if signs.size:
        column_values = column_values + FLOAT.of(signs) @ end_slopes
    column_values = column_values / FLOAT.of(mix).sum()
    total = FLOAT.of(prices[0])
    price = (columns.share + columns.sets[:, 0]) * total
    price = price + (columns.sets[:, 1:] - columns.sets[:, :1]) @ FLOAT.of(prices[1:])
    if caps.size:
        price, total = price + columns.separations @ FLOAT.of(caps), total + FLOAT.of(caps).sum() * columns.eta
    k = columns.sets.shape[1]
    deficits = (column_values - price) / (columns.share * k + columns.sets.sum(axis=1))
    erasure_deficit = -FLOAT.of(prices[0]) / k  # erasure is worth nothing
    shortfall = deficits.max().maximum(erasure_deficit).positive()
    bound = float((total + shortfall * k).upper)
    return bound if bound >= 0 else math.inf


Box = tuple[tuple[float, float], ...]


def _by_boxes(
    divergences: Sequence[Divergence], limits: Sequence[Constraint], relative_tolerance: float, deadline: Deadline
) -> tuple[Channel, float]:
    """A channel, and an upper bound on the smallest G of every channel."""
    epsilon = float(limits[0].bound)
    eta = float(limits[1].bound) if len(limits) > 1 else 1.0
    columns, pairs = _Columns(divergences, epsilon, eta), range(len(divergences))
    half_solution = _solve_box(columns, ((0.5, 0.5),) * len(divergences), wherever=True)
    upper_limit = upper = half_solution.bound * _kappa(epsilon) * (1 + 1e-15)
    best_weights, best_value = _polished(columns, half_solution.weights)
    boxes: list[tuple[float, int, Box]] = [(-math.inf, 0, tuple(columns.range(pair) for pair in pairs))]
    closed_bound, counter = 0.0, itertools.count(1)
    for _ in deadline.rounds(range(_MAX_BOXES)):
        _, _, box = heapq.heappop(boxes)
        solution = _solve_box(columns, box)
        if float(columns.reached(solution.weights)[0].min()) > best_value:
            best_weights, best_value = _polished(columns, solution.weights)
        if solution.bound <= best_value * (1 + relative_tolerance / 2):
            closed_bound = max(closed_bound, solution.bound)
        else:
            for half_box in _halves(columns, box, solution):
                heapq.heappush(boxes, (-solution.bound, next(counter), half_box))
        upper = min(upper_limit, max(closed_bound, -boxes[0][0] if boxes else 0.0))
        if not boxes or upper <= best_value * (1 + relative_tolerance / 2):
            break
    return _as_channel(columns, best_weights, epsilon, eta), upper


def _polished(columns: _Columns, weights: Array) -> tuple[Array, float]:
    """Weights of the columns, and their least G, improved while that helps: the best ones for the orders reached."""
    affinity_gaps, orders = columns.reached(weights)
    value = float(affinity_gaps.min())
    for _ in range(_MAX_POLISHING_STEPS):
        next_weights = _solve_box(columns, tuple((s, s) for s in orders.tolist()), wherever=True).weights
        affinity_gaps, orders = columns.reached(next_weights)
        if not float(affinity_gaps.min()) > value * (1 + 1e-9):
            break
        weights, value = next_weights, float(affinity_gaps.min())
    return weights, value


def _halves(columns: _Columns, box: Box, solution: _Solved) -> tuple[Box, Box]:
    """The box cut in two across the pair with the loosest bound, at the order that its weights reach."""
    affinity_gaps, orders = columns.reached(solution.weights)
    gaps = []
    for pair, (low, high) in enumerate(box):
        (low_value, low_slope), (high_value, high_slope) = columns.worth(pair, low), columns.worth(pair, high)
        end_tangents = ((low_value, low_slope, high - low), (high_value, high_slope, low - high))
        bounds = [float(solution.weights @ np.asarray((h + w * slope).midpoint)) for h, slope, w in end_tangents]
        gaps.append(min(*bounds, solution.bound) - float(affinity_gaps[pair]) if high > low else -math.inf)
    pair = int(np.argmax(gaps))
    low, high = box[pair]
    cut_order = min(max(float(orders[pair]), low + 0.2 * (high - low)), high - 0.2 * (high - low))
    return (*box[:pair], (low, cut_order), *box[pair + 1 :]), (*box[:pair], (cut_order, high), *box[pair + 1 :])


def _as_channel(columns: _Columns, weights: Array, epsilon: float, eta: float) -> Channel:
    """The channel of the columns with these weights, erased as little as makes it private after rounding."""
    is_used = weights > 1e-12 * float(weights.max())
    sets, share = columns.sets[is_used], 1 / math.expm1(toward_privacy(epsilon))
    matrix = (sets + share).T * weights[is_used]
    matrix /= max(float(matrix.sum(axis=1).max()), 1.0)
    erasure = 1e-9
    while True:
        erased_matrix = matrix * (1 - erasure)
        channel = Channel(np.hstack([erased_matrix, 1 - erased_matrix.sum(axis=1, keepdims=True)]))
        if local_dp(channel).value <= epsilon and total_variation(channel).value <= eta:
            return channel
        if erasure >= 1:
            return Channel(np.ones((sets.shape[1], 1)))
        erasure = min(4 * erasure, 1.0)


# --- Averages of channels, by a game ----------------------------------------------------------------------------------


def _by_averages(
    divergences: Sequence[Divergence], limits: Sequence[Constraint], relative_tolerance: float, deadline: Deadline
) -> tuple[Channel, float]:
    """A channel, and kappa times the value of the game of H, an upper bound on the smallest G of every channel."""
    weights, upper, channels, values = np.full(len(divergences), 1 / len(divergences)), math.inf, [], []
    for _ in deadline.rounds(range(_MAX_GAME_ROUNDS)):
        design = optimal_channel(WeightedSum(weights.tolist(), divergences), limits)
        upper = min(upper, design.upper_bound)
        channels.append(design.channel)
        values.append([divergence.value(design.channel) for divergence in divergences])
        table = np.array(values)
        coin_probabilities, weights = _mixed(table), _mixed(-table.T)
        if upper <= float((coin_probabilities @ table).min()) * (1 + relative_tolerance):
            break
    return _by_coin(channels, coin_probabilities), min(1.0, _kappa(float(limits[0].bound)) * upper / 4) * (1 + 1e-13)


def _kappa(epsilon: float) -> float:
    """The largest quotient f_s(t)/f_(1/2)(t) for 1 <= t <= e^epsilon and all s, rounded up; 1 at epsilon = 0."""
    if epsilon < 1e-3:  # 1 + epsilon^2/144 + ...
        return 1 + epsilon**2 / 100
    t = math.exp(min(epsilon, 600.0))
    s = math.log((t - 1) / epsilon) / epsilon
    return (s * t + 1 - s - t**s) / (0.5 * (math.sqrt(t) - 1) ** 2) * (1 + 1e-8) if epsilon <= 600 else 2.0


def _mixed(gains: Array) -> Array:
    """The best mixed strategy of the rows, who maximize, against the worst column of a game."""
    n, column_count = gains.shape
    bounds = np.hstack([-gains.T / max(float(np.abs(gains).max()), 1e-300), np.ones((column_count, 1))])
    objective, sum_row = np.append(np.zeros(n), 1.0), np.append(np.ones(n), 0.0)[None]
    weights, *_ = solve_linear(objective, sum_row, np.ones(1), bounds, np.zeros(column_count), "the game of hypotheses")
    shares = np.maximum(weights[:n], 0.0)
    return np.asarray(shares / shares.sum())


def _by_coin(channels: list[Channel], coin_probabilities: Array) -> Channel:
    """The channel that announces which channel a coin chose, and its report."""
    coin_sides = [
        (number, probability) for number, probability in enumerate(coin_probabilities.tolist()) if probability > 1e-12
    ]
    total = math.fsum(probability for _, probability in coin_sides)
    matrix = np.hstack([channels[number].matrix * (probability / total) for number, probability in coin_sides])
    outputs = tuple((turn, y) for turn, (number, _) in enumerate(coin_sides) for y in channels[number].outputs)
    return Channel(matrix, channels[0].inputs, outputs)


def _information(divergence: Divergence, channel: Channel) -> float:
    """The Chernoff information that a channel leaves of two hypotheses, from below: any order s gives a bound."""

    def rate(s: float) -> float:
        enclosed_divergence = Divergence(alpha_divergence(s), divergence.p0, divergence.p1).enclosed_value(
            channel, FLOAT
        ) * FLOAT.of(s)
        affinity_gap = float(np.asarray((enclosed_divergence * (1 - FLOAT.of(s))).lower))
        return -math.log1p(-affinity_gap) if 0 < affinity_gap < 1 else (0.0 if affinity_gap <= 0 else math.inf)

    minimization = minimize_scalar(
        lambda s: -rate(float(s)), bounds=(0.02, 0.98), method="bounded", options={"xatol": 1e-5}
    )
    return max(rate(float(minimization.x)), rate(0.5)) * (1 - 1e-15)
