"""Fingerprints of row sets are sums modulo 2**128, and depend on key, plan and respondents alone.

Manifests are read as they were written, and nothing else is one.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.ciphers import algorithms
from cryptography.hazmat.primitives.cmac import CMAC
from fuzzing import mutate

from ldpopt.errors import InvalidInput
from ldpopt_survey.collect.manifest import (
    FOLDER,
    NO_ROWS,
    Manifest,
    add_fingerprints,
    fingerprint_rows,
    folder_content,
    folder_manifest,
    is_hex,
    manifest_in_schema,
    row_set,
    with_manifest,
)
from ldpopt_survey.collect.randomness import WordSource
from ldpopt_survey.collect.words import SecretKey, tag
from ldpopt_survey.plan.plan import Plan, make_plan
from ldpopt_survey.plan.spec import QuestionSpec, SurveySpec

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
        assert fingerprint_rows(numbers) == f"{want:032x}"
    assert fingerprint_rows(np.empty((0, 2), np.uint64)) == NO_ROWS


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
    assert whole == fingerprint(ids[::-1]) == add_fingerprints([fingerprint(ids[:30]), fingerprint(ids[30:])])
    assert (
        len({whole, fingerprint(ids[1:]), fingerprint(ids, made=plan(2)), fingerprint(ids, SecretKey(bytes(32)))}) == 4
    )


def test_rows_without_respondents_have_the_fingerprint_of_their_partition_and_run() -> None:
    """Under one key every partition has its own, and another run's are others."""
    sources = [WordSource(plan(), "fresh", key) for key in (KEY, SecretKey(bytes(32)))]
    assert len({source.row_set(None, index) for source in sources for index in range(50)}) == 100


@pytest.mark.parametrize("value", ["", "0" * 31, "0" * 33, "G" * 32, "A" * 32, 5, None])
def test_malformed_fingerprints_are_refused(value: object) -> None:
    """Anything but 32 lower-case hexadecimal digits is refused."""
    assert not is_hex(value)
    with pytest.raises(InvalidInput, match="32 hexadecimal digits"):
        row_set(value, "counts")


PLAN = make_plan(SurveySpec("demo", (QuestionSpec("q", (0, 1)),), round=3), {"q": [[0.75, 0.25], [0.25, 0.75]]})
PARTS = ["0" * 31 + "1", "f" * 32, "7" * 32]


def manifest(**changes: Any) -> Manifest:
    return Manifest.from_plan(PLAN, **{"mode": "fresh", "rows": 9, "parts": PARTS, "sha256": "a" * 64, **changes})


def test_manifests_are_read_as_they_were_written() -> None:
    """As text, in the schema of a table, with and without a checksum, simulated or not."""
    for one in (manifest(), manifest(mode="simulated"), manifest(sha256=""), manifest(rows=0, parts=[])):
        assert Manifest.from_json(one.to_json(), "x") == one
        table = with_manifest(pa.table({"q": ["0"]}), one)
        assert manifest_in_schema(table.schema, "x") == one
    assert manifest(mode="simulated").simulation
    assert not manifest(mode="memoised").simulation
    assert manifest_in_schema(pa.table({"q": ["0"]}).schema, "x") is None
    assert manifest().fingerprint == "7" * 32


@pytest.mark.parametrize("block", range(2))
def test_mutated_manifests_are_refused_or_equivalent(block: int) -> None:
    """Of 2,000 mutations nothing but `InvalidInput` comes out, and what is still read is a manifest."""
    text = manifest().to_json().encode()
    refused = 0
    for seed in range(block * 1000, block * 1000 + 1000):
        try:
            found = Manifest.from_json(mutate(random.Random(seed), text), "x")
        except InvalidInput:
            refused += 1
        else:
            assert Manifest.from_json(found.to_json(), "x") == found
    assert refused > 500


def written(folder: Path, whole: Manifest, files: dict[str, Manifest]) -> Path:
    (folder / FOLDER).write_text(folder_content(whole, files), encoding="utf-8")
    return folder


def test_the_list_of_a_folder_adds_up(tmp_path: Path) -> None:
    """Rows and fingerprints of the files are those of the whole, all of one plan, each with its checksum."""
    files = {f"{i}.csv": manifest(rows=3, parts=[part]) for i, part in enumerate(PARTS)}
    whole = manifest(sha256="")
    assert folder_manifest(written(tmp_path, whole, files)) == {**files, FOLDER: whole}
    for changes in ({"rows": 8}, {"parts": PARTS[:2]}, {"mode": "simulated"}):
        with pytest.raises(InvalidInput, match="add up"):
            folder_manifest(written(tmp_path, manifest(sha256="", **changes), files))
    for one in (manifest(rows=4, parts=PARTS[:1]), manifest(rows=3, parts=PARTS[:1], sha256=""), manifest(rows=3)):
        with pytest.raises(InvalidInput, match="add up"):
            folder_manifest(written(tmp_path, whole, {**files, "0.csv": one}))
    assert folder_manifest(tmp_path / "none") is None
    for junk in ("", "[]", "{}", json.dumps({"files": []}), json.dumps({"files": {"a": 1}})):
        (tmp_path / FOLDER).write_text(junk)
        with pytest.raises(InvalidInput):
            folder_manifest(tmp_path)


def test_a_manifest_names_its_plan() -> None:
    """The plan, its name, round and questions must all be those of the plan that is asked for."""
    manifest().require(PLAN, "x")
    other = make_plan(SurveySpec("demo", (QuestionSpec("q", (0, 1)),)), {"q": [[0.75, 0.25], [0.25, 0.75]]})
    with pytest.raises(InvalidInput, match=r"another plan, for 'demo', round 3 at x"):
        manifest().require(other, "x")
    for name, value in (("survey", "x"), ("round", 2), ("questions", ["a"]), ("plan", "0" * 64)):
        data = {**manifest().to_dict(), name: value}
        with pytest.raises(InvalidInput, match="another plan"):
            Manifest.from_dict(data, "x").require(PLAN, "x")
