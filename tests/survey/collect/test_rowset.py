"""Fingerprints of row sets are sums modulo 2**128, and depend on key, plan and respondents alone."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.ciphers import algorithms
from cryptography.hazmat.primitives.cmac import CMAC

from ldpopt.errors import InvalidInput
from ldpopt.survey.collect.randomness.memo import tag
from ldpopt.survey.collect.randomness.randomness import WordSource
from ldpopt.survey.collect.randomness.secret import SecretKey
from ldpopt.survey.collect.rowset import NO_ROWS, is_hex, of_numbers, row_set, total
from ldpopt.survey.plan.plan import Plan, make_plan
from ldpopt.survey.plan.spec import QuestionSpec, SurveySpec

KEY = SecretKey(bytes(range(32)))


def plan(round: int = 1) -> Plan:
    spec = SurveySpec("s", (QuestionSpec("q", (0, 1)),), round=round, respondent="id")
    return make_plan(spec, {"q": [[0.75, 0.25], [0.25, 0.75]]})


def fingerprint(ids: list[str], key: SecretKey = KEY, made: Plan | None = None) -> str:
    source = WordSource(made or plan(), "memoised", key)
    return source.row_set(source.respondents(pa.array(ids, pa.string())), 0)


def test_the_sum_of_numbers_is_that_of_python_integers() -> None:
    """Against Python's integers, at the ends of 64 and 128 bits too."""
    rng = np.random.default_rng(0)
    for n in (0, 1, 2, 1000):
        numbers = rng.integers(0, 2**64, (n, 2), dtype=np.uint64)
        numbers[: n // 2] = 2**64 - 1
        want = sum(int(low) + (int(high) << 64) for low, high in numbers) % (1 << 128)
        assert of_numbers(numbers) == f"{want:032x}"
    assert of_numbers(np.empty((0, 2), np.uint64)) == NO_ROWS


def test_a_respondents_number_is_a_cmac_under_the_key() -> None:
    """The library's CMAC of id and tag, as a little-endian number, is the fingerprint of one respondent."""
    content, question = b"person", tag("row", plan().checksum)
    mac = CMAC(algorithms.AES(KEY.derive(b"ldpopt memo")))
    mac.update(content + bytes((-len(content) - 2) % 16) + len(content).to_bytes(2, "little") + question)
    assert fingerprint(["person"]) == f"{int.from_bytes(mac.finalize(), 'little'):032x}"


def test_fingerprints_add_up_in_any_order_and_grouping() -> None:
    """Neither order nor partition matters; one respondent more, another round or another key does."""
    ids = [f"p{i}" for i in range(100)]
    whole = fingerprint(ids)
    assert whole == fingerprint(ids[::-1]) == total([fingerprint(ids[:30]), fingerprint(ids[30:])])
    assert (
        len({whole, fingerprint(ids[1:]), fingerprint(ids, made=plan(2)), fingerprint(ids, SecretKey(bytes(32)))}) == 4
    )


def test_rows_without_respondents_have_the_fingerprint_of_their_partition_and_run() -> None:
    """Under one key every partition has its own, and another run's are others."""
    sources = [WordSource(plan(), "fresh", key) for key in (KEY, SecretKey(bytes(32)))]
    assert len({source.row_set(None, index) for source in sources for index in range(50)}) == 100


@pytest.mark.parametrize("value", ["", "0" * 31, "0" * 33, "G" * 32, "A" * 32, 5, None])
def test_what_is_no_fingerprint(value: object) -> None:
    """Anything but 32 lower-case hexadecimal digits is refused."""
    assert not is_hex(value)
    with pytest.raises(InvalidInput, match="32 hexadecimal digits"):
        row_set(value, "counts")
