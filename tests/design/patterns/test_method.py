"""Tests of `ldpopt.design.patterns.method`: the optimum of any column utility, at every scale, and refusals."""

import math

import numpy as np
import pytest
from design_problems import random_pair

from ldpopt import Divergence, InvalidInput, LocalDP, TotalVariation, optimal_channel
from ldpopt.design import ApproximateLDP, LocalSearch, MutualInformation, PatternDual, PatternLP, WorstOf
from ldpopt.divergences import CHI_SQUARED, KL


@pytest.mark.parametrize(("epsilon", "eta"), [(20.0, 0.5), (60.0, 1.0), (300.0, 0.2), (1.0, 1e-9), (1e-3, 1e-9)])
def test_mutual_information_is_certified_at_every_scale(epsilon, eta):
    """Mutual information is certified at large epsilon and at small eta, and bounded by eta times the entropy."""
    for prior in ([0.4, 0.3, 0.2, 0.1], [0.7, 0.1, 0.1, 0.05, 0.05]):
        utility = MutualInformation(prior)
        design = optimal_channel(utility, [LocalDP(epsilon), TotalVariation(eta)])
        assert design.certified
        assert design.upper_bound <= eta * utility.value_without_privacy * (1 + 1e-9)
        assert design.value == pytest.approx(design.upper_bound, rel=1e-9)


def test_small_caps_lose_nothing():
    """At eta = 1e-9 the worst of several divergences keeps 1e-6 of what it keeps at eta = 1e-3: all is linear there."""
    rng = np.random.default_rng(0)
    utility = WorstOf(CHI_SQUARED, rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6), 3))
    small, large = (optimal_channel(utility, [LocalDP(1.0), TotalVariation(eta)]) for eta in (1e-9, 1e-3))
    assert small.certified
    assert small.value == pytest.approx(1e-6 * large.value, rel=1e-8)


@pytest.mark.full(but=2)
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 50.0, 400.0])
def test_the_pattern_program_reaches_the_partitions(epsilon):
    """For two hypotheses it reaches the partition method, with inputs that never occur or have one ratio [SPR]."""
    p0, p1 = random_pair(5, 3)
    p0, p1 = np.insert(np.append(p0 / 2, p0 / 2), 0, 0.0), np.insert(np.append(p1 / 2, p1 / 2), 0, 0.0)
    utility = Divergence(KL, p0, p1)
    for eta in (1.0, 0.3 * math.tanh(epsilon / 2)):
        caps = [LocalDP(epsilon), TotalVariation(eta)]
        found, best = (optimal_channel(utility, caps, method=method) for method in (PatternLP(), None))
        assert found.value == pytest.approx(best.value, rel=1e-9)
        assert found.certified
        assert found.verify()


def test_the_certificate_verifies_exactly():
    """The design's own numbers prove it in 256 bits too."""
    design = optimal_channel(MutualInformation([0.5, 0.3, 0.2]), [LocalDP(1.0), TotalVariation(0.2)])
    assert isinstance(design.certificate, PatternDual)
    assert design.certificate.verify(exact=True)


def test_refusals_are_sentences():
    """What it does not take it refuses in words."""
    with pytest.raises(InvalidInput, match="15 inputs have too many staircase patterns"):
        optimal_channel(MutualInformation(np.ones(15) / 15), LocalDP(1.0), method=PatternLP())
    with pytest.raises(InvalidInput, match="staircase patterns are optimal under LocalDP"):
        optimal_channel(MutualInformation([0.5, 0.5]), ApproximateLDP(1.0, 0.1), method=PatternLP())
    with pytest.raises(InvalidInput, match="too large to search with"):
        optimal_channel(MutualInformation(np.ones(1000) / 1000), LocalDP(1.0), method=LocalSearch(1))
