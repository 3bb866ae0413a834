"""The program `app`: the library's commands, and those that applications register (`outputs.Program`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ldpopt.cli.design import Limited, check, design, frontier, verify
from ldpopt.cli.outputs import Command, Program, claim_folder, free_folder, progress, say, write_folder
from ldpopt.cli.parameters import options
from ldpopt.cli.streams import MESSAGES
from ldpopt.version import __version__

if TYPE_CHECKING:
    from rich.table import Table

    from ldpopt.demo import Answered


@options("""
    out: --out -o | New folder for the demonstration. [default: ldpopt-demo, or ldpopt-demo-2, ...]
    force: --force | Write into a folder that already exists.
    """)
def demo(out: Path | None = None, force: bool = False) -> None:
    """Write designs, proofs, figures and a report for privatized incomes and parties of the voters of 1996."""
    folder = free_folder("ldpopt-demo") if out is None else out
    claim_folder(folder, force)
    with progress("designing", 1) as _:
        from ldpopt.demo import run, steps
    with progress("designing and proving", steps()) as step:
        answers, files = run(step)
    write_folder(folder, files, force)
    say(*map(_summary, answers), f"{len(files)} files in {folder}; start with {folder / 'report.html'}")


def _summary(answer: Answered) -> Table:
    from rich.table import Table

    from ldpopt.numbers.rounding import ceil_digits
    from ldpopt.words import verdict

    title = f"{answer.title}: {answer.names[0]} against {answer.names[1]}, {len(answer.utility.p0)} answers"
    table = Table(title=title, title_justify="left")
    for name in ("ε", "cap η", "kept (nats)"):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    for (epsilon, eta), optimum in answer.designs.items():
        cap = "none" if eta is None else ceil_digits(eta)
        table.add_row(ceil_digits(epsilon), cap, f"{optimum.value:.4g}", verdict(optimum))
    return table


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


def _version(show_version: bool) -> None:
    if show_version:
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


for command in (demo, design, verify, check, frontier):
    app.command(cls=Limited if command is design else Command)(command)
