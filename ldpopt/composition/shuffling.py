"""Central guarantees of a channel whose reports a shuffler sends on without senders: upper and lower bounds.

Two data sets that differ in one answer give histograms of n reports. For the upper bound each other report is, with
probability sum_y min_x Q[x, y], a draw that does not depend on the answer behind it. Otherwise it is shown with its
sender. This is the privacy blanket [BBGN]. Channels with two reports, and for many respondents most others
(`any_crowd`), are bounded more sharply. From below all others have the answer that hides least. Both are sums of n
independent scores.

*Two reports*, "no" and "yes". The others' number of yes is a sum of independent coins with shares between `low` and
`high`. For a fixed test delta is affine in each share, so that only coins at both ends matter: j at `low`, n - 1 - j at
`high`. It is convex in the shares of the person's two reports, so that these are `high` and `low`. And it falls with
every further coin. So all j in [a, b] have at most the delta of a coins at `low` and n - 1 - b at `high`, and the worst
cell of j is cut.

The bound by counts of two clones and of all other reports together [WangVR] is omitted. For 4-ary randomized response
it lies below the true value, by an error that an erratum of [FMT] describes
(docs/explanation/open-problems/shuffling.md).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from ldpopt.channel import Channel, ChannelLike, as_channel
from ldpopt.composition.any_crowd import AnyCrowd
from ldpopt.composition.crowd import MAX_EXPONENT, Crowd
from ldpopt.composition.laws import LatticeLaw
from ldpopt.numbers.rounding import ULP, up
from ldpopt.numbers.tolerances import SHUFFLED_GAP
from ldpopt.privacy.approximate_dp import approximate_dp, hockey_stick, mirrored
from ldpopt.privacy.guarantee import Guarantee, Witness
from ldpopt.privacy.local_dp import local_dp
from ldpopt.privacy.pairs import distinct_pairs, normalised
from ldpopt.values.distribution import Array, number, positive_integer, unit_interval
from ldpopt.values.results import Result

NOTION = "shuffled_dp"

MAX_RESPONDENTS = 10**8

_MAX_OTHER_ANSWERS = 128
"""Largest number of answers of the others that the lower bound tries, ..."""

_TRIED_DISTANCES = 4
"""... and number of different distances of two inputs for them, the largest ones."""

_TRIAL_RATIOS = 1.0001, 1.012, 1.03, 1.1
"""Trial ratios to the lower bound for the sharper bound for two reports."""


def shuffled(channel: ChannelLike, respondents: int) -> Shuffled:
    """Return the guarantee once the reports of all respondents are shuffled.

    It is (epsilon, delta)-DP for each respondent [BBGN]. Only the guarantee of the channel holds if the shuffler shows
    senders or order, or if fewer people take part.

    Parameters
    ----------
    channel : `Channel`, or a (k, m) array whose rows sum to 1. Every respondent's report is drawn from it,
        independently.
    respondents : The size of the population, fixed in advance, from 1 to 10^8; their answers may be any.

    Returns
    -------
    Shuffled
        The guarantees; `epsilon_at` and `delta_at` read them.

    Raises
    ------
    InvalidInput
        If the matrix is not a channel, or the number is out of range.

    Examples
    --------
    >>> from ldpopt.mechanisms import randomized_response
    >>> guarantee = shuffled(randomized_response(3, 1.0), 10_000).epsilon_at(1e-6)
    >>> print(round(guarantee.lower, 4), round(guarantee.value, 4), guarantee.notion)
    0.038 0.038 shuffled_dp
    """
    return Shuffled(as_channel(channel), positive_integer(respondents, "respondents", maximum=MAX_RESPONDENTS))


@dataclass(frozen=True, eq=False)
class Shuffled(Result):
    """Guarantees of `respondents` shuffled reports of one channel: delta at an epsilon, and epsilon at a delta."""

    channel: Channel
    respondents: int

    def _columns(self) -> dict[str, list[Any]]:
        deltas = [1e-9, 1e-6, 1e-3]
        guarantees = [self.epsilon_at(delta) for delta in deltas]
        return {"delta": deltas, "epsilon": [g.value for g in guarantees], "lower": [g.lower for g in guarantees]}

    def delta_at(self, epsilon: Any) -> Guarantee:
        """Return the delta at `epsilon`, in nats, of any sign.

        It is at most `value`, and for some answers of the others at least `lower`.
        """
        epsilon = number(epsilon, "epsilon")
        if epsilon < 0:
            opposite = self.delta_at(-epsilon)
            low, high = mirrored(opposite.lower, opposite.value, epsilon)
            return self._guarantee("epsilon", epsilon, high, low)
        local = hockey_stick(self.channel, epsilon)
        if self.respondents == 1 or epsilon > MAX_EXPONENT or local.value == 0:
            lower = local.lower if self.respondents == 1 else 0.0
            return self._guarantee("epsilon", epsilon, local.value, lower)
        value = min(local.value, self._blanket_delta(epsilon))
        if self._any_crowd is not None and value > 0:
            value = min(value, self._any_crowd.delta(epsilon, value))
        if self._shares is not None:
            value = min(value, shuffled_delta(*self._shares, self.respondents, epsilon))
        lower = max(
            (crowd.lower(epsilon) for crowd in self._hidden_least(lambda candidate: candidate.estimate(epsilon))),
            default=0.0,
        )
        return self._guarantee("epsilon", epsilon, value, lower)

    def epsilon_at(self, delta: Any) -> Guarantee:
        """Return the epsilon at `delta` in [0, 1], in nats."""
        # It is at most `value`, and above `lower` for some answers of the others.
        delta = unit_interval(delta, "delta")
        local = local_dp(self.channel) if delta == 0 else approximate_dp(self.channel, delta)
        if self.respondents == 1 or delta == 0 or local.value == 0:
            return self._guarantee("delta", delta, local.value, local.lower)
        top = min(local.value, MAX_EXPONENT)
        lower = 0.0
        least_hidden = self._hidden_least(lambda crowd: crowd.epsilon(delta, top))
        for crowd in least_hidden:
            lower = max(lower, _crossing(crowd, crowd.lower, delta, top)[0])
        value = self._blanket_epsilon(delta, top)
        if (bound := self._any_crowd) is not None and value > lower * (1 + 4 * SHUFFLED_GAP):
            value = min(
                value,
                _crossing(least_hidden[-1], lambda trial_epsilon: bound.delta(trial_epsilon, delta), delta, top)[1],
            )
        if self._shares is not None:
            for step in _TRIAL_RATIOS[self.respondents > 100 :]:
                trial_epsilon = max(lower * step, 1e-9 * top)
                if trial_epsilon >= value:
                    break
                if shuffled_delta(*self._shares, self.respondents, trial_epsilon, delta) <= delta:
                    value = trial_epsilon
        return self._guarantee("delta", delta, value if value < top else local.value, lower)

    def _guarantee(self, name: str, level: float, value: float, lower: float) -> Guarantee:
        parameters = {name: level, "respondents": self.respondents}
        return Guarantee(NOTION, value, min(lower, value), self._witness, False, "[BBGN]", parameters)

    @cached_property
    def _witness(self) -> Witness | None:
        """The pair of inputs that the blanket hides least."""
        i, j = self._pairs
        return Witness((self.channel.inputs[i[0]], self.channel.inputs[j[0]])) if len(i) else None

    @cached_property
    def _rows(self) -> Array:
        """The rows, divided by their sums, of reports that occur."""
        return normalised(self.channel.matrix[:, self.channel.matrix.max(axis=0) > 0])

    @cached_property
    def _blanket(self) -> Array:
        """The smallest probability of each report over the answers."""
        return np.asarray(self._rows.min(axis=0))

    @cached_property
    def _any_crowd(self) -> AnyCrowd | None:
        return AnyCrowd.from_rows(self._rows, self.respondents)

    @cached_property
    def _shares(self) -> tuple[float, float] | None:
        """The least and the largest probability of the second report if there are two."""
        if self._rows.shape[1] != 2:
            return None
        yes = self._rows[:, 1]
        return float(yes.min()) * (1 - 8 * ULP), min(1.0, float(yes.max()) * (1 + 8 * ULP))

    @cached_property
    def _pairs(self) -> tuple[Any, Any]:
        """The ordered pairs of different rows, one of each type, by how little the blanket hides them."""
        rows, blanket = self._rows, self._blanket
        k = len(rows)
        kinds = distinct_pairs(rows) if (blanket == blanket[0]).all() else None
        i, j = np.divmod(np.arange(k * k) if kinds is None else kinds, k)
        distance = _distances(rows, blanket)[i, j]
        differ = (rows[i] != rows[j]).any(axis=1) if len(i) * rows.shape[1] < 1 << 24 else i != j
        order = np.argsort(-distance[differ], kind="stable")
        return i[differ][order], j[differ][order]

    def _crowd(self, x: int, other: int, others: Array) -> Crowd:
        return Crowd.from_distributions(self._rows[x], self._rows[other], others, self.respondents)

    def _hidden_least(self, cost: Callable[[Crowd], float]) -> list[Crowd]:
        """The two crowds, all others with one answer, that are distinguished best by estimate."""
        rows, k = self._rows, len(self._rows)
        thirds = range(0, k, -(-k // _MAX_OTHER_ANSWERS))
        distances = np.array([_distances(rows, rows[third]) for third in thirds]).ravel()
        values, first = np.unique(np.round(distances / max(distances.max(), 1e-300), 9), return_index=True)
        crowds = set()
        for place in first[values > 0][-_TRIED_DISTANCES:]:
            third, pair = divmod(int(place), k * k)
            x, other = divmod(pair, k)
            crowds |= {self._crowd(a, b, rows[thirds[third]]) for a, b in ((x, other), (other, x))}
        return sorted(crowds, key=cost)[-2:]

    def _left(self, epsilon: float, limit: float) -> Iterator[Crowd]:
        """The crowds under the blanket whose delta at epsilon is not surely at most a limit."""
        i, j = self._pairs
        examined_crowds = set()
        for x, other in zip(i, j, strict=True):
            crowd = self._crowd(x, other, self._blanket)
            if crowd not in examined_crowds and not crowd.surely_at_most(epsilon, limit):
                yield crowd
            examined_crowds.add(crowd)

    def _blanket_delta(self, epsilon: float) -> float:
        i, j = self._pairs
        worst = self._crowd(i[0], j[0], self._blanket).upper(epsilon)
        for crowd in self._left(epsilon, worst):
            worst = max(worst, crowd.upper(epsilon))
        return worst

    def _blanket_epsilon(self, delta: float, top: float) -> float:
        i, j = self._pairs
        first = self._crowd(i[0], j[0], self._blanket)
        worst = _crossing(first, first.upper, delta, top)[1]
        for crowd in self._left(worst, delta):
            if crowd.upper(worst) > delta:
                worst = max(worst, _crossing(crowd, crowd.upper, delta, top)[1])
        return worst


def _distances(rows: Array, others: Array) -> Array:
    """The quantity sum (p - q)^2 / w of every pair of rows, (k, k), relevant for many others with distribution w."""
    from scipy.spatial.distance import cdist

    scaled_rows = rows / np.sqrt(np.maximum(others, 1e-100))
    return np.asarray(cdist(scaled_rows, scaled_rows, "sqeuclidean"))


def _crossing(crowd: Crowd, bound: Callable[[float], float], delta: float, top: float) -> tuple[float, float]:
    """The largest tried epsilon with a falling bound above delta, and the smallest with one not above, or top."""
    low, high, step, aim = 0.0, top, 1e-5, delta
    epsilon = crowd.epsilon(delta, top)
    for turn in range(24):
        value = bound(epsilon)
        if value > delta:
            low = epsilon
        else:
            high = epsilon
        if high - low <= SHUFFLED_GAP * high:
            break
        if turn < 2 and value > 0:  # the estimate errs by the same factor nearby
            aim = min(max(aim * delta / value, 1e-300), 0.9)
            if low < (epsilon := crowd.epsilon(aim, top)) < high:
                continue
        middle = math.sqrt(low) * math.sqrt(high)
        epsilon = high / (1 + step) if low == 0 else min(low * (1 + step), middle if high < top else top)
        step *= 8
    return low, high


_MAX_CELLS = 160
"""Largest number of bounded cells per call; the widest is then a sixtieth of the others or less."""

_ENDS = np.array([0, 1], dtype=np.int64)


def shuffled_delta(low: float, high: float, n: int, epsilon: float, goal: float = 0.0) -> float:
    """Bound delta at epsilon of n shuffled reports whose probabilities of yes lie in [low, high].

    goal : if delta is shown to be at most this, the search ends with a number that is not above it.
    """

    def cell(a: int, b: int) -> tuple[float, int, int]:
        bound_here = min(
            1.0, max(_one_way(low, high, a, n - 1 - b, epsilon), _one_way(1 - high, 1 - low, n - 1 - b, a, epsilon))
        )
        return -bound_here, a, b

    cells = [cell(0, n - 1)]
    for _ in range(_MAX_CELLS // 2):
        bound, a, b = cells[0]
        if -bound <= goal or a == b:
            break
        heapq.heappop(cells)
        middle = (a + b) // 2
        heapq.heappush(cells, cell(a, middle))
        heapq.heappush(cells, cell(middle + 1, b))
    return -cells[0][0]


@lru_cache(maxsize=4096)
def _one_way(low: float, high: float, low_count: int, high_count: int, epsilon: float) -> float:
    """The hockey stick of a report with share `high` from one with `low`, with coins of `low` and of `high`.

    Let f be the distribution of the coins, A = 1 - high - e^epsilon (1 - low) and B = high - e^epsilon low. The hockey
    stick is the sum over counts t of (A f(t) + B f(t - 1))_+. The law of independent coins is log-concave: terms are
    positive from some t on only.
    """
    growth = math.exp(epsilon)
    minus = growth * (1 - low) * (1 - 4 * ULP) - (1 - high) * (1 + 4 * ULP)
    plus = high * (1 + 4 * ULP) - growth * low * (1 - 4 * ULP)
    if plus <= 0:
        return 0.0
    if minus <= 0 or low_count + high_count == 0:
        return up(max(-minus, 0.0) + plus, 8)
    tilt = math.log(minus / plus)
    parts = tuple(
        (_ENDS, np.array([1 - share, share]), count) for share, count in ((low, low_count), (high, high_count)) if count
    )
    if tilt > MAX_EXPONENT:
        return up(plus, 8)
    window = LatticeLaw(1.0, parts, 0.0).window(tilt)
    masses = np.concatenate([[0.0], window.masses, [0.0]])
    error = window.error * (minus + plus * math.exp(tilt))
    # Term t of the tilted law is multiplied by e^(-tilt t); that of t - 1 has e^tilt more.
    terms = plus * math.exp(tilt) * masses[:-1] - minus * masses[1:] + error
    start = int(np.flatnonzero(terms < 0).max(initial=-1)) + 1
    counts = window.first + np.arange(start, len(terms))
    scale = math.exp(min(MAX_EXPONENT, window.cumulant - tilt * float(window.first + start)))
    decay = np.exp(-tilt * (counts - window.first - start))
    total = float(terms[start:] @ decay) + 1e-22 * (minus + plus * math.exp(tilt))
    return up(scale * total * (1 + 64 * (low_count + high_count) * ULP), 256) + 1e-300
