"""Tests of `ldpopt.design.repair`."""

import numpy as np
import pytest
from design_problems import constraints

from ldpopt import Channel, LocalDP, SolverError
from ldpopt.design.repair import repair
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
