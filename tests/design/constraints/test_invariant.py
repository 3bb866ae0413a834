"""Post-randomisation that leaves a distribution as it is."""

import math

import numpy as np
import pytest

from ldpopt.channel import Channel
from ldpopt.design import (
    Divergence,
    ExpectedLoss,
    Invariant,
    LocalDP,
    MutualInformation,
    Outputs,
    TotalVariation,
    optimal_channel,
)
from ldpopt.divergences import JENSEN_SHANNON, KL
from ldpopt.errors import InvalidInput


@pytest.mark.full(but=1)
@pytest.mark.parametrize("share", [0.5, 0.3, 0.05])
def test_two_answers_in_closed_form(share):
    """For two answers p Q = p leaves one number, Q[0, 1] p_0 = Q[1, 0] p_1, which privacy bounds from below."""
    p = np.array([share, 1 - share])
    ratio = math.exp(1.2)
    utility = Divergence(KL, [0.8, 0.2], [0.3, 0.7])
    grid = np.linspace(0, min(1.0, p[1] / p[0]), 200001)[1:]
    a, b = grid, grid * p[0] / p[1]
    good = (1 - a <= ratio * b) & (a <= ratio * (1 - b)) & (b <= ratio * (1 - a)) & (1 - b <= ratio * a)
    first = (1 - a) * 0.8 + b * 0.2, (1 - a) * 0.3 + b * 0.7
    value = KL.excess(*first) + KL.excess(1 - first[0], 1 - first[1])
    design = optimal_channel(utility, [LocalDP(1.2), Invariant(p)])
    assert design.value == pytest.approx(value[good].max(), rel=1e-4)
    assert design.value >= value[good].max() * (1 - 1e-9)
    assert design.certified
    assert design.certificate.verify()


@pytest.mark.full
@pytest.mark.parametrize("caps", [[LocalDP(2.0)], [TotalVariation(0.4)]], ids=["pure", "total variation"])
def test_the_distribution_is_invariant_up_to_rounding(caps):
    """p Q = p to 1e-13, privacy holds, outputs are named as inputs, and no random such channel beats the bound."""
    rng = np.random.default_rng(1)
    p0, p1, p = rng.dirichlet(np.ones(3), 3)
    utility = Divergence(JENSEN_SHANNON, p0, p1, inputs=["a", "b", "c"])
    design = optimal_channel(utility, [*caps, Invariant(p)])
    assert np.abs(p @ design.channel.matrix - p).max() <= 1e-13
    assert design.channel.outputs == ("a", "b", "c")
    assert all(g.value <= c.bound for g, c in zip(design.guarantees, design.constraints, strict=True))
    assert design.certificate.verify()
    assert design.value >= 0.999 * design.upper_bound
    for _ in range(20):
        q = Invariant(p).repair(rng.dirichlet(np.full(3, 0.4), 3) + 1e-6)
        low, high = 0.0, 1.0
        for _ in range(15):
            middle = (low + high) / 2
            mixed = Channel(middle * q + (1 - middle) * p)
            fits = all(c.measure(mixed).value <= c.bound for c in caps)
            low, high = (middle, high) if fits else (low, middle)
        assert utility.value(low * q + (1 - low) * p) <= design.upper_bound * (1 + 1e-9)


def test_a_zero_of_the_distribution_is_never_reported_by_others():
    """An answer of probability zero under p is never the report of the other answers."""
    p = np.array([0.6, 0.4, 0.0])
    utility = Divergence(JENSEN_SHANNON, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
    design = optimal_channel(utility, [TotalVariation(0.5), Invariant(p)])
    assert design.channel.matrix[:2, 2].max() == 0
    assert np.abs(p @ design.channel.matrix - p).max() <= 1e-13
    assert design.certificate.verify()


def test_expected_losses_are_exact():
    """For a linear utility the invariant channel is one linear program, solved here once more by scipy."""
    from scipy.optimize import linprog

    k, ratio = 3, math.exp(1.0)
    p = np.array([0.5, 0.3, 0.2])
    loss = np.abs(np.subtract.outer(np.arange(k), np.arange(k))).astype(float)
    rows, sides = [], []
    for x in range(k):
        for z in range(k):
            for y in range(k):
                if x != z:
                    row = np.zeros((k, k))
                    row[x, y], row[z, y] = 1.0, -ratio
                    rows.append(row.ravel())
    for x in range(k):
        row = np.zeros((k, k))
        row[x] = 1
        sides.append((row.ravel(), 1.0))
    for y in range(k):
        row = np.zeros((k, k))
        row[:, y] = p
        sides.append((row.ravel(), p[y]))
    found = linprog(
        (p[:, None] * loss).ravel(), rows, np.zeros(len(rows)), [a for a, _ in sides], [b for _, b in sides]
    )
    design = optimal_channel(ExpectedLoss(p, loss), [LocalDP(1.0), Invariant(p)])
    assert design.value == pytest.approx(-found.fun, rel=1e-7)
    assert design.certified
    assert design.certificate.verify()
    assert design.guarantees[1].value <= 1e-13


def test_the_minimax_loss_is_certified_with_an_invariant_distribution():
    """The minimax loss is certified too, and not below that of a single prior."""
    loss = 1 - np.eye(3)
    p = np.array([0.5, 0.3, 0.2])
    worst = optimal_channel(ExpectedLoss(None, loss), [LocalDP(1.0), Invariant(p)])
    single = optimal_channel(ExpectedLoss(p, loss), [LocalDP(1.0), Invariant(p)])
    assert worst.certified
    assert worst.certificate.verify()
    assert worst.value <= single.value + 1e-9


def test_mutual_information_stays_within_its_bound_with_an_invariant_distribution():
    """Other utilities are searched for, within the bound of the optimum without the invariant distribution."""
    p = np.array([0.5, 0.3, 0.2])
    design = optimal_channel(MutualInformation(p), [LocalDP(1.0), Invariant(p)])
    assert design.value <= design.upper_bound
    assert design.value >= 0.5 * design.upper_bound
    assert design.guarantees[1].value <= 1e-13


def test_malformed_invariant_constraints_are_refused():
    """p is a distribution over the inputs; a smaller budget of outputs contradicts it."""
    utility = Divergence(KL, [0.5, 0.5], [0.2, 0.8])
    with pytest.raises(InvalidInput, match="p"):
        Invariant([0.5, 0.4])
    with pytest.raises(InvalidInput, match="p"):
        optimal_channel(utility, [LocalDP(1.0), Invariant([0.2, 0.3, 0.5])])
    with pytest.raises(InvalidInput, match="budget"):
        optimal_channel(utility, [LocalDP(1.0), Invariant([0.5, 0.5]), Outputs(1)])
    with pytest.raises(InvalidInput, match="decision"):
        optimal_channel(ExpectedLoss([0.5, 0.5], np.ones((2, 3))), [LocalDP(1.0), Invariant([0.5, 0.5])])
