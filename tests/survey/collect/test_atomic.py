"""A file is complete or absent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ldpopt.survey.collect import atomic


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    """When writing fails, the path keeps its old content and no other file stays."""
    atomic.write_text(tmp_path / "f", "old")

    def fail() -> None:
        with atomic.aside(tmp_path / "f") as written:
            written.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert (tmp_path / "f").read_text() == "old"
    assert os.listdir(tmp_path) == ["f"]


def test_success_replaces_at_once(tmp_path: Path) -> None:
    """The path is untouched until the end of the block."""
    atomic.write_text(tmp_path / "f", "old")
    with atomic.aside(tmp_path / "f") as written:
        written.write_text("new")
        assert (tmp_path / "f").read_text() == "old"
        assert written.name.startswith(atomic.ASIDE)
    assert (tmp_path / "f").read_text() == "new"


def test_private_files_are_new(tmp_path: Path) -> None:
    """A private file replaces nothing and leaves nothing aside."""
    atomic.create_private(tmp_path / "f", b"one")
    with pytest.raises(FileExistsError):
        atomic.create_private(tmp_path / "f", b"two")
    assert (tmp_path / "f").read_bytes() == b"one"
    assert os.listdir(tmp_path) == ["f"]
