"""Programs of given outputs: a fixed alphabet with linear utilities of m given outputs, and multipliers for a proof.

    max  min_j sum_y c_jy . Q[:, y]   s.t.  Q 1 = 1  (lambda),  Q >= 0,  column terms, alphabet constraints,
                                            g_y . Q[:, y] >= 0,   h_y . Q[:, y] >= 0.

The last line keeps the likelihood ratio of each output within its interval of a box. The dual values make a `Leaf`: by
weak duality, any numbers in it bound the utility of all channels within the constraints whose outputs are in the box.

`sampling_program` is that of private sampling, with tangents of the risks that are added in rounds.

    min over Q of max over i of sum over y of mu(P_iy, Q_iy),   mu(a, b) >= slope(r) a + level(r) b  for every r

Columns have two parts, one common to all rows and one for their differences, in units of the constraints
(`ratios.program.MatrixVariable`). So a solver's absolute accuracy is enough if privacy keeps rows within 1e-12.
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
from ldpopt.design.ratios.program import RATIO_LIMITS, MatrixVariable, ratio_limit
from ldpopt.design.ratios.proof import TermMultiplier
from ldpopt.design.solve import CONIC, INTERIOR, SIMPLEX, solve
from ldpopt.design.utilities.against_set import INITIAL_RATIOS
from ldpopt.design.utilities.decisions import PrivateSampling
from ldpopt.design.utilities.divergence import tangents_of_ratios
from ldpopt.errors import SolverError
from ldpopt.numbers.tolerances import SAME_TANGENT, TANGENT_GAP
from ldpopt.values.deadline import UNLIMITED, Deadline
from ldpopt.values.distribution import Array

ELASTIC_PENALTY = (
    10.0  # The cost, in units of the utility, of a violated equation, in a program that must stay feasible
)
# Ratios above the first are relative to the largest entry of each column; ratios above the second are omitted.
MAX_RATIO_FROM_ZERO, MAX_PROGRAM_RATIO = 1e6, 1e9


@dataclass(frozen=True, eq=False)
class AlphabetProgram:
    """The program for channels of `shape` (k, m), built once and solved for many utilities.

    expressions : user-defined constraints, which enter the program but not its bound.
    """

    shape: tuple[int, int]
    terms: tuple[Term, ...]
    fixed: tuple[AlphabetConstraint, ...]
    expressions: tuple[Expression, ...] = ()
    criteria: int = 1

    def solve(self, gains: Array, sides: Array | None = None, scale: float | None = None) -> tuple[Array, Leaf]:
        """Find the best matrix (k, m) for `gains` (criteria, m, k), within a box of `sides` (2, m, k).

        Returns the matrix and its multipliers. scale : the unit of the gains for the solver; by default the largest of
        them. Raises `SolverError` if no matrix exists, or none was found.
        """
        return self._programs(sides is not None, False).solve(gains, sides, scale)

    def elastic(self, gains: Array, sides: Array) -> Leaf:
        """Return the multipliers of the program with equations that may be violated at a price, so it is feasible."""
        return self._programs(True, True).solve(gains, sides)[1]

    @cached_property
    def _programs(self) -> Callable[[bool, bool], _ParametricProgram]:
        return cache(partial(_ParametricProgram, self))


def _term_constraints(cp: Any, q: Any, term: Term) -> list[Any]:
    """Return one term as cvxpy constraints; ratios too large for a solver are left to the repair."""
    if not term.pure or term.ratio <= MAX_RATIO_FROM_ZERO:
        return list(term.pose(q))
    if term.ratio > MAX_PROGRAM_RATIO:
        return []
    top = np.ones((q.shape[0], 1)) @ cp.Variable((1, q.shape[1]), nonneg=True)
    return [q <= top, q >= top / term.ratio]


class _ParametricProgram:
    """The cvxpy problem, with the utilities and the box as parameters."""

    def __init__(self, program: AlphabetProgram, has_entry_limits: bool, elastic: bool) -> None:
        import cvxpy as cp

        k, m = program.shape
        self.program = program
        self.q = q = cp.Variable((k, m), nonneg=True)
        self.gains = [cp.Parameter((k, m)) for _ in range(program.criteria)]
        give = cp.Variable(nonneg=True) if elastic else 0.0
        deviation = cp.Variable(k) if elastic else np.zeros(k)
        self.row = cp.sum(q, axis=1) + deviation == np.ones(k)
        constraints: list[Any] = [self.row] + ([cp.norm1(deviation) <= give] if elastic else [])
        self.term_constraints = [_term_constraints(cp, q, term) for term in program.terms]
        self.read: list[Callable[[], Any]] = []
        for constraint in program.fixed:
            own_constraints, read = constraint.pose(q, give)
            constraints += own_constraints
            self.read.append(read)
        for own_constraints in self.term_constraints:
            constraints += own_constraints
        for expression in program.expressions:
            constraints += list(expression(q))
        self.limits = [cp.Parameter((k, m)) for _ in range(2 * has_entry_limits)]
        self.sides = [cp.sum(cp.multiply(parameter, q), axis=0) >= 0 for parameter in self.limits]
        values = [cp.sum(cp.multiply(parameter, q)) for parameter in self.gains]
        worst_value = values[0] if len(values) == 1 else cp.Variable()
        self.above = [] if len(values) == 1 else [value >= worst_value for value in values]
        self.problem = cp.Problem(
            cp.Maximize(worst_value - ELASTIC_PENALTY * give), constraints + self.sides + self.above
        )
        flat = (cp.constraints.zero.Equality, cp.constraints.nonpos.Inequality)
        linear = not program.expressions and all(isinstance(constraint, flat) for constraint in constraints)
        self.solvers = SIMPLEX if linear else CONIC

    def solve(self, gains: Array, sides: Array | None, unit: float | None = None) -> tuple[Array, Leaf]:
        scale = unit or float(np.abs(gains).max()) or 1.0
        for parameter, values in zip(self.gains, gains, strict=True):
            parameter.value = values.T / scale
        m = self.q.shape[1]
        # Each side is in units of its largest entry, so that nearly equal hypotheses are not below a tolerance.
        units = np.ones((2, m)) if sides is None else np.abs(sides).max(axis=2)
        units = np.where(units > 0, units, 1.0)
        if sides is not None:
            for parameter, values in zip(self.limits, sides / units[:, :, None], strict=True):
                parameter.value = values.T
        solve(self.problem, "alphabet program", self.solvers)
        terms = tuple(
            TermMultiplier(number, np.arange(len(term)), term.scaled(term.multiplier(own_constraints), scale))
            for number, (term, own_constraints) in enumerate(
                zip(self.program.terms, self.term_constraints, strict=True)
            )
            if not term.pure
        )
        output_multipliers = tuple(
            c.scaled(read(), scale) for c, read in zip(self.program.fixed, self.read, strict=True)
        )
        rows = np.array(self.row.dual_value)
        for term, own_constraints in zip(self.program.terms, self.term_constraints, strict=True):
            term.on_rows(rows, own_constraints)
        rows = rows * scale
        prices = np.zeros((2, m))
        if self.sides:
            prices = np.maximum(np.stack([np.asarray(side.dual_value) for side in self.sides]), 0.0) / units * scale
        weights = np.array([max(float(constraint.dual_value), 0.0) for constraint in self.above] or [1.0])
        return np.maximum(np.asarray(self.q.value), 0.0), Leaf(rows, terms, output_multipliers, prices, weights)


MAX_SAMPLING_ROUNDS = 40
# A larger ratio between all inputs is left to `repair`: raising entries to it costs less than solvers can resolve.
MAX_SAMPLING_RATIO = 1e10
MAX_TANGENT_COEFFICIENT = (
    1e6  # Tangents with larger coefficients, in units of the risk, are omitted: solvers fail on them
)

Tangents = tuple[Array, Array, Array, Array]
"""A matrix (n, k), ratios (j,) with 0 last, weights (n, k, j) of the tangents there, and weights (n,) of the risks."""


def sampling_program(
    utility: PrivateSampling, terms: Sequence[Term], expressions: Sequence[Expression] = (),
    deadline: Deadline = UNLIMITED,
) -> Tangents:  # fmt: skip
    """Find the channel whose largest risk is smallest, nearly feasible, and the multipliers of the tangents.

    Ratios of entries too large for a solver are replaced by smaller ones, and the channel is stretched afterwards.
    Raises `SolverError` if no solver is accurate.
    """
    widest = max((term.farthest for term in terms), default=1.0)
    failure = SolverError("private sampling: no program was solved")
    for farthest in (math.inf, *RATIO_LIMITS):
        if farthest == math.inf and not any(_is_omitted(term, farthest) for term in terms):
            continue
        try:
            matrix, ratios, mixture, prior = _solve_within_ratio(utility, terms, expressions, farthest, deadline)
        except SolverError as error:
            failure = error
            if widest <= farthest < math.inf:
                break
            continue
        wider = stretch_ratios(matrix, widest, min(farthest, RATIO_LIMITS[0]))
        # Of the two matrices, the one with the smaller risk.
        is_better = _largest_risk(utility, wider) <= _largest_risk(utility, matrix) * (1 + 1e-12)
        return wider if is_better else matrix, ratios, mixture, prior
    raise failure


def tangents_at(utility: PrivateSampling, matrix: Array) -> Tangents:
    """Return the tangents at the ratios of a given matrix; only risks near the largest have weight."""
    distributions = np.asarray(utility.distributions)
    ratios = np.where(distributions > 0, distributions / np.where(matrix > 0, matrix, 1.0), 0.0)
    distinct_ratios, ratio_index = np.unique(ratios[ratios > 0], return_inverse=True)
    mixture = np.zeros((*distributions.shape, len(distinct_ratios) + 1))
    mixture[(*np.nonzero(ratios > 0), ratio_index)] = 1.0
    mixture[ratios <= 0, -1] = 1.0
    risks = utility.risks(matrix)
    return matrix, np.append(distinct_ratios, 0.0), mixture, np.asarray((risks >= 0.9 * risks.max()).astype(np.float64))


def stretch_ratios(matrix: Array, ratio: float, farthest: float = RATIO_LIMITS[0]) -> Array:
    """Move entries at the program's largest ratio to that of the constraints; `repair` raises others."""
    if ratio <= farthest:
        return matrix
    top = matrix.max(axis=0)
    share = matrix / np.where(top > 0, top, 1.0)
    power = np.log(ratio) / np.log(farthest)
    return np.where(share < 100 / farthest, top * share**power, matrix)


def _largest_risk(utility: PrivateSampling, matrix: Array) -> float:
    """Return the largest risk; infinity if it is NaN."""
    with np.errstate(all="ignore"):
        worst = float(utility.risks(matrix / matrix.sum(axis=1, keepdims=True)).max())
    return worst if worst >= 0 else math.inf


def _is_omitted(term: Term, farthest: float) -> bool:
    """Return True if a term is omitted from the program without a largest ratio."""
    return farthest == math.inf and term.pure and term.ratio > MAX_SAMPLING_RATIO


def _matrix_variable(
    shape: tuple[int, int], terms: Sequence[Term], expressions: Sequence[Expression], farthest: float
) -> tuple[MatrixVariable, list[Any]]:
    """Return the matrix variable of a sampling program, and its constraints."""
    import cvxpy as cp

    max_ratio = ratio_limit(min(farthest, RATIO_LIMITS[0]), terms, expressions)
    limited_terms = [term.limit_ratio(max_ratio)[0] for term in terms if not _is_omitted(term, farthest)]
    q = MatrixVariable.from_terms(cp, shape, [] if expressions else limited_terms, False, 1.0)
    term_limits = [
        limit for term in limited_terms for limit in (term.pose_split(q) if q.split else term.pose(q.full_matrix))
    ]
    return q, [*q.rows, *term_limits, *(limit for expression in expressions for limit in expression(q.full_matrix))]


def _solve_within_ratio(
    utility: PrivateSampling, terms: Sequence[Term], expressions: Sequence[Expression], farthest: float,
    deadline: Deadline,
) -> Tangents:  # fmt: skip
    """Solve the program with ratios up to `farthest`."""
    import cvxpy as cp

    n, k = utility.distributions.shape
    true_probability = utility.distributions.ravel()
    tangent_ratios = [INITIAL_RATIOS if p > 0 else np.zeros(1) for p in true_probability]
    best: Tangents | None = None
    gap, stale, scale = math.inf, 0, 1.0
    for _ in deadline.rounds(range(MAX_SAMPLING_ROUNDS)):
        (q, limits), entry_risks, worst = (
            _matrix_variable((n, k), terms, expressions, farthest),
            cp.Variable(n * k),
            cp.Variable(),
        )
        report_probability = cp.reshape(q.full_matrix, (n * k,), order="C")
        entry, ratios = np.repeat(np.arange(n * k), [len(r) for r in tangent_ratios]), np.concatenate(tangent_ratios)
        slope, level = _planes(utility, ratios)
        slope, level = slope / scale, level / scale
        tangent_constraints = entry_risks[entry] >= slope * true_probability[entry] + cp.multiply(
            level, report_probability[entry]
        )
        risk_constraints = cp.sum(cp.reshape(entry_risks, (n, k), order="C"), axis=1) <= worst * np.ones(n)
        try:
            # Central solutions: a vertex puts rows at limits without need, and tangents are missing there.
            solve(
                cp.Problem(cp.Minimize(worst), [tangent_constraints, risk_constraints, *limits]),
                "private sampling",
                INTERIOR,
            )
        except SolverError:
            # The tangents are too nearly equal for the solver: keep the result of the previous round.
            if best is None:
                raise
            break
        matrix = np.maximum(q.value, 0.0)
        distinct_ratios, ratio_index = np.unique(ratios, return_inverse=True)
        mixture = np.zeros((n * k, len(distinct_ratios)))
        np.add.at(mixture, (entry, ratio_index), np.maximum(np.asarray(tangent_constraints.dual_value), 0.0))
        first = np.array([np.searchsorted(distinct_ratios, r[0]) for r in tangent_ratios])
        is_idle = mixture.sum(axis=1) <= 0
        mixture[is_idle, first[is_idle]] = 1.0
        order = np.argsort(distinct_ratios == 0, kind="stable")
        distinct_ratios, mixture = (distinct_ratios[order], mixture[:, order]) if (distinct_ratios == 0).any() else (
            np.append(distinct_ratios, 0.0), np.hstack([mixture, np.zeros((n * k, 1))])
        )  # fmt: skip
        largest_risk = _largest_risk(utility, matrix)
        if best is None or largest_risk < math.inf:
            prior = np.maximum(np.asarray(risk_constraints.dual_value), 0.0)
            best = (matrix, distinct_ratios, mixture.reshape(n, k, -1), prior)
        remaining_gap = largest_risk - float(worst.value) * scale
        stale = 0 if remaining_gap < 0.5 * gap else stale + 1
        gap = min(gap, remaining_gap)
        if gap <= TANGENT_GAP * max(largest_risk, 1e-3) or stale == 6 or not largest_risk < math.inf:
            break
        scale = max(largest_risk, 1e-2 * scale)
        new_ratios = true_probability / np.maximum(matrix.ravel(), 1e-12)
        # If the tangent there is too steep, take one closer to the previous ratios.
        nearer = np.clip(
            new_ratios, [0.01 * old.min() for old in tangent_ratios], [100 * old.max() for old in tangent_ratios]
        )
        new_ratios = np.where(
            _tangent_size(utility, new_ratios, true_probability) <= MAX_TANGENT_COEFFICIENT * scale, new_ratios, nearer
        )
        steep = _tangent_size(utility, new_ratios, true_probability)
        tangent_ratios = [
            np.append(old, r)
            if r > 0 and high <= MAX_TANGENT_COEFFICIENT * scale and np.abs(old / r - 1).min() > SAME_TANGENT
            else old
            for old, r, high in zip(tangent_ratios, new_ratios, steep, strict=True)
        ]
    assert best is not None
    return best


def _planes(utility: PrivateSampling, ratios: Array) -> tuple[Array, Array]:
    """Return coefficients of the true and the reported probability, of tangents or, at ratio 0, of the risk itself."""
    is_zero = ratios == 0
    slope, level = tangents_of_ratios(utility.f, np.where(is_zero, 1.0, ratios))
    at_zero = utility.f.excess(0.0, 1.0) if is_zero.any() else 0.0
    return np.where(is_zero, 0.0, slope), np.where(is_zero, at_zero, level)


def _tangent_size(utility: PrivateSampling, ratios: Array, true_probability: Array) -> Array:
    """Return the larger of the two numbers of each tangent in the program: its constant and its coefficient."""
    slope, level = _planes(utility, ratios)
    return np.maximum(np.abs(slope * true_probability), np.abs(level))
