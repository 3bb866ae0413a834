"""Reading the fields that a page sends. An error names its field and has the package's message."""

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
    """Bad input in one field of a page: `field` is its name, and the message says what was expected."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


def wrong(name: str, expected: str, got: object) -> FieldError:
    """The error for a field; of a name with dots, only the last part is in the message."""
    return FieldError(name, str(invalid(name.rpartition(".")[2], expected, got)))


@contextmanager
def field(name: str) -> Iterator[None]:
    """Errors inside the block belong to the field of this name, unless they name another field."""
    try:
        yield
    except FieldError:
        raise
    except InvalidInput as error:
        raise FieldError(name, str(error)) from None


def take(state: State, name: str, read: Callable[[Any, str], T], default: Any = _ABSENT, place: str = "") -> T | Any:
    """The field's value, `read(value, name)`; `default`, if given, when the field is absent, null or empty text.

    Errors are about the field ``place + name``.
    """
    value = state.get(name)
    if value is None or (isinstance(value, str) and not value.strip()):
        if default is _ABSENT:
            raise wrong(place + name, "a value", Phrase("none"))
        return default
    with field(place + name):
        return read(value, name)


def of_type(kind: type[T], expected: str, longest: int = 2**53) -> Callable[[Any, str], T]:
    """A reader for a value of this type, and of at most this length."""

    def read(value: Any, what: str) -> T:
        if not isinstance(value, kind):
            raise invalid(what, expected, Phrase(type(value).__name__))
        if isinstance(value, (str, list)) and len(value) > longest:
            entries = "characters" if isinstance(value, str) else "entries"
            raise invalid(what, f"at most {longest} {entries}", len(value))
        return value

    return read


raw_text, items = of_type(str, "text"), of_type(list, "a list", 100_000)
flag, mapping = of_type(bool, "true or false"), of_type(dict, "an object")
_short_text = of_type(str, "text", 10_000)


def text(value: Any, what: str) -> str:
    """Text without blanks around it."""
    return _short_text(value, what).strip()


def within(low: float, high: float, expected: str, integer: bool = False) -> Callable[[Any, str], Any]:
    """A reader for a number, perhaps a whole one, from `low` to `high`."""

    def read(value: Any, what: str) -> float:
        read_number = number(value, what, expected)
        if not low <= read_number <= high or (integer and read_number != int(read_number)):
            raise invalid(what, expected, value)
        return int(read_number) if integer else read_number

    return read


whole = within(1, 2**53, "a whole number of at least 1", integer=True)


def choice(options: Sequence[str]) -> Callable[[Any, str], str]:
    """A reader for one of several words."""

    def read(value: Any, what: str) -> str:
        if not isinstance(value, str) or value not in options:
            raise invalid(what, f"one of {', '.join(options)}", value)
        return value

    return read


def numbers(value: Any, what: str) -> list[float]:
    """A list of finite numbers; the error says which entry is not one."""
    return [number(entry, f"{what}, entry {place}") for place, entry in enumerate(items(value, what))]


def texts(value: Any, what: str) -> tuple[str, ...]:
    """A list of texts."""
    return tuple(text(entry, what) for entry in items(value, what))


def law(value: Any, what: str) -> Array:
    """A distribution, a list of numbers that sum to 1."""
    return distribution(numbers(value, what), what)


def shares(value: Any, what: str) -> Array:
    """Shares or counts, which are divided by their sum."""
    return from_counts(numbers(value, what), what)


def position(count: int) -> Callable[[Any, str], int]:
    """A reader for a position below `count`, counted from 0."""
    return within(0, count - 1, f"a position from 0 to {count - 1}", integer=True)


def names_of(given: Sequence[str] | None, k: int, place: str = "") -> tuple[str, ...]:
    """The k names that a state gives to answers, by default ``answer 1``, ...; errors are about ``place + labels``."""
    labels = tuple(given or (f"answer {number + 1}" for number in range(k)))
    if len(labels) != k or len(set(labels)) != k:
        got = Phrase(f"{len(labels)}, {len(set(labels))} of them different")
        raise wrong(f"{place}labels", f"{k} different names, one for each answer", got)
    return labels


def picked(thing: object, names: str) -> dict[str, Any]:
    """The attributes of these names, which blanks separate."""
    return {name: getattr(thing, name) for name in names.split()}


def plain(value: Any) -> Any:
    """A value as JSON can hold it: numpy's as Python's, infinity as the text ``inf``; NaN is `InvalidInput`."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, (np.generic, np.ndarray)):
        return plain(value.tolist())
    if isinstance(value, float):
        if math.isnan(value):
            raise invalid("document", "numbers", Phrase("one that is not"))
        return value if math.isfinite(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, Mapping):
        return {str(name): plain(entry) for name, entry in value.items()}
    if isinstance(value, Sequence):
        return list(map(plain, value))
    return str(value)
