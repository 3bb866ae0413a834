"""Raw answers in files, cut into partitions that are read one batch at a time and never copied anywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.extras import pa
from ldpopt.files.delimited import PLAIN, Dialect
from ldpopt_survey.datafiles.delimited import bytes_between, head, parse
from ldpopt_survey.datafiles.pieces import DELIMITED, SUFFIXES, batches_of, is_flat_list, parquet_schema, ranges_of
from ldpopt_survey.datafiles.pieces import values_hidden as values_hidden

__all__ = ["refuse_nested"]

PARTITION_ROWS = 1 << 20
PARTITION_BYTES = 1 << 25
PARTITIONS = 256
"""With more files than this, small files share a partition."""
BATCH_ROWS = 1 << 16
REPORTS = (".csv", ".parquet")
ANSWERS = SUFFIXES
_EXPECTED = "CSV files or Parquet files (.csv, .parquet; of a database: ldpopt survey export)"


@dataclass(frozen=True)
class Piece:
    """`rows` rows of one file, in the range from `start` to `stop` - 1.

    The range counts bytes in a CSV file, row groups in a Parquet file, and rows in any other.
    """

    path: str
    start: int
    stop: int
    rows: int
    dialect: Dialect = PLAIN

    @property
    def delimited(self) -> bool:
        """Whether the file is text, so that the range counts bytes."""
        return Path(self.path).suffix.lower() in DELIMITED

    @property
    def parquet(self) -> bool:
        """Whether the file is Parquet."""
        return self.path.endswith(".parquet")


@dataclass(frozen=True)
class Partition:
    """Rows `first_row` to `first_row + rows - 1` (counted from 1 over all files), made of one or more pieces."""

    first_row: int
    pieces: tuple[Piece, ...]

    @property
    def rows(self) -> int:
        """How many rows the pieces have."""
        return sum(piece.rows for piece in self.pieces)

    def to_dict(self) -> dict[str, Any]:
        """The partition as JSON-ready values."""
        pieces = [[*astuple(piece)[:-1], list(astuple(piece.dialect))] for piece in self.pieces]
        return {"first_row": self.first_row, "pieces": pieces}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Partition:
        """The partition behind `to_dict`."""
        pieces = (
            Piece(path, start, stop, rows, Dialect(*dialect)) for path, start, stop, rows, dialect in data["pieces"]
        )
        return cls(data["first_row"], tuple(pieces))


def input_files(answers: str | Path | Sequence[str | Path], kinds: Sequence[str] = REPORTS) -> list[Path]:
    """The files of `answers`: one file, several, or a folder's, by name.

    All must have the same ending, one of `kinds`.
    """
    given = [answers] if isinstance(answers, (str, Path)) else list(answers)
    files: list[Path] = []
    for path in map(Path, given):
        inside = [p for p in sorted(path.iterdir()) if not p.name.startswith((".", "_"))] if path.is_dir() else [path]
        files += [p for p in inside if p.suffix in kinds] if path.is_dir() else inside
    what = "reports" if kinds == REPORTS else "answers"
    if missing := [path for path in files if not path.is_file()]:
        raise invalid(what, "files that exist", str(missing[0]))
    suffixes = {path.suffix for path in files}
    if len(suffixes) != 1 or not suffixes <= set(kinds):
        expected = f"files of one kind ({', '.join(kinds)})" if kinds != REPORTS else _EXPECTED
        raise invalid(what, expected, Phrase(" and ".join(end or "no ending" for end in sorted(suffixes)) or "none"))
    refuse_the_same(what, files)
    return [path.resolve() for path in files]


def refuse_the_same(what: str, files: Sequence[Path]) -> None:
    """`InvalidInput` if a file is there twice, under whatever name."""
    first: dict[tuple[int, int], Path] = {}
    for path in files:
        stat = path.stat()
        other = first.setdefault((stat.st_dev, stat.st_ino), path)
        if other is not path:
            raise invalid(what, "every file once", Phrase(f"{other} and {path}, which are the same file"))


def partitions(files: Sequence[Path], dialect: Dialect = PLAIN, trimmed: bool = False) -> list[Partition]:
    """The partitions of the files, about `PARTITION_ROWS` rows or `PARTITION_BYTES` bytes each, in order.

    Every file begins a partition of its own, unless there are more than `PARTITIONS` files. Then small neighbours share
    a partition, since ten thousand tasks and their files would take longer than the rows in them.

    dialect : how the files are written, if they are text. trimmed : whether empty rows at their ends are left out.
    """
    together = -(-len(files) // PARTITIONS)
    finished: list[Partition] = []
    waiting: list[Piece] = []
    row = 1

    def close() -> None:
        nonlocal row
        if waiting:
            finished.append(Partition(row, tuple(waiting)))
            row += finished[-1].rows
            waiting.clear()

    for path in files:
        for start, stop, rows in ranges_of(path, PARTITION_ROWS, PARTITION_BYTES, dialect, trimmed):
            piece = Piece(str(path), start, stop, rows, dialect)
            if not (rows or piece.delimited):  # text that seems empty stays, to be refused later
                continue
            every = [*waiting, piece]
            full = sum(own.rows for own in every) > PARTITION_ROWS or sum(map(_bytes, every)) > PARTITION_BYTES
            if full or len(waiting) >= together:
                close()
            waiting.append(piece)
    close()
    return finished


def _bytes(piece: Piece) -> int:
    return piece.stop - piece.start if piece.delimited else 0


def batches(part: Partition, columns: Sequence[str], dictionaries: Sequence[str] = ()) -> Iterator[Any]:
    """The partition's rows as pyarrow record batches of `columns`. In CSV files all values are text.

    dictionaries : columns that may be read from Parquet as arrow dictionaries, which are faster to encode.
    """
    yield from _together(_found(part, columns, dictionaries))


def _found(part: Partition, columns: Sequence[str], dictionaries: Sequence[str]) -> Iterator[Any]:
    """The batches as the files have them."""
    if len(part.pieces) > 1 and part.pieces[0].delimited:
        table = _small_csv_files(part.pieces, columns)
        if table is not None:
            yield from table.to_batches(BATCH_ROWS)
            return
    for piece in part.pieces:
        of = (piece.path, piece.start, piece.stop, piece.rows, columns, piece.dialect, BATCH_ROWS, dictionaries)
        yield from batches_of(*of)


def _together(record_batches: Iterator[Any]) -> Iterator[Any]:
    """Neighbouring batches of one schema, joined up to `BATCH_ROWS` rows, since even a small batch has a fixed cost."""
    waiting: list[Any] = []

    def joined() -> list[Any]:
        whole = waiting if len(waiting) < 2 else pa.Table.from_batches(waiting).combine_chunks().to_batches()
        return list(whole)

    for batch in record_batches:
        rows = sum(held.num_rows for held in waiting)
        if waiting and (rows + batch.num_rows > BATCH_ROWS or batch.schema != waiting[0].schema):
            yield from joined()
            waiting.clear()
        waiting.append(batch)
    yield from joined()


def _small_csv_files(pieces: Sequence[Piece], columns: Sequence[str]) -> Any:
    """The rows of CSV files with one header, parsed at once; None if the files have to be read one by one.

    They are read one by one if a file has quotes, which might reach into the next file, and if anything is wrong, so
    that the message names the file.
    """
    first, contents, dialect = None, [], pieces[0].dialect
    if dialect.wide:
        return None
    for piece in pieces:
        above = head(Path(piece.path), dialect)
        content = bytes_between(Path(piece.path), piece.start, piece.stop)
        first = first or above
        if b'"' in above.content or b'"' in content or above.names != first.names or piece.start != above.begin:
            return None
        contents.append(content if content.endswith(b"\n") or not content else content + b"\n")
    try:
        table = parse(b"".join(contents), () if first is None else first.names, columns, dialect)
    except (pa.ArrowException, UnicodeDecodeError, InvalidInput):
        return None
    return table if table.num_rows == sum(piece.rows for piece in pieces) else None


def refuse_nested(path: Path, columns: Sequence[str], carried: Sequence[str], listed: Sequence[str]) -> None:
    """`InvalidInput` unless the columns of a Parquet file hold plain values, and the carried ones no binary values.

    listed : the columns that may also hold lists of plain values.
    """
    if path.suffix != ".parquet":
        return
    schema = parquet_schema(path)
    for name in columns:
        kind = schema.field(name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        raw = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_binary_view)
        if is_flat_list(kind) and name in listed:
            continue
        if pa.types.is_nested(kind) or (name in carried and any(is_raw(kind) for is_raw in raw)):
            got = Phrase("lists or records" if pa.types.is_nested(kind) else "bytes")
            raise invalid("answers", f"plain values (text, numbers, dates) in the column {name!r}", got, str(path))
