import math
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import staircase
from ldpopt.numbers.rounding import ULP
from ldpopt.privacy import (
    FinitePair,
    approximate_dp,
    approximate_zcdp,
    audit,
    hockey_stick,
    local_dp,
    mcdp,
    renyi,
    total_variation,
    trade_off,
    zcdp,
)


def brute(p, q, epsilon):
    return np.maximum(np.asarray(p) - math.exp(epsilon) * np.asarray(q), 0).sum()


@pytest.mark.parametrize(("epsilon", "delta", "eta"), [(1.0, 0.0, 0.3), (0.2, 0.1, 0.15), (3.0, 1e-6, None)])
def test_pair_of_parameters_attains_all_three(epsilon, delta, eta):
    """The dominating pair has exactly the given epsilon, delta and eta (GI eq. 7-8, 70-71)."""
    pair = FinitePair.of_parameters(epsilon, delta, eta)
    assert float(pair.hockey_stick(epsilon)) == pytest.approx(delta, abs=1e-14)
    assert float(pair.hockey_stick(epsilon * 0.999)) > delta
    expected = delta + (1 - delta) * math.tanh(epsilon / 2) if eta is None else eta
    assert float(pair.hockey_stick(0.0)) == pytest.approx(expected, rel=1e-12)
    assert pair.symmetric


def test_kl_of_the_three_point_pair_is_epsilon_eta():
    """KL of the pair without delta is epsilon eta, in both directions."""
    pair = FinitePair.of_parameters(1.0, 0.0, 0.25)
    assert float(pair.renyi(1.0)) == pytest.approx(0.25, rel=1e-12)
    assert float(pair.swapped.renyi(1.0)) == pytest.approx(0.25, rel=1e-12)


def test_renyi_is_its_definition():
    """D_a is log sum p^a q^(1-a) / (a - 1), near order 1 and at infinity too."""
    rng = np.random.default_rng(3)
    p, q = rng.dirichlet(np.ones(5), 2)
    pair = FinitePair(p, q)
    for order in (1.5, 2.0, 30.0):
        assert float(pair.renyi(order)) == pytest.approx(
            math.log((p**order * q ** (1 - order)).sum()) / (order - 1), rel=1e-12
        )
    assert float(pair.renyi(math.inf)) == pytest.approx(np.log(p / q).max(), rel=1e-12)
    kl = (p * np.log(p / q)).sum()
    assert float(pair.renyi(1.0)) == pytest.approx(kl, rel=1e-12)
    values = [float(found) for found in pair.renyi(1 + np.geomspace(1e-12, 1e-2, 60))]
    assert (np.diff(values) >= -1e-12).all()
    assert values[0] == pytest.approx(kl, rel=1e-9)


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(2, 6))
def test_hull_is_the_worst_pair_at_every_epsilon(seed, inputs, outputs):
    """The dominating pair of a channel has, at every epsilon, the hockey stick of the worst pair of rows."""
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.ones(outputs) * rng.choice([0.2, 1.0, 5.0]), inputs)
    pair = FinitePair.of_channel(q)
    for epsilon in [0.0, *rng.exponential(1.0, 8)]:
        worst = max(brute(a, b, epsilon) for a in q for b in q)
        assert float(pair.hockey_stick(epsilon)) == pytest.approx(worst, rel=1e-9, abs=1e-14)
        assert float(pair.swapped.hockey_stick(epsilon)) == pytest.approx(worst, rel=1e-9, abs=1e-14)
    largest = max(float(FinitePair(a, b).losses.max()) for a in q for b in q if a is not b)
    if math.isfinite(largest):
        assert pair.losses[0] == pytest.approx(largest, rel=1e-9, abs=1e-12)


@settings(max_examples=25)
@given(st.integers(0, 10**6))
def test_the_hull_of_channels_with_zeros_has_the_largest_delta(seed):
    """Several inputs with infinite losses of different mass: the dominating pair has the largest, at every epsilon.

    Its powers are raised by 32 ulps, for the rounding of hulls.
    """
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.ones(5), 4) * (rng.random((4, 5)) < 0.6) + np.eye(4, 5) * 1e-3
    q /= q.sum(axis=1, keepdims=True)
    pair = FinitePair.of_channel(q)
    for epsilon in (0.0, 0.7, 3.0, 50.0):
        worst = hockey_stick(q, epsilon)
        assert pair.hockey_stick(epsilon).lower <= worst.value * (1 + 40 * ULP)
        assert worst.lower <= pair.hockey_stick(epsilon).value


def test_measures_are_those_of_the_channel():
    """Every measure of a pair is the measure of its two-row channel, and every measure takes the pair itself."""
    pair = FinitePair([0.5, 0.3, 0.2], [0.2, 0.2, 0.6], ("a", "b", "c"))
    assert pair.local_dp() == local_dp(pair.channel) == local_dp(pair)
    assert pair.total_variation() == total_variation(pair.channel)
    assert pair.hockey_stick(0.2) == hockey_stick(pair.channel, 0.2)
    assert pair.approximate_dp(0.1) == approximate_dp(pair.channel, 0.1)
    assert pair.trade_off() == trade_off(pair.channel)
    assert pair.renyi([1, 2]) == renyi(pair.channel, [1, 2])
    assert pair.zcdp() == zcdp(pair.channel)
    assert pair.approximate_zcdp(0.1) == approximate_zcdp(pair.channel, 0.1)
    assert pair.mcdp() == mcdp(pair.channel)
    assert audit(pair)["zcdp"] == pair.zcdp()
    assert pair.local_dp().witness.outputs == ("c",)
    assert staircase(1.0, 0.5).pair.renyi(2).value == pytest.approx(0.7353250, rel=1e-6)
    with pytest.raises(InvalidInput, match="outputs"):
        FinitePair([0.5, 0.5], [0.5, 0.5], ("a",))


def test_pair_through_points_above_a_curve_dominates_it():
    """The pair through upper bounds of a hockey-stick curve is exact at them and above it between them."""
    at = np.linspace(0.0, 12.0, 40)
    curve = ndtr(0.5 - at) - np.exp(at) * ndtr(-0.5 - at)  # a Gaussian of mu = 1
    pair = FinitePair.through(at, curve)
    assert pair.symmetric
    for epsilon in np.linspace(0.0, 11.9, 77):
        exact = ndtr(0.5 - epsilon) - math.exp(epsilon) * ndtr(-0.5 - epsilon)
        assert float(pair.hockey_stick(epsilon)) >= exact - 1e-15
    for epsilon, delta in zip(at[:20], curve, strict=False):
        assert float(pair.hockey_stick(epsilon)) == pytest.approx(delta, rel=1e-9)


def test_symmetric_channel_keeps_its_own_masses():
    """k-ary randomized response is dominated by one pair of its own rows, found exactly."""
    pair = FinitePair.of_channel(0.1 * np.ones((4, 4)) + 0.6 * np.eye(4))
    row = FinitePair([0.7, 0.1, 0.1, 0.1], [0.1, 0.7, 0.1, 0.1])
    assert pair == row.ordered
    assert len({pair, row.ordered, FinitePair([0.1, 0.7, 0.1, 0.1], [0.7, 0.1, 0.1, 0.1]).ordered}) == 1


def test_only_adjacent_inputs_enter_the_dominating_pair():
    """Only adjacent inputs enter the dominating pair."""
    q = np.array([[0.8, 0.1, 0.1], [0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
    graph = nx.path_graph(3)
    pair = FinitePair.of_channel(q, graph)
    for epsilon in (0.0, 0.5, 1.5):
        worst = max(brute(q[a], q[b], epsilon) for a, b in [(0, 1), (1, 0), (1, 2), (2, 1)])
        assert float(pair.hockey_stick(epsilon)) == pytest.approx(worst, rel=1e-12, abs=1e-15)
    assert float(FinitePair.of_channel(q, nx.Graph()).hockey_stick(0.0)) == 0.0


def test_constant_channel_leaks_nothing():
    """Equal rows give the trivial pair."""
    pair = FinitePair.of_channel([[0.3, 0.7], [0.3, 0.7]])
    assert float(pair.hockey_stick(0.0)) == 0.0
    assert [float(found) for found in pair.renyi([1.0, 2.0, math.inf])] == [0.0, 0.0, 0.0]


def test_impossible_outcomes_have_infinite_losses():
    """Outcomes of one side only are infinite losses, not NaN."""
    pair = FinitePair([0.5, 0.5, 0.0], [0.25, 0.0, 0.75])
    assert pair.infinite == 0.5
    assert sorted(pair.losses) == [-math.inf, math.log(2), math.inf]
    assert float(pair.hockey_stick(700.0)) == pytest.approx(0.75)  # the other direction
    assert math.isinf(float(pair.renyi(2.0)))


def test_bad_pairs_and_orders_are_refused():
    """Lengths, sums, an infinite epsilon and orders below one are refused."""
    for call in (
        lambda: FinitePair([0.5, 0.5], [1.0]),
        lambda: FinitePair([0.5, 0.6], [0.5, 0.5]),
        lambda: FinitePair([1.0], [1.0]).hockey_stick(-math.inf),
        lambda: FinitePair([1.0], [1.0]).renyi(0.5),
    ):
        with pytest.raises(InvalidInput):
            call()


def test_reports_that_only_one_input_can_give_are_not_lost():
    """The pair of a channel with zeros in several rows has the largest infinite mass among them, not the least."""
    q = np.array([[0.4, 0.4, 0.2], [0.1, 0.4, 0.5], [0.3, 0.7, 0.0]])
    pair = FinitePair.of_channel(q)
    assert pair.infinite == pytest.approx(0.5)
    worst = max(np.maximum(a - b, 0).sum() for a in q for b in q)
    assert float(pair.hockey_stick(0.0)) == pytest.approx(worst)
    two = np.array([[1.0, 0.0, 0.0], [0.75, 0.2, 0.05], [0.01, 0.8, 0.19]])
    assert FinitePair.of_channel(two).infinite == pytest.approx(0.99)


def test_tiny_telling_reports_beside_equal_ones_are_not_lost():
    """Reports of probability 1e-25 keep their loss although the rest of the rows agrees to rounding."""
    q = np.array([[1.0, 1e-56, 2e-25], [1.0, 1e-257, 1e-202], [1.0, 2e-79, 4e-104]])
    assert float(FinitePair.of_channel(q).hockey_stick(100.0)) == pytest.approx(2e-25, rel=1e-9)


def test_rows_that_rounding_makes_equal_are_not_called_equal():
    """Rows that agree once they are divided by their sums keep a loss of an ulp; truly equal rows have none."""
    almost = FinitePair([0.25450975539444254, 0.7454902445794408], [0.25450975541467896, 0.7454902446387157])
    assert 0 < np.abs(almost.losses).max() < 1e-15
    assert FinitePair([0.25, 0.75], [0.25, 0.75]).losses.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("rate", [0.0, 1e-12, 1e-3, 0.4, 1.0])
def test_poisson_subsampling_is_the_mixture(rate):
    """r p + (1 - r) q against q in rationals, both directions: never understated, and above by rounding only [ZDW]."""
    rng = np.random.default_rng(5)
    for _ in range(10):
        p, q = rng.dirichlet(np.full(5, 0.6), 2)
        pair = FinitePair(p, q)
        made = pair.subsampled(rate)
        left, right = ([Fraction(float(x)) for x in law] for law in (pair.p, pair.q))
        left, right = ([x / sum(law) for x in law] for law in (left, right))
        mixed = [Fraction(rate) * x + (1 - Fraction(rate)) * y for x, y in zip(left, right, strict=True)]
        for epsilon in (0.0, rate, 1.0):
            factor = Fraction(math.exp(epsilon))
            exact = max(
                sum(max(x - factor * y, Fraction(0)) for x, y in zip(one, two, strict=True))
                for one, two in ((mixed, right), (right, mixed))
            )
            found = made.hockey_stick(epsilon).value
            assert Fraction(found) * (1 + Fraction(1, 10**14)) >= exact * (1 - Fraction(1, 10**14))
            assert found <= float(exact) * (1 + 1e-12) + 1e-13
    assert FinitePair([0.5, 0.5], [0.5, 0.5]).subsampled(0.5).total_variation().value == 0
    with pytest.raises(InvalidInput, match="rate"):
        FinitePair([0.5, 0.5], [0.4, 0.6]).subsampled(1.2)


def test_both_ways_is_the_least_pair_for_both_directions():
    """The pair that covers both directions is symmetric, is as private as the worse one, and keeps a symmetric one."""
    pair = FinitePair([0.2, 0.5, 0.3], [0.5, 0.1, 0.4])
    both = pair.both_ways()
    assert both.symmetric
    assert both.both_ways() is both
    for epsilon in (0.0, 0.1, 0.4, 0.9, 1.5, 3.0):
        own, worse = both.hockey_stick(epsilon), pair.hockey_stick(epsilon)
        assert own.value >= worse.lower
        assert own.value == pytest.approx(worse.value, rel=1e-12, abs=1e-15)
