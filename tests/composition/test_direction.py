"""Gaussian mechanisms together are one Gaussian [DRS, Cor 3.3], checked in high precision.

One direction of a composed pair: what is lost, the largest loss and total variation, against rationals.
"""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from ldpopt.composition import lattice
from ldpopt.composition.direction import Direction, GaussianLaw, infinite_mass, largest_loss, variation
from ldpopt.composition.laws import UNDERFLOW_ERROR
from ldpopt.composition.parametric import ParametricPair
from ldpopt.mechanisms.noise import GaussianPair
from ldpopt.numbers.rounding import ULP
from ldpopt.privacy.finite_pair import FinitePair


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
    law = GaussianLaw.from_pairs((GaussianPair(mu), count) for mu, count in counted)
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
    assert error <= 1e-6 * exact + 2 * UNDERFLOW_ERROR
    assert law.bulk(epsilon) == (value, error)
    assert law.delta(math.inf) == (0.0, UNDERFLOW_ERROR)


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


LEAKY = FinitePair([0.1, 0.6, 0.3, 0.0], [0.0, 0.3, 0.6, 0.1])


def test_the_mass_of_infinite_losses_is_rounded_up_and_near():
    """It is not below the sum of the masses, and above it by a few ulps; only rare masses cost more."""
    found = infinite_mass(LEAKY)
    assert Fraction(0.1) <= found <= Fraction(0.1) * (1 + Fraction(8 * ULP))
    assert found - Fraction(0.1) < Fraction(UNDERFLOW_ERROR) * 10**290
    assert found == Fraction(0.1) * (1 + Fraction(8 * ULP))
    rare = FinitePair([2.0**-1001, 1.0], [0.0, 1.0])
    assert infinite_mass(rare) >= Fraction(2.0**-1001) + Fraction(UNDERFLOW_ERROR)
    common = FinitePair([2.0**-1000, 1.0], [0.0, 1.0])
    assert infinite_mass(common) < Fraction(2.0**-999)
    assert infinite_mass(ParametricPair.from_parameters(1.0, 0.125)) == Fraction(0.125)
    assert infinite_mass(FinitePair([0.5, 0.5], [0.25, 0.75])) == 0


@pytest.mark.parametrize("count", [1, 3, 500])
def test_the_lost_mass_is_one_minus_the_product(count):
    """1 - (1 - delta)^n, enclosed from above within a few ulps for each pair."""
    direction = Direction.from_pairs(((LEAKY, count),))
    exact = 1 - (1 - mpf(0.1)) ** count
    assert direction.infinite_upper >= exact
    assert direction.infinite_upper <= exact * (1 + mpf(10) ** -12)
    assert direction.infinite == pytest.approx(float(exact), rel=1e-13)
    assert direction.epsilon(float(exact) * (1 - 1e-9)) == math.inf
    assert direction.epsilon(min(1.0, float(exact) * (1 + 1e-3))) < math.inf


def test_everything_may_be_lost():
    """Disjoint laws lose all."""
    direction = Direction.from_pairs(((FinitePair([1.0, 0.0], [0.0, 1.0]), 2),))
    assert (direction.infinite, direction.infinite_upper, direction.upper(0.0)) == (1.0, 1.0, 1.0)
    assert direction.epsilon(0.5) == math.inf
    assert direction.epsilon(1.0) == 0.0


@pytest.mark.parametrize("count", [1, 7, 1000])
def test_the_largest_loss_is_enclosed(count):
    """The ends hold the exact sum of logarithms between them, of measured pairs and of known losses."""
    measured = FinitePair([0.75, 0.25], [0.2, 0.8])
    with mpmath.workdps(60):
        exact = count * mpmath.log(mpf(0.75) / mpf(0.2))
        low, high = largest_loss(((measured, count),))
        assert low <= exact <= high
        assert high - low <= 1e-12 * exact
        both = largest_loss(((measured, count), (ParametricPair.from_parameters(0.1), 3)))
        assert both[0] <= exact + 3 * mpf(0.1) <= both[1]
    known = largest_loss(((ParametricPair.from_parameters(0.1), count),))
    assert Fraction(known[0]) <= count * Fraction(0.1) <= Fraction(known[1])
    assert known[1] <= math.nextafter(known[0], math.inf)
    assert largest_loss(((FinitePair([0.5, 0.5], [0.5, 0.5]), 9),)) == (0.0, 0.0)
    assert largest_loss(((FinitePair([1.0, 0.0], [0.0, 1.0]), 1),)) == (0.0, 0.0)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 2.5, 4.1, 5.0])
def test_the_curve_of_a_product_is_enclosed(epsilon):
    """delta of three uses lies between the ends, by enumeration; beyond the top there is only the lost mass."""
    direction = Direction.from_pairs(((LEAKY, 3),))
    with mpmath.workdps(60):
        exact = mpf(0)
        for at in np.ndindex(4, 4, 4):
            p, q = mpf(1), mpf(1)
            for one in at:
                p, q = p * mpf(LEAKY.p[one]), q * mpf(LEAKY.q[one])
            exact += max(mpf(0), p - mpmath.exp(epsilon) * q)
    assert direction.lower(epsilon) <= exact <= direction.upper(epsilon)
    assert direction.upper(epsilon) <= exact * (1 + mpf(10) ** -12)
    assert direction.lower(epsilon) >= exact * (1 - mpf(10) ** -12)
    assert exact - mpf(10) ** -12 <= direction.bulk(epsilon) <= exact + mpf(10) ** -12
    if epsilon >= direction.top:
        assert direction.upper(epsilon) == direction.infinite_upper
    assert direction.top == pytest.approx(3 * math.log(2), rel=1e-12)
    assert direction.up_to(9.0).top == 9.0
    assert direction.up_to(0.0).top == direction.top


def test_total_variation_is_rounded_up_and_near():
    """Of measured pairs, of parameters, and 0 of equal laws."""
    assert 0.4 <= variation(LEAKY) <= 0.4 * (1 + 1e-12)
    assert variation(FinitePair([0.5, 0.5], [0.5, 0.5])) == 0.0
    with mpmath.workdps(50):
        exact = mpf(0.125) + (1 - mpf(0.125)) * mpmath.tanh(mpf(0.5))
        found = variation(ParametricPair.from_parameters(1.0, 0.125))
        assert exact <= found <= exact * (1 + mpf(10) ** -14)
    assert variation(ParametricPair.from_parameters(700.0, 0.5)) == 1.0


def test_gaussian_directions_have_no_end():
    """Noise loses nothing for sure, and its losses have no largest."""
    direction = Direction(GaussianLaw(1.0, 1.0), 0.0, 0.0, math.inf)
    assert (direction.infinite, direction.infinite_upper, direction.top, direction.spread) == (0.0, 0.0, math.inf, 0.0)
    assert direction.upper(1.0) == pytest.approx(float(mpmath.ncdf(-0.5) - mpmath.e * mpmath.ncdf(-1.5)), rel=1e-9)


@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_a_grid_brackets_the_curve(delta, monkeypatch):
    """Losses that share no lattice are split outward: the truth, by enumeration, lies between two near ends."""
    monkeypatch.setattr(lattice, "MAX_ATOMS", 10)
    rng = np.random.default_rng(5)
    p, q = rng.dirichlet(np.ones(4), 2)
    pair = FinitePair(np.append(p * (1 - delta), delta), np.append(q, 0.0))
    count = 9
    direction = Direction.from_pairs(((pair, count),))
    assert direction.spread > 0
    losses, masses = pair.losses[:4], pair.p[:4]
    kept = []
    for parts in itertools.product(range(count + 1), repeat=4):
        if sum(parts) == count:
            ways = math.factorial(count) / math.prod(math.factorial(one) for one in parts)
            kept.append((float(np.dot(parts, losses)), ways * float(np.prod(masses ** np.array(parts)))))
    lost = 1 - (1 - pair.p[4]) ** count
    for epsilon in (0.0, 0.5, 1.5, 3.0, 6.0):
        exact = lost + math.fsum(mass * -math.expm1(epsilon - loss) for loss, mass in kept if loss > epsilon)
        assert direction.lower(epsilon) <= exact * (1 + 1e-12)
        assert direction.upper(epsilon) >= exact * (1 - 1e-12)
        assert direction.lower(epsilon) >= 0.9 * exact
        assert direction.upper(epsilon) <= 1.01 * exact + 1e-12
