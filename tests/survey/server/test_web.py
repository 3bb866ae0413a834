"""What the collector and the studio share of reading bodies and of answering.

Which folders can be served, and under which paths.
"""

import asyncio
import json
import logging
import os
import re
import sys

import pytest
from collectors import habits
from starlette.requests import Request

from ldpopt.errors import InvalidInput
from ldpopt_survey.kit.folder import kit_files
from ldpopt_survey.server import static_files, web
from ldpopt_survey.server.submission import Refused
from ldpopt_survey.server.web import HEADERS, LogLine, Sender, encode_headers, json_response, read_body, refusal

pytest.importorskip("starlette")


def request(content, headers=((b"content-type", b"application/json"),)):
    """A request with a body in pieces of three bytes."""
    parts = [content[at : at + 3] for at in range(0, len(content), 3)] or [b""]
    left = [{"type": "http.request", "body": one, "more_body": True} for one in parts]

    async def receive():
        return left.pop(0) if left else {"type": "http.request", "body": b"", "more_body": False}

    return Request({"type": "http", "method": "POST", "path": "/", "headers": list(headers)}, receive)


def read(asked):
    """The body, of at most ten bytes."""
    return asyncio.run(read_body(asked, 10, "A state", "too long"))


def test_a_body_of_the_limit_is_read_and_one_more_byte_is_not():
    """The limit holds for what arrives, and for what a header announces."""
    assert read(request(b"0123456789")) == b"0123456789"
    with pytest.raises(Refused, match="too long") as refused:
        read(request(b"0123456789a"))
    assert refused.value.status == 413
    announced = ((b"content-type", b"application/json"), (b"content-length", b"11"))
    with pytest.raises(Refused, match="too long"):
        read(request(b"", announced))


@pytest.mark.parametrize(
    "headers",
    [(), ((b"content-type", b"text/plain"),), ((b"content-type", b"application/json"),) * 2,
     ((b"content-type", b"application/json"), (b"content-encoding", b"gzip"))],
)  # fmt: skip
def test_only_plain_json_is_taken(headers):
    """Another type, two types or a compressed body are refused before anything is read."""
    with pytest.raises(Refused, match="A state is application/json") as refused:
        read(request(b"{}", headers))
    assert refused.value.status == 415


def test_headers_are_added_where_an_answer_has_none_of_the_name():
    """What an answer says itself stays, and `begun` tells that an answer was begun."""
    messages = []

    async def send(message):
        messages.append(message)

    sender = Sender(send, encode_headers(HEADERS))
    assert not sender.has_begun
    asyncio.run(sender({"type": "http.response.start", "status": 200, "headers": [(b"cache-control", b"no-cache")]}))
    assert sender.has_begun
    found = dict(messages[0]["headers"])
    assert found[b"cache-control"] == b"no-cache"
    assert found[b"content-security-policy"] == b"default-src 'none'; frame-ancestors 'none'"


def test_a_log_is_lines_of_json_without_values_of_others():
    """Each line has four fields, or five; messages of other libraries lose their values, and errors theirs."""
    made = []
    for name, message, values in (
        ("ldpopt.collector", "%s", ("r.db: full\nmore",)),
        ("uvicorn.error", "from %s", ("192.0.2.1",)),
        ("uvicorn.error", "Traceback of 192.0.2.1\n", ()),
    ):
        try:
            raise ValueError("192.0.2.1")
        except ValueError:
            error = sys.exc_info() if values == () else None
        record = logging.LogRecord(name, logging.ERROR, "", 1, message, values, error)
        line = LogLine().format(record)
        assert "\n" not in line
        assert "192.0.2.1" not in line
        made.append(json.loads(line))
    assert [set(line) for line in made] == [{"time", "level", "logger", "message"}] * 2 + [{*made[0], "error"}]
    assert (made[0]["message"], made[2]["error"]) == ("r.db: full\nmore", "ValueError")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", made[0]["time"])


def test_a_refusal_is_one_sentence_with_a_retry_time():
    """The JSON has only the sentence, and a header states how long an early device must wait."""
    assert json.loads(bytes(refusal(404, "Nothing.").body)) == {"error": "Nothing."}
    assert refusal(503, "Later.").headers["retry-after"] == "5"
    assert "retry-after" not in refusal(404, "Nothing.").headers
    assert bytes(json_response(200, {"a": "\ud800"}).body) == b'{"a":"?"}'


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
    monkeypatch.setattr(web, "MAX_KIT_BYTES", 1)
    with pytest.raises(InvalidInput, match="exceed 0 MB in total"):
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
