"""Kernels of few rows -> a bound on the gain of every pattern, and the patterns that gain: thresholds of scores.

For a kernel K (r, k) and a column q, |K q|^2 / (q.p) is the largest 2 v.K q - |v|^2 q.p over v in R^r. So the gain of
every column is at most `level` exactly if, with c_x(v) = 2 v.K_x - (|v|^2 + level) p_x - lambda_x,

    G(v) = sum_x c_x(v) + (e^epsilon - 1) sum_x c_x(v)_+  <=  0      for every v,

and the best column for a given v is e^epsilon where c_x(v) > 0: a threshold of the score v.K_x. `Thresholds` proves it
by branch and bound over boxes of v. In a box around v, c_x lies between two numbers, as c_x(v + d) - c_x(v) is 2 d.(K_x
- v p_x) - |d|^2 p_x. There c_+ lies below the chord between them. So G is below a concave quadratic, whose maximum over
the box is explicit. Where all signs are decided it is G itself.

`Scarf` needs no search. Let s be the largest eigenvalue of K diag(1/p) K^T. K u_q is E_q of a score of mean 0 and
second moment at most s, and E(T - r)_+ <= (sqrt(1 + r^2) - r) / 2 for such T [Scarf]. So
|K u_q|^2 <= s sinh^2(epsilon/2).
Where p is uniform and K odd under a reversal of the inputs, T is symmetric. Then sinh^2(epsilon/2) is replaced by
tanh^2(epsilon/2) for e^epsilon <= 3, else by (e^epsilon - 1) / 8.
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

NUMBERS_PER_BATCH = 2**18  # Boxes times inputs, limited by memory.
MIRROR_RTOL = 2.0**-30  # Directions whose sign changes G less, relative to all prices, are searched on one side.
MAX_SEARCH_BOXES = 2**24  # Boxes that a search may be allowed, in about a minute.
MAX_CLIMB_STEPS = 60  # From threshold to threshold: each step raises the gain, and few are enough.
Members = npt.NDArray[np.bool_]


def operations_per_box(size: float) -> float:
    """Estimate the operations for a box, with a kernel of `size` numbers."""
    return 100.0 + 0.8 * size


@dataclass(frozen=True, eq=False)
class Thresholds(ByValue):
    """The numbers of a search over directions.

    - `level` : no column gains more. It is nonnegative, and checked by branch and bound over directions.
    - `boxes` : the boxes that the search may examine, if that is more than a proof examines by default.
    """

    level: float
    boxes: int = 0
    words: ClassVar[str] = "branch and bound over the directions of"

    def work(self, size: float) -> float:
        """Bound the operations of the search, for a kernel of `size` numbers."""
        is_valid = isinstance(self.boxes, int) and 0 < self.boxes <= MAX_SEARCH_BOXES
        return max(MAX_SEARCH_OPERATIONS, self.boxes * operations_per_box(size)) if is_valid else MAX_SEARCH_OPERATIONS

    def gain_bound(self, charges: Charges, epsilon: Enclosure) -> float:
        """Return the level, if the search proves that no pattern gains more; inf otherwise."""
        directions = self.unpaid(charges, epsilon)
        return float(self.level) if directions is not None and not len(directions) else math.inf

    def unpaid(self, charges: Charges, epsilon: Enclosure) -> Array | None:
        """Find (n, r) directions where patterns seem to gain more than the level.

        There are none if it is proved that no pattern does. It is None if the search ends before.
        """
        level = float(self.level)
        if charges.pairs.any() or not 0 <= level < math.inf:
            return None
        form = _Form.from_charges(charges, float(FLOAT.of(epsilon.exp()).upper), level)
        return None if form is None else form.find_positive(self.work(form.a.size) / operations_per_box(form.a.size))


@dataclass(frozen=True, eq=False)
class Scarf(ByValue):
    """The bound by the second moment of the score; it has no numbers."""

    words: ClassVar[str] = "the second moment of the score for"

    def gain_bound(self, charges: Charges, epsilon: Enclosure) -> float:
        """Bound the gain of every pattern.

        It is s times the bound for scores of second moment 1, less the smallest price of a column.
        """
        p, arithmetic = charges.prior, charges.arithmetic
        if charges.pairs.any() or not float(np.min(p.lower)) > 0:
            return math.inf
        # |M| of the symmetric matrix K diag(1/p) K^T is at most the largest sum of absolute values of a row.
        moments = (charges.kernel / p[None, :]) @ charges.kernel.T
        with np.errstate(over="ignore"):  # An overflow proves nothing.
            rows = np.maximum(np.abs(FLOAT.of(moments).lower), np.abs(FLOAT.of(moments).upper)).sum(axis=1)
        second = arithmetic.of(float(rows.max() * (1 + 2 * len(rows) * ULP)))
        square = (epsilon / 2).exp()
        fraction = ((square - 1 / square) / 2).square()
        # If the order of the inputs is reversed, the distribution may be even, and every score odd.
        kernel, low, high = charges.kernel, p.lower, p.upper
        is_uniform = np.array_equal(low, low[::-1]) and np.array_equal(high, high[::-1])
        if is_uniform and np.array_equal(kernel.lower, -kernel.upper[:, ::-1]):
            ratio = epsilon.exp()
            is_at_most_three = float(FLOAT.of(ratio).upper) <= 3
            fraction = ((ratio - 1) / (ratio + 1)).square() if is_at_most_three else (ratio - 1) / 8
        price = arithmetic.of(charges.rows) / p
        return float((second * fraction - price.min()).upper)


@dataclass(frozen=True, eq=False)
class _Form:
    """The function G in floats.

    - `a` : (r, k) the kernel.
    - `p` : (k,).
    - `prices` : level p + lambda (k,).
    - `ratio` : at least e^epsilon.
    - `low`, `high` : (r,) a box with K u_q for every column q.
    - `rounding_error` : a bound on the rounding error of G anywhere in it.
    """

    a: Array
    p: Array
    prices: Array
    ratio: float
    low: Array
    high: Array
    rounding_error: float

    @classmethod
    def from_charges(cls, charges: Charges, ratio: float, level: float) -> _Form | None:
        kernel, prior = FLOAT.of(charges.kernel), FLOAT.of(charges.prior)
        a, p = np.asarray(kernel.midpoint), np.asarray(prior.midpoint)
        if not (np.isfinite(a).all() and np.isfinite(charges.rows).all() and p.min() > 0 and math.isfinite(ratio)):
            return None
        high, low = _largest_ratios(a, p, ratio), -_largest_ratios(-a, p, ratio)
        margin = 1e-6 * (np.abs(high) + np.abs(low)).max()
        low, high = low - margin, high + margin
        extent = np.maximum(np.abs(low), np.abs(high))
        square = float(extent @ extent) + level
        prices = level * p + charges.rows
        sizes = 2 * extent @ np.abs(a) + square * p + np.abs(charges.rows)
        # Half-widths of the kernel and the distribution, then rounding: c_x and its bounds are sums of 4 r terms,
        # which are at most 4 times these sizes, and so are the ends of chords; sums over the inputs have 5 k terms.
        enclosure_error = 2 * extent @ np.asarray(kernel.upper - kernel.lower) + square * np.asarray(
            prior.upper - prior.lower
        )
        error = ratio * float(enclosure_error.sum() + 8 * (len(p) + 8 * len(a) + 64) * ULP * sizes.sum())
        for coordinate in range(len(a)):
            change = ratio * _mirror_error(a, p, prices, coordinate, extent, square)
            if change <= MIRROR_RTOL * np.abs(charges.rows).sum():
                low[coordinate], error = 0.0, error + change
        return cls(a, p, prices, ratio, low, high, error) if math.isfinite(error) else None

    def find_positive(self, max_boxes: float) -> Array | None:
        """Find (n, r) directions where G may be above 0, for some boxes with decided signs.

        There are none if G <= 0 everywhere. It is None if that takes about `max_boxes` boxes or more.
        """
        open_boxes, boxes = [(self.low[None], self.high[None])], 0
        chunk = max(1, NUMBERS_PER_BATCH // len(self.p))
        while open_boxes:
            low, high = open_boxes.pop()
            if len(low) > chunk:
                open_boxes.append((low[chunk:], high[chunk:]))
                low, high = low[:chunk], high[:chunk]
            boxes += len(low)
            bound, is_settled, v, spread = self._bounds(low, high)
            is_open = ~(bound <= -self.rounding_error)
            if (is_open & is_settled).any():
                return v[is_open & is_settled]
            if boxes > max_boxes:
                return None
            if is_open.any():
                low, high = low[is_open], high[is_open]
                box, side = np.arange(len(low)), np.argmax((high - low) ** 2 * spread[is_open], axis=1)
                middle = (low[box, side] + high[box, side]) / 2
                high_part, low_part = high.copy(), low.copy()
                high_part[box, side], low_part[box, side] = middle, middle
                open_boxes.append((np.vstack([low, low_part]), np.vstack([high_part, high])))
        return np.zeros((0, len(self.a)))

    def _bounds(self, low: Array, high: Array) -> tuple[Array, Members, Array, Array]:
        """Bound G on each box, (n,), up to rounding.

        Also returns whether all signs are decided there, (n, r) the maximizer, and the squared change of the c_x of
        open signs along each side.
        """
        centre, half = (low + high) / 2, (high - low) / 2
        middle = 2 * centre @ self.a - (centre**2).sum(axis=1)[:, None] * self.p - self.prices
        reach = np.zeros(middle.shape)
        for row, coordinate, half_width in zip(self.a, centre.T, half.T, strict=True):
            reach += np.abs(row - coordinate[:, None] * self.p) * (2 * half_width[:, None])
        upper, lower = middle + reach, middle - reach - (half**2).sum(axis=1)[:, None] * self.p
        is_undecided = (lower < 0) & (upper > 0)
        with np.errstate(all="ignore"):
            slope = np.where(is_undecided, upper / (upper - lower), np.where(lower >= 0, 1.0, 0.0))
        weight = 1 + (self.ratio - 1) * slope
        offset = (self.ratio - 1) * np.where(is_undecided, -slope * lower, 0.0).sum(axis=1)
        linear, mass = weight @ self.a.T, (weight @ self.p)[:, None]
        v = np.clip(linear / mass, low, high)
        bound = (v * (2 * linear - v * mass)).sum(axis=1) - weight @ self.prices + offset
        undecided_mask = is_undecided.astype(np.float64)
        spread = undecided_mask @ (self.a**2).T - 2 * centre * (undecided_mask @ (self.a * self.p).T)
        spread += centre**2 * (undecided_mask @ self.p**2)[:, None]
        return bound, np.asarray(~is_undecided.any(axis=1)), v, spread


def _mirror_error(a: Array, p: Array, prices: Array, coordinate: int, extent: Array, square: float) -> float:
    """Bound the change of G if v[coordinate] changes its sign.

    It is the change of sum_x |c_x|, for inputs that are matched as well as possible.
    """
    mirror = a.copy()
    mirror[coordinate] = -mirror[coordinate]
    inputs, mirrored_inputs = np.vstack([p, prices, a]), np.vstack([p, prices, mirror])
    unit = np.abs(inputs).max(axis=1, keepdims=True) * 1e-7 + 1e-300
    first, second = np.lexsort(np.round(inputs / unit)), np.lexsort(np.round(mirrored_inputs / unit))
    scale = np.concatenate([[square, 1.0], 2 * extent])
    return float((scale[:, None] * np.abs(inputs[:, first] - mirrored_inputs[:, second])).sum())


def _largest_ratios(a: Array, p: Array, ratio: float) -> Array:
    """Compute (r,) the largest a.q / p.q over columns q, for each row of a (r, k)."""
    order = np.argsort(-a / p, axis=1)
    numerators = a.sum(axis=1)[:, None] + (ratio - 1) * np.cumsum(np.take_along_axis(a, order, 1), axis=1)
    mass = p.sum() + (ratio - 1) * np.cumsum(p[order], axis=1)
    return np.asarray((numerators / mass).max(axis=1))


def climb(kernel: Array, rows: Array, prior: Array, ratio: float, starts: Array) -> tuple[Members, Array]:
    """Find sets by climbing from directions `starts` (n, r) to thresholds and on.

    Returns the sets (n, k) and their gains (n,).
    """
    v, gains = starts, np.full(len(starts), -np.inf)
    sets = np.zeros((len(starts), len(prior)), dtype=bool)
    active = np.arange(len(starts))
    for _ in range(MAX_CLIMB_STEPS):
        score = 2 * v[active] @ kernel - rows
        order = np.argsort(-score / prior, axis=1)
        totals = score.sum(axis=1)[:, None] + (ratio - 1) * np.cumsum(np.take_along_axis(score, order, 1), axis=1)
        last_member = np.argmax(totals / (1 + (ratio - 1) * np.cumsum(prior[order], axis=1)), axis=1)
        members = np.argsort(order, axis=1) <= last_member[:, None]
        columns = np.where(members, ratio, 1.0)
        mass = columns @ prior
        new_directions = columns @ kernel.T / mass[:, None]
        gain = (new_directions**2).sum(axis=1) - columns @ rows / mass
        is_better = gain > gains[active] + 1e-14 * np.abs(gain)
        active = active[is_better]
        v[active], gains[active], sets[active] = new_directions[is_better], gain[is_better], members[is_better]
        if not len(active):
            break
    return sets, gains
