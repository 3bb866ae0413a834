"""The certificate by likelihood ratios under epsilon-LDP and a cap on total variation, for any number of inputs.

With t = 1/(e^epsilon - 1), every column of an epsilon-LDP channel is a multiple of some s in [t, t + 1]^n. Multipliers
lambda of the rows, with sum L >= 0, and nu >= 0 of the pairs prove L + eta sum nu where no column gains:

    mu(s) <= lambda.s + sum nu[x,x'] (s_x - s_x')_+    for all s in [t, t + 1]^n.

Where the ratio of a column's marginals (a, b) lies in an interval, mu lies below a plane slope (a - b) + even b, linear
in s. A flow 0 <= z <= nu between the inputs makes the terms of the pairs linear, too, since nu (a)_+ >= z a. The
difference

    h_x = slope (P0 - P1)[x] + even P1[x] - lambda_x - (div z)_x    gains at most   t (even - L) + sum h_+.

Where that is above zero, the multipliers fall short, and are raised in the cheaper of two ways.

(1) Raise lambda by delta times the mean w of the hypotheses. It costs delta, because w.Q sums to one.
(2) Where even <= L, so that h sums to zero or less, raise nu[x,x'] by p_x r_x'. The flow p_x r_x' takes the same share
of every profit h_+ away, and divides it among the losses in proportion. It costs eta sum p sum r, which is less where
eta is small.

Any flow gives a bound. Good flows are found in floats, by minimum cuts, and enter with their rounding errors. Without a
cap on total variation there are no flows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ldpopt.design.certificates.base import Certificate, Unproved
from ldpopt.design.certificates.hypotheses import Classes
from ldpopt.design.certificates.minimum_cut import Network
from ldpopt.design.certificates.numbers import nonnegative_array, real_array
from ldpopt.design.certificates.plain import Caps
from ldpopt.design.certificates.raises import Mask, Raise, raise_of_both
from ldpopt.design.utilities.divergence import Divergence
from ldpopt.design.utilities.laws import Laws
from ldpopt.distribution import Array, Index
from ldpopt.divergences import FDivergence
from ldpopt.divergences.enclosed import enclosed_excess
from ldpopt.enclosures import FLOAT, Arithmetic, Enclosure
from ldpopt.rounding import exact_sum

START = 128
"""The number of intervals of ratios to begin with."""

HALVINGS = 30
"""The most times that an interval is halved."""

FLOWS = 20_000
"""The most flows for one bound. Intervals that remain without a good flow make the bound larger, never wrong."""

CELLS = 4_000_000
"""The most intervals times inputs that are halved at a time."""

ACCURACY = 2.0**-32
"""Intervals that raise the bound by less than this share of it are not halved."""

BETTER = 0.8
"""An interval is halved again if it needs less than this factor times what the interval it is half of needed."""

STEEPER = 2.0**-34
"""The share by which planes are steeper than chords."""


@dataclass(frozen=True, eq=False, repr=False)
class RatioDual(Certificate):
    """Multipliers of epsilon-LDP and eta-TV, proved on every interval of likelihood ratios by a flow.

    classes : (k,) integers 0..n-1, the class of each input; inputs of one class have exactly equal likelihood ratios,
    or never occur. rows : (n,) multipliers of the row sums. pairs : (n, n) non-negative multipliers of the caps on
    total variation; entry (x, x') is for columns larger at x than at x', and the diagonal is ignored; zero without a
    cap.
    """

    proves = Divergence

    rows: Array
    pairs: Array
    classes: Index

    argument = "weak duality of the ratio-labelled program, a flow on every interval of ratios"

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """sum rows + eta sum pairs, raised by the largest shortfall over all intervals of ratios."""
        if self.utility.pair is None:
            raise Unproved(f"{self.utility.name} is not a divergence of two finite hypotheses")
        caps = Caps.of(self.constraints, arithmetic)
        p0, p1 = (np.asarray(p) for p in self.utility.pair)
        classes = Classes.checked(self.classes, p0, p1)
        n = classes.count
        rows = real_array(self.rows, (n,), "rows")
        pairs = nonnegative_array(self.pairs, (n, n), "pairs") * ~np.eye(n, dtype=bool)
        total = arithmetic.of(exact_sum(rows)) + caps.eta * arithmetic.of(pairs).sum()
        ratios = _Ratios(
            self.finite.f,
            classes.laws(p0, p1, arithmetic),
            caps.level,
            arithmetic.of(rows),
            arithmetic.of(exact_sum(rows)),
        )
        if not ratios.total.lower >= 0:
            raise Unproved("the rows sum to less than zero")
        return total + _raised(ratios, Network(pairs), caps.eta, ACCURACY * abs(float(total.midpoint)))


@dataclass(frozen=True, eq=False)
class _Ratios:
    """The gains of columns above the multipliers `rows`, by likelihood ratio; `total` is the sum of the rows."""

    f: FDivergence
    laws: Laws
    level: Enclosure
    rows: Enclosure
    total: Enclosure

    @cached_property
    def mean(self) -> Enclosure:
        """(n,) w, the mean of the hypotheses."""
        return (self.laws.p0 + self.laws.p1) / 2

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The least and the largest ratio of a column, from the inputs' ratios and [e^-epsilon, e^epsilon]."""
        low = np.asarray((self.level / (self.level + 1)).lower)
        high = np.asarray(((self.level + 1) / self.level).upper)
        own_low, own_high = (np.asarray(end) for end in self._own)
        return float(max(low, own_low)), float(min(high, own_high))

    @property
    def _own(self) -> tuple[float, float]:
        p0, p1 = self.laws.p0, self.laws.p1
        used = ~((np.asarray(p0.upper) == 0) & (np.asarray(p1.upper) == 0))
        with np.errstate(divide="ignore", over="ignore"):
            low = np.nextafter(np.asarray(p0.lower)[used] / np.asarray(p1.upper)[used], 0.0)
            high = np.nextafter(np.asarray(p0.upper)[used] / np.asarray(p1.lower)[used], np.inf)
        return float(np.fmax(low, 0.0).min()), float(high.max())

    def planes(self, low: Array, high: Array) -> tuple[Array, Enclosure]:
        """(intervals,) slopes, and values at ratio one, of planes above mu where the ratio is in [low, high]."""
        of = self.level.arithmetic
        ones = of.of(np.ones(len(low)))
        at_low, at_high = of.of(low) - 1, of.of(high) - 1
        below, above = (enclosed_excess(self.f, d, ones, of.of(r)) for d, r in ((at_low, low), (at_high, high)))
        with np.errstate(all="ignore"):
            slope = (above.midpoint - below.midpoint) / (high - low)
        # Any slope is valid. Slightly steeper than the chord, the plane is below zero at ratio one despite rounding.
        slope = np.where(np.isfinite(slope), slope * (1 + STEEPER), 0.0)
        return np.asarray(slope), (below - at_low * slope).maximum(above - at_high * slope)

    def left(self, slope: Array, even: Enclosure) -> tuple[Enclosure, Enclosure]:
        """(intervals, n) the planes less the row multipliers, and (intervals,) t times the sums of that."""
        chord = self.laws.apart * slope[:, None] + even[:, None] * self.laws.p1
        return chord - self.rows, self.level * (even - self.total)

    def needs(self, left: Enclosure, base: Enclosure, sinks: Mask) -> Raise:
        """The raise that is enough; of the pairs only where `left` sums to zero or less, in `sinks`."""
        return raise_of_both(left, base, sinks, self.mean, self.level, self.scale)

    @cached_property
    def scale(self) -> float:
        """The size of the multipliers, by which shortfalls are measured."""
        return float(np.abs(np.asarray(self.rows.midpoint)).sum()) + np.finfo(np.float64).tiny


def _raised(ratios: _Ratios, network: Network, eta: Enclosure, accuracy: float) -> Enclosure:
    """The cost of raising the multipliers until they fall short on no interval, found to within `accuracy`."""
    left, right = _intervals(*ratios.ends)
    of, cap = ratios.level.arithmetic, float(eta.midpoint)
    routes = bool(network.pairs.any())
    moved = FLOAT.zeros((len(left), len(ratios.rows)))
    known: Raise | None = None
    closed: Raise | None = None
    flows = 0
    for _ in range(HALVINGS):
        slope, even = ratios.planes(left, right)
        rest, base = ratios.left(slope, even)
        sinks = np.asarray((even - ratios.total).upper) <= 0
        found = ratios.needs(rest - of.of(moved) if routes else rest, base, sinks if routes else sinks & False)
        if routes:
            tried = np.flatnonzero(np.minimum(*found.cost(cap)) > accuracy)[: FLOWS - flows]
            flows += len(tried)
            sent = network.sent(np.asarray(rest.midpoint)[tried])
            again = ratios.needs(rest[tried] - of.of(sent), base[tried], sinks[tried])
            nearer = np.minimum(*again.cost(cap)) < np.minimum(*found.take(tried).cost(cap))
            moved = _replaced(moved, tried[nearer], sent[nearer])
            for own, new in zip(found.parts, again.parts, strict=True):
                own[tried[nearer]] = new[nearer]
        # Values that suffice on an interval suffice on its halves. Where halves need no less, only rounding is left.
        cost = np.minimum(*found.cost(cap))
        settled = np.zeros(len(cost), dtype=bool)
        if known is not None:
            settled = ~(cost < BETTER * np.minimum(*known.cost(cap)))
            found = known.better(found, cap)
        wide = (np.minimum(*found.cost(cap)) > accuracy) & ~settled
        wide &= bool(flows < FLOWS and 2 * wide.sum() * len(ratios.rows) <= CELLS)
        closed = found.take(~wide) if closed is None else closed.and_(found.take(~wide))
        if not wide.any():
            return closed.total(eta)
        middle = np.clip(np.sqrt(left[wide]) * np.sqrt(right[wide]), left[wide], right[wide])
        left, right = np.concatenate([left[wide], middle]), np.concatenate([middle, right[wide]])
        moved = FLOAT.concatenate([moved[wide], moved[wide]])
        known = found.take(wide).and_(found.take(wide))
    assert closed is not None
    assert known is not None
    return closed.and_(known).total(eta)


def _intervals(low: float, high: float) -> tuple[Array, Array]:
    """Intervals of ratios that cover [low, high]. The ratio 1, where mu is zero, is an end of intervals if inside."""
    if not 0 < low <= high < np.inf:
        raise Unproved("the likelihood ratios of columns are not bounded")
    between = np.exp(np.linspace(np.log(low), np.log(high), START + 1))[1:-1]
    between = np.append(between[(between > low) & (between < high)], 1.0 if low < 1 < high else low)
    ends = np.unique(np.concatenate([[low], between, [high]]))
    if len(ends) == 1:
        ends = np.array([np.nextafter(low, 0.0), np.nextafter(high, np.inf)])
    return ends[:-1], ends[1:]


def _replaced(moved: Enclosure, at: Index, new: Enclosure) -> Enclosure:
    """`moved` with the rows `at` replaced by `new`."""
    low, high = np.array(moved.lower), np.array(moved.upper)
    low[at], high[at] = new.lower, new.upper
    return FLOAT.between(low, high)
