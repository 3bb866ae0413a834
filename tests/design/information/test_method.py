"""Tests of `ldpopt.design.information.method`: mutual information for any number of inputs."""

import math
import tracemalloc

import numpy as np
import pytest

from ldpopt import Divergence, InvalidInput
from ldpopt.bounds import information_capacity
from ldpopt.design import BalancedSets, LocalDP, MutualInformation, PatternLP, RenyiLDP, TotalVariation, optimal_channel
from ldpopt.divergences import KL


def designed(prior, epsilon, share=None):
    caps = [LocalDP(epsilon)] + ([] if share is None else [TotalVariation(share * math.tanh(epsilon / 2))])
    return optimal_channel(MutualInformation(prior), caps, method=BalancedSets())


@pytest.mark.parametrize("k", [2, 5, 9, 12])
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_balanced_sets_agree_with_the_program_over_all_patterns(k, epsilon):
    """The value of balanced sets is that of the exact pattern program, which lists all of them [KOV14, Thm 4]."""
    prior = np.random.default_rng(k).dirichlet(np.ones(k))
    exact = optimal_channel(MutualInformation(prior), LocalDP(epsilon), method=PatternLP())
    assert designed(prior, epsilon).value == pytest.approx(exact.value, rel=1e-7)


def near_its_bound(design, epsilon):
    """Whether a design is certified, within 1e-6 of its bound, below the capacity, and within epsilon."""
    near = design.certified and design.upper_bound <= design.value * (1 + 1e-6)
    return near and design.value <= information_capacity(epsilon) and design.verify().epsilon <= epsilon


@pytest.mark.full(but=1)
@pytest.mark.parametrize(("k", "epsilon"), [(15, 1.0), (30, 3.0)])
def test_many_inputs_are_certified(k, epsilon):
    """Random priors of any size are designed within 1e-6 of a proved bound, below the capacity."""
    assert near_its_bound(designed(np.random.default_rng(0).dirichlet(np.ones(k)), epsilon), epsilon)


@pytest.mark.full
def test_a_thousand_inputs_are_certified_in_little_memory():
    """So are a thousand inputs, without a list of all their pairs; `optimal_channel` chooses the method by itself."""
    tracemalloc.start()
    try:
        design = optimal_channel(MutualInformation(np.random.default_rng(0).dirichlet(np.ones(1000))), LocalDP(1.0))
        assert tracemalloc.get_traced_memory()[1] < 5e8
    finally:
        tracemalloc.stop()
    assert near_its_bound(design, 1.0)


@pytest.mark.full
def test_the_gap_of_22_inputs_is_below_1e_4():
    """A prior over 22 inputs has a gap below 1e-4."""
    design = designed(np.random.default_rng(1).dirichlet(np.ones(22)), 3.0)
    assert design.verify()
    assert design.upper_bound <= design.value * (1 + 1e-4)


@pytest.mark.full(but=1)
@pytest.mark.parametrize(("k", "gap"), [(12, 1e-7), (40, 3e-2)])
def test_the_bound_is_near_under_a_cap_on_total_variation(k, gap):
    """With half of tanh(epsilon/2) the bound is near: exact where all inputs are whole, 2-designs for many inputs."""
    design = designed(np.random.default_rng(0).dirichlet(np.ones(k)), 1.0, 0.5)
    assert design.verify()
    assert design.upper_bound <= design.value * (1 + gap)
    assert design.verify().total_variation <= 0.5 * math.tanh(0.5)


def test_uniform_priors_have_subset_selection():
    """For a uniform prior subset selection of the best size is optimal [YB], and proved to be so, for any k."""
    for k in (2, 3, 17, 100):
        design = designed(np.full(k, 1 / k), 1.0)
        sizes = np.arange(1, k) / k
        mean = 1 + math.expm1(1) * sizes
        best = ((math.e * sizes - mean * np.log(mean)) / mean).max()
        assert design.certified
        assert design.value == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize(
    "prior",
    [
        np.r_[0.5, 0.5, np.zeros(20)],
        np.r_[1 - 1e-12, np.full(24, 1e-12 / 24)],
        np.r_[0.3, 0.7 - 2.8e-299, np.full(28, 1e-300)],
        np.r_[0.5 ** np.arange(1, 23), np.zeros(5)],
    ],
    ids=["two occur", "one of nearly all", "tiny", "halved, and zeros"],
)
def test_degenerate_priors_have_verified_designs(prior):
    """Masses that are zero, tiny, nearly one or ever halved leave a design that verifies, within 1e-5 of its bound."""
    design = designed(prior / prior.sum(), 1.0)
    assert design.verify()
    assert design.upper_bound <= design.value * (1 + 1e-5)


@pytest.mark.parametrize("epsilon", [1e-8, 60.0, 700.0])
def test_designs_at_extreme_epsilons_are_verified(epsilon):
    """At the ends of the range the design verifies; at 60 and beyond it keeps the entropy."""
    prior = np.random.default_rng(4).dirichlet(np.ones(8))
    design = designed(prior, epsilon)
    assert design.verify()
    assert design.upper_bound <= design.value * (1 + 1e-5)
    if epsilon >= 60:
        assert design.value == pytest.approx(MutualInformation(prior).value_without_privacy, rel=1e-9)


def test_a_tiny_cap_is_met_and_bounded():
    """With eta = 1e-9 the design keeps within its cap and its bound; with 0 it keeps nothing."""
    prior = np.random.default_rng(4).dirichlet(np.ones(10))
    design = optimal_channel(MutualInformation(prior), [LocalDP(1.0), TotalVariation(1e-9)], method=BalancedSets())
    assert design.verify()
    assert 0 < design.value <= design.upper_bound <= design.value * 1.01
    assert optimal_channel(MutualInformation(prior), [LocalDP(1.0), TotalVariation(0.0)]).value == 0


def test_other_utilities_and_constraints_are_refused():
    """Other utilities and other constraints are refused with a sentence."""
    with pytest.raises(InvalidInput, match="BalancedSets"):
        optimal_channel(Divergence(KL, [0.5, 0.5], [0.2, 0.8]), LocalDP(1.0), method=BalancedSets())
    for caps in (RenyiLDP(2.0, 0.1), TotalVariation(0.2)):
        with pytest.raises(InvalidInput, match="LocalDP"):
            optimal_channel(MutualInformation([0.5, 0.3, 0.2]), caps, method=BalancedSets())
