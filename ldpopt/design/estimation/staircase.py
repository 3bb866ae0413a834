"""The columns that designs for estimation are made of, and the staircase patterns of k inputs among them [KOV14].

The gain of a column is what it earns above its price at given multipliers (`prices`), per unit of probability. Pricing
a column means to compute its gain. A column is given by its logarithms (k,), in nats. Under plain LDP, columns are
staircase patterns, exp(epsilon) on a set and 1 elsewhere, all priced in two halves or, for large alphabets, by local
search and a relaxation; those of a policy graph stand in `policy`.

A pattern is t + a for the indicator a of a set, t = 1/(e^epsilon - 1). With G = K^T K and m = t + p.a its gain is

    v(a) = (a^T G a / m - t sum lambda - lambda.a - sum nu[x,x'] a_x (1 - a_x')) / m.

For more than a few inputs it is bounded in floats with a proved error. The inputs are split into two halves, so that
all 2^k quadratic forms are one product of two thin matrices. The rounding error of a gain is at most a multiple of the
sum of the sizes of its terms,

    size(a) = ((g.a)^2 / m + t sum |lambda| + 2 (|lambda| + nu 1).a) / m,        g_x^2 = G[x,x],

because |G[x,x']| <= g_x g_x' for any G = K^T K. A sum of n terms, in any order, is off by at most n u / (1 - n u) times
the sum of their sizes, and every sum here has at most 2 k + 16 terms.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from ldpopt.design.estimation.branches import Branches, Sizes
from ldpopt.design.estimation.prices import EXACT_LIMIT, Charges, Prices, in_halves, most_of_line, subsets
from ldpopt.design.estimation.relaxation import PolicyRelaxation, Relaxation
from ldpopt.design.estimation.scores import SymmetricScores
from ldpopt.design.estimation.thresholds import Scarf, Thresholds
from ldpopt.errors import SolverError
from ldpopt.numbers.enclosures import FLOAT, Enclosure
from ldpopt.numbers.rounding import ULP
from ldpopt.values.distribution import Array

if TYPE_CHECKING:
    from ldpopt.design.kernel.listed import Arrangement

BATCH = 200  # The most columns that join a design in one round.
AnyRelaxation = Relaxation | PolicyRelaxation | Branches | Sizes | Thresholds | Scarf | SymmetricScores


class Columns(ABC):
    """The columns of the channels within a constraint."""

    epsilon: float
    """The largest log-ratio of two entries of a column; inf where entries may be 0."""

    kind: str
    """The name of such columns in printed texts."""

    line: bool = False
    """Whether only a few sets can be the best ones, whatever the multipliers are (`estimation.prices`)."""

    name: str
    """The same with their number."""

    count: float = math.inf
    """How many there are, without multiples of others; inf where they cannot be listed."""

    @property
    def arrangement(self) -> Arrangement | None:
        """The arrangement whose extreme rays are listed; None where the columns cannot be listed."""
        return None

    def values(self, heights: Array) -> Array:
        """The columns with these logarithms."""
        return np.asarray(np.exp(heights))

    @abstractmethod
    def start(self) -> Array:
        """Logarithms (n, k) of columns to begin with, some mixture of which is constant."""

    @abstractmethod
    def paying(self, prices: Prices, used: Array, least: float) -> Array:
        """Logarithms (n, k) of columns that gain more than `least`: the best of all, or good ones near `used`."""

    @property
    @abstractmethod
    def exact(self) -> bool:
        """Whether a proof prices all columns; otherwise a relaxation bounds their gains."""

    @abstractmethod
    def most(self, charges: Charges, relaxed: AnyRelaxation | None) -> float:
        """A proved upper bound on the gain of every column, inf where none is proved. relaxed : used if not `exact`."""


BLOCK = 2**18  # The number of patterns that are priced at a time.
LEAST = 1e-100  # The least t: below it the products of small numbers may underflow.
NOISE = 2.0**44  # The factor by which the rounding of a column of K is counted more than once.


def most_of_patterns(charges: Charges, level: Enclosure) -> float:
    """An upper bound on the gains of all patterns t + a, t = `level`; inf where floats cannot give one."""
    gram, p, t = (FLOAT.of(each) for each in (charges.kernel.T @ charges.kernel, charges.prior, level))
    rows, pairs, k = charges.rows, charges.pairs, len(charges.rows)
    total = float(charges.total.midpoint)
    square, mass_of, low_t = np.asarray(gram.midpoint), np.asarray(p.midpoint), float(t.midpoint)
    kernel = FLOAT.of(charges.kernel)
    with np.errstate(all="ignore"):
        # A column of K that is all rounding is counted as larger, so that the bound covers its products, too.
        noise = np.sqrt(((np.asarray(kernel.upper) - np.asarray(kernel.lower)) ** 2).sum(axis=0)) * NOISE
        root = np.sqrt(np.diag(np.asarray(gram.upper))) * (1 + 4 * ULP) + noise
        radius = np.asarray(gram.upper) - np.asarray(gram.lower)
        share = np.where(radius > 0, radius / (root[:, None] * root), 0.0)
        width = [(np.asarray(each.upper) - np.asarray(each.lower)) / np.asarray(each.midpoint) for each in (p, t)]
        spread = float(np.max([np.max(np.where(np.asarray(each) > 0, each, 0.0)) for each in width]))
    wrong = 1.01 * (float(share.max()) + 4 * spread + (16 * k + 128) * ULP)
    if not (wrong < 0.5 and low_t > LEAST and np.isfinite(root).all()):
        return math.inf
    # Numbers far below the others may be lost to underflow: at most this share of the largest.
    lost = 1e-250 * (float(root.max()) ** 2 + float(np.abs(rows).sum()) + float(pairs.sum()) + 1e-50)
    linear, steep = rows + pairs.sum(axis=1), 2 * (np.abs(rows) + pairs.sum(axis=1))
    middle, fixed = low_t * total, low_t * float(np.abs(rows).sum())
    low, top = k // 2, -math.inf
    first = subsets(low)
    size, slope = first @ root[:low], fixed + first @ steep[:low]
    for block, mass, earned, paid in in_halves(square, linear, pairs, mass_of, low_t, middle, BLOCK):
        told = ((block @ root[low:])[:, None] + size) ** 2 / mass + ((block @ steep[low:])[:, None] + slope)
        most = float(((earned / mass - paid + wrong * told + lost / mass) / mass).max())
        if not most < math.inf:
            return math.inf
        top = max(top, most)
    return top + 4 * ULP * abs(top)


FULL = 8  # Up to this many inputs, all patterns are there from the start.
LISTED = 12  # Up to this many inputs, proofs price all patterns one by one in the given arithmetic; beyond, in floats.


def staircase_arrangement(k: int) -> Arrangement:
    """Return the arrangement whose extreme rays are the 2^k - 1 staircase patterns of k inputs, the constant one too.

    The cone is that of the columns with c_x <= E c_x', E = e^epsilon. It is cut by c_x = c_x'. Without the cuts the
    constant column is no extreme ray, but it may be listed all the same.
    """
    from ldpopt.design.kernel.listed import Arrangement

    return Arrangement.of(k, limit=1, ordered=True)


class StaircaseColumns(Columns):
    """The 2^k - 1 staircase patterns of k inputs: exp(epsilon) on a set, 1 elsewhere."""

    kind = "staircase patterns"

    def __init__(self, k: int, epsilon: float, line: bool = False) -> None:
        """line : whether the kernel has one row and nothing is charged for pairs, so that only few sets can be best."""
        self.k = k
        self.epsilon = epsilon
        self.line = line
        self.name, self.count = f"{2**k} {self.kind}", 2**k - 1  # the full one is a multiple of the empty one

    @property
    def arrangement(self) -> Arrangement:
        """That of the staircase patterns, for the ratio E = e^epsilon."""
        return staircase_arrangement(self.k)

    def start(self) -> Array:
        """All patterns of a small alphabet; else singletons, their complements, and sets of nearly the best size."""
        k = self.k
        if k <= FULL:
            return np.asarray(((np.arange(2**k - 1)[:, None] >> np.arange(k)) & 1) * self.epsilon)
        if self.line:  # few patterns join in any case
            return np.zeros((1, k))
        rng = np.random.default_rng(k)
        best = min(max(round(k / (math.exp(self.epsilon) + 1)), 1), k - 1)
        sets = [np.zeros((1, k), dtype=bool), np.eye(k, dtype=bool), ~np.eye(k, dtype=bool)]
        for size in {max(best - 1, 1), best, min(best + 1, k - 1)}:
            circle = np.arange(k) < size
            for order in (np.arange(k), rng.permutation(k)):
                turned = np.array([np.roll(circle, turn) for turn in range(k)])
                sets.append(turned[:, order])
        return np.asarray(np.unique(np.vstack(sets), axis=0) * self.epsilon)

    def paying(self, prices: Prices, used: Array, least: float) -> Array:
        """The patterns that local search finds; if it finds none, the best of all, where all can be priced."""
        if self.line:
            sets = prices.line()
            gains = prices.gains(np.where(sets, prices.ratio, 1.0))
            order = np.argsort(-gains, kind="stable")[:BATCH]
            return np.asarray(sets[order[gains[order] > least]] * self.epsilon)
        climbed = prices.climb(used > 0, BATCH, least)
        if len(climbed) == 0 and self.exact:
            return self.best(prices, BATCH, least)
        return np.asarray(climbed * self.epsilon)

    def best(self, prices: Prices, count: int, least: float) -> Array:
        """The best of all patterns, up to `count` that gain more than `least`."""
        return np.asarray(prices.best(count, least)[1] * self.epsilon)

    @property
    def exact(self) -> bool:
        """Whether all patterns can be priced."""
        return self.line or self.k <= EXACT_LIMIT

    def most(self, charges: Charges, relaxed: AnyRelaxation | None) -> float:
        """The largest gain of all 2^k patterns: of a few one by one, else as `relaxed` says, or in two halves."""
        epsilon = charges.arithmetic.of(self.epsilon)
        # Patterns are divided by exp(epsilon) - 1: t on all inputs, and t + 1 on a set.
        level = 1 / epsilon.expm1()
        if self.k <= LISTED:
            sets = subsets(self.k)[:-1]  # the full pattern is a multiple of the empty one, priced without rounding
            return charges.most(level * np.ones(len(sets)), charges.arithmetic.of(sets))
        if len(charges.kernel) == 1 and not charges.pairs.any():
            bound = most_of_line(charges, level)
            if bound < math.inf or self.k > EXACT_LIMIT:
                return bound
        if isinstance(relaxed, Sizes | Thresholds | Scarf | SymmetricScores):
            return relaxed.most(charges, epsilon)
        if self.exact:
            return most_of_patterns(charges, level)
        return relaxed.most(charges, epsilon) if isinstance(relaxed, Relaxation | Branches) else math.inf


class SmallSetColumns(StaircaseColumns):
    """The same where the best sets are small: a search through up to `nodes` of them finds the best, of gain `reached`.

    squares : (k,) the proportions of what makes the form of the search convex (`branches`).
    """

    def __init__(self, k: int, epsilon: float, squares: Array, nodes: int) -> None:
        super().__init__(k, epsilon)
        self.squares, self.nodes, self.reached = squares, nodes, math.inf
        self.leading = np.eye(k, dtype=bool)

    def best(self, prices: Prices, count: int, least: float) -> Array:
        """The best sets from a climb and a search; `SolverError` where the search would need more sets."""
        climbed = prices.climb(self.leading, count, 0.0)
        above = max(0.05 * prices.gains(np.where(climbed, prices.ratio, 1.0)).max(initial=0.0), least)
        # The form that is below zero at sets priced above that.
        values, vectors = np.linalg.eigh(prices.gram)
        kernel, rows = (vectors * np.sqrt(np.maximum(values, 0.0))).T, prices.rows + above * prices.prior
        charges = Charges.of(FLOAT.of(kernel), prices.prior, rows, prices.pairs)
        branches = Branches.convex(prices.gram, rows, prices.prior, self.squares)
        search = branches.walked(charges, FLOAT.of(self.epsilon), count, self.nodes)
        if search is None or not search.complete:
            raise SolverError("small sets: more sets may pay than can be looked at; pass another method")
        sets = np.unique(np.vstack([climbed, search.sets]), axis=0)
        gains = prices.gains(np.where(sets, prices.ratio, 1.0))
        self.reached = float(gains.max(initial=above))
        order = np.argsort(-gains, kind="stable")[:count]
        self.leading = sets[order[: self.k]] if len(sets) else self.leading
        return np.asarray(sets[order[gains[order] > least]] * self.epsilon)
