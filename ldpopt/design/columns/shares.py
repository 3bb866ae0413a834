"""Mutual information of staircase patterns as a function of their mass, and where it is best at linear prices.

On S_A = t + 1_A the information is h(a), a = P(A), with h'(a) = h'(0) - log(1 + a/t) and h'(0) = (t + 1) epsilon - 1,
t = 1/(e^epsilon - 1). These are floats for searches; `certificates.information` computes proved numbers.
"""

from __future__ import annotations

import math

import numpy as np

from ldpopt.distribution import Array
from ldpopt.divergences import KL

STEPS = 60  # The number of halvings of an interval.


def level_of(epsilon: float) -> float:
    """t = 1/(e^epsilon - 1), without overflow."""
    return max(math.exp(-epsilon) / -math.expm1(-epsilon), 1e-306)


def best_mass(epsilon: float) -> float:
    """(t - 1)/(e^epsilon - 1), t = epsilon/(1 - e^-epsilon): the mass at which a pattern has most information."""
    series = epsilon / 2 + epsilon**2 / 12  # t - 1, less epsilon^4/720
    return (series if epsilon < 1e-3 else epsilon / -math.expm1(-epsilon) - 1) * level_of(epsilon)


def information_of(mass: Array, away: Array, level: float) -> Array:
    """h(a) for masses a, and away = 1 - a, of any shape; level : t."""
    mean = level + mass
    return np.asarray(mass * KL.excess_of(away, mean) + away * KL.excess_of(-mass, mean))


def best_share(own: Array, rest: float, level: float, within: float, slope: Array) -> Array:
    """(n,) the rho in [0, 1] at which h(own + rest rho) - within rho (1 - rho) - slope rho is largest. Only rho are
    looked at up to which this function is concave.
    """
    if not rest > 0:
        return np.zeros(len(own))
    steepest = float(KL.excess_of(1.0, level))

    def mass_at(log_rise: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.clip(level * np.expm1(np.minimum(log_rise, 709.0)), own, own + rest)

    if not within > 0:
        best = mass_at(steepest - slope / rest)
    else:
        # The search is in log(1 + a/t), which keeps digits whether a is near t or far from it.
        low, high = np.log1p(own / level), np.log1p((own + rest) / level)
        bent = math.log(rest) * 2 - math.log(2 * within) - math.log(level)  # log of (t + a)/t where concavity ends
        high = np.maximum(np.minimum(high, bent - 1e-12), low)
        for _ in range(STEPS):
            middle = (low + high) / 2
            share = (level * np.expm1(middle) - own) / rest
            rising = (steepest - middle) * rest - within * (1 - 2 * share) - slope > 0
            low, high = np.where(rising, middle, low), np.where(rising, high, middle)
        best = mass_at(low)
    return np.nan_to_num(np.clip((best - own) / rest, 0.0, 1.0))
