"""The least share of the chi-squared divergence that the binary mechanism keeps: docs/research/binary-share.md."""

from fractions import Fraction

import numpy as np
import pytest

from ldpopt import Divergence, LocalDP, TotalVariation, optimal_channel
from ldpopt.divergences import CHI_SQUARED, KL, SQUARED_HELLINGER
from ldpopt.mechanisms import binary


def least_share(e):
    """min(4 e, 2 (e + 2)) / (e + 1)^2."""
    return min(4 * e, 2 * (e + 2)) / (e + 1) ** 2


@pytest.mark.parametrize("epsilon", [0.1, np.log(2.0), 1.5, 4.0])
def test_chi_squared_never_keeps_less(epsilon):
    """BIN >= min(4e, 2(e+2))/(e+1)^2 OPT for chi-squared: random and hostile pairs, among them the limit's own kind."""
    rng = np.random.default_rng(0)
    e, shares = np.exp(epsilon), []
    for n in range(60):
        k = int(rng.integers(2, 8))
        p0, p1 = rng.dirichlet(np.full(k, rng.choice([0.2, 1.0])), 2)
        if n % 2:  # two rare answers that differ, and common ones that nearly do not
            rare = 10.0 ** rng.uniform(-6, -1)
            p1 = np.array([rare, 0.5 - rare, 0.5 - rare, rare])
            tilt = rare * rng.uniform(0.2, 1.0)
            p0 = p1 + np.array([tilt, 1e-3 * tilt, -1e-3 * tilt, -tilt])
        utility = Divergence(CHI_SQUARED, p0, p1)
        optimum = optimal_channel(utility, LocalDP(epsilon), certify=False).value
        shares.append(utility.value(binary(p0, p1, epsilon)) / optimum)
    assert min(shares) >= least_share(e) * (1 - 1e-9)
    assert min(shares) <= least_share(e) * 1.02


@pytest.mark.parametrize("e", [Fraction(3, 2), Fraction(2), Fraction(5), Fraction(50)])
def test_the_limit_is_reached_in_fractions(e):
    """Rare answers of mass s, half of s apart, others even: the share of chi-squared nears the formula."""
    s = Fraction(1, 10**8)
    p1 = [s, Fraction(1, 2) - s, Fraction(1, 2) - s, s]
    d = [s / 2, s / 1000, -s / 1000, -s / 2]

    def kept(blocks):
        m = len(blocks)
        parts = [(sum(d[x] for x in block), sum(p1[x] for x in block)) for block in blocks]
        return sum(((e - 1) * a) ** 2 / (1 + (e - 1) * b) for a, b in parts) / (e + m - 1)

    best = max(kept([[0], [1, 2], [3]]), kept([[0], [1, 2, 3]]))
    assert abs(kept([[0, 1], [2, 3]]) / best / least_share(e) - 1) < Fraction(1, 100)


@pytest.mark.parametrize("f", [KL, SQUARED_HELLINGER])
def test_other_smooth_divergences_come_as_low(f):
    """Near ratio one every smooth f is chi-squared, so that the least share of each is at most the formula."""
    p1 = np.array([1e-4, 0.4999, 0.4999, 1e-4])
    p0 = p1 + np.array([1e-5, 1e-9, -1e-9, -1e-5])
    utility = Divergence(f, p0, p1)
    for epsilon in (0.5, 2.0, 4.0):
        share = utility.value(binary(p0, p1, epsilon)) / optimal_channel(utility, LocalDP(epsilon), certify=False).value
        assert share == pytest.approx(least_share(np.exp(epsilon)), rel=1e-2)


@pytest.mark.parametrize("f", [CHI_SQUARED, KL])
def test_erasing_the_pure_optimum_loses_nearly_a_quarter(f):
    """At e^epsilon = 2 and a small cap the erased optimum keeps max((E+2)^-1 (E+1), (1 + 1/E)/2) = 3/4 [GI, Thm 8]."""
    p1 = np.array([1e-4, 0.9998, 1e-4])
    p0 = p1 + np.array([1e-5, 0.0, -1e-5])
    utility, epsilon = Divergence(f, p0, p1), float(np.log(2.0))
    eta = 0.1 * np.tanh(epsilon / 2)
    pure = optimal_channel(utility, LocalDP(epsilon), certify=False).value
    capped = optimal_channel(utility, [LocalDP(epsilon), TotalVariation(eta)])
    assert capped.certified
    assert 0.1 * pure / capped.value == pytest.approx(0.75, rel=1e-3)
