"""The certificate of utilities of the marginals of a few laws, under epsilon-LDP and a cap on total variation.

Where multipliers fall short, they are raised. A simplex of masses needs one of two raises. (1) The rows by delta times
the mean w of the laws, which costs delta, because w.Q sums to one. (2) Where h sums to zero or less, the pair (x, x')
by p_x r_x': the flow p_x r_x' takes the same share of every profit h_+ away, and divides it among the losses in
proportion. It costs eta sum p sum r, which is less where eta is small. One raise serves all simplices if it is as large
as each needs.

With t = 1/(e^epsilon - 1), every column of an epsilon-LDP channel is a multiple of some s in [t, t + 1]^k. Weights
w >= 0 of the criteria that sum to one, multipliers lambda of the rows, and nu >= 0 of the pairs prove  L + eta sum nu,
L = sum lambda, where no column gains:

    sum_j w_j mu_j(s) <= lambda.s + sum nu[x,x'] (s_x - s_x')_+    for all s in [t, t + 1]^k.

However many inputs there are, the left side is a convex, homogeneous function of n masses P_i.s, one for each law. The
masses of all columns lie in simplices (`simplices`). On each simplex the utility lies below a linear function g of s;
a flow 0 <= z <= nu between the inputs makes the terms of the pairs linear, since nu (a)_+ >= z a. The difference
h = g - lambda - div z  gains at most  t (sum g - L) + sum h_+.  Where that is above zero, lambda is raised by delta
times the mean of the laws, or nu (`Raise` says how). Linear functions, flows and simplices are looked for in floats;
any of them give a valid bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.kernel.listed import Caps
from ldpopt.design.kernel.numbers import Unproved, pair_prices, real_array, weights_array
from ldpopt.design.several_hypotheses.minimum_cut import Members, Network
from ldpopt.design.several_hypotheses.proof_simplices import LawShares, Simplices
from ldpopt.design.utilities.base import ColumnUtility
from ldpopt.design.work import Work
from ldpopt.numbers.enclosures import FLOAT, Arithmetic, Enclosure
from ldpopt.numbers.rounding import exact_sum
from ldpopt.values.distribution import Array, Index

Mask = npt.NDArray[np.bool_]
PADDING = 2.0**-46  # The share by which a raise that was found in floats is increased before it is checked.


@dataclass(frozen=True, eq=False)
class Raise:
    """A raise that is enough on each of m simplices: of the rows by delta (m,), or of the pairs by (m, n) numbers.
    profits, shares : (m, n), which raise the pair (x, x') by profits[x] shares[x'].
    """

    delta: Array
    profits: Array
    shares: Array

    def cost(self, eta: float) -> tuple[Array, Array]:
        """The costs of both ways for each simplex alone, (m,) each."""
        with np.errstate(all="ignore"):
            return self.delta, np.nan_to_num(
                eta * self.profits.sum(axis=1) * self.shares.sum(axis=1), nan=np.inf, posinf=np.inf
            )

    def total(self, eta: Enclosure) -> Enclosure:
        """The cost of one raise that serves all simplices, each in its cheaper way."""
        of = eta.arithmetic
        by_rows, by_pairs = self.cost(float(eta.midpoint))
        rows = by_rows <= by_pairs
        whole = of.of(self.delta[rows].max(initial=0.0))
        if not rows.all():
            sums = [of.of(part[~rows].max(axis=0)).sum() for part in (self.profits, self.shares)]
            whole = whole + eta * sums[0] * sums[1]
        return whole


def raise_of_both(
    left: Enclosure, base: Enclosure, sinks: Mask, mean: Enclosure, level: Enclosure, scale: float
) -> Raise:
    """The raise that is enough; of the pairs only where `left` sums to zero or less, in `sinks`. For left, base, mean,
    level and scale see `raise_of_rows`.
    """
    gains, losses = left.positive(), (-left).positive()
    gain = np.maximum(np.asarray((base + gains.sum(axis=1)).upper), 0.0)
    with np.errstate(all="ignore"):
        # The same share of every profit must go, and every loss takes its share of it.
        part = np.fmin(np.nextafter(gain / np.asarray(gains.sum(axis=1).lower), np.inf), 1.0)
        profits = np.nextafter(np.asarray(gains.upper) * np.where(gain > 0, part, 0.0)[:, None], np.inf)
        shares = np.nextafter(np.asarray(losses.upper) / np.asarray(losses.sum(axis=1).lower)[:, None], np.inf)
    profits = np.where((gain > 0)[:, None] & (np.asarray(gains.upper) > 0), profits, 0.0)
    profits = np.where(np.asarray(sinks)[:, None] & np.isfinite(profits), profits, np.inf)
    shares = np.where((gain > 0)[:, None], np.fmin(shares, 1.0), 0.0)
    return Raise(raise_of_rows(left, base, mean, level, scale), profits, shares)


def raise_of_rows(left: Enclosure, base: Enclosure, mean: Enclosure, level: Enclosure, scale: float) -> Array:
    """(m,) numbers delta >= 0 with base - t delta + sum (left - delta w)_+ <= 0 surely, or inf. left : (m, n), linear
    utilities less the row multipliers. base : (m,) t times the sums of `left`. mean : (n,) w, the law by which rows are
    raised. level : t. scale : the size of the multipliers, by which shortfalls are measured.
    """
    needed = least_raise(left.midpoint, base.midpoint, mean.midpoint, float(level.midpoint))
    surely = np.full(len(needed), np.inf)
    for step in range(6):
        tried = np.flatnonzero(~(surely < np.inf))
        raised = needed[tried] + (16.0**step - 1) * PADDING * np.maximum(needed[tried], scale)
        delta = level.arithmetic.of(raised)
        gain = base[tried] - level * delta
        gain = gain + (left[tried] - delta[:, None] * mean).positive().sum(axis=1)
        proved = np.asarray(gain.upper) <= 0
        surely[tried[proved]] = raised[proved]
        if proved.all():
            break
    return surely


def least_raise(left: Array, base: Array, mean: Array, level: float) -> Array:
    """(m,) the least delta >= 0 with base - t delta + sum (left - delta w)_+ <= 0, in floats, by Newton's method."""
    delta = np.zeros(len(base))
    with np.errstate(all="ignore"):
        for _ in range(60):
            rest = left - delta[:, None] * mean
            gain = base - level * delta + np.maximum(rest, 0.0).sum(axis=1)
            slope = level + np.where(rest > 0, mean, 0.0).sum(axis=1)
            new = np.where(gain > 0, delta + gain / slope, delta)
            if not (new > delta).any():
                break
            delta = new
    return np.where(np.isfinite(delta), delta, 0.0)


HALVINGS = 200  # The most rounds in which simplices are halved.
CELLS = 2_000_000  # The most simplices times inputs times laws that are looked at together.
MAX_SIMPLICES = {2: 4000, 3: 8000, 4: 20_000, 5: 60_000}  # The most simplices, by the number of laws.
FLOWS = 20_000
"""The most flows for one bound. Simplices that remain without a good flow make the bound larger, never wrong."""
ACCURACY = {2: 2.0**-28, 3: 2.0**-26, 4: 2.0**-23, 5: 2.0**-21}
"""Simplices that raise the bound by less than this share of it are not halved, by the number of laws."""


@dataclass(frozen=True, eq=False, repr=False)
class MarginalDual(Certificate):
    """Multipliers for a utility of the marginals of two to five laws, proved on simplices of masses [KOV14, Thm 2].

    rows : (k,) multipliers of the row sums. pairs : (k, k) non-negative multipliers of the caps on total variation;
    entry (x, x') is for columns larger at x than at x', and the diagonal is ignored; zero without a cap.
    weights : (criteria,) non-negative, not all zero.
    """

    proves = ColumnUtility
    rows: Array
    pairs: Array
    weights: Array
    argument = "weak duality, a linear function above the utility on every simplex of the marginals"

    def work(self) -> Work:
        """As many simplices, each with numbers for every input and law, and as many flows as are looked at."""
        compared = self.utility.compared
        k, n = self.answers, 1 if compared is None else min(len(compared.laws), 5)
        simplices = float(MAX_SIMPLICES.get(n, 0))
        routed = FLOWS if np.any(self.pairs) else 0.0
        flows = Work(routed * (2000.0 + 12 * float(k) ** 2), 60.0 * float(k) ** 2)
        return Work.on(simplices * k * n, 60.0, min(simplices * k * n, CELLS)) + flows

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """sum rows + eta sum pairs, raised by the largest shortfall over all simplices."""
        compared = self.utility.compared
        if compared is None:
            raise Unproved(f"{self.utility.name} is no utility of the marginals of a few finite laws")
        k = self.utility.size
        rows = real_array(self.rows, (k,), "rows")
        pairs = pair_prices(self.pairs, k, "pairs")
        weights = weights_array(self.weights, (compared.criteria,), "weights", "the criteria")
        cases = []
        for of in (FLOAT, arithmetic):
            caps = Caps.of(self.constraints, of)
            shares = of.of(weights) * of.of(1 / exact_sum(weights))
            cases.append((caps.eta, LawShares.of(compared, shares, caps.level)))
        (eta, floats), (cap, marginals) = cases
        total = arithmetic.of(exact_sum(rows)) + cap * arithmetic.of(pairs).sum()
        tree = Search(floats, rows, Network(pairs), eta).run(ACCURACY[len(compared.laws)] * abs(float(total.midpoint)))
        return total + tree.raised(marginals, rows, cap)


@dataclass(frozen=True, eq=False)
class Found:
    """Simplices that hold all masses, with slopes of linear functions and net flows on each: any floats are valid. sent
    : (m, k) what each input sends less what it receives, or None without flows. gained : the largest gain of a column
    that was seen, per unit of its mean mass; 0 for none. columns : (n, k) the sets whose columns were seen to gain more
    than the accuracy.
    """

    simplices: Simplices
    slopes: Array
    sent: Enclosure | None
    gained: float
    columns: Members

    def raised(self, marginals: LawShares, rows: Array, eta: Enclosure) -> Enclosure:
        """The cost of raising the multipliers enough on all simplices, which is added to the bound."""
        of, needs = marginals.arithmetic, list[Raise]()
        step = max(1, CELLS // (len(rows) * len(marginals.compared.laws)))
        for begin in range(0, len(self.simplices), step):
            part = np.arange(begin, min(begin + step, len(self.simplices)))
            left, base = _left(marginals, self.simplices.take(part), self.slopes[part], rows)
            if self.sent is not None:
                sent = self.sent[part]
                left = left - (sent if of is FLOAT else of.between(sent.lower, sent.upper))
            needs.append(_needs(marginals, left, base, rows, self.sent is not None))
        every = (np.concatenate([getattr(each, name) for each in needs]) for name in ("delta", "profits", "shares"))
        return Raise(*every).total(eta)


def _needs(marginals: LawShares, left: Enclosure, base: Enclosure, rows: Array, routed: bool) -> Raise:
    """The raise of the multipliers that is enough; by pairs only where flows were routed."""
    sinks = np.asarray(base.upper) <= 0
    scale = float(np.abs(rows).sum()) + np.finfo(np.float64).tiny
    return raise_of_both(left, base, sinks if routed else sinks & False, marginals.mean, marginals.level, scale)


def _left(marginals: LawShares, simplices: Simplices, slopes: Array, rows: Array) -> tuple[Enclosure, Enclosure]:
    """(m, k) the linear functions less the row multipliers, and (m,) t times the sums of that."""
    of = marginals.arithmetic
    level = marginals.planes(*marginals.of_corners(simplices), slopes)
    plane = level[:, None] * marginals.mean + of.of(slopes) @ marginals.apart
    return plane - of.of(rows), marginals.level * (level - of.of(exact_sum(rows)))


@dataclass(frozen=True, eq=False)
class Search:
    """The search in floats for simplices on which multipliers suffice."""

    marginals: LawShares
    rows: Array
    network: Network
    eta: Enclosure

    @cached_property
    def _edges(self) -> tuple[Index, Index]:
        first, second = np.triu_indices(len(self.marginals.compared.laws), 1)
        return first.astype(np.intp), second.astype(np.intp)

    def run(self, accuracy: float) -> Found:
        """Halve simplices while the raise that one needs costs more, by `accuracy`, than what some column needs."""
        m, k, n = self.marginals, len(self.rows), len(self.marginals.compared.laws)
        routes, cap = bool(self.network.pairs.any()), float(self.eta.midpoint)
        simplices = Simplices.whole(n)
        sent = FLOAT.zeros((len(simplices), k if routes else 0))
        parts: list[tuple[Simplices, Array, Enclosure]] = []
        gained, flows, total = 0.0, 0, len(simplices)
        sets = [np.zeros((0, k), dtype=bool)]
        for number in range(HALVINGS):
            corners = m.of_corners(simplices)
            middles = [np.asarray(part.midpoint) for part in corners]
            slopes = m.slopes(*middles)
            left, base = _left(m, simplices, slopes, self.rows)
            if routes:
                # Pairs cannot pay for a function that is above zero at the ray of constant columns.
                other = m.slopes_from_one(*middles)
                turned = (np.asarray(base.upper) > 0) & np.isfinite(other).all(axis=1)
                if turned.any():
                    slopes = np.where(turned[:, None], other, slopes)
                    left, base = _left(m, simplices, slopes, self.rows)
                needed = np.minimum(*_needs(m, left - sent, base, self.rows, True).cost(cap))
                tried = np.flatnonzero(needed > gained + accuracy)[: max(FLOWS - flows, 0)]
                flows += len(tried)
                new, sides = self.network.sent_and_sides(np.asarray(left.midpoint)[tried])
                again = np.minimum(*_needs(m, left[tried] - new, base[tried], self.rows, True).cost(cap))
                nearer = again < needed[tried]
                needed[tried[nearer]] = again[nearer]
                sent = _replaced(sent, tried[nearer], new[nearer])
            else:
                middle = np.asarray(left.midpoint)
                needed = least_raise(
                    middle, np.asarray(base.midpoint), np.asarray(m.mean.midpoint), float(m.level.midpoint)
                )
                sides = middle > 0
            gains = self.gains(sides)
            if not routes:  # a raise by rows costs at least the gain of any column; one by pairs may cost less
                gained = max(gained, float(gains.max(initial=0.0)))
            sets.append(sides[gains > accuracy])
            at = np.flatnonzero(needed > gained + accuracy)
            total += len(at)
            if not (total <= MAX_SIMPLICES[n] and len(at) * k * n <= CELLS and flows < FLOWS and number < HALVINGS - 1):
                at = at[:0]
            first, second = self._cut(simplices.take(at), corners[0][at])
            exact = simplices.take(at).exactly(first, second)
            at, first, second = at[exact], first[exact], second[exact]
            shut = np.setdiff1d(np.arange(len(simplices)), at)
            parts.append((simplices.take(shut), slopes[shut], sent[shut]))
            if not len(at):
                break
            simplices = simplices.take(at).halved(first, second)
            sent = FLOAT.concatenate([sent[at], sent[at]])
        every = Simplices(*(np.concatenate([getattr(own[0], name) for own in parts]) for name in ("corners", "orders")))
        flowed = FLOAT.concatenate([own[2] for own in parts]) if routes else None
        columns = np.unique(np.concatenate(sets), axis=0)
        return Found(every, np.concatenate([own[1] for own in parts]), flowed, gained, columns)

    def gains(self, sides: Members) -> Array:
        """(n,) the gains of the columns of the sets (n, k), per unit of their mean mass."""
        m, level = self.marginals, float(self.marginals.level.midpoint)
        if not len(sides):
            return np.zeros(0)
        laws = np.asarray(m.laws.midpoint)
        masses = level + sides @ laws.T
        worth = np.zeros(len(sides))
        for share, term in zip(np.asarray(m.shares.midpoint), m.compared.terms, strict=True):
            worth += share * term.f.excess(masses[:, term.first], masses[:, term.second])
        pairs = self.network.pairs
        paid = level * float(exact_sum(self.rows)) + sides @ self.rows
        if pairs.any():
            paid = paid + ((sides @ pairs) * ~sides).sum(axis=1)
        return np.asarray((worth - paid) / masses.mean(axis=1))

    def _cut(self, simplices: Simplices, value: Enclosure) -> tuple[Index, Index]:
        """The edges at whose middles the utility is farthest below the linear function; else the longest ones."""
        first, second = self._edges
        m, n, count = len(simplices), simplices.corners.shape[1], len(first)
        middles = (simplices.corners[:, first] + simplices.corners[:, second]) / 2
        there, _, _ = self.marginals.worth(middles.reshape(m * count, n), np.repeat(simplices.orders, count))
        height = np.asarray(value.midpoint)
        above = (height[:, first] + height[:, second]) / 2 - np.asarray(there.midpoint).reshape(m, count)
        length = np.abs(simplices.corners[:, first] - simplices.corners[:, second]).sum(axis=2)
        size = np.abs(height).max(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            best = np.argmax(np.nan_to_num(above, nan=0.0, posinf=np.inf) + 2.0**-44 * size * length, axis=1)
        return first[best], second[best]


def _replaced(sent: Enclosure, places: Index, new: Enclosure) -> Enclosure:
    """`sent` with the rows `places` replaced by `new`."""
    low, high = np.array(sent.lower), np.array(sent.upper)
    low[places], high[places] = new.lower, new.upper
    return FLOAT.between(low, high)
