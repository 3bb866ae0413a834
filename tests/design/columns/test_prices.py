import itertools
import math

import numpy as np
import pytest

from ldpopt.design.columns.prices import Prices


def some_prices(k, seed):
    rng = np.random.default_rng(seed)
    kernel = rng.normal(size=(3, k))
    pairs = np.triu(rng.random((k, k)), 1)
    return Prices(kernel.T @ kernel, rng.dirichlet(np.ones(k)), rng.normal(size=k), pairs, math.exp(1.2))


@pytest.mark.parametrize("k", [2, 5, 8])
def test_best_is_that_of_enumeration(k):
    """The largest price over all patterns, and the patterns above a level, are those of brute force."""
    prices = some_prices(k, k)
    members = np.array(list(itertools.product([False, True], repeat=k)))
    values = prices.gains(np.where(members, prices.ratio, 1.0))
    level = float(np.quantile(values, 0.6))
    top, found = prices.best(2**k, level)
    assert top == pytest.approx(values.max(), rel=1e-10)
    assert {tuple(row) for row in found} == {tuple(row) for row in members[values > level]}


def test_climbing_ends_where_no_single_move_helps():
    """Local search returns patterns that no change of one input improves."""
    prices = some_prices(10, 1)
    start = np.random.default_rng(2).random((20, 10)) < 0.5
    for found in prices.climb(start, 20, -np.inf):
        own = prices.gains(np.where(found, prices.ratio, 1.0)[None])[0]
        for x in range(10):
            moved = found.copy()
            moved[x] ^= True
            assert prices.gains(np.where(moved, prices.ratio, 1.0)[None])[0] <= own + 1e-12
