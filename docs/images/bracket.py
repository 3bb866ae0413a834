"""Draw how a continuous problem is bracketed by finite ones: ``python docs/images/bracket.py``."""

from typing import Any

import numpy as np
from drawn import FIRST, GREY, SECOND, beside, frame, panels, save
from scipy import stats

from ldpopt import Divergence, LocalDP, optimal_channel
from ldpopt.divergences import KL

FIRST_LAW, SECOND_LAW = stats.norm(0, 1), stats.norm(1, 1)
CELLS = np.array([3, 4, 6, 8, 12, 16, 24, 32, 48, 64])


def bracket(cells: int) -> tuple[float, float]:
    """The optima of the merged problem and of the spread one, for this number of cells of equal mass."""
    mixture = np.linspace(-6, 7, 200_001)
    mass = (FIRST_LAW.cdf(mixture) + SECOND_LAW.cdf(mixture)) / 2
    edges = np.interp(np.arange(1, cells) / cells, mass, mixture)
    p0, p1 = (np.diff(np.concatenate([[0.0], law.cdf(edges), [1.0]])) for law in (FIRST_LAW, SECOND_LAW))
    below = optimal_channel(Divergence(KL, p0, p1), LocalDP(1.0), certify=False).value
    # Between two knots an answer is spread over them; s = P0/(P0 + P1), from 0 to 1.
    knots = np.concatenate([[1.0], 1 / (1 + np.exp(edges - 0.5)), [0.0]])
    share = p0 / (p0 + p1)
    weight = (share - knots[1:]) / (knots[:-1] - knots[1:])
    spread = np.zeros(cells + 1)
    spread[:-1] += weight * (p0 + p1)
    spread[1:] += (1 - weight) * (p0 + p1)
    above = optimal_channel(Divergence(KL, spread * knots, spread * (1 - knots)), LocalDP(1.0), certify=False).value
    return below, above


def draw() -> Any:
    """Both bounds over the number of cells, and the cells of the coarse problem under the densities."""
    left, right = panels((4.4, 4.4), 4.2)
    x = np.linspace(-3.5, 4.5, 300)
    left.plot(x, FIRST_LAW.pdf(x), color=FIRST, label="first law")
    left.plot(x, SECOND_LAW.pdf(x), "--", color=SECOND, label="second law")
    border = optimal_channel(Divergence(KL, FIRST_LAW, SECOND_LAW), LocalDP(1.0)).edges[0]
    left.axvline(border, color=GREY, ls=":", label=f"the best border, {border:.2f}")
    frame(left, "Two laws and the border between two reports", "answer", "density")
    left.set(ylim=(0, 0.45))
    beside(left)
    below, above = np.array([bracket(int(cells)) for cells in CELLS]).T
    right.fill_between(CELLS, below, above, color=FIRST, alpha=0.15, lw=0)
    right.semilogx(CELLS, above, "v-", color=SECOND, ms=5, label="from above: answers spread over two knots")
    right.semilogx(CELLS, below, "^-", color=FIRST, ms=5, label="from below: answers of a cell merged")
    right.set_xticks([4, 8, 16, 32, 64], ["4", "8", "16", "32", "64"])
    right.minorticks_off()
    frame(right, "The optimum lies between", "cells of equal mass", "preserved, in nats")
    beside(right)
    return left


if __name__ == "__main__":
    save(draw(), __file__)
