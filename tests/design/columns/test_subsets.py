"""Tests of `ldpopt.design.columns.subsets`: many sets of nearly a given mass."""

import numpy as np
import pytest

from ldpopt.design.columns.subsets import subsets_near


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
