"""Turning columns of labels into positions, in one pass, for columns of any library."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Label
from ldpopt.errors import Phrase, invalid
from ldpopt.labels import as_text


def positions(reports: Any, outputs: tuple[Label, ...]) -> npt.NDArray[np.intp]:
    """The position in `outputs` of every report, shape (n,).

    A report is an output's label, or the text of the label as in a data file: 1 and "1" are the same report unless both
    are outputs. Any other entry is `InvalidInput`. It may be a raw answer, so the message does not show it.
    """
    array = column(reports, "reports")
    if array.dtype.kind in "iu" and outputs == tuple(range(len(outputs))):
        if array.size and (array.min() < 0 or array.max() >= len(outputs)):
            at = int(np.argmax((array < 0) | (array >= len(outputs))))
            raise invalid("report", f"one of the outputs 0 to {len(outputs) - 1}", Phrase("another"), f"entry {at}")
        return array.astype(np.intp)
    codes, kinds = _codes(array)
    found = places(kinds, outputs)
    if len(kinds) and found.min() < 0:
        where = f"entry {int(np.argmax(codes == int(np.argmax(found < 0))))}"
        raise invalid("report", f"one of the outputs {outputs[:8]}", Phrase("another"), where)
    return found[codes]


def known(values: Any, outputs: tuple[Label, ...]) -> bool:
    """Whether every entry of an array could be a report."""
    array = column(values, "reports")
    if array.dtype.kind in "iu" and array.size and outputs == tuple(range(len(outputs))):
        return bool(array.min() >= 0 and array.max() < len(outputs))
    kinds = set(array.tolist())
    if kinds <= set(outputs):
        return True
    written = {as_text(label) for label in outputs}
    unlike = len(written) == len(outputs)  # no two outputs have the same text
    return unlike and all(_text(kind) in written for kind in kinds.difference(outputs))


def places(kinds: list[Any], outputs: tuple[Label, ...]) -> npt.NDArray[np.intp]:
    """The position of each distinct entry among the outputs, by its value or by its text; -1 if it is no output."""
    place: dict[Any, int] = {label: y for y, label in enumerate(outputs)}
    written: dict[str | None, int] = {as_text(label): y for y, label in enumerate(outputs)}
    if len(written) < len(outputs):  # two outputs have the same text
        written = {}
    return np.array([place.get(kind, written.get(_text(kind), -1)) for kind in kinds], dtype=np.intp)


def _text(kind: Any) -> str | None:
    """The text of a label in a data file. A whole number that was read as a float is written as an integer."""
    if isinstance(kind, bytes) or kind is None or kind != kind:
        return None
    if isinstance(kind, float) and kind.is_integer():
        return str(int(kind))
    return as_text(kind) if isinstance(kind, (str, bool, int, float)) else None


def report_column(reports: Any, channel: Any) -> Any:
    """The column of a data frame that holds the reports of `channel`; anything but a data frame is returned unchanged.

    If `channel` is a question of a plan, it is the column with the question's name; otherwise the only column.
    """
    names = getattr(reports, "column_names", None)
    names = getattr(reports, "columns", None) if names is None else names
    if names is None or not hasattr(reports, "__getitem__"):
        return reports
    names = list(names)
    name = getattr(channel, "name", None) if hasattr(channel, "categories") else None
    if name in names:
        return reports[name]
    if name is not None or len(names) != 1:
        expected = "one column, as in reports['question']" if name is None else f"a column {name!r}"
        raise invalid("reports", expected, Phrase(f"a table of {len(names)} other columns"))
    return reports[names[0]]


def column(values: Any, what: str) -> npt.NDArray[Any]:
    """`values`, an array, list or data-frame column, as a one-dimensional array; tuples stay whole."""
    if hasattr(values, "to_pylist"):  # an arrow column, perhaps of dictionaries
        values = values.to_pylist()
    if isinstance(values, (list, tuple)) and any(isinstance(value, tuple) for value in values):
        array = np.empty(len(values), dtype=object)
        array[:] = values
    else:
        array = np.asarray(values)
        if array.dtype.kind == "U" and isinstance(values, (list, tuple)):  # numpy turns mixed kinds into text
            array = np.asarray(values, dtype=object)
    if array.ndim != 1:
        raise invalid(what, "one column", f"shape {array.shape}")
    return array


def _codes(array: npt.NDArray[Any]) -> tuple[npt.NDArray[np.intp], list[Any]]:
    """The codes 0, 1, ... of the entries, and the distinct entries as Python values."""
    if array.dtype.kind in "iufb":  # numbers are sorted; text is hashed, which is faster
        kinds, codes = np.unique(array, return_inverse=True)
        return codes, kinds.tolist()
    seen: dict[Any, int] = {}
    codes = np.fromiter((seen.setdefault(value, len(seen)) for value in array.tolist()), np.intp, len(array))
    return codes, list(seen)


def factor(values: Any, n: int, what: str) -> tuple[npt.NDArray[np.intp], list[Any]]:
    """Integer codes from 0 for n labels, and the distinct labels.

    Missing labels are refused. If `values` is None, all have the same label.
    """
    if values is None:
        return np.zeros(n, dtype=np.intp), [None]
    array = column(values, what)
    if len(array) != n:
        raise invalid(what, f"{n} labels, one a respondent", len(array))
    codes, kinds = _codes(array)
    for kind in kinds:
        if kind is None or kind != kind:
            raise invalid(what, "a label for every respondent", kind)
    return codes, kinds or [None]
