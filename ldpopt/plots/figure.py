"""Shared by all pictures: figures without pyplot, colors that color-blind readers can distinguish, and lettering.

Labels are wrapped, shown literally, and set in a font that has their characters.
"""

from __future__ import annotations

import io
import re
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

import numpy as np

from ldpopt.design import MutualInformation
from ldpopt.divergences import FDivergence
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.files.escapes import overrides_shown
from ldpopt.values.distribution import Array, number

LABEL_LINE_LENGTH = 30
"""Characters on a line of a label."""

MAX_LABEL_LINES = 3

MATH = {
    "α": r"\alpha", "β": r"\beta", "γ": r"\gamma", "δ": r"\delta", "ε": r"\varepsilon", "η": r"\eta", "κ": r"\kappa",
    "λ": r"\lambda", "μ": r"\mu", "ξ": r"\xi", "π": r"\pi", "ρ": r"\rho", "σ": r"\sigma", "τ": r"\tau",
    "Δ": r"\Delta", "Φ": r"\Phi", "Σ": r"\Sigma", "≤": r"\leq", "≥": r"\geq", "≈": r"\approx", "√": r"\surd",
    "‖": r"\Vert", "∞": r"\infty", "→": r"\to", "₀": "{}_0", "₁": "{}_1", "₂": "{}_2", "₃": "{}_3",
    "⁻": "{}^-", "−": "-",
}  # fmt: skip
"""What stands in formulas in a pgf picture, as LaTeX calls it."""

_PREFERRED = ("Noto Sans", "Noto Sans CJK", "Noto", "FreeSans", "Unifont", "WenQuanYi", "Droid Sans Fallback", "Arial")


def label_text(label: object, limit: int = LABEL_LINE_LENGTH, lines: int = MAX_LABEL_LINES) -> str:
    """Write a label in at most `lines` lines of `limit` characters, which matplotlib shows literally.

    A dollar sign does not begin a formula. A character that no font of this machine has is written as its code point,
    such as U+4E2D, since the usual box says nothing. An answer to several questions is their answers in a row.

    >>> label_text("up to $5 and more than $10, every other week", 20)
    'up to \\\\$5 and more\\nthan \\\\$10, every\\nother week'
    >>> label_text(("no", "low"))
    'no, low'
    """
    words = ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)
    spaced_text = " ".join(words.split())
    drawable_flags = (
        character.isprintable()
        and overrides_shown(character) == character
        and (_is_in_default_font(character) or _font_with(ord(character)))
        for character in spaced_text
    )
    text = "".join(
        character if is_drawable else f"U+{ord(character):04X} "
        for character, is_drawable in zip(spaced_text, drawable_flags, strict=True)
    )
    wrapped_lines = textwrap.wrap(text, limit) or [" "]
    if len(wrapped_lines) > lines:
        wrapped_lines = [*wrapped_lines[: lines - 1], wrapped_lines[lines - 1][: limit - 1] + "…"]
    return "\n".join(wrapped_lines).replace("$", r"\$")


def set_fonts(figure: Any) -> None:
    """Set fonts for every text of a figure that have its characters, if this machine has them."""
    from matplotlib.text import Text

    for ax in figure.axes:  # matplotlib sets the text of tick labels when asked
        ax.get_xticklabels(), ax.get_yticklabels()
    for text in figure.findobj(Text):
        families = ["DejaVu Sans"]
        for character in sorted(set(text.get_text())):
            if _is_in_default_font(character) or any(ord(character) in _characters(family) for family in families):
                continue
            if (font := _font_with(ord(character))) is not None:
                families.append(font)
        if len(families) > 1:
            text.set_fontfamily(families)


def _is_in_default_font(character: str) -> bool:
    """Return True if matplotlib's default font has a character."""
    return character == "\n" or ord(character) in _characters("DejaVu Sans")


def row_labels(labels: Sequence[object]) -> tuple[list[str], float]:
    """Return labels for the rows of a figure, and the height in inches that fits the longest of them.

    With more than twelve rows, each label has one line.

    >>> row_labels(["a", "b"])
    (['a', 'b'], 0.27)
    """
    texts = [label_text(label, 34, 1) if len(labels) > 12 else label_text(label) for label in labels]
    return texts, 0.11 + 0.16 * max(text.count("\n") + 1 for text in texts)


@cache
def _font_with(code: int) -> str | None:
    """The name of a font of this machine that has a character; plain fonts are preferred."""
    from matplotlib.font_manager import fontManager

    _list_new_fonts()
    names = sorted({entry.name for entry in fontManager.ttflist if entry.style == "normal"})

    def rank(name: str) -> tuple[int, str]:
        matches = [index for index, start in enumerate(_PREFERRED) if name.startswith(start)]
        return (matches[0] if matches else len(_PREFERRED), name)

    return next((name for name in sorted(names, key=rank) if code in _characters(name)), None)


@cache
def _list_new_fonts() -> None:
    """Add fonts that were installed after matplotlib made its list, which it keeps on the disk."""
    from matplotlib.font_manager import findSystemFonts, fontManager

    listed_files = {entry.fname for entry in fontManager.ttflist}
    for path in sorted(set(findSystemFonts()) - listed_files):
        with suppress(OSError, RuntimeError, ValueError, UnicodeError):
            fontManager.addfont(path)


@cache
def _characters(family: str) -> frozenset[int]:
    """The characters of a font; none if it cannot be read."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    try:
        return frozenset(get_font(findfont(FontProperties(family=family), fallback_to_default=False)).get_charmap())
    except (ValueError, OSError, RuntimeError):
        return frozenset()


Axes = Any
"""A `matplotlib.axes.Axes`. Matplotlib is not imported for this name."""

FIRST_COLOR = "#0072B2"
"""The blue of the Okabe-Ito palette, for the first hypothesis."""
SECOND_COLOR = "#D55E00"
"""The vermilion of the Okabe-Ito palette, for the second hypothesis."""

FORMATS = ("png", "svg", "pdf", "pgf")
DOTS_PER_INCH = 200
"""Dots an inch of pixel pictures, which are sharp on paper and on screens of high density."""


def axes_or_new(ax: Axes | None, width: float, height: float) -> Axes:
    """Return `ax`, or the axes of a new figure of `width` x `height` inches if it is None.

    >>> axes_or_new(None, 5.0, 3.0).figure.get_size_inches().tolist()
    [5.0, 3.0]
    """
    return panels((width,), height)[0] if ax is None else ax


def panels(widths: Sequence[float], height: float) -> list[Axes]:
    """Create axes side by side on one new figure: `widths` and `height` in inches.

    Returns the axes, from left to right.

    >>> left, right = panels((3.0, 2.0), 2.5)
    >>> left.figure is right.figure
    True
    """
    from ldpopt.plots.paper import PrintFigure

    figure = PrintFigure(figsize=(sum(widths), height), layout="constrained")
    return list(figure.subplots(1, len(widths), squeeze=False, width_ratios=list(widths))[0])


def positive_width(width: float) -> float:
    """Return `width`, in inches, if it is a positive number.

    >>> positive_width(3.4)
    3.4
    """
    inches = number(width, "width")
    if not inches > 0:
        raise invalid("width", "a positive number of inches", width)
    return inches


def label_axes(ax: Axes, x: str, y: str = "", grid: str = "", left: bool = True) -> Axes:
    """Set the names of the axes of a finished figure, remove its frame, and return `ax`.

    x, y : the names. grid : "x", "y" or "both" for a light grid along them. left : whether the left side stays.

    >>> label_axes(axes_or_new(None, 5.0, 3.0), "ε (nats)").get_xlabel()
    'ε (nats)'
    """
    from matplotlib.ticker import AutoLocator, MaxNLocator

    ax.set(xlabel=x, ylabel=y)
    fit_labels(ax)
    if isinstance(ax.xaxis.get_major_locator(), AutoLocator):
        ax.xaxis.set_major_locator(MaxNLocator(_ticks_that_fit(ax), steps=[1, 2, 5, 10]))
    if grid:
        ax.grid(axis=grid, color="0.92", lw=0.8)
        ax.set_axisbelow(True)
    ax.spines[["top", "right"] if left else ["top", "right", "left"]].set_visible(False)
    return ax


def _ticks_that_fit(ax: Axes) -> int:
    """The number of intervals between ticks of five letters that fit below axes."""
    size = (ax.get_xticklabels() or [ax.xaxis.label])[0].get_fontsize()
    return max(3, int(inches_of(ax)[0] / (0.065 * size)))


NARROW_WIDTH = 3.0
"""Axes narrower than this, in inches, get small letters: a column of a paper is about 3.4 inches wide."""


PRINT_WIDTH = 5.6
"""Axes narrower than this, in inches, get letters of the size of print: a page has about 7 inches of text."""


def inches_of(ax: Axes) -> Array:
    """Return the width and the height of axes in inches, shape (2,), with the letters around them as they are now.

    >>> bool((inches_of(axes_or_new(None, 5.0, 3.0)) < [5.0, 3.0]).all())
    True
    """
    figure = ax.get_figure().canvas.figure
    if (engine := figure.get_layout_engine()) is not None:
        engine.execute(figure)
    return np.array(ax.get_window_extent().size / figure.dpi)


def is_narrow(ax: Axes) -> bool:
    """Return True if axes are at most as wide as one column of a paper."""
    return slot_width(ax) < NARROW_WIDTH


def slot_width(ax: Axes) -> float:
    """Return the width in inches that matplotlib's default margins give to axes, without regard to their neighbors.

    >>> round(slot_width(axes_or_new(None, 5.0, 3.0)), 3)
    3.875
    """
    figure, place = ax.get_figure().canvas.figure, ax.get_subplotspec()
    if place is None:
        return float(ax.get_window_extent().width / figure.dpi)
    return float(place.get_position(figure).width * figure.get_size_inches()[0])


def fit_labels(ax: Axes, *bars: Any) -> None:
    """Wrap the names of axes into lines that fit, and use small letters for narrow axes."""
    parts = (ax, *(bar.ax for bar in bars))
    size, tick_size = (8, 7) if is_narrow(ax) else (9, 8) if slot_width(ax) < PRINT_WIDTH else (None, None)
    for part in parts if size is not None else ():
        part.xaxis.label.set_fontsize(size)
        part.yaxis.label.set_fontsize(size)
        part.tick_params(labelsize=tick_size)
    width, height = inches_of(ax)
    for part in parts:
        part.yaxis.label.set_text(_wrapped(part.yaxis.label, height))
        part.xaxis.label.set_text(_wrapped(part.xaxis.label, 1.05 * width))


LETTER_WIDTH = 0.0082
"""The mean width of a letter in inches for each point of its size."""


def _wrapped(label: Any, inches: float) -> str:
    """The text of a label in lines of about that many inches, none of which is one short word if that can be helped."""
    text = " ".join(label.get_text().split())
    limit = max(12, int(inches / (LETTER_WIDTH * label.get_fontsize())))
    lines = textwrap.wrap(text, limit, break_on_hyphens=False)
    # As many lines as are needed, of about one length.
    even_limit = max(12, min(limit, len(text) // max(1, len(lines)) + 6))
    return "\n".join(textwrap.wrap(text, even_limit, break_on_hyphens=False)) if len(lines) > 1 else text


PLACES = ("above", "below", "beside", "inside", "none")
"""Where a legend can stand."""

MIN_WIDTH_FOR_SIDE_LEGEND = 5.0
"""Axes narrower than this, in inches, have their legend below: they are one column of a paper or less."""


def legend_above(ax: Axes, size: float = 9) -> None:
    """Place a legend above the data, in two columns, or in one where two do not fit."""
    put_legend(ax, "above", *ax.get_legend_handles_labels(), size=size)


def move_legend(ax: Axes, place: str, size: float | None = None) -> Axes:
    """Move the legend of a picture, in as many columns as fit, and return `ax`.

    Parameters
    ----------
    ax : Axes with a legend.
    place : One of `PLACES`, next to the data. With "inside" the legend stands where it hides least, and with "none" it
        is removed.
    size : The size of the letters, in points; by default the size that they have.

    Returns
    -------
    Axes
        The axes `ax`.

    Raises
    ------
    InvalidInput
        If the place is another one, or the picture has no legend.

    Examples
    --------
    >>> from ldpopt.plots import shares
    >>> ax = shares(["no", "yes"], [0.4, 0.6], [0.3, 0.5], [0.5, 0.7], truth=[0.5, 0.5])
    >>> len(move_legend(ax, "below").get_legend().get_texts())
    2
    """
    legend = ax.get_legend()
    if legend is None:
        raise InvalidInput("legend not found: the picture has none; draw labelled curves first")
    texts = legend.get_texts()
    font_size = texts[0].get_fontsize() if size is None and texts else size or 9
    labels = [text.get_text() for text in texts]
    put_legend(ax, place, legend.legend_handles, labels, size=font_size, title=legend.get_title().get_text())
    return ax


def put_legend(
    ax: Axes, place: str, handles: Sequence[Any], labels: Sequence[str], *, size: float = 9, title: str = ""
) -> None:
    """Add a legend to finished axes, in as many columns as fit.

    Parameters
    ----------
    ax : The finished axes.
    place : One of `PLACES`, as for `move_legend`, or "auto": to the right of wide axes, and below those of a column of
        a paper.
    handles, labels : The entries, as for matplotlib's `Axes.legend`.
    size : The size of the letters, in points.
    title : The title of the legend.

    Raises
    ------
    InvalidInput
        If the place is another one.

    Examples
    --------
    >>> ax = axes_or_new(None, 5.0, 3.0)
    >>> line = ax.plot([0, 1], [0, 1], label="rises")
    >>> put_legend(ax, "below", *ax.get_legend_handles_labels())
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['rises']
    """
    from matplotlib.transforms import ScaledTranslation

    if place not in ("auto", *PLACES):
        raise invalid("legend", f"one of {', '.join(PLACES)}", place)
    dots = ax.figure.dpi
    width = float(inches_of(ax)[0])
    box = ax.get_window_extent()
    if place == "auto":
        place = "beside" if slot_width(ax) >= MIN_WIDTH_FOR_SIDE_LEGEND else "below"
    if is_narrow(ax):
        size = min(size, 8)
    if (previous := ax.get_legend()) is not None:
        previous.remove()
    if place == "none":
        return
    style: dict[str, Any] = {"frameon": False, "fontsize": size, "title": title or None, "alignment": "left"}
    style |= {"title_fontsize": size}
    if is_narrow(ax):
        style |= {"handlelength": 1.6}
    if place == "inside":
        ax.legend(handles, labels, loc="best", **style)
    elif place == "beside":
        ax.legend(handles, labels, loc="upper left", bbox_to_anchor=(1.01, 1.0), **style)
    else:
        style |= {"borderaxespad": 0.2, "loc": "lower left", "bbox_to_anchor": (0.0, 1.0)}
        style |= {"columnspacing": 0.8 if is_narrow(ax) else 1.2}
        if place == "below":
            # The legend keeps its distance in inches, for any height that a layout gives to the axes.
            tick_box = ax.xaxis.get_tightbbox()
            drop = 0.0 if tick_box is None else (ax.get_window_extent().y0 - tick_box.y0) / dots
            anchor = ax.transAxes + ScaledTranslation(0.0, -drop - 0.05, ax.figure.dpi_scale_trans)
            style |= {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "bbox_transform": anchor}
            if is_narrow(ax):
                # In a column of a paper it may reach below the name of the vertical axis, too.
                style |= {"loc": "upper right", "bbox_to_anchor": (1.0, 0.0)}
                width = (box.x1 - ax.get_tightbbox().x0) / dots
        for columns in (3, 2, 1) if place == "below" else (2, 1):
            legend = ax.legend(handles, labels, ncols=columns, **style)
            if legend.get_window_extent().width / dots <= width:
                break


def log_ticks(ax: Axes) -> None:
    """Set ticks of a horizontal logarithmic scale that do not touch: 1, 2, 5, or 1, 3, or powers of ten alone.

    ax : finished axes, whose limits and size decide.

    >>> ax = axes_or_new(None, 5.0, 3.0)
    >>> ax.set(xscale="log", xlim=(1, 10)), log_ticks(ax)  # doctest: +ELLIPSIS
    ([...], None)
    >>> [label.get_text() for label in ax.get_xticklabels() if 1 <= label.get_position()[0] <= 10]
    ['1', '2', '5', '10']
    """
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = ax.get_xlim()
    decades = float(np.log10(high) - np.log10(low))
    inches = ax.get_window_extent().width / ax.figure.dpi
    choices = ((1.0, 2.0, 5.0), (1.0, 3.0))
    subs = next((choice for choice in choices if len(choice) * decades <= 2 * inches), (1.0,))
    ax.xaxis.set_major_locator(LogLocator(subs=subs, numticks=max(3, int(1.4 * inches))))
    ax.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}" if 1000 <= x < 1e9 else f"{x:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())


def picture(ax: Axes, kind: str = "png") -> bytes:
    """Encode the figure of `ax` as a png, svg, pdf or pgf file.

    The same figure gives the same bytes.

    ax : matplotlib axes. kind : "png" (200 dots an inch), "svg", "pdf", or "pgf" for LaTeX, which needs LaTeX itself.
    `InvalidInput` for others, and for "pgf" without LaTeX.

    >>> from ldpopt.plots import channel
    >>> picture(channel([[0.7, 0.3], [0.3, 0.7]]))[1:4]
    b'PNG'
    """
    if kind not in FORMATS:
        raise invalid("picture", f"one of the formats {', '.join(FORMATS)}", Phrase(kind or "none"))
    latex = _latex_settings(kind)
    import matplotlib as mpl

    from ldpopt.plots.paper import TRUETYPE

    dates = {"png": "Software", "svg": "Date", "pdf": "CreationDate"}
    metadata: dict[str, Any] = {"metadata": {dates[kind]: None}} if kind in dates else {}
    out = io.BytesIO()
    set_fonts(ax.figure)
    with mpl.rc_context({"svg.hashsalt": "ldpopt", **TRUETYPE, **latex}), _cells_as_vectors(ax.figure, kind):
        try:
            ax.figure.savefig(out, format=kind, dpi=DOTS_PER_INCH, **metadata)
        except ValueError as error:
            if latex and "measuring" in str(error):
                letters = f"in letters that {latex['pgf.texsystem']} knows"
                raise InvalidInput(rf"pgf: labels must be without \ & # $ ~, {letters} (pdf takes all)") from None
            raise
    if not latex:
        return out.getvalue()
    lines = out.getvalue().decode().splitlines(keepends=True)
    return _in_math("".join(line for line in lines if not line.startswith("%%   "))).encode()


def _latex_settings(kind: str) -> dict[str, Any]:
    """The settings with which a pgf picture is measured: by the user's LaTeX, or by another that is installed."""
    if kind != "pgf":
        return {}
    import matplotlib as mpl

    programs = list(dict.fromkeys((str(mpl.rcParams["pgf.texsystem"]), "xelatex", "pdflatex")))
    program = next((name for name in programs if shutil.which(name)), None)
    if program is None:
        expected = f"LaTeX ({', '.join(programs)}), which measures the letters (pdf needs none)"
        raise invalid("pgf", expected, Phrase("none installed"))
    if program != "pdflatex":
        return {"pgf.texsystem": program}
    declarations = "".join(rf"\DeclareUnicodeCharacter{{{ord(letter):04X}}}{{{_in_math(letter)}}}" for letter in MATH)
    preamble = rf"{mpl.rcParams['pgf.preamble']}\usepackage[T1]{{fontenc}}{declarations}"
    return {"pgf.texsystem": program, "pgf.preamble": preamble}


def _in_math(code: str) -> str:
    """Code that every LaTeX sets: letters that pdflatex does not know in text stand in formulas."""
    return re.sub(f"[{''.join(MATH)}]", lambda sign: rf"\ensuremath{{{MATH[sign[0]]}}}", code)


@contextmanager
def _cells_as_vectors(figure: Any, kind: str) -> Iterator[None]:
    """Cells of matrices and colour bars as rectangles while a pgf picture is written, which holds no pixels."""
    axes = figure.axes if kind == "pgf" else []
    images, meshes = [image for ax in axes for image in ax.images], []
    pixels = [cells for ax in axes for cells in ax.collections if cells.get_rasterized()]
    for cells in pixels:
        cells.set_rasterized(False)
    for image in images:
        values = image.get_array()
        edges = [[cell - 0.5 for cell in range(size + 1)] for size in values.shape[::-1]]
        meshes.append(image.axes.pcolormesh(*edges, values, cmap=image.cmap, norm=image.norm, zorder=image.zorder))
        image.set_visible(False)
    try:
        yield
    finally:
        for image, mesh in zip(images, meshes, strict=True):
            mesh.remove()
            image.set_visible(True)
        for cells in pixels:
            cells.set_rasterized(True)


def require_latex(kind: str) -> None:
    """Require LaTeX for a pgf figure, since it measures the letters; raise `InvalidInput` without."""
    _latex_settings(kind)


def utility_name(utility: Any) -> str:
    """Return the name of a utility, with "nats" if it has a logarithm.

    >>> from ldpopt import MutualInformation
    >>> utility_name(MutualInformation([0.6, 0.4]))
    'mutual information (nats)'
    """
    f = getattr(utility, "f", None)
    if isinstance(f, FDivergence):
        return f.name + (" (nats)" if f.in_nats else "")
    return f"{utility.name} (nats)" if isinstance(utility, MutualInformation) else str(utility.name)


def draw_colorbar(image: Any, axes: Any, label: str, **options: Any) -> Any:
    """Draw a color scale as high as the adjacent axes, and return it.

    image : the cells. axes : one of them, or a list of those that share the scale. label : its name.
    """
    first = axes[0] if isinstance(axes, list) else axes
    width, height = inches_of(first)
    bar = first.figure.colorbar(
        image, ax=axes, fraction=0.06, pad=0.02, aspect=height / max(0.03 * width, 0.06), **options
    )
    bar.set_label(label)
    bar.outline.set_visible(False)
    return bar


def scale_colors(shares: Any, name: str = "viridis") -> list[Any]:
    """Return colors of an ordered scale at `shares` in [0, 1], without its palest end."""
    from matplotlib import colormaps

    return list(colormaps[name](0.82 * shares))


def text_color(colour: Any) -> str:
    """Return "black" or "white", the one that is easier to read on an RGBA `colour`."""
    red, green, blue = (float(part) for part in colour[:3])
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.55 else "white"
