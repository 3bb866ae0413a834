"""The parametric bootstrap: surveys simulated from the estimate, and estimated again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.channel import Channel, ChannelLike, Label, as_channel
from ldpopt.distribution import Array, positive_integer
from ldpopt.errors import invalid
from ldpopt.results import Pictured
from ldpopt.survey.estimate.counts import as_table
from ldpopt.survey.estimate.intervals import Intervals, Wald
from ldpopt.survey.estimate.likelihood import MaximumLikelihood, em
from ldpopt.survey.estimate.linear import Estimator, GeneralizedLeastSquares
from ldpopt.survey.estimate.project import simplex_projection


@dataclass(frozen=True, eq=False, repr=False)
class Bootstrap(Pictured):
    """The estimates of simulated surveys, `draws` (replications, k), and the estimate itself, `values` (k,)."""

    values: Array
    draws: Array
    labels: tuple[Label, ...]
    estimator: str

    @property
    def covariance(self) -> Array:
        """(k, k) covariance of the draws."""
        return np.atleast_2d(np.cov(self.draws, rowvar=False))

    @property
    def standard_errors(self) -> Array:
        """Standard deviations of the draws."""
        return np.asarray(self.draws.std(axis=0, ddof=1))

    def intervals(self, level: float = 0.95) -> Intervals:
        """Percentile intervals: the middle `level` of the draws."""
        tail = (1 - Wald(level).level) / 2
        lower, upper = np.quantile(self.draws, [tail, 1 - tail], axis=0)
        return Intervals(self.labels, lower, upper, level, "bootstrap percentile")

    _picture, _heads = "shares", 1

    def _drawn(self) -> tuple[Any, ...]:
        made = self.intervals()
        return self.labels, self.values, made.lower, made.upper

    def _columns(self) -> dict[str, list[Any]]:
        made = self.intervals()
        columns = (self.values, self.standard_errors, made.lower, made.upper)
        inside = zip(("estimate", "se", "lower", "upper"), (c.tolist() for c in columns), strict=True)
        return {"category": list(self.labels), **dict(inside)}

    def _title(self) -> str:
        return f"{len(self.draws)} simulated surveys, {self.estimator}"

    def __repr__(self) -> str:
        return f"Bootstrap({len(self.draws)} surveys, {self.estimator})\n{self.intervals()!r}"


def parametric_bootstrap(
    data: Any,
    channel: ChannelLike,
    rng: np.random.Generator,
    replications: int = 2000,
    estimator: Estimator | None = None,
) -> Bootstrap:
    """Simulate `replications` surveys of the same size from the estimate, and estimate each [Efron].

    The estimate is first projected on the simplex (made non-negative with sum 1), so that surveys can be simulated from
    it. Only simple samples are allowed: a table with weights, strata or clusters is `InvalidInput`, since linearisation
    gives its variance (`Estimate.covariance`).

    >>> rng = np.random.default_rng(5)
    >>> b = parametric_bootstrap({0: 400, 1: 600}, [[0.8, 0.2], [0.2, 0.8]], rng, estimator=MaximumLikelihood())
    >>> b.standard_errors.round(3)
    array([0.026, 0.026])
    """
    estimator = GeneralizedLeastSquares() if estimator is None else estimator
    if not isinstance(rng, np.random.Generator):
        raise invalid("rng", "a numpy.random.Generator", type(rng).__name__)
    table, channel = as_table(data, channel), as_channel(channel)
    if not table.simple:
        raise invalid("bootstrap", "a simple sample", repr(table))
    values, _ = estimator.fit(table.frequencies, channel)
    marginal = channel.push(simplex_projection(values))
    counts = rng.multinomial(table.n, marginal / marginal.sum(), size=positive_integer(replications, "replications", 2))
    draws = fit_many(counts / table.n, channel, estimator)
    return Bootstrap(values, draws, channel.inputs, estimator.name)


def fit_many(frequencies: Array, channel: Channel, estimator: Estimator) -> Array:
    """The estimates, shape (r, k), for `frequencies`, shape (r, m).

    They are computed together if the estimator allows it.
    """
    if isinstance(estimator, MaximumLikelihood):
        tolerance = max(estimator.tolerance, 1e-9)
        p, gap = em(frequencies, channel.matrix, cycles=200, tolerance=tolerance)
        for row in np.flatnonzero(gap > tolerance):
            p[row] = estimator.fit(frequencies[row], channel)[0]
        return p
    if channel.shape[0] == channel.shape[1]:
        return np.asarray(frequencies @ estimator.fit(frequencies[0], channel)[1].T)
    return np.stack([estimator.fit(row, channel)[0] for row in frequencies])
