"""Cells of tables that nearly nobody has: their intervals cover, over several booklets, also with weights."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ldpopt import Channel, randomized_response
from ldpopt_survey import SampleDesign
from ldpopt_survey.estimate.groups import Source, estimate_booklets

TRUTH = np.array([0.3, 0.1, 0.0006, 0.4, 0.199, 0.0004])
"""A private yes/no answer by a public column of three values, the third of one person in a thousand."""
CELLS = tuple(range(6))


def sources(seed: int, epsilon: float, n: int = 2000) -> tuple[list[Source], np.random.Generator]:
    """Reports of n people, nine tenths of them in a booklet with the whole budget and the others with half of it."""
    rng = np.random.default_rng(seed)
    matrices = [np.kron(randomized_response(2, part).matrix, np.eye(3)) for part in (epsilon, epsilon / 2)]
    cells, booklet = rng.choice(6, n, p=TRUTH), (rng.random(n) >= 0.9).astype(int)
    probabilities = np.array(matrices)[booklet, cells]
    reports = (probabilities.cumsum(axis=1) > rng.random(n)[:, None]).argmax(axis=1)
    made = [
        Source(str(place), Channel(matrix, CELLS, CELLS), np.where(booklet == place, reports, -1), np.eye(6), TRUTH)
        for place, matrix in enumerate(matrices)
    ]
    return made, rng


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_intervals_of_rare_cells_cover(epsilon: float, weighted: bool) -> None:
    """A report that nobody sent may come from the next respondent: each of six cells is covered in 100 samples."""
    covered = np.zeros(6)
    for seed in range(100):
        booklets, rng = sources(seed, epsilon)
        design = SampleDesign(weights=rng.integers(1, 4, 2000).astype(float)) if weighted else None
        limits = estimate_booklets(booklets, CELLS, design).intervals()
        covered += (limits.lower <= TRUTH) & (limits.upper >= TRUTH)
    assert covered.min() >= 95 - 4 * math.sqrt(100 * 0.95 * 0.05)


def test_a_cell_without_a_report_has_an_upper_end_of_three_people() -> None:
    """One person of the rare value, with the other report: the interval of the cell is not a point near zero."""
    n, matrix = 3000, np.kron(randomized_response(2, 4.0).matrix, np.eye(3))
    reports = np.repeat(CELLS, [440, 420, 1, 1100, 1039, 0])
    booklets = [
        Source(str(place), Channel(matrix, CELLS, CELLS), np.where(np.arange(n) % 2 == place, reports, -1), np.eye(6),
               TRUTH)
        for place in range(2)
    ]  # fmt: skip
    limits = estimate_booklets(booklets, CELLS).intervals()
    assert 2 / n < limits.upper[5] < 6 / n
    assert limits.lower[5] < 0
