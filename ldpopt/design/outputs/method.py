"""Branch and bound over the likelihood ratios of given outputs: the global optimum of a fixed alphabet, with a proof.

A box has an interval for the likelihood ratio of every output. In it the divergence lies below its chords, so that a
linear (or cone) program bounds the utility of every channel whose ratios are in the box. The box with the largest bound
is split, at the ratio of the output that loses most against its chord, until the bound meets the best channel
found [FS].
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
from typing import Any

import numpy as np

from ldpopt.design.candidate import Ask, Candidate, Method, needs_outputs, proved_by
from ldpopt.design.constraints.base import outputs_of
from ldpopt.design.kernel.hypotheses import Classes
from ldpopt.design.outputs.method_search import STARTS, Climb, too_large_to_climb, without_budget
from ldpopt.design.outputs.proof import Boxes, BranchDual, Leaf, Split, leaf_bound
from ldpopt.design.outputs.proof_entries import ColumnLimit
from ldpopt.design.problems.problem import Problem
from ldpopt.errors import InvalidInput, Phrase, SolverError, invalid
from ldpopt.numbers.enclosures import FLOAT
from ldpopt.numbers.tolerances import CERTIFIED_GAP, NARROW_BOX
from ldpopt.values.deadline import UNLIMITED, Deadline
from ldpopt.values.distribution import Array, Rng, generator, optional, positive_integer, random

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
