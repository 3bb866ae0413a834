"""Estimated shares, coefficients and other numbers with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ldpopt.errors import invalid
from ldpopt.plots.figure import FIRST, SECOND, Axes, axes_on
from ldpopt.plots.lettering import rows_written


def shares(
    labels: Sequence[object], values: Any, lower: Any, upper: Any, truth: Any = None, ax: Axes | None = None
) -> Axes:
    """Draw a point and an interval for each of k answers, with the first answer on top.

    values, lower, upper : arrays (k,). truth : known shares to mark, (k,), if any.
    ax : matplotlib axes; without them a new figure is made. Returns the axes.

    >>> shares(["no", "yes"], [0.4, 0.6], [0.3, 0.5], [0.5, 0.7]).get_xlabel()
    'share of respondents'
    """
    values, lower, upper = (np.asarray(one, dtype=float) for one in (values, lower, upper))
    k = len(labels)
    if not values.shape == lower.shape == upper.shape == (k,):
        raise invalid("shares", f"{k} values with lower and upper ends", values.shape)
    rows, inch = rows_written(labels)
    ax = axes_on(ax, 7.0, 0.9 + inch * max(k, 2))
    at = np.arange(k)[::-1]
    ax.hlines(at, lower, upper, color=FIRST, linewidth=2.2, alpha=0.75)
    ax.plot(values, at, "o", color=FIRST, markersize=5, label="estimate, 95 % interval")
    if truth is not None:
        ax.plot(np.asarray(truth), at, "D", color=SECOND, markersize=4, label="truth")
        ax.legend(frameon=False, fontsize=8, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, borderaxespad=0.2)
    ax.axvline(0, color="0.6", linewidth=0.8)
    ax.set_yticks(at, rows)
    ax.set_ylim(-0.6, k - 0.4)
    ax.set_xlabel("share of respondents")
    ax.xaxis.set_major_formatter(lambda x, _: f"{100 * x:g} %")
    ax.tick_params(axis="y", length=0, labelsize=8 if k > 12 else 9)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.grid(axis="x", color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)
    return ax


def coefficients(
    labels: Sequence[object], values: Any, lower: Any, upper: Any, ax: Axes | None = None, what: str = "coefficient"
) -> Axes:
    """Draw a point and an interval for each of k numbers, with the first on top and a line at zero.

    values, lower, upper : arrays (k,). what : the name of the scale. ax : matplotlib axes; without them a new figure is
        made. Returns the axes.

    >>> coefficients(["Intercept", "age"], [-1.0, 0.2], [-1.5, 0.1], [-0.5, 0.3]).get_xlabel()
    'coefficient'
    """
    from matplotlib.ticker import ScalarFormatter

    ax = shares(labels, values, lower, upper, ax=ax)
    ax.xaxis.set_major_formatter(ScalarFormatter())
    ax.set_xlabel(what)
    return ax
