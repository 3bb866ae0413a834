"""Several files are written all or none."""

import json
import os

import pytest

from ldpopt.cli import outputs
from ldpopt.cli.outputs import _system
from ldpopt.errors import InvalidInput


def test_a_failure_removes_the_new_files(tmp_path, monkeypatch):
    """If a later file cannot be written, the earlier new files are removed."""
    written = []

    def fails_at_the_second(path, data, force=False):
        if written:
            raise InvalidInput("disk full")
        path.write_bytes(data)
        written.append(path)

    monkeypatch.setattr(outputs, "write_bytes_atomically", fails_at_the_second)
    with pytest.raises(InvalidInput, match="disk full"):
        outputs.write_all({tmp_path / "a": b"a", tmp_path / "b": b"b"}, force=False)
    assert list(tmp_path.iterdir()) == []
    written.clear()
    with pytest.raises(InvalidInput, match="disk full"):
        outputs.write_folder(tmp_path / "folder", {"a": b"a", "b": b"b"}, force=False)
    assert list(tmp_path.iterdir()) == []


def test_the_first_free_folder_name_is_taken(tmp_path, monkeypatch):
    """The first free name is taken, counting from 2."""
    monkeypatch.chdir(tmp_path)
    for expected in ("demo", "demo-2", "demo-3"):
        folder = outputs.free_folder("demo")
        assert folder.name == expected
        outputs.write_folder(folder, {"a": b"a"}, force=False)
    with pytest.raises(InvalidInput, match="a folder that can be made, got file exists"):
        outputs.write_folder(folder, {"a": b"a"}, force=False)


def test_a_folder_is_no_file(tmp_path):
    """A folder in the place of an output file is refused even with force."""
    with pytest.raises(InvalidInput, match="the path of a file, got a folder"):
        outputs.claim([tmp_path], force=True)


def test_no_text_steers_a_terminal(run, tmp_path):
    """Escape sequences and letters that turn the order around are shown as escapes, in results and in errors."""
    label = "a\x1b[2Jb\u202ec"
    (tmp_path / "pair.json").write_text(json.dumps({"p0": [0.5, 0.5], "p1": [0.2, 0.8], "labels": [label, "d"]}))
    made = run("design", "pair.json", "--epsilon", "1", "--out", "c.json")
    assert made.exit_code == 0
    assert "a\\x1b[2Jb\\u202ec" in made.stdout
    assert run("check", "c.json", "--all").exit_code == 0
    for result in (made, run("check", "c.json", "--all"), run("check", "no\x1b[31msuch.json")):
        assert "\x1b" not in result.stdout + result.stderr
        assert "\u202e" not in result.stdout + result.stderr


def test_a_name_that_is_no_utf_8_can_be_printed(run, tmp_path):
    """A file whose name is not UTF-8 is named in a line, not in a traceback."""
    name = os.fsdecode(b"no-\xff.json")
    result = run("check", name)
    assert result.exit_code == 2
    assert "no-\\udcff.json" in result.stderr
    (tmp_path / name).write_text("[[0.75, 0.25], [0.25, 0.75]]")
    result = run("check", name)
    assert result.exit_code == 0
    assert "no-\\udcff.json" in result.stdout


def test_errors_do_not_name_the_unfinished_file():
    """A system's error about a file that is written aside names the folder."""
    assert _system(OSError(28, "No space left", "folder/.ldpopt-00ff.part")) == "folder: no space left on device"
    assert _system(OSError(28, "No space left", "folder/a.csv")) == "folder/a.csv: no space left on device"
    arrow = "Error writing bytes to file. Detail: [errno 28] No space left on device"
    assert _system(OSError(28, arrow)) == "no space left on device"
