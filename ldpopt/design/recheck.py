"""The check of a design that may come from another machine."""

from __future__ import annotations

from ldpopt.design.certificates.base import Verification
from ldpopt.design.design import Design


def checked(design: Design, exact: bool = False) -> tuple[Verification, bool]:
    """The result of a check, and whether it was exact.

    Another processor may sum in another order, and then recompute a bound that is one digit looser than the stated one.
    Where float64 does not confirm a claim, ball arithmetic of 256 bits decides.
    """
    found = design.verify(exact)
    if found or exact:
        return found, exact
    closer = design.verify(exact=True)
    return (closer, True) if closer else (found, False)
