"""``ldpopt survey regress``: answers explained by other answers and by public columns."""

from __future__ import annotations

from typing import Annotated

import typer

from ldpopt.cli.console import progress
from ldpopt.cli.hypotheses import ForceOption
from ldpopt.cli.survey.files import PlanArgument, ReportsArgument, UnlabelledOption, read_plan, spoken
from ldpopt.cli.survey.sample import NO_FLAGS, SampleFlags, with_sample_flags
from ldpopt.cli.survey.shown import FormatOption, OutOption, chosen, show


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
