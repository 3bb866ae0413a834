"""Exact composition of k mechanisms that are (epsilon, delta)-DP and of bounded total variation."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.composition.totals import union
from ldpopt.composition.trinomial import trinomial_log_pmf
from ldpopt.distribution import Array, positive_integer, unit_interval
from ldpopt.privacy.parameters import checked, kept_mass, largest_eta, point_at_least_zero
from ldpopt.results import Result
from ldpopt.rounding import ULP, up

_MOST = 10**7
"""The largest number of mechanisms in one composition; every multiple of epsilon is listed."""


@dataclass(frozen=True, eq=False, repr=False)
class KFold(Result):
    """The guarantees of a k-fold adaptive composition: (epsilons[i], deltas[i])-DP for every i.

    epsilon, delta, eta, count : the guarantee of each of the `count` mechanisms; epsilon in nats.
    indices : the multiples j of epsilon that are listed.
    epsilons, deltas : arrays of the same length. Deltas are rounded up by a relative error of less than
        `relative_error`; those below 1e-300 are rounded up to it.
    log_deltas : the log of the part of delta that finite privacy losses cause, valid also far below 1e-300.

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

    @property
    def total_variation(self) -> float:
        """The total variation of the composition, rounded up: delta at epsilon 0."""
        return float(self._all[0])

    def delta_at(self, epsilon: Any) -> float:
        """The smallest delta for which the composition is (epsilon, delta)-DP, for any real epsilon >= 0."""
        epsilon = point_at_least_zero(epsilon)
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
        """The smallest epsilon for which the composition is (epsilon, delta)-DP, rounded up; inf if there is none."""
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
            f"KFold({self.count} x (epsilon={self.epsilon:g}, delta={self.delta:g}, eta={self.eta:g}): "
            f"epsilon {self.epsilon_at(1e-6):.6g} at delta 1e-06, total variation {self.total_variation:.6g})"
        )


def k_fold(epsilon: Any, delta: Any = 0.0, eta: Any = None, count: int = 1) -> KFold:
    """The privacy of `count` adaptively chosen (epsilon, delta)-DP and eta-TV mechanisms together [GI, Thm 2].

    epsilon : nats, 0 to 700. delta : in [0, 1]. eta : total variation in [0, 1]; None, or a value above
        delta + (1 - delta) tanh(epsilon/2), adds no limit. count : the number of mechanisms, at most 10^7.

    The composition is (j epsilon, deltas[j])-DP for every j = 0..count, and no smaller delta holds. All are computed
    in O(count) time from the law of the dominating pair. Raises `InvalidInput` for values out of range.

    >>> composed = k_fold(1.0, eta=0.7 * np.tanh(0.5), count=5)
    >>> composed.deltas.round(4)
    array([0.6311, 0.4327, 0.2393, 0.0954, 0.0222, 0.    ])
    >>> round(k_fold(0.1, eta=0.7 * np.tanh(0.05), count=10_000).epsilon_at(1e-6), 6)
    73.8905
    """
    epsilon, delta, eta = checked(epsilon, delta, eta)
    count = positive_integer(count, "count", maximum=_MOST)
    return _composed(epsilon, delta, eta, count, np.arange(count + 1))


def kov15(epsilon: Any, delta: Any = 0.0, count: int = 1) -> KFold:
    """The composition of `count` (epsilon, delta)-DP mechanisms by Kairouz, Oh and Viswanath [GI, eq. 6].

    It is `k_fold` without a bound on total variation; only the multiples j with the parity of `count` are listed.

    >>> kov15(1.0, count=3).indices
    array([1, 3])
    """
    epsilon, delta, _ = checked(epsilon, delta, None)
    count = positive_integer(count, "count", maximum=_MOST)
    return _composed(epsilon, delta, None, count, np.arange(count % 2, count + 1, 2))


def _composed(epsilon: float, delta: float, eta: float | None, count: int, indices: npt.NDArray[np.intp]) -> KFold:
    implied = largest_eta(epsilon, delta)
    delta, kept = kept_mass(epsilon, delta, eta)
    log_finite = _log_deltas(trinomial_log_pmf(count, epsilon, 1 - kept, kept)[count + 1 :], epsilon)
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
    listed, listed_log = deltas[indices], log_finite[indices]
    for array in (indices, epsilons, listed, listed_log, deltas):
        array.setflags(write=False)
    shown = implied if eta is None else min(eta, implied)
    largest = 2 * float(error[log_finite > -690].max(initial=0.0)) + ULP * (16 + 16 * count)
    return KFold(epsilon, delta, shown, count, indices, epsilons, listed, listed_log, largest, deltas)


def _multiples(indices: npt.NDArray[np.intp], epsilon: float) -> Array:
    """indices * epsilon, rounded up, because the delta of a multiple does not hold for a smaller epsilon."""
    mantissa, exponent = math.frexp(epsilon)
    high = math.ldexp(float(round(math.ldexp(mantissa, 26))), exponent - 26)
    product = indices * np.float64(epsilon)
    rest = (indices * high - product) + indices * (epsilon - high)  # each factor exact up to indices of 2^26
    return np.asarray(np.where(rest > 0, np.nextafter(product, np.inf), product))


def _log_deltas(log_mass: Array, epsilon: float) -> Array:
    """log delta_j for j = 0..k from log Pr(d) for d = 1..k, shape (k + 1,).

    delta_j = sum_{d > j} Pr(d) (1 - e^((j - d) eps)) = (1 - e^-eps) sum_{i >= j} e^((j - i) eps) Pr(D > i). The last
    sum has only positive terms, so nothing cancels even for small epsilon.
    """
    k = len(log_mass)
    if epsilon == 0:
        return np.full(k + 1, -np.inf)
    j = np.arange(k)
    tail = np.logaddexp.accumulate(log_mass[::-1])[::-1]
    weighted = np.logaddexp.accumulate((tail - j * epsilon)[::-1])[::-1] + j * epsilon
    return np.append(weighted + math.log(-math.expm1(-epsilon)), -np.inf)
