"""Linear utilities above a divergence, one for each interval of likelihood ratios.

An output has marginals (M0, M1), a point of the plane. Between two rays from 0, the convex and homogeneous mu lies
below the chord: the linear function that agrees with mu on both rays. A ray is given by its posterior a = M0/(M0 + M1)
(`hypotheses.Rays`). Where mu is infinite on the last
ray there is no chord: see `tails`.

`residual` is the most that a channel gains beyond its price, where multipliers fall short of the gains of some columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ldpopt.channel import Label
from ldpopt.design.constraints.base import ColumnConstraint, least_spread
from ldpopt.design.kernel.hypotheses import Rays, by_ratio
from ldpopt.design.kernel.numbers import real_array, require
from ldpopt.design.ratios.proof_tails import tail_cost, tail_curve, tails
from ldpopt.design.utilities.laws import Laws
from ldpopt.divergences import FDivergence
from ldpopt.divergences.enclosed import enclosed_excess
from ldpopt.numbers.enclosures import FLOAT, Arithmetic, Enclosure
from ldpopt.values.distribution import Array


@dataclass(frozen=True, eq=False)
class Gains:
    """Linear utilities, one for each label (interval of ratios), of which one is above the true utility at any column.
    values : (labels, k). sums : (labels,) the sums of the values over the inputs, computed without cancellation. charge
    : what must be added to the bound for their use.
    """

    values: Enclosure
    sums: Enclosure
    charge: Enclosure


def rays(laws: Laws, order: Sequence[int], knots: Array, spread: Enclosure | None, arithmetic: Arithmetic) -> Rays:
    """The rays at the cuts `knots[1:-1]`, and at the ends of all posteriors that an output can have. laws : the
    hypotheses. order : the inputs by ratio, the smallest first. spread : a cap on the log-ratio of any two entries of a
    column, or None. No output's ratio is beyond that of the outermost input, nor beyond e^spread: the nearer of the two
    is the end.
    """
    cuts = real_array(knots, (-1,), "the knots")[1:-1]
    require(not len(knots) < 2, "there are no intervals of ratios")
    ends = []
    for x, sign in ((order[0], -1), (order[-1], 1)):
        own = Rays.of_masses(*(part[np.array([x])] for part in (laws.p0, laws.p1, laws.apart)))
        if spread is not None:
            other = Rays.spread(spread.reshape(1), sign > 0)
            if sign * float(other.lean.midpoint[0]) < sign * float(own.lean.midpoint[0]):
                own = other
        ends.append(own)
    a = arithmetic.of(cuts)
    return Rays.joined([ends[0], Rays(a, 1 - a, (a - 0.5) * 2), ends[1]])


def _width(first: Rays, second: Rays) -> Enclosure:
    """second.a - first.a, enclosed by all three forms together."""
    forms = [second.a - first.a, first.b - second.b, (second.lean - first.lean) / 2]
    ends = np.max([form.lower for form in forms], axis=0), np.min([form.upper for form in forms], axis=0)
    return first.a.arithmetic.between(*ends)


def enclosed_chords(
    f: FDivergence, laws: Laws, cut: Rays, knots: Array, constraints: Sequence[ColumnConstraint]
) -> list[Gains]:
    """The chords of the divergence between neighbouring rays, all of them linear utilities above it. Where the
    divergence is infinite at an end, there are several choices: each has the tangent at one of the cuts in place of the
    chords beyond that cut.
    """
    of = cut.a.arithmetic
    on_a, together = _planes(f, cut)
    choices = [(on_a, together, of.zeros(()))]
    for mirrored in open_sides(f, cut):
        choices = [
            (of.where(label, slope, slopes), of.where(label, both, sums), charge + paid)
            for slopes, sums, charge in choices
            for label, slope, both, paid in tails(f, np.asarray(knots, dtype=np.float64), mirrored, constraints, of)
        ]
    return [_gains(laws, *choice) for choice in choices]


def open_chords(f: FDivergence, laws: Laws, cut: Rays) -> Gains:
    """The chords alone; they are not finite next to an end where the divergence is infinite."""
    return _gains(laws, *_planes(f, cut), cut.a.arithmetic.zeros(()))


def open_sides(f: FDivergence, cut: Rays) -> list[bool]:
    """The ends where the divergence is infinite: False for the end of large ratios, True for that of small ones."""
    height = enclosed_excess(f, cut.lean, cut.b, cut.a)
    return [mirrored for end, mirrored in ((0, True), (-1, False)) if not np.isfinite(np.asarray(height.upper)[end])]


def _gains(laws: Laws, on_a: Enclosure, together: Enclosure, charge: Enclosure) -> Gains:
    # c_x = on_a P0 + on_b P1, written with the difference of the two laws, so that nothing cancels.
    return Gains(on_a[:, None] * laws.apart + together[:, None] * laws.p1, together, charge)


def _planes(f: FDivergence, cut: Rays) -> tuple[Enclosure, Enclosure]:
    """Coefficients of M0 - M1 and of M1 of planes that are at least mu on both rays of every interval. The slope is a
    float near the chord's, and the plane passes near mu on the first ray. The most by which it is too low on either ray
    is added as a multiple of M0 + M1, so that errors of mu are not divided by the interval's width.
    """
    of = cut.a.arithmetic
    width = _width(cut[:-1], cut[1:])
    require((np.asarray(width.lower) > 0).all(), "the knots do not increase strictly between the ends of all ratios")
    height = enclosed_excess(f, cut.lean, cut.b, cut.a)
    with np.errstate(all="ignore"):
        slope = (height[1:] * cut.b[:-1] - height[:-1] * cut.b[1:]) / width
        steep = np.nan_to_num(np.asarray(slope.midpoint), nan=0.0, posinf=0.0, neginf=0.0)
        level = np.asarray(((height[:-1] - cut.lean[:-1] * steep) / cut.b[:-1]).midpoint)
        level = np.nan_to_num(level, nan=0.0, posinf=0.0, neginf=0.0)
    missing = of.zeros(width.shape)
    for ends in (slice(None, -1), slice(1, None)):
        missing = missing.maximum(height[ends] - (cut.lean[ends] * steep + cut.b[ends] * level))
    return missing + steep, 2 * missing + level


def posterior_range(
    f: FDivergence, p0: Array, p1: Array, constraints: Sequence[ColumnConstraint], inputs: Sequence[Label]
) -> tuple[float, float] | None:
    """The least and the largest posterior that an output can have, in floats; None where no finite bound exists."""
    laws = Laws.of(p0, p1, FLOAT)
    ends = rays(laws, by_ratio(p0, p1).tolist(), np.array([0.0, 1.0]), least_spread(constraints, inputs, FLOAT), FLOAT)
    infinite = ~np.isfinite(np.asarray(enclosed_excess(f, ends.lean, ends.b, ends.a).upper))
    for end, mirrored in ((0, True), (1, False)):
        curve = tail_curve(f, mirrored)
        if infinite[end] and (curve is None or tail_cost(curve, FLOAT.of(2.0), constraints) is None):
            return None
    return float(ends.a.midpoint[0]), float(ends.a.midpoint[1])


STEPS = 60


def enclosed_residual(
    reduced: Enclosure, sums: Enclosure, spread: Enclosure | None, variation: Enclosure | None = None
) -> float:
    """An upper bound on sum_i reduced_i . q_i over all channels with columns q_i.

    reduced : (labels, k), gains less prices. sums : (labels,) their sums over the inputs. spread : a cap D on the
    log-ratio of two entries of a column, None where there is none. variation : a cap on the total variation between any
    two rows, or None.

    Without any cap, columns gain at most sum_x max_i (reduced_ix)_+. With a cap D every column is a multiple of t + a,
    t = 1/(e^D - 1) and 0 <= a <= 1. Row multipliers that are all higher by s cover every gain as soon as, for every
    label,

        t (R_i - k s) + sum_x (reduced_ix - s)_+ <= 0,      R_i the sum of reduced_i.

    They cost k s. R_i is given separately, because t may be large, and the terms of the sum then nearly cancel.

    With a cap V on the variation, subtract from every column its smallest entry. The smallest entries sum to at most
    one, and gain at most the largest R_i. In the rest, a row sums to at most its variations from the k - 1 other rows
    together, (k - 1) V.
    """
    top, total = np.asarray(reduced.upper), np.asarray(sums.upper)
    if not (top < math.inf).all():
        return math.inf
    unpaid = FLOAT.of(np.maximum(top.max(axis=0), 0.0)).sum()
    free = float(unpaid.upper)
    if variation is not None and (total < math.inf).all():
        rest = unpaid * FLOAT.between(variation.lower, variation.upper) * (top.shape[1] - 1)
        near = float((rest + max(float(total.max()), 0.0)).upper)
        free = near if near < free else free
    if spread is None or not (total < math.inf).all():
        return free
    exponent = FLOAT.of(spread)
    level = (-exponent).exp() / -(-exponent).expm1()
    if not level.upper < math.inf:
        return free
    inputs, t = top.shape[1], float(level.midpoint)
    shift = _least_shift(top, total, t)
    for _ in range(STEPS):
        left = level * (total - FLOAT.of(shift) * inputs) + (FLOAT.of(top) - shift[:, None]).positive().sum(axis=1)
        over = np.asarray(left.upper)
        if (over <= 0).all():
            return min(free, float((FLOAT.of(float(shift.max())) * inputs).upper))
        above = (top > shift[:, None]).sum(axis=1)
        with np.errstate(all="ignore"):
            step = np.maximum(over, 0.0) / (inputs * t + above)
        shift = np.where(over > 0, np.nextafter((shift + 1.25 * step) * (1 + 2.0**-50), math.inf), shift)
        if not np.isfinite(shift).all():
            break
    return free


def _least_shift(top: Array, total: Array, t: float) -> Array:
    """(labels,) the least s >= 0 for each label, up to rounding, by Newton's method on a convex, falling function."""
    shift, inputs = np.zeros(len(top)), top.shape[1]
    for _ in range(STEPS):
        over = top > shift[:, None]
        with np.errstate(all="ignore"):
            new = (t * total + np.where(over, top, 0.0).sum(axis=1)) / (inputs * t + over.sum(axis=1))
        new = np.where(np.isfinite(new), new, 0.0)
        if not (new > shift).any():
            break
        shift = np.maximum(shift, new)
    return shift


def residual(reduced: Array, ratio: float) -> float:
    """An upper bound on sum_i reduced_i . q_i over matrices with rows summing to one and columns in [m, ratio m]."""
    above = np.maximum(reduced.max(axis=0), 0.0)
    free = float(above.sum())
    if math.isinf(ratio):
        return free
    # Columns scaled to m = 1 have mass at least 1 under any prior, so that no gain per unit of mass is larger.
    gain = reduced.sum(axis=1) + (ratio - 1) * np.maximum(reduced, 0.0).sum(axis=1)
    return min(free, max(0.0, float(gain.max())))
