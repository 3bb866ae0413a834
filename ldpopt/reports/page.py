"""Text, tables, estimates and pictures to HTML pages: one file, light or dark, which loads nothing else.

Pages are Jinja templates in `templates/`, where everything that is not markup by type is escaped.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup


@cache
def _templates(package: str) -> Environment:
    """The templates of a package, which may build on those of this one."""
    loaders = [PackageLoader(name) for name in dict.fromkeys((package, "ldpopt.reports"))]
    made = Environment(
        loader=ChoiceLoader(loaders),
        autoescape=lambda name: not str(name).endswith(".code"),  # programs, whose values are written by `repr`
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    made.globals |= {"embed": embed, "interval_table": interval_table, "table": table}
    return made


def render(
    template: str,
    package: str = "ldpopt.reports",
    filters: Mapping[str, Callable[..., Any]] | None = None,
    **values: Any,
) -> str:
    """The text that a template of `package` makes of these values and filters; in pages text among them is escaped."""
    _templates(package).filters.update(filters or {})
    return _templates(package).get_template(template).render(**{"marks": ()} | values).rstrip("\n") + "\n"


def part(template: str, name: str, *values: Any) -> Markup:
    """What the macro `name` of a template makes of these values, in which text is escaped."""
    made: Markup = getattr(_templates("ldpopt.reports").get_template(template).module, name)(*values)
    return made


def page(title: str, body: Iterable[str]) -> str:
    """A whole page. `title` is text; `body` is finished HTML."""
    return render("page.html", title=title, body=Markup("\n".join(body)))


def table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "", numbers: Sequence[int] = ()) -> Markup:
    """A table of text cells, which are escaped here. The columns at the positions `numbers` are aligned to the right.

    The first cell of a row is its header, unless it is a number.

    >>> table(["a"], [["1 < 2"]])[-67:]
    Markup('<tbody><tr><th scope="row">1 &lt; 2</th></tr></tbody></table></div>')
    """
    return part("parts.html", "table", head, rows, caption, numbers)


def embed(png: bytes, description: str, caption: str = "") -> Markup:
    """A PNG picture of 200 dots an inch inside the page, no larger than it was drawn.

    `description` is for readers who cannot see the picture. Without bytes the page has only the description.
    """
    width = round(int.from_bytes(png[16:20]) / 200 * 96)  # the width field of the PNG header
    source = f"data:image/png;base64,{b64encode(png).decode('ascii')}" if png else ""
    return part("parts.html", "figure", source, width, description, caption)


def interval_table(labels: Sequence[str], values: Any, lower: Any, upper: Any, caption: str, percent: str) -> Markup:
    """A table with a row for every answer: name, estimate, interval, and the interval drawn on a common scale.

    labels, values, lower, upper : (k,) shares. percent : the level of the intervals, as in "95 %". Returns HTML.

    >>> made = interval_table(["no"], [0.4], [0.3], [0.5], "demo", "95 %")
    >>> 'aria-label="no: 40.00 %, from 30.00 % to 50.00 %"' in made, "<img" in made
    (True, False)
    """
    values, lower, upper = (np.asarray(one, dtype=np.float64) for one in (values, lower, upper))
    low, step, count = _scale(min(0.0, float(lower.min())), float(max(upper.max(), values.max())))

    def place(share: float) -> str:
        return f"{4 + 92 * (share - low) / (step * count):.2f}%"

    rows = []
    for label, value, start, end in zip(labels, values, lower, upper, strict=True):
        shown = [f"{100 * share:.2f} %" for share in (value, start, end)]
        said = f"{label}: {shown[0]}, from {shown[1]} to {shown[2]}"
        ends = {"start": place(start), "end": place(end), "at": place(value)}
        rows.append({"label": label, "shown": shown, "said": said, **ends})
    shares = [low + step * at for at in range(count + 1)]
    grid = [("zero" if abs(share) < 1e-12 else "grid", place(share)) for share in shares]
    zero, every = round(-low / step), max(1, math.ceil((count + 1) / 4))
    ticks = [
        (f"{round(100 * share, 6):g}", place(share)) for at, share in enumerate(shares) if (at - zero) % every == 0
    ]
    return part("parts.html", "intervals", rows, grid, ticks, caption, percent)


def _scale(low: float, high: float) -> tuple[float, float, int]:
    """The start of a scale, its step, and the number of steps. A step is 1, 2 or 5 times a power of ten."""
    span = max(high - low, 1e-6)
    raw = span / 4
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(size * power for size in (1, 2, 5, 10) if size * power >= raw * (1 - 1e-12))
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    return first * step, step, max(1, last - first)
