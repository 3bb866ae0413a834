"""Comparison of two channels: the refinement order of Blackwell, and Le Cam's deficiency.

A linear program finds the best post-processing. Its result is not trusted: both bounds are computed from its primal and
its dual solution in rational numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ldpopt.errors import NotChecked, Phrase, invalid
from ldpopt.numbers.rounding import float_down, float_up
from ldpopt.numbers.tolerances import GARBLING_DISTANCE
from ldpopt.values.distribution import Array, stochastic
from ldpopt.values.results import Result

__all__ = ["Deficiency", "deficiency", "is_garbling"]

Rational = list[list[Fraction]]

MAX_PRODUCTS = 200_000
"""Largest number of products of probabilities in a comparison; they are computed in rational numbers."""


MAX_EXACT_ENTRIES = 5_000
"""Largest table, in entries, for which rational numbers decide if the proven bounds do not."""


@dataclass(frozen=True, eq=False)
class Deficiency(Result):
    """The distance of a channel from all post-processings of another, in total variation, for the worst answer.

    lower, upper : proven bounds in [0, 1].
    post : a post-processing of the other channel that attains `upper`, as an array (m, m') of floats. It does so up to
        their rounding; the upper bound is of rational probabilities.
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
    otherwise a total variation up to `tolerances.GARBLING_DISTANCE` counts as none. Raises `InvalidInput` as
    `deficiency` does. Raises `NotChecked` where the bounds leave it open: for nearly constant floats, and for large
    exact channels.

    >>> is_garbling([[0.625, 0.375], [0.375, 0.625]], [[0.75, 0.25], [0.25, 0.75]])
    True
    >>> is_garbling([[0.75, 0.25], [0.25, 0.75]], [[0.625, 0.375], [0.375, 0.625]])
    False
    """
    rows, other_rows = _rows(channel, other)
    exact = all(hasattr(_inner(each_channel), "weights") for each_channel in (channel, other))
    tolerance = Fraction(0) if exact else Fraction(GARBLING_DISTANCE)
    low, high, _ = _bounds(rows, other_rows)
    if high <= tolerance:
        return True
    if low > tolerance:
        return False
    if (
        exact
        and len(other_rows[0]) * len(rows[0]) * (len(rows) * len(rows[0]) + len(other_rows[0])) <= MAX_EXACT_ENTRIES
    ):
        return _exactly(rows, other_rows)
    bounds_text = f"between {float(low):.3g} and {float(high):.3g}"
    raise NotChecked(f"garbling: the distance from every post-processing is {bounds_text}, which leaves it open")


def _inner(channel: Any) -> Any:
    return getattr(channel, "channel", channel)


def _rows(channel: Any, other: Any) -> tuple[Rational, Rational]:
    """The rows of both, as rational distributions, for the same answers in the same order."""
    (rows, labels), (other_rows, other_labels) = (
        _rational(side, name) for side, name in ((channel, "channel"), (other, "other"))
    )
    if len(rows) != len(other_rows):
        raise invalid("other", f"{len(rows)} inputs, as many as the channel", len(other_rows))
    default_labels = tuple(range(len(rows)))
    if labels != other_labels and default_labels not in (labels, other_labels):
        if set(labels) != set(other_labels):
            raise invalid("other", "the same inputs as the channel", other_labels)
        other_rows = [other_rows[other_labels.index(label)] for label in labels]
    size = len(rows) * len(rows[0]) * len(other_rows[0])
    if size > MAX_PRODUCTS:
        raise invalid("channels", f"at most {MAX_PRODUCTS} products of probabilities", Phrase(f"{size}"))
    return rows, other_rows


def _rational(channel: Any, name: str) -> tuple[Rational, tuple[Any, ...]]:
    inner = _inner(channel)
    if hasattr(inner, "weights"):
        rows = [[Fraction(weight, inner.denominator) for weight in row] for row in inner.weights.tolist()]
        return rows, inner.inputs
    matrix = inner.matrix if hasattr(inner, "matrix") else stochastic(inner, name)
    rows = [[Fraction(entry) for entry in row] for row in matrix.tolist()]
    return [_divided(row) for row in rows], getattr(inner, "inputs", tuple(range(len(rows))))


def _divided(row: list[Fraction]) -> list[Fraction]:
    """The distribution proportional to a row; all on the first entry if the row is zero."""
    total = sum(row)
    return [entry / total for entry in row] if total > 0 else [Fraction(i == 0) for i in range(len(row))]


def _bounds(rows: Rational, other_rows: Rational) -> tuple[Fraction, Fraction, Rational]:
    """Proven bounds on the deficiency, and the post-processing that attains the upper one."""
    post, weights = _linear_program(rows, other_rows)
    high = max(
        sum((max(a - b, Fraction(0)) for a, b in zip(row, product_row, strict=True)), Fraction(0))
        for row, product_row in zip(rows, _product(other_rows, post), strict=True)
    )
    # <w, P - QR> is at most the sum over answers of (max w - min w) times a total variation, for every R.
    scale = sum((max(row) - min(row) for row in weights), Fraction(0))
    if scale == 0:
        return Fraction(0), high, post
    dual_value = sum((w * p for row, probs in zip(weights, rows, strict=True) for w, p in zip(row, probs, strict=True)))
    columns = [list(column) for column in zip(*other_rows, strict=True)]
    best = sum(max(row) for row in _product(columns, weights))
    return max(Fraction(0), (dual_value - best) / scale), high, post


def _product(left: Rational, right: Rational) -> Rational:
    columns = list(zip(*right, strict=True))
    return [[sum(map(Fraction.__mul__, row, column), Fraction(0)) for column in columns] for row in left]


def _linear_program(target_rows: Rational, other_rows: Rational) -> tuple[Rational, Rational]:
    """A post-processing (m, m') and dual weights (k, m') from a linear program in floats; good ones, not proved."""
    from scipy import sparse
    from scipy.optimize import linprog

    p, q = (np.array([[float(entry) for entry in row] for row in rows]) for rows in (target_rows, other_rows))
    (k, m_prime), m = p.shape, q.shape[1]
    # Variables: R (m, m'), the excess D (k, m') of P over QR, and the largest row sum t of D.
    eye = sparse.eye_array
    excess_rows = sparse.hstack([-sparse.kron(q, eye(m_prime)), -eye(k * m_prime), sparse.csr_array((k * m_prime, 1))])
    sums = sparse.hstack(
        [
            sparse.csr_array((k, m * m_prime)),
            sparse.kron(eye(k), np.ones((1, m_prime))),
            sparse.csr_array(-np.ones((k, 1))),
        ]
    )
    equal = sparse.hstack([sparse.kron(eye(m), np.ones((1, m_prime))), sparse.csr_array((m, k * m_prime + 1))])
    cost = np.zeros(m * m_prime + k * m_prime + 1)
    cost[-1] = 1.0
    result = linprog(
        cost,
        sparse.vstack([excess_rows, sums]).tocsc(),
        np.concatenate([-p.ravel(), np.zeros(k)]),
        equal.tocsc(),
        np.ones(m),
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10},
    )
    if result.x is None:
        return [[Fraction(1, m_prime)] * m_prime for _ in range(m)], [[Fraction(0)] * m_prime for _ in range(k)]
    post = np.clip(result.x[: m * m_prime], 0.0, None).reshape(m, m_prime)
    weights = -result.ineqlin.marginals[: k * m_prime].reshape(k, m_prime)
    rows = [_divided([Fraction(entry) for entry in row]) for row in post.tolist()]
    return rows, [[Fraction(entry) if math.isfinite(entry) else Fraction(0) for entry in row] for row in weights]


def _exactly(target_rows: Rational, other_rows: Rational) -> bool:
    """True if some R >= 0 has QR = P and rows that sum to 1: phase one of the simplex method in rational numbers."""
    k, m_prime, m = len(target_rows), len(target_rows[0]), len(other_rows[0])
    places = [(z, y) for z in range(m) for y in range(m_prime)]
    # Each row is an equation with its right side last. Artificial variables, one for each, are not written down.
    rows = [
        [other_rows[x][z] if y == target else Fraction(0) for z, y in places] + [target_rows[x][target]]
        for x in range(k)
        for target in range(m_prime)
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
