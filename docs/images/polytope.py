"""Draw the columns that a channel may have, for two and three answers: ``python docs/images/polytope.py``."""

from typing import Any

import numpy as np
from drawn import FIRST, GREY, SECOND, TYPE, frame, panels, save

from ldpopt import Divergence
from ldpopt.divergences import KL

FACTOR = 3.0
P0, P1 = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])


def two(ax: Any) -> None:
    """The cone of columns of two answers between its two extreme rays."""
    reach = 3.4
    ax.fill([0, reach, reach], [0, reach / FACTOR, reach], color=FIRST, alpha=0.18, lw=0)
    ax.fill([0, reach / FACTOR, reach], [0, reach, reach], color=FIRST, alpha=0.18, lw=0)
    for x, y, name, at in ((FACTOR, 1, "(3, 1)", (-2, 9)), (1, FACTOR, "(1, 3)", (8, -2)), (1, 1, "(1, 1)", (8, -11))):
        far = reach / max(x, y)
        ax.plot([0, far * x], [0, far * y], color=GREY if x == y else FIRST, lw=1.2, ls=":" if x == y else "-")
        ax.plot(x, y, "s" if x == y else "o", color=GREY if x == y else SECOND, ms=7)
        ax.annotate(name, (x, y), at, textcoords="offset points", fontsize=TYPE, ha="right" if at[0] < 0 else "left")
    frame(ax, "Two answers: a cone with two edges", "entry of answer 1", "entry of answer 2")
    ax.set(aspect="equal", xlim=(0, reach), ylim=(0, reach))


def three(ax: Any) -> None:
    """The cone of three answers, cut by the plane where the entries add up to one: a hexagon."""
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3) / 2]])
    flat = np.random.default_rng(0).dirichlet(np.ones(3), 60_000)
    allowed = flat[flat.max(axis=1) <= FACTOR * flat.min(axis=1)]
    f = Divergence(KL, P0, P1).f
    worth = np.array([f.perspective(s @ P0, s @ P1) for s in allowed[:6000]])
    shown = ax.tripcolor(*(allowed[:6000] @ corners).T, worth, cmap="viridis", shading="gouraud", rasterized=True)
    ax.plot(*corners[[0, 1, 2, 0]].T, color="0.75", lw=1)
    places = {"1": (-10, -4), "12": (0, -14), "2": (10, -4), "23": (10, 2), "3": (0, 8), "13": (-10, 2)}
    for name, at in places.items():
        column = np.where([str(x + 1) in name for x in range(3)], FACTOR, 1.0)
        point = column @ corners / column.sum()
        ax.plot(*point, "o", color=SECOND, ms=7)
        side = "right" if at[0] < 0 else "left" if at[0] > 0 else "center"
        ax.annotate(name, point, at, textcoords="offset points", fontsize=TYPE, ha=side)
    ax.plot(*corners.mean(axis=0), "s", color=GREY, ms=6)
    for number, (corner, down) in enumerate(zip(corners, (-14, -14, 5), strict=True), 1):
        ax.annotate(f"answer {number}", corner, (0, down), textcoords="offset points", fontsize=TYPE, ha="center")
    frame(ax, "Three answers, entries adding up to one: a hexagon")
    ax.set(aspect="equal", xticks=[], yticks=[], xlim=(-0.14, 1.14), ylim=(-0.12, 1.0))
    ax.spines[:].set_visible(False)
    bar = ax.figure.colorbar(shown, ax=ax, shrink=0.75)
    bar.set_label("worth of a column, in nats", fontsize=TYPE)
    bar.ax.tick_params(labelsize=TYPE)


def draw() -> Any:
    """Both cones; dots are staircase columns, the square is the constant column."""
    left, right = panels((3.8, 5.0), 3.8)
    two(left)
    three(right)
    return left


if __name__ == "__main__":
    save(draw(), __file__)
