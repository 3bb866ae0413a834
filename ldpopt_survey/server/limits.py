"""Limits on what a connection may send before there is a request (bytes and seconds of headers), and on requests.

Bodies have limits of their own (`ldpopt_survey.server.web.body`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

HEADER_BYTES = 16_384
"""The most bytes of a request's line and headers."""
HEADER_SECONDS = 20.0
"""Seconds in which they must have arrived, from the first byte or from the beginning of the connection."""

_TOO_LONG = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/json\r\ncontent-length: 48\r\n"
    b'connection: close\r\n\r\n{"error":"The headers of the request are long."}'
)


def limited_protocol() -> type[Any]:
    """The protocol with which uvicorn reads requests, within these limits."""
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


class Bucket:
    """Lets through `rate` requests a second on average, and at most `2 * rate` at once."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._clock = rate, clock
        self._tokens, self._then = 2 * rate, clock()

    def take(self) -> bool:
        """Whether one more request is let through."""
        now = self._clock()
        self._tokens = min(2 * self._rate, self._tokens + (now - self._then) * self._rate)
        self._then = now
        if not self._tokens >= 1:
            return False
        self._tokens -= 1
        return True
