"""The names of answers and reports, checked, and matched to the labels that pandas and Polars data carry.

Labels are strings, numbers, or tuples of them. Data with labels are matched by them, never by their order; arrays,
lists, Polars columns and the default pandas index carry none, and are matched by position.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.errors import InvalidInput, Phrase, invalid

__all__ = [
    "ANSWER",
    "Label",
    "aligned",
    "as_text",
    "by_label",
    "column_labels",
    "distinct_labels",
    "from_jsonable",
    "grouped",
    "index_labels",
    "matrix_labels",
    "positions",
    "to_jsonable",
    "vectors",
]  # fmt: skip

Label = Hashable


def distinct_labels(labels: Iterable[Label] | None, count: int, name: str) -> tuple[Label, ...]:
    """Return `labels` as a tuple of `count` distinct labels, 0..count-1 by default."""
    # `name` is quoted in errors.
    if labels is None:
        return tuple(range(count))
    if isinstance(labels, (str, bytes)):
        raise invalid(name, f"{count} labels", labels)
    checked_labels = tuple(_label(label, name) for label in labels)
    if len(checked_labels) != count:
        raise invalid(name, f"{count} labels", len(checked_labels))
    if len(set(checked_labels)) != count:
        first: dict[Label, int] = {}
        repeated_label = next(label for i, label in enumerate(checked_labels) if first.setdefault(label, i) != i)
        raise invalid(name, "distinct labels", Phrase(f"{repeated_label!r} twice"))
    return checked_labels


def _label(label: Any, name: str) -> Label:
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, tuple):
        return tuple(_label(part, name) for part in label)
    if isinstance(label, float) and not math.isfinite(label):
        raise invalid(name, "finite numbers as labels", label)
    if isinstance(label, (str, bool, int, float)):
        return label
    raise invalid(name, "labels that are strings, numbers or tuples of them", type(label).__name__)


def positions(labels: tuple[Label, ...], answers: Any) -> npt.NDArray[np.intp]:
    """Find the position in `labels` of every answer; the result has the answers' shape."""
    array = _array_of_labels(answers)
    if array.dtype.kind in "iu" and labels == tuple(range(len(labels))):
        is_known = (array >= 0) & (array < len(labels))
        if not is_known.all():
            raise _unknown(labels, array[~is_known][0].item())
        return array.astype(np.intp)
    position = {label: index for index, label in enumerate(labels)}
    # Sorting finds the few distinct answers among many. Objects of several types cannot be sorted.
    kinds, back = (array.reshape(-1), None) if array.dtype.kind == "O" else np.unique(array, return_inverse=True)
    places = np.empty(len(kinds), dtype=np.intp)
    for place, kind in enumerate(kinds.tolist()):
        try:
            places[place] = position[kind]
        except (KeyError, TypeError):
            raise _unknown(labels, kind) from None
    return (places if back is None else places[back.reshape(-1)]).reshape(array.shape)


def _unknown(labels: tuple[Label, ...], answer: Any) -> InvalidInput:
    return invalid("answer", f"one of the inputs {_listed(labels)}", answer)


def grouped(labels: tuple[Label, ...], groups: Iterable[Iterable[Label]]) -> list[list[int]]:
    """List the positions of each group of labels, and of every label in no group."""
    # In the order of the groups' first members.
    position = {label: y for y, label in enumerate(labels)}
    parts: dict[int, list[int]] = {y: [y] for y in range(len(labels))}
    for group in groups:
        members = list(group)
        places = [position.get(label, -1) for label in members]
        for y, label in zip(places, members, strict=True):
            if y not in parts or len(parts[y]) > 1 or places.count(y) > 1:
                raise invalid("merge groups", "labels of outputs, each in one group and once", label)
        for y in places[1:]:
            del parts[y]
        if places:
            parts[places[0]] = places
    return [parts[y] for y in sorted(parts)]


def _array_of_labels(x: Any) -> npt.NDArray[Any]:
    """An array whose entries are labels. Numpy alone would split tuples, and turn mixed types into text."""
    if isinstance(x, list) and any(isinstance(label, tuple) for label in x):
        array = np.empty(len(x), dtype=object)
        array[:] = x
        return array
    try:
        array = np.asarray(x)
    except ValueError:
        raise invalid("answers", "an array of labels", x) from None
    return np.asarray(x, dtype=object) if isinstance(x, list) and array.dtype.kind == "U" else array


def to_jsonable(label: Label) -> Any:
    """Convert a label to a JSON value: tuples become lists."""
    return [to_jsonable(part) for part in label] if isinstance(label, tuple) else label


def from_jsonable(labels: list[Any], name: str = "channel file") -> tuple[Label, ...]:
    """Read the labels of a JSON list whose inner lists represent tuples."""

    def read_label(value: Any, depth: int = 0) -> Label:
        if isinstance(value, list) and depth < 20:
            return tuple(read_label(part, depth + 1) for part in value)
        if not isinstance(value, (str, bool, int, float)):
            raise invalid(name, "labels that are strings, numbers or lists of them", value)
        return value

    return tuple(read_label(value) for value in labels)


def as_text(label: Label) -> str:
    """Convert a label to text for a data file: a string, or else compact JSON."""
    if isinstance(label, str):
        return label
    if type(label) is int:
        return str(label)
    return json.dumps(to_jsonable(label), separators=(",", ":"), ensure_ascii=False)


ANSWER = "answer"
"""The name of the column that holds the labels of the rows in a Polars frame, which has no index."""


def index_labels(values: Any, name: str) -> tuple[Label, ...] | None:
    """Return the labels along the first axis of a pandas object; None for other objects."""
    pandas = sys.modules.get("pandas")  # if pandas is not loaded, nothing can be a pandas object
    if pandas is None or not isinstance(values, pandas.Series | pandas.DataFrame):
        return None
    return _labels(values.index, len(values), name)


def column_labels(values: Any, name: str) -> tuple[Label, ...] | None:
    """Return the column names of a pandas or Polars frame; None for other objects."""
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if pandas is not None and isinstance(values, pandas.DataFrame):
        return _labels(values.columns, values.shape[1], name)
    if polars is not None and isinstance(values, polars.DataFrame):
        return _labels(values.columns, values.width, name)
    return None


def by_label(values: Any, labels: Sequence[Label] | None, name: str) -> Any:
    """Sort `values` into the order of `labels` if they carry labels; else return them unchanged."""
    own_labels = index_labels(values, name)
    if own_labels is None or labels is None:
        return values
    if tuple(labels) == tuple(range(len(labels))) and set(own_labels) != set(labels):
        return values  # default labels are positions; nobody chose them as names
    unknown = next((label for label in own_labels if label not in labels), None)
    if unknown is not None:
        raise invalid(name, f"the labels {_listed(labels)}", unknown)
    position = {label: place for place, label in enumerate(own_labels)}
    missing_label = next((label for label in labels if label not in position), None)
    if missing_label is not None:
        raise invalid(
            name, f"the labels {_listed(labels)}, 0 where nothing is counted", Phrase(f"no {missing_label!r}")
        )
    return values.iloc[[position[label] for label in labels]]


def aligned(
    named_vectors: Iterable[tuple[str, Any]], labels: Iterable[Label] | None = None
) -> tuple[list[Any], tuple[Label, ...] | None]:
    """Sort named vectors over the same labels into one order; return them and the order.

    The order is that of `labels` if they are given, else that of the first vector that carries labels.
    """
    vectors_by_name = list(named_vectors)
    if isinstance(labels, str | bytes):
        count = len(vectors_by_name[0][1]) if hasattr(vectors_by_name[0][1], "__len__") else 2
        raise invalid("inputs", f"{count} labels", labels)
    order = None if labels is None else tuple(labels)
    if order is None:
        order = next(
            (
                order_labels
                for name, values in vectors_by_name
                if (order_labels := index_labels(values, name)) is not None
            ),
            None,
        )
    return [by_label(values, order, name) for name, values in vectors_by_name], order


def matrix_labels(
    values: Any, inputs: Iterable[Label] | None, outputs: Iterable[Label] | None, name: str
) -> tuple[Any, Iterable[Label] | None, Iterable[Label] | None]:
    """Return a matrix and the labels of its rows and columns, in the order of given labels."""
    inputs, outputs = (x if x is None or isinstance(x, str | bytes) else tuple(x) for x in (inputs, outputs))
    values, answers = _answers_aside(values)
    row_labels, own_columns = answers or index_labels(values, name), column_labels(values, name)
    has_row_labels = row_labels is not None and answers is None
    if answers is not None and inputs is not None and inputs != answers:
        raise invalid("inputs", f"those of the column {ANSWER!r}, or no inputs", _listed(tuple(inputs)))
    if has_row_labels and inputs is not None:
        values = by_label(values, inputs, f"rows of {name}")
    if has_row_labels and outputs is not None:
        values = by_label(values.T, outputs, f"columns of {name}").T
    return values, row_labels if inputs is None else inputs, own_columns if outputs is None else outputs


def _answers_aside(values: Any) -> tuple[Any, tuple[Label, ...] | None]:
    """A Polars frame without its column `ANSWER`, and the labels in it, if that is its first column."""
    polars = sys.modules.get("polars")
    if polars is None or not isinstance(values, polars.DataFrame) or values.columns[:1] != [ANSWER]:
        return values, None
    return values.drop(ANSWER), tuple(values[ANSWER].to_list())


def vectors(values: Any) -> list[Any]:
    """List one vector or several; a pandas frame gives its rows with its column names."""
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if pandas is not None and isinstance(values, pandas.DataFrame):
        return [values.iloc[place] for place in range(len(values))]
    if polars is not None and isinstance(values, polars.DataFrame):  # which is iterated by its columns
        return list(values.to_numpy())
    if pandas is not None and isinstance(values, pandas.Series):
        return [values]
    several = list(values) if hasattr(values, "__len__") and not isinstance(values, str | bytes) else [values]
    return several if several and np.ndim(several[0]) else [values]


def _labels(index: Any, count: int, name: str) -> tuple[Label, ...] | None:
    # Intervals of `pandas.cut`, dates and other objects become labels by their printed text.
    texts = [y if isinstance(y, str | bool | int | float | tuple | np.generic) else str(y) for y in index]
    if texts == list(range(count)) or (isinstance(texts[0] if texts else None, str) and _numbered(texts)):
        return None
    return distinct_labels(texts, count, f"labels of {name}")


def _numbered(names: list[Any]) -> bool:
    """True if these are the default column names of Polars."""
    return names == [f"column_{place}" for place in range(len(names))]


def _listed(labels: Sequence[Label]) -> str:
    return ", ".join(map(repr, labels[:8])) + (", ..." if len(labels) > 8 else "")
