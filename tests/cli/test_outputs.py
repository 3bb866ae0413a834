"""Several files are written all or none."""

import pytest

from ldpopt.cli import outputs
from ldpopt.errors import InvalidInput


def test_a_failure_takes_back_what_was_new(tmp_path, monkeypatch):
    """When a later file cannot be written the earlier new ones are gone again."""
    written = []

    def fails_at_the_second(path, data, force):
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


def test_a_free_folder(tmp_path, monkeypatch):
    """The first name that is free is taken, counting from 2."""
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
