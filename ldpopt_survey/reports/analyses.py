"""Estimates, tables, comparisons and regressions as tables of results, with one row for each number."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
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

TOTALS = ("all", "row", "column")
"""The population of a cell's proportion: all respondents, its row or its column."""

ERROR_COLUMNS = ("se", "lower", "upper")

UNCLIPPED = "Estimates are unbiased: one of a proportion near zero may be negative. Intervals are not cut at 0 and 1."


def share_table(
    title: str, estimates: Mapping[str, Mapping[str, Estimate | None]], level: float = 0.95, notes: Sequence[str] = ()
) -> ResultTable:
    """List the proportion of every answer by question, and by group if there are several.

    The group "" is everybody. A question or a group without an estimate, None, has one row without an answer.
    """
    has_groups = any(group for by_group in estimates.values() for group in by_group)
    no_numbers: tuple[Cell, ...] = (None,) * (2 + len(ERROR_COLUMNS))
    rows: list[tuple[Cell, ...]] = [
        (question, *((group or "everybody",) if has_groups else ()), *row, None if estimated is None else estimated.n)
        for question, by_group in estimates.items()
        for group, estimated in by_group.items()
        for row in ([no_numbers] if estimated is None else _shares(estimated, level))
    ]
    columns = ("question", *(("group",) if has_groups else ()), "answer", "share", *ERROR_COLUMNS, "respondents")
    sample_estimate = next(
        estimate for by_group in estimates.values() for estimate in by_group.values() if estimate is not None
    )
    interval_note = f"{100 * level:g} % {sample_estimate.intervals(Binomial(level)).interval}s."
    return ResultTable(title, columns, tuple(rows), ("share", *ERROR_COLUMNS), (interval_note, UNCLIPPED, *notes))


def two_way_rows(
    title: str,
    table: TwoWayTable,
    names: tuple[str, str],
    percent: str = "all",
    level: float = 0.95,
    notes: Sequence[str] = (),
) -> ResultTable:
    """List the cells of a two-way table with intervals, and its test of independence.

    Proportions are of all respondents, or within "row" or "column".
    """
    if percent not in TOTALS:
        raise invalid("percent", f"one of {', '.join(TOTALS)}", percent)
    pairs = [(a, b) for a in table.row_channel.inputs for b in table.column_channel.inputs]
    if percent == "all":
        cells = dict(zip(pairs, (row[1:] for row in _shares(table.joint, level)), strict=True))
    else:
        cells = _conditional_cells(table, percent, level)
    rows = [(as_text(a), as_text(b), *cells[a, b]) for a, b in pairs]
    condition = {"all": "all respondents", "row": names[0], "column": names[1]}[percent]
    population = condition if percent == "all" else f"those with the same {condition}"
    note_lines = [f"Proportions of {population}. {_interval_note(level)}", UNCLIPPED, *notes, _independence(table)]
    return ResultTable(
        title, (*names, "share", *ERROR_COLUMNS), tuple(rows), ("share", *ERROR_COLUMNS), tuple(note_lines)
    )


def three_way_rows(
    title: str,
    table: ThreeWayTable,
    names: tuple[str, str, str],
    percent: str = "all",
    level: float = 0.95,
    notes: Sequence[str] = (),
    tests: Mapping[Any, TestResult | str] | None = None,
) -> ResultTable:
    """List the cells of a three-way table with intervals, layer by layer.

    Proportions are of all respondents, or within the layer, its rows or its columns. Cells that the table leaves out
    have no numbers, and notes name the reason.

    tests : tests of independence of row and column in every layer, or the reason for its absence.
    """
    if percent not in (*TOTALS, "layer"):
        raise invalid("percent", f"one of {', '.join(TOTALS)}, layer", percent)
    first, second, third = (side.inputs for side in (table.row_channel, table.column_channel, table.layer_channel))
    joint_cells = dict(zip(table.joint.labels, (row[1:] for row in _shares(table.joint, level)), strict=True))
    rows: list[tuple[Cell, ...]] = []
    note_lines = list(_left_out_notes(table, names))
    note_lines += [
        f"{names[2]} {as_text(label)}: {_test_note(test)}"
        for label, test in (tests or {}).items()
        if label not in table.reasons_left_out(2)
    ]
    for label in third:
        pairs = [(a, b) for a in first for b in second]
        cells: dict[Any, tuple[float | None, ...]] = {pair: (None,) * 4 for pair in pairs}
        if percent == "all":
            cells = {pair: joint_cells[(*pair, label)] for pair in pairs}
        else:
            with suppress(InvalidInput):  # where nobody is estimated to be in the layer
                layer_table = table.layer(label)
                shares = None if percent != "layer" else (row[1:] for row in _shares(layer_table.joint, level))
                cells = (
                    dict(zip(pairs, shares, strict=True)) if shares else _conditional_cells(layer_table, percent, level)
                )
        cells |= {(a, b): (None,) * 4 for a, b in pairs if (a, b, label) in table.left_out}
        rows += [(as_text(label), as_text(a), as_text(b), *cells[a, b]) for a, b in pairs]
    conditions = {"row": f"{names[2]} and {names[0]}", "column": f"{names[2]} and {names[1]}", "layer": names[2]}
    population = "all respondents" if percent == "all" else f"those with the same {conditions[percent]}"
    note_lines = [f"Proportions of {population}. {_interval_note(level)}", UNCLIPPED, *notes, *note_lines]
    columns = (names[2], names[0], names[1], "share", *ERROR_COLUMNS)
    return ResultTable(title, columns, tuple(rows), ("share", *ERROR_COLUMNS), tuple(note_lines))


def _left_out_notes(table: ThreeWayTable, names: tuple[str, str, str]) -> Iterator[str]:
    """A note for each value that is left out with all its cells, and the reason."""
    for side, name in enumerate(names):
        for label, reason in table.reasons_left_out(side).items():
            yield f"{name} {as_text(label)}: no proportions{' and no test' if side == 2 else ''} ({reason})."


def difference_table(
    title: str,
    differences: Mapping[tuple[str, str, str], Difference],
    tests: Mapping[str, TestResult],
    level: float = 0.95,
    notes: Sequence[str] = (),
) -> ResultTable:
    """List differences (first - second) by question and groups, category by category.

    The notes have the test of each question.
    """
    rows: list[tuple[Cell, ...]] = [
        (*groups, as_text(label), *numbers)
        for groups, difference in differences.items()
        for label, *numbers in _numbers(
            difference.labels,
            difference.values,
            difference.standard_errors,
            difference.intervals(Binomial(level)),
            difference.p_values,
        )
    ]
    columns = ("question", "group", "against", "answer", "difference", *ERROR_COLUMNS, "p")
    note_lines = [f"Differences of proportions, group minus reference group. {_interval_note(level)}"]
    note_lines += [
        f"{question}: test that all groups agree: {tests[question]}."
        if question in tests
        else f"{question}: no test that all groups agree: too few units, or reports that do not vary."
        for question in dict.fromkeys(question for question, *_ in differences)
    ]
    return ResultTable(title, columns, tuple(rows), ("difference", *ERROR_COLUMNS), (*note_lines, *notes))


def regression_table(
    fit: Regression, level: float = 0.95, odds: bool = False, notes: Sequence[str] = ()
) -> ResultTable:
    """List the coefficients of a regression, or its odds ratios if `odds` is set."""
    if odds and fit.kind == "linear":
        raise invalid("odds ratios", "a logistic or multinomial regression", fit.kind)
    limits = fit.odds_ratios(level) if odds else fit.intervals(level)
    values = np.exp(fit.values) if odds else fit.values
    names = [(as_text(e), name) for e in fit.equations for name in fit.names]
    parts = _numbers(names, values.ravel(), fit.standard_errors.ravel(), limits, fit.p_values.ravel())
    selected_columns = slice(
        int(odds), None
    )  # next to a ratio, the coefficient's error would be mistaken for the ratio's
    columns = ("category", "term", "odds ratio" if odds else "coefficient", *ERROR_COLUMNS[selected_columns], "p")
    rows: list[tuple[Cell, ...]] = [(*name, value, *rest[selected_columns]) for name, value, *rest in parts]
    note_lines = [f"{fit.kind.capitalize()} regression of the true answers of {fit.n:,} respondents: {fit.formula}."]
    if fit.kind != "linear":
        note_lines.append(f"Log-odds of {', '.join(map(as_text, fit.equations))} against {as_text(fit.reference)}.")
    if not fit.degrees:
        note_lines.append(
            "No degrees of freedom are left (units less strata less slopes): the errors are no less than those of the "
            "reports' randomness, but nothing shows how large they are, and there are no intervals."
        )
    if fit.kind != "linear":
        note_lines.append(f"By {fit.method}: the coefficients tend to {fit.estimand}.")
    if fit.method == "penalised likelihood":
        note_lines.append("The likelihood has no finite maximum: it is penalised, which draws coefficients towards 0.")
    note_lines += [f"{name}: compared with {as_text(level_)}." for name, level_ in fit.levels.items()]
    if fit.log_likelihood is not None:
        note_lines.append(f"Log-likelihood of the reports {fit.log_likelihood:.4f}.")
    if any(name != "Intercept" for name in fit.names):
        try:
            note_lines.append(f"Test: {fit.slopes()}.")
        except InvalidInput as error:
            note_lines.append(f"No test of the slopes: {error}.")
    note_lines.append(f"{100 * level:g} % Wald intervals.")
    return ResultTable(fit.formula, columns, tuple(rows), (), (*note_lines, *notes))


def number_table(
    title: str,
    estimates: Sequence[tuple[str, Estimate]],
    quantiles: Sequence[Quantile],
    level: float = 0.95,
    notes: Sequence[str] = (),
) -> ResultTable:
    """List means, totals and quantiles with their intervals.

    All values of each named estimate are listed.
    """
    rows: list[tuple[Cell, ...]] = [
        (f"{name}: {label}" if name else label, *rest)
        for name, estimate in estimates
        for label, *rest in _shares(estimate, level)
    ]
    rows += [
        (f"quantile {point.share:g}", numbers[0], None, *numbers[1:])
        for point in quantiles
        for numbers in [[v if math.isfinite(v) else None for v in (point.value, point.lower, point.upper)]]
    ]
    return ResultTable(title, ("what", "estimate", *ERROR_COLUMNS), tuple(rows), (), (_interval_note(level), *notes))


def _conditional_cells(table: TwoWayTable, percent: str, level: float) -> dict[Any, tuple[float | None, ...]]:
    """Proportions within a row or a column, with errors and limits; empty if its own proportion is not positive."""
    cells: dict[Any, tuple[float | None, ...]] = {}
    by_row = percent == "row"
    conditions, others = (table.row_channel.inputs, table.column_channel.inputs)[:: 1 if by_row else -1]
    for condition in conditions:
        pairs = [(condition, other) if by_row else (other, condition) for other in others]
        try:
            shares = table.given_row(condition) if by_row else table.given_column(condition)
        except InvalidInput:
            cells |= dict.fromkeys(pairs, (None,) * 4)
            continue
        limits = shares.intervals(Binomial(level))
        cells |= {pair: tuple(rest) for pair, *rest in _numbers(pairs, shares.values, shares.standard_errors, limits)}
    return cells


def _independence(table: TwoWayTable) -> str:
    try:
        return _test_note(table.independence())
    except InvalidInput as error:
        return _test_note(str(error))


def _test_note(test: TestResult | str) -> str:
    return f"No test of independence: {test}." if isinstance(test, str) else f"Test of {test}."


def _shares(estimate: Estimate, level: float) -> list[tuple[Any, ...]]:
    """Each answer's name, proportion, error and limits; without an error at the boundary."""
    errors = None if estimate.boundary else estimate.standard_errors
    return _numbers(map(_label, estimate.labels), estimate.values, errors, estimate.intervals(Binomial(level)))


def _numbers(
    labels: Iterable[Any], values: Array, errors: Array | None, limits: Any, *further_columns: Array
) -> list[tuple[Any, ...]]:
    """Each label with its value, error, limits and further columns; None where a number is missing or infinite."""
    missing: Any = [None] * len(values)
    rows = zip(
        labels, values, missing if errors is None else errors, limits.lower, limits.upper, *further_columns, strict=True
    )
    return [
        (label, *(None if number is None or not math.isfinite(number) else float(number) for number in rest))
        for label, *rest in rows
    ]


def _label(label: Label) -> str:
    return " x ".join(map(as_text, label)) if isinstance(label, tuple) else as_text(label)


def _interval_note(level: float) -> str:
    return f"{100 * level:g} % binomial intervals."
