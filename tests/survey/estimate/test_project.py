import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldpopt.errors import InvalidInput
from ldpopt.survey.estimate.project import norm_sub, simplex_projection

VECTORS = st.lists(st.floats(-2, 2), min_size=1, max_size=8)


@settings(max_examples=60, deadline=None)
@given(VECTORS)
def test_projection_meets_its_optimality_conditions(values):
    """The projection x of p is the point of the simplex with (p - x) . (z - x) <= 0 for every vertex z."""
    p = np.array(values)
    x = simplex_projection(p)
    assert x.min() >= 0
    assert abs(x.sum() - 1) < 1e-12
    for vertex in np.eye(len(p)):
        assert (p - x) @ (vertex - x) <= 1e-9


def test_projection_agrees_with_a_quadratic_program():
    p = np.array([0.6, -0.3, 0.5, 0.1])
    x = cp.Variable(4, nonneg=True)
    cp.Problem(cp.Minimize(cp.sum_squares(x - p)), [cp.sum(x) == 1]).solve(solver=cp.CLARABEL)
    assert np.allclose(simplex_projection(p), x.value, atol=1e-7)


@settings(max_examples=60, deadline=None)
@given(VECTORS)
def test_norm_sub_shifts_the_kept_entries_equally(values):
    """Norm-sub sums to one, keeps non-positive entries at zero, and shifts all the entries it keeps by one constant."""
    p = np.array(values)
    if p.max() <= 1e-6:
        return
    x = norm_sub(p)
    assert abs(x.sum() - 1) < 1e-12
    assert np.all(x[p <= 0] == 0)
    kept = x > 1e-12
    assert np.ptp((x - p)[kept]) < 1e-9
    if p[p > 0].sum() >= 1:
        assert np.allclose(x, simplex_projection(np.maximum(p, 0)), atol=1e-9)


def test_rows_are_projected_one_by_one():
    rows = np.random.default_rng(0).normal(size=(20, 5)) + 0.3
    assert np.allclose(simplex_projection(rows), [simplex_projection(row) for row in rows])
    assert np.allclose(norm_sub(rows), [norm_sub(row) for row in rows])


def test_bad_input_is_refused():
    with pytest.raises(InvalidInput, match="a positive entry"):
        norm_sub([-1.0, 0.0])
    with pytest.raises(InvalidInput, match="finite"):
        simplex_projection([np.nan])
    with pytest.raises(InvalidInput, match="at least one entry"):
        simplex_projection([])
