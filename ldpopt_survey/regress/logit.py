"""A formula and reports -> logistic or multinomial regression, by a likelihood summed over unknown answers [VHG]."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import xlogy

from ldpopt.channel import Channel, ChannelLike, Label, as_channel
from ldpopt.errors import Phrase, SolverError, invalid
from ldpopt.values.distribution import Array, finite_array
from ldpopt_survey.estimate.counts import positions, report_column
from ldpopt_survey.estimate.likelihood import MaximumLikelihood
from ldpopt_survey.estimate.linear import require_identifiable
from ldpopt_survey.regress.formula import parse_formula
from ldpopt_survey.regress.regressors import (
    Regressors,
    combine_reports,
    outcome_of,
    private_predictors,
    reference_first,
    regressors,
)
from ldpopt_survey.regress.result import (
    Regression,
    Sample,
    Subsample,
    as_subsample,
    dependent_terms,
    inverse_of,
    no_finite_coefficients,
    require_finite,
    softmax,
)

MAX_SCORE_ENTRIES = 1 << 21
"""The largest number of entries of score arrays in memory at once."""

MIN_PROBABILITY = 1e-300

PENALTY_LOG_ODDS_SD = 3.0
"""The standard deviation of log-odds, for a regressor of mean square 1, under the penalty of the likelihood."""


@dataclass(frozen=True)
class LikelihoodFit:
    """A fit of the likelihood.

    - `coefficients` : (c,) the coefficients.
    - `information` : (c, c) the information at them.
    - `scores` : (n, c) the scores at them.
    - `log_likelihood` : the log-likelihood, in nats.
    """

    coefficients: Array
    information: Array
    scores: Array
    log_likelihood: float


@dataclass(frozen=True)
class CellLikelihood:
    """The likelihood of reports (r1, r2) of private predictors z and an answer a, given public values x [VHG].

    The probability of the reports is::

        Pr(r1, r2 | x) = sum_z Pr(z | x) G[z, r1] sum_a Pr(a | x, z) Q[a, r2]

    Pr(a | x, z) is a multinomial logit in the design, with answer 0 as its reference, and Pr(z | x) one in the public
    columns. The vector of coefficients has those of the answers first (a - 1 rows of d), then those of the predictors
    (z - 1 rows of q).

    - `predictors` : G, (z, r1).
    - `reports` : (n,) positions of the reports of all private predictors together.
    - `answers` : Q, (a, r2).
    - `outcome` : (n,) positions of the answers' reports.
    - `sample` : None for a simple random sample.
    - `penalized` : True for a normal prior of the coefficients about 0, by `PENALTY_LOG_ODDS_SD`, so that a maximum is
      always finite.
    """

    design: Regressors
    predictors: Array
    reports: npt.NDArray[np.intp]
    answers: Array
    outcome: npt.NDArray[np.intp]
    sample: Subsample | None
    penalized: bool = False

    @property
    def answer_coefficients(self) -> int:
        """The number of coefficients that belong to the answers."""
        return int((len(self.answers) - 1) * self.design.values.shape[2])

    @property
    def names(self) -> tuple[str, ...]:
        """The term of each coefficient, (c,)."""
        others = len(self.scale) - self.answer_coefficients
        return (*self.design.names * (len(self.answers) - 1), *("the private predictors",) * others)

    @property
    def weights(self) -> Array:
        """Weights (n,) of the respondents."""
        return np.ones(len(self.outcome)) if self.sample is None else self.sample.weights

    def fit(self, weights: Array | None = None, start: Array | None = None) -> LikelihoodFit:
        """Fit by Fisher scoring with step halving, to a stationary point of the likelihood.

        The likelihood never decreases during the search.

        weights : (n,) other weights than those of the sample.
        start : (c,) the initial coefficients, by default zeros.
        """
        scale = self.scale
        weights = self.weights if weights is None else weights
        b = np.zeros(len(scale)) if start is None else start
        cells = self._weight_sums(weights)
        value, score, information = self._evaluate(b, cells)
        for _ in range(2000 if self.penalized else 200):
            step = _newton_step(information / np.outer(scale, scale), score / scale)
            if step is None:
                break
            # Half of this is about the remaining gain of log-likelihood. Under separation only the gain vanishes.
            expected_gain = float(score / scale @ step)
            has_converged = expected_gain < 1e-13 * max(1.0, abs(value)) and np.abs(step).max() < 1e-6 * (
                1 + np.abs(b * scale).max()
            )
            if has_converged or (
                self.penalized and expected_gain < 1e-6
            ):  # a thousandth of a standard error from the maximum
                if not self.penalized:
                    require_finite(information, scale, float(weights.mean()), self.names)
                return LikelihoodFit(b, information, self._scores(b), value)
            step_size = min(1.0, 4.0 / float(np.abs(step).max()))
            # A sum of many logarithms has a rounding error, which is allowed for.
            min_value = value - 1e-12 * max(1.0, abs(value))
            while not self._value(b + step_size * step / scale, cells) >= min_value and step_size > 1e-12:
                step_size /= 2
            b = b + step_size * step / scale
            value, score, information = self._evaluate(b, cells)
            if np.abs(b * scale).max() > 60:
                break
        raise no_finite_coefficients(information, scale, self.names)

    def null_log_likelihood(self) -> float | None:
        """Compute the log-likelihood of an intercept alone, or else of equal probabilities.

        It is None if some predictor is private.
        """
        if self.design.private:
            return None
        frequencies = np.bincount(self.outcome, minlength=self.answers.shape[1]) / len(self.outcome)
        x = self.design.values[:, 0]
        ones_coefficients = np.linalg.lstsq(x, np.ones(len(x)), rcond=None)[0]
        if np.allclose(x @ ones_coefficients, 1.0, atol=1e-8):
            return MaximumLikelihood().maximum(frequencies, Channel(self.answers), len(self.outcome)).log_likelihood
        occurs = frequencies > 0
        return float(len(self.outcome) * (frequencies[occurs] @ np.log(self.answers.mean(axis=0)[occurs])))

    @cached_property
    def scale(self) -> Array:
        """The root mean square of each regressor. Steps are scaled by it, so that units do not matter."""
        d, public = self.design.values, self.design.public
        first = np.tile(np.sqrt((d**2).mean(axis=(0, 1))), len(self.answers) - 1)
        second = np.tile(np.sqrt((public**2).mean(axis=0)), d.shape[1] - 1)
        return np.asarray(np.maximum(np.concatenate([first, second]), MIN_PROBABILITY))

    def _weight_sums(self, weights: Array) -> Array:
        """The weight of every (public row, pair of reports), (u, r1, r2)."""
        u = len(self.design.values)
        r1, r2 = self.predictors.shape[1], self.answers.shape[1]
        cell = (self.design.group * r1 + self.reports) * r2 + self.outcome
        weight_sums = np.bincount(cell, weights, u * r1 * r2)
        return np.asarray(weight_sums, dtype=np.float64).reshape(u, r1, r2)

    def _joint(self, b: Array, rows: slice) -> tuple[Array, Array, Array, Array]:
        """Pr(z | x), (u, z), Pr(a | x, z), (u, z, a), Pr(r2 | z), and Pr(r1, r2), for some public rows."""
        design, public = self.design.values[rows], self.design.public[rows]
        answer_probability = _logit(design, b[: self.answer_coefficients].reshape(len(self.answers) - 1, -1))
        cell_probability = _logit(public, b[self.answer_coefficients :].reshape(design.shape[1] - 1, public.shape[1]))
        report_given_cell = answer_probability @ self.answers
        return (
            cell_probability,
            answer_probability,
            report_given_cell,
            np.einsum("uz,zr,uzs->urs", cell_probability, self.predictors, report_given_cell),
        )

    def _value(self, b: Array, cells: Array) -> float:
        value = sum(
            float(xlogy(cells[rows], self._joint(b, rows)[3] + MIN_PROBABILITY).sum()) for rows in self._chunks()
        )
        return value - float(b**2 @ self._prior()) / 2

    def _prior(self) -> Array:
        """The information (c,) that the penalty adds on every coefficient."""
        return (self.scale / PENALTY_LOG_ODDS_SD) ** 2 if self.penalized else np.zeros_like(self.scale)

    def _evaluate(self, b: Array, cells: Array) -> tuple[float, Array, Array]:
        """Log-likelihood, score and expected information."""
        value, score, information = 0.0, np.zeros(len(b)), np.zeros((len(b), len(b)))
        for rows in self._chunks():
            slopes, joint = self._slopes(b, rows)
            count = cells[rows]
            value += float(xlogy(count, joint + MIN_PROBABILITY).sum())
            score += np.einsum("urs,ursc->c", count / np.maximum(joint, MIN_PROBABILITY), slopes)
            weight_per_probability = count.sum(axis=(1, 2))[:, None, None] / np.maximum(joint, MIN_PROBABILITY)
            flat = slopes.reshape(-1, len(b))
            information += (flat * np.where(joint > 0, weight_per_probability, 0.0).reshape(-1, 1)).T @ flat
        prior = self._prior()
        return value - float(b**2 @ prior) / 2, score - b * prior, information + np.diag(prior)

    def _slopes(self, b: Array, rows: slice) -> tuple[Array, Array]:
        """d Pr(r1, r2 | x) / d coefficients, (u, r1, r2, c), and the probabilities."""
        cell_probability, answer_probability, report_given_cell, joint = self._joint(b, rows)
        design, public = self.design.values[rows], self.design.public[rows]
        g, q = self.predictors, self.answers
        # d Pr(r2 | z) / d log-odds of answer a = Pr(a | z) (Q[a, r2] - Pr(r2 | z)).
        report_slopes = answer_probability[:, :, 1:, None] * (q[None, None, 1:, :] - report_given_cell[:, :, None, :])
        first = np.einsum("uz,zr,uzas,uzd->ursad", cell_probability, g, report_slopes, design, optimize=True)
        second = cell_probability[:, None, None, 1:] * (
            np.einsum("zr,uzs->ursz", g[1:], report_given_cell[:, 1:]) - joint[..., None]
        )
        third = np.einsum("ursz,uq->urszq", second, public)
        return np.concatenate([part.reshape(*joint.shape, -1) if part.size else np.empty((*joint.shape, 0))
                               for part in (first, third)], axis=-1), joint  # fmt: skip

    def _scores(self, b: Array) -> Array:
        """The score of each respondent's reports, (n, c), without weights."""
        scores = np.empty((len(self.outcome), len(b)))
        order = np.argsort(self.design.group, kind="stable")
        sorted_groups = self.design.group[order]
        for rows in self._chunks():
            slopes, joint = self._slopes(b, rows)
            low, high = np.searchsorted(sorted_groups, [rows.start, rows.stop])
            respondents = order[low:high]
            places = (self.design.group[respondents] - rows.start, self.reports[respondents], self.outcome[respondents])
            scores[respondents] = slopes[places] / np.maximum(joint[places], MIN_PROBABILITY)[:, None]
        return scores

    def noise(self, b: Array, scores: Array, respondents: npt.NDArray[np.intp], squares: Array) -> Array:
        """Compute the channel's part of the variance of some respondents' scores, (c, c).

        It is the sum of squares w_i^2 of their scores, less that of their conditional means given true answers. Each
        true answer has its fitted probability given the reports.
        """
        respondent_scores = scores[respondents]
        noise = (respondent_scores * squares[:, None]).T @ respondent_scores
        order = np.argsort(self.design.group[respondents], kind="stable")
        sorted_groups = self.design.group[respondents][order]
        for rows in self._chunks():
            low, high = np.searchsorted(sorted_groups, [rows.start, rows.stop])
            if low == high:
                continue
            slopes, joint = self._slopes(b, rows)
            cell_probability, answer_probability, _, _ = self._joint(b, rows)
            report_scores = slopes / np.maximum(joint, MIN_PROBABILITY)[..., None]
            means = np.einsum("zr,as,ursc->uzac", self.predictors, self.answers, report_scores, optimize=True)
            people = order[low:high]
            row = self.design.group[respondents][people] - rows.start
            first, second = self.reports[respondents][people], self.outcome[respondents][people]
            report_probability = self.predictors[:, first].T[:, :, None] * self.answers[:, second].T[:, None]
            probability = cell_probability[row][:, :, None] * answer_probability[row] * report_probability
            probability /= np.maximum(probability.sum(axis=(1, 2), keepdims=True), MIN_PROBABILITY)
            weight = np.zeros(means.shape[:3])
            np.add.at(weight, row, probability * squares[people, None, None])
            flat = means.reshape(-1, len(b))
            noise -= (flat * weight.reshape(-1, 1)).T @ flat
        return noise

    def _chunks(self) -> Iterator[slice]:
        u, z, d = self.design.values.shape
        r1, r2 = self.predictors.shape[1], self.answers.shape[1]
        entries_per_row = r1 * r2 * ((len(self.answers) - 1) * d + (z - 1) * self.design.public.shape[1])
        size = max(1, MAX_SCORE_ENTRIES // max(entries_per_row, 1))
        for start in range(0, u, size):
            yield slice(start, min(u, start + size))


def _logit(design: Array, coefficients: Array) -> Array:
    """The multinomial logit whose first category is the reference."""
    odds = design @ coefficients.T
    return softmax(np.concatenate([np.zeros((*odds.shape[:-1], 1)), odds], axis=-1))


def _newton_step(information: Array, score: Array) -> Array | None:
    """The Newton step. A little of the diagonal is added if the information has no inverse."""
    if not (np.isfinite(information).all() and np.isfinite(score).all()):
        return None
    for ridge in (0.0, 1e-10, 1e-6, 1e-3):
        with suppress(np.linalg.LinAlgError):
            step = np.linalg.solve(information + ridge * np.diag(np.diag(information) + MIN_PROBABILITY), score)
            if np.isfinite(step).all():
                return np.asarray(step)
    return None


def logit_regression(
    formula: str, data: Any, channels: Mapping[str, ChannelLike], reference: Label = None, sample: Sample | None = None
) -> Regression:
    """Fit a logistic or multinomial regression with a private outcome or predictors [VHG].

    Parameters
    ----------
    formula : A formula such as ``evade ~ age + C(region) + age:sex``. Text columns are factors, number columns are
    numbers.
    data : The columns by name, each (n,), as a mapping or a data frame. Private columns hold reports.
    channels : The channel of each private column. All other columns are public.
    reference : The reference category of the log-odds; the first by default.
    sample : A `SampleDesign`, or a `Subsample` of one for a subgroup; None for a simple random sample.

    Returns
    -------
    Regression
        The coefficients with their errors.

    Raises
    ------
    InvalidInput
        For a formula or columns that do not fit.
    NotIdentifiable
        For a channel that does not determine the answers.
    SolverError
        If the likelihood has no finite maximum.

    Notes
    -----
    If the formula is the true distribution of the answers, the coefficients are consistent. Otherwise their limit
    differs from that of the same regression on true answers, and depends on the channels. The coefficients of
    `logit_by_moments` do not have this defect.

    The coefficients maximize the likelihood of the reports, summed over the unknown private predictors. The model of
    these predictors is a multinomial logit in the public predictors [BIZ]. For a simple random sample the covariance is
    the inverse of the information. Otherwise the scores are weighted, and the variance of their total is that of the
    sample (pseudo-likelihood) [SSW]; with replicate weights the fit is repeated under each. The reports of one person
    must have been drawn independently.

    Often the likelihood has no finite maximum for private predictors with rare combinations. The coefficients are then
    penalized, as if log-odds were normal about 0 with a standard deviation of 3 per root mean square of a regressor,
    and `method` reports it.

    >>> data = {"evade": [0, 0, 0, 1, 0, 1, 1, 1], "group": list("aaaabbbb")}
    >>> logit_regression("evade ~ group", data, {"evade": [[0.9, 0.1], [0.1, 0.9]]}).kind
    'logistic'
    """
    parsed = parse_formula(formula)
    parsed.require_categories()
    channel_of = {name: as_channel(channel) for name, channel in channels.items()}
    outcome_channel, outcome = outcome_of(data, parsed.outcome, channel_of.get(parsed.outcome))
    answers, labels = reference_first(outcome_channel, reference)
    private = private_predictors(parsed, channel_of)
    design = regressors(parsed, data, {name: channel.inputs for name, channel in private.items()}, len(outcome))
    subsample = as_subsample(sample, len(outcome))
    predictors, reports = combine_reports(private, data, len(outcome))
    return _regression_of(formula, CellLikelihood(design, predictors, reports, answers, outcome, subsample), labels)


def logistic_regression(
    reports: Any, design: Any, channel: ChannelLike, success: Label = None, names: tuple[str, ...] | None = None
) -> Regression:
    """Fit `logit_regression` of a privatized binary answer on a matrix of regressors [VHG].

    Parameters
    ----------
    reports : n output labels of `channel`, from a simple random sample.
    design : (n, d) regressors, an array or a data frame; add an intercept by `with_constant`.
    channel : A channel Q of shape (2, m).
    success : The input label counted as 1; the channel's last input by default.
    names : The names of the regressors.

    Returns
    -------
    Regression
        The coefficients with their errors.

    Raises
    ------
    InvalidInput
        For collinear regressors.
    SolverError
        Without convergence, as under separation.

    Notes
    -----
    A report has probability Q[0, y] (1 - pi) + Q[1, y] pi, where pi is the probability of `success`. The log-odds of pi
    are design @ coefficients. The likelihood need not be concave, so the fit is a stationary point, perhaps not the
    maximum.

    >>> rng = np.random.default_rng(3)
    >>> x = with_constant(rng.normal(size=2000))
    >>> truth = (rng.random(2000) < 1 / (1 + np.exp(-(x @ [-0.5, 1.0])))).astype(int)
    >>> q = np.array([[0.8, 0.2], [0.2, 0.8]])
    >>> reports = np.where(rng.random(2000) < q[truth, 1], 1, 0)
    >>> logistic_regression(reports, x, q).values.round(1)
    array([-0.4,  1.1])
    """
    reports, channel = report_column(reports, channel), as_channel(channel)
    if channel.shape[0] != 2:
        raise invalid("channel", "2 inputs, for a binary answer", channel.shape[0])
    require_identifiable(channel)
    success = channel.inputs[1] if success is None else success
    if success not in channel.inputs:
        raise invalid("success", f"one of the inputs {channel.inputs}", success)
    x, y = finite_array(design, "design", 2), positions(reports, channel.outputs)
    n, d = x.shape
    if len(y) != n or n <= d:
        raise invalid("design", f"{len(y)} rows, one a report, and more rows than columns", f"shape {x.shape}")
    names = tuple(map(str, getattr(design, "columns", (f"x{i}" for i in range(d))))) if names is None else names
    if len(names) != d:
        raise invalid("names", f"{d} names", len(names))
    if terms := dependent_terms(x, names):
        raise invalid("design", "linearly independent columns", Phrase(f"collinear ones: {terms}"))
    answers, labels = reference_first(channel, channel.inputs[1 - channel.inputs.index(success)])
    rows, group = np.unique(x, axis=0, return_inverse=True)
    no_predictors = np.zeros(len(x), dtype=np.intp)
    public = Regressors(names, rows[:, None], np.ones((len(rows), 1)), group.reshape(-1), {})
    likelihood = CellLikelihood(public, np.ones((1, 1)), no_predictors, answers, y, None)
    return _regression_of(f"{success} ~ {' + '.join(names)}", likelihood, labels)


def with_constant(design: Any) -> Any:
    """Add a first column of ones to a design.

    Parameters
    ----------
    design : (n, d) regressors, an array or a data frame.

    Returns
    -------
    array or data frame
        (n, d + 1); in a data frame the new column is ``const``.

    >>> with_constant([[2.0], [3.0]])
    array([[1., 2.],
           [1., 3.]])
    """
    if hasattr(design, "columns") and hasattr(design, "insert"):
        frame = design.copy()
        frame.insert(0, "const", 1.0)
        return frame
    x = finite_array(design, "design", np.ndim(design))
    return np.column_stack([np.ones(len(x)), x])


def _regression_of(formula: str, model: CellLikelihood, labels: tuple[Label, ...]) -> Regression:
    """The regression from a likelihood; the covariance of a complex sample is that of the weighted scores."""
    n, split, subsample = len(model.outcome), model.answer_coefficients, model.sample
    if n <= split:
        raise invalid("data", f"more respondents than the {split} coefficients", n)
    try:
        fit = model.fit()
    except SolverError:
        if not model.design.private:
            raise
        # If almost no report informs about some combination of private predictors, its proportion goes to zero.
        model = replace(model, penalized=True)
        fit = model.fit()
    covariance, degrees = inverse_of(fit.information, model.names), math.inf
    fractions, likelihood, null_value = None, None, None
    if subsample is None and not model.penalized:
        likelihood, null_value = fit.log_likelihood, model.null_log_likelihood()
    if subsample is not None:
        parts = subsample.channel_noise(
            lambda respondents, squares: model.noise(fit.coefficients, fit.scores, respondents, squares)
        )

        def refit(weights: Array) -> Array:
            return model.fit(weights, fit.coefficients).coefficients

        slopes = model.design.values.shape[2] - 1
        unit = covariance * subsample.largest_weight
        total = subsample.variance(fit.scores @ covariance, unit @ parts @ unit, refit, slopes)
        covariance, degrees, fractions = total.covariance, total.degrees, total.unit_fractions[:split]
    kind = "logistic" if len(labels) == 2 else "multinomial"
    coefficients = fit.coefficients[:split].reshape(len(labels) - 1, -1)
    return Regression(
        formula, kind, model.design.names, labels[1:], labels[0], coefficients, np.asarray(covariance)[:split, :split],
        n, degrees, model.design.levels, likelihood, null_value,
        "penalised likelihood" if model.penalized else "likelihood", fractions,
    )  # fmt: skip
