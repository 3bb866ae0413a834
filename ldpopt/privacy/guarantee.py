"""The guarantee: a proved bound on a privacy measure, the inputs that attain it, and where the notion is defined."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from ldpopt.channel import Label
from ldpopt.numbers.rounding import ceil_digits, floor_digits
from ldpopt.values.results import Result, jsonable


@dataclass(frozen=True, eq=False)
class Witness(Result):
    """The two inputs and the event (a set of outputs) that attain the guarantee.

    >>> from ldpopt.privacy import total_variation
    >>> print(total_variation([[0.75, 0.25], [0.25, 0.75]]).witness)
    0 against 1 on {0}
    """

    inputs: tuple[Label, Label]
    outputs: tuple[Label, ...] = ()

    def __str__(self) -> str:
        pair = f"{self.inputs[0]!r} against {self.inputs[1]!r}"
        if not self.outputs:
            return pair
        labels = ", ".join(repr(y) for y in self.outputs[:5]) + (", ..." if len(self.outputs) > 5 else "")
        return f"{pair} on {{{labels}}}"


@dataclass(frozen=True, eq=False)
class Guarantee(Result):
    """The privacy that a channel guarantees, under one notion.

    value : an upper bound on the true value, rounded up. In nats where the notion has a unit. May be inf.
    lower : a lower bound, so that the true value lies in [lower, value].
    notion : the name of the measure, e.g. ``"local_dp"``.
    witness : the inputs and the event that attain the value, or None.
    exact : True if the value is attained, up to rounding; False if it is only an upper bound.
    reference : where the notion is defined, e.g. ``"[GI, Def 6]"``.
    parameters : the parameters of the notion, e.g. ``{"order": 2.0}``.

    `float(guarantee)` is the value.

    >>> from ldpopt.privacy import local_dp
    >>> found = local_dp([[0.75, 0.25], [0.25, 0.75]])
    >>> print(found, found.exact)
    local dp ≤ 1.09862 (0 against 1 on {0}) True
    """

    notion: str
    value: float
    lower: float = 0.0
    witness: Witness | None = None
    exact: bool = False
    reference: str = ""
    parameters: Mapping[str, float] = field(default_factory=dict)

    def _is_limit(self, name: str) -> bool:
        return name == "value"

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", float(self.value))
        object.__setattr__(self, "lower", float(self.lower))
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))

    @property
    def title(self) -> str:
        """The notion as people write it, with its parameters."""
        parameters = ", ".join(f"{name} {text}" for name, text in self.printed_parameters.items())
        return self.notion.replace("_", " ") + (f" ({parameters})" if parameters else "")

    @property
    def printed_parameters(self) -> dict[str, str]:
        """The parameters to print, rounded so that the guarantee still holds: orders down, others up."""
        orders = ("alpha", "order")
        return {
            name: (floor_digits if name in orders else ceil_digits)(value) for name, value in self.parameters.items()
        }

    @property
    def more_is_more_private(self) -> bool:
        """True if a larger value means more privacy, so that the lower bound is the guarantee."""
        return self.notion == "doeblin"

    @property
    def printed(self) -> tuple[str, str]:
        """The sign and the number to print: ≤ and `value` rounded up, or, if more is more private, ≥ and `lower`."""
        if self.more_is_more_private:
            return "≥", floor_digits(self.lower)
        return "≤", ceil_digits(self.value)

    def __float__(self) -> float:
        return self.value

    @property
    def limit(self) -> str:
        """Sign, number and the attaining witness, to print after the name: ``"≤ 1.09862 (0 against 1 on {0})"``."""
        text = " ".join(self.printed)
        return f"{text} ({self.witness})" if self.witness else text

    def __str__(self) -> str:
        return f"{self.title} {self.limit}"

    def to_dict(self) -> dict[str, Any]:
        """Convert the guarantee to JSON-ready values; infinite values become ``"inf"``."""
        return {
            "notion": self.notion,
            "value": jsonable(self.value),
            "exact": self.exact,
            "reference": self.reference,
            "parameters": jsonable(self.parameters),
            "witness": jsonable(self.witness),
        }
