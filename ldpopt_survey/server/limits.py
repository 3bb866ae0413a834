"""Limits on what a connection may send before there is a request (bytes and seconds of headers), and on requests.

Requests have a rate, and those of browsers an origin: the site of the page that sends them.

Bodies have limits of their own (`ldpopt_survey.server.web.body`).
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterable
from typing import Any

from ldpopt.errors import Phrase, invalid
from ldpopt.values.distribution import number

HEADER_BYTES = 16_384
"""The most bytes of a request's line and headers."""
HEADER_SECONDS = 20.0
"""Seconds in which they must have arrived, from the first byte or from the beginning of the connection."""

_TOO_LONG = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/json\r\ncontent-length: 48\r\n"
    b'connection: close\r\n\r\n{"error":"The headers of the request are long."}'
)


def limited_protocol() -> type[Any]:
    """Return the protocol with which uvicorn reads requests within these limits."""
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    base: Any = AutoHTTPProtocol

    class Limited(base):  # type: ignore[misc]
        """Counts bytes and seconds while no request is being answered."""

        _heard = 0
        _late: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._late = self.loop.call_later(HEADER_SECONDS, self._too_late)

        def connection_lost(self, exc: Exception | None) -> None:
            if self._late is not None:
                self._late.cancel()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            if self._idle() and self._late is None:
                self._late = self.loop.call_later(HEADER_SECONDS, self._too_late)
            super().data_received(data)
            if not self._idle():
                self._heard = 0
                if self._late is not None:
                    self._late.cancel()
                    self._late = None
                return
            self._heard += len(data)
            if self._heard > HEADER_BYTES and not self.transport.is_closing():
                self.transport.write(_TOO_LONG)
                self.transport.close()

        def _idle(self) -> bool:
            return self.cycle is None or self.cycle.response_complete

        def _too_late(self) -> None:
            if self._idle() and not self.transport.is_closing():
                self.transport.close()

    return Limited


_ORIGIN = re.compile(r"(?:https://(?P<host>[a-z0-9.-]+|\[[0-9a-f:]+\])(?P<port>:[0-9]{1,5})?|"
                     r"http://(?:localhost|127\.0\.0\.1|\[::1\])(?::[0-9]{1,5})?)")  # fmt: skip


def origin_of(text: object) -> str:
    """The origin of a site as its pages' requests name it; `InvalidInput` for any other text.

    >>> origin_of("https://Survey.example:443")
    'https://survey.example'
    """
    small = text.lower() if isinstance(text, str) else ""
    if _ORIGIN.fullmatch(small) is None:
        expected = "https://HOST or https://HOST:PORT without a path or a slash (http only for localhost)"
        raise invalid("origin", expected, text if isinstance(text, str) else Phrase(type(text).__name__))
    return small.removesuffix(":443") if small.startswith("https") else small.removesuffix(":80")


def rate_of(value: object) -> float:
    """A number of requests a second; `InvalidInput` unless it is finite and at least 1."""
    return number(value, "rate", "a finite number of at least 1", 1.0)


def is_foreign(headers: Iterable[tuple[bytes, bytes]], origins: frozenset[str]) -> bool:
    """Return True if a page of another site sends the request, as its browser says.

    headers : of the request. origins : the other sites that may send.

    A browser that is asked by a page of the collector's own says so (``sec-fetch-site``), or else names the host that
    it asks. A program that is no browser names no origin, and may send.
    """
    sent: dict[bytes, list[str]] = {}
    for name, value in headers:
        sent.setdefault(name.lower(), []).append(value.decode("latin-1").lower())
    sites, named = sent.get(b"sec-fetch-site", []), sent.get(b"origin", [])
    if not named:
        return any(site not in ("same-origin", "none") for site in sites)
    if len(named) > 1 or len(sites) > 1:
        return True
    if named[0] in origins:
        return False
    if sites:
        return sites != ["same-origin"]
    return named[0].partition("://")[2] not in sent.get(b"host", [])


class Bucket:
    """Lets through `rate` requests a second on average, and at most `2 * rate` at once."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._clock = rate_of(rate), clock
        self._tokens, self._then = 2 * rate, clock()

    def take(self) -> bool:
        """Return True if one more request is let through."""
        now = self._clock()
        self._tokens = min(2 * self._rate, self._tokens + (now - self._then) * self._rate)
        self._then = now
        if not self._tokens >= 1:
            return False
        self._tokens -= 1
        return True
