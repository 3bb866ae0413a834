"""The pairs of inputs whose constraints a program poses: first a few, then in every round the ones that bind."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ldpopt.design.constraints.terms import Ratio, Term
from ldpopt.design.problems.reduction import Pair
from ldpopt.distribution import Array, Index

EVERY = 60
"""Terms of up to this many pairs are posed whole; of larger ones, pairs that bind join in rounds."""


def first_pairs(term: Term | Ratio, pair: Pair) -> Index:
    """The positions in the term of the pairs to begin with."""
    if isinstance(term, Ratio) or len(term) <= max(EVERY, 2 * len(pair)):
        return np.arange(len(term))
    order = np.argsort(pair.posterior)
    ends = order[[0, -1]]
    return np.flatnonzero(np.isin(term.left, ends) & np.isin(term.right, ends))


def tight_pairs(term: Term | Ratio, matrix: Array) -> Index:
    """The positions of the pairs whose constraints `matrix` meets with equality, or nearly so."""
    if isinstance(term, Ratio):
        return np.zeros(0, dtype=np.intp)
    return np.flatnonzero(term.excess(matrix) > -1e-3 * np.max(term.cap))


def violated_pairs(terms: Sequence[Term | Ratio], matrix: Array, active: Sequence[Index]) -> list[Index]:
    """The pairs outside the active ones that the matrix violates most, a few for every input."""
    found = []
    for term, pairs in zip(terms, active, strict=True):
        if isinstance(term, Ratio) or len(pairs) == len(term):
            found.append(np.zeros(0, dtype=np.intp))
            continue
        excess = term.excess(np.maximum(matrix, 0.0))
        excess[pairs] = -np.inf
        order = np.argsort(-excess, kind="stable")
        order = order[excess[order] > 1e-9 * np.max(term.cap)]
        # The worst partners of every input, not the worst pairs of all, which may be nearly alike.
        kept = np.concatenate([_ranks(term.left[order]), _ranks(term.right[order])]).reshape(2, -1).min(axis=0) < 2
        found.append(order[kept])
    return found


def _ranks(labels: Index) -> Index:
    """(n,) how often each entry's value has occurred before it."""
    order = np.argsort(labels, kind="stable")
    starts = np.concatenate([[True], np.diff(labels[order]) != 0])
    first = np.maximum.accumulate(np.where(starts, np.arange(len(labels)), 0))
    ranks = np.empty(len(labels), dtype=np.intp)
    ranks[order] = np.arange(len(labels)) - first
    return ranks
