"""The survey key: 32 secret bytes in a file that only its owner can read."""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from pathlib import Path
from typing import NoReturn

from ldpopt.errors import invalid
from ldpopt.files import create_private

_HEADER = b"ldpopt-survey-key 1\n"
_BYTES = 32

# Where the system has the flags, links are not followed and pipes not waited for; on Windows line ends are kept.
_READING = os.O_RDONLY
for _flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
    _READING |= getattr(os, _flag, 0)


class SecretKey:
    """32 secret bytes that no repr, log, traceback or pickle shows.

    >>> SecretKey(bytes(32))
    SecretKey(hidden)
    """

    __slots__ = ("_secret",)

    def __init__(self, secret: bytes) -> None:
        if type(secret) is not bytes or len(secret) != _BYTES:
            raise invalid("key", f"{_BYTES} bytes", "something else")
        self._secret = secret

    @classmethod
    def fresh(cls) -> SecretKey:
        """A key from the operating system's generator."""
        return cls(secrets.token_bytes(_BYTES))

    def derive(self, purpose: bytes) -> bytes:
        """32 bytes for one purpose (at most 16 bytes long); different purposes give independent keys."""
        return hashlib.blake2b(key=self._secret, person=purpose, digest_size=_BYTES).digest()

    def check(self) -> str:
        """A short text that differs between keys and does not reveal them."""
        return self.derive(b"ldpopt check")[:8].hex()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Create a key file with mode 0600, complete or absent; `InvalidInput` if `path` is taken."""
        try:
            create_private(Path(path), _HEADER + self._secret.hex().encode() + b"\n")
        except FileExistsError:
            raise invalid("key file", "a path that is not taken", str(path)) from None

    def __repr__(self) -> str:
        return "SecretKey(hidden)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SecretKey) and secrets.compare_digest(self._secret, other._secret)

    def __hash__(self) -> int:
        return hash(self.check())

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret key is not pickled; pass the path of its file")


def create_key(path: str | os.PathLike[str]) -> SecretKey:
    """A fresh survey key, saved at `path` with mode 0600; `InvalidInput` if the path is taken.

    Whoever holds the key can undo the privatization of every report made with it. So keep it with the raw answers, and
    delete it with them.
    """
    key = SecretKey.fresh()
    key.save(path)
    return key


def read_key(path: str | os.PathLike[str]) -> SecretKey:
    """The key saved at `path`.

    Raises `InvalidInput` if the file is missing, malformed, a link, not owned by this user, or readable by others. On
    Windows the last three are not checked, since a file's mode does not show them there: keep the key in a folder of
    your own.
    """
    try:
        handle = os.open(path, _READING)
    except OSError as error:
        raise invalid("key file", "a readable file that is no link", error.strerror, str(path)) from None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise invalid("key file", "a regular file", "something else", str(path))
        owned = hasattr(os, "geteuid")  # Windows has no owner and mode of this kind
        if owned and status.st_uid != os.geteuid():
            raise invalid("key file", "a file of this user", "another user's", str(path))
        if owned and status.st_mode & 0o077:
            mode = f"mode {stat.S_IMODE(status.st_mode):04o}"
            raise invalid("key file", "mode 0600 (no access for group and others)", mode, str(path))
        content = os.read(handle, 200)
    finally:
        os.close(handle)
    text = content.removeprefix(_HEADER).removesuffix(b"\n")
    secret = _unhex(text) if content.startswith(_HEADER) and len(text) == 2 * _BYTES else None
    if secret is None:
        raise invalid("key file", "a file written by create_key", "something else", str(path))
    return SecretKey(secret)


def _unhex(text: bytes) -> bytes | None:
    try:
        return bytes.fromhex(text.decode("ascii"))
    except ValueError:
        return None  # the caller's message must not chain an error that quotes the content
