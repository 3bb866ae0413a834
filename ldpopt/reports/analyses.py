"""Estimates, tables, comparisons and regressions as tables of results, with one row for each number."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ldpopt.channel import Label
from ldpopt.errors import InvalidInput, invalid
from ldpopt.labels import as_text
from ldpopt.reports.tables import Cell, ResultTable
from ldpopt.survey.estimate.estimate import Estimate
from ldpopt.survey.estimate.groups import Difference
from ldpopt.survey.estimate.intervals import Intervals, Score
from ldpopt.survey.estimate.numbers import Quantile
from ldpopt.survey.estimate.tables import TwoWayTable
from ldpopt.survey.hypothesis_tests import TestResult
from ldpopt.survey.regress.result import Regression

PERCENT = ("all", "row", "column")
"""The total of which a cell's share is shown: everybody, its row or its column."""

UNCLIPPED = "Estimates are unbiased, so that a share near zero may come out below it; intervals are not cut at 0 and 1."


def share_table(
    title: str, estimates: Mapping[str, Mapping[str, Estimate]], level: float = 0.95, notes: Sequence[str] = ()
) -> ResultTable:
    """The shares of every answer: by question, and by group if there is more than one.

    estimates : for each question the estimates by group; the group "" is everybody.

    >>> from ldpopt.survey import estimate
    >>> found = estimate({0: 40, 1: 60}, [[0.8, 0.2], [0.2, 0.8]])
    >>> print(share_table("demo", {"vote": {"": found}}).in_format("csv").decode().splitlines()[0])
    question,answer,share,se,lower,upper,respondents
    """
    grouped = any(group for inside in estimates.values() for group in inside)
    rows: list[tuple[Cell, ...]] = []
    for question, inside in estimates.items():
        for group, found in inside.items():
            for row in _shares(found, level):
                head = (question, group or "everybody") if grouped else (question,)
                rows.append((*head, *row, found.n))
    columns = ("question", *(("group",) if grouped else ()), "answer", "share", "se", "lower", "upper", "respondents")
    return ResultTable(
        title, columns, tuple(rows), ("share", "se", "lower", "upper"), (_level(level), UNCLIPPED, *notes)
    )  # fmt: skip


def two_way_rows(
    title: str,
    table: TwoWayTable,
    names: tuple[str, str],
    percent: str = "all",
    level: float = 0.95,
    notes: Sequence[str] = (),
) -> ResultTable:
    """The cells of a two-way table with intervals: shares of all, of their row, or of their column.

    names : the names of the row question and the column question. percent : "all", or the shares within "row" or
        "column". The last note is the test of independence.

    >>> from ldpopt.survey import two_way_from_counts
    >>> q = [[0.8, 0.2], [0.2, 0.8]]
    >>> made = two_way_rows("demo", two_way_from_counts([[40, 10], [10, 40]], q, q), ("a", "b"))
    >>> made.columns, len(made.rows)
    (('a', 'b', 'share', 'se', 'lower', 'upper'), 4)
    """
    if percent not in PERCENT:
        raise invalid("percent", f"one of {', '.join(PERCENT)}", percent)
    row_labels, column_labels = table.row_channel.inputs, table.column_channel.inputs
    rows: list[tuple[Cell, ...]] = []
    if percent == "all":
        cells = [(as_text(a), as_text(b)) for a in row_labels for b in column_labels]
        rows = [(*cell, *row[1:]) for cell, row in zip(cells, _shares(table.joint, level), strict=True)]
    else:
        found = _within(table, percent, level)
        rows = [(as_text(a), as_text(b), *found[a, b]) for a in row_labels for b in column_labels]
    whose = {"all": "all respondents", "row": names[0], "column": names[1]}[percent]
    of = whose if percent == "all" else f"those with the same {whose}"
    said = [f"Shares of {of}. {_level(level)}", UNCLIPPED, *notes, _independence(table)]
    columns = (*names, "share", "se", "lower", "upper")
    return ResultTable(title, columns, tuple(rows), columns[2:], tuple(said))


def difference_table(
    title: str,
    differences: Mapping[tuple[str, str, str], Difference],
    tests: Mapping[str, TestResult],
    level: float = 0.95,
    notes: Sequence[str] = (),
) -> ResultTable:
    """Differences of shares between groups or waves, category by category, with tests.

    differences : by (question, first, second), the `Difference` first - second.
    tests : by question, the test that all groups agree.

    >>> from ldpopt.survey import difference, estimate
    >>> q = [[0.8, 0.2], [0.2, 0.8]]
    >>> made = difference(estimate({0: 40, 1: 60}, q), estimate({0: 60, 1: 40}, q))
    >>> difference_table("demo", {("vote", "b", "a"): made}, {}).columns
    ('question', 'group', 'against', 'answer', 'difference', 'se', 'lower', 'upper', 'p')
    """
    rows: list[tuple[Cell, ...]] = []
    for (question, first, second), made in differences.items():
        shown = made.intervals(Score(level))
        parts = zip(
            made.labels, made.values, made.standard_errors, shown.lower, shown.upper, made.p_values, strict=True
        )
        rows += [(question, first, second, as_text(label), *map(float, rest)) for label, *rest in parts]
    columns = ("question", "group", "against", "answer", "difference", "se", "lower", "upper", "p")
    said = [f"Differences of shares, group minus the one it is held against. {_level(level)}"]
    said += [f"{question}: test that all groups agree: {_result(test)}." for question, test in tests.items()]
    return ResultTable(title, columns, tuple(rows), ("difference", "se", "lower", "upper"), (*said, *notes))


def regression_table(
    found: Regression, level: float = 0.95, odds: bool = False, notes: Sequence[str] = ()
) -> ResultTable:
    """The coefficients of a regression, or its odds ratios if `odds` is set.

    >>> from ldpopt.survey import logit_regression
    >>> data = {"evade": [0, 0, 0, 1, 0, 1, 1, 1], "group": list("aaaabbbb")}
    >>> made = logit_regression("evade ~ group", data, {"evade": [[0.9, 0.1], [0.1, 0.9]]})
    >>> regression_table(made).columns
    ('category', 'term', 'coefficient', 'se', 'lower', 'upper', 'p')
    """
    if odds and found.kind == "linear":
        raise invalid("odds ratios", "a logistic or multinomial regression", found.kind)
    shown = found.odds_ratios(level) if odds else found.intervals(level)
    values = np.exp(found.values) if odds else found.values
    names = [(as_text(e), name) for e in found.equations for name in found.names]
    parts = zip(
        names, values, found.standard_errors.ravel(), shown.lower, shown.upper, found.p_values.ravel(), strict=True
    )
    rows: list[tuple[Cell, ...]] = [(*name, *map(float, rest)) for name, *rest in parts]
    what = "odds ratio" if odds else "coefficient"
    columns: tuple[str, ...] = ("category", "term", what, "se", "lower", "upper", "p")
    if odds:  # beside a ratio, the coefficient's error would be taken for the ratio's
        columns = tuple(name for name in columns if name != "se")
        rows = [(*row[:3], *row[4:]) for row in rows]
    said = [f"{found.kind.capitalize()} regression of the true answers of {found.n:,} respondents: {found.formula}."]
    if found.kind != "linear":
        said.append(f"Log-odds of {', '.join(map(as_text, found.equations))} against {as_text(found.reference)}.")
    said += [f"{name}: compared with {as_text(level_)}." for name, level_ in found.levels.items()]
    if found.log_likelihood is not None:
        said.append(f"Log-likelihood of the reports {found.log_likelihood:.4f}.")
    if any(name != "Intercept" for name in found.names):
        said.append(f"Test: {_result(found.slopes())}.")
    said.append(f"{100 * level:g} % Wald intervals.")
    return ResultTable(found.formula, columns, tuple(rows), (), (*said, *notes))


def number_table(
    title: str,
    estimates: Sequence[tuple[str, Estimate]],
    quantiles: Sequence[Quantile],
    level: float = 0.95,
    notes: Sequence[str] = (),
) -> ResultTable:
    """Means, totals and quantiles with their intervals.

    estimates : pairs (name, estimate); all values of an estimate are listed.

    >>> from ldpopt.survey import estimate, mean, quantile
    >>> found = estimate({0: 40, 1: 60}, [[0.8, 0.2], [0.2, 0.8]])
    >>> number_table("demo", [("", mean(found))], [quantile(found, 0.5)]).shown()[0]
    ['mean', '0.66667', '0.08165', '0.50334', '0.81766']
    """
    rows: list[tuple[Cell, ...]] = []
    for name, found in estimates:
        for label, *rest in _shares(found, level):
            rows.append((f"{name}: {label}" if name else label, *rest))
    rows += [
        (f"quantile {one.share:g}", one.value, None, *(v if math.isfinite(v) else None for v in (one.lower, one.upper)))
        for one in quantiles
    ]
    return ResultTable(title, ("what", "estimate", "se", "lower", "upper"), tuple(rows), (), (_level(level), *notes))


def _within(table: TwoWayTable, percent: str, level: float) -> dict[Any, tuple[float | None, ...]]:
    """Shares within a row or a column, with errors and limits; empty if the row's own share is not positive."""
    made: dict[Any, tuple[float | None, ...]] = {}
    givens, others = table.row_channel.inputs, table.column_channel.inputs
    if percent == "column":
        givens, others = others, givens
    for given in givens:
        try:
            found = table.given_row(given) if percent == "row" else table.given_column(given)
        except InvalidInput:
            made |= {_pair(percent, given, other): (None,) * 4 for other in others}
            continue
        shown = found.intervals(Score(level))
        cells = zip(others, found.values, found.standard_errors, shown.lower, shown.upper, strict=True)
        made |= {_pair(percent, given, other): tuple(map(float, rest)) for other, *rest in cells}
    return made


def _pair(percent: str, given: Label, other: Label) -> tuple[Label, Label]:
    return (given, other) if percent == "row" else (other, given)


def _independence(table: TwoWayTable) -> str:
    try:
        return f"Test of {table.independence()}."
    except InvalidInput as error:
        return f"No test of independence: {error}."


def _shares(found: Estimate, level: float) -> list[tuple[str, float, float | None, float, float]]:
    shown: Intervals = found.intervals(Score(level))
    errors: Any = [None] * len(found.values) if found.boundary else map(float, found.standard_errors)
    parts = zip(found.labels, found.values, errors, shown.lower, shown.upper, strict=True)
    return [(_label(a), float(b), c, float(d), float(e)) for a, b, c, d, e in parts]


def _label(label: Label) -> str:
    return " x ".join(map(as_text, label)) if isinstance(label, tuple) else as_text(label)


def _level(level: float) -> str:
    return f"{100 * level:g} % score intervals."


def _result(test: TestResult) -> str:
    return str(test)
