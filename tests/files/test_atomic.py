"""One process at a time holds a lock, and the file goes with it.

Files are read as strict UTF-8 and appear whole or not at all.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ldpopt.errors import InvalidInput
from ldpopt.files import atomic as files
from ldpopt.files.atomic import (
    UNFINISHED,
    aside,
    create_private,
    hold_lock,
    read_text,
    replace_text,
    write_bytes_atomically,
    write_text,
)


def test_a_lock_is_held_by_one(tmp_path: Path) -> None:
    """While it is held, another attempt is refused in words; afterwards the file is gone and the next one holds it."""
    path = tmp_path / "lock"
    for _ in range(2):
        with hold_lock(path, "folder", "one that nobody works in"):
            assert path.stat().st_size == 0
            assert path.stat().st_mode & 0o077 == 0
            with (
                pytest.raises(InvalidInput, match="one that nobody works in, got one in use"),
                hold_lock(path, "folder", "one that nobody works in"),
            ):
                pass
            assert path.exists()
        assert not path.exists()


def test_an_error_releases_the_lock(tmp_path: Path) -> None:
    """The lock is free after any end of the block."""
    for _ in range(2):
        with pytest.raises(KeyError), hold_lock(tmp_path / "lock", "folder", "a free one"):
            raise KeyError


def test_a_file_that_was_left_is_no_lock(tmp_path: Path) -> None:
    """What a killed process left does not keep others out."""
    (tmp_path / "lock").write_bytes(b"")
    with hold_lock(tmp_path / "lock", "folder", "a free one"):
        pass


def test_a_place_that_takes_no_files() -> None:
    """Where no file can be made, that is said, not that another holds it."""
    place = Path("/proc/lock") if Path("/proc").is_dir() else Path("/dev/lock")
    with pytest.raises((InvalidInput, OSError)) as caught, hold_lock(place, "folder", "a free one"):
        pass
    assert "in use" not in str(caught.value)


COUNT = """
import os, sys
from pathlib import Path
from ldpopt.errors import InvalidInput
from ldpopt.files.atomic import hold_lock
folder, done = Path(sys.argv[1]), 0
while done < 100:
    try:
        with hold_lock(folder / "lock", "folder", "a free one"):
            path = folder / "number"
            path.write_text(str(int(path.read_text()) + 1))
            done += 1
    except InvalidInput:
        os.sched_yield()
"""


@pytest.mark.full
@pytest.mark.skipif(not hasattr(os, "sched_yield"), reason="needs a system that lets a process give way")
def test_no_process_holds_the_lock_of_a_removed_file(tmp_path: Path) -> None:
    """Processes that take the lock in turn, each removing the file, are never in the block together."""
    (tmp_path / "number").write_text("0")
    workers = [subprocess.Popen([sys.executable, "-c", COUNT, str(tmp_path)]) for _ in range(3)]
    assert [worker.wait(600) for worker in workers] == [0, 0, 0]
    assert (tmp_path / "number").read_text() == "300"


def says(text):
    return pytest.raises(InvalidInput, match=re.escape(text))


def test_written_text_survives_a_round_trip(tmp_path):
    """A text survives a round trip, accents and newlines included, and the path is returned."""
    path = write_text(tmp_path / "a.txt", "é\r\n𝜀\n")
    assert path == tmp_path / "a.txt"
    assert path.read_bytes().decode() == "é\r\n𝜀\n"
    assert read_text(path) == "é\r\n𝜀\n"


def test_an_existing_file_is_refused_and_untouched(tmp_path):
    """Without force an existing path is an error and keeps its contents; with force it is replaced."""
    path = tmp_path / "a.txt"
    path.write_text("old")
    with says(f"{path}: expected a path that does not exist yet, or leave to overwrite it, got an existing one"):
        write_text(path, "new")
    assert path.read_text() == "old"
    write_text(path, "new", force=True)
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_dangling_link_counts_as_existing(tmp_path):
    """A symbolic link to nowhere is a taken name."""
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with says("got an existing one"):
        write_text(tmp_path / "link", "x")
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("force", [False, True])
def test_a_failure_leaves_nothing(tmp_path, monkeypatch, force):
    """When the disk refuses the bytes, neither the target nor a part of it is left, and an old file stays."""
    if force:
        (tmp_path / "a").write_text("old")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with says("a: expected a place that can be written, got no space left on device"):
        write_bytes_atomically(tmp_path / "a", b"x" * 100, force)
    assert [path.read_text() for path in tmp_path.iterdir()] == (["old"] if force else [])


def test_an_interrupt_leaves_nothing(tmp_path, monkeypatch):
    """A keyboard interrupt while the bytes are flushed leaves no file behind."""

    def interrupt(handle):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_text(tmp_path / "a", "x")
    assert list(tmp_path.iterdir()) == []


def test_a_target_that_appears_meanwhile_is_not_overwritten(tmp_path, monkeypatch):
    """A file that someone else creates during the write survives, and the write is an error."""
    real = os.fsync

    def race(handle):
        (tmp_path / "a").write_text("theirs")
        real(handle)

    monkeypatch.setattr(os, "fsync", race)
    with says("got an existing one"):
        write_text(tmp_path / "a", "ours")
    assert (tmp_path / "a").read_text() == "theirs"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("taken", [False, True])
def test_a_file_system_without_links(tmp_path, monkeypatch, taken):
    """Where hard links are not to be had, the file is moved into place, still never over another one."""

    def no_links(source, target):
        if taken:
            Path(target).write_text("theirs")
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    if taken:
        with says("got an existing one"):
            write_text(tmp_path / "a", "ours")
    else:
        write_text(tmp_path / "a", "ours")
    assert (tmp_path / "a").read_text() == ("theirs" if taken else "ours")
    assert os.listdir(tmp_path) == ["a"]


def test_a_written_file_has_the_usual_rights(tmp_path):
    """The new file has the rights that a plainly opened one has."""
    (tmp_path / "plain").write_text("")
    path = write_text(tmp_path / "a", "x")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


def test_places_that_cannot_be_written(tmp_path):
    """A missing folder, a folder in place of a file, a pipe and an over-long name are errors with their reason."""
    with says("got no such file or directory"):
        write_text(tmp_path / "missing" / "a", "x")
    with says("got an existing one"):
        write_text(tmp_path, "x")
    with says("expected the path of an ordinary file, got something else"):
        write_text(tmp_path, "x", force=True)
    os.mkfifo(tmp_path / "pipe")
    with says("expected the path of an ordinary file, got something else"):
        write_text(tmp_path / "pipe", "x", force=True)
    with says("got file name too long"):
        write_text(tmp_path / ("a" * 300), "x")
    (tmp_path / "file").write_text("")
    with says("got not a directory"):
        write_text(tmp_path / "file" / "a", "x")
    assert sorted(os.listdir(tmp_path)) == ["file", "pipe"]


@pytest.mark.parametrize("path", ["", ".", "a\0b", None, 3, b"bytes"])
def test_paths_that_are_none(path):
    """Something that names no file is an error before anything is touched."""
    for call in (lambda: read_text(path), lambda: write_text(path, "x")):
        with says("path: expected the path of a file, got"):
            call()


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "expected a file with contents, got an empty one"),
        (b" \n\t\n", "expected a file with contents, got an empty one"),
        (b"\xef\xbb\xbf", "expected a file with contents, got an empty one"),
        (b"a\nb\xff\n", "expected UTF-8 text, got byte 0xff at line 2"),
        ("p0,p1\n".encode("utf-16"), "expected UTF-8 text, got byte 0xff at line 1"),
        ("a\ncaf\u00e9".encode("latin-1"), "expected UTF-8 text, got byte 0xe9 at line 2"),
        (b"\xef\xbb\xbfa\n\xff", "expected UTF-8 text, got byte 0xff at line 2"),
        (b"a\nb\0c", "expected text, got a zero byte at line 2"),
    ],
)
def test_contents_that_are_no_text(tmp_path, raw, message):
    """An empty file and a file in another encoding are errors that name the file and the line."""
    path = tmp_path / "a.csv"
    path.write_bytes(raw)
    with says(f"{path}: {message}"):
        read_text(path)


def test_a_byte_order_mark_is_dropped(tmp_path):
    """The mark some editors put before UTF-8 is no part of the text."""
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfp0,p1")
    assert read_text(tmp_path / "a") == "p0,p1"


def test_a_text_that_is_too_large_is_not_read_whole(tmp_path, monkeypatch):
    """A file that is read whole has a largest size, which it may have."""
    monkeypatch.setattr("ldpopt.files.atomic.MAX_TEXT", 10)
    (tmp_path / "a").write_text("a" * 10)
    assert read_text(tmp_path / "a") == "a" * 10
    (tmp_path / "a").write_text("a" * 11)
    with says(f"{tmp_path / 'a'}: expected a file of at most 10 bytes, got a larger one"):
        read_text(tmp_path / "a")


def test_files_that_cannot_be_read(tmp_path):
    """A missing file and a folder are errors with the system's reason."""
    with says(f"{tmp_path / 'a'}: expected a readable file, got no such file or directory"):
        read_text(tmp_path / "a")
    with says(f"{tmp_path}: expected a readable file, got is a directory"):
        read_text(tmp_path)


def test_a_folder_that_cannot_be_opened_is_no_failure(tmp_path, monkeypatch):
    """Flushing the folder's entry is skipped where folders cannot be opened, and the file stands."""
    real = os.open

    def refuse(path, flags, *rest, **more):
        if Path(path) == tmp_path:
            raise PermissionError(13, "Permission denied")
        return real(path, flags, *rest, **more)

    monkeypatch.setattr(files.os, "open", refuse)
    assert write_text(tmp_path / "a", "x").read_text() == "x"


def test_content_written_aside_appears_at_the_end(tmp_path):
    """The path keeps its old content until the block ends; meanwhile the new one has a name that a sweep would find."""
    replace_text(tmp_path / "f", "old")
    with aside(tmp_path / "f") as written:
        written.write_text("new")
        assert (tmp_path / "f").read_text() == "old"
        assert list(tmp_path.glob(UNFINISHED)) == [written]
    assert (tmp_path / "f").read_text() == "new"
    assert os.listdir(tmp_path) == ["f"]


def test_a_block_that_fails_leaves_the_old_file(tmp_path):
    """When the block raises, the path keeps its old content and no other file stays."""
    replace_text(tmp_path / "f", "old")

    def fail():
        with aside(tmp_path / "f") as written:
            written.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert (tmp_path / "f").read_text() == "old"
    assert os.listdir(tmp_path) == ["f"]


def test_a_text_is_replaced_byte_for_byte(tmp_path):
    """Neither line ends nor accents change, and the system's own error says why a place cannot be written."""
    replace_text(tmp_path / "f", "é\r\n𝜀\n")
    assert (tmp_path / "f").read_bytes().decode() == "é\r\n𝜀\n"
    with pytest.raises(FileNotFoundError):
        replace_text(tmp_path / "missing" / "f", "x")


def test_private_files_are_new(tmp_path, monkeypatch):
    """A private file is its owner's alone while it is written and after, replaces nothing and leaves nothing aside."""
    modes, real = [], os.fsync

    def looking(handle):
        modes.append(stat.S_IMODE(os.fstat(handle).st_mode))
        real(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", looking)
        create_private(tmp_path / "f", b"one")
    assert modes[0] == stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o600
    with pytest.raises(FileExistsError):
        create_private(tmp_path / "f", b"two")
    assert (tmp_path / "f").read_bytes() == b"one"
    assert os.listdir(tmp_path) == ["f"]
