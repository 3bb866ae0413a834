"""The two papers of docs/papers, as PDF by LaTeX where it is installed.

python docs/_ext/latex_papers.py [FOLDER]     writes FOLDER/envelope.pdf and FOLDER/questionnaires.pdf

FOLDER is docs/made/papers if none is named. Building the site does the same, and the page "Papers" links what was
written. On Debian the packages texlive-latex-base, texlive-latex-recommended and lmodern are enough.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent
SOURCES = DOCS / "papers"
NAMES = ("envelope", "questionnaires")
LATEX = shutil.which("pdflatex")
RUNS = 3
"""References, their page numbers and the outline settle in three runs."""

_COMPLAINTS = re.compile(r"^(?:! .*|LaTeX Warning: .*|Overfull .*)$", re.MULTILINE)


def typeset(name: str, folder: Path) -> list[str]:
    """Write a paper's PDF into a folder, and return what LaTeX complains of in its last run.

    Raises
    ------
    RuntimeError
        If LaTeX is not installed or stops at an error, with the end of its log.
    """
    if LATEX is None:
        raise RuntimeError("pdflatex is needed to write a paper")
    with tempfile.TemporaryDirectory() as scratch:
        command = [LATEX, "-interaction=nonstopmode", "-halt-on-error", "-output-directory", scratch, f"{name}.tex"]
        for _ in range(RUNS):
            run = subprocess.run(command, cwd=SOURCES, capture_output=True, timeout=120, check=False)
            if run.returncode:
                raise RuntimeError(f"{name}.tex: {run.stdout.decode(errors='replace')[-1500:]}")
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(Path(scratch, f"{name}.pdf"), folder / f"{name}.pdf")
        return _COMPLAINTS.findall(Path(scratch, f"{name}.log").read_text("utf-8", errors="replace"))


def title(name: str) -> str:
    """Return the title of a paper."""
    (found,) = re.findall(r"pdftitle=\{(.*?)\}", (SOURCES / f"{name}.tex").read_text("utf-8"))
    return str(found)


def links(folder: Path) -> str:
    """Write the PDFs that are older than their sources, and return the page's list of both papers."""
    sources = max(path.stat().st_mtime for path in SOURCES.rglob("*") if path.is_file())
    lines = []
    for name in NAMES:
        pdf = folder / f"{name}.pdf"
        if LATEX and (not pdf.exists() or pdf.stat().st_mtime < sources):
            typeset(name, folder)
        written = f"{{download}}`PDF </{pdf.relative_to(DOCS)}>`, " if pdf.exists() else ""
        lines.append(f"- *{title(name)}*: {written}{{download}}`LaTeX </papers/{name}.tex>`")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS / "made/papers"
    for paper in NAMES:
        print(target / f"{paper}.pdf", *typeset(paper, target), sep="\n")
