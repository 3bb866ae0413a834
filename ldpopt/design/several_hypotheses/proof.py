"""The certificate of utilities of the marginals of a few distributions, under epsilon-LDP and a cap on total variation.

Where multipliers fall short, they are raised. A simplex of masses needs one of two raises. (1) The rows by delta times
the mean w of the distributions, which costs delta, because w.Q sums to one. (2) Where h sums to zero or less, the pair
(x, x') by p_x r_x'. The flow p_x r_x' takes the same fraction of every profit h_+ away, and divides it among the losses
in proportion. It costs eta sum p sum r, which is less where eta is small. One raise serves all simplices if it is as
large as each needs.

With t = 1/(e^epsilon - 1), every column of an epsilon-LDP channel is a multiple of some s in [t, t + 1]^k. Let w >= 0
be weights of the criteria that sum to one, lambda multipliers of the rows, and nu >= 0 of the pairs. They prove L + eta
sum nu, L = sum lambda, where no column gains:

    sum_j w_j mu_j(s) <= lambda.s + sum nu[x,x'] (s_x - s_x')_+    for all s in [t, t + 1]^k.

However many inputs there are, the left side is a convex, homogeneous function of n masses P_i.s, one for each
distribution. The masses of all columns lie in simplices (`simplices`). On each simplex the utility lies below a linear
function g of s. A flow 0 <= z <= nu between the inputs makes the terms of the pairs linear, since nu (a)_+ >= z a. The
difference h = g - lambda - div z  gains at most  t (sum g - L) + sum h_+.  Where that is above zero, lambda is raised
by delta times the mean of the distributions, or nu (see `Raise`). Linear functions, flows and simplices are computed in
floats; any of them give a valid bound.

Simplices of marginals: linear functions above a utility that compares the masses of a column under a few distributions.

A column s has the masses a_i = P_i.s under n distributions. Its utility is a convex and homogeneous function of them.
So on a cone with n rays it lies below the linear function that agrees with it on these rays. The masses of any column
within [t, t + 1]^k have a_i >= c times their mean, for some c that follows from t and the ratios of the distributions.
Sorted by size, they lie in the cone of the rays v_1, ..., v_n, where v_j is c + M/j in its first j entries and c in the
others. So n! simplices hold all masses, one for each order of their sizes. All of them share the ray of constant
columns, where the utility is zero. Simplices are halved where that lowers the bound. Their corners are stored as
weights of the n rays, which halve without rounding.
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
RAISE_MARGIN = 2.0**-46  # Relative increase of a raise, computed in floats, before it is checked.


@dataclass(frozen=True, eq=False)
class Raise:
    """A raise that is enough on each of m simplices: of the rows by delta (m,), or of the pairs by (m, n) numbers.

    profits, shares : (m, n), which raise the pair (x, x') by profits[x] shares[x'].
    """

    delta: Array
    profits: Array
    shares: Array

    def cost(self, eta: float) -> tuple[Array, Array]:
        """Compute the costs of both ways for each simplex alone, (m,) each."""
        with np.errstate(all="ignore"):
            return self.delta, np.nan_to_num(
                eta * self.profits.sum(axis=1) * self.shares.sum(axis=1), nan=np.inf, posinf=np.inf
            )

    def total(self, eta: Enclosure) -> Enclosure:
        """Compute the cost of one raise for all simplices, each in its cheaper way."""
        arithmetic = eta.arithmetic
        by_rows, by_pairs = self.cost(float(eta.midpoint))
        rows = by_rows <= by_pairs
        cost = arithmetic.of(self.delta[rows].max(initial=0.0))
        if not rows.all():
            sums = [arithmetic.of(part[~rows].max(axis=0)).sum() for part in (self.profits, self.shares)]
            cost = cost + eta * sums[0] * sums[1]
        return cost


def raise_of_both(
    net_utility: Enclosure, base: Enclosure, sinks: Mask, mean: Enclosure, level: Enclosure, scale: float
) -> Raise:
    """Compute the raise that is enough, of the rows or of the pairs.

    It is of the pairs only where `net_utility` sums to zero or less, in `sinks`. For the other arguments see
    `raise_of_rows`.
    """
    gains, losses = net_utility.positive(), (-net_utility).positive()
    total_gain = np.maximum(np.asarray((base + gains.sum(axis=1)).upper), 0.0)
    with np.errstate(all="ignore"):
        # The same fraction of every profit must go, and every loss takes its part of it.
        fraction = np.fmin(np.nextafter(total_gain / np.asarray(gains.sum(axis=1).lower), np.inf), 1.0)
        profits = np.nextafter(np.asarray(gains.upper) * np.where(total_gain > 0, fraction, 0.0)[:, None], np.inf)
        shares = np.nextafter(np.asarray(losses.upper) / np.asarray(losses.sum(axis=1).lower)[:, None], np.inf)
    profits = np.where((total_gain > 0)[:, None] & (np.asarray(gains.upper) > 0), profits, 0.0)
    profits = np.where(np.asarray(sinks)[:, None] & np.isfinite(profits), profits, np.inf)
    shares = np.where((total_gain > 0)[:, None], np.fmin(shares, 1.0), 0.0)
    return Raise(raise_of_rows(net_utility, base, mean, level, scale), profits, shares)


def raise_of_rows(net_utility: Enclosure, base: Enclosure, mean: Enclosure, level: Enclosure, scale: float) -> Array:
    """Compute (m,) numbers delta with base - t delta + sum (net_utility - delta w)_+ <= 0.

    This surely holds; a number is inf if none is proved.

    - `net_utility` : (m, n), linear utilities less the row multipliers.
    - `base` : (m,) t times the sums of `net_utility`.
    - `mean` : (n,) w, the distribution that rows are raised by.
    - `level` : t.
    - `scale` : the size of the multipliers, the unit of shortfalls.
    """
    float_raise = minimal_raise(net_utility.midpoint, base.midpoint, mean.midpoint, float(level.midpoint))
    proved_raise = np.full(len(float_raise), np.inf)
    for step in range(6):
        unproved_rows = np.flatnonzero(~(proved_raise < np.inf))
        trial = float_raise[unproved_rows] + (16.0**step - 1) * RAISE_MARGIN * np.maximum(
            float_raise[unproved_rows], scale
        )
        delta = level.arithmetic.of(trial)
        gain = base[unproved_rows] - level * delta
        gain = gain + (net_utility[unproved_rows] - delta[:, None] * mean).positive().sum(axis=1)
        is_proved = np.asarray(gain.upper) <= 0
        proved_raise[unproved_rows[is_proved]] = trial[is_proved]
        if is_proved.all():
            break
    return proved_raise


def minimal_raise(net_utility: Array, base: Array, mean: Array, level: float) -> Array:
    """Compute (m,) the smallest such delta >= 0 in floats, by Newton's method."""
    delta = np.zeros(len(base))
    with np.errstate(all="ignore"):
        for _ in range(60):
            net = net_utility - delta[:, None] * mean
            gain = base - level * delta + np.maximum(net, 0.0).sum(axis=1)
            slope = level + np.where(net > 0, mean, 0.0).sum(axis=1)
            next_delta = np.where(gain > 0, delta + gain / slope, delta)
            if not (next_delta > delta).any():
                break
            delta = next_delta
    return np.where(np.isfinite(delta), delta, 0.0)


MAX_HALVING_ROUNDS = 200
MAX_NUMBERS_AT_ONCE = 2_000_000  # Simplices times inputs times distributions.
MAX_SIMPLICES = {2: 4000, 3: 8000, 4: 20_000, 5: 60_000}  # By the number of distributions.
MAX_FLOWS = 20_000
"""The limit for one bound. Simplices that remain without a good flow make the bound larger, never wrong."""
BOUND_RTOL = {2: 2.0**-28, 3: 2.0**-26, 4: 2.0**-23, 5: 2.0**-21}
"""Simplices that raise the bound by a smaller fraction are not halved; by the number of distributions."""


@dataclass(frozen=True, eq=False, repr=False)
class MarginalDual(Certificate):
    """Multipliers for a utility of the marginals of two to five distributions, proved on simplices [KOV14, Thm 2].

    - `rows` : (k,) multipliers of the row sums.
    - `pairs` : (k, k) non-negative multipliers of the caps on total variation; zero without a cap. Entry (x, x') is for
      columns larger at x than at x', and the diagonal is ignored.
    - `weights` : (criteria,) non-negative, not all zero.
    """

    proves = ColumnUtility
    rows: Array
    pairs: Array
    weights: Array
    argument = "weak duality, a linear function above the utility on every simplex of the marginals"

    def work(self) -> Work:
        """Bound the work on simplices, with numbers per input and distribution, and on flows."""
        comparisons = self.utility.compared
        k, n = self.answers, 1 if comparisons is None else min(len(comparisons.laws), 5)
        simplices = float(MAX_SIMPLICES.get(n, 0))
        flow_count = MAX_FLOWS if np.any(self.pairs) else 0.0
        flows = Work(flow_count * (2000.0 + 12 * float(k) ** 2), 60.0 * float(k) ** 2)
        return Work.on(simplices * k * n, 60.0, min(simplices * k * n, MAX_NUMBERS_AT_ONCE)) + flows

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """Compute sum rows + eta sum pairs, raised by the largest shortfall over all simplices."""
        comparisons = self.utility.compared
        if comparisons is None:
            raise Unproved(f"{self.utility.name} is no utility of the marginals of a few finite laws")
        k = self.utility.size
        rows = real_array(self.rows, (k,), "rows")
        pairs = pair_prices(self.pairs, k, "pairs")
        weights = weights_array(self.weights, (comparisons.criteria,), "weights", "the criteria")
        cases = []
        for ground in (FLOAT, arithmetic):
            caps = Caps.from_constraints(self.constraints, ground)
            shares = ground.of(weights) * ground.of(1 / exact_sum(weights))
            cases.append((caps.eta, LawShares.from_comparisons(comparisons, shares, caps.level)))
        (eta, floats), (exact_eta, marginals) = cases
        total = arithmetic.of(exact_sum(rows)) + exact_eta * arithmetic.of(pairs).sum()
        search_result = Search(floats, rows, Network(pairs), eta).run(
            BOUND_RTOL[len(comparisons.laws)] * abs(float(total.midpoint))
        )
        return total + search_result.cost_of_raising(marginals, rows, exact_eta)


@dataclass(frozen=True, eq=False)
class Found:
    """Simplices that hold all masses, with slopes of linear functions and net flows on each: any floats are valid.

    - `sent` : (m, k) the net outflow of each input, or None without flows.
    - `gained` : the largest gain of a column that was seen, per unit of its mean mass; 0 for none.
    - `columns` : (n, k) the sets whose columns were seen to gain more than the accuracy.
    """

    simplices: Simplices
    slopes: Array
    sent: Enclosure | None
    gained: float
    columns: Members

    def cost_of_raising(self, marginals: LawShares, rows: Array, eta: Enclosure) -> Enclosure:
        """Compute the cost of raising the multipliers enough on all simplices.

        The cost is added to the bound.
        """
        arithmetic, raises = marginals.arithmetic, list[Raise]()
        step = max(1, MAX_NUMBERS_AT_ONCE // (len(rows) * len(marginals.compared.laws)))
        for batch_start in range(0, len(self.simplices), step):
            part = np.arange(batch_start, min(batch_start + step, len(self.simplices)))
            net_utility, base = _utility_less_rows(marginals, self.simplices.take(part), self.slopes[part], rows)
            if self.sent is not None:
                net_outflow = self.sent[part]
                net_utility = net_utility - (
                    net_outflow if arithmetic is FLOAT else arithmetic.between(net_outflow.lower, net_outflow.upper)
                )
            raises.append(_required_raise(marginals, net_utility, base, rows, self.sent is not None))
        fields = (np.concatenate([getattr(item, name) for item in raises]) for name in ("delta", "profits", "shares"))
        return Raise(*fields).total(eta)


def _required_raise(
    marginals: LawShares, net_utility: Enclosure, base: Enclosure, rows: Array, has_flows: bool
) -> Raise:
    """Compute the raise of the multipliers that is enough; by pairs only where flows were routed."""
    sinks = np.asarray(base.upper) <= 0
    scale = float(np.abs(rows).sum()) + np.finfo(np.float64).tiny
    return raise_of_both(
        net_utility, base, sinks if has_flows else sinks & False, marginals.mean, marginals.level, scale
    )


def _utility_less_rows(
    marginals: LawShares, simplices: Simplices, slopes: Array, rows: Array
) -> tuple[Enclosure, Enclosure]:
    """Compute (m, k) the linear functions less the row multipliers, and (m,) t times their sums."""
    arithmetic = marginals.arithmetic
    level = marginals.planes(*marginals.of_corners(simplices), slopes)
    plane = level[:, None] * marginals.mean + arithmetic.of(slopes) @ marginals.differences
    return plane - arithmetic.of(rows), marginals.level * (level - arithmetic.of(exact_sum(rows)))


@dataclass(frozen=True, eq=False)
class Search:
    """The search in floats for simplices where multipliers suffice."""

    marginals: LawShares
    rows: Array
    network: Network
    eta: Enclosure

    @cached_property
    def _edges(self) -> tuple[Index, Index]:
        first, second = np.triu_indices(len(self.marginals.compared.laws), 1)
        return first.astype(np.intp), second.astype(np.intp)

    def run(self, accuracy: float) -> Found:
        """Search for simplices by halving.

        A simplex is halved while its raise costs more, by `accuracy`, than some column needs.
        """
        m, k, n = self.marginals, len(self.rows), len(self.marginals.compared.laws)
        routes, cap = bool(self.network.pairs.any()), float(self.eta.midpoint)
        simplices = Simplices.cover(n)
        net_outflow = FLOAT.zeros((len(simplices), k if routes else 0))
        finished_blocks: list[tuple[Simplices, Array, Enclosure]] = []
        best_gain, flows, total = 0.0, 0, len(simplices)
        gaining_sets = [np.zeros((0, k), dtype=bool)]
        for number in range(MAX_HALVING_ROUNDS):
            corners = m.of_corners(simplices)
            midpoints = [np.asarray(part.midpoint) for part in corners]
            slopes = m.slopes(*midpoints)
            net_utility, base = _utility_less_rows(m, simplices, slopes, self.rows)
            if routes:
                # Pairs cannot pay for a function that is above zero at the ray of constant columns.
                other = m.slopes_from_one(*midpoints)
                is_turned = (np.asarray(base.upper) > 0) & np.isfinite(other).all(axis=1)
                if is_turned.any():
                    slopes = np.where(is_turned[:, None], other, slopes)
                    net_utility, base = _utility_less_rows(m, simplices, slopes, self.rows)
                required_raises = np.minimum(
                    *_required_raise(m, net_utility - net_outflow, base, self.rows, True).cost(cap)
                )
                routed_simplices = np.flatnonzero(required_raises > best_gain + accuracy)[: max(MAX_FLOWS - flows, 0)]
                flows += len(routed_simplices)
                new_outflow, sets_by_simplex = self.network.sent_and_sides(
                    np.asarray(net_utility.midpoint)[routed_simplices]
                )
                new_required = np.minimum(
                    *_required_raise(
                        m, net_utility[routed_simplices] - new_outflow, base[routed_simplices], self.rows, True
                    ).cost(cap)
                )
                is_smaller = new_required < required_raises[routed_simplices]
                required_raises[routed_simplices[is_smaller]] = new_required[is_smaller]
                net_outflow = _replace_rows(net_outflow, routed_simplices[is_smaller], new_outflow[is_smaller])
            else:
                middle = np.asarray(net_utility.midpoint)
                required_raises = minimal_raise(
                    middle, np.asarray(base.midpoint), np.asarray(m.mean.midpoint), float(m.level.midpoint)
                )
                sets_by_simplex = middle > 0
            gains = self.gains(sets_by_simplex)
            if not routes:  # A raise by rows costs at least the gain of any column; one by pairs may cost less.
                best_gain = max(best_gain, float(gains.max(initial=0.0)))
            gaining_sets.append(sets_by_simplex[gains > accuracy])
            open_simplices = np.flatnonzero(required_raises > best_gain + accuracy)
            total += len(open_simplices)
            if not (
                total <= MAX_SIMPLICES[n]
                and len(open_simplices) * k * n <= MAX_NUMBERS_AT_ONCE
                and flows < MAX_FLOWS
                and number < MAX_HALVING_ROUNDS - 1
            ):
                open_simplices = open_simplices[:0]
            first, second = self._cut(simplices.take(open_simplices), corners[0][open_simplices])
            is_exact = simplices.take(open_simplices).exactly(first, second)
            open_simplices, first, second = open_simplices[is_exact], first[is_exact], second[is_exact]
            closed_simplices = np.setdiff1d(np.arange(len(simplices)), open_simplices)
            finished_blocks.append(
                (simplices.take(closed_simplices), slopes[closed_simplices], net_outflow[closed_simplices])
            )
            if not len(open_simplices):
                break
            simplices = simplices.take(open_simplices).halved(first, second)
            net_outflow = FLOAT.concatenate([net_outflow[open_simplices], net_outflow[open_simplices]])
        all_simplices = Simplices(
            *(np.concatenate([getattr(entry[0], name) for entry in finished_blocks]) for name in ("corners", "orders"))
        )
        all_outflows = FLOAT.concatenate([entry[2] for entry in finished_blocks]) if routes else None
        columns = np.unique(np.concatenate(gaining_sets), axis=0)
        return Found(
            all_simplices, np.concatenate([entry[1] for entry in finished_blocks]), all_outflows, best_gain, columns
        )

    def gains(self, sides: Members) -> Array:
        """Compute (n,) the gains of the columns of the sets (n, k), per unit of their mean mass."""
        m, level = self.marginals, float(self.marginals.level.midpoint)
        if not len(sides):
            return np.zeros(0)
        laws = np.asarray(m.laws.midpoint)
        masses = level + sides @ laws.T
        values = np.zeros(len(sides))
        for share, term in zip(np.asarray(m.shares.midpoint), m.compared.terms, strict=True):
            values += share * term.f.excess(masses[:, term.first], masses[:, term.second])
        pairs = self.network.pairs
        prices = level * float(exact_sum(self.rows)) + sides @ self.rows
        if pairs.any():
            prices = prices + ((sides @ pairs) * ~sides).sum(axis=1)
        return np.asarray((values - prices) / masses.mean(axis=1))

    def _cut(self, simplices: Simplices, value: Enclosure) -> tuple[Index, Index]:
        """Choose the edges whose middles lie farthest below the linear function, or else the longest."""
        first, second = self._edges
        m, n, count = len(simplices), simplices.corners.shape[1], len(first)
        middles = (simplices.corners[:, first] + simplices.corners[:, second]) / 2
        middle_value, _, _ = self.marginals.worth(middles.reshape(m * count, n), np.repeat(simplices.orders, count))
        height = np.asarray(value.midpoint)
        excess = (height[:, first] + height[:, second]) / 2 - np.asarray(middle_value.midpoint).reshape(m, count)
        length = np.abs(simplices.corners[:, first] - simplices.corners[:, second]).sum(axis=2)
        size = np.abs(height).max(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            best = np.argmax(np.nan_to_num(excess, nan=0.0, posinf=np.inf) + 2.0**-44 * size * length, axis=1)
        return first[best], second[best]


def _replace_rows(net_outflow: Enclosure, rows: Index, new: Enclosure) -> Enclosure:
    low, high = np.array(net_outflow.lower), np.array(net_outflow.upper)
    low[rows], high[rows] = new.lower, new.upper
    return FLOAT.between(low, high)


MAX_LAWS = 5  # There are n! initial simplices, and each has n (n - 1)/2 edges.
SLOPE_MARGIN = 2.0**-34
"""The relative excess in steepness of linear functions through the ray of constant columns."""


@dataclass(frozen=True, eq=False)
class Simplices:
    """A number m of cones of masses.

    - `corners` : (m, n, n) weights of the rays v_j, one corner in each row.
    - `orders` : (m,) the number of the order of the masses (`LawShares.orders`).
    """

    corners: Array
    orders: Index

    @classmethod
    def cover(cls, n: int) -> Simplices:
        """Build the n! simplices that hold all masses."""
        count = math.factorial(n)
        return cls(np.tile(np.eye(n), (count, 1, 1)), np.arange(count))

    def __len__(self) -> int:
        return len(self.orders)

    def take(self, indices: Index | Array) -> Simplices:
        """Select some of the simplices."""
        return Simplices(self.corners[indices], self.orders[indices])

    def and_(self, other: Simplices) -> Simplices:
        """Join the simplices of both."""
        return Simplices(np.concatenate([self.corners, other.corners]), np.concatenate([self.orders, other.orders]))

    def halved(self, first: Index, second: Index) -> Simplices:
        """Split each simplex in two at the middle of the edge between two corners."""
        simplex_numbers = np.arange(len(self))
        middle = (self.corners[simplex_numbers, first] + self.corners[simplex_numbers, second]) / 2
        halves = []
        for corner in (first, second):
            half = self.corners.copy()
            half[simplex_numbers, corner] = middle
            halves.append(Simplices(half, self.orders))
        return halves[0].and_(halves[1])

    def exactly(self, first: Index, second: Index) -> Mask:
        """Mark (m,) the simplices where the middle of an edge is computed without rounding.

        Only then the halves fill the simplex.
        """
        simplex_numbers = np.arange(len(self))
        left, right = self.corners[simplex_numbers, first], self.corners[simplex_numbers, second]
        # The error of a sum of two floats is a float [HIG, section 4.3]; halves of sums below 1 do not underflow here.
        total = left + right
        rounded_right = total - left
        rounding_error = (left - (total - rounded_right)) + (right - rounded_right)
        smallest_weight = np.minimum(np.where(left > 0, left, 1.0), np.where(right > 0, right, 1.0))
        return np.asarray(((rounding_error == 0) & (smallest_weight > 2.0**-900)).all(axis=1))


@dataclass(frozen=True, eq=False)
class LawShares:
    """A utility of the masses under n distributions, in one arithmetic.

    - `compared` : the utility.
    - `shares` : (terms,) the weights of its terms.
    - `mean` : (k,) the mean of the distributions.
    - `differences` : (n - 1, k) every distribution but the first, less the first.
    - `level` : t.
    - `laws` : (n, k).
    """

    compared: MarginalComparisons
    shares: Enclosure
    mean: Enclosure
    differences: Enclosure
    level: Enclosure
    laws: Enclosure

    @classmethod
    def from_comparisons(cls, comparisons: MarginalComparisons, criteria: Enclosure, level: Enclosure) -> LawShares:
        """Build the marginals of a utility.

        criteria : weights of the criteria that sum to one.
        """
        arithmetic = level.arithmetic
        n = len(comparisons.laws)
        require(2 <= n <= MAX_LAWS, f"{n} laws are too many to cut their masses into simplices (at most {MAX_LAWS})")
        pairs = [LawPair.from_floats(other, comparisons.laws[0], arithmetic) for other in comparisons.laws[1:]]
        laws = arithmetic.stack([pairs[0].p1, *(pair.p0 for pair in pairs)])
        shares = arithmetic.stack([criteria[term.criterion] * term.weight for term in comparisons.terms])
        return cls(
            comparisons,
            shares,
            laws.sum(axis=0) / n,
            arithmetic.stack([pair.difference for pair in pairs]),
            level,
            laws,
        )

    @property
    def arithmetic(self) -> Arithmetic:
        """The arithmetic of all computations."""
        return self.level.arithmetic

    @cached_property
    def orders(self) -> Index:
        """The place of each distribution in every order of the masses, (n!, n); the largest mass has place 0."""
        return np.array(list(itertools.permutations(range(len(self.compared.laws)))), dtype=np.intp)

    @cached_property
    def rays(self) -> Array:
        """The rays v_j, (n, n), one in each row, as exact floats; rounding only made their first j entries larger."""
        n = len(self.compared.laws)
        lower, upper = np.asarray(self.laws.lower), np.asarray(self.laws.upper)
        max_ratio = float(((self.level + 1) / self.level).upper)
        smallest_share = 1.0
        for law in range(n):
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                ratio = np.nextafter(upper / lower[law], np.inf)
            ratio = np.where(upper == 0, 0.0, np.where(np.isnan(ratio), np.inf, ratio)).max(axis=1)
            others = np.delete(np.fmin(ratio, max_ratio), law)
            # a_own >= n/(1 + sum of the largest ratios of the others to it) times the mean.
            smallest_share = min(smallest_share, n / (1 + float(others.sum())) * (1 - 2.0**-48))
        require(0 < smallest_share < np.inf, "the ratios of the masses are not bounded")
        excess = np.nextafter(n * (1 - smallest_share), np.inf)
        first = np.nextafter(smallest_share + np.nextafter(excess / np.arange(1.0, n + 1), np.inf), np.inf)
        return np.where(np.tri(n, dtype=bool), first[:, None], smallest_share)

    def masses(self, corners: Array) -> tuple[Enclosure, Enclosure]:
        """Compute (m, n) sorted masses of corners (m, n), and (m, n, n) all differences."""
        arithmetic, rays = self.arithmetic, self.rays
        n = len(rays)
        ray_differences = arithmetic.of(rays[:, :, None]) - arithmetic.of(rays[:, None, :])
        weights = arithmetic.of(corners)
        return weights @ arithmetic.of(rays), (weights @ ray_differences.reshape(n, n * n)).reshape(len(corners), n, n)

    def worth(self, corners: Array, orders: Index) -> tuple[Enclosure, Enclosure, Enclosure]:
        """Compute the utility at corners (m, n).

        Returns the utility (m,), the mean mass (m,), and the other masses less the first (m, n - 1).
        """
        masses, differences = self.masses(corners)
        corner_numbers, place = np.arange(len(corners)), self.orders[orders]
        value = self.arithmetic.zeros(len(corners))
        for number, term in enumerate(self.compared.terms):
            first, second = place[:, term.first], place[:, term.second]
            d, a, b = (
                differences[corner_numbers, first, second],
                masses[corner_numbers, first],
                masses[corner_numbers, second],
            )
            value = value + enclosed_excess(term.f, d, b, a) * self.shares[number]
        others = differences[corner_numbers[:, None], place[:, 1:], place[:, :1]]
        return value, masses.sum(axis=1) / len(self.rays), others

    def of_corners(self, simplices: Simplices) -> tuple[Enclosure, Enclosure, Enclosure]:
        """Compute `worth` of all corners: (m, n), (m, n) and (m, n, n - 1)."""
        m, n = len(simplices), len(self.rays)
        value, mean, differences = self.worth(simplices.corners.reshape(m * n, n), np.repeat(simplices.orders, n))
        return value.reshape(m, n), mean.reshape(m, n), differences.reshape(m, n, n - 1)

    def slopes(self, value: Array, mean: Array, differences: Array) -> Array:
        """Compute (m, n - 1) slopes of linear functions near the utility at the corners."""
        with np.errstate(all="ignore"):
            relative_value, place = value / mean, differences / mean[:, :, None]
            rise, run = relative_value[:, :-1] - relative_value[:, -1:], place[:, :-1] - place[:, -1:]
            size = np.abs(run).max(axis=(1, 2), keepdims=True)
            is_usable = np.isfinite(rise).all(axis=1) & np.isfinite(run).all(axis=(1, 2)) & (size[:, 0, 0] > 0)
            run = np.where(is_usable[:, None, None], run / np.where(size > 0, size, 1.0), 0.0)
            rise = np.where(is_usable[:, None], rise / np.where(size > 0, size, 1.0)[:, 0], 0.0)
            slope = (np.linalg.pinv(run, rcond=1e-13) @ rise[:, :, None])[:, :, 0]
        slope = np.where(np.isfinite(slope), slope, 0.0)
        # The functions are zero at the ray of constant columns, and must not be below the utility at other corners.
        return np.asarray(np.where((value[:, -1:] == 0), slope * (1 + SLOPE_MARGIN), slope))

    def slopes_from_one(self, value: Array, mean: Array, differences: Array) -> Array:
        """Compute (m, n - 1) slopes of linear functions that are zero on constant columns.

        They are NaN where no such function is above the utility. Near the ray of constant columns they are above the
        utility by no more than its value.
        """
        with np.errstate(all="ignore"):
            relative_value, place = value / mean, differences / mean[:, :, None]
            is_usable = np.asarray(np.isfinite(relative_value).all(axis=1) & np.isfinite(place).all(axis=(1, 2)))
            place = np.where(is_usable[:, None, None], place, 0.0)
            slope = (
                np.linalg.pinv(place, rcond=1e-13) @ np.where(is_usable[:, None], relative_value, 0.0)[:, :, None]
            )[:, :, 0]
            plane_value = (place * slope[:, None, :]).sum(axis=2)
            scale = np.where(relative_value > 0, relative_value / np.where(plane_value > 0, plane_value, 0.0), 0.0).max(
                axis=1
            )
        is_usable &= np.isfinite(scale) & (scale > 0) & (plane_value >= 0).all(axis=1)
        return np.asarray(np.where(is_usable[:, None], slope * (scale * (1 + SLOPE_MARGIN))[:, None], np.nan))

    def planes(self, value: Enclosure, mean: Enclosure, differences: Enclosure, slopes: Array) -> Enclosure:
        """Compute (m,) levels of linear functions that are not below the utility.

        The functions are  level mean + slopes.differences  on the simplices.
        """
        arithmetic = self.arithmetic
        slope_part = (differences * arithmetic.of(slopes)[:, None, :]).sum(axis=2)
        return ((value - slope_part) / mean).max(axis=1)
