"""The largest gain of all 2^k staircase patterns, bounded in floats with a proved error.

A pattern is t + a for the indicator a of a set, t = 1/(e^epsilon - 1). With G = K^T K and m = t + p.a its gain is

    v(a) = (a^T G a / m - t sum lambda - lambda.a - sum nu[x,x'] a_x (1 - a_x')) / m.

The inputs are split into two halves, so that all 2^k quadratic forms are one product of two thin matrices. The rounding
error of a gain is at most a multiple of the sum of the sizes of its terms,

    size(a) = ((g.a)^2 / m + t sum |lambda| + 2 (|lambda| + nu 1).a) / m,        g_x^2 = G[x,x],

because |G[x,x']| <= g_x g_x' for any G = K^T K. A sum of n terms, in any order, is off by at most n u / (1 - n u) times
the sum of their sizes, and every sum here has at most 2 k + 16 terms.
"""

from __future__ import annotations

import math

import numpy as np

from ldpopt.design.columns.charges import Charges
from ldpopt.design.columns.prices import subsets
from ldpopt.distribution import Array
from ldpopt.enclosures import FLOAT, Enclosure
from ldpopt.rounding import ULP

BLOCK = 2**18
"""The number of patterns that are priced at a time."""

LEAST = 1e-100
"""The least t: below it the products of small numbers may underflow."""

NOISE = 2.0**44
"""The factor by which the rounding of a column of K is counted more than once."""


def most_of_patterns(charges: Charges, level: Enclosure) -> float:
    """An upper bound on the gains of all patterns t + a, t = `level`; inf where floats cannot give one."""
    gram, p, t = (FLOAT.of(each) for each in (charges.kernel.T @ charges.kernel, charges.prior, level))
    rows, pairs, k = charges.rows, charges.pairs, len(charges.rows)
    total = float(charges.total.midpoint)
    square, mass_of, low_t = np.asarray(gram.midpoint), np.asarray(p.midpoint), float(t.midpoint)
    kernel = FLOAT.of(charges.kernel)
    with np.errstate(all="ignore"):
        # A column of K that is all rounding is counted as larger, so that the bound covers its products, too.
        noise = np.sqrt(((np.asarray(kernel.upper) - np.asarray(kernel.lower)) ** 2).sum(axis=0)) * NOISE
        root = np.sqrt(np.diag(np.asarray(gram.upper))) * (1 + 4 * ULP) + noise
        radius = np.asarray(gram.upper) - np.asarray(gram.lower)
        share = np.where(radius > 0, radius / (root[:, None] * root), 0.0)
        width = [(np.asarray(each.upper) - np.asarray(each.lower)) / np.asarray(each.midpoint) for each in (p, t)]
        spread = float(np.max([np.max(np.where(np.asarray(each) > 0, each, 0.0)) for each in width]))
    wrong = 1.01 * (float(share.max()) + 4 * spread + (16 * k + 128) * ULP)
    if not (wrong < 0.5 and low_t > LEAST and np.isfinite(root).all()):
        return math.inf
    # Numbers far below the others may be lost to underflow: at most this share of the largest.
    lost = 1e-250 * (float(root.max()) ** 2 + float(np.abs(rows).sum()) + float(pairs.sum()) + 1e-50)
    linear, steep = rows + pairs.sum(axis=1), 2 * (np.abs(rows) + pairs.sum(axis=1))
    middle, fixed = low_t * total, low_t * float(np.abs(rows).sum())
    low = k // 2
    first, second = subsets(low), subsets(k - low)
    own = [_form(first, square[:low, :low]), first @ linear[:low] - _form(first, pairs[:low, :low])]
    cross = [2 * square[low:, :low] @ first.T, -(pairs[low:, :low] + pairs[:low, low:].T) @ first.T]
    mass, size, slope = low_t + first @ mass_of[:low], first @ root[:low], fixed + first @ steep[:low]
    top, step = -math.inf, max(1, BLOCK // len(first))
    for start in range(0, len(second), step):
        block = second[start : start + step]
        other = [_form(block, square[low:, low:]), block @ linear[low:] - _form(block, pairs[low:, low:])]
        m = (block @ mass_of[low:])[:, None] + mass
        earned = block @ cross[0] + own[0] + other[0][:, None]
        paid = block @ cross[1] + own[1] + (other[1][:, None] + middle)
        told = ((block @ root[low:])[:, None] + size) ** 2 / m + ((block @ steep[low:])[:, None] + slope)
        found = float(((earned / m - paid + wrong * told + lost / m) / m).max())
        if not found < math.inf:
            return math.inf
        top = max(top, found)
    return top + 4 * ULP * abs(top)


def _form(sets: Array, square: Array) -> Array:
    """(n,) a^T square a for each row a of `sets`."""
    return np.asarray(((sets @ square) * sets).sum(axis=1))
