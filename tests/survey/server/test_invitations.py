"""Invitations: nothing that fails leaves codes which nobody holds, and a repeated command continues."""

import os
import stat
from dataclasses import replace
from functools import partial

import pytest
from collectors import habits

from ldpopt.errors import InvalidInput
from ldpopt_survey.collect.ledger import Ledger
from ldpopt_survey.server import database, draw_invitations
from ldpopt_survey.server import invitations as module
from ldpopt_survey.server.databases import SqliteStore
from ldpopt_survey.server.decide import drawn_mark
from ldpopt_survey.server.invitations import Invited, invite_by_file, is_interrupted
from ldpopt_survey.server.submission import invitation_hash

PLAN = replace(habits(), respondent="id", rounds=2)
IDS = [f"person {number}" for number in range(30)]
LINK = "https://survey.example/#invitation="


def invite(folder, link=LINK, ids=IDS):
    """Invite the people of a frame by a file."""
    invited = partial(Invited, PLAN, folder / "plan.ledger", ids, False, False)
    with database(folder / "reports.db", PLAN, create=True) as store:
        return invite_by_file(PLAN, store, folder / "codes.txt", link, len(ids), [""] * len(ids), invited)


def held(folder):
    """The codes in the file."""
    return [line.removeprefix(LINK) for line in (folder / "codes.txt").read_text("utf-8").splitlines()]


def drawn(folder):
    """The marks of the drawn codes in the database."""
    with database(folder / "reports.db", PLAN, create=True) as store, store._connected() as db:
        return {bytes(row[0]) for row in db.execute("SELECT hash FROM invitations")}


def marks(codes):
    """The marks of codes, as the database has them."""
    return {drawn_mark(invitation_hash(PLAN.checksum, code)) for code in codes}


FAULTS = {
    "the codes' file": (module, "create_private"),
    "the reserved name": (os, "open"),
    "the ledger": (Ledger, "_write"),
    "the database": (SqliteStore, "_add"),
    "the move": (os, "replace"),
    "the folder": (module, "sync_folder"),
}


@pytest.mark.parametrize("place", FAULTS)
@pytest.mark.parametrize("after", [False, True])
def test_a_fault_strands_nobody(tmp_path, monkeypatch, place, after):
    """The disk is full before or after a step: the same command then draws each code of its file once."""
    Ledger(tmp_path / "plan.ledger").secret()
    with database(tmp_path / "reports.db", PLAN, create=True):
        pass
    owner, name = FAULTS[place]
    real = getattr(owner, name)

    def full(*arguments, **options):
        if after:
            real(*arguments, **options)
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patched:
        patched.setattr(owner, name, full)
        with pytest.raises((OSError, InvalidInput)):
            invite(tmp_path)
    if not (tmp_path / "codes.txt").exists() or is_interrupted(PLAN, tmp_path / "codes.txt"):
        assert invite(tmp_path) == len(IDS)
    codes = held(tmp_path)
    assert len(set(codes)) == len(IDS)
    assert drawn(tmp_path) == marks(codes)
    runs = Ledger(tmp_path / "plan.ledger")._content()[1]
    assert [len(run.run.people) for run in runs] == [len(IDS)]
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith((".unfinished", ".part"))] == []
    assert stat.S_IMODE((tmp_path / "codes.txt").stat().st_mode) == 0o600
    with pytest.raises(InvalidInput, match="not taken"):
        invite(tmp_path)


def test_codes_that_wait_for_another_call_are_not_given_away(tmp_path, monkeypatch):
    """Another link, another number of people or a damaged file is refused, and changes nothing."""
    with monkeypatch.context() as patched:
        patched.setattr(SqliteStore, "_add", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
        with pytest.raises(OSError, match="full"):
            invite(tmp_path)
    for link, ids in (("https://other.example/#invitation=", IDS), (LINK, IDS[:7])):
        with pytest.raises(InvalidInput, match="interrupted"):
            invite(tmp_path, link, ids)
    assert drawn(tmp_path) == set()
    assert invite(tmp_path) == len(IDS)


def test_a_refusal_leaves_nothing_behind(tmp_path):
    """People who were invited before are refused by the ledger, and no codes wait."""
    assert invite(tmp_path) == len(IDS)
    (tmp_path / "codes.txt").unlink()
    with pytest.raises(InvalidInput, match="30 with other reports of round 1"):
        invite(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plan.ledger", "reports.db"]
    assert len(drawn(tmp_path)) == len(IDS)


def test_a_closed_round_gives_no_codes(tmp_path):
    """Its codes would be refused, whoever asks for them."""
    with database(tmp_path / "reports.db", PLAN, create=True) as store:
        store.close_round()
        with pytest.raises(InvalidInput, match="open"):
            draw_invitations(PLAN, store, 3)
    with pytest.raises(InvalidInput, match="open"):
        invite(tmp_path)
    assert not (tmp_path / "codes.txt").exists()


def test_invitations_that_are_there_are_not_counted_again(tmp_path):
    """A repeated call adds what is missing."""
    hashes = [bytes([number]) * 32 for number in range(5)]
    with database(tmp_path / "reports.db", PLAN, create=True) as store:
        store.invite(hashes[:3])
        store.invite(hashes)
        assert store.summary().drawn == 5


@pytest.mark.parametrize("link", ["a\nb", "\x1b[2J", "\u202ehttps://x"])
def test_a_link_is_one_line_that_is_seen(tmp_path, link):
    """The file has a line for each code."""
    with pytest.raises(InvalidInput, match="--link"):
        invite(tmp_path, link)
