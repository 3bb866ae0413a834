"""The gain of a column at the multipliers of a design for estimation, enclosed: what it earns less what it pays.

For a column s the gain per unit of probability is

    v(s) = (|K s|^2 / (s.p) - lambda.s - sum_{x,x'} nu[x,x'] (s_x - s_x')_+) / (s.p),

with K centred at p, so that K 1 = 0. With t >= v over all columns, sum lambda + eta sum nu + t bounds
sum_y w_y |K u_y|^2 over every channel that meets the constraints: rows sum to one, and so do the probabilities s.p.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ldpopt.design.utilities.laws import law
from ldpopt.distribution import Array
from ldpopt.enclosures import FLOAT, Arithmetic, Enclosure
from ldpopt.rounding import exact_sum

ROWS = 4096
"""The number of columns that are priced at a time."""


@dataclass(frozen=True, eq=False)
class Charges:
    """kernel : K (r, k), centred. prior : the law p (k,). rows : lambda (k,). pairs : nu (k, k), none below zero."""

    kernel: Enclosure
    prior: Enclosure
    rows: Array
    pairs: Array

    @classmethod
    def of(cls, kernel: Enclosure, prior: Array, rows: Array, pairs: Array) -> Charges:
        """The charges of a kernel, which is centred here, at the law proportional to `prior`."""
        p = law(prior, kernel.arithmetic)
        return cls(kernel - kernel.sum(axis=1)[:, None] * p[None, :], p, rows, pairs)

    @property
    def arithmetic(self) -> Arithmetic:
        """The arithmetic in which the charges are computed."""
        return self.kernel.arithmetic

    @property
    def total(self) -> Enclosure:
        """The sum of lambda, rounded only once: a constant column pays nothing else."""
        return self.arithmetic.of(exact_sum(self.rows))

    def most(self, base: Enclosure, rise: Enclosure) -> float:
        """An upper bound on the gains of the columns base + rise, for `base` (n,) and `rise` (n, k)."""
        found = [self.prices(base[at : at + ROWS], rise[at : at + ROWS]).upper for at in range(0, len(base), ROWS)]
        return float(np.max(np.concatenate(found)))

    def in_floats(self) -> Charges:
        """The same charges, enclosed in floats."""
        kernel, prior = (FLOAT.between(part.lower, part.upper) for part in (self.kernel, self.prior))
        return Charges(kernel, prior, self.rows, self.pairs)

    def prices(self, base: Enclosure, rise: Enclosure) -> Enclosure:
        """(n,) the gain of each column per unit of its probability, v in the module's docstring."""
        mass = base + rise @ self.prior
        # K 1 = 0: the part that all inputs share earns nothing, and is left out.
        earned = (rise @ self.kernel.T).square().sum(axis=1)
        paid = base * self.total + rise @ self.arithmetic.of(self.rows)
        x, other = np.nonzero(self.pairs)
        if len(x):
            paid = paid + (rise[:, x] - rise[:, other]).positive() @ self.arithmetic.of(self.pairs[x, other])
        return (earned / mass - paid) / mass
