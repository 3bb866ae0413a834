"""The worst pair of inputs: the largest value of a measure over the pairs that a policy graph compares.

A `PairMeasure` takes stacked pairs (p, q), two arrays (n, m), and returns a lower and an upper bound for each, (n,).
So the same code measures channels, dominating pairs and composed pairs. Edges of a policy graph join inputs that must
not be distinguished.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Channel
from ldpopt.errors import invalid
from ldpopt.numbers.rounding import ULP, first_largest
from ldpopt.numbers.tolerances import EXACT_GAP, TIE_RTOL
from ldpopt.privacy.guarantee import Guarantee, Witness
from ldpopt.values.distribution import Array

Policy = Any
"""A networkx Graph or DiGraph over input labels, or None for every pair of inputs. networkx is not imported here."""

Pairs = tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]


def ordered_pairs(channel: Channel, graph: Policy = None) -> Pairs:
    """List the positions (i, j) of every ordered pair of inputs that `graph` compares.

    Without a graph all pairs are listed. An undirected edge stands for both orders; self-loops are ignored. Raises
    `InvalidInput` for an object that is not a graph, or an unknown node.
    """
    k = channel.shape[0]
    if graph is None:
        i, j = np.nonzero(~np.eye(k, dtype=bool))
        return i, j
    if not (hasattr(graph, "edges") and hasattr(graph, "nodes")):
        raise invalid("policy graph", "a networkx graph over the inputs", type(graph).__name__)
    position = {label: x for x, label in enumerate(channel.inputs)}
    unknown = [node for node in graph.nodes if node not in position]
    if unknown:
        raise invalid("policy graph", f"nodes among the inputs {channel.inputs[:8]}", unknown[0])
    edges = {(position[a], position[b]) for a, b in graph.edges() if a != b}
    if not graph.is_directed():
        edges |= {(b, a) for a, b in edges}
    sorted_edges = np.array(sorted(edges), dtype=np.intp).reshape(-1, 2)
    return sorted_edges[:, 0], sorted_edges[:, 1]


Index = npt.NDArray[np.intp]
PairMeasure = Callable[[Array, Array], tuple[Array, Array]]
Screen = Callable[[Array], tuple[Array, Array]]
Event = Callable[[Array, Array], npt.NDArray[np.bool_]]

MAX_BLOCK_ENTRIES = 1 << 19
"""Largest number of entries of stacked pairs in memory at once."""

MAX_ENTRIES = 1 << 21
"""How many entries of stacked pairs are measured at most, after a screen has bounded all pairs."""

MAX_VALUES = 8
"""If a channel has at most this many different entries, only one of all pairs of rows of the same kind is measured."""

MAX_TIED = 64
"""Number of pairs tied in a screen that are measured in any case, the first ones."""

MAX_UNSCREENED_ENTRIES = 1 << 14
"""Up to this many entries of stacked pairs, a supremum over orders is computed without a screen."""


def blocks(channel: Channel, graph: Policy = None) -> Iterator[tuple[Index, Index]]:
    """Iterate over the ordered pairs (i, j) that `graph` compares, in blocks that fit in memory."""
    return in_blocks(*ordered_pairs(channel, graph), channel.shape[1])


def in_blocks(i: Index, j: Index, outputs: int) -> Iterator[tuple[Index, Index]]:
    """Split positions of pairs into parts that fit in memory when stacked."""
    step = max(1, MAX_BLOCK_ENTRIES // outputs)
    for start in range(0, len(i), step):
        yield i[start : start + step], j[start : start + step]


def normalised(p: Array) -> Array:
    """Divide rows by their sums, each entry accurate to 4 units in the last place."""
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
    """Measure the largest value of `measure` over the compared pairs, as a `Guarantee`.

    event : maps the worst pair to its distinguishing outputs.
    screen : maps the matrix to cheap bounds on every pair, (k, k) each. With more than `limit` entries of stacked
        pairs, only pairs are measured whose upper bound reaches the best lower bound. Their entries number at most
        `limit`, or all if it is `MAX_UNSCREENED_ENTRIES`.
    """
    limit = MAX_ENTRIES if limit is None else limit
    lower, unmeasured_upper, measured_pairs = 0.0, 0.0, [(np.zeros(0, np.intp), np.zeros(0, np.intp), np.zeros(0))]
    for i, j, omitted_bound in _rounds(channel, graph, screen, limit):
        low, high = measure(channel.matrix[i], channel.matrix[j])
        measured_pairs.append((i, j, high))
        lower, unmeasured_upper = max(lower, float(low.max())), max(unmeasured_upper, omitted_bound)
    first_rows, second_rows, bounds = (np.concatenate(arrays) for arrays in zip(*measured_pairs, strict=True))
    upper = max(unmeasured_upper, float(bounds.max(initial=0.0)))
    # Pairs that were left out may attain more than those that were measured.
    exact = exact and not unmeasured_upper > lower * (1 + EXACT_GAP)
    witness = None
    if bounds.max(initial=0.0) > 0:
        worst_position = first_largest(bounds)
        x, other = int(first_rows[worst_position]), int(second_rows[worst_position])
        is_in_event = event(channel.matrix[[x]], channel.matrix[[other]])[0] if event else np.zeros(0, bool)
        witness = Witness((channel.inputs[x], channel.inputs[other]), tuple(compress(channel.outputs, is_in_event)))
    return Guarantee(notion, upper, lower, witness, exact, reference, parameters or {})


def _rounds(channel: Channel, graph: Policy, screen: Screen | None, limit: int) -> Iterator[tuple[Index, Index, float]]:
    """Blocks of pairs to measure, each with an upper bound on the pairs that are left out."""
    k, m = channel.shape
    if screen is None or graph is not None or k * (k - 1) <= max(limit // m, 64):
        for i, j in blocks(channel, graph):
            yield i, j, 0.0
        return
    representatives = distinct_pairs(channel.matrix)
    if representatives is not None and len(representatives) <= max(MAX_ENTRIES // m, 64):
        yield *np.divmod(representatives, k), 0.0
        return
    low, high = screen(channel.matrix)
    np.fill_diagonal(low, -np.inf)
    np.fill_diagonal(high, -np.inf)
    flat_uppers, best_lower = high.ravel(), float(low.max())
    tied_pairs = np.flatnonzero(low.ravel() >= best_lower * (1 - TIE_RTOL))[: MAX_TIED if best_lower > 0 else 0]
    reaching_count = int(np.count_nonzero(flat_uppers >= best_lower))
    candidate_count = reaching_count if limit == MAX_UNSCREENED_ENTRIES else max(limit // m, 64)
    # All pairs that the screen could not bound are measured, unless some pair is known to be infinite.
    unbounded_count = int(np.count_nonzero(flat_uppers == np.inf)) if best_lower < np.inf else 0
    kept_count = min(max(reaching_count, 1), candidate_count + unbounded_count)
    pair_numbers = (
        np.flatnonzero(flat_uppers >= best_lower) if reaching_count >= kept_count else np.arange(len(flat_uppers))
    )
    omitted_bound = 0.0
    if len(pair_numbers) > kept_count:
        pair_numbers = pair_numbers[np.argpartition(-flat_uppers[pair_numbers], kept_count - 1)]
        omitted_bound = float(flat_uppers[pair_numbers[kept_count:]].max()) if reaching_count > kept_count else 0.0
    # Which of many equal pairs are measured must not depend on rounding: the first ones are.
    for i, j in in_blocks(*np.divmod(np.union1d(pair_numbers[:kept_count], tied_pairs), k), m):
        yield i, j, omitted_bound


def distinct_pairs(matrix: Array) -> Index | None:
    """List one ordered pair of every type, as i k + j, for a channel with few different entries.

    Two pairs have one type if every (p_y, q_y) occurs for the same number of outputs: they differ only in the names of
    outputs. Returns None for channels with more different entries.
    """
    values: Array = np.unique(matrix[0])
    for row in matrix[1:]:
        if len(values) > MAX_VALUES:
            return None
        if not np.isin(row, values).all():
            values = np.union1d(values, row)
    if len(values) > MAX_VALUES:
        return None
    k = len(matrix)
    indicators = [(matrix == value).astype(np.float64) for value in values]
    pair_kinds = np.zeros((k, k), dtype=np.int64)
    for p_indicator in indicators:
        for q_indicator in indicators:
            counts = (p_indicator @ q_indicator.T).astype(np.int64)  # at most the outputs: exact in floats
            pair_kinds = np.unique(pair_kinds * (matrix.shape[1] + 1) + counts, return_inverse=True)[1].reshape(k, k)
    pair_kinds[np.diag_indices(k)] = -1
    kinds, first_positions = np.unique(pair_kinds, return_index=True)
    return np.sort(first_positions[kinds >= 0])


def distances(p: Array, q: Array) -> Array:
    """sum |p_i - q_j| of every row of the one and every row of the other, (k, n). Few numbers do not load scipy."""
    if len(p) * q.size <= MAX_BLOCK_ENTRIES // 8:
        return np.asarray(np.abs(p[:, None] - q).sum(axis=2))
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(p, q, "cityblock"))


def named_event(p: Array, gain: Array) -> npt.NDArray[np.bool_]:
    """Select the outputs with a positive `gain` to the event of a witness, (n, m) each."""
    # Outputs whose gain is due to rounding alone are left out.
    is_clear = gain > np.maximum(8 * ULP * p, TIE_RTOL * np.maximum(gain, 0.0).sum(axis=-1, keepdims=True))
    return np.where(is_clear.any(axis=-1, keepdims=True), is_clear, gain > 0)


def larger(p: Array, q: Array) -> npt.NDArray[np.bool_]:
    """Select the outputs that are likelier under the first input."""
    return named_event(p, p - q)
