"""The program of a fixed alphabet: linear utilities of m given outputs, and what its dual values prove.

    max  min_j sum_y c_jy . Q[:, y]   s.t.  Q 1 = 1  (lambda),  Q >= 0,  column terms, alphabet constraints,
                                            l_y (a_y + b_y) <= a_y <= u_y (a_y + b_y),   a = P0 Q,  b = P1 Q.

The last line keeps each output's posterior in its interval of a box. For any numbers in a `Leaf`, weak duality bounds
the utility of every channel that meets the constraints and whose outputs are in the box.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ldpopt.design.certificates.boxes import Leaf
from ldpopt.design.certificates.intervals import TermMultiplier
from ldpopt.design.constraints.alphabet import AlphabetConstraint
from ldpopt.design.constraints.terms import Ratio, Term
from ldpopt.design.programs.labels import Expression, pose_term, row_multipliers, scaled, term_multiplier
from ldpopt.design.solve import CONIC, SIMPLEX, solve
from ldpopt.distribution import Array

PENALTY = 10.0
"""What a unit of violated equation costs in a program that must not be infeasible, in units of the utility."""


@dataclass(frozen=True, eq=False)
class AlphabetProgram:
    """The program for channels of `shape` (k, m), posed once and solved for many utilities.

    expressions : of constraints known only so, which enter the program but not its bound. pair : (2, k), P0 and P1,
    for programs with boxes.
    """

    shape: tuple[int, int]
    terms: tuple[Term | Ratio, ...]
    fixed: tuple[AlphabetConstraint, ...]
    expressions: tuple[Expression, ...] = ()
    criteria: int = 1
    pair: Array | None = None

    def solve(self, gains: Array, box: Array | None = None) -> tuple[Array, Leaf]:
        """The best matrix (k, m) for `gains` (criteria, m, k), within `box` (2, m), and its multipliers.

        Raises `SolverError` where there is none, or none was found.
        """
        return self._free.solve(gains, box) if box is None else self._boxed.solve(gains, box)

    def elastic(self, gains: Array, box: Array) -> Leaf:
        """The multipliers of the program whose equations may be violated at a price: it is never infeasible."""
        return self._elastic.solve(gains, box)[1]

    @cached_property
    def _free(self) -> _Posed:
        return _Posed(self, False, False)

    @cached_property
    def _boxed(self) -> _Posed:
        return _Posed(self, True, False)

    @cached_property
    def _elastic(self) -> _Posed:
        return _Posed(self, True, True)


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
        self.posed = [pose_term(cp, q, term) for term in program.terms]
        self.read: list[Callable[[], Any]] = []
        for one in program.fixed:
            made, read = one.pose(q, give)
            constraints += made
            self.read.append(read)
        for made in self.posed:
            constraints += made
        for expression in program.expressions:
            constraints += list(expression(q))
        self.sides: list[Any] = []
        if boxed:
            assert program.pair is not None
            self.low, self.high = cp.Parameter(m), cp.Parameter(m)
            a, b = program.pair @ q
            self.sides = [
                cp.multiply(1 - self.low, a) - cp.multiply(self.low, b) >= 0,
                cp.multiply(self.high, b) - cp.multiply(1 - self.high, a) >= 0,
            ]
        values = [cp.sum(cp.multiply(each, q)) for each in self.gains]
        least = values[0] if len(values) == 1 else cp.Variable()
        self.above = [] if len(values) == 1 else [value >= least for value in values]
        self.problem = cp.Problem(cp.Maximize(least - PENALTY * give), constraints + self.sides + self.above)
        flat = (cp.constraints.zero.Equality, cp.constraints.nonpos.Inequality)
        linear = not program.expressions and all(isinstance(one, flat) for one in constraints)
        self.solvers = SIMPLEX if linear else CONIC

    def solve(self, gains: Array, box: Array | None) -> tuple[Array, Leaf]:
        scale = float(np.abs(gains).max()) or 1.0
        for parameter, each in zip(self.gains, gains, strict=True):
            parameter.value = each.T / scale
        if box is not None:
            self.low.value, self.high.value = box
        solve(self.problem, "alphabet program", self.solvers)
        terms = tuple(
            TermMultiplier(number, np.arange(len(term)), scaled(term, term_multiplier(term, made), scale))
            for number, (term, made) in enumerate(zip(self.program.terms, self.posed, strict=True))
            if not isinstance(term, Ratio)
        )
        fixed = tuple(one.scaled(read(), scale) for one, read in zip(self.program.fixed, self.read, strict=True))
        rows = row_multipliers(np.array(self.row.dual_value), self.program.terms, self.posed) * scale
        m = self.q.shape[1]
        sides = np.zeros((2, m)) if not self.sides else np.stack([np.asarray(side.dual_value) for side in self.sides])
        weights = np.array([max(float(one.dual_value), 0.0) for one in self.above] or [1.0])
        return np.maximum(np.asarray(self.q.value), 0.0), Leaf(rows, terms, fixed, sides * scale, weights)
