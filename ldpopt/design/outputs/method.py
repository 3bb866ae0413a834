"""Branch and bound over the likelihood ratios of given outputs: the global optimum of a fixed alphabet, with a proof.

A box has an interval for the likelihood ratio of every output. In it the divergence lies below its chords, so that a
linear (or cone) program bounds the utility of every channel whose ratios are in the box. The box with the largest bound
is split, at the ratio of the output that loses most against its chord, until the bound meets the best channel
found [FS].

A sum over columns and given outputs, under LDP and total variation -> the best channel, by branch and bound.

In a box of the entries, a program over the columns of `outputs.proof` bounds what any channel keeps: a column
of the box is a mixture of those of its chamber, which together are worth no less, and no farther apart for any pair of
inputs. The output that loses most against its mixture is split at one of its entries [FS].
"""

from __future__ import annotations

import heapq
import itertools
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.candidate import (
    Ask,
    Candidate,
    Limit,
    Method,
    Prove,
    needs_columns,
    needs_outputs,
    proved_by,
    refusal,
)
from ldpopt.design.constraints.base import outputs_of, within
from ldpopt.design.kernel.hypotheses import Classes
from ldpopt.design.kernel.numbers import leaves_of
from ldpopt.design.outputs.method_search import STARTS, Climb, too_large_to_climb, without_budget
from ldpopt.design.outputs.proof import (
    Boxes,
    BoxPrices,
    BranchDual,
    ChamberDual,
    Chambers,
    ColumnLimit,
    EntrySplit,
    Leaf,
    Split,
    leaf_bound,
)
from ldpopt.design.patterns.method import of_classes
from ldpopt.design.problems.problem import Problem
from ldpopt.design.solve import solve_real
from ldpopt.design.utilities.base import columns_of, gradients_of
from ldpopt.errors import InvalidInput, Phrase, SolverError, invalid
from ldpopt.numbers.enclosures import FLOAT
from ldpopt.numbers.tolerances import CERTIFIED_GAP, FINEST_CAP, KNOWN_ENTRY, NARROW_BOX, SAME_ENTRY
from ldpopt.values.deadline import UNLIMITED, Deadline
from ldpopt.values.distribution import Array, Index, Rng, generator, optional, positive_integer, random

FAR = 40.0  # The log-ratio at which an infinite interval is taken to end when its middle is looked for
WORK, MAX_BOXES = 150_000, 1500  # The default budget of boxes times entries and slacks of a program, and the most boxes
CLIMBING = 0.2  # The share of the progress bar that the local search takes, before the boxes
CLIMBS = 20  # How many of the channels found in boxes start a local search


@dataclass(frozen=True)
class BranchAndBound(
    Method,
    nodes=optional(positive_integer),
    starts=positive_integer,
    rng=random,
    reference="[CCP; FS]",
    needs=(needs_outputs,),
    preference=60,
    by_cvxpy=True,
):
    """Local search, then branch and bound on the reports' likelihood ratios; for constraints on outputs, proved [FS].

    nodes : the most programs of boxes to solve. By default from 30 to 1500, fewer where programs are large; with a
    `time_limit`, as many as there is time for. starts, rng : of the local search before it. The certificate
    holds whenever it stops, with the best bound so far; the gap says how far it came.

    >>> from ldpopt.design import Divergence, LocalDP, Outputs, optimal_channel
    >>> from ldpopt.divergences import KL
    >>> u = Divergence(KL, [0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4])
    >>> optimal_channel(u, [LocalDP(4.0), Outputs(2)], method=BranchAndBound(nodes=50)).certified
    True
    """

    nodes: int | None = None
    starts: int = STARTS
    rng: Rng = field(default=None, compare=False)

    def refuses(self, problem: Problem) -> str:
        """It needs two hypotheses."""
        if problem.utility.pair is None:
            return f"it branches on the likelihood ratio of two hypotheses, and {problem.utility.name} has none"
        if problem.free is not None and problem.free.plain and not any(c.labelled for c in problem.given):
            return ""  # the optimum without the budget may meet it
        return too_large_to_climb(problem, outputs_of(problem.given, len(problem.inputs)))

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The best channel found, and the tree of boxes as its proof."""
        if (unlimited := without_budget(problem, ask)) is not None:
            return unlimited
        terms, fixed, classes = problem.terms, problem.given, problem.reduction.classes
        if not problem.symmetric:
            classes = np.arange(problem.utility.size)
        pair = problem.utility.pair
        merged = Classes.checked(classes, pair[0], pair[1])
        boxes = Boxes.of(problem.utility.f, merged, pair, problem.constraints, problem.inputs, FLOAT)
        if not np.isfinite(boxes.chords(boxes.root).upper).all():
            raise InvalidInput(
                f"constraints: {problem.utility.name} may be infinite for these hypotheses; add LocalDP or take a "
                "bounded divergence"
            )
        if why := too_large_to_climb(problem, outputs_of(problem.given, len(problem.inputs))):
            raise invalid("problem", "one that BranchAndBound can hold", Phrase(why))
        deadline = problem.deadline
        climb = replace(Climb.of(problem), deadline=deadline.part(0.0, CLIMBING))
        matrix, _ = climb.best(self.starts, generator(self.rng, 0))
        tree = RatioTree(boxes, climb, matrix)
        k, m = climb.program.shape
        size = m * (k + sum(len(term) for term in terms) + sum(constraint.pairs(k) for constraint in fixed))
        few = int(np.clip(WORK / size, 30, MAX_BOXES))
        few = few if math.isinf(deadline.seconds) else sys.maxsize
        solved = tree.grow(self.nodes or few, deadline.part(CLIMBING, 1.0))
        how = f"local search from {self.starts} starts, branch and bound in {solved} boxes"
        return Candidate(tree.matrix, how, proved_by(BranchDual, classes, tuple(tree.nodes)))


Cut = Callable[[int, int], Split]
"""From the numbers of its two branches to the node that splits a box."""


class Tree(ABC):
    """The tree of boxes, and the best channel met on the way. boxes : as in `numbers.leaves_of`. nothing : a leaf.
    met : whether the bound meets the value.
    """

    def __init__(self, boxes: Any, nothing: Any, matrix: Array, value: float) -> None:
        self.boxes, self.nothing, self.matrix, self.value = boxes, nothing, matrix, value
        self.nodes: list[Any] = []
        self.met = False

    @abstractmethod
    def solve(self, box: Array, parent: Any) -> tuple[Any, float, Cut | None]:
        """The multipliers of a box, the bound that they prove, and where to split it; None where it is too narrow."""

    def grow(self, budget: int, deadline: Deadline = UNLIMITED) -> int:
        """Split boxes until the bound meets the value, `budget` programs are solved, or the time is over.

        Returns how many were solved.
        """
        self.nodes.append(self.nothing)
        order = itertools.count()
        queue: list[tuple[float, int, int, Array, Cut | None]] = []
        solved, narrow = 0, False

        def solve(box: Array, parent: Any) -> tuple[Any, float, Cut | None] | None:
            return None if self.boxes.empty(box) else self.solve(box, parent)

        def keep(index: int, box: Array, solution: tuple[Any, float, Cut | None] | None) -> None:
            nonlocal solved
            if solution is not None:
                solved += 1
                self.nodes[index], bound, split = solution
                heapq.heappush(queue, (-bound, next(order), index, box, split))

        keep(0, self.boxes.root, solve(self.boxes.root, self.nothing))
        while queue and solved < budget and not deadline.over():
            deadline.tell(solved / budget)
            bound, _, index, box, split = heapq.heappop(queue)
            if -bound <= self.value + CERTIFIED_GAP / 4 * abs(self.value):
                self.met = not narrow
                break
            if split is None:
                narrow = True  # the gap that the solver left stays
                continue
            parent, left = self.nodes[index], len(self.nodes)
            node = split(left, left + 1)
            halves = self.boxes.halves(box, node)
            try:
                solutions = [solve(half, parent) for half in halves]
            except ColumnLimit:
                break
            self.nodes += [parent, parent]
            self.nodes[index] = node
            for child in (0, 1):
                keep(left + child, halves[child], solutions[child])
        return solved


class RatioTree(Tree):
    """The tree of boxes of log-ratios."""

    def __init__(self, boxes: Boxes, climb: Climb, matrix: Array) -> None:
        m, k = boxes.root.shape[1], len(boxes.laws.p0)
        idle = tuple(constraint.idle((k, m)) for constraint in boxes.limits.fixed)
        nothing = Leaf(np.zeros(k), (), idle, np.zeros((2, m)), np.ones(1))
        super().__init__(boxes, nothing, matrix, climb.value(matrix))
        self.climb, self.climbs = climb, CLIMBS
        self.narrow = NARROW_BOX * float(np.ptp(np.clip(boxes.root, -FAR, FAR)))

    def solve(self, box: Array, parent: Leaf) -> tuple[Leaf, float, Cut | None]:
        """The same by a linear program over the channels whose ratios are in the box."""
        chords, sides = self.boxes.chords(box), self.boxes.sides(box)
        gains, walls = np.asarray(chords.midpoint), np.asarray(sides.midpoint)

        def proved(leaf: Leaf) -> float:
            bound = float(leaf_bound(leaf, chords, self.boxes.limits, sides, FLOAT).upper)
            return bound if math.isfinite(bound) else math.inf

        cut = self._middle(box)
        try:
            q, leaf = self.climb.program.solve(gains, walls)
        except SolverError:
            # A bound for the whole box is one for its parts.
            known = [parent]
            with suppress(SolverError):
                known.append(self.climb.program.elastic(gains, walls))
            bounds = [proved(candidate) for candidate in known]
            best = int(np.argmin(bounds))
            return known[best], bounds[best], cut
        bound, reached = proved(leaf), float((gains[0] * q.T).sum())
        if not bound <= reached + NARROW_BOX * abs(self.value) and (whole := proved(parent)) < bound:
            leaf, bound = parent, whole  # the multipliers of an inaccurate solution are worse than the parent's
        return leaf, bound, self._cut(q, gains, box) or cut

    def _cut(self, q: Array, gains: Array, box: Array) -> Cut | None:
        """The output and the log-ratio at which to split a box with the solution `q`; None where it is too narrow.

        It is the output that loses most against its chord.
        """
        value = self.climb.value(q)
        if value > self.value:
            self.matrix, self.value = q, value
        if self.climbs and value > 0.5 * self.value:
            self.climbs -= 1
            with suppress(SolverError):
                better, most = self.climb.climb(q)
                if most > self.value:
                    self.matrix, self.value = better, most
        q, laws, f = self.climb.raised(q), self.boxes.laws, self.boxes.f
        apart, b = laws.apart.midpoint @ q, laws.p1.midpoint @ q
        lost = (gains[0] * q.T).sum(axis=1) - f.excess_of(apart, b)
        output = int(lost.argmax())
        width = box[1, output] - box[0, output]
        if not lost[output] > 1e-13 * abs(self.value) or not width > self.narrow:
            return None
        with np.errstate(divide="ignore"):
            log = float(np.log1p(apart[output] / b[output])) if b[output] > 0 else math.inf
        low, high = box[:, output]
        if not (math.isfinite(low) and math.isfinite(high)):
            # An end is infinite: any finite log-ratio inside is a valid cut.
            inside = low < log < high and math.isfinite(log)
            return partial(Split, output, log if inside else float(np.clip(0.0, low + 1, high - 1)))
        margin = 0.05 * width
        return partial(Split, output, float(np.clip(log, low + margin, high - margin)))

    def _middle(self, box: Array) -> Cut | None:
        """The middle of the widest interval of a box; None where all are narrow."""
        low, high = np.clip(box, -FAR, FAR)
        widest = int((high - low).argmax())
        if not high[widest] - low[widest] > self.narrow:
            return None
        return partial(Split, widest, float((low[widest] + high[widest]) / 2))


MAX_INPUTS, MAX_COLUMNS = 8, 20_000  # The most inputs, and the most columns of the first program
BOXES, PAIRED = 400, 60  # The default budget of boxes, and that for two hypotheses
LOOKED_AT = 1_000_000  # The most columns that a search, or its proof, lists
STARTS = 5  # The starts of a local search where the bound is not met
NOTHING = "boxes of entries: no channel that meets all constraints was found; relax one"
PENALTY = 1e3  # The cost, in units of the utility, of a violated equation, in a program that must stay feasible


@dataclass(frozen=True)
class EntryBoxes(
    Method, nodes=optional(positive_integer), reference="[FS]", needs=(needs_outputs, needs_columns), preference=55
):
    """Branch and bound on the entries of given outputs, for sums over columns of up to eight inputs, with a proof [FS].

    It takes `Support` and `Outputs`, with `LocalDP` and `TotalVariation` or without. The certificate holds whenever it
    stops.

    nodes : the most programs of boxes to solve. By default 400; with a `time_limit`, as many as there is time for. For
    two hypotheses 60, after which `BranchAndBound` goes on.

    >>> from ldpopt.design import MutualInformation, Outputs, TotalVariation, optimal_channel
    >>> design = optimal_channel(MutualInformation([0.5, 0.3, 0.2]), [TotalVariation(0.3), Outputs(2)])
    >>> round(design.value, 6), design.certified
    (0.119279, True)
    """

    nodes: int | None = None

    def refuses(self, problem: Problem) -> str:
        """It needs a sum over columns, and outputs that are given, of which some may be impossible."""
        utility, k = problem.utility, problem.utility.size
        m, free = outputs_of(problem.given, k), problem.free
        if not (free is None or free.plain) or any(constraint.idle((k, m)) is not None for constraint in problem.given):
            return "it takes Outputs and Support with LocalDP and TotalVariation, and there are other constraints"
        if math.isinf(problem.epsilon) and not math.isfinite(utility.unprivate):
            return f"{utility.name} of full disclosure is infinite, and total variation allows for some of it"
        if min(problem.eta, math.tanh(problem.epsilon / 2)) < FINEST_CAP:
            return f"entries near one hold too few digits of a total variation below {FINEST_CAP:g}"
        if k > MAX_INPUTS or m * 2 ** (k + 1) > MAX_COLUMNS:
            return Limit(f"{k} inputs and {m} outputs have too many columns to list (at most {MAX_INPUTS} inputs)")
        return ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The best channel found, and the tree of boxes as its proof. For two hypotheses an output has one ratio: where
        few boxes of entries do not settle them, boxes of ratios may.
        """
        if (unlimited := without_budget(problem, ask)) is not None:
            return unlimited
        tree, deadline, paired = EntryTree(problem), problem.deadline, problem.utility.pair is not None
        inputs = of_classes(problem) if paired else slice(None)
        if (only := tree.boxes.only) is not None:
            if not within(Channel(only), problem.constraints):
                raise SolverError(NOTHING)
            return Candidate(only[inputs], "the only channel", proved_by(ChamberDual, (tree.nothing,), 0))
        few = PAIRED if paired else BOXES if math.isinf(deadline.seconds) else sys.maxsize
        first = deadline.turn(0, 3) if paired else deadline.part(0.0, 1 / 3)
        solved = tree.grow(self.nodes or few, first)
        own = Candidate(tree.matrix[inputs], f"branch and bound in {solved} boxes of entries", self._proof(tree))
        rest = replace(problem, deadline=deadline.part(1 / 3, 1.0))
        if tree.met or (paired and refusal(BranchAndBound(), problem)):
            return own
        if paired:
            other = BranchAndBound().find(rest, ask)
            climb, proofs = Climb.of(problem), [each.prove for each in (other, own) if each.prove is not None]
            better = max(own, other, key=lambda candidate: climb.value(candidate.matrix))
            return replace(better, prove=lambda *posed: chain(*(each(*posed) for each in proofs)))
        with suppress(SolverError):
            climbed, value = Climb.of(rest).best(STARTS, generator(None, 0), (tree.matrix,) * (tree.value > 0))
            own, tree.value = (replace(own, matrix=climbed), value) if value > tree.value else (own, tree.value)
        if tree.value == -math.inf:
            raise SolverError(NOTHING)
        return own

    @staticmethod
    def _proof(tree: EntryTree) -> Prove:
        """The tree, and how many columns its proof looks at."""
        nodes, counted = tuple(tree.nodes), replace(tree.boxes, left=2**53, known={})
        for _, box in leaves_of(nodes, counted, EntrySplit, BoxPrices):
            for y in range(box.shape[1]):
                counted.looked_at(len(counted.columns(box[:, y]).values))
        return proved_by(ChamberDual, nodes, 2**53 - counted.left)


class EntryTree(Tree):
    """The tree of boxes of entries. unit : by how much, at most, the entries of a column differ."""

    def __init__(self, problem: Problem) -> None:
        self.utility = problem.utility
        boxes = Chambers.of(problem.utility, problem.constraints, problem.labels, LOOKED_AT, FLOAT)
        _, m, k = boxes.root.shape
        self.unit = boxes.eta
        nothing = BoxPrices(np.zeros(k), np.zeros((k, k)), np.ones(len(columns_of(self.utility, np.ones((k, 1))))))
        super().__init__(boxes, nothing, np.full((k, m), np.nan), -math.inf)

    def solve(self, box: Array, parent: BoxPrices) -> tuple[BoxPrices, float, Cut | None]:
        """The same by a linear program over the columns of the box."""
        k, m = box.shape[2], box.shape[1]
        own = [self.boxes.columns(box[:, y]) for y in range(m)]
        values = np.concatenate([part for each in own for part in (each.values, np.zeros((int(each.zero), k)))])
        worth = np.concatenate(
            [part for each in own for part in (each.worth.midpoint.T, np.zeros((int(each.zero), len(parent.weights))))]
        ).T
        output = np.repeat(np.arange(m), [len(each.values) + each.zero for each in own])
        for elastic in (False, True):
            try:
                weights, prices = self._program(values, worth, output, elastic)
            except SolverError:
                continue
            break
        else:
            return parent, math.inf, None
        bound = float(self.boxes.bound(prices, box).upper)
        if elastic:
            return prices, bound, self._middle(box, int((box[1] - box[0]).sum(axis=1).argmax()))
        matrix = np.stack([weights[output == y] @ values[output == y] for y in range(m)], axis=1)
        value = float(columns_of(self.utility, matrix).sum(axis=1).min())
        if value > self.value:
            self.matrix, self.value = matrix, value
        shares = prices.weights / prices.weights.sum()
        lost = np.bincount(output, weights * (shares @ worth), m) - shares @ columns_of(self.utility, matrix)
        y = int(lost.argmax())
        used = (output == y) & (weights > 0)
        slopes = np.einsum("j,jnx->nx", shares, gradients_of(self.utility, values[used].T))
        # What the mixture loses is at most the sum of these over the inputs, as the criteria are above their tangents.
        blame = weights[used] @ (slopes * (values[used] - matrix[:, y]))
        return prices, bound, self._cut(box, matrix[:, y], y, blame)

    def _program(self, values: Array, worth: Array, output: Index, elastic: bool) -> tuple[Array, BoxPrices]:
        """The weights (n,) of columns `values` (n, k) with `worth` (criteria, n) that are the best channel, one for
        each `output` (n,), and the multipliers. elastic : whether equations may be violated, at a price.
        """
        (n, k), m = values.shape, int(output.max()) + 1
        scale, unit = float(np.abs(worth).max()) or 1.0, self.unit
        left, right = np.triu_indices(k if self.boxes.eta < 1 else 1, 1)
        # The rows' sums differ by less than any of them: the solver sees the differences, in units of the cap.
        rows = np.vstack([values[:, 0], (values[:, 1:] - values[:, :1]).T / unit])
        apart = np.maximum(values[:, left] - values[:, right], 0.0).T / unit
        equal = np.vstack([rows, np.arange(m)[:, None] == output])
        above = np.vstack([-worth / scale, apart])
        most = np.concatenate([np.zeros(len(worth)), np.ones(len(apart))])
        gains, count = np.zeros(n), len(worth)
        if elastic:
            off = np.vstack([np.hstack([np.eye(k), -np.eye(k)]), np.zeros((m, 2 * k))])
            equal = np.hstack([equal, off, np.zeros((k + m, len(apart)))])
            give = np.vstack([np.zeros((count, len(apart))), -np.eye(len(apart))])
            above = np.hstack([above, np.zeros((len(above), 2 * k)), give])
            gains = np.append(gains, np.full(2 * k + len(apart), -PENALTY))
        last = np.concatenate([np.ones(count), np.zeros(len(apart))])
        right_side = np.concatenate([[1.0], np.zeros(k - 1), np.ones(m)])
        x, _, paid, caps = solve_real(
            np.append(gains, 1.0), np.column_stack([equal, np.zeros(k + m)]), right_side,
            np.column_stack([above, last]), most, "boxes of entries",
        )  # fmt: skip
        weights = np.maximum(caps[:count], 0.0)
        multipliers = paid[:k] / np.append(1.0, np.full(k - 1, unit)) * scale
        multipliers[0] -= multipliers[1:].sum()
        pairs = np.zeros((k, k))
        pairs[left, right] = np.maximum(caps[count:], 0.0) / unit * scale
        return np.maximum(x[:n], 0.0), BoxPrices(multipliers, pairs, weights if weights.any() else np.ones(count))

    def _cut(self, box: Array, entries: Array, output: int, blame: Array) -> Cut | None:
        """Where to split the box: at the value of the output's entry to blame most, of those inside their intervals."""
        low, high = box[:, output]
        inside = np.minimum(entries - low, high - entries) > SAME_ENTRY * self.unit
        if not inside.any():
            return self._middle(box, output)
        x = int(np.where(inside, blame, -np.inf).argmax())
        # Values that occur already make fewer columns.
        ends = np.unique(box)
        known = np.concatenate([ends, ends + self.unit, ends - self.unit])
        closest = float(known[np.abs(known - entries[x]).argmin()])
        near = abs(closest - entries[x]) <= KNOWN_ENTRY * self.unit and low[x] < closest < high[x]
        cut = closest if near else float(entries[x])
        return partial(EntrySplit, output, cut, input=x)

    def _middle(self, box: Array, output: int) -> Cut | None:
        """The middle of the widest interval of an output; None where all are narrow."""
        low, high = box[:, output]
        x = int((high - low).argmax())
        if not high[x] - low[x] > SAME_ENTRY * self.unit:
            return None
        return partial(EntrySplit, output, float((low[x] + high[x]) / 2), input=x)
