"""HTML pages that stand alone: one file, pictures inside, nothing fetched."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape

_STYLE = """
:root { color-scheme: light; --ink: #1c2430; --soft: #5b6675; --line: #dde2e8; --tint: #f5f7f9; --accent: #0b5a8f; }
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: #fff; }
body { font: 16px/1.55 system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
main { max-width: 68rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .6rem; }
h2 { font-size: 1.35rem; margin: 3rem 0 .6rem; padding-top: 1.2rem; border-top: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 2rem 0 .4rem; }
p, li { max-width: 46rem; }
.lead { font-size: 1.1rem; }
.soft, figcaption, caption { color: var(--soft); font-size: .9rem; }
caption { text-align: left; padding-bottom: .4rem; max-width: 46rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: .8rem 0 1.2rem; font-variant-numeric: tabular-nums; font-size: .92rem; }
th, td { padding: .32rem .8rem .32rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
thead th { border-bottom: 2px solid var(--ink); vertical-align: bottom; line-height: 1.25; }
td.number, th.number { text-align: right; }
td.number { white-space: nowrap; }
thead th { max-width: 8.5rem; }
figure { margin: 1rem 0 1.6rem; }
img { max-width: 100%; height: auto; }
details { border-bottom: 1px solid var(--line); padding: .5rem 0; }
summary { cursor: pointer; font-weight: 600; }
summary span { font-weight: 400; color: var(--soft); }
a { color: var(--accent); }
code { background: var(--tint); padding: .1em .3em; border-radius: 3px; font-size: .9em; }
"""


def page(title: str, body: Iterable[str], head: str = "") -> str:
    """A whole page; `title` is text, `body` and `head`, what else stands in the head, finished HTML."""
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"{head}"
        f"<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n" + "\n".join(body) + "\n</main>\n</body>\n</html>\n"
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "", numbers: Sequence[int] = ()) -> str:
    """A table of text cells, escaped here; the columns at the positions `numbers` are set right.

    >>> table(["a"], [["1 < 2"]])[-55:]
    '<tbody><tr><td>1 &lt; 2</td></tr></tbody></table></div>'
    """

    def cells(tag: str, row: Sequence[str]) -> str:
        return "".join(
            f'<{tag} class="number">{escape(cell)}</{tag}>' if at in numbers else f"<{tag}>{escape(cell)}</{tag}>"
            for at, cell in enumerate(row)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    named = f"<caption>{escape(caption)}</caption>" if caption else ""
    top = f"<thead><tr>{cells('th', head)}</tr></thead>"
    return f'<div class="scroll"><table>{named}{top}<tbody>{body}</tbody></table></div>'


def embed(png: bytes, description: str, caption: str = "") -> str:
    """A PNG picture of 150 dots an inch inside the page, no larger than it was drawn.

    `description` is for those who cannot see it. Without bytes the page has the description alone.
    """
    said = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    if not png:
        return f'<figure><img alt="{escape(description)}">{said}</figure>'
    width = round(int.from_bytes(png[16:20]) / 150 * 96)  # the width field of the PNG header
    source = f"data:image/png;base64,{b64encode(png).decode('ascii')}"
    return f'<figure><img src="{source}" alt="{escape(description)}" width="{width}">{said}</figure>'
