"""Mutual information from what every two rows may differ by, against channels, a plain scan and forgeries."""

import numpy as np
import pytest

from ldpopt import Channel, LocalDP, TotalVariation, optimal_channel
from ldpopt.design import (
    ApproximateLDP,
    ConcentratedLDP,
    MutualInformation,
    PairwiseInformation,
    RenyiLDP,
)
from ldpopt.design.programs.pairwise import pairwise_weights
from ldpopt.enclosures import arithmetic
from tests.design.certificates.forging import forged, tampered

RNG = np.random.default_rng(3)
PRIOR = np.array([0.4, 0.3, 0.2, 0.1])
CONSTRAINTS = {
    "renyi": (RenyiLDP(2.0, 0.5),),
    "kl": (RenyiLDP(1.0, 0.5),),
    "high order": (RenyiLDP(6.0, 1.0),),
    "zcdp": (ConcentratedLDP(0.1),),
    "approximate": (ApproximateLDP(1.0, 0.05), TotalVariation(0.3)),
    "both": (RenyiLDP(2.0, 0.3), LocalDP(1.0)),
    "total variation": (TotalVariation(0.1), RenyiLDP(3.0, 2.0)),
}


def certificates(prior, constraints):
    """Those that the prover makes, for a channel that says nothing."""
    channel = Channel(np.ones((len(prior), 1)))
    for paid in pairwise_weights(np.asarray(prior), constraints):
        yield PairwiseInformation(
            MutualInformation(prior), constraints, channel, paid.orders, paid.weights, paid.reaches, paid.above,
            paid.below, paid.slope,
        )  # fmt: skip


def least_bound(prior, constraints):
    """The best of them."""
    return min(one.bound for one in certificates(prior, constraints))


def scanned(one, caps, points=200_001):
    """The bound by a plain scan of s, whose maxima it finds up to the square of its step: never above the proof."""
    prior = one.utility.prior[one.utility.prior > 0]
    s = np.exp(np.linspace(-25, np.log(1 / prior.min()), points))
    paid = one.slope * (s - 1)
    for order, weight in zip(one.orders, one.weights, strict=True):
        paid = paid + weight * ((s - 1) * np.log(s) if order == 1 else s**order + s ** (1 - order) - 1 - s)
    for reach, above, below in zip(one.reaches, one.above, one.below, strict=True):
        paid = paid + above * np.maximum(s - np.exp(reach), 0) + below * np.maximum(1 - np.exp(reach) * s, 0)
    left = s * np.log(s) - s + 1 - paid
    each = [left[s <= 1 / p * (1 + 1e-12)].max() for p in prior]
    return (1 - prior @ prior) * caps + prior @ each


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_the_bound_is_what_a_scan_finds_and_both_arithmetics_agree(name):
    """Chords and tangents between knots lose little: the proof is above a plain scan of s, by less than 1e-5."""
    for one in certificates(PRIOR, CONSTRAINTS[name]):
        charged = float(one._charged(arithmetic(False)).upper)
        found = scanned(one, charged)
        assert found * (1 - 1e-9) <= one.bound <= found * (1 + 1e-5) + 1e-5
        assert one.bound_in(arithmetic(True)).value == pytest.approx(one.bound, rel=1e-9)


def random_channels(count, k=4, m=3):
    """Channels near to a common row, and far from it."""
    for number in range(count):
        rows = RNG.dirichlet(np.ones(m), k) * RNG.uniform(0, 1) ** 2
        rest = 1 - rows.sum(axis=1, keepdims=True)
        yield Channel(rows + rest * RNG.dirichlet(np.full(m, 0.3 + number % 3)))


def test_no_channel_that_meets_what_it_measures_is_above_the_bound():
    """For a channel's own Rényi divergence of orders 1, 2 and 5, its own delta at 1 and its own total variation."""
    for channel in random_channels(4):
        for prior in (PRIOR, np.array([0.97, 0.01, 0.01, 0.01]), RNG.dirichlet(np.ones(4))):
            value = MutualInformation(prior).value(channel)
            for order in (1.0, 2.0, 5.0):
                own = RenyiLDP(order, max(float(RenyiLDP(order, 1.0).measure(channel)), 1e-12))
                assert value <= least_bound(prior, (own,))
            delta = float(ApproximateLDP(1.0, 0.5).measure(channel))
            eta = float(TotalVariation(0.5).measure(channel))
            assert value <= least_bound(prior, (ApproximateLDP(1.0, delta), TotalVariation(eta)))


@pytest.mark.parametrize("order", [1.0, 2.0, 4.0])
def test_it_is_scale_free_in_the_cap(order):
    """As epsilon falls the bound is about epsilon (1 - sum P^2) / (2 order), the optimum of small differences."""
    apart = 1 - PRIOR @ PRIOR
    for epsilon in (1e-3, 1e-6, 1e-9):
        bound = least_bound(PRIOR, (RenyiLDP(order, epsilon),))
        assert bound >= epsilon * apart / (2 * order) * (1 - 1e-3)
        assert bound <= epsilon * apart / (2 * order) * (1.7 if order == 1 else 1.3)


def test_any_prior():
    """Answers that never occur, nearly never occur or are a thousand: a finite bound, the same in any order."""
    constraints = (RenyiLDP(2.0, 0.5),)
    one = least_bound([0.5, 0.3, 0.2], constraints)
    assert least_bound([0.0, 0.2, 0.5, 0.3], constraints) == pytest.approx(one, rel=1e-12)
    assert one <= least_bound([0.5, 0.3, 0.2 - 1e-9, 1e-9], constraints) <= one * 1.05
    assert 0.1 < least_bound(np.full(1000, 1e-3), constraints) < 0.17
    assert least_bound([1 - 1e-12, 1e-12], constraints) < 1e-11


@pytest.mark.parametrize("constraint", [RenyiLDP(2.0, 0.5), ConcentratedLDP(0.2)])
def test_designs_carry_it(constraint):
    """Within a fifth of the optimum, where contraction leaves seven times the value open."""
    design = optimal_channel(MutualInformation([0.5, 0.3, 0.2]), constraint)
    assert isinstance(design.certificate, PairwiseInformation)
    assert design.relative_gap < 0.2
    assert design.verify()


def test_forged_numbers_prove_nothing_below_what_is_reached():
    """Whatever stands in the place of a number: a bound that is proved holds for channels that meet the constraints."""
    constraints = CONSTRAINTS["both"]
    design = optimal_channel(MutualInformation(PRIOR), constraints, certify=False)
    tried = proved = 0
    for other in forged(list(certificates(PRIOR, constraints))[-1], RNG, keep=("utility", "constraints", "channel")):
        tried += 1
        assert not other.bound < design.value
        proved += other.bound < np.inf
    assert 0 < proved < tried


def test_numbers_of_other_constraints_prove_nothing():
    """Moments and excesses that nothing caps: orders above a constraint's, reaches below, graphs."""
    import networkx as nx

    honest = next(certificates(PRIOR, (RenyiLDP(2.0, 0.5),)))
    for other in ((RenyiLDP(1.5, 0.5),), (TotalVariation(0.1),), (LocalDP(1.0, graph=nx.path_graph(4)),)):
        made = honest.of(honest.utility, other, honest.channel)
        assert made.bound == np.inf
        assert any("no constraint caps a moment" in failure for failure in made.verify().failures)
    reached = [one for one in certificates(PRIOR, (ApproximateLDP(1.0, 0.05),)) if one.above.any()]
    path = (LocalDP(1.0, graph=nx.path_graph(4)),)
    for one in reached:
        # An excess that nothing caps is at most 1: what is left is no more than the entropy needs, and holds.
        assert one.of(one.utility, path, one.channel).bound >= one.bound


def test_shapes_that_are_none():
    """Tampered arrays never raise anything but words."""
    honest = next(certificates(PRIOR, (RenyiLDP(2.0, 0.5),)))
    for bad in tampered(honest.weights, RNG):
        made = PairwiseInformation(
            honest.utility, honest.constraints, honest.channel, honest.orders, bad, honest.reaches, honest.above,
            honest.below, honest.slope,
        )  # fmt: skip
        assert made.bound >= 0.05
