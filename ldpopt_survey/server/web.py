"""The common parts of the collector and the studio as web servers.

They serve files from memory, read request bodies, build answers and run the process. A request's path is looked up in a
table, never on the disk. uvicorn keeps no log of requests and ignores a proxy's headers.
"""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import json
import logging
import os
import re
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.extras import need
from ldpopt.files import strict
from ldpopt.files.atomic import create_private, read_text, refuse_shared
from ldpopt_survey.server.limits import limited_protocol
from ldpopt_survey.server.submission import Refused

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

__all__ = [
    "HEADERS",
    "Sender", "StaticFile", "address", "encode_headers", "file_response", "json_response", "listen", "no_route",
    "read_body",
    "refusal", "serve", "static_files",
]  # fmt: skip


TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
    ".txt": "text/plain; charset=utf-8",
    ".md": "text/plain; charset=utf-8",
    ".ts": "text/plain; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
}
MAX_KIT_BYTES = 1 << 25
"""The most bytes in all files of a kit together."""


@dataclass(frozen=True)
class StaticFile:
    """A file's bytes, their type, and a tag that changes when the bytes change."""

    content: bytes
    type: str
    tag: str


def static_files(folder: Path, plan: str = "") -> dict[str, StaticFile]:
    """Read the files of a folder by URL path; ``index.html`` also has the folder's path.

    plan : the checksum of the collected plan; a ``plan.json`` in the folder must have this checksum.

    Raises `InvalidInput` for a folder without ``index.html``, for links, for file types not in `TYPES`, and for names
    that a URL would have to escape. It also does so for more than `MAX_KIT_BYTES` bytes. Hidden files are left out.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "index.html").write_text("<!doctype html>")
    ...     {path: file.type for path, file in static_files(Path(folder)).items()}
    {'/index.html': 'text/html; charset=utf-8', '/': 'text/html; charset=utf-8'}
    """
    if not (folder / "index.html").is_file():
        raise invalid("kit", "a folder with index.html", str(folder))
    files: dict[str, StaticFile] = {}
    size = 0
    for path in sorted(folder.rglob("*")):
        relative_path = path.relative_to(folder).as_posix()
        if "/." in f"/{relative_path}":
            continue
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise InvalidInput(f"{path}: a kit may have only ordinary files and folders")
        if path.is_dir():
            continue
        if path.suffix not in TYPES:
            raise invalid("kit", f"files named {', '.join('*' + suffix for suffix in TYPES)}", path.name, str(folder))
        if not all(part.isascii() and re.sub("[-_.]", "", part).isalnum() for part in relative_path.split("/")):
            raise invalid("kit", "names of letters, digits, '-', '_' and '.'", path.name, str(folder))
        content = path.read_bytes()
        tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        files[f"/{relative_path}"] = file = StaticFile(content, TYPES[path.suffix], tag)
        if path.name == "index.html":
            files[f"/{relative_path.removesuffix('index.html')}"] = file
        size += len(content)
        if size > MAX_KIT_BYTES:
            raise InvalidInput(f"{folder}: the files of the kit exceed {MAX_KIT_BYTES >> 20} MB in total")
    if plan and "/plan.json" in files:
        kit_plan = strict.json_value(files["/plan.json"].content, str(folder / "plan.json"))
        if not isinstance(kit_plan, dict) or kit_plan.get("checksum") != plan:
            raise InvalidInput(f"{folder}: the kit is another plan's; generate it from this plan (ldpopt survey kit)")
    return files


BODY_SECONDS = 20.0
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


def encode_headers(headers: Mapping[str, str]) -> Headers:
    """Encode headers as pairs of bytes, as they are sent."""
    return [(name.encode(), value.encode()) for name, value in headers.items()]


class Sender:
    """The `send` of an ASGI application, which adds missing headers to an answer.

    has_begun : True if it sent any.
    """

    def __init__(self, send: Any, headers: Headers) -> None:
        self._send, self._headers, self.has_begun = send, headers, False

    async def __call__(self, message: Any) -> None:
        """Send a message."""
        if message["type"] == "http.response.start":
            self.has_begun = True
            given_names = {name for name, _ in message["headers"]}
            message["headers"] = [*message["headers"], *(pair for pair in self._headers if pair[0] not in given_names)]
        await self._send(message)


async def read_body(request: Request, limit: int, name: str, too_long: str) -> bytes:
    """Read the bytes of a JSON request, at most `limit`; raise `Refused` for any other request.

    name : the name of the content in messages.

    too_long : the message for longer requests.
    """
    from starlette.requests import ClientDisconnect

    kinds = [kind.replace(" ", "").lower() for kind in request.headers.getlist("content-type")]
    is_json = kinds in (["application/json"], ["application/json;charset=utf-8"])
    if not is_json or "content-encoding" in request.headers:
        raise Refused(415, f"{name} is application/json, not compressed.")
    content_length = request.headers.get("content-length", "0")
    if (
        content_length.isascii()
        and content_length.isdigit()
        and (len(content_length) > 9 or int(content_length) > limit)
    ):
        raise Refused(413, too_long)
    parts, size = [], 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
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


def json_response(status: int, content: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    """Build a JSON response. Characters that are not valid Unicode are replaced."""
    from starlette.responses import Response

    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(text.encode("utf-8", "replace"), status, {**(headers or {}), "content-type": "application/json"})


def refusal(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    """Build a response with one sentence that states the error."""
    retry_headers = {"retry-after": "5"} if status in (429, 503) else {}
    return json_response(status, {"error": sentence}, {**retry_headers, **(headers or {})})


async def no_route(_: Request, error: Any) -> Response:
    """The answer to a request that no route accepts."""
    sentences = {404: "There is nothing here.", 405: "This is not asked for by that method."}
    return refusal(error.status_code, sentences.get(error.status_code, "The request is not understood."), error.headers)


def file_response(files: Mapping[str, StaticFile], request: Request, policy: str) -> Response:
    """Build the response with a file of a page, from memory.

    policy : its Content-Security-Policy.
    """
    from starlette.responses import Response

    file = files.get(request.scope["path"])
    if file is None:
        return refusal(404, "There is nothing here.")
    headers = {"etag": file.tag, "cache-control": "no-cache", "content-security-policy": policy}
    if request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, headers={**headers, "content-type": file.type})


class LogLine(logging.Formatter):
    """A record as one line of JSON: its time in seconds (UTC), level, logger and message; for an error only its type.

    The message of another library is shown without its values, which may come from the sender of a request.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Format a record as one line of JSON."""
        is_own_record = record.name.partition(".")[0] == "ldpopt"
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="seconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage() if is_own_record else str(record.msg),
        }
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
            line["message"] = line["message"].partition("\n")[0] if is_own_record else ""
        return json.dumps(line)


MAX_CONNECTIONS = 4096
"""The most connections at once. Others get an answer that asks them to try again."""


def serve(app: Starlette, listener: socket.socket, quick_shutdown: bool = False) -> None:
    """Serve the application at a listening socket, until the process is told to end.

    quick_shutdown : True to cut off running requests after a second, without an answer, instead of after 20.
    """
    need("uvicorn")
    import uvicorn

    handler = logging.StreamHandler()
    handler.setFormatter(LogLine())
    logging.basicConfig(handlers=[handler], level=logging.ERROR)
    config = uvicorn.Config(
        app,
        http=limited_protocol(),
        log_config=None,
        access_log=False,
        log_level="critical" if quick_shutdown else "error",  # requests that are not HTTP are not logged
        server_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="on",
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=20,
        timeout_graceful_shutdown=1 if quick_shutdown else 20,
    )
    uvicorn.Server(config).run(sockets=[listener])


def listen(host: str, port: int) -> socket.socket:
    """Open a socket that listens at `host` and `port`; raise `InvalidInput` if it cannot."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or "no such address"
        got = Phrase(f"{reason[:1].lower()}{reason[1:]}")
        raise invalid("--host and --port", "a place to listen at", got) from None


def address(host: str, listener: socket.socket) -> str:
    """Return the address of a listening socket, as one types it into a browser."""
    return f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"


def is_loopback(host: str) -> bool:
    """Return True if only programs on the same machine reach the host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read_token(path: Path) -> str:
    """Read the token in a file; create a missing one with a new token that only its owner reads.

    A file that everybody can read is refused, and so is one of this user that its group can read. On Windows a file's
    mode does not show this.
    """
    if not path.exists():
        create_private(path, f"{secrets.token_urlsafe(32)}\n".encode())
    status = path.stat()
    refuse_shared(status, "token file", path, group=hasattr(os, "geteuid") and status.st_uid != os.geteuid())
    token = read_text(path).strip()
    if len(token) < 16 or not token.isascii() or not token.isprintable() or " " in token:
        raise InvalidInput(f"{path}: a token must have at least 16 letters, digits or signs and no space")
    return token
