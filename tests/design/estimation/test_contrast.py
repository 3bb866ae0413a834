"""The best channel for one contrast of many proportions."""

import math

import numpy as np
import pytest

from ldpopt import Channel, LocalDP, TotalVariation, optimal_channel
from ldpopt.design import AOptimal, COptimal, FisherInformation
from ldpopt.errors import InvalidInput


def prior(k):
    return np.random.default_rng(k).dirichlet(np.ones(k))


@pytest.mark.parametrize("k", [9, 24, 120])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 4.0])
def test_randomized_response_is_optimal_for_one_share(k, epsilon):
    """The least variance of one share p is p (1 - p) + e / (e - 1)^2, that of Warner's question about it [War]."""
    p = prior(k)
    design = optimal_channel(FisherInformation(p, criterion=COptimal(np.eye(k)[0])), LocalDP(epsilon))
    true = p[0] * (1 - p[0]) + math.exp(epsilon) / math.expm1(epsilon) ** 2
    assert design.certified
    assert design.verify()
    assert design.lower_bound <= true * (1 + 1e-12)
    assert design.value == pytest.approx(true, rel=1e-8)


def test_a_general_contrast_is_certified_in_balls():
    """Ten categories, every pattern priced in balls of 256 bits: the bound of few sets holds and is tight."""
    a = np.random.default_rng(1).normal(size=10)
    design = optimal_channel(FisherInformation(prior(10), criterion=COptimal(a)), LocalDP(1.0))
    assert design.relative_gap < 1e-6
    assert design.verify(exact=True)


def test_the_variance_is_that_of_random_channels_or_less():
    """No channel of a random search has a smaller variance than the proved bound, and the bound is reached."""
    k, rng = 16, np.random.default_rng(2)
    a, p = rng.normal(size=k), prior(k)
    utility = FisherInformation(p, criterion=COptimal(a))
    design = optimal_channel(utility, LocalDP(1.0))
    assert design.relative_gap < 1e-6
    for _ in range(30):
        cut = rng.normal() * 0.5
        rows = np.where((a > cut)[:, None] == np.array([True, False]), math.e, 1.0)
        coarse = Channel(rows / rows.sum(axis=1, keepdims=True))
        assert not utility.value(coarse) < design.lower_bound


def test_many_categories_of_few_weights_are_designed_as_their_groups():
    """Categories of one weight are one: a contrast of three weights over 300 has the value of its three groups."""
    k = 300
    p, a = prior(k), np.repeat([1.0, 0.0, -1.0], 100)
    design = optimal_channel(FisherInformation(p, criterion=COptimal(a)), LocalDP(1.0))
    groups = p.reshape(3, 100).sum(axis=1)
    few = optimal_channel(FisherInformation(groups, criterion=COptimal([1.0, 0.0, -1.0])), LocalDP(1.0))
    assert design.certified
    assert design.verify()
    assert design.value == pytest.approx(few.value, rel=1e-8)


def test_under_a_cap_on_total_variation_groups_have_the_value_of_all():
    """The same with a cap that binds: its prices of pairs go to the members of both groups by their shares."""
    p, a = prior(12), np.repeat([1.0, 0.0, -1.0], 4)
    caps = [LocalDP(1.0), TotalVariation(0.2)]
    design = optimal_channel(FisherInformation(p, criterion=COptimal(a)), caps)
    few = optimal_channel(FisherInformation(p.reshape(3, 4).sum(axis=1), criterion=COptimal([1.0, 0.0, -1.0])), caps)
    assert design.relative_gap < 1e-6
    assert design.verify()
    assert design.value == pytest.approx(few.value, rel=1e-6)


def test_a_weighted_sum_of_rank_one_is_the_variance_of_its_contrast():
    """W = a a^T asks for the same as the contrast a, also of 50 categories."""
    a = np.repeat([1.0, -0.5], 25)
    one = optimal_channel(FisherInformation(prior(50), criterion=AOptimal(np.outer(a, a))), LocalDP(1.0))
    two = optimal_channel(FisherInformation(prior(50), criterion=COptimal(a)), LocalDP(1.0))
    assert one.value == pytest.approx(two.value, rel=1e-8)
    assert one.certified


def test_too_many_different_weights_are_refused():
    """Beyond 100 different weights, and beyond 2,000 categories, no method takes the contrast."""
    with pytest.raises(InvalidInput, match="at most 40 categories"):
        optimal_channel(FisherInformation(prior(101), criterion=COptimal(np.arange(101.0))), LocalDP(1.0))
