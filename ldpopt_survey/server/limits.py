"""Limits on the bytes and seconds of a connection before its request, and on the rate and origin of requests.

The origin is the site of the page that sends the request, as its browser states.

Bodies have limits of their own (`ldpopt_survey.server.web.read_body`).
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
    """Return the class that reads requests for uvicorn within these limits."""
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    base: Any = AutoHTTPProtocol

    class Limited(base):  # type: ignore[misc]
        """Counts bytes and seconds while no request is being answered."""

        _byte_count = 0
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._timer = self.loop.call_later(HEADER_SECONDS, self._close_if_idle)

        def connection_lost(self, exc: Exception | None) -> None:
            if self._timer is not None:
                self._timer.cancel()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            if self._idle() and self._timer is None:
                self._timer = self.loop.call_later(HEADER_SECONDS, self._close_if_idle)
            super().data_received(data)
            if not self._idle():
                self._byte_count = 0
                if self._timer is not None:
                    self._timer.cancel()
                    self._timer = None
                return
            self._byte_count += len(data)
            if self._byte_count > HEADER_BYTES and not self.transport.is_closing():
                self.transport.write(_TOO_LONG)
                self.transport.close()

        def _idle(self) -> bool:
            return self.cycle is None or self.cycle.response_complete

        def _close_if_idle(self) -> None:
            if self._idle() and not self.transport.is_closing():
                self.transport.close()

    return Limited


_ORIGIN = re.compile(r"(?:https://(?P<host>[a-z0-9.-]+|\[[0-9a-f:]+\])(?P<port>:[0-9]{1,5})?|"
                     r"http://(?:localhost|127\.0\.0\.1|\[::1\])(?::[0-9]{1,5})?)")  # fmt: skip


def origin_of(text: object) -> str:
    """Normalize the origin of a site as in its requests; raise `InvalidInput` for other text.

    >>> origin_of("https://Survey.example:443")
    'https://survey.example'
    """
    lowercase = text.lower() if isinstance(text, str) else ""
    if _ORIGIN.fullmatch(lowercase) is None:
        expected = "https://HOST or https://HOST:PORT without a path or a slash (http only for localhost)"
        raise invalid("origin", expected, text if isinstance(text, str) else Phrase(type(text).__name__))
    return lowercase.removesuffix(":443") if lowercase.startswith("https") else lowercase.removesuffix(":80")


def rate_of(value: object) -> float:
    """Check a number of requests per second: finite and at least 1, else `InvalidInput`."""
    return number(value, "rate", "a finite number of at least 1", 1.0)


def is_foreign(headers: Iterable[tuple[bytes, bytes]], origins: frozenset[str]) -> bool:
    """Return True if a page of another site sends the request, as its browser states.

    headers : those of the request.

    origins : the other sites that may send.

    For a page of the collector itself, a browser states this (``sec-fetch-site``), or else names the host of the
    request. Programs other than browsers name no origin, and may send.
    """
    values_by_name: dict[bytes, list[str]] = {}
    for name, value in headers:
        values_by_name.setdefault(name.lower(), []).append(value.decode("latin-1").lower())
    sites, named_origins = values_by_name.get(b"sec-fetch-site", []), values_by_name.get(b"origin", [])
    if not named_origins:
        return any(site not in ("same-origin", "none") for site in sites)
    if len(named_origins) > 1 or len(sites) > 1:
        return True
    if named_origins[0] in origins:
        return False
    if sites:
        return sites != ["same-origin"]
    return named_origins[0].partition("://")[2] not in values_by_name.get(b"host", [])


class Bucket:
    """Lets through `rate` requests a second on average, and at most `2 * rate` at once."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._clock = rate_of(rate), clock
        self._tokens, self._last_time = 2 * rate, clock()

    def take(self) -> bool:
        """Return True if one more request is let through."""
        now = self._clock()
        self._tokens = min(2 * self._rate, self._tokens + (now - self._last_time) * self._rate)
        self._last_time = now
        if not self._tokens >= 1:
            return False
        self._tokens -= 1
        return True
