"""Columns of boxes that people ticked, and lists in a cell -> questions with any number of options to choose."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ldpopt.errors import InvalidInput
from ldpopt_survey.datafiles.columns import ColumnProfile
from ldpopt_survey.plan.options_question import MAX_OPTIONS, NO, YES, AnyOfSpec
from ldpopt_survey.plan.reading import Reading, truth_value

__all__ = ["Boxes", "find_boxes", "list_question", "ticked_alone"]

_NAMES = (
    re.compile(r"(?P<stem>.+?)___(?P<option>.+)"),  # REDCap
    re.compile(r"(?P<stem>.+?)\s*\[(?P<option>[^\[\]]+)\]"),  # LimeSurvey
    re.compile(r"(?P<stem>.+?): (?P<option>.+)"),  # SurveyMonkey, and `AnyOfSpec`
    re.compile(r"(?P<stem>.*[A-Za-z0-9]?[^\W_])_(?P<option>\d{1,3})"),  # Qualtrics
)
"""How tools name the column of an option; the last pattern also fits other columns, so that it needs boxes left empty.
"""

LISTED = 0.1
"""The least share of the answers in which a separator stands, if the answers are lists."""


@dataclass(frozen=True)
class Boxes:
    """Neighbouring columns that are options of one question.

    spec : the question. empty : the number of empty cells in the columns, which count as not chosen.
    columns : the columns. text : the question's words, if the file has them.
    """

    spec: AnyOfSpec
    columns: tuple[str, ...]
    empty: int
    text: str


def ticked_alone(column: ColumnProfile) -> str | None:
    """Return the only value of a column if it means that a box was ticked, else None.

    The others left the box empty. The value is a word such as "yes", "x" or 1, or the words of the question itself.
    """
    if column.values is None or len(column.values) != 1 or not column.empty:
        return None
    (value,) = column.values
    said = value.strip().casefold()
    named = said and (column.name.casefold().endswith(said) or column.wording.casefold().endswith(said))
    return value if truth_value(value) or named else None


def find_boxes(columns: Sequence[ColumnProfile], half_width: float) -> list[Boxes]:
    """Return the questions whose options are neighbouring columns of ticked boxes, by how tools name them."""
    groups: list[tuple[tuple[int, str], list[tuple[ColumnProfile, str]]]] = []
    for column in columns:
        for place, pattern in enumerate(_NAMES):
            if (named := pattern.fullmatch(column.name)) and _is_box(column, place):
                key = (place, named["stem"].strip())
                if not groups or groups[-1][0] != key:
                    groups.append((key, []))
                groups[-1][1].append((column, named["option"].strip()))
                break
        else:
            groups.append(((-1, column.name), []))
    boxes = []
    for (_, stem), options in groups:
        answered = any(column.answered for column, _ in options)
        possible = answered and 2 <= len(options) <= MAX_OPTIONS
        if possible and (made := _boxes(stem, options, half_width)) is not None:
            boxes.append(made)
    return boxes


def _is_box(column: ColumnProfile, place: int) -> bool:
    """Whether the cells are those of a box: true or false, or one value and empty cells."""
    if column.values is None or len(column.values) > 2 or not column.plain:
        return False
    values = [truth_value(value) for value in column.values]
    pair = set(values) == {True, False} if len(values) == 2 else False
    if place in (0, 1):
        return pair or len(values) < 2
    return len(values) < 2 and bool(column.empty)


def _boxes(stem: str, options: Sequence[tuple[ColumnProfile, str]], half_width: float) -> Boxes | None:
    labels, codes = [], dict[str, str]()
    for column, suffix in options:
        values = list(column.values or ())
        only = values[0] if len(values) == 1 and truth_value(values[0]) is None else ""
        tail = column.wording.rpartition(" - ")[2].strip() if " - " in column.wording else ""
        labels.append((only.strip() or tail or suffix)[:120])
        if only:
            codes[only] = YES
    if len(set(labels)) < len(labels):
        labels = [suffix for _, suffix in options]
    words = options[0][0].wording
    for end in (" - Selected Choice", " - "):
        words = words.partition(end)[0] if end in words else words
    empty = sum(column.empty for column, _ in options)
    reading = Reading(tuple(codes.items()), (), (), "counted" if empty else "refuse")
    names = tuple(column.name for column, _ in options)
    try:
        spec = AnyOfSpec(
            stem,
            options=tuple(labels),
            columns=names,
            missing=NO if empty else None,
            half_width=half_width,
            reading=reading,
        )
    except InvalidInput:
        return None
    return Boxes(spec, names, empty, words)


def list_question(column: ColumnProfile, codes: Sequence[str], half_width: float) -> AnyOfSpec | str | None:
    """Return the question of a column whose cells are lists, why it cannot be one, or None if they are no lists.

    codes : entries that stand for "no answer". Cells are lists if a separator stands in a tenth of them, no cell has an
    entry twice, and the entries stand in other combinations, too.
    """
    values = {value: count for value, count in (column.values or {}).items() if value.strip() not in codes}
    total = sum(values.values())
    for separator in (";", "|", ","):
        holding = sum(count for value, count in values.items() if separator in value)
        if not total or holding < LISTED * total:
            continue
        lists = [[entry.strip() for entry in value.split(separator) if entry.strip()] for value in values]
        seen = Counter(entry for entries in lists for entry in entries)
        alone = {entries[0] for entries in lists if len(entries) == 1}
        unlike = [entry for entry, count in seen.items() if count < 2 and entry not in alone]
        if any(len(set(entries)) < len(entries) for entries in lists) or 4 * len(unlike) > len(seen) or len(seen) < 2:
            continue
        if all(re.fullmatch(r"[+-]?\d+(,\d+)?", value.strip(), re.ASCII) for value in values) and separator == ",":
            continue  # numbers with a decimal comma
        if max(map(len, lists)) < 2:
            continue
        if len(seen) > MAX_OPTIONS:
            return f"it holds lists of {len(seen)} different entries, and a question has at most {MAX_OPTIONS} options"
        options = sorted(seen, key=lambda entry: (-seen[entry], entry))
        return _list_spec(column, sorted(options), separator, codes, half_width)
    return None


def _list_spec(
    column: ColumnProfile, options: Sequence[str], separator: str, codes: Sequence[str], half_width: float
) -> AnyOfSpec:
    reading = Reading((), (), tuple(codes), "counted" if column.empty or codes else "refuse", separator)
    missing = NO if column.empty or codes else None
    return AnyOfSpec(column.name, options=tuple(options), missing=missing, half_width=half_width, reading=reading)


def quoted_values(values: Sequence[str]) -> str:
    """Return at most five values, quoted, for a message to the holder of the answers."""
    return ", ".join(map(repr, values[:5])) + (", ..." if len(values) > 5 else "")
