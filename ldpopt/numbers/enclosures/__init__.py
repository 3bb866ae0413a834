"""Real numbers between two ends: every operation encloses its true result, including all floating-point errors.

A proof about float inputs is a formula in real numbers. The formulas of this package are written once, over an
arithmetic. `FLOAT` has two float64 ends rounded outward, and is fast. `EXACT` uses 256-bit ball arithmetic [ARB], which
decides comparisons that `FLOAT` leaves open for lack of digits.

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
    """Return `EXACT` or `FLOAT`."""
    return EXACT if exact else FLOAT
