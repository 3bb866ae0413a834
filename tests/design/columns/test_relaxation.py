import math

import numpy as np
import pytest

from ldpopt.design import FisherInformation, LocalDP, TotalVariation, optimal_channel
from ldpopt.design.columns.charges import Charges
from ldpopt.design.columns.prices import Prices
from ldpopt.design.columns.relaxation import Relaxation
from ldpopt.design.programs.relaxation import relax_patterns
from ldpopt.enclosures import EXACT, FLOAT


def some_kernel(k, seed):
    rng = np.random.default_rng(seed)
    kernel, p = rng.normal(size=(3, k)), rng.dirichlet(np.ones(k))
    return kernel - np.outer(kernel.sum(axis=1), p), p


@pytest.mark.parametrize("eta", [None, 0.2])
def test_the_relaxation_covers_every_pattern(eta):
    """With relaxed multipliers no pattern is priced above the bound that is charged, which is next to nothing."""
    kernel, prior = some_kernel(8, 4)
    gram, ratio = kernel.T @ kernel, math.exp(1.2)
    rows, pairs, relaxed = relax_patterns(gram, prior, ratio, eta)
    assert pairs.any() == (eta is not None)
    most, _ = Prices(gram, prior, rows, pairs, ratio).best(0, math.inf)
    charges = Charges.of(FLOAT.of(kernel), prior, rows, pairs)
    charged = relaxed.most(charges, FLOAT.of(1.2))
    assert most <= charged <= 1e-4 * rows.sum()


@pytest.mark.parametrize("seed", range(5))
def test_any_numbers_give_a_sound_violation(seed):
    """Whatever the numbers of the classes are, no pattern's price is above the violation that they prove."""
    rng = np.random.default_rng(seed)
    kernel, prior = some_kernel(6, seed)
    rows, pairs = rng.normal(size=6), np.triu(rng.random((6, 6)), 1)
    most, _ = Prices(kernel.T @ kernel, prior, rows, pairs, math.exp(0.8)).best(0, math.inf)
    guessed = Relaxation(rng.normal(size=(3, 6)), np.abs(rng.normal(size=3)))
    for arithmetic in (FLOAT, EXACT):
        charges = Charges.of(arithmetic.of(kernel), prior, rows, pairs)
        assert most <= guessed.most(charges, arithmetic.of(0.8)) < math.inf


def test_numbers_that_are_none_prove_nothing():
    """Spans below zero, numbers that are missing, too many or not numbers bound nothing."""
    kernel, prior = some_kernel(4, 1)
    charges = Charges.of(FLOAT.of(kernel), prior, np.ones(4), np.zeros((4, 4)))
    fine = np.zeros((2, 4))
    for squares, spans in [
        (fine, [0.0, -1.0]),
        (fine, [0.0, math.nan]),
        (fine, [0.0]),
        (np.full((2, 4), math.inf), [0.0, 0.0]),
        (fine[:, :3], [0.0, 0.0]),
        ("none", [0.0, 0.0]),
        (np.zeros((9, 4)), np.zeros(9)),
        (np.zeros((0, 4)), np.zeros(0)),
    ]:
        assert Relaxation(squares, spans).most(charges, FLOAT.of(1.0)) == math.inf
    assert Relaxation(fine, np.zeros(2)).most(charges, FLOAT.of(1.0)) < math.inf


def test_the_bound_of_many_categories_knows_the_cap(monkeypatch):
    """The relaxed bound under a cap on total variation is below the optimum, and above that without the cap."""
    p = np.random.default_rng(6).dirichlet(np.ones(6))
    utility, cap = FisherInformation(p), [LocalDP(1.0), TotalVariation(0.2)]
    exact, free = optimal_channel(utility, cap), optimal_channel(utility, LocalDP(1.0))
    monkeypatch.setattr("ldpopt.design.columns.staircase.EXACT_LIMIT", 4)
    relaxed = optimal_channel(utility, cap)
    assert relaxed.certificate.verify()
    assert free.value < relaxed.lower_bound <= exact.value * (1 + 1e-9)
    assert relaxed.value <= exact.value * (1 + 1e-3)
