"""Functions that all pictures of the experiments share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ldpopt.plots.figure import Axes, panels

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""The Okabe-Ito palette: colour-blind readers can tell these apart."""
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), "-")


def frames(count: int, width: float = 5.2, height: float = 4.0) -> list[Axes]:
    """Axes side by side on one new figure."""
    return panels((width,) * count, height)


def line(ax: Axes, x: Any, y: Any, at: int, label: str = "", **more: Any) -> None:
    """Draw curve number `at` of a picture.

    Each number has its colour and its dashes, so that either identifies the curve.
    """
    ax.plot(x, y, **{"color": COLOURS[at % 7], "ls": LINES[at % 7], "lw": 1.8, "label": label} | more)


def finish(ax: Axes, title: str, x: str, y: str, legend: str | None = "best", scale: Sequence[str] = ()) -> None:
    """Add texts, grid and legend, and make axes logarithmic (`scale` holds "x", "y" or both)."""
    ax.set_title(title, fontsize=10.5, loc="left")
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    if "x" in scale:
        ax.set_xscale("log")
    if "y" in scale:
        ax.set_yscale("log")
    ax.grid(alpha=0.25, lw=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    if legend is not None:
        ax.legend(fontsize=8.5, loc=legend, frameon=True, framealpha=0.85, edgecolor="none")
