"""The figure of a comparison of the optimum with textbook mechanisms and published bounds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ldpopt.frontiers import Frontier, FrontierRow
from ldpopt.plots.figure import (
    FIRST_COLOR,
    SECOND_COLOR,
    Axes,
    axes_or_new,
    inches_of,
    is_narrow,
    label_axes,
    label_text,
    log_ticks,
    positive_width,
    put_legend,
)
from ldpopt.plots.frontier import frontier
from ldpopt.plots.maps import gap_map
from ldpopt.values.distribution import Array

if TYPE_CHECKING:
    from ldpopt.bounds import Comparison


MAX_RATIO = 1e200
"""Bounds that are further off than this are left out, since no scale of floats shows them."""


def bounds(comparison: Comparison, ax: Axes | None = None, *, width: float | None = None) -> Axes:
    """Draw a `Comparison` of bounds with the optimum.

    At one (epsilon, eta) it shows the ratio of each bound to the optimum, on a logarithmic scale. Bounds that are 1e200
    times off or more are left out.

    For a question over several limits it shows the frontier. Below it stand the fraction of the optimum that the binary
    mechanism misses and the fraction of the tightest bound that no channel reaches. With `ax`, only the frontier is
    drawn.

    Parameters
    ----------
    comparison : The result of `bounds.compare`.
    ax : Matplotlib axes; without them a new figure is made.
    width : The width of a new figure in inches; by default 8.5, or 9.5 over several limits.

    Returns
    -------
    Axes
        The axes with the picture; of several the first.

    Raises
    ------
    InvalidInput
        If the width is not positive.

    Examples
    --------
    >>> from ldpopt.bounds import compare
    >>> bounds(compare([0.9, 0.1], [0.4, 0.6], 1.0)).get_xlabel()
    'times off the optimum'
    """
    if len(comparison.limits) > 1:
        return _over_limits(comparison, ax, 9.5 if width is None else positive_width(width))
    factors = [(row, row.looseness) for row in comparison.rows if (row.looseness or np.inf) < MAX_RATIO][::-1]
    rows = [row for row, _ in factors]
    inches = 8.5 if width is None else positive_width(width)
    ax = axes_or_new(ax, inches, 1.0 + 0.21 * max(len(rows), 4))
    heights = np.arange(len(rows))
    ratios, is_upper = np.array([factor for _, factor in factors]), np.array([row.above for row in rows], dtype=bool)
    ax.axvline(1.0, color="0.4", lw=0.9, zorder=0)
    ax.plot(ratios[is_upper], heights[is_upper], "o", color=FIRST_COLOR, ms=4.5, label="upper bound")
    ax.plot(ratios[~is_upper], heights[~is_upper], "s", color=SECOND_COLOR, ms=4, label="mechanism")
    ax.set_xscale("log")
    has_several_divergences = len({row.divergence for row in rows}) > 1
    names = [f"{row.divergence}  {row.reference}" if has_several_divergences else row.reference for row in rows]
    ax.set_ylim(-0.7, len(rows) - 0.3)
    ax.tick_params(axis="y", length=0)
    suffix = "" if has_several_divergences or not rows else f", {rows[0].divergence}"
    if is_narrow(ax):
        ax.set_yticks([])
    else:
        ax.set_yticks(heights, [label_text(name, 60, 1) for name in names], fontsize=7)
    label_axes(ax, f"times off the optimum{suffix}", grid="x", left=not is_narrow(ax))
    put_legend(ax, "above", *ax.get_legend_handles_labels(), size=8)
    if is_narrow(ax):
        _name_beside(ax, ratios, names)
    log_ticks(ax)
    return ax


def _name_beside(ax: Axes, ratios: Array, names: list[str]) -> None:
    """Name each row next to its mark, on the side with more free width."""
    places = np.log(ratios)
    low, high = float(places.min(initial=0.0)), float(places.max(initial=0.1))
    padding, width = 0.05 * (high - low), float(inches_of(ax)[0])
    ax.set_xlim(np.exp(low - padding), np.exp(high + padding))
    letter_width = 0.05  # inches
    for height, (place, name) in enumerate(zip(places, names, strict=True)):
        width_after = (high + padding - place) / (high - low + 2 * padding) * width - 0.1
        right = width_after >= min(letter_width * len(name), width / 2)
        available_width = width_after if right else width - width_after - 0.2
        text = ax.annotate(
            label_text(name, max(8, int(available_width / letter_width)), 1), (float(ratios[height]), height),
            (5 if right else -5, 0),
            textcoords="offset points", ha="left" if right else "right", va="center", fontsize=6.5,
        )  # fmt: skip
        text.set_in_layout(False)


_COLUMNS = {
    "binary mechanism": "binary_with_erasure",
    "randomized response": "randomized_response_with_erasure",
    "[GI, Thm 8]": "erased_optimum",
    "[GI, Thm 5]": "tv_bound",
    "[DJW, Thm 1; GI, Thm 6]": "thm6",
    "[GI, Thm 7]": "thm7",
}
"""What a frontier calls a row of a comparison."""


def _over_limits(comparison: Comparison, ax: Axes | None, width: float) -> Axes:
    """The three pictures of a comparison over several limits, or the first of them on `ax`."""
    rows, rows_to_bounds = [], []
    for limits in comparison.points:
        point_rows = comparison.rows_at(*limits)
        best_row = point_rows[0]
        columns: dict[str, Any] = dict.fromkeys(_COLUMNS.values())
        columns |= {_COLUMNS[row.reference]: row.value for row in point_rows if row.reference in _COLUMNS}
        columns |= {
            "lower_bound": best_row.optimum,
            "upper_bound": best_row.upper_bound,
            "certified": best_row.certified,
        }
        rows.append(FrontierRow(*limits, optimum=best_row.optimum, **columns))
        rows_to_bounds.append(replace(rows[-1], optimum=best_row.value, erased_optimum=best_row.optimum))
    table, to_bounds = (Frontier(tuple(part), comparison.designs[0].utility) for part in (rows, rows_to_bounds))
    unit = comparison.rows[0].unit
    if ax is None:
        from ldpopt.plots.paper import PrintFigure

        figure = PrintFigure(figsize=(width, 0.85 * width), layout="constrained")
        rows_of_axes = figure.add_gridspec(2, 1)
        ax = figure.add_subplot(rows_of_axes[0].subgridspec(1, 1)[0])
        lower = rows_of_axes[1].subgridspec(1, 2)
        missed_axes, loose_axes = (figure.add_subplot(lower[place]) for place in (0, 1))
        gap_map(table, "binary_with_erasure", missed_axes)
        gap_map(to_bounds, "erased_optimum", loose_axes, "share of the tightest bound\nthat no channel reaches")
    ax = frontier(table, ax)
    ax.set_ylabel(ax.get_ylabel().replace("(nats)", f"({unit})"))
    return ax
