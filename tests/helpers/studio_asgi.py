"""Requests to the studio without a network: an ASGI application called as a server would call it."""

from __future__ import annotations

import asyncio
import base64
import json
from dataclasses import dataclass
from typing import Any

TOKEN, PORT = "t" * 32, 8123
HOST = (b"host", f"127.0.0.1:{PORT}".encode())
OURS = (HOST, (b"x-studio-token", TOKEN.encode()), (b"content-type", b"application/json"))


@dataclass(frozen=True)
class Answer:
    """Status, headers and body of an answer; of several header lines of a name the last."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def content(self) -> Any:
        """The body, read as JSON."""
        return json.loads(self.body)


async def call(app: Any, method: str, path: str, headers: Any = OURS, body: bytes = b"", query: bytes = b"") -> Answer:
    """What the application answers; the body comes in two parts."""
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
        "path": path, "raw_path": path.encode("utf-8", "replace"), "query_string": query, "root_path": "",
        "headers": list(headers), "client": ("127.0.0.1", 5), "server": ("127.0.0.1", PORT),
    }  # fmt: skip
    parts = [body[: len(body) // 2], body[len(body) // 2 :]]
    messages = [{"type": "http.request", "body": part, "more_body": not at} for at, part in enumerate(parts)]
    responses: list[Any] = []

    async def receive() -> Any:
        if not messages:
            await asyncio.Event().wait()  # the page waits for its answer
        return messages.pop(0)

    async def send(message: Any) -> None:
        responses.append(message)

    await app(scope, receive, send)
    headers_by_name = {name.decode().lower(): value.decode() for name, value in responses[0]["headers"]}
    return Answer(responses[0]["status"], headers_by_name, b"".join(one.get("body", b"") for one in responses[1:]))


def ask(app: Any, method: str, path: str, headers: Any = OURS, body: bytes = b"", query: bytes = b"") -> Answer:
    """`call`, from where nothing is asynchronous."""
    return asyncio.run(call(app, method, path, headers, body, query))


def post(app: Any, path: str, state: Any) -> Answer:
    """A state, sent as the page sends it."""
    return ask(app, "POST", path, body=json.dumps(state).encode())


def packed(state: Any) -> str:
    """A state as it stands in a link."""
    return base64.urlsafe_b64encode(json.dumps(state).encode()).decode().rstrip("=")


def unpacked(text: str) -> Any:
    """The state in a link."""
    return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
