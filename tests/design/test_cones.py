"""Programs over cones as numbers: the same optimum as cvxpy finds, with dual values that prove it."""

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse

from ldpopt.design.cones import ConeProgram, matrix_of, triangle
from ldpopt.design.solve import solve_cones
from ldpopt.errors import SolverError


@pytest.mark.parametrize("seed", range(3))
def test_every_cone_has_the_optimum_of_cvxpy_and_dual_values_that_prove_it(seed):
    """min t + u + v + z over five cones at once; the blocks' rights weigh the dual values to minus the optimum."""
    rng = np.random.default_rng(seed)
    target, low, square = rng.normal(size=2), rng.uniform(0.5, 2, size=2), rng.normal(size=(3, 3))
    square = square @ square.T
    program = ConeProgram()
    x, y, t, u, v, z = (program.variables(size) for size in (2, 2, 1, 1, 1, 1))
    program.put("zero", -target, (x, np.eye(2)), (y, -np.eye(2)))  # x - y = target
    program.put("nonnegative", -low, (y, sparse.eye_array(2)))
    # t >= |(x_1, x_2)|; then exp(u) >= ... from below: (y_1, 1, v) with exp(y_1) <= v.
    program.put("second order", np.zeros(3), (t, np.eye(3, 1)), (x, np.eye(3, 2, -1)))
    program.put("exponential", np.array([0.0, 1.0, 0.0]), (y[:1], np.eye(3)[:, :1]), (v, np.eye(3)[:, 2:]))
    i, j, factor = triangle(3)
    program.put("semidefinite", -square[i, j] * factor, (u, (np.eye(3)[i, j] * factor)[:, None]))  # u I >= square
    program.put("nonnegative", -np.ones(1), (z, np.ones((1, 1))), (u, -np.ones((1, 1))))  # z >= u + 1
    values, duals = solve_cones(program, np.concatenate([t, v, z]), "test")

    a, b, s = cp.Variable(2), cp.Variable(2), cp.Variable()
    cost = cp.norm(a) + cp.exp(b[0]) + s + 1
    wanted = cp.Problem(cp.Minimize(cost), [a - b == target, b >= low, s * np.eye(3) >> square]).solve("CLARABEL")
    found = float(values[np.concatenate([t, v, z])].sum())
    assert found == pytest.approx(wanted, abs=1e-6)
    assert -sum(right @ dual for (_, right, _), dual in zip(program.blocks, duals, strict=True)) == pytest.approx(found)
    assert np.linalg.eigvalsh(matrix_of(duals[4])).min() > -1e-8
    assert float(values[u[0]]) == pytest.approx(np.linalg.eigvalsh(square)[-1])


def test_a_symmetric_matrix_is_its_triangle():
    """Back and forth, and the inner product of two vectors is that of their matrices."""
    rng = np.random.default_rng(0)
    one, two = (half + half.T for half in rng.normal(size=(2, 4, 4)))
    i, j, factor = triangle(4)
    assert matrix_of(one[i, j] * factor) == pytest.approx(one)
    assert (one[i, j] * factor) @ (two[i, j] * factor) == pytest.approx(np.sum(one * two))


@pytest.mark.parametrize(
    ("right", "said"), [([-1.0, -1.0], "Infeasible"), ([0.0, np.nan], "finite"), ([np.inf, 0.0], "finite")]
)
def test_unsolvable_programs_are_reported(right, said):
    """x >= 1 and -x >= 1 have none, nor have numbers that are not finite: no crash of the solver, and no answer."""
    program = ConeProgram()
    x = program.variables(1)
    program.put("nonnegative", np.array(right), (x, np.array([[1.0], [-1.0]])))
    with pytest.raises(SolverError, match=f"mine: CLARABEL said .*{said}.*: the solver failed"):
        solve_cones(program, x, "mine")
