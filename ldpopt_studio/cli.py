"""Open a page on which you drag populations and limits, and see the certified optimum change.

This is ``ldpopt studio``, which serves the page on this machine and opens a browser.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ldpopt.cli import Command, FileFlags, options, say
from ldpopt.errors import InvalidInput
from ldpopt.files.atomic import create_private

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

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
    print(where, flush=True)  # in one piece, however narrow the terminal
    say("The studio runs until Ctrl-C, for this machine alone.")
    with nullcontext() if no_browser else _opened(where):
        serve(application(token, number, start), listener, quick_shutdown=True)


@contextmanager
def _opened(where: str) -> Iterator[None]:
    """Open an address in the browser while the block runs, which answers it.

    The address holds the token, and a program's arguments are seen by everybody on the machine. So the browser is given
    a file that only this user can read, which leads there.
    """
    import threading
    import webbrowser
    from html import escape
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="ldpopt-open-", ignore_cleanup_errors=True) as folder:
        page = Path(folder, "studio.html")
        link = escape(where)
        text = f"""<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url={link}"><title>ldpopt studio</title><a href="{link}">ldpopt studio</a>
"""
        create_private(page, text.encode())
        # Some browsers do not return before they are closed.
        threading.Thread(target=webbrowser.open, args=(page.as_uri(),), daemon=True).start()
        yield


def _listening(port: int | None) -> socket.socket:
    """A socket on loopback, at the given port; by default at the usual port, or at another if that is taken."""
    from ldpopt_survey.server.web import listen

    try:
        return listen("127.0.0.1", _USUAL if port is None else port)
    except InvalidInput as error:
        if port is not None:
            raise InvalidInput(str(error).replace("--host and --port", "--port")) from None
        return listen("127.0.0.1", 0)


app = typer.Typer()
app.command(cls=Command)(studio)
