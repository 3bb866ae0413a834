"""k equal mechanisms that are (epsilon, delta, eta)-private: exact composition, and its Gaussian limit [GI].

The law of plus minus minus in k draws of a three-point pair is accurate in the tails.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.composition.compose import ComposedPair
from ldpopt.composition.parametric import MAX_USES, ParametricPair, any_loss, listed, union
from ldpopt.errors import invalid
from ldpopt.numbers.rounding import ULP, ceil_digits, up
from ldpopt.privacy.approximate_dp import mirrored
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.privacy.least_pair import checked, kept_mass, largest_eta
from ldpopt.privacy.trade_off import type_one_errors
from ldpopt.values.distribution import Array, nonnegative, positive_integer, unit_interval
from ldpopt.values.results import Result


def trinomial_log_pmf(count: int, epsilon: float, erasure: float, not_erased: float | None = None) -> Array:
    """Return log Pr(#plus - #minus = d) for d = -count..count [GI, eq. 7].

    The probabilities are those under the first hypothesis of `count` reports of binary randomized response with
    erasure. Each is plus, erased or minus with probabilities (1 - a) e^eps / (1 + e^eps), a and (1 - a) / (1 + e^eps).

    A three-term recurrence from either end adds positive terms, so the relative error is a few units in the last place
    for each step away from the mode.

    Parameters
    ----------
    count : The number of reports.
    epsilon : In nats.
    erasure : The probability a.
    not_erased : The probability 1 - a, if a is near 1.

    Returns
    -------
    Array
        The logarithms, shape (2 count + 1,).

    Examples
    --------
    >>> np.exp(trinomial_log_pmf(1, math.log(3), 0.2)).round(6)
    array([0.2, 0.2, 0.6])
    """
    count, epsilon = positive_integer(count, "count"), nonnegative(epsilon, "epsilon")
    erasure = unit_interval(erasure, "erasure")
    not_erased = 1 - erasure if not_erased is None else not_erased
    if not_erased <= 0:
        law = np.full(2 * count + 1, -np.inf)
        law[count] = 0.0
        return law
    # Tilting by e^(-d eps/2) makes the law symmetric: coefficients of (1/z + beta + z)^count.
    if not_erased < 1e-100:  # beta may overflow, so its logarithm is used, and beta^2 counts as infinite
        log_beta = math.log(erasure) - math.log(not_erased) + math.log(2 * math.cosh(epsilon / 2))
        steps = log_beta + np.log(np.arange(count, 0, -1) / np.arange(1, count + 1))
    else:
        beta = erasure / not_erased * 2 * math.cosh(epsilon / 2)
        if beta < 1e-290:
            return _binomial(count, epsilon)
        steps = np.log(_coefficient_ratios(count, beta))
    return _from_steps(np.concatenate([epsilon / 2 + steps, epsilon / 2 - steps[::-1]]))


def _coefficient_ratios(count: int, beta: float) -> Array:
    """c_n / c_(n-1), n = 1..count, for c_n the coefficients of p = (1 + beta z + z^2)^count, from A p' = count A' p."""
    ratio = count * beta
    ratios = [ratio]
    top, double_top = count + 1, 2 * count + 2
    for n in range(2, top):
        ratio = ((top - n) * beta + (double_top - n) / ratio) / n
        ratios.append(ratio)
    return np.array(ratios)


def _binomial(count: int, epsilon: float) -> Array:
    """The distribution without erasure: every other entry has probability zero."""
    i = np.arange(1, count + 1)
    law = np.full(2 * count + 1, -np.inf)
    law[::2] = _from_steps(np.log((count - i + 1) / i) + epsilon)
    return law


def _from_steps(steps: Array) -> Array:
    """Normalized log masses from their differences, summed outward from the mode, which minimizes rounding."""
    mode = int(np.argmax(np.concatenate([[0.0], np.cumsum(steps)])))
    left = -np.cumsum(steps[:mode][::-1])[::-1]
    law = np.concatenate([left, [0.0], np.cumsum(steps[mode:])])
    return np.asarray(law - math.log(math.fsum(np.exp(law).tolist())))


_MAX_DRAWS = 10**7
"""The largest number of mechanisms in one composition; every multiple of epsilon is listed."""


@dataclass(frozen=True, eq=False, repr=False)
class KFold(Result):
    """The guarantees of a k-fold adaptive composition: (epsilons[i], deltas[i])-DP for every i.

    - `epsilon`, `delta`, `eta`, `count` : the guarantee of each of the `count` mechanisms; epsilon in nats.
    - `indices`, `epsilons`, `deltas` : the listed multiples j of epsilon, and arrays of the same length. Deltas are
      rounded up by a relative error of less than `relative_error`, and to at least 1e-300.
    - `log_deltas` : the log of the part of delta that finite privacy losses cause, valid also far below 1e-300.

    Between the listed points delta is linear in e^epsilon, so `delta_at` and `epsilon_at` are exact, too.
    """

    epsilon: float
    delta: float
    eta: float
    count: int
    indices: npt.NDArray[np.intp]
    epsilons: Array
    deltas: Array
    log_deltas: Array
    relative_error: float
    _all: Array = field(repr=False)

    def _columns(self) -> dict[str, list[Any]]:
        return {"epsilon": self.epsilons.tolist(), "delta": self.deltas.tolist()}

    def total_variation(self) -> Guarantee:
        """Return the total variation of the composition, the delta at epsilon 0 [GI, Thm 2]."""
        value = float(self._all[0])
        lower = max(0.0, value * (1 - self.relative_error) - 1e-300)
        return Guarantee("total_variation", value, lower, None, True, "[GI, Thm 2]")

    def delta_at(self, epsilon: Any) -> float:
        """Return the smallest delta such that the composition is (epsilon, delta)-DP."""
        epsilon = any_loss(epsilon)
        if epsilon < 0:
            return mirrored(0.0, self.delta_at(-epsilon), epsilon)[1]
        if self.epsilon == 0 or math.isinf(epsilon):
            return float(self._all[-1])
        # In exact arithmetic, because rounding next to a multiple of epsilon could pick the wrong piece.
        step, point = Fraction(self.epsilon), Fraction(epsilon)
        if point >= self.count * step:
            return float(self._all[-1])
        j = int(point / step)
        part = math.expm1(float(point - (j + 1) * step)) / math.expm1(-self.epsilon)
        low, high = float(self._all[j + 1]), float(self._all[j])
        return up(low + min(1.0, part) * (high - low))

    def epsilon_at(self, delta: Any) -> float:
        """Return the smallest epsilon such that the composition is (epsilon, delta)-DP, rounded up."""
        delta = unit_interval(delta, "delta")
        if delta >= self._all[0]:
            return 0.0
        if delta < self._all[-1]:
            return math.inf
        j = int(np.searchsorted(-self._all, -delta, side="left")) - 1  # deltas[j] > delta >= deltas[j + 1]
        low, high = float(self._all[j + 1]), float(self._all[j])
        part = (delta - low) / (high - low)
        epsilon = (j + 1) * self.epsilon + math.log1p(part * math.expm1(-self.epsilon))
        return min(up(max(epsilon, 0.0), 16), float(_multiples(np.array([j + 1]), self.epsilon)[0]))

    def __repr__(self) -> str:
        return (
            f"KFold({self.count} x (epsilon={ceil_digits(self.epsilon)}, delta={ceil_digits(self.delta)}, "
            f"eta={ceil_digits(self.eta)}): epsilon {ceil_digits(self.epsilon_at(1e-6))} at delta 1e-06, "
            f"total variation {ceil_digits(self.total_variation().value)})"
        )


def k_fold(epsilon: Any, delta: Any = 0.0, eta: Any = None, count: int = 1) -> KFold:
    """Compute the privacy of `count` adaptive (epsilon, delta)-DP and eta-TV mechanisms.

    By [GI, Thm 2] the composition is (j epsilon, deltas[j])-DP for every j = 0..count, and no smaller delta holds. It
    takes O(count) time.

    Parameters
    ----------
    epsilon : In nats, 0 to 700.
    delta : In [0, 1].
    eta : Total variation in [0, 1]; None, or a value above delta + (1 - delta) tanh(epsilon/2), adds no limit.
    count : The number of mechanisms, at most 10^7.

    Returns
    -------
    KFold
        The deltas, shape (count + 1,), and the numbers j.

    Raises
    ------
    InvalidInput
        If a value is out of range.

    Examples
    --------
    >>> k_fold(1.0, eta=0.7 * np.tanh(0.5), count=5).deltas.round(4)
    array([0.6311, 0.4327, 0.2393, 0.0954, 0.0222, 0.    ])
    """
    epsilon, delta, eta = checked(epsilon, delta, eta)
    count = positive_integer(count, "count", maximum=_MAX_DRAWS)
    return _composed(epsilon, delta, eta, count, np.arange(count + 1))


def kov15(epsilon: Any, delta: Any = 0.0, count: int = 1) -> KFold:
    """Compute the composition of `count` (epsilon, delta)-DP mechanisms as in [GI, eq. 6].

    The result is due to Kairouz, Oh and Viswanath. It is `k_fold` without a bound on total variation.

    Parameters
    ----------
    epsilon : In nats, 0 to 700.
    delta : In [0, 1].
    count : The number of mechanisms, at most 10^7.

    Returns
    -------
    KFold
        The deltas at the multiples j with the parity of `count`.

    Raises
    ------
    InvalidInput
        If a value is out of range.

    Examples
    --------
    >>> kov15(1.0, count=3).indices
    array([1, 3])
    """
    epsilon, delta, _ = checked(epsilon, delta, None)
    count = positive_integer(count, "count", maximum=_MAX_DRAWS)
    return _composed(epsilon, delta, None, count, np.arange(count % 2, count + 1, 2))


def _composed(epsilon: float, delta: float, eta: float | None, count: int, indices: npt.NDArray[np.intp]) -> KFold:
    implied_eta = largest_eta(epsilon, delta)
    delta, not_erased = kept_mass(epsilon, delta, eta)
    log_finite = _log_deltas(trinomial_log_pmf(count, epsilon, 1 - not_erased, not_erased)[count + 1 :], epsilon)
    finite = np.exp(log_finite)
    # Log masses near the mode and suffix sums have an error of about an ulp for each step; j epsilon and logarithms
    # have an error of an ulp of themselves.
    logs = np.where(np.isneginf(log_finite), 0.0, np.abs(log_finite))
    error = ULP * (64 + 8 * count + 4 * count * epsilon + 4 * logs)
    finite = np.minimum(np.where(np.isneginf(log_finite), 0.0, np.maximum(finite * (1 + error), 1e-300)), 1.0)
    # 1 - (1 - delta)^k (1 - delta_j) as a sum of positive terms.
    infinite = union([(delta, count)])
    deltas = np.minimum(infinite + (1 - infinite) * finite, 1.0)
    deltas[finite > 0] = np.minimum(np.nextafter(deltas[finite > 0] * (1 + 4 * ULP), 2.0), 1.0)
    epsilons = _multiples(indices, epsilon)
    listed_deltas, listed_log = deltas[indices], log_finite[indices]
    for array in (indices, epsilons, listed_deltas, listed_log, deltas):
        array.setflags(write=False)
    stated_eta = implied_eta if eta is None else min(eta, implied_eta)
    largest = 2 * float(error[log_finite > -690].max(initial=0.0)) + ULP * (16 + 16 * count)
    return KFold(epsilon, delta, stated_eta, count, indices, epsilons, listed_deltas, listed_log, largest, deltas)


def _multiples(indices: npt.NDArray[np.intp], epsilon: float) -> Array:
    """indices * epsilon, rounded up, because the delta of a multiple does not hold for a smaller epsilon."""
    mantissa, exponent = math.frexp(epsilon)
    high = math.ldexp(float(round(math.ldexp(mantissa, 26))), exponent - 26)
    product = indices * np.float64(epsilon)
    rest = (indices * high - product) + indices * (epsilon - high)  # each factor exact up to indices of 2^26
    return np.asarray(np.where(rest > 0, np.nextafter(product, np.inf), product))


def _log_deltas(log_mass: Array, epsilon: float) -> Array:
    """log delta_j for j = 0..k from log Pr(d) for d = 1..k, shape (k + 1,), by a sum of positive terms:

    delta_j = sum_{d > j} Pr(d) (1 - e^((j - d) eps)) = (1 - e^-eps) sum_{i >= j} e^((j - i) eps) Pr(D > i).
    """
    k = len(log_mass)
    if epsilon == 0:
        return np.full(k + 1, -np.inf)
    j = np.arange(k)
    tail = np.logaddexp.accumulate(log_mass[::-1])[::-1]
    weighted_tail = np.logaddexp.accumulate((tail - j * epsilon)[::-1])[::-1] + j * epsilon
    return np.append(weighted_tail + math.log(-math.expm1(-epsilon)), -np.inf)


def gaussian_total_variation(mu: float, count: int = 1) -> float:
    """Compute the total variation of `count` mu-GDP mechanisms together [GI, section VI-D].

    It is 2 Phi(mu sqrt(count)/2) - 1. Under mu-GDP, Gaussian differential privacy, reports are at least as hard to
    distinguish as N(0, 1) and N(mu, 1).

    Parameters
    ----------
    mu : At least 0.
    count : The number of mechanisms.

    Returns
    -------
    float
        The total variation, in [0, 1].

    Examples
    --------
    >>> round(gaussian_total_variation(1.0, 4), 9)
    0.682689492
    """
    mu, count = nonnegative(mu, "mu"), positive_integer(count, "count", maximum=MAX_USES)
    return math.erf(mu * math.sqrt(count) / (2 * math.sqrt(2)))


def gaussian_trade_off(mu: float, type_one: Any) -> Array:
    """Compute G_mu: the smallest type II error of a test of N(0, 1) against N(mu, 1).

    Parameters
    ----------
    mu : At least 0 [GI, eq. 13].
    type_one : The type I error: a number or an array of any shape, in [0, 1].

    Returns
    -------
    Array
        The type II errors, in the shape of `type_one`.

    Examples
    --------
    >>> gaussian_trade_off(1.0, [0.05, 0.5]).round(6)
    array([0.740489, 0.158655])
    """
    from scipy.special import ndtr, ndtri

    t = type_one_errors(type_one)
    return np.asarray(ndtr(-ndtri(t) - nonnegative(mu, "mu")))


@dataclass(frozen=True, eq=False)
class GaussianLimit(Result):
    """The mu of the limit G_mu, and the distance sup |f - G_mu| of the composition's trade-off curve f from it."""

    mu: float
    distance: float


def gaussian_limit(epsilons: Iterable[Any], etas: Iterable[Any]) -> GaussianLimit:
    """Compute the Gaussian limit of composing (epsilon_i)-DP and (eta_i)-TV mechanisms.

    By [GI, Thm 3], mu^2/2 = sum epsilon_i eta_i.

    Parameters
    ----------
    epsilons : In nats, one for each mechanism.
    etas : In [0, 1], as many as epsilons, each at most tanh(epsilon/2).

    Returns
    -------
    GaussianLimit
        `mu`, and `distance`: the largest difference between the composition's own trade-off curve and G_mu, to about
        1e-9, or computed on a grid.

    Raises
    ------
    InvalidInput
        If a value is out of range, or the lengths differ.

    Examples
    --------
    >>> limit = gaussian_limit([0.1] * 100, [0.035] * 100)
    >>> round(limit.mu, 6), limit.distance < 0.001
    (0.83666, True)
    """
    parts, epsilons, etas = [], listed(epsilons, "epsilons"), listed(etas, "etas")
    if len(epsilons) != len(etas):
        raise invalid("etas", f"as many as the {len(epsilons)} epsilons", len(etas))
    for epsilon, eta in zip(epsilons, etas, strict=True):
        e, _, t = checked(epsilon, 0.0, eta)
        parts.append((e, min(t if t is not None else 1.0, largest_eta(e, 0.0))))
    mu = math.sqrt(2 * math.fsum(e * t for e, t in parts))
    if len(set(parts)) == 1:
        e, t = parts[0]
        not_erased = kept_mass(e, 0.0, t)[1]
        log_mass = trinomial_log_pmf(len(parts), e, 1 - not_erased, not_erased)
        losses = e * np.arange(-len(parts), len(parts) + 1, dtype=np.float64)
        return GaussianLimit(mu, _distance(losses, np.exp(log_mass), mu))
    composition = ComposedPair.from_pairs((ParametricPair.from_parameters(e, 0.0, t), 1) for e, t in parts)
    losses, masses = composition.law()
    return GaussianLimit(mu, _distance(losses, masses, mu))


def _distance(losses: Array, masses: Array, mu: float) -> float:
    """sup |f - G_mu| for the trade-off curve f of the pair with these losses and masses under the first hypothesis.

    Between corners f is a line of slope -e^loss and G_mu is convex: only corners, and where the slopes agree, matter.
    """
    from scipy.special import ndtr

    order = np.argsort(-losses)
    losses, p = losses[order], masses[order] / masses.sum()
    with np.errstate(divide="ignore", under="ignore"):
        q = np.exp(np.log(p) - losses)
    # The test rejects the outcomes A with the largest losses: its size is Q(A), its type II error 1 - P(A).
    size = np.minimum(np.concatenate([[0.0], np.cumsum(q)]), 1.0)
    error = np.maximum(1 - np.concatenate([[0.0], np.cumsum(p)]), 0.0)
    corner = np.abs(error - gaussian_trade_off(mu, size)).max()
    if mu == 0:
        return float(corner)
    touching = np.clip(ndtr(-(losses / mu + mu / 2)), size[:-1], size[1:])
    with np.errstate(over="ignore", invalid="ignore"):
        line = error[:-1] - np.where(touching > size[:-1], np.exp(losses) * (touching - size[:-1]), 0.0)
    tangency = np.abs(line - gaussian_trade_off(mu, touching)).max()
    return float(max(corner, tangency))
