"""What the collector and the studio share of reading bodies and of answering."""

import asyncio
import json

import pytest

pytest.importorskip("starlette")

from starlette.requests import Request

from ldpopt.survey.server.answers import HEADERS, Sender, body, encoded, refusal, said
from ldpopt.survey.server.submission import Refused


def request(content, headers=((b"content-type", b"application/json"),)):
    """A request with a body in pieces of three bytes."""
    parts = [content[at : at + 3] for at in range(0, len(content), 3)] or [b""]
    left = [{"type": "http.request", "body": one, "more_body": True} for one in parts]

    async def receive():
        return left.pop(0) if left else {"type": "http.request", "body": b"", "more_body": False}

    return Request({"type": "http", "method": "POST", "path": "/", "headers": list(headers)}, receive)


def read(asked):
    """The body, of at most ten bytes."""
    return asyncio.run(body(asked, 10, "A state", "too long"))


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

    sender = Sender(send, encoded(HEADERS))
    assert not sender.begun
    asyncio.run(sender({"type": "http.response.start", "status": 200, "headers": [(b"cache-control", b"no-cache")]}))
    assert sender.begun
    found = dict(messages[0]["headers"])
    assert found[b"cache-control"] == b"no-cache"
    assert found[b"content-security-policy"] == b"default-src 'none'; frame-ancestors 'none'"


def test_a_refusal_is_one_sentence_and_says_when_to_come_again():
    """JSON with the sentence alone; a device that is too early is told how long to wait."""
    assert json.loads(bytes(refusal(404, "Nothing.").body)) == {"error": "Nothing."}
    assert refusal(503, "Later.").headers["retry-after"] == "5"
    assert "retry-after" not in refusal(404, "Nothing.").headers
    assert bytes(said(200, {"a": "\ud800"}).body) == b'{"a":"?"}'
