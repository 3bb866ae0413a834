"""The method that solves the program over the extreme columns of (epsilon, delta)-LDP, for any column utility."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ldpopt.channel import Channel
from ldpopt.deadline import UNLIMITED, Deadline
from ldpopt.design.candidate import Ask, Candidate, Limit, Method
from ldpopt.design.certificates.base import Certificate
from ldpopt.design.certificates.levels import LevelDual, LevelVariationDual
from ldpopt.design.columns.levels import LIMIT, Levels, level_columns
from ldpopt.design.constraints.hockey_stick import ApproximateLDP, TotalVariation
from ldpopt.design.methods.patterns import of_classes
from ldpopt.design.problems.problem import Problem
from ldpopt.design.programs.columns import ColumnProgram, ExcessCaps, with_erasure
from ldpopt.design.utilities.base import ColumnUtility
from ldpopt.distribution import Array, Index


@dataclass(frozen=True)
class LevelLP(Method):
    """The program over all extreme columns of (epsilon, delta)-LDP: exact for column utilities of up to six inputs.

    These columns are unit vectors, and whole powers of e^epsilon on a set of inputs with zero elsewhere: staircases
    with more than two steps. Where total variation is capped too, there are also columns constant on a set.

    >>> from ldpopt import ApproximateLDP, MutualInformation, optimal_channel
    >>> optimal_channel(MutualInformation([0.5, 0.3, 0.2]), ApproximateLDP(1.0, 0.01), method=LevelLP()).certified
    True
    """

    reference: ClassVar[str] = "[KOV14, Thm 2 and 4]"
    preference: ClassVar[int] = 180

    def refuses(self, problem: Problem) -> str:
        """These columns suffice under one `ApproximateLDP`, with or without `TotalVariation`; few inputs have few."""
        utility = problem.utility
        if not isinstance(utility, ColumnUtility):
            return f"{utility.name} is no sum over outputs of functions of the column"
        if _approximate(problem) is None:
            return "its columns are optimal under ApproximateLDP and TotalVariation, with all their caps above 0"
        if not math.isfinite(utility.unprivate):
            return f"{utility.name} of full disclosure is infinite, and delta allows for some of it"
        k = utility.size
        return Limit(f"{k} inputs have too many extreme columns to list (at most {LIMIT})") if k > LIMIT else ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The channel of the optimal weights."""
        utility, posed = problem.utility, _approximate(problem)
        assert posed is not None
        constraint, eta = posed
        # A little less than the caps: to leave room for the rounding of rows here costs less than a repair later.
        delta, cap = (c - min(2.0**-50, 2.0**-24 * c) if c < 1 else c for c in (constraint.delta, eta))
        found = level_program(utility, constraint.epsilon, delta, cap, problem.deadline)

        def prove(posed: Problem, channel: Channel) -> Iterator[Certificate]:
            fields = (posed.whole, posed.constraints, channel, found.rows, found.pairs, found.weights)
            yield LevelDual(*fields) if eta == 1 else LevelVariationDual(*fields, found.spreads)

        matrix = found.columns if utility.pair is None else found.columns[of_classes(problem)]
        count = len(level_columns(utility.size, eta < 1))
        return Candidate(matrix, f"extreme columns of (epsilon, delta)-LDP, {count} in a linear program", prove)


@dataclass(frozen=True, eq=False)
class LevelSolution:
    """A channel's columns (k, n), of which the last is erasure, and dual values as `LevelVariationDual` takes them."""

    columns: Array
    rows: Array
    pairs: Array
    weights: Array
    spreads: Array


def level_program(
    utility: ColumnUtility, epsilon: float, delta: float, eta: float = 1.0, deadline: Deadline = UNLIMITED
) -> LevelSolution:
    """Solve the program for ApproximateLDP(epsilon, delta), delta > 0, of up to six inputs.

    eta : a cap on total variation, above 0. Raises `SolverError` when no solver is accurate, or a column is worth no
    finite number.
    """
    k = utility.size
    left, right = (place.astype(np.intp) for place in np.nonzero(~np.eye(k, dtype=bool)))
    base, rise, excess = leveled_columns(level_columns(k, eta < 1), epsilon, left, right)
    caps, count = ExcessCaps(left, right, np.full(len(left), delta), np.full(len(left), False)), len(left)
    if eta < 1:
        variation = ExcessCaps.variation(k, eta)
        caps, excess = caps.and_(variation), np.concatenate([excess, variation.apart(rise)])
    found = ColumnProgram.of(utility, base, rise, caps, lambda at: excess[:, at]).solve(deadline)
    columns = with_erasure((base + rise)[:, found.used] * found.weights)
    return LevelSolution(
        columns, found.rows, found.pairs(slice(count)), found.criteria, found.pairs(slice(count, None))
    )


def leveled_columns(levels: Levels, epsilon: float, left: Index, right: Index) -> tuple[Array, Array, Array]:
    """Columns in floats: base (n,), 0 without full support, and rise (k, n); the largest entry is one.

    Last the excesses (pairs, n), (c_left - e^epsilon c_right)_+, with all digits where epsilon is small.
    """
    height, inside = levels.max(axis=1)[:, None], np.asarray(levels >= 0)
    full = np.all(inside, axis=1)
    entry = np.where(inside, np.exp(-(height - levels) * epsilon), 0.0)
    base = np.where(full, np.exp(-height[:, 0] * epsilon), 0.0)
    rise = np.where(full[:, None], entry * -np.expm1(-levels * epsilon), entry).T
    apart = np.maximum(levels[:, left] - levels[:, right] - 1, 0)
    share = np.where(inside[:, right], -np.expm1(-apart * epsilon), 1.0)
    return base, rise, np.where(inside[:, left], entry[:, left] * share, 0.0).T


def approximate_only(problem: Problem) -> ApproximateLDP | None:
    """The constraint of a problem whose only one is an `ApproximateLDP` with epsilon and delta above 0; else None."""
    only = problem.constraints[0]
    alone = len(problem.constraints) == 1 and isinstance(only, ApproximateLDP) and not problem.plain
    return only if alone and isinstance(only, ApproximateLDP) else None


def _approximate(problem: Problem) -> tuple[ApproximateLDP, float] | None:
    """The one `ApproximateLDP` of a problem and the cap on total variation, 1 for none; None with other constraints."""
    found = [c for c in problem.constraints if isinstance(c, ApproximateLDP)]
    rest = [c for c in problem.constraints if c not in found]
    if len(found) != 1 or not all(isinstance(c, TotalVariation) for c in rest) or problem.plain or not problem.eta > 0:
        return None
    return found[0], problem.eta
