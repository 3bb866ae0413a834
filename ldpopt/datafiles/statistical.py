"""Files of SPSS, Stata and SAS, with their value labels in place of codes, and without what they declare missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ldpopt.datafiles.hidden import values_hidden
from ldpopt.extras import need

READERS = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".dta": "read_dta",
    ".sas7bdat": "read_sas7bdat",
}


def statistical_names(path: Path) -> list[str]:
    """The column names, from the head of the file."""
    _, metadata = _read(path, metadataonly=True)
    return list(metadata.column_names)


def statistical_rows(path: Path) -> int:
    """How many rows the file has, read to its end where its head does not say."""
    _, metadata = _read(path, metadataonly=True)
    if metadata.number_rows is not None and metadata.number_rows >= 0:
        return int(metadata.number_rows)
    found, _ = _read(path, usecols=list(metadata.column_names)[:1])
    return len(next(iter(found.values()), ()))


def statistical_questions(path: Path) -> dict[str, str]:
    """The wording of the questions, by column, where the file has it."""
    _, metadata = _read(path, metadataonly=True)
    return {name: label for name, label in metadata.column_names_to_labels.items() if label}


def statistical_table(path: Path, columns: Sequence[str], start: int = 0, stop: int | None = None) -> Any:
    """Rows `start` to `stop` - 1 of some columns as a pyarrow table.

    Values that the file labels become their labels (with the value, where two share a label); values that it declares
    missing become null. `InvalidInput` for what cannot be read; `MissingExtra` without pyreadstat.
    """
    import pyarrow as pa

    rows = {} if stop is None else {"row_offset": start, "row_limit": max(1, stop - start)}
    found, metadata = _read(path, usecols=list(columns), **rows)
    labels: Mapping[str, Mapping[Any, str]] = metadata.variable_value_labels
    made = [
        values_hidden(f"column {name!r} of {path}", _column, list(found[name]), labels.get(name, {}))
        for name in columns
    ]
    return pa.Table.from_arrays(made, list(columns))


def _column(values: list[Any], labels: Mapping[Any, str]) -> Any:
    import pyarrow as pa

    if labels:
        shared = Counter(labels.values())
        said = {value: label if shared[label] == 1 else f"{label} ({_text(value)})" for value, label in labels.items()}
        return pa.array([None if _absent(one) else said.get(one, _text(one)) for one in values], pa.string())
    if all(_absent(one) or (isinstance(one, (int, float)) and not isinstance(one, bool)) for one in values):
        return pa.array([None if _absent(one) else float(one) for one in values], pa.float64())
    return pa.array([None if _absent(one) else _text(one) for one in values], pa.string())


def _absent(value: Any) -> bool:
    return value is None or value == "" or value != value


def _text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _read(path: Path, **options: Any) -> tuple[Any, Any]:
    need("pyreadstat")
    import pyreadstat

    read = getattr(pyreadstat, READERS[path.suffix.lower()])
    found = values_hidden(str(path), lambda: read(str(path), output_format="dict", **options))
    return found[0], found[1]
