"""Columns of labels as positions: one pass, whatever holds the column."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Label
from ldpopt.errors import invalid


def positions(reports: Any, outputs: tuple[Label, ...]) -> npt.NDArray[np.intp]:
    """The position in `outputs` of every report, shape (n,)."""
    array = column(reports, "reports")
    if array.dtype.kind in "iu" and outputs == tuple(range(len(outputs))):
        if array.size and (array.min() < 0 or array.max() >= len(outputs)):
            at = int(np.argmax((array < 0) | (array >= len(outputs))))
            raise invalid("report", f"one of the outputs 0 to {len(outputs) - 1}", array[at], f"entry {at}")
        return array.astype(np.intp)
    place = {label: y for y, label in enumerate(outputs)}
    codes, kinds = _codes(array)
    found = np.array([place.get(kind, -1) for kind in kinds], dtype=np.intp)
    if len(kinds) and found.min() < 0:
        code = int(np.argmax(found < 0))
        where = f"entry {int(np.argmax(codes == code))}"
        raise invalid("report", f"one of the outputs {outputs[:8]}", kinds[code], where)
    return found[codes]


def column(values: Any, what: str) -> npt.NDArray[Any]:
    """`values`, an array, list or data-frame column, as a one-dimensional array; tuples stay whole."""
    if isinstance(values, (list, tuple)) and any(isinstance(value, tuple) for value in values):
        array = np.empty(len(values), dtype=object)
        array[:] = values
    else:
        array = np.asarray(values)
    if array.ndim != 1:
        raise invalid(what, "one column", f"shape {array.shape}")
    return array


def _codes(array: npt.NDArray[Any]) -> tuple[npt.NDArray[np.intp], list[Any]]:
    """Codes 0.. of the distinct entries and those entries, as Python values."""
    if array.dtype.kind in "iufb":  # sorting text is slower than hashing it
        kinds, codes = np.unique(array, return_inverse=True)
        return codes, kinds.tolist()
    seen: dict[Any, int] = {}
    codes = np.fromiter((seen.setdefault(value, len(seen)) for value in array.tolist()), np.intp, len(array))
    return codes, list(seen)


def factor(values: Any, n: int, what: str) -> tuple[npt.NDArray[np.intp], list[Any]]:
    """Codes 0.. of n labels and the distinct labels; missing ones are refused, and None is one label for all."""
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
