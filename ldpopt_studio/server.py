"""The studio as a process: its files, views and jobs, and the checks of who may ask for them.

Views answer at once, in a process of theirs; jobs run in others. Each can be killed.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldpopt.errors import InvalidInput
from ldpopt.extras import need
from ldpopt.files import strict
from ldpopt_studio.processes import Jobs, Views, sweep
from ldpopt_survey.server.submission import Refused
from ldpopt_survey.server.web import (
    HEADERS,
    Sender,
    encode_headers,
    file_response,
    json_response,
    no_route,
    read_body,
    refusal,
    static_files,
)

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response


VIEWS = {
    "takeaway": "takeaway:view", "inspect": "inspect:view", "tell": "tell:view", "compare": "tell:compare",
    "ask": "ask:view", "meaning": "meaning:view", "load": "load:view", "examples": "load:examples",
}  # fmt: skip
"""For each NAME in ``/api/NAME`` the ``module:function`` of this package, called with a state."""
JOBS = {
    "report": "takeaway:page", "takeaway": "takeaway:taken", "inspect": "inspect:view", "design": "tell:job",
    "envelope": "tell:envelope", "phases": "tell:phases", "survey": "ask:told", "split": "ask:split",
    "questionnaire": "questionnaire:planned", "growth": "questionnaire:growth",
}  # fmt: skip
"""For each NAME in ``/api/jobs/NAME`` the ``module:function``, called with a state and a function for the progress."""
MAX_REQUEST = 8 << 20
"""The most bytes of a request."""
FILES = Path(__file__).parent / "static"

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_ALWAYS = encode_headers({**HEADERS, "cross-origin-resource-policy": "same-origin"})


def studio(token: str, port: int, start: Mapping[str, Any] | None = None) -> Starlette:
    """The ASGI application of the studio at this port, for a browser on this machine that has the token."""
    need("starlette")
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.middleware import Middleware
    from starlette.routing import Route

    answers = _Studio(dict(start or {}))
    routes = [
        Route("/api/start", answers.start, methods=["GET"]),
        Route("/api/jobs/{name}", answers.begin, methods=["POST"]),
        Route("/api/jobs/{which}", answers.look, methods=["GET", "DELETE"]),
        Route("/api/{name}", answers.view, methods=["POST"]),
        Route("/{path:path}", answers.page, methods=["GET"]),
    ]
    return Starlette(
        routes=routes,
        middleware=[Middleware(_Guard, token=token, port=port)],
        exception_handlers={HTTPException: no_route, Refused: _refused},
        lifespan=answers.lifespan,
    )


class _Studio:
    """The functions that answer requests which the guard has accepted."""

    def __init__(self, start: dict[str, Any]) -> None:
        self._start, self._files, self._jobs, self._views = start, static_files(FILES), Jobs(JOBS), Views()

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Keep a process for jobs ready while the studio runs, and end all processes afterwards."""
        await asyncio.to_thread(sweep)
        await asyncio.to_thread(self._views.warm)
        await asyncio.to_thread(self._jobs.warm)
        try:
            yield
        finally:
            self._views.close()
            self._jobs.close()

    async def start(self, _: Request) -> Response:
        """The first states of the page."""
        from ldpopt.version import __version__

        return json_response(200, {"version": __version__, "states": self._start})

    async def view(self, request: Request) -> Response:
        """The document of a view for a state."""
        place = VIEWS.get(request.path_params["name"])
        if place is None:
            raise Refused(404, "There is no view of this name.")
        state = await _state(request)
        outcome = await self._views.outcome(place, state, request.is_disconnected)
        if "result" in outcome:
            return json_response(200, outcome["result"])
        return json_response(422, {"errors": outcome.get("errors") or {"": outcome["error"]}})

    async def begin(self, request: Request) -> Response:
        """Start a job for a state."""
        name = request.path_params["name"]
        if name not in JOBS:
            raise Refused(404, "There is no job of this name.")
        state = await _state(request)
        return json_response(202, {"job": await asyncio.to_thread(self._jobs.start, name, state)})

    async def look(self, request: Request) -> Response:
        """Return the progress of a job, or kill it."""
        cancelled = request.method == "DELETE"
        ask: Any = self._jobs.cancel if cancelled else self._jobs.look
        known = await asyncio.to_thread(ask, request.path_params["which"])
        if not known:
            raise Refused(404, "There is no job of this id.")
        return json_response(200, {"cancelled": True} if cancelled else known)

    async def page(self, request: Request) -> Response:
        """A file of the page, from memory."""
        return file_response(self._files, request, PAGE_POLICY)


class _Guard:
    """Refuses requests that are not from the page on this machine, before reading their body, and adds headers."""

    def __init__(self, app: Any, token: str, port: int) -> None:
        self._app, self._token = app, token.encode()
        hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}
        self._hosts = {host.encode() for host in hosts}
        self._origins = {f"http://{host}".encode() for host in hosts}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        sent = Sender(send, _ALWAYS)
        if (refused := self._refuses(scope)) is not None:
            await refused(scope, receive, sent)
            return
        try:
            await self._app(scope, receive, sent)
        except Exception:
            if not sent.has_begun:
                await refusal(500, "Something went wrong here; the terminal says more.")(scope, receive, sent)
            raise

    def _refuses(self, scope: Any) -> Response | None:
        given: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            given.setdefault(name.lower(), []).append(value)
        hosts, origins = given.get(b"host", []), given.get(b"origin", [])
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return refusal(421, "The studio answers on this machine alone.")
        if len(origins) > 1 or any(origin.lower() not in self._origins for origin in origins):
            return refusal(403, "Another site's page may not ask this.")
        if scope["path"].startswith("/api/"):
            tokens = given.get(b"x-studio-token", [])
            if len(tokens) != 1 or not hmac.compare_digest(tokens[0], self._token):
                return refusal(401, "This needs the token in the address that `ldpopt studio` printed.")
            sites = given.get(b"sec-fetch-site", [])
            if any(site not in (b"same-origin", b"none") for site in sites):
                return refusal(403, "Another site's page may not ask this.")
        return None


async def _refused(_: Request, refused: Any) -> Response:
    return refusal(refused.status, refused.error)


async def _state(request: Request) -> dict[str, Any]:
    """The state in a request, of which at most `MAX_REQUEST` bytes are read."""
    read = await read_body(request, MAX_REQUEST, "A state", f"A state has at most {MAX_REQUEST >> 20} MB.")
    try:
        state = strict.json_value(read, "the state")
    except InvalidInput as error:
        raise Refused(400, str(error)) from None
    if not isinstance(state, dict):
        raise Refused(400, "A state is a JSON object.")
    return state


def new_token() -> str:
    """A new token, which is valid until the studio ends."""
    return secrets.token_urlsafe(24)
