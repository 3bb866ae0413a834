"""Tests of `ldpopt.design.reduction`.

Tests of `ldpopt.design.problems.reduction` and `ldpopt.design.problems.reduction`.
"""

import numpy as np
import pytest
from design_problems import random_pair
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import integrate, stats

from ldpopt.design.kernel.hypotheses import dominates
from ldpopt.design.problems.reduction import Cells, dominating_pair, knots_near_cuts, reduce_pair, spread_onto
from ldpopt.divergences import CHI_SQUARED, KL
from ldpopt.errors import InvalidInput

masses = arrays(np.float64, st.integers(2, 8), elements=st.sampled_from([0.0, 0.1, 0.2, 0.25, 0.5, 1.0, 1e-12]))


@given(masses, masses)
def test_classes_keep_masses_and_order(a, b):
    """Classes partition the inputs that occur, keep both masses, and are in strictly increasing order of ratio."""
    k = min(len(a), len(b))
    p0, p1 = a[:k], b[:k]
    if not (p0.any() and p1.any()):
        return
    made = reduce_pair(p0, p1)
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
    made = reduce_pair(np.array([0.0, 0.5, 0.0, 0.5]), np.array([0.0, 0.8, 0.0, 0.2]))
    assert made.classes.tolist() == [0, 0, 0, 1]


def test_ratios_beyond_double_precision_of_the_posterior_stay_apart():
    """Ratios 1e20 and 1e23 have the same posterior in floating point and are still two classes."""
    made = reduce_pair(np.array([0.5, 0.25, 0.25]), np.array([5e-21, 2.5e-24, 1.0]))
    assert made.classes.tolist() == [1, 2, 0]


def test_spread_dominates_and_keeps_masses():
    """Spreading onto knots gives a pair that dominates the inputs in Blackwell's order, with larger divergences."""
    p0, p1 = random_pair(500, 1)
    for count in (5, 20, 200):
        pair = spread_onto(p0, p1, knots_near_cuts(p0, p1, np.zeros((0, 2)), count, 0))
        assert pair.p0.sum() == pytest.approx(1.0, abs=1e-12)
        assert CHI_SQUARED.sum(pair.p0, pair.p1) >= CHI_SQUARED(p0, p1) * (1 - 1e-12)
        made = dominating_pair(p0, p1, knots_near_cuts(p0, p1, np.zeros((0, 2)), count, 0))
        assert dominates(*made, p0, p1)
        assert CHI_SQUARED.sum(*made) == pytest.approx(CHI_SQUARED.sum(pair.p0, pair.p1), rel=2e-3)


def test_knots_cover_and_concentrate():
    """Knots contain the extreme posteriors and the cuts, and increase."""
    p0, p1 = random_pair(300, 2)
    s = np.sort(p0 / (p0 + p1))
    cuts = np.array([[s[100], s[101]], [s[200], s[201]]])
    made = knots_near_cuts(p0, p1, cuts, 20, 10)
    assert (np.diff(made) > 0).all()
    assert made[0] == s[0]
    assert made[-1] == s[-1]
    assert np.isin(cuts, made).all()


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    "pair",
    [(stats.norm(0, 1), stats.norm(1, 1)), (stats.norm(0, 1), stats.norm(0, 2)), (stats.expon(), stats.gamma(2))],
    ids=["shift", "scale", "exponential"],
)
def test_cells_bracket_the_divergence(pair):
    """Cells lose little of the divergence, their endpoints gain little, and the truth lies between (quadrature)."""
    cells = Cells.cut(*pair, 4000)
    truth, _ = integrate.quad(
        lambda x: pair[0].pdf(x) * (pair[0].logpdf(x) - pair[1].logpdf(x)), *pair[0].support(), limit=200
    )
    inner = KL.sum(*cells.masses)
    squeeze = CHI_SQUARED.sum(*cells.masses), CHI_SQUARED.sum(*[m[m > 0] for m in cells.masses])
    assert squeeze[0] == pytest.approx(squeeze[1], rel=1e-9)
    assert inner <= truth * (1 + 1e-9)
    assert inner == pytest.approx(truth, rel=1e-4)
    s = np.linspace(0, 1, 2001)
    outer, own = (np.maximum(np.outer(s, m1) - np.outer(1 - s, m0), 0).sum(axis=1) for m0, m1 in
                  (cells.endpoints(), cells.masses))  # fmt: skip
    assert (outer >= own - 1e-12).all()
    assert len(cells.labels) == len(cells.masses[0])
    assert cells.labels[0].startswith("(-inf")


def test_cells_can_be_merged_and_bad_ones_are_refused():
    """Cells can be merged at their starts; degenerate hypotheses are refused."""
    cells = Cells.cut(stats.norm(), stats.norm(1), 400)
    coarse = cells.starts(np.array([0, 100, 200]))
    assert coarse.edges.tolist() == [cells.edges[99], cells.edges[199]]
    assert coarse.masses[0].sum() == pytest.approx(1.0)
    with pytest.raises(InvalidInput, match="at least three intervals"):
        Cells.cut(stats.randint(0, 1), stats.randint(0, 1), 400)
