"""Two densities on the line as a dominating pair, with every privacy measure.

Functions that a caller gives can be evaluated, but not enclosed between the points of evaluation. So the measures of a
plain `ContinuousPair` are estimates by quadrature, and no `Guarantee` of them is called exact. Subclasses enclose
theirs, by closed forms or by the bounds of `loss_moments`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from ldpopt.errors import invalid
from ldpopt.mechanisms.additive import enlarge, guarantee
from ldpopt.numbers.rounding import ULP, bisected, up
from ldpopt.numbers.tolerances import DENSITY_SUM, LOSS_EXCESS, MAXIMUM_EPSILON, UNTOLD_LOSSES
from ldpopt.privacy.claims import PureDP
from ldpopt.privacy.concentrated import MeanConcentrated, bounded_order
from ldpopt.privacy.conversions import pure_to_renyi
from ldpopt.privacy.finite_pair import FinitePair
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.privacy.renyi import renyi_order
from ldpopt.privacy.supremum import largest_slope, largest_spread, vectorized
from ldpopt.privacy.trade_off import TradeOffCurve, type_one_errors
from ldpopt.values.distribution import Array, number, positive_epsilon, positive_integer, unit_interval, unwrap_scalar

Density = Callable[[Any], Any]
Interval = tuple[float, float]


@dataclass(frozen=True)
class ContinuousPair:
    """Two densities p and q on the line, of a release under two answers, by their logarithms; in both directions.

    - `log_p`, `log_q` : functions of a number, finite on the open intervals between `edges`.
    - `edges` : increasing numbers, possibly -inf and inf: the support, cut where a density has a kink or a jump.
    - `epsilon` : the largest |log p/q| in nats if it is known, else inf; compared with the densities at some points
      (`InvalidInput` if they exceed it), and trusted elsewhere.

    The integrals are numerical. The line is cut at the peaks of each integrand and where it has fallen far below them,
    and overflowing values are stored as logarithms. `lower` and `value` of a `Guarantee` are moved outward by the
    estimated error, and restricted to the bounds that `epsilon` proves. They are right for densities that are smooth
    between `edges` on the scale of the trial points, from 1/1000 to ten million around each edge; `exact` is False.
    The named pairs, `GaussianPair`, `LaplacePair` and these after sampling, enclose every measure.

    >>> logistic = lambda x: -x - 2 * np.logaddexp(0, -x)
    >>> pair = ContinuousPair(logistic, lambda x: logistic(x - 1), (-np.inf, 0.5, np.inf), epsilon=1.0)
    >>> round(float(pair.total_variation()), 9), round(float(pair.renyi(2)), 6)
    (0.244918662, 0.308994)
    """

    log_p: Density
    log_q: Density
    edges: tuple[float, ...]
    epsilon: float = math.inf

    enclosed: ClassVar[bool] = False
    """Whether every measure surely lies between the ends of its interval."""

    symmetric: ClassVar[bool] = False
    """Whether both directions are known to be alike."""

    def __post_init__(self) -> None:
        edges = tuple(map(float, self.edges))
        if len(edges) < 2 or not all(a < b for a, b in pairwise(edges)):
            raise invalid("edges", "at least two increasing numbers", self.edges)
        object.__setattr__(self, "edges", edges)
        if type(self) is not ContinuousPair:
            return  # tests compare the closed forms of subclasses with their densities, so they need no probes here
        for name, density in (("log_p", self.log_p), ("log_q", self.log_q)):
            top, total, error = self._integral(density)
            total, error = math.exp(top) * total, math.exp(top) * error
            if not abs(total - 1) <= DENSITY_SUM + error:
                raise invalid(name, f"a log density that integrates to 1 within {DENSITY_SUM:g}", total)
        largest = max(abs(float(self.log_p(x)) - float(self.log_q(x))) for x in self._probes())
        if not largest <= self.epsilon * (1 + LOSS_EXCESS) + 1e-3 * LOSS_EXCESS:
            raise invalid("epsilon", f"at least {largest!r}, a loss that occurs", self.epsilon)

    def total_variation(self) -> Guarantee:
        """Compute the total variation distance eta [GI, Def 7]."""
        low, high = self._hockey_stick(0.0)
        return guarantee("total_variation", low, min(high, 1.0), "[GI, Def 7]", self.enclosed)

    def hockey_stick(self, epsilon: float) -> Guarantee:
        """Compute the smallest delta such that (epsilon, delta) holds, for any real epsilon (nats)."""
        epsilon = number(epsilon, "epsilon")
        low, high = self._hockey_stick(epsilon)
        return guarantee("hockey_stick", low, min(high, 1.0), "[GI, Def 1]", self.enclosed, epsilon=epsilon)

    def approximate_dp(self, delta: float) -> Guarantee:
        """Compute the smallest epsilon >= 0 (nats) such that (epsilon, delta) holds [GI, Def 1].

        >>> from ldpopt.mechanisms.noise import GaussianPair
        >>> round(float(GaussianPair(1.0).approximate_dp(1e-6)), 6)
        4.886554
        """
        level = unit_interval(delta, "delta")
        low, high = self._epsilon_at(level)
        return guarantee("approximate_dp", low, high, "[GI, Def 1]", self.enclosed, delta=level)

    def subsampled(self, rate: float) -> ContinuousPair:
        """Return the pair after Poisson sampling, r p + (1 - r) q against q, where r = `rate` lies in (0, 1] [ZDW].

        Each person takes part with probability r, independently of the others. Here p is the release with a person's
        answer, and q the release without it.

        >>> from ldpopt.mechanisms.noise import LaplacePair
        >>> sampled = LaplacePair(1.0).subsampled(0.1)
        >>> round(sampled.epsilon, 9), round(float(sampled.total_variation()), 9)  # log(1 + (e - 1)/10), eta/10
        (0.158565079, 0.039346934)
        """
        share = positive_rate(rate)
        if share == 1:
            return self
        return ContinuousPair(sampled_log(self.log_p, self.log_q, share), self.log_q, self.edges,
                              sampled_epsilon(self.epsilon, share))  # fmt: skip

    def renyi(self, order: float) -> Guarantee:
        """Compute the Rényi divergence of an order in [1, inf], in nats [M, Def 3]."""
        order = renyi_order(order)
        low, high = (self.epsilon, self.epsilon) if math.isinf(order) else self._renyi(order)
        if not self.enclosed and math.isfinite(self.epsilon):
            low, high = 0.0 if low > high else low, min(high, pure_to_renyi(PureDP(self.epsilon), order).epsilon)
        return guarantee("renyi", low, min(high, self.epsilon), "[M, Def 3]", self.enclosed, order=order)

    def zcdp(self, xi: float = 0.0, max_order: float = math.inf) -> Guarantee:
        """Compute rho = sup over orders 1 < alpha < max_order of (D_alpha - xi)/alpha, in nats."""
        xi, top = number(xi, "xi"), bounded_order(max_order)
        low, high = self._zcdp(xi, top)
        parameters = {} if math.isinf(top) else {"max_order": top}
        return guarantee("zcdp", low, high, "[BS, Def 1.1]", self.enclosed, xi=xi, **parameters)

    def mcdp(self) -> MeanConcentrated:
        """Compute (mu, tau): the mean of the privacy loss, and its subgaussian parameter [DR, Def 3.3]."""
        mu = guarantee("mcdp_mu", *self._renyi(1.0), "[DR, Def 3.3]", self.enclosed)
        return MeanConcentrated(mu, guarantee("mcdp_tau", *self._subgaussian(), "[DR, Def 3.3]", self.enclosed))

    def finite_pair(self, points: int = 1025) -> FinitePair:
        """Return a finite pair that dominates this one, with privacy losses on two grids.

        Each grid has `points` losses, one of positive and one of negative losses. Its delta meets that of this pair at
        the losses of the grids, and is linear in e^epsilon between them. There it is too large, by an amount of second
        order in the spacing. If losses are unbounded, those beyond 600 nats, or where delta is below 1e-25, count as
        infinite.

        >>> from ldpopt.mechanisms import LaplacePair
        >>> round(float(LaplacePair(1.0).finite_pair().total_variation()), 9)  # 1 - exp(-1/2)
        0.39346934
        """
        points = positive_integer(points, "points", minimum=2)
        forward = self._curve(points, False)
        return FinitePair.through(*forward, *(() if self.symmetric else self._curve(points, True)))

    def merged_pair(self, points: int = 1025) -> FinitePair | None:
        """Return a finite pair that this one dominates: outcomes whose losses lie in one cell of a grid are merged.

        Merging only hides, so the measures of the result are lower bounds, but for relative errors of its masses of at
        most `MERGED_MASS_RTOL`. None if the masses of the cells are not known in closed form.
        """
        if self._tails(0.0, False) is None:
            return None
        sides, points = [], positive_integer(points, "points", minimum=2)
        for reverse in (False, True):
            edges = np.linspace(0.0, self._farthest(reverse) * (1 - 1e-9), points)
            tails = np.array([self._tails(float(edge), reverse) for edge in edges])
            starts = [0]
            for n in range(1, points):
                if (tails[starts[-1]] - tails[n] >= 1e-6 * tails[starts[-1]]).all() and tails[n].all():
                    starts.append(n)
            tails = tails[starts]
            sides.append(np.concatenate([tails[:-1] - tails[1:], tails[-1:]]))
        p, q = np.concatenate([sides[0], sides[1][::-1, ::-1]]).clip(0.0).T
        return FinitePair(p / p.sum(), q / q.sum()).ordered

    def _tails(self, epsilon: float, reverse: bool) -> Interval | None:
        """Pr(Z > epsilon) under p and under q for the loss Z = log p/q, nearly; with `reverse`, p and q exchanged."""
        return None

    def _curve(self, points: int, reverse: bool) -> tuple[Array, Array]:
        """Losses from 0 up to the largest that counts, and delta at them, rounded up, in one direction."""
        epsilons = np.linspace(0.0, self._farthest(reverse), points)
        deltas = [min(self._one_way(float(epsilon), reverse)[1], 1.0) for epsilon in epsilons]
        deltas[0] = max(deltas[0], min(self._one_way(0.0, not reverse)[1], 1.0))
        if self._one_way(float(epsilons[-1]), reverse)[0] == 0 and epsilons[-1] >= self._largest(reverse):
            deltas[-1] = 0.0
        return epsilons, np.array(deltas)

    def _largest(self, reverse: bool) -> float:
        """A bound on the largest loss in one direction."""
        return self.epsilon

    def _farthest(self, reverse: bool) -> float:
        """The largest loss that counts as finite in a finite pair."""
        largest = self._largest(reverse)
        if math.isfinite(largest):
            return min(largest, 700.0)
        top = min(1.0, max(self._one_way(0.0, reverse)[1], 1e-9))
        while top < 600 and self._one_way(top, reverse)[1] > UNTOLD_LOSSES:
            top *= 1.25
        return min(top, 700.0)

    def trade_off(self, points: int = 1025) -> TradeOffCurve:
        """Build a trade-off curve nowhere above the true one: that of `finite_pair`."""
        return self.finite_pair(points).trade_off()

    def trade_off_at(self, false_alarm: Any) -> Any:
        """Compute the smallest missed-detection rate at each false-alarm rate in [0, 1] [GI, Def 2]."""
        rates = type_one_errors(false_alarm)
        return unwrap_scalar(np.array([self._missed(rate) for rate in rates.ravel().tolist()]).reshape(rates.shape))

    def _integral(self, log_function: Callable[[float], float], cuts: Sequence[float] = ()) -> tuple[float, ...]:
        """The parts (top, total, error) of an integral: e^top total estimates it, from the integrand's logarithm.

        The support is cut at `cuts`, at the function's peaks, and on both sides of them where it has fallen by the
        factors of `_CUT_DROPS`. So no peak is narrow within its piece.
        """
        from scipy.integrate import quad

        points = np.unique([*self._tried, *(x for x in cuts if self.edges[0] < x < self.edges[-1])]).tolist()
        logs = [log_function(x) for x in points]
        for n in _peaks(logs):
            points.append(_climbed(log_function, points[max(n - 1, 0)], points[min(n + 1, len(self._tried) - 1)]))
            logs.append(log_function(points[-1]))
        order = np.argsort(points)
        points, logs = [points[n] for n in order], [logs[n] for n in order]
        top = max(logs)
        if top == -math.inf:
            return 0.0, 0.0, 0.0
        places = {x for x, log in zip(points, logs, strict=True) if log >= top - _CUT_DROPS[-1]}
        places = {min(places), max(places), *(points[n] for n in _peaks(logs))}
        for (a, left), (b, right) in pairwise(zip(points, logs, strict=True)):
            places |= {_crossed(log_function, a, b, top - fall) for fall in _CUT_DROPS
                       if (left < top - fall) != (right < top - fall)}  # fmt: skip
        total, error = 0.0, 0.0
        for a, b in pairwise(sorted({*self.edges, *cuts, *places})):
            # With full_output scipy does not warn; the error estimate says the same.
            part = quad(lambda x: math.exp(min(log_function(x) - top, 700.0)), a, b, epsabs=0.0, epsrel=1e-12,
                        limit=400, full_output=1)  # fmt: skip
            total, error = total + part[0], error + part[1]
        return top, total, error

    @cached_property
    def _tried(self) -> list[float]:
        return sorted(self._probes())

    def _probes(self) -> list[float]:
        """Points of the support: dense between finite edges, and ever farther apart towards infinity."""
        points: list[float] = []
        steps = np.concatenate(
            [np.geomspace(1e-3, 1 / 64, 8)[:-1], np.linspace(0, 1, 65)[1:], np.geomspace(1, 1e7, 300)[1:]]
        )
        for a, b in pairwise(self.edges):
            if math.isfinite(a) and math.isfinite(b):
                points += (a + (b - a) * np.linspace(0, 1, 258)[1:-1]).tolist()
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
        """The points where the loss crosses `level`: the hockey stick's integrand has a kink there."""
        from scipy.optimize import brentq

        def excess(x: float) -> float:
            return float(self.log_p(x)) - float(self.log_q(x)) - level

        points, losses = self._losses
        is_above = losses > level
        return [float(brentq(excess, points[n], points[n + 1])) for n in np.flatnonzero(is_above[1:] != is_above[:-1])]

    def _epsilon_at(self, delta: float) -> Interval:
        """Bounds on the smallest epsilon with a hockey stick of at most delta, by bisection on its bounds."""
        top = min(1.0, self.epsilon)
        while top < self.epsilon and not self._hockey_stick(top)[1] <= delta:
            top = min(2 * top, self.epsilon)
            if top > 1e12:
                return 0.0 if delta > 0 else self.epsilon, math.inf

        def smallest(end: int) -> float:
            def exceeds(epsilon: float) -> bool:
                return not self._hockey_stick(epsilon)[end] <= delta

            return bisected(exceeds, 0.0, top, 1e-14)[end] if exceeds(0.0) else 0.0

        return smallest(0), smallest(1)

    def _directions(self) -> tuple[tuple[Density, Density], ...]:
        return (self.log_p, self.log_q), (self.log_q, self.log_p)

    def _hockey_stick(self, epsilon: float) -> Interval:
        low, high = np.array([self._one_way(epsilon, False), self._one_way(epsilon, True)]).T
        return float(low.max()), float(high.max())

    def _one_way(self, epsilon: float, reverse: bool) -> Interval:
        """The hockey stick of p from q; with `reverse`, of q from p."""
        log_p, log_q = self._directions()[reverse]

        def excess(x: float) -> float:
            log = float(log_p(x))
            loss = float(log - log_q(x)) - epsilon
            return log + math.log(-math.expm1(-loss)) if loss > 0 and log > -math.inf else -math.inf

        top, total, error = self._integral(excess, self._crossings(-epsilon if reverse else epsilon))
        low, high = (math.exp(top) * max(total + sign * error, 0.0) for sign in (-1, 1))
        if epsilon >= self.epsilon:
            return 0.0, 0.0
        if math.isfinite(self.epsilon) and epsilon >= 0:
            # (e^largest - e^epsilon)/(1 + e^largest), the most that a loss of at most `largest` allows [GI, Cor 1].
            largest = self.epsilon
            high = min(high, -math.expm1(epsilon - largest) / (1 + math.exp(-largest)) * (1 + 16 * ULP))
        return min(low, high), max(
            high, _NEGLIGIBLE_MASS
        )  # densities below the range of floats are left out of the integral

    def cumulant(self, s: float, *, reverse: bool = False) -> Interval:
        """Return an interval that holds log E exp(s (Z - E Z)), for the privacy loss Z = log p/q under p.

        With `reverse`, Z is log q/p under q.
        """
        log_p, log_q = self._directions()[reverse]
        mean = sum(self._mean(reverse)) / 2

        # E exp(s (Z - E Z)) - 1 as an integral of non-negative terms, which are of second order in s.
        def term(x: float) -> float:
            return float(log_p(x)) + log_expm2(s * float(log_p(x) - log_q(x) - mean))

        top, total, error = self._integral(term)
        if top > 600:
            return top + math.log(max(total - error, 1e-300)), top + math.log(total + error) + math.exp(-600)
        return (math.log1p(math.exp(top) * max(total - error, 0.0)), math.log1p(math.exp(top) * (total + error)))

    def _renyi(self, order: float) -> Interval:
        low, high = _in_both(self._mean)
        if order > 1:
            extra = _in_both(partial(self._directed, s=order - 1))
            low, high = low + extra[0] / (order - 1), high + extra[1] / (order - 1)
        return _larger((low, high))

    def _mean(self, reverse: bool) -> Interval:
        log_p, log_q = self._directions()[reverse]
        # p (z + exp(-z) - 1) is non-negative and sums to KL as well.
        return self._estimate(lambda x: float(log_p(x)) + log_expm2(float(log_q(x) - log_p(x))))

    def _variance(self, reverse: bool) -> Interval:
        log_p, log_q = self._directions()[reverse]
        mean = sum(self._mean(reverse)) / 2

        def term(x: float) -> float:
            distance = abs(float(log_p(x) - log_q(x)) - mean)
            return float(log_p(x)) + 2 * math.log(distance) if distance > 0 else -math.inf

        return self._estimate(term)

    def _estimate(self, log_function: Callable[[float], float]) -> Interval:
        top, total, error = self._integral(log_function)
        if top > 700:
            return math.exp(700), math.inf
        return math.exp(top) * max(total - error, 0.0), math.exp(top) * (total + error)

    def _zcdp(self, xi: float, max_order: float) -> Interval:
        mean = _in_both(self._mean)
        if math.isinf(self.epsilon):
            return max(float(mean[0].max()) - xi, 0.0), math.inf
        largest, spread = np.full(2, self.epsilon), (np.full(2, 2 * self.epsilon), _in_both(self._variance)[1])
        return _larger(largest_slope(vectorized(self._directed), mean, largest, xi, max_order - 1, spread))

    def _subgaussian(self) -> Interval:
        low, high = _in_both(self._variance)
        low = np.maximum(low, 0.0)
        if math.isinf(self.epsilon):
            return math.sqrt(low.max()), math.inf
        reach, spread = self.epsilon + _in_both(self._mean)[1], (np.full(2, 2 * self.epsilon), high)
        return _larger(largest_spread(vectorized(self._directed), (low, high), reach, spread))

    def _directed(self, reverse: int, s: float) -> Interval:
        return self.cumulant(s, reverse=bool(reverse))

    def _missed(self, rate: float) -> float:
        from scipy.optimize import minimize_scalar

        def covered(t: float) -> float:
            return math.exp(t) * rate + self._hockey_stick(t)[1]

        reach = min(self.epsilon, 100.0)
        minimum = minimize_scalar(covered, bounds=(-reach, reach), method="bounded", options={"xatol": 1e-9})
        return max(0.0, 1.0 - min(float(minimum.fun), covered(-reach), covered(reach)))


_NEGLIGIBLE_MASS = 1e-300
"""Hockey stick divergences below this are not distinguished from zero."""


def _in_both(interval: Callable[[bool], Interval]) -> tuple[Array, Array]:
    """The lower and the upper ends of a bound for both directions, (2,) each."""
    low, high = np.array([interval(False), interval(True)]).T
    return low, high


def _larger(bounds: tuple[Array, Array]) -> Interval:
    return float(bounds[0].max()), float(bounds[1].max())


MERGED_MASS_RTOL = 1e-9
"""Bound on the relative errors of the masses of merged outcomes: each is at least 1e-6 of its tails."""

_CUT_DROPS = (1.0, 4.0, 12.0, 36.0, 100.0, 300.0, 745.0)
"""Distances of an integrand's logarithm below its top where the integrand is cut."""


def _peaks(logs: Sequence[float]) -> list[int]:
    """The positions of local maxima of a list."""
    padded_logs = [-math.inf, *logs, -math.inf]
    return [n for n in range(len(logs)) if padded_logs[n] < padded_logs[n + 1] >= padded_logs[n + 2]]


def _climbed(log_function: Callable[[float], float], a: float, b: float) -> float:
    """The place of a peak between two points, nearly, by golden section."""
    ratio = (math.sqrt(5) - 1) / 2
    for _ in range(60):
        left, right = b - ratio * (b - a), a + ratio * (b - a)
        if b - a <= 1e-6 * max(abs(a), abs(b), 1e-6):
            break
        a, b = (a, right) if log_function(left) >= log_function(right) else (left, b)
    return (a + b) / 2


def _crossed(log_function: Callable[[float], float], a: float, b: float, level: float) -> float:
    """A place between a and b where a function crosses a level, nearly."""
    starts_below = log_function(a) < level
    for _ in range(24):
        middle = (a + b) / 2
        a, b = (middle, b) if (log_function(middle) < level) == starts_below else (a, middle)
    return (a + b) / 2


def positive_rate(rate: Any) -> float:
    """Return a sampling rate in (0, 1] as a float."""
    share = unit_interval(rate, "rate")
    if share == 0:
        raise invalid("rate", "a number in (0, 1]", share)
    return share


def sampled_log(log_p: Density, log_q: Density, rate: float) -> Density:
    """Return the log density of r p + (1 - r) q, where r = `rate` < 1."""
    rest, log_rate = math.log1p(-rate), math.log(rate)

    def mixed(x: Any) -> Any:
        return np.logaddexp(rest + log_q(x), log_rate + log_p(x))

    return mixed


def sampled_epsilon(epsilon: float, rate: float) -> float:
    """Return the largest loss log(1 + r (e^epsilon - 1)), rounded up; that of the other direction is smaller."""
    if math.isinf(epsilon):
        return epsilon
    if epsilon > 700:
        return min(epsilon, up(epsilon + math.log(rate) + 1e-300, 16) + (1 - rate))
    return up(math.log1p(rate * math.expm1(epsilon)), 16)


def log_expm2(x: float) -> float:
    """Return log(exp(x) - 1 - x), also where exp(x) overflows; -inf at 0."""
    if x > 30:
        return x + math.log1p(-(1 + x) * math.exp(-x))
    value = expm2(x)
    return math.log(value) if value > 0 else -math.inf


def expm2(x: float) -> float:
    """Compute exp(x) - 1 - x without cancellation near 0."""
    if abs(x) > 0.5:
        return math.expm1(x) - x
    total, term = 0.0, 1.0
    for n in range(2, 20):
        term *= x / n
        total += term
    return total * x


def dominating_pair(epsilon: float, delta: float = 0.0, eta: float = 1.0) -> FinitePair:
    """Build the five-point pair that dominates every (epsilon, delta)-DP, eta-TV mechanism.

    See [GI, eq. 7-8]. With e = exp(epsilon),

        1 - alpha = (eta - delta)(e + 1)/((1 - delta)(e - 1)),
        p = (delta, (1-delta)(1-alpha) e/(1+e), alpha (1-delta), (1-delta)(1-alpha)/(1+e), 0),

    and q is p reversed. Parameters are enlarged by a few units in the last place, so that the rounded pair dominates,
    too.

    Parameters
    ----------
    epsilon : In nats.
    delta : In [0, 1]; a delta above eta is lowered to it.
    eta : In [0, 1]; an eta above delta + (1 - delta) tanh(epsilon/2) adds no constraint.

    Returns
    -------
    FinitePair
        The pair p, q, shape (5,) each.

    Raises
    ------
    InvalidInput
        If a value is out of range.

    Examples
    --------
    >>> dominating_pair(1.0, 0.0, 0.7 * 0.46211715726).p.round(4)
    array([0.    , 0.5117, 0.3   , 0.1883, 0.    ])
    """
    epsilon = min(enlarge(positive_epsilon(epsilon)), MAXIMUM_EPSILON)
    eta = min(enlarge(unit_interval(eta, "eta")), 1.0)
    return FinitePair.of_parameters(epsilon, delta, eta)
