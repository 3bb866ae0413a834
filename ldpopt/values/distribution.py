"""Probability vectors and numbers from the caller: checked once, where they enter. Vectors are read-only afterwards.

Also bins with round edges for numbers, and generators and simulated reports for simulations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ldpopt.errors import Phrase, invalid
from ldpopt.numbers.rounding import ULP
from ldpopt.numbers.tolerances import MAXIMUM_EPSILON, MINIMUM_EPSILON, ROW_SUM
from ldpopt.values.labels import Label, by_label

__all__ = [
    "DEFAULT_BINS",
    "MOST_CATEGORIES",
    "Array",
    "Checked",
    "Index",
    "Reader",
    "Rng",
    "at_least_two",
    "between",
    "bin_labels",
    "distribution",
    "finite_array",
    "from_counts",
    "generator",
    "nonnegative",
    "number",
    "number_text",
    "number_up_to",
    "open_unit",
    "optional",
    "positive",
    "positive_epsilon",
    "positive_integer",
    "proportional",
    "random",
    "round_edges",
    "simulate",
    "stochastic",
    "unit_interval",
    "unwrap_scalar",
]  # fmt: skip

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]
Reader = Callable[[Any, str], Any]
"""From what was given, and its name, to the value in its final form; `InvalidInput` where there is none."""


def finite_array(values: Any, name: str, ndim: int) -> Array:
    """Return `values` as a new float64 array of `ndim` dimensions with finite entries."""
    try:
        raw = np.asarray(values)
        if raw.dtype.kind not in "iufb":
            raw = np.asarray(values, dtype=np.float64) if raw.dtype.kind == "O" else raw
        if raw.dtype.kind not in "iufb":
            raise ValueError
        array = np.array(raw, dtype=np.float64, order="C")  # sums must not depend on how the entries are stored
    except (TypeError, ValueError, OverflowError):
        kept_labels = " (a pandas Series keeps its labels)" if isinstance(values, Mapping) else ""
        raise invalid(name, f"an array of numbers{kept_labels}", values) from None
    if array.ndim != ndim:
        raise invalid(name, f"{ndim} dimension{'s' if ndim > 1 else ''}", Phrase(f"shape {array.shape}"))
    finite = np.isfinite(array)
    if not finite.all():
        entry = tuple(int(i) for i in np.argwhere(~finite)[0])
        raise invalid(name, "finite numbers", array[entry], f"entry {entry[0] if ndim == 1 else entry}")
    return array


def stochastic(matrix: Any, name: str) -> Array:
    """Return a new float64 array (k, m) with non-negative rows that sum to one."""
    # The sums may differ from one by `tolerances.ROW_SUM`.
    array = finite_array(matrix, name, 2)
    if not array.size:
        raise invalid(name, "at least one input and one output", Phrase(f"shape {array.shape}"))
    if array.min() < 0:
        x, y = (int(i) for i in np.unravel_index(int(array.argmin()), array.shape))
        raise invalid(name, "non-negative entries", array[x, y], f"row {x}, column {y}")
    with np.errstate(over="ignore"):
        sums = array.sum(axis=1)
    worst = int(np.argmax(np.abs(sums - 1)))
    if abs(sums[worst] - 1) > ROW_SUM:
        raise invalid(name, f"rows that sum to 1 within {ROW_SUM:g}", float(sums[worst]), f"row {worst}")
    return array


def proportional(matrix: Array) -> list[list[int]]:
    """Group the positions of proportional columns, by twelve digits; zero columns are omitted."""
    mass = matrix.sum(axis=0)
    used_columns = np.flatnonzero(mass > 0)
    positions_by_direction: dict[bytes, list[int]] = {}
    # Twelve significant digits group columns that differ by the rounding of their own construction.
    mantissa, exponent = np.frexp(matrix[:, used_columns] / mass[used_columns])
    mantissa = np.round(mantissa, 12)
    is_rounded_up = mantissa == 1
    mantissa, exponent = np.where(is_rounded_up, 0.5, mantissa), exponent + is_rounded_up
    for position, y in enumerate(used_columns):
        positions_by_direction.setdefault(mantissa[:, position].tobytes() + exponent[:, position].tobytes(), []).append(
            int(y)
        )
    return list(positions_by_direction.values())


def distribution(
    p: Any, name: str = "distribution", size: int | None = None, labels: Sequence[Label] | None = None
) -> Array:
    """Return a read-only probability vector of shape (k,).

    Entries must be non-negative and sum to 1 within `tolerances.ROW_SUM`. If the sum differs from 1 by more than
    rounding, the entries are divided by it. Where `labels` are given, a pandas Series is put into their order by its
    index. Raises `InvalidInput` otherwise, or if `size` is given and is not k.
    """
    array = finite_array(by_label(p, labels, name), name, 1)
    if size is not None and len(array) != size:
        raise invalid(name, f"{size} entries", len(array))
    if len(array) == 0:
        raise invalid(name, "at least one entry", Phrase("an empty array"))
    if array.min() < 0:
        smallest = int(array.argmin())
        raise invalid(name, "non-negative entries", float(array[smallest]), f"entry {smallest}")
    total = _sum(array)
    if abs(total - 1) > ROW_SUM:
        raise invalid(name, f"entries that sum to 1 within {ROW_SUM:g} (divide counts by their sum)", total)
    if abs(total - 1) > 2 * ULP:
        array /= total
    array.setflags(write=False)
    return array


def _sum(array: Array) -> float:
    """The correctly rounded sum of non-negative floats; inf where it exceeds them."""
    try:
        return math.fsum(array.tolist())
    except OverflowError:
        return math.inf


def from_counts(counts: Any, name: str = "counts") -> Array:
    """Compute the proportions of non-negative `counts` (or weights), shape (k,)."""
    array = finite_array(counts, name, 1)
    if array.size == 0 or array.min() < 0 or array.max() <= 0:
        raise invalid(name, "non-negative counts with a positive sum", counts)
    array = np.ldexp(array, -math.frexp(array.max())[1])  # so that the sum cannot overflow; powers of two round nothing
    return distribution(array / math.fsum(array), name)


def number(value: Any, name: str, expected: str = "a finite number", low: float = -math.inf) -> float:
    """Return `value` as a finite float of at least `low`."""
    try:
        if isinstance(value, (str, bytes, bool)):
            raise TypeError
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        raise invalid(name, expected, value) from None
    if not (math.isfinite(result) and result >= low):
        raise invalid(name, expected, result)
    return result


def positive_epsilon(epsilon: Any, name: str = "epsilon") -> float:
    """Return `epsilon` in nats as a float within the representable range of exp(epsilon)."""
    value = number(epsilon, name, "a positive finite number of nats")
    if not MINIMUM_EPSILON <= value <= MAXIMUM_EPSILON:
        raise invalid(name, f"a number of nats between {MINIMUM_EPSILON:g} and {MAXIMUM_EPSILON:g}", value)
    return value


def nonnegative(value: Any, name: str, infinite: bool = False) -> float:
    """Return `value` as a float of at least 0; inf is allowed if `infinite`."""
    if infinite and isinstance(value, float) and value == math.inf:
        return math.inf
    return number(value, name, "a non-negative number" if infinite else "a non-negative finite number", 0.0)


def between(value: Any, name: str, expected: str, low: float, high: float, ends: str = "[]") -> float:
    """Return `value` as a finite float between two ends; a round bracket excludes an end."""
    result = number(value, name, expected, low)
    if result > high or (result == low and ends[0] == "(") or (result == high and ends[1] == ")"):
        raise invalid(name, expected, result)
    return result


def positive(value: Any, name: str) -> float:
    """Return `value` as a positive finite float."""
    return between(value, name, "a positive finite number", 0.0, math.inf, "()")


def unit_interval(value: Any, name: str) -> float:
    """Return `value` as a float in [0, 1]."""
    return between(value, name, "a number in [0, 1]", 0.0, 1.0)


def open_unit(value: Any, name: str) -> float:
    """Return `value` as a float strictly between 0 and 1."""
    return between(value, name, "a number strictly between 0 and 1", 0.0, 1.0, "()")


def number_up_to(value: Any, name: str, high: float = 1) -> float:
    """Return `value` as a float above 0 and at most `high`."""
    return between(value, name, f"a number in (0, {high:g}]", 0.0, high, "(]")


def positive_integer(value: Any, name: str, minimum: int = 1, maximum: int | None = None) -> int:
    """Return `value` as an int from `minimum` to `maximum`; floats are rejected."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < minimum:
        raise invalid(name, f"an integer of at least {minimum}", value)
    if maximum is not None and value > maximum:
        raise invalid(name, f"an integer of at most {maximum}", Phrase("a larger one"))
    return int(value)


def at_least_two(value: Any, name: str = "k") -> int:
    """Return `value` as an int of at least 2."""
    return positive_integer(value, name, 2)


def one_or_several(values: Any, name: str) -> list[Any]:
    """List the values of an iterable, or one number; the values are not checked."""
    if isinstance(values, Iterable) and not isinstance(values, (str, bytes)):
        return list(values)
    if isinstance(values, (int, float, np.number)) or (isinstance(values, np.ndarray) and values.ndim == 0):
        return [values]
    raise invalid(name, "a number, or several in a list", values)


def optional(read: Reader) -> Reader:
    """Return the reader of a value that may be None."""
    return lambda value, name: None if value is None else read(value, name)


def unwrap_scalar(value: Any) -> Any:
    """Convert a zero-dimensional array to a Python float; other arrays are unchanged."""
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


Rng = int | np.random.Generator | None
"""What `rng` may be wherever something is simulated: a generator, the seed of one, or None."""

_CHUNK_SIZE = 1 << 14
_MAX_GUIDE_CELLS = 1 << 18
"""Number of cells of a guide table that fit into the cache."""


def generator(rng: Rng, seed: int | None = None) -> np.random.Generator:
    """Return the generator for `rng`: itself, or one from an integer seed or `seed`."""
    if isinstance(rng, np.random.Generator):
        return rng
    if rng is not None and (isinstance(rng, bool) or not isinstance(rng, (int, np.integer)) or rng < 0):
        raise invalid("rng", "a numpy.random.Generator, a seed (an integer of at least 0) or None", type(rng).__name__)
    return np.random.default_rng(seed if rng is None else int(rng))


def random(rng: Rng, name: str) -> Rng:
    """Check that `generator` accepts `rng`, and return it."""
    generator(rng)
    return rng


def simulate(matrix: Array, x: npt.NDArray[np.integer[Any]], rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Draw report positions for answer positions `x` of any shape.

    A report is the number of cumulative probabilities that are at most a uniform u. A guide table over the first bits
    of u decides nearly all reports. Where a cumulative probability lies in the cell, they are compared.
    """
    k, m = matrix.shape
    sums = np.cumsum(matrix, axis=1)
    steps = np.minimum(sums / sums[:, -1:], 1.0)
    steps[:, -1] = 1.0
    answers = x.astype(np.intp, copy=False).ravel()
    reports = np.empty(len(answers), np.intp)
    cells = min(_MAX_GUIDE_CELLS, 2 * len(answers)) // k
    bits = max(0, min(12, cells.bit_length() - 1))
    guide = _guide(steps, bits) if 1 << bits >= m else None
    cell = np.empty(min(_CHUNK_SIZE, len(answers)), np.intp)
    for start in range(0, len(answers), _CHUNK_SIZE):
        row, y = answers[start : start + _CHUNK_SIZE], reports[start : start + _CHUNK_SIZE]
        u, c = rng.random(len(row)), cell[: len(row)]
        if guide is None:
            y[:] = _compare(steps, row, u)
            continue
        np.multiply(u, float(1 << bits), out=c, casting="unsafe")  # exact, then truncated
        c += row << bits
        np.take(guide, c, out=y, mode="clip")  # cells are in range; clipping spares a check
        crossing = np.flatnonzero(y < 0)
        y[crossing] = _compare(steps, row[crossing], u[crossing])
    return reports.reshape(x.shape)


def _guide(steps: Array, bits: int) -> npt.NDArray[np.intp]:
    """The report for every row and cell of u, or -1 where a step of the row lies inside the cell."""
    edges = np.arange((1 << bits) + 1) / (1 << bits)
    guides = np.empty((len(steps), 1 << bits), np.intp)
    for row, guide in zip(steps, guides, strict=True):
        first, last = np.searchsorted(row, edges[:-1], "right"), np.searchsorted(row, edges[1:], "left")
        guide[:] = np.where(first == last, first, -1)
    return guides.ravel()


def _compare(steps: Array, rows: npt.NDArray[np.intp], u: Array) -> npt.NDArray[np.intp]:
    """The number of steps of each row that are at most u, by bisection."""
    low, high = np.zeros(len(rows), np.intp), np.full(len(rows), steps.shape[1] - 1, np.intp)
    for _ in range(int(steps.shape[1]).bit_length()):
        middle = (low + high) >> 1
        is_above = (steps[rows, middle] <= u) & (low < high)
        low, high = np.where(is_above, middle + 1, low), np.where(is_above, high, middle)
    return low


DEFAULT_BINS = 6
MOST_CATEGORIES = 25
"""Largest number of proposed bins or answers; more need many more respondents."""


def round_edges(numbers: Array, bins: int) -> tuple[float, ...]:
    """Compute rising round edges of about `bins` bins with equally many of `numbers`, (n,)."""
    if not 2 <= bins <= MOST_CATEGORIES:
        raise invalid("bins", f"2 to {MOST_CATEGORIES} of them, or their edges", bins)
    quantiles = np.quantile(numbers, np.arange(1, bins) / bins)
    low, high = np.quantile(numbers, [0.02, 0.98])
    if not high > low:
        return ()
    size = (high - low) / bins
    ten = 10.0 ** math.floor(math.log10(size))
    for step in (factor * ten for factor in (5.0, 2.5, 2.0, 1.0, 0.5, 0.1) if 1e-300 <= factor * ten <= size):
        edges = np.unique(np.round(quantiles / step) * step)
        edges = edges[(edges > numbers.min()) & (edges <= numbers.max())]
        if len(edges) >= min(bins - 1, 3):
            return tuple(float(f"{edge:.12g}") for edge in edges)
    return tuple(float(f"{edge:.6g}") for edge in np.unique(quantiles) if edge > numbers.min())


def bin_labels(edges: Sequence[float], is_integer: bool) -> list[str]:
    """List the names of the m + 1 bins between m edges, such as 'under 20', '20 to 39'."""
    is_integer = is_integer and all(edge == math.floor(edge) for edge in edges)
    labels = [f"under {number_text(edges[0])}"]
    for low, high in pairwise(edges):
        if is_integer:
            labels.append(number_text(low) if high - low == 1 else f"{number_text(low)} to {number_text(high - 1)}")
        else:
            labels.append(f"{number_text(low)} to under {number_text(high)}")
    return [*labels, f"{number_text(edges[-1])} and more"]


def number_text(value: float) -> str:
    """Format a number: integers without decimals, others with six digits."""
    return str(int(value)) if value == math.floor(value) and abs(value) < 1e15 else f"{value:.6g}"
