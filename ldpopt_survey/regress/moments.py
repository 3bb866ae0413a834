"""Unbiased indicators of private answers -> regressions by moments, linear or logistic, also of shared reports.

For any answers, the mean of a report's indicators is the indicators of the answers. So the equations that least squares
or logistic regression solves for true answers hold for reports, except for noise of mean zero [Rao, chapter 4; VHG].
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike
from scipy import sparse

from ldpopt.channel import Channel, ChannelLike, Label, as_channel
from ldpopt.errors import InvalidInput, Phrase, SolverError, invalid
from ldpopt.values.distribution import Array, finite_array
from ldpopt_survey.estimate.counts import positions
from ldpopt_survey.estimate.groups import Source, loadings_of
from ldpopt_survey.estimate.linear import GeneralizedLeastSquares, require_identifiable
from ldpopt_survey.estimate.numbers import scores_of
from ldpopt_survey.regress.formula import Formula, parse_formula
from ldpopt_survey.regress.regressors import (
    Codes,
    Regressors,
    combine_reports,
    declared_ranks,
    numbers_of,
    private_predictors,
    public_column,
    reference_first,
    regressors,
    sort_codes,
)
from ldpopt_survey.regress.result import (
    Regression,
    Sample,
    Subsample,
    as_subsample,
    inverse_of,
    no_finite_coefficients,
    require_finite,
    softmax,
    weak_terms,
)
from ldpopt_survey.sample.design import SamplingVariance

MAX_MOMENT_ENTRIES = 1 << 22


@dataclass(frozen=True)
class Moments:
    """The equations of a regression by moments for its coefficients b, (e, d).

    They are::

        sum_i w_i sum_z (outcome_iz factor_i - cell_iz f(x_iz b)) x_iz = 0

    f is the identity, or if `logit` the probabilities of the categories except the reference.

    - `report` : (n,) positions among all R possible reports of the predictors, or of the outcome together with them.
    - `cell` : (R, z) each report's unbiased indicators of the cells of the private predictors.
    - `outcome` : (R, z, e) or (R, z, 1) the same times the outcome, as far as the report identifies it. There are e
      numbers: one, or an indicator for each category except the reference.
    - `factor` : (n, e) or (1, 1), the remaining factor of the outcome.
    - `squares` : an outcome and a factor of the same shapes for the squares of the outcome's numbers.
    - `report_factors` : (R,) the factor that multiplied the indicators of each report.
    """

    design: Regressors
    report: Codes
    cell: Array
    outcome: Array
    factor: Array
    logit: bool
    squares: tuple[Array, Array]
    report_factors: Array
    sample: Subsample | None = None

    def fit(self) -> tuple[Array, SamplingVariance]:
        """Fit the coefficients (e, d), with their covariance (e d, e d) and its degrees of freedom."""
        d, e, n = self.design.values.shape[2], self._equations, len(self.design.group)
        if n <= e * d:
            raise invalid("data", f"more respondents than the {e * d} coefficients", n)
        coefficients, inverse = self._solve(self._weights, np.zeros(e * d))
        b = coefficients.reshape(e, d)
        scores = self._scores(b)
        influence = scores @ inverse
        if self.sample is None:
            covariance = influence.T @ influence * (n / (n - d))
            return b, SamplingVariance(covariance, math.inf if self.logit else float(n - d))
        unit = inverse * self.sample.largest_weight
        noise = (
            unit
            @ self.sample.channel_noise(lambda respondents, squares: self._noise(b, scores, respondents, squares))
            @ unit
        )

        def refit(weights: Array) -> Array:
            return self._solve(weights, coefficients)[0]

        return b, self.sample.variance(influence, noise, refit, d - 1)

    @property
    def _weights(self) -> Array:
        return np.ones(len(self.design.group)) if self.sample is None else self.sample.weights

    def _solve(self, weights: Array, start: Array) -> tuple[Array, Array]:
        """The coefficients (e d,) under weights (n,), and the inverse of minus the equations' derivative.

        Newton's steps of a logit are halved until the next one is shorter, which does not depend on the units of the
        regressors.
        """
        mass, moment = self._weighted_sums(weights)
        e = self._equations
        scale = np.tile(np.sqrt((self.design.values**2).mean(axis=(0, 1))), e)
        b, (_score, information) = start, self._evaluate(start, mass, moment)
        inverse = inverse_of(information, self._names)
        if self.logit:
            b, information, inverse = self._solve_logit(b, mass, moment, scale)
        else:
            for _ in range(2):  # the second step removes rounding errors of the first
                b = b + inverse @ self._evaluate(b, mass, moment)[0]
        if not np.linalg.eigvalsh(information / np.outer(scale, scale)).min() > 0:
            remedy = "drop predictors, join categories, or collect more reports"
            terms = weak_terms(information, scale, self._names)
            raise SolverError(f"regression: so few reports do not distinguish the coefficients of {terms} ({remedy})")
        if self.logit:
            require_finite(information, scale, float(weights.mean()), self._names)
        return b, inverse

    def _solve_logit(self, b: Array, mass: Array, moment: Array, scale: Array) -> tuple[Array, Array, Array]:
        """The coefficients of a logit, and there minus the equations' derivative and its inverse, or `SolverError`."""
        score, information = self._evaluate(b, mass, moment)
        inverse = inverse_of(information, self._names)
        step = inverse @ score
        for _ in range(100):
            if np.abs(step * scale).max() < 1e-9 * (1 + np.abs(b * scale).max()):
                return b, information, inverse
            step_size = min(1.0, 4.0 / float(np.abs(step * scale).max()))
            while step_size > 1e-6:
                next_step = inverse @ self._evaluate(b + step_size * step, mass, moment)[0]
                if np.linalg.norm(next_step * scale) <= (1 - step_size / 4) * np.linalg.norm(step * scale):
                    break
                step_size /= 2
            b = b + step_size * step
            score, information = self._evaluate(b, mass, moment)
            if step_size <= 1e-6 or np.abs(b * scale).max() > 60 * math.sqrt(self._equations):
                break
            try:
                inverse = inverse_of(information, self._names)
            except InvalidInput:  # probabilities of 0 and 1 carry no information
                break
            step = inverse @ score
        raise no_finite_coefficients(information, scale, self._names)

    @property
    def _equations(self) -> int:
        return int(max(self.outcome.shape[2], self.factor.shape[1]))

    @property
    def _names(self) -> tuple[str, ...]:
        """The term of each coefficient, (e d,)."""
        return self.design.names * self._equations

    def _weighted_sums(self, weights: Array) -> tuple[Array, Array]:
        """The weighted sums of the indicators over the respondents of each public row: (u, z) and (u, z, e)."""
        group, e = self.design.group, self._equations
        shape = len(self.design.values), len(self.cell)

        def weighted_sum(table: Array, factor: Array | float = 1.0) -> Array:
            return np.asarray(sparse.csr_array((weights * factor, (group, self.report)), shape=shape) @ table)

        outcome = np.broadcast_to(self.outcome, (*self.cell.shape, e))
        factor = np.broadcast_to(self.factor, (len(group), e))
        return weighted_sum(self.cell), np.stack(
            [weighted_sum(outcome[..., i], factor[:, i]) for i in range(e)], axis=-1
        )

    def _expected(self, b: Array, rows: npt.NDArray[np.intp] | slice = slice(None)) -> Array:
        """f(x b) for some public rows, (u, z, e)."""
        odds = self.design.values[rows] @ b.T
        if not self.logit:
            return np.asarray(odds)
        return softmax(np.concatenate([np.zeros((*odds.shape[:-1], 1)), odds], axis=-1))[..., 1:]

    def _evaluate(self, b: Array, mass: Array, moment: Array) -> tuple[Array, Array]:
        """The equations' left side (e d,), and minus its derivative (e d, e d)."""
        x, e = self.design.values, moment.shape[2]
        flat, d = x.reshape(-1, x.shape[2]), x.shape[2]
        expected = self._expected(b.reshape(e, d))
        score = (moment - mass[..., None] * expected).reshape(-1, e).T @ flat
        information = np.empty((e, d, e, d))
        for i in range(e):
            for j in range(e):
                slope = expected[..., i] * ((i == j) - expected[..., j]) if self.logit else np.ones(mass.shape)
                information[i, :, j] = flat.T @ (flat * (mass * slope).reshape(-1, 1))
        return score.ravel(), information.reshape(e * d, e * d)

    def _scores(self, b: Array) -> Array:
        """Each respondent's part of the equations, (n, e d), without weights."""
        group, (e, d) = self.design.group, b.shape
        factor = np.broadcast_to(self.factor, (len(group), self.factor.shape[1]))
        scores = np.zeros((len(group), e * d))
        step = max(1, MAX_MOMENT_ENTRIES // (max(d, e) * self.design.values.shape[1]))
        for start in range(0, len(group), step):
            rows = slice(start, start + step)
            report, row = self.report[rows], group[rows]
            residual = self.outcome[report] * factor[rows, None]
            residual = residual - self.cell[report][..., None] * self._expected(b, row)
            scores[rows] = np.einsum("sze,szd->sed", residual, self.design.values[row]).reshape(-1, e * d)
        return scores

    def _noise(self, b: Array, scores: Array, respondents: npt.NDArray[np.intp], squares: Array) -> Array:
        """The channel's part of the variance of the scores of some respondents, (e d, e d).

        It is the sum of squares w_i^2 of their scores, less an unbiased estimate of the same sum for true answers.
        """
        e, d = b.shape
        group, report = self.design.group[respondents], self.report[respondents]
        expected = self._expected(b, group)
        square, factor_square = self.squares
        factor = np.broadcast_to(self.factor, (len(self.design.group), e))[respondents]
        factor_square = np.broadcast_to(factor_square, (len(self.design.group), e))[respondents]
        weights = squares * self.report_factors[report]
        respondent_scores = scores[respondents]
        noise = ((respondent_scores * squares[:, None]).T @ respondent_scores).reshape(e, d, e, d)
        for z in range(self.cell.shape[1]):
            x, cell, f = self.design.values[group, z], self.cell[report, z], expected[:, z]
            value = np.broadcast_to(self.outcome[report, z], (len(respondents), e)) * factor
            for i in range(e):
                for j in range(e):
                    correction = cell * f[:, i] * f[:, j] - value[:, i] * f[:, j] - f[:, i] * value[:, j]
                    if i == j:  # of two categories one is never given
                        correction = (
                            correction
                            + np.broadcast_to(square[report, z], (len(respondents), e))[:, i] * factor_square[:, i]
                        )
                    noise[i, :, j] -= x.T @ (x * (weights * correction)[:, None])
        return noise.reshape(e * d, e * d)


def linear_regression(
    formula: str,
    data: Any,
    channels: Mapping[str, ChannelLike],
    scores: ArrayLike | None = None,
    sample: Sample | None = None,
) -> Regression:
    """Fit least squares of a numeric outcome, or with private predictors [Rao, chapter 4].

    Parameters
    ----------
    formula, data, channels, sample : As in `logit_regression`.
    scores : (k,) the numbers for the k categories of a private outcome; by default their own numbers or the middles of
        their bins.

    Returns
    -------
    Regression
        The coefficients with their errors.

    Notes
    -----
    Each report is replaced by an unbiased value, whose mean is the answer. So the moments X^T X and X^T y are those of
    the answers plus noise of mean zero. Nothing is assumed about the residuals, and the standard errors allow for
    unequal variances (for a simple random sample they are those that statsmodels calls HC1). It raises the errors of
    `logit_regression`.

    >>> data = {"hours": [2.0, 4.0, 3.0, 7.0, 1.0, 6.0], "works": [0, 0, 1, 1, 0, 1]}
    >>> linear_regression("hours ~ works", data, {"works": [[0.9, 0.1], [0.1, 0.9]]}).coefficients.round(3)
    array([[1.958, 3.75 ]])
    """
    return separate_regression(formula, data, channels, False, None, scores, sample)


def logit_by_moments(
    formula: str, data: Any, channels: Mapping[str, ChannelLike], reference: Label = None, sample: Sample | None = None
) -> Regression:
    """Fit a logistic or multinomial regression by unbiased moments [VHG].

    Parameters
    ----------
    formula, data, channels, reference, sample : As in `logit_regression`. The outcome or predictors are private.

    Returns
    -------
    Regression
        The coefficients with their errors.

    Raises
    ------
    SolverError
        If no finite coefficients solve the equations, as with few or uninformative reports. Other errors are those of
        `logit_regression`.

    Notes
    -----
    The equations are those of the logistic regression of true answers, in unbiased indicators of them. So for any
    distribution of the outcome, the coefficients have the same limit as those from true answers. Those of
    `logit_regression` have it only if the formula is the true distribution. The standard errors, of the sandwich form,
    are about 1.1 to 2 times as large.

    >>> data = {"evade": [0, 0, 0, 1, 0, 1, 1, 1], "group": list("aaaabbbb")}
    >>> logit_by_moments("evade ~ group", data, {"evade": [[0.9, 0.1], [0.1, 0.9]]}).coefficients.round(3)
    array([[-1.466,  2.933]])
    """
    return separate_regression(formula, data, channels, True, reference, None, sample)


def separate_regression(
    formula: str, data: Any, channels: Mapping[str, ChannelLike], logit: bool, reference: Label, scores: Any,
    sample: Sample | None,
) -> Regression:  # fmt: skip
    """Fit the regression of questions with a report each.

    It is logistic or multinomial if `logit`, else linear.
    """
    parsed = parse_formula(formula)
    channel_of = {name: as_channel(channel) for name, channel in channels.items()}
    if (channel := channel_of.get(parsed.outcome)) is None:
        factor, levels = _public_outcome(data, parsed, logit, reference)
        square = factor**2
    else:
        require_identifiable(channel)
        values, levels = _outcome_values(parsed, channel.inputs, logit, reference, scores)
        outcome_reports = positions(data[parsed.outcome], channel.outputs)
        if not len(outcome_reports):
            raise InvalidInput("data: no respondents given")
        indicators = _unbiased(channel.matrix, outcome_reports).T
        factor, square = (indicators @ values)[outcome_reports], (indicators @ values**2)[outcome_reports]
    private = private_predictors(parsed, channel_of)
    design = regressors(parsed, data, {name: source.inputs for name, source in private.items()}, len(factor))
    subsample = as_subsample(sample, len(factor))
    matrix, report = combine_reports(private, data, len(factor))
    cell = _unbiased(matrix, report).T
    cell_indicators = cell[..., None]
    factors = np.ones(len(cell))
    moments = Moments(
        design, report, cell, cell_indicators, factor, logit, (cell_indicators, square), factors, subsample
    )
    return _regression(formula, parsed, moments, levels)


def _unbiased(matrix: Array, reports: Codes) -> Array:
    """Unbiased indicators (k, m) of each answer for the reports of a channel (k, m): a left inverse."""
    if matrix.shape == (1, 1):
        return np.ones((1, 1))
    frequencies = np.bincount(reports, minlength=matrix.shape[1]) / len(reports)
    channel = Channel(matrix / matrix.sum(axis=1, keepdims=True))
    return GeneralizedLeastSquares().fit(frequencies, channel, len(reports))[1]


def moment_regression(
    formula: str,
    data: Mapping[str, Any],
    answers: Mapping[str, Sequence[Label]],
    sources: Sequence[Source],
    logit: bool = True,
    reference: Label = None,
    scores: Any = None,
    sample: Sample | None = None,
) -> Regression:
    """Fit the regression of questions that share reports, from one or more booklets.

    Parameters
    ----------
    data : The public columns, (n,) each.
    answers : The categories of each private column. Its predictors are in the formula's order, and the outcome is last.
    sources : Reports about all combinations of the private answers. Each of the n respondents has one of them.
    logit : True for a logistic or multinomial regression, False for a linear one.
    formula, reference, scores, sample : As in `logit_by_moments` and `linear_regression`.

    Notes
    -----
    More precise booklets have more weight. Nothing is assumed of the private predictors, and the covariance is the
    sandwich of the equations, or that of the sample [Rao, chapter 4; VHG]. It raises `SolverError` if no finite
    coefficients solve them.
    """
    parsed = parse_formula(formula)
    reports = np.array([source.positions for source in sources])
    if not ((reports >= 0).sum(axis=0) == 1).all():
        raise invalid("sources", "one report of each respondent", Phrase("none, or several"))
    n = reports.shape[1]
    subsample = as_subsample(sample, n)
    design = regressors(parsed, data, {name: answers[name] for name in parsed.columns if name in answers}, n)
    z = design.values.shape[1]
    cells, report, factors = _pool_sources(sources, reports, None if subsample is None else subsample.weights)
    cells = cells.reshape(len(cells), z, -1)
    if parsed.outcome in answers:
        values, levels = _outcome_values(parsed, answers[parsed.outcome], logit, reference, scores)
        outcome, factor = cells @ values, np.ones((1, 1))
        squares = cells @ values**2, factor
    else:
        outcome, (factor, levels) = cells, _public_outcome(data, parsed, logit, reference)
        squares = outcome, factor**2
    moments = Moments(design, report, cells.sum(axis=2), outcome, factor, logit, squares, factors, subsample)
    return _regression(formula, parsed, moments, levels)


def _regression(formula: str, parsed: Formula, moments: Moments, levels: tuple[Label, ...]) -> Regression:
    b, sampling = moments.fit()
    kind = "linear" if not moments.logit else "logistic" if len(levels) == 2 else "multinomial"
    equations, reference = (levels[1:], levels[0]) if moments.logit else ((parsed.outcome,), None)
    design = moments.design
    return Regression(
        formula, kind, design.names, equations, reference, b, sampling.covariance, len(design.group), sampling.degrees,
        design.levels, method="moments", unit_fractions=None if moments.sample is None else sampling.unit_fractions,
    )  # fmt: skip


def _public_outcome(data: Any, parsed: Formula, logit: bool, reference: Label) -> tuple[Array, tuple[Label, ...]]:
    """The numbers (n, e) of each respondent's public outcome; for a logit with the categories."""
    name = parsed.outcome
    code, kinds = public_column(data, name)
    if logit:
        code, kinds = sort_codes(code, kinds, declared_ranks(data, name))
        values, levels = _outcome_values(parsed, kinds, True, reference, None)
        return values[code], levels
    if (numbers := numbers_of(kinds)) is None:
        raise InvalidInput(
            f"outcome {name!r}: linear regression needs numbers (use a logistic regression for categories)"
        )
    return parsed.transform_outcome(numbers)[code][:, None], ()


def _outcome_values(
    parsed: Formula, labels: Sequence[Label], logit: bool, reference: Label, scores: Any
) -> tuple[Array, tuple[Label, ...]]:
    """The numbers (a, e) of each category of the outcome; for a logit with the categories, the reference first."""
    name = parsed.outcome
    if logit:
        parsed.require_categories()
        if not 2 <= len(labels) <= 50:
            raise invalid(f"outcome {name!r}", "2 to 50 categories (linear regression is for numbers)", len(labels))
        rows, sorted_labels = reference_first(Channel(np.eye(len(labels)), tuple(labels)), reference)
        return np.asarray(rows[1:].T), sorted_labels
    values = scores_of(tuple(labels)) if scores is None else finite_array(scores, "scores", 1)
    if len(values) != len(labels):
        raise invalid("scores", f"one for each of the {len(labels)} categories of {name!r}", len(values))
    return parsed.transform_outcome(values)[:, None], ()


def _pool_sources(
    sources: Sequence[Source], reports: npt.NDArray[np.intp], weights: Array | None
) -> tuple[Array, npt.NDArray[np.intp], Array]:
    """Unbiased indicators (R, r) of all combinations for the reports of all booklets, and the report of each person.

    The indicators of a booklet are multiplied by its precision, relative to the most precise one. The third result,
    (R,), is this factor.
    """
    tables, precisions, report = [], [], np.zeros(reports.shape[1], dtype=np.intp)
    start = 0
    w = np.ones(reports.shape[1]) if weights is None else weights
    for source, booklet_reports in zip(sources, reports, strict=True):
        has_report = booklet_reports >= 0
        report_weights = np.asarray(
            np.bincount(booklet_reports[has_report], w[has_report], source.channel.shape[1]), dtype=np.float64
        )
        total_weight = report_weights.sum()
        loadings, variances = loadings_of(
            source, report_weights / total_weight if total_weight else report_weights, int(has_report.sum())
        )
        tables.append(loadings.T)
        precisions.append(1 / variances.mean())
        report[has_report] = booklet_reports[has_report] + start
        start += source.channel.shape[1]
    relative_precisions = np.array(precisions) / max(precisions)
    factors = np.repeat(relative_precisions, [len(table) for table in tables])
    return np.vstack(tables) * factors[:, None], report, factors
