"""Reports -> the count table, which is sufficient for an estimate. Tables from several machines add up.

Columns of labels, of any library, are converted to positions in one pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ldpopt.channel import ChannelLike, Label, as_channel
from ldpopt.errors import Phrase, invalid
from ldpopt.values.distribution import Array, finite_array
from ldpopt.values.labels import as_text
from ldpopt.values.results import Result
from ldpopt_survey.records import dump, key, listed, load


def positions(reports: Any, outputs: tuple[Label, ...]) -> npt.NDArray[np.intp]:
    """Return the position in `outputs` of every report, shape (n,).

    A report is an output's label, or the text of the label as in a data file: 1 and "1" are the same report unless both
    are outputs. Any other entry is `InvalidInput`. It may be a raw answer, so the message does not show it.
    """
    array = column(reports, "reports")
    if array.dtype.kind in "iu" and outputs == tuple(range(len(outputs))):
        output_index, expected = array.astype(np.intp), f"0 to {len(outputs) - 1}"
        is_invalid = (array < 0) | (array >= len(outputs))
    else:
        codes, entries = _codes(array)
        output_index, expected = find_positions(entries, outputs)[codes], str(outputs[:8])
        is_invalid = output_index < 0
    if is_invalid.any():
        where = f"entry {int(np.argmax(is_invalid))}"
        raise invalid("report", f"one of the outputs {expected}", Phrase("a value outside them"), where)
    return output_index


def are_reports(values: Any, outputs: tuple[Label, ...]) -> bool:
    """Return True if every entry of an array could be a report."""
    array = column(values, "reports")
    if array.dtype.kind in "iu" and array.size and outputs == tuple(range(len(outputs))):
        return bool(array.min() >= 0 and array.max() < len(outputs))
    return bool((find_positions(list(set(array.tolist())), outputs) >= 0).all())


def find_positions(entries: list[Any], outputs: tuple[Label, ...]) -> npt.NDArray[np.intp]:
    """Find the position of each entry among the outputs, by its value or text; -1 if absent."""
    position_of: dict[Any, int] = {label: y for y, label in enumerate(outputs)}
    position_of_text: dict[str | None, int] = {as_text(label): y for y, label in enumerate(outputs)}
    if len(position_of_text) < len(outputs):  # two outputs have the same text
        position_of_text = {}
    return np.array([position_of.get(kind, position_of_text.get(_text(kind), -1)) for kind in entries], dtype=np.intp)


def _text(kind: Any) -> str | None:
    """The text of a label in a data file. An integer that was read as a float is written as an integer."""
    if isinstance(kind, bytes) or kind is None or kind != kind:
        return None
    if isinstance(kind, float) and kind.is_integer():
        return str(int(kind))
    return as_text(kind) if isinstance(kind, (str, bool, int, float)) else None


def report_column(reports: Any, channel: Any) -> Any:
    """Select the column of a data frame that holds the reports of `channel`.

    It is the column with the name of the question, or the only one.
    """
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


def column(values: Any, name: str) -> npt.NDArray[Any]:
    """Convert `values`, an array, list or data-frame column, to a one-dimensional array.

    Tuples remain single entries. `name` is used in messages.
    """
    if hasattr(values, "to_pylist"):  # an arrow column
        values = _of_arrow(values)
    if isinstance(values, (list, tuple)) and any(isinstance(value, tuple) for value in values):
        array = np.empty(len(values), dtype=object)
        array[:] = values
    else:
        array = np.asarray(values)
        if array.dtype.kind == "U" and isinstance(values, (list, tuple)):  # numpy turns mixed kinds into text
            array = np.asarray(values, dtype=object)
    if array.ndim != 1:
        raise invalid(name, "one column", f"shape {array.shape}")
    return array


def _of_arrow(values: Any) -> Any:
    """An arrow column, perhaps of dictionaries, as an array of texts or numbers, or as a list of other values."""
    from pyarrow import types

    if types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    array_types = (types.is_string, types.is_large_string, types.is_integer, types.is_float64)
    if values.null_count or not any(is_kind(values.type) for is_kind in array_types):
        return values.to_pylist()
    return values.to_numpy(zero_copy_only=False)


def _codes(array: npt.NDArray[Any]) -> tuple[npt.NDArray[np.intp], list[Any]]:
    """The codes 0, 1, ... of the entries, and the distinct entries as Python values."""
    if array.dtype.kind in "iufb":  # numbers are sorted; text is hashed, which is faster
        distinct, codes = np.unique(array, return_inverse=True)
        return codes, distinct.tolist()
    code_of: dict[Any, int] = {}
    codes = np.fromiter((code_of.setdefault(value, len(code_of)) for value in array.tolist()), np.intp, len(array))
    return codes, list(code_of)


def factor(values: Any, n: int, name: str) -> tuple[npt.NDArray[np.intp], list[Any]]:
    """Return integer codes from 0 for n labels, and the distinct labels.

    Without `values` all respondents have the label None. A missing label is `InvalidInput`.
    """
    if values is None:
        return np.zeros(n, dtype=np.intp), [None]
    array = column(values, name)
    if len(array) != n:
        raise invalid(name, f"{n} labels, one a respondent", len(array))
    codes, levels = _codes(array)
    for kind in levels:
        if kind is None or kind != kind:
            raise invalid(name, "a label for every respondent", kind)
    return codes, levels or [None]


def _tuples(label: Any, _: str = "") -> Any:
    return tuple(map(_tuples, label)) if isinstance(label, list) else label


@dataclass(frozen=True, eq=False, repr=False)
class CountTable(Result):
    """The reports of a simple sample, counted by output. Samples with a design are `SampledReports`.

    outputs : the m labels of the channel's outputs. totals : (m,) numbers of respondents, non-negative integers.

    Tables of the same channel are added by `+`, in any order and grouping.

    >>> table = CountTable.from_counts({"yes": 30, "no": 70}, ["no", "yes"])
    >>> (table + table).n, table.frequencies
    (200, array([0.7, 0.3]))
    """

    outputs: tuple[Label, ...] = key(load=listed(_tuples))
    totals: npt.NDArray[np.int64] = key()

    simple: ClassVar[bool] = True
    _heads = 1

    def _columns(self) -> dict[str, list[Any]]:
        return {"output": list(self.outputs), "count": self.totals.tolist()}

    def __post_init__(self) -> None:
        outputs, counts = tuple(self.outputs), finite_array(self.totals, "counts", 1)
        if counts.shape != (len(outputs),):
            raise invalid("counts", f"shape {(len(outputs),)}, one for each output", f"shape {counts.shape}")
        if counts.size and (counts.min() < 0 or np.any(counts != np.floor(counts)) or counts.max() > 2**53):
            raise invalid("counts", "non-negative whole numbers", float(counts.min()))
        totals = counts.astype(np.int64)
        totals.setflags(write=False)
        object.__setattr__(self, "outputs", outputs)
        object.__setattr__(self, "totals", totals)

    @classmethod
    def from_counts(cls, counts: Any, outputs: Iterable[Label]) -> CountTable:
        """Build the table of counts: an array (m,) in the order of `outputs`, or a mapping."""
        labels = tuple(outputs)
        if isinstance(counts, Mapping):
            count_labels = list(counts)
            output_places = find_positions(count_labels, labels).tolist()
            if -1 in output_places:
                raise invalid("counts", f"labels among the outputs {labels[:8]}", count_labels[output_places.index(-1)])
            if len(set(output_places)) != len(output_places):
                raise invalid("counts", "one count for each output", Phrase("two"))
            count_at = dict(zip(output_places, counts.values(), strict=True))
            counts = [count_at.get(y, 0) for y in range(len(labels))]
        return cls(labels, counts)

    @classmethod
    def from_reports(cls, reports: Any, channel: ChannelLike) -> CountTable:
        """Count reports: an array, or a pandas, Polars or pyarrow column, of n output labels of `channel`.

        A label may be written as text, as in a data file ("1" for 1). Of a data frame the column with the name of the
        question is used if `channel` is a question of a plan, and otherwise the only column. A missing or unknown
        report is `InvalidInput`.

        >>> from ldpopt import Channel
        >>> CountTable.from_reports(["b", "a", "b"], Channel([[0.75, 0.25], [0.25, 0.75]], outputs=["a", "b"]))
        CountTable(3 reports over 2 outputs)
        """
        reports, channel = report_column(reports, channel), as_channel(channel)
        return cls(channel.outputs, np.bincount(positions(reports, channel.outputs), minlength=len(channel.outputs)))

    @cached_property
    def n(self) -> int:
        """Number of respondents."""
        return int(self.totals.sum())

    @cached_property
    def frequencies(self) -> Array:
        """The proportion of every output, shape (m,); `InvalidInput` without any report."""
        if not self.n:
            raise invalid("count table", "at least one report", "none")
        shares = np.asarray(self.totals / self.n)
        shares.setflags(write=False)
        return shares

    def __add__(self, other: CountTable) -> CountTable:
        return merge([self, other]) if isinstance(other, CountTable) else NotImplemented

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values; `from_dict` restores the table."""
        return dump(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CountTable:
        """Load the table that `to_dict` described."""
        return load(cls, data, "count table")

    def __repr__(self) -> str:
        return f"CountTable({self.n} reports over {len(self.outputs)} outputs)"


def merge(tables: Iterable[CountTable]) -> CountTable:
    """Merge the tables of several groups of respondents.

    Parameters
    ----------
    tables : The tables, with the same m outputs.

    Returns
    -------
    CountTable
        The sum of the counts.

    Raises
    ------
    InvalidInput
        For different outputs.

    >>> one, two = (CountTable.from_counts(counts, ["yes", "no"]) for counts in ([4, 6], [1, 9]))
    >>> merge([one, two]).totals
    array([ 5, 15])
    """
    tables = list(tables)
    if not tables:
        raise invalid("count tables", "at least one", "none")
    for table in tables:
        if table.outputs != tables[0].outputs:
            raise invalid("count tables", "the same outputs in every table", table.outputs[:8])
    return CountTable(tables[0].outputs, np.sum([table.totals for table in tables], axis=0))
