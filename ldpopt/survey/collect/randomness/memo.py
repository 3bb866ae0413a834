"""Memoised words: AES-CMAC of (round, respondent, question, answer), so that a retry repeats the same report.

What this hides: a re-run, a retry or a restored backup gives every respondent the report that was already given. So
repetition gives no second draw to average. If an answer changes inside a round, a new and independent word decides its
report. The two reports are then like those of two independent rounds, and cost at most twice epsilon.

What this does not hide: two different reports prove that the answer changed. A new round draws new words, and its
privacy loss adds to the loss of the last round. A changed channel also draws new words, and counts like a new round.
Whoever holds the key can recompute every word.

Plans of version 1 (`Plan.derivation` 1) leave the answer out of the CMAC. There the same word decides the reports of
the old and of the new answer, and the pair of reports may reveal both answers for certain.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.errors import invalid
from ldpopt.survey.collect.randomness.keystream import CHUNK, WordArray
from ldpopt.survey.collect.randomness.secret import SecretKey

Blocks = npt.NDArray[np.uint64]
"""Cipher blocks as rows of two little-endian words, shape (n, 2)."""

Lengths = npt.NDArray[np.int64]

_ROWS = 1 << 13  # ids processed at a time, so that the buffers stay in a core's own cache

LONGEST = 4096
"""The most bytes of a respondent id."""


class Respondents:
    """The CMAC states of a batch of respondent ids, from which the words of each question follow.

    ids : a pyarrow string array without nulls. An id is its UTF-8 text: 7 and "7" are one respondent, "07" is
        another.

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
        self._room = np.empty(16 * CHUNK + 16, np.uint8)  # the cipher asks for a block more than it writes
        self._states: Blocks = np.empty((len(ids), 2), "<u8")
        for start in range(0, len(ids), _ROWS):
            text, starts, sizes = _bytes(ids.slice(start, _ROWS))
            self._absorb(text, starts, sizes, self._states[start : start + _ROWS])

    def __len__(self) -> int:
        return len(self._states)

    def words(self, tag: bytes) -> MemoisedWords:
        """The words of the question with this 16-byte tag, one for each id in order."""
        return MemoisedWords(self, np.frombuffer(tag, "<u8"))

    def words_of_answers(self, tags: list[bytes], answers: npt.NDArray[Any]) -> MemoisedWords:
        """The words of a question with a 16-byte tag for each answer. `answers` are the positions of the ids' tags."""
        if len(answers) != len(self):
            raise invalid("words", f"{len(self)} answers, one an id", len(answers))
        return MemoisedWords(self, np.frombuffer(b"".join(tags), "<u8").reshape(-1, 2), answers)

    def macs(self, tag: bytes) -> Blocks:
        """The 128-bit MACs of all ids and a 16-byte tag, shape (n, 2)."""
        made: Blocks = np.empty_like(self._states)
        for start in range(0, len(made), CHUNK):
            made[start : start + CHUNK] = self.some_macs(np.frombuffer(tag, "<u8"), start, CHUNK)
        return made

    def some_macs(self, tags: WordArray, start: int, count: int) -> Blocks:
        """The MACs of at most `count` <= `CHUNK` ids from `start`. The next call overwrites the result.

        tags : one tag of two words for all ids, shape (2,), or one for each, shape (count, 2).
        """
        states, masks = self._states[start : start + count], tags ^ self._subkey
        blocks = np.empty_like(states)
        for half in range(2):  # one column at a time: numpy broadcasts rows of two slowly
            np.bitwise_xor(states[:, half], masks[..., half], out=blocks[:, half])
        return self._encrypt(blocks)

    def _encrypt(self, blocks: Blocks) -> Blocks:
        size = blocks.nbytes
        self._encryptor.update_into(blocks.reshape(-1).view(np.uint8).data, self._room[: size + 16].data)
        return self._room[:size].view("<u8").reshape(-1, 2)

    def _absorb(self, text: npt.NDArray[np.uint8], starts: Lengths, sizes: Lengths, states: Blocks) -> None:
        """Process the blocks of every id and put the CMAC states that result into `states`."""
        if sizes.max() > LONGEST:
            raise invalid("respondent ids", f"at most {LONGEST} bytes", "a longer one")
        # Every eight bytes of the text are read as a word, at any offset. Masks clear the bytes beyond the id's end.
        padded = np.concatenate([text, np.zeros(16, np.uint8)])
        eights: Any = np.ndarray((len(padded) - 7,), "<u8", buffer=padded, strides=(1,))
        blocks = (sizes + (2 + 15)) >> 4  # two of the bytes are the length
        shortest, longest = int(blocks.min()), int(blocks.max())
        for j in range(longest):
            active: Any = slice(None) if j < shortest else np.flatnonzero(blocks > j)
            begin, left = starts[active] + 16 * j, sizes[active] - 16 * j
            message: Blocks = np.empty((len(begin), 2), "<u8")
            for half in range(2):
                kept = np.clip(left - 8 * half, 0, 8)
                at = np.minimum(begin + 8 * half, len(text))
                np.bitwise_and(eights.take(at), _MASKS.take(kept), out=message[:, half])
            if j + 1 >= shortest:
                length = sizes[active].astype(np.uint64) << np.uint64(48)
                if shortest < longest:
                    length[blocks[active] != j + 1] = 0
                message[:, 1] |= length
            if j:
                message ^= states[active]
            states[active] = self._encrypt(message)


class MemoisedWords:
    """The words of one question, in the order of the ids."""

    def __init__(self, respondents: Respondents, tags: WordArray, answers: npt.NDArray[Any] | None = None) -> None:
        self._respondents = respondents
        self._tags = tags
        self._answers = answers
        self._next = 0

    def fill(self, out: WordArray) -> None:
        """Put the words of the next ids into `out`."""
        tags = self._tags if self._answers is None else self._tags[self._answers[self._next : self._next + len(out)]]
        out[:] = self._respondents.some_macs(tags, self._next, len(out))[:, 0]
        self._next += len(out)


def tag(*parts: str) -> bytes:
    """16 bytes that stand for a sequence of texts, each one delimited by its length."""
    digest = hashlib.blake2b(digest_size=16, person=b"ldpopt tag")
    for part in parts:
        content = part.encode()
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.digest()


def respondents(key: SecretKey, ids: Iterable[str]) -> Respondents:
    """`Respondents` of plain Python strings."""
    import pyarrow as pa

    return Respondents(key, pa.array(list(ids), pa.string()))


_MASKS = np.array([(1 << (8 * kept)) - 1 for kept in range(9)], np.uint64)


def _bytes(ids: Any) -> tuple[npt.NDArray[np.uint8], Lengths, Lengths]:
    """The UTF-8 bytes of an arrow string array, with the start and the size of each value."""
    import pyarrow as pa

    width = np.int64 if pa.types.is_large_string(ids.type) else np.int32
    _, offsets, data = ids.buffers()
    if len(ids) == 0:
        return np.empty(0, np.uint8), np.empty(0, np.int64), np.empty(0, np.int64)
    ends = np.frombuffer(offsets, width)[ids.offset : ids.offset + len(ids) + 1].astype(np.int64)
    text = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]] if data else np.empty(0, np.uint8)
    return text, ends[:-1] - ends[0], np.diff(ends)
