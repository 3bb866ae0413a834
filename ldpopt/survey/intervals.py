"""Confidence intervals for linear functions of the report frequencies: one at a time, or all at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np

from ldpopt.channel import Label
from ldpopt.distribution import Array, number
from ldpopt.errors import invalid


@dataclass(frozen=True)
class Moments:
    """What an interval for t = l . f needs; arrays of shape (..., r), but for the covariance.

    centre : the unbiased estimate t.
    variance : per-report variance of l at the sampled frequencies.
    slope : third central moment over variance, which is how the variance moves with t.
    size : effective number of reports: variance / size is the sampling variance of t.
    below, above : distance from t down and up to the extreme loadings.
    covariance : a function that gives the covariance of the estimates (r, r), up to a factor.
    degrees : degrees of freedom of the variance; inf for a simple sample.
    """

    centre: Array
    variance: Array
    slope: Array
    size: Array
    below: Array
    above: Array
    covariance: Callable[[], Array]
    degrees: float = math.inf

    @cached_property
    def correlation(self) -> Array:
        """(r, r) correlation of the estimates; simultaneous methods alone pay for it."""
        return correlation(self.covariance())


def moments(frequencies: Array, loadings: Array, covariance: Array | None, n: float, degrees: float) -> Moments:
    """The moments of loadings (r, m) under frequencies (..., m) of n reports.

    `covariance` (r, r) is the sampling covariance of the estimates where the sample is not simple.
    """
    centre = frequencies @ loadings.T
    second = frequencies @ (loadings**2).T
    variance = np.maximum(second - centre**2, 0.0)
    variance = np.where(variance <= 1e-14 * second, 0.0, variance)
    third = frequencies @ (loadings**3).T - 3 * centre * second + 2 * centre**3
    seen = variance > 0
    slope = np.where(seen, third / np.where(seen, variance, 1.0), 0.0)
    size = np.full(centre.shape, float(n))
    if covariance is not None:
        drawn = np.diag(covariance)
        size = np.where(drawn > 0, variance / np.where(drawn > 0, drawn, 1.0), size)

    def spread() -> Array:
        if covariance is not None:
            return covariance
        f = frequencies.reshape(-1, frequencies.shape[-1]).mean(axis=0)
        centred = loadings - (loadings @ f)[:, None]
        return np.asarray((centred * f) @ centred.T)

    below, above = centre - loadings.min(axis=1), loadings.max(axis=1) - centre
    return Moments(centre, variance, slope, size, below, above, spread, degrees)


def correlation(covariance: Array) -> Array:
    """The correlation matrix of a covariance matrix; zero where there is no variance."""
    deviation = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    known = deviation > 0
    scale = np.where(known, 1 / np.where(known, deviation, 1.0), 0.0)
    return np.asarray(np.clip(covariance * np.outer(scale, scale), -1, 1))


# -- methods ---------------------------------------------------------------------------------------


class IntervalMethod(Protocol):
    """A rule that gives limits from moments; `level` is its confidence."""

    @property
    def level(self) -> float:
        """Probability of covering the truth: each, or all at once."""
        ...

    @property
    def name(self) -> str:
        """What tables call it."""
        ...

    def limits(self, m: Moments, critical: float | None = None) -> tuple[Array, Array]:
        """Lower and upper ends, shape (..., r)."""
        ...


@dataclass(frozen=True)
class Wald:
    """t +- z sqrt(variance / n). Too short where few reports carry the estimate: prefer `Score`."""

    level: float = 0.95
    name = "Wald"

    def __post_init__(self) -> None:
        _check_level(self.level)

    def limits(self, m: Moments, critical: float | None = None) -> tuple[Array, Array]:
        """Lower and upper ends, shape (..., r)."""
        z = two_sided(self.level, m.degrees) if critical is None else critical
        reach = z * np.sqrt(m.variance / m.size)
        return m.centre - reach, m.centre + reach


@dataclass(frozen=True)
class Score:
    """All t with (t_hat - t)^2 <= z^2 V(t) / n: Wilson's interval for any contrast and any channel [Wilson 1927].

    V(t) is the variance of the loadings along the path of marginals that fits the reports best for each t
    (generalised least squares): V(t_hat + d) = v + d s - d^2, with v the variance and s the third central
    moment over v. For a binary report that path is exact and this is Wilson's interval, rescaled.
    """

    level: float = 0.95
    name = "score"

    def __post_init__(self) -> None:
        _check_level(self.level)

    def limits(self, m: Moments, critical: float | None = None) -> tuple[Array, Array]:
        """Lower and upper ends, shape (..., r)."""
        z = two_sided(self.level, m.degrees) if critical is None else critical
        c = z * z / np.maximum(m.size, 1e-300)
        # With no variance the slope is unknown; the farthest loading is the safe one.
        up = np.where(m.variance > 0, m.slope, m.above)
        down = np.where(m.variance > 0, m.slope, -m.below)
        lower, upper = (
            (c * s + sign * np.sqrt((c * s) ** 2 + 4 * (1 + c) * c * m.variance)) / (2 * (1 + c))
            for s, sign in ((down, -1), (up, 1))
        )
        return m.centre + lower, m.centre + upper


@dataclass(frozen=True)
class Simultaneous:
    """All intervals cover at once with probability `base.level`: the quantile of the largest |Z| of a
    normal vector with the correlation of the estimates [Hothorn, Bretz and Westfall 2008]."""

    base: Wald | Score = field(default_factory=Score)

    @property
    def level(self) -> float:
        """Probability that all intervals cover."""
        return self.base.level

    @property
    def name(self) -> str:
        """What tables call it."""
        return f"simultaneous {self.base.name}"

    def limits(self, m: Moments, critical: float | None = None) -> tuple[Array, Array]:
        """Lower and upper ends, shape (..., r)."""
        return self.base.limits(m, max_normal_quantile(m.correlation, self.level, m.degrees))


@dataclass(frozen=True)
class Bonferroni:
    """All r intervals cover at once with probability at least `base.level`: each at 1 - (1 - level) / r."""

    base: Wald | Score = field(default_factory=Score)

    @property
    def level(self) -> float:
        """Probability that all intervals cover."""
        return self.base.level

    @property
    def name(self) -> str:
        """What tables call it."""
        return f"Bonferroni {self.base.name}"

    def limits(self, m: Moments, critical: float | None = None) -> tuple[Array, Array]:
        """Lower and upper ends, shape (..., r)."""
        return self.base.limits(m, two_sided(1 - (1 - self.level) / m.centre.shape[-1], m.degrees))


def two_sided(level: float, degrees: float = math.inf) -> float:
    """The two-sided critical value of the normal law, or of Student's with `degrees` of freedom.

    >>> round(two_sided(0.95), 6)
    1.959964
    """
    from scipy.stats import norm, t

    return float(norm.isf((1 - level) / 2) if math.isinf(degrees) else t.isf((1 - level) / 2, degrees))


def max_normal_quantile(correlation: Array, level: float, degrees: float = math.inf) -> float:
    """The c with Pr(max_j |Z_j| <= c) = level, Z normal with this correlation (Student's t with `degrees`).

    Exact when all |correlations| are 1; else over 2^15 scrambled Sobol points (2^13 beyond 64 variables), the
    same ones each time, which puts the level within about 0.001.

    >>> round(max_normal_quantile(np.array([[1.0, -1.0], [-1.0, 1.0]]), 0.95), 6)
    1.959964
    """
    _check_level(level)
    return _max_quantile(np.round(correlation, 12).tobytes(), len(correlation), level, degrees)


@lru_cache(maxsize=64)
def _max_quantile(raw: bytes, size: int, level: float, degrees: float) -> float:
    from scipy.special import ndtri
    from scipy.stats import chi2, qmc

    correlation = np.frombuffer(raw).reshape(size, size)
    values, vectors = np.linalg.eigh(correlation)
    kept = values > 1e-9 * max(1.0, float(values[-1]))
    factor = vectors[:, kept] * np.sqrt(values[kept])
    rank = factor.shape[1]
    if rank <= 1:
        return two_sided(level, degrees)
    student = not math.isinf(degrees)
    points = qmc.Sobol(rank + student, rng=np.random.default_rng(20)).random_base2(15 if size <= 64 else 13)
    largest = np.abs(ndtri(points[:, :rank]) @ factor.T).max(axis=1)
    if student:
        largest /= np.sqrt(chi2.ppf(points[:, rank], degrees) / degrees)
    return float(np.quantile(largest, level))


def _check_level(level: Any) -> None:
    if not 0 < number(level, "confidence level", "a number between 0 and 1") < 1:
        raise invalid("confidence level", "a number between 0 and 1", level)


# -- results ---------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Intervals:
    """Confidence limits `lower` and `upper`, shape (r,), for the quantities named by `labels`."""

    labels: tuple[Label, ...]
    lower: Array
    upper: Array
    level: float
    method: str

    @property
    def width(self) -> Array:
        """upper - lower."""
        return self.upper - self.lower

    def contains(self, values: Any) -> Any:
        """Whether each of `values` lies inside its interval."""
        return (self.lower <= values) & (values <= self.upper)

    def clip(self, low: float = 0.0, high: float = 1.0) -> Intervals:
        """The parts inside [low, high]; for quantities known to lie there this loses no coverage.

        An interval wholly outside becomes the nearer end alone.
        """
        ends = np.clip(self.lower, low, high), np.clip(self.upper, low, high)
        return Intervals(self.labels, *ends, self.level, f"{self.method}, clipped")

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        return {
            "labels": list(self.labels),
            "lower": self.lower.tolist(),
            "upper": self.upper.tolist(),
            "level": self.level,
            "method": self.method,
        }

    def __repr__(self) -> str:
        rows = zip(self.labels, self.lower, self.upper, strict=True)
        body = "".join(f"\n  {label!s:<16} [{low:9.6f}, {high:9.6f}]" for label, low, high in rows)
        return f"{100 * self.level:g} % {self.method} intervals{body}"
