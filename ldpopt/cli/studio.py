"""``ldpopt studio``: a page on this machine that shows the optimum while one drags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ldpopt.cli.hypotheses import (
    AnswerOption,
    BinsOption,
    ColumnsOption,
    CountsOption,
    FileArgument,
    GroupOption,
    populations,
)

if TYPE_CHECKING:
    import socket

_USUAL = 8471


def studio(
    file: FileArgument = None,
    port: Annotated[
        int | None,
        typer.Option(metavar="PORT", help="Port on this machine; 0 chooses a free one.", show_default="8471, if free"),
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open a browser.")] = False,
    columns: ColumnsOption = "",
    counts: CountsOption = False,
    answer: AnswerOption = "",
    group: GroupOption = "",
    bins: BinsOption = "",
) -> None:
    """Open a page on which you drag populations and limits, and see the certified optimum change.

    The page is served to this machine only. The first printed line is its address, with a token. Ctrl-C ends it.

    ldpopt studio people.csv --answer smokes --group region
    """
    import webbrowser

    from ldpopt.cli.console import output
    from ldpopt.extras import need
    from ldpopt.studio.load import state_of
    from ldpopt.studio.server import new_token
    from ldpopt.studio.server import studio as application
    from ldpopt.survey.server.web import address, serve

    need("starlette", "uvicorn", extra="studio")
    start: dict[str, Any] = {}
    if file is not None:
        start["tell"] = state_of(populations(file, "", "", "", columns, counts, answer, group, bins))
    listener, token = _listening(port), new_token()
    number = listener.getsockname()[1]
    where = f"{address('127.0.0.1', listener)}/?token={token}"
    output().print(where, markup=False, soft_wrap=True, highlight=False)
    output().print("The studio runs until Ctrl-C, for this machine alone.", markup=False)
    if not no_browser:
        webbrowser.open(where)
    serve(application(token, number, start), listener)


def _listening(port: int | None) -> socket.socket:
    """A socket on loopback, at the given port; by default at the usual port, or at another if that is taken."""
    from ldpopt.errors import InvalidInput
    from ldpopt.survey.server.web import listening

    if port is not None:
        try:
            return listening("127.0.0.1", port)
        except InvalidInput as error:
            raise InvalidInput(str(error).replace("--host and --port", "--port")) from None
    try:
        return listening("127.0.0.1", _USUAL)
    except InvalidInput:
        return listening("127.0.0.1", 0)
