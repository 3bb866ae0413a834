"""A formula and reports -> logistic or multinomial regression, by a likelihood summed over unknown answers [VHG]."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Channel, ChannelLike, Label, as_channel
from ldpopt.distribution import Array
from ldpopt.errors import Phrase, SolverError, invalid
from ldpopt.survey.estimate.counts import positions
from ldpopt.survey.estimate.linear import require_identifiable
from ldpopt.survey.regress.formula import Regressors, numbers_of, parse_formula, public_column, regressors
from ldpopt.survey.regress.result import Regression, Sample, sampled

CHUNK = 1 << 21
"""The most entries of score arrays that are in memory at once."""

TINY = 1e-300


@dataclass(frozen=True)
class Fitted:
    """Coefficients (c,), the information (c, c) at them, the log-likelihood, the scores (n, c), and the steps taken."""

    coefficients: Array
    information: Array
    log_likelihood: float
    scores: Array
    steps: int


@dataclass(frozen=True)
class CellLikelihood:
    """Reports (r1, r2) of private predictors z and an answer a, given public values x.

    Pr(r1, r2 | x) = sum_z Pr(z | x) G[z, r1] sum_a Pr(a | x, z) Q[a, r2] [VHG]. Here Pr(a | x, z) is a multinomial
    logit in the design, with answer 0 as its reference, and Pr(z | x) is a multinomial logit in the public columns. The
    vector of coefficients has those of the answers first (a - 1 rows of d), then those of the predictors (z - 1 rows of
    q).

    answers : Q, (a, r2). outcome : (n,) positions of the answers' reports. weights : (n,) positive.
    """

    design: Regressors
    answers: Array
    outcome: npt.NDArray[np.intp]
    weights: Array

    @property
    def split(self) -> int:
        """The number of coefficients that belong to the answers."""
        return int((len(self.answers) - 1) * self.design.values.shape[2])

    def fit(self) -> Fitted:
        """Fisher scoring with step halving, to a stationary point of the likelihood.

        The likelihood never falls on the way.
        """
        scale = self._scale()
        b = np.zeros(len(scale))
        cells = self._counted()
        now, score, information = self._at(b, cells)
        for step in range(200):
            move = _solved(information / np.outer(scale, scale), score / scale)
            if move is None:
                break
            # Half of this is about the log-likelihood left to gain. Under separation it vanishes, but the moves do not.
            won = float(score / scale @ move)
            if won < 1e-13 * max(1.0, abs(now)) and np.abs(move).max() < 1e-6 * (1 + np.abs(b * scale).max()):
                return Fitted(b, information, now, self._scores(b), step)
            size = min(1.0, 4.0 / float(np.abs(move).max()))
            trial = b + size * move / scale
            value = self._value(trial, cells)
            # A sum of many logarithms has a rounding error, which is allowed for.
            while not value >= now - 1e-12 * max(1.0, abs(now)) and size > 1e-12:
                size /= 2
                trial = b + size * move / scale
                value = self._value(trial, cells)
            b = trial
            now, score, information = self._at(b, cells)
            if np.abs(b * scale).max() > 60:
                break
        raise SolverError(
            "regression: no finite maximum was reached; a predictor separates the reports, or so few reports carry the "
            "answer that their likelihood has no peak (drop predictors, join categories, or collect more reports)"
        )

    def _scale(self) -> Array:
        """The root mean square of each regressor, by which steps are scaled, so that units do not matter."""
        d, public = self.design.values, self.design.public
        first = np.tile(np.sqrt((d**2).mean(axis=(0, 1))), len(self.answers) - 1)
        second = np.tile(np.sqrt((public**2).mean(axis=0)), d.shape[1] - 1)
        return np.asarray(np.maximum(np.concatenate([first, second]), TINY))

    def _counted(self) -> Array:
        """The weight of every (public row, pair of reports), (u, r1, r2)."""
        u = len(self.design.values)
        r1, r2 = self.design.cell_channel.shape[1], self.answers.shape[1]
        at = (self.design.group * r1 + self.design.reports) * r2 + self.outcome
        counted = np.bincount(at, weights=self.weights, minlength=u * r1 * r2)
        return np.asarray(counted, dtype=np.float64).reshape(u, r1, r2)

    def _laws(self, b: Array, rows: slice) -> tuple[Array, Array]:
        """Pr(z | x), (u, z), and Pr(a | x, z), (u, z, a), for some public rows."""
        design = self.design.values[rows]
        a, z = len(self.answers), design.shape[1]
        first = b[: self.split].reshape(a - 1, design.shape[2])
        odds = np.concatenate([np.zeros((*design.shape[:2], 1)), design @ first.T], axis=2)
        public = self.design.public[rows]
        second = b[self.split :].reshape(z - 1, public.shape[1])
        return _softmax(np.concatenate([np.zeros((len(public), 1)), public @ second.T], axis=1)), _softmax(odds)

    def _joint(self, b: Array, rows: slice) -> tuple[Array, Array, Array, Array]:
        """Pr(z), Pr(a | z), Pr(r2 | z), and Pr(r1, r2), for some public rows."""
        mixed, answered = self._laws(b, rows)
        told = answered @ self.answers
        both = np.einsum("uz,zr,uzs->urs", mixed, self.design.cell_channel, told)
        return mixed, answered, told, both

    def _value(self, b: Array, cells: Array) -> float:
        total = 0.0
        for rows in self._chunks():
            both = self._joint(b, rows)[3]
            seen = cells[rows] > 0
            total += float((cells[rows][seen] * np.log(np.maximum(both[seen], TINY))).sum())
        return total

    def _at(self, b: Array, cells: Array) -> tuple[float, Array, Array]:
        """Log-likelihood, score and expected information."""
        value, score, information = 0.0, np.zeros(len(b)), np.zeros((len(b), len(b)))
        for rows in self._chunks():
            slopes, both = self._slopes(b, rows)
            count = cells[rows]
            seen = count > 0
            value += float((count[seen] * np.log(np.maximum(both[seen], TINY))).sum())
            ratio = np.where(seen, count, 0.0) / np.maximum(both, TINY)
            score += np.einsum("urs,ursc->c", ratio, slopes)
            share = count.sum(axis=(1, 2))[:, None, None] / np.maximum(both, TINY)
            flat = slopes.reshape(-1, len(b))
            information += (flat * np.where(both > 0, share, 0.0).reshape(-1, 1)).T @ flat
        return value, score, information

    def _slopes(self, b: Array, rows: slice) -> tuple[Array, Array]:
        """d Pr(r1, r2 | x) / d coefficients, (u, r1, r2, c), and the probabilities."""
        mixed, answered, told, both = self._joint(b, rows)
        design, public = self.design.values[rows], self.design.public[rows]
        g, q = self.design.cell_channel, self.answers
        # d Pr(r2 | z) / d log-odds of answer a = Pr(a | z) (Q[a, r2] - Pr(r2 | z)).
        turned = answered[:, :, 1:, None] * (q[None, None, 1:, :] - told[:, :, None, :])
        first = np.einsum("uz,zr,uzas,uzd->ursad", mixed, g, turned, design, optimize=True)
        second = mixed[:, None, None, 1:] * (np.einsum("zr,uzs->ursz", g[1:], told[:, 1:]) - both[..., None])
        third = np.einsum("ursz,uq->urszq", second, public)
        return np.concatenate([part.reshape(*both.shape, -1) if part.size else np.empty((*both.shape, 0))
                               for part in (first, third)], axis=-1), both  # fmt: skip

    def _scores(self, b: Array) -> Array:
        """The score of each respondent's reports, (n, c), without weights."""
        made = np.empty((len(self.outcome), len(b)))
        order = np.argsort(self.design.group, kind="stable")
        sorted_groups = self.design.group[order]
        for rows in self._chunks():
            slopes, both = self._slopes(b, rows)
            low, high = np.searchsorted(sorted_groups, [rows.start, rows.stop])
            who = order[low:high]
            at = (self.design.group[who] - rows.start, self.design.reports[who], self.outcome[who])
            made[who] = slopes[at] / np.maximum(both[at], TINY)[:, None]
        return made

    def _chunks(self) -> Iterator[slice]:
        u, z, d = self.design.values.shape
        r1, r2 = self.design.cell_channel.shape[1], self.answers.shape[1]
        each = r1 * r2 * ((len(self.answers) - 1) * d + (z - 1) * self.design.public.shape[1])
        size = max(1, CHUNK // max(each, 1))
        for start in range(0, u, size):
            yield slice(start, min(u, start + size))


def _softmax(odds: Array) -> Array:
    made = np.exp(odds - odds.max(axis=-1, keepdims=True))
    return np.asarray(made / made.sum(axis=-1, keepdims=True))


def _solved(information: Array, score: Array) -> Array | None:
    """The Newton step. A little of the diagonal is added if the information has no inverse."""
    if not (np.isfinite(information).all() and np.isfinite(score).all()):
        return None
    for ridge in (0.0, 1e-10, 1e-6, 1e-3):
        try:
            made = np.linalg.solve(information + ridge * np.diag(np.diag(information) + TINY), score)
        except np.linalg.LinAlgError:
            continue
        if np.isfinite(made).all():
            return np.asarray(made)
    return None


def logit_regression(
    formula: str,
    data: Any,
    channels: Mapping[str, ChannelLike],
    reference: Label = None,
    weights: Any = None,
    strata: Any = None,
    clusters: Any = None,
    sample: Sample | None = None,
) -> Regression:
    """Logistic or multinomial regression, when the outcome or predictors are private [VHG].

    Parameters
    ----------
    formula : such as ``evade ~ age + C(region) + age:sex``. Text columns are factors, number columns are numbers.
    data : the columns by name, each (n,), as a mapping or a data frame. Private columns hold reports.
    channels : the channel of each private column. All other columns are public.
    reference : the category with which the log-odds of the others are compared; the first by default.
    weights, strata, clusters : (n,), for a complex sample.
    sample : a `SampleDesign`, or a `Subsample` of one for a subgroup, instead of these three.

    The coefficients maximise the likelihood of the reports. The unknown private predictors are summed over; their own
    model is a multinomial logit in the public predictors [BIZ]. For a simple sample the covariance is the inverse of
    the information. Otherwise the scores are weighted, and the variance of their total is that of the sample
    (pseudo-likelihood) [SSW]. The reports of one person must have been made independently of one another.

    Raises `InvalidInput` for a formula or columns that do not fit, `NotIdentifiable` for a channel that does not
    determine the answers, and `SolverError` if the likelihood has no finite maximum.

    >>> data = {"evade": [0, 0, 0, 1, 0, 1, 1, 1], "group": list("aaaabbbb")}
    >>> logit_regression("evade ~ group", data, {"evade": [[0.9, 0.1], [0.1, 0.9]]}).kind
    'logistic'
    """
    asked = parse_formula(formula)
    known = {name: as_channel(channel) for name, channel in channels.items()}
    told, outcome = _outcome(data, asked.outcome, known.get(asked.outcome))
    n = len(outcome)
    for name in (asked.outcome, *asked.columns):
        if name in known:
            require_identifiable(known[name])
    answers, labels = _from_reference(told, reference)
    design = regressors(asked, data, known, n)
    drawn = sampled(weights, strata, clusters, sample, n)
    made = CellLikelihood(design, answers, outcome, np.ones(n) if drawn is None else drawn.weights)
    if n <= made.split:
        raise invalid("data", f"more respondents than the {made.split} coefficients", n)
    found = made.fit()
    degrees, likelihood = math.inf, None
    if drawn is None:
        covariance, likelihood = _inverse(found.information), found.log_likelihood
    else:
        influence = found.scores @ _inverse(found.information)
        total = drawn.total_variance(influence)
        covariance, degrees = total.covariance, total.degrees
    split = made.split
    return Regression(
        formula,
        "logistic" if len(labels) == 2 else "multinomial",
        design.names,
        labels[1:],
        labels[0],
        found.coefficients[:split].reshape(len(labels) - 1, -1),
        np.asarray(covariance)[:split, :split],
        n,
        degrees,
        design.levels,
        likelihood,
    )


def _outcome(data: Any, name: str, channel: Channel | None) -> tuple[Channel, Any]:
    """The channel of the outcome (the identity if it is public), and the position of every report among its outputs."""
    if channel is not None:
        return channel, positions(data[name], channel.outputs)
    n = len(next(iter(data.values()))) if isinstance(data, Mapping) else len(data)
    code, kinds = public_column(data, name, n)
    numbers = numbers_of(kinds)
    order = sorted(range(len(kinds)), key=lambda at: str(kinds[at]) if numbers is None else numbers[at])
    if not 2 <= len(kinds) <= 50:
        raise invalid(f"outcome {name!r}", "2 to 50 categories (linear_regression is for numbers)", len(kinds))
    place = np.argsort(order)
    return Channel(np.eye(len(kinds)), [kinds[at] for at in order]), np.asarray(place[code], dtype=np.intp)


def _from_reference(answers: Channel, reference: Label) -> tuple[Array, tuple[Label, ...]]:
    """The rows of the channel and their labels, with the reference first."""
    labels = list(answers.inputs)
    at = 0
    if reference is not None:
        known = [place for place, label in enumerate(labels) if label == reference or str(label) == reference]
        if len(known) != 1:
            raise invalid("reference", f"one of the categories {tuple(labels[:8])}", reference)
        at = known[0]
    order = [at, *(place for place in range(len(labels)) if place != at)]
    return answers.matrix[order], tuple(labels[place] for place in order)


def _inverse(information: Array) -> Array:
    scale = np.sqrt(np.diag(information))
    if not (scale > 0).all():
        raise invalid("regression", "reports that say something about every coefficient", Phrase("reports that do not"))
    scaled = information / np.outer(scale, scale)
    if not np.linalg.cond(scaled) < 1e13:
        raise invalid("regression", "reports that tell the coefficients apart", Phrase("a singular information"))
    return np.asarray(np.linalg.inv(scaled) / np.outer(scale, scale))
