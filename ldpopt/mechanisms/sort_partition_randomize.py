"""Sort, partition, randomize: sort answers by likelihood ratio, cut them into blocks, and randomize the block."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.distribution import Array, distribution, positive_epsilon
from ldpopt.errors import invalid
from ldpopt.frames import together
from ldpopt.labels import Label, distinct_labels
from ldpopt.mechanisms.staircase_matrix import staircase_matrix
from ldpopt.tolerances import RATIO


def sort_partition_randomize(
    p0: Any, p1: Any, epsilon: float, blocks: Sequence[Sequence[int]], *, inputs: Iterable[Label] | None = None
) -> Channel:
    """Report the answer's block with odds e^epsilon against each of the other m - 1 blocks [SPR].

    p0, p1 : distributions of shape (k,), the two hypotheses that the reports shall tell apart. epsilon : in nats.
    blocks : m lists of input positions 0..k-1. Every input is in one block, and the blocks are intervals of the inputs
        sorted by the likelihood ratio P0/P1. Inputs with equal ratios may be in neighbouring blocks, and inputs with
        P0 = P1 = 0 in any block.

    Returns a (k, m) channel with output j for block j. With e = exp(epsilon), its eta, the total variation distance
    between two rows, is (e - 1)/(e + m - 1). For every f-divergence, some choice of blocks is optimal under
    epsilon-LDP [SPR]. Raises `InvalidInput` for other blocks.

    >>> sort_partition_randomize([0.6, 0.3, 0.1], [0.1, 0.3, 0.6], 1.0, [[0], [1], [2]]).shape
    (3, 3)
    """
    (p0, p1), inputs = together([("p0", p0), ("p1", p1)], inputs)
    p0 = distribution(p0, "p0")
    p1 = distribution(p1, "p1", size=len(p0))
    block = _block_of(blocks, len(p0))
    _check_contiguous(block, p0, p1)
    preferred = block[:, None] == np.arange(block.max() + 1)
    matrix = staircase_matrix(preferred, positive_epsilon(epsilon))
    return Channel(matrix, distinct_labels(inputs, len(matrix), "inputs"), tuple(range(len(blocks))))


def _block_of(blocks: Any, k: int) -> np.ndarray[Any, np.dtype[np.intp]]:
    """The block of every input, after checking that `blocks` is a partition of 0..k-1 into non-empty lists."""
    if isinstance(blocks, (str, bytes)) or not isinstance(blocks, (Sequence, np.ndarray)) or len(blocks) == 0:
        raise invalid("blocks", "a sequence of lists of input positions", blocks)
    block = np.full(k, -1, dtype=np.intp)
    for number, members in enumerate(blocks):
        positions = np.asarray(members)
        if positions.ndim != 1 or positions.size == 0 or positions.dtype.kind not in "iu":
            raise invalid("blocks", "non-empty lists of input positions", members, f"block {number}")
        for x in positions.tolist():
            if not 0 <= x < k or block[x] >= 0:
                raise invalid("blocks", f"each position 0 to {k - 1} once", x, f"block {number}")
            block[x] = number
    if block.min() < 0:
        raise invalid("blocks", "every input in a block", f"input {int(block.argmin())} in none")
    return block


def _check_contiguous(block: np.ndarray[Any, np.dtype[np.intp]], p0: Array, p1: Array) -> None:
    seen = np.flatnonzero((p0 > 0) | (p1 > 0))
    with np.errstate(divide="ignore", over="ignore"):
        ratio = p0[seen] / p1[seen]
    order = np.lexsort((ratio, block[seen]))
    where, ratio, seen = block[seen][order], ratio[order], seen[order]
    first = np.flatnonzero(np.diff(where, prepend=-1))
    last = np.append(first[1:], len(where)) - 1
    # By lowest, then highest ratio: a block of one ratio comes before a wider one that begins there.
    order = np.lexsort((ratio[last], ratio[first]))
    top, bottom = last[order[:-1]], first[order[1:]]
    overlap = np.flatnonzero(ratio[top] > ratio[bottom] * (1 + RATIO))
    if overlap.size:
        a, b = int(top[overlap[0]]), int(bottom[overlap[0]])
        got = f"blocks {where[a]} and {where[b]} overlapping: ratio {ratio[a]:.6g} of input {seen[a]} lies above"
        raise invalid("blocks", "intervals of the sorted ratio P0/P1", f"{got} {ratio[b]:.6g} of input {seen[b]}")
