"""Certificates of given outputs: a tree of boxes of likelihood ratios, with multipliers for every box [FS].

First a linear utility (`Leaf`). For a matrix Q of shape (k, m) with rows that sum to one, row multipliers lambda, and
prices u_i of the constraints with u_i . Q <= charge_i for all matrices within them,

    sum_y c_y . Q[:, y]  <=  sum lambda + charges + max over Q of sum_y (c_y - lambda - sum_i u_i)_y . Q[:, y] .

The last maximum is bounded in two ways, and the better bound counts. In the first, each row puts its whole mass on its
best output. In the second, under pure LDP, the columns have entries in [a, e^epsilon a], for some a that sum to at
most one.

A box has an interval for the likelihood ratio of every output. In it the divergence lies below its chords, which are
linear in the columns, and weak duality bounds these for any multipliers. The intervals are for the logarithm of the
ratio a/b of an output q, where a = P0.q and b = P1.q. On this scale neither hypotheses that nearly agree nor ratios of
e^100 lose digits.

Certificates of given outputs, for any sum over columns: a tree of boxes of entries.

For row multipliers lambda, prices nu >= 0 of the pairs of inputs and weights w of the criteria, every channel within
the constraints keeps at most

    sum lambda + eta sum nu + sum_y max over c of  sum_j w_j mu_j(c) - lambda.c - sum nu[x, x'] (c_x - c_x')_+ ,

where eta is the cap on total variation that the constraints imply, and c any column that output y may have. In a box it
has entries between the ends of the box, and no two of them differ by more than eta. Under pure LDP none is larger than
e^epsilon times another. Among the columns whose entries have one order, a chamber, the prices are linear and the
criteria convex, so that the largest is at a vertex. There, entries that are equal, or as far apart as a cap allows,
form a group. Each group has an entry at an end of the entry's interval, or meets both caps. Otherwise it could be moved
both ways. So every entry is an end of an entry's interval, which that entry takes, or tied to it by a cap, or
eta/(e^epsilon - 1) or eta more. These columns are listed, and others that are in the box and within the caps as well,
up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Channel, Label
from ldpopt.design.constraints.base import (
    AlphabetConstraint,
    Constraint,
    least_spread,
    outputs_of,
    pairs_of,
    parts,
    symmetric,
    variation_cap,
)  # fmt: skip
from ldpopt.design.constraints.terms import Term
from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.kernel.hypotheses import Classes, Planes, Rays, log_ratios
from ldpopt.design.kernel.listed import finite_size
from ldpopt.design.kernel.numbers import (
    Unproved,
    expect,
    expect_each,
    leaves_of,
    mixture,
    nonnegative_array,
    pair_prices,
    position,
    positions,
    real_array,
    require,
)  # fmt: skip
from ldpopt.design.ratios.proof import TermMultiplier
from ldpopt.design.utilities.base import ColumnUtility
from ldpopt.design.utilities.divergence import Divergence
from ldpopt.design.utilities.laws import LawPair
from ldpopt.design.work import Work, count_numbers
from ldpopt.divergences import FDivergence
from ldpopt.divergences.enclosed import enclosed_excess
from ldpopt.numbers.enclosures import FLOAT, Arithmetic, Enclosure
from ldpopt.numbers.rounding import exact_sum
from ldpopt.values.distribution import Array, Index
from ldpopt.values.results import ByValue


@dataclass(frozen=True, eq=False)
class Leaf(ByValue):
    """The multipliers of one box.

    rows : (k,) of row sums.
    terms : of column terms.
    fixed : one per constraint on the outputs.
    sides : (2, m) prices >= 0 of the lower and upper sides.
    weights : (criteria,) of several utilities.
    """

    rows: Array
    terms: tuple[TermMultiplier, ...]
    fixed: tuple[Any, ...]
    sides: Array
    weights: Array


@dataclass(frozen=True, eq=False)
class Limits:
    """Constraints in the form of their multipliers. User-defined expressions are omitted: the bound is still valid.

    spread : a cap D on the log-ratio of two entries of a column, None if there is none. outputs : the number m.
    """

    terms: tuple[Term, ...]
    fixed: tuple[AlphabetConstraint, ...]
    spread: Enclosure | None
    outputs: int

    @classmethod
    def from_constraints(
        cls, constraints: Sequence[Constraint], inputs: Sequence[Label], arithmetic: Arithmetic
    ) -> Limits:
        """Build the limits on channels with these inputs; raise `Unproved` if no constraint fixes the outputs."""
        terms, output_constraints, _ = parts(constraints, inputs)
        require(output_constraints, "no constraint says what the outputs are")
        return cls(
            terms,
            output_constraints,
            least_spread(constraints, inputs, arithmetic),
            outputs_of(output_constraints, len(inputs)),
        )

    def allowed(self, inputs: int) -> Array:
        """Return booleans (m, k): True if an output may occur at all under an input."""
        shape = (inputs, self.outputs)
        is_allowed = np.ones(shape[::-1], dtype=bool)
        for constraint in self.fixed:
            is_allowed &= constraint.allowed(shape).T
        require(is_allowed.any(axis=0).all(), "the constraints leave an input without any output")
        return np.asarray(is_allowed)

    @property
    def exchangeable(self) -> tuple[Index, ...]:
        """The outputs that all constraints treat equally, in groups of at least two."""
        kinds_by_constraint = np.stack([constraint.kinds(self.outputs) for constraint in self.fixed])
        kinds = np.unique(kinds_by_constraint, axis=1, return_inverse=True)[1].reshape(-1)
        return tuple(places for kind in range(self.outputs) if len(places := np.flatnonzero(kinds == kind)) > 1)

    def silent(self, inputs: int) -> bool:
        """Return True if ratios are capped and only a single output is allowed under all inputs."""
        return self.spread is not None and int(self.allowed(inputs).all(axis=1).sum()) == 1


def leaf_bound(
    leaf: Leaf, gains: Enclosure, limits: Limits, sides: Enclosure | None, arithmetic: Arithmetic
) -> Enclosure:
    """Bound the utility `gains` (criteria, m, k) of every matrix that meets the constraints.

    sides : (2, m, k) linear functions that are non-negative on the columns of the box; None without a box. Raises
    `Unproved` for malformed multipliers.
    """
    _, m, k = gains.shape
    leaf = expect(leaf, Leaf, "the multipliers of a box")
    output_multipliers = expect(leaf.fixed, tuple, "the multipliers of the constraints on the outputs")
    constraint_count = len(limits.fixed)
    require(
        len(output_multipliers) == constraint_count,
        f"{constraint_count} constraints are on the outputs, and {len(output_multipliers)} have multipliers",
    )
    rows = arithmetic.of(real_array(leaf.rows, (k,), "rows"))
    shares = mixture(leaf.weights, (len(gains),), "the weights of the criteria", "the criteria", arithmetic)
    reduced_gains = (gains[0] if len(gains) == 1 else (gains * shares[:, None, None]).sum(axis=0)) - rows
    bound = rows.sum()
    for multiplier in expect_each(leaf.terms, TermMultiplier, "the multipliers of the constraints"):
        term = _term(multiplier, limits.terms)
        reduced_gains = reduced_gains - term.enclosed_support(multiplier.values, m, k, arithmetic)[0]
        bound = bound + term.enclosed_charge(multiplier.values, m, arithmetic)
    for constraint, weights in zip(limits.fixed, output_multipliers, strict=True):
        reduced_gains = reduced_gains - constraint.enclosed_support(weights, (k, m), arithmetic)
        bound = bound + constraint.enclosed_charge(weights, (k, m), arithmetic)
    if sides is not None:
        side_prices = nonnegative_array(leaf.sides, (2, m), "prices of the box's sides")
        for price, side in zip(side_prices, sides, strict=True):
            if price.any():
                reduced_gains = reduced_gains + price[:, None] * side
    return bound + _residual(reduced_gains, limits, arithmetic)


def _term(multiplier: TermMultiplier, terms: Sequence[Term]) -> Any:
    """Return the pairs of a term of a multiplier."""
    term = terms[position(multiplier.term, len(terms), "the term of a multiplier")]
    require(not term.pure, "pure LDP between all inputs has no multipliers")
    pairs = positions(multiplier.pairs, -1, len(term), "the pairs of a multiplier")
    require(len(np.unique(pairs)) == len(pairs), "a multiplier names a pair twice")
    return term.take(pairs)


def _residual(reduced_gains: Enclosure, limits: Limits, arithmetic: Arithmetic) -> Enclosure:
    """Bound sum_y g_y . Q[:, y] of reduced gains g over the matrices with rows that sum to one."""
    is_allowed = limits.allowed(reduced_gains.shape[1])
    best = arithmetic.where(is_allowed, reduced_gains, -np.inf).max(axis=0).sum()
    if limits.spread is None:
        return best
    # If ratios are capped, an output that is impossible for one input never occurs.
    common = is_allowed.all(axis=1)
    require(common.any(), "the constraints leave no output that every input allows, and ratios are capped")
    common_gains = reduced_gains[common]
    # A column in [a, e^D a] has a value of at most a (sum of all + (e^D - 1) sum of gains); all a of a channel sum to
    # at most one.
    gain = common_gains.sum(axis=1) + limits.spread.expm1() * common_gains.positive().sum(axis=1)
    return best.minimum(gain.max().positive())


@dataclass(frozen=True, eq=False)
class Split(ByValue):
    """A node with two branches: the log-ratio of output number `output` is below `cut` (node `left`) or above."""

    output: int
    cut: float
    left: int
    right: int


@dataclass(frozen=True, eq=False, repr=False)
class BranchDual(Certificate):
    """Multipliers for every box of a tree of boxes, which cover all likelihood ratios that m outputs can have [FS].

    - `classes` : (k,) the class of every input. Inputs of one class have exactly equal likelihood ratios; if the
      constraints do not treat all inputs equally, each input is a separate class.
    - `nodes` : the tree, from its root at number 0; a node is a `Split` or a `Leaf`, whose multipliers are for the
      classes.
    """

    proves = Divergence
    classes: Index
    nodes: tuple[Split | Leaf, ...]

    @property
    def argument(self) -> str:
        """The reason why the bound is valid."""
        leaves = sum(isinstance(node, Leaf) for node in self.nodes) if isinstance(self.nodes, tuple) else 0
        return f"weak duality on {leaves} boxes of the outputs' likelihood ratios"

    def work(self) -> Work:
        """Bound the work: the multipliers of each node are for matrices of one row per output."""
        k, nodes = self.answers, self.nodes if isinstance(self.nodes, tuple) else ()
        m = max([part.outputs(k) for part in self.constraints if isinstance(part, AlphabetConstraint)], default=1)
        terms = sum(1 + len(part.terms) for part in nodes if isinstance(part, Leaf) and isinstance(part.terms, tuple))
        planes = Work.on(float(len(nodes)) * m, 2000.0, m) + Work(0.0, 0.0, 2e5 * len(nodes))
        return planes + Work.on(float(terms) * m * k, 60.0, float(m) * k) + pairs_of(self.constraints, k)

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """Compute the largest of the bounds of all boxes."""
        utility: Any = self.utility
        finite = utility.pair is not None and not utility.continuous
        require(finite, f"{utility.name} is not a divergence of two finite hypotheses")
        p0, p1 = utility.pair
        classes = Classes.checked(self.classes, p0, p1)
        is_symmetric = classes.trivial or symmetric(self.constraints)
        require(is_symmetric, "inputs are merged, though the constraints do not treat them alike")
        inputs = utility.labels if classes.trivial else tuple(range(classes.count))
        boxes = Boxes.from_constraints(utility.f, classes, utility.pair, self.constraints, inputs, arithmetic)
        silent = boxes.limits.silent(len(inputs))
        leaves = [] if silent else leaves_of(self.nodes, boxes, Split, Leaf)
        require(silent or leaves, "no box holds a channel")
        return arithmetic.zeros(()) if silent else arithmetic.stack(boxes.bounds(leaves)).max()


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes (2, m) of log-ratios of m outputs, and the bounds of the divergence on them.

    root : the box of all log-ratios that an output can have. groups : outputs that may be exchanged, which are in order
    of their ratios. An output that never occurs has no ratio, and is in any box.
    """

    f: FDivergence
    laws: LawPair
    limits: Limits
    root: Array
    groups: tuple[Index, ...]
    arithmetic: Arithmetic

    @classmethod
    def from_constraints(
        cls, f: FDivergence, classes: Classes, pair: tuple[Array, Array], constraints: Sequence[Constraint],
        inputs: Sequence[Label], arithmetic: Arithmetic,
    ) -> Boxes:  # fmt: skip
        """Build the boxes of a problem, whose merged `inputs` are labeled."""
        limits = Limits.from_constraints(constraints, inputs, arithmetic)
        m = limits.outputs
        # The boxes are the same in every arithmetic, because the numbers of the leaves are for them.
        low, high = log_ratios(classes.laws(*pair, FLOAT))
        # A cap on the ratio of any two entries of a column is also a cap on the ratio of its marginals.
        spread = Limits.from_constraints(constraints, inputs, FLOAT).spread
        if spread is not None:
            low, high = max(low, -float(spread.upper)), min(high, float(spread.upper))
        laws = classes.laws(*pair, arithmetic)
        return cls(f, laws, limits, np.array([[low] * m, [high] * m]), limits.exchangeable, arithmetic)

    def halves(self, box: Array, node: Split) -> tuple[Array, Array]:
        """Return the parts of `box` with the log-ratio of the node's output below and above its cut."""
        output = position(node.output, box.shape[1], "the output that a box is split at")
        cut, low, high = float(real_array(node.cut, (), "the cut of a box")), box.copy(), box.copy()
        low[1, output], high[0, output] = min(cut, box[1, output]), max(cut, box[0, output])
        return self._tight(low), self._tight(high)

    def _tight(self, box: Array) -> Array:
        """Return the part of the box with exchangeable outputs in order of their ratios."""
        for places in self.groups:
            box[0, places] = np.maximum.accumulate(box[0, places])
            box[1, places] = np.minimum.accumulate(box[1, places][::-1])[::-1]
        return box

    def empty(self, box: Array) -> bool:
        """Return True if no channel is in the box: an interval is empty, or all outputs favor one hypothesis."""
        return bool((box[0] > box[1]).any() or (box[0] > 0).all() or (box[1] < 0).all())

    @cached_property
    def _total(self) -> Enclosure:
        return self.laws.p0 + self.laws.p1

    def chords(self, box: Array) -> Enclosure:
        """Return linear functions above the divergence of the columns of the box, (1, m, k)."""
        return self._chords(self.planes(box[None]), 0)

    def _chords(self, planes: Planes, number: int) -> Enclosure:
        arithmetic, laws = self.arithmetic, self.laws
        is_close, is_above = planes.is_near[number, :, None], planes.is_above[number, :, None]
        slope_factor = arithmetic.where(is_close, laws.difference, arithmetic.where(is_above, laws.p1, laws.p0))
        return (planes.level[number][:, None] * self._total + planes.slope[number, :, None] * slope_factor)[None]

    def planes(self, boxes: Array) -> Planes:
        """Return the planes above mu in each interval of `boxes` (n, 2, m).

        mu is convex, so a plane that is at least mu on the two rays of an interval is at least mu in between. Its slope
        may be any float; the chord's is used, up to rounding. Its level is then as low as the two rays allow, so that
        narrow intervals lose no digits. The plane is level (a + b) + slope c, with a coordinate c that is small where
        digits matter. It is a - b if the marginals are nearly equal, b if a is much larger, and a if b is.
        """
        arithmetic = self.arithmetic
        is_close, is_above = np.asarray((np.abs(boxes) <= 1).all(axis=1)), np.asarray(boxes[:, 1] >= -boxes[:, 0])

        def ends(arithmetic: Arithmetic) -> tuple[Enclosure, Enclosure]:
            """Return coordinates of the rays, (n, 2, m), and upper bounds of mu there, which can replace mu."""
            rays = Rays.from_logs(boxes, arithmetic)
            tops = arithmetic.of(np.asarray(enclosed_excess(self.f, rays.lean, rays.b, rays.a).upper))
            return arithmetic.where(
                is_close[:, None], rays.lean, arithmetic.where(is_above[:, None], rays.b, rays.a)
            ), tops

        place, tops = ends(FLOAT)
        with np.errstate(all="ignore"):
            rise, run = np.diff(np.asarray(tops.upper), axis=1)[:, 0], np.diff(np.asarray(place.midpoint), axis=1)[:, 0]
            slope = rise / run
        slope = np.where(np.isfinite(slope), slope, 0.0)
        place, tops = (place, tops) if arithmetic is FLOAT else ends(arithmetic)
        level = (tops - place * slope[:, None]).max(axis=1)
        return Planes(level, slope, is_close, is_above)

    def sides(self, box: Array) -> Enclosure:
        """Return linear functions that are not negative in the box, (2, m, k), for both ends of intervals.

        Up to a factor they are a - r b for the ratio r at a lower end. For the ratio r at an upper end they are r b -
        a.
        """
        return self.arithmetic.stack([self._side(box[0]), -self._side(box[1])])

    def _side(self, log: Array) -> Enclosure:
        ray, laws = Rays.from_logs(log, self.arithmetic), self.laws
        by_sums = (laws.difference - ray.lean[:, None] * self._total) / 2
        by_each = ray.b[:, None] * laws.p0 - ray.a[:, None] * laws.p1
        return self.arithmetic.where((np.abs(log) <= 1)[:, None], by_sums, by_each)

    def bounds(self, leaves: Sequence[tuple[Leaf, Array]]) -> list[Enclosure]:
        """Return the bounds that the numbers of leaves prove on their boxes."""
        planes = self.planes(np.stack([box for _, box in leaves]))
        return [
            leaf_bound(leaf, self._chords(planes, number), self.limits, self.sides(box), self.arithmetic)
            for number, (leaf, box) in enumerate(leaves)
        ]


ROUNDING_RTOL = 2.0**-50  # The relative rounding error of a number computed from two entries and caps is smaller
MAX_RATIO, MIN_CAP = (
    1e9,
    2.0**-500,
)  # Larger caps on ratios are omitted; smaller caps, and ends of intervals, are not used


@dataclass(frozen=True, eq=False)
class EntrySplit(Split):
    """A node with two branches: the entry of an `input` and an output is below `cut` (node `left`) or above."""

    input: int


@dataclass(frozen=True, eq=False)
class BoxPrices(ByValue):
    """The multipliers of one box.

    rows : (k,) of row sums.
    pairs : (k, k) prices >= 0 of the cap on total variation, whose diagonal is ignored.
    weights : (criteria,) of the criteria.
    """

    rows: Array
    pairs: Array
    weights: Array


class ColumnLimit(Unproved):
    """The error that a proof needs more columns than allowed."""


@dataclass(frozen=True, eq=False)
class BoxColumns:
    """The columns of one box.

    values : (n, k) in floats.
    base, rise : the columns as base (n,) + rise (k, n), enclosed.
    criteria_values : (criteria, n) their criteria.
    zero : True if the column of zeros is in the box; it is not listed.
    """

    values: Array
    base: Enclosure
    rise: Enclosure
    criteria_values: Enclosure
    zero: bool


@dataclass(eq=False)
class Chambers:
    """Boxes (2, m, k) of the entries of m columns, and the columns that decide the bound on each.

    - `root` : the box of all entries that the constraints allow.
    - `groups` : outputs that may be exchanged, in the order of the entries of the first input.
    - `eta`, `ratio` : the largest difference and the largest ratio of two entries of a column.
    - `left` : the number of columns, including partial ones, that may still be listed.
    """

    utility: Any
    eta: float
    ratio: float
    root: Array
    groups: tuple[Index, ...]
    arithmetic: Arithmetic
    left: int
    computed: dict[bytes, BoxColumns] = field(default_factory=dict)

    @classmethod
    def from_constraints(
        cls, utility: Any, constraints: Sequence[Constraint], inputs: Sequence[Label], column_budget: int,
        arithmetic: Arithmetic,
    ) -> Chambers:  # fmt: skip
        """Build the boxes of a problem; raise `Unproved` if no constraint fixes the outputs."""
        # The boxes are the same in every arithmetic. Rounded up, the caps allow at least the same channels.
        limits = Limits.from_constraints(constraints, inputs, FLOAT)
        is_allowed = limits.allowed(len(inputs))
        ratio = math.inf if limits.spread is None else float(limits.spread.exp().upper)
        eta = max(float(variation_cap(constraints, FLOAT).upper), MIN_CAP)
        if limits.spread is not None:  # an output that is impossible for one input never occurs
            is_allowed = is_allowed * is_allowed.all(axis=1, keepdims=True)
        root = np.stack([np.zeros(is_allowed.shape), is_allowed * 1.0])
        return cls(
            utility, eta, ratio if ratio < MAX_RATIO else math.inf, root, limits.exchangeable, arithmetic, column_budget
        )

    @property
    def only(self) -> Array | None:
        """The channel (k, m) if it is unique, because each input has a single output; else None."""
        is_allowed = self.root[1]
        return np.asarray(is_allowed.T) if (is_allowed.sum(axis=0) == 1).all() else None

    def halves(self, box: Array, node: EntrySplit) -> tuple[Array, Array]:
        """Return the parts of `box` with the node's entry below and above its cut."""
        place = position(node.output, box.shape[1], "an output"), position(node.input, box.shape[2], "an input")
        cut, low, high = float(real_array(node.cut, (), "the cut of a box")), box.copy(), box.copy()
        cut = cut if abs(cut) >= MIN_CAP else 0.0
        low[1][place], high[0][place] = min(cut, box[1][place]), max(cut, box[0][place])
        for half in (low, high):
            for places in self.groups:
                half[0, places, 0] = np.maximum.accumulate(half[0, places, 0])
                half[1, places, 0] = np.minimum.accumulate(half[1, places, 0][::-1])[::-1]
        return low, high

    def empty(self, box: Array) -> bool:
        """Return True if no channel has its columns in the box."""
        (low, high), slack = box.sum(axis=1), len(box[0]) * ROUNDING_RTOL
        if (box[0] > box[1]).any() or (high < 1 - slack).any() or (low > 1 + slack).any():
            return True
        return any(not (listed := self.columns(box[:, y])).zero and not len(listed.values) for y in range(box.shape[1]))

    def columns(self, box: Array) -> BoxColumns:
        """List the columns of a box (2, k); raise `ColumnLimit` if they are too many."""
        key = box.tobytes()
        if key not in self.computed:
            values, rounded_columns = self._vertices(*box)
            is_nonzero, arithmetic = values.any(axis=1), self.arithmetic
            values, rounded_columns = values[is_nonzero], rounded_columns[is_nonzero]
            rounding = np.where(rounded_columns, ROUNDING_RTOL * values, 0.0)
            base = (values - rounding).min(axis=1, initial=1.0)
            rise = arithmetic.between(values - rounding, values + rounding).T - base
            criteria_values = self.utility.enclosed_columns(arithmetic.of(base), rise)
            self.computed[key] = BoxColumns(values, arithmetic.of(base), rise, criteria_values, not is_nonzero.all())
        return self.computed[key]

    def _tied(self, entries: Array) -> list[Array]:
        """Return the entries, and the values of other entries of the column at a tight cap."""
        tied_entries = [entries]
        if self.eta < 1:
            tied_entries += [entries + self.eta, entries - self.eta]
        if self.ratio < math.inf:
            tied_entries += [entries * self.ratio, entries / self.ratio]
        return tied_entries

    def _vertices(self, low: Array, high: Array) -> tuple[Array, npt.NDArray[np.bool_]]:
        """Return the entries (n, k) of the columns, and True for each rounded one."""
        corner_entry = (
            self.eta / (self.ratio - 1) if self.ratio > 1 else 0.0
        )  # of a column at both caps, the least entry
        corner_entries = np.array(
            [corner_entry, corner_entry * self.ratio] if 0 < corner_entry < 1 and self.eta < 1 else []
        )
        ends, *others = self._tied(np.unique([low, high]))
        rounded_ends = np.concatenate([corner_entries, *others])
        values = np.unique(np.append(ends, rounded_ends))
        values = values[(values >= 0) & (values <= 1 + ROUNDING_RTOL)]
        columns = np.zeros((1, 0))
        order = np.argsort(high - low, kind="stable")  # narrow intervals first exclude columns early
        for count, x in enumerate(order, 1):
            choice = values[(values >= low[x] - ROUNDING_RTOL) & (values <= high[x] + ROUNDING_RTOL)]
            self.count_columns(len(columns) * len(choice))
            columns = np.column_stack([np.repeat(columns, len(choice), axis=0), np.tile(choice, len(columns))])
            smallest, largest = columns.min(axis=1), columns.max(axis=1)
            is_allowed = largest - smallest <= self.eta + ROUNDING_RTOL
            if self.ratio < math.inf:
                is_allowed &= largest <= smallest * self.ratio * (1 + 2 * ROUNDING_RTOL)
            columns = columns[is_allowed]
            # True if each entry is the end of an interval that this column or a later entry takes, or tied to one.
            first, later = order[:count], order[count:]
            is_tied = np.isin(
                columns, np.concatenate([corner_entries, *self._tied(np.append(low[later], high[later]))])
            )
            is_end = (columns == low[first]) | (columns == high[first])
            for tied_columns in self._tied(np.where(is_end, columns, np.nan)):
                for other in tied_columns.T:
                    is_tied |= columns == other[:, None]
            columns = columns[is_tied.all(axis=1)]
        columns = columns[:, np.argsort(order)]
        return columns, np.isin(columns, rounded_ends)

    def count_columns(self, columns: int) -> None:
        """Count further columns; raise `ColumnLimit` if they are too many."""
        self.left -= columns
        if self.left < 0:
            raise ColumnLimit("more columns would have to be looked at than the certificate says")

    def bound(self, prices: BoxPrices, box: Array) -> Enclosure:
        """Return the bound that the numbers of a leaf prove on its box."""
        arithmetic, k = self.arithmetic, box.shape[2]
        rows, pairs = real_array(prices.rows, (k,), "rows"), pair_prices(prices.pairs, k, "pairs")
        left, right = np.nonzero(pairs)
        pair_charges, total = arithmetic.of(pairs[left, right]), arithmetic.of(exact_sum(rows))
        bound = total + pair_charges.sum() * self.eta
        for y in range(box.shape[1]):
            columns = self.columns(box[:, y])
            self.count_columns(len(columns.values))
            shares = mixture(
                prices.weights, (columns.criteria_values.shape[0],), "the weights of a box", "the criteria", arithmetic
            )
            costs = columns.base * total + arithmetic.of(rows) @ columns.rise
            if len(left):
                costs = costs + pair_charges @ (columns.rise[left] - columns.rise[right]).positive()
            gains = arithmetic.concatenate(
                [shares @ columns.criteria_values - costs, arithmetic.zeros(int(columns.zero))]
            )
            bound = bound + gains.max()
        return bound


@dataclass(frozen=True, eq=False, repr=False)
class ChamberDual(Certificate):
    """Multipliers for every box of a tree of boxes, which cover all entries that the columns of given outputs can have.

    - `nodes` : the tree, from its root at number 0; a node is an `EntrySplit`, or the `BoxPrices` of a leaf.
    - `columns` : the number of columns that are checked, with repetitions; more are not started.
    """

    proves = ColumnUtility
    nodes: tuple[EntrySplit | BoxPrices, ...]
    columns: int

    @property
    def argument(self) -> str:
        """The reason why the bound is valid."""
        leaves = sum(isinstance(node, BoxPrices) for node in self.nodes) if isinstance(self.nodes, tuple) else 0
        return f"weak duality on {leaves} boxes of the channel's entries"

    def work(self) -> Work:
        """Bound the work of every column, and of each node of the tree."""
        k, nodes = self.answers, len(self.nodes) if isinstance(self.nodes, tuple) else 0
        columns = float(self.columns) if isinstance(self.columns, int) else 0.0
        operations_per_column = 40.0 * (count_numbers(self.utility) // max(k, 1)) + 4.0 * k * k
        outputs = max([part.outputs(k) for part in self.constraints if isinstance(part, AlphabetConstraint)], default=1)
        return Work.on(columns, operations_per_column, 4 * columns) + Work.on(float(nodes) * outputs, 1e5, k).in_floats

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """Compute the largest of the bounds of all boxes; the value of the only channel if it is unique."""
        finite_size(self.utility)
        left = position(self.columns, 2**53 + 1, "the number of columns")
        boxes = Chambers.from_constraints(self.utility, self.constraints, self.utility.labels, left, arithmetic)
        if boxes.only is not None:
            value: Enclosure = self.utility.enclosed_value(Channel(boxes.only), arithmetic)
            return value
        leaves = leaves_of(self.nodes, boxes, EntrySplit, BoxPrices)
        require(leaves, "no box holds a channel")
        return arithmetic.stack([boxes.bound(prices, box) for prices, box in leaves]).max()
