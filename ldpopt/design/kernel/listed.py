"""Proofs that examine every extreme column of a list: staircase patterns, and the columns of a policy graph.

Primal, over weights theta_c >= 0 of the columns c, for criteria mu_j and caps r on the sums of some v[x,x'](c) >= 0:

    max  min_j sum_c theta_c mu_j(c)   s.t.  sum_c theta_c c = 1,  sum_c theta_c v[x,x'](c) <= r

Dual, for weights w >= 0 of the criteria that sum to one:

    min  sum lambda + r sum nu   s.t.  lambda.c + sum nu[x,x'] v[x,x'](c) >= sum_j w_j mu_j(c)

Everything is homogeneous. So multipliers that fall short of the constraints by a factor kappa prove kappa times their
bound. First, a linear utility l is subtracted, whose value is sum l on every channel: the tangent of sum_j w_j mu_j at
the constant column. No column then has a negative value. Any other l would only make the bound larger.

Completeness: the list must be complete for a cone, cut by the hyperplanes where a price has a kink.

A proof over a list requires that the price of every listed column covers its value. This holds for all columns of a
cone under one condition. Each column must be a sum of listed ones that together have no smaller value and no larger
price. The value is convex and homogeneous, so that a sum has at most the value of its parts. A price `nu (c_x - r
c_x')_+` is linear on either side of the hyperplane `c_x = r c_x'`. So the cone is cut by these hyperplanes, and a
column is divided into the extreme rays of its own piece. The list must hold every extreme ray of every piece. Rays that
lie on the cuts are among them: where the hyperplanes `c_x = c_x'` cut, the constant column is one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.design.constraints.base import Constraint, plain_caps, tanh_of_half
from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.kernel.numbers import pair_prices, real_array, require, weights_array
from ldpopt.design.utilities.base import ColumnUtility, gradients_of
from ldpopt.design.work import count_numbers
from ldpopt.numbers.enclosures import FLOAT, Arithmetic, Enclosure
from ldpopt.numbers.rounding import exact_sum
from ldpopt.values.distribution import Array, Index


@dataclass(frozen=True, eq=False)
class Caps:
    """The pure LDP and the total variation that constraints allow; other constraints only make the optimum smaller.

    - `level` : t = 1/(e^epsilon - 1). Columns divided by e^epsilon - 1 have entries in [t, t + 1], up to a factor.
    - `eta` : the cap on total variation, at most tanh(epsilon/2) [GI, Prop 2].
    """

    level: Enclosure
    eta: Enclosure

    @classmethod
    def from_constraints(cls, constraints: Sequence[Constraint], arithmetic: Arithmetic) -> Caps:
        """Compute the caps; raise `Unproved` without pure LDP between all inputs."""
        epsilon, eta = plain_caps(constraints)
        require(epsilon < math.inf, "no constraint asks for LocalDP between all inputs")
        exponent = arithmetic.of(epsilon)
        # e^-epsilon / (1 - e^-epsilon), which does not overflow.
        level = (-exponent).exp() / -(-exponent).expm1()
        return cls(level, tanh_of_half(exponent).minimum(eta))


@dataclass(frozen=True, eq=False)
class Mixed:
    """A mixture of the criteria of a column utility, and its tangent at the constant column.

    - `shares` : (criteria,) weights that sum to one.
    - `linear` : (k,) the tangent.
    - `tangent_sum` : the sum of the tangent, which is its value on every channel.
    """

    shares: Enclosure
    linear: Array
    tangent_sum: Enclosure

    @classmethod
    def from_weights(cls, utility: ColumnUtility, raw_weights: Any, arithmetic: Arithmetic) -> Mixed:
        """Mix the criteria by these weights.

        Raises `Unproved` unless the weights are non-negative and not all zero.
        """
        tangents = gradients_of(utility, np.ones((utility.size, 1)))[:, 0]
        weights = weights_array(raw_weights, (len(tangents),), "weights", "the criteria")
        shares = arithmetic.of(weights) * arithmetic.of(1 / exact_sum(weights))
        scaled_weights = weights / weights.max()
        linear = real_array(scaled_weights @ tangents / scaled_weights.sum(), (utility.size,), "tangents")
        return cls(shares, linear, arithmetic.of(exact_sum(linear)))


def dual_factor(values: Enclosure, prices: Enclosure) -> float:
    """Compute a kappa >= 1 such that surely values <= kappa prices, rounded up.

    - `values`, `prices` : the values of columns, and their prices at the multipliers. The factor is inf if there is
      none: a column of price zero must have no value, and no price may be negative.
    """
    return dual_factor_of_floats(np.asarray(values.upper), np.asarray(prices.lower))


def dual_factor_of_floats(value_bounds: Array, price_bounds: Array) -> float:
    """Compute the same factor from upper bounds on values and lower bounds on prices."""
    if not (price_bounds >= 0).all() or not (value_bounds < math.inf).all():
        return math.inf
    is_free = price_bounds == 0
    if not (value_bounds[is_free] <= 0).all():
        return math.inf
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        ratio = value_bounds / np.where(is_free, 1.0, price_bounds)
    return float(np.nextafter(max(1.0, np.where(is_free, 0.0, ratio).max(initial=0.0)), math.inf))


COLUMNS_PER_BLOCK = 4096  # Columns that are examined at once.


@dataclass(frozen=True, eq=False)
class Listed:
    """Columns base (n,) + rise (k, n) in any scale, and the prices (n,) that the multipliers of the caps add."""

    base: Enclosure
    rise: Enclosure
    charged: Enclosure | None = None


def finite_size(utility: ColumnUtility) -> int:
    """Return the number of inputs k; raise `Unproved` unless the utility sums columns."""
    require(not utility.continuous, f"{utility.name} is no sum over outputs of convex functions of a finite column")
    return utility.size


@dataclass(frozen=True, eq=False, repr=False)
class ListedDual(Certificate):
    """Multipliers of a program over listed columns, for any column utility.

    - `rows` : (k,) multipliers of the row sums.
    - `pairs` : (k, k) non-negative multipliers of the caps. Entry (x, x') is for columns larger at x than at x', and
      the diagonal is ignored.
    - `weights` : (criteria,) non-negative weights of the criteria, not all zero.

    Rows and pairs are for the utility less its tangent at the constant column.
    """

    proves = ColumnUtility
    rows: Array
    pairs: Array
    weights: Array

    @property
    def criteria(self) -> int:
        """The number of criteria, computed of each column."""
        return max(count_numbers(self.weights), count_numbers(self.utility) // max(self.answers, 1), 1)

    def _multipliers(self) -> tuple[Array, Array]:
        """Return the rows (k,) and the pairs (k, k), whose diagonal is zero."""
        k = finite_size(self.utility)
        return real_array(self.rows, (k,), "rows"), pair_prices(self.pairs, k, "pairs")

    def _total_price(
        self,
        columns: Iterable[Listed],
        cap: Enclosure | float,
        arithmetic: Arithmetic,
        extra_charge: Enclosure | float = 0.0,
    ) -> Enclosure:
        """Compute sum l + kappa (sum rows + cap sum pairs + extra charge).

        The multipliers fall short by the factor kappa.
        """
        rows, pairs = self._multipliers()
        mixture = Mixed.from_weights(self.utility, self.weights, arithmetic)
        charge = arithmetic.of(pairs).sum() * cap + extra_charge
        kappa = 1.0
        for block in columns:
            kappa = max(kappa, dual_factor(*self._sides(block, rows, mixture)))
            require(kappa < math.inf, "a column that may pay nothing may be worth something")
        return mixture.tangent_sum + (arithmetic.of(exact_sum(rows)) + charge) * kappa

    def _unsettled(self, columns: Iterable[Listed]) -> Index:
        """Find the columns that floats do not decide: their price may be below their value, or below 0."""
        rows, mixture = self._multipliers()[0], Mixed.from_weights(self.utility, self.weights, FLOAT)
        is_settled = []
        for block in columns:
            values, prices = self._sides(block, rows, mixture)
            lower_prices = np.asarray(prices.lower)
            is_settled.append((np.asarray(values.upper) <= lower_prices) & (lower_prices >= 0))
        return np.flatnonzero(~np.concatenate(is_settled)).astype(np.intp)

    def _sides(self, block: Listed, rows: Array, mixture: Mixed) -> tuple[Enclosure, Enclosure]:
        """Compute (n,) the values of the columns, less the tangent, and (n,) their prices."""
        arithmetic = block.base.arithmetic
        values = mixture.shares @ self.utility.enclosed_columns(block.base, block.rise)
        if mixture.linear.any():
            values = values - (block.base * mixture.tangent_sum + arithmetic.of(mixture.linear) @ block.rise)
        # The exact sum, because it is multiplied by every base: a total of zero stays zero.
        prices = block.base * arithmetic.of(exact_sum(rows)) + arithmetic.of(rows) @ block.rise
        return values, prices if block.charged is None else prices + block.charged


Comparison = tuple[int, int, int]
"""(x, x', w), for the entries of x and of x' and the ratio r = E^w."""


@dataclass(frozen=True)
class Arrangement:
    """The cone of the columns c >= 0 of k inputs with c_x <= E^w c_x', cut by the hyperplanes c_x = E^w c_x'.

    Parameters
    ----------
    size : The number k of inputs.
    limits : The inequalities (x, x', w) that define the cone. w is an integer, the ratio's logarithm in units of log E.
        E > 1 may be any ratio.
    cuts : The hyperplanes (x, x', w) that cut the cone.
    """

    size: int
    limits: tuple[Comparison, ...] = ()
    cuts: tuple[Comparison, ...] = ()

    @classmethod
    def uniform(
        cls, size: int, limit: int | None = None, cut: int | None = None, has_order_cuts: bool = False
    ) -> Arrangement:
        """Build the arrangement with the same limit, cut or both for every ordered pair of inputs.

        Parameters
        ----------
        size : The number k of inputs.
        limit, cut : The w of the limits and of the cuts; None for none.
        has_order_cuts : True if the hyperplanes c_x = c_x' also cut, as a cap on total variation needs.
        """
        pairs = tuple(itertools.permutations(range(size), 2))
        limits = () if limit is None else tuple((x, y, limit) for x, y in pairs)
        cuts = () if cut is None else tuple((x, y, cut) for x, y in pairs)
        return cls(size, limits, cuts + (in_order(size) if has_order_cuts else ()))


def in_order(size: int) -> tuple[Comparison, ...]:
    """Return the hyperplanes c_x = c_x', which cut a cone into the orders of the entries."""
    return tuple((x, y, 0) for x, y in itertools.combinations(range(size), 2))
