"""The programs that a researcher would write stand in the documents, and are short."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "examples" / "programs.md"
BLOCK = re.compile(r"^```\{doctest\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_ten_programs_of_fifteen_lines():
    """The page has ten programs of at most fifteen lines, each under a heading of its own; `test_docs` runs them."""
    parts = re.split(r"^## ", PAGE.read_text("utf-8"), flags=re.MULTILINE)[1:]
    assert len(parts) == 10
    for part in parts:
        (code,) = BLOCK.findall(part)
        lines = [line for line in code.splitlines() if line.startswith((">>>", "..."))]
        assert 3 <= len(lines) <= 15, part.splitlines()[0]
