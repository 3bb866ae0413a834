"""Constraints on channels with a given number of outputs, so that none may be split or added."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ldpopt.channel import Label
from ldpopt.design.constraints.base import Measured
from ldpopt.distribution import Array, Index
from ldpopt.enclosures import Arithmetic, Enclosure


class AlphabetConstraint(Measured):
    """A convex constraint on a matrix (k, m) with a fixed number m of outputs.

    As outputs cannot be split, staircase patterns do not suffice, and designs are found and bounded by branching
    (`design.BranchAndBound`). Each constraint has multipliers of its own form: `pose` says how to read them off a
    solved program, `enclosed_support` and `enclosed_charge` what they prove.
    """

    @property
    def labelled(self) -> bool:
        """Whether outputs have names, so that exchanging two of them makes another channel."""
        return True

    @abstractmethod
    def outputs(self, inputs: int) -> int:
        """The number m of outputs of a channel with this many inputs; `InvalidInput` where there is no such channel."""

    def kinds(self, outputs: int) -> Index:
        """(m,) a number for each output; outputs of the same number are treated alike by the constraint."""
        return np.arange(outputs)

    def pairs(self, inputs: int) -> int:
        """How many pairs of inputs the program compares, from which its cost is estimated."""
        return 0

    def output_labels(self, inputs: Sequence[Label]) -> tuple[Label, ...] | None:
        """The labels of the outputs where the constraint names them, else None."""
        return None

    @abstractmethod
    def pose(self, q: Any, give: Any = 0.0) -> tuple[list[Any], Callable[[], Any]]:
        """cvxpy constraints on the variable `q` (k, m), and a function that reads the multiplier after solving.

        give : a cvxpy expression, the amount by which equations may be violated so that the program stays feasible.
        """

    def expression(self, q: Any) -> Sequence[Any]:
        """The constraint as cvxpy constraints on a matrix variable `q` (k, m)."""
        return self.pose(q)[0]

    def allowed(self, shape: tuple[int, int]) -> Array:
        """(k, m) booleans: False where the constraint makes the entry of a matrix zero."""
        return np.ones(shape, dtype=bool)

    def enclosed_support(self, multiplier: Any, shape: tuple[int, int], arithmetic: Arithmetic) -> Enclosure:
        """(m, k) prices u: the sum of u[y, x] Q[x, y] is at most `enclosed_charge` for every Q within the constraint.

        Q has shape (k, m) and rows that sum to one exactly. The multiplier is checked: `Unproved` if it is malformed.
        """
        return arithmetic.zeros(shape[::-1])

    def enclosed_charge(self, multiplier: Any, shape: tuple[int, int], arithmetic: Arithmetic) -> Enclosure:
        """What the multiplier adds to the bound."""
        return arithmetic.of(0.0)

    def idle(self, shape: tuple[int, int]) -> Any:
        """The multiplier that charges nothing."""
        return None

    def scaled(self, multiplier: Any, scale: float) -> Any:
        """The multiplier of a program whose utility is `scale` times as large."""
        return multiplier

    @property
    def balances(self) -> bool:
        """Whether `mend` moves mass between outputs; it then comes after constraints that set single entries."""
        return False

    def mend(self, matrix: Array) -> Array:
        """The matrix (k, m) with the constraint's equations restored, which a solver meets only nearly."""
        return matrix

    def constant(self, shape: tuple[int, int]) -> Array | None:
        """A row (m,) that meets the constraint when all inputs have it; None if any row does, or none."""
        return None
