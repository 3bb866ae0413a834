"""A bound on the gain of every staircase pattern, for alphabets whose patterns cannot be priced one by one [Shor].

Let lambda and nu be as in `charges`, t = 1/(E - 1) and E = exp(epsilon). Take a pattern t + a, for the indicator a of a
set whose mass m = t + p.a lies in [low, high]. Its gain is not positive when

    N(a) = m (t sum lambda + lambda.a) + low sum nu[x,x'] a_x (1 - a_x') - a^T G a >= 0,

which is quadratic in a. Add d_x (a_x^2 - a_x) = 0, and subtract span (m - low) (high - m) >= 0. The result is at least
its lowest eigenvalue times |z|^2, z = (a_x (t + p_x), t), and |z|^2 <= (k + 1) m^2, since m >= t, and m >= t + p_x on
the set. The masses, from t to t E, are cut into classes, each with its own d and span; without nu one class is enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ldpopt.design.certificates.numbers import Unproved, real_array
from ldpopt.design.columns.charges import Charges
from ldpopt.design.columns.definite import least_eigenvalue
from ldpopt.distribution import Array
from ldpopt.enclosures import Enclosure
from ldpopt.results import ByValue

CLASSES = 6
"""The number of classes of masses where total variation is capped."""


@dataclass(frozen=True, eq=False)
class Relaxation(ByValue):
    """squares : d (classes, k). spans : (classes,), none below zero. Any such numbers give a valid bound."""

    squares: Array
    spans: Array

    words: ClassVar[str] = "Shor's relaxation of"

    def most(self, charges: Charges, epsilon: Enclosure) -> float:
        """An upper bound on the gains of all patterns; inf where the numbers prove none. epsilon : in nats."""
        spans, k = finite(self.spans, (-1,)), len(charges.rows)
        classes = 0 if spans is None else len(spans)
        squares = finite(self.squares, (classes, k))
        if spans is None or squares is None or not 1 <= classes <= CLASSES or not (spans >= 0).all():
            return math.inf
        level = 1 / epsilon.expm1()
        ends = [level * (epsilon * at / classes).exp() for at in range(classes + 1)]
        least = min(
            least_eigenvalue(_scaled(charges, level, squares[at], float(spans[at]), ends[at], ends[at + 1]))
            for at in range(classes)
        )
        return most_of_form(least, k + 1)


def finite(values: Any, shape: tuple[int, ...]) -> Array | None:
    """Finite float64 of exactly this shape, in which -1 stands for any length; None for anything else."""
    try:
        return real_array(values, shape, "the numbers of a relaxation")
    except Unproved:
        return None


def most_of_form(least: float, size: int) -> float:
    """The largest gain -z^T N z with |z|^2 <= `size`, from the least eigenvalue of N; at least 0."""
    return 0.0 if least >= 0 else float(-least * size * (1 + 2.0**-50))


def _scaled(charges: Charges, level: Enclosure, d: Array, span: float, low: Enclosure, high: Enclosure) -> Enclosure:
    """N with both changes, as a symmetric form (k + 1, k + 1) in z."""
    p, arithmetic = charges.prior, charges.arithmetic
    rows, pairs = arithmetic.of(charges.rows), arithmetic.of(charges.pairs)
    total = level * charges.total
    paid = p[:, None] * rows[None, :]
    both = pairs + pairs.T
    top = (paid + paid.T) / 2 - charges.kernel.T @ charges.kernel - both * low / 2
    # (m - low)(high - m) with m = level + p.a
    top = top + np.diag(d) + (p[:, None] * p[None, :]) * span
    edge = (p * total + rows * level + pairs.sum(axis=1) * low - d + p * (level * 2 - low - high) * span) / 2
    corner = level * total - (level - low) * (high - level) * span
    first = arithmetic.concatenate([top, edge[:, None]], 1)
    last = arithmetic.concatenate([edge[None, :], corner.reshape(1, 1)], 1)
    unit = 1 / arithmetic.concatenate([p + level, level.reshape(1)])
    return arithmetic.concatenate([first, last]) * unit[:, None] * unit[None, :]
