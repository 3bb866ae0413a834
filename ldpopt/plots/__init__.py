"""Pictures: each function draws on the axes it is given, or on a new figure, and returns the axes.

Matplotlib is imported when the first picture is drawn. Pyplot is never imported, so nothing here opens a window or
changes global state. Save a picture with ``ax.figure.savefig(path)``.
"""

from ldpopt.extras import register
from ldpopt.plots.channel import blocks, channel, coefficients, design_picture, ratio_order, shares, structures
from ldpopt.plots.figure import (
    FIRST_COLOR,
    SECOND_COLOR,
    Axes,
    axes_or_new,
    label_axes,
    label_text,
    move_legend,
    panels,
    picture,
)
from ldpopt.plots.frontier import bounds, envelope, frontier, gap_map, gap_maps, profile, sweep, trade_off

__all__ = [
    "FIRST_COLOR", "SECOND_COLOR", "Axes", "axes_or_new", "blocks", "bounds", "channel", "coefficients",
    "design_picture", "envelope", "frontier", "gap_map", "gap_maps", "label_axes", "label_text", "move_legend",
    "panels", "picture", "profile", "ratio_order", "shares", "structures", "sweep", "trade_off",
]  # fmt: skip

register(bounds, channel, coefficients, envelope, frontier, profile, shares, structures, sweep, trade_off)
