"""The vectors of the page on writing a checker: twenty-one files, and what every checker says of them."""

import json
from pathlib import Path

import pytest

import ldpopt_check
from ldpopt.design.load import load_design
from ldpopt.errors import InvalidInput

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "vectors"
VERDICTS = json.loads((FOLDER / "verdicts.json").read_text("utf-8"))


def test_each_file_has_a_verdict():
    """There are twenty-one files: some hold, some do not, and some are refused."""
    assert sorted(VERDICTS) == sorted(path.name for path in FOLDER.glob("[0-9]*.json"))
    assert len(VERDICTS) == 21
    assert {*VERDICTS.values()} == {True, False, "refused"}


@pytest.mark.parametrize("name", [name for name, verdict in VERDICTS.items() if verdict != "refused"])
def test_both_programs_give_the_verdict(name):
    """`verify` in both arithmetics and the checker agree with what is written."""
    design = load_design(FOLDER / name)
    found = ldpopt_check.check(json.loads((FOLDER / name).read_text("utf-8")))
    assert [bool(design.verify()), bool(design.verify(exact=True)), not found.failures] == [VERDICTS[name]] * 3
    assert found.certified is design.certified
    assert set(found.unchecked) == set(design.unchecked_parts)


@pytest.mark.parametrize("name", [name for name, verdict in VERDICTS.items() if verdict == "refused"])
def test_both_programs_refuse(name):
    """Two labellings, or an edge that is there twice, make a file that neither program judges."""
    with pytest.raises(InvalidInput):
        load_design(FOLDER / name)
    with pytest.raises(ldpopt_check.BadInput) as refused:
        ldpopt_check.check(json.loads((FOLDER / name).read_text("utf-8")))
    assert not isinstance(refused.value, ldpopt_check.NotCovered)
