"""The constraint that a channel preserve one distribution: invariant post-randomization."""

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
from ldpopt.numbers.tolerances import INVARIANCE_TOLERANCE
from ldpopt.privacy import Guarantee
from ldpopt.values.distribution import Array


@dataclass(frozen=True, eq=False)
class Invariant(AlphabetConstraint):
    """The constraint p Q = p: reports have the same distribution as answers, so that tables need no correction [PRAM,
    section 3].

    p : distribution of shape (k,). The channel has k outputs, labelled like its inputs. The equation must hold to 1e-13
    in every entry.

    inputs : labels of the k answers, those of a pandas Series by default. They must be those of the utility, in order.

    >>> Invariant([0.5, 0.5]).measure(Channel([[0.7, 0.3], [0.3, 0.7]])).value
    0.0
    """

    p: Any
    inputs: tuple[Label, ...] | None = None
    symmetric = False  # Outputs are named like inputs, so that no two inputs are equivalent.
    balances = True  # `repair` scales rows and columns in turn, and preserves zeros.
    bound = INVARIANCE_TOLERANCE

    def __post_init__(self) -> None:
        (p,), inputs = labeled_distributions([("p", self.p)], self.inputs, min_entries=1)
        vars(self).update(p=p, inputs=inputs)

    @property
    def input_labels(self) -> tuple[Label, ...] | None:
        """The labels of the answers of p."""
        return self.inputs

    def measure(self, channel: Channel) -> Guarantee:
        """Measure the largest entry of |p Q - p|; inf for a channel of another shape."""
        deviation = math.inf
        if channel.shape == (len(self.p), len(self.p)):
            rows = channel.matrix / channel.matrix.sum(axis=1, keepdims=True)
            deviation = float(np.abs(self.p @ rows - self.p).max())
        return Guarantee("invariant", deviation, deviation, None, True, "[PRAM, section 3]")

    def outputs(self, inputs: int) -> int:
        """Return the number of inputs, which is also that of outputs."""
        if len(self.p) != inputs:
            raise invalid("p", f"{inputs} entries, one an input", len(self.p))
        return inputs

    def output_labels(self, inputs: Sequence[Label]) -> tuple[Label, ...] | None:
        """Return the labels of the inputs."""
        return tuple(inputs)

    def pose(self, q: Any, give: Any = 0.0) -> tuple[list[Any], Callable[[], Any]]:
        """Build one equation for each output."""
        import cvxpy as cp

        violation = 0.0 if isinstance(give, float) else cp.Variable(len(self.p))
        equation = self.p @ q + violation == self.p
        violation_limits = [] if isinstance(give, float) else [cp.norm1(violation) <= give]
        return [equation, *violation_limits], lambda: np.asarray(equation.dual_value)

    def _prices(self, multiplier: Any, arithmetic: Arithmetic) -> Enclosure:
        return arithmetic.of(real_array(multiplier, (len(self.p),), "prices of the invariant law"))

    def enclosed_support(self, multiplier: Any, shape: tuple[int, int], arithmetic: Arithmetic) -> Enclosure:
        """Enclose (m, k) the price of each output times p."""
        return self._prices(multiplier, arithmetic)[:, None] * law(self.p, arithmetic)

    def enclosed_charge(self, multiplier: Any, shape: tuple[int, int], arithmetic: Arithmetic) -> Enclosure:
        """Enclose the prices of the outputs, averaged by p, plus the effect of allowed rounding."""
        prices = self._prices(multiplier, arithmetic)
        # 1.001: p sums to one within 1e-9. The measure itself is computed in float64.
        rounding = 1.001 * INVARIANCE_TOLERANCE + (2 * len(self.p) + 8) * ULP
        return prices @ law(self.p, arithmetic) + prices.abs().sum() * rounding

    def idle(self, shape: tuple[int, int]) -> Any:
        """Return prices that are all zero."""
        return np.zeros(shape[1])

    def scaled(self, multiplier: Any, scale: float) -> Any:
        """Multiply the prices by `scale`."""
        return multiplier * scale

    def repair(self, matrix: Array) -> Array:
        """Scale the matrix until both margins of diag(p) Q are p [Sinkhorn]; zeros stay."""
        is_positive = self.p > 0
        q = np.where(is_positive[:, None] & ~is_positive[None, :], 0.0, matrix)
        q = q / q.sum(axis=1, keepdims=True)
        for _ in range(500):
            reports = self.p @ q
            if np.abs(reports - self.p).max() <= INVARIANCE_TOLERANCE / 8:
                break
            q = q * np.where(is_positive[:, None] & (reports > 0), self.p / np.where(reports > 0, reports, 1.0), 1.0)
            q = q / q.sum(axis=1, keepdims=True)
        return np.asarray(q)

    def constant(self, shape: tuple[int, int]) -> Array | None:
        """Return the row p."""
        return np.asarray(self.p)
