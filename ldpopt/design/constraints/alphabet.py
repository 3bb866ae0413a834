"""Constraints on channels whose outputs are given, so that none may be merged, split or added."""

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

    The utility is then convex on a convex set without the freedom to split outputs, so that designs are searched for
    and bounded by branching (`design.BranchAndBound`). Multipliers are the constraint's own business: `pose` says how
    to read them off a solved program, `enclosed_support` and `enclosed_charge` what they prove.
    """

    @property
    def labelled(self) -> bool:
        """Whether outputs are told apart, so that exchanging two of them makes another channel."""
        return True

    @abstractmethod
    def outputs(self, inputs: int) -> int:
        """The number m of outputs of channels with this many inputs; `InvalidInput` where there are none such."""

    def kinds(self, outputs: int) -> Index:
        """A number for each output; two of the same number may be exchanged without changing the constraint."""
        return np.arange(outputs)

    def pairs(self, inputs: int) -> int:
        """How many pairs of inputs the program compares, for what it costs."""
        return 0

    def output_labels(self, inputs: Sequence[Label]) -> tuple[Label, ...] | None:
        """What the outputs are called, if the constraint says."""
        return None

    @abstractmethod
    def pose(self, q: Any, give: Any = 0.0) -> tuple[list[Any], Callable[[], Any]]:
        """cvxpy constraints on the variable `q` (k, m), and what reads the multiplier after solving.

        give : a cvxpy expression by which equations may be violated, where a program must not be infeasible.
        """

    def expression(self, q: Any) -> Sequence[Any]:
        """The constraint as cvxpy constraints on a matrix variable `q` (k, m)."""
        return self.pose(q)[0]

    def allowed(self, shape: tuple[int, int]) -> Array:
        """(k, m) booleans: False where the constraint makes the entry of a matrix zero."""
        return np.ones(shape, dtype=bool)

    def enclosed_support(self, multiplier: Any, shape: tuple[int, int], arithmetic: Arithmetic) -> Enclosure:
        """(m, k) prices u with u.Q <= `enclosed_charge` for every matrix Q of shape (k, m) within the constraint.

        Rows of Q sum to one exactly. The multiplier may be anything: `Unproved` for what is none.
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
        """Whether `mend` moves mass between outputs, so that it comes after what sets single entries."""
        return False

    def mend(self, matrix: Array) -> Array:
        """The matrix (k, m) with what a solver leaves undone of the constraint's equations done."""
        return matrix

    def constant(self, shape: tuple[int, int]) -> Array | None:
        """A row (m,) whose constant channel meets the constraint; None if any row does."""
        return None
