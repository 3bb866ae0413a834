"""Memoised words are AES-CMAC, and repeat exactly when they must."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.ciphers import algorithms
from cryptography.hazmat.primitives.cmac import CMAC
from hypothesis import given, settings
from hypothesis import strategies as st

from ldpopt.errors import InvalidInput
from ldpopt.survey.collect.randomness.keystream import CHUNK
from ldpopt.survey.collect.randomness.memo import LONGEST, Respondents, respondents, tag
from ldpopt.survey.collect.randomness.secret import SecretKey

KEY = SecretKey(bytes(range(32)))


def one(identity: str, question: bytes) -> bytes:
    content = identity.encode()
    message = content + bytes((-len(content) - 2) % 16) + len(content).to_bytes(2, "little") + question
    mac = CMAC(algorithms.AES(KEY.derive(b"ldpopt memo")))
    mac.update(message)
    return mac.finalize()


@given(st.lists(st.text(max_size=70), min_size=1, max_size=30))
@settings(max_examples=100, deadline=None)
def test_words_are_cmac(ids: list[str]) -> None:
    """All ids at once give what the library's CMAC gives for each (RFC 4493)."""
    question = tag("survey", "1", "income")
    macs = respondents(KEY, ids).macs(question)
    assert [row.astype("<u8").tobytes() for row in macs] == [one(identity, question) for identity in ids]
    words = np.empty(len(ids), np.uint64)
    respondents(KEY, ids).words(question).fill(words)
    assert np.array_equal(words, macs[:, 0])


def test_slices_and_types_of_ids_do_not_matter() -> None:
    """Sliced arrays, both string types and more than one chunk give the same words."""
    ids = [f"person-{i}" for i in range(CHUNK + 100)]
    whole = Respondents(KEY, pa.array(ids)).macs(tag("q"))
    large = Respondents(KEY, pa.array(ids, pa.large_string()).slice(17, CHUNK)).macs(tag("q"))
    assert np.array_equal(whole[17 : 17 + CHUNK], large)
    assert len(Respondents(KEY, pa.array([], pa.string()))) == 0


def test_ids_that_look_alike_differ() -> None:
    """Padding hides no difference: trailing zero bytes, leading zeros and the empty id are all told apart."""
    ids = ["", "\0", "\0\0", "7", "07", "7\0", "a" * 13, "a" * 14, "a" * 14 + "\0", "a" * 15, "a" * 30, "a" * 31]
    assert len(np.unique(respondents(KEY, ids).macs(tag("q")), axis=0)) == len(ids)


def test_another_round_question_or_key_gives_other_words() -> None:
    """Words repeat for the same (key, tag, id) alone; tags keep the borders of their parts."""
    tags = [tag("s", "1", "q"), tag("s", "2", "q"), tag("s", "1", "r"), tag("s1", "q"), tag("s", "1q")]
    assert len(set(tags)) == len(tags)
    words = [respondents(key, ["x"]).macs(t)[0, 0] for key in (KEY, SecretKey(bytes(32))) for t in tags]
    assert len(set(words)) == len(words)


def test_an_endless_id_is_refused_without_being_shown() -> None:
    """Ids have a limit, and the message does not quote them."""
    with pytest.raises(InvalidInput, match=str(LONGEST)) as caught:
        respondents(KEY, ["secret" * 1000])
    assert "secretsecret" not in str(caught.value)


@pytest.mark.parametrize("first", range(8))
def test_the_subkey_is_doubled_in_the_field(first: int) -> None:
    """Under keys with and without a carry of AES(0) the words are the library's CMAC (RFC 4493, section 2.3)."""
    key, question = SecretKey(bytes([first]) * 32), tag("survey", "1", "income")
    mac = CMAC(algorithms.AES(key.derive(b"ldpopt memo")))
    mac.update(b"x" + bytes(13) + (1).to_bytes(2, "little") + question)
    assert respondents(key, ["x"]).macs(question)[0].tobytes() == mac.finalize()
