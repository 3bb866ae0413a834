"""Numbers to bins with round edges, and the names of the bins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from ldpopt.errors import invalid
from ldpopt.values.distribution import Array

__all__ = ["BINS", "MOST_CATEGORIES", "bin_labels", "round_edges", "shown"]

BINS = 6
MOST_CATEGORIES = 25
"""The most bins, or answers, that are proposed; more need many more respondents."""


def round_edges(numbers: Array, bins: int) -> tuple[float, ...]:
    """Edges of about `bins` bins that hold equally many of `numbers`, (n,), moved to round numbers; rising."""
    if not 2 <= bins <= MOST_CATEGORIES:
        raise invalid("bins", f"2 to {MOST_CATEGORIES} of them, or their edges", bins)
    quantiles = np.quantile(numbers, np.arange(1, bins) / bins)
    low, high = np.quantile(numbers, [0.02, 0.98])
    if not high > low:
        return ()
    size = (high - low) / bins
    ten = 10.0 ** math.floor(math.log10(size))
    for step in (factor * ten for factor in (5.0, 2.5, 2.0, 1.0, 0.5, 0.1) if 1e-300 <= factor * ten <= size):
        edges = np.unique(np.round(quantiles / step) * step)
        edges = edges[(edges > numbers.min()) & (edges <= numbers.max())]
        if len(edges) >= min(bins - 1, 3):
            return tuple(float(f"{edge:.12g}") for edge in edges)
    return tuple(float(f"{edge:.6g}") for edge in np.unique(quantiles) if edge > numbers.min())


def bin_labels(edges: Sequence[float], whole: bool) -> list[str]:
    """The names of the m + 1 bins between m edges, such as 'under 20', '20 to 39', '40 and more'."""
    whole = whole and all(edge == math.floor(edge) for edge in edges)
    labels = [f"under {shown(edges[0])}"]
    for low, high in pairwise(edges):
        if whole:
            labels.append(shown(low) if high - low == 1 else f"{shown(low)} to {shown(high - 1)}")
        else:
            labels.append(f"{shown(low)} to under {shown(high)}")
    return [*labels, f"{shown(edges[-1])} and more"]


def shown(value: float) -> str:
    """A number as people write it."""
    return str(int(value)) if value == math.floor(value) and abs(value) < 1e15 else f"{value:.6g}"
