"""Shared by the collector and the studio: reading request bodies with limits, and answers that reveal nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ldpopt.survey.server.static import StaticFile
from ldpopt.survey.server.submission import Refused

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

SLOWEST = 20.0
"""Seconds in which a body must have arrived."""

HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cache-control": "no-store",
}
"""The headers of every answer, unless it sets them itself."""

Headers = list[tuple[bytes, bytes]]


def encoded(headers: Mapping[str, str]) -> Headers:
    """Headers as pairs of bytes, as they are sent.

    >>> encoded({"cache-control": "no-store"})
    [(b'cache-control', b'no-store')]
    """
    return [(name.encode(), value.encode()) for name, value in headers.items()]


class Sender:
    """The `send` of an ASGI application, which adds headers that an answer lacks.

    `begun` says whether it sent anything.
    """

    def __init__(self, send: Any, headers: Headers) -> None:
        self._send, self._added, self.begun = send, headers, False

    async def __call__(self, message: Any) -> None:
        """Send a message."""
        if message["type"] == "http.response.start":
            self.begun = True
            there = {name for name, _ in message["headers"]}
            message["headers"] = [*message["headers"], *(pair for pair in self._added if pair[0] not in there)]
        await self._send(message)


async def body(request: Request, limit: int, what: str, too_long: str) -> bytes:
    """The bytes of a JSON request, of which at most `limit` are read; `Refused` for any other request.

    what : the name of the content in messages, such as "A submission". too_long : the message for longer requests.
    """
    from starlette.requests import ClientDisconnect

    kinds = [kind.replace(" ", "").lower() for kind in request.headers.getlist("content-type")]
    right = kinds in (["application/json"], ["application/json;charset=utf-8"])
    if not right or "content-encoding" in request.headers:
        raise Refused(415, f"{what} is application/json, not compressed.")
    said = request.headers.get("content-length", "0")
    if said.isascii() and said.isdigit() and (len(said) > 9 or int(said) > limit):
        raise Refused(413, too_long)
    parts, size = [], 0
    try:
        async with asyncio.timeout(SLOWEST):
            async for part in request.stream():
                size += len(part)
                if size > limit:
                    raise Refused(413, too_long)
                parts.append(part)
    except ClientDisconnect:
        raise Refused(400, "The body did not arrive whole.") from None
    except TimeoutError:
        raise Refused(408, "The body did not arrive in time.") from None
    return b"".join(parts)


def said(status: int, content: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    """An answer in JSON. Characters that are not valid Unicode are replaced."""
    from starlette.responses import Response

    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(text.encode("utf-8", "replace"), status, {**(headers or {}), "content-type": "application/json"})


def refusal(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    """An answer that says in one sentence what is wrong."""
    later = {"retry-after": "5"} if status in (429, 503) else {}
    return said(status, {"error": sentence}, {**later, **(headers or {})})


async def no_route(_: Request, error: Any) -> Response:
    """The answer to a request that no route accepts."""
    known = {404: "There is nothing here.", 405: "This is not asked for by that method."}
    return refusal(error.status_code, known.get(error.status_code, "The request is not understood."), error.headers)


def file_of(files: Mapping[str, StaticFile], request: Request, policy: str) -> Response:
    """The answer with a file of a page, from memory. policy : its Content-Security-Policy."""
    from starlette.responses import Response

    file = files.get(request.scope["path"])
    if file is None:
        return refusal(404, "There is nothing here.")
    headers = {"etag": file.tag, "cache-control": "no-cache", "content-security-policy": policy}
    if request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, headers={**headers, "content-type": file.type})
