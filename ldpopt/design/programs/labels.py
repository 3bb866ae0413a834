"""The ratio-labelled program: the best channel with one output for each label, and a linear utility of each output.

A label stands for a likelihood ratio, at which the linear utility is a tangent of the divergence, or for an interval of
ratios, on which it is the chord.

    max  sum_i c_i . Q[:, i]   s.t.  Q 1 = 1  (lambda),  Q >= 0,  the terms (z, nu)  and the users' own constraints.

The program is linear for hockey-stick terms; moment terms enter as second-order, power or exponential cones. The dual
values come back in the form in which `constraints.terms` proves bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ldpopt.design.constraints.base import Expression
from ldpopt.design.constraints.terms import Ratio, Term
from ldpopt.design.programs.gains import LabelGains
from ldpopt.design.solve import CONIC, INTERIOR, SIMPLEX, solve
from ldpopt.distribution import Array
from ldpopt.errors import SolverError

SMALL = 4000
"""Up to this many slack variables the simplex method is faster."""


@dataclass(frozen=True, eq=False)
class Solved:
    """A solved program: the matrix (k, n), its objective, the row multipliers (k,) and one multiplier for each term.

    weights : (criteria,) dual values of the criteria. erased : the probability, for every input alike, of a further
    output that says nothing. total : the sum of `rows` by the multiplier of another equation, None where there is none.
    """

    matrix: Array
    value: float
    rows: Array
    multipliers: tuple[Array, ...]
    weights: Array
    erased: float = 0.0
    total: float | None = None

    @property
    def shifted(self) -> Array:
        """The row multipliers, shifted so that their sum is `total`."""
        return self.rows if self.total is None else self.rows + (self.total - self.rows.sum()) / len(self.rows)

    @property
    def whole(self) -> Array:
        """The matrix with the output that says nothing, where there is one: (k, n) or (k, n + 1)."""
        if self.erased <= 0:
            return self.matrix
        return np.hstack([self.matrix, np.full((len(self.matrix), 1), self.erased)])


def label_program(
    gains: Array | LabelGains,
    terms: Sequence[Term | Ratio],
    expressions: Sequence[Expression] = (),
    erasure: bool = False,
    level: float | None = None,
) -> Solved:
    """Solve for `gains` (n, k), the linear utility of each label; see the module for the program.

    With several criteria, `gains` (criteria, n, k), the smallest utility is maximised; `Solved.weights` are their dual
    values. erasure : a constant column is worth nothing, so that a further output that says nothing may be used.
    level : the unit of the part of the columns that all rows share; None chooses it by the smallest columns that
    matter.
    """
    made = gains if isinstance(gains, LabelGains) else LabelGains.of(gains)
    widest = max((term.farthest for term in terms), default=1.0)
    for farthest, nearer in pairwise(FARTHEST):
        try:
            return _solved(made, terms, expressions, erasure, farthest, level)
        except SolverError:
            if widest <= nearer:
                raise
    return _solved(made, terms, expressions, erasure, FARTHEST[-1], level)


def _solved(
    made: LabelGains, terms: Sequence[Term | Ratio], expressions: Sequence[Expression], erasure: bool, farthest: float,
    level: float | None,
) -> Solved:  # fmt: skip
    """The program with ratios up to `farthest`."""
    import cvxpy as cp

    each, flat = made.each.reshape(-1, *made.each.shape[-2:]), made.flat.reshape(-1, made.flat.shape[-1])
    n, k = each.shape[-2:]
    if level is not None:
        farthest = nearby(farthest, terms, expressions)
    near, capped = zip(*(term.within(farthest) for term in terms), strict=True) if terms else ((), ())
    q = MatrixVariable.of(cp, (k, n), [] if expressions else near, erasure, level)
    posed = []
    constraints: list[Any] = list(q.rows)
    for term in near:
        posed.append(term.pose_split(q) if q.split else term.pose(q.whole))
        constraints += posed[-1]
    for expression in expressions:
        constraints += list(expression(q.whole))
    values = [q.gain(cp, *one) for one in zip(each, flat, strict=True)]
    least = cp.Variable() if len(values) > 1 else values[0]
    above = [value >= least for value in values] if len(values) > 1 else []
    problem = cp.Problem(cp.Maximize(least), [*constraints, *above])
    slack = sum(len(term) for term in terms) * n
    cones = bool(expressions) or any(term.conic for term in terms)
    solve(problem, "label program", CONIC if cones else INTERIOR if slack > SMALL else SIMPLEX)
    multipliers = tuple(
        term.scaled(term.multiplier(one), 1 / q.unit) * share
        for term, one, share in zip(near, posed, capped, strict=True)
    )
    rows = row_multipliers(q.multipliers(), near, posed)
    weights = np.array([max(float(one.dual_value), 0.0) for one in above] or [1.0])
    return Solved(q.value, float(problem.value), rows, multipliers, weights / weights.sum(), q.erased, q.total)


FARTHEST = (1e8, 1e6, 1e4)
"""Larger ratios are posed as the first, which loses about its inverse; as the others only where a solver fails."""


@dataclass(frozen=True, eq=False)
class MatrixVariable:
    """The matrix variable of a program: columns  level base_i + unit rise_i  with rise >= 0, in units of the terms.

    Where constraints keep rows close together, a solver's absolute accuracy is enough for the two parts, not for their
    sum. base : (1, n) variable, None where the columns are `rise` alone. rest : the sum of the rises in each row.
    rows : the equations that say that rows sum to one.
    """

    unit: float
    level: float
    base: Any
    rise: Any
    rest: Any
    rows: tuple[Any, ...]

    @classmethod
    def of(
        cls, cp: Any, shape: tuple[int, int], terms: Sequence[Term | Ratio], erasure: bool, level: float | None = None
    ) -> MatrixVariable:
        """The variables and the equations of the rows; `level` is chosen where it is None."""
        k, n = shape
        rise = cp.Variable((k, n), nonneg=True)
        unit = MatrixVariable.unit_of(terms)
        if not 0 < unit <= SPLIT or any(term.conic for term in terms):
            return cls(1.0, 1.0, None, rise, None, (cp.sum(rise, axis=1) == np.ones(k),))
        widest = max((term.width for term in terms), default=0.0)
        if level is None:
            level = min(1.0, unit / widest) if widest > 0 else 1.0
        base, share = cp.Variable((1, n), nonneg=True), cp.Variable(nonneg=True)
        whole = cp.sum(base) + unit / level * share
        total = whole <= 1 / level if erasure else whole == 1 / level
        return cls(unit, level, base, rise, share, (cp.sum(rise, axis=1) - share == np.zeros(k), total))

    @staticmethod
    def unit_of(terms: Sequence[Term | Ratio]) -> float:
        """About how far apart the terms let two rows be, at most 1."""
        return min((term.reach for term in terms if isinstance(term, Ratio) or len(term)), default=1.0)

    @property
    def split(self) -> bool:
        """Whether columns have two parts."""
        return self.base is not None

    @property
    def whole(self) -> Any:
        """The matrix as one expression."""
        if not self.split:
            return self.rise
        return self.level * np.ones((self.rise.shape[0], 1)) @ self.base + self.unit * self.rise

    @property
    def shape(self) -> tuple[int, int]:
        """(k, n)."""
        k, n = self.rise.shape
        return int(k), int(n)

    def gain(self, cp: Any, each: Array, flat: Array) -> Any:
        """The linear utility of the matrix."""
        gained = cp.sum(cp.multiply(self.unit * each.T, self.rise))
        return gained + self.level * flat @ self.base[0] if self.split else gained

    def multipliers(self) -> Array:
        """(k,) the multipliers of the row sums."""
        return np.array(self.rows[0].dual_value) / self.unit

    @property
    def total(self) -> float | None:
        """The multiplier of the part that all rows share, which is a more accurate sum of the row multipliers."""
        return float(self.rows[1].dual_value) / self.level if self.split else None

    @property
    def value(self) -> Array:
        """The solved matrix (k, n)."""
        rise = np.maximum(np.asarray(self.rise.value), 0.0)
        if not self.split:
            return np.asarray(self.rise.value)
        return np.asarray(self.level * np.maximum(np.asarray(self.base.value), 0.0) + self.unit * rise)

    @property
    def erased(self) -> float:
        """The probability that is left for an output that says nothing."""
        if not self.split:
            return 0.0
        used = self.level * float(np.maximum(self.base.value, 0.0).sum()) + self.unit * float(self.rest.value)
        return max(1.0 - used, 0.0)


def nearby(farthest: float, terms: Sequence[Term | Ratio], expressions: Sequence[Expression]) -> float:
    """The largest ratio to pose for columns in two parts at level 1: a rise of one unit on a base of 1/`farthest`."""
    unit = MatrixVariable.unit_of(terms)
    return farthest if unit > SPLIT or expressions else min(farthest, 1 + farthest * unit)


SPLIT = 0.05
"""Below this reach of the constraints, columns are posed in two parts."""


def row_multipliers(rows: Array, terms: Sequence[Term | Ratio], posed: Sequence[list[Any]]) -> Array:
    """The dual values of the row sums, plus the linear parts of moments that were posed without them."""
    for term, made in zip(terms, posed, strict=True):
        term.on_rows(rows, made)
    return rows


def scaled(term: Term | Ratio, values: Array, scale: float) -> Array:
    """A multiplier times `scale`."""
    return term.scaled(values, scale)
