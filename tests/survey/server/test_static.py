"""Which folders can be served, and under which paths."""

import json
import os

import pytest
from collectors import habits

from ldpopt.errors import InvalidInput
from ldpopt.survey.kit.folder import kit_files
from ldpopt.survey.server import static, static_files


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "kit"
    (made / "sub").mkdir(parents=True)
    (made / "index.html").write_text("a")
    (made / "sub" / "index.html").write_text("b")
    return made


def test_the_table_holds_every_file_under_its_path(folder):
    """A folder is its index page; hidden files and what is in hidden folders are not there."""
    (folder / ".env").write_text("secret")
    (folder / ".git").mkdir()
    (folder / ".git" / "config.txt").write_text("secret")
    found = static_files(folder)
    assert {path: file.content for path, file in found.items()} == {
        "/index.html": b"a", "/": b"a", "/sub/index.html": b"b", "/sub/": b"b",
    }  # fmt: skip


def test_tags_follow_contents(folder):
    """A file that is changed has another tag, so that no browser keeps the old one."""
    before = static_files(folder)["/"].tag
    (folder / "index.html").write_text("c")
    assert static_files(folder)["/"].tag != before


def test_a_link_is_refused(folder):
    """A link may lead anywhere, so that no folder with one is served."""
    os.symlink("/etc/hostname", folder / "host.txt")
    with pytest.raises(InvalidInput, match="ordinary files"):
        static_files(folder)


@pytest.mark.parametrize("name", ["reports.db", "key", "a.php", "a b.txt", "é.txt", "a%2e.txt", "a?.txt"])
def test_other_kinds_and_names_are_refused(folder, name):
    """A database beside the kit, or a name that a path would escape, is no part of a kit."""
    (folder / name).write_text("x")
    with pytest.raises(InvalidInput, match="kit"):
        static_files(folder)


def test_a_folder_without_a_page_is_refused(tmp_path):
    """What is no kit is said to be none."""
    with pytest.raises(InvalidInput, match=r"index\.html"):
        static_files(tmp_path)


def test_too_much_is_refused(folder, monkeypatch):
    """All files are kept in memory, so that there is a limit to them."""
    monkeypatch.setattr(static, "LARGEST", 1)
    with pytest.raises(InvalidInput, match="at most"):
        static_files(folder)


def test_a_kit_of_another_plan_is_refused(folder):
    """Reports of another plan's kit would all be refused, so that the kit is."""
    (folder / "plan.json").write_text(json.dumps({"checksum": "a"}))
    assert "/plan.json" in static_files(folder, "a")
    with pytest.raises(InvalidInput, match="another plan's"):
        static_files(folder, "b")


def test_a_questionnaire_can_be_served(tmp_path):
    """Every file that `ldpopt survey kit` writes has a kind and a name that are served, and its plan is checked."""
    plan, found = habits(), kit_files(habits())
    for name, content in found.items():
        (tmp_path / name).write_bytes(content)
    assert set(static_files(tmp_path, plan.checksum)) == {"/", *(f"/{name}" for name in found)}
    with pytest.raises(InvalidInput, match="another plan's"):
        static_files(tmp_path, habits(2).checksum)
