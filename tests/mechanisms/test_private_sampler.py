"""The minimax private sampler."""

import math

import numpy as np
import pytest

from ldpopt.divergences import (
    CHI_SQUARED,
    JENSEN_SHANNON,
    KL,
    REVERSE_KL,
    SQUARED_HELLINGER,
    TOTAL_VARIATION,
    hockey_stick,
)
from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import PrivateSampler
from ldpopt.privacy import local_dp

FINITE = [KL, TOTAL_VARIATION, CHI_SQUARED, SQUARED_HELLINGER, JENSEN_SHANNON, hockey_stick(1.5)]


@pytest.mark.parametrize("epsilon", [1e-6, 0.3, 1.0, 5.0, 30.0])
@pytest.mark.parametrize("k", [2, 3, 10])
def test_every_set_of_distributions_is_private(k, epsilon):
    """Draws from the rows of any distributions are epsilon-LDP, and those of point masses use epsilon up."""
    rng = np.random.default_rng(k)
    sampler = PrivateSampler(k, epsilon)
    held = np.vstack([np.eye(k), rng.dirichlet(np.ones(k), 30), rng.dirichlet(np.full(k, 0.05), 30)])
    channel = sampler.channel(held)
    assert channel.shape == (len(held), k)
    assert float(local_dp(channel)) <= epsilon
    assert float(local_dp(sampler.channel(np.eye(k)))) == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize("f", FINITE, ids=lambda f: f.name)
def test_no_distribution_has_a_larger_risk(f):
    """The risk is attained at a point mass and exceeded by no distribution [PAL]."""
    rng = np.random.default_rng(1)
    for k, epsilon in ((2, 0.4), (4, 1.0), (7, 2.5)):
        sampler = PrivateSampler(k, epsilon)
        risk = sampler.risk(f)
        assert f(np.eye(k)[0], sampler.row(np.eye(k)[0])) == pytest.approx(risk, rel=1e-9)
        for p in rng.dirichlet(np.full(k, 0.3), 200):
            assert f(p, sampler.row(p)) <= risk * (1 + 1e-12)


def test_the_printed_form():
    """The risk is e/(e+k-1) f((e+k-1)/e) + (k-1)/(e+k-1) f(0), here with the generator itself."""
    for f in FINITE:
        share = math.e / (math.e + 4)
        expected = share * f.generator(1 / share) + (1 - share) * f.at_zero
        assert PrivateSampler(5, 1.0).risk(f) == pytest.approx(expected, rel=1e-12)
    assert math.isinf(PrivateSampler(5, 1.0).risk(REVERSE_KL))


def test_the_row_is_the_nearest_of_all_with_its_floor():
    """Among distributions with entries of at least 1/(e + k - 1) the row has the least divergence from P, for all f."""
    rng = np.random.default_rng(2)
    sampler = PrivateSampler(5, 1.2)
    floor = 1 / (math.exp(1.2) + 4)
    for p in rng.dirichlet(np.full(5, 0.4), 20):
        row = sampler.row(p)
        assert row.sum() == pytest.approx(1.0, abs=1e-14)
        assert row.min() >= floor * (1 - 1e-12)
        for q in floor + (1 - 5 * floor) * rng.dirichlet(np.full(5, 0.5), 100):
            for f in FINITE:
                assert f(p, row) <= f(p, q) + 1e-12


def test_nearly_uniform_distributions_are_left_as_they_are():
    """Where no probability is below the floor, the draw is from P itself."""
    p = np.array([0.3, 0.3, 0.4])
    assert PrivateSampler(3, 2.0).row(p) == pytest.approx(p, abs=1e-15)


def test_bad_input():
    """Sizes, levels and distributions are checked."""
    with pytest.raises(InvalidInput, match="k: expected"):
        PrivateSampler(1, 1.0)
    with pytest.raises(InvalidInput, match="epsilon"):
        PrivateSampler(3, 0.0)
    with pytest.raises(InvalidInput, match="3 entries"):
        PrivateSampler(3, 1.0).row([0.5, 0.5])
