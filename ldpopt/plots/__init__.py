"""Pictures: each function draws on the axes it is given, or on a new figure, and returns the axes.

Matplotlib is imported when the first picture is drawn. Pyplot is never imported, so nothing here opens a window or
changes global state. Save a picture with ``ax.figure.savefig(path)``.
"""

from ldpopt.plots.blocks import blocks
from ldpopt.plots.bounds import bounds
from ldpopt.plots.channel import channel
from ldpopt.plots.figure import Axes, panels, picture
from ldpopt.plots.frontier import frontier
from ldpopt.plots.gap_map import gap_map
from ldpopt.plots.planning import budget_split, half_widths, planning, power_curves
from ldpopt.plots.protocols import protocols
from ldpopt.plots.shares import coefficients, shares
from ldpopt.plots.structures import structures
from ldpopt.plots.sweep import sweep
from ldpopt.plots.trade_off import profile, trade_off

__all__ = [
    "Axes",
    "blocks",
    "bounds",
    "budget_split",
    "channel",
    "coefficients",
    "frontier",
    "gap_map",
    "half_widths",
    "panels",
    "picture",
    "planning",
    "power_curves",
    "profile",
    "protocols",
    "shares",
    "structures",
    "sweep",
    "trade_off",
]
