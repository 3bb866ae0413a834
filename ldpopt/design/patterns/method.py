"""Optimize a sum over columns on the extreme columns of the constraints, by one linear program [KOV14, Thm 4].

The columns are staircase patterns under `LocalDP` between all inputs, extreme columns of a policy graph, and columns of
powers of e^epsilon under `ApproximateLDP`. Patterns are divided by e^epsilon - 1. Then they are S_A = t + 1_A with t =
1/(e^epsilon - 1). In the form of `patterns.program` their base is t, their rise 1_A, and their excesses 1_A(x) (1 -
1_A(x')) are capped by eta.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.design.candidate import Ask, Candidate, Limit, Method, needs_columns, needs_patterns, only, proof_by
from ldpopt.design.constraints.hockey_stick import ApproximateLDP, TotalVariation
from ldpopt.design.constraints.local_dp import LocalDP
from ldpopt.design.estimation.policy import PolicyColumns
from ldpopt.design.kernel.sets import Members, level_of, members
from ldpopt.design.patterns.policy import TooManyColumns, is_listable, policy_limits
from ldpopt.design.patterns.program import ColumnProgram, ExcessCaps, WeightedColumns, append_erasure
from ldpopt.design.patterns.proof import PatternDual, PolicyDual
from ldpopt.design.patterns.proof_levels import (
    MAX_LEVEL_INPUTS,
    LevelDual,
    Levels,
    LevelVariationDual,
    excesses,
    level_columns,
)
from ldpopt.design.problems.problem import Problem
from ldpopt.design.utilities.base import ColumnUtility
from ldpopt.errors import invalid
from ldpopt.numbers.enclosures import FLOAT, Enclosure
from ldpopt.numbers.rounding import toward_privacy
from ldpopt.numbers.tolerances import ERASED_MASS
from ldpopt.values.deadline import UNLIMITED, Deadline
from ldpopt.values.distribution import Array, Index

# The largest numbers of inputs that the pattern program applies to, and whose 2^k patterns are priced fast.
MAX_INPUTS, MAX_PRICED_INPUTS = 14, 16


@dataclass(frozen=True)
class PatternLP(
    Method, reference="[KOV14, Thm 2 and 4]", needs=(needs_columns, needs_patterns), preference=160, by_cvxpy=True
):
    """The staircase-pattern program [KOV14, Thm 4]: exact for column utilities of up to 14 inputs.

    A linear program over the weights of all staircase patterns (columns with two values, a factor exp(epsilon) apart),
    under `LocalDP`, with a cap on total variation or without.
    """

    def refuses(self, problem: Problem) -> str:
        """Return why the program does not apply: only few inputs have few patterns."""
        k = problem.utility.size
        reason = f"{k} inputs have too many staircase patterns to price all (at most {MAX_INPUTS})"
        return Limit(reason) if k > MAX_INPUTS else ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """Find the channel of the optimal pattern weights."""
        k = problem.utility.size
        sets, theta, best = pattern_program(problem.utility, problem.epsilon, problem.eta, problem.deadline)
        matrix = pattern_matrix(problem, sets[1:].T, theta)
        proof = proof_by(PatternDual, best.rows, best.pairs(), best.criteria)
        return Candidate(matrix, f"pattern LP over {2**k - 1} staircase patterns", proof)


def pattern_matrix(problem: Problem, membership: npt.NDArray[Any], theta: Array) -> Array:
    """Return the columns with positive weights `theta` (n + 1,), of erasure and of the patterns.

    - `membership` : (k, n) the sets where the patterns are 1.
    """
    is_used, low_value = theta > 0, math.exp(-toward_privacy(problem.epsilon))
    matrix = np.where(np.pad(membership, ((0, 0), (1, 0)))[:, is_used], 1.0, low_value) * theta[is_used]
    return matrix if problem.utility.pair is None else matrix[class_representatives(problem)]


def add_erasure_weight(level: float, membership: npt.NDArray[Any], weights: Array) -> Array:
    """Return the weights (n + 1,) of the patterns that are 1 on their sets, erasure first.

    level : t. membership : (k, n) the sets. weights : (n,) of t + 1_A. Erasure gets the remaining probability.
    """
    mass = level * weights.sum() + float((membership @ weights).max(initial=0.0))
    if mass > 1 - ERASED_MASS:
        weights, mass = weights / mass, 1.0
    return np.append((1 - mass) / level, weights) * (level + 1)


def class_representatives(problem: Problem) -> Index:
    """Return for each class of the reduction, (classes,), the input with the largest mass."""
    p0, p1 = problem.utility.pair
    order = np.argsort(-(p0 + p1), kind="stable")
    return np.asarray(order[np.unique(problem.reduction.classes[order], return_index=True)[1]])


def pattern_program(
    utility: ColumnUtility, epsilon: float, eta: float = 1.0, deadline: Deadline = UNLIMITED
) -> tuple[Members, Array, WeightedColumns]:
    """Solve the program for LocalDP(epsilon) and TotalVariation(eta) over all patterns.

    Returns sets (n, k) and weights (n,) of their patterns, which are 1 on the set and e^-epsilon elsewhere, erasure
    first. Also returns the multipliers of the utility less its tangent at the constant column. Raises `InvalidInput`
    above `MAX_PRICED_INPUTS` inputs and `SolverError` if no solver is accurate.
    """
    k, level = utility.size, level_of(epsilon)
    if k > MAX_PRICED_INPUTS:
        raise invalid("pattern LP", f"at most {MAX_PRICED_INPUTS} inputs, all of whose patterns are priced", k)
    membership = members(np.arange(2**k - 1, dtype=np.int64), k).T.astype(np.float64)  # the full set is constant, too
    # Above tanh(epsilon/2) a cap on total variation cannot bind [GI, Prop 2].
    caps = ExcessCaps.variation(k, eta if eta * (2 * level + 1) < 1 else 1.0)
    column_indices, best = ColumnProgram.for_utility(
        utility, np.full(membership.shape[1], level), membership, caps
    ).solve(deadline)
    theta = add_erasure_weight(level, membership[:, column_indices], best.weights)
    return members(np.append(0, column_indices), k), theta, best


@dataclass(frozen=True)
class LevelLP(Method, reference="[KOV14, Thm 2 and 4]", needs=(needs_columns,), preference=180, by_cvxpy=True):
    """The program over all extreme columns of (epsilon, delta)-LDP: exact for column utilities of up to seven inputs.
    Without a cap on total variation it is exact for eight, in about half a minute.

    These columns are unit vectors, and integer powers of e^epsilon on a set of inputs with zero elsewhere: staircases
    with more than two steps. If total variation is capped too, columns that are constant on a set are added.

    >>> from ldpopt import ApproximateLDP, MutualInformation, optimal_channel
    >>> optimal_channel(MutualInformation([0.5, 0.3, 0.2]), ApproximateLDP(1.0, 0.01), method=LevelLP()).certified
    True
    """

    def refuses(self, problem: Problem) -> str:
        """Return why the program does not apply: it needs one `ApproximateLDP`."""
        utility, k = problem.utility, problem.utility.size
        if single_approximate_ldp(problem, TotalVariation) is None:
            return "its columns are optimal under ApproximateLDP and TotalVariation, with all their caps above 0"
        if not math.isfinite(utility.value_without_privacy):
            return f"{utility.name} of full disclosure is infinite, and delta allows for some of it"
        # Two hypotheses have a faster method; with a cap on total variation the proof exceeds the budget of `verify`.
        max_inputs = MAX_LEVEL_INPUTS if utility.pair is None and problem.eta == 1 else MAX_LEVEL_INPUTS - 1
        return (
            Limit(f"{k} inputs have too many extreme columns to list (at most {max_inputs})") if k > max_inputs else ""
        )

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """Find the channel of the optimal weights."""
        utility, k, constraint = problem.utility, problem.utility.size, single_approximate_ldp(problem, TotalVariation)
        assert constraint is not None
        # A little less than the caps: to leave room for the rounding of rows here costs less than a repair later.
        delta, cap = (c - min(2.0**-50, 2.0**-24 * c) if c < 1 else c for c in (constraint.delta, problem.eta))
        matrix, best = level_program(utility, constraint.epsilon, delta, cap, problem.deadline)
        count = k * (k - 1)  # caps on excesses come first, those on total variation after them
        numbers = best.rows, best.pairs(slice(count)), best.criteria
        variation_proof = proof_by(LevelVariationDual, *numbers, best.pairs(slice(count, None)))
        proof = proof_by(LevelDual, *numbers) if problem.eta == 1 else variation_proof
        description = f"extreme columns of (epsilon, delta)-LDP, {len(level_columns(k, cap < 1))} in a linear program"
        return Candidate(matrix if utility.pair is None else matrix[class_representatives(problem)], description, proof)


def single_approximate_ldp(problem: Problem, *other_types: type) -> ApproximateLDP | None:
    """Return the one `ApproximateLDP` of a problem with other constraints of `other_types` only, no cap being 0."""
    approximates = [c for c in problem.constraints if isinstance(c, ApproximateLDP)]
    others = [c for c in problem.constraints if c not in approximates]
    if (
        len(approximates) != 1
        or problem.has_only_ldp_and_tv
        or not problem.eta > 0
        or not all(isinstance(c, other_types) for c in others)
    ):
        return None
    return approximates[0]


def level_program(
    utility: ColumnUtility, epsilon: float, delta: float, eta: float = 1.0, deadline: Deadline = UNLIMITED
) -> tuple[Array, WeightedColumns]:
    """Return the columns (k, n), erasure last, of the best channel under ApproximateLDP with delta > 0.

    The number of inputs is at most `MAX_LEVEL_INPUTS`. eta : a cap on total variation, above 0. Raises `SolverError` if
    no solver is accurate, or the value of a column is infinite.
    """
    k = utility.size
    left, right = (indices.astype(np.intp) for indices in np.nonzero(~np.eye(k, dtype=bool)))
    levels = level_columns(k, eta < 1)
    base, rise = level_column_parts(levels, epsilon)
    caps = ExcessCaps(left, right, np.full(len(left), delta), np.full(len(left), False))
    variation = ExcessCaps.variation(k, eta)

    def excess(numbers: Any) -> Array:
        approximate_excess = level_excesses(levels[numbers], epsilon, left, right)
        return np.concatenate([approximate_excess, variation.one_sided_excesses(rise[:, numbers])])

    column_indices, best = ColumnProgram.for_utility(utility, base, rise, caps.join(variation), excess).solve(deadline)
    return append_erasure((base + rise)[:, column_indices] * best.weights), best


def level_column_parts(levels: Levels, epsilon: float) -> tuple[Array, Array]:
    """Return the columns in floats: base (n,), 0 without full support, and rise (k, n).

    The largest entry of each is one.
    """
    height, is_positive = levels.max(axis=1)[:, None], np.asarray(levels >= 0)
    is_full = np.all(is_positive, axis=1)
    entry = np.where(is_positive, np.exp(-(height - levels) * epsilon), 0.0)
    base = np.where(is_full, np.exp(-height[:, 0] * epsilon), 0.0)
    return base, np.where(is_full[:, None], entry * -np.expm1(-levels * epsilon), entry).T


def level_excesses(levels: Levels, epsilon: float, left: Index, right: Index) -> Array:
    """Return the excesses (c_left - e^epsilon c_right)_+, (pairs, n), with all digits for small epsilon."""
    excess_table = np.asarray(excesses(FLOAT.of(epsilon), int(levels.max(initial=0))).midpoint)
    return np.asarray(excess_table[levels.max(axis=1)[:, None], levels[:, left], levels[:, right]].T)


@dataclass(frozen=True)
class PolicyLP(Method, reference="[KOV14, Thm 2 and 4]", needs=(needs_columns,), preference=230, by_cvxpy=True):
    """The program over all extreme columns of a policy graph: exact for column utilities where they are few [KOV14].

    It takes connected graphs without weights that have up to 262,144 such columns. Examples are a grid of 4 by 5 inputs
    and a path of 16, or one of 12 under a cap on total variation. It takes other graphs of up to 8 inputs, and of up to
    14 if they have no more edges than inputs.

    >>> import networkx as nx
    >>> from ldpopt.design import LocalDP, MutualInformation, optimal_channel
    >>> design = optimal_channel(MutualInformation([0.5, 0.3, 0.2]), LocalDP(1.0, graph=nx.path_graph(3)))
    >>> round(design.value, 6), design.certified
    (0.210332, True)
    """

    def refuses(self, problem: Problem) -> str:
        """Return why the program does not apply: it needs LocalDP and TotalVariation, and few extreme columns."""
        utility = problem.utility
        if problem.has_only_ldp_and_tv or not only(problem, LocalDP, TotalVariation):
            return "its columns are those of LocalDP along a graph, with TotalVariation or without"
        if not is_listable(policy_limits(problem.constraints, problem.labels)):
            return Limit("more than 8 inputs with uneven limits have too many extreme columns")
        try:
            columns, base, rise = _extreme_columns(problem)
        except TooManyColumns as error:
            return str(error)
        # Columns of positive entries have a finite value; one with zeros may have an infinite value.
        has_zeros = np.isneginf(columns.steps).any(axis=1)
        if (
            has_zeros.any()
            and not np.isfinite(utility.enclosed_columns(base[has_zeros], rise[:, has_zeros]).upper).all()
        ):
            return f"an extreme column has no finite value of {utility.name}"
        return ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """Find the channel of the optimal weights."""
        (columns, *enclosures), eta = _extreme_columns(problem), problem.eta
        base, rise = (np.asarray(part.midpoint) for part in enclosures)
        # A little less than eta: to leave room for the rounding of rows here costs less than a repair later.
        cap = ExcessCaps.variation(len(rise), eta - min(2.0**-50, 2.0**-24 * eta) if eta < 1 else eta)
        column_indices, best = ColumnProgram.for_utility(problem.utility, base, rise, cap).solve(problem.deadline)
        matrix = append_erasure((base + rise)[:, column_indices] * best.weights)
        return Candidate(
            matrix, f"{columns.name} in a linear program", proof_by(PolicyDual, best.rows, best.pairs(), best.criteria)
        )


def _extreme_columns(problem: Problem) -> tuple[PolicyColumns, Enclosure, Enclosure]:
    """Return the extreme columns of the problem's graph, and their bases (n,) and rises (k, n)."""
    columns = PolicyColumns(policy_limits(problem.constraints, problem.labels), problem.eta < 1)
    base, rise = columns.enclosed(FLOAT)
    return columns, base, rise.T
