"""The f-divergence: a convex generator with f(1) = 0, and all that is derived from it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ldpopt.distribution import Array, distribution
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.tolerances import CONVEXITY

Function = Callable[[Any], Any]

# Where a user's generator is probed: symmetric in log t, denser near 1 where kinks usually are.
_PROBES = np.unique(np.concatenate([np.geomspace(1e-6, 1e6, 481), np.linspace(0.5, 2.0, 301)]))


class FDivergence:
    """D_f(p || q) = sum_y q_y f(p_y / q_y) for a convex f on (0, inf) with f(1) = 0 [GI, section VII].

    Parameters
    ----------
    generator : the function f of a positive array (a scalar function works, more slowly).
    name : what reports call it.
    derivative : f' (any subgradient at kinks); differences of f are used when it is missing.
    at_zero : the limit f(0+), possibly inf; extrapolated when missing.
    slope_at_infinity : the limit of f(t)/t, possibly inf; extrapolated when missing.
    conjugate : f*(s) = sup_{t >= 0} s t - f(t); computed numerically when missing.

    Raises `InvalidInput` when f is not convex, f(1) is not 0, or f is not finite on (0, inf).
    Divergences are in nats where a logarithm is involved.

    >>> mine = FDivergence(lambda t: (t - 1) ** 4, name="fourth power")
    >>> round(mine([0.5, 0.5], [0.25, 0.75]), 6)
    0.259259
    >>> FDivergence(lambda t: -(t - 1) ** 2)
    Traceback (most recent call last):
    ldpopt.errors.InvalidInput: generator f: expected a convex function, got f above its chord at t = 1
    """

    __slots__ = ("_conjugate", "_derivative", "_excess", "_generator", "at_zero", "name", "slope_at_infinity")

    name: str
    at_zero: float
    slope_at_infinity: float
    _generator: Function
    _derivative: Function
    _conjugate: Function | None
    _excess: Callable[[Any, Any], Any] | None

    def __init__(
        self,
        generator: Function,
        *,
        name: str = "f-divergence",
        derivative: Function | None = None,
        at_zero: float | None = None,
        slope_at_infinity: float | None = None,
        conjugate: Function | None = None,
    ) -> None:
        f = _vectorised(generator)
        values = _check_generator(f)
        slope = _vectorised(derivative) if derivative is not None else _difference(f)
        if derivative is not None:
            _check_derivative(slope, values)
        ends = (
            _limit(f, 0.0) if at_zero is None else float(at_zero),
            _limit(f, math.inf) if slope_at_infinity is None else float(slope_at_infinity),
        )
        _check_ends(*ends, values)
        self._set(
            name,
            f,
            slope,
            *ends,
            conjugate,
            None,
        )

    def _set(self, *fields: Any) -> None:
        for field, value in zip(_FIELDS, fields, strict=True):
            object.__setattr__(self, field, value)

    @classmethod
    def _trusted(cls, *fields: Any) -> FDivergence:
        """The named divergences: closed forms tested against the definition, not probed at import."""
        made = cls.__new__(cls)
        made._set(*fields)
        return made

    def __setattr__(self, field: str, value: object) -> None:
        raise AttributeError(f"FDivergence is frozen; cannot set {field}")

    def __delattr__(self, field: str) -> None:
        raise AttributeError(f"FDivergence is frozen; cannot delete {field}")

    def generator(self, t: Any) -> Any:
        """f(t) for t in [0, inf], with its limits at the ends."""
        t = np.asarray(t, dtype=np.float64)
        with np.errstate(all="ignore"):
            inner = self._generator(np.where((t > 0) & np.isfinite(t), t, 1.0))
            top = float(self._generator(np.float64(math.inf)))
        if math.isnan(top):
            top = math.inf if self.slope_at_infinity > 0 else -math.inf
        return _plain(np.where(t == 0, self.at_zero, np.where(np.isinf(t), top, inner)))

    def derivative(self, t: Any) -> Any:
        """f'(t) for t in (0, inf); at a kink, some subgradient."""
        return _plain(self._derivative(np.asarray(t, dtype=np.float64)))

    def perspective(self, a: Any, b: Any) -> Any:
        """mu(a, b) = b f(a/b), for a, b >= 0, with mu(a, 0) = a lim f(t)/t and mu(0, 0) = 0.

        Convex, positively homogeneous, and zero on a = b (up to the linear part of f).

        >>> from ldpopt.divergences import KL
        >>> KL.perspective(0.0, 0.5), KL.perspective(0.5, 0.0)
        (0.0, inf)
        """
        a, b = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(b, np.float64))
        inside = (a > 0) & (b > 0)
        with np.errstate(all="ignore"):
            value = np.where(b > 0, b * self._generator(np.where(inside, a, 1.0) / np.where(inside, b, 1.0)), 0.0)
            if self._excess is not None and not np.isfinite(value[inside]).all():
                # a/b left the range of doubles; mu itself may not have.
                safe = self._excess(np.where(inside, a, 1.0), np.where(inside, b, 1.0)) + self._slope_at_one() * (a - b)
                value = np.where(inside & ~np.isfinite(value), safe, value)
            value = np.where((a == 0) & (b > 0), b * self.at_zero, value)
            value = np.where((b == 0) & (a > 0), a * self.slope_at_infinity, value)
        return _plain(value)

    def excess(self, a: Any, b: Any) -> Any:
        """mu(a, b) - f'(1) (a - b) >= 0: the same sum over outputs, without cancellation near a = b."""
        a, b = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(b, np.float64))
        inside = (a > 0) & (b > 0)
        if inside.all():
            return _plain(self.positive_excess(a, b))
        value = self.positive_excess(np.where(inside, a, 1.0), np.where(inside, b, 1.0))
        slope = self._slope_at_one()
        with np.errstate(invalid="ignore"):
            edge = np.where(a > 0, a * (self.slope_at_infinity - slope), 0.0)
            edge = np.where(b > 0, b * (self.at_zero + slope), edge)
        return _plain(np.where(inside, value, np.where((a > 0) | (b > 0), edge, 0.0)))

    def positive_excess(self, a: Array, b: Array) -> Array:
        """`excess` for arrays with positive entries only: the fast path of the solvers."""
        with np.errstate(all="ignore"):
            if self._excess is not None:
                return np.asarray(self._excess(a, b))
            return np.asarray(b * self._generator(a / b) - self._slope_at_one() * (a - b))

    def _slope_at_one(self) -> float:
        return float(self._derivative(np.float64(1.0)))

    def conjugate(self, s: Any) -> Any:
        """f*(s) = sup over t >= 0 of s t - f(t), possibly inf.

        >>> from ldpopt.divergences import CHI_SQUARED
        >>> CHI_SQUARED.conjugate(2.0)
        3.0
        """
        s = np.asarray(s, dtype=np.float64)
        if self._conjugate is not None:
            with np.errstate(all="ignore"):
                return _plain(np.asarray(self._conjugate(s), dtype=np.float64))
        return _plain(np.vectorize(self._numeric_conjugate, otypes=[np.float64])(s))

    def _numeric_conjugate(self, s: float) -> float:
        from scipy.optimize import minimize_scalar

        if s > self.slope_at_infinity:
            return math.inf
        found = minimize_scalar(
            lambda u: float(self._generator(np.exp(u))) - s * math.exp(u), bounds=(-60.0, 60.0), method="bounded",
            options={"xatol": 1e-12},
        )  # fmt: skip
        return max(-float(found.fun), -self.at_zero)

    def __call__(self, p: Any, q: Any) -> float:
        """D_f(p || q) of two distributions of one length; inf where f says so."""
        p = distribution(p, "p")
        q = distribution(q, "q", size=len(p))
        return self.sum(p, q)

    def sum(self, p: Array, q: Array) -> float:
        """The divergence of two checked probability vectors."""
        return float(np.sum(self.excess(p, q)))

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def __reduce__(self) -> Any:
        from ldpopt.divergences.named import rebuild, recipe

        made = recipe(self)
        # One's own is its functions, which pickle where they do (cloudpickle takes lambdas too).
        return (rebuild, made) if made else (_restored, tuple(getattr(self, name) for name in _FIELDS))


_FIELDS = ("name", "_generator", "_derivative", "at_zero", "slope_at_infinity", "_conjugate", "_excess")


def _restored(*fields: Any) -> FDivergence:
    return FDivergence._trusted(*fields)


def _plain(value: Any) -> Any:
    """A Python float for a zero-dimensional result."""
    array = np.asarray(value)
    return float(array) if array.ndim == 0 else array


def _vectorised(function: Function) -> Function:
    """`function` on arrays, whether or not it was written for them."""
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


def _check_generator(f: Function) -> Array:
    """Values of f on the probes, after checking f(1) = 0, finiteness and convexity."""
    try:
        with np.errstate(all="ignore"):
            values = np.asarray(f(_PROBES), dtype=np.float64)
            one = float(f(np.float64(1.0)))
    except (ArithmeticError, TypeError, ValueError) as error:
        raise invalid("generator f", "a real number for every t in (0, inf)", Phrase(repr(error))) from None
    if not abs(one) <= 1e-9:
        raise invalid("generator f", "f(1) = 0", one)
    if not np.isfinite(values).all():
        at = int(np.argmin(np.isfinite(values)))
        raise invalid("generator f", "finite values on (0, inf)", values[at], f"t = {_PROBES[at]:.6g}")
    left, mid, right = values[:-2], values[1:-1], values[2:]
    weight = (_PROBES[2:] - _PROBES[1:-1]) / (_PROBES[2:] - _PROBES[:-2])
    chord = weight * left + (1 - weight) * right
    scale = np.abs(left) + np.abs(mid) + np.abs(right)
    above = mid - chord > CONVEXITY * scale * 1e-3 + 1e-15
    if above.any():
        # Report the most evident place, which a reader can check by hand.
        at = int(np.argmax((mid - chord) / (scale + 1e-300)))
        raise invalid(
            "generator f", "a convex function",
            Phrase(f"f above its chord at t = {_PROBES[at + 1]:.6g}"),
        )  # fmt: skip
    return values


def _check_derivative(slope: Function, values: Array) -> None:
    """Every tangent must stay below f at the neighbouring probes."""
    with np.errstate(all="ignore"):
        slopes = np.asarray(slope(_PROBES), dtype=np.float64)
    step = np.diff(_PROBES)
    slack = 1e-9 * (np.abs(values[1:]) + np.abs(values[:-1]) + 1e-6)
    right = values[:-1] + slopes[:-1] * step <= values[1:] + slack
    left = values[1:] - slopes[1:] * step <= values[:-1] + slack
    if not (right & left).all():
        at = int(np.argmin(right & left))
        raise invalid("derivative", "a subgradient of f", slopes[at], f"t = {_PROBES[at]:.6g}")


def _difference(f: Function) -> Function:
    """A central difference of f, clipped between one-sided slopes by convexity."""

    def slope(t: Any) -> Any:
        t = np.asarray(t, dtype=np.float64)
        h = t * 1e-6
        return (f(t + h) - f(t - h)) / (2 * h)

    return slope


def _check_ends(at_zero: float, slope_at_infinity: float, values: Array) -> None:
    """Convexity bounds both limits from below by the outermost chords."""
    slopes = np.diff(values) / np.diff(_PROBES)
    low, high = values[0] - slopes[0] * _PROBES[0], slopes[-1]
    for what, value, least in (("at_zero", at_zero, low), ("slope_at_infinity", slope_at_infinity, high)):
        if not value >= least - 1e-6 * (1 + abs(least)):
            raise invalid(what, f"the limit of a convex f, at least {least:.6g}", value)


def _limit(f: Function, end: float) -> float:
    """f(0+) or the slope at infinity, from a geometric sequence of probes.

    By convexity f(0+) is the increasing limit of f on a neighbourhood of 0 where f falls, and f(t)/t
    has a limit at infinity. A sequence that keeps moving is taken as infinite.
    """
    steps = np.array([1e-12, 1e-24, 1e-48, 1e-96]) if end == 0 else np.array([1e12, 1e24, 1e48, 1e96])
    with np.errstate(all="ignore"):
        raw = np.array([float(f(np.float64(t))) for t in steps])
        seen = raw if end == 0 else raw / steps
    if not np.isfinite(seen).all():
        return math.inf
    moved = abs(seen[-1] - seen[-2])
    if moved <= 1e-6 * (1 + abs(seen[-1])):
        return float(seen[-1])
    if seen[-1] > seen[-2]:
        return math.inf
    raise InvalidInput("generator f: its limit could not be found; pass at_zero and slope_at_infinity")
