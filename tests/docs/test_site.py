"""What a newcomer meets on the site: ten tasks found and run, one page for a title, and words that the search finds."""

import ast
import json
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs" / "_ext"))
import api_pages
from claim_pages import short_title
from made_pages import lazily

sys.path.pop(0)

pytestmark = pytest.mark.full

DOCS = Path(__file__).resolve().parents[2] / "docs"
MADE = {"api", "claims", "made", "tours", "_build", "_ext", "_static"}
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if not MADE & set(page.relative_to(DOCS).parts)]
GALLERY = (DOCS / "examples" / "gallery.md").read_text("utf-8")
TASKS = re.findall(
    r"^## (.+)\n\n((?:.+\n)+)\n```\{testcode\}\n((?:.*\n)*?)```\n\n!\[(.+)\]\((.+)\)", GALLERY, re.MULTILINE
)
ASKED = {
    "randomized response for one question", "the best channel for two populations", "verify a file", "measure a matrix",
    "compose", "plan", "privatize", "a frontier", "a custom divergence", "a custom constraint",
}  # fmt: skip
"""The ten tasks of a newcomer."""
WORDS = ["k-RR", "GRR", "OUE", "OLH", "RAPPOR", "Warner", "plausible deniability", "licence"]


ENTRIES = {
    entry.lower()
    for page in PAGES
    for line in re.findall(r"^```\{index\} (.+)$", page.read_text("utf-8"), re.MULTILINE)
    for entry in line.replace("! ", "").split(", ")
}
"""Main entries of the index, which the search of the site lists before what only says the word."""


def title(page):
    return page.read_text("utf-8").partition("\n")[0].removeprefix("# ")


def slug(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_there_are_twelve_tasks_with_pictures():
    """Each has a sentence, a picture of under 45 kB with words for it, and a link to a guide."""
    assert len(TASKS) == 12
    for name, said, _, words, picture in TASKS:
        assert Path(picture).stem == slug(name)
        assert (DOCS / "examples" / picture).stat().st_size < 45_000
        assert len(words) > 30
        assert "`" in said or ".md)" in said


def test_the_pictures_are_drawn_from_the_tasks():
    """The script that draws the pictures finds the same tasks on the page."""
    sys.path.insert(0, str(DOCS / "images"))
    try:
        from tasks import PAGE, TASK
    finally:
        sys.path.pop(0)
    drawn = TASK.findall(PAGE.read_text("utf-8"))
    assert [(title, code) for title, code, _ in drawn] == [(name, code) for name, _, code, _, _ in TASKS]


@pytest.mark.parametrize(
    ("name", "code"), [(task[0], task[2]) for task in TASKS], ids=[slug(task[0]) for task in TASKS]
)
def test_a_task_takes_at_most_five_lines(name, code, tmp_path, monkeypatch):
    """Copied alone into a fresh namespace, a task of the gallery runs, and is no longer than promised."""
    monkeypatch.chdir(tmp_path)
    if "sklearn" in code or "transformer" in code:
        pytest.importorskip("sklearn")
    assert len(code.splitlines()) <= 5
    assert all(len(line) <= 120 for line in code.splitlines())
    assert not any(";" in line for line in code.splitlines())
    exec(compile(ast.parse(code), name, "exec"), {})


def test_each_task_is_two_clicks_or_one_search_away():
    """The start page links the gallery, whose cards lead to the tasks; and the word to search for is in the index."""
    start = (DOCS / "index.md").read_text("utf-8")
    assert "[twelve tasks with code](examples/gallery.md)" in start
    rows = re.findall(r"^\| \[(.+?)\]\(#(.+?)\) \| \*Twelve tasks\* → \*(.+?)\* \| (.+?) \|$", GALLERY, re.MULTILINE)
    assert {row[0] for row in rows} == ASKED
    cards = re.findall(r'grid-item-card\} (.+)\n:link: "#(.+)"\n:link-type: url\n:img-bottom: (.+)\n', GALLERY)
    assert cards == [(name, slug(name), picture) for name, _, _, _, picture in TASKS]
    said = {name: f"{name} {text} {code}".lower() for name, text, code, _, _ in TASKS}
    for _, anchor, heading, word in rows:
        assert slug(heading) == anchor
        assert word.lower() in said[heading]
        assert {word.lower(), heading.lower()} <= ENTRIES


def test_no_page_is_there_twice():
    """No two pages have one title, and none stands in the navigation at two places."""
    titles = [title(page).lower() for page in PAGES]
    assert len(titles) == len(set(titles)), sorted(one for one in titles if titles.count(one) > 1)
    listed = []
    for page in PAGES:
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
            entries = [line for line in tree.splitlines() if line and not line.startswith(":")]
            places = [re.sub(r".*<(.+)>", r"\1", entry) for entry in entries]
            listed += [(page.parent / place).resolve().relative_to(DOCS).as_posix() for place in places]
    assert len(listed) == len(set(listed)), sorted(one for one in listed if listed.count(one) > 1)


def test_moved_pages_are_redirected():
    """Each address that a page had leads to a page that exists, in one step, and hides none that exists."""
    redirects = json.loads((DOCS / "redirects.json").read_text("utf-8"))
    pages = {page.relative_to(DOCS).with_suffix("").as_posix() for page in PAGES}
    assert set(redirects.values()) <= pages
    assert not set(redirects) & pages
    assert len(redirects) > 50


def test_every_page_is_in_the_navigation():
    """Each page is listed by one table of contents."""
    listed = {"index"}
    for page in PAGES:
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
            entries = [re.sub(r".*<(.+)>", r"\1", line) for line in tree.splitlines() if line and line[0] != ":"]
            listed |= {(page.parent / entry).resolve().relative_to(DOCS).as_posix() for entry in entries}
    assert {page.relative_to(DOCS).with_suffix("").as_posix() for page in PAGES} <= listed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_a_page_opens_with_a_sentence(page):
    """Below its title a page says in plain words what it is about: no table, list or code first, no shouting."""
    first = page.read_text("utf-8").split("\n\n")[1]
    if first.startswith("## "):  # a section of its own, which opens with a sentence
        first = page.read_text("utf-8").split("\n\n")[2]
    assert re.match(r"[\w*(\[`\"“$]", first), first[:60]
    assert not first.startswith(("```", "| ", "- ", "# "))
    assert "!" not in re.sub(r"!\[", "", title(page))


@pytest.mark.parametrize("word", WORDS)
def test_the_search_finds(word):
    """A page says the word, not in code alone, and the index has it, which the search puts first."""
    texts = [re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL) for page in PAGES]
    assert any(re.search(rf"(?i)(?<!\w){re.escape(word)}(?!\w)", text.replace("$k$", "k")) for text in texts)
    assert word.lower() in ENTRIES


def test_the_start_page_is_short_and_leads_to_the_limits():
    """It names what is proved, and links what is not, on its first screens."""
    start = (DOCS / "index.md").read_text("utf-8").split("## Three paths")[0]
    assert "(explanation/limits-and-threat-model.md)" in start
    assert len(start.split()) < 520
    assert title(DOCS / "explanation" / "limits-and-threat-model.md") == "Limits and threat model"
    for word in ("not an audit", "randomness", "sizes", "devices", "participation"):
        assert word in (DOCS / "explanation" / "limits-and-threat-model.md").read_text("utf-8")


def test_cards_have_short_titles_and_pictures_wait():
    """A card's title is a few words, without an ellipsis; pictures load when they come into view."""
    from experiments.papers import EXPERIMENTS

    assert short_title("gi-theorem-7") == "Theorem 7"
    assert short_title("bs-lemmas-3-5-to-3-7") == "Lemmas 3.5 to 3.7"
    assert short_title("cim-theorems-1-4") == "Theorems 1 to 4"
    assert all(3 < len(short_title(name)) <= 40 for name in EXPERIMENTS)
    context = {"body": '<p><img alt="x" src="y.png" /></p>'}
    lazily(None, "", "", context, None)
    assert 'loading="lazy"' in context["body"]


def test_the_repository_is_linked_where_its_address_is_known(monkeypatch):
    """In a workflow of GitHub the navigation of each page leads to the repository; elsewhere nothing is invented."""
    monkeypatch.setattr(api_pages._build(), "git", lambda *arguments: None)
    for name in ("GITHUB_WORKSPACE", "CODESPACES", "GITHUB_REPOSITORY"):
        monkeypatch.delenv(name, raising=False)
    assert api_pages.repository() is None
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://github.com")
    monkeypatch.setenv("GITHUB_REPOSITORY", "owner/repo")
    assert api_pages.repository() == "https://github.com/owner/repo"
    assert 'href="{{ repository }}"' in (DOCS / "_templates" / "sidebar" / "versions.html").read_text("utf-8")
