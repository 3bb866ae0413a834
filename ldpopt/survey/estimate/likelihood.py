"""Frequencies of reports -> the maximum-likelihood shares, by EM and an interior-point method, with a proven gap.

The parametric bootstrap simulates surveys from an estimate, and estimates each again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.channel import Channel, ChannelLike, Label, as_channel
from ldpopt.distribution import Array, positive_integer
from ldpopt.errors import SolverError, invalid
from ldpopt.results import Pictured
from ldpopt.survey.estimate.intervals import Intervals, Wald
from ldpopt.survey.estimate.linear import (
    Estimator,
    GeneralizedLeastSquares,
    efficient_loadings,
    require_identifiable,
    simplex_projection,
)
from ldpopt.survey.estimate.sampled import as_table

BOUNDARY = 1e-9
"""Proportions below this count as zero: the estimate lies on the boundary of the simplex."""


@dataclass(frozen=True)
class Maximum:
    """The distribution that maximises the log-likelihood, and how close it is proven to be.

    p : (k,) non-negative, sums to 1.
    log_likelihood : n sum_y f_y log (p Q)_y, in nats.
    gap : an upper bound, in nats, on how far the maximum is above `log_likelihood`.
    boundary : positions of the proportions that are zero.
    """

    p: Array
    log_likelihood: float
    gap: float
    boundary: tuple[int, ...]


@dataclass(frozen=True)
class MaximumLikelihood:
    """The maximum-likelihood estimate on the simplex [DLR], [VR].

    It maximises the concave function l(p) = sum_y c_y log (p Q)_y over the distributions p. Since p . grad l(p) = n at
    every p, l(p*) - l(p) <= max_x grad_x l(p) - n. The right side is what `Maximum.gap` reports.

    tolerance : the gap, in nats a respondent, at which the search stops. Raises `SolverError` if it is not reached.

    >>> from ldpopt.survey import estimate
    >>> estimate({0: 10, 1: 90}, [[0.8, 0.2], [0.2, 0.8]], MaximumLikelihood()).values.round(4)
    array([0., 1.])
    """

    tolerance: float = 1e-12
    name = "maximum likelihood"

    def fit(self, frequencies: Array, channel: Channel) -> tuple[Array, Array]:
        """Proportions (k,) and the efficient left inverse at them (k, m)."""
        p = self.maximum(frequencies, channel).p
        return p, efficient_loadings(channel, p)

    def maximum(self, frequencies: Array, channel: Channel, n: float = 1.0) -> Maximum:
        """The maximum for frequencies (m,) of `n` reports, with its gap."""
        require_identifiable(channel)
        q = channel.matrix
        _require_possible(frequencies, q)
        p, gap = em(frequencies[None], q, cycles=10, tolerance=self.tolerance)
        best, best_gap = p[0], float(gap[0])
        if best_gap > self.tolerance or best.min() < 1e-6:
            finer, finer_gap = _interior_point(frequencies, q, self.tolerance)
            if finer_gap < best_gap or finer_gap <= self.tolerance:
                best, best_gap = finer, finer_gap
        if best_gap > 100 * self.tolerance:
            raise SolverError(
                f"maximum likelihood: stopped {best_gap:.2g} nats a respondent from the maximum; "
                "the channel is nearly non-identifiable, or the tolerance is below rounding"
            )
        used = frequencies > 0
        value = float(n * (frequencies[used] @ np.log(best @ q[:, used])))
        zero = tuple(int(x) for x in np.flatnonzero(best < BOUNDARY))
        return Maximum(best, value, max(best_gap, 0.0) * n, zero)


def em(frequencies: Array, q: Array, cycles: int = 2000, tolerance: float = 1e-9) -> tuple[Array, Array]:
    """Maximum likelihood for every row of `frequencies`, (r, m), by EM with squared extrapolation (SQUAREM).

    Returns proportions (r, k) and the gap of each, in nats a respondent. A row stops when its gap is at most
    `tolerance` or after `cycles`. Each extrapolation is kept only if the likelihood does not fall below that
    of the two EM steps it replaces, so the likelihood never falls.

    >>> p, gap = em(np.array([[0.3, 0.7]]), np.array([[0.8, 0.2], [0.2, 0.8]]))
    >>> bool(abs(p[0, 0] - 1 / 6) < 1e-6), bool(gap[0] <= 1e-9)
    (True, True)
    """
    k = len(q)
    start = simplex_projection(frequencies @ efficient_loadings(Channel(q), np.full(k, 1 / k)).T)
    p = 0.9 * start + 0.1 / k
    gap = np.full(len(p), np.inf)
    active = np.arange(len(p))
    for _ in range(cycles):
        x0, f = p[active], frequencies[active]
        g0, _ = _gradient(x0, f, q)
        gap[active] = g0.max(axis=1) - 1
        busy = gap[active] > tolerance
        if not busy.any():
            break
        active, x0, f, g0 = active[busy], x0[busy], f[busy], g0[busy]
        x1 = x0 * g0
        g1, _ = _gradient(x1, f, q)
        x2 = x1 * g1
        g2, plain = _gradient(x2, f, q)
        step = x1 - x0
        bend = (x2 - x1) - step
        with np.errstate(divide="ignore", invalid="ignore"):
            length = np.sqrt((step**2).sum(axis=1) / (bend**2).sum(axis=1))
        length = np.maximum(np.where(np.isfinite(length), length, 1.0), 1.0)[:, None]
        far = x0 + 2 * length * step + length**2 * bend
        inside = far.min(axis=1) > 0
        far = np.where(inside[:, None], far, x2)
        far /= far.sum(axis=1, keepdims=True)
        g3, reached = _gradient(far, f, q)
        keep = inside & (reached >= plain)
        p[active] = np.where(keep[:, None], far * g3, x2 * g2)
    final, _ = _gradient(p[active], frequencies[active], q)
    gap[active] = final.max(axis=1) - 1
    return p / p.sum(axis=1, keepdims=True), gap


def _gradient(p: Array, f: Array, q: Array) -> tuple[Array, Array]:
    """d/dp of sum f log(p Q), row by row, and that sum."""
    m = p @ q
    seen = f > 0
    safe = np.where(seen, m, 1.0)
    return np.asarray((f / safe) @ q.T), np.asarray((f * np.log(safe)).sum(axis=1))


def _interior_point(f: Array, q: Array, tolerance: float) -> tuple[Array, float]:
    """Primal-dual Newton for min sum x - sum f log(x Q) over x >= 0, whose solution sums to 1 by itself."""
    k = len(q)
    used = f > 0
    f, q = f[used], q[:, used]
    x = np.full(k, 1 / k)
    g = q @ (f / (x @ q))
    slack = np.maximum(1 - g, 0.1)
    best, best_gap = x, float(g.max() - 1)
    for _ in range(100):
        m = x @ q
        g = q @ (f / m)
        residual = 1 - g - slack
        target = 0.1 * float(x @ slack) / k if np.abs(residual).max() < 1e-3 else 0.5 * float(x @ slack) / k
        weighted = q * (np.sqrt(f) / m)
        matrix = weighted @ weighted.T
        matrix[np.diag_indices(k)] += slack / x
        dx = np.linalg.solve(matrix, target / x - slack - residual)
        ds = (target - slack * dx) / x - slack
        with np.errstate(divide="ignore"):
            reach = min(1.0, *(0.995 / np.max(-d / v, initial=1e-300) for d, v in ((dx, x), (ds, slack))))
        x, slack = x + reach * dx, slack + reach * ds
        candidate = np.where(x > slack, x, 0.0) if target < 1e-10 else x
        candidate = candidate / candidate.sum()
        m = candidate @ q
        if m.min() <= 0:
            continue
        gap = float((q @ (f / m)).max() - 1)
        if gap < best_gap:
            best, best_gap = candidate, gap
        # One step more than the tolerance needs, since Newton's last step gains the most digits.
        if best_gap <= tolerance and target < 1e-3 * tolerance:
            break
    return best, best_gap


def _require_possible(f: Array, q: Array) -> None:
    impossible = np.flatnonzero((f > 0) & (q.max(axis=0) == 0))
    if len(impossible):
        raise invalid("reports", "outputs that the channel can give", "one of probability 0", f"output {impossible[0]}")


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
