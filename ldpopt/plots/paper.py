"""The figures that pictures are drawn on: however they are saved, their letters are embedded as fonts that can be read.

This module imports matplotlib, and is loaded when the first picture is drawn.
"""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

TRUETYPE = {"pdf.fonttype": 42, "ps.fonttype": 42}
"""Whole outlines of letters (Type 42): many journals refuse the Type 3 fonts that matplotlib writes by default."""


class PrintFigure(Figure):
    """A matplotlib figure whose `savefig` embeds TrueType fonts in PDF and PostScript; no setting is changed."""

    def savefig(self, fname: Any, **options: Any) -> None:
        """Save the figure as matplotlib does, with TrueType fonts."""
        with mpl.rc_context(TRUETYPE):
            super().savefig(fname, **options)
