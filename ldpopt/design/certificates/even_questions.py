"""How much one private report tells of m yes/no questions with independent even answers -> rho^2, at most.

The best column is e^epsilon on a set A of answer vectors and 1 elsewhere. With answers +1 and -1, n = |A| and s the sum
of the vectors of A, rho^2 is the largest (E - 1)^2 |s|^2 / (2^m + (E - 1) n)^2, E = e^epsilon. Let M_m(n) be the
largest |s|^2 of n vectors; M_m(n) = M_m(2^m - n), because the complement has the sum -s.

Up to eight questions all sets were compared. Up to seven the best c questions at random, answered together, are
optimal at every epsilon. For more than eight, cut A by the first answer into sets of n0 and n1 vectors: s has the first
entry n1 - n0, and the others are the sum of theirs, so that

    M_m(n0 + n1) <= max (n1 - n0)^2 + (sqrt M_(m-1)(n0) + sqrt M_(m-1)(n1))^2.

Beyond fourteen, |s|^2 <= 2 n^2 log(2^m/n) for n <= 2^(m-1) [Talagrand].
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ldpopt.distribution import Array
from ldpopt.enclosures import Enclosure

COMPARED = 8
"""Up to this many yes/no questions all columns were compared."""

_CUT = 14
"""Up to this many, sets are bounded by their halves; that takes 4^m steps."""

# fmt: off
_LARGEST = (
    0, 8, 28, 56, 96, 136, 188, 248, 320, 392, 456, 528, 608, 696, 796, 904, 1024, 1096, 1180, 1272, 1376, 1488, 1608,
    1720, 1856, 1976, 2108, 2248, 2400, 2552, 2716, 2888, 3072, 3144, 3228, 3320, 3424, 3528, 3644, 3768, 3904, 4024,
    4156, 4296, 4448, 4600, 4764, 4936, 5120, 5256, 5404, 5560, 5728, 5896, 6076, 6264, 6464, 6648, 6844, 7048, 7264,
    7480, 7708, 7944, 8192, 8200, 8220, 8248, 8288, 8328, 8380, 8440, 8512, 8568, 8636, 8712, 8800, 8888, 8988, 9096,
    9216, 9288, 9372, 9464, 9568, 9672, 9788, 9912, 10048, 10168, 10300, 10440, 10592, 10744, 10908, 11080, 11264,
    11336, 11420, 11512, 11616, 11720, 11836, 11960, 12096, 12216, 12348, 12488, 12640, 12792, 12956, 13128, 13312,
    13448, 13596, 13752, 13920, 14088, 14268, 14456, 14656, 14840, 15036, 15240, 15456, 15672, 15900, 16136, 16384,
)
# fmt: on
"""M_8(n) for n = 0..128. A test enumerates the 44,315 sets of seven questions that can be halves of the best ones."""

_POINTS = 2**12
_FEWEST = 40.0
"""Shares of 2^-40 and less of all answer vectors are bounded together."""


def even_limit(epsilon: Enclosure, m: int) -> Enclosure:
    """A number that rho^2 of m >= 1 questions is at most, without Scarf's inequality."""
    rest, fall = -(-epsilon).expm1(), (-epsilon).exp()  # 1 - 1/E and 1/E
    if m < COMPARED:
        each = [(rest / (fall * 2.0**c + rest)).square() * c for c in range(1, m + 1)]
        return epsilon.arithmetic.stack(each).max()
    if m <= _CUT:
        size = np.arange(1.0, 2 ** (m - 1) + 1)
        most: Enclosure = epsilon.arithmetic.of(_roots(m)[1:])
        return (most * rest / (rest * size + fall * 2.0**m)).square().max()
    ends = np.append(np.geomspace(2.0 ** -min(m, _FEWEST), 0.5, _POINTS), 0.5)
    low = np.append(0.0, ends[:-1])
    # a sqrt(2 log(1/a)) rises up to a = e^(-1/2).
    told = epsilon.arithmetic.of(ends) * (-2 * epsilon.arithmetic.of(ends).log()).sqrt()
    return (told * rest / (rest * low + fall)).square().max()


@lru_cache(maxsize=8)
def _roots(m: int) -> Array:
    """sqrt M_m(n) for n = 0..2^(m-1), rounded up, for m >= 8."""
    if m == COMPARED:
        return np.sqrt(np.array(_LARGEST, dtype=np.float64)) * (1 + 2.0**-50)
    half = _roots(m - 1)
    whole = np.append(half, half[-2::-1])
    squares = np.zeros(2 ** (m - 1) + 1)
    for fewer in range(len(half)):
        other = np.arange(fewer, 2 ** (m - 1) - fewer + 1)
        bound = (other - fewer) ** 2 + (whole[fewer] + whole[other]) ** 2
        squares[2 * fewer :] = np.maximum(squares[2 * fewer :], bound)
    return np.asarray(np.sqrt(squares) * (1 + 2.0**-49))
