"""Which of two channels tells more: the refinement order of Blackwell, and Le Cam's deficiency.

A linear program finds the best post-processing. What it finds is not believed: both bounds are computed from its
primal and its dual solution in rational numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ldpopt.errors import NotChecked, Phrase, invalid
from ldpopt.numbers.rounding import float_down, float_up
from ldpopt.numbers.tolerances import GARBLED
from ldpopt.values.distribution import Array, stochastic
from ldpopt.values.results import Result

__all__ = ["Deficiency", "deficiency", "is_garbling"]

Rational = list[list[Fraction]]

LARGEST = 200_000
"""The most products of probabilities in a comparison: they are computed in rational numbers."""


DECIDED = 5_000
"""The largest table, in entries, of which rational numbers decide what the proven bounds leave open."""


@dataclass(frozen=True, eq=False)
class Deficiency(Result):
    """How far a channel is from all post-processings of another one, in total variation, for the worst answer.

    lower, upper : proven bounds in [0, 1]. post : a post-processing of the other channel that attains `upper`, as an
    array (m, m') of floats: up to their rounding, where the upper bound is of rational probabilities.
    """

    lower: float
    upper: float
    post: Array


def deficiency(channel: Any, other: Any) -> Deficiency:
    """Return how far `channel`, shape (k, m'), is from the nearest post-processing of `other`, shape (k, m) [Le Cam].

    Both may be channels, exact channels, or arrays. Rows of floats stand for the rational distributions that are
    proportional to them. Labels of the answers that two channels share are matched. Raises `InvalidInput` for other
    numbers of answers, for other labels, and for more than 200,000 products k m m'.

    >>> found = deficiency([[0.75, 0.25], [0.25, 0.75]], [[0.5, 0.5], [0.5, 0.5]])
    >>> found.lower, found.upper
    (0.25, 0.25)
    """
    low, high, post = _bounds(*_rows(channel, other))
    return Deficiency(float_down(low), float_up(high), np.array([[float(entry) for entry in row] for row in post]))


def is_garbling(channel: Any, other: Any) -> bool:
    """Return whether `channel` is `other` followed by some post-processing, so that it never tells more [Blackwell].

    channel, other : as for `deficiency`. Between two exact channels the answer is exact. Floats are rounded, so
    otherwise a total variation up to `tolerances.GARBLED` counts as none. Raises `InvalidInput` as `deficiency` does,
    and `NotChecked` where the bounds leave it open: for nearly constant floats, and for large exact channels.

    >>> is_garbling([[0.625, 0.375], [0.375, 0.625]], [[0.75, 0.25], [0.25, 0.75]])
    True
    >>> is_garbling([[0.75, 0.25], [0.25, 0.75]], [[0.625, 0.375], [0.375, 0.625]])
    False
    """
    own, wide = _rows(channel, other)
    exact = all(hasattr(_inner(one), "weights") for one in (channel, other))
    room = Fraction(0) if exact else Fraction(GARBLED)
    low, high, _ = _bounds(own, wide)
    if high <= room:
        return True
    if low > room:
        return False
    if exact and len(wide[0]) * len(own[0]) * (len(own) * len(own[0]) + len(wide[0])) <= DECIDED:
        return _exactly(own, wide)
    between = f"between {float(low):.3g} and {float(high):.3g}"
    raise NotChecked(f"garbling: the distance from every post-processing is {between}, which leaves it open")


def _inner(given: Any) -> Any:
    return getattr(given, "channel", given)


def _rows(channel: Any, other: Any) -> tuple[Rational, Rational]:
    """The rows of both, as rational distributions, for the same answers in the same order."""
    (own, labels), (wide, known) = (_rational(one, what) for one, what in ((channel, "channel"), (other, "other")))
    if len(own) != len(wide):
        raise invalid("other", f"{len(own)} inputs, as many as the channel", len(wide))
    counted = tuple(range(len(own)))
    if labels != known and counted not in (labels, known):
        if set(labels) != set(known):
            raise invalid("other", "the same inputs as the channel", known)
        wide = [wide[known.index(label)] for label in labels]
    size = len(own) * len(own[0]) * len(wide[0])
    if size > LARGEST:
        raise invalid("channels", f"at most {LARGEST} products of probabilities", Phrase(f"{size}"))
    return own, wide


def _rational(given: Any, what: str) -> tuple[Rational, tuple[Any, ...]]:
    inner = _inner(given)
    if hasattr(inner, "weights"):
        rows = [[Fraction(weight, inner.denominator) for weight in row] for row in inner.weights.tolist()]
        return rows, inner.inputs
    matrix = inner.matrix if hasattr(inner, "matrix") else stochastic(inner, what)
    rows = [[Fraction(entry) for entry in row] for row in matrix.tolist()]
    return [_divided(row) for row in rows], getattr(inner, "inputs", tuple(range(len(rows))))


def _divided(row: list[Fraction]) -> list[Fraction]:
    """The distribution proportional to a row; all on the first entry if the row is zero."""
    total = sum(row)
    return [entry / total for entry in row] if total > 0 else [Fraction(i == 0) for i in range(len(row))]


def _bounds(own: Rational, wide: Rational) -> tuple[Fraction, Fraction, Rational]:
    """Proven bounds on the deficiency, and the post-processing that attains the upper one."""
    post, weights = _solved(own, wide)
    high = max(
        sum((max(a - b, Fraction(0)) for a, b in zip(row, made, strict=True)), Fraction(0))
        for row, made in zip(own, _product(wide, post), strict=True)
    )
    # <w, P - QR> is at most the sum over answers of (max w - min w) times a total variation, for every R.
    scale = sum((max(row) - min(row) for row in weights), Fraction(0))
    if scale == 0:
        return Fraction(0), high, post
    worth = sum((w * p for row, probs in zip(weights, own, strict=True) for w, p in zip(row, probs, strict=True)))
    columns = [list(column) for column in zip(*wide, strict=True)]
    best = sum(max(row) for row in _product(columns, weights))
    return max(Fraction(0), (worth - best) / scale), high, post


def _product(left: Rational, right: Rational) -> Rational:
    columns = list(zip(*right, strict=True))
    return [[sum(map(Fraction.__mul__, row, column), Fraction(0)) for column in columns] for row in left]


def _solved(own: Rational, wide: Rational) -> tuple[Rational, Rational]:
    """A post-processing (m, m') and dual weights (k, m') from a linear program in floats; good ones, not proved."""
    from scipy import sparse
    from scipy.optimize import linprog

    p, q = (np.array([[float(entry) for entry in row] for row in rows]) for rows in (own, wide))
    (k, many), m = p.shape, q.shape[1]
    # Variables: R (m, m'), the excess D (k, m') of P over QR, and the largest row sum t of D.
    eye = sparse.eye_array
    above = sparse.hstack([-sparse.kron(q, eye(many)), -eye(k * many), sparse.csr_array((k * many, 1))])
    sums = sparse.hstack(
        [sparse.csr_array((k, m * many)), sparse.kron(eye(k), np.ones((1, many))), sparse.csr_array(-np.ones((k, 1)))]
    )
    equal = sparse.hstack([sparse.kron(eye(m), np.ones((1, many))), sparse.csr_array((m, k * many + 1))])
    cost = np.zeros(m * many + k * many + 1)
    cost[-1] = 1.0
    found = linprog(
        cost, sparse.vstack([above, sums]).tocsc(), np.concatenate([-p.ravel(), np.zeros(k)]), equal.tocsc(),
        np.ones(m), method="highs-ds", options={"primal_feasibility_tolerance": 1e-10},
    )  # fmt: skip
    if found.x is None:
        return [[Fraction(1, many)] * many for _ in range(m)], [[Fraction(0)] * many for _ in range(k)]
    post = np.clip(found.x[: m * many], 0.0, None).reshape(m, many)
    weights = -found.ineqlin.marginals[: k * many].reshape(k, many)
    rows = [_divided([Fraction(entry) for entry in row]) for row in post.tolist()]
    return rows, [[Fraction(entry) if math.isfinite(entry) else Fraction(0) for entry in row] for row in weights]


def _exactly(own: Rational, wide: Rational) -> bool:
    """Whether some R >= 0 has QR = P and rows that sum to 1: phase one of the simplex method in rational numbers."""
    k, many, m = len(own), len(own[0]), len(wide[0])
    places = [(z, y) for z in range(m) for y in range(many)]
    # Each row is an equation with its right side last. Artificial variables, one for each, are not written down.
    rows = [
        [wide[x][z] if y == target else Fraction(0) for z, y in places] + [own[x][target]]
        for x in range(k)
        for target in range(many)
    ]
    rows += [[Fraction(z == row) for z, _ in places] + [Fraction(1)] for row in range(m)]
    basis = [len(places) + i for i in range(len(rows))]
    gain = [sum(column, Fraction(0)) for column in zip(*rows, strict=True)]
    while gain[-1]:
        # The first column that helps, and the first basic variable among ties, so that no basis returns [Bland].
        enter = next((j for j in range(len(places)) if gain[j] > 0), None)
        if enter is None:
            return False
        leave = min((row[-1] / row[enter], basis[i], i) for i, row in enumerate(rows) if row[enter] > 0)[2]
        head = rows[leave][enter]
        rows[leave] = [entry / head for entry in rows[leave]]
        for i, row in enumerate(rows):
            if i != leave and (factor := row[enter]):
                rows[i] = [a - factor * b if b else a for a, b in zip(row, rows[leave], strict=True)]
        basis[leave] = enter
        gain = [
            sum((row[j] for i, row in enumerate(rows) if basis[i] >= len(places)), Fraction(0))
            for j in range(len(gain))
        ]
    return True
