"""Channels with two reports after shuffling: the bound over all compositions of the others."""

import math

import numpy as np
import pytest

from ldpopt.composition.shuffling import shuffled_delta


def worst_of_all(low, high, n, epsilon):
    """The hockey stick for the worst number of others at each end, by convolving coins one after another."""
    worst = 0.0
    for j in range(n):
        law = np.ones(1)
        for share in [low] * j + [high] * (n - 1 - j):
            law = np.convolve(law, [1 - share, share])
        for a, b in ((high, low), (low, high)):
            first, second = np.convolve(law, [1 - a, a]), np.convolve(law, [1 - b, b])
            worst = max(worst, float(np.maximum(first - math.exp(epsilon) * second, 0).sum()))
    return worst


@pytest.mark.parametrize("shares", [(0.25, 0.75), (0.1, 0.2), (0.01, 0.9), (0.0, 0.5), (0.3, 1.0)])
@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_bound_is_the_worst_composition(shares, n):
    """With few others every composition is looked at: the bound is the worst one, never below it."""
    for epsilon in (0.0, 0.2, 1.0, 3.0):
        value = worst_of_all(*shares, n, epsilon)
        assert value * (1 - 1e-12) <= shuffled_delta(*shares, n, epsilon) <= value * (1 + 1e-9) + 1e-15


def test_cells_of_compositions_hold():
    """With many others cells stand for compositions: the bound is at least that of each, and at most 5 % above."""
    low, high, n, epsilon = 0.3, 0.7, 3000, 0.06
    bound = shuffled_delta(low, high, n, epsilon)
    several = [shuffled_delta_of(low, high, j, n - 1 - j, epsilon) for j in (0, 700, 1499, 2998)]
    assert max(several) <= bound * (1 + 1e-12) <= max(several) * 1.05


def shuffled_delta_of(low, high, few, many, epsilon):
    from scipy.stats import binom

    law = np.convolve(binom.pmf(np.arange(few + 1), few, low), binom.pmf(np.arange(many + 1), many, high))
    values = []
    for a, b in ((high, low), (low, high)):
        first, second = np.convolve(law, [1 - a, a]), np.convolve(law, [1 - b, b])
        values.append(float(np.maximum(first - math.exp(epsilon) * second, 0).sum()))
    return max(values)


def test_a_goal_ends_the_search_above_the_truth():
    """A search that ends at its goal gives a number that is still an upper bound."""
    whole = shuffled_delta(0.3, 0.7, 2000, 0.05)
    early = shuffled_delta(0.3, 0.7, 2000, 0.05, goal=1.0)
    assert whole <= early <= 1.0
