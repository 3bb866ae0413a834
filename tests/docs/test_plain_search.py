"""What the search of the site quotes: formulas as text, never as LaTeX."""

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs" / "_ext"))
from plain_latex import plain

sys.path.pop(0)

pytestmark = pytest.mark.full

DOCS = Path(__file__).resolve().parents[2] / "docs"

FORMULA = re.compile(r"(?<![\\$`])\$([^$`]+?)\$(?!\$)|\$\$(.+?)\$\$", re.DOTALL)


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"\(\varepsilon\)", "ε"),
        (r"\eta \le \tanh(\varepsilon/2)", "η ≤ tanh(ε/2)"),
        (r"\tfrac12 \sum_y \lvert p_y - q_y\rvert", "1/2 ∑_y | p_y - q_y|"),
        (r"\frac{E-1}{E+m-1}", "(E-1)/(E+m-1)"),
        (r"\mathrm{OPT}(\varepsilon, \eta)", "OPT(ε, η)"),
    ],
)
def test_formulas_become_plain_text(latex, text):
    """Greek letters, relations and fractions read as on the page."""
    assert plain(latex) == text


def test_no_formula_of_the_pages_keeps_a_backslash():
    """Whatever LaTeX the pages hold, nothing of its writing is left."""
    found = 0
    for page in [
        page
        for folder in ("explanation", "how-to", "reference", "tutorials")
        for page in DOCS.glob(f"{folder}/**/*.md")
    ]:
        for one, other in FORMULA.findall(re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)):
            found += 1
            assert not set(plain(one or other)) & set("\\{}$"), (page.name, one or other)
    assert found > 300
