"""Frequencies of reports -> the maximum-likelihood proportions, by an interior-point method, with a proven gap.

The parametric bootstrap simulates surveys from an estimate, and estimates each again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.channel import Channel, ChannelLike, Label, as_channel
from ldpopt.errors import SolverError, invalid
from ldpopt.values.distribution import Array, Rng, generator, positive_integer
from ldpopt_survey.estimate.intervals import check_level
from ldpopt_survey.estimate.linear import Estimator, GeneralizedLeastSquares, efficient_loadings, require_identifiable
from ldpopt_survey.estimate.results import Estimated, Intervals, simplex_projection
from ldpopt_survey.estimate.sampled import as_table

MAX_NEWTON_ENTRIES = 1 << 22
"""The largest number of array entries of a Newton step in memory at once."""

BOUNDARY_PROPORTION = 1e-9
"""Proportions below this count as zero: the estimate lies on the boundary of the simplex."""


@dataclass(frozen=True)
class Maximum:
    """The distribution p (k,) that maximizes the log-likelihood n sum_y f_y log (p Q)_y, in nats.

    gap : an upper bound, in nats, on the difference between the maximum and `log_likelihood`.
    """

    p: Array
    log_likelihood: float
    gap: float


@dataclass(frozen=True)
class MaximumLikelihood:
    """The maximum-likelihood estimate on the simplex [DLR], [VR].

    It maximizes the concave function l(p) = sum_y c_y log (p Q)_y over the distributions p. Since p . grad l(p) = n at
    every p, l(p*) - l(p) <= max_x grad_x l(p) - n. `Maximum.gap` reports this bound.

    tolerance : the final gap of the search, in nats per respondent. Raises `SolverError` if it is not reached.

    >>> from ldpopt_survey import estimate
    >>> estimate({0: 10, 1: 90}, [[0.8, 0.2], [0.2, 0.8]], MaximumLikelihood()).values.round(4)
    array([0., 1.])
    """

    tolerance: float = 1e-12
    name = "maximum likelihood"

    def fit(self, frequencies: Array, channel: Channel, n: float = math.inf) -> tuple[Array, Array]:
        """Fit the proportions (k,) and the efficient left inverse at them (k, m)."""
        p = self.maximum(frequencies, channel).p
        return p, efficient_loadings(channel, p)

    def maximum(self, frequencies: Array, channel: Channel, n: float = 1.0) -> Maximum:
        """Find the maximum for frequencies (m,) of `n` reports, with its gap."""
        require_identifiable(channel)
        q = channel.matrix
        impossible_outputs = np.flatnonzero((frequencies > 0) & (q.max(axis=0) == 0))
        if len(impossible_outputs):
            where = f"output {impossible_outputs[0]}"
            raise invalid("reports", "outputs that the channel can give", "one of probability 0", where)
        p, gaps = maxima(frequencies[None], q, self.tolerance)
        best, best_gap = p[0], float(gaps[0])
        if best_gap > 100 * self.tolerance:
            raise SolverError(
                f"maximum likelihood: stopped {best_gap:.2g} nats a respondent from the maximum; "
                "the channel is nearly non-identifiable, or the tolerance is below rounding"
            )
        occurs = frequencies > 0
        value = float(n * (frequencies[occurs] @ np.log(best @ q[:, occurs])))
        return Maximum(best, value, max(best_gap, 0.0) * n)


def maxima(frequencies: Array, q: Array, tolerance: float, max_steps: int = 100) -> tuple[Array, Array]:
    """Maximize the likelihood for every row of `frequencies`, (r, m).

    The result has the proportions (r, k) and the gaps, in nats per respondent. The method is primal-dual Newton for min
    sum x - sum f log(x Q) over x >= 0, whose solution sums to 1 without a constraint. A row stops when its gap is at
    most `tolerance`, or after `max_steps`.
    """
    step = max(1, MAX_NEWTON_ENTRIES // q.size)
    parts = [
        _maxima(frequencies[row : row + step], q, tolerance, max_steps) for row in range(0, len(frequencies), step)
    ]
    return np.concatenate([p for p, _ in parts]), np.concatenate([gap for _, gap in parts])


def _maxima(frequencies: Array, q: Array, tolerance: float, max_steps: int) -> tuple[Array, Array]:
    k = len(q)
    best = np.full((len(frequencies), k), 1 / k)
    best_gap = _gradient(best, frequencies, q)[1].max(axis=1) - 1
    x, f, rows = best.copy(), frequencies, np.arange(len(frequencies))
    slack = np.maximum(1 - _gradient(x, f, q)[1], 0.1)
    for _ in range(max_steps):
        root, g = _gradient(x, f, q)
        residual = 1 - g - slack
        close = np.abs(residual).max(axis=1) < 1e-3
        target = np.where(close, 0.1, 0.5) * (x * slack).sum(axis=1) / k
        weighted_rows = q * root[:, None, :]
        matrix = weighted_rows @ weighted_rows.transpose(0, 2, 1)
        matrix[:, np.arange(k), np.arange(k)] += slack / x
        goal = target[:, None]
        dx = np.linalg.solve(matrix, (goal / x - slack - residual)[..., None])[..., 0]
        ds = (goal - slack * dx) / x - slack
        longest = np.maximum(np.max(-dx / x, axis=1), np.max(-ds / slack, axis=1))
        size = np.minimum(1.0, 0.995 / np.maximum(longest, 1e-300))[:, None]
        x, slack = x + size * dx, slack + size * ds
        candidate = np.where((x > slack) | (goal >= 1e-10), x, 0.0)
        candidate = candidate / candidate.sum(axis=1, keepdims=True)
        is_possible = ((candidate @ q > 0) | (f == 0)).all(axis=1)
        gap = np.where(is_possible, _gradient(candidate, f, q)[1].max(axis=1) - 1, np.inf)
        is_better = gap < best_gap[rows]
        best[rows[is_better]], best_gap[rows[is_better]] = candidate[is_better], gap[is_better]
        # One step more than the tolerance needs, since Newton's last step gains the most digits.
        is_unfinished = ~is_possible | (best_gap[rows] > tolerance) | (target >= 1e-3 * tolerance)
        if not is_unfinished.any():
            break
        x, slack, f, rows = x[is_unfinished], slack[is_unfinished], f[is_unfinished], rows[is_unfinished]
    return best, best_gap


def _gradient(p: Array, f: Array, q: Array) -> tuple[Array, Array]:
    """sqrt(f) / (p Q), and d/dp of sum f log(p Q), row by row. Outputs that did not occur count as zero."""
    occurs = (f > 0) & (p @ q > 0)
    marginal = np.where(occurs, p @ q, 1.0)
    return np.where(occurs, np.sqrt(f) / marginal, 0.0), np.asarray(np.where(occurs, f / marginal, 0.0) @ q.T)


@dataclass(frozen=True, eq=False, repr=False)
class Bootstrap(Estimated):
    """The estimates of simulated surveys, `draws` (replications, k), and the estimate itself, `values` (k,)."""

    values: Array
    draws: Array
    labels: tuple[Label, ...]
    estimator: str

    @property
    def covariance(self) -> Array:
        """Covariance (k, k) of the draws."""
        return np.atleast_2d(np.cov(self.draws, rowvar=False))

    def intervals(self, level: float = 0.95) -> Intervals:
        """Compute percentile intervals: the middle `level` of the draws."""
        check_level(level)
        tail = (1 - level) / 2
        lower, upper = np.quantile(self.draws, [tail, 1 - tail], axis=0)
        return Intervals(self.labels, lower, upper, level, "bootstrap percentile")

    def _estimates(self) -> dict[str, tuple[str, Any]]:
        return {"estimate": ("{:9.6f}", self.values), "se": ("{:9.6f}", self.standard_errors)}

    def _title(self) -> str:
        return f"{len(self.draws)} simulated surveys, {self.estimator}"

    def __repr__(self) -> str:
        return f"Bootstrap({len(self.draws)} surveys, {self.estimator})\n{self.intervals()!r}"


def parametric_bootstrap(
    data: Any, channel: ChannelLike, rng: Rng = None, replications: int = 2000, estimator: Estimator | None = None
) -> Bootstrap:
    """Simulate `replications` surveys of the same size, and estimate each [Efron].

    The surveys are simulated from the estimate, projected on the simplex (nonnegative with sum 1).

    Parameters
    ----------
    data, channel, estimator : As in `estimate`, for a simple random sample.
    rng : A `numpy.random.Generator`, a seed of one, or None for a seed of the operating system.
    replications : The number of simulated surveys.

    Returns
    -------
    Bootstrap
        The estimates of the simulated surveys, with their standard errors.

    Raises
    ------
    InvalidInput
        For a table with weights, strata or clusters, since linearization gives its variance (`Estimate.covariance`).

    >>> b = parametric_bootstrap({0: 400, 1: 600}, [[0.8, 0.2], [0.2, 0.8]], rng=5, estimator=MaximumLikelihood())
    >>> b.standard_errors.round(3)
    array([0.026, 0.026])
    """
    estimator = GeneralizedLeastSquares() if estimator is None else estimator
    rng = generator(rng)
    table, channel = as_table(data, channel), as_channel(channel)
    if not table.simple:
        raise invalid("bootstrap", "a simple sample", repr(table))
    values, _ = estimator.fit(table.frequencies, channel, table.n)
    marginal = channel.push(simplex_projection(values))
    counts = rng.multinomial(table.n, marginal / marginal.sum(), size=positive_integer(replications, "replications", 2))
    draws = fit_many(counts / table.n, channel, estimator, table.n)
    return Bootstrap(values, draws, channel.inputs, estimator.name)


def fit_many(frequencies: Array, channel: Channel, estimator: Estimator, n: float = math.inf) -> Array:
    """Fit the estimates (r, k) for `frequencies` (r, m), in one batch if possible."""
    if isinstance(estimator, MaximumLikelihood):
        return maxima(frequencies, channel.matrix, estimator.tolerance)[0]
    if channel.shape[0] == channel.shape[1]:
        return np.asarray(frequencies @ estimator.fit(frequencies[0], channel)[1].T)
    return np.stack([estimator.fit(row, channel, n)[0] for row in frequencies])
