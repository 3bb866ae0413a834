"""Tests of `ldpopt.design.minimum_cut`: maximum flows against brute force over all cuts."""

import numpy as np
import pytest

from ldpopt.design.several_hypotheses import minimum_cut
from ldpopt.design.several_hypotheses.minimum_cut import Network


def problem(k, seed):
    """Profits and pairs, one way (even seeds) or both ways, some of them zero."""
    rng = np.random.default_rng(seed)
    pairs = rng.random((k, k)) * (rng.random((k, k)) < 0.5)
    np.fill_diagonal(pairs, 0.0)
    return rng.normal(size=k), np.triu(pairs) if seed % 2 == 0 else pairs


def route(pairs, profits, passes=2):
    sent, side = Network(pairs, passes).route(profits[None])
    return sent[0], side[0]


def side_profit(profits, pairs, side):
    return profits[side].sum() - pairs[np.ix_(side, ~side)].sum()


@pytest.mark.parametrize("seed", range(12))
def test_the_flow_leaves_the_profit_of_the_best_subset(seed):
    """The profit that no flow can move is that of the best of all 2^k subsets, and `side` is one."""
    k = 5 + seed % 4
    profits, pairs = problem(k, seed)
    subsets = ((np.arange(2**k)[:, None] >> np.arange(k)) & 1) == 1
    best = max(side_profit(profits, pairs, side) for side in subsets)
    sent, side = route(pairs, profits)
    assert np.maximum(profits - sent, 0.0).sum() == pytest.approx(best, abs=1e-12)
    assert side_profit(profits, pairs, side) == pytest.approx(best, abs=1e-12)
    once, _ = route(pairs, profits, 1)
    assert np.maximum(profits - once, 0.0).sum() == pytest.approx(best, abs=1e-7)


@pytest.mark.parametrize("seed", range(6))
def test_the_flow_bounds_every_column(seed):
    """h.q - sum nu (q_x - q_x')_+ is at most sum h' + (E-1) sum h'_+ for every column q in [1, E]^k."""
    profits, pairs = problem(7, seed)
    ratio = 3.0
    left = profits - route(pairs, profits)[0]
    bound = left.sum() + (ratio - 1) * np.maximum(left, 0.0).sum()
    columns = 1 + (ratio - 1) * np.random.default_rng(seed).random((3000, 7)) ** 0.3
    cuts = np.maximum(columns[:, :, None] - columns[:, None, :], 0.0)
    assert (columns @ profits - np.einsum("nxy,xy->n", cuts, pairs)).max() <= bound + 1e-12


def test_nothing_moves_without_pairs_or_without_both_signs():
    """Without multipliers, and where all inputs gain or all lose, the best subset is the sweep of signs."""
    profits = np.array([1.0, -2.0, 3.0])
    for h, pairs in (
        (profits, np.zeros((3, 3))),
        (np.abs(profits), np.ones((3, 3))),
        (-np.abs(profits), np.ones((3, 3))),
    ):
        sent, side = route(pairs, h)
        assert not sent.any()
        assert np.array_equal(side, h > 0)


def test_scale_does_not_matter():
    """Flows are as accurate for tiny multipliers as for large ones."""
    profits, pairs = problem(8, 3)
    left = np.maximum(profits - route(pairs, profits)[0], 0.0).sum()
    tiny = np.maximum(profits - route(pairs * 1e-9, profits * 1e-9)[0] * 1e9, 0.0).sum()
    assert tiny == pytest.approx(left, abs=1e-12)


@pytest.mark.parametrize("k", [3, 30])
def test_problems_routed_together_do_not_mix(k, monkeypatch):
    """Each of many problems of different size, in any split into networks, leaves what it leaves alone."""
    rng = np.random.default_rng(k)
    _, pairs = problem(k, 1)
    profits = rng.normal(size=(40, k)) * 10.0 ** rng.uniform(-6, 3, (40, 1))
    profits[7] = np.abs(profits[7])
    alone = np.array([np.maximum(h - route(pairs, h)[0], 0.0).sum() for h in profits])
    for arcs in (minimum_cut.ARCS_PER_BATCH, 5000):
        monkeypatch.setattr(minimum_cut, "ARCS_PER_BATCH", arcs)
        sent, side = Network(pairs).route(profits)
        assert np.maximum(profits - sent, 0.0).sum(axis=1) == pytest.approx(alone, rel=1e-12, abs=1e-12)
        assert [side_profit(h, pairs, own) for h, own in zip(profits, side, strict=True)] == pytest.approx(
            alone, abs=1e-9
        )


def test_zero_flows_are_enclosed_without_error():
    """Where nothing is routed the answer is zero between two zeros; a flow is known within the rounding of its sums."""
    profits, pairs = problem(5, 1)
    gains = np.abs(profits)
    still = Network(pairs, 2).sent_and_sides(gains[None])[0]
    assert np.asarray(still.lower).tolist() == np.asarray(still.upper).tolist() == [[0.0] * 5]
    moved = Network(pairs, 2).sent_and_sides(np.stack([profits, gains]))[0]
    middle = Network(pairs, 2).route(np.stack([profits, gains]))[0]
    assert (np.asarray(moved.upper)[0] > np.asarray(moved.lower)[0]).all()
    assert (np.asarray(moved.lower) <= middle).all()
    assert (middle <= np.asarray(moved.upper)).all()
    assert np.asarray(moved.upper)[1].tolist() == [0.0] * 5
