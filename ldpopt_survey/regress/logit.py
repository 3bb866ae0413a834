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
from ldpopt.errors import SolverError, invalid
from ldpopt.values.distribution import Array, finite_array
from ldpopt_survey.estimate.counts import positions, report_column
from ldpopt_survey.estimate.likelihood import MaximumLikelihood
from ldpopt_survey.estimate.linear import require_identifiable
from ldpopt_survey.regress.formula import parse_formula
from ldpopt_survey.regress.regressors import (
    Regressors,
    from_reference,
    outcome_of,
    private_predictors,
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

CHUNK = 1 << 21
"""The most entries of score arrays that are in memory at once."""

TINY = 1e-300

PENALTY = 3.0
"""The standard deviation of log-odds, for a regressor of mean square 1, under the penalty of the likelihood."""

UNFITTED = (
    "regression: no finite coefficients were reached; a predictor separates the reports, or so few reports carry the "
    "answer that nothing holds them (drop predictors, join categories, or collect more reports)"
)


@dataclass(frozen=True)
class Fitted:
    """Coefficients (c,), the information (c, c) and the scores (n, c) at them, and the log-likelihood."""

    coefficients: Array
    information: Array
    scores: Array
    log_likelihood: float


@dataclass(frozen=True)
class CellLikelihood:
    """Reports (r1, r2) of private predictors z and an answer a, given public values x.

    Pr(r1, r2 | x) = sum_z Pr(z | x) G[z, r1] sum_a Pr(a | x, z) Q[a, r2] [VHG]. Pr(a | x, z) is a multinomial logit in
    the design, with answer 0 as its reference, and Pr(z | x) one in the public columns. The vector of coefficients has
    those of the answers first (a - 1 rows of d), then those of the predictors (z - 1 rows of q).

    predictors : G, (z, r1). reports : (n,) positions of the reports of all private predictors together.
    answers : Q, (a, r2). outcome : (n,) positions of the answers' reports. sample : None for a simple sample.
    penalised : whether the coefficients are taken as normal about 0, by `PENALTY`, so that a maximum is always finite.
    """

    design: Regressors
    predictors: Array
    reports: npt.NDArray[np.intp]
    answers: Array
    outcome: npt.NDArray[np.intp]
    sample: Subsample | None
    penalised: bool = False

    @property
    def split(self) -> int:
        """The number of coefficients that belong to the answers."""
        return int((len(self.answers) - 1) * self.design.values.shape[2])

    @property
    def weights(self) -> Array:
        """(n,) the weights of the respondents."""
        return np.ones(len(self.outcome)) if self.sample is None else self.sample.weights

    def fit(self, weights: Array | None = None, start: Array | None = None) -> Fitted:
        """Fisher scoring with step halving, to a stationary point of the likelihood, which never falls on the way.

        weights : (n,) others than those of the sample. start : (c,) where to begin, by default at zeros.
        """
        scale = self.scale
        weights = self.weights if weights is None else weights
        b = np.zeros(len(scale)) if start is None else start
        cells = self._counted(weights)
        now, score, information = self._at(b, cells)
        for _ in range(2000 if self.penalised else 200):
            move = _solved(information / np.outer(scale, scale), score / scale)
            if move is None:
                break
            # Half of this is about the log-likelihood left to gain. Under separation it vanishes, but the moves do not.
            won = float(score / scale @ move)
            done = won < 1e-13 * max(1.0, abs(now)) and np.abs(move).max() < 1e-6 * (1 + np.abs(b * scale).max())
            if done or (self.penalised and won < 1e-6):  # a thousandth of a standard error from the maximum
                if not self.penalised:
                    require_finite(information, scale, float(weights.mean()), UNFITTED)
                return Fitted(b, information, self._scores(b), now)
            size = min(1.0, 4.0 / float(np.abs(move).max()))
            # A sum of many logarithms has a rounding error, which is allowed for.
            least = now - 1e-12 * max(1.0, abs(now))
            while not self._value(b + size * move / scale, cells) >= least and size > 1e-12:
                size /= 2
            b = b + size * move / scale
            now, score, information = self._at(b, cells)
            if np.abs(b * scale).max() > 60:
                break
        raise SolverError(UNFITTED)

    def null_log_likelihood(self) -> float | None:
        """The log-likelihood of an intercept alone, or else of equal chances; None if some predictor is private."""
        if self.design.private:
            return None
        frequencies = np.bincount(self.outcome, minlength=self.answers.shape[1]) / len(self.outcome)
        x = self.design.values[:, 0]
        spanned = np.linalg.lstsq(x, np.ones(len(x)), rcond=None)[0]
        if np.allclose(x @ spanned, 1.0, atol=1e-8):
            return MaximumLikelihood().maximum(frequencies, Channel(self.answers), len(self.outcome)).log_likelihood
        seen = frequencies > 0
        return float(len(self.outcome) * (frequencies[seen] @ np.log(self.answers.mean(axis=0)[seen])))

    @cached_property
    def scale(self) -> Array:
        """The root mean square of each regressor, by which steps are scaled, so that units do not matter."""
        d, public = self.design.values, self.design.public
        first = np.tile(np.sqrt((d**2).mean(axis=(0, 1))), len(self.answers) - 1)
        second = np.tile(np.sqrt((public**2).mean(axis=0)), d.shape[1] - 1)
        return np.asarray(np.maximum(np.concatenate([first, second]), TINY))

    def _counted(self, weights: Array) -> Array:
        """The weight of every (public row, pair of reports), (u, r1, r2)."""
        u = len(self.design.values)
        r1, r2 = self.predictors.shape[1], self.answers.shape[1]
        cell = (self.design.group * r1 + self.reports) * r2 + self.outcome
        counted = np.bincount(cell, weights, u * r1 * r2)
        return np.asarray(counted, dtype=np.float64).reshape(u, r1, r2)

    def _joint(self, b: Array, rows: slice) -> tuple[Array, Array, Array, Array]:
        """Pr(z | x), (u, z), Pr(a | x, z), (u, z, a), Pr(r2 | z), and Pr(r1, r2), for some public rows."""
        design, public = self.design.values[rows], self.design.public[rows]
        answered = _logit(design, b[: self.split].reshape(len(self.answers) - 1, -1))
        mixed = _logit(public, b[self.split :].reshape(design.shape[1] - 1, public.shape[1]))
        given = answered @ self.answers
        return mixed, answered, given, np.einsum("uz,zr,uzs->urs", mixed, self.predictors, given)

    def _value(self, b: Array, cells: Array) -> float:
        value = sum(float(xlogy(cells[rows], self._joint(b, rows)[3] + TINY).sum()) for rows in self._chunks())
        return value - float(b**2 @ self._prior()) / 2

    def _prior(self) -> Array:
        """The information (c,) that the penalty adds on every coefficient."""
        return (self.scale / PENALTY) ** 2 if self.penalised else np.zeros_like(self.scale)

    def _at(self, b: Array, cells: Array) -> tuple[float, Array, Array]:
        """Log-likelihood, score and expected information."""
        value, score, information = 0.0, np.zeros(len(b)), np.zeros((len(b), len(b)))
        for rows in self._chunks():
            slopes, both = self._slopes(b, rows)
            count = cells[rows]
            value += float(xlogy(count, both + TINY).sum())
            score += np.einsum("urs,ursc->c", count / np.maximum(both, TINY), slopes)
            share = count.sum(axis=(1, 2))[:, None, None] / np.maximum(both, TINY)
            flat = slopes.reshape(-1, len(b))
            information += (flat * np.where(both > 0, share, 0.0).reshape(-1, 1)).T @ flat
        prior = self._prior()
        return value - float(b**2 @ prior) / 2, score - b * prior, information + np.diag(prior)

    def _slopes(self, b: Array, rows: slice) -> tuple[Array, Array]:
        """d Pr(r1, r2 | x) / d coefficients, (u, r1, r2, c), and the probabilities."""
        mixed, answered, given, both = self._joint(b, rows)
        design, public = self.design.values[rows], self.design.public[rows]
        g, q = self.predictors, self.answers
        # d Pr(r2 | z) / d log-odds of answer a = Pr(a | z) (Q[a, r2] - Pr(r2 | z)).
        turned = answered[:, :, 1:, None] * (q[None, None, 1:, :] - given[:, :, None, :])
        first = np.einsum("uz,zr,uzas,uzd->ursad", mixed, g, turned, design, optimize=True)
        second = mixed[:, None, None, 1:] * (np.einsum("zr,uzs->ursz", g[1:], given[:, 1:]) - both[..., None])
        third = np.einsum("ursz,uq->urszq", second, public)
        return np.concatenate([part.reshape(*both.shape, -1) if part.size else np.empty((*both.shape, 0))
                               for part in (first, third)], axis=-1), both  # fmt: skip

    def _scores(self, b: Array) -> Array:
        """The score of each respondent's reports, (n, c), without weights."""
        scores = np.empty((len(self.outcome), len(b)))
        order = np.argsort(self.design.group, kind="stable")
        sorted_groups = self.design.group[order]
        for rows in self._chunks():
            slopes, both = self._slopes(b, rows)
            low, high = np.searchsorted(sorted_groups, [rows.start, rows.stop])
            who = order[low:high]
            places = (self.design.group[who] - rows.start, self.reports[who], self.outcome[who])
            scores[who] = slopes[places] / np.maximum(both[places], TINY)[:, None]
        return scores

    def noise(self, b: Array, scores: Array, who: npt.NDArray[np.intp], squares: Array) -> Array:
        """The channel's part of the variance of the scores of some respondents, (c, c).

        It is the sum of squares w_i^2 of their scores, less that of their means given true answers, of which each has
        its chance given the reports, by the fitted law.
        """
        own = scores[who]
        noise = (own * squares[:, None]).T @ own
        order = np.argsort(self.design.group[who], kind="stable")
        sorted_groups = self.design.group[who][order]
        for rows in self._chunks():
            low, high = np.searchsorted(sorted_groups, [rows.start, rows.stop])
            if low == high:
                continue
            slopes, both = self._slopes(b, rows)
            mixed, answered, _, _ = self._joint(b, rows)
            each = slopes / np.maximum(both, TINY)[..., None]
            means = np.einsum("zr,as,ursc->uzac", self.predictors, self.answers, each, optimize=True)
            people = order[low:high]
            at = self.design.group[who][people] - rows.start
            first, second = self.reports[who][people], self.outcome[who][people]
            told = self.predictors[:, first].T[:, :, None] * self.answers[:, second].T[:, None]
            chance = mixed[at][:, :, None] * answered[at] * told
            chance /= np.maximum(chance.sum(axis=(1, 2), keepdims=True), TINY)
            weight = np.zeros(means.shape[:3])
            np.add.at(weight, at, chance * squares[people, None, None])
            flat = means.reshape(-1, len(b))
            noise -= (flat * weight.reshape(-1, 1)).T @ flat
        return noise

    def _chunks(self) -> Iterator[slice]:
        u, z, d = self.design.values.shape
        r1, r2 = self.predictors.shape[1], self.answers.shape[1]
        each = r1 * r2 * ((len(self.answers) - 1) * d + (z - 1) * self.design.public.shape[1])
        size = max(1, CHUNK // max(each, 1))
        for start in range(0, u, size):
            yield slice(start, min(u, start + size))


def _logit(design: Array, coefficients: Array) -> Array:
    """The multinomial logit whose first category is the reference."""
    odds = design @ coefficients.T
    return softmax(np.concatenate([np.zeros((*odds.shape[:-1], 1)), odds], axis=-1))


def _solved(information: Array, score: Array) -> Array | None:
    """The Newton step. A little of the diagonal is added if the information has no inverse."""
    if not (np.isfinite(information).all() and np.isfinite(score).all()):
        return None
    for ridge in (0.0, 1e-10, 1e-6, 1e-3):
        with suppress(np.linalg.LinAlgError):
            move = np.linalg.solve(information + ridge * np.diag(np.diag(information) + TINY), score)
            if np.isfinite(move).all():
                return np.asarray(move)
    return None


def logit_regression(
    formula: str, data: Any, channels: Mapping[str, ChannelLike], reference: Label = None, sample: Sample | None = None
) -> Regression:
    """Logistic or multinomial regression, when the outcome or predictors are private [VHG].

    Parameters
    ----------
    formula : such as ``evade ~ age + C(region) + age:sex``. Text columns are factors, number columns are numbers.
    data : the columns by name, each (n,), as a mapping or a data frame. Private columns hold reports.
    channels : the channel of each private column. All other columns are public.
    reference : the category with which the log-odds of the others are compared; the first by default.
    sample : a `SampleDesign`, or a `Subsample` of one for a subgroup; None for a simple sample.

    The coefficients tend to those of the law of the answers if the formula is that law. If it is not, they tend to
    others than true answers would give, which depend on the channels; those of `logit_by_moments` do not.

    They maximise the likelihood of the reports, summed over the unknown private predictors, whose own model
    is a multinomial logit in the public predictors [BIZ]. For a simple sample the covariance is the inverse of the
    information. Otherwise the scores are weighted, and the variance of their total is that of the sample
    (pseudo-likelihood) [SSW]; with replicate weights the fit is made again under each. The reports of one person must
    have been made independently of one another.

    Raises `InvalidInput` for a formula or columns that do not fit, `NotIdentifiable` for a channel that does not
    determine the answers, and `SolverError` if the likelihood has no finite maximum. With private predictors of which
    some combinations are rare it often has none. The coefficients are then penalised, as if log-odds were normal about
    0 with a standard deviation of 3 per root mean square of a regressor, and `method` says so.

    >>> data = {"evade": [0, 0, 0, 1, 0, 1, 1, 1], "group": list("aaaabbbb")}
    >>> logit_regression("evade ~ group", data, {"evade": [[0.9, 0.1], [0.1, 0.9]]}).kind
    'logistic'
    """
    asked = parse_formula(formula)
    asked.require_categories()
    known = {name: as_channel(channel) for name, channel in channels.items()}
    known_outcome, outcome = outcome_of(data, asked.outcome, known.get(asked.outcome))
    answers, labels = from_reference(known_outcome, reference)
    private = private_predictors(asked, known)
    design = regressors(asked, data, {name: channel.inputs for name, channel in private.items()}, len(outcome))
    drawn = as_subsample(sample, len(outcome))
    predictors, reports = reports_together(private, data, len(outcome))
    return _fitted(formula, CellLikelihood(design, predictors, reports, answers, outcome, drawn), labels)


def logistic_regression(
    reports: Any, design: Any, channel: ChannelLike, success: Label = None, names: tuple[str, ...] | None = None
) -> Regression:
    """`logit_regression` of a privatized binary answer on a matrix of regressors, of a simple sample [VHG].

    reports : n output labels of `channel`, a channel (2, m).
    design : (n, d) regressors, an array or a data frame; add an intercept by `with_constant`.
    success : the input label counted as 1; the channel's last input by default.

    A report has probability Q[0, y] (1 - pi) + Q[1, y] pi, where the log-odds of pi, the probability of `success`, are
    design @ coefficients. The likelihood need not be concave, so the fit is a stationary point, perhaps not the
    maximum. Raises `InvalidInput` for collinear regressors, and `SolverError` without convergence, as under separation.

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
    if np.linalg.matrix_rank(x) < d:
        raise invalid("design", "linearly independent columns", f"rank {np.linalg.matrix_rank(x)} of {d}")
    names = tuple(map(str, getattr(design, "columns", (f"x{i}" for i in range(d))))) if names is None else names
    if len(names) != d:
        raise invalid("names", f"{d} names", len(names))
    answers, labels = from_reference(channel, channel.inputs[1 - channel.inputs.index(success)])
    rows, group = np.unique(x, axis=0, return_inverse=True)
    none = np.zeros(len(x), dtype=np.intp)
    public = Regressors(names, rows[:, None], np.ones((len(rows), 1)), group.reshape(-1), {})
    likelihood = CellLikelihood(public, np.ones((1, 1)), none, answers, y, None)
    return _fitted(f"{success} ~ {' + '.join(names)}", likelihood, labels)


def with_constant(design: Any) -> Any:
    """The design (n, d) with a first column of ones, shape (n, d + 1). In a data frame the new column is ``const``.

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


def _fitted(formula: str, model: CellLikelihood, labels: tuple[Label, ...]) -> Regression:
    """The regression that a likelihood gives; the covariance of a complex sample is that of the weighted scores."""
    n, split, drawn = len(model.outcome), model.split, model.sample
    if n <= split:
        raise invalid("data", f"more respondents than the {split} coefficients", n)
    try:
        fit = model.fit()
    except SolverError:
        if not model.design.private:
            raise
        # Where next to no report tells of some combination of private predictors, its share runs off to zero.
        model = replace(model, penalised=True)
        fit = model.fit()
    covariance, degrees, likelihood, null = inverse_of(fit.information), math.inf, None, None
    if drawn is None and not model.penalised:
        likelihood, null = fit.log_likelihood, model.null_log_likelihood()
    if drawn is not None:
        parts = drawn.summed(lambda who, squares: model.noise(fit.coefficients, fit.scores, who, squares))

        def again(weights: Array) -> Array:
            return model.fit(weights, fit.coefficients).coefficients

        slopes = model.design.values.shape[2] - 1
        unit = covariance * drawn.top
        total = drawn.variance(fit.scores @ covariance, unit @ parts @ unit, again, slopes)
        covariance, degrees = total.covariance, total.degrees
    kind = "logistic" if len(labels) == 2 else "multinomial"
    coefficients = fit.coefficients[:split].reshape(len(labels) - 1, -1)
    return Regression(
        formula, kind, model.design.names, labels[1:], labels[0], coefficients, np.asarray(covariance)[:split, :split],
        n, degrees, model.design.levels, likelihood, null, "penalised likelihood" if model.penalised else "likelihood",
    )  # fmt: skip
