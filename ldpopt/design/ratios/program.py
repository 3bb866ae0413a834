"""The ratio-labelled program: the best channel with one output for each label, and a linear utility of each output.

A label stands for a likelihood ratio, at which the linear utility is a tangent of the divergence, or for an interval of
ratios, on which it is the chord.

A linear utility of a column q is written as  slope (P0 - P1).q + level (weights).q , so that hypotheses that are nearly
equal, and reports that say little, lose no digits. `LabelGains` stores the gain of a constant column separately,
because the gains of its entries cancel.
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
from ldpopt.design.constraints.terms import Term
from ldpopt.design.problems.pair_values import excess_at, marginals
from ldpopt.design.problems.reduction import Pair
from ldpopt.design.solve import CONIC, INTERIOR, SIMPLEX, solve
from ldpopt.divergences import FDivergence
from ldpopt.errors import SolverError
from ldpopt.values.distribution import Array

# Nearer to ratio one than this, slopes are computed from differences of the excess, which keep their digits there.
NEAR_ONE = 2.0**-12


@dataclass(frozen=True, eq=False)
class LabelGains:
    """Linear utilities: each : (n, k) the gain of every input's entry. flat : (n,) the gain of a column of ones."""

    each: Array
    flat: Array

    @classmethod
    def of(cls, each: Array) -> LabelGains:
        """Utilities whose gains do not cancel."""
        return cls(each, each.sum(axis=-1))

    def __truediv__(self, scale: float) -> LabelGains:
        return LabelGains(self.each / scale, self.flat / scale)


def chord_gains(f: FDivergence, pair: Pair, knots: Array) -> LabelGains:
    """The chords of the divergence between neighbouring posteriors `knots`, above it for columns in between."""
    tilt, height = 2 * knots - 1, excess_at(f, knots)
    width = np.diff(tilt)
    finite = np.isfinite(height[[0, -1]])
    if not finite.all():
        # Beside an end where the divergence is infinite, the tangent at the nearest cut (`tails`).
        each = [chord_gains(f, pair, knots[int(not finite[0]) : len(knots) - int(not finite[1])])]
        each = each if finite[0] else [tangents_at(f, pair, knots[1:2]), *each]
        each = each if finite[1] else [*each, tangents_at(f, pair, knots[-2:-1])]
        return LabelGains(np.concatenate([g.each for g in each]), np.concatenate([g.flat for g in each]))
    slope = np.diff(height) / width
    # At posterior 1/2 the divergence is zero, and the chords on either side pass through zero exactly.
    level = (height[:-1] * tilt[1:] - height[1:] * tilt[:-1]) / width
    return LabelGains(slope[:, None] * pair.difference + level[:, None] * (pair.p0 + pair.p1), 2 * level)


def tangent_gains(f: FDivergence, pair: Pair, matrix: Array) -> LabelGains:
    """The planes that touch the divergence at the columns of `matrix`, and lie below it."""
    d, a, b = marginals(pair, matrix)
    return tangents_of(f, pair, d, a, b)


def tangents_at(f: FDivergence, pair: Pair, posterior: Array) -> LabelGains:
    """The planes that touch the divergence at posteriors."""
    return tangents_of(f, pair, 2 * posterior - 1, posterior, 1 - posterior)


def tangents_of(f: FDivergence, pair: Pair, d: Array, a: Array, b: Array) -> LabelGains:
    """The planes that touch the divergence at marginals a = b + d."""
    b = np.where(b > 0, b, np.finfo(float).tiny)
    x = np.clip(d / b, -1.0, None)
    near = np.abs(x) < NEAR_ONE
    ratio = np.clip(a / b, 1e-12, 1e12)
    far_slope = np.asarray(f.derivative(ratio)) - float(f.derivative(1.0))
    step = np.where(near, x, NEAR_ONE) * 2.0**-17
    inner = np.where(near, x, NEAR_ONE)
    # A difference over a step of relative size 2^-17: right to about 2^-34, and 0 at x = 0.
    rise = np.asarray(f.excess_of(inner + step, 1.0)) - np.asarray(f.excess_of(inner - step, 1.0))
    near_slope = np.where(inner == 0, 0.0, rise / np.where(step == 0, 1.0, 2 * step))
    slope = np.where(near, near_slope, far_slope)
    height = np.where(near, f.excess_of(inner, 1.0), f.excess(ratio, np.ones_like(ratio)))
    level = height - np.where(near, x, ratio - 1) * slope
    return LabelGains(slope[:, None] * pair.difference + level[:, None] * pair.p1, np.asarray(level))


MAX_SLACKS = 4000  # Up to this many slack variables the simplex method is faster


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
    terms: Sequence[Term],
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
    label_gains = gains if isinstance(gains, LabelGains) else LabelGains.of(gains)
    widest = max((term.farthest for term in terms), default=1.0)
    for farthest, nearer in pairwise(FARTHEST):
        try:
            return _solved(label_gains, terms, expressions, erasure, farthest, level)
        except SolverError:
            if widest <= nearer:
                raise
    return _solved(label_gains, terms, expressions, erasure, FARTHEST[-1], level)


def _solved(
    label_gains: LabelGains, terms: Sequence[Term], expressions: Sequence[Expression], erasure: bool, farthest: float,
    level: float | None,
) -> Solved:  # fmt: skip
    """The program with ratios up to `farthest`."""
    import cvxpy as cp

    each = label_gains.each.reshape(-1, *label_gains.each.shape[-2:])
    flat = label_gains.flat.reshape(-1, label_gains.flat.shape[-1])
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
    values = [q.gain(cp, *own) for own in zip(each, flat, strict=True)]
    least = cp.Variable() if len(values) > 1 else values[0]
    above = [value >= least for value in values] if len(values) > 1 else []
    problem = cp.Problem(cp.Maximize(least), [*constraints, *above])
    slack = sum(len(term) for term in terms) * n
    cones = bool(expressions) or any(term.conic for term in terms)
    solve(problem, "label program", CONIC if cones else INTERIOR if slack > MAX_SLACKS else SIMPLEX)
    multipliers = tuple(
        term.scaled(term.multiplier(own), 1 / q.unit) * share
        for term, own, share in zip(near, posed, capped, strict=True)
    )
    rows = q.multipliers()
    for term, own in zip(near, posed, strict=True):
        term.on_rows(rows, own)  # the linear parts of moments, which were posed without them
    weights = np.array([max(float(own.dual_value), 0.0) for own in above] or [1.0])
    return Solved(q.value, float(problem.value), rows, multipliers, weights / weights.sum(), q.erased, q.total)


# Larger ratios are posed as the first, which loses about its inverse; as the others only where a solver fails.
FARTHEST = (1e8, 1e6, 1e4)


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
        cls, cp: Any, shape: tuple[int, int], terms: Sequence[Term], erasure: bool, level: float | None = None
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
    def unit_of(terms: Sequence[Term]) -> float:
        """About how far apart the terms let two rows be, at most 1."""
        return min((term.tv_bound for term in terms if term.pure or len(term)), default=1.0)

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


def nearby(farthest: float, terms: Sequence[Term], expressions: Sequence[Expression]) -> float:
    """The largest ratio to pose for columns in two parts at level 1: a rise of one unit on a base of 1/`farthest`."""
    unit = MatrixVariable.unit_of(terms)
    return farthest if unit > SPLIT or expressions else min(farthest, 1 + farthest * unit)


SPLIT = 0.05  # Below this reach of the constraints, columns are posed in two parts
