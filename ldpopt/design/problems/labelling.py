"""Compare the labels of a utility, of constraints and of a channel once, at the border.

All other code uses positions. So all labels must be the same, in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ldpopt.errors import Phrase, invalid
from ldpopt.values.labels import Label

MAX_LABELS_SHOWN = 6


def require_one_labelling(utility: Any, constraints: Iterable[Any], channel: Any = None) -> None:
    """Raise `InvalidInput`, with both lists, unless all labels agree.

    Parameters
    ----------
    utility : Its inputs, and its decisions if it has any, are the reference. A utility without named inputs has the
        labels 0..k-1. The channel may then have other names, as nothing else refers to them.
    constraints : Distributions and masks with labels, and policy graphs, whose nodes are inputs.
    channel : The channel of a design, or None if there is none yet.
    """
    constraints = tuple(constraints)
    decisions: tuple[Label, ...] | None = None if utility.decisions is None else tuple(utility.decisions)
    outputs: tuple[Label, ...] | None = decisions if channel is None else tuple(channel.outputs)
    inputs: tuple[Label, ...] = () if utility.continuous else tuple(utility.labels)
    inputs = inputs if channel is None else tuple(channel.inputs)
    if not utility.continuous:
        inputs_are_named = any(getattr(constraint, "names_inputs", False) for constraint in constraints)
        for part in (utility, *(part for part in utility.parts() if part.inputs is not None)):
            _require_equal_labels("inputs of the channel", part.labels, inputs, inputs_are_named)
        for constraint in constraints:
            stated_labels = getattr(constraint, "input_labels", None)
            if stated_labels is not None:
                _require_equal_labels(f"inputs of {type(constraint).__name__}", inputs, stated_labels, True)
    if outputs is None:
        return
    if decisions is not None:
        _require_equal_labels("outputs of the channel", decisions, outputs, False)
    for constraint in constraints:
        stated_labels = constraint.output_labels(inputs) if inputs and hasattr(constraint, "output_labels") else None
        if stated_labels is not None and not (
            channel is None and len(stated_labels) != len(outputs)
        ):  # Sizes are refused elsewhere.
            _require_equal_labels(
                f"outputs of the channel with {type(constraint).__name__}", stated_labels, outputs, True
            )


def _require_equal_labels(
    name: str, expected: Sequence[Label], stated_labels: Sequence[Label], labels_are_names: bool
) -> None:
    """Raise `InvalidInput` unless two lists are equal.

    labels_are_names : True if positions do not represent absent labels.
    """
    expected, stated_labels = tuple(expected), tuple(stated_labels)
    if expected == stated_labels:
        return
    positions = range(len(expected))
    if (
        not labels_are_names
        and len(stated_labels) == len(expected)
        and expected == tuple(positions)
        and not set(stated_labels) & set(positions)
    ):
        return
    raise invalid(name, f"{_labels_text(expected)} in this order", Phrase(_labels_text(stated_labels)))


def _labels_text(labels: Sequence[Label]) -> str:
    """Format the first labels of a list."""
    remainder = f", ... ({len(labels):,} labels)" if len(labels) > MAX_LABELS_SHOWN else ""
    return f"[{', '.join(map(repr, labels[:MAX_LABELS_SHOWN]))}{remainder}]"
