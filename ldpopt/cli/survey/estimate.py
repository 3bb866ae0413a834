"""Reports or counts to shares (``ldpopt survey estimate``), to a page (``report``) or to findings (``verify``)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ldpopt import strictjson
from ldpopt.cli.options import ForceOption, JsonOption, ThreadsOption, argument, option, with_flags
from ldpopt.cli.outputs import ResultFlags, claim, progress, say, write_all
from ldpopt.cli.survey.arguments import (
    SIMULATION,
    ByOption,
    DataArgument,
    PlanArgument,
    SampleFlags,
    UnlabelledOption,
    notes_of,
    read_counts,
    read_plan,
    read_reports,
)
from ldpopt.errors import Phrase, invalid

if TYPE_CHECKING:
    from ldpopt.survey.collect.aggregate import Counts
    from ldpopt.survey.plan.survey import Survey
    from ldpopt.survey.sample.analysis import Analysis, Findings


@with_flags
def estimate(
    plan: PlanArgument,
    data: DataArgument,
    sample: SampleFlags,
    results: ResultFlags,
    by: ByOption = None,
    wave: Annotated[
        tuple[Path, str] | None,
        option(
            "An earlier wave of other respondents, which is included in the estimate.",
            metavar="PLAN REPORTS",
            default=False,
        ),
    ] = None,
    unlabelled: UnlabelledOption = False,
    json: JsonOption = False,
) -> None:
    """Estimate the share of every answer, with score intervals that follow the design of the sample."""
    from ldpopt.reports.analyses import share_table
    from ldpopt.reports.delivery import results as as_data
    from ldpopt.reports.survey import among_those_who_answered, missing_of
    from ldpopt.survey.plan.survey import Survey

    as_table = results.format is not None or results.out is not None
    if json and as_table:
        raise invalid("--json", "no --format or --out beside it", Phrase("one"))
    results.chosen()
    made = read_plan(plan)
    asked, level = sample.analysis(made, by), sample.level
    with progress("estimating"):
        found, counts = Survey(made).findings(read_reports(data, made, unlabelled), asked, unlabelled)
        if wave is not None:
            found = _with_wave(Survey(made), counts, wave, asked, unlabelled)
    if json and wave is not None:
        raise invalid("--wave", "no --json, which says of which one plan's reports it is", Phrase("both"))
    answered = among_those_who_answered(made, found)
    if json:
        print(strictjson.dumps(as_data(found, counts, asked, answered)), end="")
        return
    notes = notes_of(counts, asked)
    if as_table:
        estimates = {name: {"": one.whole, **one.groups} for name, one in found.items()}
        results.show(share_table(f"{made.name}: shares of answers", estimates, level, notes))
        return
    say(*(f"{note}\n" for note in notes))
    words = missing_of(made, counts)
    for name, one in found.items():
        say(f"{name}\n{one.whole.summary(level)}\n", *([f"{words[name]}\n"] if name in words else []))
        among = answered.get(name)
        if among is not None:
            say(f"{name}, among those who answered\n{among.whole.summary(level)}\n")
        for group, inside in one.groups.items():
            head = f"{name}, {', '.join(asked.by)}: {group}"
            say(f"{head}\n{inside.summary(level)}\n")
            if among is not None and group in among.groups:
                say(f"{head}, among those who answered\n{among.groups[group].summary(level)}\n")


def _with_wave(
    survey: Survey, counts: Counts, wave: tuple[Path, str], asked: Analysis, unlabelled: bool
) -> dict[str, Findings]:
    """The estimates from both waves, which must be simple samples."""
    from ldpopt.survey.plan.survey import Survey
    from ldpopt.survey.sample.analysis import Findings

    if not asked.of_counts:
        raise invalid("--wave", "simple samples, whole (--simple)", Phrase("a design, groups or conditions"))
    earlier = read_plan(wave[0])
    before = read_counts(str(wave[1]), earlier, unlabelled)
    if before.simulation != counts.simulation:
        raise invalid("--wave", "simulated reports in both waves, or in none", Phrase("one of each"))
    return {name: Findings(one, {}) for name, one in survey.with_wave(counts, Survey(earlier), before).items()}


@with_flags
def report(
    plan: PlanArgument,
    data: DataArgument,
    sample: SampleFlags,
    out: Annotated[Path, option("--out", "-o", "File for the page (HTML).")] = Path("report.html"),
    by: ByOption = None,
    unlabelled: UnlabelledOption = False,
    force: ForceOption = False,
) -> None:
    """Write one HTML page: estimates with intervals, channels, guarantees in plain words, design effects."""
    from ldpopt.reports.survey import survey_report
    from ldpopt.survey.plan.survey import Survey

    claim([out], force)
    made = read_plan(plan)
    asked = sample.analysis(made, by)
    with progress("estimating and drawing"):
        found, counts = Survey(made).findings(read_reports(data, made, unlabelled), asked, unlabelled)
        page = survey_report(made, found, counts, analysis=asked)
    write_all({out: page.encode()}, force)
    say(f"wrote {out}")


def verify(
    folder: Annotated[
        Path, argument("FOLDER", "Folder with the plan, the reports, and files that were made from them.")
    ],
    workers: ThreadsOption = 1,
    json: JsonOption = False,
) -> None:
    """Check a survey's delivery: prove the plan, compare reports with their manifests, recompute counts and estimates.

    FOLDER holds plan.json, reports, and perhaps counts.json, estimates.json (from ldpopt survey estimate --json) and
    pages. Exit code 0: everything holds. 1: something does not hold, and the output says what. 2: not a delivery.
    """
    from ldpopt.reports.delivery import verify_delivery
    from ldpopt.survey.collect.runner import Threads

    with progress("verifying"):
        found = verify_delivery(folder, Threads(workers))
    if json:
        print(strictjson.dumps(found.to_dict()), end="")
    else:
        say(*map(repr, found.findings), *([SIMULATION] if found.simulation else []))
        say("Everything that was checked holds." if found else "This delivery is not what it says.")
    if not found:
        raise typer.Exit(1)
