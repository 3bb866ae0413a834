"""The extreme columns on a connected graph whose limits are multiples of one unit: integer labelings.

In logarithms a column is a labeling h of the inputs with h_x - h_x' <= L[x,x'] for every two inputs. It is extreme
where equalities connect all inputs: h_x - h_x' = L[x,x'] along direct limits, which no path of others implies, and
h_x = h_x' for any two inputs where orders cut the cone.

Inputs get their labels one after the other, in all labelings at the same time. Inputs that equalities connect form a
part. A labeling is dropped when one of its parts cannot be connected to any later input.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ldpopt.distribution import Array
from ldpopt.errors import InvalidInput

PARTIAL = 2**21
"""The most labelings of the inputs labeled so far."""

FARTHEST, LARGEST = 60, 100
"""The largest limit in units, and the most inputs: labels, their sums and numbers of parts are small integers."""

Labels = npt.NDArray[np.int8]
Direct = npt.NDArray[np.bool_]


def extreme_labelings(limits: Array, direct: Direct, ordered: bool, most: int) -> Array | None:
    """(n, k) the extreme columns in units of `limits` (k, k), largest label 0, in lexicographic order.

    limits : whole numbers as float64, the lengths of shortest paths, inf for none. direct : (k, k) booleans, True for
    limits that no path of others implies. ordered : whether equal labels connect inputs. None where the limits are not
    multiples of one unit, or some are infinite. Raises `TooManyColumns` for more than `PARTIAL` labelings on the way,
    or more than `most` in the end.
    """
    k, unit = len(limits), common_unit(limits)
    if unit is None:
        return None
    apart = (limits / unit).astype(np.int8)
    joined = direct | direct.T
    done: list[int] = []
    labels, parts = np.zeros((1, k), dtype=np.int8), np.arange(k, dtype=np.int8)[None]
    for v in _order(joined):
        if done:
            labels, start = _grown(labels, apart, done, v)
            parts = parts[start]
        for u in done:
            if ordered or joined[u, v]:
                parts = _merged(labels, parts, apart, direct, ordered, u, v)
        done.append(v)
        rest = [w for w in range(k) if w not in done]
        if rest and not ordered:
            kept = _open(parts, done, [w for w in done if joined[w, rest].any()])
            labels, parts = labels[kept], parts[kept]
    labels = labels[(parts == parts[:, :1]).all(axis=1)]
    if len(labels) > most:
        raise too_many(most)
    labels = labels - labels.max(axis=1, keepdims=True)
    return np.asarray(labels[np.lexsort(labels.T[::-1])].astype(np.float64) * unit + 0.0)


def common_unit(limits: Array) -> int | None:
    """The largest whole number that all limits are small multiples of; None where there is none."""
    k = len(limits)
    if not 1 < k <= LARGEST or not np.isfinite(limits).all():
        return None
    whole = limits.astype(np.int64)
    unit = int(np.gcd.reduce(whole[~np.eye(k, dtype=bool)]))
    return unit if 0 < whole.max() <= FARTHEST * unit else None


class TooManyColumns(InvalidInput):
    """Raised where there are more extreme columns than can be listed."""


def too_many(most: int) -> TooManyColumns:
    """The error for more than `most` columns."""
    return TooManyColumns(f"policy graph: expected at most {most} extreme columns, got more; merge inputs")


def _grown(labels: Labels, apart: Labels, done: list[int], v: int) -> tuple[Labels, npt.NDArray[np.intp]]:
    """All labelings with the further input v, and the position of the labeling that each extends."""
    known = labels[:, done]
    high = (known + apart[v, done]).min(axis=1).astype(np.int64)
    low = (known - apart[done, v]).max(axis=1).astype(np.int64)
    count = np.maximum(high - low + 1, 0)
    total = int(count.sum())
    if total > PARTIAL:
        raise too_many(PARTIAL)
    start = np.repeat(np.arange(len(labels)), count)
    first = np.cumsum(count) - count
    made = labels[start]
    made[:, v] = low[start] + np.arange(total) - first[start]
    return made, start


def _merged(labels: Labels, parts: Labels, apart: Labels, direct: Direct, ordered: bool, u: int, v: int) -> Labels:
    """The parts after u and v are connected in the labelings where an equality between them holds."""
    rise = labels[:, v] - labels[:, u]
    equal = np.full(len(labels), False) if not ordered else rise == 0
    if direct[v, u]:
        equal |= rise == apart[v, u]
    if direct[u, v]:
        equal |= -rise == apart[u, v]
    one, two = parts[:, u, None], parts[:, v, None]
    less, more = np.minimum(one, two), np.maximum(one, two)
    return np.where(equal[:, None] & (parts == more), less, parts)


def _open(parts: Labels, done: list[int], open_: list[int]) -> npt.NDArray[np.bool_]:
    """The labelings whose every part has one of the inputs `open_`, which later inputs may be connected to."""
    kept = np.full(len(parts), True)
    for w in done:
        if w not in open_:
            kept &= (parts[:, open_] == parts[:, w, None]).any(axis=1)
    return kept


def _order(joined: Direct) -> list[int]:
    """An order in which few labeled inputs have neighbours that are not labeled yet. It affects only the time."""
    k = len(joined)
    best: tuple[float, list[int]] | None = None
    for start in range(k):
        order, cost = [start], 0.0
        while len(order) < k:
            rest = [v for v in range(k) if v not in order]
            after = {v: _opened(joined, [*order, v]) for v in rest}
            v = min(rest, key=lambda v: (after[v], -int(joined[v, order].sum())))
            order.append(v)
            cost += 2.0 ** after[v]
        if best is None or cost < best[0]:
            best = cost, order
    assert best is not None
    return best[1]


def _opened(joined: Direct, done: list[int]) -> int:
    rest = np.full(len(joined), True)
    rest[done] = False
    return int(joined[done][:, rest].any(axis=1).sum())
