"""The proof by potentials for two hypotheses under epsilon-LDP and a cap on total variation: the envelope theorem.

Sort the inputs by likelihood ratio. With t = 1/(e^epsilon - 1), a block of inputs i..j-1 of the sorted list has the
value

    w(i, j) = mu(t + P0(i..j), t + P1(i..j)) - f'(1) (P0 - P1)(i..j),

and the optimum for every eta is the envelope of the values of partitions into blocks (docs/explanation/envelope.md, and
docs/explanation/certificates.md for the proof by potentials). Potentials u_0 .. u_n and a level A with

    w(i, j) <= kappa (t A + u_j - u_i)    for all i < j

show, by adding up a partition's blocks, that a partition into m of them has at most the value kappa (u_n - u_0 + m t
A). Therefore no channel has a larger utility than kappa (A + eta (u_n - u_0 - A)_+). The check takes about n log n
evaluations of w (`blocks`), and needs no search and no solver.

The factor kappa follows from about n log n evaluations for n inputs.

Let X, B and u be the running sums of p0 - p1, of p1, and the potentials. The block i..j-1 has the value w(i, j) = g(X_j
- X_i, t + B_j - B_i), where g(d, b) = mu(b + d, b) - f'(1) d is convex and homogeneous. It must be at most kappa (t A +
u_j - u_i). Blocks of up to `MAX_BAND_INPUTS` inputs are evaluated one by one. The others make rectangles I x J of
first inputs and stops. For any l and m, g(d, b) = l d + m b + h(d, b) with a convex h. So in a rectangle

    w(i, j) - kappa (t A + u_j - u_i)  <=  max_J (l X + m B - kappa u) + max_I (kappa u - l X - m B)
                                           + m t - kappa t A + max h.

A box in (d, b), cut off where a = b + d is too small, holds all its blocks, and h is largest at a corner of the box.
With the tangent at the middle, h is small of second order. The potentials' excess grows with the square of the distance
from the best blocks. So only rectangles near those must be divided, down to a few inputs a side.

Each sum is stored as two floats, right to 2^-105 of the total; a difference of two is then as accurate as a float.
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
from ldpopt.design.kernel.hypotheses import dominance_work, likelihood_ratio_order, require_dominance
from ldpopt.design.kernel.listed import Caps, dual_factor, dual_factor_of_floats
from ldpopt.design.kernel.numbers import Unproved, increasing, nonnegative, printed_length, real_array, require
from ldpopt.design.problems.reduction import Cells
from ldpopt.design.utilities.divergence import Divergence
from ldpopt.design.utilities.laws import LawPair
from ldpopt.design.work import Work, count_numbers
from ldpopt.divergences import FDivergence
from ldpopt.divergences.enclosed import enclosed_excess, excess_above
from ldpopt.numbers.enclosures import Arithmetic, Enclosure
from ldpopt.numbers.rounding import ULP, exact_sum
from ldpopt.values.distribution import Array, Index

MAX_POINTS = 2**21
MAX_BLOCKS_ALL_IN_BALLS = 5_000  # Up to so many blocks are all evaluated in 256-bit ball arithmetic.
MAX_BLOCKS_IN_BALLS = (
    20_000  # Largest number of blocks that are evaluated in 256-bit ball arithmetic because floats do not decide them.
)


@dataclass(frozen=True, eq=False, repr=False)
class EnvelopeDual(Certificate):
    """Potentials of the blocks of the sorted inputs [SPR, and the envelope theorem].

    A block is a set of inputs that are neighbors in the order of likelihood ratios. Potentials are numbers between the
    inputs, whose differences bound the values of the blocks.

    - `level`, `potentials` : the number A >= 0 and the (n + 1,) numbers u of the module's docstring.
    - `points` : (n, 2) masses (P0, P1) that dominate the hypotheses in Blackwell's order, so that their optimum is not
      smaller; None for the inputs themselves.
    - `cuts` : for real-valued answers, increasing cut points of the intervals that the points dominate. They may be
      finer than the channel's.
    """

    proves = Divergence
    level: float
    potentials: Array
    points: Array | None
    cuts: Array | None = None

    @property
    def argument(self) -> str:
        """The reason why the bound holds."""
        points_note = (
            f", for {printed_length(self.points)} points that dominate the hypotheses"
            if self.points is not None
            else ""
        )
        trust_note = ", with probabilities and densities trusted from scipy.stats" if self.cuts is not None else ""
        return "potentials of the blocks of the sorted inputs, by the envelope theorem" + points_note + trust_note

    def work(self) -> Work:
        """Bound the work to sort points, prove dominance, and evaluate blocks."""
        n = self.answers if self.points is None else count_numbers(self.points) // 2
        ball_work = Work.on(min(float(n) ** 2, MAX_BLOCKS_IN_BALLS), 100.0) + Work.on(n, 3.0)
        dominance_check = dominance_work(n, self.answers) if self.points is not None else Work.on(n, 150.0).in_floats
        return dominance_check + blocks_work(n) + ball_work

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """Compute kappa (A + eta (U - A)_+) with U = u_n - u_0."""
        caps = Caps.from_constraints(self.constraints, arithmetic)
        p0, p1 = self._masses()
        order = likelihood_ratio_order(p0, p1)
        require(not len(order) > MAX_POINTS, f"{len(order)} points are more than {MAX_POINTS}")
        level = arithmetic.of(nonnegative(self.level, "the level"))
        potentials = arithmetic.of(real_array(self.potentials, (len(order) + 1,), "potentials"))
        laws = LawPair.from_floats(p0, p1, arithmetic).take(order)
        price = caps.level * level
        masses = (p0[order], p1[order], np.asarray(laws.difference.lower), np.asarray(laws.difference.upper))
        levels = (float(caps.level.lower), float(price.lower))
        blocks = SortedBlocks(self.utility.f, *masses, *levels, np.asarray(potentials.lower))
        exact = arithmetic.exact
        kappa = _exact_factor(blocks, laws, caps.level, price, potentials) if exact else blocks.short()
        require(kappa < math.inf, "a block is worth more than its potentials pay, whatever the factor")
        potential_difference = potentials[-1] - potentials[0]
        return (level + caps.eta * (potential_difference - level).positive()) * kappa

    def _masses(self) -> tuple[Array, Array]:
        """Return the masses of the potentials, after a check that they dominate the hypotheses."""
        if self.cells is None:
            p0, p1 = self.utility.pair
            return (np.asarray(p0), np.asarray(p1)) if self.points is None else require_dominance(self.points, p0, p1)
        if self.cuts is None or self.points is None:
            raise Unproved("the answers are real numbers, and no points are given that dominate them")
        finer_cells = Cells(self.cells.p0, self.cells.p1, increasing(self.cuts, "cut points"))
        return require_dominance(self.points, *finer_cells.endpoints())


def _exact_factor(
    blocks: SortedBlocks, laws: LawPair, base: Enclosure, price: Enclosure, potentials: Enclosure
) -> float:
    """Compute the factor in 256-bit ball arithmetic: of all blocks if they are few, else of those that floats leave
    open."""
    n = len(blocks)
    block_ends = (
        np.triu_indices(n + 1, 1)
        if n * (n + 1) // 2 <= MAX_BLOCKS_ALL_IN_BALLS
        else blocks.unsettled(MAX_BLOCKS_IN_BALLS)
    )
    if block_ends is None:
        return blocks.short()
    i, j = block_ends
    arithmetic = base.arithmetic
    sums = (
        arithmetic.concatenate([arithmetic.zeros(1), part.cumsum()]) for part in (laws.difference, laws.p0, laws.p1)
    )
    d, first, second = (part[j] - part[i] for part in sums)
    values = enclosed_excess(blocks.f, d, base + second, base + first)
    return dual_factor(values, price + (potentials[j] - potentials[i])) if len(i) else 1.0


MAX_BAND_INPUTS = 32  # Blocks of up to this many inputs are evaluated one by one, with separate sums.
LEAF_SIZE = 8  # So are those of squares with this many first and last inputs.
NUMBERS_PER_BATCH = 1 << 18  # Numbers of squares that are held at a time.
FACTOR_MARGIN = 2.0**-44  # The factor is raised by this relative margin before squares are compared with it.
MAX_EVALUATIONS, EVALUATIONS_PER_INPUT = 3e7, 100.0  # Of blocks and squares, and so many more for each input.
TOO_MANY_BLOCKS = "the potentials pay so little that too many blocks would have to be looked at"
SUM_ERROR_FLOOR = 2.0**-1000  # An additional error of differences of exact sums.


@dataclass(frozen=True, eq=False)
class RunningSums:
    """Running sums (n + 1,) of floats: `high` + `low` has an error of at most `error`."""

    high: Array
    low: Array
    error: float

    @classmethod
    def from_values(cls, values: Array, subtrahend: Array | None = None) -> RunningSums:
        """Compute the sums of `values`, or of exact differences `values` - `subtrahend`."""
        operands = [values] if subtrahend is None else [values, subtrahend]
        smallest = min(float(np.abs(part[part != 0]).min(initial=1.0)) for part in operands)
        scale = 53 - math.frexp(smallest)[1]  # All values are integer multiples of 2^-scale.
        integers = [[_scaled_integer(x, scale) for x in part.tolist()] for part in operands]
        sums = list(accumulate(integers[0] if subtrahend is None else map(int.__sub__, *integers), initial=0))
        parts = [_two_floats(x) for x in sums]
        high, low, exponents = (np.array(part) for part in zip(*parts, strict=True))
        with np.errstate(under="ignore"):
            high, low = (
                np.ldexp(high, exponents.astype(np.int64) - scale),
                np.ldexp(low, exponents.astype(np.int64) - scale),
            )
        return cls(high, low, float(np.abs(high).max()) * 2.0**-105 + SUM_ERROR_FLOOR)

    def between(self, i: Index | int, j: Index | int) -> Array:
        """Compute the sums of the inputs from i to j - 1.

        Their error is at most 4 ulps of them and twice `error`.
        """
        return np.asarray((self.high[j] - self.high[i]) + (self.low[j] - self.low[i]))


def _scaled_integer(x: float, scale: int) -> int:
    numerator, denominator = x.as_integer_ratio()
    return numerator << (scale + 1 - denominator.bit_length())


def _two_floats(x: int) -> tuple[float, float, int]:
    """Split an integer into two floats times a power of two, up to its digits beyond the first 107."""
    shift = max(0, x.bit_length() - 900)
    high = float(x >> shift)
    return high, float((x >> shift) - int(high)), shift


def blocks_work(n: int) -> Work:
    """Bound the work of `SortedBlocks` for n inputs."""
    return (
        Work.on(n, 700.0)
        + Work.on(min(float(n) ** 2, MAX_EVALUATIONS + EVALUATIONS_PER_INPUT * n), 8.0, NUMBERS_PER_BATCH)
    ).in_floats


@dataclass(frozen=True, eq=False)
class SortedBlocks:
    """The blocks of inputs in order of likelihood ratio, and the prices that potentials (n + 1,) give them.

    - `p0`, `p1` : floats in proportion to the distributions.
    - `low`, `high` : lower and upper bounds on the differences of the distributions.
    - `level`, `price` : lower bounds on t and t A.
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
        """Compute a factor kappa >= 1 that makes the potentials suffice; inf if none does."""
        kappa = max([1.0, *(dual_factor_of_floats(values, payments) for _, _, values, payments in self._band())])
        if kappa == math.inf or len(self) <= MAX_BAND_INPUTS:
            return kappa
        *squares, kappa = self._squares(kappa, True)
        return max(
            [
                kappa,
                *(
                    dual_factor_of_floats(*self.value_and_price_bounds(i, j))
                    for i, j in self._blocks_in_squares(*squares)
                ),
            ]
        )

    def unsettled(self, max_blocks: int) -> tuple[Index, Index] | None:
        """List the starts and stops of the blocks that floats do not prove to be paid.

        It is None if there are more than `max_blocks`.
        """
        undecided_blocks, count = [], 0
        evaluated_blocks = self._band()
        if len(self) > MAX_BAND_INPUTS:
            a, b, _ = self._squares(1.0, False)
            evaluated_blocks = chain(
                evaluated_blocks, ((i, j, *self.value_and_price_bounds(i, j)) for i, j in self._blocks_in_squares(a, b))
            )
        for i, j, values, payments in evaluated_blocks:
            undecided_blocks.append(np.stack([i, j])[:, ~((values <= payments) & (payments >= 0))])
            count += undecided_blocks[-1].shape[1]
            if count > max_blocks:
                return None
        starts, stops = np.concatenate(undecided_blocks, axis=1)
        return starts, stops

    def _band(self) -> Iterator[tuple[Index, Index, Array, Array]]:
        """Generate the blocks of 1, 2, ... inputs.

        Each item has the starts, the stops, upper bounds on the values and lower bounds on the prices. A running sum of
        n floats has an error of at most n u/(1 - n u) times the sum of their absolute values, for the unit u of
        rounding.
        """
        n = len(self)
        laws = [p * scale for p, scale in zip((self.p0, self.p1), self._scales, strict=False)]
        parts = (self.low, self.high, np.maximum(np.abs(self.low), np.abs(self.high)), *laws)
        sums = [np.zeros(n + 1) for _ in parts]
        for length in range(1, min(MAX_BAND_INPUTS, n) + 1):
            sums = [s[:-1] + part[length - 1 :] for s, part in zip(sums, parts, strict=True)]
            margin = (length + 16) * 2 * ULP
            a, b = ((self.level + s * (1 - margin)) * (1 - 4 * ULP) for s in sums[3:])
            low, high = sums[0] - sums[2] * margin, sums[1] + sums[2] * margin
            i = np.arange(n + 1 - length)
            yield i, i + length, excess_above(self.f, low, high, b, a), self.price_bounds(i, i + length)

    def price_bounds(self, i: Index, j: Index) -> Array:
        """Bound the prices of the blocks from below."""
        rise = self.potentials[j] - self.potentials[i]
        return np.asarray(rise + self.price - ULP * (np.abs(rise) + self.price))

    @cached_property
    def _sums(self) -> tuple[RunningSums, RunningSums, RunningSums]:
        """The running sums of p0, of p1, and of their difference."""
        return (
            RunningSums.from_values(self.p0),
            RunningSums.from_values(self.p1),
            RunningSums.from_values(self.p0, self.p1),
        )

    @cached_property
    def _scales(self) -> tuple[float, float, float]:
        """The floats 1/T0, 1/T1 and 1/T0 - 1/T1 for the sums T of the masses, each rounded once."""
        scales = [1 / exact_sum(p) for p in (self.p0, self.p1)]
        return float(scales[0]), float(scales[1]), float(scales[0] - scales[1])

    def laws(self, i: Index, j: Index) -> tuple[tuple[Array, Array], ...]:
        """Compute the masses of blocks under both distributions and their difference.

        Each has a bound on its error.
        """
        sums0, sums1, difference = self._sums
        scale0, scale1, scale_difference = self._scales
        p0, mass1, d = sums0.between(i, j) * scale0, sums1.between(i, j), difference.between(i, j) * scale0
        p1, correction = mass1 * scale1, mass1 * scale_difference
        absolute_error = 8 * (sums0.error * scale0 + sums1.error * scale1 + difference.error * scale0)
        relative_errors = (8 * ULP * np.abs(p0), 8 * ULP * np.abs(p1), 8 * ULP * (np.abs(d) + np.abs(correction)))
        return tuple(
            (value, error + absolute_error)
            for value, error in zip((p0, p1, d + correction), relative_errors, strict=True)
        )

    def value_and_price_bounds(self, i: Index, j: Index) -> tuple[Array, Array]:
        """Bound the values of single blocks from above, and their prices from below."""
        *masses, (d, d_error) = self.laws(i, j)
        a, b = ((self.level + np.maximum(p - error, 0.0)) * (1 - 4 * ULP) for p, error in masses)
        return excess_above(self.f, d - d_error, d + d_error, b, a), self.price_bounds(i, j)

    def _blocks_in_squares(self, a: Index, b: Index) -> Iterator[tuple[Index, Index]]:
        """Generate the blocks of more than `MAX_BAND_INPUTS` inputs in the smallest squares, in batches."""
        step, squares_per_batch = np.arange(LEAF_SIZE), NUMBERS_PER_BATCH // LEAF_SIZE**2
        for batch_start in range(0, len(a), squares_per_batch):
            starts, stops = (
                a[batch_start : batch_start + squares_per_batch, None, None] * LEAF_SIZE,
                b[batch_start : batch_start + squares_per_batch, None, None] * LEAF_SIZE,
            )
            i, j = np.broadcast_arrays(starts + step[:, None], stops + step)
            is_beyond_band = (j <= len(self)) & (j - i > MAX_BAND_INPUTS)
            yield i[is_beyond_band], j[is_beyond_band]

    def _squares(self, kappa: float, can_raise: bool) -> tuple[Index, Index, float]:
        """Find the smallest squares, by their numbers, whose blocks are not proved to be paid.

        Also returns the factor that covers the others.

        - `can_raise` : True if the factor may grow to the need of blocks in the middle of squares.
        """
        n, evaluations_left = len(self), MAX_EVALUATIONS + EVALUATIONS_PER_INPUT * len(self)
        size = LEAF_SIZE * 2 ** math.ceil(math.log2((n + 1) / LEAF_SIZE))
        a = b = np.zeros(0, dtype=np.intp)
        while True:
            # The upper right quarters of the squares on the diagonal, restricted to blocks beyond the band.
            quarters = np.arange(0, -(-(n + 1) // size) - 1, 2)
            a, b = np.concatenate([a, quarters]), np.concatenate([b, quarters + 1])
            is_relevant = (b * size <= n) & ((b - a + 1) * size - 1 > MAX_BAND_INPUTS)
            a, b = a[is_relevant], b[is_relevant]
            evaluations_left -= len(a) * (size + 50.0)
            require(evaluations_left > 0, TOO_MANY_BLOCKS)
            if can_raise and len(a):
                middles = (np.minimum(x * size + size // 2, n) for x in (a, b))
                kappa = max(kappa, dual_factor_of_floats(*self.value_and_price_bounds(*middles)) * (1 + FACTOR_MARGIN))
                require(kappa < math.inf, "a block is worth more than its potentials pay, whatever the factor")
            is_open = np.zeros(len(a), dtype=bool)
            squares, squares_per_batch = Squares.from_blocks(self, size), max(1, NUMBERS_PER_BATCH // size)
            for low in range(0, len(a), squares_per_batch):
                is_open[low : low + squares_per_batch] = ~squares.surely_paid(
                    a[low : low + squares_per_batch], b[low : low + squares_per_batch], kappa
                )
            a, b = a[is_open], b[is_open]
            if size == LEAF_SIZE:
                require(len(a) * LEAF_SIZE**2 < evaluations_left, TOO_MANY_BLOCKS)
                return a, b, kappa
            a, b = (np.repeat(2 * x, 4) + np.tile(step, len(x)) for x, step in ((a, (0, 0, 1, 1)), (b, (0, 1, 0, 1))))
            size //= 2


@dataclass(frozen=True, eq=False)
class Squares:
    """Squares of `size` first inputs and as many stops.

    - `first`, `last` : (m,) the smallest and the largest number of each run of `size`.
    - `b`, `d`, `u` : (m, size) the running sums of p1 and p0 - p1, and the potentials, less those at `first`.
    - `error` : bounds on the errors of b and of d.
    """

    blocks: SortedBlocks
    first: Index
    last: Index
    b: Array
    d: Array
    u: Array
    error: tuple[Array, Array]

    @classmethod
    def from_blocks(cls, blocks: SortedBlocks, size: int) -> Squares:
        """Build all squares of one size."""
        n = len(blocks)
        first = np.arange(0, n + 1, size)
        members = np.minimum(first[:, None] + np.arange(size), n)
        _, (b, off_b), (d, off_d) = blocks.laws(first[:, None], members)
        u = blocks.potentials[members] - blocks.potentials[first, None]
        return cls(blocks, first, members[:, -1], b, d, u, (off_b.max(axis=1), off_d.max(axis=1)))

    def surely_paid(self, i: Index, j: Index, kappa: float) -> npt.NDArray[np.bool_]:
        """Mark the squares, in rows i and columns j, whose blocks are all surely paid.

        They are paid if kappa times the price is at least the value.
        """
        sorted_blocks = self.blocks
        t, f = sorted_blocks.level, sorted_blocks.f
        error_b, error_d = (first_error_b[i] + first_error_b[j] for first_error_b in self.error)
        (smallest_a, error_a), _, _ = sorted_blocks.laws(self.last[i], self.first[j])
        (_, _), (b_first, first_error_b), (d_first, first_error_d) = sorted_blocks.laws(self.first[i], self.first[j])
        error_b, error_d = error_b + first_error_b, error_d + first_error_d
        # The box of (d, b), and the least a.
        b_low = (t + np.maximum(b_first - self.b[i, -1] - error_b, 0.0)) * (1 - 4 * ULP)
        b_high = (t + b_first + self.b[j, -1] + error_b) * (1 + 4 * ULP)
        a_low = (t + np.maximum(smallest_a - error_a, 0.0)) * (1 - 4 * ULP)
        size = np.abs(d_first) + np.abs(self.d[i]).max(axis=1) + np.abs(self.d[j]).max(axis=1)
        d_low = d_first + self.d[j].min(axis=1) - self.d[i].max(axis=1) - error_d - 4 * ULP * size
        d_high = d_first + self.d[j].max(axis=1) - self.d[i].min(axis=1) + error_d + 4 * ULP * size
        with np.errstate(all="ignore"):
            slope, intercept = self._plane(d_low, d_high, b_low, b_high, a_low)
            top = np.full(len(i), -np.inf)
            corners = (
                (np.maximum(d_low, np.nextafter(a_low - b_low, -np.inf)), b_low),
                (np.maximum(d_low, np.nextafter(a_low - b_high, -np.inf)), b_high),
                (d_low, np.maximum(b_low, np.nextafter(a_low - d_low, 0.0))),
                (d_high, np.maximum(b_low, np.nextafter(a_low - d_high, 0.0))),
                (d_high, b_high),
            )
            for d, b in corners:
                values = excess_above(f, d, d, b, np.nextafter(b + d, 0.0))
                plane = slope * d + intercept * b
                top = np.maximum(top, values - plane + 4 * ULP * (np.abs(slope * d) + np.abs(intercept * b)))
            ends = slope[:, None] * self.d[j] + intercept[:, None] * self.b[j] - kappa * self.u[j]
            starts = kappa * self.u[i] - slope[:, None] * self.d[i] - intercept[:, None] * self.b[i]
            rise = sorted_blocks.potentials[self.first[j]] - sorted_blocks.potentials[self.first[i]]
            excess = slope * d_first + intercept * (t + b_first) - kappa * (sorted_blocks.price + rise)
            excess = excess + ends.max(axis=1) + starts.max(axis=1) + top
            rises = np.abs(rise) + np.abs(self.u[i]).max(axis=1) + np.abs(self.u[j]).max(axis=1)
            sizes = (
                np.abs(slope) * size + np.abs(intercept) * b_high + kappa * (sorted_blocks.price + rises) + np.abs(top)
            )
            rounding_error = 16 * ULP * sizes + np.abs(slope) * error_d + np.abs(intercept) * error_b
            return np.asarray(excess + rounding_error <= 0)  # NaN is not at most zero.

    def _plane(self, d_low: Array, d_high: Array, b_low: Array, b_high: Array, a_low: Array) -> tuple[Array, Array]:
        """Compute slopes of a plane near the tangent at the middle of the boxes; any floats are valid."""
        f, b = self.blocks.f, b_low / 2 + b_high / 2
        low_end, high_end = np.maximum(d_low, a_low - b), d_high
        d = low_end / 2 + high_end / 2
        values = f.excess_of(d, b)
        slope = (f.excess_of(high_end, b) - f.excess_of(low_end, b)) / (high_end - low_end)
        slope = np.where(np.isfinite(slope), slope, 0.0)
        intercept = (values - slope * d) / b
        return slope, np.where(np.isfinite(intercept), intercept, 0.0)
