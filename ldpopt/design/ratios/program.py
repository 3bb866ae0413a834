"""The ratio-labelled program: the best channel with one output for each label, and a linear utility of each output.

A label stands for a likelihood ratio, at which the linear utility is a tangent of the divergence, or for an interval of
ratios, on which it is the chord.

A linear utility of a column q is written as  slope (P0 - P1).q + level (weights).q , so that hypotheses that are nearly
equal, and reports that say little, lose no digits. `LabelGains` stores the gain of a constant column separately,
because the gains of its entries cancel.
    max  sum_i c_i . Q[:, i]   s.t.  Q 1 = 1  (lambda),  Q >= 0,  the terms (z, nu)  and the users' own constraints.

The program is linear for hockey-stick terms; moment terms enter as second-order, power or exponential cones. The dual
values come back in the form in which `constraints.terms` proves bounds.

The points where the ratio-labelled program cuts the likelihood ratios: knots s = P0/(P0 + P1), both ends included.

Distances are measured in log-ratios log s/(1 - s), in units of their range, so that hypotheses that are nearly equal,
and masses that are nearly zero, are cut as finely as others.

They lie within the posteriors that the ratios allow which constraints leave between entries of a column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.design.constraints.base import Expression
from ldpopt.design.constraints.terms import ByKind, Term
from ldpopt.design.problems.reduction import Pair, excess_at, marginals
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


FINEST = 25  # Graded knots begin at an eighth of the step of this many even ones
FAR = 21.0  # Even knots end at this log-ratio
WIDE = 4.0  # A wider range of log-ratios counts as this much, because little happens in most of a wide range


def even_knots(low: float, high: float, count: int) -> Array:
    """Knots that are even in log-ratio, and one at ratio one, where many divergences have a kink."""
    first, last = np.clip(_log_ratio(np.array([low, high])), -FAR, FAR)
    inner = _posterior(np.linspace(first, last, count)[1:-1])
    knots = np.unique(np.concatenate([[low, high, 0.5], inner]))
    return _apart(knots[(knots >= low) & (knots <= high)])


def first_labels(low: float, high: float, tv_bound: float) -> Array:
    """A few posteriors on either side of one half, graded by the distance `tv_bound` that rows may have."""
    ends = np.clip(_log_ratio(np.array([low, high])), -FAR, FAR)
    graded = [end * min(1.0, 6 * tv_bound / abs(end)) * 2.5 ** -np.arange(5) for end in ends.tolist() if end != 0]
    return np.unique(_posterior(np.concatenate([np.zeros(1), *graded])))


def joined_knots(new: Array, old: Array) -> Array:
    """`new` and `old` posteriors in order, without old ones that are next to a new one; 1/2 stays."""
    return np.unique(np.concatenate([new, old[far_from(old, new) | (old == 0.5)]]))


def far_from(old: Array, new: Array) -> npt.NDArray[np.bool_]:
    """Whether each of the `old` posteriors is not next to a `new` one."""
    near = np.abs(_log_ratio(old)[:, None] - _log_ratio(new)[None, :]).min(axis=1, initial=np.inf)
    return np.asarray(near > 1e-9 * _range(old[[0, -1]]))


def graded_knots(knots: Array, posteriors: Array) -> Array:
    """The knots, with more at the `posteriors` and around them, at distances that shrink by factors of eight."""
    step = _range(knots) / FINEST * 8.0 ** -np.arange(0, 4)
    new = _posterior(_log_ratio(posteriors)[:, None] + np.concatenate([[0.0], step, -step])).ravel()
    return _apart(np.unique(np.concatenate([knots, posteriors, np.clip(new, knots[0], knots[-1])])), 1e-7)


def cut_knots(knots: Array, posterior: Array, lossy: npt.NDArray[np.bool_]) -> Array:
    """The knots, with `lossy` intervals cut at their outputs' `posterior`, (n,), and a sixteenth to each side of it."""
    cut = np.flatnonzero(lossy)
    inside = np.clip(posterior[cut], knots[cut], knots[cut + 1])
    middle, step = _log_ratio(inside), np.diff(_log_ratio(knots))[cut] / 16
    around = _posterior(np.concatenate([middle - step, middle + step]))
    new = np.clip(np.concatenate([inside, around]), knots[0], knots[-1])
    return _apart(np.unique(np.concatenate([knots, new])))


def parted_knots(knots: Array, parts: npt.NDArray[np.intp]) -> Array:
    """The knots, with every interval cut into its number of `parts`, (n,), evenly in log-ratio."""
    logs = _log_ratio(knots)
    interval = np.repeat(np.arange(len(parts)), parts - 1)
    first = np.cumsum(parts - 1) - (parts - 1)
    share = (np.arange(len(interval)) - first[interval] + 1) / parts[interval]
    new = _posterior(logs[interval] + share * np.diff(logs)[interval])
    return _apart(np.unique(np.concatenate([knots, np.clip(new, knots[0], knots[-1])])))


def _log_ratio(s: Array) -> Array:
    """log s/(1 - s), without cancellation near s = 1/2; for 0 and 1, the value at the float next to them."""
    s = np.clip(s, 5e-324, 1 - 2.0**-53)
    tilt = 2 * s - 1
    near = np.abs(tilt) < 0.5
    far = np.log(s) - np.log1p(-s)
    return np.asarray(np.where(near, 2 * np.arctanh(np.where(near, tilt, 0.0)), far))


def _posterior(log_ratio: Array) -> Array:
    small = np.exp(-np.abs(log_ratio))
    return np.asarray(np.where(log_ratio < 0, small, 1.0) / (1 + small))


def _range(knots: Array) -> float:
    return float(min(np.ptp(_log_ratio(knots[[0, -1]])), WIDE))


def _apart(knots: Array, least: float = 1e-9) -> Array:
    """The knots that are at least `least` of their range apart; both ends and the ratio one always stay."""
    logs = _log_ratio(knots)
    kept = np.concatenate([[True], np.diff(logs) > least * _range(knots)])
    kept[-1] = True
    half = knots == 0.5
    if half.any():
        # A kink at ratio one, and the label that says nothing, need the exact knot: its close neighbours go instead.
        kept |= half
        near = np.abs(logs) <= least * _range(knots)
        near[[0, -1]] = False
        kept &= half | ~near
    chosen = knots[kept]
    return np.asarray(chosen) if len(chosen) > 1 else np.asarray([knots[0], np.nextafter(knots[0], 1.0)])


def allowed_posteriors(pair: Pair, terms: Sequence[Term], low: float, high: float) -> tuple[float, float]:
    """About the range of posteriors that columns can have, within `low` and `high`.

    A column q with entries between m and ratio m has (P0 - P1).q of at most (ratio - 1) m times the total variation of
    the hypotheses.
    """
    ratio = widest_ratio(terms, len(pair))
    if not ratio < 2:
        return low, high
    tilt = 0.55 * (ratio - 1) * float(np.maximum(pair.difference, 0.0).sum())
    return max(low, 0.5 - tilt), min(high, 0.5 + tilt)


def widest_ratio(terms: Sequence[Term], inputs: int) -> float:
    """The largest ratio between two entries of a column; inf where none is implied."""
    from scipy.sparse.csgraph import shortest_path

    kinds = ByKind(terms)
    spread = np.full((inputs, inputs), np.log(kinds.ratio))
    for _, term in kinds.sticks:
        bound = term.cap <= 0
        np.minimum.at(spread, (term.left[bound], term.right[bound]), (term.epsilon * term.weight)[bound])
    if not np.isfinite(spread).any():
        return np.inf
    np.fill_diagonal(spread, 0.0)
    longest = float(shortest_path(np.where(spread > 0, spread, 1e-300), method="FW").max())
    return float(np.exp(min(longest, 700.0))) if np.isfinite(longest) else np.inf
