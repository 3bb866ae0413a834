"""Probability vectors and numbers from the caller: checked once, where they enter. Vectors are read-only afterwards."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ldpopt.errors import Phrase, invalid
from ldpopt.numbers.rounding import ULP
from ldpopt.numbers.tolerances import MAXIMUM_EPSILON, MINIMUM_EPSILON, ROW_SUM
from ldpopt.values.labels import Label, by_label

__all__ = [
    "Array", "Checked", "Index", "Reader", "at_least_two", "between", "distribution", "finite_array", "from_counts",
    "nonnegative", "number", "number_up_to", "open_unit", "optional", "plain", "positive", "positive_epsilon",
    "positive_integer", "proportional", "stochastic", "unit_interval",
]  # fmt: skip

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]
Reader = Callable[[Any, str], Any]
"""From what was given, and its name, to the value in its final form; `InvalidInput` where there is none."""


def finite_array(values: Any, what: str, ndim: int) -> Array:
    """`values` as a new float64 array of `ndim` dimensions with finite entries."""
    try:
        raw = np.asarray(values)
        if raw.dtype.kind not in "iufb":
            raw = np.asarray(values, dtype=np.float64) if raw.dtype.kind == "O" else raw
        if raw.dtype.kind not in "iufb":
            raise ValueError
        array = np.array(raw, dtype=np.float64, order="C")  # sums must not depend on how the entries are stored
    except (TypeError, ValueError, OverflowError):
        raise invalid(what, "an array of numbers", values) from None
    if array.ndim != ndim:
        raise invalid(what, f"{ndim} dimension{'s' if ndim > 1 else ''}", Phrase(f"shape {array.shape}"))
    finite = np.isfinite(array)
    if not finite.all():
        entry = tuple(int(i) for i in np.argwhere(~finite)[0])
        raise invalid(what, "finite numbers", array[entry], f"entry {entry[0] if ndim == 1 else entry}")
    return array


def stochastic(matrix: Any, what: str) -> Array:
    """A new float64 array (k, m) with non-negative rows that sum to one within `tolerances.ROW_SUM`."""
    array = finite_array(matrix, what, 2)
    if not array.size:
        raise invalid(what, "at least one input and one output", Phrase(f"shape {array.shape}"))
    if array.min() < 0:
        x, y = (int(i) for i in np.unravel_index(int(array.argmin()), array.shape))
        raise invalid(what, "non-negative entries", array[x, y], f"row {x}, column {y}")
    sums = array.sum(axis=1)
    worst = int(np.argmax(np.abs(sums - 1)))
    if abs(sums[worst] - 1) > ROW_SUM:
        raise invalid(what, f"rows that sum to 1 within {ROW_SUM:g}", float(sums[worst]), f"row {worst}")
    return array


def proportional(matrix: Array) -> list[list[int]]:
    """The positions of the columns in groups of proportional ones, by twelve digits; columns of zeros are left out."""
    mass = matrix.sum(axis=0)
    used = np.flatnonzero(mass > 0)
    parts: dict[bytes, list[int]] = {}
    # Twelve significant digits group columns that differ by the rounding of their own construction.
    mantissa, exponent = np.frexp(matrix[:, used] / mass[used])
    mantissa = np.round(mantissa, 12)
    carry = mantissa == 1
    mantissa, exponent = np.where(carry, 0.5, mantissa), exponent + carry
    for position, y in enumerate(used):
        parts.setdefault(mantissa[:, position].tobytes() + exponent[:, position].tobytes(), []).append(int(y))
    return list(parts.values())


def distribution(
    p: Any, what: str = "distribution", size: int | None = None, labels: Sequence[Label] | None = None
) -> Array:
    """A read-only probability vector of shape (k,).

    Entries must be non-negative and sum to 1 within `tolerances.ROW_SUM`. If the sum differs from 1 by more than
    rounding, the entries are divided by it. Where `labels` are given, a pandas Series is put into their order by its
    index. Raises `InvalidInput` otherwise, or if `size` is given and is not k.
    """
    array = finite_array(by_label(p, labels, what), what, 1)
    if size is not None and len(array) != size:
        raise invalid(what, f"{size} entries", len(array))
    if len(array) == 0:
        raise invalid(what, "at least one entry", Phrase("none"))
    if array.min() < 0:
        least = int(array.argmin())
        raise invalid(what, "non-negative entries", float(array[least]), f"entry {least}")
    total = math.fsum(array.tolist())
    if abs(total - 1) > ROW_SUM:
        raise invalid(what, f"entries that sum to 1 within {ROW_SUM:g} (divide counts by their sum)", total)
    if abs(total - 1) > 2 * ULP:
        array /= total
    array.setflags(write=False)
    return array


def from_counts(counts: Any, what: str = "counts") -> Array:
    """The shares that non-negative `counts` (or weights) have in their sum, shape (k,)."""
    array = finite_array(counts, what, 1)
    if array.size == 0 or array.min() < 0 or array.max() <= 0:
        raise invalid(what, "non-negative counts with a positive sum", counts)
    array = np.ldexp(array, -math.frexp(array.max())[1])  # so that the sum cannot overflow; powers of two round nothing
    return distribution(array / math.fsum(array), what)


def number(value: Any, what: str, expected: str = "a finite number", low: float = -math.inf) -> float:
    """`value` as a finite float of at least `low`."""
    try:
        if isinstance(value, (str, bytes, bool)):
            raise TypeError
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        raise invalid(what, expected, value) from None
    if not (math.isfinite(result) and result >= low):
        raise invalid(what, expected, result)
    return result


def positive_epsilon(epsilon: Any, what: str = "epsilon") -> float:
    """`epsilon` in nats as a float. It must lie in the range in which floats can represent the ratio exp(epsilon)."""
    value = number(epsilon, what, "a positive finite number of nats")
    if not MINIMUM_EPSILON <= value <= MAXIMUM_EPSILON:
        raise invalid(what, f"a number of nats between {MINIMUM_EPSILON:g} and {MAXIMUM_EPSILON:g}", value)
    return value


def nonnegative(value: Any, what: str, infinite: bool = False) -> float:
    """`value` as a float of at least 0; inf is allowed if `infinite`."""
    if infinite and isinstance(value, float) and value == math.inf:
        return math.inf
    return number(value, what, "a non-negative number" if infinite else "a non-negative finite number", 0.0)


def between(value: Any, what: str, expected: str, low: float, high: float, ends: str = "[]") -> float:
    """`value` as a finite float between two ends, of which a round bracket excludes one."""
    result = number(value, what, expected, low)
    if result > high or (result == low and ends[0] == "(") or (result == high and ends[1] == ")"):
        raise invalid(what, expected, result)
    return result


def positive(value: Any, what: str) -> float:
    """`value` as a positive finite float."""
    return between(value, what, "a positive finite number", 0.0, math.inf, "()")


def unit_interval(value: Any, what: str) -> float:
    """`value` as a float in [0, 1]."""
    return between(value, what, "a number in [0, 1]", 0.0, 1.0)


def open_unit(value: Any, what: str) -> float:
    """`value` as a float strictly between 0 and 1."""
    return between(value, what, "a number strictly between 0 and 1", 0.0, 1.0, "()")


def number_up_to(value: Any, what: str, most: float = 1) -> float:
    """`value` as a float above 0 and at most `most`."""
    return between(value, what, f"a number in (0, {most:g}]", 0.0, most, "(]")


def positive_integer(value: Any, what: str, minimum: int = 1, maximum: int | None = None) -> int:
    """`value` as an int of at least `minimum`, and at most `maximum` if given; floats are refused."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < minimum:
        raise invalid(what, f"an integer of at least {minimum}", value)
    if maximum is not None and value > maximum:
        raise invalid(what, f"an integer of at most {maximum}", Phrase("a larger one"))
    return int(value)


def at_least_two(value: Any, what: str = "k") -> int:
    """`value` as an int of at least 2."""
    return positive_integer(value, what, 2)


def optional(read: Reader) -> Reader:
    """The reader of a value that may be None."""
    return lambda value, what: None if value is None else read(value, what)


def plain(value: Any) -> Any:
    """A Python float for a zero-dimensional array."""
    array = np.asarray(value)
    return float(array) if array.ndim == 0 else array


class Checked:
    """A frozen dataclass whose fields are checked when it is made: `class Laplace(Checked, epsilon=positive_epsilon)`.

    Every keyword names a field, and is the reader of its value.
    """

    _readers: ClassVar[Mapping[str, Reader]] = {}

    def __init_subclass__(cls, **readers: Reader) -> None:
        super().__init_subclass__()
        cls._readers = {**cls._readers, **readers}

    def __post_init__(self) -> None:
        for name, read in self._readers.items():
            object.__setattr__(self, name, read(getattr(self, name), name))
