"""Reports -> a table of numbers for R's `survey` package, with replicate weights, and the script that reads it.

Each report is replaced by numbers whose mean is, without bias, the proportion of each answer: the column of the
estimate's loadings. So `svymean`, `svyby` and linear models in R estimate the true answers, and their standard errors
include the randomization.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.files.escapes import csv_text
from ldpopt.values.distribution import Array
from ldpopt.values.labels import as_text
from ldpopt_survey.collect.aggregate import read_rows
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.sample.analysis import Analysis, Selection, has_own_report
from ldpopt_survey.sample.design import LonelyUnit, SampleDesign
from ldpopt_survey.sample.replicates import Reweighted, calibrate_weights

DATA, SCRIPT = "reports.csv", "read.R"
_LONELY = {"refuse": "fail", "certainty": "certainty", "centre": "adjust", "average": "average"}


def for_r(plan: Plan, reports: str | Path, analysis: Analysis | None = None) -> dict[str, bytes]:
    """Write the files `DATA` and `SCRIPT` for R as bytes by name.

    analysis : the design of the sample, with its method of variance; `by`, `where` and `answered` are chosen in R, and
        `InvalidInput` here.

    The table has one row per respondent, in the order of the reports, with these columns:

    - ``weight`` (raked, if margins are known), ``stratum``, ``cluster``, and the public columns of the plan;
    - a number for each answer of each question, empty without a report; none for a question that nobody reports on;
    - with a jackknife, a bootstrap or given replicates ``rw1``, ``rw2`` and so on.

    A finite population correction is left out, since R would remove a part of the channels' noise with it.
    """
    analysis = Analysis() if analysis is None else analysis
    if analysis.by or analysis.where or analysis.answered or analysis.anytime:
        raise invalid("R", "the design of the sample alone (subsets are taken in R)", Phrase("groups or conditions"))
    rows = read_rows(plan, reports, list(dict.fromkeys([*analysis.columns, *plan.carry])))
    selection = Selection(plan, rows, analysis)
    design = SampleDesign(size=rows.n) if selection.design is None else selection.design
    columns: dict[str, list[object]] = {"weight": design.weights.tolist()}
    for name, column in (("stratum", analysis.sample.strata), ("cluster", analysis.sample.clusters)):
        if column is not None:
            columns[name] = rows.columns[column].tolist()
    columns |= {f"public.{name}": rows.columns[name].tolist() for name in plan.carry}
    questions: dict[str, list[str]] = {}
    if not (with_reports := selection.with_reports):
        raise InvalidInput("reports: nobody has a report")
    for name in with_reports:
        labels, values = _numbers(selection, name)
        questions[name] = [f"{name}: {as_text(label)}" for label in labels]
        is_empty_row = np.isnan(values[:, 0])
        for column, numbers in zip(questions[name], values.T.tolist(), strict=True):
            columns[column] = [
                None if is_empty else value for is_empty, value in zip(is_empty_row.tolist(), numbers, strict=True)
            ]
    scales: list[float] = []
    if isinstance(design.method, Reweighted):
        scales = design.method._scales(design).tolist()
        columns |= {
            f"rw{number}": weights.tolist() for number, weights in enumerate(_replicates(design, design.method), 1)
        }
    table = csv_text([columns, *zip(*columns.values(), strict=True)])
    script = _script(columns, questions, scales, design.lonely)
    return {DATA: table.encode(), SCRIPT: script.encode()}


def _numbers(selection: Selection, name: str) -> tuple[tuple[object, ...], Array]:
    """The answers of a question, and the unbiased numbers of each respondent's report, (n, k); NaN without a report."""
    estimated = selection.estimate(name)
    if has_own_report(selection.plan, name):
        places = selection.rows.reports[name]
    else:
        places = np.full(selection.rows.n, -1)
        start = 0
        for source in selection.sources((name,), selection.answered(name)):
            places = np.where(source.positions >= 0, source.positions + start, places)
            start += source.channel.shape[1]
    return estimated.labels, np.where((places >= 0)[:, None], estimated.loadings.T[np.maximum(places, 0)], np.nan)


def _replicates(design: SampleDesign, method: Reweighted) -> Iterator[Array]:
    """The weights (n,) of each replicate, raked like the sample's own."""
    for factors in method._factors(design):
        for row in factors:
            weights = design.weights * (row if len(row) == design.n else row[design.unit])
            yield calibrate_weights(weights, design.margins, design.bounds) if design.margins else weights


def _script(
    columns: dict[str, list[object]], questions: dict[str, list[str]], scales: list[float], lonely: LonelyUnit
) -> str:
    """R code that reads the table into `design` and prints the proportions of every question."""
    data_expression = "reports[, columns]"
    if scales:
        design = (
            f"svrepdesign(data = {data_expression}, weights = reports$weight, combined.weights = TRUE,\n"
            '  repweights = reports[, grepl("^rw[0-9]+$", names(reports))], type = "other", scale = 1,\n'
            f"  rscales = c({', '.join(map(repr, scales))}), mse = TRUE)"
        )
    else:
        ids = "~cluster" if "cluster" in columns else "~1"
        strata = "strata = ~stratum, nest = TRUE, " if "stratum" in columns else ""
        design = f"svydesign(ids = {ids}, {strata}weights = ~weight, data = {data_expression})"
    lines = [
        "# Privatized reports: the mean of each column of a question is the share of that answer.",
        "# Means, differences and linear models of these columns are about true answers; tables and quantiles are not.",
        "library(survey)",
        f'options(survey.lonely.psu = "{_LONELY[lonely.value]}")',
        f'reports <- read.csv("{DATA}", check.names = FALSE, fileEncoding = "UTF-8")',
        'columns <- !grepl("^rw[0-9]+$", names(reports))',
        f"design <- {design}",
        "questions <- list(",
        ",\n".join(
            f"  {_quoted(name)} = c({', '.join(map(_quoted, headings))})" for name, headings in questions.items()
        ),
        ")",
        "for (name in names(questions)) {",
        "  print(svymean(as.matrix(reports[, questions[[name]]]), design, na.rm = TRUE))",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A text as an R string."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\x7f")
