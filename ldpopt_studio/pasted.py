"""Parse pasted text as a design, a channel or a matrix, and repair a matrix that is nearly a channel.

Each change by the repair is listed.
"""

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
"""Largest number of characters in a file."""
MAX_ENTRIES = 250_000
"""Largest number of entries in a matrix."""

DESIGN_SCHEMA, CHANNEL_FORMATS = "ldpopt-design", ("ldpopt-channel", "ldpopt-exact-channel")
"""The schema of design files, and the formats of channel files (docs/reference/formats/{design,channel}-file.md)."""

DEFAULT_NAME = "pasted text"
"""Name of contents that are not from a file."""
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*", re.ASCII)

Pasted = Design | Channel | ExactChannel
LabeledMatrix = tuple[Array, tuple[Label, ...] | None, tuple[Label, ...] | None]


def file_text(value: Any, name: str) -> str:
    """Read the text of a file, at most `MAX_CHARACTERS` characters."""
    if "\0" in of_type(str, "text", MAX_CHARACTERS)(value, name):
        raise invalid(name, "text", Phrase("a zero byte"))
    return str(value).removeprefix("\ufeff")


def file_name(value: Any, name: str) -> str:
    """Return the last part of a file's name, without characters that cannot be printed."""
    last = re.split(r"[/\\]", raw_text(value, name))[-1]
    printable = "".join(letter for letter in last if letter.isprintable())[-80:].strip()
    return printable if printable.strip(".") else DEFAULT_NAME


def parse_pasted(text: str, name: str = DEFAULT_NAME) -> Pasted:
    """Parse a design, a channel or an exact channel; errors begin with `name`.

    The cells of a table may be separated by commas, tabs, semicolons or blanks. Decimal commas are accepted unless
    commas
    separate cells.
    """
    if not is_json(name, text):
        return _check_content_size(parse_channel(comma_separated(text), name), name)
    with naming(name):
        data = strict.json_value(text, "JSON")
        if isinstance(data, dict) and data.get("schema") == DESIGN_SCHEMA:
            return _check_content_size(parse_design(text), name)
        if not isinstance(data, list) and not (isinstance(data, dict) and data.get("format") in CHANNEL_FORMATS):
            raise invalid("the file", "a channel, a design or a list of rows", schema_of(data))
    return _check_content_size(parse_channel(text, name), name)


def _check_content_size(content: Pasted, name: str) -> Pasted:
    _check_size((content.channel if isinstance(content, Design) else content).matrix, name)
    return content


def recorded_guarantees(text: str, name: str = DEFAULT_NAME) -> dict[str, float]:
    """Return the epsilon and eta that a channel file records, by privacy definition.

    They are never trusted.
    """
    data = strict.json_value(text) if is_json(name, text) else None
    recorded = data.get("guarantees") if isinstance(data, dict) and "schema" not in data else None
    claims: dict[str, float] = {}
    for guarantee in recorded if isinstance(recorded, list) else []:
        if isinstance(guarantee, Mapping) and guarantee.get("notion") in ("local_dp", "total_variation"):
            value = guarantee.get("value")
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                claims[guarantee["notion"]] = float(min(value, 1e308))
    return claims


def parse_labeled_matrix(text: str, name: str = DEFAULT_NAME) -> LabeledMatrix:
    """Parse a matrix, which need not be a channel, and the labels of its rows and columns."""
    with naming(name):
        if not is_json(name, text):
            matrix, rows, columns = parse_matrix_csv(name, comma_separated(text))
            return _check_size(matrix), rows, columns
        data = strict.json_value(text, "JSON")
        if isinstance(data, dict) and data.get("schema") == DESIGN_SCHEMA:
            data = data.get("channel")
        if isinstance(data, list):
            return _check_size(finite_array(data, "matrix", 2)), None, None
        if not isinstance(data, dict) or not isinstance(data.get("matrix"), list):
            raise invalid("the file", "a channel, a design or a list of rows", schema_of(data))
        matrix = _check_size(finite_array(data["matrix"], "matrix", 2))
        labels: list[Any] = []
        for side, count in zip(("inputs", "outputs"), matrix.shape, strict=True):
            recorded_labels = data.get(side)
            names = from_jsonable(recorded_labels) if isinstance(recorded_labels, list) else None
            labels.append(None if names is None else distinct_labels(names, count, side))
        return matrix, labels[0], labels[1]


def _check_size(matrix: Array, name: str = "the file") -> Array:
    if not 0 < matrix.size <= MAX_ENTRIES:
        raise invalid(name, f"a matrix of at most {MAX_ENTRIES} entries here", Phrase(str(matrix.shape)))
    return matrix


def comma_separated(text: str) -> str:
    """Convert a table with tabs, semicolons or blanks between its cells to one with commas."""
    first_line = next((line for line in text.splitlines() if line.strip()), "")
    delimiter = "\t" if "\t" in first_line else ";" if ";" in first_line else None
    if delimiter is None and ("," in first_line or '"' in first_line):
        return text
    rows = (line.split(delimiter) if delimiter else line.split() for line in text.splitlines() if line.strip())
    return csv_text([c.replace(",", ".") if _DECIMAL_COMMA.fullmatch(c) else c for c in row] for row in rows)


NEGATIVE_ZERO_ATOL = 1e-6
"""Negative entries are treated as rounded zeros down to minus this number."""


@dataclass(frozen=True, eq=False)
class RepairedMatrix:
    """A channel made from a matrix.

    Attributes
    ----------
    channel : Channel
    steps : tuple of str
        The changes, one sentence each.
    max_row_change : float
        Largest total variation between a normalized row and its repaired row.
    """

    channel: Channel
    steps: tuple[str, ...]
    max_row_change: float


def repair_matrix(labeled_matrix: LabeledMatrix, limits: Sequence[Constraint] = ()) -> RepairedMatrix:
    """Repair a matrix: divide rows by their sums, and bring them within `limits`.

    The library's repair does the latter. If it fails, the channel is first mixed with its mean row. Bisection finds
    nearly the smallest weight of the mean row at which the repair succeeds.
    """
    matrix, inputs, outputs = labeled_matrix
    normalized, steps = _normalize_rows(matrix)
    channel = Channel(normalized, inputs, outputs)
    if not all(float(limit.measure(channel)) <= limit.bound for limit in limits):
        matrix, step = _bring_within(normalized, limits, channel)
        channel = Channel(matrix, channel.inputs, channel.outputs)
        steps.append(step)
    return RepairedMatrix(channel, tuple(steps), float(np.abs(channel.matrix - normalized).sum(axis=1).max() / 2))


def _normalize_rows(matrix: Array) -> tuple[Array, list[str]]:
    steps = []
    lowest = float(matrix.min())
    if not lowest >= -NEGATIVE_ZERO_ATOL:
        x, y = (int(index) for index in np.unravel_index(int(matrix.argmin()), matrix.shape))
        raise invalid("repair", "non-negative entries", lowest, f"row {x}, column {y}")
    if lowest < 0:
        matrix = np.maximum(matrix, 0.0)
        steps.append(f"Entries down to {lowest:g} became zero.")
    # Rows are first scaled by powers of two, without rounding, so that no sum overflows.
    row_maxima = matrix.max(axis=1)
    if not row_maxima.min() > 0:
        raise invalid(
            "repair", "a positive entry in each row", Phrase("a row of zeros"), f"row {int(row_maxima.argmin())}"
        )
    powers = np.frexp(row_maxima)[1]
    scaled = np.ldexp(matrix, -powers[:, None])
    sums = np.array([math.fsum(row) for row in scaled.tolist()])
    with np.errstate(over="ignore"):
        row_sums = np.ldexp(sums, powers)
    needs_scaling = ~(np.abs(row_sums - 1) <= ROW_SUM)
    if needs_scaling.any():
        matrix = np.where(needs_scaling[:, None], scaled / sums[:, None], matrix)
        low, high = float(row_sums[needs_scaling].min()), float(row_sums[needs_scaling].max())
        sum_range = f"from {low:.12g} to {high:.12g}" if low < high else f"{low:.12g}"
        count = int(needs_scaling.sum())
        steps.append(
            f"{count} of {len(matrix)} rows {'were' if count > 1 else 'was'} divided by "
            f"{'their sums, which were' if count > 1 else 'its sum, which was'} {sum_range}."
        )
    return matrix, steps


def _bring_within(matrix: Array, limits: Sequence[Constraint], channel: Channel) -> tuple[Array, str]:
    limits_text = " and ".join(f"{type(limit).__name__}({limit.bound!r})" for limit in limits)
    repaired = _try_repair(matrix, limits, channel)
    if repaired is not None:
        return repaired, f"Brought within {limits_text} by the repair that all designs pass through."
    mean = matrix.mean(axis=0)
    low, high, best = 0.0, 1.0, _try_repair(np.tile(mean, (len(matrix), 1)), limits, channel)
    if best is None:
        raise invalid("repair", "limits that a channel without information satisfies", Phrase(limits_text))
    for _ in range(30):
        weight = (low + high) / 2
        mixed = _try_repair((1 - weight) * matrix + weight * mean, limits, channel)
        low, high, best = (weight, high, best) if mixed is None else (low, weight, mixed)
        if not high - low > 1e-4 * high:
            break
    return best, f"Mixed with its mean row (weight {high:.4g}), and brought within {limits_text} by the repair."


def _try_repair(matrix: Array, limits: Sequence[Constraint], channel: Channel) -> Array | None:
    try:
        return np.asarray(repair(matrix, limits, channel.inputs))
    except Unrepairable:
        return None
