"""``ldpopt survey estimate``: from reports or counts to shares with intervals."""

from __future__ import annotations

from typing import Annotated

import typer

from ldpopt.cli.console import output, progress
from ldpopt.cli.hypotheses import ForceOption
from ldpopt.cli.survey.files import DataArgument, PlanArgument, UnlabelledOption, read_plan, read_reports, spoken
from ldpopt.cli.survey.sample import (
    ByOption,
    ClustersOption,
    FpcOption,
    LevelOption,
    LonelyOption,
    MarginOption,
    ReplicationsOption,
    SimpleOption,
    StrataOption,
    VarianceOption,
    WeightsOption,
    WhereOption,
    analysis,
)
from ldpopt.cli.survey.shown import FormatOption, OutOption, chosen, show


def estimate(
    plan: PlanArgument,
    data: DataArgument,
    by: ByOption = None,
    where: WhereOption = None,
    level: LevelOption = 0.95,
    weights: WeightsOption = None,
    strata: StrataOption = None,
    clusters: ClustersOption = None,
    fpc: FpcOption = None,
    lonely: LonelyOption = None,
    margin: MarginOption = None,
    variance: VarianceOption = None,
    replications: ReplicationsOption = None,
    simple: SimpleOption = False,
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
    from ldpopt.reports.results import results
    from ldpopt.survey.plan.survey import Survey

    if json and (format is not None or out is not None):
        raise invalid("--json", "no --format or --out beside it", Phrase("one"))
    kind = chosen(format, out, force)
    made = read_plan(plan)
    asked = analysis(
        made, simple, by, where, level, margin, weights=weights, strata=strata, clusters=clusters, fpc=fpc,
        lonely=lonely, variance=variance, replications=replications,
    )  # fmt: skip
    with progress("estimating"):
        found, counts = Survey(made).findings(read_reports(data, made, unlabelled), asked, unlabelled)
    if json:
        print(strictjson.dumps(results(found, counts, asked)), end="")
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
    for name, one in found.items():
        console.print(f"{name}\n{one.whole.summary(level)}\n", markup=False)
        for group, inside in one.groups.items():
            console.print(f"{name}, {', '.join(asked.by)}: {group}\n{inside.summary(level)}\n", markup=False)
