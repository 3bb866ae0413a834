"""The gain of a column at the multipliers of a design for estimation: its information less its price [KW].

For a column s the gain per unit of probability is

    v(s) = (|K s|^2 / (s.p) - lambda.s - sum_{x,x'} nu[x,x'] (s_x - s_x')_+) / (s.p),

with K centered at p, so that K 1 = 0. With t >= v over all columns, sum lambda + eta sum nu + t bounds sum_y w_y |K
u_y|^2 over every channel that meets the constraints. Its rows sum to one, and so do the probabilities s.p. Under plain
LDP the patterns S (E = exp(epsilon) on a set, 1 elsewhere) are enough. Every column is a sum of patterns, and S^T G S /
(S.p), G = K^T K, is convex and homogeneous. `Charges` encloses gains; `Prices` computes them in floats, for searches.

*One contrast.* Let the kernel have one row kappa, and t = 1/(E - 1). A pattern t + a has the information c^2 / m with
c = kappa.a and m = t + p.a. As c^2 / m = max over s of 2 s c - s^2 m,

    gain = max over s of  -s^2 t - t sum lambda + sum over x in a of g_x(s),
    g_x(s) = 2 s kappa_x - s^2 p_x - lambda_x.

At any s the best set is {x : g_x(s) > 0}, which changes only at roots of the g_x. So at most 2 k + 1 sets can be best.
For a pair of hypotheses it is the same, with the likelihood ratio in place of kappa_x / p_x [KOV14, section 5].
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.design.utilities.laws import law
from ldpopt.numbers.enclosures import FLOAT, Arithmetic, Enclosure
from ldpopt.numbers.rounding import exact_sum
from ldpopt.values.distribution import Array

COLUMNS_PER_BLOCK = 4096  # Columns that are priced at once.
LEAST_REMAINING_MASS = 1e-9  # Relative to the mass before the move: less is lost to rounding.


@dataclass(frozen=True, eq=False)
class Charges:
    """The kernel and the multipliers that price columns.

    - `kernel` : K (r, k), centered.
    - `prior` : the distribution p (k,).
    - `rows` : lambda (k,).
    - `pairs` : nu (k, k), nonnegative.
    """

    kernel: Enclosure
    prior: Enclosure
    rows: Array
    pairs: Array

    @classmethod
    def from_kernel(cls, kernel: Enclosure, prior: Array, rows: Array, pairs: Array) -> Charges:
        """Build the charges of a kernel at the distribution proportional to `prior`.

        The kernel is centered here.
        """
        p = law(prior, kernel.arithmetic)
        return cls(kernel - kernel.sum(axis=1)[:, None] * p[None, :], p, rows, pairs)

    @property
    def arithmetic(self) -> Arithmetic:
        """The arithmetic of the charges."""
        return self.kernel.arithmetic

    @property
    def total(self) -> Enclosure:
        """The sum of lambda, rounded only once: it is the whole price of a constant column."""
        return self.arithmetic.of(exact_sum(self.rows))

    def gain_bound(self, base: Enclosure, rise: Enclosure) -> float:
        """Bound the gains of the columns base + rise, for `base` (n,) and `rise` (n, k)."""
        blocks = (slice(start, start + COLUMNS_PER_BLOCK) for start in range(0, len(base), COLUMNS_PER_BLOCK))
        return float(np.max(np.concatenate([self.prices(base[block], rise[block]).upper for block in blocks])))

    def prices(self, base: Enclosure, rise: Enclosure) -> Enclosure:
        """Compute (n,) the gain of each column per unit of its probability, v of the module."""
        mass = base + rise @ self.prior
        # K 1 = 0: the part that all inputs share has no information, and is left out.
        gain = (rise @ self.kernel.T).square().sum(axis=1)
        price = base * self.total + rise @ self.arithmetic.of(self.rows)
        first_inputs, second_inputs = np.nonzero(self.pairs)
        if len(first_inputs):
            price = price + (rise[:, first_inputs] - rise[:, second_inputs]).positive() @ self.arithmetic.of(
                self.pairs[first_inputs, second_inputs]
            )
        return (gain / mass - price) / mass


ROOT_MERGE_RTOL = 2.0**-44  # Roots with a smaller difference, relative to the largest root, count as one.


def line_sets(kernel: Array, prior: Array, rows: Array) -> tuple[npt.NDArray[np.bool_], Array]:
    """Return (n, k) the best set between every two neighboring roots, in floats.

    Also returns (n + 1,) the endpoints of these intervals.
    """
    with np.errstate(all="ignore"):
        discriminant = kernel**2 - prior * rows
        discriminant_root = np.sqrt(np.where(discriminant > 0, discriminant, np.nan))
        # The root that does not cancel, and the other one from the product of both.
        larger_roots = kernel + np.where(kernel >= 0, discriminant_root, -discriminant_root)
        roots = np.concatenate([larger_roots / prior, rows / larger_roots])
    roots = np.unique(roots[np.isfinite(roots)])
    roots = roots if len(roots) else np.zeros(1)
    # Roots that differ by rounding alone count as one: they belong to inputs with the same weight in the contrast.
    roots = roots[np.diff(roots, prepend=-np.inf) > ROOT_MERGE_RTOL * np.abs(roots).max()]
    roots = roots if len(roots) else np.zeros(1)
    midpoints = (roots[:-1] + roots[1:]) / 2
    s = np.concatenate([[roots[0] - 1 - abs(roots[0])], midpoints, [roots[-1] + 1 + abs(roots[-1])]])
    sets = s[:, None] * (2 * kernel - s[:, None] * prior) - rows > 0
    return np.asarray(sets), np.concatenate([[-np.inf], roots, [np.inf]])


def line_gain_bound(charges: Charges, level: Enclosure) -> float:
    """Bound the gains of all patterns t + a, t = `level`, for one row of K.

    It is inf if none is proved. Pairs must not have prices. Rounding may have given a wrong set between two roots. So
    the largest gain of any other set there is added, input by input.
    """
    kernel, p, t = FLOAT.of(charges.kernel)[0], FLOAT.of(charges.prior), FLOAT.of(level)
    rows = FLOAT.of(charges.rows)
    is_valid = (np.asarray(p.lower) > 0).all() and t.lower > 0
    if charges.pairs.any() or not is_valid or not np.isfinite(charges.rows).all():
        return math.inf
    sets, ends = line_sets(np.asarray(kernel.midpoint), np.asarray(p.midpoint), charges.rows)
    rise = sets.astype(np.float64)
    mass = rise @ p + t
    price = rise @ rows + t * FLOAT.of(charges.total)
    projection: Any = rise @ kernel
    set_gains = projection.square() / mass - price
    finite_ends = FLOAT.of(ends[1:-1])[:, None]
    gains_at_ends = (kernel[None, :] * 2 - p[None, :] * finite_ends) * finite_ends - rows[None, :]
    lower_ends, upper_ends = np.asarray(gains_at_ends.lower), np.asarray(gains_at_ends.upper)
    peak_points, peak_gains = kernel / p, np.asarray((kernel.square() / p - rows).upper)
    # An input of the set may lose at most -g_x at an end; one outside may gain its largest g_x.
    infinite_row = np.full((1, len(peak_gains)), np.inf)
    unrealized_gains = -np.minimum(np.vstack([-infinite_row, lower_ends]), np.vstack([lower_ends, -infinite_row]))
    is_reached = (np.asarray(peak_points.lower) <= ends[1:, None]) & (np.asarray(peak_points.upper) >= ends[:-1, None])
    possible_gains = np.where(
        is_reached,
        peak_gains,
        np.maximum(np.vstack([-infinite_row, upper_ends]), np.vstack([upper_ends, -infinite_row])),
    )
    set_errors = np.maximum(np.where(sets, unrealized_gains, possible_gains), 0.0)
    if not np.isfinite(set_errors).all():
        return math.inf
    gain_bounds = np.asarray((set_gains + FLOAT.of(set_errors).sum(axis=1)).upper)
    if not (gain_bounds < math.inf).all():
        return math.inf
    return max(float((FLOAT.of(gain_bounds) / t).max().upper), 0.0)  # A mass is at least t.


MOVE_RTOL = 1e-13  # A move of one input must raise a gain by more, relatively: the rest is rounding.
MAX_INPUTS_ALL_PRICED = 24  # All 2^k patterns are priced; 2^24 patterns take about a second.
Members = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Prices:
    """The numbers that price columns, in floats.

    - `gram` : G (k, k).
    - `prior` : p (k,).
    - `rows` : lambda (k,).
    - `pairs` : nu (k, k).
    - `ratio` : E.
    """

    gram: Array
    prior: Array
    rows: Array
    pairs: Array
    ratio: float

    def gains(self, columns: Array) -> Array:
        """Compute (n,) the gains v of `columns` (n, k), whose entries may be any positive numbers."""
        mass = columns @ self.prior
        gain = np.einsum("nx,nx->n", columns @ self.gram, columns) / mass
        price = columns @ self.rows
        if self.pairs.any():
            first_inputs, second_inputs = np.nonzero(self.pairs)
            price = (
                price
                + np.maximum(columns[:, first_inputs] - columns[:, second_inputs], 0.0)
                @ self.pairs[first_inputs, second_inputs]
            )
        return np.asarray((gain - price) / mass)

    def best(self, count: int, min_gain: float) -> tuple[float, Members]:
        """Return the largest v over all 2^k patterns, and the best patterns.

        These are up to `count` patterns with v above `min_gain`, best first.
        """
        k, t, row_sums = len(self.prior), 1 / (self.ratio - 1), self.gram.sum(axis=1)
        # (t + a)^T G (t + a), where a_x^2 = a_x.
        quadratic, constant = self.gram + np.diag(2 * t * row_sums), t * t * float(row_sums.sum())
        linear, constant_price = self.rows + self.pairs.sum(axis=1), t * float(self.rows.sum())
        first_half_sets = subsets(k // 2)
        largest_gain, best_gains, best_sets = -np.inf, np.empty(0), np.empty((0, k), dtype=bool)
        for block, mass, gain, price in patterns_in_halves(
            quadratic, linear, self.pairs, self.prior, t, constant_price, 2**21
        ):
            pattern_values = ((gain + constant) / mass - price) / mass
            largest_gain = max(largest_gain, float(pattern_values.max()))
            flat_values = pattern_values.ravel()
            gaining_positions = np.flatnonzero(flat_values > min_gain)
            if len(gaining_positions) > count:
                gaining_positions = gaining_positions[np.argpartition(-flat_values[gaining_positions], count)[:count]]
            if len(gaining_positions):
                sets = (
                    np.hstack(
                        [
                            first_half_sets[gaining_positions % len(first_half_sets)],
                            block[gaining_positions // len(first_half_sets)],
                        ]
                    )
                    > 0.5
                )
                best_gains, best_sets = (
                    np.append(best_gains, flat_values[gaining_positions]),
                    np.vstack([best_sets, sets]),
                )
                order = np.argsort(-best_gains, kind="stable")[:count]
                best_gains, best_sets = best_gains[order], best_sets[order]
        return largest_gain, best_sets

    def line(self) -> Members:
        """List (n, k) the sets that can be best where G has rank one and pairs have no prices."""
        largest_input = int(np.argmax(np.diag(self.gram)))
        kernel = self.gram[largest_input] / np.sqrt(max(float(self.gram[largest_input, largest_input]), 1e-300))
        return distinct_sets(line_sets(kernel, self.prior, self.rows)[0])[0]

    @np.errstate(over="ignore", invalid="ignore")
    def neighbor_gains(self, sets: Members) -> Array:
        """Compute (n, k) the gains v of the patterns that differ from `sets` (n, k) in one input.

        They are -inf where the difference of the masses is lost to rounding or a square overflows, as at large epsilon.
        """
        members, rise = sets.astype(np.float64), self.ratio - 1
        columns, changes = 1 + rise * members, np.where(sets, -rise, rise)
        linear = columns @ self.gram
        set_masses = (columns @ self.prior)[:, None]
        mass = set_masses + changes * self.prior
        gain = (linear * columns).sum(axis=1)[:, None] + changes * (2 * linear + changes * np.diag(self.gram))
        price = (columns @ self.rows)[:, None] + changes * self.rows
        if self.pairs.any():
            # The columns' excess is rise sum_xx' nu[x,x'] a_x (1 - a_x'), for members a.
            outgoing, between = self.pairs.sum(axis=1) - members @ self.pairs.T, members @ self.pairs
            price = price + rise * (members * outgoing).sum(axis=1)[:, None] + changes * (outgoing - between)
        is_exact = mass > LEAST_REMAINING_MASS * set_masses
        mass = np.where(is_exact, mass, 1.0)
        gains = (gain / mass - price) / mass
        return np.where(is_exact & np.isfinite(gains), gains, -np.inf)

    def climb(self, starts: Members, count: int, min_gain: float) -> Members:
        """Find patterns with v above `min_gain` by local search.

        It moves one input at a time from `starts` until no move helps.
        """
        sets, _ = distinct_sets(starts)
        set_gains = self.gains(np.where(sets, self.ratio, 1.0))
        active_indices = np.arange(len(sets))
        for _ in range(4 * sets.shape[1]):
            neighbor_gains = self.neighbor_gains(sets[active_indices])
            best_moves = neighbor_gains.argmax(axis=1)
            best_gains = neighbor_gains[np.arange(len(active_indices)), best_moves]
            current_gains = set_gains[active_indices]
            is_better = best_gains > current_gains + MOVE_RTOL * np.maximum(np.abs(best_gains), np.abs(current_gains))
            if not is_better.any():
                break
            active_indices = active_indices[is_better]
            set_gains[active_indices] = best_gains[is_better]
            sets[active_indices, best_moves[is_better]] ^= True
        sets, unique_indices = distinct_sets(sets)
        set_gains = set_gains[unique_indices]
        order = np.argsort(-set_gains)[:count]
        return np.asarray(sets[order[set_gains[order] > min_gain]])


def patterns_in_halves(
    quadratic: Array, linear: Array, pairs: Array, prior: Array, level: float, constant: float, size: int
) -> Iterator[tuple[Array, Array, Array, Array]]:
    """Generate all 2^k patterns t + a, t = `level`, in blocks of about `size`.

    A block holds some sets of the second half of the inputs, each with every set of the first. It consists of the sets
    (b, k - low), the masses t + p.a, a^T quadratic a, and constant + linear.a - a^T pairs a, (b, 2^low) each.
    """
    half = len(prior) // 2
    first_half_sets, second_half_sets = subsets(half), subsets(len(prior) - half)
    first_masses = level + first_half_sets @ prior[:half]
    first_terms = [
        quadratic_form(first_half_sets, quadratic[:half, :half]),
        first_half_sets @ linear[:half] - quadratic_form(first_half_sets, pairs[:half, :half]),
    ]
    cross_terms = [
        2 * quadratic[half:, :half] @ first_half_sets.T,
        -(pairs[half:, :half] + pairs[:half, half:].T) @ first_half_sets.T,
    ]
    step = max(1, size // len(first_half_sets))
    for start in range(0, len(second_half_sets), step):
        block = second_half_sets[start : start + step]
        second_terms = [
            quadratic_form(block, quadratic[half:, half:]),
            block @ linear[half:] - quadratic_form(block, pairs[half:, half:]),
        ]
        gain = block @ cross_terms[0] + first_terms[0] + second_terms[0][:, None]
        price = block @ cross_terms[1] + first_terms[1] + (second_terms[1][:, None] + constant)
        yield block, (block @ prior[half:])[:, None] + first_masses, gain, price


def quadratic_form(sets: Array, matrix: Array) -> Array:
    """Compute (n,) a^T matrix a for each row a of `sets`."""
    return np.asarray(((sets @ matrix) * sets).sum(axis=1))


def distinct_sets(sets: Members) -> tuple[Members, npt.NDArray[np.intp]]:
    """List the distinct rows of `sets` (n, k) in lexicographic order, as `np.unique` does, and the first place of each.

    Up to 64 inputs each row is one integer, which is sorted ten times as fast.
    """
    n, k = sets.shape
    if k > 64:
        rows, places = np.unique(sets, axis=0, return_index=True)
        return rows, places
    numbers = np.zeros((n, 8), dtype=np.uint8)
    numbers[:, : (k + 7) // 8] = np.packbits(sets, axis=1)
    places = np.unique(numbers.view(">u8")[:, 0], return_index=True)[1]
    return sets[places], places


def subsets(k: int) -> Array:
    """List (2^k, k) indicators of all subsets."""
    return ((np.arange(2**k)[:, None] >> np.arange(k)) & 1).astype(np.float64)
