"""Linear regression by unbiased moments of the reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ldpopt.channel import Channel, ChannelLike, as_channel
from ldpopt.distribution import Array, finite_array
from ldpopt.errors import Phrase, invalid
from ldpopt.survey.estimate.counts import positions
from ldpopt.survey.estimate.estimate import estimate
from ldpopt.survey.estimate.linear import GeneralizedLeastSquares, require_identifiable
from ldpopt.survey.estimate.numbers import scores_of
from ldpopt.survey.regress.formula import Regressors, numbers_of, parse_formula, public_column, regressors
from ldpopt.survey.regress.result import Regression, Sample, check_size, inverse_of

_CHUNK = 1 << 22


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
    design = regressors(asked, data, known, n)
    check_size(sample, n)
    w = np.ones(n) if sample is None else sample.weights
    d = len(design.names)
    if n <= d:
        raise invalid("data", f"more respondents than the {d} coefficients", n)
    inside = _inside(design)
    u, z = design.values.shape[:2]
    mass, moment = np.zeros((u, z)), np.zeros((u, z))
    for cell in range(z):
        each = w * inside[cell, design.reports]
        mass[:, cell], moment[:, cell] = (np.bincount(design.group, one, u) for one in (each, each * y))
    flat = design.values.reshape(-1, d)
    squares = (flat * mass.reshape(-1, 1)).T @ flat
    inverse = inverse_of(squares)
    b = inverse @ (flat.T @ moment.ravel())
    influence = np.zeros((n, d))
    fitted = design.values @ b
    step = max(1, _CHUNK // (d * z))
    for at in range(0, n, step):
        rows = slice(at, at + step)
        group, part = design.group[rows], inside[:, design.reports[rows]].T  # (s, z)
        residual = part * (y[rows, None] - fitted[group])
        influence[rows] = np.einsum("sz,szd->sd", residual, design.values[group])
    influence = influence @ inverse
    if sample is None:
        covariance, degrees = influence.T @ influence * (n / (n - d)), float(n - d)
    else:
        total = sample.total_variance(influence)
        covariance, degrees = total.covariance, total.degrees
    named = formula, "linear", design.names, (asked.outcome,), None
    return Regression(*named, b[None], covariance, n, degrees, design.levels)


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


def _inside(design: Regressors) -> Array:
    """The unbiased indicator of every private cell for every report, (z, r): a left inverse of the channel."""
    q = design.cell_channel
    if q.shape == (1, 1):
        return np.ones((1, 1))
    frequencies = np.bincount(design.reports, minlength=q.shape[1]) / len(design.reports)
    channel = Channel(q / q.sum(axis=1, keepdims=True))
    return GeneralizedLeastSquares().fit(frequencies, channel, len(design.reports))[1]
