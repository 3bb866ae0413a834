"""The frontier: the largest utility against eta, for each epsilon."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldpopt.frontiers import Frontier, Sweep
from ldpopt.plots.figure import Axes, axes_on, shade, with_unit
from ldpopt.plots.sweep import sweep

STYLES = {
    "optimum": ("optimal channel", "-", 2.2),
    "erased_optimum": ("optimum for ε, erased", "-", 0.9),
    "binary_with_erasure": ("binary with erasure", "--", 1.7),
    "randomized_response_with_erasure": ("k-ary randomized response, erased", ":", 1.9),
}
_DOTTED = (0, (1, 1, 5, 1))
BOUNDS: dict[str, tuple[str, Any]] = {
    "tv_bound": ("bound η·TV(P0, P1) [GI, Thm 5]", _DOTTED),
    "thm6": ("bound [GI, Thm 6]", (0, (7, 2, 1, 2))),
    "thm7": ("bound [GI, Thm 7]", _DOTTED),
}


def frontier(frontier: Frontier | Sweep, ax: Axes | None = None) -> Axes:
    """Draw the utility of the optimal channel and of textbook mechanisms against eta, with a colour for each epsilon.

    frontier : from `ldpopt.frontier`; a result of `ldpopt.sweep` is drawn by `plots.sweep`.
    ax : matplotlib axes; without them a new figure is made.

    Mechanisms that are not known for the utility are left out. The band above an optimum reaches to its proven upper
    bound; a certified design has a band without width. A bound from the papers is a thin line, if it stays within the
    picture for all eta below tanh(epsilon/2). Returns the axes.

    >>> from ldpopt import Divergence, frontiers
    >>> from ldpopt.divergences import KL
    >>> made = frontiers.frontier(Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]), [1.0], [0.1, 0.2])
    >>> frontier(made).get_xlabel()
    'cap η on total variation'
    """
    from matplotlib.lines import Line2D

    if isinstance(frontier, Sweep):
        return sweep(frontier, ax)
    ax = axes_on(ax, 9, 5)
    epsilons = np.unique(frontier.column("epsilon"))
    colours = shade(np.linspace(0, 1, len(epsilons)) if len(epsilons) > 1 else np.array([0.4]))
    error = frontier.utility.error
    proved = "lower_bound" if error else "upper_bound"
    known = {name: style for name, style in STYLES.items() if not np.isnan(frontier.column(name)).all()}
    reach = np.concatenate([frontier.column(proved), frontier.column("optimum")])
    top = 1.12 * float(reach[np.isfinite(reach)].max(initial=0.0))
    fitting: list[str] = []
    uncertain = False
    for epsilon, colour in zip(epsilons, colours, strict=True):
        at = np.flatnonzero(frontier.column("epsilon") == epsilon)
        at = at[np.argsort(frontier.column("eta")[at], kind="stable")]
        eta, optimum, bound = (frontier.column(name)[at] for name in ("eta", "optimum", proved))
        # A single point does not make a line.
        marker = "o" if len(at) == 1 else ""
        for name, (_, style, width) in reversed(known.items()):
            ax.plot(eta, frontier.column(name)[at], style, color=colour, lw=width, marker=marker, ms=4)
        open_gap = (bound != optimum) & np.isfinite(bound) & (frontier.column("certified")[at] == 0)
        if open_gap.any():
            uncertain = True
            ax.fill_between(eta, optimum, np.where(open_gap, bound, optimum), color=colour, alpha=0.3, lw=0)
        for name, (_, style) in BOUNDS.items():
            values = frontier.column(name)[at]
            binding = eta <= np.tanh(epsilon / 2)
            if binding.any() and values[binding][-1] <= top:
                ax.plot(eta, values, ls=style, lw=0.9, color=colour, zorder=1)
                fitting.append(name)
    handles = [Line2D([], [], color=colour, lw=5) for colour in colours]
    labels = [f"ε = {epsilon:g}" for epsilon in epsilons]
    for text, style, width in known.values():
        handles.append(Line2D([], [], color="0.25", ls=style, lw=width))
        labels.append(text)
    for name in dict.fromkeys(fitting):
        handles.append(Line2D([], [], color="0.25", ls=BOUNDS[name][1], lw=0.9))
        labels.append(BOUNDS[name][0])
    if uncertain:
        handles.append(Line2D([], [], color="0.25", alpha=0.3, lw=7))
        labels.append("up to the proven bound, not certified")
    ax.legend(
        handles,
        labels,
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        frameon=False,
        fontsize=9,
        title="ε in nats",
        alignment="left",
    )
    low, high = float(np.min(frontier.column("eta"))), float(np.max(frontier.column("eta")))
    if high > low:
        ax.set_xlim(low, high)
    if top > 0:
        ax.set_ylim(0, top)
    ax.set_xlabel("cap η on total variation")
    f = getattr(frontier.utility, "f", None)
    ax.set_ylabel(f"{frontier.utility.name if f is None else with_unit(f)} of the reports")
    ax.grid(alpha=0.25, lw=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
