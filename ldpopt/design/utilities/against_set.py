"""Two hypotheses that are only known to lie in convex sets: the divergence of the least favourable pair.

    U(Q) = min over P0 in C0, P1 in C1 of D_f(P0 Q || P1 Q)

The divergence is jointly convex in the pair, so that the worst pair of a channel solves a convex program. The function
mu(a, b) = b f(a/b) lies above its tangents, one for each ratio a/b; a few ratios for every output make the program
linear.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ldpopt.channel import Channel, ChannelLike, Label, as_channel
from ldpopt.design.solve import SIMPLEX, solve
from ldpopt.design.utilities.base import Utility
from ldpopt.design.utilities.least_pair import least_pair
from ldpopt.design.utilities.sets import HypothesisSet, as_set
from ldpopt.distribution import distribution
from ldpopt.divergences import FDivergence
from ldpopt.enclosures import FLOAT, Arithmetic, Enclosure
from ldpopt.errors import invalid
from ldpopt.frames import together
from ldpopt.labels import distinct_labels

MEETING = 1e-9
"""Sets are taken to meet where the total variation between them is at most this."""

STEPS = 1000
"""The most steps towards a linear function that separates two sets, before a solver is asked for their distance."""


@dataclass(frozen=True, eq=False)
class AgainstSet(Utility):
    """The least D_f(P0 Q || P1 Q) over all P0 and P1 of two convex sets [HS; Huber].

    f : an `FDivergence`. p0, p1 : each a distribution of shape (k,), or the `Hull` of several distributions, or those
    `Around` one. inputs : labels of the k answers.

    Raises `InvalidInput` for sets of different sizes, and for sets with a common distribution, which no channel tells
    apart.

    >>> import numpy as np
    >>> from ldpopt.design import Around, Contamination
    >>> from ldpopt.divergences import TOTAL_VARIATION
    >>> u = AgainstSet(TOTAL_VARIATION, [0.5, 0.5], Around([0.1, 0.9], Contamination(0.1)))
    >>> round(u.value(np.eye(2)), 9)
    0.31
    """

    f: FDivergence
    p0: Any
    p1: Any
    inputs: tuple[Label, ...] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.f, FDivergence):
            raise invalid("divergence f", "an FDivergence such as ldpopt.divergences.KL", self.f)
        (p0, p1), inputs = together((("p0", self.p0), ("p1", self.p1)), self.inputs)
        first, second = as_set(p0, "p0"), as_set(p1, "p1")
        if first.size != second.size:
            raise invalid("p1", f"{first.size} inputs, as many as p0", second.size)
        if inputs is not None:
            object.__setattr__(self, "inputs", distinct_labels(inputs, first.size, "inputs"))
        object.__setattr__(self, "sets", (first, second))
        for name, given in (("p0", p0), ("p1", p1)):
            object.__setattr__(self, name, given if isinstance(given, HypothesisSet) else distribution(given, name))
        if not _surely_apart(first, second) and _distance(first, second) <= MEETING:
            raise invalid("p0 and p1", "sets that do not meet (nothing tells apart what is in both)", "sets that do")

    sets: tuple[HypothesisSet, HypothesisSet] = field(init=False)

    @property
    def unprivate(self) -> float:
        """The least divergence of the sets themselves."""
        return self.value(np.eye(self.size))

    @property
    def size(self) -> int:
        """The number k of inputs."""
        return self.sets[0].size

    @property
    def name(self) -> str:
        """The name of the utility in designs and printed tables, with its divergence."""
        return f"least {self.f.name} of two sets"

    def value(self, channel: ChannelLike) -> float:
        """A proved lower bound on the least divergence that any pair of the sets has after this channel."""
        q = as_channel(channel).matrix
        if len(q) != self.size:
            raise invalid("channel", f"{self.size} inputs", len(q))
        return float(self.enclosed_value(as_channel(channel), FLOAT).lower)

    def enclosed_value(self, channel: Channel, arithmetic: Arithmetic) -> Enclosure:
        """A number proved to be at most the least divergence; a program finds the proof for this channel."""
        support = least_pair(self.f, self.sets, [channel.matrix]).support
        return support.enclosed_bound(self.f, self.sets, channel, arithmetic)

    def __repr__(self) -> str:
        return f"AgainstSet({self.f.name}, {self.size} inputs)"


def _surely_apart(first: HypothesisSet, second: HypothesisSet) -> bool:
    """Whether a linear function is found that separates the two sets: Gilbert's algorithm, without a solver.

    z is a difference of two members, and comes ever nearer to 0. Let s be the difference that is least along z. Once
    z . s > 0, the sets are at least z . s / |z| apart in the Euclidean norm; total variation is at least half of that.
    """
    z = first.centre - second.centre
    for _ in range(STEPS):
        s = first.highest(-z) - second.highest(z)
        if z @ s > 4 * MEETING * np.linalg.norm(z):
            return True
        step = z - s
        if not step @ step > 0:
            return False
        z = z - min(1.0, max(0.0, float(z @ step) / float(step @ step))) * step
    return False


def _distance(first: HypothesisSet, second: HypothesisSet) -> float:
    """The least total variation between members of two sets; 1 where no solver is installed to find it.

    Without a solver nothing can be designed, and proofs hold whether the sets meet or not.
    """
    try:
        import cvxpy as cp
    except ImportError:
        return 1.0

    p0, p1 = cp.Variable(first.size, nonneg=True), cp.Variable(second.size, nonneg=True)
    sets = [cp.sum(p0) == 1, cp.sum(p1) == 1, *first.expression(p0), *second.expression(p1)]
    problem = cp.Problem(cp.Minimize(cp.sum(cp.pos(p0 - p1))), sets)
    solve(problem, "distance of two sets", SIMPLEX)
    return float(problem.value)
