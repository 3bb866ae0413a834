"""The common part of proofs under epsilon-LDP and total variation: the caps, and how far multipliers fall short."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.design.certificates.base import Unproved
from ldpopt.design.certificates.numbers import nonnegative_array, real_array
from ldpopt.design.constraints.base import Constraint, plain_caps, tanh_of_half
from ldpopt.design.utilities.base import ColumnUtility, gradients_of
from ldpopt.distribution import Array
from ldpopt.enclosures import Arithmetic, Enclosure
from ldpopt.rounding import exact_sum


@dataclass(frozen=True, eq=False)
class Caps:
    """The pure LDP and the total variation that constraints allow; other constraints only make the optimum smaller.

    level : t = 1/(e^epsilon - 1): columns divided by e^epsilon - 1 have entries in [t, t + 1], up to a factor.
    eta : the cap on total variation, at most tanh(epsilon/2) [GI, Prop 2].
    """

    level: Enclosure
    eta: Enclosure

    @classmethod
    def of(cls, constraints: Sequence[Constraint], arithmetic: Arithmetic) -> Caps:
        """The caps. Raises `Unproved` without pure LDP between all inputs."""
        epsilon, eta = plain_caps(constraints)
        if not epsilon < math.inf:
            raise Unproved("no constraint asks for LocalDP between all inputs")
        exponent = arithmetic.of(epsilon)
        # e^-epsilon / (1 - e^-epsilon), which does not overflow.
        level = (-exponent).exp() / -(-exponent).expm1()
        return cls(level, tanh_of_half(exponent).minimum(eta))


@dataclass(frozen=True, eq=False)
class Mixed:
    """A mixture of the criteria of a column utility, and its tangent at the constant column.

    shares : (criteria,) weights that sum to one. linear : (k,) the tangent. kept : the sum of the tangent, which is its
    worth on every channel.
    """

    shares: Enclosure
    linear: Array
    kept: Enclosure

    @classmethod
    def of(cls, utility: ColumnUtility, given: Any, arithmetic: Arithmetic) -> Mixed:
        """The mixture by the `given` weights. Raises `Unproved` unless these are non-negative and not all zero."""
        tangents = gradients_of(utility, np.ones((utility.size, 1)))[:, 0]
        weights = nonnegative_array(given, (len(tangents),), "weights")
        if not (weights > 0).any():
            raise Unproved("the weights of the criteria are all zero")
        shares = arithmetic.of(weights) * arithmetic.of(1 / exact_sum(weights))
        scaled = weights / weights.max()
        linear = real_array(scaled @ tangents / scaled.sum(), (utility.size,), "tangents")
        return cls(shares, linear, arithmetic.of(exact_sum(linear)))


def factor(worth: Enclosure, paid: Enclosure) -> float:
    """The least kappa >= 1 with worth <= kappa paid surely, rounded up; inf where there is none.

    worth, paid : what columns are worth, and what they cost at the multipliers. A column that costs nothing must be
    worth nothing. If a column may cost less than nothing, no kappa is proved.
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
