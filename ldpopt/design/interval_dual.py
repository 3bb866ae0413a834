"""The certificate of the ratio-labelled program, for every constraint that has a column form.

On an interval of ratios the divergence lies below its chord, which is linear in the column. For row multipliers
lambda and supports u_i of the constraints, weak duality gives, for every feasible channel,

    D_f <= sum lambda + charges + max over intervals i and columns q of (c_i - lambda - u_i).q .

Everything but lambda and the multipliers of the constraints is recomputed here from the problem itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ldpopt.design.certificate import Certificate, Verification, dominates
from ldpopt.design.constraints.base import ColumnConstraint
from ldpopt.design.terms import Box, Index
from ldpopt.distribution import Array
from ldpopt.divergences import FDivergence


@dataclass(frozen=True, eq=False)
class Multiplier:
    """The multiplier of some `pairs` of term number `term`."""

    term: int
    pairs: Index
    values: Array


@dataclass(frozen=True, eq=False, repr=False)
class IntervalDual(Certificate):
    """Multipliers of the ratio-labelled program, checked on every interval of likelihood ratios.

    constraints : what the channel was designed for. points : (k, 2) masses (P0, P1) of the inputs, of their merger by
    equal ratios, or of a pair that dominates them [Blackwell]; where a constraint does not treat all inputs alike they
    must be the inputs themselves. knots : (n+1,) posteriors P0/(P0+P1), increasing, that cut the ratios into intervals.
    rows : (k,) multipliers of the row sums. multipliers : those of the constraints' terms, numbered as they come.
    """

    constraints: tuple[ColumnConstraint, ...]
    points: Array
    knots: Array
    rows: Array
    multipliers: tuple[Multiplier, ...]

    @property
    def argument(self) -> str:
        """Why the bound holds."""
        return f"weak duality of the ratio-labelled program on {len(self.knots) - 1} intervals of ratios"

    @property
    def upper_bound(self) -> float:
        """The bound; inf when the points do not stand for the inputs or the intervals do not cover the ratios."""
        p0, p1 = self.points.T
        given = np.column_stack([self.utility.p0, self.utility.p1])
        if all(constraint.symmetric for constraint in self.constraints):
            stands = dominates(p0, p1, self.utility.p0, self.utility.p1)
        else:
            stands = np.array_equal(self.points, given)
        inputs = self.channel.inputs if len(self.points) == len(given) else tuple(range(len(self.points)))
        terms = [term for constraint in self.constraints for term in constraint.columns(inputs)]
        ratio = min((term.ratio for term in terms if isinstance(term, Box)), default=math.inf)
        if not stands or not _covers(self.knots, p0, p1, ratio):
            return math.inf
        reduced = chords(self.utility.f, p0, p1, self.knots) - self.rows
        bound = float(self.rows.sum())
        for multiplier in self.multipliers:
            term = terms[multiplier.term]
            if isinstance(term, Box):
                continue
            kept = term.take(multiplier.pairs)
            reduced = reduced - kept.support(multiplier.values, len(reduced), len(p0))
            bound += kept.charge(multiplier.values)
        return bound + residual(reduced, ratio)

    def verify(self) -> Verification:
        """Recompute the guarantees, the utility and the bound from scratch."""
        found = super().verify()
        measured = tuple(constraint.measure(self.channel) for constraint in self.constraints)
        failures = [
            f"{guarantee.notion} is {guarantee.value!r}, not {constraint.bound!r}"
            for guarantee, constraint in zip(measured, self.constraints, strict=True)
            if not guarantee.value <= constraint.bound
        ]
        return Verification(
            found.value, found.upper_bound, found.epsilon, found.total_variation, (*found.failures, *failures), measured
        )


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
    posterior = p0 / (p0 + p1)
    low, high = float(posterior.min()), float(posterior.max())
    if math.isfinite(ratio):
        low, high = max(low, 1 / (1 + ratio)), min(high, ratio / (1 + ratio))
    inside = knots[0] <= low and high <= knots[-1]
    return bool(inside and knots[0] >= 0 and knots[-1] <= 1 and (np.diff(knots) > 0).all())
