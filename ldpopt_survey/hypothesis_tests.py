"""Test the distribution of the true answers, with power from the marginals of the reports."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from ldpopt.channel import Channel, ChannelLike, as_channel
from ldpopt.errors import invalid
from ldpopt.numbers.tolerances import REDUNDANT_FRACTION
from ldpopt.values.distribution import Array, distribution, positive_integer
from ldpopt.values.results import Result
from ldpopt_survey.estimate.intervals import check_level
from ldpopt_survey.estimate.linear import (
    GeneralizedLeastSquares,
    asymptotic_covariance,
    efficient_loadings,
    pilot_of,
    report_covariance,
)
from ldpopt_survey.estimate.results import LEAST_UNIT_FRACTION, simplex_projection
from ldpopt_survey.estimate.sampled import as_table, as_tables, sampling_variance

MAX_ENUMERATED_TABLES = 200_000
"""The most count tables that are enumerated for an exact power."""


@dataclass(frozen=True, eq=False)
class TestResult(Result):
    """Chi-squared statistic with `degrees` of freedom, and the probability of a larger one under the null.

    denominator : degrees of freedom of the estimated variance. It is inf for a simple random sample; for a complex
    sample
        the reference distribution is Fisher's F instead of chi-squared.

    >>> from ldpopt_survey import goodness_of_fit
    >>> test = goodness_of_fit({0: 40, 1: 60}, [[0.8, 0.2], [0.2, 0.8]], [0.5, 0.5])
    >>> round(test.p_value, 4), test.degrees
    (0.0455, 1)
    """

    __test__ = False

    name: str
    statistic: float
    degrees: int
    p_value: float
    denominator: float = math.inf

    def __str__(self) -> str:
        return f"{self.name}: chi-squared {self.statistic:.4f} on {self.degrees} degrees, p = {self.p_value:.4g}"


@dataclass(frozen=True, eq=False)
class Power(Result):
    """Probability of rejecting: `exact` if all count tables were enumerated, else from noncentral chi-squared."""

    value: float
    exact: bool

    def __float__(self) -> float:
        return self.value


def chi_squared_result(name: str, statistic: float, degrees: int, denominator: float = math.inf) -> TestResult:
    """Return the result of a quadratic-form test, chi-squared or Hotelling's F.

    It is F if the variance has few degrees of freedom.
    """
    if degrees == 0:
        return TestResult(name, 0.0, 0, 1.0, denominator)
    if math.isinf(denominator):
        return TestResult(name, statistic, degrees, float(scipy.special.chdtrc(degrees, statistic)))
    denominator_degrees = denominator - degrees + 1
    f_statistic = statistic * denominator_degrees / (denominator * degrees)
    return TestResult(
        name, statistic, degrees, float(scipy.special.fdtrc(degrees, denominator_degrees, f_statistic)), denominator
    )


def wald_result(
    name: str, d: Array, covariance: Array, denominator: float = math.inf, unit_fractions: Array | None = None
) -> TestResult:
    """Return the result of d^T C^+ d, with one degree of freedom per varying direction.

    unit_fractions : the variances that the primary units show, as fractions of those of C; 1 by default. If one is
        below 1, C has the channel's noise, which is known. Of Hotelling's F with the variances of the units, valid by
        itself, and chi-squared with C, the result is the test with the larger p-value.
    """
    if unit_fractions is None or math.isinf(denominator) or not (unit_fractions < 1).any():
        return _wald_result(name, d, covariance, denominator)
    scale = np.sqrt(np.maximum(unit_fractions, LEAST_UNIT_FRACTION))
    by_units = _wald_result(name, d, covariance * np.outer(scale, scale), denominator)
    by_noise = _wald_result(name, d, covariance, math.inf)
    return max(by_units, by_noise, key=lambda result: result.p_value)


def _wald_result(name: str, d: Array, covariance: Array, denominator: float) -> TestResult:
    if len(d) == 0:
        return chi_squared_result(name, 0.0, 0, denominator)
    if denominator < (varying_directions := int(np.isfinite(_scale(covariance)).sum())):
        raise invalid(name, f"at least {varying_directions} degrees of freedom (clusters less strata)", denominator)
    whitening = whitener(covariance)
    z = d @ whitening
    if not len(z) or np.abs(d - covariance @ (whitening @ z)).max() > 1e-9 * np.abs(d).max():
        raise invalid(name, "reports that vary in every direction tested", "a singular covariance")
    return chi_squared_result(name, float(z @ z), len(z), denominator)


def whitener(covariance: Array) -> Array:
    """Compute W (d, r) with W^T C W = 1, for the r directions with a variance in C.

    W W^T is a generalized inverse of C.
    """
    scale = _scale(covariance)
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    is_positive = values > REDUNDANT_FRACTION
    return np.asarray(vectors[:, is_positive] / np.sqrt(values[is_positive]) / scale[:, None])


def _scale(covariance: Array) -> Array:
    """Return the standard deviations (d,), inf for a variance that is only rounding."""
    scale = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    return np.where(scale > 1e-9 * scale.max(), scale, np.inf)


def noncentral_power(level: Any, degrees: int, noncentrality: float) -> Power:
    """Compute the power of a chi-squared test at `level`; 0 without degrees of freedom.

    It uses the noncentral distribution.
    """
    critical = scipy.special.chdtri(degrees, check_level(level, "level")) if degrees else math.inf
    return Power(_noncentral_tail(critical, degrees, noncentrality) if degrees else 0.0, False)


def _noncentral_tail(x: float, degrees: int, noncentrality: float) -> float:
    """Compute the probability that noncentral chi-squared exceeds x."""
    if (cumulative := float(scipy.special.chndtr(x, degrees, noncentrality))) < 0.999:
        return 1 - cumulative
    from scipy.stats import ncx2  # half a second, for a tail that the difference from 1 does not tell accurately

    return float(ncx2.sf(x, degrees, noncentrality))


def goodness_of_fit(data: Any, channel: ChannelLike, p0: ArrayLike) -> TestResult:
    """Test that the true answers follow `p0`: the score test [Rao].

    The statistic is::

        n s^T (J - 1 1^T)^+ s,  s = Q D^-1 (f - m0)

    Parameters
    ----------
    data : Counts of the m outputs, shape (m,), or n reports, as in `estimate`.
    channel : The channel Q, shape (k, m).
    p0 : A distribution, shape (k,).

    Returns
    -------
    TestResult
        The statistic and its p-value. It has rank(Q) - 1 degrees of freedom, also if the channel does not identify
        every proportion.

    Notes
    -----
    For a square channel the statistic is Pearson's statistic of the reports; for others it leaves out variation that
    answers
    cannot cause. Complex samples use the linearized variance of s and Hotelling's F.

    >>> str(goodness_of_fit({0: 40, 1: 60}, [[0.8, 0.2], [0.2, 0.8]], [0.5, 0.5]))
    'goodness of fit: chi-squared 4.0000 on 1 degrees, p = 0.0455'
    """
    table, channel = as_table(data, channel), as_channel(channel)
    null = _ScoreForm.from_null(channel, p0)
    f = table.frequencies
    if np.any(f[~null.is_possible] > 0):
        return TestResult("goodness of fit", math.inf, null.degrees, 0.0)
    if table.simple:
        return chi_squared_result("goodness of fit", float(table.n * null.form(f[None])[0]), null.degrees)
    sampling = sampling_variance([(table, null.basis.T @ null.loadings)])
    s = null.basis.T @ (null.loadings @ f - 1)
    return wald_result("goodness of fit", s, sampling.covariance, sampling.degrees, sampling.unit_fractions)


def _marginal(channel: Channel, p: ArrayLike, place: str) -> Array:
    """Return the distribution (m,) of reports when answers have the distribution p (k,)."""
    return channel.push(distribution(p, place, size=channel.shape[0], labels=channel.inputs))


@dataclass(frozen=True)
class _ScoreForm:
    """Score statistic per report as a function of frequencies, at a null distribution."""

    loadings: Array
    basis: Array
    variances: Array
    marginal: Array
    is_possible: Any

    @classmethod
    def from_null(cls, channel: Channel, p0: ArrayLike) -> _ScoreForm:
        q, m0 = channel.matrix, _marginal(channel, p0, "p0")
        is_possible = m0 > 0
        loadings = np.where(is_possible, q / np.where(is_possible, m0, 1.0), 0.0)
        information = loadings @ q.T - 1
        values, vectors = np.linalg.eigh((information + information.T) / 2)
        is_positive = values > max(1e-10 * values[-1], 1e-14)  # a constant channel has no information, only rounding
        return cls(loadings, vectors[:, is_positive], values[is_positive], m0, is_possible)

    @property
    def degrees(self) -> int:
        return len(self.variances)

    def form(self, frequencies: Array) -> Array:
        """Compute s^T (J - 1 1^T)^+ s for rows of `frequencies`."""
        scores = ((frequencies - self.marginal) @ self.loadings.T) @ self.basis
        return np.asarray((scores**2 / self.variances).sum(axis=1))


def goodness_of_fit_power(channel: ChannelLike, p0: ArrayLike, p1: ArrayLike, n: int, level: float = 0.05) -> Power:
    """Compute the power of `goodness_of_fit` of `p0` at `level` for the distribution `p1`.

    Parameters
    ----------
    channel : The channel Q, shape (k, m).
    p0, p1 : Distributions, shape (k,).
    n : The number of reports.
    level : The level of significance, in (0, 1).

    Returns
    -------
    Power
        The power in [0, 1]. It is exact, by enumeration, if n reports have at most 200,000 different count tables.
        Otherwise it comes from noncentral chi-squared [Rao], with noncentrality n s1^T (J - 1 1^T)^+ s1, s1 = Q D^-1
        (m1 - m0).

    >>> power = goodness_of_fit_power([[0.8, 0.2], [0.2, 0.8]], [0.5, 0.5], [0.3, 0.7], 500)
    >>> power.exact, round(float(power), 3)
    (True, 1.0)
    """
    channel = as_channel(channel)
    null = _ScoreForm.from_null(channel, p0)
    m1 = _marginal(channel, p1, "p1")
    n, level = positive_integer(n, "n"), check_level(level, "level")
    critical = float(scipy.special.chdtri(null.degrees, level)) if null.degrees else math.inf
    if math.comb(n + len(m1) - 1, len(m1) - 1) <= MAX_ENUMERATED_TABLES:
        tables = compositions(n, len(m1))
        is_rejected = (n * null.form(tables / n) > critical) | (tables[:, ~null.is_possible] > 0).any(axis=1)
        return Power(min(1.0, float(np.exp(log_multinomial(tables, m1))[is_rejected].sum())), True)
    return noncentral_power(level, null.degrees, n * float(null.form(m1[None])[0]))


def respondents_for_power(
    channel: ChannelLike, p0: ArrayLike, p1: ArrayLike, power: float = 0.8, level: float = 0.05
) -> int:
    """Compute the fewest respondents that give `goodness_of_fit` its `power` against `p1`.

    Parameters
    ----------
    channel : The channel, shape (k, m).
    p0, p1 : Distributions, shape (k,).
    power : The target power, in (0, 1), by noncentral chi-squared [Rao].
    level : The level of significance, in (0, 1).

    Returns
    -------
    int
        The number of respondents.

    Raises
    ------
    InvalidInput
        If both distributions give the same reports.

    >>> respondents_for_power([[0.8, 0.2], [0.2, 0.8]], [0.5, 0.5], [0.3, 0.7])
    137
    """
    from scipy.optimize import brentq

    channel = as_channel(channel)
    null = _ScoreForm.from_null(channel, p0)
    noncentrality_per_report = float(null.form(_marginal(channel, p1, "p1")[None])[0])
    power, level = check_level(power, "power"), check_level(level, "level")
    if noncentrality_per_report <= 1e-15:
        raise invalid("p1", "a distribution whose reports differ from those of p0", "one that gives the same reports")
    if power <= level:
        return 1
    critical = scipy.special.chdtri(null.degrees, level)
    upper = 1.0
    while _noncentral_tail(critical, null.degrees, upper) < power:
        upper *= 2
    lower = 0.0 if upper == 1.0 else upper / 2
    noncentrality = brentq(
        lambda x: _noncentral_tail(critical, null.degrees, x) - power, lower, upper, xtol=1e-10 * upper
    )
    return max(1, math.ceil(float(noncentrality) / noncentrality_per_report))


def two_sample(first: Any, second: Any, channel: ChannelLike, other: ChannelLike | None = None) -> TestResult:
    """Test that two groups have the same distribution of true answers.

    The statistic, on k - 1 degrees of freedom, is d^T V^-1 d for the difference d of the unbiased estimates. V is its
    variance at the pooled estimate [Rao; SSW]. Complex samples use linearized variances and Hotelling's F.

    Parameters
    ----------
    first, second : Data as in `estimate`: a count for each of the m outputs, shape (m,), or n reports.
    channel : The channel of the first group, shape (k, m).
    other : The channel of the second group, if it differs, with the same inputs.

    Returns
    -------
    TestResult
        The statistic and its p-value.

    Raises
    ------
    InvalidInput
        If the channels have different inputs.

    >>> str(two_sample({0: 40, 1: 60}, {0: 60, 1: 40}, [[0.8, 0.2], [0.2, 0.8]]))
    'two samples: chi-squared 8.0000 on 1 degrees, p = 0.004678'
    """
    group_channels = (channel, channel if other is None else other)
    channels = (as_channel(group_channels[0]), as_channel(group_channels[1]))
    if channels[0].inputs != channels[1].inputs:
        raise invalid("other channel", f"the inputs {channels[0].inputs[:8]}", channels[1].inputs[:8])
    tables = as_tables((first, second), group_channels)
    n = np.array([table.n for table in tables], dtype=float)
    if channels[0] == channels[1]:
        f = (n[0] * tables[0].frequencies + n[1] * tables[1].frequencies) / n.sum()
        values, fit = GeneralizedLeastSquares().fit(f, channels[0], n.sum())
        pilot = pilot_of(fit, f, n.sum())
    else:
        frequencies = [table.frequencies for table in tables]
        fits = [GeneralizedLeastSquares().fit(f, q, size) for f, q, size in zip(frequencies, channels, n, strict=True)]
        values = n @ np.array([values_of_group for values_of_group, _ in fits]) / n.sum()
        pilots = [pilot_of(fit, f, size) for (_, fit), f, size in zip(fits, frequencies, n, strict=True)]
        pilot = n @ np.array(pilots) / n.sum()
    loadings = [efficient_loadings(q, pilot) for q in channels]
    d = (loadings[0] @ tables[0].frequencies - loadings[1] @ tables[1].frequencies)[:-1]
    degrees, fractions = math.inf, None
    if all(table.simple for table in tables):
        pooled_distribution, sides = simplex_projection(values), zip(channels, tables, loadings, strict=True)
        v = sum(report_covariance(loading, q.push(pooled_distribution)) / table.n for q, table, loading in sides)
    else:
        sampling = sampling_variance([(tables[0], loadings[0]), (tables[1], -loadings[1])])
        v, degrees, fractions = sampling.covariance, sampling.degrees, sampling.unit_fractions[:-1]
    return wald_result("two samples", d, np.asarray(v)[:-1, :-1], degrees, fractions)


def two_sample_power(
    channel: ChannelLike,
    p1: ArrayLike,
    p2: ArrayLike,
    n1: int,
    n2: int,
    level: float = 0.05,
    other: ChannelLike | None = None,
) -> Power:
    """Compute the power of `two_sample` at `level`, by noncentral chi-squared [Rao].

    Parameters
    ----------
    channel : The channel of the first group, shape (k, m).
    p1, p2 : The true distributions of the groups, shape (k,).
    n1, n2 : Their numbers of respondents.
    level : The level of significance, in (0, 1).
    other : The channel of the second group, if it differs.

    Returns
    -------
    Power
        The power in [0, 1].

    >>> round(float(two_sample_power([[0.8, 0.2], [0.2, 0.8]], [0.5, 0.5], [0.4, 0.6], 800, 800)), 4)
    0.6716
    """
    channel = as_channel(channel)
    channels = (channel, channel if other is None else as_channel(other))
    p1, p2 = (
        distribution(p, name, size=channel.shape[0], labels=channel.inputs) for p, name in ((p1, "p1"), (p2, "p2"))
    )
    pooled_distribution = (n1 * p1 + n2 * p2) / (n1 + n2)
    v = sum(asymptotic_covariance(q, pooled_distribution, n) for q, n in zip(channels, (n1, n2), strict=True))
    d = (p1 - p2)[:-1]
    noncentrality = float(d @ np.linalg.solve(np.asarray(v)[:-1, :-1], d)) if len(d) else 0.0
    return noncentral_power(level, len(d), noncentrality)


def compositions(n: int, m: int) -> Array:
    """List all vectors of m non-negative integers that sum to n, in lexicographic order."""
    if n < m:  # mostly zeros
        places = np.array(list(combinations_with_replacement(range(m), n)), dtype=np.int64).reshape(-1, n)[::-1]
        counts = np.zeros((len(places), m))
        np.add.at(counts, (np.arange(len(places))[:, None], places), 1.0)
        return counts
    rows = np.zeros((1, 0), dtype=np.int64)
    rest = np.array([n])
    for _ in range(m - 1):
        repeat = np.repeat(np.arange(len(rows)), rest + 1)
        starts = np.repeat(np.cumsum(rest + 1) - (rest + 1), rest + 1)
        value = np.arange(len(repeat)) - starts
        rows, rest = np.column_stack([rows[repeat], value]), rest[repeat] - value
    return np.column_stack([rows, rest]).astype(np.float64)


def log_multinomial(tables: Array, m: Array) -> Array:
    """Compute the log-probability of every row of counts under the multinomial of `m`."""
    return np.asarray(
        scipy.special.gammaln(tables.sum(axis=1) + 1)
        + (scipy.special.xlogy(tables, m) - scipy.special.gammaln(tables + 1)).sum(axis=1)
    )
