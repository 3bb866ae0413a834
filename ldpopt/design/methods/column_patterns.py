"""Any column utility: the pattern program where it is exact, a multi-start ascent with a bound elsewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.candidate import Method
from ldpopt.design.certificates.patterns import ColumnPatternDual
from ldpopt.design.columns.masks import members
from ldpopt.design.constraints import (
    ZCDP,
    ApproximateLDP,
    ColumnConstraint,
    Constraint,
    LocalDP,
    RenyiLDP,
    TotalVariation,
)
from ldpopt.design.constraints.repair import repair
from ldpopt.design.constraints.terms import Ratio, Term
from ldpopt.design.design import Design
from ldpopt.design.methods.local_search import LocalSearch
from ldpopt.design.methods.patterns import PatternLP
from ldpopt.design.programs.column_patterns import pattern_columns
from ldpopt.design.programs.labels import Expression, label_program
from ldpopt.design.utilities.column import ColumnUtility, Tests, WeightedSum
from ldpopt.design.utilities.divergence import Divergence
from ldpopt.distribution import Array
from ldpopt.errors import Phrase, SolverError, invalid
from ldpopt.rounding import toward_privacy
from ldpopt.tolerances import CERTIFIED_GAP

LIMIT = 14
"""The most inputs for which all patterns are priced."""


STARTS = 8


def best_columns(
    utility: ColumnUtility, constraints: Sequence[Constraint], certify: bool, method: Method | None = None
) -> Design:
    """The channel of the largest column utility found, and what bounds the optimum.

    `method` is a `PatternLP` or a `LocalSearch`, whose starts and generator count; by default the first where it
    applies. The others go by one likelihood ratio, and these utilities have none, or several.
    """
    if not isinstance(method, PatternLP | LocalSearch | None):
        expected = f"PatternLP or LocalSearch for {utility.name} (the others need the likelihood ratio of a Divergence)"
        raise invalid("method", expected, type(method).__name__)
    given = tuple(constraints)
    pure = [c for c in given if isinstance(c, LocalDP) and c.symmetric]
    plain = all(c in pure or isinstance(c, TotalVariation) for c in given)
    epsilon = min((c.epsilon for c in pure), default=math.inf)
    eta = min((c.eta for c in given if isinstance(c, TotalVariation)), default=1.0)
    certificate, note = None, ""
    hindrance = _hindrance(plain and bool(pure), utility.size)
    if isinstance(method, PatternLP) and hindrance:
        raise invalid("method", "LocalSearch where the patterns cannot all be priced", Phrase(hindrance))
    if not hindrance and not isinstance(method, LocalSearch):
        masks, theta, rows, pairs, weights = pattern_columns(utility, epsilon, eta)
        inside = members(masks, utility.size).T
        matrix = np.where(inside, math.exp(toward_privacy(epsilon)), 1.0) * np.maximum(theta, 0.0)
        matrix, how = matrix[:, matrix.max(axis=0) > 1e-12], f"pattern LP over {2**utility.size - 1} staircase patterns"
    else:
        search = method if isinstance(method, LocalSearch) else LocalSearch(STARTS)
        reason = f": {hindrance}" if hindrance else ""
        how = f"convex-concave ascent from {search.starts} starts{reason}"
        matrix = ascend(utility, given, search)
    matrix = repair(matrix / matrix.sum(axis=1, keepdims=True), given, utility.inputs)
    channel = Channel(Channel(matrix).merge().matrix, utility.inputs)
    value = utility.value(channel)
    if certify and how.startswith("pattern"):
        certificate = ColumnPatternDual(
            utility, channel, epsilon, eta, given, rows, pairs, weights
        )  # fmt: skip
    bound = math.inf
    if certify:
        bound = max(value, certificate.upper_bound if certificate else relaxation(utility, given))
    certified = certificate is not None and bound - value <= CERTIFIED_GAP * bound + 1e-13
    if certificate is None:
        note = "a local search, not certified: the upper bound is that of a relaxation, each divergence by itself"
    guarantees = tuple(constraint.measure(channel) for constraint in given)
    return Design(utility, given, channel, value, bound, guarantees, how, certificate, certified, CERTIFIED_GAP, note)


def _hindrance(private: bool, size: int) -> str:
    """Why the pattern program does not apply; empty where it does."""
    if not private:
        return "staircase patterns are optimal under LocalDP between all inputs, with TotalVariation or without"
    return f"{size} inputs have too many staircase patterns to price all (at most {LIMIT})" if size > LIMIT else ""


def relaxation(utility: ColumnUtility, constraints: Sequence[Constraint]) -> float:
    """A bound by parts: the optimum of each divergence alone, the contraction of mutual information."""
    if isinstance(utility, Tests):
        return min(_alone(part, constraints) for part in utility.parts)
    if isinstance(utility, WeightedSum):
        pairs = zip(utility.weights, utility.utilities, strict=True)
        return sum(
            w * (_alone(u, constraints) if isinstance(u, Divergence) else relaxation(u, constraints)) for w, u in pairs
        )
    # Mutual information contracts by the Dobrushin coefficient, as every f-divergence does [Dobrushin].
    return min((_variation(constraint) for constraint in constraints), default=1.0) * utility.unprivate


def _alone(part: Divergence, constraints: Sequence[Constraint]) -> float:
    from ldpopt.design.optimal import optimal_channel

    return optimal_channel(part, constraints).upper_bound


def _variation(constraint: Constraint) -> float:
    """A cap on the total variation between any two rows that the constraint implies; 1 where none is known."""
    if isinstance(constraint, TotalVariation):
        return constraint.eta
    if isinstance(constraint, LocalDP) and constraint.symmetric:
        return math.tanh(constraint.epsilon / 2)  # [GI, Prop 2]
    if isinstance(constraint, ApproximateLDP):
        return constraint.delta + (1 - constraint.delta) * math.tanh(constraint.epsilon / 2)  # [GI, eq. 7]
    if isinstance(constraint, RenyiLDP):
        return math.sqrt(constraint.epsilon / 2)  # [Pinsker]: KL is at most every later order
    if isinstance(constraint, ZCDP):
        return math.sqrt(constraint.rho / 2)  # [Pinsker]: KL is at most rho
    return 1.0


def ascend(utility: ColumnUtility, constraints: Sequence[Constraint], search: LocalSearch) -> Array:
    """The best of several convex-concave ascents: maximise the tangents of the utility, and repeat."""
    terms: list[Term | Ratio] = []
    expressions: list[Expression] = []
    k = utility.size
    for constraint in constraints:
        if isinstance(constraint, ColumnConstraint):
            terms += constraint.columns(utility.inputs or range(k))
        else:
            expressions.append(constraint.expression)
    rng = search.rng or np.random.default_rng(0)
    outputs = search.outputs or k + 1
    best, most = np.full((k, 1), 1.0), 0.0
    for number in range(search.starts):
        if number == 0 and search.outputs is None:
            q = np.eye(k) + 0.1
        else:
            q = rng.dirichlet(np.full(k, 0.3), outputs).T * k + 1e-3
        reached = -math.inf
        for _ in range(30):
            gains = utility.gradients(q)
            try:
                q = np.maximum(label_program(gains / (np.abs(gains).max() or 1.0), terms, expressions).matrix, 0.0)
            except SolverError:
                break
            value = float(utility.columns(q).sum(axis=1).min())
            if value <= reached + 1e-10 * abs(value):
                break
            reached = value
            if value > most:
                best, most = q, value
    return best[:, best.max(axis=0) > 1e-9]
