"""The survey key: private from its first moment, and never shown.

The keystream is AES-256-CTR, and streams never share a block.

Memoized words are AES-CMAC, and repeat exactly when they must.
"""

from __future__ import annotations

import copy
import os
import pickle
import stat
import traceback
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.cmac import CMAC
from hypothesis import given, settings
from hypothesis import strategies as st

from ldpopt.errors import InvalidInput
from ldpopt_survey.collect.words import (
    CHUNK_WORDS,
    MAX_ID_BYTES,
    Keystream,
    Respondents,
    SecretKey,
    create_key,
    read_key,
    tag,
)


def test_a_key_survives_its_file(tmp_path: Path) -> None:
    """A created key reads back, from a file of mode 0600 with nothing beside it."""
    key = create_key(tmp_path / "key")
    assert read_key(tmp_path / "key") == key != create_key(tmp_path / "other")
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    assert sorted(os.listdir(tmp_path)) == ["key", "other"]


def test_a_key_file_is_never_replaced(tmp_path: Path) -> None:
    """Creating over an existing file fails, and leaves it and nothing else."""
    key = create_key(tmp_path / "key")
    with pytest.raises(InvalidInput, match="not taken"):
        create_key(tmp_path / "key")
    assert read_key(tmp_path / "key") == key
    assert os.listdir(tmp_path) == ["key"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o601, 0o644])
def test_a_key_open_to_others_is_refused(tmp_path: Path, mode: int) -> None:
    """Any access for group or others refuses the key."""
    create_key(tmp_path / "key")
    (tmp_path / "key").chmod(mode)
    with pytest.raises(InvalidInput, match="0600"):
        read_key(tmp_path / "key")


def test_links_folders_and_absent_files_are_refused(tmp_path: Path) -> None:
    """Only a regular file that is there is read."""
    create_key(tmp_path / "key")
    (tmp_path / "link").symlink_to(tmp_path / "key")
    os.mkfifo(tmp_path / "pipe", 0o600)
    for name in ("link", "absent", ".", "pipe"):
        with pytest.raises(InvalidInput, match="key file"):
            read_key(tmp_path / name)


@pytest.mark.parametrize("content", [b"", b"\xff" * 90, b"ldpopt-survey-key 1\n" + b"zz" * 32, b"0" * 64, b"x" * 500])
def test_a_malformed_key_is_refused_unseen(tmp_path: Path, content: bytes) -> None:
    """A malformed file is refused, and its content is in no message nor in the error's context."""
    path = tmp_path / "key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(InvalidInput, match="create_key") as caught:
        read_key(path)
    shown = "".join(traceback.format_exception(caught.value))
    assert "zzzz" not in shown
    assert caught.value.__context__ is None


def test_nothing_shows_a_key() -> None:
    """Not its repr, not its text, not a pickle, not a copy."""
    key = SecretKey(b"\x41" * 32)
    assert f"{key} {key!r}" == "SecretKey(hidden) SecretKey(hidden)"
    for attempt in (pickle.dumps, copy.copy):
        with pytest.raises(TypeError, match="not pickled"):
            attempt(key)
    with pytest.raises(InvalidInput, match="32 bytes"):
        SecretKey(b"short")


def test_purposes_are_independent() -> None:
    """Derived keys differ by purpose and by key, and the check is short of either."""
    key, other = SecretKey(bytes(32)), SecretKey(b"\1" * 32)
    derived = {k.derive(p) for k in (key, other) for p in (b"a", b"b")}
    assert len(derived) == 4
    assert key.check() != other.check()
    assert len(key.check()) == 16
    assert len({key, other, SecretKey(bytes(32))}) == 2


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
    words = take(Keystream(KEY, 3, 7), [CHUNK_WORDS])
    cipher = Cipher(algorithms.AES(KEY.derive(b"ldpopt stream")), modes.ECB()).encryptor()
    for counter in (0, 1, CHUNK_WORDS // 2 - 1):
        block = (3).to_bytes(4, "big") + (7).to_bytes(4, "big") + counter.to_bytes(8, "big")
        assert cipher.update(block) == words[2 * counter : 2 * counter + 2].astype("<u8").tobytes()


def test_streams_continue_and_repeat() -> None:
    """A stream goes on where it stopped, odd counts included, and starts again the same."""
    whole = take(Keystream(KEY, 0, 0), [CHUNK_WORDS, 10])
    assert np.array_equal(whole, take(Keystream(KEY, 0, 0), [1, 2, CHUNK_WORDS - 7, 14]))


def test_streams_differ() -> None:
    """Another key, partition or question gives other words."""
    streams = [Keystream(k, p, q) for k in (KEY, SecretKey(bytes(32))) for p in (0, 1) for q in (0, 1)]
    words = np.concatenate([take(stream, [1000]) for stream in streams])
    assert len(np.unique(words)) == len(words)


MEMO_KEY = SecretKey(bytes(range(32)))


def respondents(key: SecretKey, ids: Iterable[str]) -> Respondents:
    return Respondents(key, pa.array(list(ids), pa.string()))


def one(identity: str, question: bytes) -> bytes:
    content = identity.encode()
    message = content + bytes((-len(content) - 2) % 16) + len(content).to_bytes(2, "little") + question
    mac = CMAC(algorithms.AES(MEMO_KEY.derive(b"ldpopt memo")))
    mac.update(message)
    return mac.finalize()


@given(st.lists(st.text(max_size=70), min_size=1, max_size=30))
@settings(max_examples=100, deadline=None)
def test_words_are_cmac(ids: list[str]) -> None:
    """All ids at once give what the library's CMAC gives for each (RFC 4493)."""
    question = tag("survey", "1", "income")
    macs = respondents(MEMO_KEY, ids).macs(question)
    assert [row.astype("<u8").tobytes() for row in macs] == [one(identity, question) for identity in ids]
    words = np.empty(len(ids), np.uint64)
    respondents(MEMO_KEY, ids).words([question]).fill(words)
    assert np.array_equal(words, macs[:, 0])


def test_slices_and_types_of_ids_do_not_matter() -> None:
    """Sliced arrays, both string types and more than one chunk give the same words."""
    ids = [f"person-{i}" for i in range(CHUNK_WORDS + 100)]
    whole = Respondents(MEMO_KEY, pa.array(ids)).macs(tag("q"))
    large = Respondents(MEMO_KEY, pa.array(ids, pa.large_string()).slice(17, CHUNK_WORDS)).macs(tag("q"))
    assert np.array_equal(whole[17 : 17 + CHUNK_WORDS], large)
    assert len(Respondents(MEMO_KEY, pa.array([], pa.string()))) == 0


def test_similar_ids_have_different_words() -> None:
    """Padding hides no difference: trailing zero bytes, leading zeros and the empty id have different words."""
    ids = ["", "\0", "\0\0", "7", "07", "7\0", "a" * 13, "a" * 14, "a" * 14 + "\0", "a" * 15, "a" * 30, "a" * 31]
    assert len(np.unique(respondents(MEMO_KEY, ids).macs(tag("q")), axis=0)) == len(ids)


def test_another_round_question_or_key_gives_other_words() -> None:
    """Words repeat for the same (key, tag, id) alone; tags keep the borders of their parts."""
    tags = [tag("s", "1", "q"), tag("s", "2", "q"), tag("s", "1", "r"), tag("s1", "q"), tag("s", "1q")]
    assert len(set(tags)) == len(tags)
    words = [respondents(key, ["x"]).macs(t)[0, 0] for key in (MEMO_KEY, SecretKey(bytes(32))) for t in tags]
    assert len(set(words)) == len(words)


def test_an_endless_id_is_refused_without_being_shown() -> None:
    """Ids have a limit, and the message does not quote them."""
    with pytest.raises(InvalidInput, match=str(MAX_ID_BYTES)) as caught:
        respondents(MEMO_KEY, ["secret" * 1000])
    assert "secretsecret" not in str(caught.value)


@pytest.mark.parametrize("first", range(8))
def test_the_subkey_is_doubled_in_the_field(first: int) -> None:
    """Under keys with and without a carry of AES(0) the words are the library's CMAC (RFC 4493, section 2.3)."""
    key, question = SecretKey(bytes([first]) * 32), tag("survey", "1", "income")
    mac = CMAC(algorithms.AES(key.derive(b"ldpopt memo")))
    mac.update(b"x" + bytes(13) + (1).to_bytes(2, "little") + question)
    assert respondents(key, ["x"]).macs(question)[0].tobytes() == mac.finalize()


def test_some_respondents_have_the_words_that_they_had() -> None:
    """Taking places gives the words of those ids alone, in that order, and leaves the others as they were."""
    key, ids = SecretKey(bytes(range(32))), pa.array([f"r{i}" for i in range(50)], pa.string())
    every, mark = Respondents(key, ids), tag("a")
    before = every.macs(mark).copy()
    for places in ([], [7], [3, 1, 3], list(range(0, 50, 2))):
        some = every.take(np.array(places, dtype=np.intp))
        assert len(some) == len(places)
        assert np.array_equal(some.macs(mark), before[places])
    assert np.array_equal(every.macs(mark), before)
