"""A limit on requests: one bucket of tokens for all senders, since one for each would require keeping addresses."""

from __future__ import annotations

import time
from collections.abc import Callable


class Bucket:
    """Lets through `rate` requests a second on average, and at most `2 * rate` at once.

    >>> bucket = Bucket(1, clock=lambda: 0.0)
    >>> [bucket.take() for _ in range(3)]
    [True, True, False]
    """

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
