"""The excess of the divergences with logarithms, as functions of d = a - b, accurate even where a and b nearly agree.

Each function takes d, a and b, although two of them determine the third: d may be known to digits that the rounded
a = b + d has lost. a and b are positive. Where logarithms would cancel, a series is used.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import log, log1p, maximum, sqrt, where

_INF = float("inf")

NEAR = 0.01
"""The relative distance of a and b below which series replace logarithms; there they are accurate to a double."""

_FLOOR = -1 + 2.0**-53


def patch(value: Any, mask: Any, formula: Any, a: Any, b: Any) -> Any:
    """`value`, replaced by `formula(a, b)` where `mask` is true, and computed only there, which saves time."""
    if not np.any(mask):
        return value
    if np.all(mask):
        return formula(a, b)
    a, b = np.broadcast_arrays(a, b)
    value[mask] = formula(a[mask], b[mask])
    return value


def log_ratio(d: Any, a: Any, b: Any) -> Any:
    """log(a/b), accurate to a few units in the last place, also near a = b and at extreme ratios."""
    x = d / b
    return patch(log1p(maximum(x, _FLOOR)), (x < -0.9) | (x == _INF), _log_extreme_ratio, a, b)


def _log_extreme_ratio(a: Any, b: Any) -> Any:
    ratio = a / b
    safe = (ratio > 0) & (ratio < _INF)
    return where(safe, log(where(safe, ratio, 1.0)), log(a) - log(b))


def kl_excess(d: Any, a: Any, b: Any) -> Any:
    """a log(a/b) - d, without cancellation."""
    x = d / b
    near = abs(x) < NEAR
    if np.all(near):
        return _kl_series(d, x)
    # Where a is below 2**-53 b, the first term is too small to change the second, so its logarithm may be wrong.
    value = patch(a * log1p(maximum(x, _FLOOR)) - d, near, _kl_series, d, x)
    return patch(value, x == _INF, lambda a, b: a * (log(a) - log(b)) - (a - b), a, b)


def _kl_series(d: Any, x: Any) -> Any:
    """b ((1+x) log(1+x) - x) for b = d/x: the sum over n >= 2 of (-x)^n / (n (n-1))."""
    return d * x * (1 / 2 - x * (1 / 6 - x * (1 / 12 - x * (1 / 20 - x * (1 / 30 - x * (1 / 42 - x / 56))))))


def jensen_shannon_excess(d: Any, a: Any, b: Any) -> Any:
    """(a log(2a/(a+b)) + b log(2b/(a+b))) / 2, without cancellation."""
    m = middle(a, b)
    r = d / 2 / m
    near = abs(r) < NEAR
    if np.all(near):
        return _jensen_shannon_series(d, r)
    value = (a * log1p(maximum(r, _FLOOR)) + b * log1p(maximum(-r, _FLOOR))) / 2
    return patch(value, near, _jensen_shannon_series, d, r)


def _jensen_shannon_series(d: Any, r: Any) -> Any:
    """m ((1+r) log(1+r) + (1-r) log(1-r)) / 2 for m = d/2r: the sum over n of r^2n / (n (2n-1)), times m/2."""
    r2 = r * r
    return d / 2 * r * (1 + r2 * (1 / 6 + r2 * (1 / 15 + r2 / 28))) / 2


def middle(a: Any, b: Any) -> Any:
    """(a + b) / 2, also where a + b overflows."""
    total = a + b
    return patch(total / 2, total == _INF, lambda a, b: a / 2 + b / 2, a, b)


def ratio_excess(d: Any, b: Any) -> Any:
    """d^2 / b, also where d^2 or d / b leaves the range of floats."""
    x = d / b
    return patch(d * x, np.isinf(x), lambda d, b: (d / sqrt(b)) ** 2, d, b)
