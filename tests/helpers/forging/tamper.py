"""Tampering with any dataclass, field by field: numbers, arrays, and parts of other certificates put in their place."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

PROBLEM = ("utility", "constraints", "channel")
"""What a certificate is about: replaced as a whole, by that of another problem."""
Path = tuple[Any, ...]


def sites(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every part of a certificate that can be replaced, with its path of field names and positions."""
    if path:
        yield path, value
    if path and path[-1] in PROBLEM:
        return
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            if field.init:
                yield from sites(getattr(value, field.name), (*path, field.name))
    elif isinstance(value, tuple | list):
        for at, part in enumerate(value):
            yield from sites(part, (*path, at))


def put(value: Any, path: Path, part: Any) -> Any:
    """A copy with the part at `path` replaced."""
    if not path:
        return part
    first, rest = path[0], path[1:]
    if isinstance(first, str):
        return dataclasses.replace(value, **{first: put(getattr(value, first), rest, part)})
    made = list(value)
    made[first] = put(made[first], rest, part)
    return type(value)(made)


def is_numbers(value: Any) -> bool:
    """Whether a part is a number or an array of numbers, which may be moved by a little."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind == "f" and value.size > 0
    return isinstance(value, float)


# -- numbers ---------------------------------------------------------------------------------------------------------


def number(rng: np.random.Generator, x: Any) -> float:
    """Another number in the place of x."""
    x = float(x) if isinstance(x, int | float | np.integer | np.floating) else 1.0
    small = float(rng.choice([-1.0, 1.0])) * 10.0 ** -rng.integers(1, 16)
    with np.errstate(all="ignore"):
        made = [
            0.0, -0.0, -x, math.nan, math.inf, -math.inf, 1e-300, -1e-300, 1e300, -1e300, 5e-324, 1e-9, 1.0, -1.0,
            float(np.nextafter(x, math.inf)), float(np.nextafter(x, -math.inf)), x * (1 + small), x * (1 + small),
            x + small, 2 * x, x / 2, 1e3 * x, float(np.float64(1e-3) * x), float(rng.normal()), 1 - x,
        ]  # fmt: skip
    return made[int(rng.integers(len(made)))]


def scalar(rng: np.random.Generator, x: Any) -> Any:
    """Anything in the place of a number."""
    if isinstance(x, int | np.integer):
        x = max(-(2**60), min(2**60, int(x)))
    elif not isinstance(x, float | np.floating):
        x = 1.0
    if rng.random() < 0.6:
        made = number(rng, x)
        if isinstance(x, int | np.integer) and rng.random() < 0.7:
            return int(x) + int(rng.integers(-3, 4)) if rng.random() < 0.7 else -int(x)
        return made
    others: list[Any] = [
        None, True, False, "1", "nan", str(x), [x], (x,), np.array(x), np.array([x]), 10**400, -(10**400),
        complex(x, 0), complex(x, 1), np.float32(x), np.array(x, dtype=object), {}, np.zeros(0), b"1",
    ]  # fmt: skip
    if math.isfinite(float(x)):
        others += [Fraction(float(x)), int(x)]
    return others[int(rng.integers(len(others)))]


def array(rng: np.random.Generator, a: np.ndarray) -> Any:
    """Anything in the place of an array: most often one of the same shape with some numbers replaced."""
    where = rng.random()
    if where < 0.55 and a.ndim and a.size and a.dtype.kind in "fiu":
        return _numbers(rng, a)
    made = _shapes(a) if where < 0.8 else _types(a)
    for _ in range(9):
        try:
            return made[int(rng.integers(len(made)))]()
        except (ValueError, TypeError, OverflowError, IndexError):
            continue
    return None


def _numbers(rng: np.random.Generator, a: np.ndarray) -> np.ndarray:
    made, flat = a.astype(a.dtype, copy=True), None
    flat = made.reshape(-1)
    way = rng.integers(7)
    with np.errstate(all="ignore"):
        if way <= 1:
            for at in rng.choice(a.size, min(a.size, int(rng.integers(1, 4))), replace=False):
                flat[at] = _fitting(number(rng, flat[at]), a.dtype, rng)
        elif way == 2 and a.size > 1:
            x, y = rng.choice(a.size, 2, replace=False)
            flat[[x, y]] = flat[[y, x]]
        elif way == 3:
            flat[:] = rng.permutation(flat)
        elif way == 4:
            factor = float(rng.choice([0.0, -1.0, 0.5, 2.0, 1 - 1e-9, 1 + 1e-9, 1e-300, 1e300, math.nan, math.inf]))
            whole = int(rng.integers(-1 if a.dtype.kind == "i" else 0, 3))
            made = made * factor if a.dtype.kind == "f" else made * whole
        elif way == 5:
            size = 10.0 ** rng.uniform(-12, 0)
            made = made * np.exp(size * rng.standard_normal(a.shape)) if a.dtype.kind == "f" else made[..., ::-1].copy()
        else:
            filled = _fitting(number(rng, flat[0]), a.dtype, rng)
            made = np.full_like(a, filled)
    return made


def _fitting(x: float, dtype: Any, rng: np.random.Generator) -> Any:
    if dtype.kind == "f":
        return x
    return int(rng.integers(0, 6)) if dtype.kind == "u" else int(rng.integers(-2, 6))


def _shapes(a: np.ndarray) -> list[Any]:
    return [
        lambda: a[:-1], lambda: a[1:], lambda: a[:0], lambda: np.concatenate([a, a[-1:]]), lambda: a.T,
        lambda: np.concatenate([a, a]), lambda: a.reshape(-1), lambda: a[None], lambda: a[..., None], lambda: a.sum(),
        lambda: a[::-1], lambda: np.broadcast_to(a[:1], a.shape), lambda: np.zeros(()), lambda: np.zeros((0, 3)),
        lambda: a[..., :-1], lambda: np.concatenate([a, np.zeros_like(a[:1])]), lambda: np.tile(a, (2,) * a.ndim),
        lambda: np.sort(a, axis=None).reshape(a.shape), lambda: np.eye(*a.shape), lambda: np.ones(a.shape),
    ]  # fmt: skip


def _types(a: np.ndarray) -> list[Any]:
    ragged: list[Any] = [[1.0], [1.0, 2.0]]
    return [
        lambda: a.astype(object), lambda: a.astype(bool), lambda: a.astype(int), lambda: a.astype(str),
        lambda: a.astype(complex), lambda: a.astype(np.float32), lambda: a.astype(np.float16), lambda: a.tolist(),
        lambda: tuple(a.tolist()), lambda: None, lambda: float(a.reshape(-1)[0]), lambda: ragged, lambda: "numbers",
        lambda: np.ma.masked_array(a, np.ones(a.shape, bool)), lambda: np.array([None] * len(a)), lambda: {}, lambda: 0,
        lambda: [10**400] * len(a), lambda: a.astype(np.longdouble), lambda: np.full(a.shape, "x"),
        lambda: np.asarray(a, dtype=np.uint8), lambda: iter(a.tolist()),
    ]  # fmt: skip


def sequence(rng: np.random.Generator, value: Sequence[Any], donors: Sequence[Any]) -> Any:
    """Parts left out, doubled, swapped, or taken from elsewhere."""
    parts = list(value)
    way = int(rng.integers(9))
    if way == 0 and parts:
        del parts[int(rng.integers(len(parts)))]
    elif way == 1 and parts:
        parts.append(parts[int(rng.integers(len(parts)))])
    elif way == 2:
        parts = parts[::-1]
    elif way == 3:
        parts = []
    elif way == 4 and donors:
        parts.append(donors[int(rng.integers(len(donors)))])
    elif way == 5 and parts and donors:
        parts[int(rng.integers(len(parts)))] = donors[int(rng.integers(len(donors)))]
    elif way == 6:
        return [None, 0, "x", (None,) * len(parts), {}][int(rng.integers(5))]
    elif way == 7 and len(parts) > 1:
        parts = [parts[at] for at in rng.permutation(len(parts))]
    return tuple(parts)


def part(rng: np.random.Generator, value: Any, donors: Sequence[Any]) -> Any:
    """Anything in the place of one part; `donors` are what other certificates have in the same field, and others."""
    if donors and rng.random() < 0.15:
        return donors[int(rng.integers(len(donors)))]
    if isinstance(value, np.ndarray):
        return array(rng, value)
    if isinstance(value, bool | np.bool_):
        return [not value, None, 1, 0, 2][int(rng.integers(5))]
    if isinstance(value, int | float | np.number):
        return scalar(rng, value)
    if isinstance(value, tuple | list):
        return sequence(rng, value, donors)
    if isinstance(value, str):
        return ["", "x" * 5, None, 0][int(rng.integers(4))]
    if donors and rng.random() < 0.8:
        return donors[int(rng.integers(len(donors)))]
    wild = [None, 0.0, np.ones(3), (), "x", np.zeros((2, 2))]
    return wild[int(rng.integers(len(wild)))]


def moved(rng: np.random.Generator, value: Any, size: float) -> Any:
    """Numbers changed a little, each by a factor or by a share of the largest of them."""
    a = np.array(value, dtype=np.float64)
    chosen = rng.random(a.shape) < rng.choice([0.3, 1.0, 1.5 / max(1, a.size)])
    with np.errstate(all="ignore"):
        if rng.random() < 0.5:
            made = a * np.exp(size * rng.standard_normal(a.shape) * chosen)
        else:
            made = a + size * np.abs(a).max(initial=0.0) * rng.standard_normal(a.shape) * chosen
    return made if isinstance(value, np.ndarray) else float(made)
