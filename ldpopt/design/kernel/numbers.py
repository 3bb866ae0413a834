"""Checks of the parts of a certificate: objects of the right class, and finite numbers of the right shape.

Any violation raises `Unproved`, and no other error, with a sentence that states the violation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ldpopt.errors import LdpoptError
from ldpopt.numbers.enclosures import FLOAT, Arithmetic, Enclosure
from ldpopt.values.distribution import Array, Index


class Unproved(LdpoptError, RuntimeError):
    """The numbers of a certificate do not prove a bound; the message gives the reason."""


def require(condition: object, reason: str) -> None:
    """Raise `Unproved` with this reason unless the condition holds."""
    if not condition:
        raise Unproved(reason)


def expect(value: Any, kind: Any, name: str) -> Any:
    """Return the value if it is an instance of the class `kind`; raise `Unproved` otherwise."""
    if not isinstance(value, kind):
        raise Unproved(f"{name}: expected {kind.__name__}, got {type(value).__name__}")
    return value


def expect_each(values: Any, kind: Any, name: str) -> tuple[Any, ...]:
    """Return a tuple of instances of `kind`; raise `Unproved` for anything else."""
    return tuple(expect(value, kind, name) for value in expect(values, tuple, name))


def printed_length(values: Any) -> int:
    """Return the number of `values` for a printed text.

    It is 0 for anything but a list, a tuple or an array.
    """
    is_sequence = isinstance(values, tuple | list) or (isinstance(values, np.ndarray) and values.ndim > 0)
    return len(values) if is_sequence else 0


def real_numbers(values: Any, name: str) -> Array:
    """Return finite float64 values of any shape, or raise `Unproved`."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, OverflowError):
        raise Unproved(f"{name} are not numbers") from None
    require(array.dtype.kind in "fiu", f"{name} are not numbers")
    with np.errstate(over="ignore"):
        floats = np.array(array, dtype=np.float64)
    require(np.isfinite(floats).all(), f"{name} are not all finite")
    return floats


def real_array(values: Any, shape: tuple[int, ...], name: str) -> Array:
    """Return finite float64 values of exactly this shape, or raise `Unproved`.

    A length of -1 in the shape stands for any length.
    """
    array = real_numbers(values, name)
    is_fitting = array.ndim == len(shape) and all(
        expected_length in (length, -1) for length, expected_length in zip(array.shape, shape, strict=True)
    )
    require(is_fitting, f"{name} have shape {array.shape}, not {shape}")
    return array


def nonnegative_array(values: Any, shape: tuple[int, ...], name: str) -> Array:
    """Return finite nonnegative float64 values of exactly this shape, or raise `Unproved`."""
    array = real_array(values, shape, name)
    require((array >= 0).all(), f"{name} are not all non-negative")
    return array


def pair_prices(values: Any, k: int, name: str) -> Array:
    """Return (k, k) nonnegative numbers with zeros on the diagonal, or raise `Unproved`.

    The diagonal has no pairs; it is ignored and set to zero.
    """
    return nonnegative_array(values, (k, k), name) * ~np.eye(k, dtype=bool)


def weights_array(values: Any, shape: tuple[int, ...], name: str, owner: str) -> Array:
    """Return nonnegative weights, some positive along the last axis, or raise `Unproved`."""
    array = nonnegative_array(values, shape, name)
    require((array > 0).any(axis=-1).all(), f"the weights of {owner} are all zero")
    return array


def mixture(values: Any, shape: tuple[int, ...], name: str, owner: str, arithmetic: Arithmetic = FLOAT) -> Enclosure:
    """Enclose the weights, divided by their sums along the last axis."""
    weights = arithmetic.of(weights_array(values, shape, name, owner))
    return weights / weights.sum(axis=-1)[..., None]


def nonnegative(value: Any, name: str) -> float:
    """Return one finite nonnegative number, or raise `Unproved`."""
    return float(nonnegative_array(value, (), name))


def increasing(values: Any, name: str) -> Array:
    """Return at least one finite number, strictly increasing, or raise `Unproved`."""
    array = real_array(values, (-1,), name)
    require(len(array) and (np.diff(array) > 0).all(), f"{name} do not increase")
    return array


def nonnegative_list(values: Any, name: str) -> Array:
    """Return a list of at least one finite nonnegative float64, or raise `Unproved`."""
    array = nonnegative_array(values, (-1,), name)
    require(len(array), f"{name} are none")
    return array


def position(value: Any, limit: int, name: str) -> int:
    """Return an integer from 0 to `limit` - 1, or raise `Unproved`."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or not 0 <= value < limit:
        raise Unproved(f"{name} is not one of {limit}")
    return int(value)


def positions(values: Any, length: int, limit: int, name: str) -> Index:
    """Return (length,) integers from 0 to `limit` - 1, or raise `Unproved`.

    A `length` of -1 stands for any number of them.
    """
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, OverflowError):
        raise Unproved(f"{name} are not whole numbers") from None
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise Unproved(f"{name} are not whole numbers in a row")
    require(length in (-1, len(array)), f"{name} are {len(array)}, not {length}")
    if array.size and not (array.min() >= 0 and array.max() < limit):
        raise Unproved(f"{name} are not all below {limit}, and none below 0")
    return array.astype(np.intp) if array.size else np.zeros(0, dtype=np.intp)


def leaves_of(nodes: Any, boxes: Any, split: type[Any], leaf: type[Any]) -> list[tuple[Any, Array]]:
    """List every leaf of a tree with its box, except boxes that hold no channel.

    Raises `Unproved` for nodes that do not form a tree.

    - `boxes` : an object with a `root`, the `halves` of a box at a node of the class `split`, and a test for `empty`
      boxes.
    """
    nodes = expect(nodes, tuple, "the nodes of the tree")
    leaves: list[tuple[Any, Array]] = []
    visited_nodes: set[int] = set()
    open_nodes: list[tuple[Any, Array]] = [(0, boxes.root)]
    while open_nodes:
        reference, box = open_nodes.pop()
        number = position(reference, len(nodes), "the number of a node")
        require(number not in visited_nodes, "the nodes are not a tree")
        visited_nodes.add(number)
        node = nodes[number]
        if isinstance(node, split):
            open_nodes += zip((node.left, node.right), boxes.halves(box, node), strict=True)
            continue
        proof = expect(node, leaf, "a node that is no split")
        if not boxes.empty(box):
            leaves.append((proof, box))
    return leaves
