"""Tests of `ldpopt.design.estimation.program_multiplicative`: its steps lead near the optimum of Newton's method."""

import numpy as np
import pytest

from ldpopt.design import AOptimal, Marginals, MVOptimal
from ldpopt.design.estimation.prices import subsets
from ldpopt.design.estimation.program_multiplicative import balance, improve
from ldpopt.design.estimation.program_newton import survey_program
from ldpopt.errors import SolverError


def all_columns(k, seed):
    """Return a distribution, and all patterns with S.p = 1."""
    p = np.random.default_rng(seed).dirichlet(np.ones(k))
    columns = np.exp(subsets(k)[:-1])
    return p, columns / (columns @ p)[:, None]


def criterion_of(kind, k):
    contrasts = np.random.default_rng(k).normal(size=(k, 2))
    sums = {"all": AOptimal(), "contrasts": Marginals((k,), [1e-6], contrasts=contrasts)}
    return MVOptimal(np.hstack([np.eye(k), contrasts])) if kind == "largest" else sums[kind]


@pytest.mark.parametrize("kind", ["all", "contrasts", "largest"])
@pytest.mark.parametrize("eta", [0.15, None])
def test_steps_lead_near_the_optimum(kind, eta):
    """After 200 steps the variances are those of Newton's method, rows sum to one, and the cap is kept."""
    k = 6
    p, columns = all_columns(k, 3)
    criterion = criterion_of(kind, k)
    factor = criterion.factor(k) - p @ criterion.factor(k)
    weights = balance(columns, np.full(len(columns), 1 / len(columns)))
    improved = improve(columns, p, factor, criterion.limited, eta, weights, 200, None)
    best = survey_program(criterion, p, columns, 1e-9, eta)

    def error(weights):
        variances = np.diag(factor.T @ np.linalg.inv((columns * weights[:, None]).T @ columns) @ factor)
        return variances.max() if criterion.limited else variances.sum()

    tolerance = 0.02 if criterion.limited else 0.01
    assert error(improved.weights) == pytest.approx(error(best.theta), rel=tolerance)
    assert columns.T @ improved.weights == pytest.approx(np.ones(k), abs=2e-2)
    x, other = np.triu_indices(k, 1)
    use = np.maximum(columns[:, x] - columns[:, other], 0.0).T @ improved.weights
    assert eta is None or use.max() <= 1.05 * eta
    assert eta is None or improved.pairs.max() > 0


def test_a_few_steps_from_any_weights_do_not_raise_the_variances():
    """From random weights whose rows sum to one, five steps lower the variances."""
    p, columns = all_columns(6, 4)
    factor = np.eye(6) - p[:, None]
    rng = np.random.default_rng(5)
    for _ in range(5):
        weights = balance(columns, rng.dirichlet(np.full(len(columns), 0.3)))
        before = np.trace(factor.T @ np.linalg.inv((columns * weights[:, None]).T @ columns) @ factor)
        improved = improve(columns, p, factor, False, None, weights, 5, None)
        assert improved.value < before
        again = improve(columns, p, factor, False, None, improved.weights, 5, improved)
        assert again.value < improved.value


def test_balanced_rows_sum_to_one():
    """Weights keep their positive entries and get rows that sum to one; columns without such weights are refused."""
    _, columns = all_columns(5, 1)
    weights = balance(columns, np.random.default_rng(0).dirichlet(np.ones(len(columns))))
    assert columns.T @ weights == pytest.approx(np.ones(5), abs=2e-3)
    assert weights.min() > 0
    with pytest.raises((SolverError, np.linalg.LinAlgError)):
        balance(columns[1:3], np.full(2, 0.5))
