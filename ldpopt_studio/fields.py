"""Readers of the fields that a page sends. An error names its field and has the package's message."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.values.distribution import Array, distribution, from_counts, number

T = TypeVar("T")
State = Mapping[str, object]
Report = Callable[[float], object]

_ABSENT = object()


class FieldError(InvalidInput):
    """Bad input in the field `field` of a page. The message says which value was expected."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


def field_error(name: str, expected: str, got: object) -> FieldError:
    """Return the error for a field; the message has only the last part of a dotted name."""
    return FieldError(name, str(invalid(name.rpartition(".")[2], expected, got)))


@contextmanager
def field(name: str) -> Iterator[None]:
    """Convert errors inside the block to errors of the field `name`.

    Errors that name another field are unchanged.
    """
    try:
        yield
    except FieldError:
        raise
    except InvalidInput as error:
        raise FieldError(name, str(error)) from None


def take(state: State, name: str, read: Callable[[Any, str], T], default: Any = _ABSENT, prefix: str = "") -> T | Any:
    """Read the value of a field.

    Parameters
    ----------
    state : mapping
        Fields by name.
    name : str
        Name of the field.
    read : function
        Reader, called as ``read(value, name)``.

    default : object, optional
        Returned if the field is absent, null or blank text; otherwise such a field is an error.

    prefix : str
        Prepended to the name in errors.
    """
    value = state.get(name)
    if value is None or (isinstance(value, str) and not value.strip()):
        if default is _ABSENT:
            raise FieldError(prefix + name, f"{name}: a value is required")
        return default
    with field(prefix + name):
        return read(value, name)


def of_type(value_type: type[T], expected: str, max_length: int = 2**53) -> Callable[[Any, str], T]:
    """Return a reader for values of one type, at most `max_length` characters or entries."""

    def read(value: Any, name: str) -> T:
        if not isinstance(value, value_type):
            raise invalid(name, expected, Phrase(type(value).__name__))
        if isinstance(value, (str, list)) and len(value) > max_length:
            unit = "characters" if isinstance(value, str) else "entries"
            raise invalid(name, f"at most {max_length} {unit}", len(value))
        return value

    return read


raw_text, items = of_type(str, "text"), of_type(list, "a list", 100_000)
flag, mapping = of_type(bool, "true or false"), of_type(dict, "an object")
_short_text = of_type(str, "text", 10_000)


def text(value: Any, name: str) -> str:
    """Read text without blanks around it."""
    return _short_text(value, name).strip()


def number_between(low: float, high: float, expected: str, integer: bool = False) -> Callable[[Any, str], Any]:
    """Return a reader for a number from `low` to `high`, an integer if `integer`."""

    def read(value: Any, name: str) -> float:
        parsed_number = number(value, name, expected)
        if not low <= parsed_number <= high or (integer and parsed_number != int(parsed_number)):
            raise invalid(name, expected, value)
        return int(parsed_number) if integer else parsed_number

    return read


positive_integer = number_between(1, 2**53, "a whole number of at least 1", integer=True)


def choice(options: Sequence[str]) -> Callable[[Any, str], str]:
    """Return a reader for one of several words."""

    def read(value: Any, name: str) -> str:
        if not isinstance(value, str) or value not in options:
            raise invalid(name, f"one of {', '.join(options)}", value)
        return value

    return read


def numbers(value: Any, name: str) -> list[float]:
    """Read a list of finite numbers; an error names the entry that is not one."""
    return [number(entry, f"{name}, entry {position}") for position, entry in enumerate(items(value, name))]


def texts(value: Any, name: str) -> tuple[str, ...]:
    """Read a list of texts."""
    return tuple(text(entry, name) for entry in items(value, name))


def probabilities(value: Any, name: str) -> Array:
    """Read a distribution: a list of numbers that sum to 1."""
    return distribution(numbers(value, name), name)


def proportions(value: Any, name: str) -> Array:
    """Read proportions or counts, and divide them by their sum."""
    return from_counts(numbers(value, name), name)


def position(count: int) -> Callable[[Any, str], int]:
    """Return a reader for a position below `count`, counted from 0."""
    return number_between(0, count - 1, f"a position from 0 to {count - 1}", integer=True)


def answer_labels(names: Sequence[str] | None, k: int, prefix: str = "") -> tuple[str, ...]:
    """Return the k labels of the answers: those in a state, or ``answer 1``, ``answer 2``, ...

    Errors name the field ``prefix + labels``.
    """
    labels = tuple(names or (f"answer {number + 1}" for number in range(k)))
    if len(labels) != k or len(set(labels)) != k:
        got = Phrase(f"{len(labels)}, {len(set(labels))} of them different")
        raise field_error(f"{prefix}labels", f"{k} different names, one for each answer", got)
    return labels


def attributes_of(thing: object, names: str) -> dict[str, Any]:
    """Select attributes by their names, which are separated by blanks."""
    return {name: getattr(thing, name) for name in names.split()}


def to_json_types(value: Any) -> Any:
    """Convert a value to types that JSON holds; infinity becomes the text ``inf``.

    Numpy's values become Python's. NaN raises `InvalidInput`.
    """
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, (np.generic, np.ndarray)):
        return to_json_types(value.tolist())
    if isinstance(value, float):
        if math.isnan(value):
            raise invalid("document", "numbers", Phrase("one that is not"))
        return value if math.isfinite(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, Mapping):
        return {str(name): to_json_types(entry) for name, entry in value.items()}
    if isinstance(value, Sequence):
        return list(map(to_json_types, value))
    return str(value)
