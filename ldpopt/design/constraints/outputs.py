"""Limits on the reports: their number, impossible reports under some answers, and multiples of 1/D."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.channel import Channel, Label
from ldpopt.design.constraints.base import AlphabetConstraint, Measured
from ldpopt.design.registry import Parameter
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.privacy import Guarantee
from ldpopt.privacy.guarantee import Witness
from ldpopt.values.distribution import Array, Index, positive_integer
from ldpopt.values.labels import distinct_labels, matrix_labels


@dataclass(frozen=True)
class Outputs(AlphabetConstraint, m=positive_integer):
    """A budget of communication: at most m >= 1 different reports, log2(m) bits each.

    Outputs cannot be split at will, so that staircase patterns do not suffice; the optimum is bounded by branching on
    the outputs' likelihood ratios. Where the optimum without the budget has at most m outputs, it is the answer
    [KOV14, Thm 2].

    >>> Outputs(2).measure(Channel([[0.7, 0.3], [0.3, 0.7]])).value
    2.0
    """

    m: int
    asks = (Parameter("outputs", "Largest number of different reports.", "M", "m", int),)
    preference = 60
    capped = "m"
    labelled = False  # Exchanging two outputs changes nothing.

    def measure(self, channel: Channel) -> Guarantee:
        """Count the outputs that occur."""
        outputs_in_use = float((channel.matrix.max(axis=0) > 0).sum())
        return Guarantee("outputs", outputs_in_use, outputs_in_use, None, True, "[KOV14, Thm 2]")

    def outputs(self, inputs: int) -> int:
        """Return m, for any number of inputs."""
        return self.m

    def kinds(self, outputs: int) -> Index:
        """Return zeros: all outputs are equivalent."""
        return np.zeros(outputs, dtype=np.intp)

    def pose(self, q: Any, give: Any = 0.0) -> tuple[list[Any], Callable[[], Any]]:
        """Build no constraint, because the shape of the matrix is the constraint."""
        return [], lambda: None


@dataclass(frozen=True, eq=False)
class Support(AlphabetConstraint):
    """The constraint Q[x, y] = 0 wherever `mask` is False.

    - `mask` : boolean array (k, m), with at least one True in every row.

    - `inputs`, `reports` : labels of the rows and of the columns, those of a pandas frame by default. The inputs must
      be those of the utility, in order; the outputs of a designed channel get the labels of the columns.

    Pure LDP between all inputs allows no output that is possible for only some of them [GI, Def 6]. Together with
    `LocalDP`, an output with a False in its column never occurs. Total variation, (epsilon, delta)-LDP and
    `CapacityBounded` allow such outputs.

    >>> Support([[True, False], [True, True]]).measure(Channel([[1.0, 0.0], [0.5, 0.5]])).value
    0.0
    """

    mask: Any
    inputs: tuple[Label, ...] | None = None
    reports: tuple[Label, ...] | None = None
    symmetric = False  # The mask determines the allowed outputs of each input.
    bound = 0.0  # Forbidden reports must have probability zero.

    def __post_init__(self) -> None:
        array, inputs, reports = matrix_labels(self.mask, self.inputs, self.reports, "mask")
        mask = np.array(array)
        if mask.dtype != bool or mask.ndim != 2:
            raise invalid("mask", "a boolean array (k, m)", Phrase(f"{mask.dtype} of {mask.ndim} dimensions"))
        if len(empty_rows := np.flatnonzero(~mask.any(axis=1)) if mask.size else np.zeros(1)):
            raise InvalidInput(f"mask: expected an allowed output for every input, got none for input {empty_rows[0]}")
        mask.setflags(write=False)
        sides = ((inputs, mask.shape[0], "inputs"), (reports, mask.shape[1], "reports"))
        inputs, reports = (None if side[0] is None else distinct_labels(*side) for side in sides)
        vars(self).update(mask=mask, inputs=inputs, reports=reports)

    @property
    def input_labels(self) -> tuple[Label, ...] | None:
        """The labels of the rows of the mask."""
        return self.inputs

    def output_labels(self, inputs: Sequence[Label]) -> tuple[Label, ...] | None:
        """Return the labels of the columns of the mask."""
        return self.reports

    def measure(self, channel: Channel) -> Guarantee:
        """Measure the largest probability of a forbidden report.

        It is inf for a channel of another shape.
        """
        if channel.shape != self.mask.shape:
            return Guarantee("support", np.inf, np.inf, None, True, "[GI, Def 6]")
        return Guarantee("support", *_largest(np.where(self.mask, 0.0, channel.matrix), channel), True, "[GI, Def 6]")

    def outputs(self, inputs: int) -> int:
        """Return the number of columns of the mask."""
        if len(self.mask) != inputs:
            raise invalid("mask", f"{inputs} rows, one an input", len(self.mask))
        return int(self.mask.shape[1])

    def kinds(self, outputs: int) -> Index:
        """Return (m,) the same number for outputs with the same column of the mask."""
        return np.unique(self.mask, axis=1, return_inverse=True)[1].reshape(-1)

    def pose(self, q: Any, give: Any = 0.0) -> tuple[list[Any], Callable[[], Any]]:
        """Set the entries outside the mask to zero; they have no multiplier."""
        import cvxpy as cp

        if self.mask.all():
            return [], lambda: None
        return [cp.multiply((~self.mask).astype(np.float64), q) == 0], lambda: None

    def allowed(self, shape: tuple[int, int]) -> Array:
        """Return the mask."""
        if self.mask.shape != shape:
            raise invalid("mask", f"shape {shape}", self.mask.shape)
        return np.asarray(self.mask)

    def repair(self, matrix: Array) -> Array:
        """Replace the entries outside the mask by zeros."""
        return np.where(self.mask, matrix, 0.0)

    def constant(self, shape: tuple[int, int]) -> Array | None:
        """Return the uniform row on the outputs that every answer allows; None without any."""
        common = self.mask.all(axis=0)
        return common / common.sum() if common.any() else None


def _largest(entries: Array, channel: Channel) -> tuple[float, float, Witness | None]:
    """Return the largest nonnegative entry of the channel, twice, and its position if it is above 0."""
    x, y = np.unravel_index(int(entries.argmax()), entries.shape)
    largest = float(entries[x, y])
    return (
        largest,
        largest,
        Witness((channel.inputs[x], channel.inputs[x]), (channel.outputs[y],)) if largest > 0 else None,
    )


MAX_DENOMINATOR = 10**6


@dataclass(frozen=True)
class Denominator(Measured):
    """Every probability of the channel is n/D for an integer n. D is 36 for two dice, 52 for a deck, 2^c for c coins.

    D : from 2 to a million. A matrix of floats meets this when its entries are the floats nearest to such fractions,
    and the integers of each row add up to D. The constraint does not verify that the dice or coins are fair.

    >>> Denominator(4).measure(Channel([[0.75, 0.25], [0.25, 0.75]])).value
    0.0
    """

    D: int
    bound = 0.0  # Every entry must be the float nearest to a multiple of 1/D.

    def __post_init__(self) -> None:
        denominator = positive_integer(self.D, "denominator", 2)
        if denominator > MAX_DENOMINATOR:
            raise invalid("denominator", f"at most {MAX_DENOMINATOR:,}", denominator)
        object.__setattr__(self, "D", denominator)

    def measure(self, channel: Channel) -> Guarantee:
        """Measure the distance of the entries from multiples of 1/D.

        It is 0 if each is the float nearest to one, and infinite if the multiples of a row do not add up to 1.
        """
        weights = np.rint(channel.matrix * self.D)
        distance = np.abs(channel.matrix - weights / self.D)
        if not distance.any() and not (weights.sum(axis=1) == self.D).all():
            distance += np.inf
        return Guarantee("denominator", *_largest(distance, channel), True, "[Warner]", {"D": float(self.D)})

    def expression(self, q: Any) -> Sequence[Any]:
        """Raise `InvalidInput`: a convex program cannot require integers."""
        raise InvalidInput("constraints: Denominator is for optimal_channel alone, as no convex program has integers")
