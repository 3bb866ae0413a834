""""""

import math

import numpy as np
import pytest
from mpmath import mp

from ldpopt.mechanisms import gaussian, laplace, staircase
from ldpopt.mechanisms.additive import enlarge, guarantee, log_growth, pair_growth
from ldpopt.mechanisms.noise import gaussian_noise, laplace_noise
from ldpopt.numbers.rounding import toward_privacy


@pytest.mark.parametrize("value", [1e-9, 0.3, 1.0, 40.0, 500.0])
def test_enlarging_undoes_rounding_toward_privacy(value):
    """What is enlarged and then rounded toward privacy is not below the value it came from by more than an ulp."""
    assert enlarge(value) > value
    assert toward_privacy(enlarge(value)) >= value - 4 * math.ulp(value) - 1e-9 * value * (value < 1e-6)
    assert enlarge(math.inf) == math.inf


def test_claims_are_rounded_outward():
    """The interval of a guarantee strictly holds the one it is made of; a lower bound is never negative."""
    made = guarantee("renyi", 0.2, 0.3, "[M, Def 3]", parameters={"order": 2.0})
    assert made.lower < 0.2 < 0.3 < made.value
    assert guarantee("renyi", -1e-9, 0.0, "[M, Def 3]").lower == 0
    assert guarantee("renyi", math.inf, math.inf, "[M, Def 3]").value == math.inf


@pytest.mark.parametrize("mechanism", [laplace(0.1), laplace(2.0), gaussian(0.5), gaussian(5.0), staircase(1.0, 0.2)])
def test_order_two_is_the_chi_squared_of_a_linear_test(mechanism):
    """At order 2 the program is least squares: log(1 + v^2/Var), which needs no quadrature."""
    guarantee = mechanism.restricted_renyi(2.0)
    exact = math.log1p(1 / mechanism.variance)
    assert guarantee.lower <= exact <= guarantee.value
    assert guarantee.value / guarantee.lower - 1 < 1e-8


@pytest.mark.parametrize("mechanism", [laplace(0.05), laplace(3.0), gaussian(0.4), gaussian(4.0), staircase(2.0, 0.7)])
@pytest.mark.parametrize("order", [1.05, 1.5, 3.0, 20.0])
def test_bracket(mechanism, order):
    """The bracket is narrow, holds a scan over features, and lies below the unrestricted divergence."""
    guarantee = mechanism.restricted_renyi(order)
    power = order / (order - 1)
    scan = max(
        power * math.log1p(1 / c) - log_growth(mechanism.noise, c, power)[0]
        for c in np.geomspace(1e-3, 1e3, 40) * max(mechanism.variance, 1)
    )
    assert scan <= guarantee.value * (1 + 1e-12)
    assert guarantee.lower >= scan * (1 - 1e-8)
    assert guarantee.value / guarantee.lower - 1 < 1e-6


@pytest.mark.parametrize("order", [1.2, 4.0])
def test_restriction_never_raises_the_divergence(order):
    """A restricted divergence is at most the Rényi divergence of the pair."""
    for mechanism in (laplace(0.5), laplace(3.0), gaussian(1.0)):
        assert mechanism.restricted_renyi(order).value <= mechanism.pair.renyi(order).value


@pytest.mark.full(but=2)
@pytest.mark.parametrize(("c", "power"), [(0.01, 1.05), (0.01, 3.0), (1.0, 1.05), (1.0, 1.5), (37.0, 1.5), (37.0, 3.0)])
def test_moments_against_fifty_digits(c, power):
    """E|1 + Y/c|^A - 1 for Laplace and normal noise, by quadrature at 50 digits."""
    mp.dps = 50
    for noise, density in (
        (laplace_noise(1.0), lambda y: mp.exp(-y) / 2),
        (gaussian_noise(1.0), lambda y: mp.npdf(y)),
    ):

        def term(y, density=density):
            return density(y) * (abs(1 + y / c) ** power + abs(1 - y / c) ** power - 2)

        truth = float(mp.quad(term, sorted({0, mp.mpf(c) / 2, mp.mpf(c), 2 * mp.mpf(c), 5, 20, 60, 200})))
        value, error = log_growth(noise, c, power)
        assert value == pytest.approx(math.log1p(truth), rel=1e-11)
        assert error <= 1e-10 * value


def test_pair_growth_keeps_its_digits():
    """|1+t|^A + |1-t|^A - 2 to full relative accuracy, across the switch to its series."""
    mp.dps = 50
    for power in (1.01, 1.5, 2.0, 7.3):
        for t in (1e-9, 1e-3, 0.0299, 0.0301, 0.7, 1.0, 5.0):
            truth = (1 + mp.mpf(t)) ** power + abs(1 - mp.mpf(t)) ** power - 2
            assert float(pair_growth(np.array([t]), power)[0]) == pytest.approx(float(truth), rel=3e-11)
