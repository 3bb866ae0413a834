"""The size of the house: circles of imports, files that one call enters, makers of designs, definitions of `verify`.

    python experiments/trust/house.py [--json]
    PYTHONPATH=/path/to/another/tree python experiments/trust/house.py      (the tree that is imported is measured)

A file counts as entered by a call if code of one of its functions runs during the call, imports done beforehand (each
call is made twice, and the second one counted). Circles are strongly connected sets of more than one module, where an
import counts wherever it stands: at the top, inside functions, or for types alone.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import networkx as nx
import numpy as np

import ldpopt
from ldpopt import LocalDP, TotalVariation, optimal_channel
from ldpopt import design as room
from ldpopt.design import AgainstSet, ApproximateLDP, Divergence, FisherInformation, MutualInformation, Outputs
from ldpopt.divergences import KL

PACKAGE = Path(ldpopt.__file__).resolve().parent
DESIGN = PACKAGE / "design"
P0, P1 = np.array([0.35, 0.25, 0.2, 0.15, 0.05]), np.array([0.1, 0.15, 0.2, 0.25, 0.3])


# --- What stands there ------------------------------------------------------------------------------------------------


def trees(folder: Path) -> Iterator[tuple[Path, ast.Module]]:
    """Every module of a folder, parsed."""
    for path in sorted(folder.rglob("*.py")):
        yield path, ast.parse(path.read_text("utf-8"))


def dotted(path: Path) -> str:
    """The name of a module of the package."""
    parts = ["ldpopt", *path.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def circles() -> list[list[str]]:
    """Sets of modules that import each other; the package's own `__init__`, which names all, is left out."""
    known = {dotted(path) for path, _ in trees(PACKAGE)}
    graph = nx.DiGraph()
    for path, tree in trees(PACKAGE):
        own = dotted(path)
        for node in ast.walk(tree):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = node.module or ""
                names = [whole if (whole := f"{base}.{alias.name}") in known else base for alias in node.names]
            graph.add_edges_from((own, name) for name in names if name in known - {own, "ldpopt"} and own != "ldpopt")
    return sorted(sorted(part) for part in nx.strongly_connected_components(graph) if len(part) > 1)


def called(node: ast.AST) -> str:
    """The last name of what a call calls, else nothing."""
    if not isinstance(node, ast.Call):
        return ""
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


def built() -> dict[str, int]:
    """Counts of what the code of `design` is made of."""
    results = {"Design", "EstimationDesign"}
    classes = {node.name: {getattr(base, "id", "") for base in node.bases}
               for _, tree in trees(DESIGN) for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}  # fmt: skip
    own = set(classes) - {"Certificate"}
    proofs, before = {"Certificate"}, 0
    while len(proofs) > before:
        before = len(proofs)
        proofs |= {name for name, bases in classes.items() if bases & proofs}
    # A proof that is none of the family, but has the numbers and `verify`, counts too.
    proofs |= {name for name in own if name == "EquivalenceDual"}
    named = {name for name in own if not name.startswith("_")}
    return {
        "files of design": sum(1 for _ in trees(DESIGN)),
        "lines of design": sum(len(path.read_text("utf-8").splitlines()) for path, _ in trees(DESIGN)),
        "files of the package": sum(1 for _ in trees(PACKAGE)),
        "lines of the package": sum(len(path.read_text("utf-8").splitlines()) for path, _ in trees(PACKAGE)),
        "most modules flat in one folder": max(
            len([*folder.glob("*.py")]) for folder in [PACKAGE, *PACKAGE.rglob("*")] if folder.is_dir()
        ),
        "makers of a design": sum(called(node) in results for _, tree in trees(DESIGN) for node in ast.walk(tree)),
        "result classes": len(results & set(classes)),
        "definitions of verify": sum(
            isinstance(node, ast.FunctionDef) and node.name == "verify"
            for _, tree in trees(DESIGN)
            for node in ast.walk(tree)
        ),
        "certificates": len({name for name in proofs & named if name != "Certificate"}),
        "isinstance on classes of design": sum(
            called(node) == "isinstance" and bool({getattr(part, "id", "") for part in ast.walk(node)} & named)
            for _, tree in trees(DESIGN)
            for node in ast.walk(tree)
        ),
    }


# --- What one call enters ---------------------------------------------------------------------------------------------


def entered(call: Callable[[], Any]) -> tuple[int, int]:
    """(files of design, files of the package) whose code runs during a call."""
    seen: set[str] = set()

    def watch(frame: FrameType, event: str, _: Any) -> None:
        # The body of a class or of a module is no call into it.
        if event == "call" and frame.f_code.co_flags & 0x2:
            seen.add(frame.f_code.co_filename)

    call()
    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    files = {Path(name) for name in seen}
    return sum(DESIGN in path.parents for path in files), sum(PACKAGE in path.parents for path in files)


def pair(k: int) -> tuple[np.ndarray, np.ndarray]:
    """Two distributions on k answers."""
    rng = np.random.default_rng(1)
    return rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k))


def trip() -> None:
    """A survey of one question: planned, answered, privatized, counted and estimated."""
    import pandas as pd

    from ldpopt.survey import QuestionSpec, SurveySpec, plan_survey

    spec = SurveySpec("demo", (QuestionSpec("vote", ("no", "yes", "none"), half_width=0.05),), epsilon=1.0)
    survey = plan_survey(spec, n=500)
    survey = getattr(survey, "survey", survey)
    answers = pd.DataFrame({"vote": np.random.default_rng(1).choice(["no", "yes", "none"], 500)})
    made = survey if hasattr(survey, "privatize") else _survey(survey)
    made.estimate("vote", made.privatize(answers))


def _survey(planned: Any) -> Any:
    """The survey of a plan."""
    from ldpopt.survey import Survey

    return Survey(planned.plan)


def claim() -> None:
    """One claim of a paper recomputed, in its quick form."""
    from ldpopt.cli import app

    with tempfile.TemporaryDirectory() as folder:
        app(["reproduce", "gi-theorem-5", "--quick", "--out", folder], standalone_mode=False)


def calls() -> dict[str, Callable[[], Any]]:
    """The calls whose way is measured."""
    u, cap = Divergence(KL, P0, P1), [LocalDP(1.0), TotalVariation(0.3)]
    zcdp = getattr(room, "ConcentratedLDP", None) or room.ZCDP
    return {
        "Divergence, k = 5": lambda: optimal_channel(u, cap),
        "Divergence, k = 400": lambda: optimal_channel(Divergence(KL, *pair(400)), cap),
        "ApproximateLDP": lambda: optimal_channel(u, ApproximateLDP(1.0, 0.01)),
        "zCDP": lambda: optimal_channel(u, zcdp(0.3)),
        "MutualInformation": lambda: optimal_channel(MutualInformation(P0), cap),
        "FisherInformation": lambda: room.estimation_design(FisherInformation(P0), LocalDP(1.0)),
        "Outputs(2)": lambda: optimal_channel(u, [*cap, Outputs(2)]),
        "AgainstSet": lambda: optimal_channel(
            AgainstSet(KL, P0, room.Around(P1, room.Contamination(0.05))), LocalDP(1.0)
        ),
        "survey: plan, privatize, estimate": trip,
        "reproduce gi-theorem-5": claim,
    }


def main() -> None:
    """Count, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found: dict[str, Any] = {"circles of imports": len(rings := circles()), **built()}
    ways: dict[str, Any] = {}
    for name, call in calls().items():
        try:
            ways[name] = "/".join(map(str, entered(call)))
        except Exception as error:
            ways[name] = f"{type(error).__name__}: {error}"
    if given.json:
        print(json.dumps({"tree": str(PACKAGE), **found, "rings": rings, "entered": ways}, indent=1))
        return
    print(f"{PACKAGE}\n")
    for what, count in found.items():
        print(f"{what:40} {count}")
    for ring in rings:
        print("  circle:", ", ".join(ring))
    print("\nfiles entered by a call (design / package)")
    for what, count in ways.items():
        print(f"{what:40} {count}")


if __name__ == "__main__":
    main()
