"""Find questions with several options in columns of ticked boxes, and in lists within a cell."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ldpopt.errors import InvalidInput
from ldpopt_survey.datafiles.columns import ColumnProfile
from ldpopt_survey.plan.options_question import MAX_OPTIONS, NO, YES, AnyOfSpec
from ldpopt_survey.plan.reading import Reading, truth_value

__all__ = ["Boxes", "find_boxes", "list_question", "only_ticked_value"]

_NAMES = (
    re.compile(r"(?P<stem>.+?)___(?P<option>.+)"),  # REDCap
    re.compile(r"(?P<stem>.+?)\s*\[(?P<option>[^\[\]]+)\]"),  # LimeSurvey
    re.compile(r"(?P<stem>.+?): (?P<option>.+)"),  # SurveyMonkey, and `AnyOfSpec`
    re.compile(r"(?P<stem>.*[A-Za-z0-9]?[^\W_])_(?P<option>\d{1,3})"),  # Qualtrics
)
"""How tools name the column of an option; the last pattern also fits other columns, so that it needs boxes left empty.
"""

MIN_SEPARATOR_SHARE = 0.1
"""The least share of the answers in which a separator stands, if the answers are lists."""


@dataclass(frozen=True)
class Boxes:
    """Neighboring columns that are options of one question.

    - `spec` : the question.
    - `empty` : the number of empty cells in the columns, which count as not chosen.
    - `columns` : the columns.
    - `text` : the question's wording, if the file has it.
    """

    spec: AnyOfSpec
    columns: tuple[str, ...]
    empty: int
    text: str


def only_ticked_value(column: ColumnProfile) -> str | None:
    """Return the only value of a column if it means that a box was ticked, else None.

    The others left the box empty. The value is a word such as "yes", "x" or 1, or the words of the question itself.
    """
    if column.values is None or len(column.values) != 1 or not column.empty:
        return None
    (value,) = column.values
    spelling = value.strip().casefold()
    is_named = spelling and (column.name.casefold().endswith(spelling) or column.wording.casefold().endswith(spelling))
    return value if truth_value(value) or is_named else None


def find_boxes(columns: Sequence[ColumnProfile], half_width: float) -> list[Boxes]:
    """Return the questions whose options are neighbouring columns of ticked boxes, by how tools name them."""
    groups: list[tuple[tuple[int, str], list[tuple[ColumnProfile, str]]]] = []
    for column in columns:
        for pattern_position, pattern in enumerate(_NAMES):
            if (match := pattern.fullmatch(column.name)) and _is_box(column, pattern_position):
                key = (pattern_position, match["stem"].strip())
                if not groups or groups[-1][0] != key:
                    groups.append((key, []))
                groups[-1][1].append((column, match["option"].strip()))
                break
        else:
            groups.append(((-1, column.name), []))
    boxes = []
    for (_, stem), options in groups:
        is_answered = any(column.answer_count for column, _ in options)
        is_question = is_answered and 2 <= len(options) <= MAX_OPTIONS
        if is_question and (question := _boxes(stem, options, half_width)) is not None:
            boxes.append(question)
    return boxes


def _is_box(column: ColumnProfile, pattern_position: int) -> bool:
    if column.values is None or len(column.values) > 2 or not column.has_scalars:
        return False
    values = [truth_value(value) for value in column.values]
    is_truth_pair = set(values) == {True, False} if len(values) == 2 else False
    if pattern_position in (0, 1):
        return is_truth_pair or len(values) < 2
    return len(values) < 2 and bool(column.empty)


def _boxes(stem: str, options: Sequence[tuple[ColumnProfile, str]], half_width: float) -> Boxes | None:
    labels, codes = [], dict[str, str]()
    for column, suffix in options:
        values = list(column.values or ())
        single_value = values[0] if len(values) == 1 and truth_value(values[0]) is None else ""
        option_wording = column.wording.rpartition(" - ")[2].strip() if " - " in column.wording else ""
        labels.append((single_value.strip() or option_wording or suffix)[:120])
        if single_value:
            codes[single_value] = YES
    if len(set(labels)) < len(labels):
        labels = [suffix for _, suffix in options]
    wording = options[0][0].wording
    for suffix_of_tool in (" - Selected Choice", " - "):
        wording = wording.partition(suffix_of_tool)[0] if suffix_of_tool in wording else wording
    empty_count = sum(column.empty for column, _ in options)
    reading = Reading(tuple(codes.items()), (), (), "counted" if empty_count else "refuse")
    names = tuple(column.name for column, _ in options)
    try:
        spec = AnyOfSpec(
            stem,
            options=tuple(labels),
            columns=names,
            missing=NO if empty_count else None,
            half_width=half_width,
            reading=reading,
        )
    except InvalidInput:
        return None
    return Boxes(spec, names, empty_count, wording)


def list_question(column: ColumnProfile, codes: Sequence[str], half_width: float) -> AnyOfSpec | str | None:
    """Return the question of a column of lists, or the reason why it has none, or None.

    The result is None if the cells are not lists.

    codes : entries that stand for "no answer". Cells are lists if a separator stands in a tenth of them, no cell has an
    entry twice, and the entries stand in other combinations, too.
    """
    values = {value: count for value, count in (column.values or {}).items() if value.strip() not in codes}
    total = sum(values.values())
    for separator in (";", "|", ","):
        cells_with_separator = sum(count for value, count in values.items() if separator in value)
        if not total or cells_with_separator < MIN_SEPARATOR_SHARE * total:
            continue
        lists = [[entry.strip() for entry in value.split(separator) if entry.strip()] for value in values]
        entry_counts = Counter(entry for entries in lists for entry in entries)
        single_entries = {entries[0] for entries in lists if len(entries) == 1}
        rare_entries = [entry for entry, count in entry_counts.items() if count < 2 and entry not in single_entries]
        if (
            any(len(set(entries)) < len(entries) for entries in lists)
            or 4 * len(rare_entries) > len(entry_counts)
            or len(entry_counts) < 2
        ):
            continue
        if all(re.fullmatch(r"[+-]?\d+(,\d+)?", value.strip(), re.ASCII) for value in values) and separator == ",":
            continue  # numbers with a decimal comma
        if max(map(len, lists)) < 2:
            continue
        if len(entry_counts) > MAX_OPTIONS:
            size = len(entry_counts)
            return f"it holds lists of {size} different entries, and a question has at most {MAX_OPTIONS} options"
        options = sorted(entry_counts, key=lambda entry: (-entry_counts[entry], entry))
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
