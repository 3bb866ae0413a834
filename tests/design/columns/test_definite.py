import math
from fractions import Fraction

import numpy as np
import pytest

from ldpopt.design.columns.definite import least_eigenvalue
from ldpopt.enclosures import EXACT, FLOAT


def is_semidefinite(matrix, shift):
    """Whether matrix + shift is positive definite, by elimination in fractions."""
    a = [[Fraction(x) for x in row] for row in matrix.tolist()]
    n = len(a)
    for i in range(n):
        a[i][i] += Fraction(shift)
    for i in range(n):
        if a[i][i] <= 0:
            return False
        for j in range(i + 1, n):
            share = a[j][i] / a[i][i]
            for c in range(i, n):
                a[j][c] -= share * a[i][c]
    return True


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_no_eigenvalue_is_below(seed, scale):
    """Elimination in fractions proves what the factorisation in floats claims, to its own size of rounding."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(8, 5 + seed % 4)) * 10.0 ** rng.uniform(-6, 0, 8)[:, None]
    matrix = (root @ root.T) * scale - (seed % 2) * scale * 1e-3 * np.eye(8)
    matrix = (matrix + matrix.T) / 2
    found = least_eigenvalue(FLOAT.of(matrix))
    assert -math.inf < found <= 0
    assert is_semidefinite(matrix, -found)
    near = min(float(np.linalg.eigvalsh(matrix)[0]), 0.0)
    assert found >= near - 1e-12 * np.trace(np.abs(matrix))


def test_what_entries_are_uncertain_by_is_charged():
    """Every matrix between the ends is above the bound, also of balls."""
    matrix = np.diag([1.0, 2.0, 3.0])
    wide = FLOAT.between(matrix - 0.25, matrix + 0.25)
    assert least_eigenvalue(wide) <= -0.75
    corner = matrix + 0.25 * np.array([[-1, -1, 1], [-1, -1, 1], [1, 1, -1.0]])
    assert np.linalg.eigvalsh(corner)[0] >= least_eigenvalue(wide)
    assert least_eigenvalue(EXACT.of(matrix)) >= -1e-13


def test_what_is_no_number_has_no_bound():
    """NaN, inf and entries without ends prove nothing; zeros are zero."""
    for bad in (math.nan, math.inf, -math.inf):
        assert least_eigenvalue(FLOAT.of(np.array([[1.0, bad], [bad, 1.0]]))) == -math.inf
    assert least_eigenvalue(FLOAT.of(np.zeros((3, 3)))) == 0
    assert least_eigenvalue(FLOAT.of(np.array([[0.0, 1.0], [1.0, 0.0]]))) <= -1
