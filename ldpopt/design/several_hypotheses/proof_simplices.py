"""Simplices of marginals: linear functions above a utility that compares the masses of a column under a few laws.

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

from ldpopt.design.kernel.numbers import require
from ldpopt.design.utilities.laws import Compared, Laws
from ldpopt.divergences.enclosed import enclosed_excess
from ldpopt.numbers.enclosures import Arithmetic, Enclosure
from ldpopt.values.distribution import Array, Index

Mask = npt.NDArray[np.bool_]
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

    compared: Compared
    shares: Enclosure
    mean: Enclosure
    apart: Enclosure
    level: Enclosure
    laws: Enclosure

    @classmethod
    def of(cls, compared: Compared, criteria: Enclosure, level: Enclosure) -> LawShares:
        """The marginals of a utility whose criteria are mixed by the weights `criteria`, which sum to one."""
        of = level.arithmetic
        n = len(compared.laws)
        require(2 <= n <= MAX_LAWS, f"{n} laws are too many to cut their masses into simplices (at most {MAX_LAWS})")
        each = [Laws.of(other, compared.laws[0], of) for other in compared.laws[1:]]
        laws = of.stack([each[0].p1, *(pair.p0 for pair in each)])
        shares = of.stack([criteria[term.criterion] * term.weight for term in compared.terms])
        return cls(compared, shares, laws.sum(axis=0) / n, of.stack([pair.apart for pair in each]), level, laws)

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
