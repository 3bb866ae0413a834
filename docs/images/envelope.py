"""Draw the pictures of docs/explanation/envelope.md anew: ``python docs/images/envelope.py``."""

from itertools import pairwise
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from experiments.papers.drawing import COLOURS, finish
from experiments.papers.envelope import Line, Pair, Problem, comb, distances, envelope_at, lay, partition_points, prove
from ldpopt import plots
from ldpopt.divergences import KL, LE_CAM

HERE = Path(__file__).parent
NAMES = ("answer 1, ratio 1/6", "answer 2, ratio 1", "answer 3, ratio 6")
WIDTH = 7.6
UNIT = 42
E = 5

PAIR = Pair(np.array([0.1, 0.3, 0.6]), np.array([0.6, 0.3, 0.1]))
PROBLEM = Problem(LE_CAM, PAIR, E - 1.0)
WEIGHTS = {(1,): 3, (1, 2): 2, (2,): 2, (1, 3): 2, (2, 3): 3, (3,): 2}
"""The channel of the pictures: how often it has each staircase, in 42nds."""

CHANNEL = np.array([[w * (E if x in found else 1) / UNIT for found, w in WEIGHTS.items()] for x in (1, 2, 3)])
LINE, RATIO = PROBLEM.sorted(lay(CHANNEL, E - 1.0))
MADE = prove(LE_CAM, PAIR, CHANNEL, E - 1.0, distances(LINE.masses)[0])


def stacked(heights: tuple[float, ...], height: float) -> list:
    """Axes one above the other, with one horizontal axis."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    return list(figure.subplots(len(heights), 1, sharex=True, height_ratios=heights))


def strips(ax, line: Line, common=None) -> None:
    """The densities of the answers over the line, each in a strip of its own; a common part in grey below."""
    left = UNIT * line.edges[:-1]
    for x, colour in enumerate(COLOURS[:3]):
        base = np.zeros(len(line.lengths)) if common is None else common / line.lengths
        top = line.columns[x]
        floor = 1.25 * (2 - x)
        ax.bar(left, base, UNIT * line.lengths, bottom=floor, align="edge", color="0.6", lw=0)
        ax.bar(left, top - base, UNIT * line.lengths, bottom=floor + base, align="edge", color=colour, lw=0)
        ax.plot([0, UNIT * line.edges[-1]], [floor, floor], color="0.3", lw=0.8)
        ax.text(-0.2, floor + 0.5, NAMES[x].replace(", ", "\n"), ha="right", va="center", fontsize=8.5, color=colour)
    for edge in UNIT * line.edges:
        ax.axvline(edge, color="0.75", lw=0.6, zorder=0)
    ax.set_yticks([])
    ax.set_ylim(-0.08, 3.6)
    ax.spines[["top", "right", "left"]].set_visible(False)


def save(ax, name: str) -> None:
    """The figure as a PNG beside this script."""
    (HERE / f"{name}.png").write_bytes(plots.picture(ax))


def the_line() -> None:
    """Columns laid on a line in the order of their ratios, and the gains of the answers along it."""
    upper, lower = stacked((1.25, 1), 5.2)
    strips(upper, LINE)
    middles = UNIT * (LINE.edges[1:] + LINE.edges[:-1]) / 2
    for at, ratio in zip(middles, RATIO, strict=True):
        upper.text(at, 3.6, f"{ratio:.2f}", ha="center", va="bottom", fontsize=8.5)
    upper.set_title("Columns on a line, in the order of their ratio $M_0/M_1$ (above)\n", fontsize=10.5, loc="left")
    gains = PROBLEM.gains(RATIO)
    for x, (row, peak) in enumerate(zip(gains, PROBLEM.peaks(RATIO), strict=True)):
        lower.stairs(row, UNIT * LINE.edges, baseline=None, color=COLOURS[x], lw=1.8, label=NAMES[x])
        at = UNIT * LINE.edges[peak]
        lower.plot([at], [row[max(peak - 1, 0) : peak + 1].max()], "v", color=COLOURS[x], ms=8)
    lower.axhline(0, color="0.4", lw=0.6)
    finish(lower, "Gain of a unit of mass: one peak each (▾)", "place on the line, in 42nds", "gain", None)
    save(lower, "envelope-line")


def the_exchange() -> None:
    """The distribution functions, that of the common part, and the densities before and after."""
    figure = Figure(figsize=(WIDTH, 6.0), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(1.25, 1))
    edges = UNIT * LINE.edges
    most = UNIT * MADE.window_length
    fine = np.linspace(0, edges[-1], 400)
    whole = [np.concatenate([[0], np.cumsum(UNIT * row)]) for row in LINE.masses]
    for x, row in enumerate(whole):
        peak = edges[PROBLEM.peaks(RATIO)[x]]
        upper.plot(edges, row, color=COLOURS[x], lw=1.8, label=f"$F_{x + 1}$")
        reach = np.interp(np.maximum(fine, peak), edges, row) - np.maximum(peak - fine, 0) - most
        upper.plot(fine, reach, ":", color=COLOURS[x], lw=1.3)
        upper.plot([peak], [np.interp(peak, edges, row)], "v", color=COLOURS[x], ms=7)
    upper.plot([], [], ":", color="0.4", label="lower bounds on C")
    upper.plot(
        edges, np.concatenate([[0], np.cumsum(UNIT * MADE.common)]), color="k", lw=2.4, label="$C$, the common part"
    )
    upper.set_ylim(-0.4, 7.6)
    title = (
        f"Distribution functions, peaks (▾), and the common part: N = 7 in all, D = {most:.0f}, N − D = {7 - most:.0f}"
    )
    finish(upper, title, "", "mass to the left, in 42nds", "upper left")
    strips(lower, MADE.lines[1], MADE.common)
    lower.set_title(
        "After the exchange: a part that all share (grey), and the rest, of total D", fontsize=10.5, loc="left"
    )
    lower.set_xlabel("place on the line, in 42nds")
    save(lower, "envelope-exchange")


def the_windows() -> None:
    """What is left, each answer in one window, and the comb that reads partitions off."""
    upper, lower = stacked((1, 1.15), 5.4)
    strips(upper, MADE.lines[3])
    upper.set_title("The common part erased, the columns in order again", fontsize=10.5, loc="left")
    most = UNIT * MADE.window_length
    parts = comb(MADE.starts, MADE.window_length)
    for x, start in enumerate(UNIT * MADE.starts):
        floor = 1.25 * (2 - x)
        lower.bar([start], [1], [most], bottom=floor, align="edge", color=COLOURS[x], lw=0)
        lower.text(
            -0.2, floor + 0.5, NAMES[x].replace(", ", "\n"), ha="right", va="center", fontsize=8.5, color=COLOURS[x]
        )
    offset, end = 0.0, UNIT * MADE.lines[3].edges[-1]
    for at, (length, cuts) in enumerate(parts):
        middle = offset + UNIT * length / 2
        blocks = " | ".join("".join(str(x + 1) for x in range(a, b)) for a, b in pairwise(cuts))
        for tooth in np.arange(middle, end, most):
            lower.axvline(tooth, ymax=0.9, color="k", lw=1.2, ls=("-", "--", ":", "-.")[at % 4])
        lower.text(middle, 3.78, blocks, ha="center", fontsize=9)
        offset += UNIT * length
    lower.set_yticks([])
    lower.set_ylim(-0.08, 4.05)
    lower.spines[["top", "right", "left"]].set_visible(False)
    lower.set_title(
        "Windows of length D, and combs of teeth D apart: each comb is a partition", fontsize=10.5, loc="left"
    )
    lower.set_xlabel("place on the line, in 42nds")
    save(lower, "envelope-windows")


def the_envelope() -> None:
    """The points of sort-partition-randomize and the non-decreasing envelope, for three answers and for twelve."""
    figure = Figure(figsize=(9.2, 3.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    twelve = np.exp(-0.5 * (np.arange(12) - 5.5 + np.array([[-2.0], [2.0]])) ** 2 / 4)
    p1, p0 = twelve / twelve.sum(axis=1, keepdims=True)
    several = partition_points(KL.excess, p0[::-1], p1[::-1], np.exp(4.0) - 1)
    three = partition_points(LE_CAM.excess, PAIR.p0, PAIR.p1, E - 1.0)
    for ax, points, title in (
        (left, three, "Three answers, Le Cam, $e^ε$ = 5"),
        (right, several, "Twelve answers, KL, ε = 4, from η = 0.8 on"),
    ):
        reach = np.linspace(0, points[0][0], 600)
        ax.plot(reach, [envelope_at(points, eta) for eta in reach], color=COLOURS[0], lw=2, label="the optimum")
        top = max(range(len(points)), key=lambda i: points[i][1])
        falls = points[top::-1]
        ax.plot(*zip(*falls, strict=True), "--", color=COLOURS[1], lw=1.6, label="plain envelope: falls, and is wrong")
        ax.plot(*zip(*points, strict=True), "o", color="k", ms=4, label="m blocks")
        near = (points[-1][0] - 0.01, points[0][0] + 0.01) if len(points) > 2 else (0, 0.72)
        finish(ax, title, "cap η on total variation", "preserved", "lower right")
        ax.set_xlim(*near)
        ax.set_ylim(0.8 if len(points) > 2 else 0, 1.06 * points[top][1])
        for m, (x, y) in enumerate(points, 2):
            # Names stand beside the curves: below left of the points that fall, below right of those that rise.
            at, side = (
                ((6, -10), "left") if m > top + 2 else ((0, 6), "center") if m == top + 2 else ((-7, -13), "right")
            )
            ax.annotate(f"m = {m}", (x, y), at, textcoords="offset points", ha=side, fontsize=8)
    save(left, "envelope-hull")


for draw in (the_line, the_exchange, the_windows, the_envelope):
    draw()
