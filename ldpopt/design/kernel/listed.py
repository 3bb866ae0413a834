"""Proofs that look at every extreme column of a list: staircase patterns, and the columns of a policy graph.

Primal, over weights theta_c >= 0 of the columns c, for criteria mu_j and caps r on the sums of some v[x,x'](c) >= 0:

    max  min_j sum_c theta_c mu_j(c)   s.t.  sum_c theta_c c = 1,  sum_c theta_c v[x,x'](c) <= r

Dual, for weights w >= 0 of the criteria that sum to one:

    min  sum lambda + r sum nu   s.t.  lambda.c + sum nu[x,x'] v[x,x'](c) >= sum_j w_j mu_j(c)

Everything is homogeneous, so that multipliers which fall short of the constraints by a factor kappa prove kappa times
their bound. First, a linear utility l is subtracted, which is worth sum l on every channel: the tangent of
sum_j w_j mu_j at the constant column. No column is then worth less than nothing. Any other l would only make the bound
larger.

What a list of columns is complete for: a cone, cut by the hyperplanes on which a price has a kink.

A proof over a list asks of every listed column that its price covers its worth. This holds for all columns of a cone if
each is a sum of listed ones that together are worth no less and pay no more. The worth is convex and homogeneous, so
that a sum is worth no more than its parts. A price `nu (c_x - r c_x')_+` is linear on either side of the hyperplane
`c_x = r c_x'`. So the cone is cut by these hyperplanes, and a column is divided into the extreme rays of its own piece.
The list must hold every extreme ray of every piece. Rays that lie on the cuts are among them: where the hyperplanes
`c_x = c_x'` cut, the constant column is one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ldpopt.design.constraints.base import Constraint, plain_caps, tanh_of_half
from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.kernel.numbers import pair_prices, real_array, require, weights_array
from ldpopt.design.utilities.base import ColumnUtility, gradients_of
from ldpopt.design.work import count_numbers
from ldpopt.numbers.enclosures import FLOAT, Arithmetic, Enclosure
from ldpopt.numbers.rounding import exact_sum
from ldpopt.values.distribution import Array, Index

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, eq=False)
class Caps:
    """The pure LDP and the total variation that constraints allow; other constraints only make the optimum smaller.
    level : t = 1/(e^epsilon - 1): columns divided by e^epsilon - 1 have entries in [t, t + 1], up to a factor. eta :
    the cap on total variation, at most tanh(epsilon/2) [GI, Prop 2].
    """

    level: Enclosure
    eta: Enclosure

    @classmethod
    def of(cls, constraints: Sequence[Constraint], arithmetic: Arithmetic) -> Caps:
        """The caps. Raises `Unproved` without pure LDP between all inputs."""
        epsilon, eta = plain_caps(constraints)
        require(epsilon < math.inf, "no constraint asks for LocalDP between all inputs")
        exponent = arithmetic.of(epsilon)
        # e^-epsilon / (1 - e^-epsilon), which does not overflow.
        level = (-exponent).exp() / -(-exponent).expm1()
        return cls(level, tanh_of_half(exponent).minimum(eta))


@dataclass(frozen=True, eq=False)
class Mixed:
    """A mixture of the criteria of a column utility, and its tangent at the constant column. shares : (criteria,)
    weights that sum to one. linear : (k,) the tangent. kept : the sum of the tangent, which is its worth on every
    channel.
    """

    shares: Enclosure
    linear: Array
    kept: Enclosure

    @classmethod
    def of(cls, utility: ColumnUtility, given: Any, arithmetic: Arithmetic) -> Mixed:
        """The mixture by the `given` weights. Raises `Unproved` unless these are non-negative and not all zero."""
        tangents = gradients_of(utility, np.ones((utility.size, 1)))[:, 0]
        weights = weights_array(given, (len(tangents),), "weights", "the criteria")
        shares = arithmetic.of(weights) * arithmetic.of(1 / exact_sum(weights))
        scaled = weights / weights.max()
        linear = real_array(scaled @ tangents / scaled.sum(), (utility.size,), "tangents")
        return cls(shares, linear, arithmetic.of(exact_sum(linear)))


def factor(worth: Enclosure, paid: Enclosure) -> float:
    """The least kappa >= 1 with worth <= kappa paid surely, rounded up; inf where there is none. worth, paid : what
    columns are worth, and what they cost at the multipliers. A column that costs nothing must be worth nothing. If a
    column may cost less than nothing, no kappa is proved.
    """
    return shortfall(np.asarray(worth.upper), np.asarray(paid.lower))


def shortfall(most: Array, least: Array) -> float:
    """The same for floats: upper bounds on the worths, and lower bounds on the costs."""
    if not (least >= 0).all() or not (most < math.inf).all():
        return math.inf
    free = least == 0
    if not (most[free] <= 0).all():
        return math.inf
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        ratio = most / np.where(free, 1.0, least)
    return float(np.nextafter(max(1.0, np.where(free, 0.0, ratio).max(initial=0.0)), math.inf))


BLOCK = 4096  # Columns that are looked at together.


@dataclass(frozen=True, eq=False)
class Listed:
    """Columns base (n,) + rise (k, n) in any scale, and what the multipliers of the caps charge for them (n,)."""

    base: Enclosure
    rise: Enclosure
    charged: Enclosure | None = None


def finite_size(utility: ColumnUtility) -> int:
    """The number of inputs k; `Unproved` for a utility that is no sum over columns."""
    require(not utility.continuous, f"{utility.name} is no sum over outputs of convex functions of a finite column")
    return utility.size


@dataclass(frozen=True, eq=False, repr=False)
class ListedDual(Certificate):
    """Multipliers of a program over listed columns, for any column utility. rows : (k,) multipliers of the row sums.
    pairs : (k, k) non-negative multipliers of the caps; entry (x, x') is for columns larger at x than at x', and the
    diagonal is ignored. weights : (criteria,) non-negative, of the criteria, not all zero. Rows and pairs are for the
    utility less its tangent at the constant column.
    """

    proves = ColumnUtility
    rows: Array
    pairs: Array
    weights: Array

    @property
    def criteria(self) -> int:
        """How many functions of each column are computed."""
        return max(count_numbers(self.weights), count_numbers(self.utility) // max(self.answers, 1), 1)

    def _multipliers(self) -> tuple[Array, Array]:
        """The rows (k,) and the pairs (k, k), whose diagonal is zero."""
        k = finite_size(self.utility)
        return real_array(self.rows, (k,), "rows"), pair_prices(self.pairs, k, "pairs")

    def _paid(
        self, columns: Iterable[Listed], cap: Enclosure | float, arithmetic: Arithmetic, more: Enclosure | float = 0.0
    ) -> Enclosure:
        """sum l + kappa (sum rows + cap sum pairs + more), kappa the factor by which the multipliers fall short."""
        rows, pairs = self._multipliers()
        mixed = Mixed.of(self.utility, self.weights, arithmetic)
        charge = arithmetic.of(pairs).sum() * cap + more
        kappa = 1.0
        for some in columns:
            kappa = max(kappa, factor(*self._sides(some, rows, mixed)))
            require(kappa < math.inf, "a column that may pay nothing may be worth something")
        return mixed.kept + (arithmetic.of(exact_sum(rows)) + charge) * kappa

    def _unsettled(self, columns: Iterable[Listed]) -> Index:
        """Positions of the columns that floats do not settle: they may be worth more than they pay, or pay below 0."""
        rows, mixed = self._multipliers()[0], Mixed.of(self.utility, self.weights, FLOAT)
        found = []
        for some in columns:
            worth, paid = self._sides(some, rows, mixed)
            least = np.asarray(paid.lower)
            found.append((np.asarray(worth.upper) <= least) & (least >= 0))
        return np.flatnonzero(~np.concatenate(found)).astype(np.intp)

    def _sides(self, some: Listed, rows: Array, mixed: Mixed) -> tuple[Enclosure, Enclosure]:
        """(n,) the worth of the columns, less the tangent, and (n,) their prices."""
        of = some.base.arithmetic
        worth = mixed.shares @ self.utility.enclosed_columns(some.base, some.rise)
        if mixed.linear.any():
            worth = worth - (some.base * mixed.kept + of.of(mixed.linear) @ some.rise)
        # The exact sum, because it is multiplied by every base: a total of zero stays zero.
        paid = some.base * of.of(exact_sum(rows)) + of.of(rows) @ some.rise
        return worth, paid if some.charged is None else paid + some.charged


Comparison = tuple[int, int, int]
"""(x, x', w), for the entries of x and of x' and the ratio r = E^w."""


@dataclass(frozen=True)
class Arrangement:
    """The cone of the columns c >= 0 of k inputs with c_x <= E^w c_x', cut by the hyperplanes c_x = E^w c_x'.

    Parameters
    ----------
    size : int
        The number k of inputs.
    limits, cuts : tuple of (x, x', w)
        The inequalities that define the cone, and the hyperplanes that cut it. w is a whole number, the ratio's
        logarithm in units of log E. E > 1 may be any ratio.
    """

    count_numbers: int
    limits: tuple[Comparison, ...] = ()
    cuts: tuple[Comparison, ...] = ()

    @classmethod
    def of(cls, size: int, limit: int | None = None, cut: int | None = None, ordered: bool = False) -> Arrangement:
        """Return the arrangement with the same limit, cut or both for every ordered pair of inputs.

        Parameters
        ----------
        size : int
            The number k of inputs.
        limit, cut : int or None
            The w of the limits and of the cuts; None for none.
        ordered : bool
            Whether the hyperplanes c_x = c_x' cut, too, as a cap on total variation needs.

        Returns
        -------
        Arrangement
        """
        every = tuple(itertools.permutations(range(size), 2))
        limits = () if limit is None else tuple((x, y, limit) for x, y in every)
        cuts = () if cut is None else tuple((x, y, cut) for x, y in every)
        return cls(size, limits, cuts + (in_order(size) if ordered else ()))


def in_order(size: int) -> tuple[Comparison, ...]:
    """Return the hyperplanes c_x = c_x', which cut a cone into the orders of the entries."""
    return tuple((x, y, 0) for x, y in itertools.combinations(range(size), 2))
