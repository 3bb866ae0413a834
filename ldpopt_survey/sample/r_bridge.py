"""Reports -> a table of numbers that R's `survey` analyses, with replicate weights, and the script that reads it.

A report stands for the numbers whose mean is, without bias, the share of each answer: the column of the estimate's
loadings. So `svymean`, `svyby` and linear models in R give estimates of the true answers, and their standard errors
include the randomization.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ldpopt.errors import Phrase, invalid
from ldpopt.files.escapes import csv_text
from ldpopt.values.distribution import Array
from ldpopt.values.labels import as_text
from ldpopt_survey.collect.aggregate import read_rows
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.sample.analysis import Analysis, Selection, alone
from ldpopt_survey.sample.design import LonelyUnit, SampleDesign
from ldpopt_survey.sample.replicates import Reweighted, calibrated

DATA, SCRIPT = "reports.csv", "read.R"
_LONELY = {"refuse": "fail", "certainty": "certainty", "centre": "adjust", "average": "average"}


def for_r(plan: Plan, reports: str | Path, asked: Analysis | None = None) -> dict[str, bytes]:
    """The files `DATA` and `SCRIPT` by name, for all respondents, in the order of the reports.

    asked : the design of the sample, with its method of variance; `by`, `where` and `answered` are for R to choose, and
        `InvalidInput` here.

    A row is a respondent: ``weight`` (raked, if margins are known), ``stratum``, ``cluster``, the public columns of the
    plan, a number for each answer of each question (empty where there is no report), and with a jackknife, a bootstrap
    or given replicates ``rw1``, ``rw2`` and so on. A finite population correction is left out, since R would
    take a part of the channels' noise away with it.
    """
    asked = Analysis() if asked is None else asked
    if asked.by or asked.where or asked.answered or asked.anytime:
        raise invalid("R", "the design of the sample alone (subsets are taken in R)", Phrase("groups or conditions"))
    rows = read_rows(plan, reports, list(dict.fromkeys([*asked.columns, *plan.carry])))
    chosen = Selection(plan, rows, asked)
    design = SampleDesign(size=rows.n) if chosen.design is None else chosen.design
    columns: dict[str, list[object]] = {"weight": design.weights.tolist()}
    for name, column in (("stratum", asked.sample.strata), ("cluster", asked.sample.clusters)):
        if column is not None:
            columns[name] = rows.columns[column].tolist()
    columns |= {f"public.{name}": rows.columns[name].tolist() for name in plan.carry}
    questions: dict[str, list[str]] = {}
    for name in plan.answers:
        labels, values = _numbers(chosen, name)
        questions[name] = [f"{name}: {as_text(label)}" for label in labels]
        empty = np.isnan(values[:, 0])
        for column, own in zip(questions[name], values.T.tolist(), strict=True):
            columns[column] = [None if gone else value for gone, value in zip(empty.tolist(), own, strict=True)]
    scales: list[float] = []
    if isinstance(design.method, Reweighted):
        scales = design.method._scales(design).tolist()
        columns |= {f"rw{number}": own.tolist() for number, own in enumerate(_replicates(design, design.method), 1)}
    table = csv_text([columns, *zip(*columns.values(), strict=True)])
    script = _script(columns, questions, scales, design.lonely)
    return {DATA: table.encode(), SCRIPT: script.encode()}


def _numbers(chosen: Selection, name: str) -> tuple[tuple[object, ...], Array]:
    """The answers of a question, and what each respondent's report is worth for each, (n, k); NaN without a report."""
    estimated = chosen.estimate(name)
    if alone(chosen.plan, name):
        places = chosen.rows.reports[name]
    else:
        places = np.full(chosen.rows.n, -1)
        start = 0
        for source in chosen.sources((name,), chosen.answered(name)):
            places = np.where(source.at >= 0, source.at + start, places)
            start += source.channel.shape[1]
    return estimated.labels, np.where((places >= 0)[:, None], estimated.loadings.T[np.maximum(places, 0)], np.nan)


def _replicates(design: SampleDesign, method: Reweighted) -> Iterator[Array]:
    """The weights (n,) of each replicate, raked like the sample's own."""
    for factors in method._factors(design):
        for row in factors:
            weights = design.weights * (row if len(row) == design.n else row[design.unit])
            yield calibrated(weights, design.margins, design.bounds) if design.margins else weights


def _script(
    columns: dict[str, list[object]], questions: dict[str, list[str]], scales: list[float], lonely: LonelyUnit
) -> str:
    """R that reads the table into `design` and prints the shares of every question."""
    given = "reports[, columns]"
    if scales:
        design = (
            f"svrepdesign(data = {given}, weights = reports$weight, combined.weights = TRUE,\n"
            '  repweights = reports[, grepl("^rw[0-9]+$", names(reports))], type = "other", scale = 1,\n'
            f"  rscales = c({', '.join(map(repr, scales))}), mse = TRUE)"
        )
    else:
        ids = "~cluster" if "cluster" in columns else "~1"
        strata = "strata = ~stratum, nest = TRUE, " if "stratum" in columns else ""
        design = f"svydesign(ids = {ids}, {strata}weights = ~weight, data = {given})"
    lines = [
        "# Privatized reports: the mean of each column of a question is the share of that answer.",
        "# Means, differences and linear models of these columns are about true answers; tables and quantiles are not.",
        "library(survey)",
        f'options(survey.lonely.psu = "{_LONELY[lonely.value]}")',
        f'reports <- read.csv("{DATA}", check.names = FALSE, fileEncoding = "UTF-8")',
        'columns <- !grepl("^rw[0-9]+$", names(reports))',
        f"design <- {design}",
        "questions <- list(",
        ",\n".join(f"  {_quoted(name)} = c({', '.join(map(_quoted, own))})" for name, own in questions.items()),
        ")",
        "for (name in names(questions)) {",
        "  print(svymean(as.matrix(reports[, questions[[name]]]), design, na.rm = TRUE))",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A text as R writes it."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\x7f")
