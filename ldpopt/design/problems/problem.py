"""A design problem, validated and split once: a utility, constraints by kind, and the sorted and merged alphabet."""

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
from ldpopt.design.problems.reduction import Cells, Pair, Reduction, reduce
from ldpopt.design.utilities.base import Utility
from ldpopt.design.utilities.divergence import Divergence
from ldpopt.errors import InvalidInput, invalid
from ldpopt.numbers.tolerances import EXPRESSED
from ldpopt.privacy import Guarantee
from ldpopt.values.deadline import UNLIMITED, Deadline


@dataclass(frozen=True)
class Expressed:
    """Convex constraints on the entries of a channel, as a function of its matrix Q, a cvxpy variable of shape (k, m).

    `optimal_channel` makes one of every function among its constraints. As solvers meet equations only nearly, it holds
    where no constraint is violated by more than 1e-7, which is measured of the designed channel.

    >>> import cvxpy as cp
    >>> from ldpopt.channel import Channel
    >>> print(Expressed(lambda Q: cp.sum(Q[:, 0]) <= 0.3).measure(Channel([[0.1, 0.9], [0.4, 0.6]])))
    violation ≤ 0.2
    """

    function: Callable[[Any], Any]
    bound: ClassVar[float] = EXPRESSED
    labelled: ClassVar[bool] = True
    symmetric: ClassVar[bool] = False

    def expression(self, q: Any) -> Sequence[Any]:
        """The constraints on `q`. `InvalidInput` where the function fails, or gives anything but convex constraints."""
        import cvxpy as cp

        expected = "a function from a matrix of shape (k, m) to convex cvxpy constraints"
        try:
            given = self.function(q)
        except Exception as failure:
            got = f"{type(failure).__name__}: {failure}"
            raise invalid("constraint", f"{expected}, here {q.shape}", got) from failure
        posed = list(given) if isinstance(given, Sequence) else [given]
        for each in posed:
            if not isinstance(each, cp.constraints.constraint.Constraint):
                raise invalid("constraint", expected, type(each).__name__)
            if not each.is_dcp():
                raise invalid("constraint", f"{expected}, as cvxpy's rules see them", str(each))
        return posed

    def measure(self, channel: Channel) -> Guarantee:
        """The largest violation of the constraints at the channel's matrix, 0 where all hold."""
        import cvxpy as cp

        q = cp.Variable(channel.shape, nonneg=True)
        posed = self.expression(q)
        q.value = channel.matrix
        worst = max((float(np.max(each.violation(), initial=0.0)) for each in posed), default=0.0)
        return Guarantee("violation", np.inf if np.isnan(worst) else worst, 0.0, None, False, "")


CELLS = 8000  # How many intervals a continuous pair is cut into. The gap that these leave is far below the tolerance.


@dataclass(frozen=True, eq=False)
class Problem:
    """Make `utility` large (small, for an error) subject to `constraints`. whole : the utility as the caller gave it.
    cells : the intervals into which continuous answers were cut. utility : `whole`, or the same utility of the cells,
    so that it always has finitely many inputs. deadline : when the work on it has to end. proving : whether a proof is
    wanted, for which some methods search longer than for the channel.
    """

    utility: Any
    constraints: tuple[Constraint, ...]
    whole: Any
    cells: Cells | None = None
    deadline: Deadline = UNLIMITED
    proving: bool = True

    @classmethod
    def of(
        cls, utility: Utility, constraints: Constraint | Iterable[Constraint], deadline: Deadline = UNLIMITED
    ) -> Problem:
        """The problem. Raises `InvalidInput`, which says which part of it is not possible."""
        if not isinstance(utility, Utility):
            expected = "a Divergence, a MutualInformation or another utility (docs/how-to/design/custom-utility.md)"
            raise invalid("utility", expected, type(utility).__name__)
        problem = cls(utility, listed(constraints), utility, deadline=deadline)
        require_one_labelling(utility, problem.constraints)
        return problem._cut() if utility.continuous else problem

    def _cut(self) -> Problem:
        if not self.plain:
            raise InvalidInput("constraints: continuous hypotheses take LocalDP and TotalVariation only, got others")
        if math.isinf(self.epsilon):
            raise InvalidInput("constraints: continuous hypotheses need LocalDP, got a cap on total variation alone")
        cells = Cells.of(self.whole.p0, self.whole.p1, CELLS)
        return replace(self, utility=cells.divergence(self.whole.f), cells=cells)

    @cached_property
    def epsilon(self) -> float:
        """The epsilon of pure LDP between all inputs, in nats: the smallest of several, inf where there is none."""
        return plain_caps(self.constraints)[0]

    @cached_property
    def eta(self) -> float:
        """The cap on total variation: the smallest of several, 1 where there is none."""
        return plain_caps(self.constraints)[1]

    @cached_property
    def plain(self) -> bool:
        """Whether every constraint is, or amounts to, `LocalDP` or `TotalVariation` between all inputs."""
        return all(plain_of(c) is not None for c in self.constraints)

    @cached_property
    def symmetric(self) -> bool:
        """Whether all inputs are treated alike, so that inputs of equal likelihood ratio are merged."""
        return symmetric(self.constraints)

    @property
    def labels(self) -> tuple[Label, ...]:
        """The labels of the answers: the caller's, or their positions."""
        labels: tuple[Label, ...] = self.utility.labels
        return labels

    @cached_property
    def reduction(self) -> Reduction:
        """The inputs of a pair of hypotheses, sorted by likelihood ratio and merged if all inputs are treated alike."""
        p0, p1 = (np.asarray(p) for p in self.utility.pair)
        return reduce(p0, p1) if self.symmetric else Reduction(Pair.of(p0, p1), np.arange(len(p0)))

    @property
    def inputs(self) -> tuple[Label, ...]:
        """The labels of the rows of a candidate: the caller's where nothing is merged."""
        if self.utility.pair is None or not self.symmetric:
            return self.labels
        return tuple(range(len(self.reduction.pair)))

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """The constraints in column form, for `inputs`."""
        return parts(self.constraints, self.inputs)[0]

    @cached_property
    def given(self) -> tuple[AlphabetConstraint, ...]:
        """The constraints that fix the outputs, by name or by number."""
        return tuple(c for c in self.constraints if isinstance(c, AlphabetConstraint))

    @cached_property
    def denominator(self) -> int | None:
        """The D such that all probabilities must be multiples of 1/D; None where they need not be."""
        return math.gcd(*(c.D for c in self.constraints if isinstance(c, Denominator))) or None

    @cached_property
    def undivided(self) -> Problem | None:
        """The problem without its `Denominator`; None where no constraint is left."""
        rest = tuple(c for c in self.constraints if not isinstance(c, Denominator))
        return replace(self, constraints=rest) if rest else None

    @cached_property
    def others(self) -> tuple[Any, ...]:
        """The `expression` methods of constraints that are none of the package's kinds."""
        known = (AlphabetConstraint, ColumnConstraint, Denominator)
        return tuple(c.expression for c in self.constraints if not isinstance(c, known))

    @cached_property
    def placed(self) -> bool:
        """Whether a constraint speaks of outputs by name or position, so that they are neither merged nor sorted."""
        return any(getattr(c, "labelled", False) for c in self.constraints)

    @property
    def known(self) -> Problem | None:
        """The problem without the caller's own expressions; None where there are none, or no constraint is left."""
        rest = tuple(c for c in self.constraints if isinstance(c, Measured | Denominator))
        return replace(self, constraints=rest) if rest and len(rest) < len(self.constraints) else None

    @property
    def free(self) -> Problem | None:
        """The problem without the constraints on the outputs; None where no constraint is left."""
        rest = tuple(c for c in self.constraints if not isinstance(c, AlphabetConstraint))
        return replace(self, constraints=rest) if rest else None

    @property
    def ratio(self) -> float:
        """E = exp(epsilon)."""
        return math.exp(self.epsilon)

    @property
    def cap(self) -> float | None:
        """eta where it can bind, below the tanh(epsilon/2) that epsilon implies [GI, Prop 2]; else None."""
        return self.eta if self.eta < math.tanh(self.epsilon / 2) else None

    def tightened(self, matrix: Any) -> Problem | None:
        """The problem with the orders that `matrix` exceeds added to its constraints; None where there are none."""
        tighter = tuple((getattr(c, "tightened", lambda _: None)(matrix) or c) for c in self.constraints)
        return None if tighter == self.constraints else replace(self, constraints=tighter)


def listed(constraints: Constraint | Iterable[Constraint]) -> tuple[Constraint, ...]:
    """The constraints as a tuple. Raises `InvalidInput` for anything that is no constraint."""
    expected = "LocalDP(epsilon), a function of the matrix, or another object with bound, measure and expression"
    if isinstance(constraints, (type, Constraint)) or callable(constraints):
        given: tuple[Any, ...] = (constraints,)
    else:
        try:
            given = tuple(constraints)
        except TypeError:
            raise invalid("constraint", expected, constraints) from None
    given = tuple(Expressed(c) if callable(c) and not isinstance(c, (type, Constraint)) else c for c in given)
    for constraint in given:
        if isinstance(constraint, type) or not isinstance(constraint, Constraint):
            raise invalid("constraint", expected, getattr(constraint, "__name__", type(constraint).__name__))
    if not given:
        raise InvalidInput("constraints: expected at least one of LocalDP, TotalVariation and the others, got none")
    return given


def pose(utility: Divergence, constraints: Constraint | Iterable[Constraint]) -> Problem:
    """The problem of a `Divergence`."""
    return Problem.of(utility, constraints)
