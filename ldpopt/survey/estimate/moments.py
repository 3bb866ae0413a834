"""Moments of an estimate that is linear in the reports. Every interval is computed from them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ldpopt.distribution import Array


@dataclass(frozen=True)
class Moments:
    """The moments that an interval for t = l . f needs. Arrays have shape (..., r), except the covariance.

    centre : the unbiased estimate t.
    variance : per-report variance of l at the sampled frequencies.
    slope : third central moment divided by the variance; it says how the variance changes with t.
    size : effective number of reports: variance / size is the sampling variance of t.
    below, above : distance from t down and up to the extreme loadings.
    outputs : number of outputs.
    covariance : a function that gives the covariance of the estimates (r, r), up to a factor.
    degrees : degrees of freedom of the variance; inf for a simple sample.
    redraw : for a simple sample, a function that simulates a given number of surveys like this one.
    """

    centre: Array
    variance: Array
    slope: Array
    size: Array
    below: Array
    above: Array
    outputs: int
    covariance: Callable[[], Array]
    degrees: float = math.inf
    redraw: Callable[[int], Moments] | None = None

    @cached_property
    def correlation(self) -> Array:
        """(r, r) correlation of the estimates, computed on first use, since only simultaneous methods need it."""
        return correlation(self.covariance())


def moments(frequencies: Array, loadings: Array, covariance: Array | None, n: float, degrees: float) -> Moments:
    """The moments of loadings (r, m) under frequencies (..., m) of n reports.

    `covariance` (r, r) is the sampling covariance of the estimates if the sample is not simple, else None.
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
        # Even if all reports are the same, the estimate has an error in a finite population: the channel's randomness.
        known = (drawn > 0) & (variance > 0)
        size = np.where(known, variance / np.where(known, drawn, 1.0), size)

    def spread() -> Array:
        if covariance is not None:
            return covariance
        f = frequencies.reshape(-1, frequencies.shape[-1]).mean(axis=0)
        centred = loadings - (loadings @ f)[:, None]
        return np.asarray((centred * f) @ centred.T)

    def redraw(count: int) -> Moments:
        f = frequencies.reshape(-1, frequencies.shape[-1]).mean(axis=0)
        drawn = np.random.default_rng(20).multinomial(int(n), f / f.sum(), size=count)
        return moments(drawn / n, loadings, None, n, degrees)

    below, above = centre - loadings.min(axis=1), loadings.max(axis=1) - centre
    simulate = redraw if covariance is None else None
    return Moments(centre, variance, slope, size, below, above, loadings.shape[1], spread, degrees, simulate)


def correlation(covariance: Array) -> Array:
    """The correlation matrix of a covariance matrix; zero where there is no variance."""
    deviation = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    known = deviation > 0
    scale = np.where(known, 1 / np.where(known, deviation, 1.0), 0.0)
    return np.asarray(np.clip(covariance * np.outer(scale, scale), -1, 1))
