"""The best adaptive strategy of an adversary who chooses, after each report, the next channel and its two inputs.

The reports so far matter only through their likelihood ratio t. What the best strategy can still reach, as a function
of t, is convex, so it is the test power of some pair W. W is found backwards: without channels it is trivial, and with
several it is the least pair that dominates, for every choice of the next channel and two of its rows, the product of
these two rows with the W of the remaining channels. This gives the exact curve for every epsilon at once; the product
of the least pairs that dominate single channels is only an upper bound.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ldpopt.privacy.finite_pair import FinitePair

Rows = tuple[FinitePair, ...]

BUDGET = 200_000
"""The largest number of outcomes of products that are computed."""


def best_pair(mechanisms: Sequence[tuple[Rows, int]]) -> FinitePair | None:
    """The pair W of the best strategy with the mechanisms in any order; None if it takes more than `BUDGET` outcomes.

    mechanisms : for each, its ordered pairs of rows and its count.
    """
    rows = [pairs for pairs, _ in mechanisms]
    known: dict[tuple[int, ...], FinitePair] = {(0,) * len(rows): _NOTHING}
    spent = 0

    def best(left: tuple[int, ...]) -> FinitePair | None:
        nonlocal spent
        if left in known:
            return known[left]
        products = []
        for at, count in enumerate(left):
            if count == 0:
                continue
            after = best((*left[:at], count - 1, *left[at + 1 :]))
            if after is None:
                return None
            spent += _size(rows[at], after)
            if spent > BUDGET:
                return None
            products += _products(rows[at], after)
        known[left] = FinitePair.least(products)
        return known[left]

    counts = tuple(count for _, count in mechanisms)
    return best(counts) if sum(counts) <= 64 else None


def best_in_order(mechanisms: Sequence[tuple[Rows, int]]) -> FinitePair | None:
    """The pair W of the best strategy if the mechanisms are used in the given order; None as for `best_pair`."""
    after, spent = _NOTHING, 0
    if sum(count for _, count in mechanisms) > 64:
        return None
    for pairs, count in reversed(mechanisms):
        for _ in range(count):
            spent += _size(pairs, after)
            if spent > BUDGET:
                return None
            after = FinitePair.least(_products(pairs, after))
    return after


_NOTHING = FinitePair(np.ones(1), np.ones(1))


def _size(rows: Rows, after: FinitePair) -> int:
    return sum(len(pair.p) for pair in rows) * len(after.p)


def _products(rows: Rows, after: FinitePair) -> list[FinitePair]:
    return [FinitePair(np.outer(pair.p, after.p).ravel(), np.outer(pair.q, after.q).ravel()).ordered for pair in rows]
