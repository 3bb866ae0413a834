"""The one task that writes. Submissions that arrive during a commit are stored together by the next commit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime

from ldpopt.survey.server.store import Outcome, RoundState, Store, Unavailable
from ldpopt.survey.server.submission import Submission

LARGEST = 512
"""The most submissions in one transaction."""
WAITING = 8192
"""The most submissions that may wait for the next transaction."""


class Full(Exception):
    """Too many submissions wait already."""


def today() -> str:
    """The day in UTC. No finer time is ever stored."""
    return datetime.now(UTC).date().isoformat()


class Writer:
    """Writes submissions to a store, many in one commit. `submit` returns when the commit is durable.

    The store has a thread of its own, so the event loop reads further requests while the thread waits for the disk.
    """

    def __init__(self, store: Store, day: Callable[[], str] = today) -> None:
        self._store, self._day = store, day
        self._waiting: list[tuple[Submission, asyncio.Future[Outcome]]] = []
        self._more = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "ldpopt-writer")
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the writing task in the running event loop."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Write all waiting submissions, and end."""
        while self._waiting:
            self._more.set()
            await asyncio.sleep(0.01)
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        self._thread.shutdown(wait=True)

    async def submit(self, submission: Submission) -> Outcome:
        """Store a submission and return its outcome; `Full` if too many wait, `Unavailable` if the database fails."""
        if len(self._waiting) >= WAITING:
            raise Full
        done: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting.append((submission, done))
        self._more.set()
        return await done

    async def state(self) -> RoundState:
        """The round's state, asked between two commits."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._store.state)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._more.wait()
            self._more.clear()
            while self._waiting:
                taken = self._waiting[:LARGEST]
                batch = [submission for submission, _ in taken]
                try:
                    outcomes = await loop.run_in_executor(self._thread, self._store.write, batch, self._day())
                except Exception as error:  # every waiting request must get an answer, whatever went wrong
                    for _, done in taken:
                        if not done.done():
                            done.set_exception(error if isinstance(error, Unavailable) else Unexpected(error))
                else:
                    for (_, done), outcome in zip(taken, outcomes, strict=True):
                        if not done.done():
                            done.set_result(outcome)
                del self._waiting[: len(taken)]


class Unexpected(RuntimeError):
    """An unexpected error of the writer. Only its kind is shown, since its message may quote what was stored."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(type(error).__name__)
