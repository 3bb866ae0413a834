"""Two densities on the line as a dominating pair: every privacy measure, by numerical integration with error bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np

from ldpopt.errors import invalid
from ldpopt.mechanisms.additive import enlarge, guarantee
from ldpopt.numbers.rounding import bisected, up
from ldpopt.numbers.tolerances import DENSITY_SUM, LOSS_EXCESS, MAXIMUM_EPSILON, UNTOLD_LOSSES
from ldpopt.privacy.concentrated import MeanConcentrated, bounded_order
from ldpopt.privacy.finite_pair import FinitePair
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.privacy.renyi import renyi_order
from ldpopt.privacy.supremum import each, largest_slope, largest_spread
from ldpopt.privacy.trade_off import TradeOffCurve, type_one_errors
from ldpopt.values.distribution import Array, number, plain, positive_epsilon, positive_integer, unit_interval

Density = Callable[[Any], Any]
Interval = tuple[float, float]


@dataclass(frozen=True)
class ContinuousPair:
    """Two densities p and q on the line, of a release under two answers, by their logarithms; in both directions.

    log_p, log_q : functions of a number, finite on the open intervals between `edges`.
    edges : increasing numbers, possibly -inf and inf: the support, cut where a density has a kink or a jump.
    epsilon : the largest |log p/q| in nats if it is known, else inf; compared with the densities at some points
        (`InvalidInput` if they exceed it), and trusted elsewhere.

    The integrals are numerical (scipy's); `lower` and `value` of a `Guarantee` are moved outward by the estimate of
    their error, so they enclose the truth if the estimate holds. Subclasses use closed forms.

    >>> logistic = lambda x: -x - 2 * np.logaddexp(0, -x)
    >>> pair = ContinuousPair(logistic, lambda x: logistic(x - 1), (-np.inf, 0.5, np.inf), epsilon=1.0)
    >>> round(float(pair.total_variation()), 9), round(float(pair.renyi(2)), 6)
    (0.244918662, 0.308994)
    """

    log_p: Density
    log_q: Density
    edges: tuple[float, ...]
    epsilon: float = math.inf

    def __post_init__(self) -> None:
        edges = tuple(map(float, self.edges))
        if len(edges) < 2 or not all(a < b for a, b in pairwise(edges)):
            raise invalid("edges", "at least two increasing numbers", self.edges)
        object.__setattr__(self, "edges", edges)
        if type(self) is not ContinuousPair:
            return  # tests compare the closed forms of subclasses with their densities, so they need no probes here
        for name, density in (("log_p", self.log_p), ("log_q", self.log_q)):
            total, error = self._integral(partial(_mass, density))
            if not abs(total - 1) <= DENSITY_SUM + error:
                raise invalid(name, f"a log density that integrates to 1 within {DENSITY_SUM:g}", total)
        largest = max(abs(float(self.log_p(x)) - float(self.log_q(x))) for x in self._probes())
        if not largest <= self.epsilon * (1 + LOSS_EXCESS) + 1e-3 * LOSS_EXCESS:
            raise invalid("epsilon", f"at least {largest!r}, a loss that occurs", self.epsilon)

    def total_variation(self) -> Guarantee:
        """The total variation distance eta [GI, Def 7]."""
        low, high = self._hockey_stick(0.0)
        return guarantee("total_variation", low, min(high, 1.0), "[GI, Def 7]")

    def hockey_stick(self, epsilon: float) -> Guarantee:
        """The smallest delta for which (epsilon, delta) holds; epsilon in nats, any real number [GI, Def 1]."""
        epsilon = number(epsilon, "epsilon")
        low, high = self._hockey_stick(epsilon)
        return guarantee("hockey_stick", low, min(high, 1.0), "[GI, Def 1]", epsilon=epsilon)

    def approximate_dp(self, delta: float) -> Guarantee:
        """The smallest epsilon >= 0 for which (epsilon, delta) holds, in nats, for delta in [0, 1] [GI, Def 1].

        >>> from ldpopt.mechanisms.noise import GaussianPair
        >>> round(float(GaussianPair(1.0).approximate_dp(1e-6)), 6)
        4.886554
        """
        level = unit_interval(delta, "delta")
        low, high = self._epsilon_at(level)
        return guarantee("approximate_dp", low, high, "[GI, Def 1]", delta=level)

    def subsampled(self, rate: float) -> ContinuousPair:
        """The pair after Poisson sampling, r p + (1 - r) q against q, where r = `rate` lies in (0, 1] [ZDW].

        Each person takes part with probability r, independently of the others. Here p is the release with a person's
        answer, and q the release without it.

        >>> from ldpopt.mechanisms.noise import LaplacePair
        >>> sampled = LaplacePair(1.0).subsampled(0.1)
        >>> round(sampled.epsilon, 9), round(float(sampled.total_variation()), 9)  # log(1 + (e - 1)/10), eta/10
        (0.158565079, 0.039346934)
        """
        share = unit_interval(rate, "rate")
        if share == 0:
            raise invalid("rate", "a number in (0, 1]", share)
        if share == 1:
            return self
        log_p, log_q, kept = self.log_p, self.log_q, math.log1p(-share)

        def mixed(x: Any) -> Any:
            return np.logaddexp(kept + log_q(x), math.log(share) + log_p(x))

        largest = self.epsilon
        if largest <= 700:  # the other direction's largest loss, -log(1 - r + r e^-epsilon), is smaller
            largest = up(math.log1p(share * math.expm1(largest)), 16)
        return ContinuousPair(mixed, log_q, self.edges, largest)

    def renyi(self, order: float) -> Guarantee:
        """The Rényi divergence of an order in [1, inf], in nats [M, Def 3]; order 1 is KL, inf the largest loss."""
        order = renyi_order(order)
        low, high = (self.epsilon, self.epsilon) if math.isinf(order) else self._renyi(order)
        return guarantee("renyi", low, min(high, self.epsilon), "[M, Def 3]", order=order)

    def zcdp(self, xi: float = 0.0, max_order: float = math.inf) -> Guarantee:
        """rho = sup over orders 1 < alpha < max_order of (D_alpha - xi)/alpha, in nats [BS, Def 1.1 and 8.4]."""
        xi, top = number(xi, "xi"), bounded_order(max_order)
        low, high = self._zcdp(xi, top)
        bounded = {} if math.isinf(top) else {"max_order": top}
        return guarantee("zcdp", low, high, "[BS, Def 1.1]", xi=xi, **bounded)

    def mcdp(self) -> MeanConcentrated:
        """(mu, tau): the mean of the privacy loss log p/q, and its subgaussian parameter [DR, Def 3.3]."""
        mu = guarantee("mcdp_mu", *self._renyi(1.0), "[DR, Def 3.3]")
        return MeanConcentrated(mu, guarantee("mcdp_tau", *self._subgaussian(), "[DR, Def 3.3]"))

    def finite_pair(self, points: int = 1025) -> FinitePair:
        """A finite pair that dominates this one in both directions, with privacy losses on a grid of `points` values.

        Its delta meets that of this pair at the losses of the grid, and is linear in e^epsilon between them: too large
        by an amount of second order in the spacing. If losses are unbounded, those beyond 600 nats, or where delta is
        below 1e-25, count as infinite.

        >>> from ldpopt.mechanisms import LaplacePair
        >>> round(float(LaplacePair(1.0).finite_pair().total_variation()), 9)  # 1 - exp(-1/2)
        0.39346934
        """
        points = positive_integer(points, "points", minimum=2)
        top = self.epsilon
        if math.isinf(top):
            top = min(1.0, max(self._hockey_stick(0.0)[1], 1e-9))
            while top < 600 and self._hockey_stick(top)[1] > UNTOLD_LOSSES:
                top *= 1.25
        epsilons = np.linspace(0.0, min(top, 700.0), points)
        deltas = [min(self._hockey_stick(float(epsilon))[1], 1.0) for epsilon in epsilons]
        if top == self.epsilon:
            deltas[-1] = 0.0
        return FinitePair.through(epsilons, np.array(deltas))

    def trade_off(self, points: int = 1025) -> TradeOffCurve:
        """A trade-off curve nowhere above the true one: that of `finite_pair` with as many points."""
        return self.finite_pair(points).trade_off()

    def trade_off_at(self, false_alarm: Any) -> Any:
        """The smallest missed-detection rate of a test at each false-alarm rate in [0, 1], rounded down [GI, Def 2]."""
        rates = type_one_errors(false_alarm)
        return plain(np.array([self._missed(rate) for rate in rates.ravel().tolist()]).reshape(rates.shape))

    def _integral(self, function: Callable[[float], float], cuts: Sequence[float] = ()) -> Interval:
        """The integral over the support, also cut at the points `cuts`, and an estimate of its error."""
        from scipy.integrate import quad

        total, error = 0.0, 0.0
        for a, b in pairwise(sorted({*self.edges, *cuts})):
            # With full_output scipy does not warn; the error estimate says the same.
            part = quad(function, a, b, epsabs=0.0, epsrel=1e-12, limit=400, full_output=1)
            total, error = total + part[0], error + part[1]
        return total, error

    def _probes(self) -> list[float]:
        """Points of the support: dense between finite edges, and ever farther apart towards infinity."""
        points: list[float] = []
        steps = np.concatenate([np.linspace(0, 1, 65)[1:], np.geomspace(1, 1e3, 200)[1:]])
        for a, b in pairwise(self.edges):
            if math.isfinite(a) and math.isfinite(b):
                points += (a + (b - a) * np.linspace(0, 1, 1026)[1:-1]).tolist()
            elif math.isfinite(a) or math.isfinite(b):
                points += (a + steps if math.isfinite(a) else b - steps).tolist()
            else:
                points += np.concatenate([-steps, [0.0], steps]).tolist()
        finite = [x for x in points if math.isfinite(float(self.log_p(x))) and math.isfinite(float(self.log_q(x)))]
        return finite or [0.0]

    @cached_property
    def _losses(self) -> tuple[Array, Array]:
        """Points of the support in order, and the loss log p/q at them."""
        points = sorted(self._probes())
        return np.array(points), np.array([float(self.log_p(x)) - float(self.log_q(x)) for x in points])

    def _crossings(self, level: float) -> list[float]:
        """Where the privacy loss crosses `level`, as the probes show: the hockey stick's integrand has a kink there."""
        from scipy.optimize import brentq

        def excess(x: float) -> float:
            return float(self.log_p(x)) - float(self.log_q(x)) - level

        points, losses = self._losses
        above = losses > level
        return [float(brentq(excess, points[n], points[n + 1])) for n in np.flatnonzero(above[1:] != above[:-1])]

    def _epsilon_at(self, delta: float) -> Interval:
        """Bounds on the smallest epsilon at which the hockey stick is at most delta, by bisection on its bounds."""
        top = min(1.0, self.epsilon)
        while top < self.epsilon and not self._hockey_stick(top)[1] <= delta:
            top = min(2 * top, self.epsilon)
            if top > 1e12:
                return 0.0 if delta > 0 else self.epsilon, math.inf

        def least(end: int) -> float:
            def exceeds(epsilon: float) -> bool:
                return not self._hockey_stick(epsilon)[end] <= delta

            return bisected(exceeds, 0.0, top, 1e-14)[end] if exceeds(0.0) else 0.0

        return least(0), least(1)

    def _directions(self) -> tuple[tuple[Density, Density], ...]:
        return (self.log_p, self.log_q), (self.log_q, self.log_p)

    def _hockey_stick(self, epsilon: float) -> Interval:
        low = high = 0.0
        for log_p, log_q in self._directions():

            def excess(x: float, log_p: Density = log_p, log_q: Density = log_q) -> float:
                own = log_p(x)
                loss = float(own - log_q(x)) - epsilon
                return -math.exp(own) * math.expm1(-loss) if loss > 0 else 0.0

            total, error = self._integral(excess, self._crossings(epsilon if log_p is self.log_p else -epsilon))
            low, high = max(low, total - error), max(high, total + error)
        # Densities below the range of floats are left out of the integral.
        return low, high if epsilon >= self.epsilon else max(high, _LEAST)

    def cumulant(self, s: float, *, reverse: bool = False) -> Interval:
        """An interval that holds log E exp(s (Z - E Z)), for the privacy loss Z = log p/q under p.

        With `reverse`, Z is log q/p under q.
        """
        log_p, log_q = self._directions()[reverse]
        mean = sum(self._mean(reverse)) / 2

        # E exp(s (Z - E Z)) - 1 as an integral of non-negative terms, which are of second order in s.
        total, error = self._integral(lambda x: _weighted(log_p(x), s * (log_p(x) - log_q(x) - mean)))
        return math.log1p(total - error), math.log1p(total + error)

    def _renyi(self, order: float) -> Interval:
        low, high = _in_both(self._mean)
        if order > 1:
            extra = _in_both(partial(self._directed, s=order - 1))
            low, high = low + extra[0] / (order - 1), high + extra[1] / (order - 1)
        return _larger((low, high))

    def _mean(self, reverse: bool) -> Interval:
        log_p, log_q = self._directions()[reverse]
        # p (z + exp(-z) - 1) is non-negative and sums to KL as well.
        total, error = self._integral(lambda x: _weighted(log_p(x), log_q(x) - log_p(x)))
        return total - error, total + error

    def _variance(self, reverse: bool) -> Interval:
        log_p, log_q = self._directions()[reverse]
        mean = sum(self._mean(reverse)) / 2
        total, error = self._integral(lambda x: math.exp(log_p(x)) * (log_p(x) - log_q(x) - mean) ** 2)
        return total - error, total + error

    def _zcdp(self, xi: float, max_order: float) -> Interval:
        mean = _in_both(self._mean)
        if math.isinf(self.epsilon):
            return max(float(mean[0].max()) - xi, 0.0), math.inf
        largest, spread = np.full(2, self.epsilon), (np.full(2, 2 * self.epsilon), _in_both(self._variance)[1])
        return _larger(largest_slope(each(self._directed), mean, largest, xi, max_order - 1, spread))

    def _subgaussian(self) -> Interval:
        low, high = _in_both(self._variance)
        low = np.maximum(low, 0.0)
        if math.isinf(self.epsilon):
            return math.sqrt(low.max()), math.inf
        reach, spread = self.epsilon + _in_both(self._mean)[1], (np.full(2, 2 * self.epsilon), high)
        return _larger(largest_spread(each(self._directed), (low, high), reach, spread))

    def _directed(self, reverse: int, s: float) -> Interval:
        return self.cumulant(s, reverse=bool(reverse))

    def _missed(self, rate: float) -> float:
        from scipy.optimize import minimize_scalar

        def covered(t: float) -> float:
            return math.exp(t) * rate + self._hockey_stick(t)[1]

        reach = min(self.epsilon, 100.0)
        minimum = minimize_scalar(covered, bounds=(-reach, reach), method="bounded", options={"xatol": 1e-9})
        return max(0.0, 1.0 - min(float(minimum.fun), covered(-reach), covered(reach)))


_LEAST = 1e-300
"""A hockey stick divergence below this is not distinguished from zero."""


def _in_both(interval: Callable[[bool], Interval]) -> tuple[Array, Array]:
    """The lower and the upper ends of what depends on the direction, (2,) each."""
    low, high = np.array([interval(False), interval(True)]).T
    return low, high


def _larger(bounds: tuple[Array, Array]) -> Interval:
    return float(bounds[0].max()), float(bounds[1].max())


def _mass(log_density: Density, x: float) -> float:
    return math.exp(log_density(x))


def _weighted(log_weight: float, x: float) -> float:
    """exp(log_weight) (exp(x) - 1 - x), also where exp(x) alone overflows."""
    if x > 1:
        return math.exp(log_weight + x) - math.exp(log_weight) * (1 + x)
    return math.exp(log_weight) * expm2(x)


def expm2(x: float) -> float:
    """exp(x) - 1 - x without cancellation near 0."""
    if abs(x) > 0.5:
        return math.expm1(x) - x
    total, term = 0.0, 1.0
    for n in range(2, 20):
        term *= x / n
        total += term
    return total * x


def dominating_pair(epsilon: float, delta: float = 0.0, eta: float = 1.0) -> FinitePair:
    """The five-point pair that dominates every (epsilon, delta)-DP mechanism of total variation eta [GI, eq. 7-8].

    epsilon in nats; delta and eta in [0, 1]. With e = exp(epsilon) and 1 - alpha = (eta - delta)(e + 1)/((1 - delta)(e
    - 1)), p is (delta, (1-delta)(1-alpha) e/(1+e), alpha (1-delta), (1-delta)(1-alpha)/(1+e), 0) and q is p reversed.
    An eta above delta + (1 - delta) tanh(epsilon/2) limits nothing; a delta above eta is lowered to it. Parameters are
    enlarged by a few units in the last place, so that the rounded pair dominates, too.

    >>> dominating_pair(1.0, 0.0, 0.7 * 0.46211715726).p.round(4)
    array([0.    , 0.5117, 0.3   , 0.1883, 0.    ])
    """
    epsilon = min(enlarge(positive_epsilon(epsilon)), MAXIMUM_EPSILON)
    eta = min(enlarge(unit_interval(eta, "eta")), 1.0)
    return FinitePair.of_parameters(epsilon, delta, eta)
