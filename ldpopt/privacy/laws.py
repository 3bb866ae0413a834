"""The laws that rows stand for: each row divided by its sum.

Rows of a channel sum to one only within `tolerances.ROW_SUM`. Every measure is that of the laws p/P and q/Q, where P
and Q are the sums of the rows p and q. With c = log(P/Q), the log-ratio of the laws is log(p/q) - c, and their
difference at a factor e^epsilon is (p - e^(epsilon + c) q)/P. So measures use the rows as they are, and correct by c,
which is known to its last digits. Dividing the rows would add rounding that hides how close two rows are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ldpopt.distribution import Array
from ldpopt.rounding import ULP

_LN2 = math.log(2.0)


BITS = 26
"""The number of bits of each part into which entries are cut, so that the parts of a row sum without rounding."""

BLOCK = 1 << 16
"""Entries that are split at a time."""


def defects(rows: Array) -> Array:
    """The sum of every row of an array (n, m) minus one, correctly rounded; shape (n,)."""
    n, m = rows.shape
    if not 0 < m < 1 << BITS:
        return np.array([math.fsum([*row, -1.0]) for row in rows.tolist()])
    step = max(1, BLOCK // m)
    return np.concatenate([np.empty(0), *(_defects(rows[start : start + step]) for start in range(0, n, step))])


def _defects(rows: Array) -> Array:
    """`defects` of a block: entries below two are cut into multiples of 2^-26, 2^-52 and 2^-78, which sum exactly.

    Where remainders might decide the last digit, and for larger entries, `math.fsum` is used.
    """
    rest, total, lost = rows, np.full(len(rows), -1.0), np.zeros(len(rows))
    unsure = np.zeros(len(rows))
    with np.errstate(all="ignore"):
        for part in (1, 2, 3):
            shifter = 1.5 * 2.0 ** (52 - BITS * part)
            cut = (rest + shifter) - shifter
            rest = rest - cut
            total, more = _two_sum(total, cut.sum(axis=1))
            lost, unsure = lost + more, unsure + np.abs(more)
        total, more = _two_sum(total, rest.sum(axis=1))
        missing = 4 * ULP * (unsure + np.abs(more)) + rows.shape[1] * ULP * np.abs(rest).sum(axis=1)
        excess, left = _two_sum(total, lost + more)
        settled = (excess + (left + 2 * missing) == excess) & (excess + (left - 2 * missing) == excess)
        settled &= (rows >= 0).all(axis=1) & (rows.max(axis=1) < 2)
    for row in np.flatnonzero(~settled):
        excess[row] = math.fsum([*rows[row].tolist(), -1.0])
    return excess


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The rounded sum, and its rounding error [HIG, section 4.3]."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def log_sums(rows: Array) -> Array:
    """The logarithms of the row sums, each within 4 ulps of itself."""
    return np.log1p(defects(rows))


@dataclass(frozen=True)
class Shift:
    """The correction of stacked rows by their sums P, Q, (n,): above = P - 1, value = log(P/Q), and its error."""

    above: Array
    value: Array
    error: Array


def shift(p: Array, q: Array) -> Shift:
    """The correction of stacked pairs, arrays (n, m)."""
    above, below = defects(p), defects(q)
    first, second = np.log1p(above), np.log1p(below)
    value = np.where(above == below, 0.0, first - second)
    error = np.where(above == below, 0.0, 4 * ULP * (np.abs(first) + np.abs(second) + np.abs(value)))
    return Shift(above, value, error)


def scaled(q: Array, exponent: Array) -> Array:
    """e^exponent q for rows q (n, m) and exponents (n,), within (4 + 2 |exponent|) ulps and a subnormal."""
    with np.errstate(over="ignore", under="ignore"):
        near = np.abs(exponent) <= 700.0
        twos = np.where(near, 0.0, np.rint(np.clip(exponent, -1e6, 1e6) / _LN2))
        factor = np.exp(np.where(near, exponent, np.clip(exponent, -1e6, 1e6) - twos * _LN2))
        mantissa, power = np.frexp(q)
        # The factor may be near the ends of the range itself.
        base, more = np.frexp(factor)
        total = power + (more + twos.astype(np.int64))[:, None]
        return np.asarray(np.ldexp(mantissa * base[:, None], np.clip(total, -5000, 5000).astype(np.int32)))


def centred(matrix: Array) -> tuple[Array, Array, Array]:
    """(reference, away, error): the law of each row of a matrix is reference, the first row, plus a small `away`.

    The errors of the entries of a row sum to at most `error`, (k,).
    """
    reference, sums = matrix[0], defects(matrix)
    # q/(1 + d) - r = ((q - r) - d r)/(1 + d)
    away = ((matrix - reference) - sums[:, None] * reference) / (1 + sums)[:, None]
    return reference, away, 8 * ULP * (np.abs(away).sum(axis=1) + 2 * np.abs(sums))
