"""Linear utilities above a divergence, in exact arithmetic and at every scale."""

import math
from fractions import Fraction

import numpy as np
import pytest

from ldpopt.design.certificates.base import Unproved
from ldpopt.design.certificates.chords import enclosed_chords, rays, reach
from ldpopt.design.certificates.hypotheses import by_ratio
from ldpopt.design.certificates.tails import tail_power
from ldpopt.design.constraints import ApproximateLDP, ConcentratedLDP, LocalDP, RenyiLDP
from ldpopt.design.utilities.laws import Laws
from ldpopt.divergences import CHI_SQUARED, JEFFREYS, KL, REVERSE_KL, alpha
from ldpopt.enclosures import EXACT, FLOAT


def near(scale):
    return np.array([0.5 + 0.3 * scale, 0.3, 0.2 - 0.3 * scale]), np.array([0.5, 0.3 - 0.2 * scale, 0.2 + 0.2 * scale])


def marginals(p, q):
    """M = P.q of the law proportional to p, a fraction."""
    weights = [Fraction(x) for x in p.tolist()]
    return sum((w * Fraction(x) for w, x in zip(weights, q.tolist(), strict=True)), Fraction(0)) / sum(weights)


@pytest.mark.parametrize("arithmetic", [FLOAT, EXACT], ids=["float", "exact"])
@pytest.mark.parametrize("scale", [0.6, 1e-3, 1e-9])
@pytest.mark.parametrize("spread", [None, 1.0, 1e-8, 40.0])
def test_chords_lie_above_every_column_of_their_interval(arithmetic, scale, spread):
    """c_i.q >= chi-squared of the marginals, in fractions, for every column whose posterior is in interval i."""
    p0, p1 = near(scale)
    laws, order = Laws.of(p0, p1, arithmetic), by_ratio(p0, p1).tolist()
    given = None if spread is None else arithmetic.of(spread)
    ends = rays(laws, order, np.array([0.0, 1.0]), given, arithmetic).a.midpoint
    knots = np.unique(np.linspace(*ends, 7))
    if len(knots) < 3:
        knots = np.array(ends)
    cut = rays(laws, order, knots, given, arithmetic)
    (gains,) = enclosed_chords(CHI_SQUARED, laws, cut, knots, ())
    rng = np.random.default_rng(1)
    for _ in range(60):
        rise = rng.random(3) if rng.random() < 0.5 else rng.integers(0, 2, 3).astype(float)
        q = rise if spread is None else 1 + rise * math.expm1(spread) * (1 - 1e-9)
        a, b = marginals(p0, q), marginals(p1, q)
        if not a + b:
            continue
        inner = [Fraction(s) for s in knots[1:-1].tolist()]
        label = sum(a / (a + b) > s for s in inner)
        linear = sum((Fraction(c) * Fraction(x) for c, x in
                      zip(gains.values.upper[label].tolist(), q.tolist(), strict=True)), Fraction(0))  # fmt: skip
        assert linear >= ((a - b) ** 2 / b if b else 0)
    assert (gains.sums.lower <= gains.values.upper.sum(axis=1) + 1e-12).all()


def test_the_reach_of_ratios():
    """Pure LDP, alone or implied, bounds the posteriors; a moment lets them go anywhere and still bounds KL."""
    p0, p1 = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.8, 0.0])
    inputs = range(3)
    assert reach(KL, p0, p1, (LocalDP(1.0),), inputs)[1] == pytest.approx(1 / (1 + math.exp(-1)))
    assert reach(KL, p0, p1, (ApproximateLDP(1.0, 0.0),), inputs)[1] == pytest.approx(1 / (1 + math.exp(-1)))
    assert reach(KL, p0, p1, (ApproximateLDP(1.0, 0.1),), inputs) is None
    assert reach(KL, p0, p1, (RenyiLDP(2.0, 0.1),), inputs)[1] == 1.0
    assert reach(CHI_SQUARED, p0, p1, (RenyiLDP(1.5, 0.1),), inputs) is None
    assert reach(CHI_SQUARED, p0, p1, (ConcentratedLDP(0.1),), inputs)[1] == 1.0
    assert reach(KL, p1, p0, (ApproximateLDP(1.0, 0.1),), inputs) == pytest.approx((0.0, 0.8 / 1.1))
    assert reach(JEFFREYS, p0, p1, (RenyiLDP(2.0, 0.1),), inputs) is None


def test_which_divergences_have_a_tail():
    """Power divergences that are infinite at the end, on the side where they are."""
    assert tail_power(KL, False) == (1.0, 1.0)
    assert tail_power(KL, True) is None
    assert tail_power(REVERSE_KL, True) == (1.0, 1.0)
    assert tail_power(alpha(3.0), False) == (3.0, 1 / 3)
    assert tail_power(alpha(-1.5), True) == (2.5, 0.4)
    assert tail_power(alpha(0.5), False) is None


@pytest.mark.parametrize("order", [1.5, 3.0])
def test_the_constant_of_the_alpha_divergence(order):
    """alpha(o) = ((u^o - o u + o - 1))/(o (o - 1)): the constant c of its tail is 1/o."""
    u = np.array([1.5, 10.0, 1e4])
    expected = (u**order - order * u + order - 1) / (order - 1) / order
    assert alpha(order).excess(u, np.ones(3)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("knots", [[0.2], [], [0.0, 0.5, 0.5, 1.0], [0.0, 0.9999, 1.0], [0.0, math.nan, 1.0]])
def test_knots_that_do_not_cut(knots):
    """Too few knots, ties, cuts outside of what outputs can have, and NaN are refused."""
    p0, p1 = near(0.6)
    laws = Laws.of(p0, p1, FLOAT)
    with pytest.raises(Unproved):
        enclosed_chords(KL, laws, rays(laws, by_ratio(p0, p1).tolist(), np.array(knots), None, FLOAT), knots, ())
