"""Gaussian mechanisms together are one Gaussian [DRS, Cor 3.3], checked in high precision."""

import math

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from ldpopt.composition.direction import GaussianLaw
from ldpopt.composition.laws import UNDERFLOW
from ldpopt.mechanisms.gaussian import GaussianPair


def stick(mu, epsilon):
    """The hockey stick of two normals mu apart."""
    a, b = mpf(epsilon) / mu - mu / 2, mpf(epsilon) / mu + mu / 2
    return mpmath.ncdf(-a) - mpmath.exp(epsilon) * mpmath.ncdf(-b)


@pytest.mark.parametrize(
    "counted",
    [
        [(1.0, 1)],
        [(0.3, 7), (1.7, 2)],
        [(3e-200, 5), (4e-200, 1)],
        [(1e150, 2), (1.0, 3)],
        [(1e-9, 10**12)],
        [(0.75, 16)],
    ],
)
def test_mu_is_the_root_of_the_sum_of_squares(counted):
    """mu lies between the two floats, which are a few ulps apart."""
    law = GaussianLaw.of((GaussianPair(mu), count) for mu, count in counted)
    with mpmath.workdps(60):
        exact = mpmath.sqrt(mpmath.fsum(mpf(mu) ** 2 * count for mu, count in counted))
        assert law.low <= exact <= law.high
    assert law.high <= law.low * (1 + 1e-14)


@pytest.mark.parametrize("mu", [1e-5, 0.2, 1.0, 9.0])
@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 0.5, 4.0, 60.0])
def test_delta_is_enclosed(mu, epsilon):
    """The hockey stick in 60 digits lies within the stated error of the value, which is above it."""
    law = GaussianLaw(mu, mu)
    value, error = law.delta(epsilon)
    with mpmath.workdps(60):
        exact = stick(mpf(mu), epsilon)
    assert value >= exact
    assert value - error <= exact
    assert error <= 1e-6 * exact + 2 * UNDERFLOW
    assert law.bulk(epsilon) == (value, error)
    assert law.delta(math.inf) == (0.0, UNDERFLOW)


@pytest.mark.parametrize("mu", [1e-3, 1.0, 30.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-3, 0.2])
def test_epsilon_is_the_least_that_is_proved(mu, delta):
    """At epsilon delta is not exceeded, and at a little less it is, unless none is needed."""
    law = GaussianLaw(mu, mu)
    found = law.epsilon(delta)
    with mpmath.workdps(60):
        assert stick(mpf(mu), found) <= delta
        assert found < 1e-14 or stick(mpf(mu), found * (1 - 1e-8)) > delta
    assert law.epsilon(0.0) == math.inf
    assert law.epsilon(-1.0) == math.inf


def test_an_epsilon_beyond_floats_is_infinite():
    """Where no epsilon up to 1e300 is enough the search ends."""
    assert GaussianLaw(1e200, 1e200).epsilon(1e-3) == math.inf


@pytest.mark.parametrize("mu", [1e-3, 0.5, 2.0, 20.0])
def test_the_finite_pair_dominates_and_is_near(mu):
    """Every hockey stick of the finite pair is at least the Gaussian's, and above it by little."""
    pair = GaussianLaw(mu, mu).finite_pair()
    for share in (0.0, 0.1, 0.5, 1.0, 2.0):
        epsilon = share * mu * (1 + mu)
        exact = float(stick(mpf(mu), epsilon))
        found = pair.hockey_stick(epsilon).value
        assert exact <= found <= exact * 1.05 + 1e-12
    losses, masses = GaussianLaw(mu, mu).atoms()
    assert math.fsum(masses) == pytest.approx(1.0, abs=1e-9)
    assert len(losses) == len(masses)
    assert np.isfinite(losses).all()
