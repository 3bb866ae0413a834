""""""

import json
import math
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
import truth

from ldpopt.channel import Channel
from ldpopt.privacy import approximate_zcdp, hockey_stick, local_dp, mcdp, renyi, zcdp
from ldpopt.privacy.approximate_dp import epsilon_of_pairs
from ldpopt.privacy.concentrated import (
    _cut,
    _screen,
    _screen_approximate,
    _screen_mcdp,
    approximate_zcdp_of_pairs,
    subgaussian_of_pairs,
    zcdp_of_pairs,
)

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
    for _ in range(2):
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
    orders = 1 + np.geomspace(1, 1e4, 500)
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


@pytest.mark.parametrize("seed", range(16))
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


def test_the_trimmed_pair_minimises_every_renyi_divergence():
    """Among laws p' <= p/(1-d), q' <= q/(1-d), a convex program finds no smaller divergence than the trimmed pair's.

    Order 2 both ways, and KL: the pair is least favourable for all of them at once [HS, Thm 4.1].
    """
    import cvxpy as cp

    rng = np.random.default_rng(0)
    for delta in (0.02, 0.1):
        p, q = rng.dirichlet(np.full(4, 3.0), 2)
        a = _cut(p[None], q[None], epsilon_of_pairs(p, q, delta)[1], np.zeros(1))[0]
        b = _cut(q[None], p[None], epsilon_of_pairs(q, p, delta)[1], np.zeros(1))[0]
        a, b = a / a.sum(), b / b.sum()
        x, y = cp.Variable(4, nonneg=True), cp.Variable(4, nonneg=True)
        inside = [x <= p / (1 - delta), y <= q / (1 - delta), cp.sum(x) == 1, cp.sum(y) == 1]
        for objective, trimmed in (
            (sum(cp.quad_over_lin(x[n], y[n]) for n in range(4)), np.sum(a**2 / b)),
            (sum(cp.quad_over_lin(y[n], x[n]) for n in range(4)), np.sum(b**2 / a)),
            (cp.sum(cp.rel_entr(x, y)), np.sum(a * np.log(a / b))),
        ):
            best = cp.Problem(cp.Minimize(objective), inside).solve(solver=cp.CLARABEL)
            assert trimmed == pytest.approx(best, rel=1e-6)


def test_approximate_zcdp_is_between_zero_and_zcdp():
    """delta = 0 is zCDP; more delta costs less; from the total variation on it is zero."""
    q = [[0.6, 0.3, 0.1], [0.1, 0.4, 0.5]]
    assert approximate_zcdp(q, 0.0).value == pytest.approx(zcdp(q).value, rel=1e-10)
    assert 0 < approximate_zcdp(q, 0.3).value < approximate_zcdp(q, 0.1).value < zcdp(q).value
    assert approximate_zcdp(q, 0.5 + 1e-9).value == 0
    assert approximate_zcdp(q, 1.0).value == 0


def test_an_epsilon_delta_channel_is_approximately_concentrated():
    """(epsilon, delta)-LDP gives delta-approximate epsilon^2/2-zCDP; the trimmed laws are epsilon-LDP [BS, Cor 8.7].

    Disjoint supports of mass delta make zCDP infinite and approximate zCDP that of the rest.
    """
    epsilon, delta = 1.0, 0.05
    e = math.exp(epsilon)
    p = np.array([delta, (1 - delta) * e / (1 + e), (1 - delta) / (1 + e), 0.0])
    q = np.stack([p, p[::-1]])
    assert zcdp(q).value == math.inf
    assert approximate_zcdp(q, delta * (1 + 1e-12)).value == pytest.approx(epsilon * math.tanh(0.5), rel=1e-6)
    rng = np.random.default_rng(1)
    for _ in range(5):
        q = rng.dirichlet(np.ones(4), 3)
        epsilon = 0.5 * local_dp(q).value
        delta = hockey_stick(q, epsilon).value
        assert approximate_zcdp(q, delta).lower <= epsilon**2 / 2
        assert approximate_zcdp(q, delta, xi=epsilon * (1 + 1e-9)).value <= 1e-9


def test_approximate_zcdp_returns_the_epsilon_at_delta():
    """delta-approximate (xi, 0)-zCDP is (xi, delta)-DP [BS, Lem 8.8]: rho is zero only when xi reaches epsilon."""
    q = [[0.7, 0.2, 0.1], [0.2, 0.5, 0.3]]
    epsilon = 0.8
    delta = hockey_stick(q, epsilon).value
    assert approximate_zcdp(q, delta, xi=epsilon - 1e-3).lower > 0
    assert renyi(q, math.inf).value > epsilon


def test_ratios_beyond_the_range_of_doubles():
    """An epsilon above 709 with zeros beside it gives a bracket, not NaN."""
    found = approximate_zcdp([[1 - 1e-3, 1e-3, 0.0], [1e-320, 0.5, 0.5]], 1e-4)
    assert found.lower <= found.value
    assert not math.isnan(found.value)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("delta", "xi"), [(1e-6, 0.0), (0.05, 0.1)])
def test_the_screen_brackets_every_pair_of_approximate_zcdp(seed, delta, xi):
    """Whatever the screen says of a pair holds of its own bracket, so that no pair that matters is left out.

    Where some pair is infinite, no other pair matters.
    """
    rng = np.random.default_rng(seed)
    q = truth.FAMILIES[seed % len(truth.FAMILIES)](rng, 6, 5)
    q = q / q.sum(axis=1, keepdims=True)
    i, j = np.triu_indices(len(q), 1)
    (low, high), (least, most) = _screen_approximate(q, delta, xi), approximate_zcdp_of_pairs(q[i], q[j], delta, xi)
    assert (low[i, j] <= most).all()
    matters = least == np.inf if (least == np.inf).any() else least >= 0
    assert (high[i, j] >= least)[matters].all()


def test_a_screened_channel_has_the_value_of_its_worst_pair_of_approximate_zcdp():
    """Twenty inputs: the screen leaves few pairs, and the answer is that of measuring all of them."""
    q = np.random.default_rng(5).dirichlet(np.ones(20), 20) + 1e-4
    q /= q.sum(axis=1, keepdims=True)
    i, j = np.triu_indices(20, 1)
    least, most = approximate_zcdp_of_pairs(q[i], q[j], 0.01)
    found = approximate_zcdp(q, 0.01)
    assert (found.lower, found.value) == (least.max(), most.max())


@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.05])
def test_a_row_stands_for_its_normalized_distribution(delta):
    """Rows whose sums are off by up to 1e-9, on either side, measure as the rows divided by their sums do."""
    rng = np.random.default_rng(2)
    for _ in range(4):
        q = rng.dirichlet(np.full(4, 2.0), 2)
        off = q * (1 + 9e-10 * np.array([[1.0], [-1.0]]))
        found, law = approximate_zcdp(off, delta), approximate_zcdp(q, delta)
        assert found.value == pytest.approx(law.value, rel=1e-11)
        assert found.lower == pytest.approx(law.lower, rel=1e-11)


MCDP_CASES = json.loads((Path(__file__).parents[1] / "data" / "channel_measures.json").read_text())["cases"]


@pytest.mark.parametrize("case", MCDP_CASES)
def test_mcdp_meets_the_oracle(case):
    """The values of the reference computation, to 1e-7."""
    found = mcdp(case["channel"])
    assert found.mu.value == pytest.approx(case["mcdp_mu"], rel=1e-7)
    assert found.tau.value == pytest.approx(case["mcdp_tau"], rel=1e-7)


@pytest.mark.parametrize("epsilon", [1e-4, 0.01, 1.0, 5.0, 50.0])
def test_randomized_response_has_the_closed_form(epsilon):
    """Binary randomized response: mu = epsilon tanh(epsilon/2), tau^2 = 2 mu, below mu = eps (e^eps-1)/2, tau = eps."""
    low = math.exp(-epsilon) / (1 + math.exp(-epsilon))
    found = mcdp([[1 - low, low], [low, 1 - low]])
    truth = epsilon * math.tanh(epsilon / 2)
    assert found.mu.value == pytest.approx(truth, rel=1e-9)
    assert found.tau.value**2 == pytest.approx(2 * truth, rel=1e-9)
    assert found.mu.value <= epsilon * math.expm1(epsilon) / 2  # [DR, Thm 3.5]
    assert found.tau.value <= epsilon * (1 + 1e-9)


def test_mcdp_bounds_zcdp():
    """(mu, tau)-mCDP gives (mu - tau^2/2, tau^2/2)-zCDP [BS, Lem 4.2], tight for binary randomized response."""
    rng = np.random.default_rng(0)
    for q in [rng.dirichlet(np.full(4, 0.8), 3) for _ in range(10)] + [np.array([[0.9, 0.1], [0.1, 0.9]])]:
        found = mcdp(q)
        rho = found.tau.value**2 / 2
        assert zcdp(q, found.mu.value - rho).lower <= rho
    assert zcdp(q, found.mu.value - rho).value == pytest.approx(rho, rel=1e-9)


def test_post_processing_can_raise_the_subgaussian_standard():
    """Merging the middle of a Gaussian breaks (2/sigma^2, 2/sigma)-mCDP at sigma = 1, t = 3 [BS, Prop A.1]."""
    p, q = 1 - NormalDist().cdf(2.0), 1 - NormalDist().cdf(4.0)
    merged = mcdp([[p, 1 - p - q, q], [q, 1 - p - q, p]])
    assert merged.tau.lower > 2.0
    z, mean = math.log(p / q), (p - q) * math.log(p / q)
    moment = (p * math.exp(2 * z) + q * math.exp(-2 * z) + 1 - p - q) * math.exp(-2 * mean)
    assert moment > math.exp(2 * 2**2)  # the paper's own check, lambda = 2
    # The same within the toolkit: a finely binned Gaussian mechanism, of which the above is a merging.
    edges = np.linspace(-3, 3, 61)
    cells = np.concatenate([[-np.inf], edges, [np.inf]])
    law = [[NormalDist(x).cdf(b) - NormalDist(x).cdf(a) for a, b in pairwise(cells)] for x in (1, -1)]
    fine = Channel(np.array(law) / np.sum(law, axis=1, keepdims=True))
    coarse = fine.merge([range(1, 61)])
    assert coarse.shape == (2, 3)
    assert mcdp(fine).tau.value < 2.01 < mcdp(coarse).tau.lower
    assert mcdp(coarse).mu.lower <= mcdp(fine).mu.value


def test_the_loss_of_a_symmetric_distribution_is_measured_to_the_bracket():
    """A loss with no odd cumulants, flat at the origin, still gets a bracket of 1e-10: a fair coin's is +-z."""
    found = mcdp([[0.5, 0.5], [0.25, 0.75]])
    z = math.log(0.5 / 0.25) - (math.log(2) + math.log(2 / 3)) / 2
    # Forward, Z is z or -z with probability one half: tau = z (Hoeffding is exact). Backward it is skewed.
    assert found.tau.value - found.tau.lower <= 1e-10
    assert found.tau.value >= z


@pytest.mark.full(but=6)
@pytest.mark.parametrize("seed", range(16))
def test_the_screen_brackets_every_pair_of_mcdp(seed):
    """Whatever the screen says of a pair holds of its own bracket, so that no pair that matters is left out.

    Where some pair is infinite, no other pair matters.
    """
    rng = np.random.default_rng(seed)
    q = truth.FAMILIES[seed % len(truth.FAMILIES)](rng, 6, 5)
    q = q / q.sum(axis=1, keepdims=True) * (1 + rng.uniform(-9e-10, 9e-10, (len(q), 1)))
    i, j = np.nonzero(~np.eye(len(q), dtype=bool))
    (low, high), (least, most) = _screen_mcdp(q), subgaussian_of_pairs(q[i], q[j])
    assert (low[i, j] <= most).all()
    matters = least == np.inf if (least == np.inf).any() else least >= 0
    assert (high[i, j] >= least)[matters].all()


def test_a_screened_channel_has_the_value_of_its_worst_pair_of_mcdp():
    """Twenty inputs: the screen leaves few pairs, and the answer is that of measuring all of them."""
    q = np.random.default_rng(5).dirichlet(np.ones(20), 20) + 1e-4
    q /= q.sum(axis=1, keepdims=True)
    i, j = np.nonzero(~np.eye(20, dtype=bool))
    least, most = subgaussian_of_pairs(q[i], q[j])
    found = mcdp(q).tau
    assert (found.lower, found.value) == (least.max(), most.max())


def test_rows_of_one_distribution_have_no_spread():
    """Two rows of different sums and one distribution have tau 0, except for possible rounding."""
    p = np.array([[0.5, 0.5]])
    low, high = subgaussian_of_pairs(p, p + 2.0**-40)
    assert low[0] == 0
    assert 0 < high[0] <= 2.0**-48
