"""``ldpopt survey estimate``: from reports or counts to shares with intervals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ldpopt.cli.console import output, progress
from ldpopt.cli.hypotheses import ForceOption
from ldpopt.cli.survey.files import (
    DataArgument,
    PlanArgument,
    UnlabelledOption,
    read_counts,
    read_plan,
    read_reports,
    spoken,
)
from ldpopt.cli.survey.sample import NO_FLAGS, ByOption, SampleFlags, with_sample_flags
from ldpopt.cli.survey.shown import FormatOption, OutOption, chosen, show

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
    from ldpopt.reports.missing import among_those_who_answered, missing_of
    from ldpopt.reports.results import results
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
