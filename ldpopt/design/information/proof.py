"""Multipliers for mutual information: a few inputs are taken whole, the rest as if it could be divided at will.

On a staircase pattern S_A = t + 1_A, t = 1/(e^epsilon - 1), the information is a concave function of the mass a = P(A)
alone [KOV14, section 4]:

    h(a) = a e(1 - a) + (1 - a) e(-a),    e(d) = (m + d) log((m + d)/m) - d,    m = t + a,

and its tangent at b is e_b(-b) (1 - a) + e_b(1 - b) a, with m = t + b. Here a pattern is a set I of the inputs taken
whole, and a share rho of the rest, which has the mass R. Multipliers lambda of the rows and nu, n >= 0 of the pairs,
with the rest as one input, prove the bound  sum lambda + eta (sum nu + n (1 - sum_{x in rest} (P_x/R)^2))  if

    h(P(I) + R rho) - n rho (1 - rho) <= t sum lambda + lambda(I) + lambda_R rho + cut_nu(I, rho)    for all I and rho,

since the rest's multipliers are spread over it in proportion to the prior: nu_R P_x/R between an input and one of the
rest, n P_x P_x'/R^2 between two of the rest. Every set of inputs is one of these patterns. For each I there is a line
above the left side; the right side is linear in rho, so that it is enough to compare them at rho = 0 and rho = 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.kernel.listed import Caps, factor
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

MAX_WHOLE = 20  # The most inputs that are taken whole: all sets of them are looked at.
BLOCK = 4096  # Sets that are looked at together.
MAX_PATTERNS = 2**19  # The most patterns that are looked at one by one, where all inputs of the rest are alike.


@dataclass(frozen=True, eq=False, repr=False)
class InformationDual(Certificate):
    """Multipliers for mutual information, checked on all patterns without listing them [KOV14, Thm 4].

    Some inputs are taken whole: every set of them is looked at. The rest is treated as if it could be divided.

    whole : positions of the n inputs taken whole, at most 20. rows : (n + 1,) their multipliers and, last, the sum of
    the multipliers of the rest. pairs : (n + 1, n + 1) non-negative multipliers of the cap on total variation, with the
    rest last; entry (x, x') is for patterns with x and without x'. The last entry of the diagonal is for pairs within
    the rest; the other diagonal entries are ignored. With no input taken whole, rows [c] and pairs [[n]] serve every
    prior; with all inputs taken whole it proves all that `PatternDual` proves.
    """

    proves = MutualInformation
    whole: Index
    rows: Array
    pairs: Array
    argument = "multipliers that pay for every set of some inputs with every share of the others"

    def work(self) -> Work:
        """Every set of the inputs taken whole, with a line, or with every number of equal inputs of the rest."""
        n, k = count_numbers(self.whole), self.answers
        each = 400.0 + 6 * n + 60.0 * min(k, MAX_PATTERNS // min(BLOCK, 2 ** min(n, MAX_WHOLE)))
        return Work.on(k, 100.0) + Work.on(2.0 ** min(n, MAX_WHOLE), each, MAX_PATTERNS + BLOCK * n)

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """(sum rows + eta sum pairs) times the factor by which the multipliers fall short."""
        prior = np.asarray(self.utility.prior)
        whole = positions(self.whole, -1, len(prior), "the inputs taken whole")
        n = len(whole)
        require(len(np.unique(whole)) == n, "an input is taken whole twice")
        require(not n > MAX_WHOLE, f"{n} inputs have too many sets to look at all of them")
        caps = Caps.of(self.constraints, arithmetic)
        rows = real_array(self.rows, (n + 1,), "rows")
        given = nonnegative_array(self.pairs, (n + 1, n + 1), "pairs")
        within = float(given[n, n])
        given = given * ~np.eye(n + 1, dtype=bool)
        rest = np.delete(np.arange(len(prior)), whole)
        if not len(rest) and (rows[n] != 0 or within > 0 or given[n].any() or given[:, n].any()):
            raise Unproved("there are multipliers for a rest that is empty")
        masses = _Masses.of(prior, whole, rest, arithmetic)
        # The exact sum, because it is multiplied by t: a total of zero stays zero.
        total = arithmetic.of(exact_sum(rows))
        free = caps.level * total
        kappa = 1.0
        for start in range(0, 2**n, BLOCK):
            sets = members(np.arange(start, min(start + BLOCK, 2**n), dtype=np.int64), n).astype(np.float64)
            paid = free + sets @ arithmetic.of(rows[:n])
            none, all_of_it = paid, paid + rows[n]
            if given.any():
                cut = ((sets @ arithmetic.of(given[:n, :n])) * (1 - sets)).sum(axis=1) if n else arithmetic.zeros(1)
                none = none + cut + sets @ arithmetic.of(given[:n, n])
                all_of_it = all_of_it + cut + (1 - sets) @ arithmetic.of(given[n, :n])
            own, away = arithmetic.of(sets) @ masses.whole, arithmetic.of(1 - sets) @ masses.whole
            if masses.equal > 0 and len(sets) * (masses.equal + 1) <= MAX_PATTERNS:
                ends = _points(masses, own, away, caps.level, none, all_of_it, within)
            else:
                line = _line(masses, own, away, caps.level, none, all_of_it, within)
                ends = [(line[0], none), (line[1], all_of_it)]
            for worth, price in ends:
                kappa = max(kappa, factor(worth, price))
            require(kappa < math.inf, "a pattern that may pay nothing may be worth something")
        charged = arithmetic.of(given).sum() + masses.spread * within
        return (total + caps.eta * charged) * kappa


@dataclass(frozen=True, eq=False)
class _Masses:
    """The probabilities of the inputs taken whole, that of the rest (R), and `spread`, 1 - sum (P_x/R)^2 over the rest.
    equal : the number of inputs of the rest that occur, where these all have the same probability; else 0.
    """

    whole: Enclosure
    rest: Enclosure
    spread: Enclosure
    equal: int

    @classmethod
    def of(cls, prior: Array, whole: Index, rest: Index, arithmetic: Arithmetic) -> _Masses:
        p, mass = law(prior, arithmetic), exact_sum(prior[rest])
        spread = arithmetic.of(1.0)
        if mass > 0:
            share = law(prior[rest], arithmetic)
            spread = (1 - share.square().sum()).positive()
        occur = prior[rest][prior[rest] > 0]  # the others add nothing to a pattern, and pay nothing
        equal = len(occur) if len(occur) and bool((occur == occur[0]).all()) else 0
        return cls(p[whole], arithmetic.of(mass / exact_sum(prior)), spread, equal)


def _points(
    masses: _Masses, own: Enclosure, away: Enclosure, level: Enclosure, none: Enclosure, all_of_it: Enclosure,
    within: float,
) -> list[tuple[Enclosure, Enclosure]]:  # fmt: skip
    """The worth and the price of patterns with 0, 1, ... inputs of the rest, which all have the same probability."""
    rho = (own.arithmetic.of(np.arange(masses.equal + 1)) / masses.equal)[None, :]
    mass, lacks = own[:, None] + masses.rest * rho, away[:, None] + masses.rest * (1 - rho)
    rise = (all_of_it - none)[:, None]
    return [(information(mass, lacks, level), none[:, None] + rise * rho + within * (rho * (1 - rho)))]


def information(mass: Enclosure, away: Enclosure, level: Enclosure) -> Enclosure:
    """h at a `mass`; away : 1 - mass."""
    mean = level + mass
    return mass * enclosed_excess(KL, away, mean) + away * enclosed_excess(KL, -mass, mean)


def _line(
    masses: _Masses, own: Enclosure, away: Enclosure, level: Enclosure, none: Enclosure, all_of_it: Enclosure,
    within: float,
) -> tuple[Enclosure, Enclosure]:  # fmt: skip
    """The values at 0 and at 1 of a line above the function h(own + R rho) - within rho (1 - rho) on [0, 1]. Where the
    function is concave from 0 to the touching point and convex from some later point on, the line is the tangent,
    raised at 1 if necessary: from the later point on, the function lies below its chord. Where it is convex from 0 on,
    the line is the chord. Elsewhere the line is the tangent of h, which is concave and above the function. So the line
    is above the function whatever the touching point is.
    """
    of = own.arithmetic
    slope = np.asarray((all_of_it - none).midpoint)
    # The touching point need not be trusted: the line is above the function for any.
    share = best_share(np.asarray(own.midpoint), float(masses.rest.midpoint), float(level.midpoint), within, slope)
    rho = of.of(share)
    taken, left = own + masses.rest * rho, away + masses.rest * (1 - rho)
    mean = level + taken
    # e_b(-b) and e_b(1 - b), the tangent of h at a = 0 and at a = 1.
    low, high = enclosed_excess(KL, -taken, mean), enclosed_excess(KL, left, mean)
    first = low * (away + masses.rest) + high * own
    last = low * away + high * (own + masses.rest)
    if not within > 0:
        return first, last
    tops = information(own, away + masses.rest, level), information(own + masses.rest, away, level)
    # h'' = -1/(t + a): the function has the second derivative 2 within - R^2/(t + a).
    square = masses.rest.square()
    concave = np.asarray((2 * within * mean).upper) <= float(square.lower)
    convex = np.asarray((2 * within * (level + own)).lower) >= float(square.upper)
    touching = first - rho.square() * within, (last - (1 - rho).square() * within).maximum(tops[1])
    return (
        of.where(concave, touching[0], of.where(convex, tops[0], first)),
        of.where(concave, touching[1], of.where(convex, tops[1], last)),
    )
