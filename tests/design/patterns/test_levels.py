"""Tests of `ldpopt.design.patterns.proof_levels`: the extreme columns of (epsilon, delta)-LDP, found again."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from design_problems import level_shapes

from ldpopt.design.patterns.proof_levels import ABSENT_LEVEL, level_columns


def rank(rows):
    """The rank of integer rows, in fractions."""
    matrix = [[Fraction(int(v)) for v in row] for row in rows]
    found = 0
    for column in range(len(matrix[0]) if matrix else 0):
        pivot = next((i for i in range(found, len(matrix)) if matrix[i][column]), None)
        if pivot is None:
            continue
        matrix[found], matrix[pivot] = matrix[pivot], matrix[found]
        for i in range(found + 1, len(matrix)):
            share = matrix[i][column] / matrix[found][column]
            matrix[i] = [a - share * b for a, b in zip(matrix[i], matrix[found], strict=True)]
        found += 1
    return found


def tight(column, e):
    """The planes s_x = e s_x' and s_x = 0 that a column lies on, as integer rows."""
    k = len(column)
    for x in range(k):
        if column[x] == 0:
            yield [int(y == x) for y in range(k)]
    for x, y in itertools.permutations(range(k), 2):
        if column[x] == e * column[y]:
            yield [int(z == x) - e * int(z == y) for z in range(k)]


def test_the_counts():
    """There are 4, 21, 138, 1055, 9308, 94465 and 1091422 of them for 2 to 8 inputs, all different."""
    assert [len(level_columns(k)) for k in range(2, 9)] == [4, 21, 138, 1055, 9308, 94465, 1091422]
    assert all(len(np.unique(level_columns(k), axis=0)) == len(level_columns(k)) for k in range(2, 6))


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("e", [2, 7])
def test_level_columns_are_the_rays_of_k_minus_1_planes(k, e):
    """A column is listed exactly if the planes it lies on leave one direction: others of whole powers do not."""
    listed = {tuple(column) for column in level_columns(k)}
    for levels in itertools.product(range(ABSENT_LEVEL, k), repeat=k):
        inside = [level for level in levels if level >= 0]
        if not inside or min(inside) > 0:
            continue
        column = [0 if level < 0 else e**level for level in levels]
        assert (rank(list(tight(column, e))) == k - 1) == (levels in listed)


def test_columns_split_into_them_and_keep_every_excess():
    """A random column is a mixture of listed ones whose excesses add up to its own: so a utility is convex there."""
    from scipy.optimize import linprog

    rng, e, k = np.random.default_rng(0), 2.5, 3
    levels = level_columns(k)
    columns = np.where(levels >= 0, e ** np.maximum(levels, 0.0), 0.0)
    pairs = list(itertools.permutations(range(k), 2))

    def excess(q):
        return np.array([np.maximum(q[..., x] - e * q[..., y], 0.0) for x, y in pairs])

    for _ in range(200):
        q = np.exp(rng.normal(0, 1.5, k)) * (rng.random(k) > 0.15)
        found = linprog(excess(columns).sum(axis=0), A_eq=columns.T, b_eq=q)
        assert found.fun == pytest.approx(excess(q).sum(), abs=1e-9)


def test_the_shapes_are_columns_of_the_list():
    """k + 2(k-1) + 3 C(k-1,2) + 2 C(k-1,3) of them, each an extreme column."""
    for k in range(2, 7):
        shapes = level_shapes(k)
        count = k + 2 * (k - 1) + 3 * math.comb(k - 1, 2) + 2 * math.comb(k - 1, 3)
        assert len(np.unique(shapes, axis=0)) == len(shapes) == count
        assert {tuple(one) for one in shapes} <= {tuple(one) for one in level_columns(k)}
