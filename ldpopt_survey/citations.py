"""Name the papers behind the results of surveys, for `ldpopt.cite`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import ldpopt_survey as survey

_PAPERS_BY_ESTIMATOR = {
    "generalized least squares": "[Rao, chapter 4]",
    "least squares": "[Rao, chapter 4]",
    "left inverse": "[Rao, chapter 4]",
    "maximum likelihood": "[DLR; VR]",
}
"""The name of the estimator that an estimate states, and the papers of that estimator."""

_PAPERS_BY_INTERVAL = {
    "sequence": "[WSR; WSWR]",
    "Wald": "[Rao, chapter 6]",
    "binomial": "[BCD]",
    "simultaneous": "[HBW]",
    "Bonferroni": "[Rao, chapter 6]",
    "bootstrap percentile": "[Efron]",
    "Woodruff": "[Woodruff]",
}
"""Words in the text `method` of intervals, and the papers of that method."""

_FUNCTION_BY_TEST: dict[str, Callable[..., Any]] = {
    "goodness of fit": survey.goodness_of_fit,
    "two samples": survey.two_sample,
    "independence": survey.two_way,
    "all slopes zero": survey.logit_regression,
}
"""The name of a test, and the function whose documentation cites its papers."""

_FUNCTION_BY_RESULT: dict[type, Callable[..., Any]] = {
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
    """Return citations, and functions whose documentation cites papers, or None.

    None is for a result that names its sources itself.
    """
    if isinstance(result, survey.Estimate):
        return survey.estimate, _PAPERS_BY_ESTIMATOR[result.estimator]
    if isinstance(result, survey.Intervals):
        return [papers for word, papers in _PAPERS_BY_INTERVAL.items() if word in result.method]
    if isinstance(result, survey.TestResult):
        return (_FUNCTION_BY_TEST[result.name],)
    if isinstance(result, survey.Regression):
        return (survey.linear_regression if result.kind == "linear" else survey.logit_regression,)
    return (_FUNCTION_BY_RESULT[type(result)],) if type(result) in _FUNCTION_BY_RESULT else None
