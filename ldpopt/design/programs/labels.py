"""The ratio-labelled program: the best channel with one output a label and a linear utility on each.

    max  sum_i c_i . Q[:, i]   s.t.  Q 1 = 1  (lambda),  Q >= 0,  the terms (z, nu)  and the users' own constraints.

Linear for hockey-stick terms; moment terms enter as second-order, power or exponential cones. The dual values come
back in the form that `terms` proves bounds with.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from ldpopt.design.constraints.terms import HockeyStick, Index, Moment, Ratio, Term
from ldpopt.design.programs.gains import Gains
from ldpopt.design.solve import CONIC, INTERIOR, SIMPLEX, solve
from ldpopt.distribution import Array
from ldpopt.errors import SolverError

LARGE = 3.0
"""Caps above this are posed on the power alone."""


SMALL = 4000
"""Up to this many slack variables the simplex method is the faster one."""


Expression = Callable[[Any], Sequence[Any]]
"""From the cvxpy variable Q (k, n) to cvxpy constraints on it."""


@dataclass(frozen=True, eq=False)
class Solved:
    """A solved program: the matrix (k, n), its objective, the row multipliers (k,) and one multiplier a term.

    erased : the probability, for every input alike, of a further output that says nothing.
    """

    matrix: Array
    value: float
    rows: Array
    multipliers: tuple[Array, ...]
    weights: Array
    erased: float = 0.0

    @property
    def whole(self) -> Array:
        """The matrix with the output that says nothing, where there is one: (k, n) or (k, n + 1)."""
        if self.erased <= 0:
            return self.matrix
        return np.hstack([self.matrix, np.full((len(self.matrix), 1), self.erased)])


def label_program(
    gains: Array | Gains, terms: Sequence[Term | Ratio], expressions: Sequence[Expression] = (), erasure: bool = False
) -> Solved:
    """Solve for `gains` (n, k), the linear utility of each label; see the module for the program.

    Of several criteria, `gains` (criteria, n, k), the smallest utility is maximised; their `weights` are dual values.
    `erasure` : a constant column is worth nothing, so that a further output that says nothing may be used.
    """
    made = gains if isinstance(gains, Gains) else Gains.of(gains)
    widest = max((_farthest(term) for term in terms), default=1.0)
    for farthest, nearer in pairwise(FARTHEST):
        try:
            return _solved(made, terms, expressions, erasure, farthest)
        except SolverError:
            if widest <= nearer:
                raise
    return _solved(made, terms, expressions, erasure, FARTHEST[-1])


def _solved(
    made: Gains, terms: Sequence[Term | Ratio], expressions: Sequence[Expression], erasure: bool, farthest: float
) -> Solved:
    """The program with ratios up to `farthest`."""
    import cvxpy as cp

    each, flat = made.each.reshape(-1, *made.each.shape[-2:]), made.flat.reshape(-1, made.flat.shape[-1])
    n, k = each.shape[-2:]
    near, capped = zip(*(_within_reach(term, farthest) for term in terms), strict=True) if terms else ((), ())
    q = Split.of(cp, (k, n), [] if expressions else near, erasure)
    posed = []
    constraints: list[Any] = list(q.rows)
    for term in near:
        posed.append(pose_term(cp, q if q.split else q.whole, term))
        constraints += posed[-1]
    for expression in expressions:
        constraints += list(expression(q.whole))
    values = [q.gain(cp, *one) for one in zip(each, flat, strict=True)]
    least = cp.Variable() if len(values) > 1 else values[0]
    above = [value >= least for value in values] if len(values) > 1 else []
    problem = cp.Problem(cp.Maximize(least), [*constraints, *above])
    slack = sum(len(term) for term in terms) * n
    cones = bool(expressions) or any(isinstance(term, Moment) for term in terms)
    solve(problem, "label program", CONIC if cones else INTERIOR if slack > SMALL else SIMPLEX)
    multipliers = tuple(
        term_multiplier(term, one, q.unit) * share for term, one, share in zip(near, posed, capped, strict=True)
    )
    rows = row_multipliers(q.multipliers(), near, posed)
    weights = np.array([max(float(one.dual_value), 0.0) for one in above] or [1.0])
    return Solved(q.value, float(problem.value), rows, multipliers, weights / weights.sum(), q.erased)


FARTHEST = (1e8, 1e6, 1e4)
"""Ratios above this are posed as this one, the smaller ones where a solver fails: it loses about so small a share."""


def _farthest(term: Term | Ratio) -> float:
    """The largest ratio that a term names."""
    if isinstance(term, Ratio):
        return term.ratio
    return float(term.factor.max(initial=1.0)) if isinstance(term, HockeyStick) else 1.0


def _within_reach(term: Term | Ratio, farthest: float) -> tuple[Term | Ratio, Any]:
    """The term with ratios that a solver can tell from 0 and infinity, and by what its multipliers shrink."""
    if _farthest(term) <= farthest:
        return term, 1.0
    if isinstance(term, Ratio):
        return Ratio(farthest), 1.0
    assert isinstance(term, HockeyStick)
    # What the right-hand input pays, factor times multiplier, stays.
    factor = np.minimum(term.factor, farthest)
    return replace(term, factor=factor), factor / term.factor


@dataclass(frozen=True, eq=False)
class Split:
    """The matrix variable of a program: columns  level base_i + unit rise_i  with rise >= 0, in units that suit the terms.

    Where constraints leave rows little apart, a solver's absolute accuracy is enough for the parts, not for their sum.
    base : (1, n) variable, None where the columns are `rise` alone. rest : what an output that says nothing takes.
    """

    unit: float
    level: float
    base: Any
    rise: Any
    rest: Any
    rows: tuple[Any, ...]

    @classmethod
    def of(cls, cp: Any, shape: tuple[int, int], terms: Sequence[Term | Ratio], erasure: bool) -> Split:
        """The variables, and the equations that say that rows sum to one."""
        k, n = shape
        rise = cp.Variable((k, n), nonneg=True)
        unit = min((_reach(term) for term in terms if isinstance(term, Ratio) or len(term)), default=1.0)
        if unit > SPLIT or any(isinstance(term, Moment) for term in terms):
            return cls(1.0, 1.0, None, rise, None, (cp.sum(rise, axis=1) == np.ones(k),))
        widest = max((_width(term) for term in terms), default=0.0)
        level = min(1.0, unit / widest) if widest > 0 else 1.0
        base, share = cp.Variable((1, n), nonneg=True), cp.Variable(nonneg=True)
        whole = cp.sum(base) + unit / level * share
        total = whole <= 1 / level if erasure else whole == 1 / level
        return cls(unit, level, base, rise, share, (cp.sum(rise, axis=1) - share == np.zeros(k), total))

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
        return self.rise.shape

    def above(self, left: Any, right: Any, factor: Array) -> Any:
        """Q[left] - factor Q[right] in units of `unit`, for matrices that pick the rows, `factor` in `right` already."""
        apart = (left - right) @ self.rise
        if not self.split:
            return apart
        return apart - (factor - 1)[:, None] * (self.level / self.unit) @ self.base

    def gain(self, cp: Any, each: Array, flat: Array) -> Any:
        """The linear utility of the matrix."""
        gained = cp.sum(cp.multiply(self.unit * each.T, self.rise))
        return gained + self.level * flat @ self.base[0] if self.split else gained

    def multipliers(self) -> Array:
        """Of the row sums."""
        return np.array(self.rows[0].dual_value) / self.unit

    @property
    def value(self) -> Array:
        """The solved matrix (k, n)."""
        rise = np.maximum(np.asarray(self.rise.value), 0.0)
        if not self.split:
            return np.asarray(self.rise.value)
        return np.asarray(self.level * np.maximum(np.asarray(self.base.value), 0.0) + self.unit * rise)

    @property
    def erased(self) -> float:
        """What is left for an output that says nothing."""
        if not self.split:
            return 0.0
        used = self.level * float(np.maximum(self.base.value, 0.0).sum()) + self.unit * float(self.rest.value)
        return max(1.0 - used, 0.0)


SPLIT = 0.05
"""Below this reach of the constraints, columns are posed in two parts."""


def _reach(term: Term | Ratio) -> float:
    """About how far apart a term lets two rows be, at most 1."""
    if isinstance(term, Ratio):
        return min(1.0, term.ratio - 1)
    if isinstance(term, HockeyStick):
        return min(1.0, float(np.max((term.factor - 1) + term.cap)))
    return min(1.0, math.sqrt(term.cap))


def _width(term: Term | Ratio) -> float:
    """How much larger than a column's base its entries may be by this term, 0 where that is not said."""
    if isinstance(term, Ratio):
        return term.ratio - 1
    return float((term.factor - 1).max(initial=0.0)) if isinstance(term, HockeyStick) else 0.0


def row_multipliers(rows: Array, terms: Sequence[Term | Ratio], posed: Sequence[list[Any]]) -> Array:
    """The dual values of the row sums, with what moments posed on the power alone owe to them."""
    for term, made in zip(terms, posed, strict=True):
        if isinstance(term, Moment) and term.order not in (1, 2) and term.cap >= LARGE:
            # Back to psi: its linear part is charged to the rows.
            weight = np.maximum(np.asarray(made[2].dual_value), 0.0) / (1 + term.cap)
            np.add.at(rows, term.left, term.order * weight)
            np.add.at(rows, term.right, -(term.order - 1) * weight)
    return rows


def scaled(term: Term | Ratio, values: Array, scale: float) -> Array:
    """A multiplier times `scale`; of a moment's (pair, label, ratio, weight) only the weight scales."""
    return values * np.array([1.0, 1.0, 1.0, scale])[:, None] if isinstance(term, Moment) else values * scale


def term_expressions(terms: Sequence[Term | Ratio], q: Any) -> list[Any]:
    """The terms as cvxpy constraints on the matrix variable `q` (k, m)."""
    import cvxpy as cp

    return [constraint for term in terms for constraint in pose_term(cp, q, term)]


def pose_term(cp: Any, q: Any, term: Term | Ratio) -> list[Any]:
    """One term as cvxpy constraints on the matrix variable `q`, in the order that `term_multiplier` reads."""
    k, n = q.shape
    if isinstance(term, Ratio) and isinstance(q, Split):
        return [q.rise <= np.ones((k, 1)) @ ((term.ratio - 1) * q.level / q.unit * q.base)]
    if isinstance(term, Ratio):
        floor = np.ones((k, 1)) @ cp.Variable((1, n), nonneg=True)
        return [q >= floor, q <= term.ratio * floor]
    if len(term) == 0:
        return []
    if isinstance(term, HockeyStick):
        left, right = _pick(term.left, np.ones(len(term)), k), _pick(term.right, term.factor, k)
        scaled = isinstance(q, Split)
        above = q.above(left, right, term.factor) if scaled else left @ q - right @ q
        if not term.cap.any():
            return [above <= 0]
        slack = cp.Variable((len(term), n), nonneg=True)
        return [slack >= above, cp.sum(slack, axis=1) <= (term.cap / q.unit if scaled else term.cap)]
    assert isinstance(term, Moment)
    a, b = (_pick(at, np.ones(len(term)), k) @ q for at in (term.left, term.right))
    # Slack in units of the cap, so that large and small caps are equally well conditioned.
    slack = cp.Variable((len(term), n))
    caps = cp.sum(slack, axis=1) <= np.ones(len(term))
    order, cap = term.order, term.cap
    if order == 1:
        # a log(a/b) <= cap slack + a - b
        return [cp.constraints.ExpCone(-cap * slack - a + b, a, b), caps]
    if order == 2:
        # (a - b)^2 <= cap slack b: the same set as a second-order cone, which solvers know best.
        bottom, side = cp.vec(slack + b, order="F"), cp.vec(2 / np.sqrt(cap) * (a - b), order="F")
        return [cp.SOC(bottom, cp.vstack([side, cp.vec(slack - b, order="F")]), axis=0), caps]
    return _pose_power(cp, term, a, b)


def _pose_power(cp: Any, term: Moment, a: Any, b: Any) -> list[Any]:
    """a^o b^(1-o) <= moment as a tower of second-order cones, far better solved than a power cone.

    The tower is for a fraction near 1/o, on copies of a and b: the dual values of the copies are the slopes of the
    tangent plane, whatever the tower. Above `LARGE` the linear part of psi, a constant in sum, is left out.
    """
    from cvxpy.utilities.power_tools import gm_constrs

    order, size = term.order, a.shape[0] * a.shape[1]
    share = Fraction(1 / order).limit_denominator(4096)
    first, second, slack = cp.Variable(size), cp.Variable(size, nonneg=True), cp.Variable(a.shape)
    links = [first == cp.vec(a, order="F"), second == cp.vec(b, order="F")]
    if term.cap < LARGE:
        moment, scale = term.cap * cp.vec(slack, order="F") + order * first - (order - 1) * second, 1.0
    else:
        moment, scale = cp.vec(slack, order="F"), (1 + term.cap) ** (-1 / order)
    tower = gm_constrs(scale * first, [moment, second], (share, 1 - share))
    return [*links, cp.sum(slack, axis=1) <= np.ones(len(term)), *tower]


def _pick(at: Index, weight: Array, k: int) -> Any:
    import scipy.sparse as sparse

    return sparse.csr_array((weight, (np.arange(len(at)), at)), shape=(len(at), k))


def term_multiplier(term: Term | Ratio, made: list[Any], unit: float = 1.0) -> Array:
    """The multiplier of a solved term posed in a `unit`, as the term's own `support` takes it."""
    if isinstance(term, Ratio) or len(term) == 0:
        return np.zeros((0, 0))
    if isinstance(term, Moment):
        return _cone_multiplier(term, made)
    return np.asarray(np.maximum(np.asarray(made[0].dual_value), 0.0).T) / unit


def _cone_multiplier(term: Moment, made: list[Any]) -> Array:
    """The tangent plane of each cone's dual point: its weight, and the ratio that gives its coefficient of a.

    The plane's coefficient of b is then on the safe side, because the dual point lies in the dual cone.
    """
    tiny = 1e-300
    parts = [np.asarray(value) for value in made[0].dual_value] if term.order in (1, 2) else []
    if term.order == 2:
        side, last = parts[1].reshape(2, -1) if parts[1].shape[0] == 2 else parts[1].T
        weight = np.maximum(parts[0].ravel() + last, tiny) / term.cap
        ratio = 1 - side / (weight * np.sqrt(term.cap))
    elif term.order == 1:
        first, second, _ = (part.ravel(order="F") for part in parts)
        weight = np.maximum(-first, tiny)
        ratio = np.exp(np.clip((first - second) / weight, -20.0, 20.0))
    else:
        slope = -np.asarray(made[0].dual_value)
        whole = 1 + term.cap if term.cap >= LARGE else term.cap
        each = np.maximum(np.asarray(made[2].dual_value), tiny) / whole
        weight = np.tile(each, len(slope) // len(term))
        power = slope / (weight * term.order) + (0.0 if term.cap >= LARGE else 1.0)
        ratio = np.maximum(power, tiny) ** (1 / (term.order - 1))
    label, pair = np.divmod(np.arange(len(weight)), len(term))
    top = np.exp(min(250.0, 600 / term.order))  # the tangent plane's slopes stay finite
    return np.stack([pair, label, np.clip(ratio, 1e-250, top), weight])
