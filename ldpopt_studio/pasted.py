"""Pasted text to a design, a channel or a matrix, which is mended if it is nearly one, and every change listed."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.channel import Channel, Label
from ldpopt.design import Constraint, Design, Unrepairable, parse_design, repair
from ldpopt.errors import Phrase, invalid
from ldpopt.exact import ExactChannel
from ldpopt.files import strict
from ldpopt.files.atomic import naming
from ldpopt.files.escapes import csv_text
from ldpopt.io import is_json, parse_channel, parse_matrix_csv
from ldpopt.numbers.tolerances import ROW_SUM
from ldpopt.values.distribution import Array, finite_array
from ldpopt.values.labels import distinct_labels, from_jsonable
from ldpopt.values.schema import schema_of
from ldpopt_studio.fields import of_type, raw_text

MAX_CHARACTERS = 4_000_000
"""The most characters of a file."""
MOST_ENTRIES = 250_000
"""The most entries of a matrix."""

DESIGN, CHANNELS = "ldpopt-design", ("ldpopt-channel", "ldpopt-exact-channel")
"""The schema of design files, and the formats of channel files (docs/reference/formats/{design,channel}-file.md)."""

NAMELESS = "pasted text"
"""The name of contents without a file's name."""
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*", re.ASCII)

Pasted = Design | Channel | ExactChannel
Parts = tuple[Array, tuple[Label, ...] | None, tuple[Label, ...] | None]


def contents(value: Any, what: str) -> str:
    """The text of a file, refused if it is longer than the page accepts."""
    if "\0" in of_type(str, "text", MAX_CHARACTERS)(value, what):
        raise invalid(what, "text", Phrase("a zero byte"))
    return str(value).removeprefix("\ufeff")


def file_name(value: Any, what: str) -> str:
    """The last part of a file's name, without characters that cannot be shown."""
    last = re.split(r"[/\\]", raw_text(value, what))[-1]
    shown = "".join(letter for letter in last if letter.isprintable())[-80:].strip()
    return shown if shown.strip(".") else NAMELESS


def pasted(text: str, name: str = NAMELESS) -> Pasted:
    """The design, the channel or the exact channel in `text`; errors begin with `name`.

    A table may have commas, tabs, semicolons or blanks between its cells, and decimal commas where no comma separates.
    """
    if not is_json(name, text):
        return _bounded(parse_channel(with_commas(text), name), name)
    with naming(name):
        data = strict.json_value(text, "JSON")
        if isinstance(data, dict) and data.get("schema") == DESIGN:
            return _bounded(parse_design(text), name)
        if not isinstance(data, list) and not (isinstance(data, dict) and data.get("format") in CHANNELS):
            raise invalid("the file", "a channel, a design or a list of rows", schema_of(data))
    return _bounded(parse_channel(text, name), name)


def _bounded(content: Pasted, name: str) -> Pasted:
    _sized((content.channel if isinstance(content, Design) else content).matrix, name)
    return content


def claims(text: str, name: str = NAMELESS) -> dict[str, float]:
    """The epsilon and the eta that a channel file records about itself, by notion. They are never trusted."""
    data = strict.json_value(text) if is_json(name, text) else None
    recorded = data.get("guarantees") if isinstance(data, dict) and "schema" not in data else None
    claimed: dict[str, float] = {}
    for guarantee in recorded if isinstance(recorded, list) else []:
        if isinstance(guarantee, Mapping) and guarantee.get("notion") in ("local_dp", "total_variation"):
            value = guarantee.get("value")
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                claimed[guarantee["notion"]] = float(min(value, 1e308))
    return claimed


def parts(text: str, name: str = NAMELESS) -> Parts:
    """The matrix in `text`, which need not be a channel, and the labels of its rows and columns."""
    with naming(name):
        if not is_json(name, text):
            matrix, rows, columns = parse_matrix_csv(name, with_commas(text))
            return _sized(matrix), rows, columns
        data = strict.json_value(text, "JSON")
        if isinstance(data, dict) and data.get("schema") == DESIGN:
            data = data.get("channel")
        if isinstance(data, list):
            return _sized(finite_array(data, "matrix", 2)), None, None
        if not isinstance(data, dict) or not isinstance(data.get("matrix"), list):
            raise invalid("the file", "a channel, a design or a list of rows", schema_of(data))
        matrix = _sized(finite_array(data["matrix"], "matrix", 2))
        labels: list[Any] = []
        for side, count in zip(("inputs", "outputs"), matrix.shape, strict=True):
            given = data.get(side)
            names = from_jsonable(given) if isinstance(given, list) else None
            labels.append(None if names is None else distinct_labels(names, count, side))
        return matrix, labels[0], labels[1]


def _sized(matrix: Array, name: str = "the file") -> Array:
    if not 0 < matrix.size <= MOST_ENTRIES:
        raise invalid(name, f"a matrix of at most {MOST_ENTRIES} entries here", Phrase(str(matrix.shape)))
    return matrix


def with_commas(text: str) -> str:
    """A table with commas between its cells, made from one with tabs, semicolons or blanks."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    mark = "\t" if "\t" in first else ";" if ";" in first else None
    if mark is None and ("," in first or '"' in first):
        return text
    rows = (line.split(mark) if mark else line.split() for line in text.splitlines() if line.strip())
    return csv_text([c.replace(",", ".") if _DECIMAL_COMMA.fullmatch(c) else c for c in row] for row in rows)


SLIP = 1e-6
"""A negative entry down to minus this number counts as a rounded zero."""


@dataclass(frozen=True, eq=False)
class Mended:
    """A channel made from a matrix: the changes, a sentence each, and the largest total variation that a row moved."""

    channel: Channel
    steps: tuple[str, ...]
    moved: float


def mended(parts: Parts, limits: Sequence[Constraint] = ()) -> Mended:
    """A channel near the matrix: rows are divided by their sums, and the package's repair brings them within `limits`.

    If that fails, the channel is first mixed with its mean row, with the least weight that lets the repair succeed.
    """
    matrix, inputs, outputs = parts
    whole, steps = _rows_that_sum(matrix)
    channel = Channel(whole, inputs, outputs)
    if not all(float(limit.measure(channel)) <= limit.bound for limit in limits):
        matrix, said = _within(whole, limits, channel)
        channel = Channel(matrix, channel.inputs, channel.outputs)
        steps.append(said)
    return Mended(channel, tuple(steps), float(np.abs(channel.matrix - whole).sum(axis=1).max() / 2))


def _rows_that_sum(matrix: Array) -> tuple[Array, list[str]]:
    steps = []
    lowest = float(matrix.min())
    if not lowest >= -SLIP:
        x, y = (int(index) for index in np.unravel_index(int(matrix.argmin()), matrix.shape))
        raise invalid("mend", "non-negative entries (no division mends a negative one)", lowest, f"row {x}, column {y}")
    if lowest < 0:
        matrix = np.maximum(matrix, 0.0)
        steps.append(f"Entries down to {lowest:g} became zero.")
    # Rows are first scaled by powers of two, without rounding, so that no sum overflows.
    top = matrix.max(axis=1)
    if not top.min() > 0:
        raise invalid("mend", "a positive entry in each row", Phrase("a row of zeros"), f"row {int(top.argmin())}")
    powers = np.frexp(top)[1]
    scaled = np.ldexp(matrix, -powers[:, None])
    sums = np.array([math.fsum(row) for row in scaled.tolist()])
    with np.errstate(over="ignore"):
        true = np.ldexp(sums, powers)
    off = ~(np.abs(true - 1) <= ROW_SUM)
    if off.any():
        matrix = np.where(off[:, None], scaled / sums[:, None], matrix)
        low, high = float(true[off].min()), float(true[off].max())
        between = f"from {low:.12g} to {high:.12g}" if low < high else f"{low:.12g}"
        count = int(off.sum())
        steps.append(
            f"{count} row{'s' * (count > 1)} of {len(matrix)}, whose sums were {between}, divided by "
            f"{'their sums' if count > 1 else 'its sum'}."
        )
    return matrix, steps


def _within(matrix: Array, limits: Sequence[Constraint], channel: Channel) -> tuple[Array, str]:
    said = " and ".join(f"{type(limit).__name__}({limit.bound!r})" for limit in limits)
    kept = _repaired(matrix, limits, channel)
    if kept is not None:
        return kept, f"Brought within {said} by the repair that every design passes."
    mean = matrix.mean(axis=0)
    low, high, best = 0.0, 1.0, _repaired(np.tile(mean, (len(matrix), 1)), limits, channel)
    if best is None:
        raise invalid("mend", "limits that a channel without any information keeps", Phrase(said))
    for _ in range(30):
        middle = (low + high) / 2
        mixed = _repaired((1 - middle) * matrix + middle * mean, limits, channel)
        low, high, best = (middle, high, best) if mixed is None else (low, middle, mixed)
        if not high - low > 1e-4 * high:
            break
    return best, f"Mixed with its mean row, by a share of {high:.4g}, and brought within {said} by the repair."


def _repaired(matrix: Array, limits: Sequence[Constraint], channel: Channel) -> Array | None:
    try:
        return np.asarray(repair(matrix, limits, channel.inputs))
    except Unrepairable:
        return None
