"""Every example in the documentation pages prints what it shows, and every page says something."""

import doctest
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
MADE = {"api", "claims", "made", "tours", "_build", "_ext", "_static"}
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if not MADE & set(page.relative_to(DOCS).parts)]
WRITTEN = [page for page in PAGES if "{include}" not in page.read_text("utf-8")]
FENCE = re.compile(r"^```(?P<kind>\{doctest\}|\{testcode\}|python)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
WITHOUT_CODE = {
    "adaptive-mcdp.md", "approximate-ldp.md", "bibliography.md", "binary-share.md",
    "certification-and-speed.md", "channel-file.md", "checker-specification.md", "command-line.md",
    "contraction.md", "design-decisions.md", "envelopes-elsewhere.md", "errata.md", "faq.md", "index.md",
    "inference.md", "install.md", "limits-and-threat-model.md", "notebooks.md", "papers.md",
    "questions-and-targets.md", "reproduced-claims.md", "submission.md",
    "survey-file.md", "versions.md", "what-privatizing-protects.md", "what-the-collector-stores.md",
}  # fmt: skip
"""Pages that list, link or answer, or report research; the start page and the indexes of folders are among them."""


def name(page):
    return page.relative_to(DOCS).as_posix()


def test_the_pages_are_found():
    """The documentation is beside the tests."""
    assert {
        "index.md",
        "tutorials/design-a-channel.md",
        "explanation/optimal-channel.md",
        "how-to/design/choose-a-method.md",
    } <= set(map(name, PAGES))


@pytest.mark.full(but=6)
@pytest.mark.parametrize("page", PAGES, ids=name)
def test_examples_of_the_page_run(page, tmp_path, monkeypatch):
    """The code blocks of the page run, in order, and print what stands below them."""
    monkeypatch.chdir(tmp_path)
    blocks = list(FENCE.finditer(page.read_text("utf-8")))
    assert blocks or page.name in WITHOUT_CODE
    space: dict[str, object] = {}
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    for block in blocks:
        code = None if ">>>" in block["body"] else compile(block["body"], name(page), "exec")
        if code is not None and block["kind"] == "{testcode}":
            exec(code, space)
        elif code is not None:
            assert block["kind"] == "python"  # a fragment to be completed by the reader: it only has to be Python
        else:
            test = doctest.DocTestParser().get_doctest(block["body"], space, name(page), str(page), 0)
            assert test.examples, "a code block without an example"
            runner.run(test, out=said.append, clear_globs=False)
            space = test.globs
    assert runner.summarize(verbose=False).failed == 0, "".join(said)


@pytest.mark.parametrize("page", WRITTEN, ids=name)
def test_no_page_is_a_stub(page):
    """A page that is not made from elsewhere has a title and enough words to be worth a visit."""
    text = page.read_text("utf-8")
    assert text.startswith("# ")
    assert len(text.split()) >= (15 if "{toctree}" in text else 150)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_to_other_pages_lead_somewhere(page):
    """A relative link names a file that is there, and a heading in it if it names one."""
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        path, _, anchor = target.partition("#")
        if "://" in target or path.startswith("mailto:") or MADE & set(Path(path).parts):
            continue
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), target
        if anchor:
            text = found.read_text("utf-8")
            heads = {slug(head) for head in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}
            assert anchor in heads | set(re.findall(r"^\(([\w-]+)\)=$", text, re.MULTILINE)), target


def slug(heading):
    """The anchor of a heading, as the site makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
