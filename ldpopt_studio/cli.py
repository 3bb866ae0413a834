"""Open a page that shows the certified optimum while you drag populations and limits.

The command is ``ldpopt studio``. It serves the page to this machine and opens a browser.
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

_DEFAULT_PORT = 8471


@options("""
    port: --port PORT | Port on this machine; 0 chooses a free one. [default: 8471, if free]
    no_browser: --no-browser | Do not open a browser.
    """)
def studio(people: FileFlags, port: int | None = None, no_browser: bool = False) -> None:
    """Open a page that shows the certified optimum while you drag populations and limits.

    The page is served only to this machine. The first printed line is its address, with a token. Ctrl-C ends it.

    ldpopt studio people.csv --answer smokes --group region
    """
    from ldpopt.extras import need
    from ldpopt_studio.load import populations_state
    from ldpopt_studio.server import application, new_token
    from ldpopt_survey.server.web import address, serve

    need("starlette", "uvicorn", extra="studio")
    initial_states: dict[str, Any] = {}
    if people.file is not None:
        initial_states["tell"] = populations_state(people.read())
    listener, token = _listen(port), new_token()
    bound_port = listener.getsockname()[1]
    page_url = f"{address('127.0.0.1', listener)}/?token={token}"
    print(page_url, flush=True)  # in one piece, however narrow the terminal
    say("The studio runs until you press Ctrl-C. Only this machine can open it.")
    with nullcontext() if no_browser else _browser_open(page_url):
        serve(application(token, bound_port, initial_states), listener, quick_shutdown=True)


@contextmanager
def _browser_open(page_url: str) -> Iterator[None]:
    """Open an address in the browser while the block runs and serves it.

    The address holds the token, and every user of the machine can see a program's arguments. So the browser gets a file
    that only this user can read, and the file redirects to the address.
    """
    import threading
    import webbrowser
    from html import escape
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="ldpopt-open-", ignore_cleanup_errors=True) as folder:
        page = Path(folder, "studio.html")
        escaped_url = escape(page_url)
        redirect = f"""<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url={escaped_url}"><title>ldpopt studio</title>
<a href="{escaped_url}">ldpopt studio</a>
"""
        create_private(page, redirect.encode())
        # Some browsers do not return before they are closed.
        threading.Thread(target=webbrowser.open, args=(page.as_uri(),), daemon=True).start()
        yield


def _listen(port: int | None) -> socket.socket:
    """Open a socket on loopback at the port; without a port, at the default one, or at a free one if that is taken."""
    from ldpopt_survey.server.web import listen

    try:
        return listen("127.0.0.1", _DEFAULT_PORT if port is None else port)
    except InvalidInput as error:
        if port is not None:
            raise InvalidInput(str(error).replace("--host and --port", "--port")) from None
        return listen("127.0.0.1", 0)


app = typer.Typer()
app.command(cls=Command)(studio)
