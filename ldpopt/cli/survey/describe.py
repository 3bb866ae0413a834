"""``ldpopt survey describe``: means, quantiles and totals of an answer that is a number."""

from __future__ import annotations

from typing import Annotated

import typer

from ldpopt.cli.console import progress
from ldpopt.cli.hypotheses import ForceOption
from ldpopt.cli.survey.files import PlanArgument, ReportsArgument, UnlabelledOption, read_plan, spoken
from ldpopt.cli.survey.sample import NO_FLAGS, SampleFlags, with_sample_flags
from ldpopt.cli.survey.shown import FormatOption, OutOption, chosen, show


@with_sample_flags
def describe(
    plan: PlanArgument,
    data: ReportsArgument,
    question: Annotated[str, typer.Argument(metavar="QUESTION", show_default=False)],
    quantiles: Annotated[
        list[float] | None,
        typer.Option(
            "--quantile", "-q", help="Share of answers below the quantile, such as 0.5; by default the quartiles."
        ),
    ] = None,
    scores: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBERS",
            help="Numbers of the answers, in the plan's order: 0,1,2; by default their own, or the middles of bins.",
            show_default=False,
        ),
    ] = None,
    population: Annotated[
        float | None, typer.Option(metavar="SIZE", help="Size of the population; with it totals are estimated, too.")
    ] = None,
    format: FormatOption = None,
    out: OutOption = None,
    sample: SampleFlags = NO_FLAGS,
    unlabelled: UnlabelledOption = False,
    force: ForceOption = False,
) -> None:
    """The mean, quantiles and totals of a question whose answers are numbers, or bins such as 10-19 or [10, 20).

    ldpopt survey describe plan.json reports.csv income --quantile 0.5 --population 80000
    """
    from ldpopt.errors import InvalidInput, invalid
    from ldpopt.reports.analyses import number_table
    from ldpopt.survey.estimate.intervals import Score
    from ldpopt.survey.estimate.numbers import among_answered, mean, population_total, quantile
    from ldpopt.survey.sample.respondents import Respondents

    kind, made = chosen(format, out, force), read_plan(plan)
    asked = sample.analysis(made)
    try:
        given = None if scores is None else [float(part) for part in scores.split(",")]
    except ValueError:
        raise invalid("--scores", "numbers with commas between them", scores) from None
    with progress("estimating"):
        people = Respondents.read(made, data, asked, (question,), unlabelled)
        found = people.estimate(question)
        shown, notes = [], []
        planned = made.question(question)
        if planned.reading.own_category and planned.missing is not None:
            found = among_answered(found, planned.missing)
            notes.append("Among those who answered.")
        try:
            middle = mean(found, given)
            shown.append(("", middle))
            if population is not None:
                shown.append(("total", population_total(middle, population)))
        except InvalidInput:  # answers without numbers still have totals
            if population is None or given is not None:
                raise
            notes.append("The answers are no numbers: --scores says what each counts as in a mean.")
        if population is not None:
            shown.append(("people", population_total(found, population)))
        points = []
        if shown and shown[0][0] == "" and (given is None or quantiles):
            edges = None if given is None else [[one, one] for one in given]
            points = [quantile(found, share, edges, Score(sample.level)) for share in quantiles or (0.25, 0.5, 0.75)]
        said = tuple(one for one in (spoken(people.rows.counts), str(asked), *notes) if one)
    show(number_table(f"{question}, {people.n:,} respondents", shown, points, sample.level, said), kind, out, force)
