"""From the parts of a design to JSON values: dataclasses field by field, arrays as lists, every float exact."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ldpopt.design.certificates.base import Certificate
from ldpopt.design.codec.foreign import CODE, divergence_out, graph_out, is_graph, is_law, label_out, law_out
from ldpopt.design.codec.kinds import PROBLEM, UNTAGGED, defaults, fields, kinds
from ldpopt.design.utilities.base import Utility
from ldpopt.divergences import FDivergence
from ldpopt.errors import Phrase, invalid


def encode(value: Any, where: str) -> Any:
    """`value` as a JSON value; `where` is its place in error messages.

    Raises `InvalidInput` for code, such as a class or a function that a user wrote.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return _number(value, where)
    if isinstance(value, np.ndarray):
        return array(value, where)
    if isinstance(value, Mapping):
        return {key: encode(part, f"{where}.{key}") for key, part in value.items()}
    if isinstance(value, (tuple, list)):
        return [encode(part, f"{where}[{at}]") for at, part in enumerate(value)]
    if isinstance(value, FDivergence):
        return divergence_out(value, where)
    if is_graph(value):
        return graph_out(value, where)
    if is_law(value):
        return law_out(value, where)
    return record(value, where)


def record(value: Any, where: str) -> dict[str, Any]:
    """The fields of a dataclass that a file may name, after its `kind`."""
    kind: type = type(value)
    if kinds().get(kind.__name__) is not kind:
        raise invalid(where, CODE, Phrase(f"a {kind.__name__}"))
    usual = defaults(kind)
    made: dict[str, Any] = {} if kind in UNTAGGED else {"kind": kind.__name__}
    for name in fields(kind):
        part = getattr(value, name)
        if isinstance(part, Certificate):
            made[name] = certificate(part, value, f"{where}.{name}")
        elif part is None and usual[name] is None and not isinstance(value, Utility):
            continue  # a field that says nothing
        elif isinstance(part, tuple) and part and all(isinstance(one, Certificate) for one in part):
            made[name] = [certificate(one, value, f"{where}.{name}[{at}]") for at, one in enumerate(part)]
        else:
            made[name] = encode(part, f"{where}.{name}")
    return made


def certificate(value: Certificate, holder: Any, where: str) -> dict[str, Any]:
    """A certificate's own numbers, and the parts of its problem that differ from those of its `holder`.

    `holder` is a design or a certificate.
    """
    made = record(value, where)
    for name in sorted(PROBLEM):
        own, other = getattr(value, name), getattr(holder, name)
        if own is not other and (said := problem_part(name, own, where)) != problem_part(name, other, where):
            made[name] = said
    return made


def problem_part(name: str, value: Any, where: str) -> Any:
    """The utility, the constraints, the channel or the cut points of a design or of a certificate."""
    if name == "channel":
        labels = {side: [label_out(label, where) for label in getattr(value, side)] for side in ("inputs", "outputs")}
        return {**labels, "matrix": array(value.matrix, where)}
    if name == "constraints":
        return [record(one, f"{where}constraints[{at}]") for at, one in enumerate(value)]
    return record(value, f"{where}utility") if name == "utility" else encode(value, f"{where}{name}")


def array(value: Any, where: str) -> Any:
    """The array as nested lists; its shape alone where it has no entries."""
    if value.size == 0:
        return {"shape": list(value.shape)}
    if value.dtype.kind in "biu":
        return value.tolist()
    if value.dtype.kind != "f" or value.dtype.itemsize > 8:
        raise invalid(where, "numbers", Phrase(f"an array of {value.dtype}"))
    return value.tolist() if np.isfinite(value).all() else _each(value.tolist(), where)


def _each(values: Any, where: str) -> Any:
    return [_each(one, where) for one in values] if isinstance(values, list) else _number(values, where)


def _number(value: float, where: str) -> float | str:
    if math.isnan(value):
        raise invalid(where, "a number", value)
    return value if math.isfinite(value) else "inf" if value > 0 else "-inf"
