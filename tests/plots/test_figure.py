"""Pictures are drawn where they are told to, without a screen and without global state."""

import os
import shutil
import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from ldpopt import Channel, Divergence, InvalidInput, frontier, plots
from ldpopt.divergences import KL
from ldpopt.plots.figure import text_color

UTILITY = Divergence(KL, [0.5, 0.5], [0.25, 0.75])
TABLE = frontier(UTILITY, [1.0], [0.1, 0.2])
DRAW = {
    "blocks": lambda ax: plots.blocks(UTILITY, np.eye(2), ax=ax),
    "channel": lambda ax: plots.channel(np.eye(2), ax=ax),
    "frontier": lambda ax: plots.frontier(TABLE, ax=ax),
    "gap_map": lambda ax: plots.gap_map(TABLE, "binary_with_erasure", ax=ax),
}


@pytest.mark.parametrize("draw", DRAW.values(), ids=DRAW)
def test_the_given_axes_are_drawn_on_and_returned(draw):
    """Every plot function returns the axes it was given, drawn on, and leaves their neighbours and settings alone."""
    ours, other = Figure(figsize=(8, 4)).subplots(1, 2)
    settings = dict(mpl.rcParams)
    assert draw(ours) is ours
    assert ours.has_data()
    assert not other.has_data()
    assert dict(mpl.rcParams) == settings


@pytest.mark.parametrize("draw", DRAW.values(), ids=DRAW)
def test_without_axes_a_new_figure_is_made(draw):
    """Every plot function makes its own figure when it is given no axes."""
    first, second = draw(None), draw(None)
    assert first.figure is not second.figure
    assert first.get_xlabel()
    assert first.get_ylabel()


def test_pyplot_is_never_imported():
    """Drawing and saving a picture imports no pyplot, so no window can open."""
    code = (
        "import sys, numpy as np; from ldpopt import plots; assert 'matplotlib' not in sys.modules; "
        "plots.picture(plots.channel(np.eye(2))); print('matplotlib.pyplot' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600)
    assert run.stdout.strip() == "False"


@pytest.mark.full(but=1)
@pytest.mark.parametrize(("kind", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_a_picture_is_the_same_bytes_every_time(kind, magic):
    """The same figure gives the same file, in every format."""
    first, second = (plots.picture(plots.channel(np.eye(2)), kind) for _ in range(2))
    assert first.startswith(magic)
    assert first == second


def has_pgf() -> bool:
    """Whether LaTeX is installed, with the package that these pictures load."""
    if shutil.which("pdflatex") is None or shutil.which("kpsewhich") is None:
        return False
    found = subprocess.run(["kpsewhich", "pgf.sty"], capture_output=True, check=False)
    return bool(found.stdout.strip())


NEEDS_PGF = pytest.mark.skipif(not has_pgf(), reason="needs LaTeX with the package pgf")
LATEX = """#!{python} -u
import re, sys
print("This is a stand-in for LaTeX.")
for line in sys.stdin:
    if "pgf_backend_query_start" in line:
        print("*pgf_backend_query_start")
        sys.stdout.write("\\n*")
    elif "\\\\the\\\\wd0" in line:
        sys.stdout.write("20.0pt,7.0pt,2.0pt\\n\\n*")
    elif "@@end" in line:
        break
    sys.stdout.flush()
"""


def test_pgf_without_latex_is_refused_in_a_sentence(monkeypatch):
    """What measures the letters of a pgf picture is LaTeX; where there is none, the error names it and another way."""
    monkeypatch.setenv("PATH", "")
    with pytest.raises(
        InvalidInput, match=r"pgf: expected LaTeX \(xelatex, pdflatex\), .* \(pdf needs none\), got none installed"
    ):
        plots.picture(plots.channel(np.eye(2)), "pgf")


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a script that a shell starts")
@pytest.mark.parametrize("draw", DRAW.values(), ids=DRAW)
def test_pgf_with_latex_is_written(draw, tmp_path, monkeypatch):
    """With LaTeX, or a stand-in that says how wide its letters are, every picture is code for LaTeX, all vectors."""
    if shutil.which("xelatex") is None:
        program = tmp_path / "xelatex"
        program.write_text(LATEX.format(python=sys.executable))
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    drawn = plots.picture(draw(Figure().subplots()), "pgf").decode()
    assert drawn.startswith("%% Creator: Matplotlib, PGF backend")
    assert "\\begin{pgfpicture}" in drawn
    assert "\\includegraphics" not in drawn
    assert drawn.count("\\pgfusepath") > 10


@NEEDS_PGF
@pytest.mark.parametrize("draw", DRAW.values(), ids=DRAW)
def test_a_pgf_picture_is_set_by_the_smallest_latex(draw, tmp_path, monkeypatch):
    """A paper that loads pgf and T1 letters, and is set by pdflatex, includes every picture, Greek letters and all."""
    monkeypatch.setitem(mpl.rcParams, "pgf.texsystem", "pdflatex")
    (tmp_path / "picture.pgf").write_bytes(plots.picture(draw(Figure().subplots()), "pgf"))
    (tmp_path / "paper.tex").write_text(
        r"\documentclass{article}\usepackage[T1]{fontenc}\usepackage{pgf}"
        r"\begin{document}\resizebox{.8\textwidth}{!}{\input{picture.pgf}}\end{document}"
    )
    command = ["pdflatex", "-halt-on-error", "-interaction=batchmode", "paper.tex"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=600)
    assert "Missing character" not in (tmp_path / "paper.log").read_text("latin-1")


@NEEDS_PGF
def test_a_label_that_latex_cannot_set_is_refused(monkeypatch):
    """The error says which characters a pgf picture cannot have, and what else takes them."""
    monkeypatch.setitem(mpl.rcParams, "pgf.texsystem", "pdflatex")
    with pytest.raises(InvalidInput, match=r"labels must be without .* knows \(pdf takes all\)"):
        plots.picture(plots.channel(Channel(np.eye(2), outputs=("R&D", "other"))), "pgf")


def test_an_unknown_format_is_refused():
    """A format that is none of the four is an error."""
    with pytest.raises(InvalidInput, match="png, svg, pdf, pgf"):
        plots.picture(plots.channel(np.eye(2)), "bmp")


def test_text_is_legible():
    """Dark cells get white text, light ones black; long labels are cut."""
    assert (text_color((0, 0, 0.3, 1)), text_color((0.9, 0.95, 1, 1))) == ("white", "black")
