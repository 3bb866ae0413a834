"""``ldpopt frontier``: the optimum and the textbook mechanisms over a grid of privacy limits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ldpopt.cli.console import output, progress
from ldpopt.cli.hypotheses import (
    AnswerOption,
    BinsOption,
    ColumnsOption,
    CountsOption,
    DivergenceOption,
    FileArgument,
    ForceOption,
    GroupOption,
    LabelsOption,
    P0Option,
    P1Option,
    TimeLimitOption,
    divergence,
    numbers,
    populations,
    seconds,
    utility,
)
from ldpopt.cli.outputs import claim, kind_of, write_all

_ETAS = ",".join(f"{i / 20:g}" for i in range(21))


def frontier(
    file: FileArgument = None,
    epsilon: Annotated[
        str, typer.Option("--epsilon", "-e", metavar="NATS,...", help="Values of epsilon, in nats.")
    ] = "0.5,1,2",
    eta: Annotated[
        str,
        typer.Option(
            "--eta",
            "-t",
            metavar="ETA,...",
            help="Caps on the total variation, each in [0, 1].",
            show_default="0 to 1 in steps of 0.05",
        ),
    ] = _ETAS,
    f: DivergenceOption = "kl",
    p0: P0Option = "",
    p1: P1Option = "",
    labels: LabelsOption = "",
    columns: ColumnsOption = "",
    counts: CountsOption = False,
    answer: AnswerOption = "",
    group: GroupOption = "",
    bins: BinsOption = "",
    out: Annotated[Path, typer.Option("--out", "-o", help="File for the table (CSV).")] = Path("frontier.csv"),
    picture: Annotated[
        Path | None, typer.Option(help="File for the picture (png, svg, pdf).", show_default="beside the table")
    ] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", metavar="N", help="Number of processes; -1 for one on each core.")
    ] = 1,
    resume: Annotated[
        Path | None,
        typer.Option(
            "--resume",
            metavar="FOLDER",
            help="Keep finished parts in FOLDER, and continue from them when the same command is run again.",
            show_default=False,
        ),
    ] = None,
    time_limit: TimeLimitOption = "",
    force: ForceOption = False,
) -> None:
    """Tabulate and draw the utility of the optimal channel and of textbook mechanisms, over epsilon and eta.

    ldpopt frontier --p0 0.5,0.3,0.2 --p1 0.2,0.3,0.5 --epsilon 1,2
    """
    from ldpopt import plots
    from ldpopt.distribution import positive_epsilon, unit_interval
    from ldpopt.frontiers import frontier as tabulate

    if picture is None:
        picture = out.with_suffix(".png")
    kind = kind_of(picture)
    claim([out, picture], force)
    limit = seconds(time_limit)
    epsilons = [positive_epsilon(value) for value in numbers(epsilon, "epsilon")]
    etas = [unit_interval(value, "eta") for value in numbers(eta, "eta")]
    pair = populations(file, p0, p1, labels, columns, counts, answer, group, bins)
    posed = utility(divergence(f), pair)
    with progress("designing", shares=True) as step:
        made = tabulate(posed, epsilons, etas, jobs=jobs, resume=resume, time_limit=limit, progress=step)
        files = {out: made.to_csv().encode(), picture: plots.picture(plots.frontier(made), kind)}
    write_all(files, force)
    console = output()
    console.print(repr(made), markup=False)
    for path in files:
        console.print(f"wrote {path}", markup=False)
