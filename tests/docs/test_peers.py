"""The page about other packages says what is measured, where it can be measured."""

import re
import sys
from importlib import metadata
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs" / "_ext"))
import peers

sys.path.pop(0)

TEXT = peers.PAGE.read_text("utf-8")
NUMBER = re.compile(r"\d[\d,]*\.?\d*")


def _part(name):
    return TEXT.split(f"<!-- made: {name} -->")[1].split(f"<!-- end of {name} -->")[0].strip()


@pytest.mark.parametrize("name", ["composition", "counts"])
def test_what_is_computed_is_on_the_page(name):
    """The numbers of the page are those that this package and dp-accounting give now, to a tenth of a per cent."""
    pytest.importorskip("dp_accounting")
    installed = metadata.version("dp-accounting")
    if f"`dp-accounting` {installed}" not in _part(name):
        pytest.skip(f"the page is about another version than {installed}")
    made = peers.MADE[name]()
    assert NUMBER.sub("#", made) == NUMBER.sub("#", _part(name))
    pairs = zip(NUMBER.findall(made), NUMBER.findall(_part(name)), strict=True)
    assert all(float(a.strip(",.")) == pytest.approx(float(b.strip(",.")), rel=1e-3, abs=0.011) for a, b in pairs)


@pytest.mark.skipif(not peers.RESULTS.is_file(), reason="the recorded run is only in a clone")
def test_the_table_of_speed_is_that_of_the_recorded_run():
    """Nothing in the table was typed."""
    assert _part("speed") == peers.speed()


def test_every_made_part_has_its_place():
    """The page with its parts made anew differs in nothing but these parts."""
    for name in peers.MADE:
        assert TEXT.count(f"<!-- made: {name} -->") == TEXT.count(f"<!-- end of {name} -->") == 1
