"""The program `app`, and its commands with a page: ``ldpopt demo``, ``ldpopt reproduce`` and ``ldpopt studio``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ldpopt.cli.design import Limited, check, design, frontier, verify
from ldpopt.cli.options import FileFlags, options
from ldpopt.cli.outputs import Command, Program, claim_folder, free_folder, progress, say, write_folder
from ldpopt.cli.streams import FOLDER, MESSAGES, refuse_stream
from ldpopt.cli.survey import app as survey
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.files import write_text
from ldpopt.version import __version__

if TYPE_CHECKING:
    import socket

    from rich.table import Table

    from ldpopt.demo import Answered


@options("""
    out: --out -o | New folder for the demonstration. [default: ldpopt-demo, or ldpopt-demo-2, ...]
    force: --force | Write into a folder that already exists.
    """)
def demo(out: Path | None = None, force: bool = False) -> None:
    """Show designs, proofs, pictures and a report for privatized incomes and parties of the voters of 1996."""
    folder = free_folder("ldpopt-demo") if out is None else out
    claim_folder(folder, force)
    with progress("designing", 1) as _:
        from ldpopt.demo import run, steps
    with progress("designing and proving", steps()) as step:
        answered, files = run(step)
    write_folder(folder, files, force)
    say(*map(_summary, answered), f"{len(files)} files in {folder}; start with {folder / 'report.html'}")


def _summary(answered: Answered) -> Table:
    from rich.table import Table

    from ldpopt.reports.words import verdict

    title = f"{answered.title}: {answered.names[0]} against {answered.names[1]}, {len(answered.utility.p0)} answers"
    shown = Table(title=title, title_justify="left")
    for name in ("ε", "cap η", "kept (nats)"):
        shown.add_column(name, justify="right")
    shown.add_column("verdict")
    for (epsilon, eta), optimum in answered.designs.items():
        shown.add_row(f"{epsilon:g}", "none" if eta is None else f"{eta:g}", f"{optimum.value:.4g}", verdict(optimum))
    return shown


@options("""
    name: [NAME] | Name of an experiment from --list.
    every: --all | Run every experiment.
    listed: --list | Show the experiments with their verdicts.
    quick: --quick | Fewer points: seconds instead of minutes.
    out: --out -o | Folder for the results, with a folder for each experiment. Finished experiments are not run again.
      [default: ldpopt-reproduced, or ldpopt-reproduced-quick]
    """)
def reproduce(
    name: str = "", every: bool = False, listed: bool = False, quick: bool = False, out: Path | None = None
) -> None:
    """Recompute claims of the papers, each with numbers, a picture and a verdict, and write an index page.

    An interrupted run continues where it stopped. ldpopt reproduce gi-theorem-2 --quick
    """
    from ldpopt.reproduce import EXPERIMENTS, experiment_named, index_page, run

    if bool(name) + every + listed != 1:
        raise invalid("reproduce", "one of NAME, --all and --list", Phrase("several" if name or every else "none"))
    folder = Path("ldpopt-reproduced-quick" if quick else "ldpopt-reproduced") if out is None else out
    refuse_stream(folder, FOLDER)
    if listed:
        _show(folder)
        return
    chosen = list(EXPERIMENTS.values()) if every else [experiment_named(name)]
    if folder.exists() and not folder.is_dir():
        raise invalid(str(folder), "a folder", Phrase("something else"))
    for number, experiment in enumerate(chosen, start=1):
        parameters = experiment.quick if quick else experiment.full
        what = f"{number} of {len(chosen)}: {experiment.name}" if every else experiment.name
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
    serve(application(token, number, start), listener, hurried=True)


def _listening(port: int | None) -> socket.socket:
    """A socket on loopback, at the given port; by default at the usual port, or at another if that is taken."""
    from ldpopt.survey.server.web import listening

    try:
        return listening("127.0.0.1", _USUAL if port is None else port)
    except InvalidInput as error:
        if port is not None:
            raise InvalidInput(str(error).replace("--host and --port", "--port")) from None
        return listening("127.0.0.1", 0)


app = typer.Typer(
    cls=Program,
    pretty_exceptions_show_locals=False,  # local variables may be answers, ids and keys
    context_settings={"help_option_names": ["-h", "--help"], "token_normalize_func": str.lower},
    epilog="Exit codes: 0 done, 2 bad input (one line on standard error, nothing written), 1 no usable answer, "
    "130 interrupted.",
)


FIRST_STEPS = """\
ldpopt designs and certifies locally private mechanisms. Four commands to begin with:

  ldpopt design --p0 0.5,0.3,0.2 --p1 0.2,0.3,0.5 --epsilon 1     the best channel for two populations, and its proof
  ldpopt survey new answers.csv                                    a survey from a file of answers
  ldpopt demo                                                      a demonstration with pictures
  ldpopt studio                                                    a page to try things on

ldpopt --help lists all commands, and each of them has --help."""


def _version(asked: bool) -> None:
    if asked:
        print(f"ldpopt {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def ldpopt(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print nothing but errors and what --json gives.")
    ] = False,
) -> None:
    """Design, certify and measure locally private mechanisms.

    A file named - is standard input or standard output: ldpopt design people.csv -e 1 --json | ldpopt verify -
    """
    MESSAGES.quiet = quiet
    if context.invoked_subcommand is None:
        say(FIRST_STEPS)


for command in (demo, design, verify, check, frontier, reproduce, studio):
    app.command(cls=Limited if command is design else Command)(command)
app.add_typer(survey, name="survey")
