"""The API reference is complete, and says of every formula where it comes from and what it gives."""

import importlib
import inspect
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import ldpopt
from ldpopt.references import REFERENCES, cited

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs" / "_ext"))
import api_pages
from api_pages import IN_NATS, _source, page_name, pages, parameters
from checks import refusals
from docstrings import markdown
from public_names import is_class, public_modules, registry

sys.path.pop(0)

NO_FORMULA = {
    "ldpopt.channel.as_channel": "checks and converts",
    "ldpopt.composition.compose_same_input": "applies `compose` to each pair of inputs",
    "ldpopt.composition.from_dp_accounting": "converts a law",
    "ldpopt.composition.to_dp_accounting": "converts a law",
    "ldpopt.composition.largest_count": "a search on `compose`",
    "ldpopt.composition.largest_epsilon": "a search on `k_fold`",
    "ldpopt.design.estimation_design": "calls `optimal_channel`",
    "ldpopt.design.load_design": "reads a file",
    "ldpopt.frontiers.frontier": "gathers designs, mechanisms and bounds that cite their own sources",
    "ldpopt.frontiers.sweep": "designs by `optimal_channel`",
    "ldpopt.privacy.audit": "gathers measures that cite their own sources",
    "ldpopt.references.reference": "finds a paper",
    "ldpopt.survey.aggregate": "counts",
    "ldpopt.survey.device_named": "looks up a device",
    "ldpopt.survey.enter_reports": "reads a file",
    "ldpopt.survey.paper_survey": "designs every question by `optimal_channel`",
    "ldpopt.survey.kit_files": "writes pages",
    "ldpopt.survey.make_plan": "gathers channels that cite their own sources",
    "ldpopt.survey.merge": "adds counts",
    "ldpopt.survey.plan_survey": "designs every question by `optimal_channel`",
    "ldpopt.survey.privatize": "draws reports from the plan's channels",
    "ldpopt.survey.privatize_frame": "draws reports from the plan's channels",
    "ldpopt.survey.pilot_shares": "projects and mixes",
    "ldpopt.survey.pooled_channel": "puts channels side by side",
    "ldpopt.survey.advise_stages": "asks `plan_two_stages`",
    "ldpopt.survey.second_spec": "puts estimates where pilots stand",
    "ldpopt.survey.second_channel": "designs by `optimal_channel`",
    "ldpopt.survey.with_cheaters": "adds a row",
    "ldpopt.survey.read_rows": "reads files",
    "ldpopt.survey.server.collector": "serves",
    "ldpopt.survey.server.database": "opens a database",
    "ldpopt.survey.server.draw_invitations": "draws random words",
    "ldpopt.survey.server.export_reports": "writes files",
    "ldpopt.survey.server.static_files": "reads files",
    "ldpopt.survey.propose": "looks at the columns of a file",
    "ldpopt.survey.respondents_needed": "calls `split_budget` for several budgets",
    "ldpopt.survey.split_budget": "a search on `QuestionPlanner`",
    "ldpopt.survey.with_constant": "adds a column",
}
"""Functions outside `io`, `plots` and `reproduce` that rest on no paper of their own, and what they do instead."""

ARRAYS = {"p", "q", "p0", "p1", "p2", "prior", "pilot", "joint", "contrasts", "counts", "design", "type_one", "values"}
"""Parameters that are arrays wherever they occur."""

SHAPE = re.compile(r"\((?:[a-z]\w*|\d+)(?:, ?[a-z0-9.]\w*)*,?\)|shape|k x k")

PAGES = pages()
NAMES = registry()
FUNCTIONS = [full for full, entry in NAMES.items() if inspect.isfunction(entry.value)]
COMPUTING = [full for full in FUNCTIONS if full.split(".")[1] not in ("io", "plots", "reproduce")]
OWN = [full for full, entry in NAMES.items() if full in FUNCTIONS or is_class(entry.value)]


RETURNED = {
    word
    for full in FUNCTIONS
    for word in re.findall(r"\w+", str(inspect.signature(NAMES[full].value).return_annotation))
}
CLASSES = [
    full
    for full, entry in NAMES.items()
    if is_class(entry.value)
    and not inspect.isabstract(entry.value)
    and not getattr(entry.value, "_is_protocol", False)
    and not issubclass(entry.value, BaseException)
    and entry.module != "ldpopt.design"  # passed to `optimal_channel` or carried by what it returns, which show them
    and not entry.name.endswith("Row")  # the rows of a table, whose maker shows them
]


@pytest.mark.parametrize("module", public_modules())
def test_every_public_name_is_in_the_reference(module):
    """Every name in a public module's `__all__` has an entry, or a link to the one entry it has elsewhere."""
    page = PAGES[f"{module}.md"]
    found = importlib.import_module(module)
    for name in getattr(found, "__all__", ()):
        if isinstance(getattr(found, name), ModuleType):
            assert f"`{module}.{name}`" in page
        else:
            # A constant has its entry there, everything else a link to a page of its own.
            entry = re.search(rf"^`+{{py:data}} {name}\b", page, re.MULTILINE)
            assert entry or f"{{py:obj}}`{name} <" in page, name


def test_every_page_has_a_file_of_its_own():
    """No two pages have names that differ in capitals only, which some systems hold for the same."""
    assert len({page.lower() for page in PAGES}) == len(PAGES)


def test_every_shortcut_is_in_the_reference():
    """Every name of the package itself is listed with where it is documented."""
    for name in ldpopt.__all__:
        assert f"`ldpopt.{name}` | {{py:obj}}`ldpopt." in PAGES["index.md"]


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


def entry_of(full):
    """The page of a public name."""
    return PAGES[f"{page_name(NAMES[full])}.md"]


@pytest.mark.parametrize("full", FUNCTIONS)
def test_every_function_shows_an_example(full):
    """A public function shows a value, or what it leaves behind."""
    assert ">>> " in inspect.getdoc(NAMES[full].value)


@pytest.mark.parametrize("full", CLASSES)
def test_every_class_is_shown_in_use(full):
    """A class shows an example itself, or is what a function that shows one returns."""
    assert ">>> " in inspect.getdoc(NAMES[full].value) or NAMES[full].name in RETURNED


@pytest.mark.parametrize("full", COMPUTING)
def test_every_formula_has_a_source(full):
    """A function that computes what a paper defines or proves cites it by a registered key; the others are listed."""
    keys = set(cited(inspect.getdoc(NAMES[full].value)))
    assert keys <= set(REFERENCES)
    assert bool(keys) is (full not in NO_FORMULA)


def test_the_list_of_functions_without_a_formula_is_current():
    """Every name in the list is a public function."""
    assert set(NO_FORMULA) <= set(FUNCTIONS)


@pytest.mark.parametrize("full", [f for f in COMPUTING if ARRAYS & parameters(NAMES[f].value)])
def test_arrays_have_shapes(full):
    """A function that takes an array says of which shape."""
    assert SHAPE.search(inspect.getdoc(NAMES[full].value).split(">>>")[0])


@pytest.mark.parametrize("full", [f for f in OWN if IN_NATS & parameters(NAMES[f].value)])
def test_privacy_parameters_have_units(full):
    """The page of a name with a parameter such as epsilon says that it is in nats."""
    assert "in nats" in entry_of(full)


@pytest.mark.parametrize("full", OWN)
def test_errors_are_in_the_reference(full):
    """Whatever checks its arguments says in the reference that `InvalidInput` follows, and for what."""
    value = NAMES[full].value
    if inspect.isclass(value) and (inspect.isabstract(value) or issubclass(value, BaseException)):
        return
    entry = entry_of(full)
    for line in refusals(value):
        assert markdown(line).split(":")[0] in entry
    if inspect.isfunction(value) and re.search(r"raise (invalid|InvalidInput)\(", inspect.getsource(value)):
        assert "InvalidInput" in entry


def test_what_is_refused_is_read_from_the_code():
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
    made = markdown("Sum of a*b.\n\na, b : numbers. c : another,\n    indented.\n\n>>> 1 + 1\n2")
    assert made == "Sum of a\\*b.\n\n- `a`, `b`: numbers.\n- `c`: another, indented.\n\n```pycon\n>>> 1 + 1\n2\n```"


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
