"""Tests of `ldpopt.design.columns.affine`: orbits that treat all pairs of points alike."""

import numpy as np

from ldpopt.design.columns.affine import generator, orbits


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


def test_roots():
    """A primitive root's powers are all the numbers but 0."""
    for g in (5, 7, 61, 127):
        assert len({pow(generator(g), i, g) for i in range(g - 1)}) == g - 1
