"""The check of a design that may come from another machine."""

from __future__ import annotations

from ldpopt.design.certificates.base import Verification
from ldpopt.design.design import Design


def checked(design: Design, exact: bool = False) -> tuple[Verification, bool]:
    """What a check found, and whether it was exact.

    Another processor may sum in another order, so that a bound is recomputed one digit looser than it was stated: where
    float64 does not bear out a claim, the balls decide.
    """
    found = design.verify(exact)
    if found or exact:
        return found, exact
    closer = design.verify(exact=True)
    return (closer, True) if closer else (found, False)
