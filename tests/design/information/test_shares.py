"""Tests of `ldpopt.design.kernel.sets`: the information of patterns by their mass."""

import math

import numpy as np

from ldpopt.design import MutualInformation
from ldpopt.design.kernel.sets import best_share, information_of, level_of, members


def test_the_information_of_a_pattern_is_that_of_its_mass():
    """mu(t + 1_A) = h(P(A)) for every set [KOV14, section 4]."""
    prior = np.random.default_rng(0).dirichlet(np.ones(6))
    for epsilon in (0.1, 1.0, 8.0):
        level, sets = level_of(epsilon), members(np.arange(64), 6)
        columns = MutualInformation(prior).columns(level + sets.T.astype(float))[0]
        found = information_of(sets @ prior, ~sets @ prior, level)
        assert np.allclose(found, columns, rtol=1e-7, atol=1e-14)


def test_the_best_share_agrees_with_a_fine_grid():
    """It is the best of a fine grid, as far as the gain is concave."""
    rng = np.random.default_rng(1)
    grid = np.linspace(0, 1, 20001)
    for epsilon in (0.01, 1.0, 6.0):
        level = level_of(epsilon)
        for within in (0.0, 0.05):
            own, rest = rng.uniform(0, 0.5, 5), 0.5
            top = information_of(np.array(0.3), np.array(0.7), level)
            slope = rng.uniform(-1, 1, 5) * float(top)
            found = best_share(own, rest, level, within * float(top), slope)
            mass = own[:, None] + rest * np.append(grid[None, :].repeat(5, 0), found[:, None], axis=1)
            rho = (mass - own[:, None]) / rest
            gain = information_of(mass, 1 - mass, level) - within * float(top) * rho * (1 - rho) - slope[:, None] * rho
            assert ((found >= 0) & (found <= 1)).all()
            assert (gain[:, -1] >= gain.max(axis=1) - 1e-7 * float(top)).all()


def test_the_level_is_finite_where_the_exponential_overflows():
    """t = 1/(e^epsilon - 1), also where e^epsilon overflows."""
    assert math.isclose(level_of(1.0), 1 / math.expm1(1))
    assert level_of(800.0) > 0
