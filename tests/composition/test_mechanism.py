""""""

import itertools
import math
from fractions import Fraction

import adaptive_trees as trees
import numpy as np
import pytest

from ldpopt.composition import FinitePair, Ledger, compose
from ldpopt.composition.mechanism import best_in_order, best_pair
from ldpopt.mechanisms import ContinuousPair, gaussian, laplace


def random_rational_channel(rng, most=3, scale=16):
    """A channel with rational entries, as fractions and as floats that are exactly those."""
    k, m = int(rng.integers(2, most + 1)), int(rng.integers(2, most + 1))
    rows = []
    for _ in range(k):
        cuts = np.sort(rng.choice(np.arange(1, scale), m - 1, replace=False))
        rows.append([Fraction(int(n), scale) for n in np.diff(np.concatenate([[0], cuts, [scale]]))])
    return rows


def floats(channel):
    return [[float(entry) for entry in row] for row in channel]


@pytest.mark.parametrize("seed", range(16))
def test_lists_of_channels_against_every_strategy(seed):
    """compose of two or three channels brackets the best strategy in the order given, by rational brute force.

    Where it says exact, which it does for one channel used several times, both ends are the best strategy's.
    """
    rng = np.random.default_rng([5, seed])
    same = seed % 2 == 0
    channels = (
        [random_rational_channel(rng, 3 if same else 2)] * 2
        if same
        else [random_rational_channel(rng, 2) for _ in range(3)]
    )
    composed = compose([floats(channel) for channel in channels])
    for epsilon in (0.0, 0.3, 1.0):
        ratio = Fraction(math.exp(epsilon))
        truth, found = trees.best_strategy(channels, ratio), composed.hockey_stick(epsilon)
        error = Fraction(1, 10**15)  # of the float exp(epsilon)
        assert Fraction(found.lower) <= truth + error
        assert truth <= Fraction(found.value) + error
        orders = [trees.best_strategy(list(order), ratio) for order in itertools.permutations(channels)]
        assert Fraction(found.value) >= max(orders) - error
        assert found.value == pytest.approx(float(max(orders)), abs=1e-11) or not same
        if found.exact:
            assert float(truth) == pytest.approx(found.value, abs=1e-11)
            assert float(truth) == pytest.approx(found.lower, abs=1e-11)
        assert found.exact or not same
    epsilon = composed.approximate_dp(0.05)
    assert epsilon.lower <= epsilon.value
    assert trees.best_strategy(channels, Fraction(math.exp(epsilon.value))) <= Fraction(5, 100) + Fraction(1, 10**12)


def test_the_product_of_least_pairs_is_above_the_best_strategy():
    """One channel used twice where the old answer, the product of least pairs, is per cents above the truth."""
    channel = [[0.75, 0.25], [0.125, 0.875]]
    rational = [[Fraction(entry) for entry in row] for row in channel]
    least = FinitePair.of_channel(channel)
    loose = FinitePair(np.outer(least.p, least.p).ravel(), np.outer(least.q, least.q).ravel())
    worst = 0.0
    for epsilon in np.linspace(0.0, 3.0, 31):
        truth = float(trees.best_strategy([rational] * 2, Fraction(math.exp(epsilon))))
        found = compose([channel], 2).hockey_stick(epsilon)
        assert found.exact
        assert found.lower <= truth * (1 + 1e-12) + 1e-15
        assert truth <= found.value * (1 + 1e-12)
        assert found.value == pytest.approx(truth, rel=1e-10, abs=1e-14)
        if truth > 1e-3:
            worst = max(worst, float(loose.hockey_stick(epsilon)) / truth)
    assert worst > 1.01


@pytest.mark.full
def test_longer_lists_are_bounds():
    """Too many uses for the search: a bound, labelled so, whose lower end a fixed choice of inputs attains."""
    channel = np.random.default_rng(0).dirichlet(np.ones(4), 3)
    composed = compose([channel], 120)
    found = composed.hockey_stick(3.0)
    assert not found.exact
    assert 0 < found.lower <= found.value
    fixed = max(
        float(compose([FinitePair(channel[a], channel[b])], 120).hockey_stick(3.0).value)
        for a, b in itertools.permutations(range(3), 2)
    )
    assert found.lower <= fixed <= found.value
    assert not composed.approximate_dp(1e-6).exact
    assert composed.renyi(2.0).lower <= composed.renyi(2.0).value


def test_symmetric_channels_stay_exact():
    """Pairs of rows that are alike up to relabelling are one pair: nothing to choose, whatever the order."""
    response = np.full((4, 4), 0.1) + 0.6 * np.eye(4)
    assert compose([response, [[0.75, 0.25], [0.25, 0.75]], (0.2, 0.0, 0.05)], 30).attained
    assert compose([response], 30).attained
    assert Ledger().add(response, 30).composed.attained


def test_a_channel_with_parameters_and_noise_covers_a_tree():
    """A pair of the class, a channel with different rows and noise: the value covers a tree, lower ends stay below."""
    channel = [[0.75, 0.25], [0.125, 0.875]]
    response = [
        [1 / (1 + math.exp(-0.5)), 1 / (1 + math.exp(0.5))],
        [1 / (1 + math.exp(0.5)), 1 / (1 + math.exp(-0.5))],
    ]
    composed = compose([channel, (0.5,)])
    p, q = trees.joint(
        [channel, response],
        lambda seen, left: (
            (1, 0, 1) if not seen else ((0, 0, 1) if seen[0][3] == 0 else (0, 1, 0)) if 0 in left else None
        ),
    )
    for epsilon in (0.0, 0.5, 1.5):
        reached = trees.hockey_stick(p, q, math.exp(epsilon))
        found = composed.hockey_stick(epsilon)
        assert float(reached) <= found.value * (1 + 1e-12)
        assert found.lower <= found.value
    noisy = compose([laplace(1.0), channel]).hockey_stick(0.5)
    assert 0.9 * noisy.value <= noisy.lower <= noisy.value  # the channel counts by one pair of its rows
    assert not noisy.exact


def test_the_search_says_when_it_is_too_much():
    """More uses or outcomes than the budget give no pair, and nothing of a pair is left out of a small one."""
    rows = tuple(FinitePair(*pair) for pair in np.random.default_rng(1).dirichlet(np.ones(9), (20, 2)))
    assert best_pair([(rows, 65)]) is None
    assert best_in_order([(rows, 65)]) is None
    assert best_in_order([(rows, 64)]) is None
    assert best_pair([(rows, 40)]) is None
    pair = best_pair([(rows[:1], 2)])
    assert pair is not None
    np.testing.assert_allclose(np.sort(pair.p), np.sort(np.outer(rows[0].p, rows[0].p).ravel()), rtol=1e-12)


def test_noise_beside_a_channel_is_bracketed():
    """Two answers with loss log 3 and Gaussian noise: delta is a mixture of two shifted Gaussian curves."""
    both, pair = compose([gaussian(1.0), [[0.75, 0.25], [0.25, 0.75]]]), gaussian(1.0).pair
    for epsilon in (-0.7, 0.0, 0.5, 3.0, 6.0):
        truth = sum(share * pair.hockey_stick(epsilon - loss).value
                    for share, loss in ((0.75, math.log(3)), (0.25, -math.log(3))))  # fmt: skip
        found = both.hockey_stick(epsilon)
        assert found.lower <= truth * (1 + 1e-12)
        assert truth * (1 - 1e-12) <= found.value
        assert 1 - 2e-3 <= found.lower / found.value < 1
        assert not found.exact


@pytest.mark.full
def test_pairs_that_need_not_be_attained_have_a_lower_end_of_zero():
    """Densities of a caller beside a channel are covered by a pair that dominates them, which need not be attained."""
    pair = gaussian(1.0).pair
    plain = ContinuousPair(pair.log_p, pair.log_q, pair.edges)
    found = compose([plain, [[0.75, 0.25], [0.25, 0.75]]]).hockey_stick(0.5)
    assert (found.lower, found.exact) == (0.0, False)
    assert found.value == pytest.approx(compose([pair, [[0.75, 0.25], [0.25, 0.75]]]).hockey_stick(0.5).value, rel=1e-3)


def test_largest_losses_of_a_channel_and_a_class_add_up():
    """The largest losses of a channel and of a class add up, at both ends."""
    channel = np.array([[0.6, 0.3, 0.1], [0.3, 0.5, 0.2], [0.2, 0.2, 0.6]])
    largest = max(math.log(a / b) for x in channel for z in channel for a, b in zip(x, z, strict=True))
    found = compose([channel, (0.5,), (0.25,)]).local_dp()
    assert found.value == pytest.approx(largest + 0.75, rel=1e-12)
    assert found.lower == pytest.approx(largest + 0.75, rel=1e-12)
    assert found.lower <= largest + 0.75 <= found.value
