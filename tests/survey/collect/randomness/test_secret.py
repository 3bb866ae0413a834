"""The survey key: private from its first moment, and never shown."""

from __future__ import annotations

import copy
import os
import pickle
import stat
import traceback
from pathlib import Path

import pytest

from ldpopt.errors import InvalidInput
from ldpopt.survey.collect.randomness.secret import SecretKey, create_key, read_key


def test_a_key_survives_its_file(tmp_path: Path) -> None:
    """A created key reads back, from a file of mode 0600 with nothing beside it."""
    key = create_key(tmp_path / "key")
    assert read_key(tmp_path / "key") == key != create_key(tmp_path / "other")
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    assert sorted(os.listdir(tmp_path)) == ["key", "other"]


def test_a_key_file_is_never_replaced(tmp_path: Path) -> None:
    """Creating over an existing file fails, and leaves it and nothing else."""
    key = create_key(tmp_path / "key")
    with pytest.raises(InvalidInput, match="not taken"):
        create_key(tmp_path / "key")
    assert read_key(tmp_path / "key") == key
    assert os.listdir(tmp_path) == ["key"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o601, 0o644])
def test_a_key_open_to_others_is_refused(tmp_path: Path, mode: int) -> None:
    """Any access for group or others refuses the key."""
    create_key(tmp_path / "key")
    (tmp_path / "key").chmod(mode)
    with pytest.raises(InvalidInput, match="0600"):
        read_key(tmp_path / "key")


def test_links_folders_and_absent_files_are_refused(tmp_path: Path) -> None:
    """Only a regular file that is there is read."""
    create_key(tmp_path / "key")
    (tmp_path / "link").symlink_to(tmp_path / "key")
    os.mkfifo(tmp_path / "pipe", 0o600)
    for name in ("link", "absent", ".", "pipe"):
        with pytest.raises(InvalidInput, match="key file"):
            read_key(tmp_path / name)


@pytest.mark.parametrize("content", [b"", b"\xff" * 90, b"ldpopt-survey-key 1\n" + b"zz" * 32, b"0" * 64, b"x" * 500])
def test_a_malformed_key_is_refused_unseen(tmp_path: Path, content: bytes) -> None:
    """A malformed file is refused, and its content is in no message nor in the error's context."""
    path = tmp_path / "key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(InvalidInput, match="create_key") as caught:
        read_key(path)
    shown = "".join(traceback.format_exception(caught.value))
    assert "zzzz" not in shown
    assert caught.value.__context__ is None


def test_nothing_shows_a_key() -> None:
    """Not its repr, not its text, not a pickle, not a copy."""
    key = SecretKey(b"\x41" * 32)
    assert f"{key} {key!r}" == "SecretKey(hidden) SecretKey(hidden)"
    for attempt in (pickle.dumps, copy.copy):
        with pytest.raises(TypeError, match="not pickled"):
            attempt(key)
    with pytest.raises(InvalidInput, match="32 bytes"):
        SecretKey(b"short")


def test_purposes_are_independent() -> None:
    """Derived keys differ by purpose and by key, and the check is short of either."""
    key, other = SecretKey(bytes(32)), SecretKey(b"\1" * 32)
    derived = {k.derive(p) for k in (key, other) for p in (b"a", b"b")}
    assert len(derived) == 4
    assert key.check() != other.check()
    assert len(key.check()) == 16
    assert len({key, other, SecretKey(bytes(32))}) == 2
