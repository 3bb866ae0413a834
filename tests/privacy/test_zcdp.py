import json
import math
from pathlib import Path

import numpy as np
import pytest
import truth

from ldpopt.privacy import renyi, zcdp
from ldpopt.privacy.concentrated import _screen, zcdp_of_pairs

CASES = json.loads((Path(__file__).parents[1] / "data" / "channel_measures.json").read_text())["cases"]


def dominating_pair(epsilon, erasure):
    e = math.exp(epsilon)
    p = np.array([(1 - erasure) * e / (1 + e), erasure, (1 - erasure) / (1 + e)])
    return np.stack([p, p[::-1]])


@pytest.mark.parametrize("case", CASES)
def test_zcdp_meets_the_oracle(case):
    """The values of the reference computation, to 1e-7."""
    assert zcdp(case["channel"]).value == pytest.approx(case["zcdp_rho"], rel=1e-7)


@pytest.mark.parametrize("epsilon", [1e-4, 0.01, 1.0, 5.0, 50.0, 500.0])
def test_randomized_response_attains_epsilon_tanh(epsilon):
    """Binary randomized response is exactly (epsilon tanh(epsilon/2))-zCDP, reached as the order tends to one."""
    low = math.exp(-epsilon) / (1 + math.exp(-epsilon))
    q = [[1 / (1 + math.exp(-epsilon)), low], [low, 1 / (1 + math.exp(-epsilon))]]
    found, truth = zcdp(q), epsilon * math.tanh(epsilon / 2)
    assert found.lower <= truth * (1 + 1e-11)
    assert truth <= found.value <= truth * (1 + 1e-9)
    assert found.value <= epsilon**2 / 2 * (1 + 1e-7)  # [BS, Prop 1.4]


def test_the_epsilon_eta_region_has_the_known_values():
    """For epsilon = 1, erasure 0.3 gives epsilon eta; erasure 0.9 an interior order with 0.082192, not 0.046212."""
    assert zcdp(dominating_pair(1.0, 0.3)).value == pytest.approx(0.7 * math.tanh(0.5), rel=1e-10)
    assert zcdp(dominating_pair(1.0, 0.9)).value == pytest.approx(0.082192, abs=5e-7)


def test_the_bounded_notion_is_the_supremum_over_its_orders():
    """A dense grid of orders below max_order comes up to the value and never above it."""
    rng = np.random.default_rng(3)
    for _ in range(4):
        q = rng.dirichlet(np.full(4, 0.7), 3)
        for top, xi in ((1.2, 0.0), (4.0, 0.1), (30.0, 0.5)):
            orders = 1 + (top - 1) * np.geomspace(1e-4, 1, 120)
            grid = max(max(0.0, (g.value - xi) / a) for g, a in zip(renyi(q, orders), orders, strict=True))
            found = zcdp(q, xi, top)
            assert grid <= found.value * (1 + 1e-12)
            assert found.value <= grid * (1 + 1e-3) + 1e-12


def test_a_shift_between_kl_and_epsilon_needs_large_orders():
    """With xi just below epsilon, only huge orders give a positive rho; above epsilon there is none."""
    q = np.array([[0.5, 0.5 - 1e-6, 1e-6], [0.5, 0.5 - 1e-7, 1e-7]])
    epsilon = math.log(10)
    orders = 1 + np.geomspace(1, 1e4, 1000)
    grid = max((g.value - 2.0) / a for g, a in zip(renyi(q, orders), orders, strict=True))
    found = zcdp(q, 2.0)
    assert grid <= found.value <= grid * (1 + 1e-4)
    assert found.value - found.lower <= 1e-10 * found.value
    assert zcdp(q, epsilon + 1e-9).value == 0


def test_stacked_pairs_are_measured_one_by_one():
    """Many pairs at once give what each gives alone."""
    rng = np.random.default_rng(4)
    p, q = rng.dirichlet(np.ones(4), 20), rng.dirichlet(np.ones(4), 20)
    lower, upper = zcdp_of_pairs(p, q)
    for n in range(20):
        one = zcdp_of_pairs(p[n], q[n])
        assert one[1][0] == pytest.approx(upper[n], rel=1e-10)
        assert one[0][0] == pytest.approx(lower[n], rel=1e-10)


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize(("xi", "top"), [(0.0, math.inf), (0.1, 8.0)])
def test_the_screen_brackets_every_pair(seed, xi, top):
    """Whatever the screen says of a pair holds of its own bracket, so that no pair that matters is left out.

    Where some pair is infinite, no other pair matters.
    """
    rng = np.random.default_rng(seed)
    q = truth.FAMILIES[seed % len(truth.FAMILIES)](rng, 6, 5)
    q = q / q.sum(axis=1, keepdims=True) * (1 + rng.uniform(-9e-10, 9e-10, (len(q), 1)))
    i, j = np.nonzero(~np.eye(len(q), dtype=bool))
    (low, high), (least, most) = _screen(q, xi, top), zcdp_of_pairs(q[i], q[j], xi, top)
    assert (low[i, j] <= most).all()
    matters = least == np.inf if (least == np.inf).any() else least >= 0
    assert (high[i, j] >= least)[matters].all()


def test_a_screened_channel_has_the_value_of_its_worst_pair():
    """Twenty inputs: the screen leaves few pairs, and the answer is that of measuring all of them."""
    q = np.random.default_rng(5).dirichlet(np.ones(20), 20) + 1e-4
    q /= q.sum(axis=1, keepdims=True)
    i, j = np.nonzero(~np.eye(20, dtype=bool))
    least, most = zcdp_of_pairs(q[i], q[j])
    found = zcdp(q)
    assert (found.lower, found.value) == (least.max(), most.max())
