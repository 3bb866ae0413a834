"""Convert tables, groups and regressions to targets on the cells of a booklet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from ldpopt.errors import invalid
from ldpopt.values.distribution import Array
from ldpopt_survey.plan.planned_question import NOT_APPLICABLE, Part, PlannedQuestion, non_answers
from ldpopt_survey.plan.targets import MAX_CELLS, Contrast, Sides, TargetSpec
from ldpopt_survey.plan.units import Target, Unit, product_of

OnCells = tuple[Array | None, list[Contrast]]
"""The pilot of the cells divided by the product of the questions' pilots, or None if equal; and the contrasts."""


@dataclass(frozen=True, eq=False)
class Table:
    """A target with its questions, which must share a booklet. A question that defines groups is the first."""

    target: TargetSpec
    names: tuple[str, ...]

    def on_cells(self, pilot: Array, parts: Sequence[Part | PlannedQuestion], is_possible: Array) -> OnCells:
        """Return the contrasts of the cells of its questions, `parts`.

        pilot : (cells,) the product of the questions' pilots.
        is_possible : (cells,) positive for possible answers.
        """
        labels = [part.categories for part in parts]
        size = math.prod(map(len, labels))
        if size > MAX_CELLS:
            raise invalid(f"[[targets]] {self.target.title}", f"at most {MAX_CELLS} cells (join answers)", size)
        shape = pilot.reshape([len(labels_of_part) for labels_of_part in labels])
        other_axes = [tuple(axis for axis in range(len(labels)) if axis != place) for place in range(len(labels))]
        table_pilot = self.target.joint([shape.sum(axis=axes) for axes in other_axes], self.names)
        is_asked = np.array([label != NOT_APPLICABLE or not getattr(parts[1], "asked_if", ()) for label in labels[1]])
        applies_to_cell = np.array([is_asked[labels[1].index(cell[1])] for cell in product(*labels)], dtype=np.float64)
        sides = Sides(is_possible > 0, applies_to_cell, non_answers(parts[0]))
        ratio = None if table_pilot is None else np.divide(table_pilot, pilot, out=np.zeros(size), where=pilot > 0)
        return ratio, self.target.contrasts(self.names, labels, pilot if table_pilot is None else table_pilot, sides)

    def targets(self, units: Sequence[Unit]) -> tuple[Array | None, list[Target]]:
        """Return the pilot (K,) of the cells of a booklet, or None if the target has none, and the targets."""
        parts = [part for unit in units for part in unit.parts]
        pilot = product_of(units)[0]
        cells = [sum(cell, ()) for cell in product(*(unit.cells for unit in units))]
        positions = [next(place for place, part in enumerate(parts) if part.name == name) for name in self.names]
        labels = [parts[place].categories for place in positions]
        size = math.prod(map(len, labels))
        cell_index = np.ravel_multi_index(
            [
                [labels_of_part.index(cell[place]) for cell in cells]
                for place, labels_of_part in zip(positions, labels, strict=True)
            ],
            [len(labels_of_part) for labels_of_part in labels],
        )
        table_pilot, is_possible = (
            np.bincount(cell_index, weights, size).astype(np.float64) for weights in (pilot, np.ones(len(pilot)))
        )
        ratio, contrasts = self.on_cells(table_pilot, [parts[place] for place in positions], is_possible)
        key = (*self.names, self.target.title)
        targets = [Target((*key, contrast.name), contrast.row[cell_index], contrast.variance) for contrast in contrasts]
        return None if ratio is None else pilot * ratio[cell_index] / float(pilot @ ratio[cell_index]), targets


@dataclass(frozen=True, eq=False)
class FurtherTargets:
    """Further targets of a booklet, with the pilot (K,) of dependent answers, or None."""

    pilot: Array | None
    targets: tuple[Target, ...]

    @property
    def kind(self) -> tuple[object, ...]:
        """A key that is equal for targets with the same designs."""
        rows = tuple((target.row.tobytes(), target.variance) for target in self.targets)
        return None if self.pilot is None else self.pilot.tobytes(), rows


def shares_and_targets(units: Sequence[Unit], further_targets: FurtherTargets | None) -> tuple[Array, list[Target]]:
    """Return the pilot (K,) of the units of a booklet and all targets on their cells."""
    pilot, targets = product_of(units, () if further_targets is None else further_targets.targets)
    return pilot if further_targets is None or further_targets.pilot is None else further_targets.pilot, targets


def cells_targets(pair: tuple[Unit, ...]) -> list[Target]:
    """Return targets for every cell of a two-way table, as precise as the less precise of its two questions."""
    names = [question.name for unit in pair for question in unit.questions]
    cells = np.eye(math.prod(len(unit.cells) for unit in pair))
    variance = max((target.variance for unit in pair for target in unit.targets), default=1e-3)
    return [Target((*names, str(cell)), row, variance) for cell, row in enumerate(cells)]
