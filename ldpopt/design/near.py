"""The certificate of a neighbouring design, as a first try at a proof."""

from __future__ import annotations

from typing import Any

from ldpopt.design.certificates.base import Certificate
from ldpopt.design.design import Design
from ldpopt.design.problems.problem import Problem
from ldpopt.errors import Phrase, invalid


def numbers_near(problem: Problem, near: Any) -> Certificate | None:
    """The certificate of `near`; `InvalidInput` for what is no design, or not one of the same utility."""
    if near is None:
        return None
    if not isinstance(near, Design):
        raise invalid("near", "a Design", type(near).__name__)
    if near.utility is not problem.whole:
        raise invalid("near", "a Design of the same utility object", Phrase("another utility's"))
    return near.certificate
