"""Linear utilities above a divergence, one for each interval of likelihood ratios.

An output has marginals (M0, M1), a point of the plane. Between two rays from 0, the convex and homogeneous mu lies
below the chord: the linear function that agrees with mu on both rays. A ray is given by its posterior a = M0/(M0 + M1)
(`hypotheses.Rays`). Where mu is infinite on the last
ray there is no chord: see `tails`.

`residual` is the most that a channel gains beyond its price, where multipliers fall short of the gains of some columns.

The end of the likelihood ratios where a divergence is infinite: a tangent, and moments that pay for the rest.

Beyond a ratio R, mu is its tangent plane at R plus a rest. A cap on a moment of order o between rows
(`constraints.moment`) pays for the rest. For the power divergences

    f(u) - tangent of f at R  =  c R^p g_p(u/R),      g_o(v) = (v^o - o v + o - 1)/(o - 1),  g_1(v) = v log v - v + 1,

and for u = R v >= R two inequalities hold. First, g_p(v) <= g_o(v) for p <= o, since g_o'(v) = o (v^(o-1) - 1)/(o - 1)
grows with o. Second, R^o psi_o(v) <= psi_o(R v) for psi_o = (o - 1) g_o, since their difference
o v (R^o - R) - (o - 1)(R^o - 1) grows with v and is psi_o(R) >= 0 at v = 1. So the rest is at most
c R^(p-o)/(o-1) psi_o(M0, M1). As psi_o is jointly convex, that is at most the mean of psi_o between the rows of two
inputs drawn from P0 and P1, whose sum over the outputs is capped.

The multipliers that moments have already may pay as well (`End`). Let u = M0/M1 be at least R, and mu be infinite at u
= inf with mu'' = c p u^(p-2). A moment psi (`constraints.moment`) of order o >= p between rows has psi'' = o (o-1)
u^(o-2), or 1/u for o = 1. As mu''/psi'' does not grow with u, let C be its value at R. Then

    mu(M0, M1)  <=  T_mu + C (psi(M0, M1) - T_psi),        T the tangent planes at R.

psi is convex and homogeneous, so that it is at most the sum of its values at pairs of parts of M0 and M1. A pair of
parts of the same input is linear: psi(r q_x, s q_x) = psi(r, s) q_x. For a part of an input x of M0 and a part of
another x' of M1, let W = w (w/v)^(o-1):

    psi(w q_x, v q_x')  =  W psi(q_x, q_x') + o (W - w) q_x - (o-1) (W - v) q_x',
    psi(w q_x, v q_x')  =  w psi(q_x, q_x') + w log(w/v) q_x + (v - w) q_x'                 for o = 1.

So beyond R mu is at most a linear function plus moments between rows, C W for each pair. The multipliers of the
constraint pay for these: a multiplier costs its largest sum over the labels, of which the last label may have some to
spare. Finally kappa (M0 - R M1) >= 0 may be added, for any kappa >= 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Label
from ldpopt.design.constraints.base import ColumnConstraint, least_spread, moment_bound
from ldpopt.design.constraints.moment import Moment
from ldpopt.design.constraints.terms import scatter
from ldpopt.design.kernel.hypotheses import Rays, by_ratio
from ldpopt.design.kernel.numbers import Unproved, real_array, require
from ldpopt.design.utilities.laws import Laws
from ldpopt.divergences import FDivergence
from ldpopt.divergences.enclosed import enclosed_excess, enclosed_slopes
from ldpopt.numbers.enclosures import FLOAT, Arithmetic, Enclosure
from ldpopt.numbers.tolerances import IDLE_MULTIPLIER, LITTLE_COST
from ldpopt.values.distribution import Array, Index


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


BISECTIONS = 60


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
    for _ in range(BISECTIONS):
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
    for _ in range(BISECTIONS):
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


ORDERS = (1.0625, 1.125, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 64.0)
"""The orders of moments that are tried, besides those that constraints name."""
REACHES = 10.0 ** np.arange(1, 16)
"""The cuts nearest to these ratios are tried: a near cut costs more moments, a far cut needs steeper tangents."""


def tails(
    f: FDivergence, knots: Array, mirrored: bool, constraints: Sequence[ColumnConstraint], of: Arithmetic
) -> Iterator[tuple[npt.NDArray[np.bool_], Enclosure, Enclosure, Enclosure]]:
    """For some cuts: the labels beyond, the tangent's coefficients of M0 - M1 and of M1, and the cost of the rest.
    mirrored : whether the infinite end is that of small ratios.
    """
    curve, labels = tail_curve(f, mirrored), len(knots) - 1
    if curve is None:
        raise Unproved(f"{f.name} is infinite at the end of the ratios")
    with np.errstate(all="ignore"):
        ratios = knots[1:-1] / (1 - knots[1:-1])
    far = 1 / ratios if mirrored else ratios
    usable = np.flatnonzero((far > 1) & (far < np.inf))
    require(len(usable), f"no cut is between ratio 1 and the end where {f.name} is infinite")
    tried = {int(usable[np.abs(np.log(far[usable] / reach)).argmin()]) for reach in REACHES}
    some = False
    for cut in sorted(tried):
        s = of.of(float(knots[cut + 1]))
        ratio = s / (1 - s)
        reach = 1 / ratio if mirrored else ratio
        cost = tail_cost(curve, reach, constraints) if float(reach.lower) > 1 else None
        if cost is not None and np.isfinite(cost.upper):
            on_a, on_b = enclosed_slopes(f, ratio, of)
            beyond = np.arange(labels) <= cut if mirrored else np.arange(labels) > cut
            some = True
            yield beyond, on_a, on_a + on_b, cost
    require(some, f"{f.name} is infinite at the end of the ratios, and no moment between rows is capped")


def far_enough(f: FDivergence, mirrored: bool, constraints: Sequence[ColumnConstraint]) -> float | None:
    """A ratio above 1 beyond which the rest costs little, or as little as it can; None where its cost is not finite."""
    curve = tail_curve(f, mirrored)
    if curve is None:
        return None
    costs = [tail_cost(curve, FLOAT.of(float(reach)), constraints) for reach in REACHES[:9]]
    each = [float(cost.upper) for cost in costs if cost is not None]
    if not each:
        return None
    enough = [float(far) for far, cost in zip(REACHES, each, strict=False) if cost <= LITTLE_COST * each[0]]
    # The tangent there is about as steep as R^(p-1), which solvers should still see beside the rest.
    steep = 1e9 if curve[0] <= 1 else 10 ** (5 / float(curve[0] - 1))
    return min(enough[0] if enough else float(REACHES[8]), steep)


def tail_cost(curve: Curve, reach: Enclosure, constraints: Sequence[ColumnConstraint]) -> Enclosure | None:
    """The least cost of the rest of a power divergence beyond a ratio above 1; None where no moment pays for it."""
    of, (degree, bend) = reach.arithmetic, curve
    costs = []
    for order in (1.0, *_orders(constraints)):
        cap = moment_bound(constraints, order, of)
        if cap is not None and order == degree == 1:
            costs.append(cap)  # u log(u/R) - u + R is at most u log u - u + 1 from u = R on
        elif cap is not None and order > 1 and degree <= order:
            share = (reach.log() * (of.of(degree) - order)).exp() / (of.of(order) - 1)
            costs.append(cap * share * bend / of.of(degree))
    return min(costs, key=lambda cost: float(cost.upper), default=None)


Curve = tuple[Fraction, float]
"""(p, cp) of mu'' = cp u^(p-2), exactly. The rest above a tangent is then c R^p g_p."""


def tail_curve(f: FDivergence, mirrored: bool) -> Curve | None:
    """The curve of f or, `mirrored`, of f with its arguments exchanged; None where nothing is proved of it.

    >>> from ldpopt.divergences import CHI_SQUARED
    >>> tail_curve(CHI_SQUARED, False)
    (Fraction(2, 1), 2.0)
    """
    if f.recipe is None:
        return None
    name, *parameters = f.recipe
    if name == "alpha":
        order = 1 - Fraction(parameters[0]) if mirrored else Fraction(parameters[0])
        return (order, 1.0) if order > 1 else None
    degrees = {("kl", False): 1, ("reverse-kl", True): 1, ("chi-squared", False): 2, ("neyman-chi-squared", True): 2}
    degree = degrees.get((name, mirrored))
    return None if degree is None else (Fraction(degree), float(degree))


def _orders(constraints: Sequence[ColumnConstraint]) -> list[float]:
    named = [float(o) for c in constraints for o in (getattr(c, "order", 1.0), *getattr(c, "orders", ()))]
    return sorted({o for o in (*ORDERS, *named) if 1 < o < np.inf})


KEPT = 10.0 ** -np.array([0.3, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0])
"""The shares of M1 that are tried as the part compared with the same inputs of M0."""
TAIL_SHARES = (None, 0.0, 0.25, 0.5, 0.75, 1.0)
"""The powers of R that are tried as the ratio of the cuts of what is left of a multiplier; None keeps its own cuts."""


@dataclass(frozen=True, eq=False)
class SharedEnd:
    """The linear utility `values` (k,) of the last label, and the cuts (4, n) that replace its own of term `number`."""

    number: int
    values: Enclosure
    cuts: Array


@dataclass(frozen=True, eq=False)
class End:
    """The last label: its number, the ratio R where it begins (`reach`), and whether that is a ratio M1/M0. near, far :
    (k,) the law that is larger there, and the other one.
    """

    f: FDivergence
    label: int
    reach: float
    mirrored: bool
    near: Enclosure
    far: Enclosure

    @classmethod
    def of(cls, f: FDivergence, p0: Enclosure, p1: Enclosure, knots: Array, mirrored: bool) -> End | None:
        """The end beyond the last cut; None where that cut is not beyond ratio one, or nothing is proved of f."""
        s = FLOAT.of(float(knots[1 if mirrored else -2]))
        ratio = (1 - s) / s if mirrored else s / (1 - s)
        reach = float(ratio.lower)
        if len(knots) < 3 or tail_curve(f, mirrored) is None or not 1 < reach < np.inf:
            return None
        near, far = (p1, p0) if mirrored else (p0, p1)
        return cls(f, 0 if mirrored else len(knots) - 2, reach, mirrored, near, far)

    def shared(
        self, terms: Sequence[tuple[int, Moment, Array]], rows: Array, arithmetic: Arithmetic
    ) -> SharedEnd | None:
        """The choice that costs least in floats. terms : the number, the pairs and the multiplier of each term."""
        curve = tail_curve(self.f, self.mirrored)
        assert curve is not None
        least, best = np.inf, None
        paid = rows + sum((_support(term, v[:, v[1] == self.label], len(rows)) for _, term, v in terms), np.zeros(()))
        for number, term, values in terms:
            plan = None if Fraction(term.order) < curve[0] else _Plan.of(self, term, values, curve)
            if plan is None:
                continue
            own = values[:, values[1] == self.label]
            others = paid - _support(term, own, len(rows))
            for kept in KEPT:
                gains, reserved = plan.gains(kept, FLOAT)
                for step in TAIL_SHARES:
                    cuts, extra = plan.cuts(reserved, own, step)
                    left = np.asarray(gains.midpoint) - others - _support(term, cuts, len(rows))
                    kappa = plan.kappa(left)
                    with np.errstate(invalid="ignore"):  # a choice whose numbers are not finite costs no number
                        cost = extra * term.cap + float(np.maximum(left + kappa * plan.side, 0.0).sum())
                    if cost < least:
                        least, best = cost, (number, plan, float(kept), kappa, cuts)
        if best is None:
            return None
        number, plan, kept, kappa, cuts = best
        gains, reserved = plan.gains(kept, arithmetic)
        cuts = plan.at_least(cuts, reserved)
        return SharedEnd(number, gains + (self.near - self.far * self.reach) * kappa, cuts)


def _support(term: Moment, cuts: Array, inputs: int) -> Array:
    """(inputs,) the weighted sum of the tangent planes of one label's cuts."""
    alone = cuts * np.array([1.0, 0.0, 1.0, 1.0])[:, None]
    return np.asarray(term.support(alone, 1, inputs)[0])


@dataclass(frozen=True, eq=False)
class _Plan:
    """How the masses of inputs that have no mass under the `far` law are compared with the masses of others. pairs :
    (n,) positions among the term's pairs, each of such an input and one with mass under both laws. share : (n,) the
    compared share of the first input's mass. given : (n,) the compared share of the second one's; for each input they
    sum to at most one. most : (all pairs,) the largest sum of the multipliers over the other labels.
    """

    end: End
    term: Moment
    curve: Curve
    pairs: Index
    share: Array
    given: Array
    most: Array
    side: Array

    @classmethod
    def of(cls, end: End, term: Moment, values: Array, curve: Curve) -> _Plan | None:
        """The plan that sends masses where the multipliers are: w is proportional to (nu/C)^(1/o) v^((o-1)/o)."""
        left, right = np.asarray(term.left), np.asarray(term.right)
        none = np.asarray(end.far.upper) == 0
        near, far = np.asarray(end.near.midpoint), np.asarray(end.far.midpoint)
        alone = none & (np.asarray(end.near.upper) > 0)
        pairs = np.flatnonzero(alone[left] & (np.asarray(end.far.lower) > 0)[right])
        if not np.isin(np.flatnonzero(alone), left[pairs]).all():
            return None
        other = values[:, values[1] != end.label]
        pair, label = other[0].astype(np.intp), other[1].astype(np.intp)
        labels = int(label.max(initial=0)) + 1
        sums = np.bincount(pair * labels + label, other[3], len(term) * labels)
        most = sums.reshape(len(term), labels).max(axis=1, initial=0.0)
        weight = most[pairs]
        # A pair with next to no multiplier gets no share, but every input needs a pair.
        largest = np.zeros(len(near))
        np.maximum.at(largest, left[pairs], weight)
        pairs = pairs[weight >= IDLE_MULTIPLIER * largest[left[pairs]]]
        weight = np.maximum(most[pairs], 1e-12 * (most.max(initial=0.0) or 1.0))
        # Inputs that are compared with the same one share its mass.
        whole = np.bincount(right[pairs], weight, len(near))
        given = weight / whole[right[pairs]]
        order = term.order
        wanted = weight ** (1 / order) * (given * far[right[pairs]]) ** ((order - 1) / order)
        share = wanted / np.bincount(left[pairs], wanted, len(near))[left[pairs]]
        return cls(end, term, curve, pairs, share, given, most, near - end.reach * far)

    def gains(self, kept: float, of: Arithmetic) -> tuple[Enclosure, Enclosure]:
        """(k,) the linear utility for a share `kept` of the other law, and (pairs,) the multipliers that it needs."""
        end, (degree, bend), order = self.end, self.curve, self.term.order
        near, far = end.near, end.far
        if near.arithmetic is not of:
            near, far = of.of(near.midpoint), of.of(far.midpoint)
        left, right, k = self.term.left[self.pairs], self.term.right[self.pairs], len(near)
        reach, scale = of.of(end.reach), of.of(bend)
        if order > 1:
            scale = scale / (of.of(order) * (of.of(Fraction(order)) - 1))
            scale = scale * (reach.log() * of.of(degree - Fraction(order))).exp()
        given = self.given * (1 - kept) * (1 - 2.0**-40)
        v, w = far[right] * given, self._parts(near, left)
        rest = 1 - scatter(of.of(given), right, k)
        ratio = (w / v).log()
        if order == 1:
            weight, on_left, on_right = w, w * ratio, v - w
        else:
            weight = w * (ratio * (of.of(Fraction(order)) - 1)).exp()
            on_left = (weight - w) * order
            on_right = -((weight - v) * (of.of(Fraction(order)) - 1))
        sums = scatter(of.concatenate([on_left, on_right]), np.concatenate([left, right]), k)
        total = (sums + self._alike(near, far * rest, of)) * scale + self._tangents(near, far, scale, of)
        return total, weight * scale

    def _parts(self, near: Enclosure, left: Index) -> Enclosure:
        """(pairs,) parts of the masses of inputs. They sum to the masses exactly, as the largest is what is left."""
        of, order = near.arithmetic, np.lexsort((self.share, left))
        last = order[np.append(np.diff(left[order]) != 0, True)]
        floats = self.share.copy()
        floats[last] = 0.0
        rest = 1 - scatter(of.of(floats), left, len(near))
        mask = np.isin(np.arange(len(left)), last)
        return near[left] * of.where(mask, rest[left], of.of(floats))

    def _alike(self, near: Enclosure, rest: Enclosure, of: Arithmetic) -> Enclosure:
        """(k,) psi of the parts that are compared with the same input."""
        order = self.term.order
        none = np.asarray(self.end.far.upper) == 0
        empty = np.asarray(near.upper) == 0
        safe, bottom = of.where(none | empty, 1.0, near), of.where(none, 1.0, rest)
        log = (safe / bottom).log()
        if order == 1:
            value = of.where(empty, rest, safe * log - safe + bottom)
        else:
            less = of.of(Fraction(order)) - 1
            value = of.where(empty, rest * less, safe * (log * less).exp() - safe * order + bottom * less)
        return of.where(none, 0.0, value)

    def _tangents(self, near: Enclosure, far: Enclosure, scale: Enclosure, of: Arithmetic) -> Enclosure:
        """(k,) T_mu - C T_psi, which is zero where mu is C psi itself."""
        order, reach = self.term.order, of.of(self.end.reach)
        if Fraction(order) == self.curve[0]:
            return near * 0.0
        slopes = enclosed_slopes(self.end.f, 1 / reach if self.end.mirrored else reach, of)
        on_near, on_far = slopes[::-1] if self.end.mirrored else slopes
        by_near, by_far = self.term.enclosed_slopes(np.array([self.end.reach]), of)
        return near * (on_near - scale * by_near[0]) + far * (on_far - scale * by_far[0])

    def cuts(self, reserved: Enclosure, own: Array, step: float | None) -> tuple[Array, float]:
        """The label's cuts, within what `reserved` leaves of the multipliers, and by how much that exceeds them."""
        taken = np.zeros(len(self.term))
        taken[self.pairs] = np.asarray(reserved.upper)
        left = np.maximum(self.most - taken, 0.0)
        kept = own.copy()
        pair = kept[0].astype(np.intp)
        kept[3] = np.minimum(kept[3], left[pair])
        if step is not None:
            kept = kept[:, ~np.isin(pair, self.pairs)]
            label, ratio = np.full(len(self.pairs), self.end.label), np.full(len(self.pairs), self.end.reach**step)
            kept = np.concatenate([kept, np.stack([self.pairs, label, ratio, left[self.pairs]])], axis=1)
        return kept, float(np.maximum(taken - self.most, 0.0).sum())

    def kappa(self, left: Array) -> float:
        """The kappa that inputs of ratio below R need, and a little more for rounding."""
        below = (self.side < 0) & (left > 0)
        return float((left[below] / -self.side[below]).max(initial=0.0)) * (1 + 1e-9)

    def at_least(self, cuts: Array, reserved: Enclosure) -> Array:
        """The cuts with the reserved multipliers added, as cuts at ratio one, where psi's tangent is zero."""
        top = np.asarray(reserved.upper, dtype=np.float64)
        label = np.full(len(top), self.end.label)
        return np.concatenate([cuts, np.stack([self.pairs, label, np.ones(len(top)), top])], axis=1)
