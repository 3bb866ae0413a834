"""Every example in the documentation pages prints what it shows."""

import doctest
from pathlib import Path

import pytest

PAGES = [Path(__file__).parents[1] / "docs" / name for name in ("measures.md", "composition.md")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_of_the_page(page):
    """The code blocks of the page run, in order, and print what stands below them."""
    found = doctest.testfile(str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.attempted > 5
    assert found.failed == 0
