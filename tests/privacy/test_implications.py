""""""

import itertools
import math

import numpy as np
import pytest

from ldpopt.errors import InvalidInput
from ldpopt.privacy import ZCDP, ApproximateDP, FinitePair, PureDP, RenyiDP
from ldpopt.privacy import implications as info
from ldpopt.privacy.implications import group_approximate, group_gaussian_mcdp, group_pure, group_renyi, group_zcdp


def chain(seed, size):
    """Distributions P_0..P_size, each close to the next."""
    rng = np.random.default_rng(seed)
    steps = [rng.dirichlet(np.ones(5) * 4)]
    for _ in range(size):
        moved = steps[-1] * np.exp(rng.uniform(-0.3, 0.3, 5))
        steps.append(moved / moved.sum())
    return steps


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("size", [2, 4])
def test_groups_hold_along_chains(seed, size):
    """What holds between neighbours of a chain holds between its ends as each theorem says."""
    steps = chain(seed, size)
    neighbours = [FinitePair(a, b) for a, b in itertools.pairwise(steps)]
    ends = FinitePair(steps[0], steps[-1])
    epsilon = max(float(pair.local_dp()) for pair in neighbours)
    assert ends.local_dp().lower <= group_pure(PureDP(epsilon), size).epsilon
    order = 8.0
    renyi = max(float(pair.renyi(order)) for pair in neighbours)
    grouped = group_renyi(RenyiDP(order, renyi), int(math.log2(size)))
    assert float(ends.renyi(grouped.order)) <= grouped.epsilon
    orders = np.geomspace(1.001, 200, 60)
    rho = max(float(pair.zcdp()) for pair in neighbours)
    zcdp = group_zcdp(ZCDP(0.0, rho), size)
    assert all(found.lower <= zcdp.xi + zcdp.rho * found.parameters["order"] for found in ends.renyi(orders))
    at = epsilon / 2
    delta = max(float(pair.hockey_stick(at)) for pair in neighbours)
    approximate = group_approximate(ApproximateDP(at, delta), size)
    assert ends.hockey_stick(approximate.epsilon).lower <= approximate.delta


def test_group_bounds_agree_with_the_papers():
    """BS Prop 5.3 and M Prop 2 as stated."""
    found = group_zcdp(ZCDP(0.1, 0.5), 3)
    assert (found.xi, found.rho) == (pytest.approx(0.1 * 3 * (1 + 1 / 2 + 1 / 3)), pytest.approx(4.5))
    assert group_renyi(RenyiDP(8, 0.1), 2) == RenyiDP(2.0, group_renyi(RenyiDP(8, 0.1), 2).epsilon)
    assert group_renyi(RenyiDP(8, 0.1), 2).epsilon == pytest.approx(0.9)
    assert group_zcdp(ZCDP(-0.1, 0.5), 2).xi == 0.0


@pytest.mark.parametrize(
    "call",
    [
        lambda: group_renyi(RenyiDP(3.9, 0.1), 1),
        lambda: group_pure(PureDP(1.0), 0),
        lambda: group_gaussian_mcdp(1.0, 0.0),
        lambda: group_gaussian_mcdp(-1.0, 1.0),
        lambda: group_zcdp(PureDP(1.0), 2),
    ],
)
def test_bad_orders_groups_and_notions_are_refused(call):
    """Orders too small for the group, empty groups and wrong notions are refused."""
    with pytest.raises(InvalidInput):
        call()


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0])
def test_group_delta_is_the_geometric_sum(epsilon):
    """[GI, Def 1] applied three times: delta (1 + e^epsilon + e^(2 epsilon)), which is 3 delta for epsilon 0."""
    made = group_approximate(ApproximateDP(epsilon, 1e-6), 3)
    assert made.delta == pytest.approx(1e-6 * (1 + math.exp(epsilon) + math.exp(2 * epsilon)), rel=1e-12)


def test_no_doubling_leaves_the_claim():
    """Groups of one person have the claim itself, and fewer than none there are not."""
    alone = group_renyi(RenyiDP(8.0, 0.125), 0)
    assert (alone.order, alone.epsilon) == (8.0, pytest.approx(0.125, rel=1e-15))
    with pytest.raises(InvalidInput):
        group_renyi(RenyiDP(8.0, 0.125), -1)
    assert group_renyi(RenyiDP(8.0, 0.125), 2).order == 2.0
    with pytest.raises(InvalidInput, match="order"):
        group_renyi(RenyiDP(8.0, 0.125), 3)


def mutual_information(prior, channel):
    joint = prior[:, None] * channel
    return float((joint * np.log(joint / (prior[:, None] * joint.sum(0)))).sum())


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_information_bounds_hold_for_randomized_response(epsilon):
    """I(X; M(X)) of people answering by randomized response is within BS Prop 6.1 and Lemma 6.2."""
    share = math.exp(epsilon) / (1 + math.exp(epsilon))
    one = np.array([[share, 1 - share], [1 - share, share]])
    rho = epsilon * math.tanh(epsilon / 2)
    claim = ZCDP(0.0, rho)
    uniform = np.full(2, 0.5)
    assert mutual_information(uniform, one) <= info.information_independent(claim, 1)
    # Three people with one common answer, each reporting: the joint report of the common bit.
    rows = np.stack([np.kron(np.kron(r, r), r) for r in one])
    assert mutual_information(uniform, rows) <= info.information_any(claim, 3)
    # Two independent blocks of three.
    assert 2 * mutual_information(uniform, rows) <= info.information_blocks(claim, 2, 3)


def test_information_bounds_are_the_stated_sums():
    """The bounds are the stated sums, with the harmonic number of their proofs."""
    claim = ZCDP(0.1, 0.2)
    assert info.information_any(claim, 3) == pytest.approx(0.1 * 3 * (1 + 1 / 2 + 1 / 3) + 0.2 * 9)
    assert info.information_any(claim, 3) <= 0.1 * 3 * (1 + math.log(3)) + 0.2 * 9
    assert info.information_independent(claim, 10) == pytest.approx(3.0)
    assert info.information_blocks(claim, 4, 1) == pytest.approx(1.2)


@pytest.mark.parametrize("order", [1.5, 2.0, 20.0, math.inf])
def test_bad_outcomes_and_bayes_factors_hold_on_random_pairs(order):
    """M Table I: events and posterior odds of arbitrary pairs stay within the bounds of their exact divergence."""
    rng = np.random.default_rng(8)
    for _ in range(30):
        p, q = rng.dirichlet(np.ones(5), 2)
        pair = FinitePair(p, q)
        both = float(pair.renyi(order))
        claim = RenyiDP(order, both) if math.isfinite(order) else PureDP(both)
        for event in (np.array([1, 0, 0, 0, 0.0]), (p > q) * 1.0, (p < q) * 1.0):
            low, high = info.bad_outcome(claim, float(q @ event))
            assert low * (1 - 1e-12) <= p @ event <= high * (1 + 1e-12)
        power, bound = info.bayes_factor_moment(claim)
        ratio = p / q
        if math.isfinite(order):
            assert q @ ratio**power <= bound * (1 + 1e-9)
        else:
            assert ratio.max() <= bound
        assert p @ np.log(ratio) <= info.bayes_factor_log(claim)
        for factor in (1.1, 2.0, 10.0):
            assert p[ratio > factor].sum() <= info.bayes_factor_tail(claim, factor) + 1e-12


def test_composed_events():
    """M Prop 4 holds for n randomized responses and every threshold event."""
    epsilon, n = 0.3, 25
    share = math.exp(epsilon) / (1 + math.exp(epsilon))
    k = np.arange(n + 1)
    ways = np.array([math.comb(n, int(i)) for i in k], dtype=float)
    p, q = ways * share**k * (1 - share) ** (n - k), ways * share ** (n - k) * (1 - share) ** k
    for cut in range(n + 1):
        assert p[cut:].sum() <= info.composed_event(epsilon, n, min(1.0, q[cut:].sum())) * (1 + 1e-12)
    assert info.composed_event(epsilon, n, 0.0) == 0.0


def test_generalization_bounds_agree_with_the_papers():
    """CIM Thm 6 and 7: 8 sqrt(eps); the inequality holds for the full class by Pinsker."""
    assert info.restricted_pinsker(0.25) == pytest.approx(4.0)
    assert info.generalization_gap(1e-4) == pytest.approx(0.08)
    assert info.generalization_gap(10.0) == 1.0
    rng = np.random.default_rng(9)
    for _ in range(20):
        p, q = rng.dirichlet(np.ones(4), 2)
        kl = float((p * np.log(p / q)).sum())
        assert np.abs(p - q).sum() <= info.restricted_pinsker(kl)  # functions with range [-1, 1]


def test_extreme_claims_have_trivial_bounds():
    """No probability, no epsilon limit, order one."""
    assert info.bad_outcome(RenyiDP(2.0, 0.5), 0.0) == (0.0, 0.0)
    assert info.bad_outcome(PureDP(math.inf), 0.5) == (0.0, 1.0)
    assert info.bad_outcome(RenyiDP(1.0, 0.5), 0.5) == (0.0, 1.0)
    assert info.bayes_factor_tail(PureDP(1.0), math.e**1.1) == 0.0


@pytest.mark.parametrize(
    "call",
    [
        lambda: info.information_any(PureDP(1.0), 3),
        lambda: info.information_any(ZCDP(0, 1), 0),
        lambda: info.bad_outcome(RenyiDP(2, 1), 1.5),
        lambda: info.composed_event(-1.0, 3, 0.5),
        lambda: info.restricted_pinsker(-0.1),
        lambda: info.bayes_factor_tail(RenyiDP(2, 1), -1.0),
    ],
)
def test_bad_notions_and_numbers_of_information_are_refused(call):
    """Wrong notions and impossible numbers are refused."""
    with pytest.raises(InvalidInput):
        call()


def test_no_probability_exceeds_one():
    """A factor that the odds always move by has the bound one, and no more."""
    for order in (1.5, 4.0, 64.0):
        assert info.bayes_factor_tail(RenyiDP(order, 0.5), 1.0) == 1.0
