"""Pictures: each function draws on the axes it is given, or on a new figure, and returns the axes.

Matplotlib is imported when the first picture is drawn. Pyplot is never imported, so nothing here opens a window or
changes global state. Save a picture with ``ax.figure.savefig(path)``.
"""

from ldpopt.extras import register
from ldpopt.plots.channel import blocks, channel, coefficients, shares, structures
from ldpopt.plots.figure import Axes, panels, picture
from ldpopt.plots.frontier import bounds, frontier, gap_map, profile, sweep, trade_off
from ldpopt.plots.planning import budget_split, half_widths, planning, power_curves, protocols

__all__ = [
    "Axes", "blocks", "bounds", "budget_split", "channel", "coefficients", "frontier", "gap_map", "half_widths",
    "panels", "picture", "planning", "power_curves", "profile", "protocols", "shares", "structures", "sweep",
    "trade_off",
]  # fmt: skip

register(
    bounds, budget_split, channel, coefficients, frontier, profile, protocols, shares, structures, sweep, trade_off
)  # fmt: skip
