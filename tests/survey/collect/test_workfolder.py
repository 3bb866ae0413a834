"""What lies in a work folder counts only as far as it is what the run itself wrote there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldpopt.errors import InvalidInput
from ldpopt_survey.collect.coding import Tally
from ldpopt_survey.collect.workfolder import WorkFolder, remove, remove_left_aside, tally_of

STATE: dict[str, Any] = {"kind": "csv", "partitions": [{"first_row": 1, "pieces": [["a.csv", 2, 9, 3]]}] * 2}


@pytest.fixture
def folder(tmp_path: Path) -> WorkFolder:
    """A work folder of two partitions, each with a part and its record."""
    made = WorkFolder(tmp_path, STATE, "0" * 64)
    for name in ("parts", "records", "identities"):
        (tmp_path / name).mkdir()
    for index in range(2):
        made.part(index).write_bytes(b"reports")
        made.write_sealed(made.marks(index), b"{}")
        made.record(index, Tally(3, 0, {"q": 1}, {}))
    return made


def test_a_finished_part_is_one_with_its_record(folder: WorkFolder) -> None:
    """A part without a record, a record without a part, and a part of other bytes are all still to do."""
    assert folder.pending_parts() == []
    assert [tally.rows for tally in folder.tallies()] == [3, 3]
    folder.part(0).write_bytes(b"reportz")
    assert folder.pending_parts() == [0]
    folder.part(0).unlink()
    (folder.path / "records" / "000001.json").unlink()
    assert folder.pending_parts() == [0, 1]


def test_a_record_belongs_to_one_partition_of_one_run(folder: WorkFolder) -> None:
    """The record of another partition or run does not make a part finished, though its bytes are the same."""
    first, second = (folder.path / "records" / f"{index:06d}.json" for index in range(2))
    assert first.read_bytes() != second.read_bytes()
    second.write_bytes(first.read_bytes())
    assert folder.pending_parts() == [1]
    assert WorkFolder(folder.path, STATE, "1" * 64).pending_parts() == [0, 1]


def test_marks_belong_to_the_part(folder: WorkFolder) -> None:
    """A partition whose marks are missing, changed, or another one's is done again."""
    first, second = folder.marks(0), folder.marks(1)
    second.write_bytes(first.read_bytes())
    assert folder.pending_parts() == [1]
    first.unlink()
    assert folder.pending_parts() == [0, 1]


@pytest.mark.parametrize("junk", [b"", b"[]", b"7", b"{}", b"\xff", b'{"sha256": 1, "tally": []}', b"[" * 9999])
def test_junk_for_a_record(folder: WorkFolder, junk: bytes) -> None:
    """A record that cannot be read is none."""
    (folder.path / "records" / "000001.json").write_bytes(junk)
    assert folder.pending_parts() == [1]


@pytest.mark.parametrize(
    "change",
    [
        {"rows": -1},
        {"rows": True},
        {"rows": 1.0},
        {"unknown": {"q": "1"}},
        {"rounds": [1, -1]},
        {"gone": "2"},
        {"missing": []},
        {"more": 1},
        {"row_set": "x"},
    ],
)
def test_tallies_are_counts(change: dict[str, Any]) -> None:
    """A tally that was read is made of counts alone."""
    tally = {"rows": 1, "duplicates": 0, "unknown": {"q": 1}, "missing": {}, "row_set": "7" * 32, "other_rounds": 0}
    tally |= {"left_out": 0, "rounds": [3, 1], "gone": 2}
    assert tally_of(tally) == Tally(1, 0, {"q": 1}, {}, "7" * 32, rounds=(3, 1), gone=2)
    with pytest.raises(InvalidInput, match="tally"):
        tally_of(tally | change)


def test_sealed_files_are_those_of_this_run_and_place(folder: WorkFolder) -> None:
    """What was cut, changed, moved to another name or made by another run is not read."""
    path = folder.spill(0)
    folder.write_sealed(path, b"pseudonyms")
    assert folder.read_sealed(path) == b"pseudonyms"
    assert WorkFolder(folder.path, STATE, "1" * 64).read_sealed(path) is None
    path.rename(folder.spill(1))
    assert folder.read_sealed(folder.spill(1)) is None
    assert folder.read_sealed(path) is None
    for spoiled in (b"", b"pseudonym", b"x" * 100):
        path.write_bytes(spoiled)
        assert folder.read_sealed(path) is None


def test_rows_to_leave_out(folder: WorkFolder) -> None:
    """They are read as they were written, or not at all."""
    assert folder.rows("dropped.rows") is None
    path = folder.path / "dropped.rows"
    folder.write_sealed(path, np.array([3, 2**40], "<i8").tobytes())
    assert folder.rows("dropped.rows").tolist() == [3, 2**40]  # type: ignore[union-attr]
    path.write_bytes(path.read_bytes()[8:])
    assert folder.rows("dropped.rows") is None


def test_removing_an_absent_folder_does_nothing(tmp_path: Path) -> None:
    """Removing an absent folder is not an error, and only a run's own leftovers are removed."""
    remove(tmp_path / "work")
    for name in ("work.aside-0123456789abcdef", "work.aside-0123456789abcdeX", "workXaside-0123456789abcdef"):
        (tmp_path / name).mkdir()
    remove_left_aside(tmp_path / "work")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "work.aside-0123456789abcdeX",
        "workXaside-0123456789abcdef",
    ]
