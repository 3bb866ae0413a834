"""The law of the number of plus minus the number of minus in k draws of a three-point pair, accurate in the tails."""

from __future__ import annotations

import math

import numpy as np

from ldpopt.distribution import Array


def trinomial_log_pmf(count: int, epsilon: float, erasure: float, kept: float | None = None) -> Array:
    """log Pr(#plus - #minus = d) for d = -count..count, shape (2 count + 1,), under the first hypothesis.

    Each of `count` independent draws is plus, erased or minus with probabilities (1 - a) e^eps / (1 + e^eps), a and
    (1 - a) / (1 + e^eps), where a = `erasure` in [0, 1] [GI, eq. 7]. #plus and #minus count the draws of each kind.
    kept : 1 - a, if a is so near 1 that 1 - erasure would lose its digits.

    It takes O(count) time. The probabilities are coefficients of a power of a polynomial, which obey a three-term
    recurrence. From either end to the middle its terms are positive, so nothing cancels, and the relative error is a
    few units in the last place for each step away from the mode.

    >>> np.exp(trinomial_log_pmf(1, 0.0, 0.5)).round(12).tolist()
    [0.25, 0.5, 0.25]
    """
    kept = 1 - erasure if kept is None else kept
    if kept <= 0:
        law = np.full(2 * count + 1, -np.inf)
        law[count] = 0.0
        return law
    # Tilting by e^(-d eps/2) makes the law symmetric: coefficients of (1/z + beta + z)^count.
    if kept < 1e-100:  # beta may overflow, so its logarithm is used, and beta^2 counts as infinite
        log_beta = math.log(erasure) - math.log(kept) + math.log(2 * math.cosh(epsilon / 2))
        steps = log_beta + np.log(np.arange(count, 0, -1) / np.arange(1, count + 1))
    else:
        beta = erasure / kept * 2 * math.cosh(epsilon / 2)
        if beta < 1e-290:
            return _binomial(count, epsilon)
        steps = np.log(_coefficient_ratios(count, beta))
    return _from_steps(np.concatenate([epsilon / 2 + steps, epsilon / 2 - steps[::-1]]))


def _coefficient_ratios(count: int, beta: float) -> Array:
    """c_n / c_(n-1) for n = 1..count, c_n the coefficients of (1 + beta z + z^2)^count.

    The recurrence n c_n = (count + 1 - n) beta c_(n-1) + (2 count + 2 - n) c_(n-2) follows from A p' = count A' p for
    p = A^count.
    """
    ratio = count * beta
    ratios = [ratio]
    top, twice = count + 1, 2 * count + 2
    for n in range(2, top):
        ratio = ((top - n) * beta + (twice - n) / ratio) / n
        ratios.append(ratio)
    return np.array(ratios)


def _binomial(count: int, epsilon: float) -> Array:
    """The law without erasure, in which every other entry has probability zero."""
    i = np.arange(1, count + 1)
    law = np.full(2 * count + 1, -np.inf)
    law[::2] = _from_steps(np.log((count - i + 1) / i) + epsilon)
    return law


def _from_steps(steps: Array) -> Array:
    """Normalised log masses from their differences, summed outward from the mode, so that it has the least rounding."""
    mode = int(np.argmax(np.concatenate([[0.0], np.cumsum(steps)])))
    left = -np.cumsum(steps[:mode][::-1])[::-1]
    law = np.concatenate([left, [0.0], np.cumsum(steps[mode:])])
    return np.asarray(law - math.log(math.fsum(np.exp(law).tolist())))
