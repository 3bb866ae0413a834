"""Expected loss: linear programs with certificates."""

import math

import networkx as nx
import numpy as np
import pytest

from ldpopt.channel import Channel
from ldpopt.design import ApproximateLDP, ExpectedLoss, LocalDP, RenyiLDP, optimal_channel
from ldpopt.errors import InvalidInput


@pytest.mark.parametrize("k", [2, 5, 9])
def test_randomized_response_is_minimax_for_zero_one_loss(k):
    """Under epsilon-LDP the least worst probability of error is that of k-ary randomized response."""
    design = optimal_channel(ExpectedLoss(None, 1 - np.eye(k)), LocalDP(1.3))
    assert -design.value == pytest.approx((k - 1) / (math.exp(1.3) + k - 1), rel=1e-8)
    assert design.certified
    assert design.certificate.verify()


def test_metric_privacy_at_64_inputs():
    """d-privacy on a line, distance loss: certified, private, no worse than the truncated geometric channel."""
    k = 64
    distance = np.abs(np.subtract.outer(np.arange(k), np.arange(k)))
    prior = np.full(k, 1 / k)
    utility = ExpectedLoss(prior, distance)
    design = optimal_channel(utility, LocalDP(0.5, nx.path_graph(k)))
    assert design.certified
    assert design.guarantees[0].value <= 0.5
    geometric = np.exp(-0.5 * distance)
    geometric[:, [0, -1]] /= 1 - math.exp(-0.5)  # the tails pile up at the ends
    geometric /= geometric.sum(axis=1, keepdims=True)
    assert LocalDP(0.5001, nx.path_graph(k)).measure(Channel(geometric)).value <= 0.5001
    assert design.value >= utility.value(geometric) - 1e-9


def test_random_private_channels_lose_more():
    """No random channel made private by mixing has a loss below the certified bound."""
    rng = np.random.default_rng(3)
    loss = rng.random((4, 3))
    utility = ExpectedLoss(rng.dirichlet(np.ones(4), 2), loss)
    caps = [ApproximateLDP(0.7, 0.05), RenyiLDP(2.0, 0.6)]
    design = optimal_channel(utility, caps)
    assert design.certificate.verify()
    for _ in range(200):
        raw = rng.dirichlet(np.full(3, 0.5), 4)
        for weight in (0.1, 0.3, 0.6):
            q = Channel(weight * raw + (1 - weight) * np.eye(3)[rng.integers(3)])
            if all(c.measure(q).value <= c.bound for c in caps):
                assert utility.value(q) <= design.upper_bound + 1e-12


def test_any_multipliers_give_a_right_bound():
    """Lowering the multipliers loosens the recomputed bound; it never falls below the optimum."""
    from dataclasses import replace

    design = optimal_channel(ExpectedLoss([0.5, 0.5], 1 - np.eye(2)), LocalDP(1.0))
    forged = replace(design.certificate, rows=design.certificate.rows - 1.0)
    assert forged.upper_bound >= design.value - 1e-9


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (([0.5, 0.6], np.eye(2)), "prior"),
        (([0.5, 0.5], [1.0, 2.0]), "loss"),
        (([0.5, 0.5], np.eye(2), ("a",)), "inputs"),
    ],
)
def test_malformed_losses(arguments, word):
    """Priors are distributions, losses matrices, labels as many as inputs."""
    with pytest.raises(InvalidInput, match=word):
        ExpectedLoss(*arguments)


def test_channels_of_another_shape_are_refused():
    """Outputs must be the decisions."""
    with pytest.raises(InvalidInput, match="shape"):
        ExpectedLoss([0.5, 0.5], np.eye(2)).value(np.full((2, 3), 1 / 3))
