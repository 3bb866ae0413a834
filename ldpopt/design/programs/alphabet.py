"""The program of a fixed alphabet: linear utilities of m given outputs, and multipliers for a proof.

    max  min_j sum_y c_jy . Q[:, y]   s.t.  Q 1 = 1  (lambda),  Q >= 0,  column terms, alphabet constraints,
                                            g_y . Q[:, y] >= 0,   h_y . Q[:, y] >= 0.

The last line keeps the likelihood ratio of each output within its interval of a box. The dual values make a `Leaf`: by
weak duality, any numbers in it bound the utility of all channels within the constraints whose outputs are in the box.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ldpopt.design.certificates.boxes import Leaf
from ldpopt.design.certificates.intervals import TermMultiplier
from ldpopt.design.constraints.base import AlphabetConstraint, Expression
from ldpopt.design.constraints.terms import Ratio, Term
from ldpopt.design.solve import CONIC, SIMPLEX, solve
from ldpopt.distribution import Array

PENALTY = 10.0
"""The cost, in units of the utility, of a violated equation, in a program that must stay feasible."""


STEEP, ENDLESS = 1e6, 1e9
"""Ratios above the first are posed from the largest entry of each column; ratios above the second are not posed."""


@dataclass(frozen=True, eq=False)
class AlphabetProgram:
    """The program for channels of `shape` (k, m), posed once and solved for many utilities.

    expressions : users' own constraints, which enter the program but not its bound.
    """

    shape: tuple[int, int]
    terms: tuple[Term | Ratio, ...]
    fixed: tuple[AlphabetConstraint, ...]
    expressions: tuple[Expression, ...] = ()
    criteria: int = 1

    def solve(self, gains: Array, sides: Array | None = None) -> tuple[Array, Leaf]:
        """The best matrix (k, m) for `gains` (criteria, m, k), within a box of `sides` (2, m, k), and its multipliers.

        Raises `SolverError` where there is no such matrix, or none was found.
        """
        return self._free.solve(gains, sides) if sides is None else self._boxed.solve(gains, sides)

    def elastic(self, gains: Array, sides: Array) -> Leaf:
        """The multipliers of the program whose equations may be violated at a price, so that it is always feasible."""
        return self._elastic.solve(gains, sides)[1]

    @cached_property
    def _free(self) -> _Posed:
        return _Posed(self, False, False)

    @cached_property
    def _boxed(self) -> _Posed:
        return _Posed(self, True, False)

    @cached_property
    def _elastic(self) -> _Posed:
        return _Posed(self, True, True)


def _pose(cp: Any, q: Any, term: Term | Ratio) -> list[Any]:
    """One term as cvxpy constraints; ratios that a solver cannot tell from infinite ones are left to the repair."""
    if not isinstance(term, Ratio) or term.ratio <= STEEP:
        return list(term.pose(q))
    if term.ratio > ENDLESS:
        return []
    top = np.ones((q.shape[0], 1)) @ cp.Variable((1, q.shape[1]), nonneg=True)
    return [q <= top, q >= top / term.ratio]


class _Posed:
    """The cvxpy problem, with the utilities and the box as parameters."""

    def __init__(self, program: AlphabetProgram, boxed: bool, elastic: bool) -> None:
        import cvxpy as cp

        k, m = program.shape
        self.program = program
        self.q = q = cp.Variable((k, m), nonneg=True)
        self.gains = [cp.Parameter((k, m)) for _ in range(program.criteria)]
        give = cp.Variable(nonneg=True) if elastic else 0.0
        off = cp.Variable(k) if elastic else np.zeros(k)
        self.row = cp.sum(q, axis=1) + off == np.ones(k)
        constraints: list[Any] = [self.row] + ([cp.norm1(off) <= give] if elastic else [])
        self.posed = [_pose(cp, q, term) for term in program.terms]
        self.read: list[Callable[[], Any]] = []
        for one in program.fixed:
            made, read = one.pose(q, give)
            constraints += made
            self.read.append(read)
        for made in self.posed:
            constraints += made
        for expression in program.expressions:
            constraints += list(expression(q))
        self.limits = [cp.Parameter((k, m)) for _ in range(2 * boxed)]
        self.sides = [cp.sum(cp.multiply(each, q), axis=0) >= 0 for each in self.limits]
        values = [cp.sum(cp.multiply(each, q)) for each in self.gains]
        least = values[0] if len(values) == 1 else cp.Variable()
        self.above = [] if len(values) == 1 else [value >= least for value in values]
        self.problem = cp.Problem(cp.Maximize(least - PENALTY * give), constraints + self.sides + self.above)
        flat = (cp.constraints.zero.Equality, cp.constraints.nonpos.Inequality)
        linear = not program.expressions and all(isinstance(one, flat) for one in constraints)
        self.solvers = SIMPLEX if linear else CONIC

    def solve(self, gains: Array, sides: Array | None) -> tuple[Array, Leaf]:
        scale = float(np.abs(gains).max()) or 1.0
        for parameter, each in zip(self.gains, gains, strict=True):
            parameter.value = each.T / scale
        m = self.q.shape[1]
        # Each side is in units of its largest entry, so that hypotheses that nearly agree are not below a tolerance.
        units = np.ones((2, m)) if sides is None else np.abs(sides).max(axis=2)
        units = np.where(units > 0, units, 1.0)
        if sides is not None:
            for parameter, each in zip(self.limits, sides / units[:, :, None], strict=True):
                parameter.value = each.T
        solve(self.problem, "alphabet program", self.solvers)
        terms = tuple(
            TermMultiplier(number, np.arange(len(term)), term.scaled(term.multiplier(made), scale))
            for number, (term, made) in enumerate(zip(self.program.terms, self.posed, strict=True))
            if not isinstance(term, Ratio)
        )
        fixed = tuple(one.scaled(read(), scale) for one, read in zip(self.program.fixed, self.read, strict=True))
        rows = np.array(self.row.dual_value)
        for term, made in zip(self.program.terms, self.posed, strict=True):
            term.on_rows(rows, made)
        rows = rows * scale
        prices = np.zeros((2, m))
        if self.sides:
            prices = np.maximum(np.stack([np.asarray(side.dual_value) for side in self.sides]), 0.0) / units * scale
        weights = np.array([max(float(one.dual_value), 0.0) for one in self.above] or [1.0])
        return np.maximum(np.asarray(self.q.value), 0.0), Leaf(rows, terms, fixed, prices, weights)
