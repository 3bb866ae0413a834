"""Raw answers in files, cut into partitions that are read one batch at a time and never copied anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ldpopt.errors import InvalidInput, LdpoptError, Phrase, invalid

T = TypeVar("T")

PARTITION_ROWS = 1 << 20
PARTITION_BYTES = 1 << 25
PARTITIONS = 256
"""More files than this share partitions."""
BATCH_ROWS = 1 << 16
_LONGEST_RECORD = 1 << 24


@dataclass(frozen=True)
class Piece:
    """`rows` rows of one file: the bytes, or for Parquet the row groups, `start` to `stop` - 1."""

    path: str
    start: int
    stop: int
    rows: int

    @property
    def parquet(self) -> bool:
        """Whether the file is Parquet; it is CSV otherwise."""
        return self.path.endswith(".parquet")


@dataclass(frozen=True)
class Partition:
    """Rows `first_row` to `first_row + rows - 1` (counted from 1 over all files), from one piece or a few."""

    first_row: int
    pieces: tuple[Piece, ...]

    @property
    def rows(self) -> int:
        """How many rows the pieces have."""
        return sum(piece.rows for piece in self.pieces)

    def to_dict(self) -> dict[str, Any]:
        """The partition as JSON-ready values."""
        return {"first_row": self.first_row, "pieces": [[p.path, p.start, p.stop, p.rows] for p in self.pieces]}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Partition:
        """The partition behind `to_dict`."""
        return cls(data["first_row"], tuple(Piece(*piece) for piece in data["pieces"]))


def input_files(answers: str | Path | Sequence[str | Path]) -> list[Path]:
    """The files of `answers`: one CSV or Parquet file, several, or a folder of them in the order of their names."""
    given = [answers] if isinstance(answers, (str, Path)) else list(answers)
    found: list[Path] = []
    for path in map(Path, given):
        inside = [p for p in sorted(path.iterdir()) if not p.name.startswith((".", "_"))] if path.is_dir() else [path]
        found += [p for p in inside if p.suffix in (".csv", ".parquet")] if path.is_dir() else inside
    kinds = {path.suffix for path in found}
    if len(kinds) != 1 or not kinds <= {".csv", ".parquet"}:
        raise invalid("answers", "CSV files or Parquet files (.csv, .parquet)", sorted(kinds) or "none")
    missing = [path for path in found if not path.is_file()]
    if missing:
        raise invalid("answers", "files that exist", str(missing[0]))
    return [path.resolve() for path in found]


def partitions(files: Sequence[Path]) -> list[Partition]:
    """The partitions of the files, about `PARTITION_ROWS` rows or `PARTITION_BYTES` bytes each, in order.

    A file is at least one partition of its own, unless there are more than `PARTITIONS` files: then neighbours that are
    small share one, since ten thousand tasks and their files would take longer than the rows in them.
    """
    together = -(-len(files) // PARTITIONS)
    made: list[Partition] = []
    waiting: list[Piece] = []
    row = 1

    def close() -> None:
        nonlocal row
        if waiting:
            made.append(Partition(row, tuple(waiting)))
            row += made[-1].rows
            waiting.clear()

    for path in files:
        parquet = path.suffix == ".parquet"
        for start, stop, rows in _row_groups(path) if parquet else _records(path):
            if not (rows or not parquet):  # one that only seems empty has still to be refused
                continue
            piece = Piece(str(path), start, stop, rows)
            every = [*waiting, piece]
            full = sum(one.rows for one in every) > PARTITION_ROWS or sum(map(_bytes, every)) > PARTITION_BYTES
            if full or len(waiting) >= together:
                close()
            waiting.append(piece)
    close()
    return made


def _bytes(piece: Piece) -> int:
    return 0 if piece.parquet else piece.stop - piece.start


def batches(part: Partition, columns: Sequence[str], dictionaries: Sequence[str] = ()) -> Iterator[Any]:
    """The partition's rows as pyarrow record batches of `columns`; those of a CSV file are all text.

    `dictionaries` are columns that Parquet may give as dictionaries, which code faster.
    """
    yield from _together(_found(part, columns, dictionaries))


def _found(part: Partition, columns: Sequence[str], dictionaries: Sequence[str]) -> Iterator[Any]:
    """The batches as the files have them."""
    if len(part.pieces) > 1 and not part.pieces[0].parquet:
        table = _small_csv_files(part.pieces, columns)
        if table is not None:
            yield from table.to_batches(BATCH_ROWS)
            return
    for piece in part.pieces:
        found = _parquet_batches(piece, columns, dictionaries) if piece.parquet else _csv_batches(piece, columns)
        while (batch := values_hidden(piece.path, next, found, None)) is not None:
            yield batch


def _together(found: Iterator[Any]) -> Iterator[Any]:
    """Neighbouring batches of one schema as one, up to `BATCH_ROWS`: every batch has its cost, however small it is."""
    import pyarrow as pa

    waiting: list[Any] = []

    def joined() -> list[Any]:
        whole = waiting if len(waiting) < 2 else pa.Table.from_batches(waiting).combine_chunks().to_batches()
        return list(whole)

    for batch in found:
        rows = sum(one.num_rows for one in waiting)
        if waiting and (rows + batch.num_rows > BATCH_ROWS or batch.schema != waiting[0].schema):
            yield from joined()
            waiting.clear()
        waiting.append(batch)
    yield from joined()


def _small_csv_files(pieces: Sequence[Piece], columns: Sequence[str]) -> Any:
    """The rows of CSV files with one header, parsed at once; None where they have to be read one by one.

    That is so where there are quotes, which might reach from one file into the next, and where anything is wrong, since
    the message names the file.
    """
    import pyarrow as pa

    header, contents = b"", []
    for piece in pieces:
        own, begin = _header(Path(piece.path))
        content = _bytes_of(piece)
        if b'"' in own or b'"' in content or own != (header or own) or piece.start != begin:
            return None
        header = own
        contents.append(content if content.endswith(b"\n") or not content else content + b"\n")
    try:
        table = _read_csv(header + b"".join(contents), columns)
    except (pa.ArrowException, UnicodeDecodeError, InvalidInput):
        return None
    return table if table.num_rows == sum(piece.rows for piece in pieces) else None


def _bytes_of(piece: Piece) -> bytes:
    with open(piece.path, "rb") as file:
        file.seek(piece.start)
        return file.read(piece.stop - piece.start)


def column_names(path: Path) -> list[str]:
    """The column names of one file, all distinct."""
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        names = values_hidden(str(path), lambda: list(pq.read_schema(path).names))
    else:
        names = _names(_header(path)[0])
    if len(set(names)) != len(names):
        # Names are not shown: the first line of a file without a header is somebody's answers.
        raise invalid("answers", "distinct column names", Phrase("one twice"), str(path))
    return names


def refuse_nested(path: Path, columns: Sequence[str], carried: Sequence[str]) -> None:
    """The columns of a Parquet file hold plain values, and those that are carried no bytes; else `InvalidInput`."""
    if path.suffix != ".parquet":
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = values_hidden(str(path), pq.read_schema, path)
    for name in columns:
        kind = schema.field(name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        raw = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_binary_view)
        if pa.types.is_nested(kind) or (name in carried and any(is_raw(kind) for is_raw in raw)):
            got = Phrase("lists or records" if pa.types.is_nested(kind) else "bytes")
            raise invalid("answers", f"plain values (text, numbers, dates) in the column {name!r}", got, str(path))


def values_hidden(where: str, function: Callable[..., T], *arguments: Any) -> T:
    """The function's result; an error of a library, whose message may quote answers, becomes one that names `where`.

    Our own errors and the file system's pass.
    """
    try:
        return function(*arguments)
    except LdpoptError:
        raise
    except OSError as error:
        if error.errno is not None:  # the file system's, not arrow's word for a corrupt file
            raise
        failure = "a corrupt one"
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":  # Polars' own, no Exception
            raise
        failure = type(error).__name__
    # Raised out here, so that the first error is not the context of this one.
    raise invalid("answers", "well-formed values in UTF-8", Phrase(failure), where)


def _row_groups(path: Path) -> Iterator[tuple[int, int, int]]:
    import pyarrow.parquet as pq

    metadata = values_hidden(str(path), pq.read_metadata, path)
    start = rows = 0
    for group in range(metadata.num_row_groups):
        rows += metadata.row_group(group).num_rows
        if rows >= PARTITION_ROWS or group == metadata.num_row_groups - 1:
            yield start, group + 1, rows
            start, rows = group + 1, 0


def _parquet_batches(part: Piece, columns: Sequence[str], dictionaries: Sequence[str]) -> Iterator[Any]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(part.path, read_dictionary=list(dictionaries), page_checksum_verification=True) as file:
        groups = list(range(part.start, part.stop))
        rows = 0
        for batch in file.iter_batches(BATCH_ROWS, groups, list(columns), use_threads=False):
            rows += batch.num_rows
            yield batch
    if rows != part.rows:
        raise invalid("answers", f"the {part.rows} rows that the file says it has", rows, part.path)


def _csv_batches(part: Piece, columns: Sequence[str]) -> Iterator[Any]:
    header, _ = _header(Path(part.path))
    table = _read_csv(header + _bytes_of(part), columns)
    if table.num_rows != part.rows:
        raise invalid("answers", r"lines that end with \n or \r\n, and quotes around whole fields", "others", part.path)
    yield from table.to_batches(BATCH_ROWS)


def _read_csv(content: bytes, columns: Sequence[str]) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    names = _names(content)
    convert = csv.ConvertOptions(
        include_columns=list(columns),
        column_types=dict.fromkeys(names, pa.string()),
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        null_values=[""],
    )
    # A single column's empty line is an answer that is missing, not a line to skip.
    parse = csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=len(names) > 1)
    read = csv.ReadOptions(use_threads=False, block_size=max(len(content), 1))
    return csv.read_csv(pa.py_buffer(content), read_options=read, parse_options=parse, convert_options=convert)


def _names(content: bytes) -> list[str]:
    import csv

    try:
        return next(csv.reader([content[: content.index(b"\n")].decode().removesuffix("\r")], strict=True))
    except (ValueError, csv.Error):
        raise InvalidInput("answers: the first line is not a list of column names in UTF-8") from None


def _header(path: Path) -> tuple[bytes, int]:
    """The header line, and the byte where the records begin."""
    with open(path, "rb") as file:
        line = file.readline(_LONGEST_RECORD)
    if not line.endswith(b"\n") or line.count(b'"') % 2 or not line.strip():
        raise invalid("answers", "a first line with the column names", "none", str(path))
    return line.removeprefix(b"\xef\xbb\xbf"), len(line)


def _records(path: Path) -> Iterator[tuple[int, int, int]]:
    """Byte ranges of whole records, with the number of records in each."""
    header, begin = _header(path)
    blank_lines_count = len(_names(header)) == 1
    size = path.stat().st_size
    with open(path, "rb") as file:
        start = begin
        while start < size:
            reach = PARTITION_BYTES
            while True:
                file.seek(start)
                content = np.frombuffer(file.read(reach), np.uint8)
                ends = _record_ends(content)
                if start + len(content) >= size:
                    yield start, size, _count(content, ends, blank_lines_count)
                    return
                if len(ends):
                    break
                reach *= 2
                if reach > PARTITION_BYTES + _LONGEST_RECORD * 4:
                    raise invalid("answers", "records of moderate length (a quote may be open)", "one", str(path))
            stop = int(ends[-1]) + 1
            yield start, start + stop, _count(content[:stop], ends, blank_lines_count)
            start += stop


def _record_ends(content: npt.NDArray[np.uint8]) -> npt.NDArray[np.intp]:
    """Positions of the line ends outside quotes."""
    ends = np.flatnonzero(content == 0x0A)
    quotes = np.flatnonzero(content == 0x22)
    return ends[np.searchsorted(quotes, ends) % 2 == 0] if len(quotes) else ends


def _count(content: npt.NDArray[np.uint8], ends: npt.NDArray[np.intp], blank_lines_count: bool) -> int:
    """Records in `content`: its lines, the last perhaps unended; blank ones count only if they hold an answer."""
    last = len(content) if len(content) and content[-1] != 0x0A else None
    ends = ends if last is None else np.append(ends, last)
    if blank_lines_count:
        return len(ends)
    lengths = np.diff(ends, prepend=-1) - 1
    returns = (lengths == 1) & (content[np.minimum(ends, len(content)) - 1] == 0x0D)
    return int(np.count_nonzero((lengths > 0) & ~returns))
