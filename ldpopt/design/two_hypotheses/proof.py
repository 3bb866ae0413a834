"""The proof by potentials for two hypotheses under epsilon-LDP and a cap on total variation: the envelope theorem.

Sort the inputs by likelihood ratio. With t = 1/(e^epsilon - 1), a block of inputs i..j-1 of the sorted list is worth

    w(i, j) = mu(t + P0(i..j), t + P1(i..j)) - f'(1) (P0 - P1)(i..j),

and the optimum for every eta is the envelope of the worths of partitions into blocks (docs/explanation/envelope.md, and
docs/explanation/certificates.md for the proof by potentials). Potentials u_0 .. u_n and a level A with

    w(i, j) <= kappa (t A + u_j - u_i)    for all i < j

show, by adding up a partition's blocks, that a partition into m of them is worth at most kappa (u_n - u_0 + m t A).
Therefore no channel keeps more than kappa (A + eta (u_n - u_0 - A)_+). The check takes about n log n evaluations of w
(`blocks`), and needs no search and no solver.

Potentials pay for all blocks of sorted inputs: a factor out, from about n log n looks at n inputs.

Let X, B and u be the running sums of p0 - p1, of p1, and the potentials. The block i..j-1 is worth w(i, j) = g(X_j -
X_i, t + B_j - B_i), where g(d, b) = mu(b + d, b) - f'(1) d is convex and homogeneous, and it must be at most
kappa (t A + u_j - u_i). Blocks of up to `BAND` inputs are looked at one by one. The others make rectangles I x J of
first inputs and ends. For any l and m, g(d, b) = l d + m b + h(d, b) with a convex h. So in a rectangle

    w(i, j) - kappa (t A + u_j - u_i)  <=  max_J (l X + m B - kappa u) + max_I (kappa u - l X - m B)
                                           + m t - kappa t A + max h.

A box in (d, b), cut off where a = b + d is too small, holds all its blocks, and h is largest at a corner of that. With
the tangent at the middle, h is small of second order, and what potentials pay too much grows with the square of the
distance from the best blocks. So only rectangles near those must be divided, down to a few inputs a side.

Sums are kept as two floats each, right to 2^-105 of the whole; a difference of two is then as good as a float.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain

import numpy as np
import numpy.typing as npt

from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.kernel.hypotheses import by_ratio, dominance, dominating
from ldpopt.design.kernel.listed import Caps, factor, shortfall
from ldpopt.design.kernel.numbers import Unproved, count, increasing, nonnegative, real_array, require
from ldpopt.design.problems.reduction import Cells
from ldpopt.design.utilities.divergence import Divergence
from ldpopt.design.utilities.laws import LawPair
from ldpopt.design.work import Work, count_numbers
from ldpopt.divergences import FDivergence
from ldpopt.divergences.enclosed import enclosed_excess, excess_above
from ldpopt.numbers.enclosures import Arithmetic, Enclosure
from ldpopt.numbers.rounding import ULP, exact_sum
from ldpopt.values.distribution import Array, Index

MAX_POINTS = 2**21  # The most points.
ALL = 5_000  # Up to so many blocks are all looked at in balls.
MOST_AGAIN = 20_000  # The most blocks that are looked at in balls, as floats do not settle them.


@dataclass(frozen=True, eq=False, repr=False)
class EnvelopeDual(Certificate):
    """Potentials of the blocks of the sorted inputs [SPR, and the envelope theorem].

    A block is a set of inputs that are neighbours in the order of likelihood ratios. Potentials are numbers between
    the inputs, whose differences bound what the blocks are worth.

    level, potentials : the number A >= 0 and the (n + 1,) numbers u of the module's docstring. points : (n, 2) masses
    (P0, P1) that dominate the hypotheses in Blackwell's order, so that their optimum is not smaller; None for the
    inputs themselves. cuts : where the answers are real numbers, increasing cut points of the intervals that the points
    dominate, which may be finer than the channel's.
    """

    proves = Divergence
    level: float
    potentials: Array
    points: Array | None
    cuts: Array | None = None

    @property
    def argument(self) -> str:
        """Why the bound holds."""
        coarser = f", for {count(self.points)} points that dominate the hypotheses" if self.points is not None else ""
        trusted = ", with probabilities and densities trusted from scipy.stats" if self.cuts is not None else ""
        return "potentials of the blocks of the sorted inputs, by the envelope theorem" + coarser + trusted

    def work(self) -> Work:
        """The points are sorted and shown to dominate, and their blocks are looked at; some in balls."""
        n = self.answers if self.points is None else count_numbers(self.points) // 2
        again = Work.on(min(float(n) ** 2, MOST_AGAIN), 100.0) + Work.on(n, 3.0)
        shown = dominance(n, self.answers) if self.points is not None else Work.on(n, 150.0).in_floats
        return shown + looking(n) + again

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """kappa (A + eta (U - A)_+) with U = u_n - u_0."""
        caps = Caps.of(self.constraints, arithmetic)
        p0, p1 = self._masses()
        order = by_ratio(p0, p1)
        require(not len(order) > MAX_POINTS, f"{len(order)} points are more than {MAX_POINTS}")
        level = arithmetic.of(nonnegative(self.level, "the level"))
        potentials = arithmetic.of(real_array(self.potentials, (len(order) + 1,), "potentials"))
        laws = LawPair.of(p0, p1, arithmetic).take(order)
        price = caps.level * level
        masses = (p0[order], p1[order], np.asarray(laws.difference.lower), np.asarray(laws.difference.upper))
        levels = (float(caps.level.lower), float(price.lower))
        blocks = SortedBlocks(self.utility.f, *masses, *levels, np.asarray(potentials.lower))
        exact = arithmetic.exact
        kappa = _exactly_short(blocks, laws, caps.level, price, potentials) if exact else blocks.short()
        require(kappa < math.inf, "a block is worth more than its potentials pay, whatever the factor")
        rise = potentials[-1] - potentials[0]
        return (level + caps.eta * (rise - level).positive()) * kappa

    def _masses(self) -> tuple[Array, Array]:
        """The masses that the potentials are for, checked to dominate the hypotheses."""
        if self.cells is None:
            p0, p1 = self.utility.pair
            return (np.asarray(p0), np.asarray(p1)) if self.points is None else dominating(self.points, p0, p1)
        if self.cuts is None or self.points is None:
            raise Unproved("the answers are real numbers, and no points are given that dominate them")
        finer = Cells(self.cells.p0, self.cells.p1, increasing(self.cuts, "cut points"))
        return dominating(self.points, *finer.endpoints())


def _exactly_short(
    blocks: SortedBlocks, laws: LawPair, base: Enclosure, price: Enclosure, potentials: Enclosure
) -> float:
    """The same factor in balls, of all blocks where they are few; of the others floats settle most."""
    n = len(blocks)
    looked = np.triu_indices(n + 1, 1) if n * (n + 1) // 2 <= ALL else blocks.unsettled(MOST_AGAIN)
    if looked is None:
        return blocks.short()
    i, j = looked
    of = base.arithmetic
    sums = (of.concatenate([of.zeros(1), part.cumsum()]) for part in (laws.difference, laws.p0, laws.p1))
    d, first, second = (part[j] - part[i] for part in sums)
    worth = enclosed_excess(blocks.f, d, base + second, base + first)
    return factor(worth, price + (potentials[j] - potentials[i])) if len(i) else 1.0


BAND = 32  # Blocks of up to this many inputs are looked at one by one, with sums of their own.
LEAF = 8  # So are those of rectangles with this many first and last inputs.
ENTRIES = 1 << 18  # How many numbers of rectangles are held at a time.
ROOM = 2.0**-44  # The share by which the factor is raised before rectangles are compared with it.
MOST_LOOKS, EACH = 3e7, 100.0  # The most looks at blocks and squares, and so many more for each input.
TOO_LITTLE = "the potentials pay so little that too many blocks would have to be looked at"
LARGER = 2.0**-1000  # Differences of exact sums are taken to be off by this, too.


@dataclass(frozen=True, eq=False)
class RunningSums:
    """(n + 1,) running sums of floats: `high` + `low` is off by at most `off`."""

    high: Array
    low: Array
    off: float

    @classmethod
    def of(cls, values: Array, less: Array | None = None) -> RunningSums:
        """The sums of `values`, or of exact differences `values` - `less`."""
        given = [values] if less is None else [values, less]
        least = min(float(np.abs(part[part != 0]).min(initial=1.0)) for part in given)
        scale = 53 - math.frexp(least)[1]  # all values are whole multiples of 2^-scale
        whole = [[_whole(x, scale) for x in part.tolist()] for part in given]
        sums = list(accumulate(whole[0] if less is None else map(int.__sub__, *whole), initial=0))
        parts = [_two(x) for x in sums]
        high, low, by = (np.array(part) for part in zip(*parts, strict=True))
        with np.errstate(under="ignore"):
            high, low = np.ldexp(high, by.astype(np.int64) - scale), np.ldexp(low, by.astype(np.int64) - scale)
        return cls(high, low, float(np.abs(high).max()) * 2.0**-105 + LARGER)

    def between(self, i: Index | int, j: Index | int) -> Array:
        """The sums of the inputs from i to j - 1, off by at most 4 ulps of them and twice `off`."""
        return np.asarray((self.high[j] - self.high[i]) + (self.low[j] - self.low[i]))


def _whole(x: float, scale: int) -> int:
    numerator, denominator = x.as_integer_ratio()
    return numerator << (scale + 1 - denominator.bit_length())


def _two(x: int) -> tuple[float, float, int]:
    """Floats whose sum times a power of two is an integer, but for its digits beyond the first 107."""
    by = max(0, x.bit_length() - 900)
    high = float(x >> by)
    return high, float((x >> by) - int(high)), by


def looking(n: int) -> Work:
    """What `SortedBlocks` takes at most for n inputs."""
    return (Work.on(n, 700.0) + Work.on(min(float(n) ** 2, MOST_LOOKS + EACH * n), 8.0, ENTRIES)).in_floats


@dataclass(frozen=True, eq=False)
class SortedBlocks:
    """The blocks of inputs in order of likelihood ratio, and what potentials (n + 1,) pay for them. p0, p1 : floats in
    proportion to the laws. low, high : ends of the differences of the laws. level, price : t and t A, from below.
    """

    f: FDivergence
    p0: Array
    p1: Array
    low: Array
    high: Array
    level: float
    price: float
    potentials: Array

    def __len__(self) -> int:
        return len(self.p0)

    def short(self) -> float:
        """The factor kappa >= 1 by which the potentials fall short surely, inf where there is none."""
        kappa = max([1.0, *(shortfall(worth, paid) for _, _, worth, paid in self._band())])
        if kappa == math.inf or len(self) <= BAND:
            return kappa
        *squares, kappa = self._squares(kappa, True)
        return max([kappa, *(shortfall(*self.each(i, j)) for i, j in self._inside(*squares))])

    def unsettled(self, most: int) -> tuple[Index, Index] | None:
        """First inputs and ends of the blocks that floats do not show to be paid for; None for more than `most`."""
        left, count = [], 0
        listed = self._band()
        if len(self) > BAND:
            a, b, _ = self._squares(1.0, False)
            listed = chain(listed, ((i, j, *self.each(i, j)) for i, j in self._inside(a, b)))
        for i, j, worth, paid in listed:
            left.append(np.stack([i, j])[:, ~((worth <= paid) & (paid >= 0))])
            count += left[-1].shape[1]
            if count > most:
                return None
        first, end = np.concatenate(left, axis=1)
        return first, end

    def _band(self) -> Iterator[tuple[Index, Index, Array, Array]]:
        """The blocks of 1, 2, ... inputs: first inputs, ends, worths from above, and what is paid from below. A running
        sum of n floats is off by at most n u/(1 - n u) times the sum of their sizes, for the unit u of rounding.
        """
        n = len(self)
        laws = [p * scale for p, scale in zip((self.p0, self.p1), self._scales, strict=False)]
        parts = (self.low, self.high, np.maximum(np.abs(self.low), np.abs(self.high)), *laws)
        sums = [np.zeros(n + 1) for _ in parts]
        for length in range(1, min(BAND, n) + 1):
            sums = [s[:-1] + part[length - 1 :] for s, part in zip(sums, parts, strict=True)]
            margin = (length + 16) * 2 * ULP
            a, b = ((self.level + s * (1 - margin)) * (1 - 4 * ULP) for s in sums[3:])
            low, high = sums[0] - sums[2] * margin, sums[1] + sums[2] * margin
            i = np.arange(n + 1 - length)
            yield i, i + length, excess_above(self.f, low, high, b, a), self.paid(i, i + length)

    def paid(self, i: Index, j: Index) -> Array:
        """What the potentials pay, from below."""
        rise = self.potentials[j] - self.potentials[i]
        return np.asarray(rise + self.price - ULP * (np.abs(rise) + self.price))

    @cached_property
    def _sums(self) -> tuple[RunningSums, RunningSums, RunningSums]:
        """The running sums of p0, of p1, and of their difference."""
        return RunningSums.of(self.p0), RunningSums.of(self.p1), RunningSums.of(self.p0, self.p1)

    @cached_property
    def _scales(self) -> tuple[float, float, float]:
        """1/T0, 1/T1 and 1/T0 - 1/T1 for the sums T of the floats, rounded once."""
        scales = [1 / exact_sum(p) for p in (self.p0, self.p1)]
        return float(scales[0]), float(scales[1]), float(scales[0] - scales[1])

    def laws(self, i: Index, j: Index) -> tuple[tuple[Array, Array], ...]:
        """The masses of blocks under both laws and their difference, each with a bound on its error."""
        first, second, apart = self._sums
        over0, over1, differ = self._scales
        p0, whole, d = first.between(i, j) * over0, second.between(i, j), apart.between(i, j) * over0
        p1, more = whole * over1, whole * differ
        off = 8 * (first.off * over0 + second.off * over1 + apart.off * over0)
        wrong = (8 * ULP * np.abs(p0), 8 * ULP * np.abs(p1), 8 * ULP * (np.abs(d) + np.abs(more)))
        return tuple((value, error + off) for value, error in zip((p0, p1, d + more), wrong, strict=True))

    def each(self, i: Index, j: Index) -> tuple[Array, Array]:
        """The worths of single blocks from above, and what is paid for them from below."""
        *masses, (d, off) = self.laws(i, j)
        a, b = ((self.level + np.maximum(p - error, 0.0)) * (1 - 4 * ULP) for p, error in masses)
        return excess_above(self.f, d - off, d + off, b, a), self.paid(i, j)

    def _inside(self, a: Index, b: Index) -> Iterator[tuple[Index, Index]]:
        """The blocks of more than `BAND` inputs in the smallest squares, some at a time."""
        step, many = np.arange(LEAF), ENTRIES // LEAF**2
        for begin in range(0, len(a), many):
            first, end = a[begin : begin + many, None, None] * LEAF, b[begin : begin + many, None, None] * LEAF
            i, j = np.broadcast_arrays(first + step[:, None], end + step)
            kept = (j <= len(self)) & (j - i > BAND)
            yield i[kept], j[kept]

    def _squares(self, kappa: float, raised: bool) -> tuple[Index, Index, float]:
        """The smallest squares, by their numbers, whose blocks are not shown to be paid for, and the factor by which
        the others are. raised : whether the factor may grow to what blocks in the middle of squares need.
        """
        n, looks = len(self), MOST_LOOKS + EACH * len(self)
        size = LEAF * 2 ** math.ceil(math.log2((n + 1) / LEAF))
        a = b = np.zeros(0, dtype=np.intp)
        while True:
            # The upper right quarters of the squares on the diagonal, and then what lies beyond the band.
            quarters = np.arange(0, -(-(n + 1) // size) - 1, 2)
            a, b = np.concatenate([a, quarters]), np.concatenate([b, quarters + 1])
            kept = (b * size <= n) & ((b - a + 1) * size - 1 > BAND)
            a, b = a[kept], b[kept]
            looks -= len(a) * (size + 50.0)
            require(looks > 0, TOO_LITTLE)
            if raised and len(a):
                middle = (np.minimum(x * size + size // 2, n) for x in (a, b))
                kappa = max(kappa, shortfall(*self.each(*middle)) * (1 + ROOM))
                require(kappa < math.inf, "a block is worth more than its potentials pay, whatever the factor")
            still = np.zeros(len(a), dtype=bool)
            squares, many = Squares.of(self, size), max(1, ENTRIES // size)
            for low in range(0, len(a), many):
                still[low : low + many] = ~squares.surely_paid(a[low : low + many], b[low : low + many], kappa)
            a, b = a[still], b[still]
            if size == LEAF:
                require(len(a) * LEAF**2 < looks, TOO_LITTLE)
                return a, b, kappa
            a, b = (np.repeat(2 * x, 4) + np.tile(step, len(x)) for x, step in ((a, (0, 0, 1, 1)), (b, (0, 1, 0, 1))))
            size //= 2


@dataclass(frozen=True, eq=False)
class Squares:
    """Squares of `size` first inputs and as many ends. first, last : (m,) the least and the largest number of each run
    of `size`. b, d, u : (m, size) the running sums of p1 and p0 - p1, and the potentials, less those at `first`. off :
    bounds on the errors of b and of d.
    """

    blocks: SortedBlocks
    first: Index
    last: Index
    b: Array
    d: Array
    u: Array
    off: tuple[Array, Array]

    @classmethod
    def of(cls, blocks: SortedBlocks, size: int) -> Squares:
        """All squares of one size."""
        n = len(blocks)
        first = np.arange(0, n + 1, size)
        each = np.minimum(first[:, None] + np.arange(size), n)
        _, (b, off_b), (d, off_d) = blocks.laws(first[:, None], each)
        u = blocks.potentials[each] - blocks.potentials[first, None]
        return cls(blocks, first, each[:, -1], b, d, u, (off_b.max(axis=1), off_d.max(axis=1)))

    def surely_paid(self, i: Index, j: Index, kappa: float) -> npt.NDArray[np.bool_]:
        """Whether kappa times what is paid is surely enough for all blocks of the squares in rows i and columns j."""
        own = self.blocks
        t, f = own.level, own.f
        off_b, off_d = (off[i] + off[j] for off in self.off)
        (a_least, off_a), _, _ = own.laws(self.last[i], self.first[j])
        (_, _), (b_first, off), (d_first, more) = own.laws(self.first[i], self.first[j])
        off_b, off_d = off_b + off, off_d + more
        # The box of (d, b), and the least a.
        b_low = (t + np.maximum(b_first - self.b[i, -1] - off_b, 0.0)) * (1 - 4 * ULP)
        b_high = (t + b_first + self.b[j, -1] + off_b) * (1 + 4 * ULP)
        a_low = (t + np.maximum(a_least - off_a, 0.0)) * (1 - 4 * ULP)
        size = np.abs(d_first) + np.abs(self.d[i]).max(axis=1) + np.abs(self.d[j]).max(axis=1)
        d_low = d_first + self.d[j].min(axis=1) - self.d[i].max(axis=1) - off_d - 4 * ULP * size
        d_high = d_first + self.d[j].max(axis=1) - self.d[i].min(axis=1) + off_d + 4 * ULP * size
        with np.errstate(all="ignore"):
            steep, level = self._plane(d_low, d_high, b_low, b_high, a_low)
            top = np.full(len(i), -np.inf)
            corners = (
                (np.maximum(d_low, np.nextafter(a_low - b_low, -np.inf)), b_low),
                (np.maximum(d_low, np.nextafter(a_low - b_high, -np.inf)), b_high),
                (d_low, np.maximum(b_low, np.nextafter(a_low - d_low, 0.0))),
                (d_high, np.maximum(b_low, np.nextafter(a_low - d_high, 0.0))),
                (d_high, b_high),
            )
            for d, b in corners:
                worth = excess_above(f, d, d, b, np.nextafter(b + d, 0.0))
                plane = steep * d + level * b
                top = np.maximum(top, worth - plane + 4 * ULP * (np.abs(steep * d) + np.abs(level * b)))
            ends = steep[:, None] * self.d[j] + level[:, None] * self.b[j] - kappa * self.u[j]
            starts = kappa * self.u[i] - steep[:, None] * self.d[i] - level[:, None] * self.b[i]
            rise = own.potentials[self.first[j]] - own.potentials[self.first[i]]
            over = steep * d_first + level * (t + b_first) - kappa * (own.price + rise)
            over = over + ends.max(axis=1) + starts.max(axis=1) + top
            rises = np.abs(rise) + np.abs(self.u[i]).max(axis=1) + np.abs(self.u[j]).max(axis=1)
            sizes = np.abs(steep) * size + np.abs(level) * b_high + kappa * (own.price + rises) + np.abs(top)
            wrong = 16 * ULP * sizes + np.abs(steep) * off_d + np.abs(level) * off_b
            return np.asarray(over + wrong <= 0)  # not a number is not at most zero

    def _plane(self, d_low: Array, d_high: Array, b_low: Array, b_high: Array, a_low: Array) -> tuple[Array, Array]:
        """Slopes of a plane near the tangent at the middle of the boxes; any floats would do."""
        f, b = self.blocks.f, b_low / 2 + b_high / 2
        left, right = np.maximum(d_low, a_low - b), d_high
        d = left / 2 + right / 2
        worth = f.excess_of(d, b)
        steep = (f.excess_of(right, b) - f.excess_of(left, b)) / (right - left)
        steep = np.where(np.isfinite(steep), steep, 0.0)
        level = (worth - steep * d) / b
        return steep, np.where(np.isfinite(level), level, 0.0)
