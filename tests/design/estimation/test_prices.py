"""Tests of `ldpopt.design.estimation.prices`: the best patterns of all, and for one contrast, against enumeration."""

import itertools
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from ldpopt.design.estimation.prices import Charges, Prices, distinct_sets, line_gain_bound, line_sets, subsets
from ldpopt.numbers.enclosures import EXACT, FLOAT


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


@pytest.mark.parametrize("is_capped", [False, True])
def test_gains_of_neighbors_are_those_of_their_columns(is_capped):
    """The gains after a change of one input, from differences, are those of the changed columns."""
    prices = some_prices(9, 4)
    if not is_capped:
        prices = replace(prices, pairs=np.zeros((9, 9)))
    sets = np.random.default_rng(3).random((30, 9)) < 0.4
    for x, gains in enumerate(prices.neighbor_gains(sets).T):
        changed = sets.copy()
        changed[:, x] ^= True
        assert gains == pytest.approx(prices.gains(np.where(changed, prices.ratio, 1.0)), rel=1e-10, abs=1e-12)


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


def some(k, seed, ties=False, negative=False):
    """A kernel of one row, a prior, and multipliers of about the size of what is earned."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(k))
    kernel = rng.normal(size=k) * p
    if ties:
        kernel = np.sign(kernel) * p
    rows = p * rng.uniform(0.1, 1.0, k) * (-1 if negative else 1)
    return kernel[None], p, rows


def exact_price(kernel, p, rows, epsilon):
    """The largest price over all sets in balls of 256 bits, and the largest without the division by the mass."""
    level = 1 / EXACT.of(epsilon).expm1()
    charges = Charges.from_kernel(EXACT.of(kernel), p, rows, np.zeros((len(p), len(p))))
    sets = subsets(len(p))
    return charges.gain_bound(level * np.ones(len(sets)), EXACT.of(sets))


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 8.0])
@pytest.mark.parametrize("kind", ["plain", "ties", "negative"])
@pytest.mark.parametrize("seed", range(4))
def test_no_set_is_priced_above_the_bound(seed, kind, epsilon):
    """The bound is above the price of each of the 2^k sets in balls, and within exp(epsilon) of it: brute force."""
    kernel, p, rows = some(8, seed, kind == "ties", kind == "negative")
    charges = Charges.from_kernel(FLOAT.of(kernel), p, rows, np.zeros((8, 8)))
    found = line_gain_bound(charges, 1 / FLOAT.of(epsilon).expm1())
    true = exact_price(kernel, p, rows, epsilon)
    assert true <= found * (1 + 2.0**-50) + 1e-300
    size = float(np.abs(rows).sum() + np.abs(kernel).sum() ** 2) * (1 if epsilon > 0.5 else 1 / epsilon)
    assert found <= max(true, 0.0) * math.exp(epsilon) + 1e-9 * size


@pytest.mark.parametrize("seed", range(6))
def test_the_best_set_is_among_those_between_roots(seed):
    """At multipliers at which the best set just pays, that set is one of the at most 2 k + 1: brute force."""
    kernel, p, _ = some(9, seed)
    centred = kernel - kernel.sum() * p
    every = np.where(subsets(9) > 0.5, math.e, 1.0)
    low, high = 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        prices = Prices(centred.T @ centred, p, middle * p, np.zeros((9, 9)), math.e)
        low, high = (middle, high) if prices.gains(every).max() > 0 else (low, middle)
    sets, ends = line_sets(centred[0], p, high * p)
    assert len(sets) == len(ends) - 1 <= 2 * 9 + 1
    prices = Prices(centred.T @ centred, p, high * p, np.zeros((9, 9)), math.e)
    assert prices.gains(np.where(sets, math.e, 1.0)).max() == pytest.approx(prices.gains(every).max(), abs=1e-9)


def test_impossible_prices_have_an_infinite_bound():
    """A share of zero, multipliers that are not numbers, prices of pairs and a level of zero give an infinite bound."""
    kernel, p, rows = some(5, 0)
    level = 1 / FLOAT.of(1.0).expm1()
    none = np.zeros((5, 5))
    assert line_gain_bound(Charges.from_kernel(FLOAT.of(kernel), p, rows, none), level) < math.inf
    empty = np.array([0.0, *p[1:]])
    assert line_gain_bound(Charges.from_kernel(FLOAT.of(kernel), empty, rows, none), level) == math.inf
    assert line_gain_bound(Charges.from_kernel(FLOAT.of(kernel), p, rows, none + 1), level) == math.inf
    assert line_gain_bound(Charges.from_kernel(FLOAT.of(kernel), p, rows, none), FLOAT.of(0.0)) == math.inf
    for wrong in (math.nan, math.inf, -math.inf):
        given = SimpleNamespace(
            kernel=FLOAT.of(kernel), prior=FLOAT.of(p), rows=np.append(rows[1:], wrong), pairs=none, total=0.0
        )
        assert line_gain_bound(given, level) == math.inf


@pytest.mark.parametrize("epsilon", [2.0, 30.0, 100.0, 300.0])
def test_moves_whose_mass_is_lost_to_rounding_are_left_out(epsilon):
    """Removing the only member leaves a mass of one from e^epsilon; no other number is NaN, and none warns."""
    prior, sets = np.array([0.7, 0.2, 0.1]), np.eye(3, dtype=bool)
    prices = Prices(np.eye(3), prior, np.ones(3), np.zeros((3, 3)), math.exp(epsilon))
    with np.errstate(all="raise"):
        gains = prices.neighbor_gains(sets)
    assert not np.isnan(gains).any()
    assert np.isfinite(gains[~sets]).all()
    assert (np.isneginf(gains[sets]) == (epsilon > 25)).all()


@pytest.mark.parametrize("k", [1, 8, 9, 63, 64, 65, 200])
def test_distinct_sets_are_the_unique_rows(k):
    """The rows, their order and their first places are those of numpy, also beyond the bits of an integer."""
    rng = np.random.default_rng(k)
    sets = rng.random((40, k)) < 0.4
    sets = np.vstack([sets, sets[::3]])
    rows, places = np.unique(sets, axis=0, return_index=True)
    found, first_places = distinct_sets(sets)
    assert np.array_equal(found, rows)
    assert np.array_equal(first_places, places)
    assert len(distinct_sets(sets[:0])[0]) == 0
