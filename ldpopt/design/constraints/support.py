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
    """Q[x, y] = 0 wherever `mask` is False: boolean array (k, m), every row with at least one True.

    Pure LDP between all inputs allows no output that is possible for some of them only [GI, Def 6]: together with
    `LocalDP`, an output with a False in its column is never given. Total variation, (epsilon, delta) and the
    capacity-bounded notions leave room for such outputs.

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
        """The mask says for each input what it allows."""
        return False

    @property
    def bound(self) -> float:
        """Forbidden reports have probability zero."""
        return 0.0

    def measure(self, channel: Channel) -> Guarantee:
        """The largest probability of a forbidden report; inf where the shape is another."""
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
        """Outputs with the same mask are alike."""
        return np.unique(self.mask, axis=1, return_inverse=True)[1].reshape(-1)

    def pose(self, q: Any, give: Any = 0.0) -> tuple[list[Any], Callable[[], Any]]:
        """Zeros outside the mask."""
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
        """Zeros outside the mask."""
        return np.where(self.mask, matrix, 0.0)

    def constant(self, shape: tuple[int, int]) -> Array | None:
        """Even on the outputs that are possible under every answer, if there are any."""
        common = self.mask.all(axis=0)
        return common / common.sum() if common.any() else None
