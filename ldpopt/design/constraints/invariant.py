"""The constraint that a channel leave one distribution as it is: invariant post-randomisation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.channel import Channel, Label
from ldpopt.design.constraints.base import AlphabetConstraint
from ldpopt.design.kernel.numbers import real_array
from ldpopt.design.utilities.laws import labeled_distributions, law
from ldpopt.errors import invalid
from ldpopt.numbers.enclosures import Arithmetic, Enclosure
from ldpopt.numbers.rounding import ULP
from ldpopt.numbers.tolerances import INVARIANT
from ldpopt.privacy import Guarantee
from ldpopt.values.distribution import Array


@dataclass(frozen=True, eq=False)
class Invariant(AlphabetConstraint):
    """p Q = p: reports have the same law as answers, so that tables need no correction [PRAM, section 3].

    p : distribution of shape (k,). The channel has k outputs, labelled like its inputs. The equation must hold to 1e-13
    in every entry.
    inputs : labels of the k answers, those of a pandas Series by default. They must be those of the utility, in order.

    >>> Invariant([0.5, 0.5]).measure(Channel([[0.7, 0.3], [0.3, 0.7]])).value
    0.0
    """

    p: Any
    inputs: tuple[Label, ...] | None = None
    symmetric = False  # outputs are named like inputs, so that no two inputs are alike
    balances = True  # `mend` scales rows and columns in turn, and keeps zeros
    bound = INVARIANT

    def __post_init__(self) -> None:
        (p,), inputs = labeled_distributions([("p", self.p)], self.inputs, min_entries=1)
        vars(self).update(p=p, inputs=inputs)

    @property
    def input_labels(self) -> tuple[Label, ...] | None:
        """The labels of the answers of p."""
        return self.inputs

    def measure(self, channel: Channel) -> Guarantee:
        """The largest entry of |p Q - p|; inf for a channel of another shape."""
        off = math.inf
        if channel.shape == (len(self.p), len(self.p)):
            rows = channel.matrix / channel.matrix.sum(axis=1, keepdims=True)
            off = float(np.abs(self.p @ rows - self.p).max())
        return Guarantee("invariant", off, off, None, True, "[PRAM, section 3]")

    def outputs(self, inputs: int) -> int:
        """As many outputs as inputs."""
        if len(self.p) != inputs:
            raise invalid("p", f"{inputs} entries, one an input", len(self.p))
        return inputs

    def output_labels(self, inputs: Sequence[Label]) -> tuple[Label, ...] | None:
        """The labels of the inputs."""
        return tuple(inputs)

    def pose(self, q: Any, give: Any = 0.0) -> tuple[list[Any], Callable[[], Any]]:
        """One equation for each output."""
        import cvxpy as cp

        off = 0.0 if isinstance(give, float) else cp.Variable(len(self.p))
        equation = self.p @ q + off == self.p
        given = [] if isinstance(give, float) else [cp.norm1(off) <= give]
        return [equation, *given], lambda: np.asarray(equation.dual_value)

    def _prices(self, multiplier: Any, arithmetic: Arithmetic) -> Enclosure:
        return arithmetic.of(real_array(multiplier, (len(self.p),), "prices of the invariant law"))

    def enclosed_support(self, multiplier: Any, shape: tuple[int, int], arithmetic: Arithmetic) -> Enclosure:
        """(m, k) the price of each output times p."""
        return self._prices(multiplier, arithmetic)[:, None] * law(self.p, arithmetic)

    def enclosed_charge(self, multiplier: Any, shape: tuple[int, int], arithmetic: Arithmetic) -> Enclosure:
        """The prices of the outputs, averaged by p, and what the allowed rounding may add."""
        prices = self._prices(multiplier, arithmetic)
        # 1.001: p sums to one within 1e-9. The measure itself is computed in float64.
        rounding = 1.001 * INVARIANT + (2 * len(self.p) + 8) * ULP
        return prices @ law(self.p, arithmetic) + prices.abs().sum() * rounding

    def idle(self, shape: tuple[int, int]) -> Any:
        """Prices that are all zero."""
        return np.zeros(shape[1])

    def scaled(self, multiplier: Any, scale: float) -> Any:
        """The prices times `scale`."""
        return multiplier * scale

    def mend(self, matrix: Array) -> Array:
        """The matrix scaled in turn until both margins of the joint law diag(p) Q are p [Sinkhorn]; zeros stay."""
        used = self.p > 0
        q = np.where(used[:, None] & ~used[None, :], 0.0, matrix)
        q = q / q.sum(axis=1, keepdims=True)
        for _ in range(500):
            reports = self.p @ q
            if np.abs(reports - self.p).max() <= INVARIANT / 8:
                break
            q = q * np.where(used[:, None] & (reports > 0), self.p / np.where(reports > 0, reports, 1.0), 1.0)
            q = q / q.sum(axis=1, keepdims=True)
        return np.asarray(q)

    def constant(self, shape: tuple[int, int]) -> Array | None:
        """The row p."""
        return np.asarray(self.p)
