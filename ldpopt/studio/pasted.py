"""Reading text that is pasted or dropped on the page: a design file, a channel file, or a table of numbers."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from typing import Any

from ldpopt import strictjson
from ldpopt.channel import FORMAT, Channel, Label
from ldpopt.design import Design
from ldpopt.design.files import SCHEMA
from ldpopt.design.load import design_of
from ldpopt.distribution import Array, finite_array
from ldpopt.errors import Phrase, invalid
from ldpopt.exact import FORMAT as EXACT
from ldpopt.exact import ExactChannel
from ldpopt.io.channels import csv_parts, is_json, released_of
from ldpopt.io.table import naming
from ldpopt.labels import distinct_labels, from_jsonable

LARGEST = 4_000_000
"""The most characters of a file."""
MOST_ENTRIES = 250_000
"""The most entries of a matrix."""

NAMELESS = "pasted text"
"""The name of contents without a file's name."""
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*", re.ASCII)

Pasted = Design | Channel | ExactChannel
Parts = tuple[Array, tuple[Label, ...] | None, tuple[Label, ...] | None]


def contents(value: Any, what: str) -> str:
    """The text of a file, refused if it is longer than the page accepts.

    >>> contents("\\ufeff1,0", "text")
    '1,0'
    """
    if not isinstance(value, str):
        raise invalid(what, "text", Phrase(type(value).__name__))
    if len(value) > LARGEST:
        raise invalid(what, f"at most {LARGEST} characters", len(value))
    if "\0" in value:
        raise invalid(what, "text", Phrase("a zero byte"))
    return value.removeprefix("\ufeff")


def file_name(value: Any, what: str) -> str:
    """The last part of a file's name, without characters that cannot be shown.

    >>> file_name("C:\\\\me\\\\q.csv", "name")
    'q.csv'
    """
    if not isinstance(value, str):
        raise invalid(what, "text", Phrase(type(value).__name__))
    last = re.split(r"[/\\]", value)[-1]
    shown = "".join(letter for letter in last if letter.isprintable())[-80:].strip()
    return shown if shown.strip(".") else NAMELESS


def pasted(text: str, name: str = NAMELESS) -> Pasted:
    """The design, the channel or the exact channel in `text`. Errors begin with `name`.

    A table may have commas, tabs, semicolons or blanks between its cells, and decimal commas if cells are not separated
    by commas. `InvalidInput` for anything else; `CertificateError` for an exact channel whose integers do not prove the
    claims of its file.

    >>> pasted("0.75 0.25\\n0.25 0.75")
    Channel(2 inputs -> 2 outputs)
    """
    if not is_json(name, text):
        return _bounded(released_of(_commas(text), name), name)
    with naming(name):
        data = strictjson.loads(text, "JSON")
        if isinstance(data, dict) and data.get("schema") == SCHEMA:
            return _bounded(design_of(text), name)
        if not isinstance(data, list) and not (isinstance(data, dict) and data.get("format") in (EXACT, FORMAT)):
            raise invalid("the file", "a channel, a design or a list of rows", Phrase(_kind(data)))
    return _bounded(released_of(text, name), name)


def _bounded(made: Pasted, name: str) -> Pasted:
    k, m = (made.channel if isinstance(made, Design) else made).shape
    if k * m > MOST_ENTRIES:
        raise invalid(name, f"a matrix of at most {MOST_ENTRIES} entries here", Phrase(f"{k} x {m}"))
    return made


def claims(text: str, name: str = NAMELESS) -> dict[str, float]:
    """The epsilon and the eta that a channel file records about itself, by notion. They are never trusted.

    >>> claims(Channel([[1.0, 0.0], [0.0, 1.0]]).to_json())
    {}
    """
    data = strictjson.loads(text) if is_json(name, text) else None
    recorded = data.get("guarantees") if isinstance(data, dict) and "schema" not in data else None
    found: dict[str, float] = {}
    for one in recorded if isinstance(recorded, list) else []:
        if isinstance(one, Mapping) and one.get("notion") in ("local_dp", "total_variation"):
            value = one.get("value")
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                found[one["notion"]] = float(min(value, 1e308))
    return found


def parts(text: str, name: str = NAMELESS) -> Parts:
    """The matrix in `text`, which need not be a channel, and the labels of its rows and columns.

    >>> parts("[[3, 1], [1, 1]]")[0].tolist()
    [[3.0, 1.0], [1.0, 1.0]]
    """
    with naming(name):
        if not is_json(name, text):
            matrix, rows, columns = csv_parts(name, _commas(text))
            if matrix.size > MOST_ENTRIES:
                raise invalid("the file", f"a matrix of at most {MOST_ENTRIES} entries here", Phrase(str(matrix.shape)))
            return matrix, rows, columns
        data = strictjson.loads(text, "JSON")
        if isinstance(data, dict) and data.get("schema") == SCHEMA:
            data = data.get("channel")
        if isinstance(data, list):
            return _sized(finite_array(data, "matrix", 2)), None, None
        if not isinstance(data, dict) or not isinstance(data.get("matrix"), list):
            raise invalid("the file", "a channel, a design or a list of rows", Phrase(_kind(data)))
        matrix = _sized(finite_array(data["matrix"], "matrix", 2))
        labels: list[Any] = []
        for side, count in zip(("inputs", "outputs"), matrix.shape, strict=True):
            given = data.get(side)
            made = from_jsonable(given) if isinstance(given, list) else None
            labels.append(None if made is None else distinct_labels(made, count, side))
        return matrix, labels[0], labels[1]


def _sized(matrix: Array) -> Array:
    if not 0 < matrix.size <= MOST_ENTRIES:
        raise invalid("the file", f"a matrix of 1 to {MOST_ENTRIES} entries here", Phrase(str(matrix.shape)))
    return matrix


def _kind(data: Any) -> str:
    if isinstance(data, dict):
        said = data.get("format", data.get("schema"))
        return f"an object of the format {said[:40]!r}" if isinstance(said, str) else "an object of no known format"
    return "JSON of another kind"


def _commas(text: str) -> str:
    """A table with commas between its cells, made from one with tabs, semicolons or blanks."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    mark = "\t" if "\t" in first else ";" if ";" in first else None
    if mark is None and ("," in first or '"' in first):
        return text
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    for line in text.splitlines():
        if line.strip():
            cells = line.split(mark) if mark else line.split()
            writer.writerow([cell.replace(",", ".") if _DECIMAL_COMMA.fullmatch(cell) else cell for cell in cells])
    return out.getvalue()
