"""The fast arithmetic: two float64 ends, every operation rounded outward.

The reason that the ends are outside: IEEE 754 rounds + - * / sqrt to the nearest float, so the neighboring float
(`nextafter`) is beyond the true value, also where the result is subnormal. The vectorized functions of numpy err by at
most 4 units in the last place (its enhancement proposal 38); `MARGIN` allows exp, expm1, log and log1p 8 of them. Sums
and products of matrices use the bound of n rounding errors. It is n u / (1 - n u) times the sum of the absolute values,
for every order of the additions [HIG, section 3.1].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.errors import CertificateError
from ldpopt.numbers.enclosures.base import LARGEST_FLOAT, Arithmetic, Array, Enclosure, Values, product, real_array
from ldpopt.numbers.rounding import SUBNORMAL, ULP, float_down, float_up

__all__ = ["FLOAT", "INF", "MARGIN", "SMALLEST_NORMAL", "FloatArithmetic", "FloatEnclosure"]

MARGIN = 9 * ULP
"""Relative error allowed to exp, expm1, log and log1p: 8 units in the last place, and one for its own rounding."""

INF = float("inf")

SMALLEST_NORMAL = 2.0**-1022
"""Smallest number of full precision."""


def _down(value: Array) -> Array:
    """The next float below; of an overflow, the largest float."""
    return np.asarray(np.nextafter(value, -INF))


def _up(value: Array) -> Array:
    return np.asarray(np.nextafter(value, INF))


class FloatEnclosure(Enclosure):
    """Two float64 arrays of one shape; one and the same array where the numbers are exact."""

    __slots__ = ("_high", "_low")

    _low: Array
    _high: Array

    def __init__(self, low: Array, high: Array) -> None:
        """Ends already rounded outward; NaN opens its end."""
        if not SMALLEST_NORMAL / 2 > 0:  # some libraries, built with -ffast-math, switch the processor to this
            raise CertificateError("float64 arithmetic in this process takes tiny numbers for zero and proves nothing")
        if np.count_nonzero(low <= high) < low.size:
            low, high = np.where(np.isnan(low), -INF, low), np.where(np.isnan(high), INF, high)
        object.__setattr__(self, "_low", low)
        object.__setattr__(self, "_high", high)

    def __reduce__(self) -> Any:
        return (FloatEnclosure, (self._low, self._high))

    @property
    def arithmetic(self) -> FloatArithmetic:
        return FLOAT

    def _float64(self, upper: bool) -> Array:
        return (self._high if upper else self._low).copy()

    @property
    def ends(self) -> tuple[FloatEnclosure, FloatEnclosure]:
        return FloatEnclosure(self._low, self._low), FloatEnclosure(self._high, self._high)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._low.shape

    @property
    def _point(self) -> bool:
        return self._low is self._high

    def _map(self, function: str, *arguments: Any) -> FloatEnclosure:
        low = np.asarray(getattr(self._low, function)(*arguments))
        return FloatEnclosure(low, low if self._point else np.asarray(getattr(self._high, function)(*arguments)))

    def __getitem__(self, index: Any) -> FloatEnclosure:
        low = np.asarray(self._low[index])
        return FloatEnclosure(low, low if self._point else np.asarray(self._high[index]))

    def __neg__(self) -> FloatEnclosure:
        low = -self._high
        return FloatEnclosure(low, low if self._point else -self._low)

    def __add__(self, other: Values) -> FloatEnclosure:
        right = FLOAT.of(other)
        with np.errstate(all="ignore"):
            low = self._low + right._low
            high = low if self._point and right._point else self._high + right._high
            # A sum below the smallest number of full precision is exact: additions do not underflow.
            low = np.where(np.abs(low) < SMALLEST_NORMAL, low, _down(low))
            return FloatEnclosure(low, np.where(np.abs(high) < SMALLEST_NORMAL, high, _up(high)))

    def __mul__(self, other: Values) -> FloatEnclosure:
        right = FLOAT.of(other)
        with np.errstate(all="ignore"):
            low = high = self._low * right._low
            others = [] if self._point else [(self._high, right._low)]
            others += [] if right._point else [(self._low, right._high)]
            others += [] if self._point or right._point else [(self._high, right._high)]
            for left, right_end in others:
                product = left * right_end
                low, high = np.minimum(low, product), np.maximum(high, product)  # both keep NaN
            return _signed(_down(low), _up(high), self, right)

    def __truediv__(self, other: Values) -> FloatEnclosure:
        right = FLOAT.of(other)
        if (right._low > 0).all():
            return self._divided(right)
        if (right._high < 0).all():
            return (-self)._divided(-right)
        positive, negative = right._low > 0, right._high < 0
        positive_divisor, negative_divisor = FLOAT.where(positive, right, 1.0), FLOAT.where(negative, right, -1.0)
        quotient = FLOAT.where(negative, (-self)._divided(-negative_divisor), self._divided(positive_divisor))
        return FLOAT.where(positive | negative, quotient, np.nan)

    def _divided(self, right: FloatEnclosure) -> FloatEnclosure:
        """The quotient by positive numbers."""
        with np.errstate(all="ignore"):
            low = self._low / np.where(self._low >= 0, right._high, right._low)
            high = self._high / np.where(self._high >= 0, right._low, right._high)
            is_undefined = np.isnan(low) | np.isnan(high)
            if np.count_nonzero(is_undefined):
                low, high = np.where(is_undefined, np.nan, low), np.where(is_undefined, np.nan, high)
            return _signed(_down(low), _up(high), self, right)

    def _product(self, other: FloatEnclosure) -> FloatEnclosure:
        return FloatEnclosure(*product(self._low, self._high, other._low, other._high))

    def sum(self, axis: int | None = None) -> FloatEnclosure:
        count = self._low.size if axis is None else self.shape[axis]
        return self._added(lambda end: np.asarray(end.sum(axis=axis)), count)

    def cumsum(self, axis: int = 0) -> FloatEnclosure:
        return self._added(lambda end: np.asarray(np.cumsum(end, axis=axis)), self.shape[axis])

    def _added(self, add: Callable[[Array], Array], count: int) -> FloatEnclosure:
        """Sums of at most `count` numbers: 2 n u sum |x| covers n u / (1 - n u) sum |x| and its own rounding."""
        with np.errstate(all="ignore"):
            ends = []
            for end, step, sign in ((self._low, _down, -1.0), (self._high, _up, 1.0)):
                size = add(np.abs(end))
                error = np.where(size == 0, 0.0, size * (count * ULP) + count * SUBNORMAL)
                total = add(end)
                ends.append(np.where(size == 0, 0.0, step(total + sign * error)))
            low, high = ends
            # Sums of numbers of one sign keep it; the sums of the others are not bounded by zero.
            low = np.where(add((~(self._low >= 0)).astype(np.float64)) == 0, np.fmax(low, 0.0), low)
            high = np.where(add((~(self._high <= 0)).astype(np.float64)) == 0, np.fmin(high, 0.0), high)
        return FloatEnclosure(low, high)

    def _increasing(self, function: str) -> FloatEnclosure:
        """A function that numpy knows within `MARGIN`, of the part in its domain; of a point outside, everything."""
        compute, zero, domain, minimum = _INCREASING[function]
        with np.errstate(all="ignore"):
            start = self._low if self._point else np.maximum(self._low, domain)
            value = np.asarray(compute(start))
            low = np.where(value == INF, LARGEST_FLOAT, value)
            low = np.where(start == zero, 0.0, low - (np.abs(low) * MARGIN + 16 * SUBNORMAL))
            value = value if self._point else np.asarray(compute(self._high))
            high = np.where(value == -INF, -LARGEST_FLOAT, value)
            high = np.where(self._high == zero, 0.0, high + (np.abs(high) * MARGIN + 16 * SUBNORMAL))
        is_undefined = np.isnan(high)
        return FloatEnclosure(np.maximum(np.where(is_undefined, -INF, low), minimum), np.where(is_undefined, INF, high))

    def sqrt(self) -> FloatEnclosure:
        with np.errstate(invalid="ignore"):
            low, high = np.sqrt(np.maximum(self._low, 0.0)), np.sqrt(self._high)
        is_undefined = np.isnan(high)
        low = np.where(is_undefined, -INF, np.where(low == 0, 0.0, _down(low)))
        return FloatEnclosure(low, np.where(high == 0, 0.0, _up(high)))

    def abs(self) -> FloatEnclosure:
        low = np.maximum(np.maximum(self._low, -self._high), 0.0)
        if self._point:
            return FloatEnclosure(low, low)
        return FloatEnclosure(low, np.maximum(-self._low, self._high))

    def maximum(self, other: Values) -> FloatEnclosure:
        right = FLOAT.of(other)
        low = np.maximum(self._low, right._low)
        return FloatEnclosure(low, low if self._point and right._point else np.maximum(self._high, right._high))

    def max(self, axis: int | None = None) -> FloatEnclosure:
        return FloatEnclosure(np.asarray(self._low.max(axis=axis)), np.asarray(self._high.max(axis=axis)))


_INCREASING: dict[str, tuple[Callable[[Array], Any], float, float, float]] = {
    "exp": (np.exp, np.nan, -INF, 0.0),
    "expm1": (np.expm1, 0.0, -INF, -1.0),
    "log": (np.log, 1.0, 0.0, -INF),
    "log1p": (np.log1p, 0.0, -1.0, -INF),
}
"""The function, the argument at which it is exactly zero, the lower end of its domain, and its least value."""


def _signed(low: Array, high: Array, first: FloatEnclosure, second: FloatEnclosure) -> FloatEnclosure:
    """Ends of a product or quotient that do not cross zero where the signs of the factors forbid it."""
    tiny = (low == -SUBNORMAL) | (high == SUBNORMAL)
    if np.count_nonzero(tiny):
        up_up, down_down = (first._low >= 0) & (second._low >= 0), (first._high <= 0) & (second._high <= 0)
        up_down, down_up = (first._low >= 0) & (second._high <= 0), (first._high <= 0) & (second._low >= 0)
        zero = (first._low == 0) & (first._high == 0) | (second._low == 0) & (second._high == 0)
        low = np.where(tiny & (up_up | down_down | zero), np.maximum(low, 0.0), low)
        high = np.where(tiny & (up_down | down_up | zero), np.minimum(high, 0.0), high)
    return FloatEnclosure(low, high)


class FloatArithmetic(Arithmetic):
    """float64 ends, rounded outward."""

    exact = False

    def of(self, values: Values) -> FloatEnclosure:
        """Enclose the numbers themselves; a number that is not a float64 lies between its neighbors."""
        if isinstance(values, FloatEnclosure):
            return values
        if isinstance(values, Enclosure):
            return FloatEnclosure(np.asarray(values.lower), np.asarray(values.upper))
        array = real_array(values)
        if array.dtype == object:
            ends = [(float_down(x), float_up(x)) if isinstance(x, Fraction) else (x, x) for x in array.ravel()]
            low, high = np.array(ends, dtype=np.float64).reshape(-1, 2).T
            return FloatEnclosure(low.reshape(array.shape), high.reshape(array.shape))
        return FloatEnclosure(array, array)

    def between(self, lower: Values, upper: Values) -> FloatEnclosure:
        """Enclose numbers from `lower` to `upper`; ends out of order enclose everything."""
        low, high = np.broadcast_arrays(self.of(lower)._low, self.of(upper)._high)
        out_of_order = ~(low <= high)
        return FloatEnclosure(np.where(out_of_order, -INF, low), np.where(out_of_order, INF, high))

    def concatenate(self, parts: Sequence[Values], axis: int = 0) -> FloatEnclosure:
        enclosures = [self.of(part) for part in parts]
        low = np.concatenate([part._low for part in enclosures], axis=axis)
        if all(part._point for part in enclosures):
            return FloatEnclosure(low, low)
        return FloatEnclosure(low, np.concatenate([part._high for part in enclosures], axis=axis))

    def where(self, mask: npt.ArrayLike, yes: Values, no: Values) -> FloatEnclosure:
        yes_in, no_in = self.of(yes), self.of(no)
        low = np.where(mask, yes_in._low, no_in._low)
        return FloatEnclosure(low, low if yes_in._point and no_in._point else np.where(mask, yes_in._high, no_in._high))


FLOAT = FloatArithmetic()
