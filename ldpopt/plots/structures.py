"""The staircase patterns that are optimal at each epsilon.

A pattern is the set of answers that a report favours: they make it e^epsilon times likelier than the other answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldpopt.plots.figure import FIRST, SECOND, Axes, axes_on
from ldpopt.plots.lettering import written

if TYPE_CHECKING:
    from ldpopt.design import Structures


def structures(found: Structures, ax: Axes | None = None) -> Axes:
    """Draw a bar for every pattern over the epsilons (nats) at which the optimal channel uses it.

    found : from `ldpopt.design.structures`. ax : matplotlib axes; without them a new figure is made. A line marks every
        epsilon at which the patterns change. Returns the axes.

    >>> from ldpopt.design import Divergence, structures as seek
    >>> from ldpopt.divergences import KL
    >>> ax = structures(seek(Divergence(KL, [0.6, 0.3, 0.1], [0.1, 0.3, 0.6]), 0.1, 5.0, tolerance=1e-6))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['0', '1, 2', '1', '2']
    """
    patterns = list(dict.fromkeys(pattern for piece in found for pattern in piece.patterns))
    ax = axes_on(ax, 8, 1.2 + 0.27 * max(4, min(len(patterns), 40)))
    for row, pattern in enumerate(patterns):
        for piece in found:
            if pattern in piece.patterns:
                colour = FIRST if pattern else SECOND
                ax.barh(row, piece.high - piece.low, left=piece.low, height=0.62, color=colour, lw=0)
    for low, high in found.breaks:
        ax.axvline((low + high) / 2, color="0.55", lw=0.7, zorder=0)
    ax.set_xscale("log")
    ax.set_xlim(found.pieces[0].low, found.pieces[-1].high)
    ax.set_ylim(len(patterns) - 0.5, -0.5)
    named = [written(", ".join(map(str, pattern)) if pattern else "none (erasure)") for pattern in patterns]
    ax.set_yticks(range(len(patterns)), named)
    ax.set_xlabel("ε in nats")
    ax.set_ylabel("answers that a report favours")
    ax.spines[["top", "right"]].set_visible(False)
    return ax
