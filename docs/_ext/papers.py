"""Pages of the built site as papers: a PDF, printed by Chromium, and the bibliography of what it cites as BibTeX.

python docs/_ext/papers.py [SITE] [FOLDER]     writes FOLDER/errata.pdf, FOLDER/errata.bib, ...

SITE is a site that was built before (docs/_build/html); FOLDER is `papers` if none is named. `_static/site.css` says
how a page looks on paper.
"""

from __future__ import annotations

import html
import re
import shutil
import subprocess
import sys
from pathlib import Path

from ldpopt.values.references import REFERENCES, cited
from ldpopt.version import __version__

PAPERS = ("explanation/errata", "explanation/open-problems/shuffling")
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def paper(page: str, keys: list[str]) -> str:
    """A page of the site with its version below the title, what it cites at its end, and no link into the site."""
    page = re.sub(r'(<a\b[^>]*?)\shref="(?!#|https?:)[^"]*"', r"\1", page)
    page = re.sub(
        r"(</h1>)", rf'\1\n<p class="printed">From the documentation of ldpopt {__version__}.</p>', page, count=1
    )
    listed = "".join(f"<p>{html.escape(str(REFERENCES[key]))}</p>" for key in keys)
    return page.replace("</article>", f'<section class="cited"><h2>References</h2>{listed}</section></article>', 1)


def citations(page: str) -> list[str]:
    """The keys of the papers that a page cites, in alphabetical order."""
    text = html.unescape(re.sub(r"<[^>]+>", "", page.partition("<article")[2].partition("</article>")[0]))
    return sorted(set(cited(text)))


def write(site: Path, name: str, folder: Path) -> Path:
    """Write a page's PDF and bibliography into a folder, and return the path of the PDF."""
    assert BROWSER is not None, "Chromium, or Chrome, is needed to print"
    source = site / f"{name}.html"
    page = source.read_text("utf-8")
    keys = citations(page)
    made = folder.resolve() / f"{source.stem}.pdf"
    made.with_suffix(".bib").write_text("\n\n".join(REFERENCES[key].bibtex for key in keys) + "\n", "utf-8")
    printed = source.with_name(f"printed-{source.name}")  # beside the page, whose pictures and formulas it loads
    printed.write_text(paper(page, keys), "utf-8")
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer", "--virtual-time-budget=60000"]
    try:
        command = [BROWSER, *flags, f"--print-to-pdf={made}", printed.resolve().as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=300)
    finally:
        printed.unlink()
    return made


if __name__ == "__main__":
    site, folder = (Path(one) for one in (*sys.argv[1:], *("docs/_build/html", "papers")[len(sys.argv) - 1 :]))
    folder.mkdir(parents=True, exist_ok=True)
    for name in PAPERS:
        print(write(site, name, folder))
