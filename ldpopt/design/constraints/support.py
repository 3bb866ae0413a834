"""The constraint that some reports be impossible under some answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.constraints.alphabet import AlphabetConstraint
from ldpopt.distribution import Array, Index
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.privacy import Guarantee
from ldpopt.privacy.guarantee import Witness


@dataclass(frozen=True, eq=False)
class Support(AlphabetConstraint):
    """Q[x, y] = 0 wherever `mask` is False.

    mask : boolean array (k, m), with at least one True in every row.

    Pure LDP between all inputs allows no output that is possible for only some of them [GI, Def 6]: together with
    `LocalDP`, an output with a False in its column never occurs. Total variation, (epsilon, delta)-LDP and
    `CapacityBounded` allow such outputs.

    >>> Support([[True, False], [True, True]]).measure(Channel([[1.0, 0.0], [0.5, 0.5]])).value
    0.0
    """

    mask: Any

    def __post_init__(self) -> None:
        mask = np.array(self.mask)
        if mask.dtype != bool or mask.ndim != 2:
            raise invalid("mask", "a boolean array (k, m)", Phrase(f"{mask.dtype} of {mask.ndim} dimensions"))
        empty = np.flatnonzero(~mask.any(axis=1)) if mask.size else np.zeros(1)
        if len(empty):
            raise InvalidInput(f"mask: expected an allowed output for every input, got none for input {empty[0]}")
        mask.setflags(write=False)
        object.__setattr__(self, "mask", mask)

    @property
    def symmetric(self) -> bool:
        """False: the mask says for each input which outputs it allows."""
        return False

    @property
    def bound(self) -> float:
        """0: forbidden reports must have probability zero."""
        return 0.0

    def measure(self, channel: Channel) -> Guarantee:
        """The largest probability of a forbidden report; inf for a channel of another shape."""
        if channel.shape != self.mask.shape:
            return Guarantee("support", np.inf, np.inf, None, True, "[GI, Def 6]")
        outside = np.where(self.mask, 0.0, channel.matrix)
        x, y = np.unravel_index(int(outside.argmax()), outside.shape)
        worst, witness = float(outside.max()), None
        if worst > 0:
            witness = Witness((channel.inputs[x], channel.inputs[x]), (channel.outputs[y],))
        return Guarantee("support", worst, worst, witness, True, "[GI, Def 6]")

    def outputs(self, inputs: int) -> int:
        """The number of columns of the mask."""
        if len(self.mask) != inputs:
            raise invalid("mask", f"{inputs} rows, one an input", len(self.mask))
        return int(self.mask.shape[1])

    def kinds(self, outputs: int) -> Index:
        """(m,) the same number for outputs with the same column of the mask."""
        return np.unique(self.mask, axis=1, return_inverse=True)[1].reshape(-1)

    def pose(self, q: Any, give: Any = 0.0) -> tuple[list[Any], Callable[[], Any]]:
        """The entries outside the mask are zero; they have no multiplier."""
        import cvxpy as cp

        if self.mask.all():
            return [], lambda: None
        return [cp.multiply((~self.mask).astype(np.float64), q) == 0], lambda: None

    def allowed(self, shape: tuple[int, int]) -> Array:
        """The mask."""
        if self.mask.shape != shape:
            raise invalid("mask", f"shape {shape}", self.mask.shape)
        return np.asarray(self.mask)

    def mend(self, matrix: Array) -> Array:
        """The matrix with zeros outside the mask."""
        return np.where(self.mask, matrix, 0.0)

    def constant(self, shape: tuple[int, int]) -> Array | None:
        """The uniform row on the outputs that every answer allows; None if there are none."""
        common = self.mask.all(axis=0)
        return common / common.sum() if common.any() else None
