"""The papers behind the results of surveys, for `ldpopt.cite`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import ldpopt_survey as survey

_ESTIMATED_BY = {
    "generalised least squares": "[Rao, chapter 4]",
    "least squares": "[Rao, chapter 4]",
    "left inverse": "[Rao, chapter 4]",
    "maximum likelihood": "[DLR; VR]",
}
"""The name of the estimator that an estimate states, and the papers of that estimator."""

_INTERVALS = {
    "sequence": "[WSR; WSWR]",
    "Wald": "[Rao, chapter 6]",
    "binomial": "[BCD]",
    "simultaneous": "[HBW]",
    "Bonferroni": "[Rao, chapter 6]",
    "bootstrap percentile": "[Efron]",
    "Woodruff": "[Woodruff]",
}
"""Words in the text `method` of intervals, and the papers of that method."""

_TESTED_BY: dict[str, Callable[..., Any]] = {
    "goodness of fit": survey.goodness_of_fit,
    "two samples": survey.two_sample,
    "independence": survey.two_way,
    "all slopes zero": survey.logit_regression,
}
"""The name of a test, and the function whose documentation cites its papers."""

_MADE_BY: dict[type, Callable[..., Any]] = {
    survey.Difference: survey.difference,
    survey.TwoWayTable: survey.two_way,
    survey.MultiSelect: survey.multi_select,
    survey.NumericQuestion: survey.numeric_question,
    survey.Quantile: survey.quantile,
    survey.Bootstrap: survey.parametric_bootstrap,
    survey.Power: survey.goodness_of_fit_power,
    survey.ProtocolTable: survey.compare_protocols,
}
"""Results that do not name their source, and the functions that return them."""


def sources(result: Any) -> Iterable[Any] | None:
    """Citations, and functions whose documentation cites papers; None for what names its sources itself."""
    if isinstance(result, survey.Estimate):
        return survey.estimate, _ESTIMATED_BY[result.estimator]
    if isinstance(result, survey.Intervals):
        return [papers for word, papers in _INTERVALS.items() if word in result.method]
    if isinstance(result, survey.TestResult):
        return (_TESTED_BY[result.name],)
    if isinstance(result, survey.Regression):
        return (survey.linear_regression if result.kind == "linear" else survey.logit_regression,)
    return (_MADE_BY[type(result)],) if type(result) in _MADE_BY else None
