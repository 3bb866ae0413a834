"""Figures of experiments: panels made of layers, each declared by the columns that it shows.

A column is named, or is a ratio of two (``"claimed / exact"``), or a function of the rows. Labels and titles
may name cells of their rows, as in ``"ε = {epsilon:g}"``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from experiments.papers.experiment import Table
from ldpopt.plots import Axes, panels
from ldpopt.values.distribution import Array

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""The Okabe-Ito palette: colour-blind readers can tell these apart."""
DASH_PATTERNS = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), "-")

Values: TypeAlias = str | Array | Callable[[Table], Array]
Layer: TypeAlias = Callable[[Axes, Table], object]
Words: TypeAlias = str | Callable[[Table], str]


def frames(count: int, width: float = 5.2, height: float = 4.0) -> list[Axes]:
    """Build axes side by side on one new figure."""
    return panels((width,) * count, height)


def line(ax: Axes, x: Any, y: Any, number: int, label: str = "", **style: Any) -> None:
    """Draw curve number `number` of a picture.

    Each number has its colour and its dashes, so that either identifies the curve.
    """
    ax.plot(x, y, **{"color": COLOURS[number % 7], "ls": DASH_PATTERNS[number % 7], "lw": 1.8, "label": label} | style)


def finish(ax: Axes, title: str, x: str, y: str, legend: str | None = "best", scale: Sequence[str] = ()) -> None:
    """Add texts, grid and legend, and make axes logarithmic (`scale` holds "x", "y" or both, "2" for x to base 2)."""
    ax.set_title(title, fontsize=10.5, loc="left")
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    if "x" in scale or "2" in scale:
        ax.set_xscale("log", **({"base": 2} if "2" in scale else {}))
    if "y" in scale:
        ax.set_yscale("log", nonpositive="mask")
    ax.grid(alpha=0.25, lw=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    if legend is not None:
        ax.legend(fontsize=8.5, loc=legend, frameon=True, framealpha=0.85, edgecolor="none")


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
            looks = {"color": COLOURS[number % 7] if by else "0.2", "ms": 4, "mfc": "none", "ls": ""}
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
    title: Words, x: Words, y: Words, *layers: Layer, legend: str | None = "best", scale: str = "",
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
        finish(ax, _text(title, rows), _text(x, rows), _text(y, rows), legend, scale)
        ax.set(**{name: limit(ax) if callable(limit) else limit for name, limit in limits.items()})

    def parts(table: Table) -> list[tuple[Table, Callable[[Axes, Table], None]]]:
        rows = table.where(**where or {})
        return [
            (part, draw)
            for part in ([part for _, part in rows.groups(repeat_by)][-(last or 0) :] if repeat_by else [rows])
        ]

    return parts


def picture(*chosen_panels: Panel, width: float = 5.2, height: float = 4.0) -> Callable[[Table], Any]:
    """Build the `draw` of an experiment: panels side by side, each of this size in inches."""

    def draw(table: Table) -> Any:
        parts = [part for panel in chosen_panels for part in panel(table)]
        axes = frames(len(parts), width, height)
        for ax, (rows, layers) in zip(axes, parts, strict=True):
            layers(ax, rows)
        return axes[0]

    return draw


def _text(words: Words, rows: Table, *insertions: str) -> str:
    if callable(words):
        return words(rows)
    return words.format(*insertions, **rows.rows[0]) if "{" in words else words
