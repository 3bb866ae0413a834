"""What multipliers leave unpaid, against linear programs over all columns."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog

from ldpopt.design.certificates.residual import enclosed_residual
from ldpopt.enclosures import EXACT, FLOAT


def most(reduced, spread):
    """The largest sum_i reduced_i . q_i over channels, by a program over the extreme columns of the box."""
    k = reduced.shape[1]
    if spread is None:
        return float(np.maximum(reduced.max(axis=0), 0.0).sum())
    level = 1 / math.expm1(spread)
    columns = level + np.array(list(itertools.product((0.0, 1.0), repeat=k)))
    gains = (reduced @ columns.T).max(axis=0)
    return -linprog(-gains, A_eq=columns.T, b_eq=np.ones(k)).fun


@pytest.mark.parametrize("arithmetic", [FLOAT, EXACT], ids=["float", "exact"])
@pytest.mark.parametrize("spread", [None, 1e-3, 0.5, 3.0, 40.0])
def test_nothing_gains_more(arithmetic, spread):
    """The residual is at least what the best channel gains, and 0 where all labels are paid for."""
    rng = np.random.default_rng(0)
    for _ in range(10):
        reduced = rng.normal(size=(3, 4)) * 10 ** rng.uniform(-3, 3)
        given = None if spread is None else arithmetic.of(spread)
        enclosed = arithmetic.of(reduced)
        found = enclosed_residual(enclosed, enclosed.sum(axis=1), given)
        assert found >= most(reduced, spread) * (1 - 1e-9)
        paid = arithmetic.of(-np.abs(reduced))
        assert enclosed_residual(paid, paid.sum(axis=1), given) == 0.0


@pytest.mark.parametrize("spread", [1e-12, 1e-8, 1e-4, 1.0, 30.0, 500.0])
def test_small_shortfalls_cost_little(spread):
    """Prices that a column reaches exactly, short of 1e-12 of themselves, cost about as much, at every epsilon."""
    level = math.exp(-spread) / -math.expm1(-spread)
    reduced = np.array([[0.7, -1.0, -1.0]])
    # The column t + (1, 0, 0) gains t times the sum, and 0.7.
    sums = np.array([-0.7 / level]) * (1 - 1e-12)
    found = enclosed_residual(FLOAT.of(reduced), FLOAT.of(sums), FLOAT.of(spread))
    assert 0 < found <= 4e-12 * 3 * 0.7 / (3 * level + 1)


def test_what_is_not_known_proves_nothing():
    """Reduced gains that may be infinite leave an infinite residual."""
    for bad in (math.inf, math.nan):
        enclosed = FLOAT.of(np.array([[bad, -1.0]]))
        assert enclosed_residual(enclosed, enclosed.sum(axis=1), FLOAT.of(1.0)) == math.inf
        assert enclosed_residual(enclosed, enclosed.sum(axis=1), None) == math.inf
    ones = FLOAT.of(np.ones((1, 2)))
    assert enclosed_residual(ones, FLOAT.of([math.nan]), FLOAT.of(1.0)) >= 2.0
    assert enclosed_residual(ones, ones.sum(axis=1), FLOAT.of(0.0)) >= 2.0


@pytest.mark.parametrize("arithmetic", [FLOAT, EXACT], ids=["float", "exact"])
@pytest.mark.parametrize("cap", [1e-9, 1e-3, 0.2, 1.0])
def test_rows_that_hardly_differ_gain_little(arithmetic, cap):
    """With a cap on the variation the residual is at least what the best channel gains, by a program over channels."""
    rng = np.random.default_rng(3)
    labels, k = 3, 3
    for _ in range(5):
        reduced = rng.normal(size=(labels, k))
        reduced -= reduced.mean(axis=1, keepdims=True) + 0.1 * cap
        # Variables: q (labels, k), and the excess of each row over each other.
        pairs = [(x, y) for x in range(k) for y in range(k) if x != y]
        size = labels * k + labels * len(pairs)
        above, limits, bounds = [], [], []
        for number, (x, y) in enumerate(pairs):
            total = np.zeros(size)
            for i in range(labels):
                row = np.zeros(size)
                at = labels * k + i * len(pairs) + number
                row[i * k + x], row[i * k + y], row[at] = 1.0, -1.0, -1.0
                total[at] = 1.0 / cap
                above.append(row)
                bounds.append(0.0)
            limits.append(total)
        sums = np.zeros((k, size))
        for x in range(k):
            sums[x, [i * k + x for i in range(labels)]] = 1.0
        gains = np.concatenate([reduced.ravel(), np.zeros(labels * len(pairs))])
        best = -linprog(
            -gains, A_ub=np.array(above + limits), b_ub=np.concatenate([bounds, np.ones(len(limits))]), A_eq=sums,
            b_eq=np.ones(k),
        ).fun  # fmt: skip
        enclosed = arithmetic.of(reduced)
        found = enclosed_residual(enclosed, enclosed.sum(axis=1), None, arithmetic.of(cap))
        assert (
            best * (1 - 1e-6) - 1e-8 * cap
            <= found
            <= 2 * cap * float(np.maximum(reduced.max(axis=0), 0).sum()) * (1 + 1e-9)
        )
