"""Chances before and after a report, by Bayes' rule in exact fractions, and in words that are rounded safely."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from ldpopt.channel import Channel
from ldpopt.rounding import exact_sum

Ratio = Fraction | None
"""A ratio of probabilities; None stands for infinity."""

FINEST = 10**6
"""Words for chances near 0 or 1 stop at one in this many."""


def as_chance(value: float) -> Fraction:
    """A float that somebody typed, as the decimal fraction that was typed.

    >>> as_chance(0.01)
    Fraction(1, 100)
    """
    return Fraction(repr(float(value)))


def rows_of(channel: Channel) -> list[list[Fraction]]:
    """The rows of a channel as exact fractions, each divided by its exact sum.

    >>> rows_of(Channel([[0.75, 0.25], [0.25, 0.75]]))[0]
    [Fraction(3, 4), Fraction(1, 4)]
    """
    return [[Fraction(one) / exact_sum(row) for one in row.tolist()] for row in channel.matrix]


def likelier(rows: list[list[Fraction]], x: int, y: int) -> tuple[Ratio, Ratio]:
    """Pr(y) under x divided by its least value under other answers, and its largest such value divided by that of x."""
    mine, others = rows[x][y], [row[y] for at, row in enumerate(rows) if at != x]
    return _ratio(mine, min(others)), _ratio(max(others), mine)


def largest(ratios: Iterable[Ratio]) -> Ratio:
    """The largest ratio.

    >>> largest([Fraction(2), Fraction(3)]), largest([Fraction(2), None])
    (Fraction(3, 1), None)
    """
    found = list(ratios)
    return None if None in found else max(one for one in found if one is not None)


def after(prior: Fraction, up: Ratio, reports: int = 1) -> Fraction:
    """The chance of an answer after reports that are each `up` times likelier from it than from any other.

    It is prior up^n / (prior up^n + 1 - prior) by Bayes' rule, whatever the chances of the other answers. If `up` is an
    upper bound, so is the result.

    >>> after(Fraction(1, 100), Fraction(3))
    Fraction(1, 34)
    """
    if up is None:
        return Fraction(1)
    times = up**reports
    return prior * times / (prior * times + 1 - prior)


def before(prior: Fraction, down: Ratio, reports: int = 1) -> Fraction:
    """The chance after reports that are each `down` times likelier from the others.

    It is a lower bound if `down` is an upper bound.

    >>> before(Fraction(1, 100), Fraction(3))
    Fraction(1, 298)
    """
    return Fraction(0) if down is None else prior / (prior + (1 - prior) * down**reports)


def given(prior: Fraction, rows: list[list[Fraction]], x: int, y: int, shares: list[Fraction]) -> Fraction | None:
    """The chance of answer x after report y, if the other answers have `shares` of the rest; None if y never occurs."""
    rest = sum((share for at, share in enumerate(shares) if at != x), Fraction(0))
    if rest == 0:
        return None
    others = sum((share * rows[at][y] for at, share in enumerate(shares) if at != x), Fraction(0)) / rest
    whole = prior * rows[x][y] + (1 - prior) * others
    return None if whole == 0 else prior * rows[x][y] / whole


def at_most(chance: Fraction) -> str:
    """Words for an upper bound on a chance. The number in them is never smaller than the bound.

    >>> at_most(Fraction(1, 37)), at_most(Fraction(27, 1000)), at_most(Fraction(2, 3)), at_most(Fraction(1))
    ('1 in 37', '1 in 37', '66.7 in 100', '1 in 1')
    """
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
    """Words for a lower bound on a chance. The number in them is never larger than the bound.

    >>> at_least(Fraction(1, 37)), at_least(Fraction(27, 1000)), at_least(Fraction(2, 3)), at_least(Fraction(0))
    ('1 in 37', '1 in 38', '66.6 in 100', '0')
    """
    if chance <= 0:
        return "0"
    if 10 * chance <= 1:
        return f"1 in {_three(math.ceil(1 / chance), up=True):,}"
    return _in_hundred(math.floor(1000 * chance)) if chance < 1 else "1 in 1"


def as_typed(chance: Fraction) -> str:
    """Words for a chance that somebody typed, with six digits.

    >>> as_typed(Fraction(1, 100)), as_typed(Fraction(3, 10)), as_typed(Fraction(3, 1000))
    ('1 in 100', '30 in 100', '0.3 in 100')
    """
    return f"1 in {chance.denominator:,}" if chance.numerator == 1 else f"{float(100 * chance):.6g} in 100"


def most_exposed(channel: Channel) -> int:
    """The position of the answer about which a report can tell the most: it has the largest ratio to another answer.

    >>> most_exposed(Channel([[0.6, 0.4], [0.1, 0.9]]))
    0
    """
    best, found = -1.0, 0
    for x, row in enumerate(channel.matrix):
        least = np.delete(channel.matrix, x, axis=0).min(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = float(np.where(row > 0, row / least, 0.0).max())
        if ratio > best:
            best, found = ratio, x
    return found


def _ratio(top: Fraction, bottom: Fraction) -> Ratio:
    if bottom == 0:
        return None if top > 0 else Fraction(0)
    return top / bottom


def _in_hundred(thousandths: int) -> str:
    return f"{thousandths // 10}{f'.{thousandths % 10}' if thousandths % 10 else ''} in 100"


def _three(count: int, up: bool) -> int:
    """A whole number rounded up or down to three digits."""
    digits = max(0, len(str(count)) - 3)
    step = int(10**digits)
    return (-(-count // step) if up else count // step) * step
