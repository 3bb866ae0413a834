"""The largest price of all 2^k staircase patterns by the sizes of their sets: tight where all inputs are alike.

Without prices of pairs, a pattern t + a of a set of n inputs, t = 1/(e^epsilon - 1), is priced

    (|K a|^2 / m - t sum lambda - lambda.a) / m,        m = t + p.a,

where |K a|^2 is at most n times the largest diagonal entry of K^T K and n (n - 1) times the largest other one, m lies
between t + n min p and t + n max p, and lambda.a is at least n min lambda: k + 1 numbers bound all patterns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ldpopt.design.columns.charges import Charges
from ldpopt.enclosures import FLOAT, Enclosure
from ldpopt.results import ByValue


@dataclass(frozen=True, eq=False)
class Sizes(ByValue):
    """Patterns go by the sizes of their sets alone; there are no numbers to it."""

    words: ClassVar[str] = "the sizes of the sets of"

    def most(self, charges: Charges, epsilon: Enclosure) -> float:
        """No pattern is priced above this; inf for prices of pairs."""
        if charges.pairs.any():
            return math.inf
        k, arithmetic = len(charges.rows), charges.arithmetic
        gram = np.asarray(FLOAT.of(charges.kernel.T @ charges.kernel).upper)
        level, total = 1 / epsilon.expm1(), charges.total
        n = np.arange(k)  # the full pattern is the empty one again
        other = float(np.max(gram - np.diag(np.full(k, np.inf)), initial=-np.inf)) if k > 1 else 0.0
        earned = arithmetic.of(float(np.diag(gram).max())) * n + arithmetic.of(other) * (n * (n - 1.0))
        paid = level * total + arithmetic.of(float(charges.rows.min())) * n
        shares = FLOAT.of(charges.prior)
        mass = level + arithmetic.between(float(np.min(shares.lower)), float(np.max(shares.upper))) * n
        found = float(((earned / mass - paid) / mass).max().upper)
        return found if found < math.inf else math.inf
