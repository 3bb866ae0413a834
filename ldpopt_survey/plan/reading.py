"""Define how an entry of a file becomes a category of a question, and the treatment of missing answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from ldpopt.errors import Phrase, invalid
from ldpopt.values.distribution import distribution, number
from ldpopt.values.labels import Label, as_text, from_jsonable, to_jsonable
from ldpopt.values.schema import kind
from ldpopt_survey.records import check, choice, key, listed, text

MAX_CODES = 10_000

SEPARATORS = ("", ";", ",", "|", "/")
"""What may stand between the entries of a list in a cell."""

NO_WORDS = (
    "no", "n", "false", "f", "0", "off", "unchecked", "not selected", "unselected", "nein", "falsch", "non", "faux",
    "nej", "não", "nao", "falso", "nee",
)  # fmt: skip
YES_WORDS = (
    "yes", "y", "true", "t", "1", "on", "checked", "selected", "x", "ja", "wahr", "oui", "vrai", "sí", "si", "sim",
    "verdadero",
)  # fmt: skip
"""Common spellings of the two truth values in files, in small letters."""


def truth_value(text: str) -> bool | None:
    """Return the truth value that a text spells, or None.

    >>> truth_value("TRUE"), truth_value(" No "), truth_value("maybe")
    (True, False, None)
    """
    spelling = text.strip().casefold()
    return True if spelling in YES_WORDS else False if spelling in NO_WORDS else None


def spellings_of(value: bool) -> tuple[str, ...]:
    """Return the common spellings of a truth value: small, with a capital, and in capitals."""
    words = YES_WORDS if value else NO_WORDS
    return tuple(dict.fromkeys(form(word) for word in words for form in (str, str.capitalize, str.upper)))


def _code(value: Any, place: str) -> str:
    """Return a code of a file as text, in the form of data files."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, (str, int, float)) or value != value:
        raise invalid(place, "texts or numbers", type(value).__name__)
    code = as_text(value)
    if not code.strip() or len(code) > 200:
        raise invalid(place, "texts of 1 to 200 characters", f"{len(code)} characters")
    return code


def _pairs(value: Any, place: str, expected: str) -> list[Any]:
    """Return the entries of a table, or a list of pairs unchanged."""
    pairs = list(value.items()) if isinstance(value, Mapping) else value
    if not isinstance(pairs, (list, tuple)) or any(not isinstance(p, (list, tuple)) or len(p) != 2 for p in pairs):
        raise invalid(place, expected, Phrase(kind(value)))
    return list(pairs)


def _codes(value: Any, place: str) -> tuple[tuple[str, Label], ...]:
    """Return pairs of a code and its category, from a table or from pairs, with lists for tuples."""
    pairs = _pairs(value, place, 'a table from codes to categories, { "1" = "yes" }')
    return tuple((_code(code, place), from_jsonable([to_jsonable(label)], place)[0]) for code, label in pairs)


def read_conditions(value: Any, place: str) -> tuple[tuple[str, tuple[Label, ...]], ...]:
    """Read pairs of a question's name and some of its answers, from a table or from pairs."""
    expected = 'a table from questions to lists of answers, { drug = ["yes"] }'
    answers_by_question: dict[str, tuple[Label, ...]] = {}
    for name, labels in _pairs(value, place, expected):
        if not isinstance(labels, (list, tuple)) or not labels:
            raise invalid(place, expected, Phrase(kind(labels)))
        answers_by_question[text(name, place)] = from_jsonable([to_jsonable(label) for label in labels], place)
    return tuple(answers_by_question.items())


MAX_WORDING = 500
"""The most characters of a question's wording."""


def read_wordings(value: Any, place: str) -> tuple[tuple[str, str], ...]:
    """Read pairs of a question's name and its wording, from a table or from pairs."""
    expected = f'a table from questions to printable texts of 1 to {MAX_WORDING} characters, {{ drug = "Did you?" }}'
    wording_by_question: dict[str, str] = {}
    for name, wording in _pairs(value, place, expected):
        if (
            not isinstance(wording, str)
            or not wording.strip()
            or len(wording) > MAX_WORDING
            or not wording.isprintable()
        ):
            raise invalid(place, expected, Phrase("another text" if isinstance(wording, str) else kind(wording)))
        wording_by_question[text(name, place)] = wording
    return tuple(wording_by_question.items())


def is_among(label: Label, labels: Iterable[Label]) -> bool:
    """Return True if one of the labels is equal and of the same type."""
    return any(type(label) is type(other) and label == other for other in labels)


@dataclass(frozen=True)
class Reading:
    """Rules for reading an entry of a file as a category, and the treatment of missing answers.

    codes : the category for each entry, with the entry as text: ``{"1": "yes", "2": "no"}`` or pairs.
    bins : the m - 1 rising edges between m categories of numbers; a number on an edge belongs to the category above it.
    missing_codes : entries that mean "no answer", besides an empty cell, such as -9, 99 or "refused". They are
        recognized before codes and bins.
    separator : where a cell is a list of entries, the sign between them (``;``). Each entry is then read by `codes` or
        as a category, and the answer is the last of the categories that are in the list; the first one if it is empty.
    missing_answers : how missing answers are treated; by default "counted" if the question has a category `missing`,
        and else "refuse".

    - ``"refuse"``: the file is refused.
    - ``"counted"``: they count as the category `missing`, as if it had been answered.
    - ``"category"``: the category `missing` stands for them and for nothing else. Whether somebody answered is
    protected like the answer. Shares among the people who answered are estimated, too.
    - ``"left out"``: their report is empty. Everybody sees who did not answer; given answers are protected.

    Anything else is `InvalidInput`.

    >>> Reading(bins=(1000, 2000), missing_codes=(-9,)).missing_codes
    ('-9',)
    """

    codes: tuple[tuple[str, Label], ...] = key(
        _codes, default=(), dump=lambda pairs: [[code, to_jsonable(label)] for code, label in pairs]
    )
    bins: tuple[float, ...] = key(listed(number), default=())
    missing_codes: tuple[str, ...] = key(listed(_code), default=())
    missing_answers: str | None = key(choice("refuse", "counted", "category", "left out"), default=None)
    separator: str = key(default="", omit=True)

    def __post_init__(self) -> None:
        check(self, "reading")
        if self.separator not in SEPARATORS:
            raise invalid("separator", f"one of {' '.join(SEPARATORS[1:])}", self.separator)
        if self.separator and self.bins:
            raise invalid("separator and bins", "one of them", "both")
        if any(not low < high for low, high in pairwise(self.bins)):
            raise invalid("bins", "rising edges", list(self.bins)[:8])
        if self.codes and self.bins:
            raise invalid("codes and bins", "one of them", "both")
        for name, entries in (("codes", [code for code, _ in self.codes]), ("missing_codes", list(self.missing_codes))):
            if len(set(entries)) != len(entries) or len(entries) > MAX_CODES:
                raise invalid(name, f"distinct ones, at most {MAX_CODES}", f"{len(entries)}")

    @property
    def left_out(self) -> bool:
        """True if missing answers have empty reports."""
        return self.missing_answers == "left out"

    @property
    def own_category(self) -> bool:
        """True if missing answers have their own category."""
        return self.missing_answers == "category"

    def require(self, categories: tuple[Label, ...], missing: Label | None, place: str) -> None:
        """Raise `InvalidInput` unless this fits a question's categories and `missing` category."""
        answers = len(categories) - self.own_category
        if self.bins and len(self.bins) + 1 != answers:
            counted = f"{answers - 1}, one fewer than the categories of numbers"
            raise invalid(f"{place}: bins", counted, len(self.bins))
        if self.bins and self.own_category and missing != categories[-1]:
            raise invalid(f"{place}: missing", "the last category, after those of the bins", missing)
        for _, label in self.codes:
            if not is_among(label, categories):
                raise invalid(f"{place}: codes", f"codes of the categories {categories[:8]}", label)
        if (missing is None) != (self.missing_answers in ("refuse", "left out")):
            expected = "a category in `missing`" if missing is None else 'no `missing`, or "counted" or "category"'
            raise invalid(f"{place}: missing_answers", expected, self.missing_answers)
        if self.own_category and len(categories) < 3:
            raise invalid(f"{place}: categories", "two besides the one of missing answers", answers)


PLAIN_READING = Reading()


def check_answers(question: Any, place: str) -> None:
    """Check a question's answers: categories that differ as text, reading and pilot."""
    categories = question.categories
    require_distinct_texts(categories, f"{place}: categories")
    for name in ("unknown", "missing"):
        value = getattr(question, name)
        if value is not None and not is_among(value, categories):
            raise invalid(f"{place}: {name}", f"one of the categories {categories[:8]}", value)
    reading: Reading = question.reading
    if reading.missing_answers is None:
        reading = replace(reading, missing_answers="refuse" if question.missing is None else "counted")
    reading.require(categories, question.missing, place)
    object.__setattr__(question, "reading", reading)
    if question.pilot is not None:
        pilot = distribution(question.pilot, f"{place}: pilot", len(categories), categories)
        object.__setattr__(question, "pilot", pilot)


def require_distinct_texts(labels: tuple[Label, ...], place: str) -> None:
    """Raise `InvalidInput` unless the labels differ when they are written as text."""
    texts = [as_text(label) for label in labels]
    if len(set(texts)) != len(texts) or "" in texts:
        raise invalid(place, "labels that are distinct and not empty as text", texts)
