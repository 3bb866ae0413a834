"""Tests of `ldpopt.design.programs.column_gains`: the largest gain of any column, against all patterns."""

import math

import numpy as np
import pytest
from design_problems import DIVERGENCES

from ldpopt.design.programs.column_gains import column_gain, largest_violation


def instance():
    rng = np.random.default_rng(5)
    f, k, ratio = DIVERGENCES["kl"], 8, math.exp(1.2)
    p0, p1 = np.sort(rng.dirichlet(np.ones(k))), rng.dirichlet(np.ones(k))
    order = np.argsort(p0 / p1)
    rows, pairs = 0.02 * rng.normal(size=k), np.triu(0.01 * rng.random((k, k)), 1)
    return f, p0[order], p1[order], rows, pairs, ratio


def test_the_violation_is_that_of_the_best_column():
    """The bound on the largest gain is attained by a pattern, to the accuracy asked for, and no column gains more."""
    f, p0, p1, rows, pairs, ratio = instance()
    bound, found = largest_violation(f, p0, p1, rows, pairs, ratio, 1e-9)
    subsets = ((np.arange(2**8)[:, None] >> np.arange(8)) & 1) == 1
    gains = [column_gain(f, p0, p1, rows, pairs, np.where(side, ratio, 1.0)) for side in subsets]
    assert bound == pytest.approx(max(gains), abs=2e-9)
    assert bound >= max(gains) - 1e-13
    best = max(column_gain(f, p0, p1, rows, pairs, np.where(side, ratio, 1.0)) for side in found.T)
    assert best == pytest.approx(max(gains), abs=1e-9)


def test_few_flows_make_a_larger_bound_not_a_wrong_one():
    """When the flows allowed run out, what is unresolved is bounded all the same."""
    fields = instance()
    assert largest_violation(*fields, 1e-12, 5)[0] >= largest_violation(*fields, 1e-12)[0] - 1e-15


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("name", ["kl", "chi_squared", "le_cam", "total_variation"])
def test_the_largest_violation_against_every_corner(name, seed):
    """A convex function of the column is largest at a corner of [1, E]^n: the bound is that, to its accuracy."""
    rng = np.random.default_rng(seed)
    n, ratio, f = 5, float(np.exp(rng.uniform(0.1, 4))), DIVERGENCES[name]
    p0, p1 = rng.dirichlet(np.ones(n), 2)
    corners = np.where((np.arange(2**n)[:, None] >> np.arange(n)) & 1, ratio, 1.0)
    worth = f.excess(corners @ p0, corners @ p1)
    rows = float(worth.max()) * rng.uniform(0, 1.5) * (p1 + rng.normal(scale=0.3, size=n) / n) / ratio
    exact = max(0.0, float((worth - corners @ rows).max()))
    accuracy = 1e-7 * float(worth.max())
    found = largest_violation(f, p0, p1, rows, np.zeros((n, n)), ratio, accuracy)[0]
    assert exact * (1 - 1e-12) <= found <= exact + 2 * accuracy
