"""A lock file that one process at a time can hold. If the process is killed, the lock is free, on every system."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from ldpopt.errors import Phrase, invalid


@contextmanager
def held(path: Path, what: str, expected: str) -> Iterator[None]:
    """Hold the lock file at `path`, and remove it at the end; `InvalidInput` if another process holds it.

    what, expected : parts of the error message. The file is empty, and only its owner can read it. A file that a
    killed process left behind is not a lock. The system's own errors are not translated.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, held(Path(folder) / "lock", "folder", "one that nobody works in"):
    ...     (Path(folder) / "lock").stat().st_size
    0
    """
    lock = FileLock(path, timeout=0, mode=0o600)
    try:
        lock.acquire()
    except Timeout:
        if not path.exists():  # where no file can be made, the attempt ends like one to hold a lock in use
            raise invalid(what, "a place where a lock file can be made", Phrase("none"), str(path)) from None
        raise invalid(what, expected, Phrase("one in use"), str(path)) from None
    try:
        yield
    finally:
        try:
            _remove(path)
        finally:
            lock.release()


def _remove(path: Path) -> None:
    """Remove the file while the lock is held. After the release, the file could belong to the next holder.

    A process that had opened the file meanwhile finds that it has no name, and opens a new one. On a system that does
    not remove files in use, the empty file stays.
    """
    try:
        path.unlink(missing_ok=True)
    except PermissionError:
        return
