"""Linear utilities above a divergence, one per interval of likelihood ratios.

An output has marginals (M0, M1), a point of the plane. Between two rays from 0, the convex and homogeneous mu lies
below the chord: the linear function that agrees with mu on both rays. A ray is given by its posterior a = M0/(M0 + M1)
(`hypotheses.Rays`). If mu is infinite on the last ray no chord exists: see `tail_tangents`.

`residual` bounds the gain of a channel beyond its price, if multipliers are less than the gains of some columns.

At an end of the likelihood ratios with infinite divergence, a tangent is used, and moments pay for the remainder.

Beyond a ratio R, mu is its tangent plane at R plus a rest. A cap on a moment of order o between rows
(`constraints.moment`) pays for the rest. For the power divergences

    f(u) - tangent of f at R  =  c R^p g_p(u/R),      g_o(v) = (v^o - o v + o - 1)/(o - 1),  g_1(v) = v log v - v + 1,

and for u = R v >= R two inequalities hold. First, g_p(v) <= g_o(v) for p <= o, since g_o'(v) = o (v^(o-1) - 1)/(o - 1)
grows with o. Second, R^o psi_o(v) <= psi_o(R v) for psi_o = (o - 1) g_o. Their difference o v (R^o - R) - (o - 1)(R^o -
1) grows with v and is psi_o(R) >= 0 at v = 1. So the rest is at most c R^(p-o)/(o-1) psi_o(M0, M1). As psi_o is jointly
convex, that is at most the mean of psi_o between the rows of two inputs drawn from P0 and P1. Its sum over the outputs
is capped.

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
constraint pay for these: a multiplier costs its largest sum over the labels, and the last label may not use all of it.
Finally kappa (M0 - R M1) >= 0 may be added, for any kappa >= 0.
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
from ldpopt.design.kernel.hypotheses import Rays, likelihood_ratio_order
from ldpopt.design.kernel.numbers import Unproved, real_array, require
from ldpopt.design.utilities.laws import LawPair
from ldpopt.divergences import FDivergence
from ldpopt.divergences.enclosed import enclosed_excess, enclosed_slopes
from ldpopt.numbers.enclosures import FLOAT, Arithmetic, Enclosure
from ldpopt.numbers.tolerances import IDLE_MULTIPLIER, LITTLE_COST
from ldpopt.values.distribution import Array, Index


@dataclass(frozen=True, eq=False)
class Gains:
    """Linear utilities, one per label (interval of ratios); one of them is above the true utility at any column.

    values : (labels, k).
    sums : (labels,) the sums of the values over the inputs, computed without cancellation.
    charge : the increase of the bound for their use.
    """

    values: Enclosure
    sums: Enclosure
    charge: Enclosure


def rays(laws: LawPair, order: Sequence[int], knots: Array, spread: Enclosure | None, arithmetic: Arithmetic) -> Rays:
    """Return the rays at the cuts `knots[1:-1]`, and at the ends of all posteriors that an output can have.

    laws : the hypotheses. order : the inputs by ratio, the smallest first. spread : a cap on the log-ratio of any two
    entries of a column, or None. No output's ratio is beyond that of the outermost input, nor beyond e^spread: the
    nearer of the two is the end.
    """
    cuts = real_array(knots, (-1,), "the knots")[1:-1]
    require(not len(knots) < 2, "there are no intervals of ratios")
    ends = []
    for x, sign in ((order[0], -1), (order[-1], 1)):
        outermost = Rays.of_masses(*(part[np.array([x])] for part in (laws.p0, laws.p1, laws.difference)))
        if spread is not None:
            spread_end = Rays.spread(spread.reshape(1), sign > 0)
            if sign * float(spread_end.lean.midpoint[0]) < sign * float(outermost.lean.midpoint[0]):
                outermost = spread_end
        ends.append(outermost)
    a = arithmetic.of(cuts)
    return Rays.join([ends[0], Rays(a, 1 - a, (a - 0.5) * 2), ends[1]])


def _width(first: Rays, second: Rays) -> Enclosure:
    """Compute second.a - first.a, enclosed by all three forms together."""
    forms = [second.a - first.a, first.b - second.b, (second.lean - first.lean) / 2]
    ends = np.max([form.lower for form in forms], axis=0), np.min([form.upper for form in forms], axis=0)
    return first.a.arithmetic.between(*ends)


def enclosed_chords(
    f: FDivergence, laws: LawPair, cut: Rays, knots: Array, constraints: Sequence[ColumnConstraint]
) -> list[Gains]:
    """Return the chords of the divergence between neighboring rays, all of them linear utilities above it.

    If the divergence is infinite at an end, there are several choices: each has the tangent at one of the cuts in place
    of the chords beyond that cut.
    """
    arithmetic = cut.a.arithmetic
    on_a, on_both = _planes(f, cut)
    choices = [(on_a, on_both, arithmetic.zeros(()))]
    for is_mirrored in open_sides(f, cut):
        choices = [
            (arithmetic.where(label, slope, slopes), arithmetic.where(label, both, sums), charge + cost)
            for slopes, sums, charge in choices
            for label, slope, both, cost in tail_tangents(
                f, np.asarray(knots, dtype=np.float64), is_mirrored, constraints, arithmetic
            )
        ]
    return [_gains(laws, *choice) for choice in choices]


def open_chords(f: FDivergence, laws: LawPair, cut: Rays) -> Gains:
    """Return the chords alone; they are not finite next to an end where the divergence is infinite."""
    return _gains(laws, *_planes(f, cut), cut.a.arithmetic.zeros(()))


def open_sides(f: FDivergence, cut: Rays) -> list[bool]:
    """List the ends of infinite divergence: False for the end of large ratios, True for that of small ones."""
    height = enclosed_excess(f, cut.lean, cut.b, cut.a)
    return [
        is_mirrored for end, is_mirrored in ((0, True), (-1, False)) if not np.isfinite(np.asarray(height.upper)[end])
    ]


def _gains(laws: LawPair, on_a: Enclosure, on_both: Enclosure, charge: Enclosure) -> Gains:
    # c_x = on_a P0 + on_b P1, written with the difference of the two laws, so that nothing cancels.
    return Gains(on_a[:, None] * laws.difference + on_both[:, None] * laws.p1, on_both, charge)


def _planes(f: FDivergence, cut: Rays) -> tuple[Enclosure, Enclosure]:
    """Return coefficients of M0 - M1 and of M1 of planes that are at least mu on both rays of every interval.

    The slope is a float near the chord's, and the plane passes near mu on the first ray. The largest shortfall on
    either ray is added as a multiple of M0 + M1, so that errors of mu are not divided by the interval's width.
    """
    arithmetic = cut.a.arithmetic
    width = _width(cut[:-1], cut[1:])
    require((np.asarray(width.lower) > 0).all(), "the knots do not increase strictly between the ends of all ratios")
    height = enclosed_excess(f, cut.lean, cut.b, cut.a)
    with np.errstate(all="ignore"):
        slope = (height[1:] * cut.b[:-1] - height[:-1] * cut.b[1:]) / width
        steep = np.nan_to_num(np.asarray(slope.midpoint), nan=0.0, posinf=0.0, neginf=0.0)
        level = np.asarray(((height[:-1] - cut.lean[:-1] * steep) / cut.b[:-1]).midpoint)
        level = np.nan_to_num(level, nan=0.0, posinf=0.0, neginf=0.0)
    shortfall = arithmetic.zeros(width.shape)
    for ends in (slice(None, -1), slice(1, None)):
        shortfall = shortfall.maximum(height[ends] - (cut.lean[ends] * steep + cut.b[ends] * level))
    return shortfall + steep, 2 * shortfall + level


def posterior_range(
    f: FDivergence, p0: Array, p1: Array, constraints: Sequence[ColumnConstraint], inputs: Sequence[Label]
) -> tuple[float, float] | None:
    """Return the range of posteriors that an output can have, in floats; None if no finite bound exists."""
    laws = LawPair.from_floats(p0, p1, FLOAT)
    ends = rays(
        laws,
        likelihood_ratio_order(p0, p1).tolist(),
        np.array([0.0, 1.0]),
        least_spread(constraints, inputs, FLOAT),
        FLOAT,
    )
    infinite = ~np.isfinite(np.asarray(enclosed_excess(f, ends.lean, ends.b, ends.a).upper))
    for end, is_mirrored in ((0, True), (1, False)):
        curve = tail_curve(f, is_mirrored)
        if infinite[end] and (curve is None or tail_cost(curve, FLOAT.of(2.0), constraints) is None):
            return None
    return float(ends.a.midpoint[0]), float(ends.a.midpoint[1])


MAX_SHIFT_STEPS = 60


def enclosed_residual(
    reduced_gains: Enclosure, sums: Enclosure, spread: Enclosure | None, variation: Enclosure | None = None
) -> float:
    """Bound sum_i reduced_i . q_i from above over all channels with columns q_i.

    - `reduced_gains` : (labels, k), gains less prices.
    - `sums` : (labels,) their sums over the inputs.
    - `spread` : a cap D on the log-ratio of two entries of a column, None if there is none.
    - `variation` : a cap on the total variation between any two rows, or None.

    Without any cap, columns gain at most sum_x max_i (reduced_ix)_+. With a cap D every column is a multiple of t + a,
    t = 1/(e^D - 1) and 0 <= a <= 1. Row multipliers that are all higher by s cover every gain as soon as, for every
    label,

        t (R_i - k s) + sum_x (reduced_ix - s)_+ <= 0,      R_i the sum of reduced_i.

    They cost k s. R_i is given separately, because t may be large, and the terms of the sum then nearly cancel.

    With a cap V on the variation, subtract from every column its smallest entry. The smallest entries sum to at most
    one, and gain at most the largest R_i. In the rest, a row sums to at most its variations from the k - 1 other rows
    together, (k - 1) V.
    """
    top, total = np.asarray(reduced_gains.upper), np.asarray(sums.upper)
    if not (top < math.inf).all():
        return math.inf
    uncapped_gain = FLOAT.of(np.maximum(top.max(axis=0), 0.0)).sum()
    uncapped_bound = float(uncapped_gain.upper)
    if variation is not None and (total < math.inf).all():
        rest = uncapped_gain * FLOAT.between(variation.lower, variation.upper) * (top.shape[1] - 1)
        variation_bound = float((rest + max(float(total.max()), 0.0)).upper)
        uncapped_bound = variation_bound if variation_bound < uncapped_bound else uncapped_bound
    if spread is None or not (total < math.inf).all():
        return uncapped_bound
    exponent = FLOAT.of(spread)
    level = (-exponent).exp() / -(-exponent).expm1()
    if not level.upper < math.inf:
        return uncapped_bound
    inputs, t = top.shape[1], float(level.midpoint)
    shift = _least_shift(top, total, t)
    for _ in range(MAX_SHIFT_STEPS):
        remainder = level * (total - FLOAT.of(shift) * inputs) + (FLOAT.of(top) - shift[:, None]).positive().sum(axis=1)
        excess = np.asarray(remainder.upper)
        if (excess <= 0).all():
            return min(uncapped_bound, float((FLOAT.of(float(shift.max())) * inputs).upper))
        count_above = (top > shift[:, None]).sum(axis=1)
        with np.errstate(all="ignore"):
            step = np.maximum(excess, 0.0) / (inputs * t + count_above)
        shift = np.where(excess > 0, np.nextafter((shift + 1.25 * step) * (1 + 2.0**-50), math.inf), shift)
        if not np.isfinite(shift).all():
            break
    return uncapped_bound


def _least_shift(top: Array, total: Array, t: float) -> Array:
    """Return the least s >= 0 for each label, (labels,), up to rounding.

    Newton's method is applied to a convex, decreasing function.
    """
    shift, inputs = np.zeros(len(top)), top.shape[1]
    for _ in range(MAX_SHIFT_STEPS):
        over = top > shift[:, None]
        with np.errstate(all="ignore"):
            new = (t * total + np.where(over, top, 0.0).sum(axis=1)) / (inputs * t + over.sum(axis=1))
        new = np.where(np.isfinite(new), new, 0.0)
        if not (new > shift).any():
            break
        shift = np.maximum(shift, new)
    return shift


def residual(reduced_gains: Array, ratio: float) -> float:
    """Bound sum_i reduced_i . q_i over matrices with rows that sum to one and columns in [m, ratio m]."""
    largest_gains = np.maximum(reduced_gains.max(axis=0), 0.0)
    uncapped_bound = float(largest_gains.sum())
    if math.isinf(ratio):
        return uncapped_bound
    # Columns scaled to m = 1 have mass at least 1 under any prior, so that no gain per unit of mass is larger.
    gain = reduced_gains.sum(axis=1) + (ratio - 1) * np.maximum(reduced_gains, 0.0).sum(axis=1)
    return min(uncapped_bound, max(0.0, float(gain.max())))


TRIED_ORDERS = (1.0625, 1.125, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 64.0)
"""The orders of moments that are tried, in addition to those that constraints name."""
TRIED_RATIOS = 10.0 ** np.arange(1, 16)
"""The cuts nearest to these ratios are tried: a near cut costs more moments, a far cut needs steeper tangents."""


def tail_tangents(
    f: FDivergence, knots: Array, is_mirrored: bool, constraints: Sequence[ColumnConstraint], arithmetic: Arithmetic
) -> Iterator[tuple[npt.NDArray[np.bool_], Enclosure, Enclosure, Enclosure]]:
    """Generate for some cuts the labels beyond, the tangent's coefficients of M0 - M1 and of M1, and the tail cost.

    is_mirrored : True if the infinite end is that of small ratios.
    """
    curve, labels = tail_curve(f, is_mirrored), len(knots) - 1
    if curve is None:
        raise Unproved(f"{f.name} is infinite at the end of the ratios")
    with np.errstate(all="ignore"):
        ratios = knots[1:-1] / (1 - knots[1:-1])
    ratio_from_one = 1 / ratios if is_mirrored else ratios
    usable = np.flatnonzero((ratio_from_one > 1) & (ratio_from_one < np.inf))
    require(len(usable), f"no cut is between ratio 1 and the end where {f.name} is infinite")
    tried_cuts = {int(usable[np.abs(np.log(ratio_from_one[usable] / reach)).argmin()]) for reach in TRIED_RATIOS}
    has_choice = False
    for cut in sorted(tried_cuts):
        s = arithmetic.of(float(knots[cut + 1]))
        ratio = s / (1 - s)
        reach = 1 / ratio if is_mirrored else ratio
        cost = tail_cost(curve, reach, constraints) if float(reach.lower) > 1 else None
        if cost is not None and np.isfinite(cost.upper):
            on_a, on_b = enclosed_slopes(f, ratio, arithmetic)
            is_beyond = np.arange(labels) <= cut if is_mirrored else np.arange(labels) > cut
            has_choice = True
            yield is_beyond, on_a, on_a + on_b, cost
    require(has_choice, f"{f.name} is infinite at the end of the ratios, and no moment between rows is capped")


def sufficient_ratio(f: FDivergence, is_mirrored: bool, constraints: Sequence[ColumnConstraint]) -> float | None:
    """Return a ratio above 1 beyond which the remainder costs little; None if its cost is not finite."""
    curve = tail_curve(f, is_mirrored)
    if curve is None:
        return None
    costs = [tail_cost(curve, FLOAT.of(float(reach)), constraints) for reach in TRIED_RATIOS[:9]]
    finite_costs = [float(cost.upper) for cost in costs if cost is not None]
    if not finite_costs:
        return None
    sufficient = [
        float(ratio)
        for ratio, cost in zip(TRIED_RATIOS, finite_costs, strict=False)
        if cost <= LITTLE_COST * finite_costs[0]
    ]
    # The tangent there is about as steep as R^(p-1), which solvers should still resolve next to the remainder.
    max_ratio = 1e9 if curve[0] <= 1 else 10 ** (5 / float(curve[0] - 1))
    return min(sufficient[0] if sufficient else float(TRIED_RATIOS[8]), max_ratio)


def tail_cost(curve: Curve, reach: Enclosure, constraints: Sequence[ColumnConstraint]) -> Enclosure | None:
    """Compute the least cost of the tail of a power divergence beyond a ratio above 1.

    None if no moment pays for it.
    """
    arithmetic, (degree, bend) = reach.arithmetic, curve
    costs = []
    for order in (1.0, *_moment_orders(constraints)):
        cap = moment_bound(constraints, order, arithmetic)
        if cap is not None and order == degree == 1:
            costs.append(cap)  # u log(u/R) - u + R is at most u log u - u + 1 from u = R on
        elif cap is not None and order > 1 and degree <= order:
            share = (reach.log() * (arithmetic.of(degree) - order)).exp() / (arithmetic.of(order) - 1)
            costs.append(cap * share * bend / arithmetic.of(degree))
    return min(costs, key=lambda cost: float(cost.upper), default=None)


Curve = tuple[Fraction, float]
"""(p, cp) of mu'' = cp u^(p-2), exactly. The rest above a tangent is then c R^p g_p."""


def tail_curve(f: FDivergence, is_mirrored: bool) -> Curve | None:
    """Return the curve of f or, if `is_mirrored`, of f with exchanged arguments; None if nothing is proved of it.

    >>> from ldpopt.divergences import CHI_SQUARED
    >>> tail_curve(CHI_SQUARED, False)
    (Fraction(2, 1), 2.0)
    """
    if f.recipe is None:
        return None
    name, *parameters = f.recipe
    if name == "alpha":
        order = 1 - Fraction(parameters[0]) if is_mirrored else Fraction(parameters[0])
        return (order, 1.0) if order > 1 else None
    degrees = {("kl", False): 1, ("reverse-kl", True): 1, ("chi-squared", False): 2, ("neyman-chi-squared", True): 2}
    degree = degrees.get((name, is_mirrored))
    return None if degree is None else (Fraction(degree), float(degree))


def _moment_orders(constraints: Sequence[ColumnConstraint]) -> list[float]:
    constraint_orders = [float(o) for c in constraints for o in (getattr(c, "order", 1.0), *getattr(c, "orders", ()))]
    return sorted({o for o in (*TRIED_ORDERS, *constraint_orders) if 1 < o < np.inf})


TRIED_SHARES = 10.0 ** -np.array([0.3, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0])
"""The fractions of M1 that are tried as the part compared with the same inputs of M0."""
TAIL_SHARES = (None, 0.0, 0.25, 0.5, 0.75, 1.0)
"""The powers of R that are tried as the ratio of the cuts of the remaining multiplier; None leaves its cuts as is."""


@dataclass(frozen=True, eq=False)
class EndChoice:
    """The linear utility `values` (k,) of the last label, and the cuts (4, n) that replace those of term `number`."""

    number: int
    values: Enclosure
    cuts: Array


@dataclass(frozen=True, eq=False)
class End:
    """The last label: its number, the ratio R at its start (`reach`), and True if that is a ratio M1/M0.

    larger_law, smaller_law : (k,) the distribution that is larger there, and the other one.
    """

    f: FDivergence
    label: int
    reach: float
    mirrored: bool
    larger_law: Enclosure
    smaller_law: Enclosure

    @classmethod
    def from_knots(cls, f: FDivergence, p0: Enclosure, p1: Enclosure, knots: Array, is_mirrored: bool) -> End | None:
        """Return the end beyond the last cut; None if that cut is not beyond ratio one, or nothing is proved of f."""
        s = FLOAT.of(float(knots[1 if is_mirrored else -2]))
        ratio = (1 - s) / s if is_mirrored else s / (1 - s)
        reach = float(ratio.lower)
        if len(knots) < 3 or tail_curve(f, is_mirrored) is None or not 1 < reach < np.inf:
            return None
        larger_law, smaller_law = (p1, p0) if is_mirrored else (p0, p1)
        return cls(f, 0 if is_mirrored else len(knots) - 2, reach, is_mirrored, larger_law, smaller_law)

    def choose_multipliers(
        self, terms: Sequence[tuple[int, Moment, Array]], rows: Array, arithmetic: Arithmetic
    ) -> EndChoice | None:
        """Return the choice of least cost in floats; None if there is none.

        terms : the number, the pairs and the multiplier of each term.
        """
        curve = tail_curve(self.f, self.mirrored)
        assert curve is not None
        least_cost, best = np.inf, None
        prices = rows + sum((_support(term, v[:, v[1] == self.label], len(rows)) for _, term, v in terms), np.zeros(()))
        for number, term, values in terms:
            plan = None if Fraction(term.order) < curve[0] else _MassPlan.from_values(self, term, values, curve)
            if plan is None:
                continue
            end_cuts = values[:, values[1] == self.label]
            other_prices = prices - _support(term, end_cuts, len(rows))
            for share in TRIED_SHARES:
                gains, reserved_multipliers = plan.gains(share, FLOAT)
                for step in TAIL_SHARES:
                    cuts, extra = plan.cuts(reserved_multipliers, end_cuts, step)
                    remaining_gains = np.asarray(gains.midpoint) - other_prices - _support(term, cuts, len(rows))
                    kappa = plan.kappa(remaining_gains)
                    with np.errstate(invalid="ignore"):  # a choice whose numbers are not finite costs no number
                        cost = extra * term.cap + float(np.maximum(remaining_gains + kappa * plan.side, 0.0).sum())
                    if cost < least_cost:
                        least_cost, best = cost, (number, plan, float(share), kappa, cuts)
        if best is None:
            return None
        number, plan, share, kappa, cuts = best
        gains, reserved_multipliers = plan.gains(share, arithmetic)
        cuts = plan.at_least(cuts, reserved_multipliers)
        return EndChoice(number, gains + (self.larger_law - self.smaller_law * self.reach) * kappa, cuts)


def _support(term: Moment, cuts: Array, inputs: int) -> Array:
    """Return the weighted sum of the tangent planes of one label's cuts, (inputs,)."""
    single_label = cuts * np.array([1.0, 0.0, 1.0, 1.0])[:, None]
    return np.asarray(term.support(single_label, 1, inputs)[0])


@dataclass(frozen=True, eq=False)
class _MassPlan:
    """A plan that compares the masses of inputs without mass under `smaller_law` with the masses of others.

    pairs : (n,) positions among the term's pairs, each of such an input and one with mass under both distributions.
    share : (n,) the compared fraction of the first input's mass.
    compared_share : (n,) that of the second one's mass; for each input they sum to at most one.
    largest_multipliers : (all pairs,) the largest sum of the multipliers over the other labels.
    """

    end: End
    term: Moment
    curve: Curve
    pairs: Index
    share: Array
    compared_share: Array
    largest_multipliers: Array
    side: Array

    @classmethod
    def from_values(cls, end: End, term: Moment, values: Array, curve: Curve) -> _MassPlan | None:
        """Build the plan that sends masses to the multipliers: w is proportional to (nu/C)^(1/o) v^((o-1)/o)."""
        left, right = np.asarray(term.left), np.asarray(term.right)
        is_absent_far = np.asarray(end.smaller_law.upper) == 0
        near_mass, far_mass = np.asarray(end.larger_law.midpoint), np.asarray(end.smaller_law.midpoint)
        is_near_only = is_absent_far & (np.asarray(end.larger_law.upper) > 0)
        pairs = np.flatnonzero(is_near_only[left] & (np.asarray(end.smaller_law.lower) > 0)[right])
        if not np.isin(np.flatnonzero(is_near_only), left[pairs]).all():
            return None
        other = values[:, values[1] != end.label]
        pair, label = other[0].astype(np.intp), other[1].astype(np.intp)
        labels = int(label.max(initial=0)) + 1
        sums = np.bincount(pair * labels + label, other[3], len(term) * labels)
        largest_multipliers = sums.reshape(len(term), labels).max(axis=1, initial=0.0)
        weight = largest_multipliers[pairs]
        # A pair with a negligible multiplier gets no mass, but every input needs a pair.
        largest = np.zeros(len(near_mass))
        np.maximum.at(largest, left[pairs], weight)
        pairs = pairs[weight >= IDLE_MULTIPLIER * largest[left[pairs]]]
        weight = np.maximum(largest_multipliers[pairs], 1e-12 * (largest_multipliers.max(initial=0.0) or 1.0))
        # Inputs that are compared with the same one share its mass.
        total_weight = np.bincount(right[pairs], weight, len(near_mass))
        compared_share = weight / total_weight[right[pairs]]
        order = term.order
        unnormalized_share = weight ** (1 / order) * (compared_share * far_mass[right[pairs]]) ** ((order - 1) / order)
        share = unnormalized_share / np.bincount(left[pairs], unnormalized_share, len(near_mass))[left[pairs]]
        return cls(
            end, term, curve, pairs, share, compared_share, largest_multipliers, near_mass - end.reach * far_mass
        )

    def gains(self, share: float, arithmetic: Arithmetic) -> tuple[Enclosure, Enclosure]:
        """Return the linear utility for a fraction `share` of the other law, (k,), and its multipliers (pairs,)."""
        end, (degree, bend), order = self.end, self.curve, self.term.order
        near_mass, far_mass = end.larger_law, end.smaller_law
        if near_mass.arithmetic is not arithmetic:
            near_mass, far_mass = arithmetic.of(near_mass.midpoint), arithmetic.of(far_mass.midpoint)
        left, right, k = self.term.left[self.pairs], self.term.right[self.pairs], len(near_mass)
        reach, scale = arithmetic.of(end.reach), arithmetic.of(bend)
        if order > 1:
            scale = scale / (arithmetic.of(order) * (arithmetic.of(Fraction(order)) - 1))
            scale = scale * (reach.log() * arithmetic.of(degree - Fraction(order))).exp()
        compared_share = self.compared_share * (1 - share) * (1 - 2.0**-40)
        v, w = far_mass[right] * compared_share, self._parts(near_mass, left)
        rest = 1 - scatter(arithmetic.of(compared_share), right, k)
        ratio = (w / v).log()
        if order == 1:
            weight, on_left, on_right = w, w * ratio, v - w
        else:
            weight = w * (ratio * (arithmetic.of(Fraction(order)) - 1)).exp()
            on_left = (weight - w) * order
            on_right = -((weight - v) * (arithmetic.of(Fraction(order)) - 1))
        sums = scatter(arithmetic.concatenate([on_left, on_right]), np.concatenate([left, right]), k)
        total = (sums + self._same_input_psi(near_mass, far_mass * rest, arithmetic)) * scale + self._tangents(
            near_mass, far_mass, scale, arithmetic
        )
        return total, weight * scale

    def _parts(self, near_mass: Enclosure, left: Index) -> Enclosure:
        """Return parts of the masses of inputs, (pairs,), that sum exactly to the masses.

        The largest part is the remainder.
        """
        arithmetic, order = near_mass.arithmetic, np.lexsort((self.share, left))
        last = order[np.append(np.diff(left[order]) != 0, True)]
        floats = self.share.copy()
        floats[last] = 0.0
        rest = 1 - scatter(arithmetic.of(floats), left, len(near_mass))
        mask = np.isin(np.arange(len(left)), last)
        return near_mass[left] * arithmetic.where(mask, rest[left], arithmetic.of(floats))

    def _same_input_psi(self, near_mass: Enclosure, rest: Enclosure, arithmetic: Arithmetic) -> Enclosure:
        """Compute psi of the parts that are compared with the same input, (k,)."""
        order = self.term.order
        is_absent_far = np.asarray(self.end.smaller_law.upper) == 0
        empty = np.asarray(near_mass.upper) == 0
        safe, bottom = (
            arithmetic.where(is_absent_far | empty, 1.0, near_mass),
            arithmetic.where(is_absent_far, 1.0, rest),
        )
        log = (safe / bottom).log()
        if order == 1:
            value = arithmetic.where(empty, rest, safe * log - safe + bottom)
        else:
            order_minus_one = arithmetic.of(Fraction(order)) - 1
            value = arithmetic.where(
                empty,
                rest * order_minus_one,
                safe * (log * order_minus_one).exp() - safe * order + bottom * order_minus_one,
            )
        return arithmetic.where(is_absent_far, 0.0, value)

    def _tangents(
        self, near_mass: Enclosure, far_mass: Enclosure, scale: Enclosure, arithmetic: Arithmetic
    ) -> Enclosure:
        """Compute T_mu - C T_psi, (k,), which is zero if mu is C psi itself."""
        order, reach = self.term.order, arithmetic.of(self.end.reach)
        if Fraction(order) == self.curve[0]:
            return near_mass * 0.0
        slopes = enclosed_slopes(self.end.f, 1 / reach if self.end.mirrored else reach, arithmetic)
        on_near, on_far = slopes[::-1] if self.end.mirrored else slopes
        by_near, by_far = self.term.enclosed_slopes(np.array([self.end.reach]), arithmetic)
        return near_mass * (on_near - scale * by_near[0]) + far_mass * (on_far - scale * by_far[0])

    def cuts(self, reserved_multipliers: Enclosure, end_cuts: Array, step: float | None) -> tuple[Array, float]:
        """Return the label's cuts, within the multipliers that are not reserved, and the excess over these."""
        reserved_upper = np.zeros(len(self.term))
        reserved_upper[self.pairs] = np.asarray(reserved_multipliers.upper)
        remaining_multipliers = np.maximum(self.largest_multipliers - reserved_upper, 0.0)
        cuts = end_cuts.copy()
        pair = cuts[0].astype(np.intp)
        cuts[3] = np.minimum(cuts[3], remaining_multipliers[pair])
        if step is not None:
            cuts = cuts[:, ~np.isin(pair, self.pairs)]
            label, ratio = np.full(len(self.pairs), self.end.label), np.full(len(self.pairs), self.end.reach**step)
            cuts = np.concatenate(
                [cuts, np.stack([self.pairs, label, ratio, remaining_multipliers[self.pairs]])], axis=1
            )
        return cuts, float(np.maximum(reserved_upper - self.largest_multipliers, 0.0).sum())

    def kappa(self, left: Array) -> float:
        """Return the kappa that inputs of ratio below R need, and a little more for rounding."""
        is_below = (self.side < 0) & (left > 0)
        return float((left[is_below] / -self.side[is_below]).max(initial=0.0)) * (1 + 1e-9)

    def at_least(self, cuts: Array, reserved_multipliers: Enclosure) -> Array:
        """Add the reserved multipliers to the cuts, as cuts at ratio one, where psi's tangent is zero."""
        top = np.asarray(reserved_multipliers.upper, dtype=np.float64)
        label = np.full(len(top), self.end.label)
        return np.concatenate([cuts, np.stack([self.pairs, label, np.ones(len(top)), top])], axis=1)
