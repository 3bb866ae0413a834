"""The certificate of the ratio-labelled program, for every constraint that has a column form.

On an interval of ratios the divergence lies below its chord, which is linear in the column. For row multipliers
lambda and supports u_i of the constraints, weak duality gives, for every feasible channel,

    D_f <= sum lambda + charges + max over intervals i and columns q of (c_i - lambda - u_i).q .

Everything but lambda and the multipliers of the constraints is recomputed here from the problem itself.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from ldpopt.design.certificates.base import Certificate
from ldpopt.design.constraints.terms import Index, Ratio
from ldpopt.distribution import Array
from ldpopt.divergences import FDivergence
from ldpopt.enclosures import Arithmetic, Enclosure


@dataclass(frozen=True, eq=False)
class TermMultiplier:
    """The multiplier of some `pairs` of term number `term`."""

    term: int
    pairs: Index
    values: Array


@dataclass(frozen=True, eq=False, repr=False)
class ColumnDual(Certificate):
    """Multipliers of a program with linear utilities above the true one, for constraints in column form.

    constraints : what the channel was designed for. rows : (k,) multipliers of the row sums. multipliers : those of
    the constraints' terms, numbered as they come.
    """

    rows: Array
    multipliers: tuple[TermMultiplier, ...]

    @abstractmethod
    def gains(self, ratio: float) -> Array | None:
        """(n, k) linear utilities, one of them above the true one at every column; None if the numbers do not fit.

        `ratio` is that of pure LDP, inf without it.
        """

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """The bound, recomputed; inf when the numbers do not fit the problem."""
        return arithmetic.of(self._bound())

    def _bound(self) -> float:
        """The bound in floats."""
        inputs = self.channel.inputs if len(self.rows) == self.channel.shape[0] else tuple(range(len(self.rows)))
        terms = [term for constraint in self.constraints for term in constraint.columns(inputs)]
        ratio = min((term.ratio for term in terms if isinstance(term, Ratio)), default=math.inf)
        gains = self.gains(ratio)
        if gains is None:
            return math.inf
        reduced = gains - self.rows
        bound = float(self.rows.sum())
        for multiplier in self.multipliers:
            term = terms[multiplier.term]
            if isinstance(term, Ratio):
                continue
            kept = term.take(multiplier.pairs)
            reduced = reduced - kept.support(multiplier.values, len(reduced), len(self.rows))
            bound += kept.charge(multiplier.values)
        return bound + residual(reduced, ratio)


@dataclass(frozen=True, eq=False, repr=False)
class IntervalDual(ColumnDual):
    """Multipliers of the ratio-labelled program, checked on every interval of likelihood ratios.

    points : (k, 2) masses (P0, P1) of the inputs, of their merger by equal ratios, or of a pair that dominates them
    [Blackwell]; where a constraint does not treat all inputs alike they must be the inputs themselves.
    knots : (n+1,) posteriors P0/(P0+P1), increasing, that cut the ratios into intervals.
    """

    points: Array
    knots: Array

    @property
    def argument(self) -> str:
        """Why the bound holds."""
        return f"weak duality of the ratio-labelled program on {len(self.knots) - 1} intervals of ratios"

    def gains(self, ratio: float) -> Array | None:
        """The chords of the divergence."""
        p0, p1 = self.points.T
        if all(constraint.symmetric for constraint in self.constraints):
            stands = nearly_dominates(p0, p1, self.utility.p0, self.utility.p1)
        else:
            stands = np.array_equal(self.points, np.column_stack([self.utility.p0, self.utility.p1]))
        if not stands or not _covers(self.knots, p0, p1, ratio):
            return None
        return chords(self.utility.f, p0, p1, self.knots)


def chords(f: FDivergence, p0: Array, p1: Array, knots: Array) -> Array:
    """(n, k) linear utilities c_i with c_i.q >= mu(q.P0, q.P1) for columns whose posterior is in interval i.

    In between the rays (s, 1-s) of two neighbouring knots the convex, homogeneous mu lies below the plane through
    its values on the two.
    """
    a, b = knots, 1 - knots
    height = f.excess(a, b)
    width = np.diff(knots)  # the determinant of two neighbouring rays
    on_p0 = (height[1:] * b[:-1] - height[:-1] * b[1:]) / width
    on_p1 = (a[1:] * height[:-1] - a[:-1] * height[1:]) / width
    return np.asarray(on_p0[:, None] * p0 + on_p1[:, None] * p1)


def residual(reduced: Array, ratio: float) -> float:
    """An upper bound on sum_i reduced_i . q_i over matrices with rows summing to one and columns in [m, ratio m]."""
    above = np.maximum(reduced.max(axis=0), 0.0)
    free = float(above.sum())
    if math.isinf(ratio):
        return free
    # Columns scaled to m = 1 have mass at least 1 under any prior, so the largest gain is also the largest rate.
    gain = reduced.sum(axis=1) + (ratio - 1) * np.maximum(reduced, 0.0).sum(axis=1)
    return min(free, max(0.0, float(gain.max())))


def _covers(knots: Array, p0: Array, p1: Array, ratio: float) -> bool:
    total = p0 + p1
    posterior = p0[total > 0] / total[total > 0]
    low, high = float(posterior.min()), float(posterior.max())
    if math.isfinite(ratio):
        low, high = max(low, 1 / (1 + ratio)), min(high, ratio / (1 + ratio))
    inside = knots[0] <= low and high <= knots[-1]
    return bool(inside and knots[0] >= 0 and knots[-1] <= 1 and (np.diff(knots) > 0).all())


def nearly_dominates(a0: Array, a1: Array, b0: Array, b1: Array) -> bool:
    """Whether the pair (a0, a1) is at least as informative as (b0, b1), up to rounding [Blackwell]."""
    kinks = np.concatenate([_posterior(a0, a1), _posterior(b0, b1)])
    return bool(np.all(_support(a0, a1, kinks) >= _support(b0, b1, kinks) - 1e-12))


def _posterior(p0: Array, p1: Array) -> Array:
    return np.asarray(p0[p0 + p1 > 0] / (p0 + p1)[p0 + p1 > 0])


def _support(p0: Array, p1: Array, s: Array) -> Array:
    """sum ((1-s) p0 - s p1)_+ for every s."""
    used = p0 + p1 > 0
    own = _posterior(p0, p1)
    order = np.argsort(-own, kind="stable")
    above = np.searchsorted(-own[order], -s)
    x, y = (np.append(0.0, np.cumsum(p[used][order]))[above] for p in (p1, p0))
    return np.asarray((1 - s) * y - s * x)
