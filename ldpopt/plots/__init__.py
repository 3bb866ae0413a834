"""Pictures: each function draws on the axes it is given, or on a new figure, and returns the axes.

Matplotlib is imported when the first picture is drawn. Pyplot is never imported, so nothing here opens a window or
changes global state. Save a picture with ``ax.figure.savefig(path)``.
"""

from ldpopt.extras import register
from ldpopt.plots.channel import blocks, channel, coefficients, design_picture, ratio_order, shares, structures
from ldpopt.plots.comparison import bounds
from ldpopt.plots.figure import (
    FIRST_COLOR,
    SECOND_COLOR,
    Axes,
    axes_or_new,
    inches_of,
    label_axes,
    label_text,
    log_ticks,
    move_legend,
    panels,
    picture,
    put_legend,
)
from ldpopt.plots.frontier import envelope, frontier, profile, sweep, trade_off
from ldpopt.plots.maps import gap_map, gap_maps

__all__ = [
    "FIRST_COLOR", "SECOND_COLOR", "Axes", "axes_or_new", "blocks", "bounds", "channel", "coefficients",
    "design_picture", "envelope", "frontier", "gap_map", "gap_maps", "inches_of", "label_axes", "label_text",
    "log_ticks", "move_legend", "panels", "picture", "profile", "put_legend", "ratio_order", "shares", "structures",
    "sweep", "trade_off",
]  # fmt: skip

register(bounds, channel, coefficients, envelope, frontier, profile, shares, structures, sweep, trade_off)
