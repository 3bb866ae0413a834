"""Search that quotes formulas as plain text: ``ε ≤ 1``, where the source says ``\\varepsilon \\le 1``.

Sphinx indexes the source of a formula, and its search quotes that source. Here the index gets plain text, and each
formula of a page carries its plain text, which the search quotes (`_static/plain_search.js`).
"""

from __future__ import annotations

import html
import re
from typing import Any

from docutils import nodes
from plain_latex import plain
from sphinx.search import IndexBuilder

SPOKEN = {"ε": "epsilon", "η": "eta", "δ": "delta", "ρ": "rho", "μ": "mu", "τ": "tau", "α": "alpha", "χ": "chi"}
MATH = re.compile(r'(<(?:span|div) class="math notranslate nohighlight"[^>]*)>(.*?)</(?:span|div)>', re.DOTALL)


def without_latex(doctree: nodes.document) -> nodes.document:
    """A copy of a page whose formulas are text; Greek letters are there by name, too, for whoever types the name."""
    copy = doctree.deepcopy()
    for formula in list(copy.findall(lambda node: isinstance(node, (nodes.math, nodes.math_block)))):
        text = plain(formula.astext())
        if not _in_title(formula):
            text += "".join(f" {SPOKEN[sign]}" for sign in sorted(set(text) & set(SPOKEN)))
        formula.parent.replace(formula, nodes.Text(text))
    return copy


def _in_title(node: nodes.Node) -> bool:
    while node.parent is not None:
        node = node.parent
        if isinstance(node, nodes.title):
            return True
    return False


class PlainIndex(IndexBuilder):
    """The index of the search, of pages without LaTeX."""

    def feed(self, docname: str, filename: Any, title: str, doctree: nodes.document) -> None:
        """Index a page."""
        super().feed(docname, filename, plain(title) if "\\" in title else title, without_latex(doctree))


def carry_text(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Give each formula of a page its plain text, for the search to quote."""
    if "body" in context:
        context["body"] = MATH.sub(_with_text, context["body"])


def _with_text(found: re.Match[str]) -> str:
    text = html.escape(plain(html.unescape(found[2])), quote=True)
    return f'{found[1]} data-plain="{text}">{found[0][len(found[1]) + 1 :]}'


def setup(app: Any) -> dict[str, Any]:
    """Put the plain index in the place of Sphinx's."""
    import sphinx.builders.html

    sphinx.builders.html.IndexBuilder = PlainIndex
    app.connect("html-page-context", carry_text)
    app.add_js_file("plain_search.js", loading_method="defer", priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
