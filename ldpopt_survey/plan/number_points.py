"""Move the numbers of a unit to few points, so that a channel is searched between few cells [KW].

A number is moved at random to one of the two points around it, with unchanged mean. A target that is linear in each
number has the same value on the points. So a channel between the cells of points serves the numbers, too, and moving
first cannot weaken its guarantee.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ldpopt.channel import Channel
from ldpopt.values.distribution import Array
from ldpopt_survey.plan.numbers_and_sets import GRID_SIZES, rounding_probabilities
from ldpopt_survey.plan.planned_question import Part
from ldpopt_survey.plan.units import Unit

MIN_CELL_SHARE = 1e-6
"""The least share of a cell of points in the search for a channel: the pilot may leave a point without numbers."""


MIN_POINTS = GRID_SIZES[0]
"""The fewest points of a number: the ends of its range."""


@dataclass(frozen=True, eq=False)
class Points:
    """Cells of few points in place of the K cells of a unit.

    moves : (K, points) the probabilities that cells move to cells of points.
    ends : (points, K) each cell of points as a mixture of cells whose numbers are ends of their ranges.
    """

    moves: Array
    ends: Array

    def pilot(self, pilot: Array) -> Array:
        """Return the shares of the cells of points, each at least `MIN_CELL_SHARE`."""
        shares = np.maximum(pilot @ self.moves, MIN_CELL_SHARE)
        return np.asarray(shares / shares.sum())

    def rows(self, rows: Array) -> Array:
        """Return rows (r, points) for rows (r, K) that are linear in each number."""
        return np.asarray(rows @ self.ends.T)

    def channel(self, channel: Channel) -> Channel:
        """Return the channel of the K cells: first to the points, then through a channel of theirs."""
        matrix = self.moves @ channel.matrix
        return Channel(matrix / matrix.sum(axis=1, keepdims=True))


def points_of_part(part: Part, size: int = GRID_SIZES[-1]) -> Points:
    """Return the points of the categories of one question, at most `size` of them; "not applicable" is one more.

    Categories whose shares are estimated are their own points.
    """
    if part.measure == "shares":
        identity = np.eye(len(part.categories))
        return Points(identity, identity)
    numbers, (low, high) = np.array(part.asked, dtype=np.float64), part.ends
    scores, grid = (numbers - low) / (high - low), np.linspace(0.0, 1.0, min(len(numbers), size))
    moves = np.zeros((len(part.categories), len(grid) + bool(part.asked_if)))
    ends = np.zeros((moves.shape[1], len(part.categories)))
    moves[: len(numbers), : len(grid)] = rounding_probabilities(scores, grid)
    ends[: len(grid), int(scores.argmin())], ends[: len(grid), int(scores.argmax())] = 1 - grid, grid
    if part.asked_if:
        moves[-1, -1] = ends[-1, -1] = 1.0
    return Points(moves, ends)


def points_of(unit: Unit, max_cells: int, max_points: int = GRID_SIZES[-1]) -> Points | None:
    """Return cells of as many points for each number as leave at most `max_cells`; None if two points leave more.

    Five points in place of nine need at most 0.3 % more respondents.
    """
    for size in [size for size in GRID_SIZES[::-1] if size <= max_points]:
        of_parts = [points_of_part(part, size) for part in unit.parts]
        shape = [points.moves.shape[1] for points in of_parts]
        positions = [
            [labels.index(cell[place]) for cell in unit.cells]
            for place, labels in enumerate(part.categories for part in unit.parts)
        ]
        # Each cell has the points around its numbers, as places among all combinations and their probabilities.
        cells, places, weights = (
            np.arange(len(unit.cells)),
            np.zeros(len(unit.cells), dtype=int),
            np.ones(len(unit.cells)),
        )
        for points, position, count in zip(of_parts, np.array(positions), shape, strict=True):
            moves = points.moves[position[cells]]
            entry, point = np.nonzero(moves)
            cells, places, weights = cells[entry], places[entry] * count + point, weights[entry] * moves[entry, point]
        occurring, column = np.unique(places, return_inverse=True)
        if len(occurring) > max_cells:
            continue
        moves = np.zeros((len(unit.cells), len(occurring)))
        np.add.at(moves, (cells, column), weights)
        answers = np.array(np.unravel_index(occurring, shape))
        ends = np.ones((len(occurring), len(unit.cells)))
        for points, position, point in zip(of_parts, np.array(positions), answers, strict=True):
            ends *= points.ends[point][:, position]
        return Points(moves, ends)
    return None
