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

Simplices of marginals: linear functions above a utility that compares the masses of a column under a few laws.

A column s has the masses a_i = P_i.s under n laws. Its utility is a convex and homogeneous function of them, so that on
a cone with n rays it lies below the linear function that agrees with it on these rays. The masses of any column within
[t, t + 1]^k have a_i >= c times their mean, for some c that follows from t and the ratios of the laws. Sorted by size,
they lie in the cone of the rays v_1, ..., v_n, where v_j is c + M/j in its first j entries and c in the others. So n!
simplices hold all masses, one for each order of their sizes; all of them share the ray of constant columns, on which
the utility is zero. Simplices are halved where that lowers the bound. Their corners are stored as weights of the n
rays, which halve without rounding.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.kernel.listed import Caps
from ldpopt.design.kernel.numbers import Unproved, pair_prices, real_array, require, weights_array
from ldpopt.design.several_hypotheses.minimum_cut import Members, Network
from ldpopt.design.utilities.base import ColumnUtility
from ldpopt.design.utilities.laws import LawPair, MarginalComparisons
from ldpopt.design.work import Work
from ldpopt.divergences.enclosed import enclosed_excess
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


MAX_LAWS = 5  # The most laws: there are n! simplices to begin with, each of which has n (n - 1)/2 edges.
STEEPER = 2.0**-34
"""The share by which linear functions through the ray of constant columns are steeper than they must be."""


@dataclass(frozen=True, eq=False)
class Simplices:
    """m cones of masses. corners : (m, n, n) weights of the rays v_j, one corner in each row. orders : (m,) the number
    of the order of the masses (`LawShares.orders`).
    """

    corners: Array
    orders: Index

    @classmethod
    def whole(cls, n: int) -> Simplices:
        """The n! simplices that hold all masses."""
        every = math.factorial(n)
        return cls(np.tile(np.eye(n), (every, 1, 1)), np.arange(every))

    def __len__(self) -> int:
        return len(self.orders)

    def take(self, which: Index | Array) -> Simplices:
        """Some of the simplices."""
        return Simplices(self.corners[which], self.orders[which])

    def and_(self, other: Simplices) -> Simplices:
        """The simplices of both."""
        return Simplices(np.concatenate([self.corners, other.corners]), np.concatenate([self.orders, other.orders]))

    def halved(self, first: Index, second: Index) -> Simplices:
        """Both halves of each simplex, cut at the middle of the edge between two corners."""
        each = np.arange(len(self))
        middle = (self.corners[each, first] + self.corners[each, second]) / 2
        halves = []
        for corner in (first, second):
            half = self.corners.copy()
            half[each, corner] = middle
            halves.append(Simplices(half, self.orders))
        return halves[0].and_(halves[1])

    def exactly(self, first: Index, second: Index) -> Mask:
        """(m,) whether the middle of an edge is computed without rounding, so that the halves fill the simplex."""
        each = np.arange(len(self))
        left, right = self.corners[each, first], self.corners[each, second]
        # The error of a sum of two floats is a float [HIG, section 4.3]; halves of sums below 1 do not underflow here.
        total = left + right
        kept = total - left
        lost = (left - (total - kept)) + (right - kept)
        used = np.minimum(np.where(left > 0, left, 1.0), np.where(right > 0, right, 1.0))
        return np.asarray(((lost == 0) & (used > 2.0**-900)).all(axis=1))


@dataclass(frozen=True, eq=False)
class LawShares:
    """A utility of the masses under n laws, in one arithmetic. compared : the utility. shares : (terms,) the weights of
    its terms. mean : (k,) the mean of the laws. apart : (n - 1, k) every law but the first, less the first. level : t.
    laws : (n, k).
    """

    compared: MarginalComparisons
    shares: Enclosure
    mean: Enclosure
    apart: Enclosure
    level: Enclosure
    laws: Enclosure

    @classmethod
    def of(cls, compared: MarginalComparisons, criteria: Enclosure, level: Enclosure) -> LawShares:
        """The marginals of a utility whose criteria are mixed by the weights `criteria`, which sum to one."""
        of = level.arithmetic
        n = len(compared.laws)
        require(2 <= n <= MAX_LAWS, f"{n} laws are too many to cut their masses into simplices (at most {MAX_LAWS})")
        each = [LawPair.of(other, compared.laws[0], of) for other in compared.laws[1:]]
        laws = of.stack([each[0].p1, *(pair.p0 for pair in each)])
        shares = of.stack([criteria[term.criterion] * term.weight for term in compared.terms])
        return cls(compared, shares, laws.sum(axis=0) / n, of.stack([pair.difference for pair in each]), level, laws)

    @property
    def arithmetic(self) -> Arithmetic:
        """The arithmetic in which everything is computed."""
        return self.level.arithmetic

    @cached_property
    def orders(self) -> Index:
        """(n!, n) the place of each law in every order of the masses; the largest mass has place 0."""
        return np.array(list(itertools.permutations(range(len(self.compared.laws)))), dtype=np.intp)

    @cached_property
    def rays(self) -> Array:
        """(n, n) the rays v_j, one in each row, as exact floats; rounding only made their first j entries larger."""
        n = len(self.compared.laws)
        lower, upper = np.asarray(self.laws.lower), np.asarray(self.laws.upper)
        most = float(((self.level + 1) / self.level).upper)
        least = 1.0
        for own in range(n):
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                ratio = np.nextafter(upper / lower[own], np.inf)
            ratio = np.where(upper == 0, 0.0, np.where(np.isnan(ratio), np.inf, ratio)).max(axis=1)
            others = np.delete(np.fmin(ratio, most), own)
            # a_own >= n/(1 + sum of the largest ratios of the others to it) times the mean.
            least = min(least, n / (1 + float(others.sum())) * (1 - 2.0**-48))
        require(0 < least < np.inf, "the ratios of the masses are not bounded")
        room = np.nextafter(n * (1 - least), np.inf)
        first = np.nextafter(least + np.nextafter(room / np.arange(1.0, n + 1), np.inf), np.inf)
        return np.where(np.tri(n, dtype=bool), first[:, None], least)

    def masses(self, corners: Array) -> tuple[Enclosure, Enclosure]:
        """(m, n) sorted masses of corners (m, n), and (m, n, n) the differences of every two."""
        of, rays = self.arithmetic, self.rays
        n = len(rays)
        apart = of.of(rays[:, :, None]) - of.of(rays[:, None, :])
        weights = of.of(corners)
        return weights @ of.of(rays), (weights @ apart.reshape(n, n * n)).reshape(len(corners), n, n)

    def worth(self, corners: Array, orders: Index) -> tuple[Enclosure, Enclosure, Enclosure]:
        """For corners (m, n): the utility (m,), the mean mass (m,), and the other masses less the first (m, n - 1)."""
        masses, differences = self.masses(corners)
        each, place = np.arange(len(corners)), self.orders[orders]
        value = self.arithmetic.zeros(len(corners))
        for number, term in enumerate(self.compared.terms):
            first, second = place[:, term.first], place[:, term.second]
            d, a, b = differences[each, first, second], masses[each, first], masses[each, second]
            value = value + enclosed_excess(term.f, d, b, a) * self.shares[number]
        others = differences[each[:, None], place[:, 1:], place[:, :1]]
        return value, masses.sum(axis=1) / len(self.rays), others

    def of_corners(self, simplices: Simplices) -> tuple[Enclosure, Enclosure, Enclosure]:
        """`worth` of all corners: (m, n), (m, n) and (m, n, n - 1)."""
        m, n = len(simplices), len(self.rays)
        value, mean, apart = self.worth(simplices.corners.reshape(m * n, n), np.repeat(simplices.orders, n))
        return value.reshape(m, n), mean.reshape(m, n), apart.reshape(m, n, n - 1)

    def slopes(self, value: Array, mean: Array, apart: Array) -> Array:
        """(m, n - 1) slopes of linear functions through the utility at the corners, or nearly."""
        with np.errstate(all="ignore"):
            height, place = value / mean, apart / mean[:, :, None]
            rise, run = height[:, :-1] - height[:, -1:], place[:, :-1] - place[:, -1:]
            size = np.abs(run).max(axis=(1, 2), keepdims=True)
            usable = np.isfinite(rise).all(axis=1) & np.isfinite(run).all(axis=(1, 2)) & (size[:, 0, 0] > 0)
            run = np.where(usable[:, None, None], run / np.where(size > 0, size, 1.0), 0.0)
            rise = np.where(usable[:, None], rise / np.where(size > 0, size, 1.0)[:, 0], 0.0)
            slope = (np.linalg.pinv(run, rcond=1e-13) @ rise[:, :, None])[:, :, 0]
        slope = np.where(np.isfinite(slope), slope, 0.0)
        # The functions are zero at the ray of constant columns, and must not be below the utility at other corners.
        return np.asarray(np.where((value[:, -1:] == 0), slope * (1 + STEEPER), slope))

    def slopes_from_one(self, value: Array, mean: Array, apart: Array) -> Array:
        """(m, n - 1) slopes of linear functions that are zero at the ray of constant columns; NaN where none is above.
        Near that ray they are above the utility by no more than it is worth.
        """
        with np.errstate(all="ignore"):
            height, place = value / mean, apart / mean[:, :, None]
            usable = np.asarray(np.isfinite(height).all(axis=1) & np.isfinite(place).all(axis=(1, 2)))
            place = np.where(usable[:, None, None], place, 0.0)
            slope = (np.linalg.pinv(place, rcond=1e-13) @ np.where(usable[:, None], height, 0.0)[:, :, None])[:, :, 0]
            reached = (place * slope[:, None, :]).sum(axis=2)
            short = np.where(height > 0, height / np.where(reached > 0, reached, 0.0), 0.0).max(axis=1)
        usable &= np.isfinite(short) & (short > 0) & (reached >= 0).all(axis=1)
        return np.asarray(np.where(usable[:, None], slope * (short * (1 + STEEPER))[:, None], np.nan))

    def planes(self, value: Enclosure, mean: Enclosure, apart: Enclosure, slopes: Array) -> Enclosure:
        """(m,) levels of linear functions  level mean + slopes.apart  not below the utility on the simplices."""
        of = self.arithmetic
        sloped = (apart * of.of(slopes)[:, None, :]).sum(axis=2)
        return ((value - sloped) / mean).max(axis=1)
