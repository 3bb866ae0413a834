"""Adaptive games: the joint law is that of the tree, and the repaired standard is never below it."""

import numpy as np
import pytest

from experiments.papers.claims.dr_groups import game, random_game
from experiments.papers.laws import deepest_pair, read_pair, rr
from ldpopt.composition import compose_mcdp
from ldpopt.privacy.claims import MCDP


def test_the_joint_distribution_of_a_tree_is_the_product_along_histories():
    """After a 0 the second response runs, after a 1 a coin: every history has the product of its probabilities."""
    (a, b), (c, d), coin = rr(1.0), rr(2.0), np.full(2, 0.5)
    found = game([[(a, b)], [(c, d), (coin, coin)]], [np.zeros(1, np.intp), np.arange(2)])
    assert found.p == pytest.approx(np.concatenate([a[0] * c, a[1] * coin]))
    assert found.q == pytest.approx(np.concatenate([b[0] * d, b[1] * coin]))


def test_random_games_never_exceed_the_composed_bounds():
    """The repaired standard and the composed bound are at least those of the joint distribution [DR, Thm 3.4]."""
    for seed in range(6):
        found = random_game(np.random.default_rng([1, seed]), depth=2)
        claims = [MCDP(mu, tau) for mu, tau in zip(found.means, found.standards, strict=True)]
        exact, printed, corrected, above = found.standards_of()
        assert exact <= corrected * (1 + 1e-9)
        assert exact <= compose_mcdp(claims).tau * (1 + 1e-9)
        assert above <= printed * (1 + 1e-9)


def test_the_search_reports_the_pair_it_rates():
    """The ratio in the row is that of the pair in the row, and above that of a plain pair."""

    def ratio(p0, p1):
        return np.abs(p0 - p1).max(axis=-1) / np.abs(p0 - p1).sum(axis=-1)

    row = deepest_pair(ratio, 3, 1, 60)
    assert row["ratio"] == pytest.approx(float(ratio(*read_pair(row))), rel=1e-9)
    assert 0.45 <= row["ratio"] <= 0.5 + 1e-12
