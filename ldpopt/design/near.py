"""The certificate of a neighbouring design, as a first try at a proof."""

from __future__ import annotations

from typing import Any

from ldpopt.design.certificates.base import Certificate
from ldpopt.design.design import Design
from ldpopt.design.problems.problem import Problem
from ldpopt.errors import Phrase, invalid


def numbers_near(problem: Problem, near: Any) -> Certificate | None:
    """The certificate of the design `near`; `InvalidInput` for anything but a design with the same kind of utility.

    Its numbers are checked as a proof about this problem, so that any neighbouring design may be tried.
    """
    if near is None:
        return None
    if not isinstance(near, Design):
        raise invalid("near", "a Design", type(near).__name__)
    if type(near.utility) is not type(problem.whole):
        raise invalid("near", f"a Design of a {type(problem.whole).__name__}", Phrase(f"one of {near.utility.name}"))
    return near.certificate
