"""The staircase-pattern program [KOV14, Thm 4]: exact for any utility that is a sum over columns, for few inputs.

Columns are divided by e^epsilon - 1, so that they are S_A = t + 1_A with t = 1/(e^epsilon - 1) and weights phi_A. In
the form of `programs.columns` their base is t, their rise 1_A, and their excesses 1_A(x) (1 - 1_A(x')) are capped by
eta. All 2^k are priced in milliseconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Channel
from ldpopt.deadline import UNLIMITED, Deadline
from ldpopt.design.candidate import Ask, Candidate, Limit, Method
from ldpopt.design.certificates.base import Certificate
from ldpopt.design.certificates.listed import PatternDual
from ldpopt.design.columns.sets import Masks, members
from ldpopt.design.columns.shares import level_of
from ldpopt.design.methods.refusals import needs_patterns
from ldpopt.design.problems.problem import Problem
from ldpopt.design.programs.columns import ColumnProgram, ExcessCaps
from ldpopt.design.utilities.base import ColumnUtility
from ldpopt.distribution import Array, Index
from ldpopt.errors import invalid
from ldpopt.rounding import toward_privacy

# The most inputs for which the method applies, and for which 2^k patterns are priced fast.
MAX_INPUTS, MAX_PRICED = 14, 16
ERASED = 1e-12  # An erasure of smaller probability is rounding


@dataclass(frozen=True)
class PatternLP(Method):
    """The staircase-pattern program [KOV14, Thm 4]: exact for column utilities of up to 14 inputs.

    A linear program over the weights of all staircase patterns (columns with two values, a factor exp(epsilon) apart),
    under `LocalDP`, with a cap on total variation or without.
    """

    reference: ClassVar[str] = "[KOV14, Thm 2 and 4]"
    preference: ClassVar[int] = 160

    def refuses(self, problem: Problem) -> str:
        """Staircase patterns are enough under LocalDP and TotalVariation, and few inputs have few of them."""
        if not isinstance(problem.utility, ColumnUtility):
            return f"{problem.utility.name} is no sum over outputs of functions of the column"
        if why := needs_patterns(problem):
            return why
        k = problem.utility.size
        many = f"{k} inputs have too many staircase patterns to price all (at most {MAX_INPUTS})"
        return Limit(many) if k > MAX_INPUTS else ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The channel of the optimal pattern weights."""
        utility = problem.utility
        found = pattern_program(utility, problem.epsilon, problem.eta, problem.deadline)

        def prove(posed: Problem, channel: Channel) -> Iterator[Certificate]:
            yield PatternDual(posed.whole, posed.constraints, channel, found.rows, found.pairs, found.weights)

        matrix = pattern_matrix(problem, members(found.masks[1:], utility.size).T, found.theta)
        return Candidate(matrix, f"pattern LP over {2**utility.size - 1} staircase patterns", prove)


def pattern_matrix(problem: Problem, inside: npt.NDArray[Any], theta: Array) -> Array:
    """The columns in use, with weights `theta` (n + 1,), of erasure and of patterns 1 on the sets `inside` (k, n)."""
    used, rest = theta > 0, math.exp(-toward_privacy(problem.epsilon))
    matrix = np.where(np.pad(inside, ((0, 0), (1, 0)))[:, used], 1.0, rest) * theta[used]
    return matrix if problem.utility.pair is None else matrix[of_classes(problem)]


def with_erased(level: float, inside: npt.NDArray[Any], weights: Array) -> Array:
    """(n + 1,) the weights of the patterns that are 1 on their sets, erasure first, from those of t + 1_A, (n,).

    level : t. inside : (k, n) the sets. Erasure takes what is missing to one.
    """
    mass = level * weights.sum() + float((inside @ weights).max(initial=0.0))
    if mass > 1 - ERASED:
        weights, mass = weights / mass, 1.0
    return np.append((1 - mass) / level, weights) * (level + 1)


def of_classes(problem: Problem) -> Index:
    """(classes,) for each class of the reduction, the input with the largest mass."""
    p0, p1 = problem.utility.pair
    order = np.argsort(-(p0 + p1), kind="stable")
    return np.asarray(order[np.unique(problem.reduction.classes[order], return_index=True)[1]])


@dataclass(frozen=True, eq=False)
class PatternSolution:
    """Weights `theta` of the patterns with bit masks `masks`, erasure (mask 0) first, and dual values of the program.

    theta : of the columns that are 1 on the pattern and e^-epsilon elsewhere. weights : (criteria,), which sum to one.
    rows : (k,) and pairs : (k, k), for the utility less its tangent at the constant column.
    """

    masks: Masks
    theta: Array
    rows: Array
    pairs: Array
    weights: Array


def pattern_program(
    utility: ColumnUtility, epsilon: float, eta: float = 1.0, deadline: Deadline = UNLIMITED
) -> PatternSolution:
    """Solve the program for LocalDP(epsilon) and TotalVariation(eta).

    Raises `InvalidInput` above `MAX_PRICED` inputs and `SolverError` when no solver is accurate.
    """
    k, level = utility.size, level_of(epsilon)
    if k > MAX_PRICED:
        raise invalid("pattern LP", f"at most {MAX_PRICED} inputs, all of whose patterns are priced", k)
    inside = members(np.arange(2**k - 1, dtype=np.int64), k).T.astype(np.float64)  # the full set is constant, too
    # Above tanh(epsilon/2) a cap on total variation cannot bind [GI, Prop 2].
    caps = ExcessCaps.variation(k, eta if eta * (2 * level + 1) < 1 else 1.0)
    found = ColumnProgram.of(utility, np.full(inside.shape[1], level), inside, caps).solve(deadline)
    theta = with_erased(level, inside[:, found.used], found.weights)
    return PatternSolution(np.append(0, found.used), theta, found.rows, found.pairs(), found.criteria)
