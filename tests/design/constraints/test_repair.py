"""Tests of `ldpopt.design.repair`."""

import networkx as nx
import numpy as np
import pytest
from design_problems import constraints

from ldpopt import Channel, LocalDP, SolverError, TotalVariation
from ldpopt.design.constraints.repair import Unrepairable, repair
from ldpopt.mechanisms import randomized_response
from ldpopt.privacy import local_dp, total_variation


@pytest.mark.parametrize("noise", [0.0, 1e-12, 1e-9, 1e-6])
def test_noise_is_repaired_by_measurement(noise):
    """A private matrix with solver noise, negative entries included, comes back within its caps and close by."""
    rng = np.random.default_rng(1)
    exact = np.hstack([randomized_response(5, 1.0).matrix * 0.7, np.full((5, 1), 0.3), np.zeros((5, 1))])
    eta = float(total_variation(exact))
    fixed = Channel(repair(exact + noise * rng.normal(size=exact.shape), constraints(1.0, eta)))
    assert float(local_dp(fixed)) <= 1.0
    assert float(total_variation(fixed)) <= eta
    assert np.abs(fixed.matrix[:, :6] - exact[:, :6]).max() <= 1e3 * noise + 1e-13


def test_a_matrix_that_is_no_solution_is_refused():
    """Full disclosure is not passed off as nearly private."""
    with pytest.raises(SolverError, match="too far from private"):
        repair(np.eye(3), [LocalDP(1.0)])


def test_noise_is_repaired_along_the_edges_of_a_graph():
    """Where metric privacy allows tiny entries, noise that dwarfs them is repaired at the cost of the noise alone."""
    k = 40
    distance = np.abs(np.subtract.outer(np.arange(k), np.arange(k)))
    exact = np.exp(-1.0 * distance)
    exact[:, [0, -1]] /= 1 - np.exp(-1.0)  # the tails pile up at the ends
    exact /= exact.sum(axis=1, keepdims=True)
    metric = LocalDP(1.0, nx.path_graph(k))
    noisy = np.maximum(exact + 1e-10 * np.random.default_rng(2).normal(size=exact.shape), 0.0)
    fixed = repair(noisy, [metric])
    assert float(metric.measure(Channel(fixed))) <= 1.0
    assert np.abs(fixed - exact).max() <= 1e-6
    with pytest.raises(SolverError, match="too far from private"):
        repair(np.eye(k), [metric])


def test_a_matrix_that_would_have_to_be_mixed_much_is_refused():
    """Randomized response of TV 0.5 is no solution under a cap of 0.4, nor under 0.499; it is mended under 0.4999."""
    matrix = np.array([[0.75, 0.25], [0.25, 0.75]])
    for eta in (0.4, 0.499):
        with pytest.raises(Unrepairable):
            repair(matrix, [TotalVariation(eta)])
    assert total_variation(repair(matrix, [TotalVariation(0.4999)])).value <= 0.4999
