"""Sentences of consent forms, and chances in plain words.

Promises of a plan are in `promises`, and the sentences of printed forms are in `sheets`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from ldpopt.files import strict
from ldpopt.words import Words, english

__all__ = ["as_typed", "at_least", "at_most"]


def consent_texts(language: str = "en") -> Mapping[str, str]:
    """Load the sentences of consent forms in a language that comes with the package."""
    shipped: Mapping[str, str] = strict.shipped("ldpopt_survey.reports", f"templates/consent-{language}.json")
    return {**shipped, **english()} if language == "en" else shipped


ENGLISH = Words(consent_texts())


MAX_PARTS = 10**6
"""The largest denominator in texts of chances near 0 or 1."""


def at_most(chance: Fraction) -> str:
    """Format an upper bound on a chance. The number in the text is never below the bound."""
    if chance <= 0:
        return "0"
    if 10 * chance <= 1:
        return f"1 in {_three_digits(math.floor(1 / chance), up=False):,}"
    if (count := math.ceil(1000 * chance)) < 1000:
        return _in_hundred(count)
    parts = 10_000
    while (count := math.ceil(chance * parts)) >= parts and parts < MAX_PARTS:
        parts *= 10
    return f"{count:,} in {parts:,}" if count < parts else "1 in 1"


def at_least(chance: Fraction) -> str:
    """Format a lower bound on a chance. The number in the text is never above the bound."""
    if chance <= 0:
        return "0"
    if 10 * chance <= 1:
        return f"1 in {_three_digits(math.ceil(1 / chance), up=True):,}"
    return _in_hundred(math.floor(1000 * chance)) if chance < 1 else "1 in 1"


def as_typed(chance: Fraction) -> str:
    """Format a chance that a user typed, with six digits."""
    return f"1 in {chance.denominator:,}" if chance.numerator == 1 else f"{float(100 * chance):.6g} in 100"


def _in_hundred(thousandths: int) -> str:
    return f"{tenths(thousandths)} in 100"


def tenths(count: int) -> str:
    """Format a number of tenths, with a decimal digit only where it is needed."""
    return f"{count // 10}{f'.{count % 10}' if count % 10 else ''}"


def _three_digits(count: int, up: bool) -> int:
    """An integer rounded up or down to three digits."""
    digits = max(0, len(str(count)) - 3)
    step = int(10**digits)
    return (-(-count // step) if up else count // step) * step
