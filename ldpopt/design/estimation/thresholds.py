"""Kernels of few rows -> the most that any staircase pattern gains, and the patterns that gain: thresholds of scores.

For a kernel K (r, k) and a column q, |K q|^2 / (q.p) is the largest 2 v.K q - |v|^2 q.p over v in R^r. So the gain of
every column is at most `level` exactly if, with c_x(v) = 2 v.K_x - (|v|^2 + level) p_x - lambda_x,

    G(v) = sum_x c_x(v) + (e^epsilon - 1) sum_x c_x(v)_+  <=  0      for every v,

and the best column for a given v is e^epsilon where c_x(v) > 0: a threshold of the score v.K_x. `Thresholds` proves it
by branch and bound over boxes of v. In a box around v, c_x lies between two numbers, as c_x(v + d) - c_x(v) is
2 d.(K_x - v p_x) - |d|^2 p_x, and c_+ below the chord between them, so that G is below a concave quadratic, whose
maximum over the box is explicit. Where all signs are settled it is G itself.

`Scarf` needs no search: K u_q is E_q of a score of mean 0 and second moment at most s, s the largest eigenvalue of
K diag(1/p) K^T, and E(T - r)_+ <= (sqrt(1 + r^2) - r) / 2 for such T [Scarf], so that |K u_q|^2 <= s sinh^2(epsilon/2).
Where p is even and K odd under a reversal of the inputs, T is symmetric, and tanh^2(epsilon/2) takes its place for
e^epsilon <= 3, else (e^epsilon - 1) / 8.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ldpopt.design.estimation.prices import Charges
from ldpopt.design.work import MAX_SEARCH_OPERATIONS
from ldpopt.numbers.enclosures import FLOAT, Enclosure
from ldpopt.numbers.rounding import ULP
from ldpopt.values.distribution import Array
from ldpopt.values.results import ByValue

CHUNK = 2**18  # Boxes that are bounded at a time, times the inputs of each: what memory holds.
SETTLED = 2.0**-30  # Directions whose signs change G by no more than this share of all prices are searched on one side.
BOXES = 2**24  # Boxes that a search may be asked to look at, in about a minute.
MAX_STEPS = 60  # The most steps of a climb from threshold to threshold: each raises the gain, and few are enough.
Members = npt.NDArray[np.bool_]


def cost_of(size: float) -> float:
    """The operations for a box, about, with a kernel of `size` numbers."""
    return 100.0 + 0.8 * size


@dataclass(frozen=True, eq=False)
class Thresholds(ByValue):
    """level : no column gains more; a number of at least 0, which is checked by branch and bound over directions.
    boxes : how many the search may take, where that is more than a proof takes without being asked.
    """

    level: float
    boxes: int = 0
    words: ClassVar[str] = "branch and bound over the directions of"

    def work(self, size: float) -> float:
        """The operations of the search, for a kernel of `size` numbers."""
        asked = isinstance(self.boxes, int) and 0 < self.boxes <= BOXES
        return max(MAX_SEARCH_OPERATIONS, self.boxes * cost_of(size)) if asked else MAX_SEARCH_OPERATIONS

    def most(self, charges: Charges, epsilon: Enclosure) -> float:
        """The level, where the search shows that no pattern gains more; inf otherwise."""
        unpaid = self.unpaid(charges, epsilon)
        return float(self.level) if unpaid is not None and not len(unpaid) else math.inf

    def unpaid(self, charges: Charges, epsilon: Enclosure) -> Array | None:
        """(n, r) directions in which patterns seem to gain more than the level: none if it is shown that none does;
        None where the search ends before.
        """
        level = float(self.level)
        if charges.pairs.any() or not 0 <= level < math.inf:
            return None
        form = _Form.of(charges, float(FLOAT.of(epsilon.exp()).upper), level)
        return None if form is None else form.above(self.work(form.a.size) / cost_of(form.a.size))


@dataclass(frozen=True, eq=False)
class Scarf(ByValue):
    """The bound by the second moment of the score; there are no numbers to it."""

    words: ClassVar[str] = "the second moment of the score for"

    def most(self, charges: Charges, epsilon: Enclosure) -> float:
        """No pattern gains more: s times the bound for scores of second moment 1, less what every column pays."""
        p, arithmetic = charges.prior, charges.arithmetic
        if charges.pairs.any() or not float(np.min(p.lower)) > 0:
            return math.inf
        # |M| of the symmetric matrix K diag(1/p) K^T is at most the largest sum of absolute values of a row.
        moments = (charges.kernel / p[None, :]) @ charges.kernel.T
        with np.errstate(over="ignore"):  # what overflows proves nothing
            rows = np.maximum(np.abs(FLOAT.of(moments).lower), np.abs(FLOAT.of(moments).upper)).sum(axis=1)
        second = arithmetic.of(float(rows.max() * (1 + 2 * len(rows) * ULP)))
        square = (epsilon / 2).exp()
        share = ((square - 1 / square) / 2).square()
        # Whether the law is even, and every score odd, when the order of the inputs is reversed.
        kernel, low, high = charges.kernel, p.lower, p.upper
        even = np.array_equal(low, low[::-1]) and np.array_equal(high, high[::-1])
        if even and np.array_equal(kernel.lower, -kernel.upper[:, ::-1]):
            ratio = epsilon.exp()
            three = float(FLOAT.of(ratio).upper) <= 3
            share = ((ratio - 1) / (ratio + 1)).square() if three else (ratio - 1) / 8
        paid = arithmetic.of(charges.rows) / p
        return float((second * share - paid.min()).upper)


@dataclass(frozen=True, eq=False)
class _Form:
    """G in floats: a (r, k) the kernel, p (k,), paid = level p + lambda (k,), ratio >= e^epsilon. low, high : (r,) a
    box with K u_q for every column q. wrong : above what rounding changes of G anywhere in it.
    """

    a: Array
    p: Array
    paid: Array
    ratio: float
    low: Array
    high: Array
    wrong: float

    @classmethod
    def of(cls, charges: Charges, ratio: float, level: float) -> _Form | None:
        kernel, prior = FLOAT.of(charges.kernel), FLOAT.of(charges.prior)
        a, p = np.asarray(kernel.midpoint), np.asarray(prior.midpoint)
        if not (np.isfinite(a).all() and np.isfinite(charges.rows).all() and p.min() > 0 and math.isfinite(ratio)):
            return None
        high, low = _largest(a, p, ratio), -_largest(-a, p, ratio)
        wide = 1e-6 * (np.abs(high) + np.abs(low)).max()
        low, high = low - wide, high + wide
        reach = np.maximum(np.abs(low), np.abs(high))
        square = float(reach @ reach) + level
        paid = level * p + charges.rows
        sizes = 2 * reach @ np.abs(a) + square * p + np.abs(charges.rows)
        # Ends of the kernel and the law beside their middles, then rounding: c_x and its ends are sums of 4 r terms,
        # which are at most 4 times these sizes, and so are the ends of chords; sums over the inputs have 5 k terms.
        off = 2 * reach @ np.asarray(kernel.upper - kernel.lower) + square * np.asarray(prior.upper - prior.lower)
        wrong = ratio * float(off.sum() + 8 * (len(p) + 8 * len(a) + 64) * ULP * sizes.sum())
        for own in range(len(a)):
            change = ratio * _mirrored(a, p, paid, own, reach, square)
            if change <= SETTLED * np.abs(charges.rows).sum():
                low[own], wrong = 0.0, wrong + change
        return cls(a, p, paid, ratio, low, high, wrong) if math.isfinite(wrong) else None

    def above(self, most: float) -> Array | None:
        """(n, r) where G may be above 0, for some boxes with settled signs; none if G <= 0 everywhere; None where that
        takes about `most` boxes or more.
        """
        waiting, boxes = [(self.low[None], self.high[None])], 0
        chunk = max(1, CHUNK // len(self.p))
        while waiting:
            low, high = waiting.pop()
            if len(low) > chunk:
                waiting.append((low[chunk:], high[chunk:]))
                low, high = low[:chunk], high[:chunk]
            boxes += len(low)
            bound, settled, v, spread = self._bounds(low, high)
            still = ~(bound <= -self.wrong)
            if (still & settled).any():
                return v[still & settled]
            if boxes > most:
                return None
            if still.any():
                low, high = low[still], high[still]
                box, side = np.arange(len(low)), np.argmax((high - low) ** 2 * spread[still], axis=1)
                middle = (low[box, side] + high[box, side]) / 2
                left, right = high.copy(), low.copy()
                left[box, side], right[box, side] = middle, middle
                waiting.append((np.vstack([low, right]), np.vstack([left, high])))
        return np.zeros((0, len(self.a)))

    def _bounds(self, low: Array, high: Array) -> tuple[Array, Members, Array, Array]:
        """(n,) above G on each box, but for rounding; whether all signs are settled there; (n, r) where it is largest;
        and by how much the c_x of open signs change along each side, squared.
        """
        centre, half = (low + high) / 2, (high - low) / 2
        middle = 2 * centre @ self.a - (centre**2).sum(axis=1)[:, None] * self.p - self.paid
        reach = np.zeros(middle.shape)
        for own, coordinate, by in zip(self.a, centre.T, half.T, strict=True):
            reach += np.abs(own - coordinate[:, None] * self.p) * (2 * by[:, None])
        most, least = middle + reach, middle - reach - (half**2).sum(axis=1)[:, None] * self.p
        open_ = (least < 0) & (most > 0)
        with np.errstate(all="ignore"):
            slope = np.where(open_, most / (most - least), np.where(least >= 0, 1.0, 0.0))
        weight = 1 + (self.ratio - 1) * slope
        offset = (self.ratio - 1) * np.where(open_, -slope * least, 0.0).sum(axis=1)
        linear, mass = weight @ self.a.T, (weight @ self.p)[:, None]
        v = np.clip(linear / mass, low, high)
        bound = (v * (2 * linear - v * mass)).sum(axis=1) - weight @ self.paid + offset
        free = open_.astype(np.float64)
        spread = free @ (self.a**2).T - 2 * centre * (free @ (self.a * self.p).T)
        spread += centre**2 * (free @ self.p**2)[:, None]
        return bound, np.asarray(~open_.any(axis=1)), v, spread


def _mirrored(a: Array, p: Array, paid: Array, own: int, reach: Array, square: float) -> float:
    """Above what G changes if v[own] changes its sign, sum_x |c_x|'s change, for inputs matched as well as may be."""
    mirror = a.copy()
    mirror[own] = -mirror[own]
    there, back = np.vstack([p, paid, a]), np.vstack([p, paid, mirror])
    unit = np.abs(there).max(axis=1, keepdims=True) * 1e-7 + 1e-300
    first, second = np.lexsort(np.round(there / unit)), np.lexsort(np.round(back / unit))
    scale = np.concatenate([[square, 1.0], 2 * reach])
    return float((scale[:, None] * np.abs(there[:, first] - back[:, second])).sum())


def _largest(a: Array, p: Array, ratio: float) -> Array:
    """(r,) the largest a.q / p.q over columns q, for each row of a (r, k)."""
    order = np.argsort(-a / p, axis=1)
    above = a.sum(axis=1)[:, None] + (ratio - 1) * np.cumsum(np.take_along_axis(a, order, 1), axis=1)
    mass = p.sum() + (ratio - 1) * np.cumsum(p[order], axis=1)
    return np.asarray((above / mass).max(axis=1))


def climb(kernel: Array, rows: Array, prior: Array, ratio: float, starts: Array) -> tuple[Members, Array]:
    """Sets (n, k) and their gains (n,), from directions `starts` (n, r): thresholds, then their own directions, on."""
    v, gains = starts, np.full(len(starts), -np.inf)
    sets = np.zeros((len(starts), len(prior)), dtype=bool)
    active = np.arange(len(starts))
    for _ in range(MAX_STEPS):
        score = 2 * v[active] @ kernel - rows
        order = np.argsort(-score / prior, axis=1)
        earned = score.sum(axis=1)[:, None] + (ratio - 1) * np.cumsum(np.take_along_axis(score, order, 1), axis=1)
        cut = np.argmax(earned / (1 + (ratio - 1) * np.cumsum(prior[order], axis=1)), axis=1)
        inside = np.argsort(order, axis=1) <= cut[:, None]
        columns = np.where(inside, ratio, 1.0)
        mass = columns @ prior
        turned = columns @ kernel.T / mass[:, None]
        gain = (turned**2).sum(axis=1) - columns @ rows / mass
        better = gain > gains[active] + 1e-14 * np.abs(gain)
        active = active[better]
        v[active], gains[active], sets[active] = turned[better], gain[better], inside[better]
        if not len(active):
            break
    return sets, gains
