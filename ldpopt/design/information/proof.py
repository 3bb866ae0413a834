"""Multipliers for mutual information: a few inputs are indivisible, the rest is treated as divisible.

On a staircase pattern S_A = t + 1_A, t = 1/(e^epsilon - 1), the information is a concave function of the mass a = P(A)
alone [KOV14, section 4]:

    h(a) = a e(1 - a) + (1 - a) e(-a),    e(d) = (m + d) log((m + d)/m) - d,    m = t + a,

and its tangent at b is e_b(-b) (1 - a) + e_b(1 - b) a, with m = t + b. Here a pattern is a set I of the indivisible
inputs, and a fraction rho of the rest, which has the mass R. Let lambda be multipliers of the rows and nu, n >= 0 of
the pairs, with the rest as one input. They prove the bound

    sum lambda + eta (sum nu + n (1 - sum_{x in rest} (P_x/R)^2))

if

    h(P(I) + R rho) - n rho (1 - rho) <= t sum lambda + lambda(I) + lambda_R rho + cut_nu(I, rho)    for all I and rho,

since the rest's multipliers are spread over it in proportion to the prior. They are nu_R P_x/R between an input and one
of the rest, and n P_x P_x'/R^2 between two of the rest. Every set of inputs is one of these patterns. For each I there
is a line above the left side, and the right side is linear in rho. So it is enough to compare them at rho = 0 and rho =
1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.kernel.listed import Caps, dual_factor
from ldpopt.design.kernel.numbers import Unproved, nonnegative_array, positions, real_array, require
from ldpopt.design.kernel.sets import best_share, members
from ldpopt.design.utilities.column import MutualInformation
from ldpopt.design.utilities.laws import law
from ldpopt.design.work import Work, count_numbers
from ldpopt.divergences import KL
from ldpopt.divergences.enclosed import enclosed_excess
from ldpopt.numbers.enclosures import Arithmetic, Enclosure
from ldpopt.numbers.rounding import exact_sum
from ldpopt.values.distribution import Array, Index

MAX_INDIVISIBLE_INPUTS = 20  # All sets of them are examined.
SETS_PER_BLOCK = 4096  # Sets that are examined at once.
MAX_PATTERNS = 2**19  # Patterns that are examined one by one, where the rest has equal inputs.


@dataclass(frozen=True, eq=False, repr=False)
class InformationDual(Certificate):
    """Multipliers for mutual information, checked on all patterns without listing them [KOV14, Thm 4].

    Some inputs are indivisible: every set of them is examined. The rest is treated as divisible.

    - `whole` : positions of the n indivisible inputs, at most 20.
    - `rows` : (n + 1,) their multipliers and, last, the sum of the multipliers of the rest.
    - `pairs` : (n + 1, n + 1) non-negative multipliers of the cap on total variation, with the rest last. Entry (x, x')
      is for patterns with x and without x'. The last entry of the diagonal is for pairs within the rest; the other
      diagonal entries are ignored.

    With no indivisible input, rows [c] and pairs [[n]] apply to every prior. With all inputs indivisible it proves all
    that `PatternDual` proves.
    """

    proves = MutualInformation
    whole: Index
    rows: Array
    pairs: Array
    argument = "multipliers that pay for every set of some inputs with every share of the others"

    def work(self) -> Work:
        """Bound the work on every set of the indivisible inputs.

        Each has a line, or every number of equal inputs of the rest.
        """
        n, k = count_numbers(self.whole), self.answers
        work_per_set = (
            400.0 + 6 * n + 60.0 * min(k, MAX_PATTERNS // min(SETS_PER_BLOCK, 2 ** min(n, MAX_INDIVISIBLE_INPUTS)))
        )
        return Work.on(k, 100.0) + Work.on(
            2.0 ** min(n, MAX_INDIVISIBLE_INPUTS), work_per_set, MAX_PATTERNS + SETS_PER_BLOCK * n
        )

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """Compute (sum rows + eta sum pairs) times the factor of the multipliers' shortfall."""
        prior = np.asarray(self.utility.prior)
        indivisible_inputs = positions(self.whole, -1, len(prior), "the inputs taken whole")
        n = len(indivisible_inputs)
        require(len(np.unique(indivisible_inputs)) == n, "an input is taken whole twice")
        require(not n > MAX_INDIVISIBLE_INPUTS, f"{n} inputs have too many sets to look at all of them")
        caps = Caps.from_constraints(self.constraints, arithmetic)
        rows = real_array(self.rows, (n + 1,), "rows")
        pair_multipliers = nonnegative_array(self.pairs, (n + 1, n + 1), "pairs")
        rest_multiplier = float(pair_multipliers[n, n])
        pair_multipliers = pair_multipliers * ~np.eye(n + 1, dtype=bool)
        divisible_inputs = np.delete(np.arange(len(prior)), indivisible_inputs)
        if not len(divisible_inputs) and (
            rows[n] != 0 or rest_multiplier > 0 or pair_multipliers[n].any() or pair_multipliers[:, n].any()
        ):
            raise Unproved("there are multipliers for a rest that is empty")
        masses = _Masses.from_prior(prior, indivisible_inputs, divisible_inputs, arithmetic)
        # The exact sum, because it is multiplied by t: a total of zero stays zero.
        total = arithmetic.of(exact_sum(rows))
        base_price = caps.level * total
        kappa = 1.0
        for start in range(0, 2**n, SETS_PER_BLOCK):
            sets = members(np.arange(start, min(start + SETS_PER_BLOCK, 2**n), dtype=np.int64), n).astype(np.float64)
            prices = base_price + sets @ arithmetic.of(rows[:n])
            price_at_zero, price_at_one = prices, prices + rows[n]
            if pair_multipliers.any():
                cut_prices = (
                    ((sets @ arithmetic.of(pair_multipliers[:n, :n])) * (1 - sets)).sum(axis=1)
                    if n
                    else arithmetic.zeros(1)
                )
                price_at_zero = price_at_zero + cut_prices + sets @ arithmetic.of(pair_multipliers[:n, n])
                price_at_one = price_at_one + cut_prices + (1 - sets) @ arithmetic.of(pair_multipliers[n, :n])
            mass, complement = arithmetic.of(sets) @ masses.indivisible, arithmetic.of(1 - sets) @ masses.indivisible
            if masses.equal > 0 and len(sets) * (masses.equal + 1) <= MAX_PATTERNS:
                values_and_prices = _pattern_points(
                    masses, mass, complement, caps.level, price_at_zero, price_at_one, rest_multiplier
                )
            else:
                line_ends = _line_above(
                    masses, mass, complement, caps.level, price_at_zero, price_at_one, rest_multiplier
                )
                values_and_prices = [(line_ends[0], price_at_zero), (line_ends[1], price_at_one)]
            for value, price in values_and_prices:
                kappa = max(kappa, dual_factor(value, price))
            require(kappa < math.inf, "a pattern that may pay nothing may be worth something")
        pair_charge = arithmetic.of(pair_multipliers).sum() + masses.spread * rest_multiplier
        return (total + caps.eta * pair_charge) * kappa


@dataclass(frozen=True, eq=False)
class _Masses:
    """The probabilities of the indivisible inputs, that of the rest (R), and `spread`, 1 - sum (P_x/R)^2 over the rest.

    equal : the number of inputs of the rest that occur, where these all have the same probability; else 0.
    """

    indivisible: Enclosure
    rest: Enclosure
    spread: Enclosure
    equal: int

    @classmethod
    def from_prior(cls, prior: Array, indivisible: Index, rest: Index, arithmetic: Arithmetic) -> _Masses:
        p, mass = law(prior, arithmetic), exact_sum(prior[rest])
        spread = arithmetic.of(1.0)
        if mass > 0:
            rest_distribution = law(prior[rest], arithmetic)
            spread = (1 - rest_distribution.square().sum()).positive()
        occurring = prior[rest][prior[rest] > 0]  # The others add no value and no price.
        equal = len(occurring) if len(occurring) and bool((occurring == occurring[0]).all()) else 0
        return cls(p[indivisible], arithmetic.of(mass / exact_sum(prior)), spread, equal)


def _pattern_points(
    masses: _Masses,
    mass_of_set: Enclosure,
    complement: Enclosure,
    level: Enclosure,
    price_at_zero: Enclosure,
    price_at_one: Enclosure,
    rest_multiplier: float,
) -> list[tuple[Enclosure, Enclosure]]:
    """Compute values and prices of patterns with 0, 1, ... inputs of the rest.

    The inputs of the rest all have the same probability.
    """
    rho = (mass_of_set.arithmetic.of(np.arange(masses.equal + 1)) / masses.equal)[None, :]
    mass, complement_mass = mass_of_set[:, None] + masses.rest * rho, complement[:, None] + masses.rest * (1 - rho)
    price_rise = (price_at_one - price_at_zero)[:, None]
    return [
        (
            information(mass, complement_mass, level),
            price_at_zero[:, None] + price_rise * rho + rest_multiplier * (rho * (1 - rho)),
        )
    ]


def information(mass: Enclosure, complement: Enclosure, level: Enclosure) -> Enclosure:
    """Enclose h at a `mass`; complement : 1 - mass."""
    mean = level + mass
    return mass * enclosed_excess(KL, complement, mean) + complement * enclosed_excess(KL, -mass, mean)


def _line_above(
    masses: _Masses,
    mass: Enclosure,
    complement: Enclosure,
    level: Enclosure,
    price_at_zero: Enclosure,
    price_at_one: Enclosure,
    rest_multiplier: float,
) -> tuple[Enclosure, Enclosure]:
    """Compute the values at 0 and at 1 of a line above a function on [0, 1].

    The function is h(mass + R rho) - n rho (1 - rho), n the multiplier of the rest. First case: the function is concave
    from 0 to the touching point and convex from some later point on. Then the line is the tangent, raised at 1 if
    necessary, because from the later point on the function lies below its chord. Second case: it is convex from 0 on,
    and the line is the chord. Elsewhere the line is the tangent of h, which is concave and above the function. So the
    line is above the function for any touching point.
    """
    arithmetic = mass.arithmetic
    slope = np.asarray((price_at_one - price_at_zero).midpoint)
    # The touching point need not be trusted: the line is above the function for any.
    touching_share = best_share(
        np.asarray(mass.midpoint), float(masses.rest.midpoint), float(level.midpoint), rest_multiplier, slope
    )
    rho = arithmetic.of(touching_share)
    touching_mass, touching_complement = mass + masses.rest * rho, complement + masses.rest * (1 - rho)
    mean = level + touching_mass
    # e_b(-b) and e_b(1 - b), the tangent of h at a = 0 and at a = 1.
    excess_at_zero, excess_at_one = (
        enclosed_excess(KL, -touching_mass, mean),
        enclosed_excess(KL, touching_complement, mean),
    )
    tangent_at_zero = excess_at_zero * (complement + masses.rest) + excess_at_one * mass
    tangent_at_one = excess_at_zero * complement + excess_at_one * (mass + masses.rest)
    if not rest_multiplier > 0:
        return tangent_at_zero, tangent_at_one
    function_ends = (
        information(mass, complement + masses.rest, level),
        information(mass + masses.rest, complement, level),
    )
    # h'' = -1/(t + a): the function has the second derivative 2 within - R^2/(t + a).
    squared_rest = masses.rest.square()
    is_concave = np.asarray((2 * rest_multiplier * mean).upper) <= float(squared_rest.lower)
    is_convex = np.asarray((2 * rest_multiplier * (level + mass)).lower) >= float(squared_rest.upper)
    function_tangent = (
        tangent_at_zero - rho.square() * rest_multiplier,
        (tangent_at_one - (1 - rho).square() * rest_multiplier).maximum(function_ends[1]),
    )
    return (
        arithmetic.where(
            is_concave, function_tangent[0], arithmetic.where(is_convex, function_ends[0], tangent_at_zero)
        ),
        arithmetic.where(
            is_concave, function_tangent[1], arithmetic.where(is_convex, function_ends[1], tangent_at_one)
        ),
    )
