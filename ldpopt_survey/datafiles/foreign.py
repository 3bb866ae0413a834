"""Read files of other programs (Excel, Parquet, SPSS, Stata, SAS) in processes with limits.

A file of a few kilobytes can ask its reader for gigabytes, or abort it. Then only the process ends that reads it.
This module is also that process's program, which imports nothing of the package.
"""

import atexit
import io
import json
import os
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

MAX_CELLS = 10_000_000
"""The most cells of the rectangle that a sheet spans; one cell in its last corner makes it 17 thousand million."""

MAX_COLUMNS = 1 << 14
"""The most columns of a sheet, the limit of Excel."""

MAX_ROWS_PER_BYTE = 10_000
"""The most rows per byte of a file: ten times as many as a million equal rows in Parquet have."""

TOO_MUCH = "one that asks for too much, or ends its reader"


class UnreadableFile(Exception):
    """A file cannot be read; the message states the reason, and quotes nothing of the file."""


def limits_of(size: int, cells: int = 0) -> tuple[int, int]:
    """Compute the limits (bytes of memory, seconds) for reading cells of a file of `size` bytes."""
    return (350 << 20) + 50 * size + 100 * min(cells, 50 * size), 2 + (size >> 18) + (
        min(cells, MAX_ROWS_PER_BYTE * size) >> 22
    )


def read(task: str, path: Path, cells: int = 0, **options: Any) -> Iterator[bytes]:
    """Yield the results of a task of the reading process for a file, piece by piece.

    Raises `UnreadableFile` if it cannot. The file system's errors are those of this process.
    """
    with open(path, "rb") as file:
        memory, seconds = limits_of(os.fstat(file.fileno()).st_size, cells)
    request = json.dumps({"task": task, "path": os.path.abspath(path), "memory": memory, "seconds": seconds, **options})
    reader = None
    while _IDLE and reader is None:
        with suppress(IndexError):  # another thread took it
            reader = _IDLE.pop()
        if reader is not None and not reader.is_alive():
            reader.close()
            reader = None
    reader = reader or _Reader()
    try:
        yield from reader.answers(request, 10 * seconds)
    finally:
        if reader.is_reusable:
            _IDLE.append(reader)
        else:
            reader.close()


class _Reader:
    """A process that reads one file after another, until one ends it or leaves it larger."""

    is_reusable = False
    """Whether it has answered to the end, and can be asked again."""

    def __init__(self) -> None:
        # Allocators that reserve address space would use up the limit on it.
        environment = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2"}
        command = [sys.executable, "-P", "-B", __file__]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def answers(self, request: str, seconds: float) -> Iterator[bytes]:
        """Yield the pieces of an answer; each must come within so many seconds.

        This also limits a process that cannot limit itself."""
        self.is_reusable, failure = False, ""
        requests, replies = self._process.stdin, self._process.stdout
        assert requests is not None
        assert replies is not None
        try:
            requests.write(request.encode() + b"\n")
            requests.flush()
        except OSError:
            raise UnreadableFile(TOO_MUCH) from None
        while True:
            timer = threading.Timer(seconds, self._process.kill)
            timer.start()
            try:
                head = replies.read(_HEAD.size)
                kind, length = _HEAD.unpack(head) if len(head) == _HEAD.size else (_END, 0)
                content = replies.read(length)
            finally:
                timer.cancel()
            if len(head) < _HEAD.size or len(content) < length:
                raise UnreadableFile(TOO_MUCH)
            if kind == _PIECE:
                yield content
            elif kind == _ERROR:
                failure = content.decode()
            else:
                self.is_reusable = content == _AGAIN
                break
        if failure:
            raise UnreadableFile(failure)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                pipe.close()  # type: ignore[union-attr]


_HEAD = struct.Struct("<cQ")
_PIECE, _ERROR, _END, _AGAIN = b"p", b"e", b".", b"ask me again"
MAX_GROWTH = 64 << 20
"""Bytes of address space that a process may have kept of all files that it read, and still read another one."""
_IDLE: list[_Reader] = []
_OF_THE_PARENT: list[_Reader] = []


def _leave_readers_to_parent() -> None:
    """The processes of the parent answer the parent."""
    _OF_THE_PARENT.extend(_IDLE)
    _IDLE.clear()


def _end_all() -> None:
    while _IDLE:
        _IDLE.pop().close()


# The following is the program of the process.


def _workbook(path: str) -> Iterator[Any]:
    """The rows of the first sheet: numbers (whole ones, too, are floats), texts and truth values."""
    from python_calamine import CalamineWorkbook

    with CalamineWorkbook.from_path(path) as workbook:
        sheet = workbook.get_sheet_by_index(0)
        max_cells = min(MAX_CELLS, 200_000 + 20 * os.path.getsize(path))
        if sheet.total_width > MAX_COLUMNS or sheet.total_height * sheet.total_width > max_cells:
            raise MemoryError
        rows: list[list[Any]] = sheet.to_python()
    yield rows


def _schema(path: str) -> Iterator[Any]:
    """The schema of a Parquet file, as arrow writes it."""
    import pyarrow.parquet as pq

    yield pq.read_schema(path).serialize().to_pybytes()


def _levels(path: str) -> Iterator[Any]:
    """The ordered levels of each dictionary column of text of a Parquet file, also those of no row."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    levels: dict[str, list[str]] = {}
    with pq.ParquetFile(path) as file:
        names = [field.name for field in file.schema_arrow if pa.types.is_dictionary(field.type)]
        for batch in file.iter_batches(1, columns=names, use_threads=False) if names else ():
            for name in names:
                levels[name] = batch.column(name).dictionary.to_pylist()
            break
    yield levels


def _groups(path: str) -> Iterator[Any]:
    """The rows of each row group of a Parquet file, as it says."""
    import pyarrow.parquet as pq

    metadata = pq.read_metadata(path)
    yield [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]


def _batches(path: str, start: int, stop: int, columns: list[str], size: int, dictionaries: list[str]) -> Iterator[Any]:
    """The record batches of some row groups of a Parquet file, each as a stream of arrow's."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, read_dictionary=dictionaries, page_checksum_verification=True) as file:
        for batch in file.iter_batches(size, list(range(start, stop)), columns, use_threads=False):
            stream_bytes = io.BytesIO()
            with pa.ipc.new_stream(stream_bytes, batch.schema) as stream:
                stream.write_batch(batch)
            yield stream_bytes.getvalue()


def _statistical(path: str, reader: str, **options: Any) -> Iterator[Any]:
    """The head of a file of SPSS, Stata or SAS, and the cells of its columns."""
    import pyreadstat

    cells, head = getattr(pyreadstat, f"read_{reader}")(path, output_format="dict", **options)
    labels = {name: list(entries.items()) for name, entries in head.variable_value_labels.items()}
    ranges = {name: [[r["lo"], r["hi"]] for r in entries] for name, entries in (head.missing_ranges or {}).items()}
    yield {
        "names": list(head.column_names),
        "wordings": dict(head.column_names_to_labels),
        "labels": labels,
        "missing": ranges
        | {name: [[code, code] for code in codes] for name, codes in head.missing_user_values.items()},
        "rows": head.number_rows,
        "cells": {name: list(column) for name, column in cells.items()},
    }


_TASKS: dict[str, tuple[Callable[..., Iterator[Any]], str]] = {
    "workbook": (_workbook, "python_calamine"),
    "schema": (_schema, "pyarrow.parquet"),
    "levels": (_levels, "pyarrow.parquet"),
    "groups": (_groups, "pyarrow.parquet"),
    "batches": (_batches, "pyarrow.parquet"),
    "statistical": (_statistical, "pyreadstat"),
}
"""Each task with its library, which is loaded before there are limits."""


def _space() -> int:
    """Bytes of address space that this process has; 0 where the system does not say."""
    with suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _limit(memory: int, seconds: int) -> None:
    """Limit the resources of this process; only POSIX can, elsewhere the clock of the parent alone ends it."""
    with suppress(ImportError):
        resource: Any = import_module("resource")
        usage = resource.getrusage(resource.RUSAGE_SELF)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (_space() + memory, resource.RLIM_INFINITY))
        clock = int(usage.ru_utime + usage.ru_stime) + seconds
        resource.setrlimit(resource.RLIMIT_CPU, (clock, resource.RLIM_INFINITY))


def _text(cell: Any) -> str:
    return cell.isoformat() if hasattr(cell, "isoformat") else str(cell)


def _work() -> None:
    """Answer requests until there are no more, with nothing that libraries print among the answers."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

    def send(kind: bytes, content: bytes = b"") -> None:
        out.write(_HEAD.pack(kind, len(content)) + content)
        out.flush()

    growth = 0
    for line in sys.stdin.buffer:
        request = json.loads(line)
        task, library = _TASKS[request.pop("task")]
        space_before = None
        try:
            import_module(library)
            space_before = _space()
            _limit(request.pop("memory"), request.pop("seconds"))
            for piece in task(**request):
                send(_PIECE, piece if isinstance(piece, bytes) else json.dumps(piece, default=_text).encode())
                del piece
        except MemoryError:
            space_before = None
            send(_ERROR, TOO_MUCH.encode())
        except BaseException as error:  # no message, which could quote answers
            is_corrupt = isinstance(error, OSError) and error.errno is None
            send(_ERROR, b"a corrupt one" if is_corrupt else type(error).__name__.encode())
        growth += MAX_GROWTH + 1 if space_before is None else _space() - space_before
        send(_END, _AGAIN if growth <= MAX_GROWTH else b"")


if __name__ == "__main__":
    with suppress(BrokenPipeError, KeyboardInterrupt):
        _work()
else:
    atexit.register(_end_all)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_leave_readers_to_parent)
