"""Tests of `ldpopt.design.patterns.method`: the exact program under (epsilon, delta)-LDP, for any column utility."""

import math

import numpy as np
import pytest
from design_problems import DIVERGENCES, random_pair

from ldpopt import Divergence, InvalidInput, LocalDP, TotalVariation, optimal_channel
from ldpopt.design import ApproximateLDP, Exchange, LevelLP, LocalSearch, MutualInformation, WeightedSum, WorstOf
from ldpopt.divergences import CHI_SQUARED, KL


@pytest.mark.full(but=2)
@pytest.mark.parametrize("name", sorted(DIVERGENCES))
def test_listed_and_priced_columns_have_one_optimum(name):
    """Two programs that share nothing but the solver: columns listed, and columns priced by ratio, one optimum."""
    for k, seed, epsilon, delta in ((3, 0, 3.0, 1e-4), (4, 1, 1.0, 0.05)):
        utility, caps = Divergence(DIVERGENCES[name], *random_pair(k, seed)), ApproximateLDP(epsilon, delta)
        found, other = (optimal_channel(utility, caps, method=m) for m in (LevelLP(), Exchange()))
        assert found.certified
        assert found.verify()
        assert found.value == pytest.approx(other.value, rel=1e-6, abs=1e-12)


@pytest.mark.full
def test_information_is_certified():
    """Mutual information and mixtures, for which only a search without proof was there before."""
    for seed in range(3):
        rng = np.random.default_rng(100 + seed)
        prior = rng.dirichlet(np.ones(2 + seed))
        pair = random_pair(2 + seed, seed)
        for utility in (
            MutualInformation(prior),
            WeightedSum([1.0, 0.5], [MutualInformation(prior), Divergence(KL, *pair)]),
            WorstOf(CHI_SQUARED, rng.dirichlet(np.ones(2 + seed)), list(pair)),
        ):
            caps = ApproximateLDP(0.8, 0.1)
            found, searched = (optimal_channel(utility, caps, method=m) for m in (None, LocalSearch(4)))
            assert found.certified
            assert found.upper_bound <= found.value * (1 + 1e-9)
            assert searched.value <= found.upper_bound


def test_delta_moves_the_optimum_from_pure_privacy_to_full_disclosure():
    """The optimum is that of LocalDP at delta near 0, and full disclosure at delta = 1."""
    utility = MutualInformation([0.5, 0.3, 0.2])
    pure = optimal_channel(utility, LocalDP(1.0)).value
    assert optimal_channel(utility, ApproximateLDP(1.0, 1e-12)).value == pytest.approx(pure, rel=1e-9)
    assert optimal_channel(utility, ApproximateLDP(1.0, 1.0)).value == pytest.approx(
        utility.value_without_privacy, rel=1e-9
    )


def test_ties_and_answers_that_never_occur():
    """Inputs of one likelihood ratio, and one without mass, change nothing."""
    p0, p1 = random_pair(3, 2)
    plain = optimal_channel(Divergence(KL, p0, p1), ApproximateLDP(1.0, 0.05)).value
    split = [np.array([p[0] / 2, 0.0, p[1], p[0] / 2, p[2]]) for p in (p0, p1)]
    found = optimal_channel(Divergence(KL, *split), ApproximateLDP(1.0, 0.05), method=LevelLP())
    assert found.certified
    assert found.value == pytest.approx(plain, rel=1e-9)


def test_refusals_are_sentences():
    """What it does not take it refuses in words."""
    for utility, caps, said in (
        (MutualInformation(np.ones(9) / 9), ApproximateLDP(1.0, 0.1), "9 inputs have too many extreme columns"),
        (
            MutualInformation(np.ones(8) / 8),
            [ApproximateLDP(1.0, 0.1), TotalVariation(0.2)],
            "8 inputs have too many extreme columns to list .at most 7",
        ),
        (MutualInformation([0.5, 0.5]), LocalDP(1.0), "under ApproximateLDP and TotalVariation"),
        (MutualInformation([0.5, 0.5]), [ApproximateLDP(1.0, 0.1), LocalDP(2.0)], "ApproximateLDP and TotalVariation"),
        (MutualInformation([0.5, 0.5]), [ApproximateLDP(1.0, 0.1), TotalVariation(0.0)], "all their caps above 0"),
        (Divergence(KL, [0.5, 0.3, 0.2], [0.5, 0.5, 0.0]), ApproximateLDP(1.0, 0.1), "is infinite"),
    ):
        with pytest.raises(InvalidInput, match=said):
            optimal_channel(utility, caps, method=LevelLP())


def test_two_inputs_have_the_closed_form():
    """With two inputs the coin is optimal: full disclosure with probability delta, else randomized response."""
    p0, p1 = [0.8, 0.2], [0.3, 0.7]
    utility = Divergence(CHI_SQUARED, p0, p1)
    for epsilon, delta in ((0.5, 0.1), (2.0, 0.6)):
        keep = 1 / (1 + math.exp(-epsilon))
        m0, m1 = (np.array([keep * p[0] + (1 - keep) * p[1], (1 - keep) * p[0] + keep * p[1]]) for p in (p0, p1))
        response = float(((m0 - m1) ** 2 / m1).sum())
        full = sum((a - b) ** 2 / b for a, b in zip(p0, p1, strict=True))
        found = optimal_channel(utility, ApproximateLDP(epsilon, delta), method=LevelLP())
        assert found.value == pytest.approx(delta * full + (1 - delta) * response, rel=1e-9)
