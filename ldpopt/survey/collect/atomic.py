"""Files that are complete or absent: written aside, flushed to disk, renamed."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ASIDE = ".aside-"


@contextmanager
def aside(path: Path) -> Iterator[Path]:
    """A path beside `path` to write to; it becomes `path` at the end, or disappears if the block fails.

    After a kill the file written aside stays, under a name that starts with `ASIDE`; `path` is untouched.
    """
    written = path.with_name(f"{ASIDE}{secrets.token_hex(8)}-{path.name}")
    try:
        yield written
        sync(written)
        written.replace(path)
        sync(path.parent)
    finally:
        written.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """`text` in UTF-8 at `path`, complete or absent."""
    with aside(path) as written:
        written.write_text(text, encoding="utf-8", newline="\n")


def create_private(path: Path, content: bytes) -> None:
    """A new file with mode 0600 from its first moment; `FileExistsError` if `path` is taken."""
    written = path.with_name(f"{ASIDE}{secrets.token_hex(8)}-{path.name}")
    try:
        handle = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.link(written, path)  # unlike a rename, never replaces
        sync(path.parent)
    finally:
        written.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Flush a file or a directory to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
