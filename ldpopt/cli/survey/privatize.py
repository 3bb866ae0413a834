"""Answers to reports (``ldpopt survey privatize``, ``paper``, ``enter``), and reports to counts (``aggregate``)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ldpopt.cli.options import ForceOption, ThreadsOption, TimeLimitOption, argument, option, seconds
from ldpopt.cli.outputs import claim, claim_folder, progress, say, write_all, write_folder
from ldpopt.cli.survey.arguments import PlanArgument, UnlabelledOption, read_plan
from ldpopt.errors import InvalidInput, invalid

if TYPE_CHECKING:
    from ldpopt.survey.collect.randomness import Randomness
    from ldpopt.survey.collect.runner import Runner


def privatize(
    plan: PlanArgument,
    answers: Annotated[list[Path], argument("ANSWERS...", "Answers: CSV or Parquet files, or a folder.")],
    out: Annotated[Path, option("--out", "-o", "Reports: *.csv, *.parquet, or a folder.", default=False)],
    key: Annotated[
        Path | None,
        option(
            "Survey key file (mode 0600), needed if the plan names respondents. A retry with the same key repeats "
            "every report. If an answer changes inside a round, the new report can show that it changed."
        ),
    ] = None,
    new_key: Annotated[bool, option("--new-key", "Make the key file (once for each survey).")] = False,
    simulate: Annotated[
        int | None, option("Simulate from this seed; such reports protect nobody.", metavar="SEED")
    ] = None,
    workers: Annotated[int, option("Number of threads, or of Dask workers with --dask.")] = 1,
    dask: Annotated[bool, option("--dask", "Run on a local Dask cluster.")] = False,
    scheduler: Annotated[str | None, option("Run on the Dask cluster at tcp://...")] = None,
) -> None:
    """Privatize answers in files. An interrupted run continues when it is repeated, and ends with the same bytes."""
    from ldpopt.extras import need
    from ldpopt.survey.collect.privatize import privatize as run
    from ldpopt.survey.collect.runner import Threads

    made = read_plan(plan)
    if made.respondent is not None and key is None and simulate is None:
        raise InvalidInput(
            "--key: expected a key file (--new-key makes one), since the plan names respondents, got none"
        )
    if made.respondent is None and key is not None:
        raise InvalidInput("--key: expected a plan that names respondents, got one that does not")
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
    say(f"{tally.rows:,} reports in {out}; {tally.duplicates:,} duplicate rows left out")
    for question in made.questions:
        unknown, missing = tally.unknown.get(question.name, 0), tally.missing.get(question.name, 0)
        if unknown or missing:
            say(f"  {question.name}: {unknown:,} unlisted and {missing:,} missing answers mapped")
    say("  These counts are of raw answers: they are for you, not for publication.")


@contextmanager
def _forgotten_after_a_refusal(key: Path, out: Path) -> Iterator[None]:
    """Remove the new key of a run that is refused, since no report was made with it."""
    from ldpopt.survey.collect.workfolder import work_of

    try:
        yield
    except InvalidInput:
        if not any(os.path.lexists(path) for path in (out, work_of(out))):
            key.unlink(missing_ok=True)
        raise


def _randomness(key: Path | None, new_key: bool, simulate: int | None) -> Randomness | None:
    import numpy as np

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
        str, option("Randomizing device: dice, two-dice, d10, two-d10, cards, spinner or coins.", default=False)
    ],
    tosses: Annotated[int, option("Number of tosses, for --device coins.")] = 5,
    size: Annotated[str, option("--paper", "Paper size: a4 or letter.")] = "a4",
    simpler: Annotated[float, option("Merge letters as long as the error grows by at most this share.")] = 0.01,
    out: Annotated[Path, option("--out", "-o", "Folder for the sheets and their plan.")] = Path("paper"),
    time_limit: TimeLimitOption = "",
    force: ForceOption = False,
) -> None:
    """Print sheets with which people randomize by hand: cards, instructions, the interviewer's form, the guarantees.

    ldpopt survey paper plan.json --device two-dice
    """
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
    for number, question in enumerate(survey.plan.questions, 1):
        k, m = question.channel.shape
        sizes = f"{k} answers -> {m} letters, epsilon {question.epsilon:.4g} of {survey.intended[question.name]:.4g}"
        loss = f"{100 * survey.losses[question.name]:.1f} % more respondents than without the device"
        say(f"  {question.name}: {sizes}, {loss} (channel-{number}.json)")
    say(*(f"  warning: {warning}" for warning in sheets.warnings))
    say(f"wrote {out}: sheets.pdf, and the plan of its reports in plan.json")


def enter(
    plan: PlanArgument,
    codes: Annotated[Path, argument("CODES", "CSV file of the letters, with a row for each person.")],
    out: Annotated[Path, option("--out", "-o", "File for the reports: *.csv or *.parquet.")] = Path("reports.csv"),
    leave_out_incomplete: Annotated[
        bool,
        option("--leave-out-incomplete", "Leave out and count rows without a letter, instead of refusing the file."),
    ] = False,
) -> None:
    """Check the letters that were typed from paper, and write them as reports for aggregate, estimate and report.

    ldpopt survey enter paper/plan.json codes.csv
    """
    from ldpopt.survey.paper.entry import enter_reports

    made = read_plan(plan)
    found = enter_reports(made, codes, out, leave_out_incomplete)
    left = f"; {found.left_out:,} incomplete rows left out" if found.left_out else ""
    say(f"{found.rows:,} reports in {out}{left}")


def aggregate(
    plan: PlanArgument,
    reports: Annotated[list[str], argument("REPORTS...", "Privatized or collected reports of one survey round.")],
    out: Annotated[Path, option("--out", "-o", "File for the counts.")] = Path("counts.json"),
    pair: Annotated[
        list[str] | None, option("Count two questions together, for a two-way table.", metavar="A,B")
    ] = None,
    unlabelled: UnlabelledOption = False,
    workers: ThreadsOption = 1,
    force: ForceOption = False,
) -> None:
    """Count the reports. Estimation needs only these counts."""
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
    say(f"{counts.rows:,} {what} counted in {out}")
