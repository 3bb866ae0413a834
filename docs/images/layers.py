"""Draw the layers of the library and the applications on it, from the imports: ``python docs/images/layers.py``."""

import ast
import importlib
from pathlib import Path
from typing import Any

import networkx as nx
from drawn import FIRST, SECOND, TYPE, panels, save

SUPPORT = {"errors", "extras", "version", "numbers", "files", "values"}
SINGLE = {"exact": "channel", "citation": "plots", "datasets": "plots", "io": "plots"}
"""Small modules that are drawn with a neighbour of their layer."""

TITLES = {
    "support": "numbers  ·  files  ·  values", "channel": "channel  ·  exact", "plots": "plots  ·  io  ·  citation",
    "experiments": "experiments", "cli": "cli  ·  demo", "words": "words",
}  # fmt: skip


HALF = 0.2
"""Half the height of a box, in rows."""


def part(module: str) -> str:
    """The box in which a module is drawn; empty for what is not drawn."""
    package, _, inner = module.partition(".")
    if package != "ldpopt":
        return package if package in ("ldpopt_survey", "ldpopt_studio", "experiments") else ""
    name = inner.split(".")[0]
    return "support" if name in SUPPORT else {"demo": "cli", "__main__": "cli"}.get(name, SINGLE.get(name, name))


def graph() -> nx.DiGraph:
    """An edge for every box that imports from another one, wherever the import stands."""
    found = nx.DiGraph()
    for package in ("ldpopt", "ldpopt_survey", "ldpopt_studio", "experiments.papers"):
        root = Path(str(importlib.import_module(package).__file__)).parent
        for path in root.rglob("*.py"):
            own = part(".".join([package, *path.relative_to(root).with_suffix("").parts]))
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.ImportFrom) and node.module:
                    names = [node.module] if node.module != "ldpopt" else [f"ldpopt.{one.name}" for one in node.names]
                    others = {part(name) for name in names} - {own, ""}
                    found.add_edges_from((own, other) for other in others if own)
    return found.subgraph(box for box in found if box and box[0].islower() and box != "__init__").copy()


def draw() -> Any:
    """A box for each part, above all that it imports; of the arrows only those that no longer path implies."""
    imports = graph()
    assert nx.is_directed_acyclic_graph(imports), nx.find_cycle(imports)
    heights: dict[str, int] = {}
    for box in reversed(list(nx.topological_sort(imports))):
        heights[box] = 1 + max((heights[below] for below in imports[box]), default=-1)
    rows: dict[int, list[str]] = {}
    for box, height in sorted(heights.items()):
        rows.setdefault(height, []).append(box)
    (ax,) = panels((6.6,), 0.62 * (max(rows) + 1))
    places = {
        box: ((2 * number + 1) / (2 * len(row)), height)
        for height, row in rows.items()
        for number, box in enumerate(row)
    }
    for box, below in nx.transitive_reduction(imports).edges:
        (x, y), (end, level) = places[box], places[below]
        arrow = {"arrowstyle": "-|>", "color": "0.6", "lw": 0.8, "shrinkA": 0, "shrinkB": 0}
        ax.annotate("", (end, level + HALF), (x, y - HALF), arrowprops=arrow)
    for box, (x, y) in places.items():
        color = SECOND if box.startswith(("ldpopt_", "experiments")) else FIRST
        frame = {"boxstyle": "round,pad=0.35", "fc": "white", "ec": color}
        ax.text(x, y, TITLES.get(box, box), ha="center", va="center", fontsize=TYPE, bbox=frame)
    ax.set(xlim=(0, 1), ylim=(-0.6, max(rows) + 0.6), xticks=[], yticks=[])
    ax.set_axis_off()
    return ax


if __name__ == "__main__":
    save(draw(), __file__)
