"""The worst pair of inputs: a measure of stacked pairs of distributions, taken over a channel in blocks.

A `PairMeasure` takes two arrays (n, m), whose rows are the pairs (p, q), and returns two arrays (n,): bounds
below and above the exact value on each pair. So the same code measures a channel, a dominating pair
(a channel of two rows) and a stack of composed pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Channel
from ldpopt.distribution import Array
from ldpopt.errors import invalid
from ldpopt.privacy.guarantee import Guarantee, Witness
from ldpopt.privacy.policy import Policy, ordered_pairs

Index = npt.NDArray[np.intp]
PairMeasure = Callable[[Array, Array], tuple[Array, Array]]
Screen = Callable[[Array], tuple[Array, Array]]
Event = Callable[[Array, Array], npt.NDArray[np.bool_]]

ENTRIES = 1 << 19
"""How many entries of stacked pairs are held at once."""

BUDGET = 1 << 21
"""How many entries of stacked pairs are measured after a screen of all pairs."""

EXACT = 1e-9
"""How far, relatively, a bound on pairs that were not measured may exceed the rest and the value still be exact."""

FEW = 8
"""Up to this many different entries of a channel, pairs of rows that are alike are counted."""

SCREENED = 1 << 14
"""How many entries of stacked pairs a supremum over orders is taken of without a screen, which soon pays."""


def blocks(channel: Channel, graph: Policy = None) -> Iterator[tuple[Index, Index]]:
    """The ordered pairs (i, j) that `graph` compares, in blocks that fit in memory when stacked."""
    i, j = ordered_pairs(channel, graph)
    step = max(1, ENTRIES // channel.shape[1])
    for at in range(0, len(i), step):
        yield i[at : at + step], j[at : at + step]


def stacked(p: Any, q: Any) -> tuple[Array, Array]:
    """Two arrays of pairs, checked: one shape (n, m), or (m,) for one pair, and non-negative."""
    p, q = np.atleast_2d(np.asarray(p, np.float64)), np.atleast_2d(np.asarray(q, np.float64))
    if p.shape != q.shape or p.ndim != 2 or not p.size:
        raise invalid("pairs (p, q)", "two arrays of one shape (n, m)", f"{p.shape} and {q.shape}")
    if not (np.isfinite(p).all() and np.isfinite(q).all() and p.min() >= 0 and q.min() >= 0):
        raise invalid("pairs (p, q)", "non-negative finite entries", "another")
    return p, q


def normalised(p: Array) -> Array:
    """Rows divided by their sums, each entry right to 4 units in the last place: what a row stands for."""
    return np.asarray(p / p.sum(axis=1, keepdims=True, dtype=np.longdouble), dtype=np.float64)


def worst_pair(
    notion: str,
    channel: Channel,
    graph: Policy,
    measure: PairMeasure,
    reference: str,
    *,
    parameters: Mapping[str, float] | None = None,
    event: Event | None = None,
    screen: Screen | None = None,
    limit: int | None = None,
    exact: bool = True,
) -> Guarantee:
    """The largest value of `measure` over the pairs that `graph` compares, as a `Guarantee` with its witness.

    `screen` maps the matrix to (k, k) bounds below and above on every ordered pair; where all pairs of a large
    channel are compared, only those whose bound above reaches the best bound below are measured themselves. Large is
    more than `limit` entries of stacked pairs, `BUDGET` unless given, and so many are measured at most, unless it is
    `SCREENED`: all then.
    """
    limit = BUDGET if limit is None else limit
    lower, upper, best, left = 0.0, 0.0, None, 0.0
    for i, j, rest in _rounds(channel, graph, screen, limit):
        low, high = measure(channel.matrix[i], channel.matrix[j])
        at = int(np.argmax(high))
        if high[at] > 0 and (best is None or high[at] > upper):
            best = (int(i[at]), int(j[at]))
        lower, upper, left = max(lower, float(low.max())), max(upper, float(high[at]), rest), max(left, rest)
    # What was left out may attain more than was measured.
    exact = exact and not left > lower * (1 + EXACT)
    witness = None
    if best is not None:
        x, other = best
        mask = event(channel.matrix[[x]], channel.matrix[[other]])[0] if event else np.zeros(0, bool)
        outputs = tuple(channel.outputs[y] for y in np.flatnonzero(mask))
        witness = Witness((channel.inputs[x], channel.inputs[other]), outputs)
    return Guarantee(notion, upper, lower, witness, exact, reference, parameters or {})


def _rounds(channel: Channel, graph: Policy, screen: Screen | None, limit: int) -> Iterator[tuple[Index, Index, float]]:
    """Blocks of pairs to measure, with a bound above on the pairs that are left out."""
    k, m = channel.shape
    if screen is None or graph is not None or k * (k - 1) <= max(limit // m, 64):
        for i, j in blocks(channel, graph):
            yield i, j, 0.0
        return
    alike = _unlike(channel.matrix)
    if alike is not None and len(alike) <= max(BUDGET // m, 64):
        yield *np.divmod(alike, k), 0.0
        return
    low, high = screen(channel.matrix)
    np.fill_diagonal(low, -np.inf)
    np.fill_diagonal(high, -np.inf)
    flat, best = high.ravel(), float(low.max())
    count = int(np.count_nonzero(flat >= best))
    candidates = count if limit == SCREENED else max(limit // m, 64)
    # What the screen could not bound is all measured, unless some pair is infinite anyway.
    unbounded = int(np.count_nonzero(flat == np.inf)) if best < np.inf else 0
    kept = min(max(count, 1), candidates + unbounded)
    order = np.flatnonzero(flat >= best) if count >= kept else np.arange(len(flat))
    rest = 0.0
    if len(order) > kept:
        order = order[np.argpartition(-flat[order], kept - 1)]
        rest = float(flat[order[kept:]].max()) if count > kept else 0.0
    i, j = np.divmod(np.sort(order[:kept]), k)
    step = max(1, ENTRIES // m)
    for at in range(0, kept, step):
        yield i[at : at + step], j[at : at + step], rest


def _unlike(matrix: Array) -> Index | None:
    """One ordered pair i k + j of every kind, of a channel with few different entries; None for any other.

    Two pairs are of one kind if as many outputs have the entries (p_y, q_y) for every (p, q): they differ by the names
    of outputs, of which no measure depends, as do all pairs of randomized response.
    """
    values: Array = np.unique(matrix[0])
    for row in matrix[1:]:
        if len(values) > FEW:
            return None
        if not np.isin(row, values).all():
            values = np.union1d(values, row)
    if len(values) > FEW:
        return None
    k = len(matrix)
    at = [(matrix == value).astype(np.float64) for value in values]
    kind = np.zeros((k, k), dtype=np.int64)
    for left in at:
        for right in at:
            counts = (left @ right.T).astype(np.int64)  # at most the outputs: exact in floats
            kind = np.unique(kind * (matrix.shape[1] + 1) + counts, return_inverse=True)[1].reshape(k, k)
    kind[np.diag_indices(k)] = -1
    found, first = np.unique(kind, return_index=True)
    return first[found >= 0]


def larger(p: Array, q: Array) -> npt.NDArray[np.bool_]:
    """The outputs that speak for the first input."""
    return np.asarray(p > q)
