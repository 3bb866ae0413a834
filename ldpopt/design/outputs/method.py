"""Branch and bound over the likelihood ratios of given outputs: the global optimum of a fixed alphabet, with a proof.

A box has an interval for the likelihood ratio of every output. In it the divergence lies below its chords. So a linear
(or cone) program bounds the utility of every channel whose ratios are in the box. The box with the largest bound is
split, at the ratio of the output with the largest loss against its chord. The search ends when the bound meets the
value of the best channel [FS].

`EntryBoxes` finds the best channel for a sum over columns and given outputs, under LDP and total variation. In a box of
the entries, a program over the columns of `outputs.proof` bounds the utility. A column of the box is a mixture of the
columns of its chamber. Their joint value is at least that of the column, and their entries differ by the same amounts
for any pair of inputs. The output with the largest loss against its mixture is split at one of its entries [FS].
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
    proof_by,
    refusal,
)
from ldpopt.design.constraints.base import meets_constraints, outputs_of
from ldpopt.design.kernel.hypotheses import Classes
from ldpopt.design.kernel.numbers import leaves_of
from ldpopt.design.outputs.method_search import DEFAULT_STARTS, Climb, optimum_within_budget, too_large_to_climb
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
from ldpopt.design.patterns.method import class_representatives
from ldpopt.design.problems.problem import Problem
from ldpopt.design.solve import solve_linear
from ldpopt.design.utilities.base import columns_of, gradients_of
from ldpopt.errors import InvalidInput, Phrase, SolverError, invalid
from ldpopt.numbers.enclosures import FLOAT
from ldpopt.numbers.tolerances import CERTIFIED_GAP, FINEST_CAP, KNOWN_ENTRY, NARROW_BOX, SAME_ENTRY
from ldpopt.values.deadline import UNLIMITED, Deadline
from ldpopt.values.distribution import Array, Index, Rng, generator, optional, positive_integer, random

MAX_LOG_RATIO = 40.0  # An infinite interval ends at this log-ratio when its middle is computed
BOX_WORK_BUDGET, MAX_BOXES = (
    150_000,
    1500,
)  # The default budget of boxes times entries and slacks of a program, and of boxes
CLIMB_PROGRESS_FRACTION = 0.2  # The fraction of the progress bar for the local search, before the boxes
MAX_CLIMBS = 20  # Local searches that start from channels of boxes


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

    nodes : the largest number of programs of boxes to solve. By default from 30 to 1500, fewer if programs are large;
    with a `time_limit`, as many as there is time for. starts, rng : of the local search before it. The certificate is
    valid whenever it stops, with the best bound so far.

    >>> from ldpopt.design import Divergence, LocalDP, Outputs, optimal_channel
    >>> from ldpopt.divergences import KL
    >>> u = Divergence(KL, [0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4])
    >>> optimal_channel(u, [LocalDP(4.0), Outputs(2)], method=BranchAndBound(nodes=50)).certified
    True
    """

    nodes: int | None = None
    starts: int = DEFAULT_STARTS
    rng: Rng = field(default=None, compare=False)

    def refuses(self, problem: Problem) -> str:
        """Return why it does not apply: it needs two hypotheses."""
        if problem.utility.pair is None:
            return f"it branches on the likelihood ratio of two hypotheses, and {problem.utility.name} has none"
        if (
            problem.without_output_constraints is not None
            and problem.without_output_constraints.has_only_ldp_and_tv
            and not any(c.labelled for c in problem.output_constraints)
        ):
            return ""  # the optimum without the budget may meet it
        return too_large_to_climb(problem, outputs_of(problem.output_constraints, len(problem.inputs)))

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """Find the best channel, with the tree of boxes as its proof."""
        if (unlimited_candidate := optimum_within_budget(problem, ask)) is not None:
            return unlimited_candidate
        terms, output_constraints, classes = problem.terms, problem.output_constraints, problem.reduction.classes
        if not problem.symmetric:
            classes = np.arange(problem.utility.size)
        pair = problem.utility.pair
        merged_classes = Classes.checked(classes, pair[0], pair[1])
        boxes = Boxes.from_constraints(
            problem.utility.f, merged_classes, pair, problem.constraints, problem.inputs, FLOAT
        )
        if not np.isfinite(boxes.chords(boxes.root).upper).all():
            raise InvalidInput(
                f"constraints: {problem.utility.name} may be infinite for these hypotheses; add LocalDP or take a "
                "bounded divergence"
            )
        if reason := too_large_to_climb(problem, outputs_of(problem.output_constraints, len(problem.inputs))):
            raise invalid("problem", "one that BranchAndBound can hold", Phrase(reason))
        deadline = problem.deadline
        climb = replace(Climb.from_problem(problem), deadline=deadline.part(0.0, CLIMB_PROGRESS_FRACTION))
        matrix, _ = climb.best(self.starts, generator(self.rng, 0))
        tree = RatioTree(boxes, climb, matrix)
        k, m = climb.program.shape
        size = m * (
            k + sum(len(term) for term in terms) + sum(constraint.pairs(k) for constraint in output_constraints)
        )
        default_nodes = int(np.clip(BOX_WORK_BUDGET / size, 30, MAX_BOXES))
        default_nodes = default_nodes if math.isinf(deadline.seconds) else sys.maxsize
        solved_boxes = tree.grow(self.nodes or default_nodes, deadline.part(CLIMB_PROGRESS_FRACTION, 1.0))
        description = f"local search from {self.starts} starts, branch and bound in {solved_boxes} boxes"
        return Candidate(tree.matrix, description, proof_by(BranchDual, classes, tuple(tree.nodes)))


Cut = Callable[[int, int], Split]
"""A function from the numbers of two branches to the node that splits a box."""


class Tree(ABC):
    """A tree of boxes, and the best channel so far.

    boxes : as in `numbers.leaves_of`. nothing : a leaf. met : True if the bound meets the value.
    """

    def __init__(self, boxes: Any, zero_node: Any, matrix: Array, value: float) -> None:
        self.boxes, self.nothing, self.matrix, self.value = boxes, zero_node, matrix, value
        self.nodes: list[Any] = []
        self.met = False

    @abstractmethod
    def solve(self, box: Array, parent: Any) -> tuple[Any, float, Cut | None]:
        """Return the multipliers of a box, their bound, and the place to split it; None if it is too narrow."""

    def grow(self, budget: int, deadline: Deadline = UNLIMITED) -> int:
        """Split boxes until the bound meets the value, the budget is used, or the time is over.

        budget : the number of programs. Returns how many were solved.
        """
        self.nodes.append(self.nothing)
        order = itertools.count()
        queue: list[tuple[float, int, int, Array, Cut | None]] = []
        solved_count, has_narrow_box = 0, False

        def solve(box: Array, parent: Any) -> tuple[Any, float, Cut | None] | None:
            return None if self.boxes.empty(box) else self.solve(box, parent)

        def keep(index: int, box: Array, solution: tuple[Any, float, Cut | None] | None) -> None:
            nonlocal solved_count
            if solution is not None:
                solved_count += 1
                self.nodes[index], bound, split = solution
                heapq.heappush(queue, (-bound, next(order), index, box, split))

        keep(0, self.boxes.root, solve(self.boxes.root, self.nothing))
        while queue and solved_count < budget and not deadline.over():
            deadline.tell(solved_count / budget)
            bound, _, index, box, split = heapq.heappop(queue)
            if -bound <= self.value + CERTIFIED_GAP / 4 * abs(self.value):
                self.met = not has_narrow_box
                break
            if split is None:
                has_narrow_box = True  # the gap that the solver left stays
                continue
            parent, left_number = self.nodes[index], len(self.nodes)
            node = split(left_number, left_number + 1)
            halves = self.boxes.halves(box, node)
            try:
                solutions = [solve(half, parent) for half in halves]
            except ColumnLimit:
                break
            self.nodes += [parent, parent]
            self.nodes[index] = node
            for child in (0, 1):
                keep(left_number + child, halves[child], solutions[child])
        return solved_count


class RatioTree(Tree):
    """A tree of boxes of log-ratios."""

    def __init__(self, boxes: Boxes, climb: Climb, matrix: Array) -> None:
        m, k = boxes.root.shape[1], len(boxes.laws.p0)
        idle = tuple(constraint.idle((k, m)) for constraint in boxes.limits.fixed)
        zero_leaf = Leaf(np.zeros(k), (), idle, np.zeros((2, m)), np.ones(1))
        super().__init__(boxes, zero_leaf, matrix, climb.value(matrix))
        self.climb, self.climbs = climb, MAX_CLIMBS
        self.narrow = NARROW_BOX * float(np.ptp(np.clip(boxes.root, -MAX_LOG_RATIO, MAX_LOG_RATIO)))

    def solve(self, box: Array, parent: Leaf) -> tuple[Leaf, float, Cut | None]:
        """Solve a linear program over the channels whose ratios are in the box."""
        chords, sides = self.boxes.chords(box), self.boxes.sides(box)
        gains, walls = np.asarray(chords.midpoint), np.asarray(sides.midpoint)

        def proved_bound(leaf: Leaf) -> float:
            bound = float(leaf_bound(leaf, chords, self.boxes.limits, sides, FLOAT).upper)
            return bound if math.isfinite(bound) else math.inf

        cut = self._middle(box)
        try:
            q, leaf = self.climb.program.solve(gains, walls)
        except SolverError:
            # A bound for the parent box is valid for its parts.
            candidates = [parent]
            with suppress(SolverError):
                candidates.append(self.climb.program.elastic(gains, walls))
            bounds = [proved_bound(candidate) for candidate in candidates]
            best = int(np.argmin(bounds))
            return candidates[best], bounds[best], cut
        bound, value = proved_bound(leaf), float((gains[0] * q.T).sum())
        if not bound <= value + NARROW_BOX * abs(self.value) and (parent_bound := proved_bound(parent)) < bound:
            leaf, bound = parent, parent_bound  # the multipliers of an inaccurate solution are worse than the parent's
        return leaf, bound, self._cut(q, gains, box) or cut

    def _cut(self, q: Array, gains: Array, box: Array) -> Cut | None:
        """Return the split of a box with the solution `q`; None if the box is too narrow.

        The box is split at the output with the largest loss against its chord.
        """
        value = self.climb.value(q)
        if value > self.value:
            self.matrix, self.value = q, value
        if self.climbs and value > 0.5 * self.value:
            self.climbs -= 1
            with suppress(SolverError):
                improved_matrix, best_value = self.climb.climb(q)
                if best_value > self.value:
                    self.matrix, self.value = improved_matrix, best_value
        q, laws, f = self.climb.raise_entries(q), self.boxes.laws, self.boxes.f
        difference, b = laws.difference.midpoint @ q, laws.p1.midpoint @ q
        losses = (gains[0] * q.T).sum(axis=1) - f.excess_of(difference, b)
        output = int(losses.argmax())
        width = box[1, output] - box[0, output]
        if not losses[output] > 1e-13 * abs(self.value) or not width > self.narrow:
            return None
        with np.errstate(divide="ignore"):
            log = float(np.log1p(difference[output] / b[output])) if b[output] > 0 else math.inf
        low, high = box[:, output]
        if not (math.isfinite(low) and math.isfinite(high)):
            # An end is infinite: any finite log-ratio in the interior is a valid cut.
            is_inside = low < log < high and math.isfinite(log)
            return partial(Split, output, log if is_inside else float(np.clip(0.0, low + 1, high - 1)))
        margin = 0.05 * width
        return partial(Split, output, float(np.clip(log, low + margin, high - margin)))

    def _middle(self, box: Array) -> Cut | None:
        """Return the middle of the widest interval of a box; None if all are narrow."""
        low, high = np.clip(box, -MAX_LOG_RATIO, MAX_LOG_RATIO)
        widest = int((high - low).argmax())
        if not high[widest] - low[widest] > self.narrow:
            return None
        return partial(Split, widest, float((low[widest] + high[widest]) / 2))


MAX_INPUTS, MAX_COLUMNS = 8, 20_000  # Limits of the inputs, and of the columns of the first program
DEFAULT_BOXES, DEFAULT_BOXES_OF_PAIR = 400, 60  # The default budgets of boxes, and for two hypotheses
MAX_LISTED_COLUMNS = 1_000_000  # Columns listed by a search, or by its proof
DEFAULT_STARTS = 5  # The starts of a local search if the bound is not met
NO_CHANNEL = "boxes of entries: no channel that meets all constraints was found; relax one"
ELASTIC_PENALTY = 1e3  # The cost, in units of the utility, of a violated equation, in a program that must stay feasible


@dataclass(frozen=True)
class EntryBoxes(
    Method, nodes=optional(positive_integer), reference="[FS]", needs=(needs_outputs, needs_columns), preference=55
):
    """Branch and bound on the entries of given outputs, for sums over columns of up to eight inputs, with a proof [FS].

    It takes `Support` and `Outputs`, with `LocalDP` and `TotalVariation` or without. The certificate is valid whenever
    it stops.

    nodes : the largest number of programs of boxes to solve. By default 400; with a `time_limit`, as many as there is
    time for. For two hypotheses 60, after which `BranchAndBound` goes on.

    >>> from ldpopt.design import MutualInformation, Outputs, TotalVariation, optimal_channel
    >>> design = optimal_channel(MutualInformation([0.5, 0.3, 0.2]), [TotalVariation(0.3), Outputs(2)])
    >>> round(design.value, 6), design.certified
    (0.119279, True)
    """

    nodes: int | None = None

    def refuses(self, problem: Problem) -> str:
        """Return why it does not apply: it needs a sum over columns, and given outputs."""
        utility, k = problem.utility, problem.utility.size
        m, free = outputs_of(problem.output_constraints, k), problem.without_output_constraints
        if not (free is None or free.has_only_ldp_and_tv) or any(
            constraint.idle((k, m)) is not None for constraint in problem.output_constraints
        ):
            return "it takes Outputs and Support with LocalDP and TotalVariation, and there are other constraints"
        if math.isinf(problem.epsilon) and not math.isfinite(utility.value_without_privacy):
            return f"{utility.name} of full disclosure is infinite, and total variation allows for some of it"
        if min(problem.eta, math.tanh(problem.epsilon / 2)) < FINEST_CAP:
            return f"entries near one hold too few digits of a total variation below {FINEST_CAP:g}"
        if k > MAX_INPUTS or m * 2 ** (k + 1) > MAX_COLUMNS:
            return Limit(f"{k} inputs and {m} outputs have too many columns to list (at most {MAX_INPUTS} inputs)")
        return ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """Find the best channel, with the tree of boxes as its proof.

        For two hypotheses an output has one ratio: if few boxes of entries do not prove the optimum, boxes of ratios
        may.
        """
        if (unlimited_candidate := optimum_within_budget(problem, ask)) is not None:
            return unlimited_candidate
        tree, deadline, has_pair = EntryTree(problem), problem.deadline, problem.utility.pair is not None
        inputs = class_representatives(problem) if has_pair else slice(None)
        if (only_channel := tree.boxes.only) is not None:
            if not meets_constraints(Channel(only_channel), problem.constraints):
                raise SolverError(NO_CHANNEL)
            return Candidate(only_channel[inputs], "the only channel", proof_by(ChamberDual, (tree.nothing,), 0))
        default_nodes = (
            DEFAULT_BOXES_OF_PAIR if has_pair else DEFAULT_BOXES if math.isinf(deadline.seconds) else sys.maxsize
        )
        first = deadline.turn(0, 3) if has_pair else deadline.part(0.0, 1 / 3)
        solved_boxes = tree.grow(self.nodes or default_nodes, first)
        tree_candidate = Candidate(
            tree.matrix[inputs], f"branch and bound in {solved_boxes} boxes of entries", self._proof(tree)
        )
        rest = replace(problem, deadline=deadline.part(1 / 3, 1.0))
        if tree.met or (has_pair and refusal(BranchAndBound(), problem)):
            return tree_candidate
        if has_pair:
            other = BranchAndBound().find(rest, ask)
            climb, proofs = (
                Climb.from_problem(problem),
                [proof.prove for proof in (other, tree_candidate) if proof.prove is not None],
            )
            best_candidate = max(tree_candidate, other, key=lambda candidate: climb.value(candidate.matrix))
            return replace(best_candidate, prove=lambda *arguments: chain(*(proof(*arguments) for proof in proofs)))
        with suppress(SolverError):
            local_optimum, value = Climb.from_problem(rest).best(
                DEFAULT_STARTS, generator(None, 0), (tree.matrix,) * (tree.value > 0)
            )
            tree_candidate, tree.value = (
                (replace(tree_candidate, matrix=local_optimum), value)
                if value > tree.value
                else (tree_candidate, tree.value)
            )
        if tree.value == -math.inf:
            raise SolverError(NO_CHANNEL)
        return tree_candidate

    @staticmethod
    def _proof(tree: EntryTree) -> Prove:
        """Return the proof by the tree, with the number of columns that its check lists."""
        nodes, counting_boxes = tuple(tree.nodes), replace(tree.boxes, left=2**53, computed={})
        for _, box in leaves_of(nodes, counting_boxes, EntrySplit, BoxPrices):
            for y in range(box.shape[1]):
                counting_boxes.count_columns(len(counting_boxes.columns(box[:, y]).values))
        return proof_by(ChamberDual, nodes, 2**53 - counting_boxes.left)


class EntryTree(Tree):
    """A tree of boxes of entries. unit : an upper bound on the difference of entries of a column."""

    def __init__(self, problem: Problem) -> None:
        self.utility = problem.utility
        boxes = Chambers.from_constraints(
            problem.utility, problem.constraints, problem.labels, MAX_LISTED_COLUMNS, FLOAT
        )
        _, m, k = boxes.root.shape
        self.unit = boxes.eta
        zero_prices = BoxPrices(np.zeros(k), np.zeros((k, k)), np.ones(len(columns_of(self.utility, np.ones((k, 1))))))
        super().__init__(boxes, zero_prices, np.full((k, m), np.nan), -math.inf)

    def solve(self, box: Array, parent: BoxPrices) -> tuple[BoxPrices, float, Cut | None]:
        """Solve a linear program over the columns of the box."""
        k, m = box.shape[2], box.shape[1]
        columns = [self.boxes.columns(box[:, y]) for y in range(m)]
        values = np.concatenate(
            [part for box_columns in columns for part in (box_columns.values, np.zeros((int(box_columns.zero), k)))]
        )
        criteria_values = np.concatenate(
            [
                part
                for box_columns in columns
                for part in (
                    box_columns.criteria_values.midpoint.T,
                    np.zeros((int(box_columns.zero), len(parent.weights))),
                )
            ]
        ).T
        output = np.repeat(np.arange(m), [len(box_columns.values) + box_columns.zero for box_columns in columns])
        for elastic in (False, True):
            try:
                weights, prices = self._program(values, criteria_values, output, elastic)
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
        losses = np.bincount(output, weights * (shares @ criteria_values), m) - shares @ columns_of(
            self.utility, matrix
        )
        y = int(losses.argmax())
        is_used = (output == y) & (weights > 0)
        slopes = np.einsum("j,jnx->nx", shares, gradients_of(self.utility, values[is_used].T))
        # The loss of the mixture is at most the sum of these over the inputs: the criteria are above their tangents.
        blame = weights[is_used] @ (slopes * (values[is_used] - matrix[:, y]))
        return prices, bound, self._cut(box, matrix[:, y], y, blame)

    def _program(self, values: Array, criteria_values: Array, output: Index, elastic: bool) -> tuple[Array, BoxPrices]:
        """Find the weights (n,) of columns `values` (n, k) of the best channel, one column per output, and the
        multipliers.

        criteria_values : (criteria, n). output : (n,). elastic : True if equations may be violated, at a price.
        """
        (n, k), m = values.shape, int(output.max()) + 1
        scale, unit = float(np.abs(criteria_values).max()) or 1.0, self.unit
        left, right = np.triu_indices(k if self.boxes.eta < 1 else 1, 1)
        # The rows' sums differ by less than any of them: the solver sees the differences, in units of the cap.
        rows = np.vstack([values[:, 0], (values[:, 1:] - values[:, :1]).T / unit])
        excesses = np.maximum(values[:, left] - values[:, right], 0.0).T / unit
        equation_matrix = np.vstack([rows, np.arange(m)[:, None] == output])
        limit_matrix = np.vstack([-criteria_values / scale, excesses])
        limits = np.concatenate([np.zeros(len(criteria_values)), np.ones(len(excesses))])
        gains, count = np.zeros(n), len(criteria_values)
        if elastic:
            deviations = np.vstack([np.hstack([np.eye(k), -np.eye(k)]), np.zeros((m, 2 * k))])
            equation_matrix = np.hstack([equation_matrix, deviations, np.zeros((k + m, len(excesses)))])
            give = np.vstack([np.zeros((count, len(excesses))), -np.eye(len(excesses))])
            limit_matrix = np.hstack([limit_matrix, np.zeros((len(limit_matrix), 2 * k)), give])
            gains = np.append(gains, np.full(2 * k + len(excesses), -ELASTIC_PENALTY))
        last = np.concatenate([np.ones(count), np.zeros(len(excesses))])
        right_side = np.concatenate([[1.0], np.zeros(k - 1), np.ones(m)])
        x, _, equation_prices, caps = solve_linear(
            np.append(gains, 1.0), np.column_stack([equation_matrix, np.zeros(k + m)]), right_side,
            np.column_stack([limit_matrix, last]), limits, "boxes of entries",
        )  # fmt: skip
        weights = np.maximum(caps[:count], 0.0)
        multipliers = equation_prices[:k] / np.append(1.0, np.full(k - 1, unit)) * scale
        multipliers[0] -= multipliers[1:].sum()
        pairs = np.zeros((k, k))
        pairs[left, right] = np.maximum(caps[count:], 0.0) / unit * scale
        return np.maximum(x[:n], 0.0), BoxPrices(multipliers, pairs, weights if weights.any() else np.ones(count))

    def _cut(self, box: Array, entries: Array, output: int, blame: Array) -> Cut | None:
        """Return the split at the value of the output's entry with the largest `blame`, of interior entries."""
        low, high = box[:, output]
        is_inside = np.minimum(entries - low, high - entries) > SAME_ENTRY * self.unit
        if not is_inside.any():
            return self._middle(box, output)
        x = int(np.where(is_inside, blame, -np.inf).argmax())
        # Values that occur already make fewer columns.
        ends = np.unique(box)
        existing_values = np.concatenate([ends, ends + self.unit, ends - self.unit])
        closest = float(existing_values[np.abs(existing_values - entries[x]).argmin()])
        is_close = abs(closest - entries[x]) <= KNOWN_ENTRY * self.unit and low[x] < closest < high[x]
        cut = closest if is_close else float(entries[x])
        return partial(EntrySplit, output, cut, input=x)

    def _middle(self, box: Array, output: int) -> Cut | None:
        """Return the middle of the widest interval of an output; None if all are narrow."""
        low, high = box[:, output]
        x = int((high - low).argmax())
        if not high[x] - low[x] > SAME_ENTRY * self.unit:
            return None
        return partial(EntrySplit, output, float((low[x] + high[x]) / 2), input=x)
