"""Test between two distributions: error exponents of the best test, and its exact power."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from ldpopt.channel import ChannelLike, as_channel
from ldpopt.divergences import KL
from ldpopt.errors import invalid
from ldpopt.values.distribution import Array, positive_integer
from ldpopt.values.results import Result
from ldpopt_survey.estimate.intervals import check_level
from ldpopt_survey.hypothesis_tests import MAX_ENUMERATED_TABLES, Power, compositions, log_multinomial


def stein_exponent(channel: ChannelLike, p0: Any, p1: Any) -> float:
    """Compute the Chernoff-Stein exponent KL(p0 Q || p1 Q) [CT, Thm 11.8.3].

    If the probability of a false alarm under p0 is held below a constant, the least probability of missing p1 falls as
    exp(-n exponent).

    Parameters
    ----------
    channel : The channel Q, shape (k, m).
    p0, p1 : Distributions, shape (k,).

    Returns
    -------
    float
        The exponent in nats per respondent.

    >>> round(stein_exponent([[0.75, 0.25], [0.25, 0.75]], [1, 0], [0, 1]), 6)  # log(3) / 2
    0.549306
    """
    channel = as_channel(channel)
    return KL(channel.push(p0), channel.push(p1))


def chernoff_exponent(channel: ChannelLike, p0: Any, p1: Any) -> float:
    """Compute the Chernoff exponent -min_{0<=s<=1} log sum m0^s m1^(1-s), nats per respondent.

    The larger of the two error probabilities of the best test falls as exp(-n exponent) [CT, Thm 11.9.1].

    Parameters
    ----------
    channel : The channel Q, shape (k, m), with marginals m0 = p0 Q and m1 = p1 Q.
    p0, p1 : Distributions, shape (k,).

    Returns
    -------
    float
        The exponent in nats per respondent. It is inf if no report is possible under both distributions.

    >>> round(chernoff_exponent([[0.75, 0.25], [0.25, 0.75]], [1, 0], [0, 1]), 6)  # -log(2 sqrt(3/16))
    0.143841
    """
    from scipy.optimize import minimize_scalar

    channel = as_channel(channel)
    m0, m1 = channel.push(p0), channel.push(p1)
    is_common = (m0 > 0) & (m1 > 0)
    if not is_common.any():
        return math.inf
    a, b = m0[is_common], m1[is_common]

    def excess(s: float) -> float:
        # The sum is convex in s. Its difference from 1 is computed, which keeps digits when the marginals nearly agree.
        tilt = s * np.log1p((a - b) / b)
        return float((b * np.expm1(tilt)).sum() + b.sum() - 1)

    best = minimize_scalar(excess, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-10})
    return max(0.0, -math.log1p(min(float(best.fun), excess(0.0), excess(1.0))))


def neyman_pearson_power(channel: ChannelLike, p0: Any, p1: Any, n: int, level: float = 0.05) -> Power:
    """Compute the largest power of a test of `p0` against `p1` with n reports, exactly.

    The best test is the likelihood-ratio test, randomized at its threshold [CT, Thm 11.7.1].

    Parameters
    ----------
    channel : The channel, shape (k, m).
    p0, p1 : Distributions, shape (k,).
    n : The number of reports.
    level : The level of significance, in (0, 1).

    Returns
    -------
    Power
        The power in [0, 1].

    Raises
    ------
    InvalidInput
        If n reports have more than 200,000 different count tables; then `stein_exponent` and `chernoff_exponent` give
        the rates of the errors.

    >>> round(float(neyman_pearson_power([[0.75, 0.25], [0.25, 0.75]], [1, 0], [0, 1], 10)), 4)
    0.9521
    """
    channel = as_channel(channel)
    m0, m1 = channel.push(p0), channel.push(p1)
    n, level = positive_integer(n, "n"), check_level(level, "level")
    if math.comb(n + len(m0) - 1, len(m0) - 1) > MAX_ENUMERATED_TABLES:
        raise invalid("n", f"at most {MAX_ENUMERATED_TABLES} count tables over {len(m0)} outputs", n)
    tables = compositions(n, len(m0))
    log0, log1 = log_multinomial(tables, m0), log_multinomial(tables, m1)
    is_possible = np.isfinite(log0) | np.isfinite(log1)
    log0, log1 = log0[is_possible], log1[is_possible]
    order = np.argsort(log0 - log1, kind="stable")
    mass0, mass1 = np.exp(log0[order]), np.exp(log1[order])
    false_alarm = np.cumsum(mass0)
    threshold = int(np.searchsorted(false_alarm, level, side="right"))
    if threshold == len(false_alarm):
        return Power(min(1.0, float(mass1.sum())), True)
    threshold_probability = (level - (false_alarm[threshold - 1] if threshold else 0.0)) / mass0[threshold]
    return Power(min(1.0, float(mass1[:threshold].sum() + threshold_probability * mass1[threshold])), True)


MAX_SEARCHED_TABLES = 3000
"""The most count tables that are enumerated for each number of respondents that is tried."""


@dataclass(frozen=True, eq=False)
class RequiredRespondents(Result):
    """Respondents who give the best test its power: the fewest if `exact`, else approximately."""

    respondents: int
    exact: bool


def respondents_to_distinguish(
    channel: ChannelLike, p0: Any, p1: Any, power: float = 0.8, level: float = 0.05
) -> RequiredRespondents:
    """Compute the respondents that the best test of `p0` against `p1` needs for `power`.

    The best test is the likelihood-ratio test [CT, Thm 11.7.1]. If there are few count tables, the number is exact, by
    enumeration. Otherwise the log-likelihood ratio is approximated as normal. If some report is possible under one
    distribution only, the Chernoff bound gives a number that is enough, but not the fewest.

    Parameters
    ----------
    channel : The channel, shape (k, m).
    p0, p1 : Distributions, shape (k,).
    power : The target power, in (0, 1).
    level : The level of significance, in (0, 1).

    Returns
    -------
    RequiredRespondents
        The number of respondents.

    Raises
    ------
    InvalidInput
        If both distributions give the same reports.

    >>> respondents_to_distinguish([[0.75, 0.25], [0.25, 0.75]], [1, 0], [0, 1])
    RequiredRespondents(respondents=6, exact=True)
    """
    channel = as_channel(channel)
    m0, m1 = _by_ratio(channel.push(p0), channel.push(p1))
    power, level = check_level(power, "power"), check_level(level, "level")
    # A rounding error in m0 and m1 enters the Hellinger distance squared; it would enter the exponent directly.
    if len(m0) == 1 or not float(((np.sqrt(m0) - np.sqrt(m1)) ** 2).sum()) > 1e-28:
        raise invalid("p1", "a distribution whose reports differ from those of p0", "one that gives the same reports")
    if power <= level:
        return RequiredRespondents(1, True)
    approximation = _approximate_respondents(m0, m1, power, level)

    def can_enumerate(n: int) -> bool:
        return math.comb(n + len(m0) - 1, len(m0) - 1) <= MAX_SEARCHED_TABLES

    def has_power(n: int) -> bool:
        return float(neyman_pearson_power(np.eye(len(m0)), m0, m1, n, level)) >= power

    # More reports never carry less information, so the power rises with n.
    high = 1
    while can_enumerate(high) and not has_power(high):
        high *= 2
    if not can_enumerate(high):
        return RequiredRespondents(approximation, False)
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if has_power(middle) else (middle, high)
    return RequiredRespondents(high, True)


def _by_ratio(m0: Array, m1: Array) -> tuple[Array, Array]:
    """Return the distributions of the likelihood ratio: outputs whose ratios agree up to rounding are merged."""
    is_possible = m0 + m1 > 0
    m0, m1 = m0[is_possible], m1[is_possible]
    fraction = m0 / (m0 + m1)
    order = np.argsort(fraction, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], np.diff(fraction[order]) > 1e-12]))
    return np.add.reduceat(m0[order], starts), np.add.reduceat(m1[order], starts)


def _approximate_respondents(m0: Array, m1: Array, power: float, level: float) -> int:
    """Return the respondents by the normal distribution, or by the Chernoff bound if a ratio is infinite."""
    if not (m0.min() > 0 and m1.min() > 0):
        exponent = chernoff_exponent(np.eye(len(m0)), m0, m1)
        return math.ceil(-math.log(min(level, 1 - power)) / exponent) if exponent < math.inf else 1
    ratio = np.log1p((m1 - m0) / m0)
    means = [float(m @ ratio) for m in (m0, m1)]
    deviations = [math.sqrt(max(float(m @ (ratio - mean) ** 2), 0.0)) for m, mean in zip((m0, m1), means, strict=True)]
    root = (ndtri(power) * deviations[1] - ndtri(level) * deviations[0]) / (means[1] - means[0])
    return max(1, math.ceil(root**2)) if root > 0 else 1
