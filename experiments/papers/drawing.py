"""Rows of an experiment -> its picture: panels made of layers, each declared by the columns that it shows.

A column is named, or a ratio of two (``"claimed / exact"``), or what a function makes of the rows. Labels and titles
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
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), "-")

Values: TypeAlias = str | Array | Callable[[Table], Array]
Layer: TypeAlias = Callable[[Axes, Table], object]
Words: TypeAlias = str | Callable[[Table], str]


def frames(count: int, width: float = 5.2, height: float = 4.0) -> list[Axes]:
    """Axes side by side on one new figure."""
    return panels((width,) * count, height)


def line(ax: Axes, x: Any, y: Any, number: int, label: str = "", **more: Any) -> None:
    """Draw curve number `number` of a picture.

    Each number has its colour and its dashes, so that either identifies the curve.
    """
    ax.plot(x, y, **{"color": COLOURS[number % 7], "ls": LINES[number % 7], "lw": 1.8, "label": label} | more)


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


def values(rows: Table, what: Values) -> Array:
    """The numbers that a layer shows: a column, ``"a / b"`` for a ratio of two, a function of the rows, or given."""
    if not isinstance(what, str):
        return what(rows) if callable(what) else what
    with np.errstate(divide="ignore"):  # what is infinite is not drawn
        return rows.values(what)


def curves(
    x: Values, y: Values | Mapping[str, tuple[str, str]], label: Words = "", *, by: Sequence[str] = (), first: int = 0,
    where: Mapping[str, Any] | None = None, most: int = 100, **style: Any,
) -> Layer:  # fmt: skip
    """Curves of y against x, one for each combination of the cells `by`, numbered from `first` on.

    y : several columns, with (word, dashes), share a curve's colour; the label takes the word at ``{}``.
    where : the rows shown, as in `Table.where`. most : of the curves, evenly chosen. style : as for `Axes.plot`.
    """
    several = {y: ("", "")} if not isinstance(y, Mapping) else y

    def draw(ax: Axes, table: Table) -> None:
        groups = [rows for _, rows in table.where(**where or {}).groups(*by)]
        chosen = dict.fromkeys(np.linspace(0, len(groups) - 1, min(most, len(groups))).astype(int).tolist())
        for number, rows in enumerate((groups[i] for i in chosen), start=first):
            for what, (word, dashes) in several.items():
                own = {"ls": dashes} if dashes else {}
                line(ax, values(rows, x), values(rows, what), number, _text(label, rows, word), **own, **style)

    return draw


def marks(
    x: Values, y: Values, label: Words = "", mark: str = "o", *, by: Sequence[str] = (), spread: float = 0.0,
    where: Mapping[str, Any] | None = None, **style: Any,
) -> Layer:  # fmt: skip
    """Unfilled marks at (x, y): grey, or for each combination of the cells `by` a colour and mark, `spread` along x."""

    def draw(ax: Axes, table: Table) -> None:
        for number, (_, rows) in enumerate(table.where(**where or {}).groups(*by)):
            looks = {"color": COLOURS[number % 7] if by else "0.2", "ms": 4, "mfc": "none", "ls": ""}
            plain = {"marker": mark[number % len(mark)], "label": _text(label, rows)}
            ax.plot(values(rows, x) + spread * number, values(rows, y), **looks | plain | style)

    return draw


def level(height: float = 1.0, label: str = "", **style: Any) -> Layer:
    """A horizontal line."""
    return lambda ax, _: ax.axhline(height, **{"color": "0.4", "lw": 1, "label": label or None} | style)


def key(label: str, **style: Any) -> Layer:
    """An entry of the legend alone, as in matplotlib's ``plot``."""
    return lambda ax, _: ax.plot([], [], **{"label": label} | style)


def diagonal(label: str, low: Values, high: Values, below: float = 1.0, above: float = 1.0, **style: Any) -> Layer:
    """The line y = x from `below` times the least of `low` to `above` times the largest of `high`."""

    def draw(ax: Axes, table: Table) -> None:
        both = [below * values(table, low).min(), above * values(table, high).max()]
        ax.plot(both, both, **{"color": "0.6", "lw": 1, "label": label} | style)

    return draw


def formula(
    f: Callable[[Array], Any], over: Values | tuple[float, float], label: str = "", number: int | None = None,
    count: int = 100, space: Callable[..., Array] = np.geomspace, **style: Any,
) -> Layer:  # fmt: skip
    """The curve of a function, over the range of a column or between two numbers.

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
    where: Mapping[str, Any] | None = None, each: str = "", last: int | None = None, **limits: Any,
) -> Panel:  # fmt: skip
    """A part of a picture: layers with texts.

    title, x, y, legend, scale : as in `finish`. where : the rows shown. each : a cell, to repeat the panel for each of
    its values, or for the `last` ones. limits : as in matplotlib's ``Axes.set``, or functions of the axes to these.
    """

    def draw(ax: Axes, rows: Table) -> None:
        for layer in layers:
            layer(ax, rows)
        finish(ax, _text(title, rows), _text(x, rows), _text(y, rows), legend, scale)
        ax.set(**{name: limit(ax) if callable(limit) else limit for name, limit in limits.items()})

    def parts(table: Table) -> list[tuple[Table, Callable[[Axes, Table], None]]]:
        rows = table.where(**where or {})
        return [(part, draw) for part in ([part for _, part in rows.groups(each)][-(last or 0) :] if each else [rows])]

    return parts


def picture(*shown: Panel, width: float = 5.2, height: float = 4.0) -> Callable[[Table], Any]:
    """The `draw` of an experiment: panels side by side, each of this width and height in inches."""

    def draw(table: Table) -> Any:
        parts = [part for panel in shown for part in panel(table)]
        axes = frames(len(parts), width, height)
        for ax, (rows, layers) in zip(axes, parts, strict=True):
            layers(ax, rows)
        return axes[0]

    return draw


def _text(words: Words, rows: Table, *more: str) -> str:
    if callable(words):
        return words(rows)
    return words.format(*more, **rows.rows[0]) if "{" in words else words
