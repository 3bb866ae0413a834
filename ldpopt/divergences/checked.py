"""User-defined generators f: checked on a grid of points, completed numerically, and stored with their code in pickles.

A pickle stores only the name of a function, not its code.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.numbers.tolerances import CONVEXITY_RTOL, EXTRAPOLATION_RTOL
from ldpopt.values.distribution import Array

Function = Callable[[Any], Any]

# Points where a user's generator is checked: symmetric in log t, and denser near 1, where kinks usually are.
_PROBES = np.array(sorted({*np.geomspace(1e-6, 1e6, 481), *np.linspace(0.5, 2.0, 301)}))  # np.unique loads numpy.ma


def vectorised(function: Function) -> Function:
    """Return `function` made to take arrays if it was written for single numbers."""
    probe = np.array([0.5, 1.0, 2.0])
    try:
        with np.errstate(all="ignore"):
            if np.shape(function(probe)) == probe.shape:
                return function
    except Exception as error:
        try:
            function(0.5)
        except Exception:
            raise invalid("generator f", "a function of a positive number", Phrase(repr(error))) from None
    return np.vectorize(function, otypes=[np.float64])


def check_generator(f: Function) -> Array:
    """Check that f(1) = 0 and that f is finite and convex at the probes; return its values."""
    try:
        with np.errstate(all="ignore"):
            values = np.asarray(f(_PROBES), dtype=np.float64)
            at_one = float(f(np.float64(1.0)))
    except (ArithmeticError, TypeError, ValueError) as error:
        raise invalid("generator f", "a real number for every t in (0, inf)", Phrase(repr(error))) from None
    if not abs(at_one) <= CONVEXITY_RTOL:
        raise invalid("generator f", "f(1) = 0", at_one)
    if not np.isfinite(values).all():
        worst = int(np.argmin(np.isfinite(values)))
        raise invalid("generator f", "finite values on (0, inf)", values[worst], f"t = {_PROBES[worst]:.6g}")
    left, mid, right = values[:-2], values[1:-1], values[2:]
    weight = (_PROBES[2:] - _PROBES[1:-1]) / (_PROBES[2:] - _PROBES[:-2])
    chord = weight * left + (1 - weight) * right
    scale = np.abs(left) + np.abs(mid) + np.abs(right)
    violates = mid - chord > CONVEXITY_RTOL * scale * 1e-3 + 1e-15
    if violates.any():
        # Report the place where f is most clearly above its chord, which a reader can check by hand.
        worst = int(np.argmax((mid - chord) / (scale + 1e-300)))
        raise invalid(
            "generator f", "a convex function",
            Phrase(f"f above its chord at t = {_PROBES[worst + 1]:.6g}"),
        )  # fmt: skip
    return values


def check_derivative(slope: Function, values: Array) -> None:
    """Check that the tangent at every probe stays below f at the neighbouring probes."""
    with np.errstate(all="ignore"):
        slopes = np.asarray(slope(_PROBES), dtype=np.float64)
    step = np.diff(_PROBES)
    slack = CONVEXITY_RTOL * (np.abs(values[1:]) + np.abs(values[:-1]) + 1e-6)
    right = values[:-1] + slopes[:-1] * step <= values[1:] + slack
    left = values[1:] - slopes[1:] * step <= values[:-1] + slack
    if not (right & left).all():
        worst = int(np.argmin(right & left))
        raise invalid("derivative", "a subgradient of f", slopes[worst], f"t = {_PROBES[worst]:.6g}")


def difference(f: Function) -> Function:
    """Return the central difference of f as a function, an estimate of its derivative."""

    def slope(t: Any) -> Any:
        t = np.asarray(t, dtype=np.float64)
        h = t * 1e-6
        return (f(t + h) - f(t - h)) / (2 * h)

    return slope


def check_ends(at_zero: float, slope_at_infinity: float, values: Array) -> None:
    """Check both limits against the bounds from convexity and the outermost chords of f."""
    slopes = np.diff(values) / np.diff(_PROBES)
    low, high = values[0] - slopes[0] * _PROBES[0], slopes[-1]
    for name, value, lower_bound in (("at_zero", at_zero, low), ("slope_at_infinity", slope_at_infinity, high)):
        if not value >= lower_bound - EXTRAPOLATION_RTOL * (1 + abs(lower_bound)):
            raise invalid(name, f"the limit of a convex f, at least {lower_bound:.6g}", value)


def limit(f: Function, end: float) -> float:
    """Extrapolate the limit f(0+) for `end` 0, or of f(t)/t for inf; growing values count as infinite."""
    steps = np.array([1e-12, 1e-24, 1e-48, 1e-96]) if end == 0 else np.array([1e12, 1e24, 1e48, 1e96])
    with np.errstate(all="ignore"):
        raw = np.array([float(f(np.float64(t))) for t in steps])
        values = raw if end == 0 else raw / steps
    if not np.isfinite(values).all():
        return math.inf
    change = abs(values[-1] - values[-2])
    if change <= EXTRAPOLATION_RTOL * (1 + abs(values[-1])):
        return float(values[-1])
    if values[-1] > values[-2]:
        return math.inf
    raise InvalidInput("generator f: its limit could not be found; pass at_zero and slope_at_infinity")


WHOLE = {"cloudpickle", "dill"}
"""Packages whose pickles hold whole functions, even lambdas; joblib contains its own copy of the first."""


def require_findable(function: Any, name: str) -> None:
    """Raise `InvalidInput` for a function that a pickle cannot name: a lambda, or one that is defined inside another.

    >>> require_findable(lambda t: (t - 1) ** 4, "fourth power")
    Traceback (most recent call last):
    ldpopt.errors.InvalidInput: pickle of fourth power: expected functions that stand in a module under their names ...
    """
    qualified_name = getattr(function, "__qualname__", None)
    if qualified_name is None:  # None, or an object such as a partial, which pickles itself
        return
    owner: Any = sys.modules.get(getattr(function, "__module__", None) or "")
    for part in qualified_name.split("."):
        owner = getattr(owner, part, None)
    if owner is not function and not inspect.isbuiltin(function):
        expected = "functions that stand in a module under their names (cloudpickle.dumps takes others, too)"
        raise invalid(f"pickle of {name}", expected, function)


def taken_whole() -> bool:
    """Return True while a package of `WHOLE` pickles, as joblib and Dask do to send work to processes."""
    frame = inspect.currentframe()
    while frame is not None:
        if WHOLE & set(str(frame.f_globals.get("__name__", "")).split(".")):
            return True
        frame = frame.f_back
    return False
