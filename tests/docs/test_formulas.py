"""Formulas of docstrings become LaTeX on the pages of the reference, and nothing else does."""

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs" / "_ext"))
from api_pages import pages
from docstrings import markdown
from formulas import formulas
from plain_latex import plain

sys.path.pop(0)

pytestmark = pytest.mark.full


@pytest.mark.parametrize(
    ("said", "drawn"),
    [
        ("(epsilon, delta)-DP implies eta <= 1", r"$(\varepsilon, \delta)$-DP implies $\eta \le 1$"),
        ("sum_y q_y f(p_y / q_y), with f(1) = 0.", r"$\sum_{y} q_{y} f (p_{y} / q_{y})$, with $f (1) = 0$."),
        ("odds e^epsilon + 1", r"odds $e^{\varepsilon} + 1$"),
        ("e^(2 epsilon) apart", r"$e^{2 \varepsilon}$ apart"),
        ("D(P0 || P1) > 0", r"$D (P_0 \Vert P_1) > 0$"),
        ("rho = xi + sqrt(4 rho log(1/delta))", r"$\rho = \xi + \sqrt{4 \rho \log (1 / \delta)}$"),
        ("min{2, e^epsilon}", r"$\min \{2, e^{\varepsilon}\}$"),
        ("m0^s m1^(1-s)", r"$m_0^{s} m_1^{1 - s}$"),
        ("t > 0 on (0, inf)", r"$t > 0$ on (0, inf)"),
        ("eta-TV channels", r"$\eta$-TV channels"),
        ("xi_hat + rho", r"$\hat{\xi} + \rho$"),
    ],
)
def test_a_formula_is_drawn(said, drawn):
    """Greek names, relations, powers, indices and fractions become LaTeX; the words around them stay."""
    assert "".join(f"${piece}$" if formula else piece for piece, formula in formulas(said)) == drawn


@pytest.mark.parametrize(
    "said",
    [
        "shape (k, m), in [0, 1]", "k x k", "[GI, Thm 5]", "[M, Def 4; DR, eq. 3-4]", "one's own, e.g. a list",
        "and/or", "I have a plan.", "0..k-1", "an f-divergence", "t^order",
    ],
)  # fmt: skip
def test_text_without_formulas_is_unchanged(said):
    """Shapes, citations, words and names of more letters are left alone."""
    assert not any(formula for _, formula in formulas(said))


def test_code_is_left_alone():
    """What is between backquotes is code, and examples are code."""
    made = markdown("With `epsilon` and epsilon <= 1.\n\n>>> epsilon = 1")
    assert made == "With `epsilon` and $\\varepsilon \\le 1$.\n\n```pycon\n>>> epsilon = 1\n```"


def test_every_formula_of_the_reference_can_be_drawn_and_quoted():
    """Braces close, no symbol has two indices or two powers side by side, and the search quotes it without LaTeX."""
    found = {one for page in pages().values() for one in re.findall(r"(?<![\\$`])\$([^$\n`]+?)\$", page)}
    assert len(found) > 300
    for formula in found:
        bare = formula.replace(r"\{", "").replace(r"\}", "")
        assert bare.count("{") == bare.count("}"), formula
        assert not re.search(r"_\{\w*\}_|\^\{\w*\}\^|_\d_|'\^", bare), formula
        assert not set(plain(formula)) & set("\\{}$"), formula


def test_an_entry_has_the_headings_of_the_field():
    """Parameters with linked types, what is raised, and examples, each under its heading."""
    page = pages()["ldpopt.design.optimal_channel.md"]
    assert "**Parameters**\n\n- `utility` ({py:obj}`~ldpopt.design.Utility`): " in page
    assert "`neighbor` ({py:obj}`~ldpopt.design.Design` or none): " in page
    assert page.count("**Examples**") == 1
    page = pages()["ldpopt.composition.k_fold.md"]
    assert "**Returns** {py:obj}`KFold <ldpopt.composition.KFold>`: The deltas" in page
    assert "**Raises** {py:obj}`InvalidInput <ldpopt.errors.InvalidInput>`: If a value" in page
    assert "unless these hold:\n\n- `count`: an integer" in page
