"""Imports go only down the list of layers, and light work stays light."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import networkx as nx
import pytest
from packages import APPLICATIONS, LIBRARY, PACKAGES
from packages import modules as files_of

import ldpopt

PACKAGE = Path(ldpopt.__file__).parent
SUBMODULES = {path.stem for path in PACKAGE.iterdir()}

LAYERS = [
    {"errors", "extras", "version", "numbers"},
    {"files"},
    {"values"},
    {"divergences"},
    {"garbling"},
    {"exact"},
    {"channel"},
    {"mechanisms", "privacy"},
    {"composition"},
    {"design"},
    {"words"},
    {"bounds"},
    {"frontiers"},
    {"citation", "datasets", "io", "plots"},
    {"demo"},
    {"cli"},
    {"ldpopt", "__main__"},
]
"""The library from the bottom up; `ldpopt` is its own `__init__`, which may name everything below it."""

LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def name_of(module: list[str]) -> str:
    """The layered name of a dotted module: what follows ``ldpopt.``, or the package itself."""
    return module[1] if len(module) > 1 else "ldpopt"


@cache
def statements(source: str) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """Every statement of import in a source, wherever it stands; both graphs of imports are made of them."""
    return tuple(
        node for node in nested_statements(ast.parse(source)) if isinstance(node, (ast.Import, ast.ImportFrom))
    )


def nested_statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements in a statement; no expression has one in it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case)):
            yield child
            yield from nested_statements(child)


def imports(source: str, module: list[str], is_package: bool) -> Iterator[tuple[str, int]]:
    """(layered name, line) of every import of this package in `source`, wherever it stands in the file."""
    for node in statements(source):
        if isinstance(node, ast.Import):
            found = [alias.name.split(".") for alias in node.names]
        else:
            base = node.module.split(".") if node.module else []
            if node.level:
                base = module[: len(module) - node.level + is_package] + base
            # `from ldpopt import channel` is an edge to the channel, `from ldpopt import Channel` to the package.
            found = [[*base, alias.name] if alias.name in SUBMODULES else base for alias in node.names]
        for dotted in found:
            if dotted[0] == "ldpopt":
                yield name_of(dotted), node.lineno


def modules(*packages: str) -> list[tuple[Path, list[str]]]:
    return [(path, name.split(".")) for name, path in files_of(*(packages or (LIBRARY,))).items()]


@cache
def edges() -> tuple[tuple[str, str, str], ...]:
    """(importer, imported, place) for every edge between two different layered names."""
    return tuple(
        (own, other, f"{path.relative_to(PACKAGE.parent)}:{line}")
        for path, module in modules()
        for own in [name_of(module)]
        for other, line in imports(path.read_text("utf-8"), module, path.name == "__init__.py")
        if other != own
    )


def test_every_module_has_a_layer():
    """Every module of the package stands in one layer; a new one is added to the list on purpose."""
    assert {name_of(module) for _, module in modules()} <= set(LEVEL)


def test_no_import_goes_up():
    """A module imports from its own layer or a lower one, inside functions and for types too."""
    upward = [f"{place}: {own} imports {other}" for own, other, place in edges() if LEVEL[other] > LEVEL[own]]
    assert not upward, "\n".join(upward)


def test_the_library_names_no_application():
    """No module of the library names an application, in an import, in a string or in its documentation."""
    for package in APPLICATIONS:
        naming = [name for name, path in files_of(LIBRARY).items() if package in path.read_text("utf-8")]
        assert not naming, f"{package} is named by {naming}"


MISSION = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"{name} is blocked", name=name)
BLOCKED = {"ldpopt_survey", "ldpopt_studio", "experiments", "pyarrow", "cryptography", "fpdf", "jinja2",
           "python_calamine", "formulaic", "starlette", "uvicorn", "pandas", "polars", "sklearn", "dask"}
sys.meta_path.insert(0, Blocked())
from ldpopt import Divergence, LocalDP, TotalVariation, bounds, frontier, load_design, optimal_channel
from ldpopt.divergences import KL
question = Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
design = optimal_channel(question, [LocalDP(1.0), TotalVariation(0.3)])
assert design.certified and design.verify()
design.save("design.json")
assert load_design("design.json") == design
bounds.compare(question, [0.5, 1.0], [0.1, 0.3]).plot().figure.savefig("compared.pdf")
frontier(question, [1.0], [0.1, 0.3]).plot().figure.savefig("frontier.pdf")
design.plot().figure.savefig("design.pdf")
print(sum(name.split(".")[0] == "ldpopt" for name in sys.modules))
"""
"""A question, a design, its proof, its file, the bounds beside it, a frontier, and their pictures."""


@pytest.mark.full
def test_the_mission_runs_without_the_applications(tmp_path):
    """With the applications' packages and their dependencies blocked, a researcher misses nothing."""
    done = subprocess.run([sys.executable, "-c", MISSION], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {path.suffix for path in tmp_path.iterdir()} == {".json", ".pdf"}
    assert int(done.stdout) <= 105


def test_layers_contain_no_import_cycle():
    """Names of one layer may use each other, but never in a circle."""
    graph = nx.DiGraph((own, other) for own, other, _ in edges())
    assert nx.is_directed_acyclic_graph(graph), nx.find_cycle(graph)


@cache
def module_edges() -> tuple[tuple[str, str], ...]:
    """(importer, imported) for every pair of modules of the package, imports inside functions and for types included.

    A name that a package re-exports counts as an import of the package; a package imports what its `__init__` names.
    """
    known = {".".join(module): path for path, module in modules(*PACKAGES)}
    edges = []
    for path, module in modules(*PACKAGES):
        own = ".".join(module)
        for node in statements(path.read_text("utf-8")):
            if isinstance(node, ast.Import):
                found = [alias.name for alias in node.names]
            else:
                base = node.module or ""
                found = [whole if (whole := f"{base}.{alias.name}") in known else base for alias in node.names]
            edges += [(own, name) for name in found if name in known and name != own]
    return tuple(edges)


def test_modules_form_no_import_circle():
    """No module of any package imports itself through others, whether at once, lazily or for types alone."""
    graph = nx.DiGraph(edge for edge in module_edges() if edge[0] not in PACKAGES)
    assert nx.is_directed_acyclic_graph(graph), nx.find_cycle(graph)


UNTRUSTED = re.compile(r"ldpopt\.design\.(\w+\.(method|program)\w*|finish|generate)$")
"""What finds channels: methods and programs, in the folder of every class of problems."""
TRUSTED = re.compile(r"ldpopt\.design\.(kernel\.\w+|\w+\.proof\w*)$")
"""The kernel, and the proofs of every class of problems."""


def test_the_kernel_imports_no_solver_and_no_method():
    """The proofs and all that they reach name no solver, program or method, not even inside a function."""
    graph = nx.DiGraph(module_edges())
    kernel = [name for name in graph if TRUSTED.match(name)]
    assert len(kernel) > 15
    reached = set(kernel).union(*(nx.descendants(graph, name) for name in kernel))
    assert not [name for name in reached if UNTRUSTED.match(name)]
    heavy = {"cvxpy", "clarabel", "highspy"}
    for name in kernel:
        source = PACKAGE.parent.joinpath(*name.split(".")).with_suffix(".py")
        source = source if source.exists() else source.with_suffix("") / "__init__.py"
        named = {alias.name.split(".")[0] for node in statements(source.read_text("utf-8"))
                 if isinstance(node, ast.Import) for alias in node.names}  # fmt: skip
        assert not named & heavy, name


def test_reading_and_checking_a_design_loads_few_modules(tmp_path):
    """A plain design takes at most 63 modules of the package, and a design of any class no method and no program."""
    records = json.loads((Path(__file__).parent / "data" / "certificates.json").read_text("utf-8"))
    kinds = {one["design"]["certificate"]["kind"]: one["design"] for one in records}
    assert len(kinds) > 20
    (tmp_path / "designs.json").write_text(json.dumps([kinds.pop("EnvelopeDual"), *kinds.values()]), "utf-8")
    code = """
import json, sys
from ldpopt.design.load import parse_design
counts = []
for one in json.load(open("designs.json", encoding="utf-8")):
    parse_design(json.dumps(one)).verify()
    counts.append(sum(name.startswith("ldpopt") for name in sys.modules))
print(json.dumps([counts, [name for name in sys.modules if name.startswith(("ldpopt.design.", "cvxpy", "rich"))]]))
"""
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    counts, loaded = json.loads(run.stdout)
    assert counts[0] <= 63
    assert not [name for name in loaded if UNTRUSTED.match(name) or name.startswith(("cvxpy", "rich"))]


def test_checking_in_a_shell_loads_neither_scipy_nor_rich(tmp_path):
    """The two commands that scripts run most start in less than four times numpy's import (experiments/benchmarks)."""
    records = json.loads((Path(__file__).parent / "data" / "certificates.json").read_text("utf-8"))
    plain = next(one["design"] for one in records if one["design"]["certificate"]["kind"] == "EnvelopeDual")
    (tmp_path / "design.json").write_text(json.dumps(plain), "utf-8")
    code = """
import sys
from ldpopt.cli import main
codes = []
for command in ("check", "verify"):
    sys.argv[1:] = [command, "design.json"]
    codes.append(main())
heavy = ("scipy", "rich", "cvxpy", "pyarrow", "ldpopt.composition", "ldpopt_survey")
print(codes, [name for name in sys.modules if name.startswith(heavy)])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[0, 0] []"


def classes(sources: dict[str, str]) -> dict[str, list[str]]:
    """Where each class stands that is defined at the level of a module and not underscored."""
    found: dict[str, list[str]] = {}
    for place, source in sources.items():
        for node in ast.parse(source).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(place)
    return found


def test_no_two_classes_of_the_design_share_a_name():
    """In `ldpopt.design` a name means one class: files are read by the names of classes, and so are messages."""
    sources = {".".join(module): path.read_text("utf-8") for path, module in modules() if module[1:2] == ["design"]}
    assert not {name: places for name, places in classes(sources).items() if len(places) > 1}


def test_the_reader_of_classes_sees_a_shared_name():
    """Of two modules that define one name both are named; underscored and inner classes are not looked at."""
    sources = {
        "a": "class X: ...\nclass _Y: ...",
        "b": "class X:\n    class Z: ...",
        "c": "class Z: ...\nclass _Y: ...",
    }
    assert classes(sources) == {"X": ["a", "b"], "Z": ["c"]}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("import ldpopt.design", "design"),
        ("from ldpopt.design.solve import solve", "design"),
        ("from ldpopt import channel", "channel"),
        ("from ldpopt import Channel", "ldpopt"),
        ("import ldpopt", "ldpopt"),
        ("from .design import frontier", "design"),
        ("from . import channel as c", "channel"),
        ("def f():\n    from ldpopt.cli import main", "cli"),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import ldpopt.cli", "cli"),
    ],
)
def test_the_reader_of_imports_sees_every_form(line, expected):
    """Absolute, relative, lazy and type-only imports all count."""
    assert [name for name, _ in imports(line, ["ldpopt", "errors"], False)] == [expected]


def test_a_relative_import_in_a_package_is_resolved():
    """Two dots inside a subpackage lead out of it, one dot stays."""
    assert [n for n, _ in imports("from ..design import x", ["ldpopt", "privacy", "renyi"], False)] == ["design"]
    assert [n for n, _ in imports("from . import renyi", ["ldpopt", "privacy"], True)] == ["privacy"]


HEAVY = "('cvxpy', 'flint', 'matplotlib', 'networkx', 'pandas', 'rich', 'scipy.optimize', 'scipy.stats', 'typer')"
MEASURE = """
from ldpopt.channel import Channel
from ldpopt.privacy.local_dp import local_dp
from ldpopt.privacy.approximate_dp import total_variation
channel = Channel([[0.75, 0.25], [0.25, 0.75]])
local_dp(channel), total_variation(channel.erase(0.5))
"""


@cache
def loaded() -> list[str]:
    """Which modules a fresh interpreter holds after each of three steps, of those that the step is to do without."""
    script = "import sys"
    for code, names in (
        ("import ldpopt", HEAVY),
        ("import ldpopt_survey, ldpopt.composition", HEAVY),
        (MEASURE, "('cvxpy', 'matplotlib', 'networkx', 'pandas')"),
    ):
        script += f"\n{code}\nprint(sorted(name for name in {names} if name in sys.modules))"
    run = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True, timeout=600)
    return run.stdout.splitlines()


def test_importing_the_package_loads_nothing_heavy():
    """`import ldpopt` loads no solver, no plotting, no tables and no command line."""
    assert loaded()[0] == "[]"


def test_surveys_start_without_optimisers_and_distributions():
    """What privatizes, counts and estimates loads scipy's optimisers and distributions where they are used."""
    assert loaded()[1] == "[]"


def test_measuring_a_channel_loads_no_solver():
    """Measuring a channel never imports cvxpy, matplotlib, networkx or pandas, nor does what surveys start with."""
    assert loaded()[2] == "[]"
