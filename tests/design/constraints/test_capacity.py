"""Adversaries of bounded capacity as a design constraint."""

import numpy as np
import pytest

from ldpopt.channel import Channel
from ldpopt.design import (
    BranchAndBound,
    CapacityBounded,
    Divergence,
    ExpectedLoss,
    LocalDP,
    Outputs,
    RenyiLDP,
    TotalVariation,
    optimal_channel,
)
from ldpopt.divergences import JENSEN_SHANNON, KL
from ldpopt.errors import InvalidInput
from ldpopt.privacy import (
    Polynomial,
    RestrictedAlpha,
    RestrictedKL,
    RestrictedRenyi,
    RestrictedTotalVariation,
    capacity_bounded,
)

DIVERGENCES = [
    (RestrictedTotalVariation(), 0.3),
    (RestrictedKL(), 0.2),
    (RestrictedRenyi(3.0), 0.2),
    (RestrictedAlpha(2.0), 0.1),
]


def pair(k, seed):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k))


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("divergence", "whole", "k"),
    [
        (RestrictedTotalVariation(), TotalVariation(0.2), 3),
        (RestrictedKL(), RenyiLDP(1.0, 1.0), 3),
        (RestrictedRenyi(2.0), RenyiLDP(2.0, 1.0), 2),
    ],
    ids=["total variation", "kl", "order 2"],
)
def test_an_adversary_of_full_capacity_is_the_unrestricted_one(divergence, whole, k):
    """On two outputs affine functions are all functions, so the constraint is the unrestricted one."""
    utility = Divergence(JENSEN_SHANNON, *pair(k, 3))
    design = optimal_channel(utility, CapacityBounded([0, 1], divergence, whole.bound))
    same = optimal_channel(utility, [whole, Outputs(2)])
    assert design.value == pytest.approx(same.value, rel=1e-5)
    assert design.relative_gap < 1e-5
    assert design.certificate.verify()


@pytest.mark.full(but=1)
@pytest.mark.parametrize(("divergence", "level"), DIVERGENCES, ids=lambda one: str(one))
def test_designs_are_within_the_capacity_and_the_bound_above_every_random_channel(divergence, level):
    """The measured restricted divergence is within its cap, and channels mixed until they are private stay below."""
    rng = np.random.default_rng(7)
    utility = Divergence(JENSEN_SHANNON, *pair(3, 8))
    constraint = CapacityBounded([0.0, 1.0, 2.0], divergence, level)
    design = optimal_channel(utility, constraint, method=BranchAndBound(nodes=6, starts=2))
    assert design.guarantees[0].value <= level
    assert float(capacity_bounded(design.channel, [0.0, 1.0, 2.0], divergence)) <= level
    assert design.channel.shape == (3, 3)
    assert design.certificate.verify()
    best = 0.0
    for _ in range(8):
        raw = rng.dirichlet(np.full(3, 0.3), 3) * (1 - 1e-6) + 1e-6 / 3
        mean = raw.mean(axis=0)
        low, high = 0.0, 1.0
        for _ in range(10):
            middle = (low + high) / 2
            fits = constraint.measure(Channel(middle * raw + (1 - middle) * mean)).value <= level
            low, high = (middle, high) if fits else (low, middle)
        best = max(best, utility.value(low * raw + (1 - low) * mean))
    assert best <= design.upper_bound * (1 + 1e-9)
    assert design.value >= best * (1 - 1e-6)


def test_a_weak_adversary_allows_more():
    """Capacity bounds less than total variation does, and a larger class bounds more."""
    utility = Divergence(JENSEN_SHANNON, *pair(3, 4))
    cap = RestrictedTotalVariation()
    method = BranchAndBound(nodes=4, starts=3)
    weak = optimal_channel(utility, CapacityBounded([0, 1, 2, 3], cap, 0.2), method=method)
    strong = optimal_channel(utility, CapacityBounded(Polynomial([0, 1, 2, 3], 2), cap, 0.2), method=method)
    plain = optimal_channel(utility, TotalVariation(0.2))
    assert weak.upper_bound >= strong.value >= plain.value * (1 - 1e-6)
    assert weak.value > plain.value * 1.2


def test_capacity_combines_with_pure_ldp():
    """Both hold, and the bound is not above that of pure LDP alone."""
    utility = Divergence(KL, *pair(3, 6))
    caps = [LocalDP(1.0), CapacityBounded([0, 1, 2], RestrictedTotalVariation(), 0.1)]
    design = optimal_channel(utility, caps)
    assert [g.value <= c.bound for g, c in zip(design.guarantees, caps, strict=True)] == [True, True]
    assert design.upper_bound <= optimal_channel(utility, LocalDP(1.0)).upper_bound * (1 + 1e-9)


def test_expected_losses_under_capacity_are_exact():
    """A linear utility is one convex program, with its own certificate."""
    loss = np.abs(np.subtract.outer(np.arange(3), np.arange(3))).astype(float)
    for divergence, level in ((RestrictedTotalVariation(), 0.2), (RestrictedRenyi(2.0), 0.1), (RestrictedKL(), 0.1)):
        caps = CapacityBounded([0, 1, 2], divergence, level)
        design = optimal_channel(ExpectedLoss([0.5, 0.3, 0.2], loss), caps)
        assert design.certificate.verify()
        assert design.upper_bound - design.value <= 1e-5
        assert design.guarantees[0].value <= level


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf"), "1"])
def test_malformed_bounds(bad):
    """A bound is a positive number."""
    with pytest.raises(InvalidInput, match="bound"):
        CapacityBounded([0, 1], RestrictedKL(), bad)


def test_malformed_capacity_constraints_are_refused():
    """The divergence is a restricted one, features are numbers, and the channel has an output for each."""
    with pytest.raises(InvalidInput, match="divergence"):
        CapacityBounded([0, 1], "kl", 1.0)
    with pytest.raises(InvalidInput, match="features"):
        CapacityBounded([], RestrictedKL(), 1.0)
    with pytest.raises(InvalidInput, match="bound"):
        CapacityBounded([0, 1], RestrictedRenyi(200.0), 1.0)
    assert CapacityBounded([0, 1], RestrictedKL(), 1.0).measure(Channel(np.eye(3))).value == np.inf
