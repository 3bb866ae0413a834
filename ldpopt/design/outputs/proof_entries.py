"""Certificates of given outputs, for any sum over columns: a tree of boxes of entries.

For row multipliers lambda, prices nu >= 0 of the pairs of inputs and weights w of the criteria, every channel within
the constraints keeps at most

    sum lambda + eta sum nu + sum_y max over c of  sum_j w_j mu_j(c) - lambda.c - sum nu[x, x'] (c_x - c_x')_+ ,

where eta is the cap on total variation that the constraints imply, and c any column that output y may have. In a box it
has entries between the ends of the box, no two of them differ by more than eta, and under pure LDP none is larger than
e^epsilon times another. Among the columns whose entries have one order, a chamber, the prices are linear and the
criteria convex, so that the largest is at a vertex. There, entries that are equal, or as far apart as a cap allows,
hang together, and each such group has an entry at an end of its own interval, or meets both caps: otherwise it could be
moved both ways. So every entry is an end of an entry's interval, which that entry takes, or tied to it by a cap, or
eta/(e^epsilon - 1) or eta more. These columns are listed, and others that are in the box and within the caps as well,
up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Channel, Label
from ldpopt.design.constraints.base import AlphabetConstraint, Constraint, variation_cap
from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.kernel.listed import finite_size
from ldpopt.design.kernel.numbers import Unproved, leaves_of, mixture, pair_prices, position, real_array, require
from ldpopt.design.outputs.proof import Limits, Split
from ldpopt.design.utilities.base import ColumnUtility
from ldpopt.design.work import Work, size
from ldpopt.numbers.enclosures import FLOAT, Arithmetic, Enclosure
from ldpopt.numbers.rounding import exact_sum
from ldpopt.values.distribution import Array, Index
from ldpopt.values.results import ByValue

SLACK = 2.0**-50  # What is computed of two entries and caps is off by less, of its size
LARGE, SMALL = 1e9, 2.0**-500  # Larger caps on ratios are left out; smaller caps, and ends of intervals, are not used


@dataclass(frozen=True, eq=False)
class EntrySplit(Split):
    """A node with two branches: the entry of an `input` and an output is below `cut` (node `left`) or above."""

    input: int


@dataclass(frozen=True, eq=False)
class BoxPrices(ByValue):
    """The multipliers of one box. rows : (k,) of row sums. pairs : (k, k) prices >= 0 of the cap on total variation,
    whose diagonal is ignored. weights : (criteria,) of the criteria.
    """

    rows: Array
    pairs: Array
    weights: Array


class ColumnLimit(Unproved):
    """More columns would be looked at than were allowed."""


@dataclass(frozen=True, eq=False)
class BoxColumns:
    """The columns of one box. values : (n, k) in floats. base, rise : the columns as base (n,) + rise (k, n), enclosed.
    worth : (criteria, n) their criteria. zero : whether the column of zeros is in the box; it is not listed.
    """

    values: Array
    base: Enclosure
    rise: Enclosure
    worth: Enclosure
    zero: bool


@dataclass(eq=False)
class Chambers:
    """Boxes (2, m, k) of the entries of m columns, and the columns that decide on each. root : the box of all entries
    that the constraints allow. groups : outputs that may be exchanged, which are taken in the order of the entries of
    the first input. eta, ratio : the most that two entries of a column differ by, and what the larger may be of the
    smaller. left : how many columns, begun ones included, may still be looked at.
    """

    utility: Any
    eta: float
    ratio: float
    root: Array
    groups: tuple[Index, ...]
    arithmetic: Arithmetic
    left: int
    known: dict[bytes, BoxColumns] = field(default_factory=dict)

    @classmethod
    def of(
        cls, utility: Any, constraints: Sequence[Constraint], inputs: Sequence[Label], left: int,
        arithmetic: Arithmetic,
    ) -> Chambers:  # fmt: skip
        """The boxes of a problem. Raises `Unproved` where no constraint fixes the outputs."""
        # The boxes are the same in every arithmetic. Rounded up, the caps allow no fewer channels.
        limits = Limits.of(constraints, inputs, FLOAT)
        allowed = limits.allowed(len(inputs))
        ratio = math.inf if limits.spread is None else float(limits.spread.exp().upper)
        eta = max(float(variation_cap(constraints, FLOAT).upper), SMALL)
        if limits.spread is not None:  # an output that is impossible for one input never occurs
            allowed = allowed * allowed.all(axis=1, keepdims=True)
        root = np.stack([np.zeros(allowed.shape), allowed * 1.0])
        return cls(utility, eta, ratio if ratio < LARGE else math.inf, root, limits.exchangeable, arithmetic, left)

    @property
    def only(self) -> Array | None:
        """The channel (k, m) where there is one alone, as each input has a single output; else None."""
        allowed = self.root[1]
        return np.asarray(allowed.T) if (allowed.sum(axis=0) == 1).all() else None

    def halves(self, box: Array, node: EntrySplit) -> tuple[Array, Array]:
        """The parts of `box` with the node's entry below and above its cut."""
        place = position(node.output, box.shape[1], "an output"), position(node.input, box.shape[2], "an input")
        cut, low, high = float(real_array(node.cut, (), "the cut of a box")), box.copy(), box.copy()
        cut = cut if abs(cut) >= SMALL else 0.0
        low[1][place], high[0][place] = min(cut, box[1][place]), max(cut, box[0][place])
        for half in (low, high):
            for places in self.groups:
                half[0, places, 0] = np.maximum.accumulate(half[0, places, 0])
                half[1, places, 0] = np.minimum.accumulate(half[1, places, 0][::-1])[::-1]
        return low, high

    def empty(self, box: Array) -> bool:
        """Whether no channel has its columns in the box."""
        (low, high), slack = box.sum(axis=1), len(box[0]) * SLACK
        if (box[0] > box[1]).any() or (high < 1 - slack).any() or (low > 1 + slack).any():
            return True
        return any(not (own := self.columns(box[:, y])).zero and not len(own.values) for y in range(box.shape[1]))

    def columns(self, box: Array) -> BoxColumns:
        """The columns of a box (2, k). Raises `ColumnLimit`."""
        key = box.tobytes()
        if key not in self.known:
            values, rounded = self._vertices(*box)
            some, of = values.any(axis=1), self.arithmetic
            values, rounded = values[some], rounded[some]
            off = np.where(rounded, SLACK * values, 0.0)
            base = (values - off).min(axis=1, initial=1.0)
            rise = of.between(values - off, values + off).T - base
            worth = self.utility.enclosed_columns(of.of(base), rise)
            self.known[key] = BoxColumns(values, of.of(base), rise, worth, not some.all())
        return self.known[key]

    def _tied(self, entries: Array) -> list[Array]:
        """The entries, and what a cap that is met with equality may make others of the same column."""
        tied = [entries]
        if self.eta < 1:
            tied += [entries + self.eta, entries - self.eta]
        if self.ratio < math.inf:
            tied += [entries * self.ratio, entries / self.ratio]
        return tied

    def _vertices(self, low: Array, high: Array) -> tuple[Array, npt.NDArray[np.bool_]]:
        """(n, k) the entries of the columns, and whether each was rounded."""
        both = self.eta / (self.ratio - 1) if self.ratio > 1 else 0.0  # of a column at both caps, the least entry
        alone = np.array([both, both * self.ratio] if 0 < both < 1 and self.eta < 1 else [])
        ends, *others = self._tied(np.unique([low, high]))
        rounded = np.concatenate([alone, *others])
        values = np.unique(np.append(ends, rounded))
        values = values[(values >= 0) & (values <= 1 + SLACK)]
        columns = np.zeros((1, 0))
        order = np.argsort(high - low, kind="stable")  # what only narrow intervals hold is left out early
        for count, x in enumerate(order, 1):
            choice = values[(values >= low[x] - SLACK) & (values <= high[x] + SLACK)]
            self.looked_at(len(columns) * len(choice))
            columns = np.column_stack([np.repeat(columns, len(choice), axis=0), np.tile(choice, len(columns))])
            least, most = columns.min(axis=1), columns.max(axis=1)
            within = most - least <= self.eta + SLACK
            if self.ratio < math.inf:
                within &= most <= least * self.ratio * (1 + 2 * SLACK)
            columns = columns[within]
            # Whether each entry is the end of an interval which this column or a later entry takes, or tied to one.
            first, later = order[:count], order[count:]
            near = np.isin(columns, np.concatenate([alone, *self._tied(np.append(low[later], high[later]))]))
            held = (columns == low[first]) | (columns == high[first])
            for tied in self._tied(np.where(held, columns, np.nan)):
                for other in tied.T:
                    near |= columns == other[:, None]
            columns = columns[near.all(axis=1)]
        columns = columns[:, np.argsort(order)]
        return columns, np.isin(columns, rounded)

    def looked_at(self, columns: int) -> None:
        """Raises `ColumnLimit` where so many more are too many."""
        self.left -= columns
        if self.left < 0:
            raise ColumnLimit("more columns would have to be looked at than the certificate says")

    def bound(self, prices: BoxPrices, box: Array) -> Enclosure:
        """The bound that the numbers of a leaf prove on its box."""
        of, k = self.arithmetic, box.shape[2]
        rows, pairs = real_array(prices.rows, (k,), "rows"), pair_prices(prices.pairs, k, "pairs")
        left, right = np.nonzero(pairs)
        charged, total = of.of(pairs[left, right]), of.of(exact_sum(rows))
        bound = total + charged.sum() * self.eta
        for y in range(box.shape[1]):
            own = self.columns(box[:, y])
            self.looked_at(len(own.values))
            shares = mixture(prices.weights, (own.worth.shape[0],), "the weights of a box", "the criteria", of)
            paid = own.base * total + of.of(rows) @ own.rise
            if len(left):
                paid = paid + charged @ (own.rise[left] - own.rise[right]).positive()
            gains = of.concatenate([shares @ own.worth - paid, of.zeros(int(own.zero))])
            bound = bound + gains.max()
        return bound


@dataclass(frozen=True, eq=False, repr=False)
class ChamberDual(Certificate):
    """Multipliers for every box of a tree of boxes, which cover all entries that the columns of given outputs can have.

    nodes : the tree, from its root at number 0; a node is an `EntrySplit`, or the `BoxPrices` of a leaf. columns : how
    many columns are looked at, each time that one is; more are not begun.
    """

    proves = ColumnUtility
    nodes: tuple[EntrySplit | BoxPrices, ...]
    columns: int

    @property
    def argument(self) -> str:
        """Why the bound holds."""
        leaves = sum(isinstance(node, BoxPrices) for node in self.nodes) if isinstance(self.nodes, tuple) else 0
        return f"weak duality on {leaves} boxes of the channel's entries"

    def work(self) -> Work:
        """Every column, and each node of the tree."""
        k, nodes = self.answers, len(self.nodes) if isinstance(self.nodes, tuple) else 0
        columns = float(self.columns) if isinstance(self.columns, int) else 0.0
        each = 40.0 * (size(self.utility) // max(k, 1)) + 4.0 * k * k
        outputs = max([part.outputs(k) for part in self.constraints if isinstance(part, AlphabetConstraint)], default=1)
        return Work.on(columns, each, 4 * columns) + Work.on(float(nodes) * outputs, 1e5, k).in_floats

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """The largest of the bounds of all boxes; the value of the only channel, where there is no other."""
        finite_size(self.utility)
        left = position(self.columns, 2**53 + 1, "the number of columns")
        boxes = Chambers.of(self.utility, self.constraints, self.utility.labels, left, arithmetic)
        if boxes.only is not None:
            whole: Enclosure = self.utility.enclosed_value(Channel(boxes.only), arithmetic)
            return whole
        leaves = leaves_of(self.nodes, boxes, EntrySplit, BoxPrices)
        require(leaves, "no box holds a channel")
        return arithmetic.stack([boxes.bound(prices, box) for prices, box in leaves]).max()
