"""The names of answers and reports: strings, numbers, or tuples of them, distinct within one list."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.errors import InvalidInput, Phrase, invalid

Label = Hashable


def distinct_labels(labels: Iterable[Label] | None, count: int, what: str) -> tuple[Label, ...]:
    """`labels` as a tuple of `count` distinct labels, 0..count-1 by default; `what` names them in errors."""
    if labels is None:
        return tuple(range(count))
    if isinstance(labels, (str, bytes)):
        raise invalid(what, f"{count} labels", labels)
    made = tuple(_label(label, what) for label in labels)
    if len(made) != count:
        raise invalid(what, f"{count} labels", len(made))
    if len(set(made)) != count:
        first: dict[Label, int] = {}
        twice = next(label for i, label in enumerate(made) if first.setdefault(label, i) != i)
        raise invalid(what, "distinct labels", Phrase(f"{twice!r} twice"))
    return made


def _label(label: Any, what: str) -> Label:
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, tuple):
        return tuple(_label(part, what) for part in label)
    if isinstance(label, float) and not math.isfinite(label):
        raise invalid(what, "finite numbers as labels", label)
    if isinstance(label, (str, bool, int, float)):
        return label
    raise invalid(what, "labels that are strings, numbers or tuples of them", type(label).__name__)


def positions(labels: tuple[Label, ...], answers: Any) -> npt.NDArray[np.intp]:
    """The position in `labels` of every answer in an array or list; the result has the answers' shape.

    >>> positions(((0, "a"), (0, "b")), [(0, "b"), (0, "a")])
    array([1, 0])
    """
    array = _array_of_labels(answers)
    if array.dtype.kind in "iu" and labels == tuple(range(len(labels))):
        known = (array >= 0) & (array < len(labels))
        if not known.all():
            raise _unknown(labels, array[~known][0].item())
        return array.astype(np.intp)
    at = {label: index for index, label in enumerate(labels)}
    # Sorting finds the few distinct answers among many. Objects of several types cannot be sorted.
    kinds, back = (array.reshape(-1), None) if array.dtype.kind == "O" else np.unique(array, return_inverse=True)
    found = np.empty(len(kinds), dtype=np.intp)
    for place, kind in enumerate(kinds.tolist()):
        try:
            found[place] = at[kind]
        except (KeyError, TypeError):
            raise _unknown(labels, kind) from None
    return (found if back is None else found[back.reshape(-1)]).reshape(array.shape)


def _unknown(labels: tuple[Label, ...], answer: Any) -> InvalidInput:
    shown = ", ".join(map(repr, labels[:8])) + (", ..." if len(labels) > 8 else "")
    return invalid("answer", f"one of the inputs {shown}", answer)


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
    """A label as a JSON value: tuples become lists."""
    return [to_jsonable(part) for part in label] if isinstance(label, tuple) else label


def from_jsonable(labels: list[Any], what: str = "channel file") -> tuple[Label, ...]:
    """The labels of a JSON list, in which lists stand for tuples; `what` names the file in errors."""

    def one(value: Any, depth: int = 0) -> Label:
        if isinstance(value, list) and depth < 20:
            return tuple(one(part, depth + 1) for part in value)
        if not isinstance(value, (str, bool, int, float)):
            raise invalid(what, "labels that are strings, numbers or lists of them", value)
        return value

    return tuple(one(value) for value in labels)


def as_text(label: Label) -> str:
    """A label as text for a data file: a string as itself, anything else as compact JSON.

    >>> as_text("yes"), as_text(3), as_text((0, "a")), as_text(True)
    ('yes', '3', '[0,"a"]', 'true')
    """
    if isinstance(label, str):
        return label
    if type(label) is int:
        return str(label)
    return json.dumps(to_jsonable(label), separators=(",", ":"), ensure_ascii=False)
