"""One labelling: the labels of a utility, of constraints and of a channel, compared once, at the border.

Everything behind this border goes by positions. So all labels must be the same, in the same order.
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
    utility : its inputs, and its decisions where it has any, are what all else is compared with. A utility that names
        no inputs has the labels 0..k-1. The channel may then have names of its own, as nothing else goes by them.
    constraints : laws and masks with labels of their own, and policy graphs, whose nodes are inputs.
    channel : the channel of a design, or None where there is none yet.
    """
    constraints = tuple(constraints)
    decisions: tuple[Label, ...] | None = None if utility.decisions is None else tuple(utility.decisions)
    outputs: tuple[Label, ...] | None = decisions if channel is None else tuple(channel.outputs)
    inputs: tuple[Label, ...] = () if utility.continuous else tuple(utility.labels)
    inputs = inputs if channel is None else tuple(channel.inputs)
    if not utility.continuous:
        named = any(getattr(constraint, "names_inputs", False) for constraint in constraints)
        for part in (utility, *(part for part in utility.parts() if part.inputs is not None)):
            _agree("inputs of the channel", part.labels, inputs, named)
        for constraint in constraints:
            stated = getattr(constraint, "input_labels", None)
            if stated is not None:
                _agree(f"inputs of {type(constraint).__name__}", inputs, stated, True)
    if outputs is None:
        return
    if decisions is not None:
        _agree("outputs of the channel", decisions, outputs, False)
    for constraint in constraints:
        stated = constraint.output_labels(inputs) if inputs and hasattr(constraint, "output_labels") else None
        if stated is not None and not (channel is None and len(stated) != len(outputs)):  # Sizes are refused elsewhere.
            _agree(f"outputs of the channel with {type(constraint).__name__}", stated, outputs, True)


def _agree(what: str, expected: Sequence[Label], given: Sequence[Label], named: bool) -> None:
    """Raise `InvalidInput` unless two lists are equal. named : whether positions do not stand for absent labels."""
    expected, given = tuple(expected), tuple(given)
    if expected == given:
        return
    positions = range(len(expected))
    if not named and len(given) == len(expected) and expected == tuple(positions) and not set(given) & set(positions):
        return
    raise invalid(what, f"{_shown(expected)} in this order", Phrase(_shown(given)))


def _shown(labels: Sequence[Label]) -> str:
    """The first labels of a list."""
    more = f", ... ({len(labels):,} labels)" if len(labels) > MAX_LABELS_SHOWN else ""
    return f"[{', '.join(map(repr, labels[:MAX_LABELS_SHOWN]))}{more}]"
