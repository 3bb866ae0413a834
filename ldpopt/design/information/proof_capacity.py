"""Bounds on mutual information without columns: for every prior under epsilon-LDP, and from the distance of two rows.

`PairwiseInformation` averages moments and excesses over pairs of answers. For an output y of probability m_y let s_x =
Q[x, y]/m_y, so that E s = 1 over the prior, and s_x <= 1/P_x. Then

    I(X; Y) = sum_y m_y E e(s),    e(s) = s log s - s + 1.

Let a constraint cap sum_y psi(Q[x, y], Q[x', y]) for every two inputs. Then its average over two independent answers is
at most (1 - sum P^2) cap, since the sum is 0 where the two answers are equal. For each output, that average is at least
the mean of a function of s alone:

    moments of order o > 1    E E' psi = E s^o E s^(1-o) - 1 >= E k_o(s),    k_o(s) = s^o + s^(1-o) - 1 - s,
    of order 1                E E' psi = E k_1(s),                           k_1(s) = (s - 1) log s,
    excesses beyond epsilon   E E' (s - R s')_+ >= E (s - R)_+  and  >= E (1 - R s)_+,    R = e^epsilon,

by Jensen's inequality. Both powers are convex and E s = 1, so neither mean is below 1, and u v >= u + v - 1 for
u, v >= 1. So with weights c, a, b >= 0, any slope and t_x such that

    e(s) <= sum c k(s) + sum a (s - R)_+ + sum b (1 - R s)_+ + slope (s - 1) + t_x    for 0 <= s <= 1/P_x,

I(X; Y) is at most (1 - sum P^2)(sum c cap + sum (a + b) cap) + sum P_x t_x. The t_x are computed here, on intervals
between knots. On each, e lies below its chord, and the right side without t_x above its tangents. Around 1, where e
less that side is concave, the difference also lies below its own tangent at 1. That part is always in outward-rounded
floats: exact arithmetic is rigorous, too, but no sharper.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ldpopt.design.constraints.base import (
    AlphabetConstraint,
    excess_cap,
    least_spread,
    moment_bound,
    plain_caps,
    tanh_of_half,
)  # fmt: skip
from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.kernel.listed import Caps
from ldpopt.design.kernel.numbers import Unproved, nonnegative_array, real_array, require
from ldpopt.design.utilities.base import ColumnUtility
from ldpopt.design.utilities.column import MutualInformation
from ldpopt.design.utilities.laws import law
from ldpopt.design.work import Work, count_numbers
from ldpopt.divergences import KL
from ldpopt.divergences.enclosed import enclosed_excess
from ldpopt.errors import InvalidInput
from ldpopt.numbers.enclosures import FLOAT, Arithmetic, Enclosure
from ldpopt.numbers.rounding import ULP
from ldpopt.values.distribution import Array


@dataclass(frozen=True, eq=False, repr=False)
class InformationCapacity(Certificate):
    """The capacity of epsilon-LDP channels, x - 1 - log x nats of mutual information, x = epsilon/(1 - e^-epsilon).

    Let the staircase pattern S_A be E = e^epsilon on A and 1 elsewhere. With a = P(A) and the mean m = 1 + (E - 1) a,
    its information is h(a) = E epsilon a - m log m. Let c be the largest h(a)/m. Then the row multipliers c P_x have
    the price c m >= h(a) on every pattern, and prove c for every prior P [KOV14, Thm 4]. The bound is nearly reached
    where there are sets of nearly any probability, as with many answers of small probability.

    With at most two outputs, let lo and hi be the smallest and the largest entry of the first column. Information is
    convex. So it does not fall when every entry moves to hi, on some set A, or to lo, off it. Nor does it fall when
    (lo, hi) then moves to a corner of the region that epsilon leaves. The corners are two constant channels and
    randomized response, with lo = 1/(E + 1) = 1 - hi. So randomized response about "is the answer in A?" is optimal.
    Its information depends on P(A) alone, and increases as P(A) approaches one half.

    Along a policy graph epsilon is that of the two answers farthest apart.
    """

    proves = ColumnUtility

    @property
    def argument(self) -> str:
        """The reason why the bound holds."""
        if self._two():
            return "with two outputs, randomized response about a set of probability nearest to one half keeps most"
        return "row multipliers in proportion to the prior pay for every staircase pattern"

    @property
    def tight(self) -> bool:
        """True if at most two outputs are allowed: then the bound is the optimum itself."""
        return self._two() and math.isfinite(plain_caps(self.constraints)[0])

    def work(self) -> Work:
        """Bound the work to enumerate sets of a few answers, or to examine many at once."""
        return Work.on(self.answers, 200.0) + Work.on(2.0 ** min(self.answers, MAX_ANSWERS_ENUMERATED), 20.0)

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """Compute x - 1 - log x = y - log(1 + y), y = x - 1."""
        require(self.utility.information, f"{self.utility.name} is no mutual information")
        epsilon = self._epsilon(arithmetic)
        bound = information_capacity(epsilon)
        if not self._two():
            return bound
        return bound.minimum(binary_information(epsilon, *nearest_half(np.asarray(self.utility.prior))[1:]))

    def _epsilon(self, arithmetic: Arithmetic) -> Enclosure:
        """Return epsilon between all inputs: that of the constraint, or of the two farthest in a policy graph."""
        if math.isinf(plain_caps(self.constraints)[0]):
            spread = least_spread(self.constraints, self.utility.labels, arithmetic)
            if spread is None:
                raise Unproved("no constraint asks for LocalDP between all inputs")
            return spread
        # t = 1/(e^epsilon - 1), so that epsilon = log(1 + 1/t).
        return (1 / Caps.from_constraints(self.constraints, arithmetic).level).log1p()

    def _two(self) -> bool:
        """Return True if the constraints leave at most two outputs."""
        with suppress(InvalidInput):
            alphabet_constraints = [c for c in self.constraints if isinstance(c, AlphabetConstraint)]
            return any(constraint.outputs(self.utility.size) <= 2 for constraint in alphabet_constraints)
        return False


def nearest_half(prior: Array) -> tuple[npt.NDArray[np.bool_], float, float]:
    """Find the set A (k,) whose probability is nearest to one half.

    Also returns |2 P(A) - 1|, and a bound on its rounding error. With more than `MAX_ANSWERS_ENUMERATED` answers that
    occur, the set is empty and the distance 0, which is a lower bound for every set.
    """
    support = np.flatnonzero(prior > 0)
    is_member = np.zeros(len(prior), dtype=bool)
    if len(support) > MAX_ANSWERS_ENUMERATED:
        return is_member, 0.0, 0.0
    sums = np.zeros(1)
    for probability in prior[support] / prior.sum():
        sums = np.concatenate([sums, sums + probability])
    distances = np.abs(2 * sums - 1)
    best = int(distances.argmin())
    is_member[support] = (best >> np.arange(len(support))) & 1 == 1
    # Each of the k sums, and each of the k + 1 roundings before them, may be off by half an ulp of one.
    return is_member, float(distances[best]), (2 * len(prior) + 8) * ULP


def binary_information(epsilon: Enclosure, distance: float, rounding: float) -> Enclosure:
    """Enclose the information of randomized response about a set A, in nats.

    distance : |2 P(A) - 1|, right up to `rounding`. The information is d(t) - d(t distance) for t = tanh(epsilon/2) and
    d(x) = ((1 + x) log(1 + x) + (1 - x) log(1 - x))/2.
    """
    t = tanh_of_half(epsilon)
    smallest = t * max(distance - rounding, 0.0)
    return _about_half(t) - _about_half(smallest)


def _about_half(x: Enclosure) -> Enclosure:
    """Enclose d(x) = x^2/2 + x^4/12 + x^6/30 + ..., which exceeds x^2/2 + x^4/12 by at most x^6/(30 (1 - x^2))."""
    arithmetic = x.arithmetic
    if float(x.upper) < MAX_SERIES_TANH:
        square = x.square()
        partial_sum = square / 2 + square.square() / 12
        return arithmetic.between(partial_sum.lower, (partial_sum + square.square() * square / 29).upper)
    if not float(x.upper) < 1 - 2.0**-40:
        # It grows up to log 2 at 1.
        at_least = _about_half(arithmetic.of(1 - 2.0**-39)).lower if float(x.lower) > 1 - 2.0**-39 else 0.0
        return arithmetic.between(at_least, arithmetic.of(2.0).log().upper)
    return ((1 + x) * x.log1p() + (1 - x) * (-x).log1p()) / 2


def information_capacity(epsilon: Enclosure) -> Enclosure:
    """Enclose the largest mutual information under epsilon-LDP, in nats."""
    arithmetic = epsilon.arithmetic
    if epsilon.upper < MAX_SERIES_EPSILON:
        # x = 1 + epsilon/2 + epsilon^2/12 - epsilon^4/720 + ..., and y - log(1 + y) alternates in y: both lie between
        # neighboring partial sums.
        high = epsilon / 2 + epsilon.square() / 12
        low = high - epsilon.square().square() / 720
        coefficients = [arithmetic.of(0.5) - y / 3 + y.square() / 4 for y in (low, high)]
        lower_bound = low.square() * (coefficients[0] - low * low.square() / 5)
        return arithmetic.between(lower_bound.lower, (high.square() * coefficients[1]).upper)
    y = epsilon / -(-epsilon).expm1() - 1
    return y - y.log1p()


MAX_ANSWERS_ENUMERATED = 20  # All sets of up to this many answers are enumerated.
MAX_SERIES_TANH = 1e-2  # Below this the terms of d cancel, and its series is used instead.
MAX_SERIES_EPSILON = 3e-3  # Below this epsilon the terms of the closed form cancel, and its expansion is used instead.
KNOTS_PER_STRETCH = 2048
"""Knots on each of the two outer stretches of [0, 1/P]. The two next to 1 have twice as many each."""
SMALLEST_KNOT, KNOT_GAP_AT_ONE, MAX_DENSE_KNOT = 2.0**-40, 2.0**-20, 8.0
"""The first knot above 0, the distance from 1 to the nearest knots, and the end of the dense knots above 1."""
KINK_RTOL = 2.0**-49  # Relative distance of knots to the points where excesses begin.
MAX_LOG_POWER = 600.0  # Powers with a larger logarithm are rejected, so that none overflows.


@dataclass(frozen=True, eq=False, repr=False)
class PairwiseInformation(Certificate):
    """Weights of moments and excesses between rows that bound mutual information, for any prior and number of inputs.

    Let s = Q[x, y]/P(Y = y). Then

        s log s - s + 1 <= sum c k(s) + sum a (s - R)_+ + sum b (1 - R s)_+ + slope (s - 1) + t_x.

    The constraints cap the averages of these moments and excesses (see the module).

    - `orders` : (n,) orders of the moments k, at least 1, each capped by some constraint.
    - `weights` : (n,) the c, non-negative.
    - `reaches` : (m,) the logarithms of R, at least 0.
    - `above`, `below` : (m,) the a and the b, non-negative.
    - `slope` : any number.
    """

    proves = MutualInformation
    orders: Array
    weights: Array
    reaches: Array
    above: Array
    below: Array
    slope: float
    argument = "what every two rows may differ by, averaged over the answers, pays for the information of each report"
    tight = False

    def work(self) -> Work:
        """Bound the work: each power is taken at every knot.

        Knots are a fixed number, and some for each answer and each reach.
        """
        knots = 8 * KNOTS_PER_STRETCH + self.answers + 4 * count_numbers(self.reaches)
        evaluation = Work.on(knots, 200.0 * (4 + count_numbers(self.orders) + count_numbers(self.reaches)), 4 * knots)
        return evaluation.in_floats + Work.on(count_numbers(self) + self.answers, 500.0)

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """Compute (1 - sum P^2) times the weighted caps, plus the residual of each answer."""
        support = np.asarray(self.utility.prior) > 0
        prior, float_prior = (
            law(np.asarray(self.utility.prior), number_type)[support] for number_type in (arithmetic, FLOAT)
        )
        # The residual is bounded in floats, which prove it as well.
        function, largest_ratio = self._price_function(FLOAT), np.asarray((1 / float_prior).upper)
        require((largest_ratio < math.inf).all(), "an answer of next to no probability tells without end")
        knots = function.knots(largest_ratio)
        unpaid = function.unpaid(knots)
        # On the intervals that begin below 1/P_x.
        interval = np.searchsorted(knots, largest_ratio, side="left") - 1
        residuals = arithmetic.of(np.maximum.accumulate(unpaid)[np.clip(interval, 0, len(unpaid) - 1)])
        return (prior * (1 - prior)).sum() * self._charged(arithmetic) + prior @ residuals

    def _price_function(self, arithmetic: Arithmetic) -> Paid:
        orders = real_array(self.orders, (-1,), "orders")
        reaches = nonnegative_array(self.reaches, (-1,), "reaches")
        require((reaches < MAX_LOG_POWER).all(), "an excess is beyond every ratio")
        require((orders >= 1).all(), "an order is below 1")
        return Paid(
            orders, nonnegative_array(self.weights, orders.shape, "weights"), reaches,
            nonnegative_array(self.above, reaches.shape, "weights above"),
            nonnegative_array(self.below, reaches.shape, "weights below"),
            float(real_array(self.slope, (), "the slope")), arithmetic,
        )  # fmt: skip

    def _charged(self, arithmetic: Arithmetic) -> Enclosure:
        """Compute sum c cap + sum (a + b) cap."""
        function, total = self._price_function(arithmetic), arithmetic.zeros(())
        for order, weight in zip(function.orders.tolist(), function.weights.tolist(), strict=True):
            cap = moment_bound(self.constraints, order, arithmetic)
            if cap is None:
                raise Unproved(f"no constraint caps a moment of order {order:g} between rows")
            total = total + cap * weight
        for reach, weight_above, weight_below in zip(
            *(x.tolist() for x in (function.reaches, function.above, function.below)), strict=True
        ):
            total = total + excess_cap(self.constraints, reach, arithmetic) * (
                arithmetic.of(weight_above) + weight_below
            )
        return total


@dataclass(frozen=True, eq=False)
class Paid:
    """The right side without t_x, as a function of s."""

    orders: Array
    weights: Array
    reaches: Array
    above: Array
    below: Array
    slope: float
    arithmetic: Arithmetic

    def knots(self, tops: Array) -> Array:
        """List 0, 1, `tops` and knots up to the largest of them and beyond.

        Raises `Unproved` where a power has no float.
        """
        largest_order, largest_ratio = float(self.orders.max(initial=1.0)), float(tops.max())
        if not largest_order * math.log(largest_ratio) < MAX_LOG_POWER:
            raise Unproved(f"powers of order {largest_order:g} are too large for answers of so little probability")
        smallest = max(SMALLEST_KNOT, math.exp(-MAX_LOG_POWER / (largest_order + 1)))
        largest_knot = max(MAX_DENSE_KNOT, largest_ratio)
        parts = [np.zeros(1), np.geomspace(smallest, 0.25, KNOTS_PER_STRETCH) if smallest < 0.25 else np.full(1, 0.25)]
        parts += [
            1 - np.geomspace(KNOT_GAP_AT_ONE, 0.75, 2 * KNOTS_PER_STRETCH),
            1 + np.geomspace(KNOT_GAP_AT_ONE, MAX_DENSE_KNOT - 1, 2 * KNOTS_PER_STRETCH),
        ]
        parts += [np.geomspace(MAX_DENSE_KNOT, largest_knot, KNOTS_PER_STRETCH)]
        kinks = np.exp(np.concatenate([self.reaches, -self.reaches])[:, None]) * (1 + np.array([-KINK_RTOL, KINK_RTOL]))
        end = max(2.0, float(np.nextafter(largest_knot, math.inf)))
        cuts = np.unique(np.concatenate([*parts, kinks.ravel(), tops, np.array([1.0, end])]))
        return np.asarray(cuts[cuts <= end])

    def unpaid(self, knots: Array) -> Array:
        """Bound e(s) less this function from above, (n - 1,), once per interval between knots."""
        arithmetic, ends = self.arithmetic, (knots[:-1], knots[1:])
        middle = (ends[0] + ends[1]) / 2
        # Powers may have no tangent at 0. Below the first knot above 0, moments and excesses are at least those there.
        middle[0] = knots[1]
        value, slope = self._evaluate(middle)
        slope = arithmetic.where(np.arange(len(middle)) > 0, slope, 0.0)
        chord = enclosed_excess(KL, arithmetic.of(knots) - 1.0, arithmetic.of(np.ones(len(knots))))
        end_values = (chord[:-1], chord[1:])
        bounds = np.full(len(middle), -math.inf)
        for end, end_value in zip(ends, end_values, strict=True):
            offset = arithmetic.of(end) - middle
            difference = end_value - value - slope * offset - (arithmetic.of(end) - 1.0) * self.slope
            bounds = np.maximum(bounds, np.asarray(difference.upper))
        is_concave = self._concave_about_one(knots)
        tangent_bound = np.maximum(*(np.asarray(((1.0 - arithmetic.of(end)) * self.slope).upper) for end in ends))
        return np.where(is_concave, np.minimum(bounds, tangent_bound), bounds)

    def _evaluate(self, s: Array) -> tuple[Enclosure, Enclosure]:
        """Compute the function at s, without the term of the slope, and a subgradient there."""
        arithmetic, point = self.arithmetic, self.arithmetic.of(s)
        log = point.log()
        value, slope = arithmetic.zeros(len(s)), arithmetic.zeros(len(s))
        for order, weight in zip(self.orders.tolist(), self.weights.tolist(), strict=True):
            if not weight > 0:
                continue
            if order == 1:
                value = value + (point - 1.0) * log * weight
                slope = slope + (log + 1.0 - 1 / point) * weight
                continue
            order_less_one = arithmetic.of(Fraction(order) - 1)  # Exact.
            power, inverse_power = (log * order).exp(), (log * -order_less_one).exp()
            value = value + (power + inverse_power - 1.0 - point) * weight
            slope = slope + (power / point * order - inverse_power / point * order_less_one - 1.0) * weight
        reach = arithmetic.of(self.reaches).exp()
        for ratio, weight_above, weight_below in zip(reach, self.above.tolist(), self.below.tolist(), strict=True):
            # An excess lies above both of its linear pieces, so either gives a lower bound.
            slope_above = (s > float(ratio.midpoint)).astype(np.float64) * weight_above
            slope_below = (s * float(ratio.midpoint) < 1).astype(np.float64) * weight_below
            value = value + (point - ratio) * slope_above + (1.0 - ratio * point) * slope_below
            slope = slope + arithmetic.of(slope_above) - ratio * slope_below
        return value, slope

    def _concave_about_one(self, knots: Array) -> Array:
        """Mark (n - 1,) the intervals in a row around 1 where e less the moments is surely concave (e'' = 1/s)."""
        arithmetic = self.arithmetic
        curvature = arithmetic.zeros(len(knots) - 1)
        low, high = np.maximum(knots[:-1], knots[1]), knots[1:]
        for order, weight in zip(self.orders.tolist(), self.weights.tolist(), strict=True):
            if not weight > 0:
                continue
            if order == 1:
                curvature = curvature + (1 / arithmetic.of(high) + 1 / arithmetic.of(high).square()) * weight
                continue
            ends = [arithmetic.of(end).log() for end in (low, high)]
            rising_powers = [(log * (arithmetic.of(Fraction(order) - 2))).exp() for log in ends]
            falling_power = (ends[1] * -(arithmetic.of(Fraction(order) + 1))).exp()
            factor = arithmetic.of(Fraction(order) * (Fraction(order) - 1)) * weight
            curvature = curvature + (rising_powers[0].minimum(rising_powers[1]) + falling_power) * factor
        with np.errstate(divide="ignore"):
            required_curvature = np.nextafter(1 / knots[:-1], math.inf)
        is_concave = np.asarray(curvature.lower) >= required_curvature
        middle = int(np.searchsorted(knots, 1.0))  # The interval that begins at 1.
        is_concave_after = np.logical_and.accumulate(is_concave[middle:])
        is_concave_before = np.logical_and.accumulate(is_concave[:middle][::-1])[::-1]
        return np.concatenate([is_concave_before, is_concave_after])
