"""Populations for the page: from a chosen file, from pasted lines, or from the data in the package."""

from __future__ import annotations

import base64
import binascii
import csv
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ldpopt.datasets import load_anes96
from ldpopt.errors import InvalidInput, LdpoptError, Phrase, invalid
from ldpopt.files.delimited import PLAIN, sniff
from ldpopt.files.table import is_number
from ldpopt.io import Populations, read_microdata, read_pair, seen_once
from ldpopt_studio.fields import (
    FieldError,
    State,
    field,
    field_error,
    flag,
    items,
    number_between,
    numbers,
    raw_text,
    take,
    text,
)
from ldpopt_studio.pasted import comma_separated
from ldpopt_survey.datafiles.pieces import DELIMITED, SUFFIXES, names_of

BINS_ARGUMENT = "bins=6, or bins=[1000, 2000] for edges"
_KNOWN_SUFFIXES = {*SUFFIXES, *DELIMITED, ".json"}
_COLUMN_SUFFIXES = {*SUFFIXES} - {*DELIMITED}
"""Files that hold only columns, such as workbooks."""


def populations_state(pair: Populations) -> dict[str, Any]:
    """Return the part of a state that holds the populations."""
    return {
        "p0": pair.p0.tolist(),
        "p1": pair.p1.tolist(),
        "labels": [str(label) for label in pair.labels],
        "names": [str(name) for name in pair.names],
        "counts": None if pair.counts is None else pair.counts.sum(axis=1).tolist(),
        "once": [str(label) for label in seen_once(pair)],
    }


def view(state: State) -> dict[str, Any]:
    """Read populations from a file or from pasted text.

    If a table needs a choice of columns, the result has a ``problem``, which is a sentence, and the ``columns``.

    Parameters
    ----------
    state : mapping
        - ``name`` and ``content``: a file's name, and its bytes in base64; or ``pasted``: text.
        - ``answer``, ``group``, ``bins``: columns of a file with one row per respondent, and bins of its numbers.
        - ``columns``, ``counts``: columns of a table of probabilities, and whether these are counts.
    """
    pasted = take(state, "pasted", raw_text, None)
    source_field = "content" if pasted is None else "pasted"
    name, content = (
        (take(state, "name", text), take(state, "content", _bytes)) if pasted is None else _table_of_lines(pasted)
    )
    suffix = Path(name).suffix.lower()
    with TemporaryDirectory() as folder:
        path = Path(folder, "file" + (suffix if suffix in _KNOWN_SUFFIXES else ".csv"))
        path.write_bytes(content)
        try:
            return _read(path, state)
        except LdpoptError as error:
            message = str(error).replace(str(path), name or "the text")
            if isinstance(error, FieldError):
                raise FieldError(error.field, message) from None
            column_names = _column_names(path) if source_field == "content" else []
            if not column_names:
                raise FieldError(source_field, message) from None
            return {
                "problem": message.replace(BINS_ARGUMENT, "6, or 1000,2000 for edges, in the field *Bins*"),
                "columns": column_names,
            }


def examples(state: State) -> dict[str, Any]:
    """List the questions of the survey in the package, with two parties' answers."""
    table = load_anes96()
    questions = []
    for column in ("party", "income", "education"):
        (p0, p1), labels = table.conditional(column, "vote"), table.labels(column)
        title, names = f"ANES 1996: {column} ({len(labels)})", [f"{name} voters" for name in table.labels("vote")]
        counts = table.counts(column, "vote").sum(axis=1)
        questions.append({"title": title, "p0": p0, "p1": p1, "labels": labels, "names": names, "counts": counts})
    return {"examples": questions}


def _read(path: Path, state: State) -> dict[str, Any]:
    counts = take(state, "counts", flag, False)
    answer, group = take(state, "answer", text, None), take(state, "group", text, None)
    if answer or group:
        if not (answer and group):
            raise FieldError(
                "group" if answer else "answer",
                f"{'group' if answer else 'answer'}: choose the column of the {'two groups' if answer else 'answers'}",
            )
        with field("answer"):
            return populations_state(read_microdata(path, answer, group, take(state, "bins", _bins, None)))
    if path.suffix in _COLUMN_SUFFIXES:
        expected = "one row per respondent, with a column of answers and one of groups (proportions: as CSV or JSON)"
        raise InvalidInput(f"{path}: expected {expected}")
    pair = take(state, "columns", items, None)
    if pair is None:
        return populations_state(read_pair(path, counts=counts))
    if len(pair) != 2:
        raise field_error("columns", "two names", Phrase(len(pair)))
    with field("columns"):
        return populations_state(read_pair(path, (text(pair[0], "columns"), text(pair[1], "columns")), counts=counts))


def _column_names(path: Path) -> list[str]:
    """List the columns of a file among which the user can choose."""
    if path.suffix == ".json":
        return []
    try:
        return names_of(path, sniff(path) if path.suffix in DELIMITED else PLAIN)
    except (LdpoptError, OSError):
        return []


def _table_of_lines(lines: str) -> tuple[str, bytes]:
    """Return a file name and the bytes of a table of pasted lines.

    Cells may be separated by tabs, semicolons or commas. A first line without names gets them.
    """
    if len(lines) > 1_000_000:
        raise field_error("pasted", "at most 1000000 characters", len(lines))
    if lines.lstrip()[:1] == "{":
        return "text.json", lines.encode("utf-8", "replace")
    if not lines.strip():
        raise field_error("pasted", "one line per answer", Phrase("nothing"))
    table = comma_separated(lines.strip())
    first = next(csv.reader(table.splitlines()))
    if len(first) == 3 and is_number(first[1]) and is_number(first[2]):
        table = f"answer,p0,p1\n{table}"
    return "text.csv", table.encode("utf-8", "replace")


def _bytes(value: Any, name: str) -> bytes:
    try:
        return base64.b64decode(raw_text(value, name), validate=True)
    except (binascii.Error, ValueError):
        raise invalid(name, "the file's bytes in base64", Phrase("other text")) from None


def _bins(value: Any, name: str) -> Any:
    """Read a number of bins, or their edges; in a text, commas separate edges."""
    if isinstance(value, str):
        try:
            edges = [float(part) for part in value.split(",")]
        except ValueError:
            raise invalid(name, "how many bins, or edges separated by commas", value) from None
        value = edges[0] if len(edges) == 1 and edges[0].is_integer() else edges
    if isinstance(value, list):
        return numbers(value, name)
    return number_between(2, 1000, "2 to 1000 bins", integer=True)(value, name)
