"""Tests of `ldpopt.design.ratio_knots`: knots are increasing, keep both ends, and are where they are asked for."""

import numpy as np
import pytest

from ldpopt.design.ratios.program import cut_knots, graded_knots, uniform_knots


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.2, 0.9), (0.6, 0.7)])
def test_even_knots_cover_the_range(low, high):
    """They cover the range, and the ratio one when it lies inside."""
    knots = uniform_knots(low, high, 13)
    assert (knots[0], knots[-1]) == (low, high)
    assert (np.diff(knots) > 0).all()
    assert (0.5 in knots) == (low <= 0.5 <= high)


def test_graded_knots_are_dense_near_the_posterior():
    """The knots next to a posterior are nearer than the grid's by 8^3, in log-ratio."""
    knots = graded_knots(uniform_knots(0.1, 0.9, 25), np.array([0.3]))
    near = np.sort(np.abs(np.log(knots / (1 - knots)) - np.log(0.3 / 0.7)))
    assert near[0] == 0
    assert near[1] == pytest.approx(4 / 25 / 512)
    assert (knots[0], knots[-1]) == (0.1, 0.9)


def test_only_lossy_intervals_are_cut():
    """An interval is cut at the ratio of its own output; the others stay."""
    knots = np.array([0.1, 0.4, 0.9])
    cut = cut_knots(knots, np.array([0.25, 0.625]), np.array([False, True]))
    assert np.array_equal(cut[:2], knots[:2])
    assert 0.625 in cut
    assert len(cut) == 6
