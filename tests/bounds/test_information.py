"""Tests of `ldpopt.bounds.published`: how much a private report can tell."""

import math

import mpmath
import numpy as np
import pytest

from ldpopt import InvalidInput
from ldpopt.bounds import capacity_mass, information_capacity, information_under_cap
from ldpopt.design import LocalDP, MutualInformation, TotalVariation, optimal_channel


@pytest.mark.parametrize("epsilon", [1e-8, 1e-5, 9e-4, 2.9e-3, 3.1e-3, 0.5, 1.0, 3.0, 60.0, 700.0])
def test_the_capacity_in_fifty_digits(epsilon):
    """t - 1 - log t, never below it, and a* = (t - 1)/(e^epsilon - 1), in 60 digits."""
    with mpmath.workdps(60):
        exact = mpmath.mpf(epsilon)
        t = exact / (1 - mpmath.exp(-exact))
        capacity, mass = t - 1 - mpmath.log(t), (t - 1) / mpmath.expm1(exact)
        assert capacity <= information_capacity(epsilon) <= capacity * (1 + mpmath.mpf(1e-7))
        assert abs(capacity_mass(epsilon) / mass - 1) < 1e-11


@pytest.mark.parametrize(("epsilon", "capacity", "mass"), [(1.0, 0.12330156, 0.339), (3.0, 1.00750562, 0.113)])
def test_known_values(epsilon, capacity, mass):
    """The values that were computed by a search over masses."""
    assert information_capacity(epsilon) == pytest.approx(capacity, abs=6e-9)
    assert capacity_mass(epsilon) == pytest.approx(mass, abs=6e-4)


def test_the_bound_under_a_cap():
    """No certified optimum of a small problem is above it, for any eta; it is the least of its parts."""
    rng = np.random.default_rng(0)
    for _ in range(2):
        prior, epsilon = rng.dirichlet(np.ones(4)), float(rng.uniform(0.3, 4))
        for share in (1e-6, 0.5, 1.0):
            eta = share * math.tanh(epsilon / 2)
            caps = [LocalDP(epsilon), TotalVariation(eta)]
            bound = information_under_cap(prior, epsilon, eta)
            assert optimal_channel(MutualInformation(prior), caps).value <= bound
            assert bound <= min(information_capacity(epsilon), eta * MutualInformation(prior).unprivate * (1 + 1e-12))


def test_the_bound_under_a_cap_is_the_one_dimensional_program():
    """It is the least of c(n) + eta n (1 - sum P^2), on a grid of n and of masses."""
    prior, epsilon, eta = np.full(50, 0.02), 1.0, 0.2
    level, a = 1 / math.expm1(1.0), np.linspace(0, 1, 4001)
    mean = level + a
    h = a * (level + 1) * np.log((level + 1) / mean) + (1 - a) * level * np.log(level / mean)
    least = min(
        n * eta * (1 - 0.02) + ((h - n * a * (1 - a)) / mean).max() for n in np.linspace(0, (level + 1) - 1, 3001)
    )
    assert information_under_cap(prior, epsilon, eta) == pytest.approx(least, rel=1e-5)


def test_the_ends():
    """An eta of 0 keeps nothing, a single answer has nothing to tell, and what is no number is refused."""
    assert information_under_cap([0.5, 0.5], 1.0, 0.0) == 0
    assert information_under_cap([1.0, 0.0], 1.0, 0.5) == 0
    for bad in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(InvalidInput):
            information_capacity(bad)
        with pytest.raises(InvalidInput):
            capacity_mass(bad)
    with pytest.raises(InvalidInput):
        information_under_cap([0.5, 0.5], 1.0, 1.5)
