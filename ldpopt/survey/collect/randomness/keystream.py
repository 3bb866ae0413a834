"""64-bit words of AES-CTR keystream: the randomness that decides released reports."""

from __future__ import annotations

import struct
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ldpopt.survey.collect.randomness.secret import SecretKey

WordArray = npt.NDArray[np.uint64]

CHUNK = 1 << 15
"""Words made and used at a time, so that the buffers of a chunk stay in a core's own cache."""

_ZEROS = bytes(8 * CHUNK)


class Words(Protocol):
    """A sequence of 64-bit words that look independent and uniform to anybody without the key."""

    def fill(self, out: WordArray) -> None:
        """Put the next ``len(out)`` <= `CHUNK` words into `out`."""


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
        self._room = np.empty(8 * CHUNK + 16, np.uint8)  # the cipher needs room for one block more than it writes
        self._words = self._room[: 8 * CHUNK].view("<u8")
        self._view = self._room.data

    def fill(self, out: WordArray) -> None:
        """Put the next words into `out`."""
        size = 8 * len(out)
        self._encryptor.update_into(memoryview(_ZEROS)[:size], self._view)
        out[:] = self._words[: len(out)]


class Given:
    """Words that the caller lists, for tests and to enumerate all words."""

    def __init__(self, words: WordArray) -> None:
        self._words = words
        self._next = 0

    def fill(self, out: WordArray) -> None:
        """Put the next words into `out`."""
        out[:] = self._words[self._next : self._next + len(out)]
        self._next += len(out)
