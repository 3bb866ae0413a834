"""The gain of a column at the multipliers of a design for estimation: what it earns less what it pays [KW].

For a column s the gain per unit of probability is

    v(s) = (|K s|^2 / (s.p) - lambda.s - sum_{x,x'} nu[x,x'] (s_x - s_x')_+) / (s.p),

with K centred at p, so that K 1 = 0. With t >= v over all columns, sum lambda + eta sum nu + t bounds
sum_y w_y |K u_y|^2 over every channel that meets the constraints: rows sum to one, and so do the probabilities s.p.
Under plain LDP the patterns S (E = exp(epsilon) on a set, 1 elsewhere) are enough, because every column is a sum of
patterns and S^T G S / (S.p), G = K^T K, is convex and homogeneous. `Charges` encloses gains; `Prices` computes them in
floats, for searches.

*One contrast.* For a kernel with one row kappa, a pattern t + a, t = 1/(E - 1), earns c^2 / m with c = kappa.a and
m = t + p.a. As c^2 / m = max over s of 2 s c - s^2 m,

    earned - paid = max over s of  -s^2 t - t sum lambda + sum over x in a of g_x(s),
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

ROWS = 4096  # The number of columns that are priced at a time.


@dataclass(frozen=True, eq=False)
class Charges:
    """kernel : K (r, k), centred. prior : the law p (k,). rows : lambda (k,). pairs : nu (k, k), none below zero."""

    kernel: Enclosure
    prior: Enclosure
    rows: Array
    pairs: Array

    @classmethod
    def of(cls, kernel: Enclosure, prior: Array, rows: Array, pairs: Array) -> Charges:
        """The charges of a kernel, which is centred here, at the law proportional to `prior`."""
        p = law(prior, kernel.arithmetic)
        return cls(kernel - kernel.sum(axis=1)[:, None] * p[None, :], p, rows, pairs)

    @property
    def arithmetic(self) -> Arithmetic:
        """The arithmetic in which the charges are computed."""
        return self.kernel.arithmetic

    @property
    def total(self) -> Enclosure:
        """The sum of lambda, rounded only once: a constant column pays nothing else."""
        return self.arithmetic.of(exact_sum(self.rows))

    def most(self, base: Enclosure, rise: Enclosure) -> float:
        """An upper bound on the gains of the columns base + rise, for `base` (n,) and `rise` (n, k)."""
        parts = (slice(start, start + ROWS) for start in range(0, len(base), ROWS))
        return float(np.max(np.concatenate([self.prices(base[part], rise[part]).upper for part in parts])))

    def prices(self, base: Enclosure, rise: Enclosure) -> Enclosure:
        """(n,) the gain of each column per unit of its probability, v in the module's docstring."""
        mass = base + rise @ self.prior
        # K 1 = 0: the part that all inputs share earns nothing, and is left out.
        earned = (rise @ self.kernel.T).square().sum(axis=1)
        paid = base * self.total + rise @ self.arithmetic.of(self.rows)
        x, other = np.nonzero(self.pairs)
        if len(x):
            paid = paid + (rise[:, x] - rise[:, other]).positive() @ self.arithmetic.of(self.pairs[x, other])
        return (earned / mass - paid) / mass


SAME = 2.0**-44  # Roots that differ by less than this share of the largest one count as one root.


def line_sets(kernel: Array, prior: Array, rows: Array) -> tuple[npt.NDArray[np.bool_], Array]:
    """(n, k) the best set between every two neighbouring roots, and (n + 1,) the ends of these intervals, in floats."""
    with np.errstate(all="ignore"):
        apart = kernel**2 - prior * rows
        root = np.sqrt(np.where(apart > 0, apart, np.nan))
        # The root that does not cancel, and the other one from the product of both.
        far = kernel + np.where(kernel >= 0, root, -root)
        roots = np.concatenate([far / prior, rows / far])
    roots = np.unique(roots[np.isfinite(roots)])
    roots = roots if len(roots) else np.zeros(1)
    # Roots that differ by rounding alone count as one: they belong to inputs with the same weight in the contrast.
    roots = roots[np.diff(roots, prepend=-np.inf) > SAME * np.abs(roots).max()]
    roots = roots if len(roots) else np.zeros(1)
    inside = (roots[:-1] + roots[1:]) / 2
    s = np.concatenate([[roots[0] - 1 - abs(roots[0])], inside, [roots[-1] + 1 + abs(roots[-1])]])
    sets = s[:, None] * (2 * kernel - s[:, None] * prior) - rows > 0
    return np.asarray(sets), np.concatenate([[-np.inf], roots, [np.inf]])


def most_of_line(charges: Charges, level: Enclosure) -> float:
    """An upper bound on the gains of all patterns t + a, t = `level`, for one row of K; inf where none is proved.
    Nothing may be charged for pairs. Rounding may have given a wrong set between two roots, so that what any other set
    could gain there is added, input by input.
    """
    kernel, p, t = FLOAT.of(charges.kernel)[0], FLOAT.of(charges.prior), FLOAT.of(level)
    rows = FLOAT.of(charges.rows)
    possible = (np.asarray(p.lower) > 0).all() and t.lower > 0
    if charges.pairs.any() or not possible or not np.isfinite(charges.rows).all():
        return math.inf
    sets, ends = line_sets(np.asarray(kernel.midpoint), np.asarray(p.midpoint), charges.rows)
    rise = sets.astype(np.float64)
    mass = rise @ p + t
    paid = rise @ rows + t * FLOAT.of(charges.total)
    earned: Any = rise @ kernel
    own = earned.square() / mass - paid
    finite = FLOAT.of(ends[1:-1])[:, None]
    at_ends = (kernel[None, :] * 2 - p[None, :] * finite) * finite - rows[None, :]
    least, most = np.asarray(at_ends.lower), np.asarray(at_ends.upper)
    top, peak = kernel / p, np.asarray((kernel.square() / p - rows).upper)
    # An input of the set may lose as much as g_x is below zero at an end; one outside may gain its largest g_x.
    edge = np.full((1, len(peak)), np.inf)
    lacking = -np.minimum(np.vstack([-edge, least]), np.vstack([least, -edge]))
    reach = (np.asarray(top.lower) <= ends[1:, None]) & (np.asarray(top.upper) >= ends[:-1, None])
    gained = np.where(reach, peak, np.maximum(np.vstack([-edge, most]), np.vstack([most, -edge])))
    wrong = np.maximum(np.where(sets, lacking, gained), 0.0)
    if not np.isfinite(wrong).all():
        return math.inf
    over = np.asarray((own + FLOAT.of(wrong).sum(axis=1)).upper)
    if not (over < math.inf).all():
        return math.inf
    return max(float((FLOAT.of(over) / t).max().upper), 0.0)  # a mass is at least t


EXACT_LIMIT = 24  # The most inputs whose 2^k patterns are all priced; 2^24 patterns take about a second.
Members = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Prices:
    """gram : G (k, k). prior : p (k,). rows : lambda (k,). pairs : nu (k, k). ratio : E."""

    gram: Array
    prior: Array
    rows: Array
    pairs: Array
    ratio: float

    def gains(self, columns: Array) -> Array:
        """(n,) the gains v of `columns` (n, k), whose entries may be any positive numbers."""
        mass = columns @ self.prior
        earned = np.einsum("nx,nx->n", columns @ self.gram, columns) / mass
        paid = columns @ self.rows
        if self.pairs.any():
            x, other = np.nonzero(self.pairs)
            paid = paid + np.maximum(columns[:, x] - columns[:, other], 0.0) @ self.pairs[x, other]
        return np.asarray((earned - paid) / mass)

    def best(self, count: int, above: float) -> tuple[float, Members]:
        """The largest v over all 2^k patterns, and up to `count` of the patterns with v above `above`, best first."""
        k, t, even = len(self.prior), 1 / (self.ratio - 1), self.gram.sum(axis=1)
        # (t + a)^T G (t + a), where a_x^2 = a_x.
        square, constant = self.gram + np.diag(2 * t * even), t * t * float(even.sum())
        linear, fixed = self.rows + self.pairs.sum(axis=1), t * float(self.rows.sum())
        first = subsets(k // 2)
        top, kept, paying = -np.inf, np.empty(0), np.empty((0, k), dtype=bool)
        for block, mass, earned, paid in in_halves(square, linear, self.pairs, self.prior, t, fixed, 2**21):
            value = ((earned + constant) / mass - paid) / mass
            top = max(top, float(value.max()))
            flat = value.ravel()
            good = np.flatnonzero(flat > above)
            if len(good) > count:
                good = good[np.argpartition(-flat[good], count)[:count]]
            if len(good):
                sets = np.hstack([first[good % len(first)], block[good // len(first)]]) > 0.5
                kept, paying = np.append(kept, flat[good]), np.vstack([paying, sets])
                order = np.argsort(-kept, kind="stable")[:count]
                kept, paying = kept[order], paying[order]
        return top, paying

    def line(self) -> Members:
        """(n, k) the sets that can be best where G has rank one and nothing is charged for pairs."""
        largest = int(np.argmax(np.diag(self.gram)))
        kernel = self.gram[largest] / np.sqrt(max(float(self.gram[largest, largest]), 1e-300))
        return np.unique(line_sets(kernel, self.prior, self.rows)[0], axis=0)

    def climb(self, starts: Members, count: int, above: float) -> Members:
        """Patterns with v above `above`, by moving one input at a time from `starts` until no move helps."""
        sets = np.unique(starts, axis=0)
        k = sets.shape[1]
        value = self.gains(np.where(sets, self.ratio, 1.0))
        active = np.arange(len(sets))
        for _ in range(4 * k):
            flipped = np.repeat(sets[active, None, :], k, axis=1)
            flipped[:, np.arange(k), np.arange(k)] ^= True
            near = self.gains(np.where(flipped.reshape(-1, k), self.ratio, 1.0)).reshape(len(active), k)
            flip = near.argmax(axis=1)
            better = near[np.arange(len(active)), flip] > value[active] + 1e-15
            if not better.any():
                break
            value[active[better]] = near[better, flip[better]]
            sets[active[better], flip[better]] ^= True
            active = active[better]
        sets, index = np.unique(sets, axis=0, return_index=True)
        value = value[index]
        order = np.argsort(-value)[:count]
        return np.asarray(sets[order[value[order] > above]])


def in_halves(
    square: Array, linear: Array, pairs: Array, prior: Array, level: float, fixed: float, size: int
) -> Iterator[tuple[Array, Array, Array, Array]]:
    """All 2^k patterns t + a, t = `level`, in blocks of about `size`, each set of the second half of the inputs with
    every set of the first: the block's sets (b, k - low), the masses t + p.a, a^T square a, and
    fixed + linear.a - a^T pairs a, (b, 2^low) each.
    """
    low = len(prior) // 2
    first, second = subsets(low), subsets(len(prior) - low)
    mass = level + first @ prior[:low]
    own = [form_of(first, square[:low, :low]), first @ linear[:low] - form_of(first, pairs[:low, :low])]
    cross = [2 * square[low:, :low] @ first.T, -(pairs[low:, :low] + pairs[:low, low:].T) @ first.T]
    step = max(1, size // len(first))
    for start in range(0, len(second), step):
        block = second[start : start + step]
        other = [form_of(block, square[low:, low:]), block @ linear[low:] - form_of(block, pairs[low:, low:])]
        earned = block @ cross[0] + own[0] + other[0][:, None]
        paid = block @ cross[1] + own[1] + (other[1][:, None] + fixed)
        yield block, (block @ prior[low:])[:, None] + mass, earned, paid


def form_of(sets: Array, square: Array) -> Array:
    """(n,) a^T square a for each row a of `sets`."""
    return np.asarray(((sets @ square) * sets).sum(axis=1))


def subsets(k: int) -> Array:
    """(2^k, k) indicators of all subsets."""
    return ((np.arange(2**k)[:, None] >> np.arange(k)) & 1).astype(np.float64)
