"""Logarithms of likelihood ratios: rays of the plane of two marginals at given ones, and the range of the inputs'."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ldpopt.design.utilities.laws import Laws
from ldpopt.distribution import Array
from ldpopt.enclosures import Arithmetic, Enclosure


@dataclass(frozen=True, eq=False)
class LogRatioRays:
    """Rays (a, b) at log-ratios log(a/b): on_p0 = a/(a + b), on_p1 = b/(a + b) and their difference `lean`.

    All three are kept, because each has digits that the others lose.
    """

    on_p0: Enclosure
    on_p1: Enclosure
    lean: Enclosure

    @classmethod
    def at(cls, log: Array, arithmetic: Arithmetic) -> LogRatioRays:
        """The rays at exact logarithms, which may be infinite."""
        endless = np.isinf(log)
        size = -arithmetic.of(np.where(endless, 0.0, np.abs(log)))
        less = arithmetic.where(endless, 0.0, size.exp())
        small = arithmetic.where(endless, 0.0, less / (1 + less))
        large = arithmetic.where(endless, 1.0, 1 / (1 + less))
        lean = arithmetic.where(endless, 1.0, -size.expm1() / (1 + less))
        above = log >= 0
        return cls(
            arithmetic.where(above, large, small), arithmetic.where(above, small, large),
            arithmetic.where(above, lean, -lean),
        )  # fmt: skip


def log_ratios(laws: Laws) -> tuple[float, float]:
    """The least and the largest log(P0/P1) of the inputs that occur, rounded outward."""
    of = laws.p0.arithmetic
    none0, none1 = np.asarray(laws.p0.upper) == 0, np.asarray(laws.p1.upper) == 0
    both = ~none0 & ~none1
    p0, p1 = of.where(both, laws.p0, 1.0), of.where(both, laws.p1, 1.0)
    apart = of.where(both, laws.apart, 0.0)
    near = np.abs(np.asarray(apart.midpoint)) <= np.asarray(p1.lower) / 2
    log = of.where(near, (of.where(near, apart, 0.0) / p1).log1p(), p0.log() - p1.log())
    lower = np.where(both, log.lower, np.where(none1, np.inf, -np.inf))[~(none0 & none1)]
    upper = np.where(both, log.upper, np.where(none1, np.inf, -np.inf))[~(none0 & none1)]
    return float(lower.min()), float(upper.max())
