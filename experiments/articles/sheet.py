"""What the scripts of the two papers share: the style of figures, and numbers as LaTeX commands.

Figures and numbers are written to docs/papers/figures, which LaTeX reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.figure import Figure

FOLDER = Path(__file__).resolve().parents[2] / "docs/papers/figures"
BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "0.45"
STYLE = {
    "pdf.fonttype": 42,  # TrueType: journals refuse the bitmap fonts of type 3
    "font.family": "serif",
    "font.serif": ["DejaVu Serif"],
    "mathtext.fontset": "cm",
    "font.size": 8.5,
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
}
rcParams.update(STYLE)


class Sheet:
    """A figure of one or more panels side by side, in the style of both papers.

    panels : their number. height : in inches; the width is that of the text.
    """

    def __init__(self, panels: int, height: float = 2.4) -> None:
        self.figure = Figure(figsize=(6.3, height), layout="constrained")
        FigureCanvasPdf(self.figure)
        self.axes: list[Axes] = list(self.figure.subplots(1, panels, squeeze=False)[0])

    def save(self, name: str) -> None:
        """Write the figure as a PDF with TrueType fonts and without a date."""
        self.figure.savefig(FOLDER / f"{name}.pdf", metadata={"CreationDate": None})


def write_numbers(name: str, numbers: Mapping[str, str]) -> None:
    r"""Write LaTeX commands, one for each number: ``\newcommand{\name}{text}``."""
    lines = [rf"\newcommand{{\{command}}}{{{text}}}" for command, text in numbers.items()]
    head = f"% Written by experiments/articles/{name}.py.\n"
    (FOLDER / f"{name}-numbers.tex").write_text(head + "\n".join(lines) + "\n", "utf-8")


def write_rows(name: str, rows: list[list[str]]) -> None:
    """Write the rows of a LaTeX table, without the end of the last one."""
    (FOLDER / f"{name}.tex").write_text(" \\\\\n".join(" & ".join(row) for row in rows), "utf-8")


def power_of_ten(value: float) -> str:
    """Return a small number as LaTeX, rounded up to one digit: ``$3 \\cdot 10^{-12}$``."""
    digits, _, exponent = f"{value:.0e}".partition("e")
    if float(f"{value:.0e}") < value:
        digits = str(int(digits) + 1)
    return rf"${digits} \cdot 10^{{{int(exponent)}}}$"
