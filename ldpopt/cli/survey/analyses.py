"""Reports to tables of results: ``ldpopt survey table``, ``compare``, ``describe`` and ``regress``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ldpopt.cli.options import ForceOption
from ldpopt.cli.outputs import FormatOption, OutOption, chosen, progress, show
from ldpopt.cli.survey.arguments import (
    NO_FLAGS,
    PlanArgument,
    ReportsArgument,
    SampleFlags,
    UnlabelledOption,
    read_plan,
    spoken,
    with_sample_flags,
)


@with_sample_flags
def table(
    plan: PlanArgument,
    data: ReportsArgument,
    row: Annotated[
        str, typer.Argument(metavar="ROW", help="A question or a public column, for the rows.", show_default=False)
    ],
    column: Annotated[str, typer.Argument(metavar="COLUMN", help="Another one, for the columns.", show_default=False)],
    percent: Annotated[str, typer.Option(help="Shares within all, row or column.")] = "all",
    format: FormatOption = None,
    out: OutOption = None,
    sample: SampleFlags = NO_FLAGS,
    unlabelled: UnlabelledOption = False,
    force: ForceOption = False,
) -> None:
    """Cross two questions, or a question and a public column: shares with intervals, and a test of independence.

    ldpopt survey table plan.json reports.csv drug evade --percent row
    """
    from ldpopt.reports.analyses import two_way_rows
    from ldpopt.survey.sample.respondents import Respondents

    kind, made = chosen(format, out, force), read_plan(plan)
    asked = sample.analysis(made)
    with progress("estimating"):
        people = Respondents.read(made, data, asked, (row, column), unlabelled)
        found = people.two_way(row, column)
        notes = tuple(said for said in (spoken(people.rows.counts), str(asked)) if said)
        title = f"{row} by {column}, {people.n:,} respondents"
        shown = two_way_rows(title, found, (row, column), percent, sample.level, notes)
    show(shown, kind, out, force)


@with_sample_flags
def compare(
    plan: PlanArgument,
    data: ReportsArgument,
    questions: Annotated[
        list[str] | None,
        typer.Argument(metavar="[QUESTION]...", help="Questions to compare; by default all.", show_default=False),
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Compare the groups of a public column.", show_default=False)
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(metavar="GROUP", help="The group with which the others are compared; by default the first."),
    ] = None,
    wave: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            metavar="PLAN REPORTS", help="Compare with another wave: its plan and its reports.", show_default=False
        ),
    ] = None,
    format: FormatOption = None,
    out: OutOption = None,
    sample: SampleFlags = NO_FLAGS,
    unlabelled: UnlabelledOption = False,
    force: ForceOption = False,
) -> None:
    """Compare groups or waves: differences of shares with intervals, and tests of no difference.

    ldpopt survey compare plan.json reports.csv --by region

    ldpopt survey compare plan-1.json reports-1.csv --wave plan-2.json reports-2.csv
    """
    from ldpopt.errors import Phrase, invalid
    from ldpopt.reports.analyses import difference_table
    from ldpopt.survey.sample.respondents import Respondents, against_wave

    kind = chosen(format, out, force)
    if (by is None) == (wave is None):
        raise invalid("compare", "--by COLUMN, or --wave PLAN REPORTS", Phrase("neither" if by is None else "both"))
    if against is not None and by is None:
        raise invalid("--against", "a group of --by", Phrase(against))
    made = read_plan(plan)
    asked = sample.analysis(made)
    names = tuple(questions or ())
    with progress("estimating"):
        people = Respondents.read(made, data, asked, () if by is None else (by,), unlabelled)
        warned = [spoken(people.rows.counts)]
        if by is not None:
            found, tests = people.compare(by, names, against)
            title = f"Groups of {by}, {people.n:,} respondents"
        else:
            assert wave is not None
            other = read_plan(wave[0])
            again = sample.analysis(other)
            second = Respondents.read(other, wave[1], again, (), unlabelled)
            warned += [spoken(second.rows.counts)]
            found, tests = against_wave(people, second, names)
            title = f"Two waves, {people.n:,} and {second.n:,} respondents"
            warned.append(
                "The waves are taken to be of different people; of the same people, whose answers agree from wave to "
                "wave, the intervals are too long."
            )
        notes = tuple(dict.fromkeys(said for said in (*warned, str(asked)) if said))
    show(difference_table(title, found, tests, sample.level, notes), kind, out, force)


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


@with_sample_flags
def regress(
    plan: PlanArgument,
    data: ReportsArgument,
    formula: Annotated[
        str,
        typer.Argument(
            metavar="FORMULA",
            help="Such as 'evade ~ age + C(region) + age:sex'; questions and public columns.",
            show_default=False,
        ),
    ],
    linear: Annotated[bool, typer.Option("--linear", help="The outcome is a number; use least squares.")] = False,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="CATEGORY",
            help="The answer with which the others are compared; by default the first.",
            show_default=False,
        ),
    ] = None,
    odds: Annotated[bool, typer.Option("--odds", help="Print odds ratios instead of coefficients.")] = False,
    format: FormatOption = None,
    out: OutOption = None,
    sample: SampleFlags = NO_FLAGS,
    unlabelled: UnlabelledOption = False,
    force: ForceOption = False,
) -> None:
    """Regression where the outcome, predictors, or both are private answers.

    It is logistic for two categories, multinomial for more, and least squares for a number with --linear. Names in the
    formula are questions of the plan or public columns of the reports.

    ldpopt survey regress plan.json reports.csv "evade ~ age + sex" --weights w
    """  # fmt: skip
    from ldpopt.errors import Phrase, invalid
    from ldpopt.reports.analyses import regression_table
    from ldpopt.survey.regress.formula import parse_formula
    from ldpopt.survey.sample.respondents import Respondents

    kind, made = chosen(format, out, force), read_plan(plan)
    named = parse_formula(formula)
    if linear and (reference is not None or odds):
        raise invalid("--linear", "neither --reference nor --odds beside it", Phrase("one of them"))
    asked = sample.analysis(made)
    with progress("fitting"):
        people = Respondents.read(made, data, asked, (named.outcome, *named.columns), unlabelled)
        found = people.linear(formula) if linear else people.logit(formula, reference)
        notes = tuple(said for said in (spoken(people.rows.counts), str(asked)) if said)
    show(regression_table(found, sample.level, odds, notes), kind, out, force)
