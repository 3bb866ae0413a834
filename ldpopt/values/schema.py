"""The schema and the version of a file of this package, and the labels in it; what other files hold is never quoted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ldpopt.errors import Phrase, invalid
from ldpopt.values.labels import Label, from_jsonable

__all__ = ["kind", "labelled", "schema_of", "version_of"]

_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", type(None): "nothing"}


def version_of(data: Any, what: str, format: str, versions: tuple[int, ...]) -> int:
    """The version of a file whose object has ``"format"`` and ``"version"``; `InvalidInput` for another file."""
    if not isinstance(data, dict) or data.get("format") != format:
        raise invalid(what, f'an object with "format": "{format}"', schema_of(data))
    version = data.get("version")
    if type(version) is not int or version not in versions:
        known = " or ".join(map(str, versions))
        raise invalid(what, f"version {known}", version if type(version) is int else Phrase("another"))
    return version


def labelled(data: dict[str, Any], what: str, table: str, others: tuple[str, ...]) -> tuple[tuple[Label, ...], ...]:
    """The labels of the inputs and the outputs in a file with the rows `table`, and perhaps the fields `others`."""
    lists = ("inputs", "outputs", table)
    fields = {"format", "version", "orientation", *lists, *others}
    if unknown := sorted(set(data) - fields):
        raise invalid(what, f"only the fields {', '.join(sorted(fields))}", unknown[0])
    for name in lists:
        if not isinstance(data.get(name), list):
            raise invalid(what, f"a list {name!r}", type(data.get(name)).__name__)
    return from_jsonable(data["inputs"], what), from_jsonable(data["outputs"], what)


def schema_of(data: Any) -> str:
    """The schema that a file of this package names, or what kind of value another file holds."""
    named = data.get("format", data.get("schema")) if isinstance(data, dict) else None
    return named if isinstance(named, str) and named.startswith("ldpopt-") else Phrase(kind(data))


def kind(value: Any) -> str:
    """What a value is, in words that do not show it, such as 'a whole number'."""
    if isinstance(value, Mapping):
        return "a table"
    return "a list" if isinstance(value, (list, tuple)) else _KINDS.get(type(value), type(value).__name__)
