"""A channel with two reports, "no" and "yes", among n - 1 others of any answers -> delta after shuffling, from above.

The others' number of yes is a sum of independent coins with shares between `low` and `high`. For a fixed test delta is
affine in each share, so that only coins at both ends matter: j at `low`, n - 1 - j at `high`. It is convex in the
shares of the person's two reports, so that these are `high` and `low`. And it falls with every further coin, so that
all j in [a, b] have at most the delta of a coins at `low` and n - 1 - b at `high`: the worst cell of j is cut.
"""

from __future__ import annotations

import heapq
import math
from functools import lru_cache

import numpy as np

from ldpopt.composition.crowd import LARGEST
from ldpopt.composition.laws import LatticeLaw
from ldpopt.rounding import ULP, up

_EVALUATIONS = 160
"""So many cells are bounded at most for one question; the widest is then a sixtieth of the others or less."""

_ENDS = np.array([0, 1], dtype=np.int64)


def shuffled_delta(low: float, high: float, n: int, epsilon: float, goal: float = 0.0) -> float:
    """delta at epsilon of n shuffled reports whose shares of yes lie in [low, high], rounded up.

    goal : if delta is shown to be at most this, the search ends with a number that is not above it.
    """

    def cell(a: int, b: int) -> tuple[float, int, int]:
        least = min(
            1.0, max(_one_way(low, high, a, n - 1 - b, epsilon), _one_way(1 - high, 1 - low, n - 1 - b, a, epsilon))
        )
        return -least, a, b

    cells = [cell(0, n - 1)]
    for _ in range(_EVALUATIONS // 2):
        bound, a, b = cells[0]
        if -bound <= goal or a == b:
            break
        heapq.heappop(cells)
        middle = (a + b) // 2
        heapq.heappush(cells, cell(a, middle))
        heapq.heappush(cells, cell(middle + 1, b))
    return -cells[0][0]


@lru_cache(maxsize=4096)
def _one_way(low: float, high: float, few: int, many: int, epsilon: float) -> float:
    """The hockey stick of a report with share `high` from one with `low`, beside coins of `low` and of `high`.

    It is the sum over counts t of (A f(t) + B f(t - 1))_+, f the law of the coins, A = 1 - high - e^epsilon (1 - low)
    and B = high - e^epsilon low. The law of independent coins is log-concave: terms are positive from some t on only.
    """
    growth = math.exp(epsilon)
    minus = growth * (1 - low) * (1 - 4 * ULP) - (1 - high) * (1 + 4 * ULP)
    plus = high * (1 + 4 * ULP) - growth * low * (1 - 4 * ULP)
    if plus <= 0:
        return 0.0
    if minus <= 0 or few + many == 0:
        return up(max(-minus, 0.0) + plus, 8)
    tilt = math.log(minus / plus)
    parts = tuple((_ENDS, np.array([1 - share, share]), count) for share, count in ((low, few), (high, many)) if count)
    if tilt > LARGEST:
        return up(plus, 8)
    window = LatticeLaw(1.0, parts, 0.0).window(tilt)
    masses = np.concatenate([[0.0], window.masses, [0.0]])
    error = window.error * (minus + plus * math.exp(tilt))
    # Term t of the tilted law is multiplied by e^(-tilt t); that of t - 1 has e^tilt more.
    terms = plus * math.exp(tilt) * masses[:-1] - minus * masses[1:] + error
    start = int(np.flatnonzero(terms < 0).max(initial=-1)) + 1
    counts = window.first + np.arange(start, len(terms))
    scale = math.exp(min(LARGEST, window.cumulant - tilt * float(window.first + start)))
    decay = np.exp(-tilt * (counts - window.first - start))
    total = float(terms[start:] @ decay) + 1e-22 * (minus + plus * math.exp(tilt))
    return up(scale * total * (1 + 64 * (few + many) * ULP), 256) + 1e-300
