"""How fast two populations are told apart: brackets hold for every channel, and for exact tests of two answers."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import binom

from ldpopt.bounds import chernoff, ghazi_issa, jeffreys_of_total_variation, respondents_to_decide, stein
from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import randomized_response


def exponent(m0, m1):
    """The Chernoff information of two laws, by a search of its own."""
    m0, m1 = np.asarray(m0), np.asarray(m1)
    both = (m0 > 0) & (m1 > 0)

    def log_affinity(s):
        return math.log(np.sum(m0[both] ** s * m1[both] ** (1 - s)))

    return -minimize_scalar(log_affinity, bounds=(1e-6, 1 - 1e-6), method="bounded", options={"xatol": 1e-9}).fun


def test_chernoff_reaches_the_published_value():
    """The information of P = (.6, .3, .1) and its mirror image at epsilon 2 and eta .5 is the published one."""
    found = chernoff([0.6, 0.3, 0.1], [0.1, 0.3, 0.6], 2.0, 0.5)
    assert found.lower == pytest.approx(0.0682736, abs=5e-8)
    assert found.lower <= found.upper <= found.lower * (1 + 1e-4)


@pytest.mark.full(but=1)
@pytest.mark.parametrize("seed", range(3))
def test_no_channel_decides_faster_than_the_design(seed):
    """Random channels within the limit stay below `upper`, and the reports of the design reach `lower`."""
    rng = np.random.default_rng(seed)
    k, epsilon = 4, (0.3, 1.0, 3.0)[seed]
    p0, p1 = rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k))
    fastest, farthest = chernoff(p0, p1, epsilon, tolerance=1e-3), stein(p0, p1, epsilon)
    for _ in range(40):
        sets = rng.integers(0, 2, (5, k)).astype(bool)
        columns = np.vstack([np.where(sets, math.exp(epsilon), 1.0), np.where(~sets, math.exp(epsilon), 1.0)])
        q = (columns / columns.sum(axis=0)).T
        assert exponent(p0 @ q, p1 @ q) <= fastest.upper * (1 + 1e-9)
        assert float(np.sum(p0 @ q * np.log(p0 @ q / (p1 @ q)))) <= farthest.upper * (1 + 1e-9)
    reached = fastest.design.channel.matrix
    assert exponent(p0 @ reached, p1 @ reached) >= fastest.lower * (1 - 1e-9)


def test_of_two_answers_randomized_response_is_the_fastest():
    """There all divergences have one optimum, whose exponent is that of its reports."""
    p0, p1 = np.array([0.9, 0.1]), np.array([0.4, 0.6])
    q = randomized_response(2, 1.0).matrix
    found = chernoff(p0, p1, 1.0, tolerance=1e-3)
    assert found.lower * (1 - 1e-9) <= exponent(p0 @ q, p1 @ q) <= found.upper * (1 + 1e-9)


@pytest.mark.full(but=1)
@pytest.mark.parametrize(("alpha", "beta"), [(0.05, 0.05), (0.01, 0.2), (0.3, 0.3)])
def test_the_number_of_an_exact_test_lies_between(alpha, beta):
    """Of two answers the likelihood ratio test counts one report: its least number of respondents is found exactly."""
    p0, p1 = np.array([0.9, 0.1]), np.array([0.4, 0.6])
    q = randomized_response(2, 1.0).matrix
    a, b = (p0 @ q)[1], (p1 @ q)[1]
    counts = (n for n in range(1, 1000) if any(
        binom.sf(t, n, a) <= alpha and binom.cdf(t, n, b) <= beta for t in range(n)))  # fmt: skip
    found, fewest = respondents_to_decide(p0, p1, alpha, beta, 1.0), next(counts)
    assert found.lower <= fewest  # no interactive protocol does with fewer, so no test without a coin
    assert _reached(found.upper, a, b, alpha) <= beta * (1 + 1e-9)
    assert _reached(found.lower - 1, a, b, alpha) > beta
    assert found.upper <= 1.3 * found.lower


def _reached(n, a, b, alpha):
    """The least second error of n reports where the first is alpha, of the test that may toss a coin at its end."""
    counts = np.arange(n + 1)
    order = np.argsort(-(binom.logpmf(counts, n, b) - binom.logpmf(counts, n, a)))
    first, second = binom.pmf(counts, n, a)[order], binom.pmf(counts, n, b)[order]
    taken = np.clip((alpha - (np.cumsum(first) - first)) / first, 0.0, 1.0)
    return 1 - float(taken @ second)


def test_errors_of_a_coin_need_no_respondent():
    """With alpha + beta of 1 and more no respondent is needed."""
    assert respondents_to_decide([0.9, 0.1], [0.4, 0.6], 0.5, 0.5, 1.0).lower == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ([0.5, 0.5], [0.5, 0.5], 0.1, 0.1, 1.0),
        ([0.9, 0.1], [0.4, 0.6], 0.0, 0.1, 1.0),
        ([0.9, 0.1], [0.4, 0.6], 0.1, 1.0, 1.0),
        ([0.9, 0.1], [0.4, 0.6], 0.1, math.nan, 1.0),
        ([0.9, 0.1], [0.4, 0.6], 0.1, 0.1, 1.0, 0.0),
        ([0.9, 0.1], [0.4, 0.6], 0.1, 0.1, 1e-8, 1e-300),
        ([0.9, 0.1], [0.4, 0.6], 0.1, 0.1, -1.0),
    ],
)
def test_impossible_decisions_are_refused(arguments):
    """Equal populations, errors outside (0, 1) and limits without any information are refused."""
    with pytest.raises(InvalidInput):
        respondents_to_decide(*arguments)


def test_tiny_errors_have_the_numbers_of_the_affinities():
    """Where rounding hides an error, the exact law of the test is not used."""
    found = respondents_to_decide([0.9, 0.1], [0.4, 0.6], 1e-200, 1e-200, 1.0)
    assert 1000 < found.lower <= found.upper < 3 * found.lower


def test_jeffreys_of_total_variation_drops_the_factor_of_ghazi_issa():
    """`jeffreys_of_total_variation` is the bound of [GI, Thm 7] without min(2, e^epsilon), and no larger alone."""
    for epsilon in (0.1, 1.0, 5.0, 700.0):
        for eta in (0.01, 0.3, 1.0):
            new = jeffreys_of_total_variation([0.8, 0.2], [0.1, 0.9], epsilon, eta)
            old = ghazi_issa([0.8, 0.2], [0.1, 0.9], epsilon, eta)
            assert new <= old / min(2.0, math.exp(epsilon)) * (1 + 1e-12)
