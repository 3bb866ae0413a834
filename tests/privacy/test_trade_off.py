import math
import sys

import networkx as nx
import numpy as np
import pytest

from ldpopt.errors import InvalidInput
from ldpopt.privacy import TradeOffCurve, hockey_stick, total_variation, trade_off
from ldpopt.privacy.trade_off import _hull


def least_type_two(p, q, t):
    """Neyman and Pearson: the least q(accept) over randomized tests with p(reject) = t, by a linear program."""
    from scipy.optimize import linprog

    found = linprog(-np.asarray(q), A_ub=[p], b_ub=[t], bounds=(0, 1), method="highs")
    return 1 + found.fun


def test_the_curve_of_a_pair_is_the_optimal_test():
    """At every type I error the curve is the value of the linear program over randomized tests."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        p, q = rng.dirichlet(np.full(5, 0.6), 2)
        curve = TradeOffCurve.of_pair(p, q)
        for t in np.linspace(0, 1, 21):
            assert curve(t) == pytest.approx(least_type_two(p, q, t), abs=1e-9)


def test_the_channel_curve_is_the_convex_envelope_of_its_pairs():
    """It lies below every pair's curve, touches their minimum at its knots, and is convex where the minimum is not."""
    q = np.array([[0.1, 0.0, 0.9], [0.0, 0.1, 0.9], [0.3, 0.3, 0.4]])
    curve = trade_off(q)
    t = np.linspace(0, 1, 2001)
    pairs = [TradeOffCurve.of_pair(q[x], q[y]) for x in range(3) for y in range(3) if x != y]
    minimum = np.min([pair(t) for pair in pairs], axis=0)
    assert (curve(t) <= minimum + 1e-15).all()
    assert (np.diff(curve(t), 2) >= -1e-12).all()
    assert np.diff(minimum, 2).min() < -1e-5  # the pointwise minimum of this channel is not convex
    knots = curve.knots
    at_knots = np.min([pair(np.minimum(knots[:, 0], 1)) for pair in pairs], axis=0)
    assert np.allclose(at_knots, knots[:, 1], atol=1e-12)
    assert curve == trade_off(q[::-1])


def test_delta_of_the_curve_is_the_hockey_stick_of_the_channel():
    """delta(epsilon) from the curve is the hockey-stick value of the channel, for every epsilon [GI, Thm 1]."""
    rng = np.random.default_rng(1)
    for _ in range(5):
        q = rng.dirichlet(np.full(4, 0.5), 4)
        curve = trade_off(q)
        assert curve.to_total_variation() == pytest.approx(total_variation(q).value, abs=1e-13)
        for epsilon in (0.0, 0.3, 1.0, 4.0):
            found, direct = curve.to_approximate_dp(epsilon), hockey_stick(q, epsilon)
            assert found.lower <= direct.value
            assert direct.lower <= found.value
            assert found.value == pytest.approx(direct.value, abs=1e-13)


def test_the_curve_of_the_dominating_pair_is_corollary_1():
    """Corollary 1: the dominating pair's curve is max(0, 1-d-e t, (1-d-t)/e, 1-eta-t)."""
    epsilon, delta, alpha = 1.0, 0.05, 0.3
    e = math.exp(epsilon)
    eta = delta + (1 - alpha) * (1 - delta) * (e - 1) / (e + 1)
    p = np.array(
        [delta, (1 - delta) * (1 - alpha) * e / (1 + e), alpha * (1 - delta), (1 - delta) * (1 - alpha) / (1 + e), 0]
    )
    curve = TradeOffCurve.of_pair(p, p[::-1])
    t = np.linspace(0, 1, 501)
    expected = np.maximum.reduce([0 * t, 1 - delta - e * t, (1 - delta - t) / e, 1 - eta - t])
    assert np.allclose(curve(t), expected, atol=1e-14)


def test_the_inverse_exchanges_hypotheses_and_symmetrization_takes_the_envelope():
    """The inverse exchanges the hypotheses, symmetrization takes their envelope, and channels have symmetric curves."""
    rng = np.random.default_rng(2)
    p, q = rng.dirichlet(np.ones(4), 2)
    forth, back = TradeOffCurve.of_pair(p, q), TradeOffCurve.of_pair(q, p)
    t = np.linspace(0, 1, 301)
    assert np.allclose(forth.inverse()(t), back(t), atol=1e-14)
    assert np.allclose(forth.symmetrised()(t), trade_off([p, q])(t), atol=1e-14)
    both = trade_off([p, q])
    assert np.allclose(both.inverse()(t), both(t), atol=1e-14)
    one = trade_off([p, q], nx.DiGraph([(0, 1)]))
    assert np.allclose(one(t), forth(t), atol=1e-14)
    assert forth.dominates(both)
    assert both.dominates(forth.symmetrised())
    # zero errors at both ends: a support that only one law has
    jump = TradeOffCurve.of_pair([0.5, 0.5, 0.0], [0.0, 0.5, 0.5])
    assert jump(0.0) == pytest.approx(0.5, abs=1e-14)
    assert jump(0.5) == pytest.approx(0.0, abs=1e-14)
    assert jump.inverse() == jump


def test_dominance_is_blackwells_order():
    """Post-processing gives a curve nowhere below; two curves that cross dominate neither way."""
    rng = np.random.default_rng(3)
    q = rng.dirichlet(np.ones(4), 2)
    coarse = np.stack([q[:, 0] + q[:, 1], q[:, 2] + q[:, 3]], axis=1)
    assert trade_off(coarse).dominates(TradeOffCurve(trade_off(q).knots * (1 - 1e-14)))
    assert trade_off(q).dominates(trade_off(q))
    steep, flat = TradeOffCurve([[0, 0.9], [0.9, 0]]), TradeOffCurve([[0, 1], [0.2, 0.2], [1, 0]])
    assert not steep.dominates(flat)
    assert not flat.dominates(steep)
    perfect = TradeOffCurve([[0, 1], [1, 0]])
    assert perfect.dominates(steep)
    assert perfect.to_approximate_dp(0.0).value <= 1e-15


def test_knots_lie_on_the_private_side():
    """In exact arithmetic every knot lies on or below the exact curve, by no more than the slack says."""
    from fractions import Fraction

    rng = np.random.default_rng(4)
    p, q = (row / row.sum() for row in rng.dirichlet(np.ones(7), 2))
    curve = trade_off([p, q], nx.DiGraph([(0, 1)]))
    order = sorted(range(7), key=lambda y: Fraction(q[y]) / Fraction(p[y]), reverse=True)
    first, second = Fraction(0), sum(map(Fraction, q))
    exact = [(first, second)]
    for y in order:
        first, second = first + Fraction(p[y]), second - Fraction(q[y])
        exact.append((first, second))
    assert len(exact) == len(curve.knots)
    for (a, b), (t, f) in zip(exact, curve.knots.tolist(), strict=True):
        assert Fraction(t) <= a
        assert Fraction(f) <= b
        assert a <= Fraction(t) * Fraction(1 + curve.slack)
        assert b <= Fraction(f) * Fraction(1 + curve.slack)


@pytest.mark.parametrize(
    "knots",
    [
        [[0, 1]],
        [[0.1, 0.5], [1, 0]],
        [[0, 1], [0.5, 0.9], [1, 0]],
        [[0, 0.5], [0.2, 0.4], [0.3, 0.1], [0.8, 0]],
        [[0, 0.5], [0.2, 0.6], [1, 0]],
        [[0, 1], [1, -0.1]],
        [[0, 1, 2]],
        [[0, float("nan")], [1, 0]],
        "curve",
    ],
)
def test_bad_knots_are_refused(knots):
    """Points that are no trade-off function raise InvalidInput."""
    with pytest.raises(InvalidInput, match="knots"):
        TradeOffCurve(knots)


def test_bad_arguments_are_refused():
    """Errors outside [0, 1] and negative epsilons raise InvalidInput."""
    curve = TradeOffCurve([[0, 1], [1, 0]])
    with pytest.raises(InvalidInput, match="type I error"):
        curve(1.5)
    with pytest.raises(InvalidInput, match="epsilon"):
        curve.to_approximate_dp(-1)


def test_knots_of_extreme_ratios_are_ordered():
    """Impossible outputs are rejected before nearly impossible ones, and corners whose products underflow are kept."""
    knots = TradeOffCurve.of_pair([1e-320, 0.0, 1.0], [0.5, 0.3, 0.2]).knots
    assert knots[0, 1] == pytest.approx(0.7, rel=1e-14)
    rows = np.array([[1e-320, 1.9e-319, 1.0], [1e-5, 0.5e-5, 1 - 1.5e-5]])
    curve = TradeOffCurve.of_pair(*rows)
    assert curve.knots[:, 0] == pytest.approx([0.0, 1e-320, 2e-319, 1.0], rel=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_the_hull_of_many_points_is_that_of_all(seed, monkeypatch):
    """Looking at some points first leaves out none of the hull's knots, nor its ends."""
    rng = np.random.default_rng(seed)
    t = rng.random(700) ** 3
    points = np.stack([0.02 + t, (1.02 - np.sqrt(t)) ** 2 * (0.4 + 0.2 * rng.random(700))], axis=1)
    points = np.concatenate([points, [[0.0, 1.0], [2.0, 0.0], [0.0, 0.95], [1.5, 0.0]]])
    whole = _hull(points)
    monkeypatch.setattr(sys.modules[_hull.__module__], "MAX_UNSAMPLED_POINTS", 50)
    assert _hull(points[rng.permutation(len(points))]).tolist() == whole.tolist()
    assert whole[0].tolist() == [0.0, 0.95]
    assert whole[-1].tolist() == [1.5, 0.0]
