"""Programs of given outputs: a fixed alphabet with linear utilities of m given outputs, and multipliers for a proof.

    max  min_j sum_y c_jy . Q[:, y]   s.t.  Q 1 = 1  (lambda),  Q >= 0,  column terms, alphabet constraints,
                                            g_y . Q[:, y] >= 0,   h_y . Q[:, y] >= 0.

The last line keeps the likelihood ratio of each output within its interval of a box. The dual values make a `Leaf`: by
weak duality, any numbers in it bound the utility of all channels within the constraints whose outputs are in the box.

`sampling_program` is that of private sampling, with tangents of the risks that are added in rounds.

    min over Q of max over i of sum over y of mu(P_iy, Q_iy),   mu(a, b) >= slope(r) a + level(r) b  for every r

Columns are posed in two parts, one that all rows share and one in which they differ, the second in units of the
constraints (`labels.MatrixVariable`): where privacy keeps rows within 1e-12, a solver's absolute accuracy is enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any

import numpy as np

from ldpopt.design.constraints.base import AlphabetConstraint, Expression
from ldpopt.design.constraints.terms import Term
from ldpopt.design.outputs.proof import Leaf
from ldpopt.design.ratios.program import FARTHEST, MatrixVariable, nearby
from ldpopt.design.ratios.proof import TermMultiplier
from ldpopt.design.solve import CONIC, INTERIOR, SIMPLEX, solve
from ldpopt.design.utilities.against_set import GRID
from ldpopt.design.utilities.decisions import PrivateSampling
from ldpopt.design.utilities.divergence import tangents_of_ratios
from ldpopt.errors import SolverError
from ldpopt.numbers.tolerances import SAME_TANGENT, TANGENT_GAP
from ldpopt.values.deadline import UNLIMITED, Deadline
from ldpopt.values.distribution import Array

PENALTY = 10.0  # The cost, in units of the utility, of a violated equation, in a program that must stay feasible
# Ratios above the first are posed from the largest entry of each column; ratios above the second are not posed.
STEEP, ENDLESS = 1e6, 1e9


@dataclass(frozen=True, eq=False)
class AlphabetProgram:
    """The program for channels of `shape` (k, m), posed once and solved for many utilities.

    expressions : users' own constraints, which enter the program but not its bound.
    """

    shape: tuple[int, int]
    terms: tuple[Term, ...]
    fixed: tuple[AlphabetConstraint, ...]
    expressions: tuple[Expression, ...] = ()
    criteria: int = 1

    def solve(self, gains: Array, sides: Array | None = None, scale: float | None = None) -> tuple[Array, Leaf]:
        """The best matrix (k, m) for `gains` (criteria, m, k), within a box of `sides` (2, m, k), and its multipliers.

        scale : the unit of the gains in the solver's eyes; by default the largest of them.
        Raises `SolverError` where there is no such matrix, or none was found.
        """
        return self._posed(sides is not None, False).solve(gains, sides, scale)

    def elastic(self, gains: Array, sides: Array) -> Leaf:
        """The multipliers of the program whose equations may be violated at a price, so that it is always feasible."""
        return self._posed(True, True).solve(gains, sides)[1]

    @cached_property
    def _posed(self) -> Callable[[bool, bool], _Posed]:
        return cache(partial(_Posed, self))


def _pose(cp: Any, q: Any, term: Term) -> list[Any]:
    """One term as cvxpy constraints; ratios that a solver cannot tell from infinite ones are left to the repair."""
    if not term.pure or term.ratio <= STEEP:
        return list(term.pose(q))
    if term.ratio > ENDLESS:
        return []
    top = np.ones((q.shape[0], 1)) @ cp.Variable((1, q.shape[1]), nonneg=True)
    return [q <= top, q >= top / term.ratio]


class _Posed:
    """The cvxpy problem, with the utilities and the box as parameters."""

    def __init__(self, program: AlphabetProgram, boxed: bool, elastic: bool) -> None:
        import cvxpy as cp

        k, m = program.shape
        self.program = program
        self.q = q = cp.Variable((k, m), nonneg=True)
        self.gains = [cp.Parameter((k, m)) for _ in range(program.criteria)]
        give = cp.Variable(nonneg=True) if elastic else 0.0
        off = cp.Variable(k) if elastic else np.zeros(k)
        self.row = cp.sum(q, axis=1) + off == np.ones(k)
        constraints: list[Any] = [self.row] + ([cp.norm1(off) <= give] if elastic else [])
        self.posed = [_pose(cp, q, term) for term in program.terms]
        self.read: list[Callable[[], Any]] = []
        for constraint in program.fixed:
            own, read = constraint.pose(q, give)
            constraints += own
            self.read.append(read)
        for own in self.posed:
            constraints += own
        for expression in program.expressions:
            constraints += list(expression(q))
        self.limits = [cp.Parameter((k, m)) for _ in range(2 * boxed)]
        self.sides = [cp.sum(cp.multiply(each, q), axis=0) >= 0 for each in self.limits]
        values = [cp.sum(cp.multiply(each, q)) for each in self.gains]
        least = values[0] if len(values) == 1 else cp.Variable()
        self.above = [] if len(values) == 1 else [value >= least for value in values]
        self.problem = cp.Problem(cp.Maximize(least - PENALTY * give), constraints + self.sides + self.above)
        flat = (cp.constraints.zero.Equality, cp.constraints.nonpos.Inequality)
        linear = not program.expressions and all(isinstance(constraint, flat) for constraint in constraints)
        self.solvers = SIMPLEX if linear else CONIC

    def solve(self, gains: Array, sides: Array | None, unit: float | None = None) -> tuple[Array, Leaf]:
        scale = unit or float(np.abs(gains).max()) or 1.0
        for parameter, each in zip(self.gains, gains, strict=True):
            parameter.value = each.T / scale
        m = self.q.shape[1]
        # Each side is in units of its largest entry, so that hypotheses that nearly agree are not below a tolerance.
        units = np.ones((2, m)) if sides is None else np.abs(sides).max(axis=2)
        units = np.where(units > 0, units, 1.0)
        if sides is not None:
            for parameter, each in zip(self.limits, sides / units[:, :, None], strict=True):
                parameter.value = each.T
        solve(self.problem, "alphabet program", self.solvers)
        terms = tuple(
            TermMultiplier(number, np.arange(len(term)), term.scaled(term.multiplier(own), scale))
            for number, (term, own) in enumerate(zip(self.program.terms, self.posed, strict=True))
            if not term.pure
        )
        fixed = tuple(c.scaled(read(), scale) for c, read in zip(self.program.fixed, self.read, strict=True))
        rows = np.array(self.row.dual_value)
        for term, own in zip(self.program.terms, self.posed, strict=True):
            term.on_rows(rows, own)
        rows = rows * scale
        prices = np.zeros((2, m))
        if self.sides:
            prices = np.maximum(np.stack([np.asarray(side.dual_value) for side in self.sides]), 0.0) / units * scale
        weights = np.array([max(float(constraint.dual_value), 0.0) for constraint in self.above] or [1.0])
        return np.maximum(np.asarray(self.q.value), 0.0), Leaf(rows, terms, fixed, prices, weights)


ROUNDS = 40
# A larger ratio between all inputs is left to `repair`: raising entries to it costs less than solvers can tell.
OPEN = 1e10
STEEPEST = 1e6  # Tangents whose coefficients are larger, in units of the risk, are left out: solvers fail on them

Tangents = tuple[Array, Array, Array, Array]
"""A matrix (n, k), ratios (j,) with 0 last, weights (n, k, j) of the tangents there, and weights (n,) of the risks."""


def sampling_program(
    utility: PrivateSampling, terms: Sequence[Term], expressions: Sequence[Expression] = (),
    deadline: Deadline = UNLIMITED,
) -> Tangents:  # fmt: skip
    """The channel whose largest risk is smallest, nearly feasible, and the multipliers of the program's tangents.

    Ratios of entries too large for a solver are posed as smaller ones, and the channel is stretched afterwards. Raises
    `SolverError` when no solver is accurate.
    """
    widest = max((term.farthest for term in terms), default=1.0)
    failure = SolverError("private sampling: no program was solved")
    for farthest in (math.inf, *FARTHEST):
        if farthest == math.inf and not any(_open(term, farthest) for term in terms):
            continue
        try:
            matrix, ratios, mixture, prior = _within(utility, terms, expressions, farthest, deadline)
        except SolverError as error:
            failure = error
            if widest <= farthest < math.inf:
                break
            continue
        wider = stretched(matrix, widest, min(farthest, FARTHEST[0]))
        # Of the two matrices, the one with the smaller risk.
        better = _worst(utility, wider) <= _worst(utility, matrix) * (1 + 1e-12)
        return wider if better else matrix, ratios, mixture, prior
    raise failure


def tangents_at(utility: PrivateSampling, matrix: Array) -> Tangents:
    """The tangents at the ratios that a given matrix has; only risks near the largest have weight."""
    held = np.asarray(utility.distributions)
    ratios = np.where(held > 0, held / np.where(matrix > 0, matrix, 1.0), 0.0)
    every, where = np.unique(ratios[ratios > 0], return_inverse=True)
    mixture = np.zeros((*held.shape, len(every) + 1))
    mixture[(*np.nonzero(ratios > 0), where)] = 1.0
    mixture[ratios <= 0, -1] = 1.0
    risks = utility.risks(matrix)
    return matrix, np.append(every, 0.0), mixture, np.asarray((risks >= 0.9 * risks.max()).astype(np.float64))


def stretched(matrix: Array, ratio: float, farthest: float = FARTHEST[0]) -> Array:
    """The matrix with entries at the program's largest ratio moved to the constraints' one; `repair` raises others."""
    if ratio <= farthest:
        return matrix
    top = matrix.max(axis=0)
    share = matrix / np.where(top > 0, top, 1.0)
    power = np.log(ratio) / np.log(farthest)
    return np.where(share < 100 / farthest, top * share**power, matrix)


def _worst(utility: PrivateSampling, matrix: Array) -> float:
    """The largest risk; infinity where it is no number."""
    with np.errstate(all="ignore"):
        worst = float(utility.risks(matrix / matrix.sum(axis=1, keepdims=True)).max())
    return worst if worst >= 0 else math.inf


def _open(term: Term, farthest: float) -> bool:
    """Whether a term is left out of the program that has no largest ratio."""
    return farthest == math.inf and term.pure and term.ratio > OPEN


def _limited(
    shape: tuple[int, int], terms: Sequence[Term], expressions: Sequence[Expression], farthest: float
) -> tuple[MatrixVariable, list[Any]]:
    """The matrix variable of a sampling program, and its constraints."""
    import cvxpy as cp

    most = nearby(min(farthest, FARTHEST[0]), terms, expressions)
    near = [term.within(most)[0] for term in terms if not _open(term, farthest)]
    q = MatrixVariable.of(cp, shape, [] if expressions else near, False, 1.0)
    posed = [limit for term in near for limit in (term.pose_split(q) if q.split else term.pose(q.whole))]
    return q, [*q.rows, *posed, *(limit for expression in expressions for limit in expression(q.whole))]


def _within(
    utility: PrivateSampling, terms: Sequence[Term], expressions: Sequence[Expression], farthest: float,
    deadline: Deadline,
) -> Tangents:  # fmt: skip
    """The program with ratios up to `farthest`."""
    import cvxpy as cp

    n, k = utility.distributions.shape
    held = utility.distributions.ravel()
    tangent_ratios = [GRID if p > 0 else np.zeros(1) for p in held]
    best: Tangents | None = None
    gap, stale, scale = math.inf, 0, 1.0
    for _ in deadline.rounds(range(ROUNDS)):
        (q, limits), each, worst = _limited((n, k), terms, expressions, farthest), cp.Variable(n * k), cp.Variable()
        drawn = cp.reshape(q.whole, (n * k,), order="C")
        place, ratios = np.repeat(np.arange(n * k), [len(r) for r in tangent_ratios]), np.concatenate(tangent_ratios)
        slope, level = _planes(utility, ratios)
        slope, level = slope / scale, level / scale
        above = each[place] >= slope * held[place] + cp.multiply(level, drawn[place])
        most = cp.sum(cp.reshape(each, (n, k), order="C"), axis=1) <= worst * np.ones(n)
        try:
            # Central solutions, because a vertex puts rows at limits without need, where tangents are then missing.
            solve(cp.Problem(cp.Minimize(worst), [above, most, *limits]), "private sampling", INTERIOR)
        except SolverError:
            # The tangents are too nearly equal for the solver: the result of the round before stands.
            if best is None:
                raise
            break
        matrix = np.maximum(q.value, 0.0)
        every, where = np.unique(ratios, return_inverse=True)
        mixture = np.zeros((n * k, len(every)))
        np.add.at(mixture, (place, where), np.maximum(np.asarray(above.dual_value), 0.0))
        first = np.array([np.searchsorted(every, r[0]) for r in tangent_ratios])
        idle = mixture.sum(axis=1) <= 0
        mixture[idle, first[idle]] = 1.0
        order = np.argsort(every == 0, kind="stable")
        every, mixture = (every[order], mixture[:, order]) if (every == 0).any() else (
            np.append(every, 0.0), np.hstack([mixture, np.zeros((n * k, 1))])
        )  # fmt: skip
        reached = _worst(utility, matrix)
        if best is None or reached < math.inf:
            prior = np.maximum(np.asarray(most.dual_value), 0.0)
            best = (matrix, every, mixture.reshape(n, k, -1), prior)
        missed = reached - float(worst.value) * scale
        stale = 0 if missed < 0.5 * gap else stale + 1
        gap = min(gap, missed)
        if gap <= TANGENT_GAP * max(reached, 1e-3) or stale == 6 or not reached < math.inf:
            break
        scale = max(reached, 1e-2 * scale)
        now = held / np.maximum(matrix.ravel(), 1e-12)
        # Where the tangent there is too steep, take one on the way to it.
        nearer = np.clip(now, [0.01 * old.min() for old in tangent_ratios], [100 * old.max() for old in tangent_ratios])
        now = np.where(_steep(utility, now, held) <= STEEPEST * scale, now, nearer)
        steep = _steep(utility, now, held)
        tangent_ratios = [
            np.append(old, r)
            if r > 0 and high <= STEEPEST * scale and np.abs(old / r - 1).min() > SAME_TANGENT
            else old
            for old, r, high in zip(tangent_ratios, now, steep, strict=True)
        ]
    assert best is not None
    return best


def _planes(utility: PrivateSampling, ratios: Array) -> tuple[Array, Array]:
    """Coefficients of the held and of the drawn probability, of tangents or, at ratio 0, of the risk itself."""
    none = ratios == 0
    slope, level = tangents_of_ratios(utility.f, np.where(none, 1.0, ratios))
    at_zero = utility.f.excess(0.0, 1.0) if none.any() else 0.0
    return np.where(none, 0.0, slope), np.where(none, at_zero, level)


def _steep(utility: PrivateSampling, ratios: Array, held: Array) -> Array:
    """The larger of the two numbers of each tangent that a solver sees: its constant and its coefficient."""
    slope, level = _planes(utility, ratios)
    return np.maximum(np.abs(slope * held), np.abs(level))
