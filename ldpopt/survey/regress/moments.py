"""Unbiased indicators of private answers -> regressions by moments; so also those of questions that share a report.

A report's indicators have, whatever the answers are, those of the answers as their mean. So the equations that least
squares or logistic regression solves for true answers hold for reports, too, but for noise of mean zero.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ldpopt.channel import Channel, Label
from ldpopt.distribution import Array, finite_array
from ldpopt.errors import Phrase, SolverError, invalid
from ldpopt.survey.estimate.groups import Source, loadings_of
from ldpopt.survey.estimate.numbers import scores_of
from ldpopt.survey.regress.formula import (
    Regressors,
    from_reference,
    in_order,
    numbers_of,
    parse_formula,
    public_column,
    regressors,
)
from ldpopt.survey.regress.logit import UNFITTED
from ldpopt.survey.regress.result import Regression, Sample, check_size, inverse_of, softmax

_CHUNK = 1 << 22


@dataclass(frozen=True, eq=False)
class Indicators:
    """What the report of each of n respondents is worth, without bias.

    report : (n,) positions among all R possible reports.
    cell : (R, z) the indicator of each cell of the private predictors.
    outcome : (R, z, e) that indicator times the outcome, of e numbers: one, or an indicator for each category but the
        reference. factor : (n,) by which it is multiplied, where the outcome is a public number.
    """

    report: npt.NDArray[np.intp]
    cell: Array
    outcome: Array
    factor: Array | float = 1.0


@dataclass(frozen=True)
class Moments:
    """The equations sum_i w_i sum_z (outcome_iz - cell_iz f(x_iz b)) x_iz = 0 for b, (e, d).

    f is the identity, or if `logit` the chances of the categories but the reference.
    """

    design: Regressors
    indicators: Indicators
    logit: bool
    sample: Sample | None = None

    def fit(self) -> tuple[Array, Array, float]:
        """The coefficients (e, d), their covariance (e d, e d) and its degrees of freedom.

        Newton's steps are halved until the next one is shorter, which no unit of the regressors changes.
        """
        mass, moment = self._summed()
        d, e = self.design.values.shape[2], moment.shape[2]
        n = len(self.design.group)
        if n <= e * d:
            raise invalid("data", f"more respondents than the {e * d} coefficients", n)
        scale = np.tile(np.sqrt((self.design.values**2).mean(axis=(0, 1))), e)
        b = np.zeros(e * d)
        score, information = self._at(b, mass, moment)
        inverse = inverse_of(information)
        move = inverse @ score
        for _ in range(100):
            if np.abs(move * scale).max() < 1e-9 * (1 + np.abs(b * scale).max()):
                break
            size = min(1.0, 4.0 / float(np.abs(move * scale).max())) if self.logit else 1.0
            while size > 1e-6:
                following = inverse @ self._at(b + size * move, mass, moment)[0]
                if np.linalg.norm(following * scale) <= (1 - size / 4) * np.linalg.norm(move * scale):
                    break
                size /= 2
            b = b + size * move
            if size <= 1e-6 or np.abs(b * scale).max() > 60 * math.sqrt(e):
                raise SolverError(UNFITTED)
            score, information = self._at(b, mass, moment)
            inverse = inverse_of(information)
            move = inverse @ score
        if not np.linalg.eigvalsh(information / np.outer(scale, scale)).min() > 0:
            raise invalid("regression", "reports that tell the coefficients apart", Phrase("too few for that"))
        influence = self._scores(b.reshape(e, d)) @ inverse
        if self.sample is None:
            return b.reshape(e, d), influence.T @ influence * (n / (n - d)), math.inf if self.logit else float(n - d)
        total = self.sample.total_variance(influence)
        return b.reshape(e, d), total.covariance, total.degrees

    def _summed(self) -> tuple[Array, Array]:
        """The weighted sums of the indicators over the respondents of each public row: (u, z) and (u, z, e)."""
        made, group, n = self.indicators, self.design.group, len(self.design.group)
        w = np.ones(n) if self.sample is None else self.sample.weights
        shape = len(self.design.values), len(made.cell)
        mass, moment = (
            sparse.csr_array((each, (group, made.report)), shape=shape) @ table.reshape(len(table), -1)
            for each, table in ((w, made.cell), (w * made.factor, made.outcome))
        )
        return mass, moment.reshape(*mass.shape, -1)

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
        made, group = self.indicators, self.design.group
        e, d = b.shape
        factor = np.broadcast_to(made.factor, group.shape)
        scores = np.zeros((len(group), e * d))
        step = max(1, _CHUNK // (max(d, e) * self.design.values.shape[1]))
        for start in range(0, len(group), step):
            rows = slice(start, start + step)
            report, of = made.report[rows], group[rows]
            residual = made.outcome[report] * factor[rows, None, None]
            residual = residual - made.cell[report][..., None] * self._expected(b, of)
            scores[rows] = np.einsum("sze,szd->sed", residual, self.design.values[of]).reshape(-1, e * d)
        return scores


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
    at = np.array([source.at for source in sources])
    if not ((at >= 0).sum(axis=0) == 1).all():
        raise invalid("sources", "one report of each respondent", Phrase("none, or several"))
    n = at.shape[1]
    check_size(sample, n)
    predictors = {name: answers[name] for name in asked.columns if name in answers}
    design = regressors(asked, data, predictors, n)
    z = design.values.shape[1]
    cells, report = _pooled(sources, at, None if sample is None else sample.weights)
    cells = cells.reshape(len(cells), z, -1)
    levels: tuple[Label, ...] = ()
    factor: Array | float = 1.0
    if asked.outcome in answers:
        values, levels = _outcome_values(asked.outcome, answers[asked.outcome], logit, reference, scores)
        indicators = Indicators(report, cells.sum(axis=2), cells @ values)
    else:
        code, kinds = public_column(data, asked.outcome)
        if logit:
            code, kinds = in_order(code, kinds)
            values, levels = _outcome_values(asked.outcome, kinds, logit, reference, None)
            cell, report = np.repeat(cells[..., 0], len(kinds), axis=0), report * len(kinds) + code
            outcome = cell[..., None] * np.tile(values, (len(cells), 1))[:, None]
        else:
            if (numbers := numbers_of(kinds)) is None:
                raise invalid(f"outcome {asked.outcome!r}", "numbers", Phrase("something else"))
            cell, factor = cells[..., 0], numbers[code]
            outcome = cell[..., None]
        indicators = Indicators(report, cell, outcome, factor)
    b, covariance, degrees = Moments(design, indicators, logit, sample).fit()
    kind = "linear" if not logit else "logistic" if len(levels) == 2 else "multinomial"
    equations, first = (levels[1:], levels[0]) if logit else ((asked.outcome,), None)
    return Regression(
        formula, kind, design.names, equations, first, b, covariance, n, degrees, design.levels, method="moments"
    )


def _outcome_values(
    name: str, labels: Sequence[Label], logit: bool, reference: Label, scores: Any
) -> tuple[Array, tuple[Label, ...]]:
    """The numbers (a, e) that each category of the outcome is; for a logit with the categories, the reference first."""
    if logit:
        if not 2 <= len(labels) <= 50:
            raise invalid(f"outcome {name!r}", "2 to 50 categories (linear regression is for numbers)", len(labels))
        rows, ordered = from_reference(Channel(np.eye(len(labels)), tuple(labels)), reference)
        return np.asarray(rows[1:].T), ordered
    values = scores_of(tuple(labels)) if scores is None else finite_array(scores, "scores", 1)
    if len(values) != len(labels):
        raise invalid("scores", f"one for each of the {len(labels)} categories of {name!r}", len(values))
    return values[:, None], ()


def _pooled(
    sources: Sequence[Source], at: npt.NDArray[np.intp], weights: Array | None
) -> tuple[Array, npt.NDArray[np.intp]]:
    """Unbiased indicators (R, r) of all combinations for the reports of all booklets, and the report of each person.

    Those of a booklet are multiplied by its precision, relative to the most precise one.
    """
    tables, precisions, report = [], [], np.zeros(at.shape[1], dtype=np.intp)
    start = 0
    w = np.ones(at.shape[1]) if weights is None else weights
    for source, own in zip(sources, at, strict=True):
        asked = own >= 0
        law = np.asarray(np.bincount(own[asked], w[asked], source.channel.shape[1]), dtype=np.float64)
        share = law.sum()
        loadings, variances = loadings_of(source, law / share if share else law, int(asked.sum()))
        tables.append(loadings.T)
        precisions.append(1 / variances.mean())
        report[asked] = own[asked] + start
        start += source.channel.shape[1]
    relative = np.array(precisions) / max(precisions)
    return np.vstack([table * weight for table, weight in zip(tables, relative, strict=True)]), report
