"""Draw how the optimal columns change with epsilon and with the cap: ``python docs/images/columns.py``."""

from typing import Any

import numpy as np
from drawn import TYPE, frame, panels, save
from matplotlib import colormaps

from ldpopt import Divergence, LocalDP, TotalVariation, optimal_channel
from ldpopt.divergences import KL

P0 = np.array([0.40, 0.30, 0.20, 0.10])
UTILITY = Divergence(KL, P0, np.array([0.10, 0.15, 0.25, 0.50]))
EPSILON = 2.6
POINTS = 120


def shares(limits: list[Any]) -> dict[str, float]:
    """How often a report favours each set of answers, when all answers are equally frequent."""
    matrix = optimal_channel(UTILITY, limits, certify=False).channel.matrix
    found: dict[str, float] = {}
    for column in matrix.T:
        favoured = column > column.min() * (1 + 1e-9)
        name = "".join(str(x + 1) for x in np.flatnonzero(favoured)) or "erased"
        found[name] = found.get(name, 0.0) + float(column.mean())
    return found


def stacked(ax: Any, x: Any, rows: list[dict[str, float]]) -> None:
    """Areas, one for each set; sets in the order of their first answer, erasure on top."""
    names = sorted({name for row in rows for name in row}, key=lambda name: (name == "erased", name))
    heights = [[row.get(name, 0.0) for row in rows] for name in names]
    sets = ["1", "12", "123", "2", "23", "234", "3", "34", "4", "24"]
    colours = ["0.85" if name == "erased" else colormaps["tab10"](sets.index(name)) for name in names]
    ax.stackplot(x, heights, labels=names, colors=colours, edgecolor="white", lw=0.6)
    ax.set(xlim=(x[0], x[-1]), ylim=(0, 1))
    ax.legend(
        fontsize=TYPE, frameon=False, loc="upper left", bbox_to_anchor=(1.01, 1.0), title="favours", title_fontsize=TYPE
    )


def draw() -> Any:
    """Left without a cap over epsilon, right under a cap at one epsilon."""
    left, right = panels((4.6, 4.6), 3.7)
    levels = np.linspace(0.2, 7, POINTS)
    stacked(left, levels, [shares([LocalDP(epsilon)]) for epsilon in levels])
    frame(left, "Without a cap: more blocks as ε grows", "ε in nats", "share of the reports")
    caps = np.linspace(0.02, 1, POINTS)
    stacked(right, caps, [shares([LocalDP(EPSILON), TotalVariation(eta)]) for eta in caps])
    frame(right, "At ε = 2.6: more erasure as η falls", "cap η on total variation")
    return left


if __name__ == "__main__":
    save(draw(), __file__)
