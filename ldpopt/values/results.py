"""The shared methods of all results: equality by value, and exports to dictionaries, frames, HTML, LaTeX and figures.

A result is an object that a function of the package returns: a frozen dataclass that inherits `Result`, whose method
`_columns` gives its table. Objects that describe a problem (utilities, constraints, mechanisms) inherit only `ByValue`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import cached_property
from html import escape
from itertools import repeat
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar, cast

import numpy as np

from ldpopt.errors import Phrase, invalid
from ldpopt.extras import drawing
from ldpopt.files.escapes import csv_text, for_csv
from ldpopt.numbers.rounding import ceil_digits, floor_digits
from ldpopt.values.labels import as_text

__all__ = [
    "ByValue", "Pictured", "Result", "Rows", "jsonable",
]  # fmt: skip


class ByValue:
    """Equality, hashing and pickling by an object's values, including arrays, `scipy.stats` distributions and graphs.

    Two objects are equal if they are of one class and hold equal values. Arrays are compared entry by entry, and NaN
    equals NaN. A function equals only itself. Cached values that can be computed again are neither compared nor
    pickled. A read-only array is read-only again after unpickling.

    >>> from ldpopt import LocalDP, MutualInformation
    >>> MutualInformation([0.5, 0.5]) == MutualInformation([0.5, 0.5]), LocalDP(1.0) == LocalDP(2.0)
    (True, False)
    """

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self is other or _compared_fields(self) == _compared_fields(other)

    def __hash__(self) -> int:
        return hash((type(self).__name__, _compared_fields(self)))

    def __getstate__(self) -> dict[str, Any]:
        return {name: _packed(value) for name, value in _state(self).items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update((name, _unpacked(value)) for name, value in state.items())


def is_graph(value: Any) -> bool:
    """Return True if a value is a networkx graph."""
    return hasattr(value, "nodes") and hasattr(value, "edges") and hasattr(value, "is_directed")


def _state(value: Any) -> dict[str, Any]:
    """The attributes of an object, without cached properties."""
    attributes = vars(value).items()
    return {
        name: field for name, field in attributes if not isinstance(getattr(type(value), name, None), cached_property)
    }


def _compared_fields(value: Any) -> tuple[Any, ...]:
    excluded_names = {f.name for f in fields(value) if not f.compare} if is_dataclass(value) else set()
    return tuple((name, key(content)) for name, content in sorted(_state(value).items()) if name not in excluded_names)


_PLAIN = frozenset({str, int, bool, bytes, type(None)})
"""The types whose values are keys themselves, of which labels are many."""


def key(value: Any) -> Any:
    """Build a hashable key of any value; two keys are equal exactly if the values are equal."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if value == value else "nan"
    if isinstance(value, np.ndarray):
        return _of_array(value)
    if isinstance(value, Mapping):
        return ("mapping", frozenset((content, key(value_part)) for content, value_part in value.items()))
    if isinstance(value, list | tuple):
        return tuple(map(key, value))
    if hasattr(value, "dist") and hasattr(value, "args") and hasattr(value, "kwds"):
        return _of_law(value)
    if is_graph(value):
        return _of_graph(value)
    try:
        hash(value)
    except TypeError:
        return _Compared(value)
    return value


def _of_array(array: Any) -> Any:
    if array.dtype.kind in "biu" and (not array.size or max(abs(int(array.max())), abs(int(array.min()))) < 2**53):
        array = array.astype(np.float64)
    if array.dtype.kind != "f":
        return ("array", array.shape, tuple(map(key, array.ravel().tolist())))
    normalized_array = array.astype(np.float64) + 0.0  # a negative zero becomes zero
    normalized_array[np.isnan(normalized_array)] = np.nan
    return ("array", normalized_array.shape, normalized_array.tobytes())


def _of_law(law: Any) -> Any:
    """The key of a frozen `scipy.stats` distribution. Its family is compared by value, since each has its own copy."""
    family = law.dist
    if not type(family).__module__.startswith("scipy.stats._"):
        return law  # a user-defined family: its contents are unknown
    public_attributes = {
        name: content for name, content in vars(family).items() if name in ("name", "a", "b", "_histogram")
    }
    return ("law", type(family), key(public_attributes), key(law.args), key(law.kwds))


def _of_graph(graph: Any) -> Any:
    edges = [
        (frozenset((a, b)) if not graph.is_directed() else (a, b), key(attributes))
        for a, b, attributes in graph.edges.data()
    ]
    return ("graph", graph.is_directed(), frozenset(graph.nodes), frozenset(edges), len(edges))


class _Compared:
    """The key of a value that cannot be hashed, such as an Arrow table or a data frame: it uses their own equality."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return hash(type(self.value))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Compared) or type(self.value) is not type(other.value):
            return False
        if self.value is other.value:
            return True
        equals = getattr(self.value, "equals", None)
        is_equal = equals(other.value) if callable(equals) else self.value == other.value
        return isinstance(is_equal, bool | np.bool) and bool(is_equal)


class _ReadOnly:
    """Marks an array or a mapping in a pickle that was read-only."""

    def __init__(self, content: Any) -> None:
        self.held = content


def _packed(value: Any) -> Any:
    if isinstance(value, np.ndarray) and not value.flags.writeable:
        return _ReadOnly(value)
    if isinstance(value, MappingProxyType):
        return _ReadOnly({name: _packed(content) for name, content in value.items()})
    return tuple(map(_packed, value)) if type(value) is tuple else value


def _unpacked(value: Any) -> Any:
    if isinstance(value, _ReadOnly) and isinstance(value.held, dict):
        return MappingProxyType({name: _unpacked(content) for name, content in value.held.items()})
    if isinstance(value, _ReadOnly):
        value.held.setflags(write=False)
        return value.held
    return tuple(map(_unpacked, value)) if type(value) is tuple else value


_SCALARS = str, bool, int, float, np.generic, Fraction

LIMITS = frozenset(
    ("epsilon", "delta", "eta", "xi", "rho", "mu", "tau", "total_variation", "distance", "upper_bound", "intended")
)
"""Columns that hold upper bounds and privacy limits, which are printed rounded up."""

FLOORS = frozenset(("lower_bound", "lower"))
"""Columns that hold lower bounds or lower ends of intervals, which are printed rounded down."""

MAX_HTML_ROWS = 20
"""Default number of rows and columns of an HTML table; classes may set another."""


class Result(ByValue):
    """The methods of every result: `to_dict`, `to_pandas`, `to_polars`, `to_csv`, `to_latex`, a table in notebooks.

    A class with a table of several rows overrides `_columns`, which gives lists of one length by name; any other result
    is a table of one row. Tables print privacy guarantees rounded up, and HTML tables state the number of omitted rows.

    >>> from ldpopt import LocalDP, MutualInformation, sweep
    >>> designs = sweep(MutualInformation([0.5, 0.5]), LocalDP, [0.5, 1.0])
    >>> print(designs.to_pandas()[["parameter", "certified"]].to_csv(index=False))
    parameter,certified 0.5,True 1.0,True
    """

    _limit: ClassVar[int] = MAX_HTML_ROWS
    _heads: ClassVar[int] = 0
    """How many of the first columns name the rows; these columns are always shown."""

    def _columns(self) -> dict[str, list[Any]]:
        """The table: columns of one length by name. By default it is one row of the fields that fit into a cell."""
        named_values = ((name, cell_text(value) if _is_short(value) else value) for name, value in _public(self))
        return {name: [value] for name, value in named_values if value is None or isinstance(value, _SCALARS)}

    def _cells(self) -> list[tuple[str, list[str]]]:
        """The columns as printed: the heading and the cells of each."""
        return [(str(name), [self._cell(name, value) for value in values]) for name, values in self._columns().items()]

    def _cell(self, name: str, value: Any) -> str:
        """A value as printed. Privacy guarantees and upper bounds are rounded up, lower bounds are rounded down."""
        if isinstance(value, float) and self._is_limit(name):
            return ceil_digits(value)
        return floor_digits(value) if isinstance(value, float) and name in FLOORS else cell_text(value)

    def _is_limit(self, name: str) -> bool:
        """True if the numbers of a column must not be understated."""
        return name in LIMITS

    def _title(self) -> str:
        """The text above the table."""
        return type(self).__name__

    def to_dict(self) -> dict[str, Any]:
        """Convert the result to JSON-ready values; non-finite numbers are text such as ``"inf"``."""
        return {name: jsonable(value) for name, value in _public(self)}

    def to_pandas(self) -> Any:
        """Convert the table to a `pandas.DataFrame`; needs pandas."""
        import pandas

        return pandas.DataFrame(self._columns())

    def to_polars(self) -> Any:
        """Convert the table to a `polars.DataFrame`; needs polars. Mixed labels become text."""
        import polars

        columns = {str(name): _one_kind(values) for name, values in self._columns().items()}
        return polars.DataFrame(columns, strict=False)

    def to_csv(self) -> str:
        """Convert the table to CSV text, with all digits of numbers."""
        columns = self._columns()
        return csv_text(map(for_csv, row) for row in (columns, *zip(*columns.values(), strict=True)))

    def to_latex(self) -> str:
        r"""Convert the table to a LaTeX ``tabular``; needs the LaTeX package ``booktabs``.

        Numbers are printed as in notebooks. Raises `InvalidInput` for a table without columns.
        """
        cells = self._cells()
        if not cells:
            raise invalid("to_latex", "a table with columns", Phrase("an empty table"))
        numeric = [all(_is_number(value) for value in values) for _, values in cells]
        rows = [[_latex(name) for name, _ in cells], *zip(*(map(_latex, values) for _, values in cells), strict=True)]
        lines = [" & ".join(row) + r" \\" for row in rows]
        layout = "".join("r" if right else "l" for right in numeric)
        return "\n".join(
            [rf"\begin{{tabular}}{{{layout}}}", r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule",
             r"\end{tabular}", ""]
        )  # fmt: skip

    def _html(self, limit: int | None) -> str:
        """The table as HTML with at most `limit` rows and columns. Its title states the number of omitted ones."""
        cells = self._cells()
        title = escape(self._title())
        if type(self)._columns is Result._columns:  # one row is read more easily from top to bottom
            filled_cells = ((name, text) for name, (text,) in cells if text)
            body = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in filled_cells)
            return f"<table><caption>{title}</caption>{body}</table>"
        heads, last_column = self._heads, None if limit is None else limit + self._heads
        rows = list(zip(*(values for _, values in cells[:last_column]), strict=True))
        note = left_out((len(rows), limit, "rows"), (len(cells) - heads, limit, "columns"))
        tags = ["th"] * heads + ["td"] * len(cells)
        shown_rows = [_html_row(repeat("th"), [name for name, _ in cells[:last_column]])]
        shown_rows += [_html_row(tags, row) for row in rows[:limit]]
        return f"<table><caption>{title}{note}</caption>{''.join(shown_rows)}</table>"

    def _repr_html_(self) -> str:
        return self._html(self._limit)


Record = TypeVar("Record")


class Rows(Result, Generic[Record]):
    """A result that is a table of records: it has their number, and gives them one by one.

    `_records` names the field that holds them. `_named` are the attributes of a record that are the columns of the
    table, by default all its fields.

    >>> from ldpopt import LocalDP, MutualInformation, sweep
    >>> made = sweep(MutualInformation([0.5, 0.5]), LocalDP, [0.5, 1.0])
    >>> len(made), [row.parameter for row in made]
    (2, [0.5, 1.0])
    """

    _records: ClassVar[str] = "rows"
    _named: ClassVar[tuple[str, ...]] = ()

    def __iter__(self) -> Iterator[Record]:
        return iter(getattr(self, self._records))

    def __len__(self) -> int:
        return len(getattr(self, self._records))

    def _columns(self) -> dict[str, list[Any]]:
        names = self._named or tuple(field.name for row in list(self)[:1] for field in fields(cast(Any, row)))
        return {name: [getattr(row, name) for row in self] for name in names}


class Pictured(Result):
    """A result with a picture, which `plot` draws: `_picture` names the function in `ldpopt.plots` that does it.

    >>> from ldpopt import Channel
    >>> Channel([[0.75, 0.25], [0.25, 0.75]]).plot().get_xlabel()
    'report'
    """

    _picture: ClassVar[str]

    def _plot_arguments(self) -> tuple[Any, ...]:
        """The first arguments of the function that draws."""
        return (self,)

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the result on the matplotlib axes `ax`, or on new axes, and return the axes.

        options : further arguments of the function in `ldpopt.plots` that draws this kind of result.
        """
        return drawing(self._picture)(*self._plot_arguments(), ax=ax, **options)


def _html_row(tags: Iterable[str], cells: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for tag, cell in zip(tags, cells, strict=False))}</tr>"


def left_out(*cuts: tuple[int, int | None, str]) -> str:
    """Describe the omitted rows and columns of a table."""
    # A cut is (number of rows, limit, their name).
    phrases = [f"first {limit} of {n} {name}" for n, limit, name in cuts if limit is not None and n > limit]
    return f" ({', '.join(phrases)})" if phrases else ""


def cell_text(value: Any) -> str:
    """Format a value of a table."""
    if isinstance(value, tuple):
        return ", ".join(map(cell_text, value))
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def jsonable(value: Any) -> Any:
    """Return `value` in types that strict JSON has: arrays and tuples become lists, and results give their `to_dict`.

    A named object becomes its name. An unnamed object that is equal by value becomes its fields, with its kind.

    >>> jsonable((np.arange(2), math.inf))
    [[0, 1], 'inf']
    """
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, Mapping):
        return {key if isinstance(key, str) else as_text(key): jsonable(content) for key, content in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [jsonable(content) for content in value]
    if isinstance(value, Result):
        return value.to_dict()
    object_name = getattr(value, "name", None)
    if isinstance(object_name, str):
        return object_name
    if isinstance(value, ByValue) and is_dataclass(value):
        named_fields = {f.name: jsonable(getattr(value, f.name)) for f in fields(value) if f.repr and f.name[0] != "_"}
        return {"kind": type(value).__name__} | named_fields
    if is_graph(value):
        edges = [edge if edge[2] else edge[:2] for edge in value.edges.data()]
        return {"nodes": jsonable(list(value.nodes)), "edges": jsonable(edges)}
    return getattr(value, "__qualname__", None) or repr(value)


def _is_short(value: Any) -> bool:
    """True if a value is a tuple of a few labels or numbers, which fits into a cell."""
    return isinstance(value, tuple) and len(value) <= 8 and all(isinstance(content, _SCALARS) for content in value)


def _public(value: Any) -> Iterable[tuple[str, Any]]:
    return ((f.name, getattr(value, f.name)) for f in fields(value) if not f.name.startswith("_"))


def _one_kind(values: list[Any]) -> list[Any]:
    """A column of one type, as Polars needs it: tuples and values of several types become text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float} or (len(kinds) <= 1 and kinds <= {str, bool}):
        return values
    return [
        None if value is None else (as_text if isinstance(value, str | tuple) else cell_text)(value) for value in values
    ]


_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "≤": r"$\le$", "≥": r"$\ge$", "ε": r"$\varepsilon$",
    "δ": r"$\delta$", "η": r"$\eta$", "<": "$<$", ">": "$>$", "|": r"$|$", "…": r"\dots{}", "\n": " ",
}  # fmt: skip


def _latex(text: str) -> str:
    """Text with LaTeX's special characters escaped; infinities become symbols, and exponents powers of ten."""
    if text in ("inf", "-inf"):
        return rf"${text.replace('inf', chr(92) + 'infty')}$"
    if _is_number(text) and "e" in text:
        mantissa, power = text.split("e")
        return rf"${mantissa} \cdot 10^{{{int(power)}}}$"
    if _is_number(text) and text.startswith("-"):
        return f"${text}$"
    return "".join(_SPECIAL.get(character, character) for character in text)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return text == ""
    return True
