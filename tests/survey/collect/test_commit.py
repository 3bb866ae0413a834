"""Files of reports: as they were made, with their manifests, and joined without a row more or less.

Reports appear under a name that nothing else has, and are found again by the call that made them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ldpopt.errors import InvalidInput
from ldpopt.files import strict
from ldpopt.files.atomic import digest
from ldpopt_survey.collect import commit
from ldpopt_survey.collect.aggregate import aggregate
from ldpopt_survey.collect.coding import Tally
from ldpopt_survey.collect.commit import join, write_manifest, write_reports
from ldpopt_survey.collect.manifest import Manifest, folder_manifest, manifest_in_schema, with_manifest
from ldpopt_survey.collect.privatize import privatize
from ldpopt_survey.collect.randomness import Memoized
from ldpopt_survey.collect.words import create_key
from ldpopt_survey.plan.plan import Plan, make_plan
from ldpopt_survey.plan.spec import QuestionSpec, SurveySpec

PLAN = make_plan(SurveySpec("s", (QuestionSpec("q", ("no", "yes")),)), {"q": [[0.75, 0.25], [0.25, 0.75]]})


def part(rows: list[str], mark: str) -> pa.Table:
    """A partition's reports, with a dictionary, a string view and a plain column."""
    labels = pa.array(rows).dictionary_encode()
    table = pa.table({"q": labels, "place": pa.array(rows).cast(pa.string_view()), "n": list(range(len(rows)))})
    return with_manifest(table, Manifest.from_plan(PLAN, "fresh", len(rows), [mark * 32]))


PARTS = [part(["0", "1"], "1"), part(["1"], "2"), part(["0", "0", "1"], "3")]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_parts_are_joined_whole(tmp_path: Path, ending: str) -> None:
    """The joined file has every row once, one header, and in Parquet the manifest of all."""
    paths = [tmp_path / f"{number}.{ending}" for number in range(3)]
    for path, table in zip(paths, PARTS, strict=True):
        write_reports(path, table)
    made = Manifest.from_plan(PLAN, "fresh", 6, ["1" * 32, "2" * 32, "3" * 32])
    join(paths, tmp_path / f"all.{ending}", made)
    if ending == "csv":
        lines = (tmp_path / "all.csv").read_text().splitlines()
        assert lines[0] == '"q","place","n"'
        assert len(lines) == 7
        assert lines[1:] == ['"0","0",0', '"1","1",1', '"1","1",0', '"0","0",0', '"0","0",1', '"1","1",2']
    else:
        found = pq.read_table(tmp_path / "all.parquet")
        assert found.column("q").to_pylist() == ["0", "1", "1", "0", "0", "1"]
        assert found.column("n").to_pylist() == [0, 1, 0, 0, 1, 2]
        assert manifest_in_schema(found.schema, "here") == made
        pq.read_table(tmp_path / "all.parquet", page_checksum_verification=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*(p.name for p in paths), f"all.{ending}"])


def test_the_list_of_a_folder_has_every_part(tmp_path: Path) -> None:
    """Rows, fingerprints and checksums of the files, which add up to the whole."""
    paths = [tmp_path / f"{number}.csv" for number in range(2)]
    tallies = [Tally(rows=2, row_set="1" * 32), Tally(rows=1, row_set="2" * 32)]
    for path, table in zip(paths, PARTS[:2], strict=True):
        write_reports(path, table)
    write_manifest(tmp_path, PLAN, "simulated", paths, tallies)
    found = folder_manifest(tmp_path)
    assert found is not None
    assert found["_manifest.json"].rows == 3
    assert {name: (one.rows, one.parts, one.sha256) for name, one in found.items() if name != "_manifest.json"} == {
        "0.csv": (2, ("1" * 32,), digest(paths[0])),
        "1.csv": (1, ("2" * 32,), digest(paths[1])),
    }


FILES, ROWS = 4, 6


class Stop(Exception):
    """What ends a run in these tests."""


SPEC = SurveySpec("s", (QuestionSpec("q", (0, 1, 2)),), respondent="id")
MATRIX = (np.ones((3, 3)) + np.eye(3)) / 4


class Run:
    """A call of `privatize` on four small files, in a folder that holds them and a key."""

    plan: Plan = make_plan(SPEC, {"q": MATRIX})

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, name: str, progress: Callable[[int, int], None] | None = None, **other: Any) -> Tally:
        plan, key = other.get("plan", self.plan), other.get("key", self.folder / "key")
        return privatize(plan, self.folder / "raw", self.folder / name, Memoized(key), progress=progress)

    def until(self, name: str, parts: int) -> Path:
        """Stop after so many parts; the work folder that is left."""

        def stop(done: int, _: int) -> None:
            if done == parts:
                raise Stop

        with pytest.raises(Stop):
            self(name, stop)
        return self.folder / f".{name}.partial"

    def contents(self, name: str) -> dict[str, bytes]:
        path = self.folder / name
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        return {file.name if path.is_dir() else "": file.read_bytes() for file in files}


FORMS = ["out", "out.csv", "out.parquet"]


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the answers and a key."""
    folder = tmp_path_factory.mktemp("given")
    (folder / "raw").mkdir()
    for file in range(FILES):
        raw = {"id": [f"{file}-{i}" for i in range(ROWS)], "q": np.arange(ROWS) % 3}
        pd.DataFrame(raw).to_csv(folder / "raw" / f"{file}.csv", index=False)
    create_key(folder / "key")
    return folder


@pytest.fixture
def run(tmp_path: Path, given: Path) -> Run:
    """The call."""
    shutil.copytree(given, tmp_path, dirs_exist_ok=True)
    return Run(tmp_path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, given: Path) -> dict[str, dict[str, bytes]]:
    """What a run in each form ends with that nothing interrupts."""
    folder = tmp_path_factory.mktemp("whole")
    shutil.copytree(given, folder, dirs_exist_ok=True)
    run = Run(folder)
    return {name: run.contents(name) for name in FORMS if run(name)}


@pytest.fixture(scope="module")
def tally(tmp_path_factory: pytest.TempPathFactory, given: Path) -> Tally:
    """What such a run returns."""
    folder = tmp_path_factory.mktemp("tally")
    shutil.copytree(given, folder, dirs_exist_ok=True)
    return Run(folder)("out")


def beside(name: str) -> list[str]:
    """The manifest of a CSV file."""
    return [f"{name}.manifest.json"] if name.endswith(".csv") else []


@pytest.mark.parametrize(
    ("name", "damage"),
    [("out", "cut"), ("out", "gone"), ("out.csv", "emptied"), ("out.csv", "swapped"), ("out.parquet", "swapped")],
)
def test_a_damaged_part_is_made_again(run: Run, whole: dict[str, dict[str, bytes]], name: str, damage: str) -> None:
    """A finished part that was cut at a line end, emptied, replaced by another or lost does not reach the reports."""
    work = run.until(name, 3)
    first, second = sorted((work / "parts").iterdir())[:2]
    if damage == "cut":
        first.write_bytes(b"".join(first.read_bytes().splitlines(True)[:-2]))
    elif damage == "emptied":
        first.write_bytes(b"")
    elif damage == "swapped":
        shutil.copy(second, first)
    else:
        first.unlink()
    assert run(name).rows == FILES * ROWS
    assert run.contents(name) == whole[name]


@pytest.mark.parametrize("name", FORMS)
def test_a_part_that_is_damaged_before_it_is_joined(run: Run, whole: dict[str, dict[str, bytes]], name: str) -> None:
    """Parts are compared with their checksums when all are done too: then the run ends with an error, and goes on."""

    def spoil(done: int, total: int) -> None:
        if done == total:
            path = sorted((run.folder / f".{name}.partial" / "parts").iterdir())[0]
            path.write_bytes(path.read_bytes()[:-4])

    with pytest.raises(RuntimeError, match="1 of 4 parts are not as they were written"):
        run(name, spoil)
    assert not (run.folder / name).exists()
    run(name)
    assert run.contents(name) == whole[name]


def test_the_plan_in_the_work_folder_is_not_used(run: Run, whole: dict[str, dict[str, bytes]]) -> None:
    """A plan that was put into the work folder, checksum and all, is replaced by that of the caller."""
    work = run.until("out", 1)
    (work / "plan.json").write_text(make_plan(SPEC, {"q": np.eye(3)}).to_json())  # would tell every answer
    run("out")
    assert run.contents("out") == whole["out"]


def test_a_state_that_is_another_is_refused(run: Run, whole: dict[str, dict[str, bytes]]) -> None:
    """What the state says of answers, partitions, plan and key is compared with the caller's; junk, or nothing, is bad
    input in one line. It stays, nothing is used, and with its own state the run goes on.
    """
    path = run.until("out", 2) / "state.json"
    parts, own = sorted(path.with_name("parts").iterdir()), path.read_bytes()
    state = strict.json_value(own)
    changed = [state | {name: state[name][:-1]} for name in ("partitions", "mode", "files", "key", "kind", "plan")]
    others = [strict.json_text(one).encode() for one in (*changed, state | {"run": 7})]
    for other in (*others, b"", b"[]", b"null", b'"state"', b"{", b"\xff", b'{"run": "a"}', None):
        path.unlink() if other is None else path.write_bytes(other)
        with pytest.raises(InvalidInput, match=r"out\.partial"):
            run("out")
        assert (path.read_bytes() if path.exists() else None) == other
        assert sorted(path.with_name("parts").iterdir()) == parts
    path.write_bytes(own)
    run("out")
    assert run.contents("out") == whole["out"]


@pytest.mark.parametrize("name", FORMS)
def test_a_foreign_file_in_the_way(run: Run, whole: dict[str, dict[str, bytes]], name: str) -> None:
    """A file that came to lie at the output path after a kill is refused, and the work goes on when it is gone."""
    work = run.until(name, 2)
    (run.folder / name).write_text("of somebody else")
    with pytest.raises(InvalidInput, match="not taken"):
        run(name)
    assert (run.folder / name).read_text() == "of somebody else"
    assert len(list((work / "parts").iterdir())) == 2
    (run.folder / name).unlink()
    run(name)
    assert run.contents(name) == whole[name]


@pytest.mark.parametrize(
    ("name", "foreign"),
    [("out", "file"), ("out", "folder"), ("out", "link"), ("out.csv", "file"), ("out.parquet", "folder")],
)
def test_an_output_that_appears_in_mid_run(run: Run, name: str, foreign: str) -> None:
    """Nothing that appears at the output path while a run works is overwritten; the work is kept."""
    path = run.folder / name

    def appear(done: int, total: int) -> None:
        if done == total and foreign == "file":
            path.write_text("of somebody else")
        elif done == total and foreign == "folder":
            path.mkdir()
        elif done == total:
            path.symlink_to("nowhere")

    with pytest.raises(InvalidInput, match="not taken"):
        run(name, appear)
    assert path.read_text() == "of somebody else" if foreign == "file" else os.path.lexists(path)
    assert len(list((run.folder / f".{name}.partial" / "parts").iterdir())) >= FILES
    path.rmdir() if foreign == "folder" else path.unlink()
    assert run(name).rows == FILES * ROWS
    assert sorted(os.listdir(run.folder)) == sorted(["key", name, "raw", *beside(name)])


@pytest.mark.parametrize("name", FORMS)
def test_a_name_that_is_taken_at_the_last_moment(run: Run, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the last look and the naming another process may take the name: it keeps it."""
    real = commit.create_private

    def late(path: Path, data: bytes, force: bool) -> None:
        real(path, data, force)
        (run.folder / name).write_text("of somebody else")

    with monkeypatch.context() as patch:
        patch.setattr(commit, "create_private", late)
        with pytest.raises(InvalidInput, match="not taken"):
            run(name)
    assert (run.folder / name).read_text() == "of somebody else"
    with pytest.raises(InvalidInput, match="not taken"):  # the note does not make it the run's own
        run(name)


@pytest.mark.parametrize("name", FORMS)
def test_a_run_that_ended_unseen_gives_its_tally_again(
    run: Run, tally: Tally, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after the reports appeared, a run gives its tally to the same call alone."""

    def killed(_: Path) -> None:
        raise Stop

    with monkeypatch.context() as patch:
        patch.setattr("ldpopt_survey.collect.privatize.remove", killed)
        with pytest.raises(Stop):
            run(name)
    before = run.contents(name)
    with pytest.raises(InvalidInput, match="not taken"):
        run(name, plan=make_plan(replace(SPEC, round=2), {"q": MATRIX}))
    assert run(name) == tally
    assert run.contents(name) == before
    assert sorted(os.listdir(run.folder)) == sorted(["key", name, "raw", *beside(name)])
    with pytest.raises(InvalidInput, match="not taken"):  # it has ended, and was seen to
        run(name)


def test_names_with_glob_characters(run: Run) -> None:
    """A run whose name is a pattern removes what it left itself, and nothing that the pattern would match."""
    others = [".reports1.partial.aside-" + "0" * 16, ".reports[1].partial.aside-mine", ".reports[1].partial.aside-*"]
    own = ".reports[1].partial.aside-" + "a" * 16
    for name in (*others, own):
        (run.folder / name).mkdir()
    run("reports[1]")
    assert sorted(os.listdir(run.folder)) == sorted(["key", "raw", "reports[1]", *others])


def test_rows_are_counted_again(run: Run) -> None:
    """A folder whose manifest says another number of rows than there are is refused by `aggregate`."""
    run("out")
    assert aggregate(run.plan, run.folder / "out").rows == FILES * ROWS
    manifest = strict.json_value((run.folder / "out" / "_manifest.json").read_bytes())
    for rows in (FILES * ROWS + 1, FILES * ROWS - 1, "24", None, True):
        (run.folder / "out" / "_manifest.json").write_text(strict.json_text(manifest | {"rows": rows}))
        with pytest.raises(InvalidInput, match=r"do not add up to the folder's manifest|rows: expected a whole number"):
            aggregate(run.plan, run.folder / "out")


def test_a_part_that_is_cut_at_a_line_end_is_not_counted(run: Run) -> None:
    """Rows that a delivery lost are noticed though every line that is left is whole."""
    run("out")
    part = run.folder / "out" / "part-000002.csv"
    part.write_bytes(b"".join(part.read_bytes().splitlines(True)[:-1]))
    with pytest.raises(InvalidInput, match="do not match the checksum in their manifest"):
        aggregate(run.plan, run.folder / "out")


@pytest.mark.parametrize("name", FORMS)
def test_a_run_leaves_no_file_next_to_an_output_created_meanwhile(run: Run, name: str) -> None:
    """The run ends before it writes a manifest or a note next to a file of another program."""

    def appear(done: int, total: int) -> None:
        if done == total:
            (run.folder / name).write_text("of somebody else")

    with pytest.raises(InvalidInput, match="not taken"):
        run(name, appear)
    beside_it = [path.name for path in run.folder.iterdir() if name in path.name]
    assert sorted(beside_it) == sorted([name, f".{name}.partial"])
    assert (run.folder / name).read_text() == "of somebody else"
