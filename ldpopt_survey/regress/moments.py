"""Unbiased indicators of private answers -> regressions by moments, linear or logistic, also of shared reports.

A report's indicators have, whatever the answers are, those of the answers as their mean. So the equations that least
squares or logistic regression solves for true answers hold for reports, too, but for noise of mean zero [Rao, chapter
4; VHG].
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
from ldpopt_survey.regress.logit import UNFITTED
from ldpopt_survey.regress.regressors import (
    Codes,
    Regressors,
    declared,
    from_reference,
    in_order,
    numbers_of,
    private_predictors,
    public_column,
    regressors,
    reports_together,
)
from ldpopt_survey.regress.result import (
    Regression,
    Sample,
    Subsample,
    as_subsample,
    inverse_of,
    require_finite,
    softmax,
)

_CHUNK = 1 << 22


@dataclass(frozen=True)
class Moments:
    """The equations sum_i w_i sum_z (outcome_iz factor_i - cell_iz f(x_iz b)) x_iz = 0 for b, (e, d).

    f is the identity, or if `logit` the chances of the categories but the reference.

    report : (n,) positions among all R possible reports of the predictors, or of the outcome together with them.
    cell : (R, z) what each is worth, without bias, as an indicator of each cell of the private predictors.
    outcome : (R, z, e) or (R, z, 1) the same times the outcome, as far as the report tells of it: e numbers, one or an
        indicator for each category but the reference. factor : (n, e) or (1, 1), what else tells of the outcome.
    squares : an outcome and a factor of the same shapes for the squares of the outcome's numbers.
    share : (R,) by what the indicators of each report were multiplied.
    """

    design: Regressors
    report: Codes
    cell: Array
    outcome: Array
    factor: Array
    logit: bool
    squares: tuple[Array, Array]
    share: Array
    sample: Subsample | None = None

    def fit(self) -> tuple[Array, Array, float]:
        """The coefficients (e, d), their covariance (e d, e d) and its degrees of freedom."""
        d, e, n = self.design.values.shape[2], self._equations, len(self.design.group)
        if n <= e * d:
            raise invalid("data", f"more respondents than the {e * d} coefficients", n)
        flat, inverse = self._solved(self._weights, np.zeros(e * d))
        b = flat.reshape(e, d)
        scores = self._scores(b)
        influence = scores @ inverse
        if self.sample is None:
            return b, influence.T @ influence * (n / (n - d)), math.inf if self.logit else float(n - d)
        unit = inverse * self.sample.top
        noise = unit @ self.sample.summed(lambda who, squares: self._noise(b, scores, who, squares)) @ unit

        def again(weights: Array) -> Array:
            return self._solved(weights, flat)[0]

        total = self.sample.variance(influence, noise, again, d - 1)
        return b, total.covariance, total.degrees

    @property
    def _weights(self) -> Array:
        return np.ones(len(self.design.group)) if self.sample is None else self.sample.weights

    def _solved(self, weights: Array, start: Array) -> tuple[Array, Array]:
        """The coefficients (e d,) under weights (n,), and the inverse of minus the equations' derivative.

        Newton's steps of a logit are halved until the next one is shorter, which no unit of the regressors changes.
        """
        mass, moment = self._summed(weights)
        e = self._equations
        scale = np.tile(np.sqrt((self.design.values**2).mean(axis=(0, 1))), e)
        b, (_score, information) = start, self._at(start, mass, moment)
        inverse = inverse_of(information)
        if self.logit:
            b, information, inverse = self._climbed(b, mass, moment, scale)
        else:
            for _ in range(2):  # the second one takes what rounding left
                b = b + inverse @ self._at(b, mass, moment)[0]
        if not np.linalg.eigvalsh(information / np.outer(scale, scale)).min() > 0:
            more = "drop predictors, join categories, or collect more reports"
            raise SolverError(f"regression: so few reports do not tell the coefficients apart ({more})")
        if self.logit:
            require_finite(information, scale, float(weights.mean()), UNFITTED)
        return b, inverse

    def _climbed(self, b: Array, mass: Array, moment: Array, scale: Array) -> tuple[Array, Array, Array]:
        """The coefficients of a logit, and there minus the equations' derivative and its inverse, or `SolverError`."""
        score, information = self._at(b, mass, moment)
        inverse = inverse_of(information)
        move = inverse @ score
        for _ in range(100):
            if np.abs(move * scale).max() < 1e-9 * (1 + np.abs(b * scale).max()):
                return b, information, inverse
            size = min(1.0, 4.0 / float(np.abs(move * scale).max()))
            while size > 1e-6:
                following = inverse @ self._at(b + size * move, mass, moment)[0]
                if np.linalg.norm(following * scale) <= (1 - size / 4) * np.linalg.norm(move * scale):
                    break
                size /= 2
            b = b + size * move
            if size <= 1e-6 or np.abs(b * scale).max() > 60 * math.sqrt(self._equations):
                break
            score, information = self._at(b, mass, moment)
            try:
                inverse = inverse_of(information)
            except InvalidInput:  # chances of 0 and 1 tell nothing
                break
            move = inverse @ score
        raise SolverError(UNFITTED)

    @property
    def _equations(self) -> int:
        return int(max(self.outcome.shape[2], self.factor.shape[1]))

    def _summed(self, weights: Array) -> tuple[Array, Array]:
        """The weighted sums of the indicators over the respondents of each public row: (u, z) and (u, z, e)."""
        group, e = self.design.group, self._equations
        shape = len(self.design.values), len(self.cell)

        def summed(table: Array, factor: Array | float = 1.0) -> Array:
            return np.asarray(sparse.csr_array((weights * factor, (group, self.report)), shape=shape) @ table)

        outcome = np.broadcast_to(self.outcome, (*self.cell.shape, e))
        factor = np.broadcast_to(self.factor, (len(group), e))
        return summed(self.cell), np.stack([summed(outcome[..., i], factor[:, i]) for i in range(e)], axis=-1)

    def _expected(self, b: Array, rows: npt.NDArray[np.intp] | slice = slice(None)) -> Array:
        """f(x b) for some public rows, (u, z, e)."""
        odds = self.design.values[rows] @ b.T
        if not self.logit:
            return np.asarray(odds)
        return softmax(np.concatenate([np.zeros((*odds.shape[:-1], 1)), odds], axis=-1))[..., 1:]

    def _at(self, b: Array, mass: Array, moment: Array) -> tuple[Array, Array]:
        """The equations' left side (e d,), and minus its derivative (e d, e d)."""
        x, e = self.design.values, moment.shape[2]
        flat, d = x.reshape(-1, x.shape[2]), x.shape[2]
        fitted = self._expected(b.reshape(e, d))
        score = (moment - mass[..., None] * fitted).reshape(-1, e).T @ flat
        information = np.empty((e, d, e, d))
        for i in range(e):
            for j in range(e):
                slope = fitted[..., i] * ((i == j) - fitted[..., j]) if self.logit else np.ones(mass.shape)
                information[i, :, j] = flat.T @ (flat * (mass * slope).reshape(-1, 1))
        return score.ravel(), information.reshape(e * d, e * d)

    def _scores(self, b: Array) -> Array:
        """Each respondent's part of the equations, (n, e d), without weights."""
        group, (e, d) = self.design.group, b.shape
        factor = np.broadcast_to(self.factor, (len(group), self.factor.shape[1]))
        scores = np.zeros((len(group), e * d))
        step = max(1, _CHUNK // (max(d, e) * self.design.values.shape[1]))
        for start in range(0, len(group), step):
            rows = slice(start, start + step)
            report, of = self.report[rows], group[rows]
            residual = self.outcome[report] * factor[rows, None]
            residual = residual - self.cell[report][..., None] * self._expected(b, of)
            scores[rows] = np.einsum("sze,szd->sed", residual, self.design.values[of]).reshape(-1, e * d)
        return scores

    def _noise(self, b: Array, scores: Array, who: npt.NDArray[np.intp], squares: Array) -> Array:
        """The channel's part of the variance of the scores of some respondents, (e d, e d).

        It is the sum of squares w_i^2 of their scores, less an unbiased estimate of the same of true answers' scores.
        """
        e, d = b.shape
        group, report = self.design.group[who], self.report[who]
        expected = self._expected(b, group)
        square, factor_square = self.squares
        factor = np.broadcast_to(self.factor, (len(self.design.group), e))[who]
        factor_square = np.broadcast_to(factor_square, (len(self.design.group), e))[who]
        weights = squares * self.share[report]
        own = scores[who]
        noise = ((own * squares[:, None]).T @ own).reshape(e, d, e, d)
        for z in range(self.cell.shape[1]):
            x, cell, f = self.design.values[group, z], self.cell[report, z], expected[:, z]
            value = np.broadcast_to(self.outcome[report, z], (len(who), e)) * factor
            for i in range(e):
                for j in range(e):
                    away = cell * f[:, i] * f[:, j] - value[:, i] * f[:, j] - f[:, i] * value[:, j]
                    if i == j:  # of two categories one is never given
                        away = away + np.broadcast_to(square[report, z], (len(who), e))[:, i] * factor_square[:, i]
                    noise[i, :, j] -= x.T @ (x * (weights * away)[:, None])
        return noise.reshape(e * d, e * d)


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
    return separate_regression(formula, data, channels, False, None, scores, sample)


def logit_by_moments(
    formula: str, data: Any, channels: Mapping[str, ChannelLike], reference: Label = None, sample: Sample | None = None
) -> Regression:
    """Logistic or multinomial regression by unbiased moments, when the outcome or predictors are private [VHG].

    formula, data, channels, reference, sample : as in `logit_regression`.

    The equations are those of the logistic regression of true answers, in unbiased indicators of them. So whatever the
    law of the outcome is, the coefficients tend to those that true answers would give, which those of
    `logit_regression` do only where the formula is that law. Their standard errors, of the sandwich form, are longer:
    about 1.1 to 2 times. Raises as `logit_regression` does; `SolverError` where no finite coefficients solve the
    equations, as with few reports that tell little.

    >>> data = {"evade": [0, 0, 0, 1, 0, 1, 1, 1], "group": list("aaaabbbb")}
    >>> logit_by_moments("evade ~ group", data, {"evade": [[0.9, 0.1], [0.1, 0.9]]}).coefficients.round(3)
    array([[-1.466,  2.933]])
    """
    return separate_regression(formula, data, channels, True, reference, None, sample)


def separate_regression(
    formula: str, data: Any, channels: Mapping[str, ChannelLike], logit: bool, reference: Label, scores: Any,
    sample: Sample | None,
) -> Regression:  # fmt: skip
    """The regression of questions with a report each: logistic or multinomial if `logit`, else linear."""
    asked = parse_formula(formula)
    known = {name: as_channel(channel) for name, channel in channels.items()}
    if (channel := known.get(asked.outcome)) is None:
        factor, levels = _public_outcome(data, asked, logit, reference)
        square = factor**2
    else:
        require_identifiable(channel)
        values, levels = _outcome_values(asked, channel.inputs, logit, reference, scores)
        told = positions(data[asked.outcome], channel.outputs)
        if not len(told):
            raise invalid("data", "at least one respondent", Phrase("none"))
        indicators = _unbiased(channel.matrix, told).T
        factor, square = (indicators @ values)[told], (indicators @ values**2)[told]
    private = private_predictors(asked, known)
    design = regressors(asked, data, {name: source.inputs for name, source in private.items()}, len(factor))
    drawn = as_subsample(sample, len(factor))
    matrix, report = reports_together(private, data, len(factor))
    cell = _unbiased(matrix, report).T
    one = cell[..., None]
    shares = np.ones(len(cell))
    moments = Moments(design, report, cell, one, factor, logit, (one, square), shares, drawn)
    return _regression(formula, asked, moments, levels)


def _unbiased(matrix: Array, reports: Codes) -> Array:
    """(k, m) what each report of a channel (k, m) is worth as an indicator of each answer: a left inverse."""
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
    """The regression of questions that share reports, from the reports of one booklet or more [Rao, chapter 4; VHG].

    answers : the categories of each private column, its predictors in the formula's order and then the outcome.
    data : the public columns, (n,) each. sources : reports, of which each of the n respondents has one, about all
        combinations of the private answers.
    logit : logistic or multinomial, else linear; `reference` and `scores` as for these.

    Booklets that tell of the answers more precisely have more weight. Nothing is assumed of the private predictors, and
    the covariance is the sandwich of the equations, or that of the sample. `SolverError` if no finite coefficients
    solve them.
    """
    asked = parse_formula(formula)
    reports = np.array([source.at for source in sources])
    if not ((reports >= 0).sum(axis=0) == 1).all():
        raise invalid("sources", "one report of each respondent", Phrase("none, or several"))
    n = reports.shape[1]
    drawn = as_subsample(sample, n)
    design = regressors(asked, data, {name: answers[name] for name in asked.columns if name in answers}, n)
    z = design.values.shape[1]
    cells, report, shares = _pooled(sources, reports, None if drawn is None else drawn.weights)
    cells = cells.reshape(len(cells), z, -1)
    if asked.outcome in answers:
        values, levels = _outcome_values(asked, answers[asked.outcome], logit, reference, scores)
        outcome, factor = cells @ values, np.ones((1, 1))
        squares = cells @ values**2, factor
    else:
        outcome, (factor, levels) = cells, _public_outcome(data, asked, logit, reference)
        squares = outcome, factor**2
    moments = Moments(design, report, cells.sum(axis=2), outcome, factor, logit, squares, shares, drawn)
    return _regression(formula, asked, moments, levels)


def _regression(formula: str, asked: Formula, moments: Moments, levels: tuple[Label, ...]) -> Regression:
    b, covariance, degrees = moments.fit()
    kind = "linear" if not moments.logit else "logistic" if len(levels) == 2 else "multinomial"
    equations, reference = (levels[1:], levels[0]) if moments.logit else ((asked.outcome,), None)
    design = moments.design
    return Regression(
        formula, kind, design.names, equations, reference, b, covariance, len(design.group), degrees, design.levels,
        method="moments",
    )  # fmt: skip


def _public_outcome(data: Any, asked: Formula, logit: bool, reference: Label) -> tuple[Array, tuple[Label, ...]]:
    """The numbers (n, e) that each respondent's public outcome is; for a logit with the categories."""
    name = asked.outcome
    code, kinds = public_column(data, name)
    if logit:
        code, kinds = in_order(code, kinds, declared(data, name))
        values, levels = _outcome_values(asked, kinds, True, reference, None)
        return values[code], levels
    if (numbers := numbers_of(kinds)) is None:
        raise invalid(f"outcome {name!r}", "numbers (a logistic regression is for categories)", Phrase("others"))
    return asked.transformed(numbers)[code][:, None], ()


def _outcome_values(
    asked: Formula, labels: Sequence[Label], logit: bool, reference: Label, scores: Any
) -> tuple[Array, tuple[Label, ...]]:
    """The numbers (a, e) that each category of the outcome is; for a logit with the categories, the reference first."""
    name = asked.outcome
    if logit:
        asked.require_categories()
        if not 2 <= len(labels) <= 50:
            raise invalid(f"outcome {name!r}", "2 to 50 categories (linear regression is for numbers)", len(labels))
        rows, ordered = from_reference(Channel(np.eye(len(labels)), tuple(labels)), reference)
        return np.asarray(rows[1:].T), ordered
    values = scores_of(tuple(labels)) if scores is None else finite_array(scores, "scores", 1)
    if len(values) != len(labels):
        raise invalid("scores", f"one for each of the {len(labels)} categories of {name!r}", len(values))
    return asked.transformed(values)[:, None], ()


def _pooled(
    sources: Sequence[Source], reports: npt.NDArray[np.intp], weights: Array | None
) -> tuple[Array, npt.NDArray[np.intp], Array]:
    """Unbiased indicators (R, r) of all combinations for the reports of all booklets, and the report of each person.

    Those of a booklet are multiplied by its precision, relative to the most precise one, which is the third, (R,).
    """
    tables, precisions, report = [], [], np.zeros(reports.shape[1], dtype=np.intp)
    start = 0
    w = np.ones(reports.shape[1]) if weights is None else weights
    for source, own in zip(sources, reports, strict=True):
        asked = own >= 0
        law = np.asarray(np.bincount(own[asked], w[asked], source.channel.shape[1]), dtype=np.float64)
        share = law.sum()
        loadings, variances = loadings_of(source, law / share if share else law, int(asked.sum()))
        tables.append(loadings.T)
        precisions.append(1 / variances.mean())
        report[asked] = own[asked] + start
        start += source.channel.shape[1]
    relative = np.array(precisions) / max(precisions)
    shares = np.repeat(relative, [len(table) for table in tables])
    return np.vstack(tables) * shares[:, None], report, shares
