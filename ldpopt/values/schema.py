"""The schema, the version and the labels of a file of this package; contents of other files are never quoted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ldpopt.errors import Phrase, invalid
from ldpopt.values.labels import Label, from_jsonable

__all__ = ["kind", "labelled", "schema_of", "version_of"]

_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", type(None): "nothing"}


def version_of(data: Any, name: str, format: str, versions: tuple[int, ...]) -> int:
    """Return the version of a file whose object has ``"format"`` and ``"version"``."""
    # `InvalidInput` for another file.
    if not isinstance(data, dict) or data.get("format") != format:
        raise invalid(name, f'an object with "format": "{format}"', schema_of(data))
    version = data.get("version")
    if type(version) is not int or version not in versions:
        version_list = " or ".join(map(str, versions))
        raise invalid(
            name,
            f"version {version_list}",
            version if type(version) is int else Phrase("a version that is not an integer"),
        )
    return version


def labelled(data: dict[str, Any], name: str, table: str, others: tuple[str, ...]) -> tuple[tuple[Label, ...], ...]:
    """Read the labels of inputs and outputs in a file with the rows `table`."""
    lists = ("inputs", "outputs", table)
    fields = {"format", "version", "orientation", *lists, *others}
    if unknown := sorted(set(data) - fields):
        raise invalid(name, f"only the fields {', '.join(sorted(fields))}", unknown[0])
    for field in lists:
        if not isinstance(data.get(field), list):
            raise invalid(name, f"a list {field!r}", type(data.get(field)).__name__)
    return from_jsonable(data["inputs"], name), from_jsonable(data["outputs"], name)


def schema_of(data: Any) -> str:
    """Return the schema of a file of this package, or the type of the value in another file."""
    schema_name = data.get("format", data.get("schema")) if isinstance(data, dict) else None
    return schema_name if isinstance(schema_name, str) and schema_name.startswith("ldpopt-") else Phrase(kind(data))


def kind(value: Any) -> str:
    """Describe the type of a value in words that do not show it, such as 'a whole number'."""
    if isinstance(value, Mapping):
        return "a table"
    return "a list" if isinstance(value, (list, tuple)) else _KINDS.get(type(value), type(value).__name__)
