import math

import numpy as np
import pytest

from ldpopt.design import FisherInformation, LocalDP, TotalVariation, estimation_design
from ldpopt.design.columns.prices import Prices
from ldpopt.design.columns.relaxation import Relaxation, relax


def some_gram(k, seed):
    rng = np.random.default_rng(seed)
    kernel = rng.normal(size=(3, k))
    return kernel.T @ kernel, rng.dirichlet(np.ones(k))


@pytest.mark.parametrize("eta", [None, 0.2])
def test_the_relaxation_covers_every_pattern(eta):
    """With relaxed multipliers no pattern is priced above the bound that is charged, which is next to nothing."""
    gram, prior = some_gram(8, 4)
    ratio = math.exp(1.2)
    rows, pairs, relaxed = relax(gram, prior, ratio, eta)
    assert pairs.any() == (eta is not None)
    most, _ = Prices(gram, prior, rows, pairs, ratio).best(0, math.inf)
    charged = relaxed.violation(gram, prior, rows, pairs, ratio)
    assert most <= charged <= 1e-4 * rows.sum()


@pytest.mark.parametrize("seed", range(5))
def test_any_numbers_give_a_sound_violation(seed):
    """Whatever the numbers of the classes are, no pattern's price is above the violation that they prove."""
    rng = np.random.default_rng(seed)
    gram, prior = some_gram(6, seed)
    rows, pairs, ratio = rng.normal(size=6), np.triu(rng.random((6, 6)), 1), math.exp(0.8)
    guessed = Relaxation(rng.normal(size=(3, 6)), rng.normal(size=3))
    most, _ = Prices(gram, prior, rows, pairs, ratio).best(0, math.inf)
    assert most <= guessed.violation(gram, prior, rows, pairs, ratio)


def test_the_bound_of_many_categories_knows_the_cap(monkeypatch):
    """The relaxed bound under a cap on total variation is below the optimum, and above that without the cap."""
    p = np.random.default_rng(6).dirichlet(np.ones(6))
    utility, cap = FisherInformation(p), [LocalDP(1.0), TotalVariation(0.2)]
    exact, free = estimation_design(utility, cap), estimation_design(utility, LocalDP(1.0))
    monkeypatch.setattr("ldpopt.design.columns.staircase.EXACT_LIMIT", 4)
    relaxed = estimation_design(utility, cap)
    assert relaxed.certificate.verify()
    assert free.value < relaxed.lower_bound <= exact.value * (1 + 1e-9)
    assert relaxed.value <= exact.value * (1 + 1e-3)
