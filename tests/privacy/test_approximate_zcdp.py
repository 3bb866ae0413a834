import math

import numpy as np
import pytest
import truth

from ldpopt.privacy import approximate_zcdp, hockey_stick, local_dp, renyi, zcdp
from ldpopt.privacy.approximate_dp import epsilon_of_pairs
from ldpopt.privacy.concentrated import _cut, _screen_approximate, approximate_zcdp_of_pairs


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


def test_it_is_between_nothing_and_zcdp():
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


def test_it_gives_back_an_epsilon_at_delta():
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


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize(("delta", "xi"), [(1e-6, 0.0), (0.05, 0.0), (0.01, 0.1)])
def test_the_screen_brackets_every_pair(seed, delta, xi):
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


def test_a_screened_channel_has_the_value_of_its_worst_pair():
    """Twenty inputs: the screen leaves few pairs, and the answer is that of measuring all of them."""
    q = np.random.default_rng(5).dirichlet(np.ones(20), 20) + 1e-4
    q /= q.sum(axis=1, keepdims=True)
    i, j = np.triu_indices(20, 1)
    least, most = approximate_zcdp_of_pairs(q[i], q[j], 0.01)
    found = approximate_zcdp(q, 0.01)
    assert (found.lower, found.value) == (least.max(), most.max())


@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.05])
def test_a_row_stands_for_its_law(delta):
    """Rows whose sums are off by up to 1e-9, on either side, measure as the rows divided by their sums do."""
    rng = np.random.default_rng(2)
    for _ in range(10):
        q = rng.dirichlet(np.full(4, 2.0), 2)
        off = q * (1 + 9e-10 * np.array([[1.0], [-1.0]]))
        found, law = approximate_zcdp(off, delta), approximate_zcdp(q, delta)
        assert found.value == pytest.approx(law.value, rel=1e-11)
        assert found.lower == pytest.approx(law.lower, rel=1e-11)
