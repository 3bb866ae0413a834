"""One process at a time holds a lock, and the file goes with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ldpopt.errors import InvalidInput
from ldpopt.files import held


def test_a_lock_is_held_by_one(tmp_path: Path) -> None:
    """While it is held, another attempt is refused in words; afterwards the file is gone and the next one holds it."""
    path = tmp_path / "lock"
    for _ in range(2):
        with held(path, "folder", "one that nobody works in"):
            assert path.stat().st_size == 0
            assert path.stat().st_mode & 0o077 == 0
            with (
                pytest.raises(InvalidInput, match="one that nobody works in, got one in use"),
                held(path, "folder", "one that nobody works in"),
            ):
                pass
            assert path.exists()
        assert not path.exists()


def test_an_error_releases_it(tmp_path: Path) -> None:
    """Whatever ends the block, the lock is free."""
    for _ in range(2):
        with pytest.raises(KeyError), held(tmp_path / "lock", "folder", "a free one"):
            raise KeyError


def test_a_file_that_was_left_is_no_lock(tmp_path: Path) -> None:
    """What a killed process left does not keep others out."""
    (tmp_path / "lock").write_bytes(b"")
    with held(tmp_path / "lock", "folder", "a free one"):
        pass


def test_a_place_that_takes_no_files() -> None:
    """Where no file can be made, that is said, not that another holds it."""
    place = Path("/proc/lock") if Path("/proc").is_dir() else Path("/dev/lock")
    with pytest.raises((InvalidInput, OSError)) as caught, held(place, "folder", "a free one"):
        pass
    assert "in use" not in str(caught.value)


COUNT = """
import os, sys
from pathlib import Path
from ldpopt.errors import InvalidInput
from ldpopt.files import held
folder, done = Path(sys.argv[1]), 0
while done < 100:
    try:
        with held(folder / "lock", "folder", "a free one"):
            path = folder / "number"
            path.write_text(str(int(path.read_text()) + 1))
            done += 1
    except InvalidInput:
        os.sched_yield()
"""


@pytest.mark.skipif(not hasattr(os, "sched_yield"), reason="needs a system that lets a process give way")
def test_nobody_holds_a_file_that_was_removed(tmp_path: Path) -> None:
    """Processes that take the lock in turn, each removing the file, are never in the block together."""
    (tmp_path / "number").write_text("0")
    workers = [subprocess.Popen([sys.executable, "-c", COUNT, str(tmp_path)]) for _ in range(3)]
    assert [worker.wait(120) for worker in workers] == [0, 0, 0]
    assert (tmp_path / "number").read_text() == "300"
