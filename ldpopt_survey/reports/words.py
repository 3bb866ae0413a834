"""The sentences of consent forms, and chances in plain words.

What a plan promises is in `promises`, and the sentences of printed sheets are in `sheets`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from ldpopt.files import strict
from ldpopt.words import Words, english

__all__ = ["as_typed", "at_least", "at_most"]


def consent_texts(language: str = "en") -> Mapping[str, str]:
    """The sentences of consent forms in a language that comes with the package."""
    shipped: Mapping[str, str] = strict.shipped("ldpopt_survey.reports", f"templates/consent-{language}.json")
    return {**shipped, **english()} if language == "en" else shipped


ENGLISH = Words(consent_texts())


FINEST = 10**6
"""Words for chances near 0 or 1 stop at one in this many."""


def at_most(chance: Fraction) -> str:
    """Words for an upper bound on a chance. The number in them is never smaller than the bound."""
    if chance <= 0:
        return "0"
    if 10 * chance <= 1:
        return f"1 in {_three(math.floor(1 / chance), up=False):,}"
    if (count := math.ceil(1000 * chance)) < 1000:
        return _in_hundred(count)
    parts = 10_000
    while (count := math.ceil(chance * parts)) >= parts and parts < FINEST:
        parts *= 10
    return f"{count:,} in {parts:,}" if count < parts else "1 in 1"


def at_least(chance: Fraction) -> str:
    """Words for a lower bound on a chance. The number in them is never larger than the bound."""
    if chance <= 0:
        return "0"
    if 10 * chance <= 1:
        return f"1 in {_three(math.ceil(1 / chance), up=True):,}"
    return _in_hundred(math.floor(1000 * chance)) if chance < 1 else "1 in 1"


def as_typed(chance: Fraction) -> str:
    """Words for a chance that somebody typed, with six digits."""
    return f"1 in {chance.denominator:,}" if chance.numerator == 1 else f"{float(100 * chance):.6g} in 100"


def _in_hundred(thousandths: int) -> str:
    return f"{tenths(thousandths)} in 100"


def tenths(count: int) -> str:
    """So many tenths, as a number with a digit after the sign where one is needed."""
    return f"{count // 10}{f'.{count % 10}' if count % 10 else ''}"


def _three(count: int, up: bool) -> int:
    """A whole number rounded up or down to three digits."""
    digits = max(0, len(str(count)) - 3)
    step = int(10**digits)
    return (-(-count // step) if up else count // step) * step
