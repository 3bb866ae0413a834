"""What the proofs for epsilon-LDP with a cap on total variation share: the caps, and how far multipliers fall short."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ldpopt.design.certificates.base import Unproved
from ldpopt.design.constraints.base import Constraint, plain_caps, tanh_of_half
from ldpopt.distribution import Array
from ldpopt.enclosures import Arithmetic, Enclosure


@dataclass(frozen=True, eq=False)
class Caps:
    """The pure LDP and the total variation that some constraints allow; further ones only make the optimum smaller.

    level : t = 1/(e^epsilon - 1): columns divided by e^epsilon - 1 have entries in [t, t + 1], up to a factor.
    eta : the cap on total variation, at most tanh(epsilon/2) [GI, Prop 2].
    """

    level: Enclosure
    eta: Enclosure

    @classmethod
    def of(cls, constraints: Sequence[Constraint], arithmetic: Arithmetic) -> Caps:
        """The caps; `Unproved` without pure LDP between all inputs."""
        epsilon, eta = plain_caps(constraints)
        if not epsilon < math.inf:
            raise Unproved("no constraint asks for LocalDP between all inputs")
        exponent = arithmetic.of(epsilon)
        # e^-epsilon / (1 - e^-epsilon), which does not overflow.
        level = (-exponent).exp() / -(-exponent).expm1()
        return cls(level, tanh_of_half(exponent).minimum(eta))


def factor(worth: Enclosure, paid: Enclosure) -> float:
    """The least kappa >= 1 with worth <= kappa paid surely, rounded up; inf where there is none.

    A column that pays nothing may be worth nothing; one that may pay less than nothing proves nothing.
    """
    return shortfall(np.asarray(worth.upper), np.asarray(paid.lower))


def shortfall(most: Array, least: Array) -> float:
    """The same for floats not below what is worth, and not above what is paid."""
    if not (least >= 0).all() or not (most < math.inf).all():
        return math.inf
    free = least == 0
    if not (most[free] <= 0).all():
        return math.inf
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        ratio = most / np.where(free, 1.0, least)
    return float(np.nextafter(max(1.0, np.where(free, 0.0, ratio).max(initial=0.0)), math.inf))
