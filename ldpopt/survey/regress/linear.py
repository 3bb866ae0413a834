"""Linear regression by unbiased moments of the reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from ldpopt.channel import Channel, ChannelLike, as_channel
from ldpopt.distribution import Array, finite_array
from ldpopt.errors import Phrase, invalid
from ldpopt.survey.estimate.counts import positions
from ldpopt.survey.estimate.estimate import estimate
from ldpopt.survey.estimate.linear import GeneralizedLeastSquares, require_identifiable
from ldpopt.survey.estimate.numbers import scores_of
from ldpopt.survey.regress.formula import (
    numbers_of,
    parse_formula,
    private_predictors,
    public_column,
    regressors,
    reports_together,
)
from ldpopt.survey.regress.moments import Indicators, Moments
from ldpopt.survey.regress.result import Regression, Sample, check_size


def linear_regression(
    formula: str,
    data: Any,
    channels: Mapping[str, ChannelLike],
    scores: ArrayLike | None = None,
    sample: Sample | None = None,
) -> Regression:
    """Least squares when the outcome is a number, or when predictors are private [Rao, chapter 4].

    formula, data, channels, sample : as in `logit_regression`.
    scores : (k,) the numbers that the k categories of a private outcome count as; by default their own numbers or the
        middles of their bins.

    Each report is replaced by an unbiased value, whose mean is the answer. So the moments X^T X and X^T y are those of
    the answers plus noise of mean zero. Nothing is assumed about the residuals, and the standard errors allow for
    unequal variances (for a simple sample they are those that statsmodels calls HC1). Raises as `logit_regression`
    does.

    >>> data = {"hours": [2.0, 4.0, 3.0, 7.0, 1.0, 6.0], "works": [0, 0, 1, 1, 0, 1]}
    >>> linear_regression("hours ~ works", data, {"works": [[0.9, 0.1], [0.1, 0.9]]}).coefficients.round(3)
    array([[1.958, 3.75 ]])
    """
    asked = parse_formula(formula)
    known = {name: as_channel(channel) for name, channel in channels.items()}
    y = _numbers(data, asked.outcome, known, scores)
    n = len(y)
    private = private_predictors(asked, known)
    design = regressors(asked, data, {name: channel.inputs for name, channel in private.items()}, n)
    check_size(sample, n)
    matrix, reports = reports_together(private, data, n)
    inside = _inside(matrix, reports)
    indicators = Indicators(reports, inside.T, inside.T[..., None], y)
    b, covariance, degrees = Moments(design, indicators, False, sample).fit()
    named = formula, "linear", design.names, (asked.outcome,), None
    return Regression(*named, b, covariance, n, degrees, design.levels, method="moments")


def _numbers(data: Any, name: str, channels: Mapping[str, Any], scores: ArrayLike | None) -> Array:
    """The outcome of each respondent: a public number itself, or the unbiased value of a report."""
    if name not in channels:
        code, kinds = public_column(data, name)
        values = numbers_of(kinds)
        if values is None:
            raise invalid(f"outcome {name!r}", "numbers (logit_regression is for categories)", Phrase("something else"))
        return values[code]
    channel = channels[name]
    require_identifiable(channel)
    values = scores_of(channel.inputs) if scores is None else finite_array(scores, "scores", 1)
    if len(values) != channel.shape[0]:
        raise invalid("scores", f"one for each of the {channel.shape[0]} categories of {name!r}", len(values))
    y = positions(data[name], channel.outputs)
    if not len(y):
        raise invalid("data", "at least one respondent", Phrase("none"))
    return np.asarray((values @ estimate(np.bincount(y, minlength=channel.shape[1]), channel).loadings)[y])


def _inside(matrix: Array, reports: npt.NDArray[np.intp]) -> Array:
    """The unbiased indicator of every private cell for every report, (z, r): a left inverse of the channel (z, r)."""
    if matrix.shape == (1, 1):
        return np.ones((1, 1))
    frequencies = np.bincount(reports, minlength=matrix.shape[1]) / len(reports)
    channel = Channel(matrix / matrix.sum(axis=1, keepdims=True))
    return GeneralizedLeastSquares().fit(frequencies, channel, len(reports))[1]
