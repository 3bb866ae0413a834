"""The n-th file operation of a run fails, or the process ends there: what SQLite is tested with, for Python.

`Faults` wraps what the standard library and pyarrow do with files. A kill is an exception that nothing catches, after
which every further operation fails too: no cleaning up runs, as none does in a process that was killed.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow.parquet as pq
from pyarrow import csv

READING = ("open", "scandir", "listdir")
CHANGING = ("mkdir", "rename", "replace", "link", "unlink", "remove", "rmdir", "fsync")
ARROW = ((pq, "write_table"), (csv, "write_csv"), (pq, "ParquetWriter"), (pq, "ParquetFile"), (csv, "read_csv"))
GROWING = {"mkdir", "link", "fsync", "open to write", "write_table", "write_csv", "ParquetWriter"}


class Killed(BaseException):
    """The process ended here."""


class Faults:
    """Counts file operations below `folder` and spoils the `moment`-th.

    kind : "fail" (an input/output error, once), "full" (from there on nothing grows), or "kill", which also cuts the
        file that was being flushed in half.
    """

    def __init__(self, kind: str, moment: int) -> None:
        self.kind, self.moment = kind, moment
        self.count, self.dead, self.struck = 0, False, ""

    def _at(self, name: str, arguments: tuple[Any, ...]) -> None:
        if self.dead:
            raise Killed
        self.count += 1
        if self.count < self.moment or (self.count > self.moment and self.kind != "full"):
            return
        if self.kind == "full":
            if name in GROWING:
                self.struck = self.struck or name
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return
        self.struck = name
        if self.kind == "fail":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self.dead = True
        if name == "fsync":
            os.ftruncate(arguments[0], os.fstat(arguments[0]).st_size // 2) if _writable(arguments[0]) else None
        raise Killed

    def wrap(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def spoiled(*arguments: Any, **options: Any) -> Any:
            self._at(_named(name, arguments, options), arguments)
            return function(*arguments, **options)

        return spoiled

    @contextmanager
    def striking(self) -> Iterator[None]:
        """Let the operations in the block fail."""
        pieces = [(os, name) for name in READING + CHANGING] + [(builtins, "open"), (io, "open"), *ARROW]
        patches = [patch.object(place, name, self.wrap(name, getattr(place, name))) for place, name in pieces]
        for one in patches:
            one.start()
        try:
            yield
        finally:
            for one in patches:
                one.stop()


def _named(name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> str:
    if name != "open":
        return name
    mode = arguments[1] if len(arguments) > 1 else options.get("mode", "r")
    writes = any(letter in mode for letter in "wxa+") if isinstance(mode, str) else bool(mode & os.O_CREAT)
    return "open to write" if writes else name


def _writable(handle: int) -> bool:
    import fcntl

    return fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY


def everything(folder: Path) -> dict[str, bytes]:
    """The contents of all files below a folder, by their path in it; folders have none."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in sorted(folder.rglob("*"))
    }
