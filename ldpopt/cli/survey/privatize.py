"""Answers to reports (``ldpopt survey privatize``, ``paper``, ``enter``), and reports to counts (``aggregate``)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ldpopt.cli.options import ForceOption, TimeLimitOption, seconds
from ldpopt.cli.outputs import claim, claim_folder, output, progress, write_all, write_folder
from ldpopt.cli.survey.arguments import PlanArgument, UnlabelledOption, read_plan

if TYPE_CHECKING:
    from ldpopt.survey.collect.randomness import Randomness
    from ldpopt.survey.collect.runner import Runner


def privatize(
    plan: PlanArgument,
    answers: Annotated[
        list[Path],
        typer.Argument(metavar="ANSWERS...", help="Answers: CSV or Parquet files, or a folder.", show_default=False),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Reports: *.csv, *.parquet, or a folder.", show_default=False)
    ],
    key: Annotated[
        Path | None,
        typer.Option(
            help="Survey key file (mode 0600), needed if the plan names respondents. A retry with the same key "
            "repeats every report. If an answer changes inside a round, the new report can show that it changed.",
        ),
    ] = None,
    new_key: Annotated[bool, typer.Option("--new-key", help="Make the key file (once for each survey).")] = False,
    simulate: Annotated[
        int | None, typer.Option(metavar="SEED", help="Simulate from this seed; such reports protect nobody.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Number of threads, or of Dask workers with --dask.")] = 1,
    dask: Annotated[bool, typer.Option("--dask", help="Run on a local Dask cluster.")] = False,
    scheduler: Annotated[str | None, typer.Option(help="Run on the Dask cluster at tcp://...")] = None,
) -> None:
    """Privatize answers in files. An interrupted run continues when it is repeated, and ends with the same bytes."""
    from ldpopt.extras import need
    from ldpopt.survey.collect.privatize import privatize as run
    from ldpopt.survey.collect.runner import Threads

    made = read_plan(plan)
    if dask or scheduler:
        need("distributed")  # checked before a key is made
    with ExitStack() as stack:
        randomness = _randomness(key, new_key, simulate)
        if key is not None and new_key:
            stack.enter_context(_forgotten_after_a_refusal(key, out))
        runner: Runner = Threads(workers)
        if dask or scheduler:
            from ldpopt.survey.collect.runner import dask_runner

            runner = stack.enter_context(dask_runner(scheduler, workers))
        step = stack.enter_context(progress("privatizing"))
        tally = run(made, list(answers), out, randomness, runner, step)
    console = output()
    console.print(f"{tally.rows:,} reports in {out}; {tally.duplicates:,} duplicate rows left out", markup=False)
    for question in made.questions:
        unknown, missing = tally.unknown.get(question.name, 0), tally.missing.get(question.name, 0)
        if unknown or missing:
            console.print(
                f"  {question.name}: {unknown:,} unlisted and {missing:,} missing answers mapped", markup=False
            )
    console.print("  These counts are of raw answers: they are for you, not for publication.", markup=False)


@contextmanager
def _forgotten_after_a_refusal(key: Path, out: Path) -> Iterator[None]:
    """Remove the new key of a run that is refused, since no report was made with it."""
    from ldpopt.errors import InvalidInput
    from ldpopt.survey.collect.workfolder import work_of

    try:
        yield
    except InvalidInput:
        if not any(os.path.lexists(path) for path in (out, work_of(out))):
            key.unlink(missing_ok=True)
        raise


def _randomness(key: Path | None, new_key: bool, simulate: int | None) -> Randomness | None:
    import numpy as np

    from ldpopt.errors import InvalidInput
    from ldpopt.survey.collect.randomness import Memoised, Simulated
    from ldpopt.survey.collect.words import create_key

    if simulate is not None:
        if key is not None:
            raise InvalidInput("--key and --simulate: expected at most one, got both")
        return Simulated(np.random.default_rng(simulate))
    if key is None:
        return None
    if new_key:
        create_key(key)
    return Memoised(key)


def paper(
    plan: PlanArgument,
    device: Annotated[
        str,
        typer.Option(
            help="Randomizing device: dice, two-dice, d10, two-d10, cards, spinner or coins.", show_default=False
        ),
    ],
    tosses: Annotated[int, typer.Option(help="Number of tosses, for --device coins.")] = 5,
    size: Annotated[str, typer.Option("--paper", help="Paper size: a4 or letter.")] = "a4",
    simpler: Annotated[
        float, typer.Option(help="Merge letters as long as the error grows by at most this share.")
    ] = 0.01,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the sheets and their plan.")] = Path("paper"),
    time_limit: TimeLimitOption = "",
    force: ForceOption = False,
) -> None:
    """Print sheets with which people randomize by hand: cards, instructions, the interviewer's form, the guarantees.

    ldpopt survey paper plan.json --device two-dice
    """
    from ldpopt.errors import invalid
    from ldpopt.reports.sheets import PAPERS, paper_sheets
    from ldpopt.survey.paper.design import paper_files, paper_survey
    from ldpopt.survey.paper.devices import device_named

    if size not in PAPERS:
        raise invalid("--paper", f"one of {', '.join(PAPERS)}", size)
    thing = device_named(device, tosses)
    claim_folder(out, force)
    limit = seconds(time_limit)
    made = read_plan(plan)
    with progress("designing", shares=True) as step:
        survey = paper_survey(made, thing, simpler, time_limit=limit, progress=step)
    sheets = paper_sheets(survey, size)
    write_folder(out, {"sheets.pdf": sheets.pdf, **paper_files(survey)}, force)
    console = output()
    for number, question in enumerate(survey.plan.questions, 1):
        k, m = question.channel.shape
        told = f"{k} answers -> {m} letters, epsilon {question.epsilon:.4g} of {survey.intended[question.name]:.4g}"
        loss = f"{100 * survey.losses[question.name]:.1f} % more respondents than without the device"
        console.print(f"  {question.name}: {told}, {loss} (channel-{number}.json)", markup=False)
    for warning in sheets.warnings:
        console.print(f"  warning: {warning}", markup=False)
    console.print(f"wrote {out}: sheets.pdf, and the plan of its reports in plan.json", markup=False)


def enter(
    plan: PlanArgument,
    codes: Annotated[
        Path, typer.Argument(metavar="CODES", help="CSV file of the letters, with a row for each person.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="File for the reports: *.csv or *.parquet.")] = Path(
        "reports.csv"
    ),
    leave_out_incomplete: Annotated[
        bool,
        typer.Option(
            "--leave-out-incomplete", help="Leave out and count rows without a letter, instead of refusing the file."
        ),
    ] = False,
) -> None:
    """Check the letters that were typed from paper, and write them as reports for aggregate, estimate and report.

    ldpopt survey enter paper/plan.json codes.csv
    """
    from ldpopt.survey.paper.entry import enter_reports

    made = read_plan(plan)
    found = enter_reports(made, codes, out, leave_out_incomplete)
    console = output()
    left = f"; {found.left_out:,} incomplete rows left out" if found.left_out else ""
    console.print(f"{found.rows:,} reports in {out}{left}", markup=False)


def aggregate(
    plan: PlanArgument,
    reports: Annotated[
        list[str], typer.Argument(metavar="REPORTS...", help="Privatized or collected reports of one survey round.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="File for the counts.")] = Path("counts.json"),
    pair: Annotated[
        list[str] | None, typer.Option(metavar="A,B", help="Count two questions together, for a two-way table.")
    ] = None,
    unlabelled: UnlabelledOption = False,
    workers: Annotated[int, typer.Option(help="Number of threads.")] = 1,
    force: ForceOption = False,
) -> None:
    """Count the reports. Estimation needs only these counts."""
    from ldpopt.errors import invalid
    from ldpopt.survey.collect.aggregate import aggregate as run
    from ldpopt.survey.collect.runner import Threads

    claim([out], force)
    made = read_plan(plan)
    pairs = []
    for one in pair or []:
        names = tuple(name.strip() for name in one.split(","))
        if len(names) != 2:
            raise invalid("--pair", "two questions, A,B", one)
        pairs.append((names[0], names[1]))
    with progress("counting"):
        counts = run(made, list(reports), pairs, Threads(workers), unlabelled)
    write_all({out: counts.to_json().encode()}, force)
    what = "simulated reports" if counts.simulation else "reports"
    output().print(f"{counts.rows:,} {what} counted in {out}", markup=False)
