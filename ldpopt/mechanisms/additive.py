"""Checks that all additive mechanisms share: those that release an answer plus noise."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldpopt.distribution import Array, number
from ldpopt.errors import invalid


def positive(value: Any, what: str) -> float:
    """`value` as a positive finite float."""
    made = number(value, what, "a positive finite number")
    if made <= 0:
        raise invalid(what, "a positive finite number", made)
    return made


def answers(x: Any, rng: Any) -> Array:
    """The answers as a float array, checked to be finite numbers; the random generator is checked, too."""
    if not isinstance(rng, np.random.Generator):
        raise invalid("rng", "a numpy.random.Generator", type(rng).__name__)
    try:
        made = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError):
        raise invalid("answers", "an array of numbers", x) from None
    if not np.isfinite(made).all():
        raise invalid("answers", "finite numbers", x)
    return made


def plain(value: Any) -> Any:
    """A Python float for a zero-dimensional array."""
    array = np.asarray(value)
    return float(array) if array.ndim == 0 else array
