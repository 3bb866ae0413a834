"""The ratio-labeled program: the best channel with one output per label, and a linear utility of each output.

A label is a likelihood ratio or an interval of ratios. At a ratio the linear utility is a tangent of the divergence, on
an interval it is the chord.

A linear utility of a column q is written as  slope (P0 - P1).q + level (weights).q , so that nearly equal hypotheses
and nearly uninformative reports lose no digits. `LabelGains` stores the gain of a constant column separately, because
the gains of its entries cancel.

~~max  sum_i c_i . Q[:, i]   s.t.  Q 1 = 1  (lambda),  Q >= 0,  the terms (z, nu)  and the user-defined constraints. |

The program is linear for hockey-stick terms; moment terms enter as second-order, power or exponential cones. The dual
values are returned in the form that `constraints.terms` uses to prove bounds.

The program cuts the likelihood ratios at knots s = P0/(P0 + P1), including both ends. Distances are measured in
log-ratios log s/(1 - s), in units of their range. So nearly equal hypotheses and nearly zero masses are cut as finely
as others. The knots lie within the posteriors that the constraints allow.
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

# Closer to ratio one, slopes are computed from differences of the excess, which have all digits there.
CLOSE_TO_RATIO_ONE = 2.0**-12


@dataclass(frozen=True, eq=False)
class LabelGains:
    """Linear utilities of labels. entries : (n, k) the gain of every input's entry. constant : (n,) that of a column of
    ones.
    """

    entries: Array
    constant: Array

    @classmethod
    def from_entries(cls, entry_gains: Array) -> LabelGains:
        """Return utilities whose gains do not cancel."""
        return cls(entry_gains, entry_gains.sum(axis=-1))

    def __truediv__(self, scale: float) -> LabelGains:
        return LabelGains(self.entries / scale, self.constant / scale)


def chord_gains(f: FDivergence, pair: Pair, knots: Array) -> LabelGains:
    """Return the chords of the divergence between neighboring posteriors `knots`, above it for columns in between."""
    tilt, height = 2 * knots - 1, excess_at(f, knots)
    width = np.diff(tilt)
    finite = np.isfinite(height[[0, -1]])
    if not finite.all():
        # Next to an end of infinite divergence, use the tangent at the nearest cut (`tail_tangents`).
        gains = [chord_gains(f, pair, knots[int(not finite[0]) : len(knots) - int(not finite[1])])]
        gains = gains if finite[0] else [tangents_at(f, pair, knots[1:2]), *gains]
        gains = gains if finite[1] else [*gains, tangents_at(f, pair, knots[-2:-1])]
        return LabelGains(np.concatenate([g.entries for g in gains]), np.concatenate([g.constant for g in gains]))
    slope = np.diff(height) / width
    # At posterior 1/2 the divergence is zero, and the chords on either side pass through zero exactly.
    level = (height[:-1] * tilt[1:] - height[1:] * tilt[:-1]) / width
    return LabelGains(slope[:, None] * pair.difference + level[:, None] * (pair.p0 + pair.p1), 2 * level)


def tangent_gains(f: FDivergence, pair: Pair, matrix: Array) -> LabelGains:
    """Return the planes that touch the divergence at the columns of `matrix`, and lie below it."""
    d, a, b = marginals(pair, matrix)
    return tangents_of(f, pair, d, a, b)


def tangents_at(f: FDivergence, pair: Pair, posterior: Array) -> LabelGains:
    """Return the planes that touch the divergence at posteriors."""
    return tangents_of(f, pair, 2 * posterior - 1, posterior, 1 - posterior)


def tangents_of(f: FDivergence, pair: Pair, d: Array, a: Array, b: Array) -> LabelGains:
    """Return the planes that touch the divergence at marginals a = b + d."""
    b = np.where(b > 0, b, np.finfo(float).tiny)
    x = np.clip(d / b, -1.0, None)
    is_close = np.abs(x) < CLOSE_TO_RATIO_ONE
    ratio = np.clip(a / b, 1e-12, 1e12)
    far_slope = np.asarray(f.derivative(ratio)) - float(f.derivative(1.0))
    step = np.where(is_close, x, CLOSE_TO_RATIO_ONE) * 2.0**-17
    close_tilt = np.where(is_close, x, CLOSE_TO_RATIO_ONE)
    # A difference over a step of relative size 2^-17: right to about 2^-34, and 0 at x = 0.
    rise = np.asarray(f.excess_of(close_tilt + step, 1.0)) - np.asarray(f.excess_of(close_tilt - step, 1.0))
    near_slope = np.where(close_tilt == 0, 0.0, rise / np.where(step == 0, 1.0, 2 * step))
    slope = np.where(is_close, near_slope, far_slope)
    height = np.where(is_close, f.excess_of(close_tilt, 1.0), f.excess(ratio, np.ones_like(ratio)))
    level = height - np.where(is_close, x, ratio - 1) * slope
    return LabelGains(slope[:, None] * pair.difference + level[:, None] * pair.p1, np.asarray(level))


MAX_SLACKS = 4000  # Up to this many slack variables the simplex method is faster


@dataclass(frozen=True, eq=False)
class LabelSolution:
    """A solved program: the matrix (k, n), its objective, the row multipliers (k,), and one multiplier per term.

    - `weights` : (criteria,) dual values of the criteria.
    - `erased` : the probability, for every input, of a further uninformative output.
    - `total` : the sum of `rows` by the multiplier of another equation, None if there is none.
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
    def with_erasure(self) -> Array:
        """The matrix with the uninformative output, if there is one: (k, n) or (k, n + 1)."""
        if self.erased <= 0:
            return self.matrix
        return np.hstack([self.matrix, np.full((len(self.matrix), 1), self.erased)])


def label_program(
    gains: Array | LabelGains,
    terms: Sequence[Term],
    expressions: Sequence[Expression] = (),
    erasure: bool = False,
    level: float | None = None,
) -> LabelSolution:
    """Solve for `gains` (n, k), the linear utility of each label; see the module for the program.

    With several criteria, `gains` (criteria, n, k), the smallest utility is maximized; `LabelSolution.weights` are
    their dual values.

    - `erasure` : True if a constant column has value 0, so that a further uninformative output may be used.
    - `level` : the unit of the common part of all rows; None chooses it by the smallest columns that matter.
    """
    label_gains = gains if isinstance(gains, LabelGains) else LabelGains.from_entries(gains)
    largest_ratio = max((term.farthest for term in terms), default=1.0)
    for limit, next_limit in pairwise(RATIO_LIMITS):
        try:
            return _solve_within_ratio(label_gains, terms, expressions, erasure, limit, level)
        except SolverError:
            if largest_ratio <= next_limit:
                raise
    return _solve_within_ratio(label_gains, terms, expressions, erasure, RATIO_LIMITS[-1], level)


def _solve_within_ratio(
    label_gains: LabelGains, terms: Sequence[Term], expressions: Sequence[Expression], erasure: bool, max_ratio: float,
    level: float | None,
) -> LabelSolution:  # fmt: skip
    """Solve the program with ratios up to `max_ratio`."""
    import cvxpy as cp

    entry_gains = label_gains.entries.reshape(-1, *label_gains.entries.shape[-2:])
    constant_gains = label_gains.constant.reshape(-1, label_gains.constant.shape[-1])
    n, k = entry_gains.shape[-2:]
    if level is not None:
        max_ratio = ratio_limit(max_ratio, terms, expressions)
    near_terms, shares = zip(*(term.limit_ratio(max_ratio) for term in terms), strict=True) if terms else ((), ())
    q = MatrixVariable.from_terms(cp, (k, n), [] if expressions else near_terms, erasure, level)
    term_constraints = []
    constraints: list[Any] = list(q.rows)
    for term in near_terms:
        term_constraints.append(term.pose_split(q) if q.split else term.pose(q.full_matrix))
        constraints += term_constraints[-1]
    for expression in expressions:
        constraints += list(expression(q.full_matrix))
    values = [q.gain(cp, *item) for item in zip(entry_gains, constant_gains, strict=True)]
    worst_value = cp.Variable() if len(values) > 1 else values[0]
    criterion_constraints = [value >= worst_value for value in values] if len(values) > 1 else []
    problem = cp.Problem(cp.Maximize(worst_value), [*constraints, *criterion_constraints])
    slack = sum(len(term) for term in terms) * n
    cones = bool(expressions) or any(term.conic for term in terms)
    solve(problem, "label program", CONIC if cones else INTERIOR if slack > MAX_SLACKS else SIMPLEX)
    multipliers = tuple(
        term.scaled(term.multiplier(item), 1 / q.unit) * share
        for term, item, share in zip(near_terms, term_constraints, shares, strict=True)
    )
    rows = q.multipliers()
    for term, item in zip(near_terms, term_constraints, strict=True):
        term.on_rows(rows, item)  # add the linear parts of moments, which the program leaves out
    weights = np.array([max(float(item.dual_value), 0.0) for item in criterion_constraints] or [1.0])
    return LabelSolution(q.value, float(problem.value), rows, multipliers, weights / weights.sum(), q.erased, q.total)


# Larger ratios are replaced by the first, which loses about its inverse; by the others only if a solver fails.
RATIO_LIMITS = (1e8, 1e6, 1e4)


@dataclass(frozen=True, eq=False)
class MatrixVariable:
    """The matrix variable of a program: columns  level base_i + unit rise_i  with rise >= 0, in units of the terms.

    If constraints keep rows close together, the absolute accuracy of a solver is enough for the two parts, not for
    their sum.

    base : (1, n) variable, None if the columns are `rise` alone.
    rest : the sum of the rises in each row.
    rows : the equations that rows sum to one.
    """

    unit: float
    level: float
    base: Any
    rise: Any
    rest: Any
    rows: tuple[Any, ...]

    @classmethod
    def from_terms(
        cls, cp: Any, shape: tuple[int, int], terms: Sequence[Term], erasure: bool, level: float | None = None
    ) -> MatrixVariable:
        """Build the variables and the equations of the rows; `level` is chosen if it is None."""
        k, n = shape
        rise = cp.Variable((k, n), nonneg=True)
        unit = MatrixVariable.unit_of(terms)
        if not 0 < unit <= SPLIT_TV_BOUND or any(term.conic for term in terms):
            return cls(1.0, 1.0, None, rise, None, (cp.sum(rise, axis=1) == np.ones(k),))
        widest = max((term.width for term in terms), default=0.0)
        if level is None:
            level = min(1.0, unit / widest) if widest > 0 else 1.0
        base, share = cp.Variable((1, n), nonneg=True), cp.Variable(nonneg=True)
        total_mass = cp.sum(base) + unit / level * share
        total = total_mass <= 1 / level if erasure else total_mass == 1 / level
        return cls(unit, level, base, rise, share, (cp.sum(rise, axis=1) - share == np.zeros(k), total))

    @staticmethod
    def unit_of(terms: Sequence[Term]) -> float:
        """Estimate the largest distance of two rows within the terms, at most 1."""
        return min((term.tv_bound for term in terms if term.pure or len(term)), default=1.0)

    @property
    def split(self) -> bool:
        """True if columns have two parts."""
        return self.base is not None

    @property
    def full_matrix(self) -> Any:
        """The matrix as one expression."""
        if not self.split:
            return self.rise
        return self.level * np.ones((self.rise.shape[0], 1)) @ self.base + self.unit * self.rise

    @property
    def shape(self) -> tuple[int, int]:
        """The shape (k, n) of the matrix."""
        k, n = self.rise.shape
        return int(k), int(n)

    def gain(self, cp: Any, entry_gains: Array, constant_gains: Array) -> Any:
        """Return the linear utility of the matrix."""
        gain = cp.sum(cp.multiply(self.unit * entry_gains.T, self.rise))
        return gain + self.level * constant_gains @ self.base[0] if self.split else gain

    def multipliers(self) -> Array:
        """Return the multipliers (k,) of the row sums."""
        return np.array(self.rows[0].dual_value) / self.unit

    @property
    def total(self) -> float | None:
        """The multiplier of the common part of all rows, a more accurate sum of the row multipliers."""
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
        """The remaining probability, for an uninformative output."""
        if not self.split:
            return 0.0
        used_mass = self.level * float(np.maximum(self.base.value, 0.0).sum()) + self.unit * float(self.rest.value)
        return max(1.0 - used_mass, 0.0)


def ratio_limit(max_ratio: float, terms: Sequence[Term], expressions: Sequence[Expression]) -> float:
    """Return the largest ratio for columns in two parts at level 1: a rise of one unit on a base of 1/`max_ratio`."""
    unit = MatrixVariable.unit_of(terms)
    return max_ratio if unit > SPLIT_TV_BOUND or expressions else min(max_ratio, 1 + max_ratio * unit)


SPLIT_TV_BOUND = 0.05  # If the constraints keep rows closer than this, columns have two parts


GRADING_KNOTS = 25  # Graded knots begin at an eighth of the step of this many uniform ones
MAX_LOG_RATIO = 21.0  # Uniform knots end at this log-ratio
MAX_LOG_RATIO_RANGE = 4.0  # A wider range of log-ratios counts as this much


def uniform_knots(low: float, high: float, count: int) -> Array:
    """Return knots that are uniform in log-ratio, and one at ratio one, where many divergences have a kink."""
    first, last = np.clip(_log_ratio(np.array([low, high])), -MAX_LOG_RATIO, MAX_LOG_RATIO)
    inner = _posterior(np.linspace(first, last, count)[1:-1])
    knots = np.unique(np.concatenate([[low, high, 0.5], inner]))
    return _drop_close_knots(knots[(knots >= low) & (knots <= high)])


def first_labels(low: float, high: float, tv_bound: float) -> Array:
    """Return a few posteriors on either side of one half, graded by the distance `tv_bound` of rows."""
    ends = np.clip(_log_ratio(np.array([low, high])), -MAX_LOG_RATIO, MAX_LOG_RATIO)
    graded_ratios = [
        end * min(1.0, 6 * tv_bound / abs(end)) * 2.5 ** -np.arange(5) for end in ends.tolist() if end != 0
    ]
    return np.unique(_posterior(np.concatenate([np.zeros(1), *graded_ratios])))


def joined_knots(new: Array, old: Array) -> Array:
    """Merge `new` and `old` posteriors in order, without old ones that are next to a new one; 1/2 stays."""
    return np.unique(np.concatenate([new, old[is_not_adjacent(old, new) | (old == 0.5)]]))


def is_not_adjacent(old: Array, new: Array) -> npt.NDArray[np.bool_]:
    """Return True for each of the `old` posteriors that is not next to a `new` one."""
    distance = np.abs(_log_ratio(old)[:, None] - _log_ratio(new)[None, :]).min(axis=1, initial=np.inf)
    return np.asarray(distance > 1e-9 * _range(old[[0, -1]]))


def graded_knots(knots: Array, posteriors: Array) -> Array:
    """Add knots at the `posteriors` and around them, at distances that shrink by factors of eight."""
    step = _range(knots) / GRADING_KNOTS * 8.0 ** -np.arange(0, 4)
    new = _posterior(_log_ratio(posteriors)[:, None] + np.concatenate([[0.0], step, -step])).ravel()
    return _drop_close_knots(np.unique(np.concatenate([knots, posteriors, np.clip(new, knots[0], knots[-1])])), 1e-7)


def cut_knots(knots: Array, posterior: Array, lossy: npt.NDArray[np.bool_]) -> Array:
    """Split `lossy` intervals at their outputs' `posterior`, (n,), and a sixteenth to each side of it."""
    cut_intervals = np.flatnonzero(lossy)
    cut_points = np.clip(posterior[cut_intervals], knots[cut_intervals], knots[cut_intervals + 1])
    middle, step = _log_ratio(cut_points), np.diff(_log_ratio(knots))[cut_intervals] / 16
    cut_sides = _posterior(np.concatenate([middle - step, middle + step]))
    new = np.clip(np.concatenate([cut_points, cut_sides]), knots[0], knots[-1])
    return _drop_close_knots(np.unique(np.concatenate([knots, new])))


def subdivided_knots(knots: Array, parts: npt.NDArray[np.intp]) -> Array:
    """Split every interval into its number of `parts`, (n,), uniformly in log-ratio."""
    logs = _log_ratio(knots)
    interval = np.repeat(np.arange(len(parts)), parts - 1)
    first = np.cumsum(parts - 1) - (parts - 1)
    share = (np.arange(len(interval)) - first[interval] + 1) / parts[interval]
    new = _posterior(logs[interval] + share * np.diff(logs)[interval])
    return _drop_close_knots(np.unique(np.concatenate([knots, np.clip(new, knots[0], knots[-1])])))


def _log_ratio(s: Array) -> Array:
    """Compute log s/(1 - s), without cancellation near s = 1/2; for 0 and 1, the value at the adjacent float."""
    s = np.clip(s, 5e-324, 1 - 2.0**-53)
    tilt = 2 * s - 1
    is_central = np.abs(tilt) < 0.5
    outer = np.log(s) - np.log1p(-s)
    return np.asarray(np.where(is_central, 2 * np.arctanh(np.where(is_central, tilt, 0.0)), outer))


def _posterior(log_ratio: Array) -> Array:
    smaller_ratio = np.exp(-np.abs(log_ratio))
    return np.asarray(np.where(log_ratio < 0, smaller_ratio, 1.0) / (1 + smaller_ratio))


def _range(knots: Array) -> float:
    return float(min(np.ptp(_log_ratio(knots[[0, -1]])), MAX_LOG_RATIO_RANGE))


def _drop_close_knots(knots: Array, min_distance: float = 1e-9) -> Array:
    """Return knots at least `min_distance` of their range apart; both ends and the ratio one always stay."""
    logs = _log_ratio(knots)
    is_kept = np.concatenate([[True], np.diff(logs) > min_distance * _range(knots)])
    is_kept[-1] = True
    is_half = knots == 0.5
    if is_half.any():
        # A kink at ratio one, and the uninformative label, need the exact knot: its close neighbors are dropped.
        is_kept |= is_half
        is_near_half = np.abs(logs) <= min_distance * _range(knots)
        is_near_half[[0, -1]] = False
        is_kept &= is_half | ~is_near_half
    kept_knots = knots[is_kept]
    return np.asarray(kept_knots) if len(kept_knots) > 1 else np.asarray([knots[0], np.nextafter(knots[0], 1.0)])


def allowed_posteriors(pair: Pair, terms: Sequence[Term], low: float, high: float) -> tuple[float, float]:
    """Estimate the range of posteriors that columns can have, within `low` and `high`.

    A column q with entries between m and ratio m has (P0 - P1).q of at most (ratio - 1) m times the total variation of
    the hypotheses.
    """
    ratio = widest_ratio(terms, len(pair))
    if not ratio < 2:
        return low, high
    tilt = 0.55 * (ratio - 1) * float(np.maximum(pair.difference, 0.0).sum())
    return max(low, 0.5 - tilt), min(high, 0.5 + tilt)


def widest_ratio(terms: Sequence[Term], inputs: int) -> float:
    """Return the largest ratio between two entries of a column; inf if none is implied."""
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
