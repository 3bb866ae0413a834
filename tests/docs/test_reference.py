"""The API reference is complete, and says of every formula where it comes from and what it gives."""

import importlib
import inspect
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import ldpopt
from ldpopt.references import REFERENCES

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs" / "_ext"))
from api_pages import pages
from docstrings import markdown
from public_names import public_modules, registry

sys.path.pop(0)

FORMULAS = ("bounds", "composition", "divergences", "mechanisms", "privacy")
"""Packages whose functions compute what a paper defines or proves."""

NO_FORMULA = {
    "ldpopt.composition.compose_same_input",  # applies `compose` to each pair of inputs
    "ldpopt.composition.largest_count",  # a search on `compose`
    "ldpopt.composition.largest_epsilon",  # a search on `k_fold`
    "ldpopt.privacy.audit",  # gathers measures that cite their own sources
}

PAGES = pages()
NAMES = registry()
FUNCTIONS = [full for full, entry in NAMES.items() if inspect.isfunction(entry.value)]
COMPUTING = [full for full in FUNCTIONS if full.split(".")[1] in FORMULAS]


@pytest.mark.parametrize("module", public_modules())
def test_every_public_name_is_in_the_reference(module):
    """Every name in a public module's `__all__` has an entry, or a link to the one entry it has elsewhere."""
    page = PAGES[f"{module}.md"]
    found = importlib.import_module(module)
    for name in getattr(found, "__all__", ()):
        if isinstance(getattr(found, name), ModuleType):
            assert f"`{module}.{name}`" in page
        else:
            entry = re.search(rf"^`+{{py:\w+}} {name}\b", page, re.MULTILINE)
            assert entry or f"{{py:obj}}`{name} <" in page, name


def test_every_shortcut_is_in_the_reference():
    """Every name of the package itself is listed with where it is documented."""
    for name in ldpopt.__all__:
        assert f"`ldpopt.{name}`" in PAGES["index.md"]


@pytest.mark.parametrize("full", [f for f, e in NAMES.items() if inspect.isclass(e.value) or f in FUNCTIONS])
def test_every_docstring_begins_with_a_summary(full):
    """The first line of a public docstring is a sentence of its own, and does not wait for the next line."""
    value = NAMES[full].value
    if not value.__module__.startswith("ldpopt"):
        return
    assert value.__doc__, "no docstring"
    summary = value.__doc__.strip().split("\n\n")[0]
    assert len(summary.splitlines()) <= 4
    assert re.search(r"[.:?)\]]$", summary.replace('"""', "").strip()), summary


@pytest.mark.parametrize("full", COMPUTING)
def test_every_formula_has_a_source_and_an_example(full):
    """A function that computes what a paper states cites it by a registered key, and shows a value."""
    doc = inspect.getdoc(NAMES[full].value)
    assert ">>> " in doc
    keys = {key for key in re.findall(r"[\[;] ?([A-Z][A-Za-z]*\d*)(?=[,;\] ])", doc) if key in REFERENCES}
    assert keys or full in NO_FORMULA


def test_docstrings_become_markdown():
    """Examples become code, lists of names become lists, and characters with a meaning in Markdown are escaped."""
    made = markdown("Sum of a*b.\n\na, b : numbers. c : another,\n    indented.\n\n>>> 1 + 1\n2")
    assert made == "Sum of a\\*b.\n\n- `a`, `b`: numbers.\n- `c`: another, indented.\n\n```pycon\n>>> 1 + 1\n2\n```"
