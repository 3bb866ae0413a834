"""``ldpopt survey estimate``: from reports or counts to shares with intervals."""

from __future__ import annotations

from typing import Annotated

import typer

from ldpopt.cli.console import output, progress
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
) -> None:
    """Estimate the share of every answer, with score intervals that follow the design of the sample."""
    from ldpopt import strictjson
    from ldpopt.reports.missing import among_those_who_answered, missing_of
    from ldpopt.reports.results import results
    from ldpopt.survey.plan.survey import Survey

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
    console = output()
    for said in (spoken(counts), str(asked)):
        if said:
            console.print(f"{said}\n", markup=False)
    answered, words = among_those_who_answered(made, found), missing_of(made, counts)
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
