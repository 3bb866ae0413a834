"""Protocols compared by the respondents that they need."""

from __future__ import annotations

from typing import Any

from ldpopt.plots.figure import FIRST, SECOND, Axes, axes_on


def protocols(table: Any, ax: Axes | None = None) -> Axes:
    """Draw a bar for every protocol of a `ProtocolTable`, on a logarithmic scale of respondents.

    table : from `survey.compare_protocols`. ax : matplotlib axes; without them a new figure is made. Returns the axes.

    >>> from ldpopt.survey import HalfWidth, compare_protocols
    >>> protocols(compare_protocols([0.3, 0.7], HalfWidth(0.05), 1.0)).get_xlabel()
    'respondents for a half-width of 5 points'
    """
    from matplotlib.ticker import LogLocator, NullFormatter

    rows = list(table)[::-1]
    ax = axes_on(ax, 7.0, 1.1 + 0.3 * len(rows))
    colours = [FIRST if row.protocol in ("optimal channel", "channel of this survey") else "0.72" for row in rows]
    bars = ax.barh([row.protocol for row in rows], [row.respondents for row in rows], color=colours)
    for bar, row in zip(bars, rows, strict=True):
        text = f" {row.respondents:,}"
        ax.text(bar.get_width(), bar.get_y() + bar.get_height() / 2, text, va="center", fontsize=8)
    ax.axvline(table.unprivate, color=SECOND, linewidth=1.2)
    ax.text(table.unprivate, len(rows) - 0.4, " without privacy", color=SECOND, fontsize=8)
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=6))
    ax.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlim(table.unprivate / 1.5, 4 * max(row.respondents for row in rows))
    ax.set_xlabel(f"respondents for a half-width of {100 * table.precision.width:g} points")
    ax.tick_params(axis="y", length=0, labelsize=9)
    ax.spines[["top", "right", "left"]].set_visible(False)
    return ax
