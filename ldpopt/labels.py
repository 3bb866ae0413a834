"""Labels of inputs and outputs: strings, numbers, or tuples of them, and their forms in files."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from ldpopt.errors import InvalidInput, invalid

Label = Hashable


def as_labels(given: Iterable[Label] | None, count: int, what: str) -> tuple[Label, ...]:
    """`given` as `count` distinct labels; 0..count-1 for None.

    >>> as_labels(None, 2, "inputs"), as_labels(["no", "yes"], 2, "inputs")
    ((0, 1), ('no', 'yes'))
    """
    if given is None:
        return tuple(range(count))
    if isinstance(given, (str, bytes)):
        raise invalid(what, f"{count} labels", given)
    made = tuple(_label(label, what) for label in given)
    if len(made) != count:
        raise invalid(what, f"{count} labels", len(made))
    if len(set(made)) != count:
        twice = next(label for i, label in enumerate(made) if label in made[:i])
        raise invalid(what, "distinct labels", f"{twice!r} twice")
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


def position_of(among: tuple[Label, ...], label: Any) -> int:
    """The place of `label` in a tuple of inputs."""
    if isinstance(label, np.generic):
        label = label.item()
    try:
        return among.index(label)
    except ValueError:
        raise invalid("answer", f"one of the inputs {among[:8]}", label) from None


def to_json(label: Label) -> Any:
    """A label as a JSON value: tuples become lists."""
    return [to_json(part) for part in label] if isinstance(label, tuple) else label


def from_json(values: list[Any], what: str) -> tuple[Label, ...]:
    """Labels read back from JSON values; lists become tuples."""

    def one(value: Any, depth: int = 0) -> Label:
        if isinstance(value, list) and depth < 20:
            return tuple(one(part, depth + 1) for part in value)
        if not isinstance(value, (str, bool, int, float)):
            raise InvalidInput(f"{what}: labels must be strings, numbers or lists of them")
        return value

    return tuple(one(value) for value in values)


def as_text(label: Label) -> str:
    """A label as it stands in a data file: a string as itself, anything else as compact JSON.

    >>> as_text("yes"), as_text(3), as_text((0, "a")), as_text(True)
    ('yes', '3', '[0,"a"]', 'true')
    """
    if isinstance(label, str):
        return label
    return json.dumps(to_json(label), separators=(",", ":"), ensure_ascii=False)
