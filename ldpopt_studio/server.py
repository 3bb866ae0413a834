"""The studio as a web application: its files, views and jobs, and the checks of each request.

Views answer at once, in one process; jobs run in others. Each process can be killed.
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
from ldpopt_studio.processes import Jobs, Views, remove_stale_folders
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
    "report": "takeaway:report_file", "takeaway": "takeaway:take_away", "inspect": "inspect:view",
    "design": "tell:view_with_progress", "envelope": "tell:envelope", "phases": "tell:phases",
    "survey": "ask:survey_view", "split": "ask:best_split", "questionnaire": "questionnaire:plan_view",
    "growth": "questionnaire:growth",
}  # fmt: skip
"""For each NAME in ``/api/jobs/NAME`` the ``module:function``, called with a state and a progress function."""
MAX_REQUEST = 8 << 20
"""Largest size of a request, in bytes."""
STATIC_FOLDER = Path(__file__).parent / "static"

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_COMMON_HEADERS = encode_headers({**HEADERS, "cross-origin-resource-policy": "same-origin"})


def application(token: str, port: int, start: Mapping[str, Any] | None = None) -> Starlette:
    """Build the ASGI application of the studio.

    Requests below ``/api`` must carry the token. Requests to another host or port are rejected.

    Parameters
    ----------
    token : str
    port : int
        Port on this machine.
    start : mapping, optional
        Initial states by the names of views.
    """
    need("starlette")
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.middleware import Middleware
    from starlette.routing import Route

    handlers = _Studio(dict(start or {}))
    routes = [
        Route("/api/start", handlers.start, methods=["GET"]),
        Route("/api/jobs/{name}", handlers.begin, methods=["POST"]),
        Route("/api/jobs/{job_id}", handlers.poll, methods=["GET", "DELETE"]),
        Route("/api/{name}", handlers.view, methods=["POST"]),
        Route("/{path:path}", handlers.page, methods=["GET"]),
    ]
    return Starlette(
        routes=routes,
        middleware=[Middleware(_Guard, token=token, port=port)],
        exception_handlers={HTTPException: no_route, Refused: _refused},
        lifespan=handlers.lifespan,
    )


class _Studio:
    """Handlers of the requests that the guard has accepted."""

    def __init__(self, start: dict[str, Any]) -> None:
        self._start, self._files, self._jobs, self._views = start, static_files(STATIC_FOLDER), Jobs(JOBS), Views()

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Start a process for views and one for jobs, and stop all processes when the studio ends."""
        await asyncio.to_thread(remove_stale_folders)
        await asyncio.to_thread(self._views.warm)
        await asyncio.to_thread(self._jobs.warm)
        try:
            yield
        finally:
            self._views.close()
            self._jobs.close()

    async def start(self, _: Request) -> Response:
        """Return the initial states of the page."""
        from ldpopt.version import __version__

        return json_response(200, {"version": __version__, "states": self._start})

    async def view(self, request: Request) -> Response:
        """Compute the document of a view for a state."""
        function = VIEWS.get(request.path_params["name"])
        if function is None:
            raise Refused(404, "This view does not exist.")
        state = await _read_state(request)
        outcome = await self._views.outcome(function, state, request.is_disconnected)
        if "result" in outcome:
            return json_response(200, outcome["result"])
        return json_response(422, {"errors": outcome.get("errors") or {"": outcome["error"]}})

    async def begin(self, request: Request) -> Response:
        """Start a job for a state."""
        name = request.path_params["name"]
        if name not in JOBS:
            raise Refused(404, "This job does not exist.")
        state = await _read_state(request)
        return json_response(202, {"job": await asyncio.to_thread(self._jobs.start, name, state)})

    async def poll(self, request: Request) -> Response:
        """Return the progress of a job, or kill it for ``DELETE``."""
        is_cancel = request.method == "DELETE"
        act: Any = self._jobs.cancel if is_cancel else self._jobs.poll
        status = await asyncio.to_thread(act, request.path_params["job_id"])
        if not status:
            raise Refused(404, "This job does not exist any more.")
        return json_response(200, {"cancelled": True} if is_cancel else status)

    async def page(self, request: Request) -> Response:
        """Return a file of the page from memory."""
        return file_response(self._files, request, PAGE_POLICY)


class _Guard:
    """Middleware that adds headers, and rejects requests from elsewhere before it reads their body."""

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
        sender = Sender(send, _COMMON_HEADERS)
        if (response := self._refusal(scope)) is not None:
            await response(scope, receive, sender)
            return
        try:
            await self._app(scope, receive, sender)
        except Exception:
            if not sender.has_begun:
                await refusal(500, "Something went wrong. See the terminal for details.")(scope, receive, sender)
            raise

    def _refusal(self, scope: Any) -> Response | None:
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value)
        hosts, origins = headers.get(b"host", []), headers.get(b"origin", [])
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return refusal(421, "The studio answers only on this machine.")
        if len(origins) > 1 or any(origin.lower() not in self._origins for origin in origins):
            return refusal(403, "Pages of other sites may not use the studio.")
        if scope["path"].startswith("/api/"):
            tokens = headers.get(b"x-studio-token", [])
            if len(tokens) != 1 or not hmac.compare_digest(tokens[0], self._token):
                return refusal(401, "This request needs the token in the address that `ldpopt studio` printed.")
            sites = headers.get(b"sec-fetch-site", [])
            if any(site not in (b"same-origin", b"none") for site in sites):
                return refusal(403, "Pages of other sites may not use the studio.")
        return None


async def _refused(_: Request, error: Any) -> Response:
    return refusal(error.status, error.error)


async def _read_state(request: Request) -> dict[str, Any]:
    """Read the state in a request, at most `MAX_REQUEST` bytes."""
    content = await read_body(request, MAX_REQUEST, "A state", f"A state has at most {MAX_REQUEST >> 20} MB.")
    try:
        state = strict.json_value(content, "the state")
    except InvalidInput as error:
        raise Refused(400, str(error)) from None
    if not isinstance(state, dict):
        raise Refused(400, "A state is a JSON object.")
    return state


def new_token() -> str:
    """Draw a new token, which is valid until the studio ends."""
    return secrets.token_urlsafe(24)
