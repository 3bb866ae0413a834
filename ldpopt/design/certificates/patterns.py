"""Multipliers of the staircase-pattern program, checked against every one of its columns."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ldpopt.design.certificates.base import Certificate, Verification, _Dual
from ldpopt.design.certificates.intervals import verify_measured
from ldpopt.design.columns.masks import members
from ldpopt.design.constraints import (
    Constraint,
)
from ldpopt.distribution import Array


@dataclass(frozen=True, eq=False, repr=False)
class PatternDual(_Dual):
    """Multipliers of the staircase-pattern program, checked against every one of its 2^n columns [KOV14, Thm 4].

    pairs : (n, n) non-negative multipliers of the TV caps, entry (x, x') for patterns with x and without x'.
    """

    pairs: Array

    _duality = "linear-programming duality over all staircase patterns"

    def _bound(self, p0: Array, p1: Array) -> float:
        """sum rows + eta sum pairs, raised by the largest violation of a dual constraint."""
        n = len(self.rows)
        gain = math.exp(self.epsilon) - 1
        pairs = np.maximum(self.pairs, 0.0)
        np.fill_diagonal(pairs, 0.0)
        # Masses, prices and cuts of all subsets by doubling: subset A + {x} from subset A.
        mass0, mass1, price, cut = (np.zeros(1) for _ in range(4))
        member = np.zeros((1, n))
        for x in range(n):
            cut = np.append(cut, cut + pairs[x].sum() - member @ (pairs[x] + pairs[:, x]))
            mass0, mass1 = np.append(mass0, mass0 + p0[x]), np.append(mass1, mass1 + p1[x])
            price = np.append(price, price + self.rows[x])
            member = np.vstack([member, member + np.eye(n)[x]])
        a, b = p0.sum() + gain * mass0, p1.sum() + gain * mass1
        worth = self.utility.f.excess(a, b)
        charge = self.rows.sum() + gain * (price + cut)
        base = float(self.rows.sum() + self.eta * pairs.sum())
        # Two ways to mend a violated constraint: raising the rows by t P1 raises the charge of a pattern by t b and the
        # bound by t; scaling all multipliers scales both.
        raised = base + max(0.0, float(((worth - charge) / b).max()))
        scales = np.divide(worth, charge, out=np.full_like(worth, math.inf), where=charge > 0)[worth > 0]
        scaled = base * max(1.0, float(scales.max(initial=1.0)))
        return min(raised, scaled) if base > 0 else raised


@dataclass(frozen=True, eq=False, repr=False)
class ColumnPatternDual(Certificate):
    """Multipliers of the pattern program of a column utility, checked against every one of its 2^k columns.

    rows : (k,); pairs : (k, k) non-negative, of the TV caps; weights : of the criteria, which sum to one.
    """

    constraints: tuple[Constraint, ...]
    rows: Array
    pairs: Array
    weights: Array

    argument = "linear-programming duality over all staircase patterns"

    @property
    def upper_bound(self) -> float:
        """sum rows + eta sum pairs, raised by the largest violation of a dual constraint."""
        k, gain = len(self.rows), math.exp(self.epsilon) - 1
        weights = np.maximum(self.weights, 0.0)
        pairs = np.maximum(self.pairs, 0.0)
        worst = 0.0
        for block in np.array_split(np.arange(2**k, dtype=np.int64), max(1, 2**k // 4096)):
            inside = members(block, k)
            column = np.where(inside, 1 + gain, 1.0)
            cut = np.einsum("ax,ax->a", inside @ pairs, (~inside).astype(np.float64))
            excess = weights / weights.sum() @ self.utility.columns(column.T) - column @ self.rows - gain * cut
            # The mean over inputs of a pattern is at least one, and those of all outputs sum to one.
            worst = max(worst, float(excess.max()))
        return float(self.rows.sum() + self.eta * pairs.sum()) + worst

    def verify(self) -> Verification:
        """Recompute the guarantees, the utility and the bound from scratch."""
        return verify_measured(self, self.constraints)
