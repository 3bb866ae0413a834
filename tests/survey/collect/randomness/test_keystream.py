"""The keystream is AES-256-CTR, and streams never share a block."""

from __future__ import annotations

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from ldpopt.survey.collect.randomness.keystream import CHUNK, Keystream
from ldpopt.survey.collect.randomness.secret import SecretKey

KEY = SecretKey(bytes(range(32)))


def take(stream: Keystream, sizes: list[int]) -> np.ndarray:
    made = []
    for size in sizes:
        out = np.empty(size, np.uint64)
        stream.fill(out)
        made.append(out)
    return np.concatenate(made)


def test_words_are_aes_in_counter_mode() -> None:
    """Each pair of words is AES of (partition, question, counter), by the cipher's own single-block mode."""
    words = take(Keystream(KEY, 3, 7), [CHUNK])
    cipher = Cipher(algorithms.AES(KEY.derive(b"ldpopt stream")), modes.ECB()).encryptor()
    for counter in (0, 1, CHUNK // 2 - 1):
        block = (3).to_bytes(4, "big") + (7).to_bytes(4, "big") + counter.to_bytes(8, "big")
        assert cipher.update(block) == words[2 * counter : 2 * counter + 2].astype("<u8").tobytes()


def test_streams_continue_and_repeat() -> None:
    """A stream goes on where it stopped, odd counts included, and starts again the same."""
    whole = take(Keystream(KEY, 0, 0), [CHUNK, 10])
    assert np.array_equal(whole, take(Keystream(KEY, 0, 0), [1, 2, CHUNK - 7, 14]))


def test_streams_differ() -> None:
    """Another key, partition or question gives other words."""
    streams = [Keystream(k, p, q) for k in (KEY, SecretKey(bytes(32))) for p in (0, 1) for q in (0, 1)]
    words = np.concatenate([take(stream, [1000]) for stream in streams])
    assert len(np.unique(words)) == len(words)
