r"""Mutual information at a prior of few different masses, under LocalDP and a cap on total variation: orbits of sets.

*Orbits.* The answers are in groups, of k_i answers of equal mass. An orbit holds all sets with j_i answers of each
group i: it is j = (j_1, ..., j_c), and there are prod (k_i + 1). Let the sets of an orbit be equally likely. An answer
x of the group i is in the set with the probability j_i/k_i. The probability that x is in it while x' of the group l is
not is

    s_il(j) = (j_i/k_i) (1 - j_l/k_l)  for i != l,        s_ii(j) = j_i (k_i - j_i) / (k_i (k_i - 1)).

*Theorem.* Let the prior have the masses q_1, ..., q_c, that of the group i for k_i answers each, and t = 1/(e^epsilon -
1). Let h(a) be the information on the pattern t + 1_A of a set of mass a (`information.proof`). If numbers lambda_i,
and nu_il >= 0, satisfy for every orbit j

    h(sum_i q_i j_i) <= sum_i lambda_i (t + j_i/k_i) + sum_il nu_il s_il(j),

then no channel has more information than sum_i lambda_i + eta sum_il nu_il.

*Proof.* Staircase patterns suffice (`symmetric.proof`), and permutations within groups change neither the prior nor the
constraints. The average of a channel over them keeps its information and exceeds no cap. It draws an orbit, with the
weight theta_j, and then one of its sets, all equally likely. So rows of the group i have the sum sum_j theta_j (t +
j_i/k_i) = 1, and two rows are at the distance sum_j theta_j s_il(j) <= eta. Multiply the condition by theta_j and add.

*Rounding.* Information is concave in the prior: if P <= M P' for the distribution P', then the information at P is at
most M times that at P'. So masses may be rounded up to few values, and M is the sum of the rounded masses. Rounding
differences of the masses cost no more than rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ldpopt.design.information.proof import information
from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.kernel.listed import COLUMNS_PER_BLOCK, Caps, dual_factor
from ldpopt.design.kernel.numbers import increasing, nonnegative_array, real_array, require
from ldpopt.design.utilities.column import MutualInformation
from ldpopt.design.work import Work, count_numbers
from ldpopt.numbers.enclosures import FLOAT, Arithmetic, Enclosure
from ldpopt.numbers.rounding import exact_sum
from ldpopt.values.distribution import Array, Index

MAX_GROUPS = 4
"""Groups of answers."""
MAX_ORBITS = 2**20
"""Orbits that are evaluated."""
MASS_RTOL = 2.0**-32
"""Masses with a smaller relative difference are in one group."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of answers, by rising mass.

    - `values` : (c,) the mass of each answer of a group.
    - `which` : (k,) the group of each answer, -1 for an answer without mass.
    """

    values: Array
    which: Index

    @classmethod
    def rounded(cls, prior: Array, values: Array) -> Groups:
        """Group the answers by masses, rounded up to the next of the rising `values`.

        No mass is above all values.
        """
        groups = np.searchsorted(values, prior, side="left").astype(np.intp)
        return cls(values, np.where(prior > 0, groups, -1))

    @classmethod
    def from_prior(cls, prior: Array) -> Groups:
        """Group the answers with equal masses, up to `MASS_RTOL`."""
        sorted_masses = np.unique(prior[prior > 0])
        last = np.append(np.diff(sorted_masses) > MASS_RTOL * sorted_masses[1:], True)
        return cls.rounded(prior, sorted_masses[last])

    @property
    def sizes(self) -> Index:
        """The number of answers of each group, (c,)."""
        return np.bincount(self.which[self.which >= 0], minlength=len(self.values)).astype(np.intp)

    @property
    def count(self) -> int:
        """The number of orbits, without that of the full set, whose pattern is constant."""
        return orbit_count(self.sizes)


def orbit_count(sizes: Any) -> int:
    """Count the orbits of groups of these sizes, without that of the full set."""
    return math.prod(int(size) + 1 for size in sizes) - 1


def orbits(sizes: Index, numbers: Index) -> Index:
    """Return (c, n) the numbers of answers of each group in the sets of some orbits.

    Orbit 0 is that of the empty set.
    """
    return np.stack(np.unravel_index(numbers, tuple(sizes + 1))).astype(np.intp)


@dataclass(frozen=True, eq=False, repr=False)
class OrbitDual(Certificate):
    """Multipliers for mutual information at a prior of few different masses, checked on every orbit of sets.

    - `values` : (c,) masses, increasing, c <= 4. Each answer of positive mass belongs to the smallest value that is not
      below its mass.
    - `rows` : (c,) multipliers of the groups' rows.
    - `pairs` : (c, c) non-negative multipliers of the cap on total variation. Entry (i, l) is for sets with an answer
      of the group i and without one of the group l. That of a group of one answer with itself is ignored.
    """

    proves = MutualInformation
    values: Array
    rows: Array
    pairs: Array
    argument = "multipliers that pay for every orbit of sets of answers, where few different probabilities occur"

    def work(self) -> Work:
        """Bound the work to price every orbit, some of them again with 256 bits.

        These are the orbits that floats do not decide; honest numbers leave few of them.
        """
        groups = max(min(count_numbers(self.values), MAX_GROUPS), 1)
        max_orbits = min((self.answers / groups + 1.0) ** groups, 2.0 * MAX_ORBITS)
        orbit_cost = 150.0 + 12.0 * groups**2
        return Work.on(max_orbits, orbit_cost, min(max_orbits, COLUMNS_PER_BLOCK) * groups**2).in_floats + Work.on(
            self.answers + COLUMNS_PER_BLOCK, orbit_cost
        )

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """Compute M (sum rows + eta sum pairs) times the factor of the multipliers' shortfall."""
        prior = np.asarray(self.utility.prior)
        values = increasing(self.values, "the masses of the groups")
        c = len(values)
        require(c <= MAX_GROUPS, f"{c} groups have too many orbits (at most {MAX_GROUPS} groups)")
        require(values[0] > 0 and prior.max() <= values[-1], "an answer is likelier than those of every group")
        groups = Groups.rounded(prior, values)
        require(groups.sizes.all(), "a group has no answers")
        require(groups.count <= MAX_ORBITS, f"{groups.count} orbits are too many to look at (at most {MAX_ORBITS})")
        rows = real_array(self.rows, (c,), "rows")
        pairs = nonnegative_array(self.pairs, (c, c), "pairs").copy()
        np.fill_diagonal(pairs, np.where(groups.sizes > 1, np.diag(pairs), 0.0))
        caps = Caps.from_constraints(self.constraints, arithmetic)
        priced_orbits = _PricedOrbits(groups, rows, pairs, caps.level)
        numbers: Index = np.arange(groups.count, dtype=np.intp)
        if arithmetic.exact:
            # Floats decide most orbits; only the others are examined again in exact arithmetic.
            numbers = _PricedOrbits(
                groups, rows, pairs, Caps.from_constraints(self.constraints, FLOAT).level
            ).unsettled(numbers)
            require(
                len(numbers) <= COLUMNS_PER_BLOCK, f"floats do not settle {len(numbers)} orbits, which are too many"
            )
        kappa = 1.0
        for orbit_values, prices in priced_orbits.sides(numbers):
            kappa = max(kappa, dual_factor(orbit_values, prices))
            require(kappa < math.inf, "an orbit that may pay nothing may be worth something")
        rounding = arithmetic.of(priced_orbits.total / exact_sum(prior))
        total_price = arithmetic.of(exact_sum(rows)) + arithmetic.of(pairs).sum() * caps.eta
        return total_price * rounding * kappa


@dataclass(frozen=True, eq=False)
class _PricedOrbits:
    """Groups and multipliers, which price the orbits; level : t, which determines the arithmetic."""

    groups: Groups
    rows: Array
    pairs: Array
    level: Enclosure

    @property
    def total(self) -> Fraction:
        """The sum of the masses of the answers, rounded up to those of their groups."""
        return exact_sum(np.repeat(self.groups.values, self.groups.sizes))

    def sides(self, numbers: Index) -> Iterator[tuple[Enclosure, Enclosure]]:
        """Generate the values of orbits, and their prices, in blocks."""
        enclose, sizes = self.level.arithmetic.of, self.groups.sizes.astype(np.float64)
        masses = enclose(self.groups.values) * enclose(1 / self.total)
        base_price = self.level * enclose(exact_sum(self.rows))
        rows, pairs = enclose(self.rows) / sizes, enclose(self.pairs)
        pair_counts = np.outer(sizes, sizes) - np.diag(sizes)
        left, right = np.nonzero(self.pairs)
        prices = pairs[left, right] / pair_counts[left, right] if len(left) else None
        for start in range(0, len(numbers), COLUMNS_PER_BLOCK):
            member_counts = orbits(self.groups.sizes, numbers[start : start + COLUMNS_PER_BLOCK]).astype(np.float64)
            nonmember_counts = sizes[:, None] - member_counts
            values = information(masses @ enclose(member_counts), masses @ enclose(nonmember_counts), self.level)
            orbit_prices = rows @ enclose(member_counts) + base_price
            if prices is not None:
                orbit_prices = orbit_prices + prices @ enclose(member_counts[left] * nonmember_counts[right])
            yield values, orbit_prices

    def unsettled(self, numbers: Index) -> Index:
        """Find the orbits whose price may be below their value, or below zero."""
        is_decided = []
        for values, prices in self.sides(numbers):
            lower_prices = np.asarray(prices.lower)
            is_decided.append((np.asarray(values.upper) <= lower_prices) & (lower_prices >= 0))
        return numbers[~np.concatenate(is_decided)]
