"""The two LaTeX papers: their sources hold together, their numbers are computed ones, and LaTeX sets them."""

import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
PAPERS = ROOT / "docs/papers"
NAMES = ("envelope", "questionnaires")
sys.path.append(str(ROOT / "docs/_ext"))

from latex_papers import links, title, typeset  # noqa: E402


def source(name):
    """The text of a paper with the tables and the numbers that it reads."""
    text = (PAPERS / f"{name}.tex").read_text("utf-8")
    return text + "".join(path.read_text("utf-8") for path in sorted((PAPERS / "figures").glob(f"{name}*.tex")))


@pytest.mark.parametrize("name", NAMES)
def test_every_reference_has_its_target(name):
    """Labels and literature: what is referred to exists once, and what is listed is cited."""
    text = source(name)
    labels, items = re.findall(r"\\label\{(.*?)\}", text), re.findall(r"\\bibitem\{(.*?)\}", text)
    cited = {key for keys in re.findall(r"\\cite(?:\[.*?\])?\{(.*?)\}", text) for key in keys.split(",")}
    assert len(set(labels)) == len(labels)
    assert set(re.findall(r"\\(?:eq)?ref\{(.*?)\}", text)) <= set(labels)
    assert cited == set(items)
    for path in re.findall(r"\\input\{(.*?)\}", text):
        assert (PAPERS / f"{path}.tex").exists()
    commands = set(re.findall(r"\\newcommand\{\\(.*?)\}", source(name)))
    assert all(rf"\{command}" in (PAPERS / f"{name}.tex").read_text("utf-8") for command in commands)


@pytest.mark.parametrize("name", NAMES)
def test_figures_have_truetype_fonts(name):
    """No bitmap font (type 3), which journals refuse."""
    figures = re.findall(r"\\includegraphics\[.*?\]\{(.*?)\}", source(name))
    assert figures
    for figure in figures:
        data = (PAPERS / "figures" / f"{figure}.pdf").read_bytes()
        assert b"/CIDFontType2" in data
        assert b"/Type3" not in data


@pytest.fixture(scope="module")
def scripts():
    """The functions of both scripts under experiments; skipped where there are none."""
    folder = ROOT / "experiments/articles"
    if not folder.exists():
        pytest.skip("experiments are not here")
    return {name: runpy.run_path(str(folder / f"{name}.py")) for name in NAMES}


def test_the_symmetric_table_agrees_with_a_linear_program(scripts):
    """Each row is recomputed, and each optimum agrees with a linear program over sizes."""
    from scipy.optimize import linprog

    rows = [row.split(" & ") for row in (PAPERS / "figures/envelope-symmetric.tex").read_text("utf-8").split(" \\\\\n")]
    assert len(rows) == 6
    for k, eta, sizes, optimum, *_ in rows:
        points = np.array(scripts["envelope"]["subset_points"](int(k), np.e - 1)[1])
        program = linprog(-points[:, 1], [points[:, 0], np.ones(len(points))], [float(eta), 1.0], method="highs")
        assert f"{(int(k) - 1) ** 2 / -program.fun:.3f}" == optimum
        assert sizes == ", ".join(str(w + 1) for w in np.flatnonzero(program.x > 1e-9))


def test_the_excess_table_agrees_with_the_library(scripts):
    """What the profile proves and what none can prove, against the proved limit of the library."""
    from ldpopt.design.estimation.proof import yes_no_limit
    from ldpopt.numbers.enclosures import EXACT

    rows = [
        row.split(" & ") for row in (PAPERS / "figures/questionnaires-excess.tex").read_text("utf-8").split(" \\\\\n")
    ]
    rule = scripts["questionnaires"]["rule"]
    for m, row in ((9, rows[0]), (14, rows[3]), (10**6, rows[4])):
        for epsilon, told in zip((2.0, 3.0, 4.0, 5.0), row[1:], strict=True):
            proved = 100 * (float(yes_no_limit(EXACT.of(epsilon), m).upper) / rule(epsilon) - 1)
            assert proved <= float(told) + 1e-6
            assert proved > float(told) - 0.0101
    assert all(float(none) < float(all_m) for none, all_m in zip(rows[5][1:], rows[4][1:], strict=True))


def test_the_pair_of_the_sharpness_proof_reaches_the_least_share(scripts):
    """The binary mechanism keeps the least share of the optimum as the mass of the rare answers vanishes."""
    least, ratio = scripts["envelope"]["least_share"], scripts["envelope"]["binary_over_optimum"]
    for epsilon in (0.3, 0.69, 2.0, 4.0):
        excesses = [
            ratio(*scripts["envelope"]["extremal"](mass), epsilon) / least(epsilon) - 1 for mass in (1e-2, 1e-3, 1e-4)
        ]
        assert excesses[0] > excesses[1] > excesses[2] > 0
        assert excesses[2] < 5e-3


@pytest.mark.full
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="LaTeX is not installed")
@pytest.mark.parametrize("name", NAMES)
def test_latex_sets_the_paper_without_complaint(name, tmp_path):
    """No undefined reference, no line that is too long, and all fonts in the file."""
    assert typeset(name, tmp_path) == []
    pdf = tmp_path / f"{name}.pdf"
    assert pdf.read_bytes().startswith(b"%PDF")
    if shutil.which("pdftotext"):
        text = subprocess.run(["pdftotext", str(pdf), "-"], capture_output=True, check=True).stdout.decode()
        assert "??" not in text
        assert "Abstract" in text


def test_the_page_links_only_existing_files(tmp_path, monkeypatch):
    """Without LaTeX the list has the sources alone."""
    monkeypatch.setattr("latex_papers.LATEX", None)
    listed = links(tmp_path)
    assert "PDF" not in listed
    assert all(title(name) in listed and f"papers/{name}.tex" in listed for name in NAMES)
