"""Checks of the parts of a certificate: objects of the right class, and finite numbers of the right shape.

Anything else raises `Unproved`, and no other error, with a sentence on what is wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ldpopt.errors import LdpoptError
from ldpopt.numbers.enclosures import FLOAT, Arithmetic, Enclosure
from ldpopt.values.distribution import Array, Index


class Unproved(LdpoptError, RuntimeError):
    """The numbers of a certificate do not prove a bound; the message says why."""


def require(holds: object, why: str) -> None:
    """Raise `Unproved`, which says why, unless something holds."""
    if not holds:
        raise Unproved(why)


def expect(value: Any, kind: Any, what: str) -> Any:
    """The value, if it is an instance of the class `kind`; raises `Unproved` for any other."""
    if not isinstance(value, kind):
        raise Unproved(f"{what}: expected {kind.__name__}, got {type(value).__name__}")
    return value


def expect_each(values: Any, kind: Any, what: str) -> tuple[Any, ...]:
    """The values, if they are a tuple of instances of `kind`; raises `Unproved` for any other."""
    return tuple(expect(value, kind, what) for value in expect(values, tuple, what))


def count(values: Any) -> int:
    """The number of `values`, for a printed text; 0 for anything but a list, a tuple or an array."""
    listed = isinstance(values, tuple | list) or (isinstance(values, np.ndarray) and values.ndim > 0)
    return len(values) if listed else 0


def real_numbers(values: Any, what: str) -> Array:
    """Finite float64 of any shape, or `Unproved`."""
    try:
        given = np.asarray(values)
    except (TypeError, ValueError, OverflowError):
        raise Unproved(f"{what} are not numbers") from None
    require(given.dtype.kind in "fiu", f"{what} are not numbers")
    with np.errstate(over="ignore"):
        floats = np.array(given, dtype=np.float64)
    require(np.isfinite(floats).all(), f"{what} are not all finite")
    return floats


def real_array(values: Any, shape: tuple[int, ...], what: str) -> Array:
    """Finite float64 of exactly this shape, in which -1 stands for any length, or `Unproved`."""
    given = real_numbers(values, what)
    fits = given.ndim == len(shape) and all(asked in (own, -1) for own, asked in zip(given.shape, shape, strict=True))
    require(fits, f"{what} have shape {given.shape}, not {shape}")
    return given


def nonnegative_array(values: Any, shape: tuple[int, ...], what: str) -> Array:
    """The same, with no entry below zero."""
    given = real_array(values, shape, what)
    require((given >= 0).all(), f"{what} are not all non-negative")
    return given


def pair_prices(values: Any, k: int, what: str) -> Array:
    """(k, k) numbers, none below zero, with zeros on the diagonal, where no pair is: what is given there is ignored."""
    return nonnegative_array(values, (k, k), what) * ~np.eye(k, dtype=bool)


def weights_array(values: Any, shape: tuple[int, ...], what: str, whose: str) -> Array:
    """The same, with a positive entry for each place of all axes but the last."""
    given = nonnegative_array(values, shape, what)
    require((given > 0).any(axis=-1).all(), f"the weights of {whose} are all zero")
    return given


def mixture(values: Any, shape: tuple[int, ...], what: str, whose: str, arithmetic: Arithmetic = FLOAT) -> Enclosure:
    """The shares that such weights have in their sums along the last axis, enclosed."""
    weights = arithmetic.of(weights_array(values, shape, what, whose))
    return weights / weights.sum(axis=-1)[..., None]


def nonnegative(value: Any, what: str) -> float:
    """One finite number, not below zero."""
    return float(nonnegative_array(value, (), what))


def increasing(values: Any, what: str) -> Array:
    """Finite numbers in strictly increasing order, at least one."""
    given = real_array(values, (-1,), what)
    require(len(given) and (np.diff(given) > 0).all(), f"{what} do not increase")
    return given


def nonnegative_list(values: Any, what: str) -> Array:
    """A list of at least one finite float64, none below zero, or `Unproved`."""
    given = nonnegative_array(values, (-1,), what)
    require(len(given), f"{what} are none")
    return given


def position(value: Any, limit: int, what: str) -> int:
    """One of the whole numbers 0 to `limit` - 1, or `Unproved`."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or not 0 <= value < limit:
        raise Unproved(f"{what} is not one of {limit}")
    return int(value)


def positions(values: Any, length: int, limit: int, what: str) -> Index:
    """(length,) whole numbers from 0 to `limit` - 1, any number of them where `length` is -1, or `Unproved`."""
    try:
        given = np.asarray(values)
    except (TypeError, ValueError, OverflowError):
        raise Unproved(f"{what} are not whole numbers") from None
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise Unproved(f"{what} are not whole numbers in a row")
    require(length in (-1, len(given)), f"{what} are {len(given)}, not {length}")
    if given.size and not (given.min() >= 0 and given.max() < limit):
        raise Unproved(f"{what} are not all below {limit}, and none below 0")
    return given.astype(np.intp) if given.size else np.zeros(0, dtype=np.intp)


def leaves_of(nodes: Any, boxes: Any, split: type[Any], leaf: type[Any]) -> list[tuple[Any, Array]]:
    """Every leaf of a tree with its box, except boxes that hold no channel. Raises `Unproved` for nodes that are no
    tree. boxes : what has a `root`, the `halves` of a box at a node of the class `split`, and knows `empty` ones.
    """
    nodes = expect(nodes, tuple, "the nodes of the tree")
    leaves: list[tuple[Any, Array]] = []
    visited: set[int] = set()
    open_nodes: list[tuple[Any, Array]] = [(0, boxes.root)]
    while open_nodes:
        named, box = open_nodes.pop()
        number = position(named, len(nodes), "the number of a node")
        require(number not in visited, "the nodes are not a tree")
        visited.add(number)
        node = nodes[number]
        if isinstance(node, split):
            open_nodes += zip((node.left, node.right), boxes.halves(box, node), strict=True)
            continue
        proof = expect(node, leaf, "a node that is no split")
        if not boxes.empty(box):
            leaves.append((proof, box))
    return leaves
