"""Simultaneous confidence: intervals that all cover the truth at once, with a given probability."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

import numpy as np

from ldpopt.distribution import Array
from ldpopt.survey.estimate.intervals import Score, Wald, check_level, two_sided
from ldpopt.survey.estimate.moments import Moments

SIMULATED_OUTPUTS = 1000
"""The most outputs for which simultaneous intervals simulate surveys. With more, the normal law is accurate enough."""


@dataclass(frozen=True)
class _AllAtOnce:
    base: Wald | Score = field(default_factory=Score)
    kind: ClassVar[str]

    @property
    def level(self) -> float:
        """Probability that all intervals cover."""
        return self.base.level

    @property
    def name(self) -> str:
        """The name of the method in tables and reports."""
        return f"{self.kind} {self.base.name}"


@dataclass(frozen=True)
class Simultaneous(_AllAtOnce):
    """All intervals cover at once with probability `base.level`, and they are as narrow as this allows.

    The critical value is a quantile of the largest standardised error over 16,384 surveys (fewer from 128 outputs on)
    that are simulated from the estimate. The same random numbers are used each time. Simulation allows for skewness,
    which a normal distribution does not have. For complex samples, more than 1000 outputs and perfectly correlated
    estimates, the quantile is that of the largest |Z| of a normal vector with the estimates' correlation [HBW].

    >>> from ldpopt.survey import estimate
    >>> made = estimate({0: 40, 1: 60}, [[0.8, 0.2], [0.2, 0.8]])
    >>> made.intervals(method=Simultaneous()).lower.round(3)
    array([0.182, 0.503])
    """

    kind = "simultaneous"

    def limits(self, m: Moments, critical: float | None = None) -> tuple[Array, Array]:
        """Lower and upper ends, shape (..., r)."""
        return self.base.limits(m, self._critical(m))

    def _critical(self, m: Moments) -> float:
        correlation = m.correlation
        simulated = m.redraw is not None and m.outputs <= SIMULATED_OUTPUTS and np.abs(correlation).min() < 1 - 1e-9
        if m.redraw is None or not simulated:
            return max_normal_quantile(correlation, self.level, m.degrees)
        drawn = m.redraw(min(2**14, max(2**12, 2**21 // m.outputs)))
        truth = m.centre.reshape(-1, m.centre.shape[-1]).mean(axis=0)
        largest = self.base.pivot(drawn, truth).max(axis=-1)
        # With a few respondents a score interval may not reach the truth at any critical value; 40 stands for infinity.
        return min(float(np.quantile(largest, self.level, method="inverted_cdf")), 40.0)


@dataclass(frozen=True)
class Bonferroni(_AllAtOnce):
    """All r intervals cover at once with probability at least `base.level`: each has level 1 - (1 - level) / r.

    >>> from ldpopt.survey import estimate
    >>> made = estimate({0: 40, 1: 60}, [[0.8, 0.2], [0.2, 0.8]])
    >>> made.intervals(method=Bonferroni()).lower.round(3)
    array([0.163, 0.48 ])
    """

    kind = "Bonferroni"

    def limits(self, m: Moments, critical: float | None = None) -> tuple[Array, Array]:
        """Lower and upper ends, shape (..., r)."""
        return self.base.limits(m, two_sided(1 - (1 - self.level) / m.centre.shape[-1], m.degrees))


def max_normal_quantile(correlation: Array, level: float, degrees: float = math.inf) -> float:
    """The c with Pr(max_j |Z_j| <= c) = level, Z normal with this correlation (Student's t with `degrees`).

    It is exact when all |correlations| are 1. Otherwise it uses 2^15 scrambled Sobol points (2^13 beyond 64 variables),
    the same ones each time, and the level is right to about 0.001.

    >>> round(max_normal_quantile(np.array([[1.0, -1.0], [-1.0, 1.0]]), 0.95), 6)
    1.959964
    """
    check_level(level)
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
