"""Columns of text to numbers, codes of no answer to missing values, and numbers to bins with round edges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ldpopt.distribution import Array
from ldpopt.errors import invalid

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
    steps = [step * ten for step in (5.0, 2.5, 2.0, 1.0, 0.5, 0.1)]
    for step in steps:
        if step > size or step < 1e-300:
            continue
        edges = np.unique(np.round(quantiles / step) * step)
        edges = edges[(edges > numbers.min()) & (edges <= numbers.max())]
        if len(edges) >= min(bins - 1, 3):
            return tuple(float(f"{edge:.12g}") for edge in edges)
    edges = np.unique(quantiles)
    return tuple(float(f"{edge:.6g}") for edge in edges if edge > numbers.min())


def bin_labels(edges: Sequence[float], whole: bool) -> list[str]:
    """The names of the m + 1 bins between m edges, such as 'under 20', '20 to 39', '40 and more'."""
    whole = whole and all(edge == math.floor(edge) for edge in edges)
    made = [f"under {shown(edges[0])}"]
    for low, high in pairwise(edges):
        if whole:
            made.append(shown(low) if high - low == 1 else f"{shown(low)} to {shown(high - 1)}")
        else:
            made.append(f"{shown(low)} to under {shown(high)}")
    return [*made, f"{shown(edges[-1])} and more"]


def shown(value: float) -> str:
    """A number as people write it."""
    return str(int(value)) if value == math.floor(value) and abs(value) < 1e15 else f"{value:.6g}"


_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$"


def to_numbers(column: Any) -> Any:
    """A pyarrow column of numbers, or of their text, as finite float64; null where there is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_decimal(column.type):
        numbers = pc.cast(column, pa.float64(), safe=False)
    elif _is_text(column):
        trimmed = pc.utf8_trim_whitespace(pc.cast(column, pa.large_string()))
        number = pc.and_(pc.match_substring_regex(trimmed, _NUMBER), pc.less(pc.binary_length(trimmed), 60))
        trimmed = pc.utf8_ltrim(pc.if_else(number, trimmed, pa.scalar(None, pa.large_string())), "+")
        numbers = pc.cast(trimmed, pa.float64())
    else:
        raise invalid("bins", "a column of numbers", str(column.type))
    return pc.if_else(pc.is_finite(numbers), numbers, pa.scalar(None, pa.float64()))


def is_one_of(column: Any, codes: Sequence[str]) -> Any:
    """Where a pyarrow column holds one of `codes`: as its text without blanks around it, or as the same number."""
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = [one for one in to_numbers(pa.array(list(codes), pa.string())).to_pylist() if one is not None]
    if not _is_text(column):
        try:
            return pc.is_in(to_numbers(column), pa.array(numbers, pa.float64()))
        except ValueError:  # no numbers, such as true and false
            column = pc.cast(column, pa.large_string())
    trimmed = pc.utf8_trim_whitespace(pc.cast(column, pa.large_string()))
    said = pc.is_in(trimmed, pa.array(list(codes), pa.large_string()))
    return pc.or_(said, pc.is_in(to_numbers(trimmed), pa.array(numbers, pa.float64())))


def _is_text(column: Any) -> bool:
    import pyarrow as pa

    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(is_text(column.type) for is_text in texts)
