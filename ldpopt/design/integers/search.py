"""Channels of integers improved by moves of units between two columns.

Where no move helps, a few random moves are made, and the search goes on from there; the random numbers are the same
every time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
import numpy.typing as npt

from ldpopt.design.integers.task import Task
from ldpopt.design.integers.worth import ColumnWorth, Neighbours, VarianceWorth, worth_of_weights
from ldpopt.design.patterns.proof_levels import Integers, merge_proportional
from ldpopt.exact import reach

MAX_CLIMB_MOVES = 300  # The largest number of successive moves.
# Restarts of the search from a channel near its best one: of few inputs, of some, and of more than these.
MAX_RESTARTS_FEW_INPUTS, MAX_RESTARTS, MAX_RESTARTS_MANY_INPUTS = 24, 12, 4
MAX_FEW_INPUTS, MAX_SOME_INPUTS = 5, 16  # Of few inputs a step changes any rows.
MAX_UNSUCCESSFUL_RESTARTS = 18  # After so many in a row the search ends.
MAX_MOVES_TRIED = 20  # The number of best moves that are tried if a cap on total variation may forbid some.
MAX_MOVE_ENTRIES = 500_000  # The most entries of the columns after a step, for all columns and steps.
MAX_STEP_SIZES = 3  # The most sizes of a step in one row, in addition to a unit.


@dataclass(frozen=True, eq=False)
class Moves:
    """The search for a task whose worth is a function of a sum over columns."""

    task: Task
    worth: ColumnWorth | VarianceWorth

    @cached_property
    def _ends(self) -> dict[bytes, Integers]:
        """The ends of the climbs so far, from each of the weights that they came to: restarts come to many again."""
        return {}

    @cached_property
    def _reach(self) -> Integers:
        """The largest entry (D + 1,) that a column may have, by its smallest entry."""
        task = self.task
        return np.array([reach(low, task.ratio, task.total) for low in range(task.total + 1)], dtype=np.int64)

    @cached_property
    def _unit_steps(self) -> Integers:
        """The steps (n, k) of a unit in any rows, without their negatives, which would exchange the two columns."""
        signs = product((0, 1, -1), repeat=self.task.inputs)
        steps = [step for step in signs if next(filter(None, step), 0) > 0]
        return np.array(sorted(steps, key=lambda step: sum(map(abs, step))), dtype=np.int64)

    def _steps(self, columns: Integers) -> Integers:
        """The steps (n, k) between columns: of units in any rows, or for more inputs in one row of several sizes.

        The sizes are a unit and those that lead to the least entry of a column. So two columns of the same two entries
        can exchange a row.
        """
        k, m = columns.shape
        if k <= MAX_FEW_INPUTS:
            return self._unit_steps
        sizes, counts = np.unique(columns - columns.min(axis=0), return_counts=True)
        is_step = sizes > 1
        common = sizes[is_step][np.argsort(-counts[is_step], kind="stable")[:MAX_STEP_SIZES]]
        steps = np.vstack([size * np.eye(k, dtype=np.int64) for size in (1, *common)])
        return steps[: max(k, MAX_MOVE_ENTRIES // (m * max(k, m)))]

    def best(self, weights: Integers, restarts: int | None = None) -> Integers:
        """Improve the weights by climbs from random moves; the result is at least as good."""
        if restarts is None:
            restarts = MAX_RESTARTS if self.task.inputs <= MAX_SOME_INPUTS else MAX_RESTARTS_MANY_INPUTS
            restarts = MAX_RESTARTS_FEW_INPUTS if self.task.inputs <= MAX_FEW_INPUTS else restarts
        rng, unsuccessful_restarts = np.random.default_rng(0), 0
        best = self.climb(weights)
        value, neighbors = self.worth_of_weights(best), self._neighbours(best)
        for _ in self.task.problem.deadline.inner.rounds(range(restarts)):
            start = self._random(neighbors, rng)
            for _ in range(int(rng.integers(3))):
                start = self._random(self._neighbours(start), rng)
            local_optimum = self.climb(start)
            new_value = self.worth_of_weights(local_optimum)
            unsuccessful_restarts = 0 if new_value > _threshold(value) else unsuccessful_restarts + 1
            if new_value > value - 1e-12 * abs(value):
                best, value, neighbors = local_optimum, new_value, self._neighbours(local_optimum)
            if unsuccessful_restarts >= MAX_UNSUCCESSFUL_RESTARTS:
                break
        return merge_proportional(best)

    def worth_of_weights(self, weights: Integers) -> float:
        """Compute the worth of weights (k, m)."""
        return worth_of_weights(self.worth, weights)

    def climb(self, weights: Integers, max_moves: int = MAX_CLIMB_MOVES) -> Integers:
        """Make the best move repeatedly, until none helps."""
        weights = self._merged(weights)
        value = self.worth_of_weights(weights)
        visited: list[bytes] = []
        for _ in self.task.problem.deadline.inner.rounds(range(max_moves)):
            if (end := self._ends.get(weights.tobytes())) is not None:
                weights = end
                break
            visited.append(weights.tobytes())
            if (improved := self._improved(weights, value)) is None:
                break
            weights, value = improved
        else:
            return weights
        self._ends.update(dict.fromkeys(visited, weights))
        return weights

    def _merged(self, weights: Integers) -> Integers:
        """Merge proportional columns of few inputs; of more, those with the same rows can exchange one with others."""
        return merge_proportional(weights) if self.task.inputs <= MAX_FEW_INPUTS else weights

    def _improved(self, weights: Integers, value: float) -> tuple[Integers, float] | None:
        """Return the weights after the best move, with their worth; None if no move helps.

        Other good moves, between other columns, are made at once. Each of them is checked after those before it.
        """
        neighbors, is_capped = self._neighbours(weights), self.task.cap is not None
        distances = _excess(neighbors.columns).sum(axis=2) if is_capped else np.zeros((1, 1), dtype=np.int64)
        for moves, worths in self.worth.after(neighbors, value):
            columns, changed_columns = neighbors.columns, set[int]()
            best_first = np.argsort(-worths, kind="stable")[:MAX_MOVES_TRIED]
            best_moves = moves[best_first[worths[best_first] > _threshold(value)]]
            changes = self._distance_changes(neighbors, best_moves)
            for number, move in enumerate(best_moves.tolist()):
                pair = set(neighbors.pair(move))
                if changed_columns & pair:
                    continue
                new_distances = distances + changes[:, :, number]
                if new_distances.max() > (self.task.cap or 0):
                    continue
                candidate = neighbors.moved(columns, move)
                new_value = self.worth_of_weights(candidate)  # not that of the move, which has rounding errors
                if new_value > _threshold(value):
                    columns, value, changed_columns = candidate, new_value, changed_columns | pair
                    distances = new_distances
            if changed_columns:
                return self._merged(columns[:, columns.any(axis=0)]), value
        return None

    def _distance_changes(self, neighbors: Neighbours, moves: npt.NDArray[np.intp]) -> Integers:
        """Compute (k, k, n) how much each move adds to D times the distances of rows, zero (1, 1, n) without a cap.

        The changes by moves of different columns add up.
        """
        if self.task.cap is None:
            return np.zeros((1, 1, len(moves)), dtype=np.int64)
        takers, givers, places = neighbors.changed(moves)
        before_moves = [_excess(neighbors.columns[:, places[:, side]]) for side in (0, 1)]
        return _excess(takers) + _excess(givers) - before_moves[0] - before_moves[1]

    def _neighbours(self, weights: Integers) -> Neighbours:
        """Every move between two columns that stays within the ratio."""
        columns = np.hstack([weights, np.zeros((len(weights), 1), np.int64)])  # an output that is not there yet
        steps = self._steps(columns)
        if len(columns) <= MAX_FEW_INPUTS:
            changed = [columns[:, :, None] + sign * steps.T[:, None] for sign in (1, -1)]
            takes, gives = (self._is_feasible(grid.min(axis=0), grid.max(axis=0)) for grid in changed)
            return Neighbours(columns, steps, takes, gives)
        ordered, rows = np.sort(columns, axis=0), steps.argmax(axis=1)  # A step changes one row.
        low, high = (
            np.where(columns == ordered[end], ordered[next_], ordered[end]) for end, next_ in ((0, 1), (-1, -2))
        )
        entries, sizes = columns[rows], steps.max(axis=1, keepdims=True)
        takes, gives = (
            self._is_feasible(np.minimum(low[rows], changed), np.maximum(high[rows], changed)).T
            for changed in (entries + sizes, entries - sizes)
        )
        return Neighbours(columns, steps, takes, gives)

    def _is_feasible(self, low: Integers, high: Integers) -> npt.NDArray[np.bool_]:
        """True for columns of these least and largest entries, if none is negative and the ratio is within the cap."""
        return np.asarray((low >= 0) & (high <= self._reach[np.clip(low, 0, self.task.total)]))

    def _random(self, neighbors: Neighbours, rng: np.random.Generator) -> Integers:
        """Return the weights after a random move; as they are if there is none, or it breaks the cap."""
        weights = neighbors.columns[:, :-1]
        if not len(neighbors.moves):
            return weights
        moved = neighbors.moved(neighbors.columns, int(neighbors.moves[rng.integers(len(neighbors.moves))]))
        changed_weights = self._merged(moved[:, moved.any(axis=0)])
        return changed_weights if self.task.is_within_cap(changed_weights) else weights


def _excess(columns: Integers) -> Integers:
    """Compute (k, k, n) by how much the entry of one row exceeds that of another in each of `columns` (k, n)."""
    return np.asarray(np.maximum(columns[:, None] - columns, 0))


def _threshold(value: float) -> float:
    """Return the worth that another one must exceed to be larger in spite of rounding errors."""
    return value + 1e-12 * abs(value) if np.isfinite(value) else value
