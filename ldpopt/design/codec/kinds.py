"""The classes that a design file may name: no other class is instantiated from a file.

The module also encodes the parts of a problem that are not dataclasses of this package: named divergences, policy
graphs, and distributions of SciPy.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any, get_args, get_type_hints

import numpy as np

from ldpopt.design import constraints, utilities
from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.registry import CERTIFICATE_MODULES, Kind
from ldpopt.design.registry import registered_type as registered_kind
from ldpopt.design.registry import registered_types as registered
from ldpopt.divergences import NAMED, FDivergence
from ldpopt.divergences.base import FAMILIES, rebuild
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.privacy.guarantee import Guarantee, Witness
from ldpopt.values.distribution import number
from ldpopt.values.labels import Label, distinct_labels, from_jsonable, to_jsonable

UNTAGGED_TYPES = (Guarantee, Witness)
"""The classes of fields with a single possible type, so that a file does not name it."""
REMEASURED_FIELDS = frozenset({"lower", "witness", "exact", "reference"})
"""The fields of a guarantee that are not written: the check of a file measures them. Older files state them."""
PROBLEM_FIELDS = frozenset({"utility", "constraints", "channel", "edges"})
"""The fields of a certificate that a file states only if they differ from those of its holder."""


@cache
def encodable_types() -> dict[str, type]:
    """List the classes by name, including the dataclasses that certificates hold."""
    types: dict[str, type] = {}
    queue: list[type] = [*registered(utilities, constraints, CERTIFICATE_MODULES).values(), *UNTAGGED_TYPES]
    while queue:
        kind = queue.pop()
        if types.setdefault(kind.__name__, kind) is kind and kind is not Certificate:
            queue += [part for part in _parts(kind) if part.__name__ not in types]
    return {name: kind for name, kind in types.items() if not inspect.isabstract(kind)}


def encodable_type(name: str, expected: Any = object) -> type | None:
    """Return the class of a name, or None, and load only its module if possible.

    expected : the class, or a tuple of classes, that the field is declared to hold.
    """
    choices = expected if isinstance(expected, tuple) else (expected,)
    for choice in choices:
        if isinstance(choice, type) and choice.__name__ == name and dataclasses.is_dataclass(choice):
            return choice if not inspect.isabstract(choice) else None
    return registered_kind(name, utilities, constraints, CERTIFICATE_MODULES) or encodable_types().get(name)


@cache
def encodable_subtypes(base: type) -> tuple[type, ...]:
    """List the encodable classes that inherit from `base`."""
    return tuple(kind for kind in encodable_types().values() if issubclass(kind, base))


@cache
def fields(kind: type) -> dict[str, tuple[Any, bool]]:
    """List the fields of an instance: the type of each, and True if it may be missing.

    For a certificate these are its numbers, without the problem that it is about.
    """
    hints = get_type_hints(kind)
    left_out = PROBLEM_FIELDS if issubclass(kind, Certificate) else frozenset()
    return {
        field.name: (
            hints[field.name],
            field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING,
        )
        for field in dataclasses.fields(kind)
        if field.init and field.name not in left_out
    }


def defaults(kind: type) -> dict[str, Any]:
    """List the plain defaults of a class's fields."""
    return {field.name: field.default for field in dataclasses.fields(kind)}


def _parts(kind: type) -> Iterator[type]:
    """Generate the dataclasses of this package that the fields of a class are declared to hold."""
    if issubclass(kind, Kind):
        yield from kind.takes
    queue = [hint for hint, _ in fields(kind).values()]
    while queue:
        hint = queue.pop()
        queue += get_args(hint)
        if isinstance(hint, type) and dataclasses.is_dataclass(hint) and hint.__module__.startswith("ldpopt."):
            yield hint


FILE_KIND, DESIGN_SCHEMA, RESPONDENTS_SCHEMA, VERSION = "design file", "ldpopt-design", "ldpopt-respondents", 1
CODE = "one of this package's (a function or class of one's own is code and fits in no file)"


def label_out(label: Label, where: str) -> Any:
    """Encode a label as a JSON value."""
    return to_jsonable(distinct_labels([label], 1, where)[0])


def label_in(data: Any, where: str) -> Label:
    """Decode the label of a JSON value."""
    return distinct_labels(from_jsonable([data], f"{FILE_KIND}: {where}"), 1, f"{FILE_KIND}: {where}")[0]


def divergence_out(f: FDivergence, where: str) -> dict[str, Any]:
    """Encode the name of an f-divergence, and its parameter if it is one of a family."""
    if f.recipe is None:
        raise invalid(where, CODE, Phrase(f"the f-divergence {f.name!r}"))
    return dict(zip(("name", "parameter"), f.recipe, strict=False))


def divergence_in(data: Any, where: str) -> FDivergence:
    """Decode the f-divergence of a name, and of a parameter if the name is that of a family."""
    if not isinstance(data, dict) or not isinstance(data.get("name"), str) or set(data) - {"name", "parameter"}:
        raise invalid(FILE_KIND, 'an f-divergence {"name": ...} or {"name": ..., "parameter": ...}', data, where)
    name, has_parameter = data["name"], "parameter" in data
    if name not in (FAMILIES if has_parameter else NAMED):
        raise invalid(FILE_KIND, f"one of {', '.join(FAMILIES if has_parameter else NAMED)}", name, f"{where}.name")
    if not has_parameter:
        return rebuild(name)
    name_of_parameter, parameter = f"{FILE_KIND}: {where}.parameter", data["parameter"]
    if name != "piecewise-linear":
        return rebuild(name, number(parameter, name_of_parameter))
    if not isinstance(parameter, list) or len(parameter) != 2 or not all(isinstance(part, list) for part in parameter):
        raise invalid(name_of_parameter, "a list of knots and a list of slopes", parameter)
    return rebuild(name, [[number(value, name_of_parameter) for value in part] for part in parameter])


def is_graph(value: Any) -> bool:
    """Return True if a value is a networkx graph."""
    return hasattr(value, "edges") and hasattr(value, "nodes") and hasattr(value, "is_directed")


def graph_out(graph: Any, where: str) -> dict[str, Any]:
    """Encode the nodes and the weighted edges of a networkx graph."""
    return {
        "kind": "graph",
        "directed": bool(graph.is_directed()),
        "multiple": bool(graph.is_multigraph()),
        "nodes": [label_out(node, f"{where}.nodes") for node in graph.nodes],
        "edges": [
            [label_out(a, f"{where}.edges"), label_out(b, f"{where}.edges"), number(weight, "edge weight")]
            for a, b, weight in graph.edges(data="weight", default=1.0)
        ],
    }


def graph_in(data: dict[str, Any], where: str) -> Any:
    """Decode the networkx graph with these nodes and weighted edges."""
    expect_keys(data, {"kind", "directed", "multiple", "nodes", "edges"}, where)
    for name in ("directed", "multiple"):
        if not isinstance(data[name], bool):
            raise invalid(FILE_KIND, "true or false", data[name], f"{where}.{name}")
    for name in ("nodes", "edges"):
        if not isinstance(data[name], list):
            raise invalid(FILE_KIND, "a list", data[name], f"{where}.{name}")
    nodes = [label_in(node, f"{where}.nodes") for node in data["nodes"]]
    edges = []
    for edge in data["edges"]:
        if not isinstance(edge, list) or len(edge) != 3:
            raise invalid(FILE_KIND, "edges [input, input, weight]", edge, f"{where}.edges")
        ends = [label_in(end, f"{where}.edges") for end in edge[:2]]
        if not set(ends) <= set(nodes):
            raise invalid(FILE_KIND, "edges between the nodes", edge, f"{where}.edges")
        edges.append((*ends, number(edge[2], f"{FILE_KIND}: {where}.edges")))
    import networkx as nx

    pairs = [tuple(edge[:2]) if data["directed"] else frozenset(edge[:2]) for edge in edges]
    if not data["multiple"] and len(count := Counter(pairs)) < len(pairs):
        repeated_edge = next(edge for edge, pair in zip(data["edges"], pairs, strict=True) if count[pair] > 1)
        raise invalid(FILE_KIND, 'each edge once, as "multiple" is false', repeated_edge, f"{where}.edges")
    graph = {(0, 0): nx.Graph, (1, 0): nx.DiGraph, (0, 1): nx.MultiGraph, (1, 1): nx.MultiDiGraph}[
        data["directed"], data["multiple"]
    ]()
    graph.add_nodes_from(nodes)
    graph.add_weighted_edges_from(edges)
    return graph


def law_out(law: Any, where: str) -> dict[str, Any]:
    """Encode the name and the parameters of a frozen `scipy.stats` distribution."""
    name = str(law.dist.name)
    family = _family(name)
    if family is None or type(law.dist) is not type(family):
        raise invalid(where, CODE, Phrase(f"the distribution {name!r}"))
    return {
        "kind": "scipy.stats",
        "name": name,
        "args": [number(value, f"{where}.args") for value in law.args],
        "kwds": {key: number(value, f"{where}.kwds") for key, value in law.kwds.items()},
    }


def law_in(data: dict[str, Any], where: str) -> Any:
    """Decode the frozen `scipy.stats` distribution of this name with these parameters."""
    expect_keys(data, {"kind", "name", "args", "kwds"}, where)
    family = _family(data["name"]) if isinstance(data["name"], str) else None
    if family is None:
        raise invalid(FILE_KIND, "the name of a distribution of scipy.stats", data["name"], f"{where}.name")
    if not isinstance(data["args"], list) or not isinstance(data["kwds"], dict):
        raise invalid(FILE_KIND, "a list of parameters and an object of named ones", data, where)
    args = [number(value, f"{FILE_KIND}: {where}.args") for value in data["args"]]
    kwds = {key: number(value, f"{FILE_KIND}: {where}.kwds") for key, value in data["kwds"].items()}
    try:
        law = family(*args, **kwds)
        with np.errstate(all="ignore"):
            is_valid = not math.isnan(float(law.cdf(0.0)))
    except (TypeError, ValueError, ArithmeticError) as error:
        raise InvalidInput(f"{FILE_KIND}: expected parameters of {data['name']}, got {error} at {where}") from None
    if not is_valid:
        raise invalid(FILE_KIND, f"parameters of {data['name']}", data, where)
    return law


def _family(name: str) -> Any:
    from scipy import stats

    family = getattr(stats, name, None)
    return family if isinstance(family, (stats.rv_continuous, stats.rv_discrete)) else None


def expect_keys(data: dict[str, Any], expected: set[str], where: str) -> None:
    """Raise `InvalidInput` unless the keys of an object are `expected`."""
    if set(data) != expected:
        keys = ", ".join(sorted(data))
        raise invalid(FILE_KIND, f"the keys {', '.join(sorted(expected))}", keys or Phrase("an empty object"), where)
