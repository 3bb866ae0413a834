"""The arithmetic with many digits: balls of python-flint, each a midpoint and a radius [ARB].

python-flint keeps its precision in one global place; every operation here sets it and puts it back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import wraps
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

import numpy as np
import numpy.typing as npt

from ldpopt.numbers.enclosures.base import LARGEST_FLOAT, Arithmetic, Enclosure, Values, real_array

if TYPE_CHECKING:
    from flint import arb

__all__ = ["EXACT", "Balls", "Exact", "ExactEnclosure", "float_above", "float_below"]

Balls = npt.NDArray[Any]
"""An object array of `arb`."""

P = ParamSpec("P")


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Set the precision of balls to `bits` bits inside the block."""
    import flint

    previous_precision = flint.ctx.prec
    flint.ctx.prec = bits
    try:
        yield
    finally:
        flint.ctx.prec = previous_precision


def _precise(
    operation: Callable[Concatenate[ExactEnclosure, P], ExactEnclosure],
) -> Callable[Concatenate[ExactEnclosure, P], ExactEnclosure]:
    """`operation` at the precision of the enclosure that it belongs to."""

    @wraps(operation)
    def run(self: ExactEnclosure, /, *arguments: P.args, **options: P.kwargs) -> ExactEnclosure:
        with precision(self.arithmetic.bits):
            return operation(self, *arguments, **options)

    return run


def _array(value: Any) -> Balls:
    """An object array, also of a single ball."""
    if isinstance(value, np.ndarray):
        return value
    array = np.empty((), dtype=object)
    array[()] = value
    return array


def _entrywise(function: Callable[..., Any], *arrays: Balls) -> Balls:
    """`function` of each entry, or of entries side by side."""
    return _array(np.frompyfunc(function, len(arrays), 1)(*arrays))


class ExactEnclosure(Enclosure):
    """An object array of balls, and the arithmetic that says how many digits they carry."""

    __slots__ = ("_arithmetic", "_balls")

    _arithmetic: Exact
    _balls: Balls

    def __init__(self, arithmetic: Exact, balls: Any) -> None:
        object.__setattr__(self, "_arithmetic", arithmetic)
        object.__setattr__(self, "_balls", _array(balls))

    def _wrap(self, balls: Any) -> ExactEnclosure:
        return ExactEnclosure(self._arithmetic, balls)

    @property
    def arithmetic(self) -> Exact:
        return self._arithmetic

    def _float64(self, upper: bool) -> npt.NDArray[np.float64]:
        with precision(self._arithmetic.bits):
            ends = [(float_above if upper else float_below)(ball) for ball in self._balls.ravel().tolist()]
        return np.array(ends, dtype=np.float64).reshape(self.shape)

    @property
    def ends(self) -> tuple[ExactEnclosure, ExactEnclosure]:
        """The two ends without width, rounded outward to the precision."""
        return self._end("lower"), self._end("upper")

    @_precise
    def _end(self, method_name: str) -> ExactEnclosure:
        return self._wrap(_entrywise(lambda ball: getattr(ball, method_name)(), self._balls))

    @property
    def shape(self) -> tuple[int, ...]:
        return self._balls.shape

    def _map(self, function: str, *arguments: Any) -> ExactEnclosure:
        return self._wrap(getattr(self._balls, function)(*arguments))

    def __getitem__(self, index: Any) -> ExactEnclosure:
        return self._wrap(self._balls[index])

    def _other(self, other: Values) -> Balls:
        return self._arithmetic.of(other)._balls

    @_precise
    def __neg__(self) -> ExactEnclosure:
        return self._wrap(_entrywise(lambda ball: -ball, self._balls))

    @_precise
    def __add__(self, other: Values) -> ExactEnclosure:
        return self._wrap(self._balls + self._other(other))

    @_precise
    def __mul__(self, other: Values) -> ExactEnclosure:
        return self._wrap(self._balls * self._other(other))

    @_precise
    def __truediv__(self, other: Values) -> ExactEnclosure:
        return self._wrap(self._balls / self._other(other))

    @_precise
    def _product(self, other: ExactEnclosure) -> ExactEnclosure:
        from flint import arb_mat

        left, right = (arb_mat(*balls.shape, balls.ravel().tolist()) for balls in (self._balls, other._balls))
        return self._wrap(_filled((left * right).entries(), (self.shape[0], other.shape[1])))

    @_precise
    def sum(self, axis: int | None = None) -> ExactEnclosure:
        return self._wrap(np.add.reduce(self._balls, axis=axis, initial=_ball(0.0)))

    @_precise
    def cumsum(self, axis: int = 0) -> ExactEnclosure:
        return self._wrap(np.cumsum(self._balls, axis=axis))

    @_precise
    def _increasing(self, function: str) -> ExactEnclosure:
        """The increasing function; a logarithm is everything unless the lower end is positive, as balls are bounded."""
        return self._wrap(_entrywise(methodcaller(function), self._balls))

    @_precise
    def sqrt(self) -> ExactEnclosure:
        return self._wrap(_entrywise(_root, self._balls))

    @_precise
    def abs(self) -> ExactEnclosure:
        return self._wrap(_entrywise(_size, self._balls))

    @_precise
    def maximum(self, other: Values) -> ExactEnclosure:
        return self._wrap(_entrywise(lambda ball, others: ball.max(others), self._balls, self._other(other)))

    @_precise
    def max(self, axis: int | None = None) -> ExactEnclosure:
        entries = self._balls.ravel() if axis is None else np.moveaxis(self._balls, axis, 0)
        if not len(entries):
            raise ValueError("the largest of no numbers")
        largest = self._wrap(entries[0])
        for entry in entries[1:]:
            largest = largest.maximum(self._wrap(entry))
        return largest


class Exact(Arithmetic):
    """Balls with midpoints of `bits` bits; exact in the sense that more bits decide every open comparison."""

    exact = True

    def __init__(self, bits: int = 256) -> None:
        self.bits = bits

    def of(self, values: Values) -> ExactEnclosure:
        """Enclose the numbers themselves; a Fraction is divided at the precision."""
        if isinstance(values, ExactEnclosure):
            return values if values.arithmetic.bits == self.bits else ExactEnclosure(self, values._balls)
        if isinstance(values, Enclosure):
            return self.between(values.lower, values.upper)
        array = real_array(values)
        with precision(self.bits):
            return ExactEnclosure(self, _filled([_ball(value) for value in array.ravel().tolist()], array.shape))

    def between(self, lower: Values, upper: Values) -> ExactEnclosure:
        """Enclose numbers from `lower` to `upper`; ends out of order enclose everything."""
        # A ball's radius has nine digits.
        low, high = self.of(lower), self.of(upper)
        with precision(self.bits):
            return ExactEnclosure(self, _entrywise(_ball_between, low._balls, high._balls))

    def concatenate(self, parts: Sequence[Values], axis: int = 0) -> ExactEnclosure:
        return ExactEnclosure(self, np.concatenate([self.of(part)._balls for part in parts], axis=axis))

    def where(self, mask: npt.ArrayLike, yes: Values, no: Values) -> ExactEnclosure:
        return ExactEnclosure(self, np.where(mask, self.of(yes)._balls, self.of(no)._balls))


EXACT = Exact()


def _filled(balls: list[Any], shape: tuple[int, ...]) -> Balls:
    """An object array of a shape; numpy would look inside of lists."""
    array = np.empty(len(balls), dtype=object)
    array[:] = balls
    return array.reshape(shape)


def _ball(value: float | Fraction) -> arb:
    """A float without width; a Fraction divided out."""
    import flint

    if isinstance(value, Fraction):
        return flint.arb(flint.fmpq(value.numerator, value.denominator))
    return flint.arb(value)


def _ball_between(lower: arb, upper: arb) -> arb:
    import flint

    return lower.lower().union(upper.upper()) if lower.lower() <= upper.upper() else flint.arb("nan")


def _size(ball: arb) -> arb:
    """The absolute value; of a ball around zero, from zero up (but for the rounding of its radius)."""
    return abs(ball).max(0) if ball.contains(0) else abs(ball)


def _root(ball: arb) -> arb:
    import flint

    if ball.lower() < 0 and ball.upper() >= 0:
        return flint.arb(0).union(ball.upper().sqrt().upper())
    return ball.sqrt()


def float_below(ball: arb) -> float:
    """Return the largest float64 not above the lower end of the ball, by exact integers."""
    end = ball.lower()
    if end.is_nan() or not end.is_finite():
        return math.inf if end > 0 and ball.is_exact() else -math.inf
    mantissa, exponent = (int(part) for part in end.man_exp())
    shift = max(mantissa.bit_length() - 53, -1074 - exponent)
    if shift > 0:
        # Shifting right rounds down, negative numbers too.
        mantissa, exponent = mantissa >> min(shift, mantissa.bit_length() + 1), exponent + shift
    try:
        return math.ldexp(mantissa, exponent)
    except OverflowError:
        return LARGEST_FLOAT if mantissa > 0 else -math.inf


def float_above(ball: arb) -> float:
    """Return the smallest float64 not below the upper end of the ball."""
    return -float_below(-ball)
