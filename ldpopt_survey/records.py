"""From what a file says, parsed, to a frozen dataclass checked in one place; back again; and a page of all its keys.

A *record* is a frozen dataclass whose fields say by `key` how they are read. What they mean stands in the docstring of
the class, as ``name : meaning``. `check`, called in ``__post_init__``, reads the fields wherever they come from, a
file or a call; what several fields must fulfil together is checked after it. `load` takes a record from a table of TOML
or an object of JSON and refuses unknown, missing and ill-typed keys; `dump` writes it; `reference` prints its keys.

A *reader* is a function (value, what) that gives the value in its final form or raises `errors.invalid(what, ...)`. It
accepts its own results. Readers are `text`, `whole`, `flag`, `choice`, `listed`, `mapped`, `record` here, `number`,
`positive_epsilon`, `unit_interval` and others in `distribution`; those here name the kind of what they got and never
quote it, since it may be an answer.

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

from ldpopt.errors import Phrase, invalid
from ldpopt.values.distribution import Reader, between
from ldpopt.values.schema import kind

__all__ = [
    "Key", "check", "choice", "dump", "flag", "key", "listed", "load", "mapped", "mapping", "own_keys", "record",
    "reference", "text", "whole", "within",
]  # fmt: skip

T = TypeVar("T")

_ENTRY = re.compile(r"(?:^\s*|(?<=[.;] ))((?:\w+(?: \([^)]*\))?(?:, )?)+) : ", re.MULTILINE)


@dataclass(frozen=True)
class Key:
    """How a field stands in a file.

    read : its reader, which `check` applies; not to None where that is the default.
    name : the key in the file, if it is not the field's name. table : the table of the file in which the key stands.
    inline : whether the keys of the field, itself a record that `read` reads, stand in the table of the outer one.
    omit : whether `dump` leaves out a value that is the default.
    load, dump : between a value and its form in the file, where that differs from what `read` takes and `dump` writes.
    """

    read: Reader | None = None
    name: str = ""
    table: str = ""
    inline: bool = False
    omit: bool = False
    load: Reader | None = None
    dump: Callable[[Any], Any] | None = None


def key(read: Reader | None = None, *, default: Any = MISSING, **said: Any) -> Any:
    """A field of a record: its default as in `dataclasses.field` (without one the file must have it), and a `Key`."""
    return field(default=default, metadata={"key": Key(read, **said)})


def check(value: Any, what: str) -> None:
    """Read every field of a record that is being made; errors name `what` and the field."""
    for item, said in _keys(type(value)):
        given = getattr(value, item.name)
        if said.read is not None and not (given is None and item.default is None):
            where = f"[{said.table}] {item.name}" if said.table else f"{what}: {item.name}"
            object.__setattr__(value, item.name, said.read(given, where))


def load(cls: type[T], data: Any, what: str) -> T:
    """The record that a table or object of a file describes; `InvalidInput`, which names `what`, for anything else."""
    rest = {what: dict(mapping(data, what))}
    known: dict[str, list[str]] = {what: []}
    given: dict[str, Any] = {}
    for item, said in _keys(cls):
        where = f"{what} [{said.table}]" if said.table else what
        if where not in rest:
            known[what].append(said.table)
            known[where] = []
            rest[where] = dict(mapping(rest[what].pop(said.table, {}), where))
        if said.inline:
            names = [inner.name or inner_item.name for inner_item, inner in _keys(cast(_Record, said.read).cls)]
            known[where] += names
            given[item.name] = {name: rest[where].pop(name) for name in names if name in rest[where]}
            continue
        name = said.name or item.name
        known[where].append(name)
        if name in rest[where]:
            value = rest[where].pop(name)
            if said.load is not None and not (value is None and item.default is None):
                value = said.load(value, f"{where}: {name}")
            given[item.name] = value
        elif item.default is MISSING and item.default_factory is MISSING:
            raise invalid(where, f"a key {name!r}", Phrase("none"))
    for where, unknown in rest.items():
        if unknown:
            raise invalid(where, f"only the keys {', '.join(sorted(known[where]))}", next(iter(unknown)))
    return cls(**given)


def dump(value: Any) -> dict[str, Any]:
    """A record as JSON-ready values, from which `load` makes it again."""
    tables: dict[str, Any] = {}
    for item, said in _keys(type(value)):
        content = getattr(value, item.name)
        if said.omit and content == item.default:
            continue
        table = tables.setdefault(said.table, {}) if said.table else tables
        written = _plain(content) if said.dump is None or content is None else said.dump(content)
        table.update(written if said.inline else {said.name or item.name: written})
    return tables


def _plain(value: Any) -> Any:
    """Lists for tuples and arrays, objects for mappings and records; everything else as it is."""
    if hasattr(value, "__dataclass_fields__"):
        return dump(value)
    if isinstance(value, Mapping):
        return {name: _plain(content) for name, content in value.items()}
    if hasattr(value, "tolist"):
        return value.tolist()
    return [_plain(content) for content in value] if isinstance(value, (list, tuple)) else value


def _keys(cls: type) -> Iterator[tuple[Field[Any], Key]]:
    """The fields of a dataclass with their keys; a field without one is taken as it stands."""
    for item in fields(cast(Any, cls)):
        if item.init:
            yield item, item.metadata.get("key", Key())


def text(value: Any, what: str) -> str:
    """`value`, a printable text of 1 to 200 characters that are not all blank."""
    if not isinstance(value, str) or not value.strip() or len(value) > 200 or not value.isprintable():
        got = "another text" if isinstance(value, str) else kind(value)
        raise invalid(what, "a printable text of 1 to 200 characters", Phrase(got))
    return value


def whole(value: Any, what: str) -> int:
    """`value`, a whole number from 0 that fits into 62 bits."""
    if type(value) is not int or not 0 <= value < 1 << 62:
        raise invalid(what, "a whole number, at least 0", Phrase(kind(value)))
    return value


def flag(value: Any, what: str) -> bool:
    """`value`, true or false."""
    if not isinstance(value, bool):
        raise invalid(what, "true or false", Phrase(kind(value)))
    return value


def choice(*words: str) -> Reader:
    """A reader of one of several words."""

    def read(value: Any, what: str) -> str:
        if not isinstance(value, str) or value not in words:
            got = "another word" if isinstance(value, str) else kind(value)
            raise invalid(what, " or ".join(f'"{word}"' for word in words), Phrase(got))
        return value

    return read


def within(low: float, high: float, ends: str = "[]") -> Reader:
    """A reader of numbers between two ends, of which a round bracket excludes one."""
    expected = f"a number in {ends[0]}{low:g}, {high:g}{ends[1]}"
    return lambda value, what: between(value, what, expected, low, high, ends)


def listed(read: Reader, least: int = 0) -> Reader:
    """A reader of lists, as tuples, of at least so many entries, each for the reader `read`."""

    def entries(value: Any, what: str) -> tuple[Any, ...]:
        if not isinstance(value, (list, tuple)):
            raise invalid(what, "a list", Phrase(kind(value)))
        if len(value) < least:
            raise invalid(what, f"a list of at least {least}", Phrase(f"{len(value)}"))
        return tuple(read(entry, f"{what}, entry {number}") for number, entry in enumerate(value, 1))

    return entries


def mapping(value: Any, what: str) -> Mapping[str, Any]:
    """`value`, a table of TOML or an object of JSON."""
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise invalid(what, "a table", Phrase(kind(value)))
    return value


def mapped(read: Reader, names: Reader = text) -> Reader:
    """A reader of tables from names, read by `names`, to values, read by `read`; the result cannot be changed."""

    def entries(value: Any, what: str) -> Mapping[str, Any]:
        items = mapping(value, what).items()
        return MappingProxyType({names(name, what): read(entry, f"{what} {name!r}") for name, entry in items})

    return entries


def record(cls: type[T]) -> Callable[[Any, str], T]:
    """A reader of records: a `cls` as it is, and a table by `load`."""
    return _Record(cls)


@dataclass(frozen=True)
class _Record:
    cls: type[Any]

    def __call__(self, value: Any, what: str) -> Any:
        return value if isinstance(value, self.cls) else load(self.cls, value, what)


def reference(cls: type, inner: Mapping[str, type] = MappingProxyType({})) -> str:
    """A page in Markdown of every key of a record (table, kind, default, meaning), then those of the tables `inner`."""
    tables: dict[str, list[str]] = {}
    for item, said, meaning in _described(cls):
        if item.name not in inner:
            row = f"| `{said.name or item.name}` | {_kind_in_words(item, said)} | {_default(item, said)} | {meaning} |"
            tables.setdefault(said.table, []).append(row)
    head = "| key | value | default | meaning |\n|---|---|---|---|\n"
    parts = [(f"## `[{table}]`\n\n" if table else "") + head + "\n".join(rows) for table, rows in tables.items()]
    return "\n\n".join([*parts, *(f"## `[{name}]`\n\n{reference(record)}" for name, record in inner.items())])


def own_keys(cls: type, base: type) -> str:
    """The rows of `reference` for the keys that a record has and `base` has not, or has with another meaning."""
    known = reference(base).splitlines()[2:]
    head, rule, *rows = reference(cls).splitlines()
    return "\n".join([head, rule, *(row for row in rows if row not in known and not row.endswith("|  |"))])


def _described(cls: type) -> Iterator[tuple[Field[Any], Key, str]]:
    """Fields, keys and meanings of a record and of those inline in it, from ``name :`` entries of the docstrings."""
    inline = (item_key.read for _, item_key in _keys(cls) if item_key.inline)
    names = {item.name for kind in (cls, *(cast(_Record, read).cls for read in inline)) for item, _ in _keys(kind)}
    doc = (cls.__doc__ or "").split(">>>")[0]
    heads = [(hit, re.sub(r" \([^)]*\)", "", hit[1]).split(", ")) for hit in _ENTRY.finditer(doc)]
    heads = [(hit, said) for hit, said in heads if set(said) <= names]
    ends = [hit.start() for hit, _ in heads[1:]] + [len(doc)]
    meanings: dict[str, str] = {}
    for (hit, said), end in zip(heads, ends, strict=True):
        meanings.update(dict.fromkeys(said, " ".join(doc[hit.end() : end].split("\n\n")[0].split())))
    for item, key in _keys(cls):
        if key.inline:
            for inner, inner_key, meaning in _described(cast(_Record, key.read).cls):
                yield inner, inner_key, meanings.get(inner.name, meaning)
        else:
            yield item, key, meanings.get(item.name, "")


def _kind_in_words(item: Field[Any], key: Key) -> str:
    if key.dump is not None and item.default is not MISSING and item.default is not None:
        return {"a text": "text", "a list": "list", "a table": "table"}[kind(key.dump(item.default))]
    said = (item.type if isinstance(item.type, str) else getattr(item.type, "__name__", "")).removesuffix(" | None")
    plain = {"str": "text", "int": "whole number", "float": "number", "bool": "true or false", "Label": "label"}
    return plain.get(said) or ("list" if said.startswith(("tuple", "Any")) else "table" if "Mapping" in said else said)


def _default(item: Field[Any], said: Key) -> str:
    if item.default is MISSING:
        return "required" if item.default_factory is MISSING else ""
    default = item.default if said.dump is None or item.default is None else said.dump(item.default)
    return "" if default in (None, "", (), [], {}) else f"`{default!r}`"
