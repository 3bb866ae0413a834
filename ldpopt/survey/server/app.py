"""The collector: an ASGI application that serves a kit and accepts reports, and keeps nothing else of the sender."""

from __future__ import annotations

import asyncio
import hmac
import logging
import math
import time
import traceback
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from ldpopt.extras import need
from ldpopt.survey.plan.plan import Plan
from ldpopt.survey.server.limit import Bucket
from ldpopt.survey.server.static import StaticFile
from ldpopt.survey.server.store import Outcome, RoundState, Store, Unavailable
from ldpopt.survey.server.submission import Reader, Refused
from ldpopt.survey.server.writer import Full, Writer

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

RATE = 2000.0
"""Submissions a second that are let through, unless told otherwise."""
SLOWEST = 20.0
"""Seconds in which a submission must have arrived."""

HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; manifest-src 'self'; worker-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
DATA_POLICY = "default-src 'none'; frame-ancestors 'none'"

_ADDED = [
    (name.encode(), value.encode())
    for name, value in {**HEADERS, "content-security-policy": DATA_POLICY, "cache-control": "no-store"}.items()
]

_ANSWERS = {
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
    rate: float = RATE,
) -> Starlette:
    """The ASGI application that collects reports of `plan` into `store`, which it closes when it ends.

    kit : files by path, from `static_files`. token : whoever sends it may read ``/counts``; without one nobody may.
    origins : other sites whose pages may submit, such as ``https://survey.example``. rate : submissions a second.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from ldpopt.survey import QuestionSpec, SurveySpec, make_plan
    >>> from ldpopt.survey.server import database
    >>> spec = SurveySpec("demo", (QuestionSpec("vote", ("no", "yes")),))
    >>> plan = make_plan(spec, {"vote": [[0.75, 0.25], [0.25, 0.75]]})
    >>> with TemporaryDirectory() as folder, database(Path(folder, "reports.db"), plan, create=True) as store:
    ...     [route.path for route in collector(plan, store).routes]
    ['/submissions', '/healthz', '/counts', '/{path:path}']
    """
    need("starlette")
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.middleware import Middleware
    from starlette.middleware.cors import CORSMiddleware
    from starlette.routing import Route

    made = _Collector(plan, store, kit or {}, token, rate)
    routes = [
        Route("/submissions", made.submit, methods=["POST"]),
        Route("/healthz", made.health, methods=["GET"]),
        Route("/counts", made.counts, methods=["GET"]),
        Route("/{path:path}", made.page, methods=["GET"]),
    ]
    middleware = [Middleware(_Headers)]
    if origins:
        middleware.append(
            Middleware(CORSMiddleware, allow_origins=origins, allow_methods=["POST"], allow_headers=["content-type"])
        )
    return Starlette(
        routes=routes,
        middleware=middleware,
        exception_handlers={HTTPException: _http_error},
        lifespan=made.lifespan,
    )


class _Collector:
    """The answers to requests."""

    def __init__(self, plan: Plan, store: Store, kit: Mapping[str, StaticFile], token: str | None, rate: float) -> None:
        self._plan, self._store, self._kit, self._token = plan, store, kit, token
        self._reader, self._writer = Reader(plan, store.others()), Writer(store)
        self._bucket = Bucket(rate)
        self._health: asyncio.Task[RoundState] | None = None
        self._asked = self._complained = -math.inf

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Write while requests come, and let go of the database afterwards."""
        self._writer.start()
        try:
            yield
        finally:
            await self._writer.stop()
            self._store.close()

    async def submit(self, request: Request) -> Response:
        """Store the reports of a submission."""
        try:
            if not self._bucket.take():
                raise Refused(429, "There are too many submissions at this moment.")
            submission = self._reader.read(await _body(request, self._reader.limit))
            outcome = await self._writer.submit(submission)
        except Refused as refused:
            return _error(refused.status, refused.error)
        except Full:
            return _error(429, "There are too many submissions at this moment.")
        except Unavailable as error:
            self._complain(error)
            return _error(503, "Reports cannot be stored at this moment.")
        if outcome in (Outcome.STORED, Outcome.REPEATED):
            return _json(201 if outcome is Outcome.STORED else 200, {"stored": True})
        return _error(*_ANSWERS[outcome])

    def _complain(self, error: Unavailable) -> None:
        """Log what is wrong with the database, at most every few seconds: its disk may be the log's, too."""
        now = time.monotonic()
        if now - self._complained >= 5:
            self._complained = now
            _LOG.error("%s", error)

    async def health(self, _: Request) -> Response:
        """Whether the database answers, asked at most once a second."""
        now = asyncio.get_running_loop().time()
        if self._health is None or (self._health.done() and now - self._asked >= 1):
            self._health, self._asked = asyncio.create_task(self._writer.state()), now
        try:
            state = await asyncio.shield(self._health)
        except Unavailable:
            return _error(503, "The database does not answer.")
        return _json(200, {"ok": True, "closed": state.closed})

    async def counts(self, request: Request) -> Response:
        """How many reports and invitations there are, for the holder of the token."""
        if self._token is None:
            return _error(404, "There is nothing here.")
        given = request.headers.get("authorization", "").encode("latin-1")
        if not hmac.compare_digest(given, f"Bearer {self._token}".encode()):
            return _error(401, "This needs the collector's token.", {"www-authenticate": "Bearer"})
        try:
            found = await asyncio.to_thread(self._store.summary)
        except Unavailable:
            return _error(503, "The database does not answer.")
        said = {"survey": self._plan.name, "round": self._plan.round, "plan": self._plan.checksum}
        invitations = {"drawn": found.drawn, "used": found.used}
        held = {"closed": found.closed, "reports": found.reports, "days": dict(found.days), "invitations": invitations}
        return _json(200, said | held)

    async def page(self, request: Request) -> Response:
        """A file of the kit."""
        from starlette.responses import Response

        file = self._kit.get(request.scope["path"])
        if file is None:
            return _error(404, "There is nothing here.")
        headers = {"etag": file.tag, "cache-control": "no-cache", "content-security-policy": PAGE_POLICY}
        if request.headers.get("if-none-match") == file.tag:
            return Response(status_code=304, headers=headers)
        return Response(file.content, headers={**headers, "content-type": file.type})


class _Headers:
    """Headers of every answer, and an answer to what nobody thought of, whose message may quote what was sent."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        begun = False

        async def sent(message: Any) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                there = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(pair for pair in _ADDED if pair[0] not in there)]
            await send(message)

        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            await self._app(scope, receive, sent)
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{frame.filename.rpartition('/')[2]}:{frame.lineno}"
            _LOG.error("unexpected %s in %s (not shown, since it may quote what was sent)", type(error).__name__, place)
            if not begun:
                await _error(500, "Something went wrong here.")(scope, receive, sent)


async def _body(request: Request, limit: int) -> bytes:
    """The body of a submission, at most `limit` bytes of it read."""
    from starlette.requests import ClientDisconnect

    kinds = [kind.replace(" ", "").lower() for kind in request.headers.getlist("content-type")]
    right = kinds in (["application/json"], ["application/json;charset=utf-8"])
    if not right or "content-encoding" in request.headers:
        raise Refused(415, "A submission is application/json, not compressed.")
    said = request.headers.get("content-length", "0")
    if said.isascii() and said.isdigit() and (len(said) > 9 or int(said) > limit):
        raise Refused(413, f"A submission to this plan has at most {limit} bytes.")
    parts, size = [], 0
    try:
        async with asyncio.timeout(SLOWEST):
            async for part in request.stream():
                size += len(part)
                if size > limit:
                    raise Refused(413, f"A submission to this plan has at most {limit} bytes.")
                parts.append(part)
    except ClientDisconnect:
        raise Refused(400, "The body did not arrive whole.") from None
    except TimeoutError:
        raise Refused(408, "The body did not arrive in time.") from None
    return b"".join(parts)


def _json(status: int, content: dict[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    from starlette.responses import JSONResponse

    return JSONResponse(content, status, headers)


def _error(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    later = {"retry-after": "5"} if status in (429, 503) else {}
    return _json(status, {"error": sentence}, {**later, **(headers or {})})


async def _http_error(_: Request, error: Any) -> Response:
    """What no route takes."""
    known = {404: "There is nothing here.", 405: "This is not asked for by that method."}
    return _error(error.status_code, known.get(error.status_code, "The request is not understood."), error.headers)
