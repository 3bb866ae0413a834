"""Input labels: the given ones, or 0..k-1."""

from __future__ import annotations

from collections.abc import Iterable

from ldpopt.channel import Label
from ldpopt.errors import invalid


def input_labels(inputs: Iterable[Label] | None, k: int) -> tuple[Label, ...]:
    """`inputs` as a tuple of k labels, 0..k-1 when it is None."""
    if inputs is None:
        return tuple(range(k))
    if isinstance(inputs, (str, bytes)):
        raise invalid("inputs", f"{k} labels", inputs)
    labels = tuple(inputs)
    if len(labels) != k:
        raise invalid("inputs", f"{k} labels", len(labels))
    return labels
