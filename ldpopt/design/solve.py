"""The one place that calls a solver."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ldpopt.design.cones import ConeProgram, Indices
from ldpopt.errors import SolverError
from ldpopt.values.distribution import Array

SIMPLEX = ("HIGHS", "CLARABEL")
"""The solvers in turn, first the one that ends in a vertex: exact zeros and sharp dual values."""
CLARABEL_OR_1E7 = "CLARABEL or 1e-7"
"""CLARABEL at a tolerance of 1e-9; if it cannot reach that, its solution must be within 1e-7."""
INTERIOR = (CLARABEL_OR_1E7, "HIGHS")
"""The solvers in turn, first the interior-point one: its dual values lie inside the optimal face."""
CONIC = ("CLARABEL at 1e-8", "CLARABEL at 1e-6")
"""For cones, where degenerate problems cannot be solved to the last digit. The channel is measured afterwards."""
CLARABEL_FALLBACKS: Sequence[dict[str, Any]] = (
    {},
    {"max_step_fraction": 0.95},
    {"dynamic_regularization_eps": 1e-16, "dynamic_regularization_delta": 1e-9},
    {"static_regularization_constant": 1e-10, "iterative_refinement_max_iter": 50},
    {"equilibrate_min_scaling": 1e-8, "equilibrate_max_scaling": 1e8},
)
"""Other options of CLARABEL, in turn, where rounding stops it on a program over cones: one in a hundred random ones."""
_OPTIONS: Mapping[str, dict[str, Any]] = {
    "HIGHS": {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    "CLARABEL": {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9},
    CLARABEL_OR_1E7: {
        "tol_gap_abs": 1e-9,
        "tol_gap_rel": 1e-9,
        "tol_feas": 1e-9,
        "reduced_tol_gap_abs": 1e-7,
        "reduced_tol_gap_rel": 1e-7,
        "reduced_tol_feas": 1e-7,
    },
    "CLARABEL at 1e-6": {"tol_gap_abs": 1e-6, "tol_gap_rel": 1e-6, "tol_feas": 1e-7},
}
_HIGHS_ATTEMPTS: Sequence[tuple[str, dict[str, Any]]] = (
    ("highs", _OPTIONS["HIGHS"]),
    ("highs", _OPTIONS["HIGHS"] | {"presolve": False}),
    ("highs", {}),
    ("highs-ipm", {}),
)
"""Methods of HiGHS with their options, in turn, where rounding stops it on coefficients of very different sizes."""
_REMEDY = {
    "infeasible": "no channel meets all constraints; relax one",
    "infeasible_inaccurate": "the constraints may contradict each other; relax one",
    "unbounded": "the utility grows without limit; add a privacy constraint",
    "unbounded_inaccurate": "the utility may grow without limit; add a privacy constraint",
    "optimal_inaccurate": "the answer was not accurate enough to use; rescale the problem or pass another method",
    "user_limit": "the solver ran out of time or iterations; merge inputs or pass another method",
    "solver_error": "the solver failed on this problem; pass another method",
}


def solve(problem: Any, name: str, solvers: Sequence[str] = SIMPLEX) -> str:
    """Solve a `cvxpy.Problem` in place and return the name of the successful solver.

    Tries `solvers` in turn and accepts only the status "optimal" with finite primal and dual values. From
    `CLARABEL_OR_1E7` it also accepts "optimal_inaccurate", which there means that the looser of two tolerances is met.
    Otherwise raises `SolverError` with the status of each solver and a remedy.
    """
    import cvxpy as cp

    outcomes = []
    for solver in solvers:
        try:
            with warnings.catch_warnings():
                # cvxpy announces an inaccurate solution with a warning; here it is a status, handled below.
                warnings.simplefilter("ignore")
                problem.solve(solver=solver.split()[0], **_OPTIONS.get(solver, {}))
            status = problem.status
        except (cp.error.SolverError, ValueError, RuntimeError):
            # cvxpy raises ValueError for a solution that it cannot read, and for numbers that overflow; HiGHS raises
            # RuntimeError if it gives up.
            status = "solver_error"
        accepted_statuses = (cp.OPTIMAL, cp.OPTIMAL_INACCURATE) if solver == CLARABEL_OR_1E7 else (cp.OPTIMAL,)
        if status in accepted_statuses and _is_finite(problem):
            return solver
        outcomes.append((solver, status))
    statuses = "; ".join(f"{solver} said {status}" for solver, status in outcomes)
    raise SolverError(f"{name}: {statuses}: {_REMEDY.get(outcomes[-1][1], _REMEDY['solver_error'])}")


def solve_cones(program: ConeProgram, cost: Indices, name: str) -> tuple[Array, list[Array]]:
    """Minimize the sum of the variables at `cost` and return the variables and the dual values of the blocks.

    Clarabel is called directly, because cvxpy takes ten times as long to formulate a small program as Clarabel to solve
    it. Its solution is accepted like that of `CLARABEL_OR_1E7`; otherwise raises `SolverError`.
    """
    import clarabel
    from scipy import sparse

    kinds = {
        "zero": lambda size: [clarabel.ZeroConeT(size)],
        "nonnegative": lambda size: [clarabel.NonnegativeConeT(size)],
        "second order": lambda size: [clarabel.SecondOrderConeT(3)] * (size // 3),
        "semidefinite": lambda size: [clarabel.PSDTriangleConeT(int((2 * size) ** 0.5))],
        "exponential": lambda size: [clarabel.ExponentialConeT()] * (size // 3),
    }
    sizes = [len(right) for _, right, _ in program.blocks]
    entries, rows, columns, first_row = [], [], [], 0
    for (_, _, parts), size in zip(program.blocks, sizes, strict=True):
        for variables, matrix in parts:
            part = sparse.coo_array(matrix)
            entries.append(-part.data)
            rows.append(part.row + first_row)
            columns.append(variables[part.col])
        first_row += size
    indices = (np.concatenate(rows), np.concatenate(columns))
    matrix = sparse.csc_array((np.concatenate(entries), indices), (first_row, program.size))
    right = np.concatenate([right for _, right, _ in program.blocks])
    costs = np.zeros(program.size)
    costs[cost] = 1.0
    statuses = []
    if np.isfinite(matrix.data).all() and np.isfinite(right).all():
        cones = [cone for (kind, _, _), size in zip(program.blocks, sizes, strict=True) for cone in kinds[kind](size)]
        no_quadratic_cost = sparse.csc_array((program.size, program.size))
        for options in CLARABEL_FALLBACKS:
            settings = clarabel.DefaultSettings()
            for option, value in ({"verbose": False} | _OPTIONS[CLARABEL_OR_1E7] | options).items():
                setattr(settings, option, value)
            solution = clarabel.DefaultSolver(no_quadratic_cost, costs, matrix, right, cones, settings).solve()
            values, duals = np.array(solution.x), np.array(solution.z)
            statuses.append(str(solution.status))
            if statuses[-1] in ("Solved", "AlmostSolved") and np.isfinite(values).all() and np.isfinite(duals).all():
                return values, np.split(duals, np.cumsum(sizes)[:-1])
    outcome = ", ".join(dict.fromkeys(statuses)) or "that its numbers are not finite"
    raise SolverError(f"{name}: CLARABEL said {outcome}: {_REMEDY['solver_error']}")


def solve_integer(
    gains: Array,
    equation_matrix: Array,
    equation_values: Array,
    limit_matrix: Array,
    limits: Array,
    name: str,
    nodes: int,
) -> tuple[Array, float, bool]:
    """Maximize gains.x subject to equations and limits, for integers x >= 0 and one real number.

    The program is max gains.x subject to equation_matrix x = equation_values, limit_matrix x <= limits, x >= 0 and x
    integer. The last entry of x is any real number. Returns the solution, the solver's bound on all solutions, and
    whether its search was complete.

    nodes : the largest number of nodes of the search tree; unlike a time limit it gives the same result on every
    machine.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    is_integer = np.arange(len(gains)) < len(gains) - 1
    linear_constraints = [
        LinearConstraint(equation_matrix, equation_values, equation_values),
        LinearConstraint(limit_matrix, -np.inf, limits),
    ]
    options = {"node_limit": nodes, "mip_rel_gap": 1e-6}
    low = np.where(is_integer, 0.0, -np.inf)
    solution = milp(
        -gains, integrality=is_integer.astype(int), bounds=Bounds(low), constraints=linear_constraints, options=options
    )
    bound = getattr(solution, "mip_dual_bound", None)
    values = np.where(is_integer, np.rint(_checked_solution(solution, name)), solution.x)
    return values, np.inf if bound is None else -float(bound), solution.status == 0


def solve_linear(
    gains: Array, equation_matrix: Any, equation_values: Any, limit_matrix: Any, limits: Array, name: str, free: int = 1
) -> tuple[Array, Array, Array, Array]:
    """Solve the same program without integers, where the last `free` entries of x are any real numbers.

    Returns the solution x, its nonnegative reduced costs, and the multipliers of the equations and of the limits. The
    reduced cost of an entry is the cost per unit of raising it from zero; it is 0 for entries above zero.
    equation_matrix, limit_matrix : matrices, dense or sparse. None for no equations.
    """
    from scipy.optimize import linprog

    bounds = [(0.0, None)] * (len(gains) - free) + [(None, None)] * free
    for method, options in _HIGHS_ATTEMPTS:
        solution = linprog(
            -gains, limit_matrix, limits, equation_matrix, equation_values, bounds, method=method, options=options
        )
        if solution.status == 0:
            break
    x = _checked_solution(solution, name)
    return x, solution.lower.marginals, -solution.eqlin.marginals, -solution.ineqlin.marginals


def _checked_solution(solution: Any, name: str) -> Array:
    """Return the solution; raise `SolverError` if HiGHS found none."""
    if solution.x is None or not np.isfinite(solution.x).all():
        raise SolverError(f"{name}: HiGHS said {solution.message.split('.')[0]}: pass another method")
    return np.asarray(solution.x)


def _is_finite(problem: Any) -> bool:
    duals = [dual for constraint in problem.constraints for dual in constraint.dual_variables]
    values = [problem.value, *(variable.value for variable in (*problem.variables(), *duals))]
    return all(value is not None and bool(np.isfinite(value).all()) for value in values)
