"""Build the plain cvxpy program of a utility and constraints, to extend or to solve.

To maximize the utility is to maximize a convex function of the channel's matrix. No convex program does that. But the
optimum is a maximum over the weights w of the extreme columns S within the constraints [KOV14, Thm 4], Q = S diag(w).
Such utilities are linear in the weights, and estimation criteria are convex. A loss is linear in the entries of the
matrix itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.candidate import Ask, Candidate, Limit, Method, too_large
from ldpopt.design.cones import ConeProgram, matrix_of
from ldpopt.design.constraints.base import Constraint
from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.kernel.sets import members
from ldpopt.design.outputs.method_search import MAX_PROGRAM_ENTRIES
from ldpopt.design.patterns.method import class_representatives, level_column_parts, single_approximate_ldp
from ldpopt.design.patterns.proof_levels import level_columns
from ldpopt.design.problems.problem import Problem
from ldpopt.design.solve import CONIC, solve
from ldpopt.design.utilities.base import ColumnUtility, Utility, columns_of
from ldpopt.design.utilities.criterion import Weights
from ldpopt.design.utilities.decisions import ExpectedLoss
from ldpopt.design.utilities.fisher_information import FisherInformation
from ldpopt.errors import SolverError, invalid
from ldpopt.numbers.rounding import toward_privacy
from ldpopt.values.distribution import Array

MAX_INPUTS_PATTERNS, MAX_INPUTS_LEVELS = (
    10,
    6,
)  # Up to this many inputs the program lists all staircase patterns, and all columns of levels


@dataclass(frozen=True, eq=False)
class DesignProgram:
    """A `cvxpy.Problem` and the channel of its solution.

    - `program` : the problem.
    - `matrix` : the channel's matrix (k, m), a variable or an expression in `weights`.
    - `weights` : the variable (m,) of the columns' weights, or None.
    - `columns` : (k, m) the columns, the largest entry of each 1, or None.
    """

    program: Any
    matrix: Any
    weights: Any = None
    columns: Array | None = None

    @property
    def channel(self) -> Channel:
        """The channel of the solved program: its columns in use, with rows divided by their sums, and not repaired.

        Raises `SolverError` before the program is solved.
        """
        if self.matrix.value is None:
            raise SolverError("channel: the program has no solution yet; call program.solve() first")
        matrix = np.maximum(np.asarray(self.matrix.value), 0.0)
        is_used = matrix.any(axis=0) if self.columns is not None else slice(None)
        return Channel((matrix / matrix.sum(axis=1, keepdims=True))[:, is_used])


def problem(utility: Utility, constraints: Constraint | Iterable[Constraint]) -> DesignProgram:
    """Build the cvxpy program of the best channel for a utility, to extend and solve [KOV14, Thm 4].

    Parameters
    ----------
    utility : A finite `Divergence`, `MutualInformation`, `WorstOf`, `WeightedSum`, a user-defined column utility, a
        `FisherInformation` without neighborhood, or an `ExpectedLoss`.
    constraints : For a loss any that are convex in the matrix, including functions of it. For other utilities `LocalDP`
        of up to 10 inputs or one `ApproximateLDP` of up to 6, whose extreme columns are listed. `TotalVariation` and
        other constraints of the package may be added. The optimum is then exact with `TotalVariation`, and for others
        the best with these columns.

    Returns
    -------
    DesignProgram
        The program with its variables.

    Raises
    ------
    InvalidInput
        If the utility or a constraint is another one.

    Examples
    --------
    >>> from ldpopt.design import Divergence, LocalDP, problem
    >>> from ldpopt.divergences import KL
    >>> built = problem(Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]), LocalDP(1.0))
    >>> round(float(built.program.solve()), 6), built.weights.shape
    (0.039997, (7,))
    """
    design_problem = Problem.build(utility, constraints)
    if reason := _refusal(design_problem):
        raise invalid("problem", "one that a convex program of listed columns or decisions poses", reason)
    return _build_program(design_problem)


@dataclass(frozen=True)
class ConvexProgram(Method, reference="[KOV14, Thm 4]", by_cvxpy=True):
    """The plain cvxpy program (`design.problem`), without scaling or column generation: for teaching and for
    cross-checks.

    It is used only if the caller names it. If another method applies too, the certificate of that method is the proof,
    and confirms the result of an independent search.

    >>> from ldpopt.design import LocalDP, MutualInformation, optimal_channel
    >>> design = optimal_channel(MutualInformation([0.5, 0.5]), LocalDP(1.0), method=ConvexProgram())
    >>> round(design.value, 6), design.certified
    (0.110944, True)
    """

    def refuses(self, problem: Problem) -> str:
        """Return why the program does not apply: it needs columns that can be listed, or an expected loss."""
        return _refusal(problem)

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """Find the channel of the solved program."""
        design_program = _build_program(problem)
        solve(design_program.program, "convex program", CONIC)
        matrix = design_program.channel.matrix

        def prove(checked_problem: Problem, channel: Channel) -> Iterator[Certificate]:
            if (
                not checked_problem.user_expressions
                and (certificate := ask(checked_problem.original_utility, checked_problem.constraints).certificate)
                is not None
            ):
                yield certificate.rebind(checked_problem.original_utility, checked_problem.constraints, channel)

        is_reduced = problem.utility.pair is not None and problem.symmetric
        count = design_program.matrix.shape[1]
        description = f"convex program of {count} {'decisions' if design_program.columns is None else 'listed columns'}"
        return Candidate(matrix[class_representatives(problem)] if is_reduced else matrix, description, prove)


def _refusal(problem: Problem) -> str:
    """Return the reason why no program exists; empty if one does."""
    utility, k = problem.utility, problem.utility.size
    if isinstance(utility, ExpectedLoss):
        inputs, decisions = utility.loss.shape
        return too_large(problem, inputs, decisions, MAX_PROGRAM_ENTRIES)
    estimation = isinstance(utility, FisherInformation) and utility.neighbourhood is None
    if problem.cells is not None or not (estimation or isinstance(utility, ColumnUtility)):
        return f"{utility.name} is neither a finite sum over columns, nor a criterion at one pilot, nor a loss"
    if problem.fixes_output_order or problem.output_constraints or problem.denominator is not None:
        return "constraints fix the outputs, and its columns are all that there may be"
    if problem.epsilon < np.inf:
        return (
            Limit(f"{k} inputs have too many patterns to pose (at most {MAX_INPUTS_PATTERNS})")
            if k > MAX_INPUTS_PATTERNS
            else ""
        )
    if single_approximate_ldp(problem, Constraint) is None:
        return "neither LocalDP between all inputs nor one ApproximateLDP, whose columns are listed"
    return (
        Limit(f"{k} inputs have too many extreme columns to list (at most {MAX_INPUTS_LEVELS})")
        if k > MAX_INPUTS_LEVELS
        else ""
    )


def _build_program(problem: Problem) -> DesignProgram:
    """Build the program of a problem that is not refused."""
    import cvxpy as cp

    utility = problem.utility
    if isinstance(utility, ExpectedLoss):
        matrix = cp.Variable(utility.loss.shape, nonneg=True, name="Q")
        loss = cp.max(utility.priors @ cp.sum(cp.multiply(utility.loss, matrix), axis=1))
        return DesignProgram(cp.Problem(cp.Maximize(-loss), _matrix_constraints(problem, matrix)), matrix)
    columns = _columns(problem)
    weights = cp.Variable(columns.shape[1], nonneg=True, name="weights")
    matrix = columns @ cp.diag(weights)
    if isinstance(utility, FisherInformation):
        mass, cones = utility.prior @ columns, ConeProgram()
        variable_indices = cones.variables(len(mass))
        criterion_program = utility.criterion.build_program(
            (columns / mass - 1).T, Weights(cones, variable_indices, mass)
        )
        variables = cp.hstack([weights, cp.Variable(cones.size - len(mass))])
        cost = cp.Minimize(
            criterion_program.factor * (criterion_program.slopes @ variables[criterion_program.variables])
        )
        program = cp.Problem(cost, [*_cone_constraints(cones, variables), *_matrix_constraints(problem, matrix)])
        return DesignProgram(program, matrix, weights, columns)
    values = columns_of(utility, columns)
    if not np.isfinite(values).all():
        raise invalid("problem", f"columns of finite {utility.name}", float(values[~np.isfinite(values)][0]))
    program = cp.Problem(cp.Maximize(cp.min(values @ weights)), _matrix_constraints(problem, matrix))
    return DesignProgram(program, matrix, weights, columns)


def _cone_constraints(program: ConeProgram, variables: Any) -> list[Any]:
    """Return the blocks of a program over cones as cvxpy's constraints on its variables."""
    import cvxpy as cp

    constraints = []
    for kind, right, parts in program.blocks:
        block: Any = right + sum(matrix @ variables[indices] for indices, matrix in parts)
        if kind == "zero":
            constraints.append(block == 0)
        elif kind == "nonnegative":
            constraints.append(block >= 0)
        elif kind == "second order":
            constraints.append(cp.SOC(block[0::3], cp.vstack([block[1::3], block[2::3]])))
        elif kind == "exponential":
            constraints.append(cp.ExpCone(block[0::3], block[1::3], block[2::3]))
        else:
            flattening = np.array([matrix_of(unit).ravel() for unit in np.eye(len(right))]).T
            size = math.isqrt(len(flattening))
            constraints.append(cp.reshape(flattening @ block, (size, size), order="C") >> 0)
    return constraints


def _columns(problem: Problem) -> Array:
    """Return the extreme columns of the constraints, and the constant one, (k, n); the largest entry of each is 1."""
    k = problem.utility.size
    if problem.epsilon < np.inf:
        membership = members(np.arange(1, 2**k, dtype=np.int64), k).T
        return np.where(membership, 1.0, np.exp(-toward_privacy(problem.epsilon)))
    constraint = single_approximate_ldp(problem, Constraint)
    assert constraint is not None
    has_cap = problem.eta < 1  # then the constant column is one of the list
    base, rise = level_column_parts(level_columns(k, has_cap), constraint.epsilon)
    return base + rise if has_cap else np.hstack([base + rise, np.ones((k, 1))])


def _matrix_constraints(problem: Problem, matrix: Any) -> list[Any]:
    """Return the equations of the row sums, and every constraint that the columns do not meet by themselves."""
    import cvxpy as cp

    is_listed = problem.epsilon < np.inf and not isinstance(problem.utility, ExpectedLoss)
    remaining_constraints = [
        c for c in problem.constraints if not (is_listed and getattr(c, "plain", None) == (c.bound, 1.0))
    ]
    return [
        cp.sum(matrix, axis=1) == np.ones(matrix.shape[0]),
        *(expression for c in remaining_constraints for expression in c.expression(matrix)),
    ]
