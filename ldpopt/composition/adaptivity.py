"""The subgaussian parameter of a composed privacy loss L, if each mechanism may depend on the reports so far.

The loss Z of a step with parameter tau_a has a conditional mean m in [0, min(mu_a, tau_a^2/2)], because E e^-Z = 1. Let
C be the sum of these means, and R the law that is tilted by exp(s (Z - m)) step by step. By Hoeffding's lemma for C,

    2 log E exp(s (L - E L)) / s^2  <=  sum tau_a^2 + (range of C)^2 / 4 + (2/s) (E_R C - E_P C)

for every s. By Pinsker's inequality, the last term is at most sum mu_a sqrt(x_a), where x_a is the expected sum of
tau^2 of the steps before a. The proof, step by step, is in docs/concepts/composition.md; [DR, Thm 3.4] omits the last
two terms.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np

from ldpopt.rounding import up

Parts = Sequence[tuple[float, float, int]]
"""(mu, tau, count) of each mechanism."""

_BLOCKS = 4096
"""A long sum of square roots is cut into this many blocks; in each, the mean root is below the root of the mean."""


def fixed_standard(parts: Parts) -> float:
    """sqrt(sum tau^2), rounded up: the parameter if mechanisms and inputs are fixed in advance [DR, Thm 3.4]."""
    scale = _scale(parts)
    if scale == 0 or math.isinf(scale):
        return scale
    return up(scale * math.sqrt(float(_variance(parts, scale))), 8)


def adaptive_standard(parts: Parts, ordered: bool = False) -> float:
    """The parameter if inputs, and the choice of the next mechanism, may depend on the reports so far; rounded up.

    ordered : the parts are used in the given order, and nothing random precedes the first. Otherwise the order may be
    chosen on the way, and by coins before the first step. A single use keeps its own parameter.
    """
    scale = _scale(parts)
    if scale == 0 or math.isinf(scale) or sum(n for _, _, n in parts) == 1:
        return fixed_standard(parts)
    # (largest mean, tau, count) in units of the scale: no mean exceeds tau^2/2.
    steps = [(min(mu / scale, tau / scale * tau / 2), tau / scale, n) for mu, tau, n in parts]
    means = [(mean, n) for mean, _, n in steps]
    if ordered:
        # The first step is fixed, so its mean does not vary.
        spread = _sum([(means[0][0], means[0][1] - 1), *means[1:]])
        shift = _weighted_roots(means, [(tau, n) for _, tau, n in steps])
    else:
        spread = _sum(means)
        largest_first = sorted(((tau, n) for _, tau, n in steps), reverse=True)
        shift = min(_weighted_roots(sorted(means), largest_first), _pairwise(steps))
    variance = float(_variance(parts, scale)) + spread * spread / 4 + shift
    return up(scale * math.sqrt(up(variance, 16)), 8)


def _scale(parts: Parts) -> float:
    """A power of two near the largest tau, so that squares stay in the range of floats; 0 or inf if tau is."""
    largest = max(tau for _, tau, _ in parts)
    return largest if largest == 0 or math.isinf(largest) else math.ldexp(1.0, math.frexp(largest)[1] - 1)


def _variance(parts: Parts, scale: float) -> Fraction:
    return sum(((Fraction(tau) / Fraction(scale)) ** 2 * n for _, tau, n in parts), Fraction(0))


def _sum(means: Sequence[tuple[float, int]]) -> float:
    return math.fsum(mean * n for mean, n in means)


def _pairwise(steps: Parts) -> float:
    """A bound on sum mu_a sqrt(x_a) for every order, with x_a = sum_b Pr(b before a) tau_b^2.

    By Cauchy and Schwarz it is at most sqrt(sum mu_a^2/tau_a^2) sqrt(sum tau_a^2 x_a). In each pair of steps only one
    comes first, so sum tau_a^2 x_a is at most the sum of tau_a^2 tau_b^2 over pairs.
    """
    ratios = math.fsum(n * (mean / tau) * (mean / tau) for mean, tau, n in steps if mean > 0)
    squares = [(Fraction(tau) ** 2, n) for _, tau, n in steps]
    total = sum((square * n for square, n in squares), Fraction(0))
    pairs = (total**2 - sum((square**2 * n for square, n in squares), Fraction(0))) / 2
    return math.sqrt(up(ratios, 16)) * math.sqrt(up(float(pairs), 4)) if pairs > 0 else 0.0


def _weighted_roots(means: Sequence[tuple[float, int]], taus: Sequence[tuple[float, int]]) -> float:
    """The sum over steps of mean * sqrt(sum of tau^2 of the steps before), in the given orders, rounded up.

    With rising means and falling taus it bounds sum mu_a sqrt(x_a) for every order of use. The reason is that the
    deviation of the tilted law is a submartingale: before the step with the r-th largest mean it is at most what the
    largest taus of all but r steps build up.
    """
    total = []
    for mean, before, square, n in _stretches(means, taus):
        edges = np.rint(np.linspace(0, n, min(n, _BLOCKS) + 1))
        middle = (edges[:-1] + edges[1:] - 1) / 2
        total.append(mean * float(np.diff(edges) @ np.sqrt(before + square * middle)))
    return up(math.fsum(total), 2 * _BLOCKS)


def _stretches(
    means: Sequence[tuple[float, int]], taus: Sequence[tuple[float, int]]
) -> Iterator[tuple[float, float, float, int]]:
    """(mean, sum of tau^2 before the first, tau^2, length) of runs of steps with one mean and one tau."""
    squares = [Fraction(tau) ** 2 for tau, _ in taus]
    ends = [set(accumulate(n for _, n in part)) for part in (means, taus)]
    left, right, before, start = 0, 0, Fraction(0), 0
    for end in sorted(ends[0] | ends[1]):
        n = end - start
        yield means[left][0], float(before), float(squares[right]), n
        before, start = before + squares[right] * n, end
        left, right = left + (end in ends[0]), right + (end in ends[1])
