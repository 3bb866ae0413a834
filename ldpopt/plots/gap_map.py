"""The gap between a mechanism and the optimum, over (epsilon, eta)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ldpopt.distribution import Array
from ldpopt.plots.figure import Axes, axes_on, ink
from ldpopt.plots.frontier import STYLES

if TYPE_CHECKING:
    from ldpopt.frontiers import Frontier


def gap_map(frontier: Frontier, baseline: str, ax: Axes | None = None) -> Axes:
    """Draw the share of the optimum that a mechanism loses, 1 - baseline / optimum, at every (epsilon, eta).

    frontier : from `ldpopt.frontier`, over a grid. baseline : one of its columns, such as ``"binary_with_erasure"``.
    ax : matplotlib axes; without them a new figure is made.

    Above the curve eta = tanh(epsilon/2) the cap on eta has no effect [GI, Prop 2]. Returns the axes. Raises
    `InvalidInput` for an unknown column.

    >>> from ldpopt import Divergence, frontiers
    >>> from ldpopt.divergences import KL
    >>> made = frontiers.frontier(Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]), [0.5, 1.0], [0.1, 0.2])
    >>> gap_map(made, "binary_with_erasure").get_xlabel()
    'ε (nats)'
    """
    from matplotlib.patheffects import withStroke
    from matplotlib.ticker import PercentFormatter

    gap = frontier.gap(baseline)
    epsilons, column = np.unique(frontier.column("epsilon"), return_inverse=True)
    etas, row = np.unique(frontier.column("eta"), return_inverse=True)
    table = np.full((len(etas), len(epsilons)), np.nan)
    table[row, column] = gap
    ax = axes_on(ax, 3.2 + min(max(0.55 * len(epsilons), 3), 9), 1.4 + min(max(0.36 * len(etas), 2.6), 7))
    across, up = _edges(epsilons), np.clip(_edges(etas), 0, 1)
    mesh = ax.pcolormesh(across, up, table, cmap="cividis", vmin=0, vmax=max(0.01, float(np.nanmax(table))))
    if table.size <= 150:
        for i, j in np.argwhere(np.isfinite(table)):
            cell = mesh.cmap(mesh.norm(table[i, j]))
            x, y = (across[j] + across[j + 1]) / 2, (up[i] + up[i + 1]) / 2
            text = ax.text(x, y, f"{max(0.0, table[i, j]):.0%}", ha="center", va="center", fontsize=7, color=ink(cell))
            text.set(zorder=4, path_effects=[withStroke(linewidth=2, foreground=cell)])
    curve = np.linspace(across[0], across[-1], 200)
    reach = np.tanh(curve / 2)
    ax.plot(curve, reach, color="white", lw=3)
    ax.plot(curve, reach, color="#D55E00", lw=1.4, label="η = tanh(ε/2): above it η does not bind")
    ax.set(xlim=(across[0], across[-1]), ylim=(up[0], up[-1]))
    if np.any((reach > up[0]) & (reach < up[-1])):
        ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8.5, borderaxespad=0.2)
    name = STYLES.get(baseline, (baseline.replace("_", " "),))[0]
    ax.set_xlabel("ε (nats)")
    ax.set_ylabel("cap η on total variation")
    bar = ax.figure.colorbar(mesh, ax=ax, format=PercentFormatter(1.0), pad=0.02)
    bar.set_label(f"share of the optimum missed by\n{name}")
    bar.outline.set_visible(False)
    return ax


def _edges(centres: Array) -> Array:
    """Cell borders halfway between sorted positive `centres`.

    A single cell reaches a tenth of its centre to either side.
    """
    if len(centres) == 1:
        return np.array([centres[0] - 0.1, centres[0] + 0.1])
    middle = (centres[1:] + centres[:-1]) / 2
    first, last = 2 * centres[0] - middle[0], 2 * centres[-1] - middle[-1]
    return np.concatenate([[max(first, 0.0)], middle, [last]])
