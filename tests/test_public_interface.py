"""Applications, experiments, notebooks and drawings use public names of public modules and nothing else."""

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from contextlib import suppress
from types import ModuleType
from typing import Any

import pytest
from packages import folder

ROOT = folder("ldpopt").parent

PUBLIC = {
    "ldpopt": [
        "bounds", "channel", "citation", "cli", "composition", "datasets", "design", "design.constraints",
        "divergences", "errors", "exact", "extras", "frontiers", "io", "mechanisms", "plots",
        "privacy", "privacy.calibrate", "privacy.conversions", "privacy.implications", "version", "words",
    ],
    "ldpopt_survey": [
        "collect.answers", "collect.coding", "collect.runner", "collect.words", "datafiles.pieces",
        "estimate.estimate", "estimate.groups", "estimate.intervals", "estimate.linear", "estimate.sampled",
        "kit.folder", "paper.design", "pictures", "plan.planned_question", "plan.question", "plan.units", "reports",
        "reports.page", "reports.promises", "reports.words", "server", "server.decide", "server.submission",
        "server.web",
    ],
    "ldpopt_studio": [],
}  # fmt: skip
"""The public modules of each package, beside the package itself."""

SUPPORT = ("ldpopt.numbers", "ldpopt.values", "ldpopt.files")
"""The packages that all share: every module of them is public."""

USERS = ("ldpopt_survey", "ldpopt_studio", "experiments", "notebooks", "docs/images")
"""The folders whose sources are read."""

ATTACKS = {
    ("experiments/trust/laws.py", "ldpopt.design.two_hypotheses"),
    ("experiments/trust/laws.py", "ldpopt.design.two_hypotheses.method"),
    ("experiments/trust/laws.py", "ldpopt.design.two_hypotheses.program"),
    ("experiments/trust/laws.py", "ldpopt.design.two_hypotheses.proof"),
    ("experiments/trust/laws.py", "ldpopt.design.problems"),
    ("experiments/trust/laws.py", "ldpopt.design.problems.reduction"),
    ("experiments/trust/hostile.py", "ldpopt_survey.datafiles"),
    ("experiments/trust/field.py", "ldpopt_survey.collect.answers"),
    ("experiments/trust/closings.py", "ldpopt_survey.server"),
}
"""Scripts that change what they attack, and the modules of which they use private names: `laws` forges with the
numbers of the method and lets the kernel remember what it measured of equal laws; `hostile` measures the memory of the
processes that read foreign files; `field` reads small folders in many partitions; `closings` shortens the waits of the
databases and the batches of their shufflers."""


def public_modules() -> list[str]:
    """Every public module by its dotted name."""
    listed = [name for package, inner in PUBLIC.items() for name in (package, *(f"{package}.{each}" for each in inner))]
    for package in SUPPORT:
        found = pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}.")
        listed += [package, *(module.name for module in found)]
    return listed


MODULES = frozenset(public_modules())


def is_public(module: str, name: str) -> bool:
    """Whether a public module offers a name in its `__all__`, or the name is that of a public module.

    An empty name is the module itself.
    """
    if not name or f"{module}.{name}" in MODULES:
        return (f"{module}.{name}" if name else module) in MODULES
    return module in MODULES and (name == "*" or name in getattr(importlib.import_module(module), "__all__", ()))


def found(module: str, name: str) -> Any:
    """What `from module import name` binds; None for what is not there, or not of these packages."""
    if module.partition(".")[0] not in PUBLIC:
        return None
    value = getattr(importlib.import_module(module), name, None)
    if value is None:
        with suppress(ModuleNotFoundError):
            return importlib.import_module(f"{module}.{name}")
    return value


def uses(source: str) -> Iterator[tuple[str, str, int]]:
    """(module, name, line) of all that a source uses of modules: imports, lazy ones and those by a text too, and
    attributes of imported modules. The name is empty where a whole module is imported.
    """
    tree = ast.parse(source)
    bound: dict[str, Any] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, "", node.lineno
                first = alias.name if alias.asname else alias.name.partition(".")[0]
                if first.partition(".")[0] in PUBLIC:
                    bound[alias.asname or first] = importlib.import_module(first)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield node.module, alias.name, node.lineno
                bound[alias.asname or alias.name] = found(node.module, alias.name)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            for argument in node.args[:1]:
                if isinstance(argument, ast.Constant):
                    yield str(argument.value), "", node.lineno

    def value(node: ast.expr) -> Any:
        if isinstance(node, ast.Attribute):
            return getattr(value(node.value), node.attr, None)
        return bound.get(node.id) if isinstance(node, ast.Name) else None

    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(module := value(node.value), ModuleType):
            yield module.__name__, node.attr, node.lineno


def private_uses(source: str, package: str = "") -> list[tuple[str, str, int]]:
    """Those uses that are of a package of `PUBLIC`, other than the source's own, and private."""
    others = set(PUBLIC) - {package}
    return [
        (module, name, line)
        for module, name, line in uses(source)
        if module.partition(".")[0] in others and not is_public(module, name) and not name.startswith("__")
    ]


def test_applications_use_public_names_only():
    """No application, experiment, notebook or drawing uses a private name of another package."""
    private, attacking, read = [], set(), 0
    for user in USERS:
        for path in sorted((ROOT / user).rglob("*.py")):
            read += 1
            place = path.relative_to(ROOT).as_posix()
            for module, name, line in private_uses(path.read_text("utf-8"), user):
                if any(place == attack and module.startswith(attacked) for attack, attacked in ATTACKS):
                    attacking.add(place)
                else:
                    private.append(f"{place}:{line}: {module} {name}")
    assert not private, "\n".join(private)
    assert read > 100
    assert attacking == {place for place, _ in ATTACKS if (ROOT / place).exists()}


@pytest.mark.parametrize("name", sorted(MODULES - {"ldpopt_studio", *SUPPORT}))
def test_a_public_module_lists_its_names(name):
    """It has an `__all__` without repetitions, whose names all exist and are in `dir`."""
    module = importlib.import_module(name)
    offered = list(module.__all__)
    assert len(set(offered)) == len(offered) > 0
    assert all(hasattr(module, each) for each in offered)
    assert set(offered) <= set(dir(module))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import ldpopt.design.solve", ("ldpopt.design.solve", "")),
        ("import ldpopt.design.solve as s", ("ldpopt.design.solve", "")),
        ("import numpy, ldpopt.design.finish", ("ldpopt.design.finish", "")),
        ("from ldpopt.design.solve import solve", ("ldpopt.design.solve", "solve")),
        ("from ldpopt.design.design import Design", ("ldpopt.design.design", "Design")),
        ("from ldpopt.design import solve", ("ldpopt.design", "solve")),
        ("from ldpopt.design import *\nfrom ldpopt.design.solve import *", ("ldpopt.design.solve", "*")),
        ("from ldpopt.bounds import limits_of", ("ldpopt.bounds", "limits_of")),
        ("from ldpopt.channel import FORMAT as f", ("ldpopt.channel", "FORMAT")),
        ("from ldpopt.values.results import LIMITS", ("ldpopt.values.results", "LIMITS")),
        ("def f():\n    from ldpopt.design.solve import solve", ("ldpopt.design.solve", "solve")),
        ("if TYPE_CHECKING:\n    from ldpopt.design.solve import solve", ("ldpopt.design.solve", "solve")),
        ("try:\n    pass\nfinally:\n    import ldpopt.design.solve", ("ldpopt.design.solve", "")),
        ("import importlib\nimportlib.import_module('ldpopt.design.solve')", ("ldpopt.design.solve", "")),
        ("__import__('ldpopt.design.solve')", ("ldpopt.design.solve", "")),
        ("import ldpopt\nldpopt.design.solve.solve()", ("ldpopt.design", "solve")),
        ("import ldpopt.channel\nldpopt.channel.FORMAT", ("ldpopt.channel", "FORMAT")),
        ("from ldpopt import channel as c\nc.FORMAT", ("ldpopt.channel", "FORMAT")),
        ("from ldpopt.files import strict\ndef f():\n    return strict._object", ("ldpopt.files.strict", "_object")),
        ("from ldpopt_survey.plan.units import respondents_bound", ("ldpopt_survey.plan.units", "respondents_bound")),
    ],
)
def test_the_reader_sees_every_form_of_use(source, expected):
    """Imports at any depth, for types, by a text, of several names, of all names, and attributes of modules count."""
    assert expected in {use[:2] for use in private_uses(source)}


@pytest.mark.parametrize(
    "source",
    [
        "import ldpopt\nldpopt.optimal_channel\nldpopt.__version__",
        "from ldpopt import design\ndesign.optimal_channel, design.constraints.LocalDP",
        "from ldpopt.design import constraints, EnvelopeDual",
        "from ldpopt.privacy import *",
        "from ldpopt.values import schema\nschema.schema_of",
        "from ldpopt.composition import k_fold\nk_fold.anything",
        "from ldpopt_survey import estimate",
        "import numpy as np\nnp.linalg.norm",
        "from . import neighbour",
    ],
)
def test_public_names_are_left_alone(source):
    """Nothing is wrong with public names, with attributes of what is no module, and with other packages."""
    assert not private_uses(source)
