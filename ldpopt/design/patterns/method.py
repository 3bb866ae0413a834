"""A sum over columns and the constraints' extreme columns -> the best channel, by one linear program [KOV14, Thm 4].

The columns are staircase patterns under `LocalDP` between all inputs, extreme columns of a policy graph, and columns of
powers of e^epsilon under `ApproximateLDP`. Patterns are divided by e^epsilon - 1, so that they are S_A = t + 1_A with
t = 1/(e^epsilon - 1): in the form of `patterns.program` their base is t, their rise 1_A, and their excesses
1_A(x) (1 - 1_A(x')) are capped by eta.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.design.candidate import Ask, Candidate, Limit, Method, needs_columns, needs_patterns, only, proved_by
from ldpopt.design.constraints.hockey_stick import ApproximateLDP, TotalVariation
from ldpopt.design.constraints.local_dp import LocalDP
from ldpopt.design.estimation.policy import PolicyColumns
from ldpopt.design.kernel.sets import Members, level_of, members
from ldpopt.design.patterns.policy import TooManyColumns, listable, policy_limits
from ldpopt.design.patterns.program import ColumnProgram, ExcessCaps, Weighed, with_erasure
from ldpopt.design.patterns.proof import PatternDual, PolicyDual
from ldpopt.design.patterns.proof_levels import LIMIT, LevelDual, Levels, LevelVariationDual, excesses, level_columns
from ldpopt.design.problems.problem import Problem
from ldpopt.design.utilities.base import ColumnUtility
from ldpopt.errors import invalid
from ldpopt.numbers.enclosures import FLOAT, Enclosure
from ldpopt.numbers.rounding import toward_privacy
from ldpopt.numbers.tolerances import ERASED_MASS
from ldpopt.values.deadline import UNLIMITED, Deadline
from ldpopt.values.distribution import Array, Index

# The most inputs for which the pattern program applies, and for which 2^k patterns are priced fast.
MAX_INPUTS, MAX_PRICED = 14, 16


@dataclass(frozen=True)
class PatternLP(
    Method, reference="[KOV14, Thm 2 and 4]", needs=(needs_columns, needs_patterns), preference=160, by_cvxpy=True
):
    """The staircase-pattern program [KOV14, Thm 4]: exact for column utilities of up to 14 inputs.

    A linear program over the weights of all staircase patterns (columns with two values, a factor exp(epsilon) apart),
    under `LocalDP`, with a cap on total variation or without.
    """

    def refuses(self, problem: Problem) -> str:
        """Staircase patterns are enough under LocalDP and TotalVariation, and few inputs have few of them."""
        k = problem.utility.size
        many = f"{k} inputs have too many staircase patterns to price all (at most {MAX_INPUTS})"
        return Limit(many) if k > MAX_INPUTS else ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The channel of the optimal pattern weights."""
        k = problem.utility.size
        sets, theta, best = pattern_program(problem.utility, problem.epsilon, problem.eta, problem.deadline)
        matrix = pattern_matrix(problem, sets[1:].T, theta)
        proof = proved_by(PatternDual, best.rows, best.pairs(), best.criteria)
        return Candidate(matrix, f"pattern LP over {2**k - 1} staircase patterns", proof)


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
    if mass > 1 - ERASED_MASS:
        weights, mass = weights / mass, 1.0
    return np.append((1 - mass) / level, weights) * (level + 1)


def of_classes(problem: Problem) -> Index:
    """(classes,) for each class of the reduction, the input with the largest mass."""
    p0, p1 = problem.utility.pair
    order = np.argsort(-(p0 + p1), kind="stable")
    return np.asarray(order[np.unique(problem.reduction.classes[order], return_index=True)[1]])


def pattern_program(
    utility: ColumnUtility, epsilon: float, eta: float = 1.0, deadline: Deadline = UNLIMITED
) -> tuple[Members, Array, Weighed]:
    """The program for LocalDP(epsilon) and TotalVariation(eta): sets (n, k), weights (n,) of their patterns, erasure
    first, which are 1 on the set and e^-epsilon elsewhere; and the multipliers of the utility less its tangent at the
    constant column. Raises `InvalidInput` above `MAX_PRICED` inputs and `SolverError` when no solver is accurate.
    """
    k, level = utility.size, level_of(epsilon)
    if k > MAX_PRICED:
        raise invalid("pattern LP", f"at most {MAX_PRICED} inputs, all of whose patterns are priced", k)
    inside = members(np.arange(2**k - 1, dtype=np.int64), k).T.astype(np.float64)  # the full set is constant, too
    # Above tanh(epsilon/2) a cap on total variation cannot bind [GI, Prop 2].
    caps = ExcessCaps.variation(k, eta if eta * (2 * level + 1) < 1 else 1.0)
    used, best = ColumnProgram.of(utility, np.full(inside.shape[1], level), inside, caps).solve(deadline)
    theta = with_erased(level, inside[:, used], best.weights)
    return members(np.append(0, used), k), theta, best


@dataclass(frozen=True)
class LevelLP(Method, reference="[KOV14, Thm 2 and 4]", needs=(needs_columns,), preference=180, by_cvxpy=True):
    """The program over all extreme columns of (epsilon, delta)-LDP: exact for column utilities of up to seven
    inputs, and of eight where only (epsilon, delta) is asked, in about half a minute.

    These columns are unit vectors, and whole powers of e^epsilon on a set of inputs with zero elsewhere: staircases
    with more than two steps. Where total variation is capped too, there are also columns constant on a set.

    >>> from ldpopt import ApproximateLDP, MutualInformation, optimal_channel
    >>> optimal_channel(MutualInformation([0.5, 0.3, 0.2]), ApproximateLDP(1.0, 0.01), method=LevelLP()).certified
    True
    """

    def refuses(self, problem: Problem) -> str:
        """These columns suffice under one `ApproximateLDP`, with or without `TotalVariation`; few inputs have few."""
        utility, k = problem.utility, problem.utility.size
        if approximate(problem, TotalVariation) is None:
            return "its columns are optimal under ApproximateLDP and TotalVariation, with all their caps above 0"
        if not math.isfinite(utility.unprivate):
            return f"{utility.name} of full disclosure is infinite, and delta allows for some of it"
        # Two hypotheses have a faster method; beside a cap on total variation the proof is more than `verify` begins.
        most = LIMIT if utility.pair is None and problem.eta == 1 else LIMIT - 1
        return Limit(f"{k} inputs have too many extreme columns to list (at most {most})") if k > most else ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The channel of the optimal weights."""
        utility, k, constraint = problem.utility, problem.utility.size, approximate(problem, TotalVariation)
        assert constraint is not None
        # A little less than the caps: to leave room for the rounding of rows here costs less than a repair later.
        delta, cap = (c - min(2.0**-50, 2.0**-24 * c) if c < 1 else c for c in (constraint.delta, problem.eta))
        matrix, best = level_program(utility, constraint.epsilon, delta, cap, problem.deadline)
        count = k * (k - 1)  # caps on excesses come first, those on total variation after them
        numbers = best.rows, best.pairs(slice(count)), best.criteria
        spread = proved_by(LevelVariationDual, *numbers, best.pairs(slice(count, None)))
        proof = proved_by(LevelDual, *numbers) if problem.eta == 1 else spread
        how = f"extreme columns of (epsilon, delta)-LDP, {len(level_columns(k, cap < 1))} in a linear program"
        return Candidate(matrix if utility.pair is None else matrix[of_classes(problem)], how, proof)


def approximate(problem: Problem, *beside: type) -> ApproximateLDP | None:
    """The one `ApproximateLDP` of a problem whose other constraints are of the kinds `beside`; no cap of it is 0."""
    approximates = [c for c in problem.constraints if isinstance(c, ApproximateLDP)]
    rest = [c for c in problem.constraints if c not in approximates]
    if len(approximates) != 1 or problem.plain or not problem.eta > 0 or not all(isinstance(c, beside) for c in rest):
        return None
    return approximates[0]


def level_program(
    utility: ColumnUtility, epsilon: float, delta: float, eta: float = 1.0, deadline: Deadline = UNLIMITED
) -> tuple[Array, Weighed]:
    """The columns (k, n), erasure last, of the best channel of up to `LIMIT` inputs under ApproximateLDP, delta > 0.

    eta : a cap on total variation, above 0. Raises `SolverError` when no solver is accurate, or a column is worth no
    finite number.
    """
    k = utility.size
    left, right = (place.astype(np.intp) for place in np.nonzero(~np.eye(k, dtype=bool)))
    levels = level_columns(k, eta < 1)
    base, rise = leveled_columns(levels, epsilon)
    caps = ExcessCaps(left, right, np.full(len(left), delta), np.full(len(left), False))
    variation = ExcessCaps.variation(k, eta)

    def excess(chosen: Any) -> Array:
        own = leveled_excesses(levels[chosen], epsilon, left, right)
        return np.concatenate([own, variation.apart(rise[:, chosen])])

    used, best = ColumnProgram.of(utility, base, rise, caps.and_(variation), excess).solve(deadline)
    return with_erasure((base + rise)[:, used] * best.weights), best


def leveled_columns(levels: Levels, epsilon: float) -> tuple[Array, Array]:
    """Columns in floats: base (n,), 0 without full support, and rise (k, n); the largest entry is one."""
    height, inside = levels.max(axis=1)[:, None], np.asarray(levels >= 0)
    full = np.all(inside, axis=1)
    entry = np.where(inside, np.exp(-(height - levels) * epsilon), 0.0)
    base = np.where(full, np.exp(-height[:, 0] * epsilon), 0.0)
    return base, np.where(full[:, None], entry * -np.expm1(-levels * epsilon), entry).T


def leveled_excesses(levels: Levels, epsilon: float, left: Index, right: Index) -> Array:
    """(pairs, n) the excesses (c_left - e^epsilon c_right)_+, with all digits where epsilon is small."""
    each = np.asarray(excesses(FLOAT.of(epsilon), int(levels.max(initial=0))).midpoint)
    return np.asarray(each[levels.max(axis=1)[:, None], levels[:, left], levels[:, right]].T)


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
        """Extreme columns are enough under LocalDP and TotalVariation, and small graphs have few."""
        utility = problem.utility
        if problem.plain or not only(problem, LocalDP, TotalVariation):
            return "its columns are those of LocalDP along a graph, with TotalVariation or without"
        if not listable(policy_limits(problem.constraints, problem.labels)):
            return Limit("more than 8 inputs with uneven limits have too many extreme columns")
        try:
            columns, base, rise = _extreme(problem)
        except TooManyColumns as error:
            return str(error)
        # Columns of positive entries have a finite value; one with zeros may have an infinite value.
        zeros = np.isneginf(columns.steps).any(axis=1)
        if zeros.any() and not np.isfinite(utility.enclosed_columns(base[zeros], rise[:, zeros]).upper).all():
            return f"an extreme column is worth no finite number of {utility.name}"
        return ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The channel of the optimal weights."""
        (columns, *enclosed), eta = _extreme(problem), problem.eta
        base, rise = (np.asarray(part.midpoint) for part in enclosed)
        # A little less than eta: to leave room for the rounding of rows here costs less than a repair later.
        cap = ExcessCaps.variation(len(rise), eta - min(2.0**-50, 2.0**-24 * eta) if eta < 1 else eta)
        used, best = ColumnProgram.of(problem.utility, base, rise, cap).solve(problem.deadline)
        matrix = with_erasure((base + rise)[:, used] * best.weights)
        return Candidate(
            matrix, f"{columns.name} in a linear program", proved_by(PolicyDual, best.rows, best.pairs(), best.criteria)
        )


def _extreme(problem: Problem) -> tuple[PolicyColumns, Enclosure, Enclosure]:
    """The extreme columns of the problem's graph, and their bases (n,) and rises (k, n)."""
    columns = PolicyColumns(policy_limits(problem.constraints, problem.labels), problem.eta < 1)
    base, rise = columns.enclosed(FLOAT)
    return columns, base, rise.T
