"""Draw all channels of two answers, with what they keep: ``python docs/images/binary.py``."""

from typing import Any

import numpy as np
from drawn import SECOND, TYPE, frame, panels, save

from ldpopt import Divergence
from ldpopt.divergences import KL

P0, P1, FACTOR = np.array([0.6, 0.4]), np.array([0.3, 0.7]), 3.0
POINTS = 125


def draw() -> Any:
    """The rhombus of the limit on odds, shaded by the preserved divergence, with the two best corners."""
    (ax,) = panels((5.6,), 4.3)
    utility = Divergence(KL, P0, P1)
    side = np.linspace(0.004, 0.996, POINTS)
    kept = np.full((POINTS, POINTS), np.nan)
    for i, b in enumerate(side):
        for j, a in enumerate(side):
            if max(a / b, b / a, (1 - a) / (1 - b), (1 - b) / (1 - a)) <= FACTOR:
                kept[i, j] = utility.value(np.array([[a, 1 - a], [b, 1 - b]]))
    shown = ax.contourf(side, side, kept, levels=9, cmap="viridis")
    corner = FACTOR / (1 + FACTOR)
    ax.plot([0, corner, 1, 1 - corner, 0], [0, 1 - corner, 1, corner, 0], color="0.3", lw=1)
    ax.plot([0, 1], [0, 1], ":", color="0.6", lw=1)
    ax.plot([corner, 1 - corner], [1 - corner, corner], "o", color=SECOND, ms=8)
    ax.annotate("(3/4, 1/4)", (corner, 1 - corner), (9, -4), textcoords="offset points", fontsize=TYPE)
    ax.annotate("(1/4, 3/4)", (1 - corner, corner), (-9, 2), textcoords="offset points", fontsize=TYPE, ha="right")
    frame(ax, "Channels (a, b) with odds of at most 3", "a = Pr(report 1 | answer 1)", "b = Pr(report 1 | answer 2)")
    ax.set(aspect="equal", xlim=(0, 1.12), ylim=(0, 1.02))
    bar = ax.figure.colorbar(shown, ax=ax)
    bar.set_label("preserved, in nats", fontsize=TYPE)
    bar.ax.tick_params(labelsize=TYPE)
    return ax


if __name__ == "__main__":
    save(draw(), __file__)
