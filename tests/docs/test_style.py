"""Each check of the style finds a violation and passes a correct text, and a count above its record fails."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs" / "_ext"))
import style

sys.path.pop(0)

VIOLATIONS = {
    "S1": "def f(x):\n    own = x\n    return own\n",
    "S2": "STEPS = 60\n",
    "S3": 'def f():\n    """The value."""\n',
    "S4": 'class A:\n    """What a channel guarantees."""\n',
    "S5": f'"""A sentence {"of many words " * 10}."""\n',
    "S6": "# The matrix stands beside the table.\n",
    "S7": "# It minimises the loss.\n",
    "S8": '"""A page says what it measures."""\n',
    "S9": '"""The channel from which reports come."""\n',
    "S10": 'raise invalid("a", "b", Phrase("both"))\n',
}
CORRECT = '''"""Compute the trade-off curve of a channel."""

MAX_NEWTON_STEPS = 60


def curve(channel):
    """Return the trade-off curve of the channel."""
    breakpoints = channel.breakpoints
    return breakpoints  # sorted, so that neighbors are next to each other
'''


@pytest.mark.parametrize("code", style.TITLES)
def test_a_violation_is_found(code):
    assert code in {finding[0] for finding in style.findings_in_source(VIOLATIONS[code])}


def test_a_correct_module_passes():
    assert list(style.findings_in_source(CORRECT)) == []


def test_code_tables_and_formulas_are_not_prose():
    page = "# What it is\n\nA guarantee.\n\n| what |\n\n```\nwhat it says beside it\n```\n\nThe value $of which$ holds."
    assert list(style.prose(style.prose_of_markdown(page))) == []


def test_a_count_above_its_record_fails():
    record = dict.fromkeys(style.TITLES, 3)
    assert style.exceeding(record, record) == []
    assert len(style.exceeding(record | {"S5": 4}, record)) == 1
