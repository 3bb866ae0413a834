"""Published bounds beside the optimum that they bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ldpopt.plots.figure import FIRST, SECOND, Axes, axes_on
from ldpopt.plots.lettering import written

if TYPE_CHECKING:
    from ldpopt.bounds import Comparison


def bounds(comparison: Comparison, ax: Axes | None = None) -> Axes:
    """Draw the ratio of each bound of a `Comparison` to the optimum, on a logarithmic scale.

    comparison : from `bounds.compare`. ax : matplotlib axes; without them a new figure is made.

    Bounds that are infinite are left out. Returns the axes.

    >>> from ldpopt.bounds import compare
    >>> bounds(compare([0.9, 0.1], [0.4, 0.6], 1.0)).get_xlabel()
    'times off the optimum'
    """
    rows = [row for row in comparison.rows if 0 < row.looseness < np.inf][::-1]
    ax = axes_on(ax, 8.5, 1.0 + 0.21 * max(len(rows), 4))
    at = np.arange(len(rows))
    for above, colour, marker, name in ((True, FIRST, "o", "upper bound"), (False, SECOND, "s", "lower bound")):
        mine = np.array([row.above is above for row in rows], dtype=bool)
        off = np.array([row.looseness for row in rows])
        ax.plot(off[mine], at[mine], marker, color=colour, ms=4.5, ls="", label=name)
    ax.axvline(1.0, color="0.4", lw=0.9)
    ax.set_xscale("log")
    ax.set_yticks(at, [written(f"{row.divergence}  {row.reference}", 60, 1) for row in rows], fontsize=7)
    ax.set_ylim(-0.7, len(rows) - 0.3)
    ax.set_xlabel("times off the optimum")
    ax.legend(frameon=False, fontsize=8, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, borderaxespad=0.2)
    ax.grid(axis="x", alpha=0.25, lw=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
