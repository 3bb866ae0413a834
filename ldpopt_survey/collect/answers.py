"""Raw answers in files, cut into partitions that are read one batch at a time and never copied anywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.extras import pa
from ldpopt.files.delimited import PLAIN, Dialect
from ldpopt_survey.datafiles.delimited import bytes_between, parse, read_head
from ldpopt_survey.datafiles.pieces import DELIMITED, SUFFIXES, batches_of, is_flat_list, parquet_schema, ranges_of
from ldpopt_survey.datafiles.pieces import values_hidden as values_hidden

__all__ = ["refuse_nested"]

PARTITION_ROWS = 1 << 20
PARTITION_BYTES = 1 << 25
MAX_UNSHARED_FILES = 256
"""With more files than this, small files share a partition."""
BATCH_ROWS = 1 << 16
REPORT_SUFFIXES = (".csv", ".parquet")
ANSWER_SUFFIXES = SUFFIXES
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
    def is_delimited(self) -> bool:
        """True if the file is text, so that the range counts bytes."""
        return Path(self.path).suffix.lower() in DELIMITED


@dataclass(frozen=True)
class Partition:
    """Rows `first_row` to `first_row + rows - 1` (counted from 1 over all files), made of one or more pieces."""

    first_row: int
    pieces: tuple[Piece, ...]

    @property
    def rows(self) -> int:
        """The number of rows of the pieces."""
        return sum(piece.rows for piece in self.pieces)

    def to_dict(self) -> dict[str, Any]:
        """Return the partition as JSON-ready values."""
        pieces = [[*astuple(piece)[:-1], list(astuple(piece.dialect))] for piece in self.pieces]
        return {"first_row": self.first_row, "pieces": pieces}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Partition:
        """Read a partition that `to_dict` wrote."""
        pieces = (
            Piece(path, start, stop, rows, Dialect(*dialect)) for path, start, stop, rows, dialect in data["pieces"]
        )
        return cls(data["first_row"], tuple(pieces))


def input_files(answers: str | Path | Sequence[str | Path], kinds: Sequence[str] = REPORT_SUFFIXES) -> list[Path]:
    """List the files of `answers`: one file, several, or those of a folder, by name.

    All must have the same ending, one of `kinds`.
    """
    paths = [answers] if isinstance(answers, (str, Path)) else list(answers)
    files: list[Path] = []
    for path in map(Path, paths):
        candidates = (
            [p for p in sorted(path.iterdir()) if not p.name.startswith((".", "_"))] if path.is_dir() else [path]
        )
        files += [p for p in candidates if p.suffix in kinds] if path.is_dir() else candidates
    name = "reports" if kinds == REPORT_SUFFIXES else "answers"
    if missing := [path for path in files if not path.is_file()]:
        raise invalid(name, "files that exist", str(missing[0]))
    suffixes = {path.suffix for path in files}
    if len(suffixes) != 1 or not suffixes <= set(kinds):
        expected = f"files of one kind ({', '.join(kinds)})" if kinds != REPORT_SUFFIXES else _EXPECTED
        raise invalid(name, expected, Phrase(" and ".join(end or "no ending" for end in sorted(suffixes)) or "none"))
    refuse_same_files(name, files)
    return [path.resolve() for path in files]


def refuse_same_files(name: str, files: Sequence[Path]) -> None:
    """Raise `InvalidInput` if a file is given twice, also under another name."""
    first_paths: dict[tuple[int, int], Path] = {}
    for path in files:
        stat = path.stat()
        other = first_paths.setdefault((stat.st_dev, stat.st_ino), path)
        if other is not path:
            raise invalid(name, "every file once", Phrase(f"{other} and {path}, which are the same file"))


def partitions(files: Sequence[Path], dialect: Dialect = PLAIN, trim_empty: bool = False) -> list[Partition]:
    """Split the files into partitions of about `PARTITION_ROWS` or `PARTITION_BYTES`.

    Every file begins a partition of its own, unless there are more than `MAX_UNSHARED_FILES` files. Then
    small neighbors share a partition, since ten thousand tasks and their files would take longer than their rows.

    dialect : how the files are written, if they are text.

    trim_empty : True to leave out the empty rows at their ends.
    """
    files_per_partition = -(-len(files) // MAX_UNSHARED_FILES)
    closed_partitions: list[Partition] = []
    pending_pieces: list[Piece] = []
    row = 1

    def close() -> None:
        nonlocal row
        if pending_pieces:
            closed_partitions.append(Partition(row, tuple(pending_pieces)))
            row += closed_partitions[-1].rows
            pending_pieces.clear()

    for path in files:
        for start, stop, rows in ranges_of(path, PARTITION_ROWS, PARTITION_BYTES, dialect, trim_empty):
            piece = Piece(str(path), start, stop, rows, dialect)
            if not (rows or piece.is_delimited):  # text that seems empty stays, to be refused later
                continue
            candidate_pieces = [*pending_pieces, piece]
            is_full = (
                sum(member.rows for member in candidate_pieces) > PARTITION_ROWS
                or sum(map(_bytes, candidate_pieces)) > PARTITION_BYTES
            )
            if is_full or len(pending_pieces) >= files_per_partition:
                close()
            pending_pieces.append(piece)
    close()
    return closed_partitions


def _bytes(piece: Piece) -> int:
    return piece.stop - piece.start if piece.is_delimited else 0


def batches(part: Partition, columns: Sequence[str], dictionaries: Sequence[str] = ()) -> Iterator[Any]:
    """Read a partition's rows as pyarrow record batches of `columns`.

    In CSV files all values are text.

    dictionaries : columns that may be read from Parquet as arrow dictionaries, which are faster to encode.
    """
    yield from _join_small_batches(_file_batches(part, columns, dictionaries))


def _file_batches(part: Partition, columns: Sequence[str], dictionaries: Sequence[str]) -> Iterator[Any]:
    """The batches as the files have them."""
    if len(part.pieces) > 1 and part.pieces[0].is_delimited:
        table = _small_csv_files(part.pieces, columns)
        if table is not None:
            yield from table.to_batches(BATCH_ROWS)
            return
    for piece in part.pieces:
        arguments = (piece.path, piece.start, piece.stop, piece.rows, columns, piece.dialect, BATCH_ROWS, dictionaries)
        yield from batches_of(*arguments)


def _join_small_batches(record_batches: Iterator[Any]) -> Iterator[Any]:
    """Join neighboring batches of one schema up to `BATCH_ROWS` rows, since even a small batch has a fixed cost."""
    pending: list[Any] = []

    def join_pending() -> list[Any]:
        merged = pending if len(pending) < 2 else pa.Table.from_batches(pending).combine_chunks().to_batches()
        return list(merged)

    for batch in record_batches:
        rows = sum(earlier.num_rows for earlier in pending)
        if pending and (rows + batch.num_rows > BATCH_ROWS or batch.schema != pending[0].schema):
            yield from join_pending()
            pending.clear()
        pending.append(batch)
    yield from join_pending()


def _small_csv_files(pieces: Sequence[Piece], columns: Sequence[str]) -> Any:
    """The rows of CSV files with one header, parsed at once; None if the files have to be read one by one.

    They are read one by one if a file has quotes, which might reach into the next file, and if anything is wrong, so
    that the message names the file.
    """
    first_header, contents, dialect = None, [], pieces[0].dialect
    if dialect.wide:
        return None
    for piece in pieces:
        header = read_head(Path(piece.path), dialect)
        content = bytes_between(Path(piece.path), piece.start, piece.stop)
        first_header = first_header or header
        if (
            b'"' in header.content
            or b'"' in content
            or header.names != first_header.names
            or piece.start != header.begin
        ):
            return None
        contents.append(content if content.endswith(b"\n") or not content else content + b"\n")
    try:
        table = parse(b"".join(contents), () if first_header is None else first_header.names, columns, dialect)
    except (pa.ArrowException, UnicodeDecodeError, InvalidInput):
        return None
    return table if table.num_rows == sum(piece.rows for piece in pieces) else None


def refuse_nested(
    path: Path, columns: Sequence[str], carried_columns: Sequence[str], list_columns: Sequence[str]
) -> None:
    """Raise `InvalidInput` for nested values in a Parquet file, and binary values in carried columns.

    list_columns : the columns that may also hold lists of plain values.
    """
    if path.suffix != ".parquet":
        return
    schema = parquet_schema(path)
    for name in columns:
        value_type = schema.field(name).type
        value_type = value_type.value_type if pa.types.is_dictionary(value_type) else value_type
        binary_tests = (
            pa.types.is_binary,
            pa.types.is_large_binary,
            pa.types.is_fixed_size_binary,
            pa.types.is_binary_view,
        )
        if is_flat_list(value_type) and name in list_columns:
            continue
        if pa.types.is_nested(value_type) or (
            name in carried_columns and any(is_binary(value_type) for is_binary in binary_tests)
        ):
            got = Phrase("lists or records" if pa.types.is_nested(value_type) else "bytes")
            raise invalid("answers", f"plain values (text, numbers, dates) in the column {name!r}", got, str(path))
