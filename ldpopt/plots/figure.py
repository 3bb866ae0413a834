"""Shared by all pictures: figures without pyplot, colours that colour-blind readers can tell apart, units."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from ldpopt.divergences import JEFFREYS, JENSEN_SHANNON, KL, REVERSE_KL, FDivergence
from ldpopt.errors import Phrase, invalid
from ldpopt.plots.lettering import in_fonts

Axes = Any
"""A `matplotlib.axes.Axes`. Matplotlib is not imported for this name."""

FIRST, SECOND = "#0072B2", "#D55E00"
"""Blue and vermilion of the Okabe-Ito palette: the two hypotheses."""

FORMATS = ("png", "svg", "pdf")
DOTS = 200
"""Dots an inch of pixel pictures, which are sharp on paper and on screens of high density."""


def axes_on(ax: Axes | None, width: float, height: float) -> Axes:
    """`ax`, or the axes of a new figure of `width` x `height` inches."""
    return panels((width,), height)[0] if ax is None else ax


def panels(widths: Sequence[float], height: float) -> list[Axes]:
    """Axes side by side on one new figure: `widths` and `height` in inches.

    Returns the axes, from left to right.

    >>> left, right = panels((3.0, 2.0), 2.5)
    >>> left.figure is right.figure
    True
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(sum(widths), height), layout="constrained")
    return list(figure.subplots(1, len(widths), squeeze=False, width_ratios=list(widths))[0])


def picture(ax: Axes, kind: str = "png") -> bytes:
    """The figure of `ax` as the bytes of a png, svg or pdf file; the same figure gives the same bytes.

    ax : matplotlib axes. kind : "png" (200 dots an inch), "svg" or "pdf"; `InvalidInput` for others.

    >>> from ldpopt.plots import channel
    >>> picture(channel([[0.7, 0.3], [0.3, 0.7]]))[1:4]
    b'PNG'
    """
    if kind not in FORMATS:
        raise invalid("picture", f"one of the formats {', '.join(FORMATS)}", Phrase(kind or "none"))
    import matplotlib as mpl

    undated: dict[str, Any] = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[kind]
    out = io.BytesIO()
    in_fonts(ax.figure)
    with mpl.rc_context({"svg.hashsalt": "ldpopt"}):
        ax.figure.savefig(out, format=kind, dpi=DOTS, metadata=undated)
    return out.getvalue()


def with_unit(f: FDivergence) -> str:
    """The divergence's name, with "nats" if it has a logarithm."""
    return f.name + (" (nats)" if f in (KL, REVERSE_KL, JEFFREYS, JENSEN_SHANNON) else "")


def shade(shares: Any, name: str = "viridis") -> list[Any]:
    """Colours of an ordered scale at `shares` in [0, 1], without its palest end."""
    from matplotlib import colormaps

    return list(colormaps[name](0.82 * shares))


def ink(colour: Any) -> str:
    """Black or white, whichever is read more easily on an RGBA `colour`."""
    red, green, blue = (float(part) for part in colour[:3])
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.55 else "white"
