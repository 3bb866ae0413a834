"""The collector as a process: uvicorn, which keeps no log of requests and ignores a proxy's headers."""

from __future__ import annotations

import ipaddress
import secrets
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from ldpopt.errors import Phrase, invalid
from ldpopt.extras import need
from ldpopt.files import create_private, read_text

if TYPE_CHECKING:
    from starlette.applications import Starlette

CONNECTIONS = 4096
"""The most connections at once. Others get an answer that asks them to try again."""


def serve(app: Starlette, listener: socket.socket) -> None:
    """Serve the application at a listening socket, until the process is told to end."""
    need("uvicorn")
    import uvicorn

    config = uvicorn.Config(
        app,
        access_log=False,
        log_level="error",  # requests that are not HTTP are not logged
        server_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="on",
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=20,
        timeout_graceful_shutdown=20,
    )
    uvicorn.Server(config).run(sockets=[listener])


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens at `host` and `port`; `InvalidInput` if it cannot."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or "no such address"
        raise invalid(
            "--host and --port", "a place to listen at", Phrase(f"{reason[:1].lower()}{reason[1:]}")
        ) from None


def address(host: str, listener: socket.socket) -> str:
    """The address of a listening socket, as one types it into a browser."""
    return f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"


def loopback(host: str) -> bool:
    """Whether only programs on the same machine reach the host.

    >>> [loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "survey.example")]
    [True, True, True, False, False]
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def token_of(path: Path) -> str:
    """The token in a file. A missing file is made, with a new token that only its owner can read."""
    if not path.exists():
        create_private(path, f"{secrets.token_urlsafe(32)}\n".encode())
    token = read_text(path).strip()
    if len(token) < 16 or not token.isascii() or not token.isprintable() or " " in token:
        raise invalid("token file", "at least 16 letters, digits or signs in one word", Phrase("others"), str(path))
    return token
