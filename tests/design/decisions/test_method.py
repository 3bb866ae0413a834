"""The programs whose outputs are decisions."""

import json

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import linprog

import ldpopt_check
from ldpopt import LocalDP, TotalVariation, optimal_channel
from ldpopt.design import ApproximateLDP, ExpectedLoss


@pytest.mark.parametrize("eta", [1e-12, 1e-9, 1e-6])
@pytest.mark.parametrize("loss", [[[1.0, 2.0, 3.0], [-0.3, -0.1, -0.5]], [[0.1, -0.3, 1.0], [0.2, 0.5, 0.0]]])
def test_rows_that_must_nearly_agree_take_the_best_common_decision(eta, loss):
    """Under a cap eta on total variation far below e^epsilon - 1, the least loss is that of one decision for all inputs
    alike, but for eta times the spread of the losses at most; no share of it is lost to the units of the program."""
    prior = np.array([0.06, 0.94])
    alike = float((prior @ np.array(loss)).min())
    design = optimal_channel(ExpectedLoss(prior, loss, range(2), range(3)), [LocalDP(3.0), TotalVariation(eta)])
    assert design.certified
    assert design.verify()
    assert alike - eta * np.ptp(loss) - 1e-15 <= -design.value <= alike * (1 + 1e-8 * np.sign(alike))


LINE = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4)))
PRIOR = [0.4, 0.3, 0.2, 0.1]


def least_loss(prior, loss, epsilon):
    """The least loss under pure LDP by a linear program in the entries, for losses of one size."""
    k, m = loss.shape
    pairs = [(x, z, y) for x in range(k) for z in range(k) for y in range(m) if x != z]
    limits = np.zeros((len(pairs), k * m))
    for row, (x, z, y) in enumerate(pairs):
        limits[row, [x * m + y, z * m + y]] = 1.0, -np.exp(epsilon)
    rows = np.kron(np.eye(k), np.ones(m))
    costs = (np.array(prior)[:, None] * loss).ravel()
    return linprog(costs, limits, np.zeros(len(pairs)), rows, np.ones(k)).fun


def changed_loss(loss, place, value):
    """The loss with one entry, row or column changed."""
    made = np.array(loss, dtype=float)
    made[place] = value
    return made


def checked(design, tmp_path):
    """Whether `verify` and the second checker accept a design."""
    design.save(tmp_path / "design.json")
    found = ldpopt_check.check(json.loads((tmp_path / "design.json").read_text("utf-8")))
    return bool(design.verify()) and not found.failures and found.certified is design.certified


def alike(prior, loss):
    """The least loss of one decision for all inputs."""
    return float((np.atleast_2d(np.eye(len(loss)) if prior is None else prior) @ loss).max(axis=0).min())


@pytest.mark.parametrize("large", [1e3, 1e8, 1e12, 1e100, 1e300])
@pytest.mark.parametrize("place", [(0, 3), (3, 0), (slice(None), 3), ([0, 3, 2], [3, 0, 1])], ids=str)
def test_prohibitive_losses_forbid_their_decisions(large, place, tmp_path):
    """From a size on, a loss is as if its decision did not exist: the optimum is that of the others, certified."""
    loss = changed_loss(LINE, place, large)
    design = optimal_channel(ExpectedLoss(PRIOR, loss), LocalDP(1.0))
    others = np.flatnonzero((loss < large).all(axis=0))
    assert design.certified
    assert checked(design, tmp_path)
    assert -design.value <= alike(PRIOR, loss) * (1 + 1e-9)
    assert -design.value == pytest.approx(least_loss(PRIOR, loss[:, others], 1.0), rel=1e-6)


@pytest.mark.parametrize(
    ("prior", "loss", "epsilon"),
    [
        ([0.5, 0.5], [[-1e12, 1.0], [1e13, 0.0]], 1.0),
        ([0.5, 0.5], [[0.0, 1.0], [0.0, 1e12]], 1.0),
        ([0.5, 0.5], [[1e12, 1e12 + 1], [1e12 + 2, 1e12]], 1.0),
        ([0.5, 0.5, 0.0], [[0.0, 1.0], [1.0, 0.0], [1e300, 1e300]], 0.5),
        ([0.2, 0.8], [[0.0, 1e9], [1.0, 0.0]], 30.0),
        ([0.2, 0.8], [[0.0, 1e9], [1e12, 0.0]], 30.0),
        ([0.25, 0.75], [[1e-9, 1e3, 1.0], [5.0, 1e-6, 1e7]], 3.0),
        ([0.2, 0.8], [[-3.0, 1e300], [-1.0, -2.0]], 2.0),
        (None, changed_loss(LINE, (0, 3), 1e12).tolist(), 1.0),
        (None, [[0.0, 1e9], [1e9, 0.0], [1.0, 1.0]], 40.0),
        ([[0.5, 0.5], [0.1, 0.9]], [[0.0, 1.0, 1e30], [1.0, 0.0, 1e30]], 1.0),
    ],
)
def test_mixed_scales_are_certified(prior, loss, epsilon, tmp_path):
    """Negative losses, rows without a prior, several priors and large ratios: certified, and no worse than one
    decision for all inputs alike."""
    loss = np.array(loss)
    design = optimal_channel(ExpectedLoss(prior, loss), LocalDP(epsilon))
    assert design.certified
    assert checked(design, tmp_path)
    assert -design.value <= alike(prior, loss) + 1e-9 * abs(alike(prior, loss))


@pytest.mark.parametrize(
    "constraints",
    [
        [ApproximateLDP(0.5, 0.02)],
        [LocalDP(1.0), TotalVariation(0.1)],
        [TotalVariation(0.2)],
        [LocalDP(1.0, nx.path_graph(4))],
    ],
    ids=["approximate", "variation and pure", "variation", "graph"],
)
@pytest.mark.parametrize("large", [1e5, 1e12, 1e300])
def test_prohibitive_losses_forbid_decisions_under_other_constraints(constraints, large, tmp_path):
    """Where single entries may be zero, prohibitive ones are, exactly: nothing is mixed into them afterwards."""
    loss = changed_loss(LINE, (0, 3), large)
    design = optimal_channel(ExpectedLoss(PRIOR, loss), constraints)
    assert design.certified
    assert checked(design, tmp_path)
    assert design.channel.matrix[0, 3] * large < 1e-6
    assert -design.value <= alike(PRIOR, loss)
    forbidden = optimal_channel(ExpectedLoss(PRIOR, changed_loss(LINE, (0, 3), 1e3)), constraints)
    assert design.value <= forbidden.value + 1e-6 * abs(forbidden.value)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(150))
def test_random_prohibitive_losses_are_certified(seed):
    """Random losses with large entries, rows and columns of either sign under one prior: certified and verified."""
    rng = np.random.default_rng(seed)
    k, m = rng.choice([2, 3, 4, 6], 2)
    loss = [np.subtract.outer(np.arange(k), np.arange(m)) ** 2.0, rng.normal(size=(k, m)), -rng.random((k, m))][
        seed % 3
    ]
    large = rng.uniform(1, 3) * 10.0 ** float(rng.choice([3, 5, 7, 9, 12, 30, 100, 300]))
    prior = rng.dirichlet(np.full(k, 2.0))
    kind = int(rng.integers(5))
    if kind == 0:
        loss[rng.random((k, m)) < 0.3] = large
    elif kind == 1:
        loss[:, rng.integers(m)] = large
    elif kind == 2:
        prior[0], loss[0] = 0.0, large
        prior = prior / prior.sum()
    elif kind == 3:
        loss[rng.random((k, m)) < 0.2] = large
        loss[rng.random((k, m)) < 0.1] = -large
    else:
        loss *= 10.0 ** rng.uniform(0, 12, (k, m))
    epsilon = float(rng.choice([0.01, 0.3, 1.0, 3.0, 8.0, 20.0, 40.0]))
    design = optimal_channel(ExpectedLoss(prior, loss), LocalDP(epsilon))
    assert design.certified
    assert design.verify()
    assert -design.value <= alike(prior, loss) + 1e-9 * abs(alike(prior, loss))
