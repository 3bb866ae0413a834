"""A design problem, validated: a divergence, the caps on epsilon and eta, and the sorted and merged alphabet."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from ldpopt.channel import Label
from ldpopt.design.constraints import Constraint, LocalDP, TotalVariation
from ldpopt.design.problems.cells import Cells
from ldpopt.design.problems.reduction import Pair, Reduction, reduce
from ldpopt.design.utilities.divergence import Divergence
from ldpopt.errors import InvalidInput, invalid

CELLS = 8000
"""Intervals that a continuous pair is cut into before the design: their own bracket is far below the tolerance."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Maximise `utility` (finite: of the cells, where the hypotheses are continuous) subject to `constraints`.

    epsilon is inf and eta is 1 where there is no such constraint; of several, the tightest counts.
    plain : no constraint but `LocalDP` and `TotalVariation` between all inputs.
    """

    utility: Divergence
    constraints: tuple[Constraint, ...]
    epsilon: float
    eta: float
    reduction: Reduction
    cells: Cells | None
    plain: bool = True

    @property
    def symmetric(self) -> bool:
        """Whether all inputs are treated alike, so that inputs of one likelihood ratio are merged."""
        return all(getattr(constraint, "symmetric", False) for constraint in self.constraints)

    @property
    def inputs(self) -> tuple[Label, ...]:
        """The labels of the reduced inputs: the caller's where nothing is merged."""
        given = self.utility.inputs
        count = len(self.reduction.pair)
        return tuple(range(count)) if self.symmetric or given is None else given

    @property
    def ratio(self) -> float:
        """E = exp(epsilon)."""
        return math.exp(self.epsilon)

    @property
    def cap(self) -> float | None:
        """The eta that can bind: none when no TV cap is below (e^epsilon - 1)/(e^epsilon + 1) [GI, Prop 2]."""
        return self.eta if self.eta < math.tanh(self.epsilon / 2) else None


def listed(constraints: Constraint | Iterable[Constraint]) -> tuple[Constraint, ...]:
    """The constraints as a tuple, or `InvalidInput` for what is none."""
    given = (constraints,) if isinstance(constraints, Constraint) else tuple(constraints)
    for constraint in given:
        if not isinstance(constraint, Constraint):
            expected = "LocalDP or TotalVariation, another constraint, or a class with bound, measure and expression"
            raise invalid("constraint", expected, type(constraint).__name__)
    if not given:
        raise InvalidInput("constraints: expected at least one of LocalDP, TotalVariation and the others, got none")
    return given


def pose(utility: Divergence, constraints: Constraint | Iterable[Constraint]) -> Problem:
    """The problem, or `InvalidInput` that says which part of it cannot be."""
    if not isinstance(utility, Divergence):
        raise invalid("utility", "a Divergence", type(utility).__name__)
    given = listed(constraints)
    pure = [c for c in given if isinstance(c, LocalDP) and c.symmetric]
    plain = all(c in pure or isinstance(c, TotalVariation) for c in given)
    epsilon = min((c.epsilon for c in pure), default=math.inf)
    eta = min((c.eta for c in given if isinstance(c, TotalVariation)), default=1.0)
    cells = None
    if utility.continuous:
        if not plain:
            raise InvalidInput("constraints: continuous hypotheses take LocalDP and TotalVariation only, got others")
        if math.isinf(epsilon):
            raise InvalidInput("constraints: continuous hypotheses need LocalDP, got a cap on total variation alone")
        cells = Cells.of(utility.p0, utility.p1, CELLS)
        utility = Divergence(utility.f, *cells.masses, inputs=cells.labels)
    if plain and math.isinf(epsilon) and math.isinf(utility.unprivate):
        raise InvalidInput(
            f"constraints: with a cap on total variation alone, {utility.f.name} is infinite for these hypotheses; "
            "add LocalDP or take a bounded divergence"
        )
    p0, p1 = np.asarray(utility.p0), np.asarray(utility.p1)
    problem = Problem(utility, given, epsilon, eta, reduce(p0, p1), cells, plain)
    return problem if problem.symmetric else replace(problem, reduction=Reduction(Pair(p0, p1), np.arange(len(p0))))


def check_rounds(rounds: int, accuracy: float) -> None:
    """Refuse what is no limit of rounds, or no relative gap at which to stop."""
    if not isinstance(rounds, int) or rounds < 1:
        raise invalid("rounds", "an integer of at least 1", rounds)
    if not accuracy > 0:
        raise invalid("accuracy", "a positive number", accuracy)
