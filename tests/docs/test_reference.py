"""The API reference is complete, and says of every formula where it comes from and what it gives."""

import inspect
import re
import sys
from doctest import DocTestParser
from pathlib import Path

import pytest

import ldpopt

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs" / "_ext"))
import api_pages
from api_pages import _source
from checks import refusals
from docstrings import markdown
from example_imports import names_in
from reference_rules import Reference

sys.path.pop(0)

pytestmark = pytest.mark.full


def test_every_public_name_has_example_shapes_units_refusals_and_source():
    """Of all public names, none lacks what `docs/_ext/reference_rules.py` asks; what an entry lacks is noticed."""
    reference = Reference()
    assert len(reference.names) >= 400
    assert not (lacking := list(reference.lacking())), "\n".join(lacking)
    # Without examples and units their absence is found.
    reference.shown = set()
    reference.pages = {name: page.replace("in nats", "") for name, page in reference.pages.items()}
    found = " ".join(reference.lacking())
    assert "no example shows it" in found
    assert "in nats" in found


def test_a_copied_example_has_all_that_it_names():
    """On every page each example names only what the page has imported or defined before: it runs when it is copied."""
    pages, blocks = api_pages.pages(), 0
    for name, page in pages.items():
        defined = set()
        for block in re.findall(r"(?m)^```pycon\n(.*?)^```$", page, re.DOTALL):
            used, stored = names_in(DocTestParser().get_examples(block))
            assert not used - stored - defined, (name, used - stored - defined)
            defined |= stored
            blocks += 1
    assert blocks > 400


def test_refusals_are_read_from_the_code():
    """Shared checks, checks of one's own and the fields of a class appear with what they expect."""
    from ldpopt.design import MergedPartition
    from ldpopt.mechanisms import Gaussian, subset_selection
    from ldpopt.privacy import hockey_stick_contraction

    assert refusals(subset_selection)[:2] == ["`k`: an integer of at least 2", "`size`: an integer of at least 1"]
    assert "`size`: an integer below k" in refusals(subset_selection)
    assert refusals(MergedPartition) == ["`bins`: an integer of at least 2"]
    assert refusals(Gaussian) == ["`sigma`: a positive number", "`sensitivity`: a positive number"]
    assert "`gamma`: a number of at least 1" in refusals(hockey_stick_contraction)


def test_docstrings_become_markdown():
    """Examples become code, lists of names become lists, and characters with a meaning in Markdown are escaped."""
    made = markdown("Sum of *all.\n\na, b : numbers. c : another,\n    indented.\n\n>>> 1 + 1\n2")
    assert made == "Sum of \\*all.\n\n- `a`, `b`: numbers.\n- `c`: another, indented.\n\n```pycon\n>>> 1 + 1\n2\n```"


@pytest.mark.skipif(
    not (Path(__file__).resolve().parents[2] / "hatch_build.py").is_file(), reason="only beside the source"
)
def test_sources_are_links_where_the_address_is_known(monkeypatch):
    """In a workflow of GitHub the page of a name leads to the line of the commit where the name is defined."""
    monkeypatch.setattr(api_pages._build(), "git", lambda *arguments: None)
    for name in ("GITHUB_WORKSPACE", "CODESPACES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://github.com")
    monkeypatch.setenv("GITHUB_REPOSITORY", "owner/repo")
    monkeypatch.setenv("GITHUB_SHA", "a" * 40)
    (said, _) = _source(ldpopt.Channel)
    address = f"https://github.com/owner/repo/blob/{'a' * 40}/ldpopt/channel.py"
    found = re.fullmatch(rf"Source: \[`ldpopt/channel.py`\]\({address}#L(\d+)\)", said)
    first = int(found[1]) - 1
    lines = inspect.getsource(sys.modules["ldpopt.channel"]).splitlines()[first:]
    assert "class Channel(" in "\n".join(lines[:2])
    assert lines[0].startswith(("@", "class"))


def test_lists_and_sections_of_a_docstring_stay_lists_and_sections():
    """Points, names with meanings, and the types of results and errors are not joined to a paragraph."""
    text = markdown(
        "Hold a line.\n\n- `a`, `b` : first,\n  continued.\n- a plain point of [0, 1)\n\n"
        "It sums:\n- one,\n- two.\nAfter it.\n"
    )
    assert text.split("\n\n") == [
        "Hold a line.",
        "- `a`, `b`: first, continued.\n- a plain point of [0, 1)",
        "It sums:",
        "- one,\n- two.",
        "After it.",
    ]
    text = markdown(
        "Compute x.\n\n"
        "Parameters\n----------\nexact : bool\n    True for balls.\nsize : tuple of int\n    The shape.\n\n"
        "Returns\n-------\nDesign\n    The best\n    design.\n\n"
        "Raises\n------\nInvalidInput\n    For a.\nSolverError\n    For b."
    )
    assert text.split("\n\n") == [
        "Compute x.",
        "- `exact`: True for balls.\n- `size`: tuple of int. The shape.",
        "**Returns** `Design`: The best design.",
        "**Raises**",
        "- `InvalidInput`: For a.\n- `SolverError`: For b.",
    ]
    assert markdown("The difference a\n- b of two numbers.") == "The difference a\n\\- b of two numbers."
