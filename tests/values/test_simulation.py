"""Simulated reports: the guide table is inverse transform sampling, to the last bit."""

import numpy as np
import pytest
from scipy import stats

from ldpopt.values.distribution import simulate


@pytest.mark.parametrize(("k", "m", "n"), [(1, 1, 10), (2, 2, 100), (3, 7, 50_000), (32, 32, 40_000), (5, 300, 9_000),
                                           (2, 9000, 3_000), (700, 4, 2_000)])  # fmt: skip
def test_the_report_is_the_inverse_of_the_cumulative_sum(k, m, n):
    """Every report is the number of cumulative probabilities of its row that are at most its uniform number."""
    rng = np.random.default_rng([k, m])
    matrix = rng.dirichlet(np.full(m, 0.3), k)
    x = rng.integers(k, size=n)
    steps = np.cumsum(matrix, axis=1)
    steps /= steps[:, -1:]
    u = np.random.default_rng(5).random(n)
    expected = np.array([np.searchsorted(steps[row], value, side="right") for row, value in zip(x, u, strict=True)])
    assert np.array_equal(simulate(matrix, x, np.random.default_rng(5)), np.minimum(expected, m - 1))


def test_reports_have_the_probabilities_of_their_row():
    """The reports of each answer have the probabilities of its row (chi-square test)."""
    rng = np.random.default_rng(3)
    matrix = rng.dirichlet(np.ones(6), 4)
    x = np.repeat(np.arange(4), 50_000)
    y = simulate(matrix, x, np.random.default_rng(4))
    counts = np.array([np.bincount(y[x == row], minlength=6) for row in range(4)])
    assert min(stats.chisquare(counts[row], 50_000 * matrix[row]).pvalue for row in range(4)) > 1e-4


def test_impossible_reports_never_come():
    """A report of probability 0 is never drawn, wherever the zeros stand; shapes and empty arrays are kept."""
    matrix = np.array([[0.0, 0.5, 0.0, 0.5, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0]])
    x = np.random.default_rng(0).integers(2, size=(300, 100))
    y = simulate(matrix, x, np.random.default_rng(1))
    assert y.shape == x.shape
    assert set(np.unique(y[x == 0])) == {1, 3}
    assert set(np.unique(y[x == 1])) == {2}
    assert simulate(matrix, np.zeros((0, 3), int), np.random.default_rng(1)).shape == (0, 3)
