"""Tests of `ldpopt.design.kernel.sets`: orbits that treat all pairs alike, and subsets with sums near a target."""

import numpy as np
import pytest

from ldpopt.design.kernel.sets import orbits, primitive_root, subsets_near


def test_every_orbit_is_a_two_design():
    """Every two points are together in equally many sets, and every point is in equally many."""
    seen = list(orbits(23))
    assert len(seen) > 50
    for one in seen:
        sets = one.sets().astype(int)
        together = sets.T @ sets
        assert (sets.sum(axis=1) == one.size).all()
        assert len(sets) <= max(one.length, one.points)
        assert len(set(np.diag(together).tolist())) == 1
        assert len(set(together[~np.eye(one.points, dtype=bool)].tolist())) == 1


def test_powers_of_a_primitive_root_are_all_residues():
    """A primitive root's powers are all the numbers but 0."""
    for g in (5, 7, 61, 127):
        assert len({pow(primitive_root(g), i, g) for i in range(g - 1)}) == g - 1


@pytest.mark.parametrize("n", [1, 6, 13, 45])
def test_sums_are_near_and_sets_differ(n):
    """Sets are different; of many masses their sums are within 1e-3 of the target, each mass in about as often."""
    rng = np.random.default_rng(n)
    masses = rng.dirichlet(np.ones(n))
    found = subsets_near(masses, 0.4, 500, rng)
    assert found.shape[1] == n
    assert 0 < len(found) <= min(500, 2**n)
    assert len(np.unique(found, axis=0)) == len(found)
    if n >= 45:
        assert np.abs(found @ masses - 0.4).max() < 1e-3
        assert found.mean(axis=0).min() > 0.25
        assert found.mean(axis=0).max() < 0.55


def test_few_masses_are_listed():
    """Of few masses the nearest of all subsets are found."""
    masses = np.array([0.5, 0.25, 0.125, 0.0625])
    found = subsets_near(masses, 0.375, 1, np.random.default_rng(0))
    assert found.tolist() == [[False, True, True, False]]
