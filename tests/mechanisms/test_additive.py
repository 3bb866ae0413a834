""""""

import math

import numpy as np
import pytest
from flint import arb
from mpmath import mp

from ldpopt.mechanisms import gaussian, laplace, staircase
from ldpopt.mechanisms.additive import enlarge, guarantee
from ldpopt.numbers.enclosures.adaptive import enclosed
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
def test_the_bracket_encloses_a_scan_over_features(mechanism, order):
    """The bracket is narrow, holds a scan over features, and lies below the unrestricted divergence."""
    guarantee = mechanism.restricted_renyi(order)
    power = order / (order - 1)
    scan = max(
        -enclosed(lambda _, c=c: mechanism.noise.log_drop(arb(c), arb(1) / mechanism.noise.scale, arb(power)))[1]
        for c in (np.geomspace(1e-3, 1e3, 40) * max(mechanism.variance, 1) / mechanism.noise.scale).tolist()
    )
    assert scan <= guarantee.value * (1 + 1e-12)
    assert guarantee.lower >= scan * (1 - 1e-8)
    assert guarantee.value / guarantee.lower - 1 < 1e-6


@pytest.mark.parametrize("order", [1.2, 4.0])
def test_restriction_never_raises_the_divergence(order):
    """A restricted divergence is at most the Rényi divergence of the pair."""
    for mechanism in (laplace(0.5), laplace(3.0), gaussian(1.0)):
        assert mechanism.restricted_renyi(order).value <= mechanism.pair.renyi(order).value


@pytest.mark.full(but=1)
@pytest.mark.parametrize(("c", "power"), [(0.01, 1.05), (0.01, 3.0), (1.0, 1.05), (1.0, 1.5), (37.0, 1.5), (37.0, 3.0)])
def test_moments_agree_with_fifty_digits(c, power):
    """E|Y + c|^A of Laplace, normal and staircase noise, by quadrature at 50 digits: within the ball."""
    mp.dps = 50
    steps = staircase(2.0, 0.3)
    q = mp.exp(-2)
    height = (1 - q) / (2 * (mp.mpf(0.3) + q * (1 - mp.mpf(0.3))))
    falls = [mp.mpf(n) + (mp.mpf(0.3) if half else 0) for n in range(70) for half in (0, 1)]
    for mechanism, density, cuts in (
        (laplace(1.0), lambda y: mp.exp(-y) / 2, [0, 5, 20, 60, 200]),
        (gaussian(1.0), lambda y: mp.npdf(y), [0, 1, 3, 6, 10, 20, 40]),
        (steps, lambda y: height * q ** (mp.floor(y) + (y - mp.floor(y) >= mp.mpf(0.3))), falls),
    ):

        def term(y, density=density):
            return density(y) * (abs(c + y) ** mp.mpf(power) + abs(c - y) ** mp.mpf(power))

        truth = mp.quad(term, sorted({*map(mp.mpf, cuts), mp.mpf(c)}))
        low, high = enclosed(lambda _, m=mechanism: m.noise.moment(arb(c), arb(power)))
        assert low * (1 - 1e-13) <= truth <= high * (1 + 1e-13)
        assert high / low - 1 <= 1e-13


@pytest.mark.parametrize(
    "mechanism", [laplace(1e-9), laplace(700.0), gaussian(1e6), gaussian(1e-3), staircase(40.0, 1.0)]
)
def test_the_ends_of_the_parameters_are_enclosed(mechanism):
    """At order 2 the value is log(1 + v^2/Var) over all scales; the two ends hold it and are near each other."""
    found = mechanism.restricted_renyi(2.0)
    with mp.workdps(50):
        exact = mp.log1p(mechanism.sensitivity**2 / mp.mpf(mechanism.variance))
    assert found.lower * (1 - 1e-13) <= exact <= found.value * (1 + 1e-13)
    assert found.value <= found.lower * (1 + 1e-6)
