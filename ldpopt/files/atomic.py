"""Text and bytes read and written as whole files: strict UTF-8, complete or not at all, and locked by one process.

A lock file can be held by one process at a time. If the process is killed, the lock is free, on every system.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from ldpopt.errors import InvalidInput, Phrase, invalid

__all__ = [
    "MAX_TEXT", "NO_FILE", "UNFINISHED", "PathLike", "aside", "create_private", "digest", "folder_aside", "hold_lock",
    "move_to_new", "naming", "read_text", "refuse_shared", "replace_text", "sync_folder", "write_bytes_atomically",
    "write_text",
]  # fmt: skip

PathLike: TypeAlias = str | os.PathLike[str]

MAX_TEXT = 1 << 28
"""Bytes of the largest file that is read whole, as a plan, a channel or counts are."""

NO_FILE = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
"""The errors that the system raises for a path that does not lead to a file."""

UNFINISHED = ".ldpopt-*.part"
"""A pattern for `Path.glob`, which matches unfinished files that a killed process may leave behind."""


def read_text(path: PathLike, encoding: str = "utf-8") -> str:
    """Read the text of a file, without its byte order mark.

    Parameters
    ----------
    path : The file.
    encoding : A name that Python knows.

    Returns
    -------
    str
        The text.

    Raises
    ------
    InvalidInput
        If the file cannot be read (with the system's reason), is empty, too large or not in that encoding.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     read_text(write_text(Path(folder) / "note.txt", "ε = 1"))
    'ε = 1'
    """
    try:
        with _path(path).open("rb") as file:
            raw = file.read(MAX_TEXT + 1)
    except OSError as error:
        raise _refused(path, "a readable file", error) from None
    if len(raw) > MAX_TEXT:
        raise invalid(str(path), f"a file of at most {MAX_TEXT} bytes", Phrase("a larger one"))
    try:
        text = raw.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        got = Phrase(f"byte 0x{raw[error.start]:02x}")
        raise invalid(str(path), f"{encoding.upper()} text", got, f"line {line}") from None
    if not text.strip():
        raise invalid(str(path), "a file with contents", Phrase("an empty one"))
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise invalid(str(path), "text", Phrase("a zero byte"), f"line {line}")
    return text


@contextmanager
def naming(path: PathLike) -> Iterator[None]:
    """Add the file's name to errors that are raised while something is made from its contents."""
    try:
        yield
    except InvalidInput as error:
        text = str(error)
        raise error if text.startswith((f"{path}: ", f"{path} ")) else InvalidInput(f"{path}: {text}") from None


def write_text(path: PathLike, text: str, force: bool = False) -> Path:
    """Write `text` as UTF-8 to `path`, completely or not at all.

    Parameters
    ----------
    path : The file.
    text : The contents.
    force : True replaces an existing file.

    Returns
    -------
    Path
        The path of the file.

    Raises
    ------
    InvalidInput
        As for `write_bytes_atomically`, and for text that UTF-8 cannot hold.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = write_text(Path(folder) / "note.txt", "a")
    ...     write_text(Path(folder) / "note.txt", "b", force=True).read_text()
    'b'
    """
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise invalid(str(path), "text that UTF-8 can hold", Phrase(f"a lone surrogate at {error.start}")) from None
    return write_bytes_atomically(path, data, force)


def write_bytes_atomically(path: PathLike, data: bytes, force: bool = False) -> Path:
    """Write `data` to `path`, completely or not at all.

    Devices and pipes are never replaced.

    Parameters
    ----------
    path : The file.
    data : The contents.
    force : True replaces an existing file.

    Returns
    -------
    Path
        The path of the file.

    Raises
    ------
    InvalidInput
        If the place cannot be written. Also if the target exists and `force` is False, even when it appears meanwhile.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_bytes_atomically(Path(folder) / "data.bin", b"abc").read_bytes()
    b'abc'
    """
    target = _path(path)
    if os.path.lexists(target):
        if not force:
            raise _exists(target)
        if not target.is_file():
            raise invalid(str(target), "the path of an ordinary file", Phrase("something else"))
    try:
        with aside(target, force) as unfinished_path, unfinished_path.open("xb") as file:
            file.write(data)
            file.flush()
    except FileExistsError:
        raise _exists(target) from None
    except OSError as error:
        raise _refused(path, "a place that can be written", error) from None
    return target


@contextmanager
def aside(path: Path, force: bool = True) -> Iterator[Path]:
    """Yield a path next to `path` to write to; it becomes `path` if the block succeeds.

    The system's own errors are not translated. An existing `path` is `FileExistsError` unless `force`.
    """
    unfinished_path = path.with_name(UNFINISHED.replace("*", secrets.token_hex(8)))
    try:
        yield unfinished_path
        with unfinished_path.open("rb+") as file:  # some systems flush only files that are open for writing
            os.fsync(file.fileno())
        if force:
            os.replace(unfinished_path, path)
        else:
            move_to_new(unfinished_path, path)
    finally:
        unfinished_path.unlink(missing_ok=True)
    sync_folder(path.parent)


@contextmanager
def folder_aside(path: Path) -> Iterator[Path]:
    """Yield a new folder next to `path` to fill; it becomes `path` if the block succeeds.

    `FileExistsError` if `path` was taken meanwhile. The system's own errors are not translated.
    """
    temporary = path.with_name(UNFINISHED.replace("*", secrets.token_hex(8)))
    temporary.mkdir()
    try:
        yield temporary
        sync_folder(temporary)
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        temporary.rename(path)  # which replaces neither a file nor a folder with contents
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    sync_folder(path.parent)


def replace_text(path: Path, text: str) -> None:
    """Write `text` as UTF-8 to `path`, whole or not at all; the system's own errors are not translated."""
    with aside(path) as unfinished_path:
        unfinished_path.write_text(text, encoding="utf-8", newline="\n")


def create_private(path: Path, data: bytes, force: bool = False) -> None:
    """Create a file that only its owner can read, from its first moment; `FileExistsError` if it exists, or `force`."""
    with aside(path, force) as unfinished_path:
        handle = os.open(unfinished_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(data)


def refuse_shared(status: os.stat_result, name: str, path: PathLike, group: bool = False) -> None:
    """Raise `InvalidInput` for a file of secrets that others can read; Windows file modes do not show this.

    status : the status of the file.
    name : its name in the message.
    group : True if the file's group may read it.
    """
    if hasattr(os, "geteuid") and status.st_mode & (0o007 if group else 0o077):
        mode = Phrase(f"mode {stat.S_IMODE(status.st_mode):04o}")
        raise invalid(name, f"mode 0600 (no access for {'others' if group else 'group and others'})", mode, str(path))


def move_to_new(unfinished_path: Path, target: Path) -> None:
    """Move a file to the name `target` by a link, which fails if it exists (`FileExistsError`)."""
    # The old name may stay.
    try:
        os.link(unfinished_path, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
        os.replace(unfinished_path, target)


def digest(path: Path, *context: str) -> str:
    """Compute the SHA-256 of the texts `context` followed by a file's bytes, in hexadecimal."""
    sha = sha256("".join(f"{len(text)} {text} " for text in context).encode())
    with path.open("rb") as file:
        while content := file.read(1 << 20):
            sha.update(content)
    return sha.hexdigest()


def sync_folder(folder: Path) -> None:
    """Write the list of a folder's files to the disk, so that new names are durable."""
    # Where the system allows it.
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _path(path: PathLike) -> Path:
    if not isinstance(path, (str, os.PathLike)) or "\0" in str(path) or not Path(path).name:
        raise invalid("path", "the path of a file", path)
    return Path(path)


def _exists(target: Path) -> InvalidInput:
    return invalid(str(target), "a path that does not exist yet, or leave to overwrite it", Phrase("an existing one"))


def _refused(path: PathLike, expected: str, error: OSError) -> InvalidInput:
    reason = error.strerror or type(error).__name__
    return invalid(str(path), expected, Phrase(reason[:1].lower() + reason[1:]))


@contextmanager
def hold_lock(path: Path, name: str, expected: str) -> Iterator[None]:
    """Lock the file at `path`, and remove it at the end; `InvalidInput` if it is in use.

    The file is empty and belongs to its owner. The file of a killed process does not lock. The system's errors are not
    translated.
    """
    from filelock import FileLock, Timeout  # most commands hold nothing

    lock = FileLock(path, timeout=0, mode=0o600)
    try:
        lock.acquire()
    except Timeout:
        if not path.exists():  # where no file can be made, the attempt ends like one to hold a lock in use
            raise invalid(
                name, "a place where a lock file can be made", Phrase("a place without locks"), str(path)
            ) from None
        raise invalid(name, expected, Phrase("one in use"), str(path)) from None
    try:
        yield
    finally:
        try:
            with suppress(
                PermissionError
            ):  # removed while held, since later it could be another's; in use, it may stay
                path.unlink(missing_ok=True)
        finally:
            lock.release()
