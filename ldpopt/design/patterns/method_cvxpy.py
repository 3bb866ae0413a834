"""A utility and constraints -> the plain cvxpy program of their optimum, to extend or to solve.

To keep as much as possible is to maximise a convex function of the channel's matrix, which no convex program does. Its
optimum is one over the weights w of the columns S that the constraints leave [KOV14, Thm 4], Q = S diag(w), in which
such utilities are linear and estimation criteria are convex. A loss is linear in the entries of the matrix itself.
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
from ldpopt.design.outputs.method_search import ENTRIES
from ldpopt.design.patterns.method import approximate, leveled_columns, of_classes
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

PATTERNS, LEVELED = 10, 6  # The most inputs all of whose staircase patterns, and columns of levels, are posed


@dataclass(frozen=True, eq=False)
class PosedProgram:
    """A `cvxpy.Problem` and what its solution says of a channel.

    program : the problem. matrix : the channel's matrix (k, m), a variable or an expression in `weights`. weights : the
    variable (m,) of the columns' weights, or None. columns : (k, m) the columns, the largest entry of each 1, or None.
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
        used = matrix.any(axis=0) if self.columns is not None else slice(None)
        return Channel((matrix / matrix.sum(axis=1, keepdims=True))[:, used])


def problem(utility: Utility, constraints: Constraint | Iterable[Constraint]) -> PosedProgram:
    """The cvxpy program of the best channel for a utility, with its variables, to extend and solve [KOV14, Thm 4].

    utility : a finite `Divergence`, `MutualInformation`, `WorstOf`, `WeightedSum`, a column utility of your own, a
    `FisherInformation` without neighbourhood, or an `ExpectedLoss`. constraints : for a loss any that are convex in
    the matrix, functions of it too; for others `LocalDP` of up to 10 inputs or one `ApproximateLDP` of up to 6, whose
    extreme columns are listed. `TotalVariation` and others of the package may join; the optimum is then exact with
    `TotalVariation`, and for others the best with these columns. Raises `InvalidInput` for anything else.

    >>> from ldpopt.design import Divergence, LocalDP, problem
    >>> from ldpopt.divergences import KL
    >>> posed = problem(Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]), LocalDP(1.0))
    >>> round(float(posed.program.solve()), 6), posed.weights.shape
    (0.039997, (7,))
    """
    whole = Problem.of(utility, constraints)
    if why := _refusal(whole):
        raise invalid("problem", "one that a convex program of listed columns or decisions poses", why)
    return _posed(whole)


@dataclass(frozen=True)
class ConvexProgram(Method, reference="[KOV14, Thm 4]", by_cvxpy=True):
    """The plain cvxpy program (`design.problem`), without scaling or column generation: for teaching and for distrust.

    It is used only where it is named. Where another method applies too, its certificate is the proof, so that two
    searches that share nothing agree.

    >>> from ldpopt.design import LocalDP, MutualInformation, optimal_channel
    >>> design = optimal_channel(MutualInformation([0.5, 0.5]), LocalDP(1.0), method=ConvexProgram())
    >>> round(design.value, 6), design.certified
    (0.110944, True)
    """

    def refuses(self, problem: Problem) -> str:
        """It needs columns that can be listed, or an expected loss."""
        return _refusal(problem)

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The channel of the solved program."""
        posed = _posed(problem)
        solve(posed.program, "convex program", CONIC)
        matrix = posed.channel.matrix

        def prove(whole: Problem, channel: Channel) -> Iterator[Certificate]:
            if not whole.others and (certificate := ask(whole.whole, whole.constraints).certificate) is not None:
                yield certificate.of(whole.whole, whole.constraints, channel)

        pair = problem.utility.pair is not None and problem.symmetric
        count = posed.matrix.shape[1]
        how = f"convex program of {count} {'decisions' if posed.columns is None else 'listed columns'}"
        return Candidate(matrix[of_classes(problem)] if pair else matrix, how, prove)


def _refusal(problem: Problem) -> str:
    """Why there is no such program; empty where there is."""
    utility, k = problem.utility, problem.utility.size
    if isinstance(utility, ExpectedLoss):
        inputs, decisions = utility.loss.shape
        return too_large(problem, inputs, decisions, ENTRIES)
    estimation = isinstance(utility, FisherInformation) and utility.neighbourhood is None
    if problem.cells is not None or not (estimation or isinstance(utility, ColumnUtility)):
        return f"{utility.name} is no finite sum over columns, criterion at one pilot, or loss"
    if problem.placed or problem.given or problem.denominator is not None:
        return "constraints fix the outputs, and its columns are all that there may be"
    if problem.epsilon < np.inf:
        return Limit(f"{k} inputs have too many patterns to pose (at most {PATTERNS})") if k > PATTERNS else ""
    if approximate(problem, Constraint) is None:
        return "neither LocalDP between all inputs nor one ApproximateLDP, whose columns are listed"
    return Limit(f"{k} inputs have too many extreme columns to list (at most {LEVELED})") if k > LEVELED else ""


def _posed(problem: Problem) -> PosedProgram:
    """The program of a problem that is not refused."""
    import cvxpy as cp

    utility = problem.utility
    if isinstance(utility, ExpectedLoss):
        matrix = cp.Variable(utility.loss.shape, nonneg=True, name="Q")
        loss = cp.max(utility.priors @ cp.sum(cp.multiply(utility.loss, matrix), axis=1))
        return PosedProgram(cp.Problem(cp.Maximize(-loss), _limits(problem, matrix)), matrix)
    columns = _columns(problem)
    weights = cp.Variable(columns.shape[1], nonneg=True, name="weights")
    matrix = columns @ cp.diag(weights)
    if isinstance(utility, FisherInformation):
        mass, cones = utility.prior @ columns, ConeProgram()
        places = cones.variables(len(mass))
        posed = utility.criterion.posed((columns / mass - 1).T, Weights(cones, places, mass))
        variables = cp.hstack([weights, cp.Variable(cones.size - len(mass))])
        cost = cp.Minimize(posed.factor * (posed.slopes @ variables[posed.variables]))
        program = cp.Problem(cost, [*_inside(cones, variables), *_limits(problem, matrix)])
        return PosedProgram(program, matrix, weights, columns)
    values = columns_of(utility, columns)
    if not np.isfinite(values).all():
        raise invalid("problem", f"columns of finite {utility.name}", float(values[~np.isfinite(values)][0]))
    program = cp.Problem(cp.Maximize(cp.min(values @ weights)), _limits(problem, matrix))
    return PosedProgram(program, matrix, weights, columns)


def _inside(program: ConeProgram, variables: Any) -> list[Any]:
    """The blocks of a program over cones as cvxpy's constraints on its variables."""
    import cvxpy as cp

    constraints = []
    for kind, right, parts in program.blocks:
        block: Any = right + sum(matrix @ variables[places] for places, matrix in parts)
        if kind == "zero":
            constraints.append(block == 0)
        elif kind == "nonnegative":
            constraints.append(block >= 0)
        elif kind == "second order":
            constraints.append(cp.SOC(block[0::3], cp.vstack([block[1::3], block[2::3]])))
        elif kind == "exponential":
            constraints.append(cp.ExpCone(block[0::3], block[1::3], block[2::3]))
        else:
            each = np.array([matrix_of(unit).ravel() for unit in np.eye(len(right))]).T
            size = math.isqrt(len(each))
            constraints.append(cp.reshape(each @ block, (size, size), order="C") >> 0)
    return constraints


def _columns(problem: Problem) -> Array:
    """(k, n) the extreme columns of the constraints, and the constant one; the largest entry of each is 1."""
    k = problem.utility.size
    if problem.epsilon < np.inf:
        inside = members(np.arange(1, 2**k, dtype=np.int64), k).T
        return np.where(inside, 1.0, np.exp(-toward_privacy(problem.epsilon)))
    constraint = approximate(problem, Constraint)
    assert constraint is not None
    capped = problem.eta < 1  # then the constant column is one of the list
    base, rise = leveled_columns(level_columns(k, capped), constraint.epsilon)
    return base + rise if capped else np.hstack([base + rise, np.ones((k, 1))])


def _limits(problem: Problem, matrix: Any) -> list[Any]:
    """Rows that sum to one, and every constraint that the columns do not meet by themselves."""
    import cvxpy as cp

    listed = problem.epsilon < np.inf and not isinstance(problem.utility, ExpectedLoss)
    kept = [c for c in problem.constraints if not (listed and getattr(c, "plain", None) == (c.bound, 1.0))]
    return [cp.sum(matrix, axis=1) == np.ones(matrix.shape[0]), *(each for c in kept for each in c.expression(matrix))]
