"""What the scripts of this folder share: one size of type, one palette, one way of saving.

Each script draws one picture of the documentation: it has `draw()`, which returns the axes, and writes the picture
beside itself when it is run. A test draws all of them and looks for letters that touch.
"""

from pathlib import Path
from typing import Any

from ldpopt import plots
from ldpopt.plots import FIRST_COLOR as FIRST
from ldpopt.plots import SECOND_COLOR as SECOND
from ldpopt.plots import panels

GREEN, PURPLE, SKY, GREY = "#009E73", "#CC79A7", "#56B4E9", "0.45"
TYPE = 9

__all__ = ["FIRST", "GREEN", "GREY", "PURPLE", "SECOND", "SKY", "TYPE", "beside", "frame", "panels", "save"]


def frame(ax: Any, title: str, x: str = "", y: str = "") -> None:
    """Title, names of the axes and letters of one size; the box is open above and on the right."""
    ax.set_title(title, fontsize=TYPE + 1, loc="left")
    ax.set_xlabel(x, fontsize=TYPE)
    ax.set_ylabel(y, fontsize=TYPE)
    ax.tick_params(labelsize=TYPE)
    ax.spines[["top", "right"]].set_visible(False)


def beside(ax: Any) -> None:
    """The legend below the axes, off the data."""
    ax.legend(
        fontsize=TYPE, frameon=False, loc="upper left", bbox_to_anchor=(0.0, -0.2), borderaxespad=0.0, handlelength=2.4
    )


def save(ax: Any, script: str) -> None:
    """Write the picture of a script as an SVG beside it."""
    Path(script).with_suffix(".svg").write_bytes(plots.picture(ax, "svg"))
