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
ALMOST = "CLARABEL or 1e-7"
"""CLARABEL at a tolerance of 1e-9; where it cannot reach that, its answer must be within 1e-7."""
INTERIOR = (ALMOST, "HIGHS")
"""The solvers in turn, first the interior-point one: its dual values lie inside the optimal face."""
CONIC = ("CLARABEL at 1e-8", "CLARABEL at 1e-6")
"""For cones, where degenerate problems cannot be solved to the last digit. The answer is measured afterwards."""
ATTEMPTS: Sequence[dict[str, Any]] = (
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
    ALMOST: {
        "tol_gap_abs": 1e-9,
        "tol_gap_rel": 1e-9,
        "tol_feas": 1e-9,
        "reduced_tol_gap_abs": 1e-7,
        "reduced_tol_gap_rel": 1e-7,
        "reduced_tol_feas": 1e-7,
    },
    "CLARABEL at 1e-6": {"tol_gap_abs": 1e-6, "tol_gap_rel": 1e-6, "tol_feas": 1e-7},
}
_EXACTLY: Sequence[tuple[str, dict[str, Any]]] = (
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


def solve(problem: Any, what: str, solvers: Sequence[str] = SIMPLEX) -> str:
    """Solve a `cvxpy.Problem` in place and return the name of the solver that did. Tries `solvers` in turn and accepts
    only the status "optimal" with finite primal and dual values; from `ALMOST` also "optimal_inaccurate", which there
    means that the looser of its two tolerances is met. Otherwise raises `SolverError` with the status of each solver
    and a remedy.
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
            # cvxpy raises ValueError for an answer that it cannot read, and for numbers that overflow; HiGHS raises
            # RuntimeError where it gives up.
            status = "solver_error"
        accepted = (cp.OPTIMAL, cp.OPTIMAL_INACCURATE) if solver == ALMOST else (cp.OPTIMAL,)
        if status in accepted and _is_finite(problem):
            return solver
        outcomes.append((solver, status))
    tried = "; ".join(f"{solver} said {status}" for solver, status in outcomes)
    raise SolverError(f"{what}: {tried}: {_REMEDY.get(outcomes[-1][1], _REMEDY['solver_error'])}")


def solve_cones(program: ConeProgram, cost: Indices, what: str) -> tuple[Array, list[Array]]:
    """The variables of a `program` that make the sum of those at `cost` least, and the dual values of its blocks.

    By Clarabel itself, as cvxpy takes ten times as long to write a small program as Clarabel to solve it. Its answer is
    accepted as that of `ALMOST`; otherwise raises `SolverError`.
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
    entries, rows, columns, begun = [], [], [], 0
    for (_, _, parts), size in zip(program.blocks, sizes, strict=True):
        for variables, matrix in parts:
            part = sparse.coo_array(matrix)
            entries.append(-part.data)
            rows.append(part.row + begun)
            columns.append(variables[part.col])
        begun += size
    places = (np.concatenate(rows), np.concatenate(columns))
    matrix = sparse.csc_array((np.concatenate(entries), places), (begun, program.size))
    right = np.concatenate([right for _, right, _ in program.blocks])
    costs = np.zeros(program.size)
    costs[cost] = 1.0
    said = []
    if np.isfinite(matrix.data).all() and np.isfinite(right).all():
        cones = [cone for (kind, _, _), size in zip(program.blocks, sizes, strict=True) for cone in kinds[kind](size)]
        nothing = sparse.csc_array((program.size, program.size))
        for options in ATTEMPTS:
            settings = clarabel.DefaultSettings()
            for name, value in ({"verbose": False} | _OPTIONS[ALMOST] | options).items():
                setattr(settings, name, value)
            answer = clarabel.DefaultSolver(nothing, costs, matrix, right, cones, settings).solve()
            values, duals = np.array(answer.x), np.array(answer.z)
            said.append(str(answer.status))
            if said[-1] in ("Solved", "AlmostSolved") and np.isfinite(values).all() and np.isfinite(duals).all():
                return values, np.split(duals, np.cumsum(sizes)[:-1])
    outcome = ", ".join(dict.fromkeys(said)) or "that its numbers are not finite"
    raise SolverError(f"{what}: CLARABEL said {outcome}: {_REMEDY['solver_error']}")


def solve_whole(
    gains: Array, equal: Array, right: Array, above: Array, most: Array, what: str, nodes: int
) -> tuple[Array, float, bool]:
    """Maximise gains.x subject to equal x = right, above x <= most, x >= 0 and x whole; the last entry of x is any
    real number. The solution, a bound that no solution exceeds, as the solver says, and whether its search was done.
    nodes : the most nodes of the search tree; unlike a limit of time it gives the same answer on every machine.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    whole = np.arange(len(gains)) < len(gains) - 1
    limits = [LinearConstraint(equal, right, right), LinearConstraint(above, -np.inf, most)]
    options = {"node_limit": nodes, "mip_rel_gap": 1e-6}
    low = np.where(whole, 0.0, -np.inf)
    answer = milp(-gains, integrality=whole.astype(int), bounds=Bounds(low), constraints=limits, options=options)
    bound = getattr(answer, "mip_dual_bound", None)
    values = np.where(whole, np.rint(_answered(answer, what)), answer.x)
    return values, np.inf if bound is None else -float(bound), answer.status == 0


def solve_real(
    gains: Array, equal: Any, right: Array, above: Any, most: Array, what: str
) -> tuple[Array, Array, Array, Array]:
    """The same program without integers: the solution x, its reduced costs, none below zero, and the multipliers of the
    equations and of the limits. The reduced cost of an entry is what raising it from zero would cost per unit; it is 0
    for entries above zero. equal, above : matrices, dense or sparse.
    """
    from scipy.optimize import linprog

    bounds = [(0.0, None)] * (len(gains) - 1) + [(None, None)]
    for method, options in _EXACTLY:
        answer = linprog(-gains, above, most, equal, right, bounds, method=method, options=options)
        if answer.status == 0:
            break
    x = _answered(answer, what)
    return x, answer.lower.marginals, -answer.eqlin.marginals, -answer.ineqlin.marginals


def _answered(answer: Any, what: str) -> Array:
    """The solution; `SolverError` where HiGHS found none."""
    if answer.x is None or not np.isfinite(answer.x).all():
        raise SolverError(f"{what}: HiGHS said {answer.message.split('.')[0]}: pass another method")
    return np.asarray(answer.x)


def _is_finite(problem: Any) -> bool:
    duals = [dual for constraint in problem.constraints for dual in constraint.dual_variables]
    values = [problem.value, *(variable.value for variable in (*problem.variables(), *duals))]
    return all(value is not None and bool(np.isfinite(value).all()) for value in values)
