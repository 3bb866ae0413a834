"""Tests of `ldpopt.design.methods.coins`."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from ldpopt.design.methods.coins import Cut, best_coin


def partitions(seed):
    """Erasure and a few partitions of random worth, some of one number of blocks, some worth nothing."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 12, size=rng.integers(0, 8))
    return [Cut((0, 12), 0.0)] + [
        Cut((*range(m), 12), float(rng.choice([0.0, rng.random(), np.sqrt(m)]))) for m in sizes
    ]


@pytest.mark.parametrize("seed", range(300))
def test_against_a_linear_program(seed):
    """The coin keeps what the best mixture of the partitions does whose total variation is at most eta."""
    known, rng = partitions(seed), np.random.default_rng([seed, 1])
    level, eta = float(np.exp(rng.normal(0, 2))), float(rng.choice([rng.random(), 1e-9, 1.0]))
    coin = best_coin(known, eta, level)
    rates, variations = [c.rate(level) for c in known], [c.variation(level) for c in known]
    mixed = linprog(-np.array(rates), [variations], [eta], [np.ones(len(known))], [1.0], method="highs")
    assert sum(w for w, _ in coin.parts) == pytest.approx(1.0, rel=1e-15)
    assert all(weight >= 0 for weight, _ in coin.parts)
    assert len(coin.parts) <= 2
    assert sum(w * c.variation(level) for w, c in coin.parts) <= eta * (1 + 1e-12)
    assert sum(w * c.rate(level) for w, c in coin.parts) == pytest.approx(-mixed.fun, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("seed", range(300))
def test_the_line_proves_the_coin(seed):
    """No partition known lies above the line; both sides of the coin lie on it, and it bounds what the coin keeps."""
    known, rng = partitions(seed), np.random.default_rng([seed, 1])
    level, eta = float(np.exp(rng.normal(0, 2))), float(rng.random())
    coin = best_coin(known, eta, level)
    assert coin.price >= 0
    assert not any(coin.beaten(cut) for cut in known)
    assert coin.beaten(Cut((0, 1, 12), coin.most + 2 * coin.price + 1e-6))
    kept = sum(weight * cut.rate(level) for weight, cut in coin.parts)
    height = coin.price / level
    assert height + eta * max(coin.most - height, 0) == pytest.approx(kept, rel=1e-9, abs=1e-12)


def test_a_cap_at_a_kink_is_met_by_one_partition():
    """Where eta is the very total variation of a partition on the hull, that one has all the weight."""
    known = [Cut((0, 4), 0.0), Cut((0, 2, 4), 1.0), Cut((0, 1, 2, 4), 1.8), Cut((0, 1, 2, 3, 4), 2.3)]
    for cut, level in itertools.product(known[1:], (0.1, 1.0, 5.0)):
        coin = best_coin(known, cut.variation(level), level)
        best = max((one for one in known if one.variation(level) <= cut.variation(level)), key=lambda c: c.rate(level))
        assert [(w, c) for w, c in coin.parts if w > 1e-12] == [(pytest.approx(1.0), best)]
