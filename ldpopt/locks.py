"""A lock file that one process holds; a kill releases it, on every system."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from ldpopt.errors import Phrase, invalid


@contextmanager
def held(path: Path, what: str, expected: str) -> Iterator[None]:
    """Hold the lock file at `path`, and remove it at the end; `InvalidInput` if another process holds it.

    what, expected : for the message. The file is empty and for its owner alone. What a killed process left there is
    no lock. The system's own errors pass.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, held(Path(folder) / "lock", "folder", "one that nobody works in"):
    ...     (Path(folder) / "lock").stat().st_size
    0
    """
    lock = FileLock(path, timeout=0, mode=0o600)
    try:
        lock.acquire()
    except Timeout:
        if not path.exists():  # some places take no files, and the attempts to make one end like those to hold it
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
    """Remove the file while it is held: after that it could be the next holder's (so the library must not do it).

    Who had opened it meanwhile finds it without a name, and opens another. Where a file in use keeps its name, the
    empty file stays.
    """
    try:
        path.unlink(missing_ok=True)
    except PermissionError:
        return
