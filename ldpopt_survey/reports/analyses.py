"""Estimates, tables, comparisons and regressions as tables of results, with one row for each number."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from ldpopt.channel import Label
from ldpopt.errors import InvalidInput, invalid
from ldpopt.values.distribution import Array
from ldpopt.values.labels import as_text
from ldpopt_survey.estimate.estimate import Estimate
from ldpopt_survey.estimate.groups import Difference
from ldpopt_survey.estimate.intervals import Binomial
from ldpopt_survey.estimate.numbers import Quantile
from ldpopt_survey.estimate.tables import ThreeWayTable, TwoWayTable
from ldpopt_survey.hypothesis_tests import TestResult
from ldpopt_survey.regress.result import Regression
from ldpopt_survey.reports.page import Cell, ResultTable

PERCENT = ("all", "row", "column")
"""The total of which a cell's share is shown: everybody, its row or its column."""

LIMITS = ("se", "lower", "upper")

UNCLIPPED = "Estimates are unbiased, so that a share near zero may come out below it; intervals are not cut at 0 and 1."


def share_table(
    title: str, estimates: Mapping[str, Mapping[str, Estimate]], level: float = 0.95, notes: Sequence[str] = ()
) -> ResultTable:
    """The shares of every answer: by question, and by group if there is more than one; the group "" is everybody."""
    grouped = any(group for inside in estimates.values() for group in inside)
    rows: list[tuple[Cell, ...]] = [
        (question, *((group or "everybody",) if grouped else ()), *row, estimated.n)
        for question, inside in estimates.items()
        for group, estimated in inside.items()
        for row in _shares(estimated, level)
    ]
    columns = ("question", *(("group",) if grouped else ()), "answer", "share", *LIMITS, "respondents")
    any_found = next(estimate for inside in estimates.values() for estimate in inside.values())
    said = f"{100 * level:g} % {any_found.intervals(Binomial(level)).interval}s."
    return ResultTable(title, columns, tuple(rows), ("share", *LIMITS), (said, UNCLIPPED, *notes))


def two_way_rows(
    title: str,
    table: TwoWayTable,
    names: tuple[str, str],
    percent: str = "all",
    level: float = 0.95,
    notes: Sequence[str] = (),
) -> ResultTable:
    """The cells of a two-way table with intervals: shares of all, or within "row" or "column", and the test."""
    if percent not in PERCENT:
        raise invalid("percent", f"one of {', '.join(PERCENT)}", percent)
    pairs = [(a, b) for a in table.row_channel.inputs for b in table.column_channel.inputs]
    if percent == "all":
        cells = dict(zip(pairs, (row[1:] for row in _shares(table.joint, level)), strict=True))
    else:
        cells = _within(table, percent, level)
    rows = [(as_text(a), as_text(b), *cells[a, b]) for a, b in pairs]
    whose = {"all": "all respondents", "row": names[0], "column": names[1]}[percent]
    of = whose if percent == "all" else f"those with the same {whose}"
    said = [f"Shares of {of}. {_level(level)}", UNCLIPPED, *notes, _independence(table)]
    return ResultTable(title, (*names, "share", *LIMITS), tuple(rows), ("share", *LIMITS), tuple(said))


def three_way_rows(
    title: str,
    table: ThreeWayTable,
    names: tuple[str, str, str],
    percent: str = "all",
    level: float = 0.95,
    notes: Sequence[str] = (),
    tests: Mapping[Any, TestResult | str] | None = None,
) -> ResultTable:
    """The cells of a three-way table, layer by layer: shares of all or within the layer, its rows or its columns.

    tests : of independence of row and column in every layer, or why there is none.
    """
    if percent not in (*PERCENT, "layer"):
        raise invalid("percent", f"one of {', '.join(PERCENT)}, layer", percent)
    first, second, third = (side.inputs for side in (table.row_channel, table.column_channel, table.layer_channel))
    every = dict(zip(table.joint.labels, (row[1:] for row in _shares(table.joint, level)), strict=True))
    rows: list[tuple[Cell, ...]] = []
    said = [f"{names[2]} {as_text(label)}: {_tested(test)}" for label, test in (tests or {}).items()]
    for label in third:
        pairs = [(a, b) for a in first for b in second]
        cells: dict[Any, tuple[float | None, ...]] = {pair: (None,) * 4 for pair in pairs}
        if percent == "all":
            cells = {pair: every[(*pair, label)] for pair in pairs}
        else:
            with suppress(InvalidInput):  # where nobody is estimated to be in the layer
                inside = table.layer(label)
                shares = None if percent != "layer" else (row[1:] for row in _shares(inside.joint, level))
                cells = dict(zip(pairs, shares, strict=True)) if shares else _within(inside, percent, level)
        rows += [(as_text(label), as_text(a), as_text(b), *cells[a, b]) for a, b in pairs]
    whose = {"row": f"{names[2]} and {names[0]}", "column": f"{names[2]} and {names[1]}", "layer": names[2]}
    of = "all respondents" if percent == "all" else f"those with the same {whose[percent]}"
    said = [f"Shares of {of}. {_level(level)}", UNCLIPPED, *notes, *said]
    columns = (names[2], names[0], names[1], "share", *LIMITS)
    return ResultTable(title, columns, tuple(rows), ("share", *LIMITS), tuple(said))


def difference_table(
    title: str,
    differences: Mapping[tuple[str, str, str], Difference],
    tests: Mapping[str, TestResult],
    level: float = 0.95,
    notes: Sequence[str] = (),
) -> ResultTable:
    """Differences (first - second) by question and groups, category by category, with each question's test."""
    rows: list[tuple[Cell, ...]] = [
        (*compared, as_text(label), *numbers)
        for compared, gaps in differences.items()
        for label, *numbers in _numbers(
            gaps.labels, gaps.values, gaps.standard_errors, gaps.intervals(Binomial(level)), gaps.p_values
        )
    ]
    columns = ("question", "group", "against", "answer", "difference", *LIMITS, "p")
    said = [f"Differences of shares, group minus the one it is held against. {_level(level)}"]
    said += [
        f"{question}: test that all groups agree: {tests[question]}."
        if question in tests
        else f"{question}: no test that all groups agree: too few units, or reports that do not vary."
        for question in dict.fromkeys(question for question, *_ in differences)
    ]
    return ResultTable(title, columns, tuple(rows), ("difference", *LIMITS), (*said, *notes))


def regression_table(
    fit: Regression, level: float = 0.95, odds: bool = False, notes: Sequence[str] = ()
) -> ResultTable:
    """The coefficients of a regression, or its odds ratios if `odds` is set."""
    if odds and fit.kind == "linear":
        raise invalid("odds ratios", "a logistic or multinomial regression", fit.kind)
    shown = fit.odds_ratios(level) if odds else fit.intervals(level)
    values = np.exp(fit.values) if odds else fit.values
    names = [(as_text(e), name) for e in fit.equations for name in fit.names]
    parts = _numbers(names, values.ravel(), fit.standard_errors.ravel(), shown, fit.p_values.ravel())
    kept = slice(int(odds), None)  # beside a ratio, the coefficient's error would be taken for its own
    columns = ("category", "term", "odds ratio" if odds else "coefficient", *LIMITS[kept], "p")
    rows: list[tuple[Cell, ...]] = [(*name, value, *rest[kept]) for name, value, *rest in parts]
    said = [f"{fit.kind.capitalize()} regression of the true answers of {fit.n:,} respondents: {fit.formula}."]
    if fit.kind != "linear":
        said.append(f"Log-odds of {', '.join(map(as_text, fit.equations))} against {as_text(fit.reference)}.")
    if not fit.degrees:
        said.append(
            "No degrees of freedom are left (units less strata less slopes): the errors are no less than those of the "
            "reports' randomness, but nothing shows how large they are, and there are no intervals."
        )
    if fit.kind != "linear":
        said.append(f"By {fit.method}: the coefficients tend to {fit.estimand}.")
    if fit.method == "penalised likelihood":
        said.append("The likelihood has no finite maximum: it is penalised, which draws coefficients towards 0.")
    said += [f"{name}: compared with {as_text(level_)}." for name, level_ in fit.levels.items()]
    if fit.log_likelihood is not None:
        said.append(f"Log-likelihood of the reports {fit.log_likelihood:.4f}.")
    if any(name != "Intercept" for name in fit.names):
        try:
            said.append(f"Test: {fit.slopes()}.")
        except InvalidInput as error:
            said.append(f"No test of the slopes: {error}.")
    said.append(f"{100 * level:g} % Wald intervals.")
    return ResultTable(fit.formula, columns, tuple(rows), (), (*said, *notes))


def number_table(
    title: str,
    estimates: Sequence[tuple[str, Estimate]],
    quantiles: Sequence[Quantile],
    level: float = 0.95,
    notes: Sequence[str] = (),
) -> ResultTable:
    """Means, totals and quantiles with their intervals; all values of each named estimate are listed."""
    rows: list[tuple[Cell, ...]] = [
        (f"{name}: {label}" if name else label, *rest)
        for name, estimated in estimates
        for label, *rest in _shares(estimated, level)
    ]
    rows += [
        (f"quantile {point.share:g}", known[0], None, *known[1:])
        for point in quantiles
        for known in [[v if math.isfinite(v) else None for v in (point.value, point.lower, point.upper)]]
    ]
    return ResultTable(title, ("what", "estimate", *LIMITS), tuple(rows), (), (_level(level), *notes))


def _within(table: TwoWayTable, percent: str, level: float) -> dict[Any, tuple[float | None, ...]]:
    """Shares within a row or a column, with errors and limits; empty if the row's own share is not positive."""
    cells: dict[Any, tuple[float | None, ...]] = {}
    row = percent == "row"
    givens, others = (table.row_channel.inputs, table.column_channel.inputs)[:: 1 if row else -1]
    for given in givens:
        pairs = [(given, other) if row else (other, given) for other in others]
        try:
            shares = table.given_row(given) if row else table.given_column(given)
        except InvalidInput:
            cells |= dict.fromkeys(pairs, (None,) * 4)
            continue
        shown = shares.intervals(Binomial(level))
        cells |= {pair: tuple(rest) for pair, *rest in _numbers(pairs, shares.values, shares.standard_errors, shown)}
    return cells


def _independence(table: TwoWayTable) -> str:
    try:
        return _tested(table.independence())
    except InvalidInput as error:
        return _tested(str(error))


def _tested(test: TestResult | str) -> str:
    return f"No test of independence: {test}." if isinstance(test, str) else f"Test of {test}."


def _shares(estimated: Estimate, level: float) -> list[tuple[Any, ...]]:
    """For each answer its name, share, error and limits; at the boundary there is no error."""
    errors = None if estimated.boundary else estimated.standard_errors
    return _numbers(map(_label, estimated.labels), estimated.values, errors, estimated.intervals(Binomial(level)))


def _numbers(
    labels: Iterable[Any], values: Array, errors: Array | None, limits: Any, *more: Array
) -> list[tuple[Any, ...]]:
    """For each label its value, error and limits, and what else there is; nothing where there is no limit."""
    none: Any = [None] * len(values)
    rows = zip(labels, values, none if errors is None else errors, limits.lower, limits.upper, *more, strict=True)
    return [
        (label, *(None if number is None or not math.isfinite(number) else float(number) for number in rest))
        for label, *rest in rows
    ]


def _label(label: Label) -> str:
    return " x ".join(map(as_text, label)) if isinstance(label, tuple) else as_text(label)


def _level(level: float) -> str:
    return f"{100 * level:g} % binomial intervals."
