"""The parts of a design as JSON values and back: dataclasses field by field, arrays as lists, every float exact.

What is read is what the fields of the classes declare; anything else is refused.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.codec import kinds as known
from ldpopt.design.codec.kinds import CODE, FILE, PROBLEM, UNTAGGED, expect_keys
from ldpopt.design.constraints.base import Measured
from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.utilities.base import Utility
from ldpopt.design.utilities.divergence import is_frozen
from ldpopt.divergences import FDivergence
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.privacy import Guarantee


def encode(value: Any, where: str) -> Any:
    """`value` as a JSON value; `where` is its place in error messages. Raises `InvalidInput` for code, such as a class
    or a function that a user wrote.
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
        return [encode(part, f"{where}[{place}]") for place, part in enumerate(value)]
    if isinstance(value, FDivergence):
        return known.divergence_out(value, where)
    if known.is_graph(value):
        return known.graph_out(value, where)
    if is_frozen(value):
        return known.law_out(value, where)
    return record(value, where)


def record(value: Any, where: str) -> dict[str, Any]:
    """The fields of a dataclass that a file may name, after its `kind`."""
    kind: type = type(value)
    if kind not in UNTAGGED and known.kind(kind.__name__) is not kind:
        raise invalid(where, CODE, Phrase(f"a {kind.__name__}"))
    usual = known.defaults(kind)
    written: dict[str, Any] = {} if kind in UNTAGGED else {"kind": kind.__name__}
    for name in known.fields(kind):
        part = getattr(value, name)
        if kind is Guarantee and name in known.MEASURED_AGAIN:
            continue
        if isinstance(part, Certificate):
            written[name] = certificate(part, value, f"{where}.{name}")
        elif part is None and usual[name] is None and not isinstance(value, Utility):
            continue  # a field that says nothing
        elif isinstance(part, tuple) and part and all(isinstance(item, Certificate) for item in part):
            written[name] = [certificate(item, value, f"{where}.{name}[{place}]") for place, item in enumerate(part)]
        else:
            written[name] = encode(part, f"{where}.{name}")
    return written


def certificate(value: Certificate, holder: Any, where: str) -> dict[str, Any]:
    """A certificate's own numbers, and the parts of its problem that differ from those of its `holder`. `holder` is a
    design or a certificate.
    """
    written = record(value, where)
    for name in sorted(PROBLEM):
        own, other = getattr(value, name), getattr(holder, name)
        if own is not other and (said := problem_part(name, own, where)) != problem_part(name, other, where):
            written[name] = said
    return written


def problem_part(name: str, value: Any, where: str) -> Any:
    """The utility, the constraints, the channel or the cut points of a design or of a certificate."""
    if name == "channel":
        sides = ("inputs", "outputs")
        labels = {side: [known.label_out(label, where) for label in getattr(value, side)] for side in sides}
        return {**labels, "matrix": array(value.matrix, where)}
    if name == "constraints":
        return [record(constraint, f"{where}constraints[{place}]") for place, constraint in enumerate(value)]
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
    return [_each(value, where) for value in values] if isinstance(values, list) else _number(values, where)


def _number(value: float, where: str) -> float | str:
    if math.isnan(value):
        raise invalid(where, "a number", value)
    return value if math.isfinite(value) else "inf" if value > 0 else "-inf"


DEEPEST = 50  # How deep objects may be nested; certificates of certificates need a handful.
LONGEST = 2**40  # Integers in a file are smaller than this in size.
INFINITE = {"inf": np.inf, "-inf": -np.inf}
Problem = dict[str, Any]
"""The `utility`, `constraints`, `channel` and `edges` of the design or certificate that holds a certificate."""


class Reader:
    """Reads the parts of one file."""

    def __init__(self) -> None:
        self.depth = 0

    def read(self, data: Any, hint: Any, where: str, problem: Problem | None = None) -> Any:
        """The value that `data` stands for in a field with the type `hint`; `where` is its place in error messages."""
        origin = get_origin(hint)
        if hint is Any:
            return self._any(data, where, problem)
        if origin in (Union, UnionType):
            choices = [choice for choice in get_args(hint) if choice is not NoneType]
            if data is None and len(choices) < len(get_args(hint)):
                return None
            return self.read(data, choices[0] if len(choices) == 1 else tuple(choices), where, problem)
        if origin is np.ndarray:
            return read_array(data, get_args(get_args(hint)[1])[0], where)
        if origin in (tuple, list, Sequence, Iterable):
            return self._sequence(data, get_args(hint), where, problem)
        if origin is Mapping:
            parts = _plain(data, dict, where).items()
            return {key: self.read(part, get_args(hint)[1], f"{where}.{key}") for key, part in parts}
        if hint is Hashable:
            return known.label_in(data, where)
        if hint is FDivergence:
            return known.divergence_in(data, where)
        if hint is float:
            return real(data, where)
        if hint in (int, bool, str):
            return _plain(data, hint, where)
        return self.record(data, where, hint, problem)

    def record(self, data: Any, where: str, expected: Any = object, problem: Problem | None = None) -> Any:
        """The object whose `kind` is a class among `expected`, made by its own constructor."""
        name = expected.__name__ if expected in UNTAGGED else _plain(data, dict, where).get("kind")
        kind = known.kind(name, expected) if isinstance(name, str) else None
        if kind is None or not _is_a(kind, expected):
            raise invalid(FILE, f"the kind of {_called(expected)}", name, f"{where}.kind")
        given = {key: part for key, part in _plain(data, dict, where).items() if key != "kind" or expected in UNTAGGED}
        return self.made(kind, given, where, problem)

    def made(self, kind: type, given: dict[str, Any], where: str, problem: Problem | None = None) -> Any:
        """An instance of a class, from the fields that `given` states."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise invalid(FILE, f"objects at most {DEEPEST} deep", Phrase("more"), where)
        extra: Problem = {}
        if issubclass(kind, Certificate):
            if problem is None:
                raise invalid(FILE, "no certificate here", Phrase(f"a {kind.__name__}"), where)
            own = {name: given.pop(name) for name in sorted(PROBLEM & set(given))}
            problem = extra = problem | self.problem(own, where)
        wanted = known.fields(kind)
        if set(given) - set(wanted):
            raise invalid(FILE, f"the fields {', '.join(wanted)}", min(set(given) - set(wanted)), where)
        missing = [name for name, (_, optional) in wanted.items() if not optional and name not in given]
        if missing:
            raise invalid(FILE, f"the field {missing[0]} of a {kind.__name__}", Phrase("none"), where)
        values = {name: self.read(part, wanted[name][0], f"{where}.{name}", problem) for name, part in given.items()}
        self.depth -= 1
        try:
            return kind(**values, **extra)
        except InvalidInput as error:
            raise InvalidInput(f"{FILE}: {where}: {error}") from None
        except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
            raise InvalidInput(f"{FILE}: {where}: expected fields that make a {kind.__name__}, got {error}") from None

    def problem(self, data: dict[str, Any], where: str) -> Problem:
        """The parts of a problem that `data` states."""
        parts: Problem = {}
        before = f"{where}." if where else ""
        if "utility" in data:
            parts["utility"] = self.record(data["utility"], f"{before}utility", Utility)
        if "constraints" in data:
            listed = _plain(data["constraints"], list, f"{before}constraints")
            parts["constraints"] = tuple(
                self.record(entry, f"{before}constraints[{i}]", Measured) for i, entry in enumerate(listed)
            )
        if "channel" in data:
            parts["channel"] = self._channel(data["channel"], f"{before}channel")
        if "edges" in data:
            parts["edges"] = None if data["edges"] is None else read_array(data["edges"], np.float64, f"{before}edges")
        return parts

    def _channel(self, data: Any, where: str) -> Channel:
        expect_keys(_plain(data, dict, where), {"inputs", "outputs", "matrix"}, where)
        inputs, outputs = (
            [known.label_in(label, f"{where}.{side}") for label in _plain(data[side], list, f"{where}.{side}")]
            for side in ("inputs", "outputs")
        )
        matrix = read_array(data["matrix"], np.float64, f"{where}.matrix")
        try:
            return Channel(matrix, inputs, outputs)
        except InvalidInput as error:
            raise InvalidInput(f"{FILE}: {where}: {error}") from None

    def _sequence(self, data: Any, hints: tuple[Any, ...], where: str, problem: Problem | None) -> tuple[Any, ...]:
        parts = _plain(data, list, where)
        each = hints if len(hints) > 1 and hints[1] is not Ellipsis else hints[:1] * len(parts)
        if len(each) != len(parts):
            raise invalid(FILE, f"a list of {len(each)}", len(parts), where)
        return tuple(
            self.read(part, hint, f"{where}[{place}]", problem)
            for place, (part, hint) in enumerate(zip(parts, each, strict=True))
        )

    def _any(self, data: Any, where: str, problem: Problem | None) -> Any:
        """The value of a field of type `Any`: a number, an array, an object, or a sequence of these."""
        if isinstance(data, dict):
            special = {"graph": known.graph_in, "scipy.stats": known.law_in}.get(str(data.get("kind")))
            if special is not None:
                return special(data, where)
            return self.record(data, where, problem=problem) if "kind" in data else read_array(data, np.float64, where)
        if isinstance(data, list):
            if _shape(data) is not None:
                return read_array(data, None, where)
            return tuple(self._any(part, f"{where}[{place}]", problem) for place, part in enumerate(data))
        if isinstance(data, str) and data in INFINITE:
            return INFINITE[data]
        return _plain(data, int, where) if isinstance(data, int) and not isinstance(data, bool) else data


def read_array(data: Any, dtype: Any, where: str) -> Any:
    """An array from nested lists of numbers; if `dtype` is None, of the type that the numbers have."""
    if isinstance(data, dict):
        expect_keys(data, {"shape"}, where)
        shape = tuple(_plain(length, int, f"{where}.shape") for length in _plain(data["shape"], list, f"{where}.shape"))
        if not shape or len(shape) > 8 or min(shape) != 0 or max(shape) > 2**20:
            raise invalid(FILE, "the shape of an array without entries", shape, where)
        return np.zeros(shape, dtype=dtype or np.float64)
    try:
        array = np.array(_plain(data, list, where))
        if array.dtype.kind in "UO":
            array = np.array(_numbers(data, where))
    except (ValueError, OverflowError):
        raise invalid(FILE, "an array of numbers", Phrase("ragged lists, or numbers too large"), where) from None
    wanted = "biuf" if dtype is None else {"b": "b", "i": "iu", "f": "iuf"}[np.dtype(dtype).kind]
    if array.dtype.kind not in wanted or not array.size:
        raise invalid(FILE, "an array of numbers", Phrase(f"one of {array.dtype}, shape {array.shape}"), where)
    cast = array if dtype is None else array.astype(dtype)
    if array.dtype.kind in "iu" and not np.array_equal(cast, array):
        raise invalid(FILE, f"numbers that {np.dtype(dtype)} can hold", Phrase("others"), where)
    return cast


def real(data: Any, where: str) -> float:
    """A number, or the word for an infinite one."""
    if isinstance(data, str) and data in INFINITE:
        return float(INFINITE[data])
    if isinstance(data, bool) or not isinstance(data, (int, float)) or abs(data) > 1.797e308:
        raise invalid(FILE, 'a number, "inf" or "-inf"', data, where)
    return float(data)


def _numbers(data: Any, where: str) -> Any:
    return [_numbers(entry, where) for entry in data] if isinstance(data, list) else real(data, where)


def _shape(data: Any) -> tuple[int, ...] | None:
    """The shape of nested lists; None if they are empty, hold objects or are not all alike."""
    if not isinstance(data, list):
        return None if isinstance(data, dict) else ()
    shapes = {_shape(entry) for entry in data}
    inner = shapes.pop() if len(shapes) == 1 else None
    return None if inner is None else (len(data), *inner)


PLAIN = {int: "an integer", bool: "true or false", str: "a text", dict: "an object", list: "a list"}


def _plain(data: Any, kind: type, where: str) -> Any:
    if not isinstance(data, kind) or (isinstance(data, bool) and kind is not bool):
        raise invalid(FILE, PLAIN[kind], data, where)
    if isinstance(data, int) and not -LONGEST < data < LONGEST:
        raise invalid(FILE, f"an integer below {LONGEST}", data, where)
    return data


def _is_a(kind: type, expected: Any) -> bool:
    """Whether a class is a subclass of `expected` or of one of several; for a protocol, constructors check."""
    if isinstance(expected, tuple):
        return any(_is_a(kind, choice) for choice in expected)
    return bool(getattr(expected, "_is_protocol", False)) or (isinstance(expected, type) and issubclass(kind, expected))


def _called(expected: Any) -> str:
    if isinstance(expected, tuple):
        return " or ".join(choice.__name__ for choice in expected)
    return "a part of a design" if expected is object else f"a {expected.__name__}"
