"""Expected loss: linear programs with certificates."""

import math

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import linprog

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


def test_metric_privacy_is_certified_at_64_inputs():
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


def test_skewed_priors_are_repaired_at_64_inputs():
    """0/1 and distance loss under metric privacy with an uneven prior: rarely used decisions do not stop the repair."""
    k = 64
    distance = np.abs(np.subtract.outer(np.arange(k), np.arange(k)))
    prior = np.random.default_rng(k).dirichlet(np.ones(k))
    for loss in (1 - np.eye(k), distance):
        design = optimal_channel(ExpectedLoss(prior, loss), LocalDP(1.0, nx.path_graph(k)))
        assert design.certified
        assert design.guarantees[0].value <= 1.0


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
def test_malformed_losses_are_refused(arguments, word):
    """Priors are distributions, losses matrices, labels as many as inputs."""
    with pytest.raises(InvalidInput, match=word):
        ExpectedLoss(*arguments)


def test_channels_of_another_shape_are_refused():
    """Outputs must be the decisions."""
    with pytest.raises(InvalidInput, match="shape"):
        ExpectedLoss([0.5, 0.5], np.eye(2)).value(np.full((2, 3), 1 / 3))


def least_loss_by_definition(prior, loss, levels):
    """The linear program written out: Q[x, y] <= exp(levels[x, z]) Q[z, y]; of several priors the worst counts."""
    k, m = loss.shape
    limits, bounds = [], []
    for x in range(k):
        for z in range(k):
            for y in range(m) if x != z else ():
                row = np.zeros(k * m + 1)
                row[x * m + y], row[z * m + y] = 1.0, -math.exp(levels[x, z])
                limits.append(row)
                bounds.append(0.0)
    for p in np.atleast_2d(prior):
        limits.append(np.append((p[:, None] * loss).ravel(), -1.0))
        bounds.append(0.0)
    sums = np.hstack([np.kron(np.eye(k), np.ones((1, m))), np.zeros((k, 1))])
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = linprog(
        np.append(np.zeros(k * m), 1.0), np.array(limits), bounds, sums, np.ones(k),
        bounds=[(0, None)] * (k * m) + [(None, None)], options=options,
    )  # fmt: skip
    return found.fun


def problems(k, seed):
    """(prior, loss, constraint, levels of every pair): plain and metric privacy, three kinds of loss."""
    rng = np.random.default_rng(seed)
    line = np.abs(np.subtract.outer(np.arange(k), np.arange(k))).astype(float)
    for loss in (1 - np.eye(k), line, rng.random((k, k))):
        yield rng.dirichlet(np.ones(k)), loss, LocalDP(0.8), 0.8 * (1 - np.eye(k))
        yield rng.dirichlet(np.ones(k)), loss, LocalDP(0.8, nx.path_graph(k)), 0.8 * line


@pytest.mark.parametrize("k", [3, 6])
def test_the_loss_is_that_of_the_definition(k):
    """Plain and metric privacy, three kinds of loss: the optimum is that of the linear program written out."""
    for prior, loss, constraint, levels in problems(k, k):
        design = optimal_channel(ExpectedLoss(prior, loss), constraint)
        assert -design.value == pytest.approx(least_loss_by_definition(prior, loss, levels), rel=1e-7)
        assert design.certified


def test_optimal_losses_agree_with_qif():
    """The optimal-loss channels of qif, which solves the same program with its own solver, lose the same."""
    qif = pytest.importorskip("qif")
    for k in (3, 6):
        for prior, loss, constraint, levels in problems(k, 10 + k):
            theirs = qif.mechanism.d_privacy.min_loss_given_d(
                prior, k, lambda x, y, at=levels: float(at[x, y]), lambda x, y, at=loss: float(at[x, y])
            )
            lost = float(prior @ (np.asarray(theirs) * loss).sum(axis=1))
            assert -optimal_channel(ExpectedLoss(prior, loss), constraint).value == pytest.approx(lost, rel=1e-6)


def test_the_worst_prior_is_the_one_that_costs_most():
    """The least worst loss over all priors is the largest least loss of one prior: brute force over a fine grid."""
    rng = np.random.default_rng(11)
    loss, levels = rng.random((3, 3)), 0.9 * (1 - np.eye(3))
    design = optimal_channel(ExpectedLoss(None, loss), LocalDP(0.9))
    assert -design.value == pytest.approx(least_loss_by_definition(np.eye(3), loss, levels), rel=1e-7)
    assert design.certified
    grid = [np.array([i, j, 20 - i - j]) / 20 for i in range(21) for j in range(21 - i)]
    costs = [-optimal_channel(ExpectedLoss(p, loss), LocalDP(0.9), certify=False).value for p in grid[::8]]
    assert max(costs) <= -design.value * (1 + 1e-8)
    worst = design.certificate.weights / design.certificate.weights.sum()
    assert -optimal_channel(ExpectedLoss(worst, loss), LocalDP(0.9)).value == pytest.approx(-design.value, rel=1e-6)
    several = rng.dirichlet(np.ones(3), 4)
    few = optimal_channel(ExpectedLoss(several, loss), LocalDP(0.9))
    assert -few.value == pytest.approx(least_loss_by_definition(several, loss, levels), rel=1e-7)
