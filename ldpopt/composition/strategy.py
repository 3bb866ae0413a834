"""The best adaptive strategy against several channels: which is used next, and on which inputs, by the reports so far.

Reports so far matter through their likelihood ratio t alone. What the best strategy still reaches, as a function of t,
is the power of some pair W, since it is convex, and it is found backwards: W of no channel is trivial, and W of several
is the least pair that dominates every product of two rows of one of them with W of the others. So the curve for every
epsilon comes at once, where the product of least pairs is only above it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ldpopt.privacy.finite_pair import FinitePair

Rows = tuple[FinitePair, ...]

BUDGET = 200_000
"""Up to so many outcomes of products are looked at."""


def best_pair(mechanisms: Sequence[tuple[Rows, int]]) -> FinitePair | None:
    """The pair of the best strategy in the best order; None when there is too much to look at.

    mechanisms : the ordered pairs of rows of each, with its count.
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
    """The same for mechanisms that are used in the order given."""
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
