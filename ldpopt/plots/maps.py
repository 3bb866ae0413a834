"""Maps of gaps: the share of the optimum that a mechanism loses, at every point of a grid of epsilon and eta."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ldpopt.errors import Phrase, invalid
from ldpopt.frontiers import Frontier
from ldpopt.plots.figure import (
    SECOND_COLOR,
    Axes,
    axes_or_new,
    draw_colorbar,
    fit_labels,
    inches_of,
    is_narrow,
    label_text,
    panels,
    positive_width,
    text_color,
)
from ldpopt.plots.frontier import STYLES
from ldpopt.values.distribution import Array, number

TICK_WIDTH, TICK_HEIGHT = 0.34, 0.17
"""The inches that the number of a tick takes, with the space around it."""

PERCENT_WIDTH, PERCENT_HEIGHT = 0.3, 0.13
"""The inches of a cell that holds a percentage in letters of 7 points."""


def gap_map(
    frontier: Frontier,
    baseline: str,
    ax: Axes | None = None,
    label: str = "",
    *,
    vmin: float = 0.0,
    vmax: float | None = None,
    bar: bool = True,
) -> Axes:
    """Draw the fraction of the optimum that a mechanism loses at every (epsilon, eta).

    The fraction is 1 - baseline / optimum. Each point of the grid has one cell, and all cells are of one size: nothing
    is drawn between the points or beyond them. The axes count the points from 0 and are labelled with their epsilons
    and etas. Above the line eta is at least tanh(epsilon/2), where the cap has no effect [GI, Prop 2]. Percentages are
    printed where they fit.

    Parameters
    ----------
    frontier : The result of `ldpopt.frontier`, over a grid.
    baseline : One of its columns, such as ``"binary_with_erasure"``.
    ax : Matplotlib axes; without them a new figure is made.
    label : The title of the color scale, instead of the baseline's name.
    vmin, vmax : The fractions, in [0, 1], at the two ends of the colors; by default 0 and the largest fraction of the
        table. Maps that are compared need the same ones: `gap_maps` draws several with one scale.
    bar : True draws the color scale next to the map.

    Returns
    -------
    Axes
        The axes with the picture.

    Raises
    ------
    InvalidInput
        If the column is unknown, or the scale does not rise.

    Examples
    --------
    >>> from ldpopt import Divergence, frontiers
    >>> from ldpopt.divergences import KL
    >>> made = frontiers.frontier(Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]), [0.5, 1.0], [0.1, 0.2])
    >>> gap_map(made, "binary_with_erasure").get_xlabel()
    'ε (nats)'
    """
    epsilons, column = np.unique(frontier.column("epsilon"), return_inverse=True)
    etas, row = np.unique(frontier.column("eta"), return_inverse=True)
    table = np.full((len(etas), len(epsilons)), np.nan)
    table[row, column] = frontier.gap(baseline)
    low = number(vmin, "vmin")
    high = max(low + 0.01, largest_finite(table)) if vmax is None else number(vmax, "vmax")
    if not low < high:
        raise invalid("vmax", f"a number above vmin = {low:g}", high)
    ax = axes_or_new(ax, 3.2 + min(max(0.55 * len(epsilons), 3), 9), 1.4 + min(max(0.36 * len(etas), 2.6), 7))
    column_edges, row_edges = np.arange(len(epsilons) + 1) - 0.5, np.arange(len(etas) + 1) - 0.5
    mesh = ax.pcolormesh(column_edges, row_edges, table, cmap="cividis", vmin=low, vmax=high)
    ax.set(xlim=(column_edges[0], column_edges[-1]), ylim=(row_edges[0], row_edges[-1]))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_xlabel("ε (nats)")
    ax.set_ylabel("cap η on total variation")
    fit_labels(ax)
    _draw_reach(ax, epsilons, etas)
    if bar:
        draw_percent_bar(mesh, ax, label or gap_label(baseline))
    cell = inches_of(ax) / (len(epsilons), len(etas))
    if cell[0] >= PERCENT_WIDTH and cell[1] >= PERCENT_HEIGHT:
        for i, j in np.argwhere(np.isfinite(table)):
            colour = mesh.cmap(mesh.norm(table[i, j]))
            share = f"{max(0.0, table[i, j]):.0%}"
            ax.text(j, i, share, ha="center", va="center", fontsize=7, color=text_color(colour))
    for axis, values, cells_per_tick in (
        (ax.xaxis, epsilons, TICK_WIDTH / cell[0]),
        (ax.yaxis, etas, TICK_HEIGHT / cell[1]),
    ):
        places = np.arange(0, len(values), max(1, int(np.ceil(cells_per_tick))))
        axis.set_ticks(places, [f"{values[place]:.4g}" for place in places])
    return ax


def _draw_reach(ax: Axes, epsilons: Array, etas: Array) -> None:
    """The line between the cells where eta binds and those where it is tanh(epsilon/2) or more, if there are both."""
    heights = np.searchsorted(etas, np.tanh(epsilons / 2)) - 0.5
    if not (heights > -0.5).any() or not (heights < len(etas) - 0.5).any():
        return
    edges = np.arange(len(epsilons) + 1) - 0.5
    from matplotlib.lines import Line2D

    label = "above: η ≥ tanh(ε/2)" + ("" if is_narrow(ax) else ", which does not bind")
    ax.stairs(heights, edges, baseline=None, color="white", lw=3.5, clip_on=False)
    ax.stairs(heights, edges, baseline=None, color=SECOND_COLOR, lw=1.8, clip_on=False)
    font_size = 8 if is_narrow(ax) else 8.5
    style = {"frameon": False, "fontsize": font_size, "borderaxespad": 0.2}
    # A line, where matplotlib would show a box.
    ax.legend([Line2D([], [], color=SECOND_COLOR, lw=1.8)], [label], loc="lower right", bbox_to_anchor=(1, 1), **style)


def largest_finite(shares: Array) -> float:
    """Return the largest of the finite shares, or 0.

    >>> largest_finite(np.array([0.2, np.nan]))
    0.2
    """
    return float(np.max(shares[np.isfinite(shares)], initial=0.0))


def gap_label(baseline: str) -> str:
    """Return the name of the colours of a map of `baseline`, a column of a frontier.

    >>> gap_label("binary_with_erasure")
    'share of the optimum missed by\\nbinary with erasure'
    """
    return f"share of the optimum missed by\n{STYLES.get(baseline, (label_text(baseline.replace('_', ' ')),))[0]}"


def draw_percent_bar(mesh: Any, ax: Any, label: str) -> None:
    """Draw the scale of the colours of one map, or of a list of axes that share it."""
    from matplotlib.ticker import PercentFormatter

    fit_labels(ax[0] if isinstance(ax, list) else ax, draw_colorbar(mesh, ax, label, format=PercentFormatter(1.0)))


def gap_maps(
    frontiers: Mapping[str, Frontier], baseline: str, label: str = "", *, width: float | None = None
) -> list[Axes]:
    """Draw `gap_map` for several frontiers side by side, on one scale of colors.

    The scale reaches from 0 to the largest fraction of all maps.

    Parameters
    ----------
    frontiers : The frontiers, by the titles of their maps.
    baseline : One of their columns.
    label : The title of the color scale.
    width : The width of the figure in inches; by default 4 for each map.

    Returns
    -------
    list[Axes]
        The axes, from left to right.

    Raises
    ------
    InvalidInput
        If the mapping is empty, the column is unknown, or the width is not positive.

    Examples
    --------
    >>> from ldpopt import Divergence, frontiers
    >>> from ldpopt.divergences import KL, TOTAL_VARIATION
    >>> p0, p1 = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]
    >>> tables = {f.name: frontiers.frontier(Divergence(f, p0, p1), [1.0], [0.1, 0.2]) for f in (KL, TOTAL_VARIATION)}
    >>> [ax.get_title(loc="left") for ax in gap_maps(tables, "binary_with_erasure")]
    ['KL divergence', 'total variation']
    """
    if not isinstance(frontiers, Mapping) or not frontiers:
        raise invalid("frontiers", "a mapping from titles to at least one frontier", Phrase(f"{frontiers!r:.40}"))
    panel = 4.0 if width is None else positive_width(width) / len(frontiers)
    high = max(0.01, *(largest_finite(table.gap(baseline)) for table in frontiers.values()))
    axes = panels([panel] * len(frontiers), min(3.6, 0.9 + 0.75 * panel))
    for ax, (title, table) in zip(axes, frontiers.items(), strict=True):
        gap_map(table, baseline, ax, vmax=high, bar=False)
        if (legend := ax.get_legend()) is not None and ax is not axes[-1]:
            legend.remove()
        if ax is not axes[0]:
            ax.set_ylabel("")
        ax.set_title(label_text(title), loc="left", fontsize=9, pad=20)
    draw_percent_bar(axes[-1].collections[0], axes, label or gap_label(baseline))
    return axes
