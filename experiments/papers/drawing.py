"""Figures of experiments: panels made of layers, each declared by the columns that it shows.

A column is named, or is a ratio of two (``"claimed / exact"``), or a function of the rows. Labels and titles
may name cells of their rows, as in ``"ε = {epsilon:g}"``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from experiments.papers.experiment import Table
from ldpopt.plots import Axes, inches_of, label_axes, label_text, log_ticks, panels, put_legend
from ldpopt.values.distribution import Array

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""The Okabe-Ito palette: colour-blind readers can tell these apart."""
DASH_PATTERNS = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), "-")

Values: TypeAlias = str | Array | Callable[[Table], Array]
Layer: TypeAlias = Callable[[Axes, Table], object]
Words: TypeAlias = str | Callable[[Table], str]


COLUMN_WIDTH, TEXT_WIDTH = 3.4, 7.0
"""The widths of a column and of the text of a paper, in inches."""
LETTER_WIDTH = 0.007
"""The mean width of a letter in inches for each point of its size."""
LEAST_HEIGHT = 1.9
"""The height in inches that the data of each part of a picture have at least, beside titles, names and legends."""


def frames(count: int, height: float = 3.0) -> list[Axes]:
    """Build axes on one new figure as wide as a column of a paper, or several as wide as its text.

    Up to three are side by side, others in rows of two. height : of a row, in inches.
    """
    width = COLUMN_WIDTH if count == 1 else TEXT_WIDTH
    if count <= 3:
        return panels((width / count,) * count, height)
    figure = panels((width,), height * math.ceil(count / 2))[0].figure
    figure.clear()
    return [figure.add_subplot(math.ceil(count / 2), 2, place + 1) for place in range(count)]


def line(ax: Axes, x: Any, y: Any, number: int, label: str = "", **style: Any) -> None:
    """Draw curve number `number` of a picture.

    Each number has its colour and its dashes, so that either identifies the curve.
    """
    ax.plot(x, y, **{"color": COLOURS[number % 7], "ls": DASH_PATTERNS[number % 7], "lw": 1.3, "label": label} | style)


def finish(
    ax: Axes, title: str, x: str, y: str, legend: str = "below", scale: Sequence[str] = (), **limits: Any
) -> None:
    """Add texts, grid and legend in the sizes of print.

    - `legend` : a place as for `plots.put_legend`.
    - `scale` : holds "x", "y" or both for logarithmic axes, "2" for x to base 2.
    - `limits` : as in matplotlib's ``Axes.set``.
    """
    from matplotlib.ticker import LogLocator, NullFormatter

    if "x" in scale or "2" in scale:
        ax.set_xscale("log", **({"base": 2} if "2" in scale else {}))
    if "y" in scale:
        ax.set_yscale("log", nonpositive="mask")
    ax.set(**limits)
    ax.set_title(title, fontsize=8, loc="left")
    label_axes(ax, x, y, grid="both")
    ax.tick_params(which="both", labelsize=7)
    ax.xaxis.label.set_fontsize(8)
    ax.yaxis.label.set_fontsize(8)
    width = inches_of(ax)[0]
    ax.set_title(label_text(title, int(width / (LETTER_WIDTH * 8))), fontsize=8, loc="left")
    low, high = ax.get_xlim()
    if "x" in scale and high < 1000 * low:
        log_ticks(ax)
    low, high = ax.get_ylim()
    if "y" in scale and high < 100 * low:
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter(NullFormatter())
    put_legend(ax, legend, *ax.get_legend_handles_labels(), size=7)


def fit_height(axes: Sequence[Axes]) -> None:
    """Set the height of the figure of finished axes so that their data have at least `LEAST_HEIGHT`."""
    figure = axes[0].figure
    missing = LEAST_HEIGHT - min(inches_of(ax)[1] for ax in axes)
    if missing > 0:
        width, height = figure.get_size_inches()
        rows = axes[0].get_subplotspec().get_gridspec().nrows
        figure.set_size_inches(width, height + rows * missing)


def values(rows: Table, quantity: Values) -> Array:
    """Return the numbers that a layer shows."""
    # A column, ``"a / b"`` for a ratio of two, a function of the rows, or given numbers.
    if not isinstance(quantity, str):
        return quantity(rows) if callable(quantity) else quantity
    with np.errstate(divide="ignore"):  # infinite values are not drawn
        return rows.values(quantity)


def curves(
    x: Values, y: Values | Mapping[str, tuple[str, str]], label: Words = "", *, by: Sequence[str] = (), first: int = 0,
    where: Mapping[str, Any] | None = None, max_curves: int = 100, **style: Any,
) -> Layer:  # fmt: skip
    """Build curves of y against x, one for each combination of the cells `by`.

    They are numbered from `first` on.

    - `y` : several columns, with (word, dashes), share a curve's color; the label takes the word at ``{}``.
    - `where` : the rows shown, as in `Table.where`.
    - `max_curves` : largest number of curves, evenly chosen.
    - `style` : as for `Axes.plot`.
    """
    several = {y: ("", "")} if not isinstance(y, Mapping) else y

    def draw(ax: Axes, table: Table) -> None:
        groups = [rows for _, rows in table.where(**where or {}).groups(*by)]
        chosen = dict.fromkeys(np.linspace(0, len(groups) - 1, min(max_curves, len(groups))).astype(int).tolist())
        for number, rows in enumerate((groups[i] for i in chosen), start=first):
            for column, (word, dashes) in several.items():
                dash_style = {"ls": dashes} if dashes else {}
                line(ax, values(rows, x), values(rows, column), number, _text(label, rows, word), **dash_style, **style)

    return draw


def marks(
    x: Values, y: Values, label: Words = "", mark: str = "o", *, by: Sequence[str] = (), spread: float = 0.0,
    where: Mapping[str, Any] | None = None, **style: Any,
) -> Layer:  # fmt: skip
    """Build unfilled marks at (x, y): grey, or one color and mark for each combination of cells `by`."""

    def draw(ax: Axes, table: Table) -> None:
        for number, (_, rows) in enumerate(table.where(**where or {}).groups(*by)):
            looks = {"color": COLOURS[number % 7] if by else "0.2", "ms": 3, "mfc": "none", "ls": ""}
            labelled = {"marker": mark[number % len(mark)], "label": _text(label, rows)}
            ax.plot(values(rows, x) + spread * number, values(rows, y), **looks | labelled | style)

    return draw


def level(height: float = 1.0, label: str = "", **style: Any) -> Layer:
    """Build a horizontal line."""
    return lambda ax, _: ax.axhline(height, **{"color": "0.4", "lw": 1, "label": label or None} | style)


def key(label: str, **style: Any) -> Layer:
    """Build an entry of the legend alone, as in matplotlib's ``plot``."""
    return lambda ax, _: ax.plot([], [], **{"label": label} | style)


def diagonal(
    label: str, low: Values, high: Values, low_factor: float = 1.0, high_factor: float = 1.0, **style: Any
) -> Layer:
    """Build the line y = x from the smallest of `low` to the largest of `high`, each times a factor."""

    def draw(ax: Axes, table: Table) -> None:
        both = [low_factor * values(table, low).min(), high_factor * values(table, high).max()]
        ax.plot(both, both, **{"color": "0.6", "lw": 1, "label": label} | style)

    return draw


def formula(
    f: Callable[[Array], Any], over: Values | tuple[float, float], label: str = "", number: int | None = None,
    count: int = 100, space: Callable[..., Array] = np.geomspace, **style: Any,
) -> Layer:  # fmt: skip
    """Build the curve of a function, over the range of a column or between two numbers.

    number : the curve's number, as in `line`; grey without one.
    """

    def draw(ax: Axes, table: Table) -> None:
        between = over if isinstance(over, tuple) else (values(table, over).min(), values(table, over).max())
        x = space(*between, count)
        looks = {"color": "0.4", "ls": "-", "lw": 1.2} if number is None else {}
        line(ax, x, f(x), number or 0, label, **looks | style)

    return draw


Panel: TypeAlias = Callable[[Table], list[tuple[Table, Callable[[Axes, Table], None]]]]
"""From the rows of an experiment to the rows of each part of its picture, with what draws them."""


def panel(
    title: Words, x: Words, y: Words, *layers: Layer, legend: str = "below", scale: str = "",
    where: Mapping[str, Any] | None = None, repeat_by: str = "", last: int | None = None, **limits: Any,
) -> Panel:  # fmt: skip
    """Build a part of a figure: layers with texts.

    - `title`, `x`, `y`, `legend`, `scale` : as in `finish`.
    - `where` : the rows shown.
    - `repeat_by` : a cell, to repeat the panel for each of its values, or for the `last` ones.
    - `limits` : as in matplotlib's ``Axes.set``, or functions of the axes to these.
    """

    def draw(ax: Axes, rows: Table) -> None:
        for layer in layers:
            layer(ax, rows)
        set_limits = {name: limit(ax) if callable(limit) else limit for name, limit in limits.items()}
        finish(ax, _text(title, rows), _text(x, rows), _text(y, rows), legend, scale, **set_limits)

    def parts(table: Table) -> list[tuple[Table, Callable[[Axes, Table], None]]]:
        rows = table.where(**where or {})
        return [
            (part, draw)
            for part in ([part for _, part in rows.groups(repeat_by)][-(last or 0) :] if repeat_by else [rows])
        ]

    return parts


def picture(*chosen_panels: Panel) -> Callable[[Table], Any]:
    """Build the `draw` of an experiment: panels as wide as a column of a paper, or together as wide as its text."""

    def draw(table: Table) -> Any:
        parts = [part for panel in chosen_panels for part in panel(table)]
        axes = frames(len(parts))
        for ax, (rows, layers) in zip(axes, parts, strict=True):
            layers(ax, rows)
        fit_height(axes)
        return axes[0]

    return draw


def _text(words: Words, rows: Table, *insertions: str) -> str:
    if callable(words):
        return words(rows)
    return words.format(*insertions, **rows.rows[0]) if "{" in words else words
