"""Draw a certificate: prices above all columns, a line above all points: ``python docs/images/certificate.py``."""

from typing import Any

import numpy as np
from drawn import FIRST, GREY, SECOND, SKY, TYPE, beside, frame, panels, save
from scipy.optimize import linprog

from experiments.papers.envelope import envelope_at, partition_points
from ldpopt import Divergence, LocalDP, TotalVariation, optimal_channel
from ldpopt.divergences import LE_CAM

FACTOR = 5.0
P0, P1 = np.array([0.1, 0.3, 0.6]), np.array([0.6, 0.3, 0.1])


def prices(ax: Any) -> None:
    """What each staircase column is worth, and what the prices of its entries add up to."""
    sets = [[bool((number >> x) & 1) for x in range(3)] for number in range(7)]
    columns = np.where(sets, FACTOR, 1.0)
    a, b = columns @ P0, columns @ P1
    worth = (a - b) ** 2 / (a + b)
    price = columns @ -linprog(-worth, A_eq=columns.T, b_eq=np.ones(3)).eqlin.marginals
    order = sorted(range(7), key=lambda i: sets[i][::-1])
    names = ["".join(str(x + 1) for x in range(3) if sets[i][x]) or "none" for i in order]
    ax.bar(range(7), worth[order], width=0.6, color=SKY, label="worth of the column")
    ax.hlines(price[order], np.arange(7) - 0.4, np.arange(7) + 0.4, color=SECOND, lw=2.2, label="its price")
    ax.set_xticks(range(7), names)
    frame(ax, "No column is worth more than its price", "answers that the column favours", "worth")
    beside(ax)


def line(ax: Any) -> None:
    """The potentials of one design bound the optimum at every cap by a line."""
    points = partition_points(LE_CAM.excess, P0, P1, FACTOR - 1)
    etas = np.linspace(0, 0.75, 200)
    utility = Divergence(LE_CAM, P0, P1)
    design = optimal_channel(utility, [LocalDP(np.log(FACTOR)), TotalVariation(0.3)])
    dual = design.certificate
    rise = float(dual.potentials[-1] - dual.potentials[0])
    ax.plot(etas, [envelope_at(points, eta) for eta in etas], color=FIRST, lw=2, label="the optimum")
    ax.plot(
        etas,
        dual.level + etas * max(rise - dual.level, 0.0),
        "--",
        color=SECOND,
        lw=1.6,
        label="bound of the potentials at η = 0.3",
    )
    ax.plot(*zip(*points, strict=True), "o", color="k", ms=5, label="best partition into m blocks")
    for m, (x, y) in enumerate(points, 2):
        ax.annotate(
            f"m = {m}", (x, y), (0, 7 if m == 3 else -15), textcoords="offset points", ha="center", fontsize=TYPE
        )
    ax.plot([0.3], [design.value], "D", color=GREY, ms=6, label="the design")
    frame(ax, "One line above everything", "cap η on total variation", "preserved")
    ax.set(xlim=(0, 0.75), ylim=(0, 0.32))
    beside(ax)


def draw() -> Any:
    """Prices on the left, the line on the right."""
    left, right = panels((4.4, 4.4), 4.4)
    prices(left)
    line(right)
    return left


if __name__ == "__main__":
    save(draw(), __file__)
