"""Random generators for simulations, and simulated reports of a channel, by inverse sampling with guide tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.errors import invalid
from ldpopt.values.distribution import Array

__all__ = ["Rng", "generator", "random", "simulate"]

Rng = int | np.random.Generator | None
"""What `rng` may be wherever something is simulated: a generator, the seed of one, or None."""

_CHUNK = 1 << 14
_CELLS = 1 << 18
"""How many cells of a guide table fit into the cache."""


def generator(rng: Rng, seed: int | None = None) -> np.random.Generator:
    """The generator that `rng` stands for: itself, or one from an integer seed; None is `seed`, or the system's."""
    if isinstance(rng, np.random.Generator):
        return rng
    if rng is not None and (isinstance(rng, bool) or not isinstance(rng, (int, np.integer)) or rng < 0):
        raise invalid("rng", "a numpy.random.Generator, a seed (an integer of at least 0) or None", type(rng).__name__)
    return np.random.default_rng(seed if rng is None else int(rng))


def random(rng: Rng, what: str) -> Rng:
    """`rng` itself, where `generator` takes it."""
    generator(rng)
    return rng


def simulate(matrix: Array, x: npt.NDArray[np.integer[Any]], rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Report positions for answer positions `x` of any shape: how many cumulative probabilities are at most u.

    A guide table over the first bits of u decides nearly all; where a cumulative probability lies in the cell, compare.
    """
    k, m = matrix.shape
    sums = np.cumsum(matrix, axis=1)
    steps = np.minimum(sums / sums[:, -1:], 1.0)
    steps[:, -1] = 1.0
    answers = x.astype(np.intp, copy=False).ravel()
    reports = np.empty(len(answers), np.intp)
    cells = min(_CELLS, 2 * len(answers)) // k
    bits = max(0, min(12, cells.bit_length() - 1))
    guide = _guide(steps, bits) if 1 << bits >= m else None
    cell = np.empty(min(_CHUNK, len(answers)), np.intp)
    for start in range(0, len(answers), _CHUNK):
        row, y = answers[start : start + _CHUNK], reports[start : start + _CHUNK]
        u, c = rng.random(len(row)), cell[: len(row)]
        if guide is None:
            y[:] = _compare(steps, row, u)
            continue
        np.multiply(u, float(1 << bits), out=c, casting="unsafe")  # exact, then truncated
        c += row << bits
        np.take(guide, c, out=y, mode="clip")  # cells are in range; clipping spares a check
        cut = np.flatnonzero(y < 0)
        y[cut] = _compare(steps, row[cut], u[cut])
    return reports.reshape(x.shape)


def _guide(steps: Array, bits: int) -> npt.NDArray[np.intp]:
    """The report for every row and cell of u, or -1 where a step of the row lies inside the cell."""
    edges = np.arange((1 << bits) + 1) / (1 << bits)
    guides = np.empty((len(steps), 1 << bits), np.intp)
    for row, guide in zip(steps, guides, strict=True):
        first, last = np.searchsorted(row, edges[:-1], "right"), np.searchsorted(row, edges[1:], "left")
        guide[:] = np.where(first == last, first, -1)
    return guides.ravel()


def _compare(steps: Array, rows: npt.NDArray[np.intp], u: Array) -> npt.NDArray[np.intp]:
    """The number of steps of each row that are at most u, by bisection."""
    low, high = np.zeros(len(rows), np.intp), np.full(len(rows), steps.shape[1] - 1, np.intp)
    for _ in range(int(steps.shape[1]).bit_length()):
        middle = (low + high) >> 1
        above = (steps[rows, middle] <= u) & (low < high)
        low, high = np.where(above, middle + 1, low), np.where(above, high, middle)
    return low
