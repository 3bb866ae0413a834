"""Tests of `ldpopt.design.reduction`."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ldpopt.design.problems.reduction import reduce

masses = arrays(np.float64, st.integers(2, 8), elements=st.sampled_from([0.0, 0.1, 0.2, 0.25, 0.5, 1.0, 1e-12]))


@given(masses, masses)
def test_classes_keep_masses_and_order(a, b):
    """Classes partition the inputs that occur, keep both masses, and are in strictly increasing order of ratio."""
    k = min(len(a), len(b))
    p0, p1 = a[:k], b[:k]
    if not (p0.any() and p1.any()):
        return
    made = reduce(p0, p1)
    n = len(made.pair)
    occurs = (p0 > 0) | (p1 > 0)
    assert np.allclose(np.bincount(made.classes[occurs], p0[occurs], n), made.pair.p0, rtol=1e-14)
    assert np.allclose(np.bincount(made.classes[occurs], p1[occurs], n), made.pair.p1, rtol=1e-14)
    with np.errstate(divide="ignore"):
        ratios = made.pair.p0 / made.pair.p1
    assert (np.diff(ratios[np.isfinite(ratios)]) > 0).all()
    assert np.isinf(ratios).sum() <= 1


def test_impossible_inputs_join_a_neighbour():
    """An input without mass takes the class of the nearest earlier input that has some, else of the first one."""
    made = reduce(np.array([0.0, 0.5, 0.0, 0.5]), np.array([0.0, 0.8, 0.0, 0.2]))
    assert made.classes.tolist() == [0, 0, 0, 1]


def test_ratios_beyond_double_precision_of_the_posterior_stay_apart():
    """Ratios 1e20 and 1e23 have the same posterior in floating point and are still two classes."""
    made = reduce(np.array([0.5, 0.25, 0.25]), np.array([5e-21, 2.5e-24, 1.0]))
    assert made.classes.tolist() == [1, 2, 0]
