"""Estimates with their intervals as a table with bars, which the browser draws in any script, light or dark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np


def interval_table(labels: Sequence[str], values: Any, lower: Any, upper: Any, caption: str, percent: str) -> str:
    """A table with a row for every answer: name, estimate, interval, and the interval drawn on a common scale.

    labels, values, lower, upper : (k,) shares. percent : the level of the intervals, as in "95 %". Returns HTML.

    >>> made = interval_table(["no"], [0.4], [0.3], [0.5], "demo", "95 %")
    >>> 'aria-label="no: 40.00 %, from 30.00 % to 50.00 %"' in made, "<img" in made
    (True, False)
    """
    values, lower, upper = (np.asarray(one, dtype=np.float64) for one in (values, lower, upper))
    low, step, count = _scale(min(0.0, float(lower.min())), float(max(upper.max(), values.max())))
    reach = step * count

    def place(share: float) -> str:
        return f"{4 + 92 * (share - low) / reach:.2f}%"

    grid = "".join(
        f'<line class="{"zero" if abs(low + step * at) < 1e-12 else "grid"}" x1="{place(low + step * at)}" '
        f'x2="{place(low + step * at)}" y1="0" y2="100%"/>'
        for at in range(count + 1)
    )
    rows = []
    for label, value, start, end in zip(labels, values, lower, upper, strict=True):
        shown = [f"{100 * share:.2f} %" for share in (value, start, end)]
        said = f"{label}: {shown[0]}, from {shown[1]} to {shown[2]}"
        drawn = (
            f'<svg class="interval" role="img" aria-label="{escape(said)}">{grid}'
            f'<line class="reach" x1="{place(start)}" x2="{place(end)}" y1="50%" y2="50%"/>'
            f'<circle cx="{place(value)}" cy="50%" r="4.5"/></svg>'
        )
        cells = "".join(f'<td class="number">{one}</td>' for one in shown)
        rows.append(f'<tr><th scope="row" dir="auto">{escape(label)}</th>{cells}<td class="chart">{drawn}</td></tr>')
    zero, every = round(-low / step), max(1, math.ceil((count + 1) / 4))
    marks = [low + step * at for at in range(count + 1) if (at - zero) % every == 0]
    ticks = "".join(f'<text x="{place(mark)}" y="75%">{round(100 * mark, 6):g} %</text>' for mark in marks)
    axis = f'<svg class="interval" aria-hidden="true">{ticks}</svg>'
    head = "".join(
        f'<th scope="col"{kind}>{escape(name)}</th>'
        for name, kind in (("answer", ""), ("share", ' class="number"'), (f"{percent} from", ' class="number"'),
                           ("to", ' class="number"'))
    )  # fmt: skip
    return (
        f'<div class="scroll" tabindex="0"><table class="intervals"><caption>{escape(caption)}</caption>'
        f"<thead><tr>{head}"
        '<td class="chart"></td></tr></thead>'
        f'<tbody>{"".join(rows)}</tbody><tfoot><tr><td colspan="4"></td><td class="chart">{axis}</td></tr></tfoot>'
        "</table></div>"
    )


def _scale(low: float, high: float) -> tuple[float, float, int]:
    """The start of a scale, its step, and the number of steps. A step is 1, 2 or 5 times a power of ten."""
    span = max(high - low, 1e-6)
    raw = span / 4
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(size * power for size in (1, 2, 5, 10) if size * power >= raw * (1 - 1e-12))
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    return first * step, step, max(1, last - first)
