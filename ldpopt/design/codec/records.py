"""Encode the parts of a design as JSON values and back: dataclasses field by field, arrays as lists, exact floats.

Only the declared fields of the classes are read; anything else is refused.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.codec import kinds as known
from ldpopt.design.codec.kinds import CODE, FILE_KIND, PROBLEM_FIELDS, UNTAGGED_TYPES, expect_keys
from ldpopt.design.constraints.base import Measured
from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.utilities.base import Utility
from ldpopt.design.utilities.divergence import is_scipy_distribution
from ldpopt.divergences import FDivergence
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.privacy import Guarantee


def encode(value: Any, where: str) -> Any:
    """Encode `value` as a JSON value; `where` is its place in error messages.

    Raises `InvalidInput` for code, such as a user-defined class or function.
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
    if is_scipy_distribution(value):
        return known.law_out(value, where)
    return record(value, where)


def record(value: Any, where: str) -> dict[str, Any]:
    """Encode the fields of a dataclass that a file may name, after its `kind`."""
    kind: type = type(value)
    if kind not in UNTAGGED_TYPES and known.encodable_type(kind.__name__) is not kind:
        raise invalid(where, CODE, Phrase(f"a {kind.__name__}"))
    usual = known.defaults(kind)
    fields_out: dict[str, Any] = {} if kind in UNTAGGED_TYPES else {"kind": kind.__name__}
    for name in known.fields(kind):
        part = getattr(value, name)
        if kind is Guarantee and name in known.REMEASURED_FIELDS:
            continue
        if isinstance(part, Certificate):
            fields_out[name] = certificate(part, value, f"{where}.{name}")
        elif part is None and usual[name] is None and not isinstance(value, Utility):
            continue  # an empty field
        elif isinstance(part, tuple) and part and all(isinstance(item, Certificate) for item in part):
            fields_out[name] = [certificate(item, value, f"{where}.{name}[{place}]") for place, item in enumerate(part)]
        else:
            fields_out[name] = encode(part, f"{where}.{name}")
    return fields_out


def certificate(value: Certificate, holder: Any, where: str) -> dict[str, Any]:
    """Encode a certificate's numbers, and the parts of its problem that differ from those of its `holder`.

    holder : a design or a certificate.
    """
    fields_out = record(value, where)
    for name in sorted(PROBLEM_FIELDS):
        own_part, other = getattr(value, name), getattr(holder, name)
        if own_part is not other and (encoded_part := problem_part(name, own_part, where)) != problem_part(
            name, other, where
        ):
            fields_out[name] = encoded_part
    return fields_out


def problem_part(name: str, value: Any, where: str) -> Any:
    """Encode the utility, the constraints, the channel or the cut points of a design or of a certificate."""
    if name == "channel":
        sides = ("inputs", "outputs")
        labels = {side: [known.label_out(label, where) for label in getattr(value, side)] for side in sides}
        return {**labels, "matrix": array(value.matrix, where)}
    if name == "constraints":
        return [record(constraint, f"{where}constraints[{place}]") for place, constraint in enumerate(value)]
    return record(value, f"{where}utility") if name == "utility" else encode(value, f"{where}{name}")


def array(value: Any, where: str) -> Any:
    """Encode the array as nested lists; its shape alone if it has no entries."""
    if value.size == 0:
        return {"shape": list(value.shape)}
    if value.dtype.kind in "biu":
        return value.tolist()
    if value.dtype.kind != "f" or value.dtype.itemsize > 8:
        raise invalid(where, "numbers", Phrase(f"an array of {value.dtype}"))
    return value.tolist() if np.isfinite(value).all() else _nested_numbers(value.tolist(), where)


def _nested_numbers(values: Any, where: str) -> Any:
    return [_nested_numbers(value, where) for value in values] if isinstance(values, list) else _number(values, where)


def _number(value: float, where: str) -> float | str:
    if math.isnan(value):
        raise invalid(where, "a number", value)
    return value if math.isfinite(value) else "inf" if value > 0 else "-inf"


MAX_DEPTH = 50  # The depth of nested objects; certificates of certificates need a handful.
MAX_INTEGER = 2**40  # Integers in a file are smaller than this in size.
INFINITE_NUMBERS = {"inf": np.inf, "-inf": -np.inf}
Problem = dict[str, Any]
"""The `utility`, `constraints`, `channel` and `edges` of the design or certificate that holds a certificate."""


def without_alias(hint: Any) -> Any:
    """Return the type that a type alias of Python 3.12 stands for, such as NumPy 2.5's `NDArray`; others unchanged."""
    alias, parameters = get_origin(hint) or hint, get_args(hint)
    if not hasattr(alias, "__value__"):
        return hint
    return without_alias(alias.__value__[parameters] if parameters else alias.__value__)


class Reader:
    """A reader of the parts of one file."""

    def __init__(self) -> None:
        self.depth = 0

    def read(self, data: Any, hint: Any, where: str, problem: Problem | None = None) -> Any:
        """Decode `data` for a field with the type `hint`; `where` is its place in error messages."""
        hint = without_alias(hint)
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
            parts = _require_json_type(data, dict, where).items()
            return {key: self.read(part, get_args(hint)[1], f"{where}.{key}") for key, part in parts}
        if hint is Hashable:
            return known.label_in(data, where)
        if hint is FDivergence:
            return known.divergence_in(data, where)
        if hint is float:
            return real(data, where)
        if hint in (int, bool, str):
            return _require_json_type(data, hint, where)
        return self.record(data, where, hint, problem)

    def record(self, data: Any, where: str, expected: Any = object, problem: Problem | None = None) -> Any:
        """Decode the object whose `kind` is a class among `expected`, built by its constructor."""
        name = expected.__name__ if expected in UNTAGGED_TYPES else _require_json_type(data, dict, where).get("kind")
        kind = known.encodable_type(name, expected) if isinstance(name, str) else None
        if kind is None or not _is_subtype(kind, expected):
            raise invalid(FILE_KIND, f"the kind of {_type_text(expected)}", name, f"{where}.kind")
        stated_fields = {
            key: part
            for key, part in _require_json_type(data, dict, where).items()
            if key != "kind" or expected in UNTAGGED_TYPES
        }
        return self.build(kind, stated_fields, where, problem)

    def build(self, kind: type, stated_fields: dict[str, Any], where: str, problem: Problem | None = None) -> Any:
        """Build an instance of a class from its stated fields."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise InvalidInput(f"{FILE_KIND}: objects must be nested at most {MAX_DEPTH} deep, got {where}")
        extra: Problem = {}
        if issubclass(kind, Certificate):
            if problem is None:
                raise invalid(FILE_KIND, "no certificate here", Phrase(f"a {kind.__name__}"), where)
            problem_fields = {name: stated_fields.pop(name) for name in sorted(PROBLEM_FIELDS & set(stated_fields))}
            problem = extra = problem | self.problem(problem_fields, where)
        fields = known.fields(kind)
        if set(stated_fields) - set(fields):
            raise invalid(FILE_KIND, f"the fields {', '.join(fields)}", min(set(stated_fields) - set(fields)), where)
        missing_fields = [name for name, (_, optional) in fields.items() if not optional and name not in stated_fields]
        if missing_fields:
            raise InvalidInput(f"{FILE_KIND}: field {missing_fields[0]} of a {kind.__name__} not found at {where}")
        values = {
            name: self.read(part, fields[name][0], f"{where}.{name}", problem) for name, part in stated_fields.items()
        }
        self.depth -= 1
        try:
            return kind(**values, **extra)
        except InvalidInput as error:
            raise InvalidInput(f"{FILE_KIND}: {where}: {error}") from None
        except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
            raise InvalidInput(
                f"{FILE_KIND}: {where}: expected fields that make a {kind.__name__}, got {error}"
            ) from None

    def problem(self, data: dict[str, Any], where: str) -> Problem:
        """Decode the parts of a problem that `data` states."""
        parts: Problem = {}
        prefix = f"{where}." if where else ""
        if "utility" in data:
            parts["utility"] = self.record(data["utility"], f"{prefix}utility", Utility)
        if "constraints" in data:
            constraints_data = _require_json_type(data["constraints"], list, f"{prefix}constraints")
            parts["constraints"] = tuple(
                self.record(entry, f"{prefix}constraints[{i}]", Measured) for i, entry in enumerate(constraints_data)
            )
        if "channel" in data:
            parts["channel"] = self._channel(data["channel"], f"{prefix}channel")
        if "edges" in data:
            parts["edges"] = None if data["edges"] is None else read_array(data["edges"], np.float64, f"{prefix}edges")
        return parts

    def _channel(self, data: Any, where: str) -> Channel:
        expect_keys(_require_json_type(data, dict, where), {"inputs", "outputs", "matrix"}, where)
        inputs, outputs = (
            [
                known.label_in(label, f"{where}.{side}")
                for label in _require_json_type(data[side], list, f"{where}.{side}")
            ]
            for side in ("inputs", "outputs")
        )
        matrix = read_array(data["matrix"], np.float64, f"{where}.matrix")
        try:
            return Channel(matrix, inputs, outputs)
        except InvalidInput as error:
            raise InvalidInput(f"{FILE_KIND}: {where}: {error}") from None

    def _sequence(self, data: Any, hints: tuple[Any, ...], where: str, problem: Problem | None) -> tuple[Any, ...]:
        parts = _require_json_type(data, list, where)
        part_hints = hints if len(hints) > 1 and hints[1] is not Ellipsis else hints[:1] * len(parts)
        if len(part_hints) != len(parts):
            raise invalid(FILE_KIND, f"a list of {len(part_hints)}", len(parts), where)
        return tuple(
            self.read(part, hint, f"{where}[{place}]", problem)
            for place, (part, hint) in enumerate(zip(parts, part_hints, strict=True))
        )

    def _any(self, data: Any, where: str, problem: Problem | None) -> Any:
        """Decode a field of type `Any`: a number, an array, an object, or a sequence of these."""
        if isinstance(data, dict):
            special = {"graph": known.graph_in, "scipy.stats": known.law_in}.get(str(data.get("kind")))
            if special is not None:
                return special(data, where)
            return self.record(data, where, problem=problem) if "kind" in data else read_array(data, np.float64, where)
        if isinstance(data, list):
            if _shape(data) is not None:
                return read_array(data, None, where)
            return tuple(self._any(part, f"{where}[{place}]", problem) for place, part in enumerate(data))
        if isinstance(data, str) and data in INFINITE_NUMBERS:
            return INFINITE_NUMBERS[data]
        return _require_json_type(data, int, where) if isinstance(data, int) and not isinstance(data, bool) else data


def read_array(data: Any, dtype: Any, where: str) -> Any:
    """Decode an array from nested lists of numbers; if `dtype` is None, of the type of the numbers."""
    if isinstance(data, dict):
        expect_keys(data, {"shape"}, where)
        shape = tuple(
            _require_json_type(length, int, f"{where}.shape")
            for length in _require_json_type(data["shape"], list, f"{where}.shape")
        )
        if not shape or len(shape) > 8 or min(shape) != 0 or max(shape) > 2**20:
            raise invalid(FILE_KIND, "the shape of an array without entries", shape, where)
        return np.zeros(shape, dtype=dtype or np.float64)
    try:
        array = np.array(_require_json_type(data, list, where))
        if array.dtype.kind in "UO":
            array = np.array(_numbers(data, where))
    except (ValueError, OverflowError):
        raise invalid(FILE_KIND, "an array of numbers", Phrase("ragged lists, or numbers too large"), where) from None
    accepted_types = "biuf" if dtype is None else {"b": "b", "i": "iu", "f": "iuf"}[np.dtype(dtype).kind]
    if array.dtype.kind not in accepted_types or not array.size:
        raise invalid(FILE_KIND, "an array of numbers", Phrase(f"one of {array.dtype}, shape {array.shape}"), where)
    cast = array if dtype is None else array.astype(dtype)
    if array.dtype.kind in "iu" and not np.array_equal(cast, array):
        raise InvalidInput(f"{FILE_KIND}: a number is too large for {np.dtype(dtype)} at {where}")
    return cast


def real(data: Any, where: str) -> float:
    """Decode a number, or the word for an infinite one."""
    if isinstance(data, str) and data in INFINITE_NUMBERS:
        return float(INFINITE_NUMBERS[data])
    if isinstance(data, bool) or not isinstance(data, (int, float)) or abs(data) > 1.797e308:
        raise invalid(FILE_KIND, 'a number, "inf" or "-inf"', data, where)
    return float(data)


def _numbers(data: Any, where: str) -> Any:
    return [_numbers(entry, where) for entry in data] if isinstance(data, list) else real(data, where)


def _shape(data: Any) -> tuple[int, ...] | None:
    """Return the shape of nested lists; None if they are empty, ragged, or contain objects."""
    if not isinstance(data, list):
        return None if isinstance(data, dict) else ()
    shapes = {_shape(entry) for entry in data}
    inner = shapes.pop() if len(shapes) == 1 else None
    return None if inner is None else (len(data), *inner)


JSON_TYPE_NAMES = {int: "an integer", bool: "true or false", str: "a text", dict: "an object", list: "a list"}


def _require_json_type(data: Any, kind: type, where: str) -> Any:
    if not isinstance(data, kind) or (isinstance(data, bool) and kind is not bool):
        raise invalid(FILE_KIND, JSON_TYPE_NAMES[kind], data, where)
    if isinstance(data, int) and not -MAX_INTEGER < data < MAX_INTEGER:
        raise invalid(FILE_KIND, f"an integer below {MAX_INTEGER}", data, where)
    return data


def _is_subtype(kind: type, expected: Any) -> bool:
    """Return True if a class is a subclass of `expected` or of one of several; constructors check protocols."""
    if isinstance(expected, tuple):
        return any(_is_subtype(kind, choice) for choice in expected)
    return bool(getattr(expected, "_is_protocol", False)) or (isinstance(expected, type) and issubclass(kind, expected))


def _type_text(expected: Any) -> str:
    if isinstance(expected, tuple):
        return " or ".join(choice.__name__ for choice in expected)
    return "a part of a design" if expected is object else f"a {expected.__name__}"
