"""Commands with a page for a person: ``ldpopt demo``, ``ldpopt reproduce`` and ``ldpopt studio``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ldpopt.cli.options import FileFlags, argument, option, with_flags
from ldpopt.cli.outputs import claim_folder, free_folder, progress, say, write_folder
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.files import write_text

if TYPE_CHECKING:
    import socket

    from rich.table import Table

    from ldpopt.demo import Answered


def demo(
    out: Annotated[
        Path | None,
        option("--out", "-o", "New folder for the demonstration.", default="ldpopt-demo, or ldpopt-demo-2, ..."),
    ] = None,
    force: Annotated[bool, option("--force", "Write into a folder that already exists.")] = False,
) -> None:
    """Tell the voters of 1996 apart from privatized income and party: designs, proofs, pictures and a report."""
    folder = free_folder("ldpopt-demo") if out is None else out
    claim_folder(folder, force)
    with progress("designing", 1) as _:
        from ldpopt.demo import run, steps
    with progress("designing and proving", steps()) as step:
        answered, files = run(step)
    write_folder(folder, files, force)
    say(*map(_summary, answered), f"{len(files)} files in {folder}; start with {folder / 'report.html'}")


def _summary(one: Answered) -> Table:
    from rich.table import Table

    from ldpopt.reports.words import verdict

    shown = Table(
        title=f"{one.title}: {one.names[0]} against {one.names[1]}, {len(one.utility.p0)} answers", title_justify="left"
    )
    for name in ("ε", "cap η", "kept (nats)"):
        shown.add_column(name, justify="right")
    shown.add_column("verdict")
    for (epsilon, eta), design in one.designs.items():
        shown.add_row(f"{epsilon:g}", "none" if eta is None else f"{eta:g}", f"{design.value:.4g}", verdict(design))
    return shown


def reproduce(
    name: Annotated[str, argument("[NAME]", "Name of an experiment from --list.")] = "",
    every: Annotated[bool, option("--all", "Run every experiment.")] = False,
    listed: Annotated[bool, option("--list", "Show the experiments with their verdicts.")] = False,
    quick: Annotated[bool, option("--quick", "Fewer points: seconds instead of minutes.")] = False,
    out: Annotated[
        Path | None,
        option(
            "--out",
            "-o",
            "Folder for the results, with a folder for each experiment. Finished experiments are not run again.",
            default="ldpopt-reproduced, or ldpopt-reproduced-quick",
        ),
    ] = None,
) -> None:
    """Recompute claims of the papers, each with numbers, a picture and a verdict, and write an index page.

    An interrupted run continues where it stopped. ldpopt reproduce gi-theorem-2 --quick
    """
    from ldpopt.reproduce import EXPERIMENTS, experiment_named, index_page, run

    if bool(name) + every + listed != 1:
        raise invalid("reproduce", "one of NAME, --all and --list", Phrase("several" if name or every else "none"))
    folder = Path("ldpopt-reproduced-quick" if quick else "ldpopt-reproduced") if out is None else out
    if listed:
        _show(folder)
        return
    chosen = list(EXPERIMENTS.values()) if every else [experiment_named(name)]
    if folder.exists() and not folder.is_dir():
        raise invalid(str(folder), "a folder", Phrase("something else"))
    for at, experiment in enumerate(chosen, start=1):
        parameters = experiment.quick if quick else experiment.full
        what = f"{at} of {len(chosen)}: {experiment.name}" if every else experiment.name
        with progress(what, len(list(experiment.points(parameters)))) as step:
            verdict = run(experiment, folder / experiment.name, quick=quick, each=step)
        say(f"{experiment.name}: {verdict.outcome.value}. {verdict.detail}")
    write_text(folder / "index.html", index_page(folder), force=True)
    say(f"wrote {folder / 'index.html'}")


def _show(folder: Path) -> None:
    """Print the verdicts: those in the folder, if it has some, else those recorded with this version."""
    from rich.table import Table

    from ldpopt.reproduce import EXPERIMENTS, recorded
    from ldpopt.reproduce.folder import verdict_in

    known: dict[str, Any] = recorded()
    shown = Table(title="The papers' claims against exact values", title_justify="left")
    for head in ("experiment", "verdict", "about", "source", "in what way"):
        shown.add_column(head, no_wrap=head != "in what way")
    for name, experiment in EXPERIMENTS.items():
        verdict = verdict_in(folder / name) or known.get(name) or {"outcome": "not run", "detail": experiment.claim}
        source = experiment.source.split(";")[0].strip("[]")
        shown.add_row(name, verdict["outcome"], experiment.subject.value, source, verdict["detail"])
    say(shown)


_USUAL = 8471


@with_flags
def studio(
    people: FileFlags,
    port: Annotated[
        int | None,
        option("Port on this machine; 0 chooses a free one.", metavar="PORT", default="8471, if free"),
    ] = None,
    no_browser: Annotated[bool, option("--no-browser", "Do not open a browser.")] = False,
) -> None:
    """Open a page on which you drag populations and limits, and see the certified optimum change.

    The page is served to this machine only. The first printed line is its address, with a token. Ctrl-C ends it.

    ldpopt studio people.csv --answer smokes --group region
    """
    import webbrowser

    from ldpopt.extras import need
    from ldpopt.studio.load import state_of
    from ldpopt.studio.server import new_token
    from ldpopt.studio.server import studio as application
    from ldpopt.survey.server.web import address, serve

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
    serve(application(token, number, start), listener)


def _listening(port: int | None) -> socket.socket:
    """A socket on loopback, at the given port; by default at the usual port, or at another if that is taken."""
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
