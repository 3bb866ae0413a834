"""The columns of designs for estimation, and the staircase patterns of k inputs among them [KOV14].

The gain of a column is its information less its price at given multipliers (`prices`), per unit of probability. Pricing
a column means to compute its gain. A column is given by its logarithms (k,), in nats. Under plain LDP, columns are
staircase patterns, exp(epsilon) on a set and 1 elsewhere. They are all priced in two halves or, for large alphabets, by
local search and a relaxation. Those of a policy graph are defined in `policy`.

A pattern is t + a for the indicator a of a set, t = 1/(e^epsilon - 1). With G = K^T K and m = t + p.a its gain is

    v(a) = (a^T G a / m - t sum lambda - lambda.a - sum nu[x,x'] a_x (1 - a_x')) / m.

For more than a few inputs it is bounded in floats with a proved error. The inputs are split into two halves, so that
all 2^k quadratic forms are one product of two thin matrices. The rounding error of a gain is at most a multiple of the
sum of the sizes of its terms,

    size(a) = ((g.a)^2 / m + t sum |lambda| + 2 (|lambda| + nu 1).a) / m,        g_x^2 = G[x,x],

because |G[x,x']| <= g_x g_x' for any G = K^T K. A sum of n terms, in any order, has an error of at most n u / (1 - n u)
times the sum of their sizes. Every sum here has at most 2 k + 16 terms.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from ldpopt.design.estimation.branches import Branches, Sizes
from ldpopt.design.estimation.prices import (
    MAX_INPUTS_ALL_PRICED,
    Charges,
    Prices,
    line_gain_bound,
    patterns_in_halves,
    subsets,
)
from ldpopt.design.estimation.relaxation import PolicyRelaxation, Relaxation
from ldpopt.design.estimation.scores import SymmetricScores
from ldpopt.design.estimation.thresholds import Scarf, Thresholds
from ldpopt.errors import SolverError
from ldpopt.numbers.enclosures import FLOAT, Enclosure
from ldpopt.numbers.rounding import ULP
from ldpopt.values.distribution import Array

if TYPE_CHECKING:
    from ldpopt.design.kernel.listed import Arrangement

MAX_COLUMNS_PER_ROUND = 200
AnyRelaxation = Relaxation | PolicyRelaxation | Branches | Sizes | Thresholds | Scarf | SymmetricScores


class Columns(ABC):
    """The columns of the channels within a constraint."""

    epsilon: float
    """The largest log-ratio of two entries of a column; inf where entries may be 0."""

    kind: str
    """The name of such columns in printed texts."""

    line: bool = False
    """True if only a few sets can be the best ones, for any multipliers (`estimation.prices`)."""

    name: str
    """The same with their number."""

    count: float = math.inf
    """The number of columns, without multiples of others; inf if they cannot be listed."""

    @property
    def arrangement(self) -> Arrangement | None:
        """The arrangement whose extreme rays are listed; None if the columns cannot be listed."""
        return None

    def values(self, heights: Array) -> Array:
        """Compute the columns with these logarithms."""
        return np.asarray(np.exp(heights))

    @abstractmethod
    def start(self) -> Array:
        """List logarithms (n, k) of the first columns; some mixture of them is constant."""

    @abstractmethod
    def paying(self, prices: Prices, columns_in_use: Array, min_gain: float) -> Array:
        """Find logarithms (n, k) of columns that gain more than `min_gain`.

        They are the best of all, or good ones near `columns_in_use`.
        """

    @property
    @abstractmethod
    def exact(self) -> bool:
        """True if a proof prices all columns; otherwise a relaxation bounds their gains."""

    @abstractmethod
    def gain_bound(self, charges: Charges, relaxation: AnyRelaxation | None) -> float:
        """Bound the gain of every column; inf if no bound is proved.

        relaxation : used if not `exact`.
        """


PATTERNS_PER_BLOCK = 2**18
MIN_LEVEL = 1e-100  # For a smaller t, the products of small numbers may underflow.
NOISE_FACTOR = 2.0**44  # The factor that increases the rounding of a column of K.


def pattern_gain_bound(charges: Charges, level: Enclosure) -> float:
    """Bound the gains of all patterns t + a, t = `level`; inf if floats cannot give a bound."""
    gram, p, t = (FLOAT.of(numbers) for numbers in (charges.kernel.T @ charges.kernel, charges.prior, level))
    rows, pairs, k = charges.rows, charges.pairs, len(charges.rows)
    total = float(charges.total.midpoint)
    midpoint_gram, midpoint_prior, midpoint_t = np.asarray(gram.midpoint), np.asarray(p.midpoint), float(t.midpoint)
    kernel = FLOAT.of(charges.kernel)
    with np.errstate(all="ignore"):
        # A column of K that is pure rounding counts as larger, so that the bound covers its products, too.
        noise = np.sqrt(((np.asarray(kernel.upper) - np.asarray(kernel.lower)) ** 2).sum(axis=0)) * NOISE_FACTOR
        column_norms = np.sqrt(np.diag(np.asarray(gram.upper))) * (1 + 4 * ULP) + noise
        radius = np.asarray(gram.upper) - np.asarray(gram.lower)
        relative_radius = np.where(radius > 0, radius / (column_norms[:, None] * column_norms), 0.0)
        relative_widths = [
            (np.asarray(numbers.upper) - np.asarray(numbers.lower)) / np.asarray(numbers.midpoint) for numbers in (p, t)
        ]
        largest_width = float(
            np.max([np.max(np.where(np.asarray(numbers) > 0, numbers, 0.0)) for numbers in relative_widths])
        )
    relative_error = 1.01 * (float(relative_radius.max()) + 4 * largest_width + (16 * k + 128) * ULP)
    if not (relative_error < 0.5 and midpoint_t > MIN_LEVEL and np.isfinite(column_norms).all()):
        return math.inf
    # Numbers far below the others may be lost to underflow: at most this fraction of the largest.
    underflow = 1e-250 * (float(column_norms.max()) ** 2 + float(np.abs(rows).sum()) + float(pairs.sum()) + 1e-50)
    linear, size_slopes = rows + pairs.sum(axis=1), 2 * (np.abs(rows) + pairs.sum(axis=1))
    total_price, total_size = midpoint_t * total, midpoint_t * float(np.abs(rows).sum())
    half, largest_gain = k // 2, -math.inf
    first_half_sets = subsets(half)
    first_sizes, first_slopes = first_half_sets @ column_norms[:half], total_size + first_half_sets @ size_slopes[:half]
    for block, mass, gain, price in patterns_in_halves(
        midpoint_gram, linear, pairs, midpoint_prior, midpoint_t, total_price, PATTERNS_PER_BLOCK
    ):
        sizes = ((block @ column_norms[half:])[:, None] + first_sizes) ** 2 / mass + (
            (block @ size_slopes[half:])[:, None] + first_slopes
        )
        block_bound = float(((gain / mass - price + relative_error * sizes + underflow / mass) / mass).max())
        if not block_bound < math.inf:
            return math.inf
        largest_gain = max(largest_gain, block_bound)
    return largest_gain + 4 * ULP * abs(largest_gain)


MAX_INPUTS_ALL_STARTED = 8  # Up to this many inputs, the first program has all patterns.
MAX_INPUTS_PRICED_SINGLY = (
    12  # Proofs price all patterns one by one in the given arithmetic; for more inputs, in floats.
)


def staircase_arrangement(k: int) -> Arrangement:
    """Return the arrangement whose extreme rays are the staircase patterns of k inputs.

    They are 2^k - 1, with the constant one. The cone is that of the columns with c_x <= E c_x', E = e^epsilon. It is
    cut by c_x = c_x'. Without the cuts the constant column is not an extreme ray, but it may be listed nevertheless.
    """
    from ldpopt.design.kernel.listed import Arrangement

    return Arrangement.uniform(k, limit=1, has_order_cuts=True)


class StaircaseColumns(Columns):
    """The 2^k - 1 staircase patterns of k inputs: exp(epsilon) on a set, 1 elsewhere."""

    kind = "staircase patterns"

    def __init__(self, k: int, epsilon: float, line: bool = False) -> None:
        """Store the columns.

        line : True if the kernel has one row and pairs have no prices, so that only few sets can be best.
        """
        self.k = k
        self.epsilon = epsilon
        self.line = line
        self.name, self.count = f"{2**k} {self.kind}", 2**k - 1  # The full one is a multiple of the empty one.

    @property
    def arrangement(self) -> Arrangement:
        """The arrangement of the staircase patterns, for the ratio E = e^epsilon."""
        return staircase_arrangement(self.k)

    def start(self) -> Array:
        """List the first patterns.

        They are all patterns of a small alphabet, or else singletons, their complements, and sets of nearly the best
        size.
        """
        k = self.k
        if k <= MAX_INPUTS_ALL_STARTED:
            return np.asarray(((np.arange(2**k - 1)[:, None] >> np.arange(k)) & 1) * self.epsilon)
        if self.line:  # Few patterns join in any case.
            return np.zeros((1, k))
        rng = np.random.default_rng(k)
        best_size = min(max(round(k / (math.exp(self.epsilon) + 1)), 1), k - 1)
        sets = [np.zeros((1, k), dtype=bool), np.eye(k, dtype=bool), ~np.eye(k, dtype=bool)]
        for size in {max(best_size - 1, 1), best_size, min(best_size + 1, k - 1)}:
            is_member = np.arange(k) < size
            for order in (np.arange(k), rng.permutation(k)):
                rotations = np.array([np.roll(is_member, turn) for turn in range(k)])
                sets.append(rotations[:, order])
        return np.asarray(np.unique(np.vstack(sets), axis=0) * self.epsilon)

    def paying(self, prices: Prices, columns_in_use: Array, min_gain: float) -> Array:
        """Find patterns by local search; if it finds none, the best of all if all can be priced."""
        if self.line:
            sets = prices.line()
            gains = prices.gains(np.where(sets, prices.ratio, 1.0))
            order = np.argsort(-gains, kind="stable")[:MAX_COLUMNS_PER_ROUND]
            return np.asarray(sets[order[gains[order] > min_gain]] * self.epsilon)
        better_sets = prices.climb(columns_in_use > 0, MAX_COLUMNS_PER_ROUND, min_gain)
        if len(better_sets) == 0 and self.exact:
            return self.best(prices, MAX_COLUMNS_PER_ROUND, min_gain)
        return np.asarray(better_sets * self.epsilon)

    def best(self, prices: Prices, count: int, min_gain: float) -> Array:
        """List the best of all patterns, up to `count` that gain more than `min_gain`."""
        return np.asarray(prices.best(count, min_gain)[1] * self.epsilon)

    @property
    def exact(self) -> bool:
        """True if all patterns can be priced."""
        return self.line or self.k <= MAX_INPUTS_ALL_PRICED

    def gain_bound(self, charges: Charges, relaxation: AnyRelaxation | None) -> float:
        """Bound the largest gain of all 2^k patterns.

        A few are priced one by one. More are bounded by `relaxation`, or in two halves.
        """
        epsilon = charges.arithmetic.of(self.epsilon)
        # Patterns are divided by exp(epsilon) - 1: t on all inputs, and t + 1 on a set.
        level = 1 / epsilon.expm1()
        if self.k <= MAX_INPUTS_PRICED_SINGLY:
            sets = subsets(self.k)[:-1]  # The full one is a multiple of the empty one, priced without rounding.
            return charges.gain_bound(level * np.ones(len(sets)), charges.arithmetic.of(sets))
        if len(charges.kernel) == 1 and not charges.pairs.any():
            bound = line_gain_bound(charges, level)
            if bound < math.inf or self.k > MAX_INPUTS_ALL_PRICED:
                return bound
        if isinstance(relaxation, Sizes | Thresholds | Scarf | SymmetricScores):
            return relaxation.gain_bound(charges, epsilon)
        if self.exact:
            return pattern_gain_bound(charges, level)
        return relaxation.gain_bound(charges, epsilon) if isinstance(relaxation, Relaxation | Branches) else math.inf


class SmallSetColumns(StaircaseColumns):
    """Staircase patterns where the best sets are small.

    A search through up to `nodes` of them finds the best, of gain `reached`. squares : (k,) the proportions of d, which
    makes the form of the search convex (`branches`).
    """

    def __init__(self, k: int, epsilon: float, squares: Array, nodes: int) -> None:
        super().__init__(k, epsilon)
        self.squares, self.nodes, self.reached = squares, nodes, math.inf
        self.leading = np.eye(k, dtype=bool)

    def best(self, prices: Prices, count: int, min_gain: float) -> Array:
        """Find the best sets by a climb and a search.

        Raises `SolverError` if the search would need more sets.
        """
        local_optima = prices.climb(self.leading, count, 0.0)
        searched_gain = max(0.05 * prices.gains(np.where(local_optima, prices.ratio, 1.0)).max(initial=0.0), min_gain)
        # The form that is below zero at sets priced above that.
        eigenvalues, eigenvectors = np.linalg.eigh(prices.gram)
        kernel, rows = (
            (eigenvectors * np.sqrt(np.maximum(eigenvalues, 0.0))).T,
            prices.rows + searched_gain * prices.prior,
        )
        charges = Charges.from_kernel(FLOAT.of(kernel), prices.prior, rows, prices.pairs)
        branches = Branches.convex(prices.gram, rows, prices.prior, self.squares)
        search = branches.walked(charges, FLOAT.of(self.epsilon), count, self.nodes)
        if search is None or not search.complete:
            raise SolverError("small sets: more sets may pay than can be looked at; pass another method")
        sets = np.unique(np.vstack([local_optima, search.sets]), axis=0)
        gains = prices.gains(np.where(sets, prices.ratio, 1.0))
        self.reached = float(gains.max(initial=searched_gain))
        order = np.argsort(-gains, kind="stable")[:count]
        self.leading = sets[order[: self.k]] if len(sets) else self.leading
        return np.asarray(sets[order[gains[order] > min_gain]] * self.epsilon)
