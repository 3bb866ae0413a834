"""A design problem, validated once: a utility, constraints by type, and the sorted and merged alphabet."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ldpopt.channel import Channel, Label
from ldpopt.design.constraints.base import (
    AlphabetConstraint,
    ColumnConstraint,
    Constraint,
    Measured,
    parts,
    plain_caps,
    plain_of,
    symmetric,
)
from ldpopt.design.constraints.outputs import Denominator
from ldpopt.design.constraints.terms import Term
from ldpopt.design.problems.labelling import require_one_labelling
from ldpopt.design.problems.reduction import Cells, Pair, Reduction, reduce_pair
from ldpopt.design.utilities.base import Utility
from ldpopt.design.utilities.divergence import Divergence
from ldpopt.errors import InvalidInput, invalid
from ldpopt.numbers.tolerances import EXPRESSION_TOLERANCE
from ldpopt.privacy import Guarantee
from ldpopt.values.deadline import UNLIMITED, Deadline


@dataclass(frozen=True)
class ExpressionConstraint:
    """Convex constraints on the entries of a channel, as a function of its matrix Q, a cvxpy variable of shape (k, m).

    `optimal_channel` makes one of every function among its constraints. As solvers meet equations only approximately,
    it is met if no constraint is violated by more than 1e-7, measured on the designed channel.

    >>> import cvxpy as cp
    >>> from ldpopt.channel import Channel
    >>> print(ExpressionConstraint(lambda Q: cp.sum(Q[:, 0]) <= 0.3).measure(Channel([[0.1, 0.9], [0.4, 0.6]])))
    violation ≤ 0.2
    """

    function: Callable[[Any], Any]
    bound: ClassVar[float] = EXPRESSION_TOLERANCE
    labelled: ClassVar[bool] = True
    symmetric: ClassVar[bool] = False

    def expression(self, q: Any) -> Sequence[Any]:
        """Return the constraints on `q`; raise `InvalidInput` unless the function returns convex constraints."""
        import cvxpy as cp

        expected = "a function from a matrix of shape (k, m) to convex cvxpy constraints"
        try:
            result = self.function(q)
        except Exception as failure:
            got = f"{type(failure).__name__}: {failure}"
            raise invalid("constraint", f"{expected}, here {q.shape}", got) from failure
        expressions = list(result) if isinstance(result, Sequence) else [result]
        for expression in expressions:
            if not isinstance(expression, cp.constraints.constraint.Constraint):
                raise invalid("constraint", expected, type(expression).__name__)
            if not expression.is_dcp():
                raise invalid("constraint", f"{expected}, as cvxpy's rules see them", str(expression))
        return expressions

    def measure(self, channel: Channel) -> Guarantee:
        """Measure the largest violation of the constraints at the channel's matrix, 0 if all are met."""
        import cvxpy as cp

        q = cp.Variable(channel.shape, nonneg=True)
        expressions = self.expression(q)
        q.value = channel.matrix
        worst = max((float(np.max(expression.violation(), initial=0.0)) for expression in expressions), default=0.0)
        return Guarantee("violation", np.inf if np.isnan(worst) else worst, 0.0, None, False, "")


MAX_CELLS = 8000  # Intervals of a continuous pair. Their gap is far below the tolerance.


@dataclass(frozen=True, eq=False)
class Problem:
    """The problem to maximize `utility` (to minimize it, for an error) subject to `constraints`.

    - `utility` : the utility with finitely many inputs: `original_utility`, or the same utility of the cells.
    - `original_utility` : the utility as the caller passed it.
    - `cells` : the intervals into which continuous answers were cut; None for finite ones.
    - `deadline` : the end of the time for the work on the problem.
    - `proving` : True if a proof is requested; some methods then search longer than for the channel alone.
    """

    utility: Any
    constraints: tuple[Constraint, ...]
    original_utility: Any
    cells: Cells | None = None
    deadline: Deadline = UNLIMITED
    proving: bool = True

    @classmethod
    def build(
        cls, utility: Utility, constraints: Constraint | Iterable[Constraint], deadline: Deadline = UNLIMITED
    ) -> Problem:
        """Build the problem; raise `InvalidInput` with the part that is not possible."""
        if not isinstance(utility, Utility):
            expected = "a Divergence, a MutualInformation or another utility (docs/how-to/design/custom-utility.md)"
            raise invalid("utility", expected, type(utility).__name__)
        problem = cls(utility, constraint_tuple(constraints), utility, deadline=deadline)
        require_one_labelling(utility, problem.constraints)
        return problem._cut() if utility.continuous else problem

    def _cut(self) -> Problem:
        if not self.has_only_ldp_and_tv:
            raise InvalidInput("constraints: continuous hypotheses take LocalDP and TotalVariation only, got others")
        if math.isinf(self.epsilon):
            raise InvalidInput("constraints: continuous hypotheses need LocalDP, got a cap on total variation alone")
        cells = Cells.cut(self.original_utility.p0, self.original_utility.p1, MAX_CELLS)
        return replace(self, utility=cells.divergence(self.original_utility.f), cells=cells)

    @cached_property
    def epsilon(self) -> float:
        """The epsilon of pure LDP between all inputs, in nats: the smallest of several, inf if there is none."""
        return plain_caps(self.constraints)[0]

    @cached_property
    def eta(self) -> float:
        """The cap on total variation: the smallest of several, 1 if there is none."""
        return plain_caps(self.constraints)[1]

    @cached_property
    def has_only_ldp_and_tv(self) -> bool:
        """True if every constraint is equivalent to `LocalDP` or `TotalVariation` between all inputs."""
        return all(plain_of(c) is not None for c in self.constraints)

    @cached_property
    def symmetric(self) -> bool:
        """True if all inputs are treated equally, so that inputs of equal likelihood ratio are merged."""
        return symmetric(self.constraints)

    @property
    def labels(self) -> tuple[Label, ...]:
        """The labels of the answers: the caller's, or their positions."""
        labels: tuple[Label, ...] = self.utility.labels
        return labels

    @cached_property
    def reduction(self) -> Reduction:
        """The inputs of a pair of hypotheses, sorted by likelihood ratio and merged if `symmetric`."""
        p0, p1 = (np.asarray(p) for p in self.utility.pair)
        return reduce_pair(p0, p1) if self.symmetric else Reduction(Pair.from_distributions(p0, p1), np.arange(len(p0)))

    @property
    def inputs(self) -> tuple[Label, ...]:
        """The labels of the rows of a candidate: the caller's if nothing is merged."""
        if self.utility.pair is None or not self.symmetric:
            return self.labels
        return tuple(range(len(self.reduction.pair)))

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """The constraints in column form, for `inputs`."""
        return parts(self.constraints, self.inputs)[0]

    @cached_property
    def output_constraints(self) -> tuple[AlphabetConstraint, ...]:
        """The constraints that fix the outputs, by name or by number."""
        return tuple(c for c in self.constraints if isinstance(c, AlphabetConstraint))

    @cached_property
    def denominator(self) -> int | None:
        """The D such that all probabilities must be multiples of 1/D; None without a `Denominator`."""
        return math.gcd(*(c.D for c in self.constraints if isinstance(c, Denominator))) or None

    @cached_property
    def without_denominator(self) -> Problem | None:
        """The problem without its `Denominator`; None if no constraint remains."""
        rest = tuple(c for c in self.constraints if not isinstance(c, Denominator))
        return replace(self, constraints=rest) if rest else None

    @cached_property
    def user_expressions(self) -> tuple[Any, ...]:
        """The `expression` methods of user-defined constraints."""
        package_types = (AlphabetConstraint, ColumnConstraint, Denominator)
        return tuple(c.expression for c in self.constraints if not isinstance(c, package_types))

    @cached_property
    def fixes_output_order(self) -> bool:
        """True if a constraint refers to outputs by name or position, so that they are neither merged nor sorted."""
        return any(getattr(c, "labelled", False) for c in self.constraints)

    @property
    def without_user_constraints(self) -> Problem | None:
        """The problem without user-defined constraints; None if there are none, or no other constraint."""
        rest = tuple(c for c in self.constraints if isinstance(c, Measured | Denominator))
        return replace(self, constraints=rest) if rest and len(rest) < len(self.constraints) else None

    @property
    def without_output_constraints(self) -> Problem | None:
        """The problem without the constraints on the outputs; None if no constraint remains."""
        rest = tuple(c for c in self.constraints if not isinstance(c, AlphabetConstraint))
        return replace(self, constraints=rest) if rest else None

    @property
    def ratio(self) -> float:
        """E = exp(epsilon)."""
        return math.exp(self.epsilon)

    @property
    def cap(self) -> float | None:
        """eta if it can bind, below the tanh(epsilon/2) that epsilon implies [GI, Prop 2]; else None."""
        return self.eta if self.eta < math.tanh(self.epsilon / 2) else None

    def tighten(self, matrix: Any) -> Problem | None:
        """Add the orders that `matrix` exceeds to the constraints; None if there are none."""
        tighter = tuple((getattr(c, "tightened", lambda _: None)(matrix) or c) for c in self.constraints)
        return None if tighter == self.constraints else replace(self, constraints=tighter)


def constraint_tuple(constraints: Constraint | Iterable[Constraint]) -> tuple[Constraint, ...]:
    """Return the constraints as a tuple; raise `InvalidInput` for anything that is not a constraint."""
    expected = "LocalDP(epsilon), a function of the matrix, or another object with bound, measure and expression"
    if isinstance(constraints, (type, Constraint)) or callable(constraints):
        stated_constraints: tuple[Any, ...] = (constraints,)
    else:
        try:
            stated_constraints = tuple(constraints)
        except TypeError:
            raise invalid("constraint", expected, constraints) from None
    stated_constraints = tuple(
        ExpressionConstraint(c) if callable(c) and not isinstance(c, (type, Constraint)) else c
        for c in stated_constraints
    )
    for constraint in stated_constraints:
        if isinstance(constraint, type) or not isinstance(constraint, Constraint):
            raise invalid("constraint", expected, getattr(constraint, "__name__", type(constraint).__name__))
    if not stated_constraints:
        raise InvalidInput("constraints: expected at least one of LocalDP, TotalVariation and the others, got none")
    return stated_constraints


def build_problem(utility: Divergence, constraints: Constraint | Iterable[Constraint]) -> Problem:
    """Build the problem of a `Divergence`."""
    return Problem.build(utility, constraints)
