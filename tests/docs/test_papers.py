"""Pages of the site are printed as papers, with the bibliography of what they cite."""

import io
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs" / "_ext"))
import papers

sys.path.pop(0)

from ldpopt.values.references import REFERENCES

pytestmark = pytest.mark.full

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = """<html><head><link rel="stylesheet" href="_static/site.css"></head><body>
<a class="skip-to-content" href="#content">Skip to content</a>
<article><h1>A theorem</h1><p>It is proved <a class="reference" href="other.html">elsewhere</a>
[<a href="../reference/bibliography.html#ref-gi">GI</a>, section VII; SPR], not in [the garden].</p></article>
<p>[BS] is cited outside of the article.</p></body></html>"""


def test_a_paper_lists_the_citations_of_its_page():
    """The keys between brackets that name papers, those of the article alone, in alphabetical order."""
    assert papers.citations(PAGE) == ["GI", "SPR"]
    printed = papers.paper(PAGE, ["GI", "SPR"])
    assert "Total Variation Meets Differential Privacy" in printed
    assert printed.index("References") > printed.index("garden")


def test_a_paper_links_nowhere_into_the_site():
    """On paper nobody can follow such links; those to the style of the page stay."""
    printed = papers.paper(PAGE, [])
    assert "other.html" not in printed
    assert 'href="_static/site.css"' in printed


def test_printed_papers_have_a_source_and_citations():
    """Each paper is made of a page, which has a picture, code or a proof, and the papers of a bibliography."""
    assert len(papers.PAPERS) == 2
    for name in papers.PAPERS:
        text = (DOCS / f"{name}.md").read_text("utf-8")
        assert papers.cited(text), name
        assert "![" in text, name


def test_everything_that_a_paper_cites_is_in_its_bibliography():
    """What stands between brackets, and is neither a link nor a formula nor code, is a paper that is registered."""
    for name in papers.PAPERS:
        text = (DOCS / f"{name}.md").read_text("utf-8")
        text = re.sub(r"```.*?```|\$\$.*?\$\$|\$[^$]*\$|`[^`]*`", "", text, flags=re.DOTALL)
        for said in re.findall(r"\[([A-Z][^\]\[]*)\](?!\()", text):
            keys = [part.split(",")[0].strip() for part in said.split(";")]
            assert keys[0] in REFERENCES, (name, said)


@pytest.mark.skipif(papers.BROWSER is None, reason="needs Chromium")
def test_a_page_is_printed_with_its_bibliography(tmp_path):
    """The PDF has text and references, and nothing of the frame of the site; BibTeX is beside it."""
    pypdf = pytest.importorskip("pypdf")
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static" / "site.css").write_bytes((DOCS / "_static" / "site.css").read_bytes())
    (tmp_path / "page.html").write_text(PAGE, "utf-8")
    made = papers.write(tmp_path, "page", tmp_path)
    (page,) = pypdf.PdfReader(io.BytesIO(made.read_bytes())).pages
    text = page.extract_text()
    assert "A theorem" in text
    assert "Sort, Partition, Randomize" in text
    assert "Skip to content" not in text
    assert made.with_suffix(".bib").read_text("utf-8").count("\n  title = {") == 2
    assert sorted(path.name for path in tmp_path.glob("*.html")) == ["page.html"]
