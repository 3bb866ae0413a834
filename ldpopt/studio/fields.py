"""Reading the fields that a page sends. An error names its field and has the package's message."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from ldpopt.distribution import Array, distribution, from_counts
from ldpopt.distribution import number as finite
from ldpopt.errors import InvalidInput, Phrase, invalid

T = TypeVar("T")
State = Mapping[str, object]

_ABSENT = object()
MAX_TEXT = 10_000
"""The most characters of a text field."""


class FieldError(InvalidInput):
    """Bad input in one field of a page: `field` is its name, and the message says what was expected.

    >>> FieldError("epsilon", "epsilon: expected a positive number, got -1").field
    'epsilon'
    """

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


def wrong(name: str, expected: str, got: object) -> FieldError:
    """The error for a field; of a name with dots, only the last part is in the message.

    >>> print(wrong("questions.0.pilot", "2 to 24 answers", 1))
    pilot: expected 2 to 24 answers, got 1
    """
    return FieldError(name, str(invalid(name.rpartition(".")[2], expected, got)))


@contextmanager
def field(name: str) -> Iterator[None]:
    """Errors inside the block belong to the field of this name, unless they name another field.

    >>> from ldpopt.distribution import positive_epsilon
    >>> try:
    ...     with field("budget"):
    ...         positive_epsilon(-1.0)
    ... except FieldError as error:
    ...     print(error.field, "|", error)
    budget | epsilon: expected a number of nats between 1e-09 and 700, got -1.0
    """
    try:
        yield
    except FieldError:
        raise
    except InvalidInput as error:
        raise FieldError(name, str(error)) from None


def take(state: State, name: str, read: Callable[[Any, str], T], default: Any = _ABSENT) -> T | Any:
    """The field's value, `read(value, name)`; `default`, if given, when the field is absent, null or empty text.

    >>> take({"n": 3}, "n", whole)
    3
    >>> take({}, "n", whole, None) is None
    True
    """
    value = state.get(name)
    if value is None or (isinstance(value, str) and not value.strip()):
        if default is _ABSENT:
            raise wrong(name, "a value", Phrase("none"))
        return default
    with field(name):
        return read(value, name)


def number(value: Any, what: str) -> float:
    """A finite number; text is refused.

    >>> number(2, "n")
    2.0
    """
    return finite(value, what)


def whole(value: Any, what: str) -> int:
    """A whole number of at least 1.

    >>> whole(7.0, "n")
    7
    """
    found = finite(value, what, "a whole number of at least 1")
    if not (1 <= found <= 2**53 and found == int(found)):
        raise invalid(what, "a whole number of at least 1", value)
    return int(found)


def text(value: Any, what: str) -> str:
    """Text of at most `MAX_TEXT` characters, without blanks around it.

    >>> text(" vote ", "name")
    'vote'
    """
    if not isinstance(value, str):
        raise invalid(what, "text", Phrase(type(value).__name__))
    if len(value) > MAX_TEXT:
        raise invalid(what, f"at most {MAX_TEXT} characters", len(value))
    return value.strip()


def flag(value: Any, what: str) -> bool:
    """True or false.

    >>> flag(False, "counts")
    False
    """
    if not isinstance(value, bool):
        raise invalid(what, "true or false", value)
    return value


def choice(options: Sequence[str]) -> Callable[[Any, str], str]:
    """A reader for one of several words.

    >>> choice(["kl", "jeffreys"])("kl", "divergence")
    'kl'
    """

    def read(value: Any, what: str) -> str:
        if not isinstance(value, str) or value not in options:
            raise invalid(what, f"one of {', '.join(options)}", value)
        return value

    return read


def items(value: Any, what: str) -> list[Any]:
    """A list of at most 100,000 entries.

    >>> items([1, 2], "p0")
    [1, 2]
    """
    if not isinstance(value, list):
        raise invalid(what, "a list", Phrase(type(value).__name__))
    if len(value) > 100_000:
        raise invalid(what, "at most 100000 entries", len(value))
    return value


def numbers(value: Any, what: str) -> list[float]:
    """A list of finite numbers; the error says which entry is not one.

    >>> numbers([0.5, 0.5], "p0")
    [0.5, 0.5]
    """
    return [finite(one, f"{what}, entry {at}") for at, one in enumerate(items(value, what))]


def texts(value: Any, what: str) -> tuple[str, ...]:
    """A list of texts.

    >>> texts(["no ", "yes"], "labels")
    ('no', 'yes')
    """
    return tuple(text(one, what) for one in items(value, what))


def law(value: Any, what: str) -> Array:
    """A distribution, a list of numbers that sum to 1.

    >>> law([0.5, 0.5], "p0")
    array([0.5, 0.5])
    """
    return distribution(numbers(value, what), what)


def shares(value: Any, what: str) -> Array:
    """Shares or counts, which are divided by their sum.

    >>> shares([3, 7], "pilot")
    array([0.3, 0.7])
    """
    return from_counts(numbers(value, what), what)


def position(count: int) -> Callable[[Any, str], int]:
    """A reader for a position below `count`, counted from 0.

    >>> position(3)(2, "answer")
    2
    """

    def read(value: Any, what: str) -> int:
        if isinstance(value, bool) or value not in range(count):
            raise invalid(what, f"a position from 0 to {count - 1}", value)
        return int(value)

    return read


def names_of(given: Sequence[str] | None, k: int, place: str = "") -> tuple[str, ...]:
    """The k names that a state gives to answers, by default ``answer 1``, ...; errors are about ``place + labels``.

    >>> names_of(None, 2)
    ('answer 1', 'answer 2')
    """
    labels = tuple(given or (f"answer {at + 1}" for at in range(k)))
    if len(labels) != k or len(set(labels)) != k:
        got = Phrase(f"{len(labels)}, {len(set(labels))} of them different")
        raise wrong(f"{place}labels", f"{k} different names, one for each answer", got)
    return labels


def mapping(value: Any, what: str) -> dict[str, Any]:
    """A JSON object.

    >>> mapping({"a": 1}, "state")
    {'a': 1}
    """
    if not isinstance(value, dict):
        raise invalid(what, "an object", Phrase(type(value).__name__))
    return value


def plain(value: Any) -> Any:
    """A value in a form that JSON can hold: numpy's numbers and arrays as Python's, and infinity as the text ``inf``.

    NaN is `InvalidInput`, so that no page ever shows it.

    >>> plain({"a": np.array([1.0, np.inf]), "b": (True, np.int64(2))})
    {'a': [1.0, 'inf'], 'b': [True, 2]}
    """
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, (np.bool_, np.integer, np.floating)):
        return plain(value.item())
    if isinstance(value, float):
        if math.isnan(value):
            raise invalid("document", "numbers", Phrase("one that is not"))
        return value if math.isfinite(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, Sequence):
        return [plain(one) for one in value]
    return str(value)
