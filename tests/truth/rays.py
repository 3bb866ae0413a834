"""The extreme rays of a cone that hyperplanes cut, and the vertices of a polytope, in exact rationals."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from fractions import Fraction

Vector = tuple[Fraction, ...]


def unit(k: int, x: int) -> Vector:
    """The function c_x of a column c of k entries."""
    return tuple(Fraction(int(y == x)) for y in range(k))


def compared(k: int, x: int, y: int, ratio: Fraction) -> Vector:
    """The function ratio c_y - c_x."""
    return tuple(ratio * int(z == y) - int(z == x) for z in range(k))


def faces(arrangement, e: Fraction) -> tuple[list[Vector], list[Vector]]:
    """The functions that are not negative on the cone of an arrangement of the package, and those of its cuts."""
    k = arrangement.size
    inside = [unit(k, x) for x in range(k)] + [compared(k, x, y, e**w) for x, y, w in arrangement.limits]
    return inside, [compared(k, x, y, e**w) for x, y, w in arrangement.cuts]


def rays(k: int, inside: Iterable[Vector], cuts: Iterable[Vector] = ()) -> set[Vector]:
    """The extreme rays of all pieces of a cone in the positive orthant, with a largest entry of one.

    A ray of a piece lies on k - 1 independent hyperplanes: all sets of so many are tried.
    """
    inside = list(inside)
    planes: list[Vector] = []
    for face in (*inside, *cuts):
        if face not in planes and tuple(-x for x in face) not in planes:
            planes.append(face)
    found = set()
    for chosen in itertools.combinations(planes, k - 1):
        ray = kernel(chosen, k)
        if ray is None:
            continue
        ray = tuple(-x for x in ray) if any(x < 0 for x in ray) else ray
        if all(sum(a * b for a, b in zip(face, ray, strict=True)) >= 0 for face in inside):
            found.add(scaled(ray))
    return found


def scaled(column: Sequence[Fraction]) -> Vector:
    """The column with a largest entry of one."""
    most = max(column)
    return tuple(Fraction(x) / most for x in column)


def kernel(rows: Sequence[Vector], k: int) -> Vector | None:
    """The vector that all rows take to 0, where it is one but for a factor; else None."""
    matrix, pivots = reduced(rows, k)
    if len(pivots) != k - 1:
        return None
    free = next(c for c in range(k) if c not in pivots)
    vector = [Fraction(0)] * k
    vector[free] = Fraction(1)
    for row, c in zip(matrix, pivots, strict=False):
        vector[c] = -row[free]
    return tuple(vector)


def reduced(rows: Sequence[Sequence[Fraction]], columns: int) -> tuple[list[list[Fraction]], list[int]]:
    """The rows after exact elimination of the first `columns`, and the columns that lead."""
    matrix, pivots = [list(row) for row in rows], list[int]()
    for c in range(columns):
        at = len(pivots)
        pivot = next((i for i in range(at, len(matrix)) if matrix[i][c]), None)
        if pivot is None:
            continue
        matrix[at], matrix[pivot] = matrix[pivot], matrix[at]
        lead = matrix[at][c]
        matrix[at] = [x / lead for x in matrix[at]]
        for i, row in enumerate(matrix):
            if i != at and row[c]:
                share = row[c]
                matrix[i] = [x - share * y for x, y in zip(row, matrix[at], strict=True)]
        pivots.append(c)
    return matrix, pivots


Bounded = tuple[Vector, Fraction]


def vertices(k: int, inside: Sequence[Bounded], cuts: Sequence[Bounded]) -> set[Vector]:
    """The vertices of all pieces of a polytope of the points with f(c) >= b for (f, b) in `inside`, cut by f(c) = b."""
    found = set()
    for chosen in itertools.combinations([*inside, *cuts], k):
        matrix, pivots = reduced([(*f, b) for f, b in chosen], k)
        if len(pivots) < k:
            continue
        point = tuple(row[k] for row in matrix[:k])
        if all(sum(a * b for a, b in zip(f, point, strict=True)) >= bound for f, bound in inside):
            found.add(point)
    return found
