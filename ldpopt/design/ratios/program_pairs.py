"""The constrained pairs of inputs: what columns pay for them, with derivatives, and which of them a program poses.

Interior-point programs take all pairs of all terms in one list (`Pairs`). Cone programs pose a few first, and then in
every round those that bind.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from ldpopt.design.constraints.terms import ByKind, Term
from ldpopt.design.problems.reduction import Pair
from ldpopt.numbers.tolerances import SERIES_RATIO
from ldpopt.values.distribution import Array, Index


class Pairs:
    """The pairs of all terms in one list, those of moments first; psi and excess are in units of the cap."""

    def __init__(self, terms: Sequence[Term], k: int) -> None:
        kinds = ByKind(terms)
        self.moments, sticks = ([term for _, term in each] for each in (kinds.moments, kinds.sticks))
        self.numbers = [number for number, _ in (*kinds.moments, *kinds.sticks)]
        self.size = len(terms)
        each = [*self.moments, *sticks]
        none = np.zeros(0, dtype=np.intp)
        self.left = np.concatenate([none, *(term.left for term in each)])
        self.right = np.concatenate([none, *(term.right for term in each)])
        sizes = [len(term) for term in each]
        self.ends = np.cumsum(sizes, dtype=np.intp)
        self.parts = [slice(int(end) - size, int(end)) for end, size in zip(self.ends, sizes, strict=True)]
        self.count = sum(len(term) for term in self.moments)
        self.orders = _in_runs(self.moments)
        self.caps = np.concatenate([np.zeros(0), *(term.cap * np.ones(len(term)) for term in each)])
        factors = [np.zeros(0), *(term.factor for term in sticks)]
        self.on_left, self.on_right = 1 / self.caps[self.count :], -np.concatenate(factors) / self.caps[self.count :]
        self.on = np.eye(k)[self.left], np.eye(k)[self.right]
        self.tv_bound = min((term.tv_bound for term in terms), default=1.0)
        self.ratio = kinds.ratio if np.isfinite(kinds.ratio) else None

    def split(self, values: Array) -> tuple[Array, ...]:
        """The `values` of the pairs, one array for each term in the terms' order; an empty one for `Ratio`."""
        each = np.split(values, self.ends[:-1], axis=-1) if len(self.ends) else []
        own = dict(zip(self.numbers, each, strict=True))
        return tuple(own.get(number, values[..., :0]) for number in range(self.size))

    def joined(self, weights: Sequence[Array]) -> Array:
        """(pairs,) the values of all pairs in this list's order, from one array for each term."""
        return np.concatenate([np.zeros(0), *(weights[number] for number in self.numbers)])

    def gather(self, on_left: Array, on_right: Array) -> Array:
        """(n, k) for every input the sum of the values (n, pairs) of its pairs on the left and on the right."""
        return np.asarray(on_left @ self.on[0] + on_right @ self.on[1])

    def excess(self, q: Array) -> Array:
        """(n, sticks) by how much the left input exceeds the right one, in units of the cap; it may be negative."""
        return np.asarray(q[:, self.left[self.count :]] * self.on_left + q[:, self.right[self.count :]] * self.on_right)

    def psi(self, q: Array) -> tuple[Array, Array, Array, Array, Array]:
        """psi, its two slopes, its second derivative in a, and t = a/b, each (n, moments)."""
        a, b = q[:, self.left[: self.count]], q[:, self.right[: self.count]]
        with np.errstate(all="ignore"):
            parts = [_psi(order, self.caps[part], a[:, part], b[:, part]) for part, order in self.orders]
        level, on_left, on_right, bend, t = np.concatenate([np.zeros((5, len(q), 0)), *parts], axis=2)
        return level, on_left, on_right, bend, t


def _in_runs(moments: Sequence[Any]) -> list[tuple[slice, Any]]:
    """Neighbouring moments whose psi is of one form, with their orders: 1, or an order for each pair."""
    runs, start = [], 0
    for first, group in groupby(moments, lambda term: term.order == 1):
        orders = np.concatenate([np.full(len(term), float(term.order)) for term in group])
        runs.append((slice(start, start + len(orders)), 1.0 if first else orders))
        start += len(orders)
    return runs


def _psi(order: Any, cap: Array, a: Array, b: Array) -> Array:
    apart = (a - b) / b
    t = a / b
    log = np.where(np.abs(apart) < 0.5, np.log1p(np.where(np.abs(apart) < 0.5, apart, 0.0)), np.log(t))
    if np.ndim(order) == 0:  # order 1
        on_left, on_right, bend = log, -apart, 1 / a
        level = a * log - (a - b)
        series = b * apart**2 / 2 * (1 - apart / 3 + apart**2 / 6 - apart**3 / 10)
    else:
        rise = np.expm1((order - 1) * log)
        on_left, on_right = order * rise, -(order - 1) * np.expm1(order * log)
        bend = order * (order - 1) * (1 + rise) / a
        level = a * on_left + b * on_right  # by homogeneity
        series = (
            b * order * (order - 1) / 2 * apart**2
            * (1 + (order - 2) / 3 * apart * (1 + (order - 3) / 4 * apart * (1 + (order - 4) / 5 * apart)))
        )  # fmt: skip
    level = np.where(np.abs(apart) * order < SERIES_RATIO, series, level)
    return np.stack([level / cap, on_left / cap, on_right / cap, bend / cap, t])


MAX_WHOLE = 60  # Terms of up to this many pairs are posed whole; of larger ones, pairs that bind join in rounds


def first_pairs(term: Term, pair: Pair) -> Index:
    """The positions in the term of the pairs to begin with."""
    if len(term) <= max(MAX_WHOLE, 2 * len(pair)):
        return np.arange(len(term))
    order = np.argsort(pair.posterior)
    ends = order[[0, -1]]
    return np.flatnonzero(np.isin(term.left, ends) & np.isin(term.right, ends))


def tight_pairs(term: Term, matrix: Array) -> Index:
    """The positions of the pairs whose constraints `matrix` meets with equality, or nearly so."""
    if not len(term):
        return np.zeros(0, dtype=np.intp)
    return np.flatnonzero(term.excess(matrix) > -1e-3 * np.max(term.cap))


def violated_pairs(terms: Sequence[Term], matrix: Array, active: Sequence[Index]) -> list[Index]:
    """The pairs outside the active ones that the matrix violates most, a few for every input."""
    violated = []
    for term, pairs in zip(terms, active, strict=True):
        if len(pairs) == len(term):
            violated.append(np.zeros(0, dtype=np.intp))
            continue
        excess = term.excess(np.maximum(matrix, 0.0))
        excess[pairs] = -np.inf
        order = np.argsort(-excess, kind="stable")
        order = order[excess[order] > 1e-9 * np.max(term.cap)]
        # The worst partners of every input, not the worst pairs of all, which may be nearly alike.
        kept = np.concatenate([_ranks(term.left[order]), _ranks(term.right[order])]).reshape(2, -1).min(axis=0) < 2
        violated.append(order[kept])
    return violated


def _ranks(labels: Index) -> Index:
    """(n,) how often each entry's value has occurred before it."""
    order = np.argsort(labels, kind="stable")
    starts = np.concatenate([[True], np.diff(labels[order]) != 0])
    first = np.maximum.accumulate(np.where(starts, np.arange(len(labels)), 0))
    ranks = np.empty(len(labels), dtype=np.intp)
    ranks[order] = np.arange(len(labels)) - first
    return ranks
