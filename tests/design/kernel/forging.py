"""Numbers tampered with in every way that has fooled a proof: for tests of certificates."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np


def tampered(value: Any, rng: np.random.Generator) -> Iterator[Any]:
    """Other arrays in the place of an array of numbers: scaled, shifted, swapped, of no number, of another shape."""
    array = np.asarray(value, dtype=float)
    noise = rng.normal(size=array.shape)
    size = float(np.abs(array).max(initial=0.0)) or 1.0
    yield from (0 * array, -array, 2 * array, array / 2, 1e-9 * array, 1e12 * array, 1e300 * array, array - size)
    for scale in (1e-12, 1e-6, 1e-2, 1.0, 1e3):
        yield array + scale * size * noise
        yield array * (1 - scale * np.abs(noise))
    yield array[..., ::-1] if array.ndim else array
    yield array.T
    for bad in (np.nan, np.inf, -np.inf, -1.0, -1e300):
        spoiled = array.copy()
        spoiled.flat[int(rng.integers(max(array.size, 1))) if array.size else slice(0)] = bad
        yield spoiled
    yield np.full_like(array, np.nan)
    yield from (array[..., None], array.ravel()[:-1], np.zeros(0), np.full(array.shape, "x"), None)


def forged(thing: Any, rng: np.random.Generator, keep: tuple[str, ...] = ()) -> Iterator[Any]:
    """A dataclass with each field that holds numbers tampered with in turn, nested dataclasses and tuples too."""
    for field in fields(thing):
        value = getattr(thing, field.name)
        if field.name in keep or not field.init:
            continue
        for other in variants(value, rng):
            yield replace(thing, **{field.name: other})


def variants(value: Any, rng: np.random.Generator) -> Iterator[Any]:
    """What may stand in the place of a field's value."""
    if isinstance(value, np.ndarray | float | int) and not isinstance(value, bool):
        yield from tampered(value, rng)
    elif isinstance(value, tuple) and value:
        yield from ((), value[:-1], (*value, value[0]), value[::-1])
        at = int(rng.integers(len(value)))
        for other in variants(value[at], rng):
            yield (*value[:at], other, *value[at + 1 :])
    elif is_dataclass(value) and not isinstance(value, type):
        yield from forged(value, rng)


NO_RECORD: tuple[Any, ...] = (
    None,
    0.0,
    "x",
    (),
    (None,),
    ((),),
    [],
    {},
    object(),
    np.zeros(3),
    10**400,
    [[1.0], [1.0, 2.0]],
)
"""What is no nested record, no tuple of records, and no list of numbers that any certificate asks for."""


def fails_in_words(certificate: Any) -> bool:
    """Whether a tampered certificate proves nothing and says why: its bound, its words and its check raise nothing."""
    words = certificate.verify().reasons
    error = certificate.utility.error
    assert isinstance(certificate.argument, str)
    return bool(words) and all(words) and certificate.bound == (-np.inf if error else np.inf)
