"""Channels whose probabilities are multiples of 1/D, for two answers and a small D: every one of them, one by one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import mpmath
from mpmath import mpf

LARGEST = 6
"""The largest D whose channels are all looked at."""


def within_reach(utility: Any, constraints: tuple[Any, ...]) -> bool:
    """Whether there are few enough of them, under constraints that are checked here."""
    kinds = {told[0] for told in constraints}
    return getattr(utility, "size", 0) == 2 and _whole(constraints) <= LARGEST and kinds <= {
        "local-dp", "total-variation", "denominator"
    }  # fmt: skip


def _whole(constraints: tuple[Any, ...]) -> int:
    return math.gcd(*(told[1] for told in constraints if told[0] == "denominator"))


def best(utility: Any, constraints: tuple[Any, ...]) -> mpf:
    """The most that any of them keeps; minus infinity where there is none."""
    D = _whole(constraints)
    epsilon = min((told[1] for told in constraints if told[0] == "local-dp"), default=math.inf)
    eta = min((told[1] for told in constraints if told[0] == "total-variation"), default=1.0)
    with mpmath.workdps(utility.digits()):
        ratio = mpmath.exp(epsilon) if epsilon < math.inf else mpmath.inf
        columns = [
            (a, b) for a in range(D + 1) for b in range(D + 1)
            if a + b > 0 and (ratio == mpmath.inf or (a <= ratio * b and b <= ratio * a))
        ]  # fmt: skip
        found = -mpmath.inf
        for made in _sums(columns, D, D, 0):
            if sum((Fraction(max(a - b, 0), D) for a, b in made), Fraction(0)) <= Fraction(eta):
                rows = [[mpf(column[x]) / D for column in made] for x in (0, 1)]
                found = max(found, utility.value(rows))
    return found


def _sums(columns: list[tuple[int, int]], first: int, second: int, start: int) -> Iterator[list[tuple[int, int]]]:
    """Every multiset of columns, from `start` on, that adds up to (first, second)."""
    if first == second == 0:
        yield []
        return
    for at in range(start, len(columns)):
        a, b = columns[at]
        if a <= first and b <= second:
            for rest in _sums(columns, first - a, second - b, at):
                yield [columns[at], *rest]
