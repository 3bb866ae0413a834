"""Text, tables, estimates and pictures to HTML pages: one file, light or dark, which loads nothing else."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

_STYLE = """
:root { color-scheme: light dark; }
:root { --paper: #fff; --ink: #1c2430; --soft: #5b6675; --line: #dde2e8; --tint: #f5f7f9; --accent: #0b5a8f; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14181e; --ink: #e7ebf0; --soft: #a9b4c0; --line: #36404c; --tint: #222933; --accent: #7cc0f0; }
  img { background: #fff; border-radius: 6px; padding: 6px; }
}
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: var(--paper); }
body { font: 16px/1.55 system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
main { max-width: 68rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .6rem; }
h2 { font-size: 1.35rem; margin: 3rem 0 .6rem; padding-top: 1.2rem; border-top: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 2rem 0 .4rem; }
p, li { max-width: 46rem; }
.lead { font-size: 1.1rem; }
.soft { overflow-wrap: anywhere; }
.soft, figcaption, caption { color: var(--soft); font-size: .9rem; }
caption { text-align: left; padding-bottom: .4rem; max-width: 46rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: .8rem 0 1.2rem; font-variant-numeric: tabular-nums; font-size: .92rem; }
th, td { padding: .32rem .8rem .32rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
thead th { border-bottom: 2px solid var(--ink); vertical-align: bottom; line-height: 1.25; }
td.number, th.number { text-align: right; }
td.number { white-space: nowrap; }
thead th { max-width: 8.5rem; }
thead td { border-bottom: 2px solid var(--ink); }
tbody th { font-weight: 500; overflow-wrap: anywhere; min-width: 6rem; max-width: 22rem; }
.intervals { width: 100%; }
.intervals tbody td, .intervals tbody th { vertical-align: middle; }
.intervals tfoot td { border: 0; padding-top: 0; }
td.chart { width: 45%; min-width: 9rem; padding: 0; }
svg.interval { display: block; width: 100%; height: 1.9rem; overflow: visible; }
svg.interval .grid { stroke: var(--line); stroke-width: 1; }
svg.interval .zero { stroke: var(--soft); stroke-width: 1; }
svg.interval .reach { stroke: var(--accent); stroke-width: 3; stroke-linecap: round; opacity: .65; }
svg.interval circle { fill: var(--accent); }
svg.interval text { fill: var(--soft); font-size: .78rem; text-anchor: middle; }
figure { margin: 1rem 0 1.6rem; }
img { max-width: 100%; height: auto; }
details { border-bottom: 1px solid var(--line); padding: .5rem 0; }
summary { cursor: pointer; font-weight: 600; }
summary span { font-weight: 400; color: var(--soft); }
a { color: var(--accent); }
code { background: var(--tint); padding: .1em .3em; border-radius: 3px; font-size: .9em; }
@media (max-width: 40rem) {
  main { padding: 1.2rem .9rem 3rem; }
  h1 { font-size: 1.5rem; overflow-wrap: anywhere; }
  h2 { font-size: 1.2rem; margin-top: 2.2rem; overflow-wrap: anywhere; }
  table { font-size: .84rem; }
  th, td { padding-right: .55rem; }
  .intervals thead { display: none; }
  .intervals tr { display: grid; grid-template-columns: minmax(0, 1fr) auto auto auto; align-items: baseline; }
  .intervals tbody td, .intervals tbody th { border: 0; padding-bottom: 0; min-width: 0; }
  .intervals, .intervals tbody, .intervals tfoot { display: block; }
  .intervals td.chart { grid-column: 1 / -1; width: auto; border-bottom: 1px solid var(--line); }
  .intervals caption { display: block; }
  figure { overflow-x: auto; }
  img { max-width: none; width: 38rem; }
  .intervals tfoot td:first-child { display: none; }
  .intervals td.number:nth-of-type(2)::before { content: "from "; color: var(--soft); }
  .intervals td.number:nth-of-type(3)::before { content: "to "; color: var(--soft); }
}
@media print {
  :root { color-scheme: light; --paper: #fff; --ink: #000; --soft: #444; }
  :root { --line: #bbb; --tint: #fff; --accent: #0b5a8f; }
  body { font-size: 10.5pt; }
  main { max-width: none; padding: 0; }
  h2, h3 { break-after: avoid; }
  tr, figure, svg, img { break-inside: avoid; }
  thead { display: table-header-group; }
  .scroll { overflow: visible; }
  img { background: none; padding: 0; max-height: 18cm; width: auto; }
  svg, svg * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""


def page(title: str, body: Iterable[str], head: str = "") -> str:
    """A whole page. `title` is text; `body` and `head` (more of the page's head) are finished HTML."""
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"{head}"
        f"<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n" + "\n".join(body) + "\n</main>\n</body>\n</html>\n"
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "", numbers: Sequence[int] = ()) -> str:
    """A table of text cells, which are escaped here. The columns at the positions `numbers` are aligned to the right.

    The first cell of a row is its header, unless it is a number.

    >>> table(["a"], [["1 < 2"]])[-67:]
    '<tbody><tr><th scope="row">1 &lt; 2</th></tr></tbody></table></div>'
    """

    def cells(row: Sequence[str], head: bool) -> str:
        made = []
        for at, cell in enumerate(row):
            tag = "th" if head or (at == 0 and 0 not in numbers) else "td"
            scope = "" if tag == "td" else ' scope="col"' if head else ' scope="row"'
            kind = ' class="number"' if at in numbers else ""
            made.append(f"<{tag}{scope}{kind}>{escape(cell)}</{tag}>")
        return "".join(made)

    body = "".join(f"<tr>{cells(row, False)}</tr>" for row in rows)
    named = f"<caption>{escape(caption)}</caption>" if caption else ""
    top = f"<thead><tr>{cells(head, True)}</tr></thead>"
    return f'<div class="scroll" tabindex="0"><table>{named}{top}<tbody>{body}</tbody></table></div>'


def embed(png: bytes, description: str, caption: str = "") -> str:
    """A PNG picture of 200 dots an inch inside the page, no larger than it was drawn.

    `description` is for readers who cannot see the picture. Without bytes the page has only the description.
    """
    said = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    if not png:
        return f'<figure tabindex="0"><img alt="{escape(description)}">{said}</figure>'
    width = round(int.from_bytes(png[16:20]) / 200 * 96)  # the width field of the PNG header
    source = f"data:image/png;base64,{b64encode(png).decode('ascii')}"
    return f'<figure tabindex="0"><img src="{source}" alt="{escape(description)}" width="{width}">{said}</figure>'


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
