"""The end of the likelihood ratios where a divergence is infinite: a tangent, and moments that pay for the rest.

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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ldpopt.design.constraints.base import ColumnConstraint, moment_bound
from ldpopt.design.constraints.moment import Moment
from ldpopt.design.constraints.terms import scatter
from ldpopt.design.kernel.numbers import Unproved, require
from ldpopt.divergences import FDivergence
from ldpopt.divergences.enclosed import enclosed_slopes
from ldpopt.numbers.enclosures import FLOAT, Arithmetic, Enclosure
from ldpopt.numbers.tolerances import IDLE_MULTIPLIER, LITTLE_COST
from ldpopt.values.distribution import Array, Index

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
STEPS = (None, 0.0, 0.25, 0.5, 0.75, 1.0)
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
                for step in STEPS:
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
