"""The gallery has the programs that a researcher would write, and they are short."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "examples" / "gallery.md"
BLOCK = re.compile(r"^```\{doctest\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_page_has_nine_short_programs():
    """The page has nine programs of at most fifteen lines, each under a separate heading; `test_docs` runs them."""
    programs = PAGE.read_text("utf-8").partition("\n## Nine programs\n")[2].partition("\n## ")[0]
    parts = re.split(r"^### ", programs, flags=re.MULTILINE)[1:]
    assert len(parts) == 9
    for part in parts:
        (code,) = BLOCK.findall(part)
        lines = [line for line in code.splitlines() if line.startswith((">>>", "..."))]
        assert 3 <= len(lines) <= 15, part.splitlines()[0]
