"""Bounds on mutual information without columns: of every prior under epsilon-LDP, and from how far two rows may differ.

`PairwiseInformation` averages moments and excesses over pairs of answers. For an output y of probability m_y let s_x =
Q[x, y]/m_y, so that E s = 1 over the prior, and s_x <= 1/P_x. Then

    I(X; Y) = sum_y m_y E e(s),    e(s) = s log s - s + 1.

Let a constraint cap sum_y psi(Q[x, y], Q[x', y]) for every two inputs. Then its average over two independent answers is
at most (1 - sum P^2) cap, since the sum is 0 where the two answers are equal. For each output, that average is at least
the mean of a function of s alone:

    moments of order o > 1    E E' psi = E s^o E s^(1-o) - 1 >= E k_o(s),    k_o(s) = s^o + s^(1-o) - 1 - s,
    of order 1                E E' psi = E k_1(s),                           k_1(s) = (s - 1) log s,
    excesses beyond epsilon   E E' (s - R s')_+ >= E (s - R)_+  and  >= E (1 - R s)_+,    R = e^epsilon,

by Jensen's inequality: both powers are convex and E s = 1, so that neither mean is below 1, and u v >= u + v - 1 for
u, v >= 1. So with weights c, a, b >= 0, any slope and t_x such that

    e(s) <= sum c k(s) + sum a (s - R)_+ + sum b (1 - R s)_+ + slope (s - 1) + t_x    for 0 <= s <= 1/P_x,

I(X; Y) is at most (1 - sum P^2)(sum c cap + sum (a + b) cap) + sum P_x t_x. The t_x are found here, on intervals
between knots. On each, e lies below its chord, and the right side without t_x above its tangents. Around 1, where e
less that side is concave, the difference also lies below its own tangent at 1. That part is always in floats,
rounded outward: exact arithmetic is rigorous, too, but no sharper.
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
    """No epsilon-LDP channel keeps more mutual information than x - 1 - log x, x = epsilon/(1 - e^-epsilon).

    On a staircase pattern S_A, E = e^epsilon on A and 1 elsewhere, the information is h(a) = E epsilon a - m log m at
    a = P(A), with m = 1 + (E - 1) a the column's mean. Let c be the largest h(a)/m. Then the row multipliers c P_x
    pay c m >= h(a) on every pattern, and prove c for every prior P [KOV14, Thm 4]. The bound is nearly reached where
    there are sets of nearly any probability, as with many answers of small probability.

    With at most two outputs, let lo and hi be the least and the largest entry of the first column. Information is
    convex, so that it does not fall when every entry is moved to hi, on some set A, or to lo, off it, and then (lo, hi)
    to a corner of the region that epsilon leaves. The corners are two constant channels and randomized response, with
    lo = 1/(E + 1) = 1 - hi. So randomized response about "is the answer in A?" is optimal. Its information depends on
    P(A) alone, and is the larger the nearer P(A) is to one half.

    Along a policy graph epsilon is that of the two answers farthest apart.
    """

    proves = ColumnUtility

    @property
    def argument(self) -> str:
        """Why the bound holds."""
        if self._two():
            return "with two outputs, randomized response about a set of probability nearest to one half keeps most"
        return "row multipliers in proportion to the prior pay for every staircase pattern"

    @property
    def tight(self) -> bool:
        """Whether at most two outputs are allowed: then the bound is the optimum itself."""
        return self._two() and math.isfinite(plain_caps(self.constraints)[0])

    def work(self) -> Work:
        """All sets of a few answers are listed, and the others are looked at together."""
        return Work.on(self.answers, 200.0) + Work.on(2.0 ** min(self.answers, LISTED), 20.0)

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """x - 1 - log x = y - log(1 + y), y = x - 1."""
        require(self.utility.information, f"{self.utility.name} is no mutual information")
        epsilon = self._epsilon(arithmetic)
        bound = information_capacity(epsilon)
        if not self._two():
            return bound
        return bound.minimum(binary_information(epsilon, *nearest_half(np.asarray(self.utility.prior))[1:]))

    def _epsilon(self, arithmetic: Arithmetic) -> Enclosure:
        """That between all inputs: the one asked for, or what a policy graph leaves to the two farthest apart."""
        if math.isinf(plain_caps(self.constraints)[0]):
            spread = least_spread(self.constraints, self.utility.labels, arithmetic)
            if spread is None:
                raise Unproved("no constraint asks for LocalDP between all inputs")
            return spread
        # t = 1/(e^epsilon - 1), so that epsilon = log(1 + 1/t).
        return (1 / Caps.of(self.constraints, arithmetic).level).log1p()

    def _two(self) -> bool:
        """Whether the constraints leave at most two outputs."""
        with suppress(InvalidInput):
            fixed = [c for c in self.constraints if isinstance(c, AlphabetConstraint)]
            return any(constraint.outputs(self.utility.size) <= 2 for constraint in fixed)
        return False


def nearest_half(prior: Array) -> tuple[npt.NDArray[np.bool_], float, float]:
    """The set A (k,) whose probability is nearest to one half, |2 P(A) - 1|, and how far rounding may move that. With
    more than `LISTED` answers that occur, the empty set and 0, which is a lower bound for every set.
    """
    used = np.flatnonzero(prior > 0)
    chosen = np.zeros(len(prior), dtype=bool)
    if len(used) > LISTED:
        return chosen, 0.0, 0.0
    sums = np.zeros(1)
    for share in prior[used] / prior.sum():
        sums = np.concatenate([sums, sums + share])
    off = np.abs(2 * sums - 1)
    best = int(off.argmin())
    chosen[used] = (best >> np.arange(len(used))) & 1 == 1
    # Each of the k sums, and each of the k + 1 roundings before them, may be off by half an ulp of one.
    return chosen, float(off[best]), (2 * len(prior) + 8) * ULP


def binary_information(epsilon: Enclosure, off: float, rounding: float) -> Enclosure:
    """The information of randomized response about a set A, in nats; off : |2 P(A) - 1|, right up to `rounding`. It is
    d(t) - d(t off) for t = tanh(epsilon/2) and d(x) = ((1 + x) log(1 + x) + (1 - x) log(1 - x))/2.
    """
    t = tanh_of_half(epsilon)
    least = t * max(off - rounding, 0.0)
    return _about_half(t) - _about_half(least)


def _about_half(x: Enclosure) -> Enclosure:
    """d(x) = x^2/2 + x^4/12 + x^6/30 + ..., of which x^2/2 + x^4/12 is less by at most x^6/(30 (1 - x^2))."""
    of = x.arithmetic
    if float(x.upper) < SERIES_TANH:
        square = x.square()
        low = square / 2 + square.square() / 12
        return of.between(low.lower, (low + square.square() * square / 29).upper)
    if not float(x.upper) < 1 - 2.0**-40:
        # It grows up to log 2 at 1.
        return of.between(_about_half(of.of(1 - 2.0**-39)).lower if float(x.lower) > 1 - 2.0**-39 else 0.0,
                          of.of(2.0).log().upper)  # fmt: skip
    return ((1 + x) * x.log1p() + (1 - x) * (-x).log1p()) / 2


def information_capacity(epsilon: Enclosure) -> Enclosure:
    """The most nats of mutual information that epsilon-LDP leaves, enclosed."""
    of = epsilon.arithmetic
    if epsilon.upper < SMALL:
        # x = 1 + epsilon/2 + epsilon^2/12 - epsilon^4/720 + ..., and y - log(1 + y) alternates in y: both lie between
        # neighbouring partial sums.
        high = epsilon / 2 + epsilon.square() / 12
        low = high - epsilon.square().square() / 720
        first = [of.of(0.5) - y / 3 + y.square() / 4 for y in (low, high)]
        at_least = low.square() * (first[0] - low * low.square() / 5)
        return of.between(at_least.lower, (high.square() * first[1]).upper)
    y = epsilon / -(-epsilon).expm1() - 1
    return y - y.log1p()


LISTED = 20  # All sets of up to this many answers are listed.
SERIES_TANH = 1e-2  # Below this the terms of d cancel, and its expansion is used instead.
SMALL = 3e-3  # Below this epsilon the terms of the closed form cancel, and its expansion is used instead.
PIECES = 2048
"""How many knots each of the two outer stretches of [0, 1/P] has. The two beside 1 have twice as many each."""
LEAST, NEAREST, DENSE_TO = 2.0**-40, 2.0**-20, 8.0
"""The first knot above 0, how near to 1 the knots beside it lie, and up to where the knots above 1 are dense."""
BEND = 2.0**-49  # How near, relatively, knots lie to the points where excesses begin.
HIGHEST = 600.0  # Powers with a larger logarithm are refused, so that none overflows.


@dataclass(frozen=True, eq=False, repr=False)
class PairwiseInformation(Certificate):
    """Weights of moments and excesses between rows that bound mutual information, for any prior and number of inputs.

    With s = Q[x, y]/P(Y = y), s log s - s + 1 is at most sum c k(s) + sum a (s - R)_+ + sum b (1 - R s)_+
    + slope (s - 1) + t_x: moments and excesses, whose averages the constraints cap (see the module).

    orders : (n,) orders of the moments k, at least 1, each capped by some constraint. weights : (n,) the c,
    non-negative. reaches : (m,) the logarithms of R, at least 0. above, below : (m,) the a and the b, non-negative.
    slope : any number.
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
        """Knots are fixed ones, and some for each answer and each reach; each power is taken at every knot."""
        knots = 8 * PIECES + self.answers + 4 * count_numbers(self.reaches)
        paid = Work.on(knots, 200.0 * (4 + count_numbers(self.orders) + count_numbers(self.reaches)), 4 * knots)
        return paid.in_floats + Work.on(count_numbers(self) + self.answers, 500.0)

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """(1 - sum P^2) times what the weights pay, and what is left unpaid at each answer."""
        used = np.asarray(self.utility.prior) > 0
        prior, near = (law(np.asarray(self.utility.prior), of)[used] for of in (arithmetic, FLOAT))
        # What is left unpaid is bounded in floats, which prove it as well.
        paid, top = self._paid(FLOAT), np.asarray((1 / near).upper)
        require((top < math.inf).all(), "an answer of next to no probability tells without end")
        knots = paid.knots(top)
        unpaid = paid.unpaid(knots)
        # On the intervals that begin below 1/P_x.
        interval = np.searchsorted(knots, top, side="left") - 1
        each = arithmetic.of(np.maximum.accumulate(unpaid)[np.clip(interval, 0, len(unpaid) - 1)])
        return (prior * (1 - prior)).sum() * self._charged(arithmetic) + prior @ each

    def _paid(self, arithmetic: Arithmetic) -> Paid:
        orders = real_array(self.orders, (-1,), "orders")
        reaches = nonnegative_array(self.reaches, (-1,), "reaches")
        require((reaches < HIGHEST).all(), "an excess is beyond every ratio")
        require((orders >= 1).all(), "an order is below 1")
        return Paid(
            orders, nonnegative_array(self.weights, orders.shape, "weights"), reaches,
            nonnegative_array(self.above, reaches.shape, "weights above"),
            nonnegative_array(self.below, reaches.shape, "weights below"),
            float(real_array(self.slope, (), "the slope")), arithmetic,
        )  # fmt: skip

    def _charged(self, of: Arithmetic) -> Enclosure:
        """sum c cap + sum (a + b) cap."""
        paid, total = self._paid(of), of.zeros(())
        for order, weight in zip(paid.orders.tolist(), paid.weights.tolist(), strict=True):
            cap = moment_bound(self.constraints, order, of)
            if cap is None:
                raise Unproved(f"no constraint caps a moment of order {order:g} between rows")
            total = total + cap * weight
        for reach, above, below in zip(*(x.tolist() for x in (paid.reaches, paid.above, paid.below)), strict=True):
            total = total + excess_cap(self.constraints, reach, of) * (of.of(above) + below)
        return total


@dataclass(frozen=True, eq=False)
class Paid:
    """The right side without t_x, sum c k + sum a (s - R)_+ + sum b (1 - R s)_+ + slope (s - 1), as a function of s."""

    orders: Array
    weights: Array
    reaches: Array
    above: Array
    below: Array
    slope: float
    arithmetic: Arithmetic

    def knots(self, tops: Array) -> Array:
        """0, 1, `tops` and knots up to the largest of them and beyond; `Unproved` where a power has no float."""
        high, top = float(self.orders.max(initial=1.0)), float(tops.max())
        if not high * math.log(top) < HIGHEST:
            raise Unproved(f"powers of order {high:g} are too large for answers of so little probability")
        low = max(LEAST, math.exp(-HIGHEST / (high + 1)))
        far = max(DENSE_TO, top)
        parts = [np.zeros(1), np.geomspace(low, 0.25, PIECES) if low < 0.25 else np.full(1, 0.25)]
        parts += [1 - np.geomspace(NEAREST, 0.75, 2 * PIECES), 1 + np.geomspace(NEAREST, DENSE_TO - 1, 2 * PIECES)]
        parts += [np.geomspace(DENSE_TO, far, PIECES)]
        bends = np.exp(np.concatenate([self.reaches, -self.reaches])[:, None]) * (1 + np.array([-BEND, BEND]))
        end = max(2.0, float(np.nextafter(far, math.inf)))
        cuts = np.unique(np.concatenate([*parts, bends.ravel(), tops, np.array([1.0, end])]))
        return np.asarray(cuts[cuts <= end])

    def unpaid(self, knots: Array) -> Array:
        """(n - 1,) upper bounds on e(s) less this function, one for each interval between knots."""
        of, ends = self.arithmetic, (knots[:-1], knots[1:])
        middle = (ends[0] + ends[1]) / 2
        # Powers may have no tangent at 0. Below the first knot above 0, moments and excesses are at least those there.
        middle[0] = knots[1]
        value, slope = self._at(middle)
        slope = of.where(np.arange(len(middle)) > 0, slope, 0.0)
        chord = enclosed_excess(KL, of.of(knots) - 1.0, of.of(np.ones(len(knots))))
        worth = (chord[:-1], chord[1:])
        most = np.full(len(middle), -math.inf)
        for end, own in zip(ends, worth, strict=True):
            off = of.of(end) - middle
            left = own - value - slope * off - (of.of(end) - 1.0) * self.slope
            most = np.maximum(most, np.asarray(left.upper))
        near = self._concave_about_one(knots)
        flat = np.maximum(*(np.asarray(((1.0 - of.of(end)) * self.slope).upper) for end in ends))
        return np.where(near, np.minimum(most, flat), most)

    def _at(self, s: Array) -> tuple[Enclosure, Enclosure]:
        """The function at s, without the term of the slope, and a subgradient there."""
        of, point = self.arithmetic, self.arithmetic.of(s)
        log = point.log()
        value, slope = of.zeros(len(s)), of.zeros(len(s))
        for order, weight in zip(self.orders.tolist(), self.weights.tolist(), strict=True):
            if not weight > 0:
                continue
            if order == 1:
                value = value + (point - 1.0) * log * weight
                slope = slope + (log + 1.0 - 1 / point) * weight
                continue
            less = of.of(Fraction(order) - 1)  # exactly
            up, down = (log * order).exp(), (log * -less).exp()
            value = value + (up + down - 1.0 - point) * weight
            slope = slope + (up / point * order - down / point * less - 1.0) * weight
        reach = of.of(self.reaches).exp()
        for ratio, above, below in zip(reach, self.above.tolist(), self.below.tolist(), strict=True):
            # An excess lies above both of its linear pieces, so that either gives a lower bound.
            over = (s > float(ratio.midpoint)).astype(np.float64) * above
            under = (s * float(ratio.midpoint) < 1).astype(np.float64) * below
            value = value + (point - ratio) * over + (1.0 - ratio * point) * under
            slope = slope + of.of(over) - ratio * under
        return value, slope

    def _concave_about_one(self, knots: Array) -> Array:
        """(n - 1,) booleans: the intervals in a row around 1 where e less the moments is surely concave (e'' = 1/s)."""
        of = self.arithmetic
        bent = of.zeros(len(knots) - 1)
        low, high = np.maximum(knots[:-1], knots[1]), knots[1:]
        for order, weight in zip(self.orders.tolist(), self.weights.tolist(), strict=True):
            if not weight > 0:
                continue
            if order == 1:
                bent = bent + (1 / of.of(high) + 1 / of.of(high).square()) * weight
                continue
            ends = [of.of(end).log() for end in (low, high)]
            rising = [(log * (of.of(Fraction(order) - 2))).exp() for log in ends]
            falling = (ends[1] * -(of.of(Fraction(order) + 1))).exp()
            factor = of.of(Fraction(order) * (Fraction(order) - 1)) * weight
            bent = bent + (rising[0].minimum(rising[1]) + falling) * factor
        with np.errstate(divide="ignore"):
            needed = np.nextafter(1 / knots[:-1], math.inf)
        concave = np.asarray(bent.lower) >= needed
        middle = int(np.searchsorted(knots, 1.0))  # the interval that begins at 1
        after = np.logical_and.accumulate(concave[middle:])
        before = np.logical_and.accumulate(concave[:middle][::-1])[::-1]
        return np.concatenate([before, after])
