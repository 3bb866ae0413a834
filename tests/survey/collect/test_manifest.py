"""Manifests are read as they were written, and nothing else is one."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from fuzzing import mutate

from ldpopt.errors import InvalidInput
from ldpopt.survey.collect.manifest import FOLDER, Manifest, folder_content, folder_manifest, in_table, with_manifest
from ldpopt.survey.plan.plan import make_plan
from ldpopt.survey.plan.spec import QuestionSpec, SurveySpec

PLAN = make_plan(SurveySpec("demo", (QuestionSpec("q", (0, 1)),), round=3), {"q": [[0.75, 0.25], [0.25, 0.75]]})
PARTS = ["0" * 31 + "1", "f" * 32, "7" * 32]


def manifest(**changes: Any) -> Manifest:
    return Manifest.of(PLAN, **{"mode": "fresh", "rows": 9, "parts": PARTS, "sha256": "a" * 64, **changes})


def test_manifests_are_read_as_they_were_written() -> None:
    """As text, in the schema of a table, with and without a checksum, simulated or not."""
    for one in (manifest(), manifest(mode="simulated"), manifest(sha256=""), manifest(rows=0, parts=[])):
        assert Manifest.from_json(one.to_json(), "x") == one
        table = with_manifest(pa.table({"q": ["0"]}), one)
        assert in_table(table.schema, "x") == one
    assert manifest(mode="simulated").simulation
    assert not manifest(mode="memoised").simulation
    assert in_table(pa.table({"q": ["0"]}).schema, "x") is None
    assert manifest().fingerprint == "7" * 32


@pytest.mark.parametrize("block", range(2))
def test_mutated_manifests_are_refused_or_say_the_same(block: int) -> None:
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
    assert folder_manifest(written(tmp_path, whole, files)) == files
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
