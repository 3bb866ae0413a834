"""Real numbers between two ends: every operation encloses its true result, whatever floating point does.

A proof about float inputs is a formula in real numbers. The formulas of this package are written once, over an
arithmetic: `FLOAT` carries two float64 ends rounded outward, fast; `EXACT` carries balls of 256 bits [ARB], so that
what `FLOAT` leaves open for want of digits is closed.

>>> x = FLOAT.of([0.1, 0.2])
>>> total = (x.exp() - 1).sum()
>>> bool(total.certainly_at_most(0.327)), bool(total.certainly_at_most(0.326))
(True, False)
"""

from __future__ import annotations

from ldpopt.numbers.enclosures.base import Arithmetic, Enclosure
from ldpopt.numbers.enclosures.exact import EXACT, Exact
from ldpopt.numbers.enclosures.floats import FLOAT

__all__ = ["EXACT", "FLOAT", "Arithmetic", "Enclosure", "Exact", "arithmetic"]


def arithmetic(exact: bool) -> Arithmetic:
    """`EXACT` or `FLOAT`."""
    return EXACT if exact else FLOAT
