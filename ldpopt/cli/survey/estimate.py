"""Reports or counts to shares (``ldpopt survey estimate``), to a page (``report``) or to findings (``verify``)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ldpopt.cli.options import ForceOption
from ldpopt.cli.outputs import FormatOption, OutOption, chosen, claim, output, progress, show, write_all
from ldpopt.cli.survey.arguments import (
    NO_FLAGS,
    SIMULATION,
    ByOption,
    DataArgument,
    PlanArgument,
    SampleFlags,
    UnlabelledOption,
    read_counts,
    read_plan,
    read_reports,
    spoken,
    with_sample_flags,
)

if TYPE_CHECKING:
    from ldpopt.survey.collect.aggregate import Counts
    from ldpopt.survey.plan.survey import Survey
    from ldpopt.survey.sample.analysis import Analysis, Findings


@with_sample_flags
def estimate(
    plan: PlanArgument,
    data: DataArgument,
    by: ByOption = None,
    sample: SampleFlags = NO_FLAGS,
    wave: Annotated[
        tuple[Path, str] | None,
        typer.Option(
            metavar="PLAN REPORTS",
            help="An earlier wave of other respondents, which is included in the estimate.",
            show_default=False,
        ),
    ] = None,
    unlabelled: UnlabelledOption = False,
    json: Annotated[bool, typer.Option("--json", help="Machine-readable output on standard output.")] = False,
    format: FormatOption = None,
    out: OutOption = None,
    force: ForceOption = False,
) -> None:
    """Estimate the share of every answer, with score intervals that follow the design of the sample."""
    from ldpopt import strictjson
    from ldpopt.errors import Phrase, invalid
    from ldpopt.reports.analyses import share_table
    from ldpopt.reports.delivery import results
    from ldpopt.reports.survey import among_those_who_answered, missing_of
    from ldpopt.survey.plan.survey import Survey

    if json and (format is not None or out is not None):
        raise invalid("--json", "no --format or --out beside it", Phrase("one"))
    kind = chosen(format, out, force)
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
        print(strictjson.dumps(results(found, counts, asked, answered)), end="")
        return
    if format is not None or out is not None:
        estimates = {name: {"": one.whole, **one.groups} for name, one in found.items()}
        notes = tuple(said for said in (spoken(counts), str(asked)) if said)
        show(share_table(f"{made.name}: shares of answers", estimates, level, notes), kind, out, force)
        return
    console = output()
    for said in (spoken(counts), str(asked)):
        if said:
            console.print(f"{said}\n", markup=False)
    words = missing_of(made, counts)
    for name, one in found.items():
        console.print(f"{name}\n{one.whole.summary(level)}\n", markup=False)
        if name in words:
            console.print(f"{words[name]}\n", markup=False)
        if name in answered:
            console.print(f"{name}, among those who answered\n{answered[name].whole.summary(level)}\n", markup=False)
        for group, inside in one.groups.items():
            console.print(f"{name}, {', '.join(asked.by)}: {group}\n{inside.summary(level)}\n", markup=False)
            if name in answered and group in answered[name].groups:
                among = answered[name].groups[group].summary(level)
                console.print(
                    f"{name}, {', '.join(asked.by)}: {group}, among those who answered\n{among}\n", markup=False
                )


def _with_wave(
    survey: Survey, counts: Counts, wave: tuple[Path, str], asked: Analysis, unlabelled: bool
) -> dict[str, Findings]:
    """The estimates from both waves, which must be simple samples."""
    from ldpopt.errors import Phrase, invalid
    from ldpopt.survey.plan.survey import Survey
    from ldpopt.survey.sample.analysis import Findings

    if not asked.of_counts:
        raise invalid("--wave", "simple samples, whole (--simple)", Phrase("a design, groups or conditions"))
    earlier = read_plan(wave[0])
    before = read_counts(str(wave[1]), earlier, unlabelled)
    if before.simulation != counts.simulation:
        raise invalid("--wave", "simulated reports in both waves, or in none", Phrase("one of each"))
    return {name: Findings(one, {}) for name, one in survey.with_wave(counts, Survey(earlier), before).items()}


@with_sample_flags
def report(
    plan: PlanArgument,
    data: DataArgument,
    out: Annotated[Path, typer.Option("--out", "-o", help="File for the page (HTML).")] = Path("report.html"),
    by: ByOption = None,
    sample: SampleFlags = NO_FLAGS,
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
    output().print(f"wrote {out}", markup=False)


def verify(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="Folder with the plan, the reports, and files that were made from them.",
            show_default=False,
        ),
    ],
    workers: Annotated[int, typer.Option(help="Number of threads.")] = 1,
    json: Annotated[bool, typer.Option("--json", help="Machine-readable output on standard output.")] = False,
) -> None:
    """Check a survey's delivery: prove the plan, compare reports with their manifests, recompute counts and estimates.

    FOLDER holds plan.json, reports, and perhaps counts.json, estimates.json (from ldpopt survey estimate --json) and
    pages. Exit code 0: everything holds. 1: something does not hold, and the output says what. 2: not a delivery.
    """
    from ldpopt import strictjson
    from ldpopt.reports.delivery import verify_delivery
    from ldpopt.survey.collect.runner import Threads

    with progress("verifying"):
        found = verify_delivery(folder, Threads(workers))
    if json:
        print(strictjson.dumps(found.to_dict()), end="")
    else:
        console = output()
        for one in found.findings:
            console.print(repr(one), markup=False)
        if found.simulation:
            console.print(SIMULATION, markup=False)
        console.print(
            "Everything that was checked holds." if found else "This delivery is not what it says.", markup=False
        )
    if not found:
        raise typer.Exit(1)
