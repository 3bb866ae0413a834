"""Requests become stored reports: the collector's ASGI application, its limit on requests, and the task that writes.

It serves a kit and keeps nothing about a sender but the reports. Submissions that arrive during a commit are stored
together by the next commit.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import logging
import math
import time
import traceback
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ldpopt.extras import need
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.server.decide import Outcome, RoundState
from ldpopt_survey.server.health import TEXT, Health
from ldpopt_survey.server.limits import HEADER_BYTES, Bucket, is_foreign, origin_of
from ldpopt_survey.server.progress import Progress, page
from ldpopt_survey.server.store import SETTLE_INTERVAL_SECONDS, Store, Unavailable
from ldpopt_survey.server.submission import Reader, Refused, Submission
from ldpopt_survey.server.web import (
    HEADERS,
    Sender,
    StaticFile,
    encode_headers,
    file_response,
    json_response,
    no_route,
    read_body,
    refusal,
)

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response


MAX_BATCH = 512
"""The most submissions in one transaction."""
MAX_WAITING = 8192
"""The most submissions that may wait for the next transaction."""
BUSY_MESSAGE = "There are too many submissions at this moment."


def today() -> str:
    """Return the day in UTC. No finer time is ever stored."""
    return datetime.now(UTC).date().isoformat()


class Writer:
    """Writes submissions to a store, many in one commit. `submit` returns when the commit is durable.

    The store has a thread of its own, so that the event loop reads requests while the thread waits for the disk.
    """

    def __init__(self, store: Store, day: Callable[[], str] = today) -> None:
        self._store, self._day = store, day
        self.health = Health(self._probe)
        self._waiting: list[tuple[Submission, asyncio.Future[Outcome]]] = []
        self._has_work = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "ldpopt-writer")
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the writing task in the running event loop."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Write all waiting submissions, and end."""
        while self._waiting:
            self._has_work.set()
            await asyncio.sleep(0.01)
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        self._thread.shutdown(wait=True)

    async def submit(self, submission: Submission) -> Outcome:
        """Store a submission and return its outcome; `Refused` if too many wait, `Unavailable` without a database."""
        if len(self._waiting) >= MAX_WAITING:
            raise Refused(429, BUSY_MESSAGE)
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting.append((submission, future))
        self._has_work.set()
        return await future

    @property
    def metrics(self) -> bytes:
        """The counters of the work so far."""
        return self.health.metrics(len(self._waiting), self._store.free())

    async def _probe(self) -> RoundState:
        """The round's state after a durable write between two commits."""
        start = time.monotonic()
        state = await asyncio.get_running_loop().run_in_executor(self._thread, self._store.probe)
        self.health.count_commit(time.monotonic() - start)
        return state

    async def _settle(self) -> bool:
        """Run `Store.settle` while nobody submits.

        A failure is tried again, and makes `/readyz` require a new write.
        """
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._store.settle)
        except Exception:  # the next submission gets its answer from `write`
            self.health.record_failure()
            return False

    async def _run(self) -> None:
        loop, is_settled = asyncio.get_running_loop(), False
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(None if is_settled else SETTLE_INTERVAL_SECONDS):
                    await self._has_work.wait()
            if not self._has_work.is_set():
                is_settled = await self._settle()
            self._has_work.clear()
            while self._waiting:
                entries = self._waiting[:MAX_BATCH]
                batch, start = [submission for submission, _ in entries], time.monotonic()
                is_settled = is_settled and all(submission.invitation is None for submission in batch)
                try:
                    outcomes = await loop.run_in_executor(self._thread, self._store.write, batch, self._day())
                except Exception as error:  # every waiting request must get an answer after any error
                    self.health.record_failure()
                    for _, future in entries:
                        if not future.done():
                            future.set_exception(error if isinstance(error, Unavailable) else Unexpected(error))
                else:
                    self.health.count_commit(time.monotonic() - start)
                    for (_, future), outcome in zip(entries, outcomes, strict=True):
                        if not future.done():
                            future.set_result(outcome)
                del self._waiting[: len(entries)]


class Unexpected(RuntimeError):
    """An unexpected error of the writer. Only its type is shown, since its message may quote stored data."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(type(error).__name__)


PROGRESS_PAGE_SECONDS = 10.0
"""Seconds for which the page of progress is cached."""
DEFAULT_RATE = 2000.0
"""Submissions a second that are accepted by default."""
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; manifest-src 'self'; worker-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

_ENCODED_HEADERS = encode_headers(HEADERS)
_REFUSALS = {
    Outcome.CONFLICT: (409, "Another submission with this id is stored already."),
    Outcome.UNINVITED: (403, "This round takes only submissions with an invitation that was not used yet."),
    Outcome.CLOSED: (503, "This round is closed."),
}
_LOG = logging.getLogger("ldpopt.collector")


def collector(
    plan: Plan,
    store: Store,
    kit: Mapping[str, StaticFile] | None = None,
    token: str | None = None,
    origins: Sequence[str] = (),
    rate: float = DEFAULT_RATE,
    progress: Callable[[], Sequence[Progress]] | None = None,
) -> Starlette:
    """Build the ASGI application that collects reports of `plan` into `store`.

    Parameters
    ----------
    plan : The plan of the round.
    store : The round in a database, from `database`. The application closes it when it ends.
    kit : The files of the questionnaire by path, from `static_files`.
    token : A secret that allows its sender to read ``/counts``; without a token nobody may.
    origins : Other sites whose pages may submit, such as ``https://survey.example``; those of all others are refused.
    rate : The average number of submissions per second that are accepted, at least 1.
    progress : Computes the distance of the questions from their target widths. ``/progress`` shows it to holders of the
        token, which a browser sends as the password.

    Returns
    -------
    starlette.applications.Starlette
        The application, with the routes below.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from ldpopt_survey import QuestionSpec, SurveySpec, make_plan
    >>> from ldpopt_survey.server import database
    >>> plan = make_plan(SurveySpec("demo", (QuestionSpec("vote", ("no", "yes")),)), {"vote": [[0.75, 0.25]] * 2})
    >>> with TemporaryDirectory() as folder, database(Path(folder, "reports.db"), plan, create=True) as store:
    ...     [route.path for route in collector(plan, store).routes]
    ['/submissions', '/healthz', '/readyz', '/metrics', '/counts', '/progress', '/{path:path}']
    """
    need("starlette")
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.middleware import Middleware
    from starlette.middleware.cors import CORSMiddleware
    from starlette.routing import Route

    allowed_origins = [origin_of(origin) for origin in origins]
    answers = _Collector(plan, store, kit or {}, token, rate, progress, frozenset(allowed_origins))
    routes = [
        Route("/submissions", answers.submit, methods=["POST"]),
        Route("/healthz", answers.alive, methods=["GET"]),
        Route("/readyz", answers.ready, methods=["GET"]),
        Route("/metrics", answers.metrics, methods=["GET"]),
        Route("/counts", answers.counts, methods=["GET"]),
        Route("/progress", answers.progress, methods=["GET"]),
        Route("/{path:path}", answers.page, methods=["GET"]),
    ]
    middleware = [Middleware(_Headers)]
    if allowed_origins:
        cors_options = {"allow_origins": allowed_origins, "allow_methods": ["POST"], "allow_headers": ["content-type"]}
        middleware.append(Middleware(CORSMiddleware, **cors_options))
    handlers = {HTTPException: no_route}
    return Starlette(routes=routes, middleware=middleware, exception_handlers=handlers, lifespan=answers.lifespan)


class _Collector:
    """The functions that answer requests."""

    def __init__(
        self, plan: Plan, store: Store, kit: Mapping[str, StaticFile], token: str | None, rate: float,
        progress: Callable[[], Sequence[Progress]] | None, origins: frozenset[str],
    ) -> None:  # fmt: skip
        self._origins = origins
        self._plan, self._store, self._kit, self._token = plan, store, kit, token
        self._progress, self._page, self._page_time = progress, b"", -math.inf
        self._computing = asyncio.Lock()
        self._reader, self._writer = Reader(plan, store.other_rounds()), Writer(store)
        self._bucket = Bucket(rate)
        self._last_complaint = -math.inf

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Run the writer while requests come, and close the database afterwards."""
        self._writer.start()
        try:
            yield
        finally:
            await self._writer.stop()
            self._store.close()

    async def submit(self, request: Request) -> Response:
        """Store the reports of a submission, and count the answer."""
        answer = await self._answer(request)
        self._writer.health.count_answer(answer.status_code)
        return answer

    async def _answer(self, request: Request) -> Response:
        try:
            if not self._bucket.take():
                raise Refused(429, BUSY_MESSAGE)
            if is_foreign(request.scope["headers"], self._origins):
                raise Refused(403, "A page of another site may not submit here.")
            limit = self._reader.limit
            too_long = f"A submission to this plan has at most {limit} bytes."
            submission = self._reader.read(await read_body(request, limit, "A submission", too_long))
            outcome = await self._writer.submit(submission)
        except Refused as refused:
            return refusal(refused.status, refused.error)
        except Unavailable as error:
            now = time.monotonic()
            if now - self._last_complaint >= 5:  # a full disk may be that of the log, too
                self._last_complaint = now
                _LOG.error("%s", error)
            return refusal(503, "Reports cannot be stored at this moment.")
        if outcome in (Outcome.STORED, Outcome.REPEATED):
            return json_response(201 if outcome is Outcome.STORED else 200, {"stored": True})
        return refusal(*_REFUSALS[outcome])

    async def alive(self, _: Request) -> Response:
        """That the process answers, and nothing more."""
        return json_response(200, {"ok": True})

    async def ready(self, _: Request) -> Response:
        """Answer if a durable write succeeded within the last seconds, so that a submission would be stored."""
        closed = await self._writer.health.ready()
        if closed is None:
            return refusal(503, "Reports cannot be stored at this moment.")
        return json_response(200, {"ok": True, "closed": closed})

    async def counts(self, request: Request) -> Response:
        """The numbers of reports and invitations, for the holder of the token."""
        if (response := self._token_refusal(request, "Bearer")) is not None:
            return response
        try:
            summary = await asyncio.to_thread(self._store.summary)
        except Unavailable:
            return refusal(503, "The database does not answer.")
        plan: dict[str, Any] = {"survey": self._plan.name, "round": self._plan.round, "plan": self._plan.checksum}
        plan |= {"closed": summary.closed, "reports": summary.reports, "days": dict(summary.days)}
        return json_response(200, plan | {"invitations": {"drawn": summary.drawn, "used": summary.used}})

    async def metrics(self, request: Request) -> Response:
        """The counters of the collector since its start, for Prometheus, which sends the token."""
        from starlette.responses import Response

        if (response := self._token_refusal(request, "Bearer")) is not None:
            return response
        return Response(self._writer.metrics, 200, {"content-type": TEXT})

    async def progress(self, request: Request) -> Response:
        """The distance of the questions from their target widths, for the holder of the token."""
        from starlette.responses import Response

        if (response := self._token_refusal(request, "Basic")) is not None or self._progress is None:
            return response or refusal(404, "There is nothing here.")
        async with self._computing:
            if time.monotonic() - self._page_time > PROGRESS_PAGE_SECONDS:
                try:
                    questions = await asyncio.to_thread(self._progress)
                except Unavailable:
                    return refusal(503, "The database does not answer.")
                self._page = page(f"{self._plan.name}, round {self._plan.round}", questions)
                self._page_time = time.monotonic()
        return Response(self._page, 200, {"content-type": "text/html; charset=utf-8"})

    def _token_refusal(self, request: Request, scheme: str) -> Response | None:
        """The answer to a request without the token, which a browser sends as a password; None with it."""
        if self._token is None:
            return refusal(404, "There is nothing here.")
        kind, _, credentials = request.headers.get("authorization", "").partition(" ")
        kind, credentials = kind.lower(), credentials.strip()  # the scheme is written in any case (RFC 9110)
        if kind == "basic":
            with suppress(ValueError):
                credentials = base64.b64decode(credentials, validate=True).decode("latin-1").partition(":")[2]
        is_supported = kind in ("basic", "bearer")
        if not (is_supported and hmac.compare_digest(credentials.encode("latin-1", "replace"), self._token.encode())):
            return refusal(401, "This needs the collector's token.", {"www-authenticate": scheme})
        return None

    async def page(self, request: Request) -> Response:
        """A file of the kit."""
        return file_response(self._kit, request, PAGE_POLICY)


class _Headers:
    """Adds the headers of every answer, and answers unexpected errors without their messages, which may quote data."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        sender = Sender(send, _ENCODED_HEADERS)
        if sum(len(name) + len(value) for name, value in scope["headers"]) > HEADER_BYTES:
            await refusal(431, "The headers of the request are long.")(scope, receive, sender)
            return
        try:
            await self._app(scope, receive, sender)
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{frame.filename.rpartition('/')[2]}:{frame.lineno}"
            _LOG.error("unexpected %s in %s (not shown, since it may quote what was sent)", type(error).__name__, place)
            if not sender.has_begun:
                await refusal(500, "Something went wrong here.")(scope, receive, sender)
