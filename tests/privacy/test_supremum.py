"""Suprema over the orders: what an interval is said to hold at most is at least what a dense grid finds on it."""

import numpy as np
import pytest

from ldpopt.privacy.loss import privacy_loss
from ldpopt.privacy.supremum import _Slope, _Spread, supremum


def objectives(seed):
    """A pair of laws and the two objectives of its loss."""
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.ones(4), 2)
    loss = privacy_loss(p[None], q[None])
    slope = _Slope(loss.mean_lower, loss.mean_upper, loss.top_upper, float(rng.choice([0.0, 0.05, -0.02])))
    return loss, [_Spread(np.abs(loss.centred).max(axis=1)), slope]


ROW = np.zeros(1, dtype=np.intp)


@pytest.mark.parametrize("seed", range(30))
def test_the_largest_value_on_a_curve_is_not_below_a_grid(seed):
    """`curved` bounds the objective of K = s^2 (c0 + c1 s)/2 on an interval, whichever way the curve bends."""
    rng = np.random.default_rng(seed)
    _, both = objectives(seed)
    for objective in both:
        left, right = np.sort(10 ** rng.uniform(-2, 1.5, 2))
        c0 = float(10 ** rng.uniform(-2, 0.5))
        c1 = float(rng.choice([-1, 1]) * rng.uniform(0, 1) * c0 / right)
        bound = objective.curved(ROW, *(np.array([one]) for one in (left, right, c0, c1)))[0]
        for s in np.geomspace(left, right, 400):
            k = np.array([s * s * (c0 + c1 * s) / 2])
            assert objective.upper(ROW, k, np.array([s]))[0] <= bound * (1 + 1e-12) + 1e-300


@pytest.mark.parametrize("seed", range(30))
def test_the_peak_of_a_chord_is_its_largest_value(seed):
    """At `peak`, cut to an interval, or at its ends the objective of K = c0 + c1 s is as large as anywhere on it."""
    rng = np.random.default_rng(seed)
    _, both = objectives(seed)
    for objective in both:
        left, right = np.sort(10 ** rng.uniform(-2, 1.5, 2))
        c1 = float(10 ** rng.uniform(-2, 0.5))
        c0 = -float(rng.uniform(0.01, 0.99)) * c1 * left
        at = np.clip(objective.peak(ROW, np.array([c0]), np.array([c1])), left, right)
        ends = (at, np.array([left]), np.array([right]))
        bound = max(objective.upper(ROW, c0 + c1 * one, one)[0] for one in ends)
        for s in np.geomspace(left, right, 400):
            one = np.array([s])
            assert objective.upper(ROW, c0 + c1 * one, one)[0] <= bound * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_supremum_lies_between_its_ends(seed, sign):
    """No order of a dense grid exceeds the upper end, and the lower one is attained; they are near each other."""
    loss, both = objectives(seed)
    for objective in both:
        if sign < 0 and isinstance(objective, _Slope):
            continue
        start, stop = np.array([1e-6]), np.array([np.inf])

        def cumulant(rows, s, loss=loss):
            return loss.cumulant_at(rows, sign * s)

        for spread in (loss.spread, None):
            low, high = supremum(cumulant, objective, start, stop, spread)
            assert low[0] <= high[0]
            assert high[0] <= max(low[0], 0.0) * (1 + 1e-9) + 1e-12
        for s in np.geomspace(1e-5, 1e4, 200):
            at = np.array([s])
            value = objective.lower(ROW, loss.cumulant(sign * at)[0], at)[0]
            assert value <= high[0] * (1 + 1e-12)
