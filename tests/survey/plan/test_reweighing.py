"""Weights of given reports: the least largest variance, against a semidefinite program of the same problem."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from ldpopt.mechanisms import randomized_response
from ldpopt_survey.estimate.linear import contrast_variances
from ldpopt_survey.plan.reweighing import _weights, reweighed_channel
from ldpopt_survey.plan.units import Target

PILOT = np.array([0.5, 0.3, 0.15, 0.05])
TARGETS = [Target(("q", str(number)), row, 1.0 + number) for number, row in enumerate(np.eye(4))]


def shapes_of(*epsilons: float) -> np.ndarray:
    """The columns of randomized responses, each with mean 1 under the pilot."""
    columns = np.hstack([randomized_response(4, epsilon).matrix for epsilon in epsilons])
    return columns / (PILOT @ columns)


@pytest.mark.parametrize("least_weight", [0.0, 0.02])
@pytest.mark.parametrize("eta", [None, 0.25])
def test_the_weights_are_those_of_a_semidefinite_program(least_weight: float, eta: float | None) -> None:
    shapes = shapes_of(0.5, 1.0)
    found = _weights(shapes, PILOT, TARGETS, least_weight, eta)
    assert found is not None
    weights, largest = cp.Variable(shapes.shape[1]), cp.Variable()
    information = shapes @ cp.diag(weights) @ shapes.T
    rows = np.array([(target.row - target.row @ PILOT) / np.sqrt(target.variance) for target in TARGETS])
    limits = [cp.matrix_frac(row, information) <= largest for row in rows]
    if eta is not None:
        limits += [cp.pos(shapes[x] - shapes[z]) @ weights <= eta for x in range(4) for z in range(4)]
    problem = cp.Problem(cp.Minimize(largest), [*limits, weights >= least_weight, shapes @ weights == 1])
    expected = problem.solve(solver=cp.CLARABEL)
    assert found[1] * np.abs(rows).max() ** 2 == pytest.approx(expected, rel=1e-4)
    np.testing.assert_allclose(shapes @ found[0], 1.0, atol=1e-6)
    assert found[0].min() >= least_weight - 1e-6


def test_a_reweighed_channel_is_as_good_as_the_best_of_its_pool() -> None:
    pool = [randomized_response(4, epsilon) for epsilon in (0.5, 1.0)]
    channel = reweighed_channel(pool, randomized_response(4, 1.0), PILOT, TARGETS, 1e-4)
    assert channel is not None
    assert (PILOT @ channel.matrix).min() >= 1e-4

    def largest_variance(made: object) -> float:
        return max(float(contrast_variances(made, PILOT, target.row[None])[0]) / target.variance for target in TARGETS)

    assert largest_variance(channel) <= min(map(largest_variance, pool)) * (1 + 1e-6)
