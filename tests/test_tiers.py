"""The first tier is what it is said to be: each capability has its tests there, and each value of a factor its case."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from tiers import covering, first_tier, is_named, is_wholly_full, named_paths

HERE = Path(__file__).parent
BUILDS = {"docs", "notebooks"}
"""Folders of tests of what is built for readers, whose first tier is that of the examples in it."""


def case(name, marks=(), **factors):
    """A test as pytest collects it, with a parameter for each keyword."""
    parametrized = [pytest.mark.parametrize(one, []).mark for one in factors]
    return SimpleNamespace(
        nodeid=name,
        callspec=SimpleNamespace(params=factors),
        iter_markers=lambda kind: parametrized if kind == "parametrize" else [mark.mark for mark in marks],
    )


def test_a_marked_test_is_of_the_full_tier_alone():
    items = [case("a"), case("b", [pytest.mark.full]), case("c[1]", x=1), case("c[2]", [pytest.mark.full], x=2)]
    assert first_tier(items) == {"a", "c[1]"}


@pytest.mark.parametrize("count", [1, 3, 9])
def test_a_sweep_has_its_first_cases(count):
    items = [case(f"a[{x}]", [pytest.mark.full(but=count)], x=x) for x in range(7)]
    assert first_tier(items) == {f"a[{x}]" for x in range(min(count, 7))}


def test_a_cross_has_each_value_of_each_factor_in_as_few_cases_as_it_can():
    items = [case(f"a[{x}-{y}]", x=x, y=y) for x in "pqr" for y in "stuv"]
    chosen = first_tier(items)
    assert set("".join(chosen)) >= set("pqrstuv")
    assert len(chosen) == 4


def test_a_covering_leaves_no_value_out():
    rows = [("a", 1), ("a", 2), ("b", 1), ("c", 3)]
    assert {value for row in covering(rows) for value in row} == {"a", "b", "c", 1, 2, 3}
    assert covering([("a",), ("b",)]) == [("a",), ("b",)]
    assert covering([]) == []


def test_files_named_on_the_command_line_are_run_whole():
    named = named_paths([str(HERE), str(HERE / "design"), f"{HERE / 'test_tiers.py'}::test_this"], HERE)
    assert named == [HERE / "design", HERE / "test_tiers.py"]
    assert is_named(HERE / "design" / "test_optimal.py", named)
    assert not is_named(HERE / "test_root.py", named)


@pytest.mark.parametrize(
    ("text", "wholly"),
    [
        ("pytestmark = pytest.mark.full\n", True),
        ("import pytest\n\npytestmark = [pytest.mark.full, pytest.mark.skipif(True, reason='')]\n", True),
        ("pytestmark = pytest.mark.full(but=3)\n", False),
        ("    pytestmark = pytest.mark.full\n", False),
        ("@pytest.mark.full\ndef test_it():\n    pass\n", False),
    ],
)
def test_a_file_of_the_full_tier_alone_is_known_without_an_import(tmp_path, text, wholly):
    (tmp_path / "test_it.py").write_text(text, "utf-8")
    assert is_wholly_full(tmp_path / "test_it.py") is wholly


def test_each_capability_has_tests_in_the_first_tier():
    """The files that tests/README.md names are there, of the first tier, and every folder has such a file."""
    table = (HERE / "README.md").read_text("utf-8")
    named = {HERE / name for name in re.findall(r"`([\w/]+\.py)`", table)}
    assert len(named) > 30
    assert [path for path in named if not path.is_file() or is_wholly_full(path)] == []
    folders = {path.parent for path in HERE.rglob("test_*.py")} - {HERE / name for name in BUILDS}
    assert [one for one in folders if all(map(is_wholly_full, one.glob("test_*.py")))] == []
    assert {one for one in folders if not any(one in path.parents for path in named)} == set()
