"""The three parameters epsilon, delta and eta of a dominating pair, checked and made consistent with each other."""

from __future__ import annotations

import math
import sys
from typing import Any

from ldpopt.distribution import number, unit_interval
from ldpopt.errors import invalid
from ldpopt.rounding import ULP
from ldpopt.tolerances import MAXIMUM_EPSILON


def nonnegative_epsilon(epsilon: Any, what: str = "epsilon") -> float:
    """`epsilon` in nats as a float between 0 and `tolerances.MAXIMUM_EPSILON`."""
    expected = f"a number of nats between 0 and {MAXIMUM_EPSILON:g}"
    value = number(epsilon, what, expected)
    if not 0 <= value <= MAXIMUM_EPSILON:
        raise invalid(what, expected, value)
    return value


def point_at_least_zero(epsilon: Any) -> float:
    """The epsilon at which a curve is evaluated: any non-negative number of nats, or inf."""
    if isinstance(epsilon, (int, float)) and epsilon == math.inf:
        return math.inf
    value = number(epsilon, "epsilon", "a non-negative number of nats")
    if value < 0:
        raise invalid("epsilon", "a non-negative number of nats", value)
    return value


def largest_eta(epsilon: float, delta: float) -> float:
    """The total variation that (epsilon, delta)-DP implies: delta + (1 - delta) tanh(epsilon/2) [GI, Thm 2]."""
    return min(1.0, delta + (1 - delta) * math.tanh(epsilon / 2))


def kept_mass(epsilon: float, delta: float, eta: float | None) -> tuple[float, float]:
    """(delta, 1 - a) of the pair that dominates (epsilon, delta)-DP and eta-TV mechanisms [GI, Thm 2].

    a is the probability that the pair erases: 1 - a = (eta - delta)(1 + e^eps) / ((1 - delta)(e^eps - 1)), rounded up
    by a few units in its own last place, however small it is. An `eta` above the one that epsilon and delta imply
    limits nothing (1 - a = 1). An `eta` below `delta` lowers `delta` to itself.
    """
    if eta is None:
        return delta, 1.0 if epsilon > 0 else 0.0
    delta = min(delta, eta)
    if eta == delta or epsilon == 0 or delta == 1:
        return delta, 0.0
    implied = (1 - delta) * math.tanh(epsilon / 2)
    share = (eta - delta) / implied if implied > 0 else math.inf  # half of the smallest epsilon underflows
    return delta, min(1.0, max(share * (1 + 8 * ULP), sys.float_info.min))


def checked(epsilon: Any, delta: Any, eta: Any) -> tuple[float, float, float | None]:
    """The three parameters as floats; `eta` is None if it is not given."""
    return (
        nonnegative_epsilon(epsilon),
        unit_interval(delta, "delta"),
        None if eta is None else unit_interval(eta, "eta"),
    )
