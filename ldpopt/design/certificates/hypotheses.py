"""Two hypotheses sorted by likelihood ratio without rounding, and what dominates them."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cmp_to_key

import numpy as np

from ldpopt.design.utilities.laws import Laws
from ldpopt.distribution import Array, Index
from ldpopt.enclosures import FLOAT, Enclosure
from ldpopt.rounding import exact_sum


def by_ratio(p0: Array, p1: Array) -> Index:
    """The inputs of positive mass in increasing order of p0/p1, proved by exact cross products; ties in any order."""
    used = np.flatnonzero((p0 > 0) | (p1 > 0))
    with np.errstate(divide="ignore"):
        near = np.log(p0[used]) - np.log(p1[used])
    order = used[np.argsort(near, kind="stable")]
    if not _sorted(p0[order], p1[order]):
        order = np.array(sorted(order.tolist(), key=cmp_to_key(lambda x, y: _compare(p0, p1, x, y))), dtype=np.intp)
    return np.asarray(order)


def _sorted(p0: Array, p1: Array) -> bool:
    """Whether p0/p1 does not fall, by products in floats where they decide, by fractions where not."""
    left, right = p0[:-1] * p1[1:], p0[1:] * p1[:-1]
    # Products in the range of normal floats are right to half an ulp.
    clear = (right - left > 2.0**-50 * right) & (right > 1e-290)
    return all(_compare(p0, p1, x, x + 1) <= 0 for x in np.flatnonzero(~clear).tolist())


def _compare(p0: Array, p1: Array, x: int, y: int) -> int:
    """The sign of p0[x]/p1[x] - p0[y]/p1[y]."""
    a, b, c, d = (Fraction(float(one)) for one in (p0[x], p1[y], p0[y], p1[x]))
    left, right = a * b, c * d
    return (left > right) - (left < right)


def dominates(a0: Array, a1: Array, b0: Array, b1: Array) -> bool:
    """Whether the laws (a0, a1) are at least as informative as (b0, b1), without any slack [Blackwell].

    That is so when h(s) = sum (s p1 - (1-s) p0)_+ is nowhere smaller for the first. It is convex and piecewise linear
    in s, so that its kinks, the posteriors of both, are enough. Sums in floats rounded outward decide most of them, exact
    ones the rest; where those would be too many the answer is no.
    """
    own, other = (Laws.of(*pair, FLOAT) for pair in ((a0, a1), (b0, b1)))
    kinks = np.unique(np.concatenate([_posterior(a0, a1), _posterior(b0, b1)]))
    # Both sides of the sum, each without cancellation where it is small.
    below = _part(own, a0, a1, kinks, False).lower >= _part(other, b0, b1, kinks, False).upper
    above = _part(own, a0, a1, kinks, True).lower >= _part(other, b0, b1, kinks, True).upper
    open_kinks = np.flatnonzero(~(below | above))
    if len(open_kinks) > EXACT_KINKS:
        return False
    near = [float(s) for s in kinks[open_kinks]]
    return _exactly(a0, a1, b0, b1, near) if near else True


EXACT_KINKS = 2000
"""The most kinks that are compared exactly."""


def _posterior(p0: Array, p1: Array) -> Array:
    used = p0 + p1 > 0
    return np.asarray(p0[used] / (p0 + p1)[used])


def _part(laws: Laws, p0: Array, p1: Array, s: Array, upper: bool) -> Enclosure:
    """sum (s p1 - (1-s) p0)_+ over the inputs, or its other side, whose difference is 2 s - 1 for all laws."""
    order = by_ratio(p0, p1)
    order = order[::-1] if upper else order
    posterior = p0[order] / (p0 + p1)[order]
    count = np.searchsorted(posterior, s, "left") if not upper else np.searchsorted(-posterior, -s, "left")
    sums = [_running(part[order])[count] for part in (laws.p0, laws.p1)]
    mine = s * sums[1] - (1 - FLOAT.of(s)) * sums[0]
    return (-mine if upper else mine).positive()


def _running(part: Enclosure) -> Enclosure:
    """(n + 1,) running sums from 0, in two levels, so that the error grows with the root of their number."""
    n, width = len(part), max(1, math.isqrt(len(part)))
    rows = -(-n // width)
    square = FLOAT.concatenate([part, FLOAT.zeros(rows * width - n)]).reshape(rows, width).cumsum(axis=1)
    before = FLOAT.concatenate([FLOAT.zeros(1), square[:, -1].cumsum()])[:-1]
    return FLOAT.concatenate([FLOAT.zeros(1), (square + before[:, None]).reshape(rows * width)])[: n + 1]


def _exactly(a0: Array, a1: Array, b0: Array, b1: Array, near: list[float]) -> bool:
    """The comparison at the exact kinks of either pair that round to one of `near`."""
    wanted = set(near)
    zeros, ones = [exact_sum(p) for p in (a0, b0)], [exact_sum(p) for p in (a1, b1)]
    kinks: set[Fraction] = set()
    masses: list[list[tuple[Fraction, Fraction]]] = []
    for number, (p0, p1) in enumerate(((a0, a1), (b0, b1))):
        rows = []
        for a, b in zip(p0.tolist(), p1.tolist(), strict=True):
            x, y = Fraction(a) / zeros[number], Fraction(b) / ones[number]
            if x or y:
                rows.append((x, y))
                if a / (a + b) in wanted:
                    kinks.add(x / (x + y))
        masses.append(rows)
    if len(kinks) * (len(masses[0]) + len(masses[1])) > 4_000_000:
        return False
    support = [[sum((s * y - (1 - s) * x for x, y in rows if s * y > (1 - s) * x), Fraction(0)) for s in kinks]
               for rows in masses]  # fmt: skip
    return all(own >= other for own, other in zip(*support, strict=True))
