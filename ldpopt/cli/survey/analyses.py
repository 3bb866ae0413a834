"""Reports to tables of results: ``ldpopt survey table``, ``compare``, ``describe`` and ``regress``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ldpopt.cli.options import argument, option, with_flags
from ldpopt.cli.outputs import progress
from ldpopt.cli.survey.arguments import Analysing, notes_of, read_plan
from ldpopt.errors import InvalidInput, Phrase, invalid


@with_flags
def table(
    given: Analysing,
    row: Annotated[str, argument("ROW", "A question or a public column, for the rows.")],
    column: Annotated[str, argument("COLUMN", "Another one, for the columns.")],
    percent: Annotated[str, option("Shares within all, row or column.")] = "all",
) -> None:
    """Cross two questions, or a question and a public column: shares with intervals, and a test of independence.

    ldpopt survey table plan.json reports.csv drug evade --percent row
    """
    from ldpopt.reports.analyses import two_way_rows

    plan, asked = given.begun()
    with progress("estimating"):
        people = given.people(plan, asked, (row, column))
        title = f"{row} by {column}, {people.n:,} respondents"
        notes = notes_of(people.rows.counts, asked)
        shown = two_way_rows(title, people.two_way(row, column), (row, column), percent, given.level, notes)
    given.show(shown)


@with_flags
def compare(
    given: Analysing,
    questions: Annotated[list[str] | None, argument("[QUESTION]...", "Questions to compare; by default all.")] = None,
    by: Annotated[str | None, option("Compare the groups of a public column.", metavar="COLUMN", default=False)] = None,
    against: Annotated[
        str | None, option("The group with which the others are compared; by default the first.", metavar="GROUP")
    ] = None,
    wave: Annotated[
        tuple[Path, Path] | None,
        option("Compare with another wave: its plan and its reports.", metavar="PLAN REPORTS", default=False),
    ] = None,
) -> None:
    """Compare groups or waves: differences of shares with intervals, and tests of no difference.

    ldpopt survey compare plan.json reports.csv --by region

    ldpopt survey compare plan-1.json reports-1.csv --wave plan-2.json reports-2.csv
    """
    from ldpopt.reports.analyses import difference_table
    from ldpopt.survey.sample.respondents import Respondents, against_wave

    given.chosen()
    if (by is None) == (wave is None):
        raise invalid("compare", "--by COLUMN, or --wave PLAN REPORTS", Phrase("neither" if by is None else "both"))
    if against is not None and by is None:
        raise invalid("--against", "a group of --by", Phrase(against))
    plan, asked = given.begun()
    names = tuple(questions or ())
    with progress("estimating"):
        people = given.people(plan, asked, () if by is None else (by,))
        if wave is None:
            assert by is not None
            found, tests = people.compare(by, names, against)
            title = f"Groups of {by}, {people.n:,} respondents"
            notes = notes_of(people.rows.counts, asked)
        else:
            other = read_plan(wave[0])
            second = Respondents.read(other, wave[1], given.analysis(other), (), given.unlabelled)
            found, tests = against_wave(people, second, names)
            title = f"Two waves, {people.n:,} and {second.n:,} respondents"
            taken = (
                "The waves are taken to be of different people; of the same people, whose answers agree from wave to "
                "wave, the intervals are too long."
            )
            notes = notes_of(people.rows.counts, second.rows.counts, taken, asked)
    given.show(difference_table(title, found, tests, given.level, notes))


@with_flags
def describe(
    given: Analysing,
    question: Annotated[str, argument("QUESTION")],
    quantiles: Annotated[
        list[float] | None,
        option("--quantile", "-q", "Share of answers below the quantile, such as 0.5; by default the quartiles."),
    ] = None,
    scores: Annotated[
        str | None,
        option(
            "Numbers of the answers, in the plan's order: 0,1,2; by default their own, or the middles of bins.",
            metavar="NUMBERS",
            default=False,
        ),
    ] = None,
    population: Annotated[
        float | None, option("Size of the population; with it totals are estimated, too.", metavar="SIZE")
    ] = None,
) -> None:
    """The mean, quantiles and totals of a question whose answers are numbers, or bins such as 10-19 or [10, 20).

    ldpopt survey describe plan.json reports.csv income --quantile 0.5 --population 80000
    """
    from ldpopt.reports.analyses import number_table
    from ldpopt.survey.estimate.intervals import Score
    from ldpopt.survey.estimate.numbers import among_answered, mean, population_total, quantile

    plan, asked = given.begun()
    try:
        points_of = None if scores is None else [float(part) for part in scores.split(",")]
    except ValueError:
        raise invalid("--scores", "numbers with commas between them", scores) from None
    with progress("estimating"):
        people = given.people(plan, asked, (question,))
        found = people.estimate(question)
        shown, notes = [], []
        planned = plan.question(question)
        if planned.reading.own_category and planned.missing is not None:
            found = among_answered(found, planned.missing)
            notes.append("Among those who answered.")
        try:
            middle = mean(found, points_of)
            shown.append(("", middle))
            if population is not None:
                shown.append(("total", population_total(middle, population)))
        except InvalidInput:  # answers without numbers still have totals
            if population is None or points_of is not None:
                raise
            notes.append("The answers are no numbers: --scores says what each counts as in a mean.")
        if population is not None:
            shown.append(("people", population_total(found, population)))
        points = []
        if shown and shown[0][0] == "" and (points_of is None or quantiles):
            edges = None if points_of is None else [[one, one] for one in points_of]
            points = [quantile(found, share, edges, Score(given.level)) for share in quantiles or (0.25, 0.5, 0.75)]
        said = notes_of(people.rows.counts, asked, *notes)
    given.show(number_table(f"{question}, {people.n:,} respondents", shown, points, given.level, said))


@with_flags
def regress(
    given: Analysing,
    formula: Annotated[
        str, argument("FORMULA", "Such as 'evade ~ age + C(region) + age:sex'; questions and public columns.")
    ],
    linear: Annotated[bool, option("--linear", "The outcome is a number; use least squares.")] = False,
    reference: Annotated[
        str | None,
        option(
            "The answer with which the others are compared; by default the first.", metavar="CATEGORY", default=False
        ),
    ] = None,
    odds: Annotated[bool, option("--odds", "Print odds ratios instead of coefficients.")] = False,
) -> None:
    """Regression where the outcome, predictors, or both are private answers.

    It is logistic for two categories, multinomial for more, and least squares for a number with --linear. Names in the
    formula are questions of the plan or public columns of the reports.

    ldpopt survey regress plan.json reports.csv "evade ~ age + sex" --weights w
    """
    from ldpopt.reports.analyses import regression_table
    from ldpopt.survey.regress.formula import parse_formula

    given.chosen()
    named = parse_formula(formula)
    if linear and (reference is not None or odds):
        raise invalid("--linear", "neither --reference nor --odds beside it", Phrase("one of them"))
    plan, asked = given.begun()
    with progress("fitting"):
        people = given.people(plan, asked, (named.outcome, *named.columns))
        found = people.linear(formula) if linear else people.logit(formula, reference)
    given.show(regression_table(found, given.level, odds, notes_of(people.rows.counts, asked)))
