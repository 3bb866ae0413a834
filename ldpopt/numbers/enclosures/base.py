"""Shared parts of both arithmetics: the enclosure, whose comparison raises an error, and products of matrices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from ldpopt.errors import invalid
from ldpopt.numbers.rounding import SUBNORMAL, ULP

__all__ = ["INF", "LARGEST_FLOAT", "Arithmetic", "Array", "Enclosure", "Values", "product", "real_array"]

LARGEST_FLOAT = float(np.finfo(np.float64).max)
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
        """Enclose the numbers themselves, each taken as exact; NaN encloses every number."""

    @abstractmethod
    def between(self, lower: Values, upper: Values) -> Enclosure:
        """Enclose numbers known to lie from `lower` to `upper`; a NaN end is unbounded."""

    @abstractmethod
    def concatenate(self, parts: Sequence[Values], axis: int = 0) -> Enclosure:
        """Join the parts in one array along an existing axis."""

    @abstractmethod
    def where(self, mask: npt.ArrayLike, yes: Values, no: Values) -> Enclosure:
        """Select `yes` where the boolean `mask` holds, else `no`."""

    def zeros(self, shape: int | tuple[int, ...]) -> Enclosure:
        """Return exact zeros."""
        return self.of(np.zeros(shape))

    def stack(self, parts: Sequence[Values], axis: int = 0) -> Enclosure:
        """Join parts of one shape along a new axis."""
        enclosures = [self.of(part) for part in parts]
        place = axis % (enclosures[0].ndim + 1)
        return self.concatenate([part[(slice(None),) * place + (None,)] for part in enclosures], place)


class Enclosure(ABC):
    """An array of real numbers, each known to lie between two ends.

    Operations accept an `Enclosure` of the same arithmetic, Python numbers and arrays of exact numbers, and broadcast.
    A function is taken on the part of the enclosure inside its domain. An undefined value (inf - inf, 0 * inf, division
    by an interval that contains zero, NaN) encloses every number. Comparisons raise TypeError: ask `certainly_at_most`.
    """

    __slots__ = ()
    __array_ufunc__ = None  # so that `array * enclosure` comes to the enclosure, not to numpy

    @property
    @abstractmethod
    def arithmetic(self) -> Arithmetic:
        """The arithmetic that made it."""

    @abstractmethod
    def _float64(self, upper: bool) -> Array:
        """The lower or upper ends, rounded outward; a new array."""

    @property
    def lower(self) -> Any:
        """float64 not above the numbers: an array, or a float for a single number."""
        return self._float64(False) if self.shape else float(self._float64(False))

    @property
    def upper(self) -> Any:
        """float64 not below the numbers: an array, or a float for a single number."""
        return self._float64(True) if self.shape else float(self._float64(True))

    @property
    @abstractmethod
    def ends(self) -> tuple[Enclosure, Enclosure]:
        """The two ends as enclosures of the same arithmetic, without width."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The shape, as that of numpy arrays."""

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
    def _product(self, other: Any) -> Enclosure:
        """The product with another matrix of the same arithmetic."""

    @abstractmethod
    def sum(self, axis: int | None = None) -> Enclosure:
        """Sum all numbers, or sum along an axis."""

    @abstractmethod
    def cumsum(self, axis: int = 0) -> Enclosure:
        """Compute the running sums along an axis."""

    @abstractmethod
    def _increasing(self, function: str) -> Enclosure:
        """exp, expm1, log or log1p."""

    def exp(self) -> Enclosure:
        """Compute the exponential."""
        return self._increasing("exp")

    def expm1(self) -> Enclosure:
        """Compute exp(x) - 1, with all digits near zero."""
        return self._increasing("expm1")

    def log(self) -> Enclosure:
        """Compute the natural logarithm; unbounded below unless the lower end is positive."""
        return self._increasing("log")

    def log1p(self) -> Enclosure:
        """Compute log(1 + x), with all digits near zero."""
        return self._increasing("log1p")

    @abstractmethod
    def sqrt(self) -> Enclosure:
        """Compute the square root."""

    def square(self) -> Enclosure:
        """Compute x * x, never negative."""
        size: Enclosure = self.abs()
        return size * size

    @abstractmethod
    def abs(self) -> Enclosure:
        """Compute the absolute value."""

    @abstractmethod
    def maximum(self, other: Values) -> Enclosure:
        """Compute the larger of two numbers, entry by entry."""

    @abstractmethod
    def max(self, axis: int | None = None) -> Enclosure:
        """Compute the largest number, or the largest along an axis; an empty array is an error."""

    def minimum(self, other: Values) -> Enclosure:
        """Compute the smaller of two numbers, entry by entry."""
        return -((-self).maximum(-self.arithmetic.of(other)))

    def min(self, axis: int | None = None) -> Enclosure:
        """Compute the smallest number, or the smallest along an axis."""
        return -((-self).max(axis))

    def positive(self) -> Enclosure:
        """Compute max(x, 0)."""
        return self.maximum(0.0)

    def power(self, exponent: float) -> Enclosure:
        """Compute x**exponent for positive x and an exact real exponent."""
        if exponent == 1:
            return self
        return (self.log() * exponent).exp()

    def certainly_at_most(self, other: Values) -> Any:
        """Return True where it is proved that a number is at most its counterpart."""
        holds = np.asarray(self.upper) <= np.asarray(self.arithmetic.of(other).lower)
        return holds if holds.ndim else bool(holds)

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
        """Return the same numbers in another shape."""
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

    def __matmul__(self, other: Values) -> Enclosure:
        right = self.arithmetic.of(other)
        if not (1 <= self.ndim <= 2 and 1 <= right.ndim <= 2 and self.shape[-1] == right.shape[0]):
            raise ValueError(f"matmul: shapes {self.shape} and {right.shape} do not fit")
        columns = (self[None] if self.ndim == 1 else self)._product(right[:, None] if right.ndim == 1 else right)
        return columns.reshape(self.shape[:-1] + right.shape[1:])

    def __rmatmul__(self, other: Values) -> Enclosure:
        return self.arithmetic.of(other) @ self

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"an enclosure is frozen; cannot set {name}")

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


def real_array(values: Any) -> npt.NDArray[Any]:
    """Return `values` as float64, else as an object array of floats and Fractions."""
    # `InvalidInput` for values that are not real numbers.
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


INF = float("inf")


def product(low_a: Array, high_a: Array, low_b: Array, high_b: Array) -> tuple[Array, Array]:
    """Compute the ends of the product of two matrices, each given by its ends.

    The matrices are represented by midpoints and radii. (A + R)(B + S), |R| <= r, |S| <= s, is within |A| s + r (|B| +
    s) of A B. The computed A B is within n u / (1 - n u)
    |A| |B| of it, and n/2 times the smallest float where products underflow [HIG, section 3.5]. The products of the
    bound, of non-negative matrices, are too small by the same errors at most, which the factor on the bound makes good.
    """
    count = low_a.shape[1]
    open_row = np.asarray(~(np.isfinite(low_a) & np.isfinite(high_a)).all(axis=1))
    open_column = np.asarray(~(np.isfinite(low_b) & np.isfinite(high_b)).all(axis=0))
    unknown = open_row[:, None] | open_column
    if unknown.any():
        low_a, high_a = (np.where(open_row[:, None], 0.0, end) for end in (low_a, high_a))
        low_b, high_b = (np.where(open_column, 0.0, end) for end in (low_b, high_b))
    with np.errstate(all="ignore"):
        (a, r), (b, s) = _halves(low_a, high_a), _halves(low_b, high_b)
        size = np.abs(a) @ np.abs(b)
        error = size * ((count + 2) * ULP)
        if s is not None:
            error = error + np.abs(a) @ s
        if r is not None:
            error = error + r @ (np.abs(b) if s is None else np.abs(b) + s)
        error = error * (1 + 4 * (count + 8) * ULP) + 8 * (count + 1) * SUBNORMAL
        middle = a @ b
        low, high = np.nextafter(middle - error, -INF), np.nextafter(middle + error, INF)
    if (low_a >= 0).all() and (low_b >= 0).all():
        low = np.maximum(low, 0.0)
    if (size == 0).any():  # exactly zero where no product has two factors that may differ from zero
        is_nonzero = [((low != 0) | (high != 0)).astype(np.float64) for low, high in ((low_a, high_a), (low_b, high_b))]
        is_zero = np.asarray(is_nonzero[0] @ is_nonzero[1] == 0)
        low, high = np.where(is_zero, 0.0, low), np.where(is_zero, 0.0, high)
    return np.where(unknown, -INF, low), np.where(unknown, INF, high)


def _halves(low: Array, high: Array) -> tuple[Array, Array | None]:
    """Midpoints and radii, which together cover the ends; no radii where all ends meet."""
    if low is high or np.array_equal(low, high):
        return low, None
    middle = low / 2 + high / 2
    radius = np.nextafter(np.maximum(high - middle, middle - low), INF)
    return np.where(low == high, low, middle), np.where(low == high, 0.0, radius)
