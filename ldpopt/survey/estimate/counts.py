"""Reports -> the count table, which holds all that an estimate needs of them. Tables from several machines add up.

Columns of labels, of any library, are turned into positions in one pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import ChannelLike, Label, as_channel
from ldpopt.distribution import Array, finite_array
from ldpopt.errors import Phrase, invalid
from ldpopt.labels import as_text
from ldpopt.results import Result
from ldpopt.schema import dump, key, listed, load


def positions(reports: Any, outputs: tuple[Label, ...]) -> npt.NDArray[np.intp]:
    """The position in `outputs` of every report, shape (n,).

    A report is an output's label, or the text of the label as in a data file: 1 and "1" are the same report unless both
    are outputs. Any other entry is `InvalidInput`. It may be a raw answer, so the message does not show it.
    """
    array = column(reports, "reports")
    if array.dtype.kind in "iu" and outputs == tuple(range(len(outputs))):
        at, expected = array.astype(np.intp), f"0 to {len(outputs) - 1}"
        wrong = (array < 0) | (array >= len(outputs))
    else:
        codes, kinds = _codes(array)
        at, expected = places(kinds, outputs)[codes], str(outputs[:8])
        wrong = at < 0
    if wrong.any():
        where = f"entry {int(np.argmax(wrong))}"
        raise invalid("report", f"one of the outputs {expected}", Phrase("another"), where)
    return at


def known(values: Any, outputs: tuple[Label, ...]) -> bool:
    """Whether every entry of an array could be a report."""
    array = column(values, "reports")
    if array.dtype.kind in "iu" and array.size and outputs == tuple(range(len(outputs))):
        return bool(array.min() >= 0 and array.max() < len(outputs))
    return bool((places(list(set(array.tolist())), outputs) >= 0).all())


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
    """The column of a data frame that holds the reports of `channel` (that of a question's name, or the only one)."""
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
    """Integer codes from 0 for n labels, and the distinct labels; without `values` all have one. None is missing."""
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


def _tuples(label: Any, what: str = "") -> Any:
    return tuple(map(_tuples, label)) if isinstance(label, list) else label


def _pair(value: Any, what: str) -> Any:
    if not isinstance(value, list) or len(value) != 2:
        raise invalid(what, "a stratum and a cluster", Phrase("another"))
    return _tuples(value)


Key = tuple[Label, Label]
"""(stratum, cluster). The stratum is None without strata, the cluster None if respondents are sampled one by one."""


@dataclass(frozen=True, eq=False, repr=False)
class CountTable(Result):
    """Reports counted by output in each (stratum, cluster), with the sums of weights that variances need.

    outputs : the m labels of the channel's outputs.
    keys : one (stratum, cluster) for each of the R rows; a simple sample has the single row (None, None). A stratum is
        a part of the population that is sampled by itself; a cluster is a group of people sampled together.
    counts : (R, m) numbers of respondents, non-negative integers.
    weights, squares : (R, m) sums of the respondents' weights and of their squares; equal to the counts by default.

    Tables of the same channel are added by `+`, in any order and grouping.

    >>> table = CountTable.from_counts({"yes": 30, "no": 70}, ["no", "yes"])
    >>> (table + table).n, table.frequencies
    (200, array([0.7, 0.3]))
    """

    outputs: tuple[Label, ...] = key(load=listed(_tuples))
    keys: tuple[Key, ...] = key(load=listed(_pair))
    counts: npt.NDArray[np.int64] = key()
    weights: Array = field(default_factory=lambda: np.empty((0, 0)))
    squares: Array = field(default_factory=lambda: np.empty((0, 0)))

    _heads = 1

    def _columns(self) -> dict[str, list[Any]]:
        return {"output": list(self.outputs), "count": self.totals.tolist(), "weight": self.weights.sum(0).tolist()}

    def __post_init__(self) -> None:
        outputs, keys = tuple(self.outputs), tuple(self.keys)
        shape = (len(keys), len(outputs))
        counts = _whole(self.counts, shape)
        parts = []
        for what, given in (("weights", self.weights), ("squared weights", self.squares)):
            if np.shape(given) == (0, 0):
                parts.append(counts.astype(np.float64))
                continue
            made = finite_array(given, what, 2)
            if made.shape != shape or (made.size and made.min() < 0):
                raise invalid(what, f"non-negative numbers of shape {shape}", f"shape {made.shape}")
            parts.append(made)
        order = [0]
        if len(keys) != 1:
            if len(set(keys)) != len(keys) or not keys:
                raise invalid("keys", "at least one (stratum, cluster), each once", keys)
            order = sorted(range(len(keys)), key=lambda row: repr(keys[row]))
        for name, value in zip(("counts", "weights", "squares"), (counts, *parts), strict=True):
            value = value[order] if len(order) > 1 else value
            value.setflags(write=False)
            object.__setattr__(self, name, value)
        object.__setattr__(self, "outputs", outputs)
        object.__setattr__(self, "keys", tuple(keys[row] for row in order))

    @classmethod
    def from_counts(cls, counts: Any, outputs: Iterable[Label]) -> CountTable:
        """A simple sample from counts: an array of shape (m,) in the order of `outputs`, or a mapping by label."""
        labels = tuple(outputs)
        if isinstance(counts, Mapping):
            named = list(counts)
            at = places(named, labels).tolist()
            if -1 in at:
                raise invalid("counts", f"labels among the outputs {labels[:8]}", named[at.index(-1)])
            if len(set(at)) != len(at):
                raise invalid("counts", "one count for each output", Phrase("two"))
            given = dict(zip(at, counts.values(), strict=True))
            counts = [given.get(y, 0) for y in range(len(labels))]
        return cls(labels, ((None, None),), np.asarray(counts)[None])

    @classmethod
    def from_reports(
        cls, reports: Any, channel: ChannelLike, weights: Any = None, strata: Any = None, clusters: Any = None
    ) -> CountTable:
        """Count reports: an array, or a pandas, Polars or pyarrow column, of n output labels of `channel`.

        A label may be written as text, as in a data file ("1" for 1). Of a data frame the column with the name of the
        question is used if `channel` is a question of a plan, and otherwise the only column. `weights` (positive
        numbers), `strata` and `clusters` (labels) have shape (n,). A missing or unknown report is `InvalidInput`.

        >>> from ldpopt import Channel
        >>> CountTable.from_reports(["b", "a", "b"], Channel([[0.75, 0.25], [0.25, 0.75]], outputs=["a", "b"]))
        CountTable(3 reports over 2 outputs)
        """
        reports, channel = report_column(reports, channel), as_channel(channel)
        y = positions(reports, channel.outputs)
        n, m = len(y), len(channel.outputs)
        stratum, strata_labels = factor(strata, n, "strata")
        cluster, cluster_labels = factor(clusters, n, "clusters")
        rows, cell = np.zeros(1, dtype=np.intp), y
        if n and len(strata_labels) * len(cluster_labels) > 1:
            rows, row = np.unique(stratum * len(cluster_labels) + cluster, return_inverse=True)
            cell = row * m + y
        keys = tuple((strata_labels[r // len(cluster_labels)], cluster_labels[r % len(cluster_labels)]) for r in rows)
        shape = (len(rows), m)
        counts = np.bincount(cell, minlength=len(rows) * m).reshape(shape)
        if weights is None:
            return cls(channel.outputs, keys, counts)
        w = finite_array(weights, "weights", 1)
        if len(w) != n or (n and w.min() <= 0):
            raise invalid("weights", f"{n} positive numbers", f"{len(w)} from {w.min() if len(w) else 0}")
        first, second = (np.bincount(cell, weights=v, minlength=len(rows) * m).reshape(shape) for v in (w, w * w))
        return cls(channel.outputs, keys, counts, np.asarray(first), np.asarray(second))

    @cached_property
    def n(self) -> int:
        """Number of respondents."""
        return int(self.counts.sum())

    @cached_property
    def total_weight(self) -> float:
        """Sum of the respondents' weights; n without weights."""
        return float(self.weights.sum())

    @property
    def totals(self) -> npt.NDArray[np.int64]:
        """Number of respondents for each output, shape (m,)."""
        return np.asarray(self.counts.sum(axis=0))

    @cached_property
    def frequencies(self) -> Array:
        """Weighted share of every output, shape (m,); `InvalidInput` when nobody reported."""
        total = self.total_weight
        if total <= 0:
            raise invalid("count table", "at least one report", "none")
        shares = np.asarray(self.weights.sum(axis=0) / total)
        shares.setflags(write=False)
        return shares

    @cached_property
    def simple(self) -> bool:
        """True for respondents drawn independently, with equal weights and no strata or clusters."""
        return self.keys == ((None, None),) and bool(np.array_equal(self.weights, self.counts))

    def __add__(self, other: CountTable) -> CountTable:
        if not isinstance(other, CountTable):
            return NotImplemented
        return merge([self, other])

    def with_populations(self, populations: Mapping[Label, float]) -> CountTable:
        """The table with weights changed so that each stratum counts in proportion to its size in the population.

        `populations` gives each stratum's size or share. `InvalidInput` if a stratum is missing or has no respondent.

        >>> t = CountTable((0, 1), (("a", None), ("b", None)), [[10, 0], [0, 30]])
        >>> t.with_populations({"a": 1, "b": 1}).frequencies
        array([0.5, 0.5])
        """
        sizes = {stratum: 0.0 for stratum, _ in self.keys}
        if set(sizes) != set(populations):
            odd = sorted(set(sizes) ^ set(populations), key=repr)[0]
            raise invalid("populations", "one positive size for every stratum", odd)
        for (stratum, _), row in zip(self.keys, self.weights, strict=True):
            sizes[stratum] += float(row.sum())
        for stratum, size in sizes.items():
            if not (populations[stratum] > 0 and size > 0):
                raise invalid("populations", "a positive size and a respondent in every stratum", stratum)
        factor = np.array([populations[stratum] / sizes[stratum] for stratum, _ in self.keys])[:, None]
        return CountTable(self.outputs, self.keys, self.counts, self.weights * factor, self.squares * factor**2)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values; `from_dict` gives the table back."""
        return dump(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CountTable:
        """The table that `to_dict` described."""
        return load(cls, data, "count table")

    def __repr__(self) -> str:
        rows = "" if len(self.keys) == 1 else f" in {len(self.keys)} strata or clusters"
        return f"CountTable({self.n} reports over {len(self.outputs)} outputs{rows})"


def merge(tables: Iterable[CountTable]) -> CountTable:
    """The table of all the respondents of `tables`, which must have the same outputs (else `InvalidInput`).

    >>> one, two = (CountTable.from_counts(counts, ["yes", "no"]) for counts in ([4, 6], [1, 9]))
    >>> merge([one, two]).totals
    array([ 5, 15])
    """
    tables = list(tables)
    if not tables:
        raise invalid("count tables", "at least one", "none")
    outputs = tables[0].outputs
    keys = list(dict.fromkeys(key for table in tables for key in table.keys))
    at = {key: row for row, key in enumerate(keys)}
    counts = np.zeros((len(keys), len(outputs)), dtype=np.int64)
    weights, squares = np.zeros(counts.shape), np.zeros(counts.shape)
    for table in tables:
        if table.outputs != outputs:
            raise invalid("count tables", "the same outputs in every table", table.outputs[:8])
        rows = [at[key] for key in table.keys]
        counts[rows] += table.counts
        weights[rows] += table.weights
        squares[rows] += table.squares
    return CountTable(outputs, tuple(keys), counts, weights, squares)


def _whole(values: Any, shape: tuple[int, int]) -> npt.NDArray[np.int64]:
    array = finite_array(values, "counts", 2)
    if array.shape != shape:
        raise invalid("counts", f"shape {shape}, one column an output", f"shape {array.shape}")
    if array.size and (array.min() < 0 or np.any(array != np.floor(array)) or array.max() > 2**53):
        raise invalid("counts", "non-negative whole numbers", float(array.min()))
    return array.astype(np.int64)
