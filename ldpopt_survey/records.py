"""Read parsed files into frozen dataclasses that are checked in one place, write them back, and document their keys.

A *record* is a frozen dataclass whose fields declare by `key` how they are read. The docstring of the class gives the
meanings, as ``name : meaning``. `check`, called in ``__post_init__``, reads the fields from a file or a call.
Conditions on several fields are checked after it. `load` builds a record from a table of TOML or an object of JSON, and
rejects unknown, missing and ill-typed keys. `dump` writes it, and `reference` prints its keys.

A *reader* is a function (value, place). It returns the value in its final form or raises `errors.invalid(place, ...)`.
It accepts its own results. Readers here are `text`, `whole`, `flag`, `choice`, `listed`, `mapped` and `record`.
Others are in `distribution`, such as `number`, `positive_epsilon` and `unit_interval`. Those here name the type of a
rejected value and never quote it, since it may be an answer.

>>> from dataclasses import dataclass
>>> from ldpopt.values.distribution import positive_integer
>>> @dataclass(frozen=True)
... class Wave:
...     '''A wave of a survey.
...
...     name : the survey. round : the number of the wave.
...     columns : public columns.
...     '''
...     name: str = key(text)
...     round: int = key(positive_integer, default=1)
...     columns: tuple[str, ...] = key(listed(text), default=(), name="carry", omit=True)
...     def __post_init__(self):
...         check(self, "wave")
>>> load(Wave, {"name": "health", "carry": ["region"]}, "wave.toml")
Wave(name='health', round=1, columns=('region',))
>>> dump(Wave("health"))
{'name': 'health', 'round': 1}
>>> load(Wave, {"name": 3}, "wave.toml")
Traceback (most recent call last):
ldpopt.errors.InvalidInput: wave: name: expected a printable text of 1 to 200 characters, got a whole number
>>> load(Wave, {"name": "health", "rnd": 2}, "wave.toml")
Traceback (most recent call last):
ldpopt.errors.InvalidInput: wave.toml: expected only the keys carry, name, round, got 'rnd'
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from types import MappingProxyType
from typing import Any, TypeVar, cast

from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.values.distribution import Reader, between
from ldpopt.values.schema import kind

__all__ = [
    "Key",
    "additional_keys",
    "check",
    "choice",
    "dump",
    "flag",
    "key",
    "listed",
    "load",
    "mapped",
    "mapping",
    "record",
    "reference",
    "text",
    "whole",
    "within",
]  # fmt: skip

T = TypeVar("T")

_ENTRY = re.compile(r"(?:^\s*|(?<=[.;] ))((?:\w+(?: \([^)]*\))?(?:, )?)+) : ", re.MULTILINE)


@dataclass(frozen=True)
class Key:
    """Form of a field in a file.

    - `read` : its reader, which `check` applies, except to a default None.
    - `name` : the key in the file, if it is not the field's name.
    - `aliases` : further keys that files may use in its place.
    - `table` : the table of the file that contains the key.
    - `inline` : True if the field is itself a record, with its keys in the table of the outer one.
    - `omit` : True if `dump` omits a value that is the default.
    - `load`, `dump` : conversions from and to the form in the file, if it differs from that of `read` and `dump`.
    """

    read: Reader | None = None
    name: str = ""
    aliases: tuple[str, ...] = ()
    table: str = ""
    inline: bool = False
    omit: bool = False
    load: Reader | None = None
    dump: Callable[[Any], Any] | None = None


def key(read: Reader | None = None, *, default: Any = MISSING, **settings: Any) -> Any:
    """Return a field of a record: its default as in `dataclasses.field`, and a `Key`.

    A field without a default is required in the file.
    """
    return field(default=default, metadata={"key": Key(read, **settings)})


def check(value: Any, place: str) -> None:
    """Read every field of a record that is being made; errors name `place` and the field."""
    for item, field_key in _keys(type(value)):
        content = getattr(value, item.name)
        if field_key.read is not None and not (content is None and item.default is None):
            location = f"[{field_key.table}] {item.name}" if field_key.table else f"{place}: {item.name}"
            object.__setattr__(value, item.name, field_key.read(content, location))


def load(cls: type[T], data: Any, place: str) -> T:
    """Build the record that a table or object of a file describes.

    `InvalidInput`, which names `place`, for anything else.
    """
    remaining = {place: dict(mapping(data, place))}
    known_keys: dict[str, list[str]] = {place: []}
    values: dict[str, Any] = {}
    for item, field_key in _keys(cls):
        location = f"{place} [{field_key.table}]" if field_key.table else place
        if location not in remaining:
            known_keys[place].append(field_key.table)
            known_keys[location] = []
            remaining[location] = dict(mapping(remaining[place].pop(field_key.table, {}), location))
        if field_key.inline:
            names = [inner.name or inner_item.name for inner_item, inner in _keys(cast(_Record, field_key.read).cls)]
            known_keys[location] += names
            values[item.name] = {name: remaining[location].pop(name) for name in names if name in remaining[location]}
            continue
        name = field_key.name or item.name
        known_keys[location].append(name)
        given_names = [alias for alias in (name, *field_key.aliases) if alias in remaining[location]]
        if len(given_names) > 1:
            raise InvalidInput(
                f"{location}: {given_names[0]!r} cannot be combined with {given_names[1]!r}; keep {given_names[0]!r}"
            )
        if given_names:
            value = remaining[location].pop(given_names[0])
            if field_key.load is not None and not (value is None and item.default is None):
                value = field_key.load(value, f"{location}: {name}")
            values[item.name] = value
        elif item.default is MISSING and item.default_factory is MISSING:
            raise InvalidInput(f"{location} has no key {name!r}")
    for location, unknown_keys in remaining.items():
        if unknown_keys:
            unknown = next(iter(unknown_keys))
            homes = [home.removeprefix(place).strip() for home, names in known_keys.items() if unknown in names]
            found = Phrase(f"{unknown!r}, a key of {' and '.join(homes)}") if homes and all(homes) else unknown
            raise invalid(location, f"only the keys {', '.join(sorted(known_keys[location]))}", found)
    return cls(**values)


def dump(value: Any) -> dict[str, Any]:
    """Convert a record to JSON-ready values, which `load` converts back."""
    tables: dict[str, Any] = {}
    for item, field_key in _keys(type(value)):
        content = getattr(value, item.name)
        if field_key.omit and content == item.default:
            continue
        table = tables.setdefault(field_key.table, {}) if field_key.table else tables
        converted = _jsonable(content) if field_key.dump is None or content is None else field_key.dump(content)
        table.update(converted if field_key.inline else {field_key.name or item.name: converted})
    return tables


def _jsonable(value: Any) -> Any:
    """Return lists for tuples and arrays, objects for mappings and records, and other values unchanged."""
    if hasattr(value, "__dataclass_fields__"):
        return dump(value)
    if isinstance(value, Mapping):
        return {name: _jsonable(content) for name, content in value.items()}
    if hasattr(value, "tolist"):
        return value.tolist()
    return [_jsonable(content) for content in value] if isinstance(value, (list, tuple)) else value


def _keys(cls: type) -> Iterator[tuple[Field[Any], Key]]:
    """Yield the fields of a dataclass with their keys; a field without a key is read unchanged."""
    for item in fields(cast(Any, cls)):
        if item.init:
            yield item, item.metadata.get("key", Key())


def text(value: Any, place: str) -> str:
    """Check that `value` is a printable text of 1 to 200 characters, not all blank."""
    if not isinstance(value, str) or not value.strip() or len(value) > 200 or not value.isprintable():
        got = "another text" if isinstance(value, str) else kind(value)
        raise invalid(place, "a printable text of 1 to 200 characters", Phrase(got))
    return value


def whole(value: Any, place: str) -> int:
    """Check that `value` is an integer from 0 that fits into 62 bits."""
    if type(value) is not int or not 0 <= value < 1 << 62:
        raise invalid(place, "a whole number, at least 0", Phrase(kind(value)))
    return value


def flag(value: Any, place: str) -> bool:
    """Check that `value` is true or false."""
    if not isinstance(value, bool):
        raise invalid(place, "true or false", Phrase(kind(value)))
    return value


def choice(*words: str) -> Reader:
    """Return a reader of one of several words."""

    def read(value: Any, place: str) -> str:
        if not isinstance(value, str) or value not in words:
            got = "another word" if isinstance(value, str) else kind(value)
            raise invalid(place, " or ".join(f'"{word}"' for word in words), Phrase(got))
        return value

    return read


def within(low: float, high: float, ends: str = "[]") -> Reader:
    """Return a reader of numbers in an interval; a round bracket excludes its end."""
    expected = f"a number in {ends[0]}{low:g}, {high:g}{ends[1]}"
    return lambda value, place: between(value, place, expected, low, high, ends)


def listed(read: Reader, min_length: int = 0) -> Reader:
    """Return a reader of lists, as tuples; the reader `read` takes each entry.

    min_length : smallest number of entries.
    """

    def entries(value: Any, place: str) -> tuple[Any, ...]:
        if not isinstance(value, (list, tuple)):
            raise invalid(place, "a list", Phrase(kind(value)))
        if len(value) < min_length:
            raise invalid(place, f"a list of at least {min_length}", Phrase(f"{len(value)}"))
        return tuple(read(entry, f"{place}, entry {number}") for number, entry in enumerate(value, 1))

    return entries


def mapping(value: Any, place: str) -> Mapping[str, Any]:
    """Check that `value` is a table of TOML or an object of JSON."""
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise invalid(place, "a table", Phrase(kind(value)))
    return value


def mapped(read: Reader, names: Reader = text) -> Reader:
    """Return a reader of tables from names, read by `names`, to values, read by `read`.

    The result cannot be changed.
    """

    def entries(value: Any, place: str) -> Mapping[str, Any]:
        items = mapping(value, place).items()
        return MappingProxyType({names(name, place): read(entry, f"{place} {name!r}") for name, entry in items})

    return entries


def record(cls: type[T]) -> Callable[[Any, str], T]:
    """Return a reader of records: a `cls` unchanged, and a table by `load`."""
    return _Record(cls)


@dataclass(frozen=True)
class _Record:
    cls: type[Any]

    def __call__(self, value: Any, place: str) -> Any:
        return value if isinstance(value, self.cls) else load(self.cls, value, place)


def reference(cls: type, inner: Mapping[str, type] = MappingProxyType({})) -> str:
    """Write a page in Markdown of every key of a record, then of the tables `inner`.

    The columns are the table, the type, the default and the meaning.
    """
    tables: dict[str, list[str]] = {}
    for item, field_key, meaning in _described(cls):
        if item.name not in inner:
            cells = (f"`{field_key.name or item.name}`", _kind_in_words(item, field_key), _default(item, field_key))
            row = f"| {' | '.join(cells)} | {meaning} |"
            tables.setdefault(field_key.table, []).append(row)
    head = "| key | value | default | meaning |\n|---|---|---|---|\n"
    parts = [(f"## `[{table}]`\n\n" if table else "") + head + "\n".join(rows) for table, rows in tables.items()]
    return "\n\n".join([*parts, *(f"## `[{name}]`\n\n{reference(record)}" for name, record in inner.items())])


def additional_keys(cls: type, base: type) -> str:
    """Return the rows of `reference` for the keys that differ from those of `base`."""
    base_rows = reference(base).splitlines()[2:]
    head, rule, *rows = reference(cls).splitlines()
    return "\n".join([head, rule, *(row for row in rows if row not in base_rows and not row.endswith("|  |"))])


def _described(cls: type) -> Iterator[tuple[Field[Any], Key, str]]:
    """Yield fields, keys and meanings of a record and of its inline records.

    Meanings are the ``name :`` entries of the docstrings.
    """
    inline = (item_key.read for _, item_key in _keys(cls) if item_key.inline)
    names = {item.name for kind in (cls, *(cast(_Record, read).cls for read in inline)) for item, _ in _keys(kind)}
    doc = (cls.__doc__ or "").split(">>>")[0]
    heads = [(hit, re.sub(r" \([^)]*\)", "", hit[1]).split(", ")) for hit in _ENTRY.finditer(doc)]
    heads = [(hit, names_of_entry) for hit, names_of_entry in heads if set(names_of_entry) <= names]
    ends = [hit.start() for hit, _ in heads[1:]] + [len(doc)]
    meanings: dict[str, str] = {}
    for (hit, names_of_entry), end in zip(heads, ends, strict=True):
        meanings.update(dict.fromkeys(names_of_entry, " ".join(doc[hit.end() : end].split("\n\n")[0].split())))
    for item, key in _keys(cls):
        if key.inline:
            for inner, inner_key, meaning in _described(cast(_Record, key.read).cls):
                yield inner, inner_key, meanings.get(inner.name, meaning)
        else:
            yield item, key, meanings.get(item.name, "")


def _kind_in_words(item: Field[Any], key: Key) -> str:
    if key.dump is not None and item.default is not MISSING and item.default is not None:
        return {"a text": "text", "a list": "list", "a table": "table"}[kind(key.dump(item.default))]
    type_name = (item.type if isinstance(item.type, str) else getattr(item.type, "__name__", "")).removesuffix(
        " | None"
    )
    words = {"str": "text", "int": "whole number", "float": "number", "bool": "true or false", "Label": "label"}
    return words.get(type_name) or (
        "list" if type_name.startswith(("tuple", "Any")) else "table" if "Mapping" in type_name else type_name
    )


def _default(item: Field[Any], field_key: Key) -> str:
    if item.default is MISSING:
        return "required" if item.default_factory is MISSING else ""
    default = item.default if field_key.dump is None or item.default is None else field_key.dump(item.default)
    return "" if default in (None, "", (), [], {}) else f"`{default!r}`"
