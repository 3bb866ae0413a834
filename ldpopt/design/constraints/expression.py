"""A function of a channel's matrix that gives convex cvxpy constraints -> a constraint, measured by its violation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ldpopt.channel import Channel
from ldpopt.errors import invalid
from ldpopt.privacy import Guarantee
from ldpopt.tolerances import EXPRESSED


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
