"""The key of a survey -> the random 64-bit words that decide its reports: AES-CTR keystream, or memoized AES-CMAC.

A key is 32 secret bytes in a file that only its owner can read. A memoized word is the CMAC of (round, respondent,
question, answer), so that a retry repeats the same report.

Memoizing hides the following: a re-run, a retry or a restored backup gives every respondent the report that was already
given. So repetition gives no second draw to average. If an answer changes inside a round, a new and independent word
decides its report. The two reports are then like those of two independent rounds, and cost at most twice epsilon.

It does not hide a change: two different reports prove that the answer changed. A new round draws new words, and its
privacy loss adds to the loss of the last round. A changed channel also draws new words, and counts like a new round.
A holder of the key can recompute every word.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
import struct
from copy import copy
from pathlib import Path
from typing import Any, NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from ldpopt.errors import InvalidInput, invalid
from ldpopt.extras import pa
from ldpopt.files.atomic import create_private, refuse_shared

__all__ = ["CHUNK_WORDS", "Keystream", "ListedWords", "Respondents", "SecretKey", "create_key", "tag"]

_HEADER = b"ldpopt-survey-key 1\n"
_KEY_BYTES = 32

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
        if type(secret) is not bytes or len(secret) != _KEY_BYTES:
            raise invalid("key", f"{_KEY_BYTES} bytes", "something else")
        self._secret = secret

    @classmethod
    def fresh(cls) -> SecretKey:
        """Generate a key with the operating system's generator."""
        return cls(secrets.token_bytes(_KEY_BYTES))

    def derive(self, purpose: bytes) -> bytes:
        """Derive 32 bytes for a purpose (at most 16 bytes); different purposes give independent keys."""
        return hashlib.blake2b(key=self._secret, person=purpose, digest_size=_KEY_BYTES).digest()

    def check(self) -> str:
        """Return a short text that differs between keys and does not reveal them."""
        return self.derive(b"ldpopt check")[:8].hex()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Create a key file with mode 0600, complete or absent; `InvalidInput` if `path` is taken."""
        try:
            create_private(Path(path), _HEADER + self._secret.hex().encode() + b"\n")
        except FileExistsError:
            expected = "a path that is not taken (leave --new-key out to take the key that is there)"
            raise invalid("key file", expected, str(path)) from None

    def __repr__(self) -> str:
        return "SecretKey(hidden)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SecretKey) and secrets.compare_digest(self._secret, other._secret)

    def __hash__(self) -> int:
        return hash(self.check())

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret key is not pickled; pass the path of its file")


def create_key(path: str | os.PathLike[str]) -> SecretKey:
    """Create a survey key at `path` with mode 0600; raise `InvalidInput` if the path exists.

    A holder of the key can undo the privatization of every report made with it. So keep it with the raw answers, and
    delete it with them.
    """
    key = SecretKey.fresh()
    key.save(path)
    return key


def read_key(path: str | os.PathLike[str]) -> SecretKey:
    """Read the key saved at `path`.

    Raises `InvalidInput` if the file is missing, malformed, a link, not owned by this user, or readable by others.
    Windows does not show the last three in a file's mode, so they are not checked there: keep the key in a private
    folder.
    """
    try:
        handle = os.open(path, _READING)
    except OSError as error:
        raise invalid("key file", "a readable file that is no link", error.strerror, str(path)) from None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise InvalidInput(f"{path}: a key file must be a regular file")
        has_owner = hasattr(os, "geteuid")  # Windows has no owner and mode of this kind
        if has_owner and status.st_uid != os.geteuid():
            raise InvalidInput(f"{path}: the key file belongs to another user")
        refuse_shared(status, "key file", path)
        content = os.read(handle, 200)
    finally:
        os.close(handle)
    text = content.removeprefix(_HEADER).removesuffix(b"\n")
    secret = _unhex(text) if content.startswith(_HEADER) and len(text) == 2 * _KEY_BYTES else None
    if secret is None:
        raise InvalidInput(f"{path} is not a key file that create_key wrote")
    return SecretKey(secret)


def _unhex(text: bytes) -> bytes | None:
    try:
        return bytes.fromhex(text.decode("ascii"))
    except ValueError:
        return None  # the caller's message must not chain an error that quotes the content


WordArray = npt.NDArray[np.uint64]

CHUNK_WORDS = 1 << 15
"""Words made and used at a time, so that the buffers of a chunk stay in a core's own cache."""

_ZEROS = bytes(8 * CHUNK_WORDS)


class Words(Protocol):
    """A sequence of 64-bit words that look independent and uniform to anybody without the key."""

    def fill(self, out: WordArray) -> None:
        """Write the next ``len(out)`` <= `CHUNK_WORDS` words into `out`."""


class Keystream:
    """The AES-256-CTR keystream of one partition and one question under a run's key.

    The counter block is (partition, question, 64-bit counter). So no two streams of a run share a block, and a stream
    that is made again has the same words.
    """

    def __init__(self, key: SecretKey, partition: int, question: int) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        block = struct.pack(">IIQ", partition, question, 0)
        cipher = Cipher(algorithms.AES(key.derive(b"ldpopt stream")), modes.CTR(block))
        self._encryptor = cipher.encryptor()
        self._buffer = np.empty(
            8 * CHUNK_WORDS + 16, np.uint8
        )  # the cipher needs room for one block more than it writes
        self._words = self._buffer[: 8 * CHUNK_WORDS].view("<u8")
        self._view = self._buffer.data

    def fill(self, out: WordArray) -> None:
        """Write the next words into `out`."""
        size = 8 * len(out)
        self._encryptor.update_into(memoryview(_ZEROS)[:size], self._view)
        out[:] = self._words[: len(out)]


class ListedWords:
    """Words that the caller lists, for tests and to enumerate all words."""

    def __init__(self, words: WordArray) -> None:
        self._words = words
        self._next = 0

    def fill(self, out: WordArray) -> None:
        """Write the next words into `out`."""
        out[:] = self._words[self._next : self._next + len(out)]
        self._next += len(out)


Blocks = npt.NDArray[np.uint64]
"""Cipher blocks as rows of two little-endian words, shape (n, 2)."""

Lengths = npt.NDArray[np.int64]

_BATCH_IDS = 1 << 13  # ids processed at a time, so that the buffers stay in a core's own cache

MAX_ID_BYTES = 4096
"""The most bytes of a respondent id."""


class Respondents:
    """The CMAC states of a batch of respondent ids, which give the words of each question.

    ids : a pyarrow string array without nulls. An id is its UTF-8 text, normalized by `Privatizer.ids`: 7, "7" and "07"
        are one respondent.

    A word is the AES-CMAC (RFC 4493) of a message, computed for all ids at once. The message is the id, padded with
    zeros to whole blocks that end with its length, and then one block with the question's tag.
    """

    def __init__(self, key: SecretKey, ids: Any) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        self._encryptor = Cipher(algorithms.AES(key.derive(b"ldpopt memo")), modes.ECB()).encryptor()
        # The subkey of RFC 4493 for messages of whole blocks: twice AES(0) in GF(2**128).
        doubled = int.from_bytes(self._encryptor.update(bytes(16)), "big") << 1
        doubled ^= (doubled >> 128) * ((1 << 128) | 0x87)
        self._subkey = np.frombuffer(doubled.to_bytes(16, "big"), "<u8")
        self._buffer = np.empty(16 * CHUNK_WORDS + 16, np.uint8)  # the cipher asks for a block more than it writes
        self._states: Blocks = np.empty((len(ids), 2), "<u8")
        for start in range(0, len(ids), _BATCH_IDS):
            text, starts, sizes = _bytes(ids.slice(start, _BATCH_IDS))
            self._absorb(text, starts, sizes, self._states[start : start + _BATCH_IDS])

    def __len__(self) -> int:
        return len(self._states)

    def take(self, places: npt.NDArray[np.intp]) -> Respondents:
        """Return the respondents at some places, in the order of the places."""
        selection = copy(self)
        selection._states = self._states[places]
        return selection

    def words(self, tags: list[bytes], answers: npt.NDArray[Any] | None = None) -> MemoizedWords:
        """Return the words of a question, one for each id in order.

        tags : one of 16 bytes for all ids, or one for each answer; `answers` are then the positions of the ids' tags.
        """
        answer_count = len(self) if answers is None and len(tags) == 1 else 0 if answers is None else len(answers)
        if answer_count != len(self):
            raise invalid("words", f"{len(self)} answers, one an id", answer_count)
        return MemoizedWords(self, np.frombuffer(b"".join(tags), "<u8").reshape(-1, 2), answers)

    def macs(self, tag: bytes) -> Blocks:
        """Return the 128-bit MACs of all ids and a 16-byte tag, shape (n, 2)."""
        macs: Blocks = np.empty_like(self._states)
        for start in range(0, len(macs), CHUNK_WORDS):
            macs[start : start + CHUNK_WORDS] = self.some_macs(np.frombuffer(tag, "<u8"), start, CHUNK_WORDS)
        return macs

    def some_macs(self, tags: WordArray, start: int, count: int) -> Blocks:
        """Compute the MACs of at most `count` <= `CHUNK_WORDS` ids from `start`.

        The next call overwrites the result.

        tags : one tag of two words for all ids, shape (2,), or one for each, shape (count, 2).
        """
        states, masks = self._states[start : start + count], tags ^ self._subkey
        blocks = np.empty_like(states)
        for half in range(2):  # one column at a time: numpy broadcasts rows of two slowly
            np.bitwise_xor(states[:, half], masks[..., half], out=blocks[:, half])
        return self._encrypt(blocks)

    def _encrypt(self, blocks: Blocks) -> Blocks:
        size = blocks.nbytes
        self._encryptor.update_into(blocks.reshape(-1).view(np.uint8).data, self._buffer[: size + 16].data)
        return self._buffer[:size].view("<u8").reshape(-1, 2)

    def _absorb(self, text: npt.NDArray[np.uint8], starts: Lengths, sizes: Lengths, states: Blocks) -> None:
        """Process the blocks of every id and put the CMAC states that result into `states`."""
        if sizes.max() > MAX_ID_BYTES:
            raise InvalidInput(f"respondent ids: an id has more than {MAX_ID_BYTES} bytes")
        # Every eight bytes of the text are read as a word, at any offset. Masks clear the bytes beyond the id's end.
        padded = np.concatenate([text, np.zeros(16, np.uint8)])
        eights: Any = np.ndarray((len(padded) - 7,), "<u8", buffer=padded, strides=(1,))
        blocks = (sizes + (2 + 15)) >> 4  # two of the bytes are the length
        shortest, longest = int(blocks.min()), int(blocks.max())
        for j in range(longest):
            active: Any = slice(None) if j < shortest else np.flatnonzero(blocks > j)
            begin, bytes_left = starts[active] + 16 * j, sizes[active] - 16 * j
            message: Blocks = np.empty((len(begin), 2), "<u8")
            for half in range(2):
                byte_counts = np.clip(bytes_left - 8 * half, 0, 8)
                offset = np.minimum(begin + 8 * half, len(text))
                np.bitwise_and(eights.take(offset), _MASKS.take(byte_counts), out=message[:, half])
            if j + 1 >= shortest:
                length = sizes[active].astype(np.uint64) << np.uint64(48)
                if shortest < longest:
                    length[blocks[active] != j + 1] = 0
                message[:, 1] |= length
            if j:
                message ^= states[active]
            states[active] = self._encrypt(message)


class MemoizedWords:
    """The words of one question, in the order of the ids."""

    def __init__(self, respondents: Respondents, tags: WordArray, answers: npt.NDArray[Any] | None) -> None:
        self._respondents, self._tags, self._answers, self._next = respondents, tags, answers, 0

    def fill(self, out: WordArray) -> None:
        """Write the words of the next ids into `out`."""
        if self._answers is None or len(self._tags) == 1:
            tags = self._tags[0]
        else:
            tags = self._tags[self._answers[self._next : self._next + len(out)]]
        out[:] = self._respondents.some_macs(tags, self._next, len(out))[:, 0]
        self._next += len(out)


def tag(*parts: str) -> bytes:
    """Return 16 bytes that represent a sequence of texts, each delimited by its length."""
    digest = hashlib.blake2b(digest_size=16, person=b"ldpopt tag")
    for part in parts:
        content = part.encode()
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.digest()


_MASKS = np.array([(1 << (8 * size)) - 1 for size in range(9)], np.uint64)


def _bytes(ids: Any) -> tuple[npt.NDArray[np.uint8], Lengths, Lengths]:
    """The UTF-8 bytes of an arrow string array, with the start and the size of each value."""
    width = np.int64 if pa.types.is_large_string(ids.type) else np.int32
    _, offsets, data = ids.buffers()
    if len(ids) == 0:
        return np.empty(0, np.uint8), np.empty(0, np.int64), np.empty(0, np.int64)
    ends = np.frombuffer(offsets, width)[ids.offset : ids.offset + len(ids) + 1].astype(np.int64)
    text = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]] if data else np.empty(0, np.uint8)
    return text, ends[:-1] - ends[0], np.diff(ends)
