"""The sweep: the value of the optimal channel along the parameter of a family of constraints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ldpopt.plots.figure import FIRST, SECOND, Axes, axes_on

if TYPE_CHECKING:
    from ldpopt.frontiers import Sweep


def sweep(sweep: Sweep, ax: Axes | None = None) -> Axes:
    """Draw the value of every design of a sweep, with a bar up to its proven bound if it is not certified.

    sweep : from `ldpopt.sweep`; parameters that are tuples are drawn side by side in their order.
    ax : matplotlib axes; without them a new figure is made. Returns the axes.

    >>> from ldpopt import LocalDP, MutualInformation, frontiers
    >>> sweep(frontiers.sweep(MutualInformation([0.6, 0.4]), LocalDP, [0.5, 1.0])).get_ylabel()
    'mutual information of the reports'
    """
    ax = axes_on(ax, 6.5, 4)
    single = all(not isinstance(row.parameter, tuple) for row in sweep.rows)
    at: Any = np.array(sweep.parameters) if single else np.arange(len(sweep.rows))
    order = np.argsort(at, kind="stable")
    at, value = at[order], sweep.value[order]
    bound = (sweep.lower_bound if sweep.utility.error else sweep.upper_bound)[order]
    proved = np.array([row.certified for row in sweep.rows])[order]
    ax.plot(at, value, "o-" if single else "o", color=FIRST, lw=1.8, ms=4, label="optimal channel")
    loose = ~proved & np.isfinite(bound)
    if loose.any():
        low, high = np.minimum(value, bound)[loose], np.maximum(value, bound)[loose]
        ax.vlines(at[loose], low, high, color=SECOND, lw=3, alpha=0.6, label="up to the proven bound, not certified")
        ax.legend(frameon=False, fontsize=9, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, borderaxespad=0.2)
    if not single:
        names = [", ".join(f"{part:g}" for part in np.atleast_1d(parameter)) for parameter in sweep.parameters]
        ax.set_xticks(at, names, rotation=30 if len(names) > 6 else 0, fontsize=8)
    ax.set_xlabel("parameter of the constraint" + ("" if single else "s"))
    ax.set_ylabel(f"{sweep.utility.name} of the reports")
    ax.grid(alpha=0.25, lw=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
