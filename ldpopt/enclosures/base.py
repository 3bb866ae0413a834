"""What both arithmetics share: the enclosure as a value, and its refusal to be compared."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from ldpopt.errors import invalid

LARGEST = float(np.finfo(np.float64).max)
"""The largest finite float64."""

Array = npt.NDArray[np.float64]
Values = Any
"""Exact numbers from outside: floats, integers, Fractions, arrays of them, or an `Enclosure`."""


class Arithmetic(ABC):
    """A way to compute with enclosures, and the maker of them.

    exact : whether ends carry more digits than a float64.
    """

    exact: bool

    @abstractmethod
    def of(self, values: Values) -> Enclosure:
        """The numbers themselves, each taken as exact; NaN is any number at all."""

    @abstractmethod
    def between(self, lower: Values, upper: Values) -> Enclosure:
        """Numbers known to lie from `lower` to `upper`; a NaN end is unbounded."""

    @abstractmethod
    def concatenate(self, parts: Sequence[Values], axis: int = 0) -> Enclosure:
        """The parts in one array along an axis that they have."""

    @abstractmethod
    def where(self, mask: npt.ArrayLike, yes: Values, no: Values) -> Enclosure:
        """`yes` where the boolean `mask` holds, else `no`."""

    def zeros(self, shape: int | tuple[int, ...]) -> Enclosure:
        """Exact zeros."""
        return self.of(np.zeros(shape))

    def stack(self, parts: Sequence[Values], axis: int = 0) -> Enclosure:
        """The parts of one shape along a new axis."""
        each = [self.of(part) for part in parts]
        at = axis % (each[0].ndim + 1)
        return self.concatenate([part[(slice(None),) * at + (None,)] for part in each], at)


class Enclosure(ABC):
    """An array of real numbers, each known to lie between two ends.

    Operations accept an `Enclosure` of the same arithmetic, Python numbers and arrays of exact numbers, and broadcast.
    A function is taken on the part of the enclosure inside its domain. What is undefined (inf - inf, 0 * inf, division
    by an interval that contains zero, NaN) encloses every number. Comparisons raise TypeError: ask `certainly_at_most`.
    """

    __slots__ = ()
    __array_ufunc__ = None  # so that `array * enclosure` comes to the enclosure, not to numpy

    @property
    @abstractmethod
    def arithmetic(self) -> Arithmetic:
        """The arithmetic that made it."""

    @property
    @abstractmethod
    def lower(self) -> Any:
        """float64 not above the numbers: an array, or a float for a single number."""

    @property
    @abstractmethod
    def upper(self) -> Any:
        """float64 not below the numbers: an array, or a float for a single number."""

    @property
    @abstractmethod
    def ends(self) -> tuple[Enclosure, Enclosure]:
        """The two ends as enclosures of the same arithmetic, without width."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """As numpy's."""

    @abstractmethod
    def _map(self, function: str, *arguments: Any) -> Enclosure:
        """Each array inside, changed by a method of numpy that moves entries without computing."""

    @abstractmethod
    def __getitem__(self, index: Any) -> Enclosure: ...
    @abstractmethod
    def __add__(self, other: Values) -> Enclosure: ...
    @abstractmethod
    def __mul__(self, other: Values) -> Enclosure: ...
    @abstractmethod
    def __truediv__(self, other: Values) -> Enclosure: ...
    @abstractmethod
    def __neg__(self) -> Enclosure: ...
    @abstractmethod
    def __matmul__(self, other: Values) -> Enclosure: ...
    @abstractmethod
    def sum(self, axis: int | None = None) -> Enclosure:
        """The sum of all numbers, or along an axis."""

    @abstractmethod
    def cumsum(self, axis: int = 0) -> Enclosure:
        """The running sums along an axis."""

    @abstractmethod
    def exp(self) -> Enclosure:
        """The exponential."""

    @abstractmethod
    def expm1(self) -> Enclosure:
        """exp(x) - 1, with all digits near zero."""

    @abstractmethod
    def log(self) -> Enclosure:
        """The natural logarithm; unbounded below where the lower end is not positive."""

    @abstractmethod
    def log1p(self) -> Enclosure:
        """log(1 + x), with all digits near zero."""

    @abstractmethod
    def sqrt(self) -> Enclosure:
        """The square root."""

    @abstractmethod
    def square(self) -> Enclosure:
        """x * x, never negative."""

    @abstractmethod
    def abs(self) -> Enclosure:
        """The absolute value."""

    @abstractmethod
    def maximum(self, other: Values) -> Enclosure:
        """The larger of two numbers, entry by entry."""

    @abstractmethod
    def max(self, axis: int | None = None) -> Enclosure:
        """The largest number, or the largest along an axis; of none it is an error."""

    def minimum(self, other: Values) -> Enclosure:
        """The smaller of two numbers, entry by entry."""
        larger: Enclosure = (-self).maximum(-self.arithmetic.of(other))
        return -larger

    def min(self, axis: int | None = None) -> Enclosure:
        """The smallest number, or the smallest along an axis."""
        larger: Enclosure = (-self).max(axis)
        return -larger

    def positive(self) -> Enclosure:
        """max(x, 0)."""
        return self.maximum(0.0)

    def power(self, exponent: float) -> Enclosure:
        """x**exponent for positive x and an exact real exponent."""
        if exponent == 1:
            return self
        return (self.log() * exponent).exp()

    def certainly_at_most(self, other: Values) -> Any:
        """Whether it is proved that each number is at most its counterpart: a boolean array, or a bool."""
        found = np.asarray(self.upper) <= np.asarray(self.arithmetic.of(other).lower)
        return found if found.ndim else bool(found)

    @property
    def midpoint(self) -> Any:
        """A float64 between the ends where they are finite, in the middle but for rounding."""
        lower, upper = np.asarray(self.lower), np.asarray(self.upper)
        with np.errstate(invalid="ignore"):
            middle = np.clip(lower / 2 + upper / 2, lower, upper)
        return middle if middle.ndim else float(middle)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def T(self) -> Enclosure:
        """The transpose."""
        return self._map("transpose")

    def reshape(self, *shape: Any) -> Enclosure:
        """The same numbers in another shape."""
        return self._map("reshape", *shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a single number has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Enclosure]:
        return (self[i] for i in range(len(self)))

    def __radd__(self, other: Values) -> Enclosure:
        return self.__add__(other)

    def __sub__(self, other: Values) -> Enclosure:
        return self + (-self.arithmetic.of(other))

    def __rsub__(self, other: Values) -> Enclosure:
        return self.arithmetic.of(other) + -self

    def __rmul__(self, other: Values) -> Enclosure:
        return self.__mul__(other)

    def __rtruediv__(self, other: Values) -> Enclosure:
        return self.arithmetic.of(other) / self

    def __rmatmul__(self, other: Values) -> Enclosure:
        return self.arithmetic.of(other) @ self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.lower!r} to {self.upper!r})"

    def _refuse(self, other: object = None) -> NoReturn:
        raise TypeError("enclosures are not compared; ask certainly_at_most, or compare .lower and .upper")

    def __bool__(self) -> bool:
        self._refuse()

    def __eq__(self, other: object) -> bool:
        self._refuse()

    def __ne__(self, other: object) -> bool:
        self._refuse()

    __lt__ = __le__ = __gt__ = __ge__ = _refuse

    def __array__(self, *arguments: Any, **options: Any) -> NoReturn:
        raise TypeError("an enclosure is no array of numbers; take .lower, .upper or .midpoint")


def float_below(value: Fraction) -> float:
    """The largest float64 that is not above `value`."""
    try:
        nearest = float(value)
    except OverflowError:
        return LARGEST if value > 0 else -np.inf
    return nearest if Fraction(nearest) <= value else float(np.nextafter(nearest, -np.inf))


def real_array(values: Any) -> npt.NDArray[Any]:
    """`values` as float64 if they are, else as an object array of floats and Fractions.

    Raises `InvalidInput` for what is no real number.
    """
    raw = np.asarray(values)
    if raw.dtype.kind == "b" or raw.dtype in (np.float64, np.float32, np.float16):
        return raw.astype(np.float64)
    if raw.dtype.kind in "iu" and (raw.size == 0 or max(int(raw.max()), -int(raw.min())) <= 2**53):
        return raw.astype(np.float64)
    if raw.dtype.kind not in "iuO":
        raise invalid("values", "real numbers that float64, integers or Fractions hold", values)
    return np.array([_real(value) for value in raw.ravel().tolist()], dtype=object).reshape(raw.shape)


def _real(value: Any) -> float | Fraction:
    if isinstance(value, (bool, np.bool_, float, np.floating)) and not isinstance(value, np.longdouble):
        return float(value)
    if isinstance(value, (int, np.integer, Fraction)):
        return Fraction(int(value)) if not isinstance(value, Fraction) else value
    raise invalid("values", "real numbers that float64, integers or Fractions hold", value)
