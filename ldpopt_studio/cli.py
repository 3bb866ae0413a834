"""Open a page on which you drag populations and limits, and see the certified optimum change.

This is ``ldpopt studio``, which serves the page on this machine and opens a browser.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from ldpopt.cli import Command, FileFlags, options, say
from ldpopt.errors import InvalidInput

if TYPE_CHECKING:
    import socket

_USUAL = 8471


@options("""
    port: --port PORT | Port on this machine; 0 chooses a free one. [default: 8471, if free]
    no_browser: --no-browser | Do not open a browser.
    """)
def studio(people: FileFlags, port: int | None = None, no_browser: bool = False) -> None:
    """Open a page on which you drag populations and limits, and see the certified optimum change.

    The page is served to this machine only. The first printed line is its address, with a token. Ctrl-C ends it.

    ldpopt studio people.csv --answer smokes --group region
    """
    import webbrowser

    from ldpopt.extras import need
    from ldpopt_studio.load import state_of
    from ldpopt_studio.server import new_token
    from ldpopt_studio.server import studio as application
    from ldpopt_survey.server.web import address, serve

    need("starlette", "uvicorn", extra="studio")
    start: dict[str, Any] = {}
    if people.file is not None:
        start["tell"] = state_of(people.read())
    listener, token = _listening(port), new_token()
    number = listener.getsockname()[1]
    where = f"{address('127.0.0.1', listener)}/?token={token}"
    print(where)  # in one piece, however narrow the terminal
    say("The studio runs until Ctrl-C, for this machine alone.")
    if not no_browser:
        webbrowser.open(where)
    serve(application(token, number, start), listener, hurried=True)


def _listening(port: int | None) -> socket.socket:
    """A socket on loopback, at the given port; by default at the usual port, or at another if that is taken."""
    from ldpopt_survey.server.web import listening

    try:
        return listening("127.0.0.1", _USUAL if port is None else port)
    except InvalidInput as error:
        if port is not None:
            raise InvalidInput(str(error).replace("--host and --port", "--port")) from None
        return listening("127.0.0.1", 0)


app = typer.Typer()
app.command(cls=Command)(studio)
