"""From the matrix of a candidate to a channel: repaired, with a row for every input, its outputs in order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldpopt.channel import ERASED, Channel, Label
from ldpopt.design.candidate import Candidate
from ldpopt.design.clean import mend
from ldpopt.design.constraints.base import within
from ldpopt.design.constraints.repair import Unrepairable, repair, stochastic
from ldpopt.design.problems.pair_values import posteriors
from ldpopt.design.problems.problem import Problem
from ldpopt.design.problems.reduction import Pair
from ldpopt.numbers.tolerances import SILENT
from ldpopt.values.distribution import Array


@dataclass(frozen=True, eq=False)
class Arranged:
    """A channel within the constraints, and the cut points of its inputs where the answers are real numbers."""

    channel: Channel
    edges: Array | None = None


def arrange(problem: Problem, candidate: Candidate) -> Arranged:
    """The channel of a candidate. Raises `Unrepairable` where its matrix is too far from the constraints."""
    if problem.denominator is not None:
        return _of_integers(problem, candidate.matrix)
    if problem.given or problem.placed or candidate.apart:
        return _given(problem, candidate.matrix, candidate.apart)
    if problem.utility.pair is not None:
        return _of_pair(problem, candidate.matrix)
    names = problem.utility.decisions
    matrix = repair(stochastic(candidate.matrix), problem.constraints, problem.labels)
    if names is not None:
        channel = Channel(matrix, problem.labels, names)
    else:
        matrix = Channel(matrix).merge().matrix
        order = _by_favour(matrix)
        channel = Channel(matrix[:, order], problem.labels, _output_labels(matrix[:, order], 1e-9))
    return Arranged(channel)


def rearranged(problem: Problem, arranged: Arranged) -> Arranged:
    """The channel repaired once more: merging outputs and copying rows may have raised a measure by an ulp. Raises
    `Unrepairable` where that does not help.
    """
    channel = arranged.channel
    if problem.denominator is not None:  # what is repaired has no denominator
        raise Unrepairable(channel.matrix)
    mended = (mend if problem.given or problem.others else repair)(channel.matrix, problem.constraints, channel.inputs)
    return Arranged(Channel(mended, channel.inputs, channel.outputs), arranged.edges)


def _given(problem: Problem, matrix: Array, apart: bool) -> Arranged:
    """The channel where constraints fix the outputs: named ones stay as they are, others are merged and sorted.

    Outputs that are kept `apart` are merged only where that breaks no constraint.
    """
    reduced = problem.utility.pair is not None and problem.symmetric
    rows = mend(matrix, problem.constraints, None if reduced else problem.labels)
    matrix = rows[problem.reduction.classes] if reduced else rows
    names = next((labels for c in problem.given if (labels := c.output_labels(problem.labels)) is not None), None)
    channel = Channel(matrix, problem.labels, problem.utility.decisions or names)
    if not problem.placed and problem.utility.decisions is None:
        merged = channel.merge().matrix
        if apart and not within(Channel(merged, problem.labels), problem.constraints):
            merged = channel.matrix
        if problem.utility.pair is not None:
            merged = merged[:, _by_ratio(merged, *problem.utility.pair)]
        channel = Channel(merged, problem.labels)
    return Arranged(channel)


def _of_integers(problem: Problem, matrix: Array) -> Arranged:
    """The channel of multiples of 1/D, which stay as they are: a row for every input, the outputs in order."""
    if problem.utility.decisions is not None:
        return Arranged(Channel(matrix, problem.labels, problem.utility.decisions))
    rows = matrix[problem.reduction.classes] if problem.utility.pair is not None else matrix
    rows = rows[:, _by_favour(rows)]
    return Arranged(Channel(rows, problem.labels, _output_labels(rows, SILENT)))


def _of_pair(problem: Problem, matrix: Array) -> Arranged:
    """The channel for two hypotheses: reports in order of likelihood ratio, and last the ones that say nothing."""
    p0, p1 = problem.utility.pair
    if problem.symmetric:
        distinct, inverse = np.unique(matrix, axis=0, return_inverse=True)
    else:
        distinct, inverse = matrix, np.arange(len(matrix))
    merged = _without_twins(stochastic(distinct))
    which = inverse.reshape(-1)[problem.reduction.classes]
    first, second = (np.asarray(np.bincount(which, p, len(distinct)), dtype=np.float64) for p in (p0, p1))
    merged = np.asarray(merged[:, _by_ratio(merged, first, second)])
    rows = repair(merged, problem.constraints, None if problem.symmetric else problem.labels)
    utility, edges, classes = problem.utility, None, which
    if problem.cells is not None:
        # Neighbouring cells with equal rows become one input.
        starts = np.flatnonzero(np.concatenate([[True], np.diff(which) != 0]))
        classes, cells = which[starts], problem.cells.starts(starts)
        utility, edges = cells.divergence(problem.whole.f), cells.edges
    inputs = tuple(range(len(classes))) if utility.inputs is None else utility.inputs
    return Arranged(Channel(rows[classes], inputs, _output_labels(rows, SILENT)), edges)


def _without_twins(matrix: Array) -> Array:
    """The matrix with proportional columns merged. Where all rows are nearly equal, columns are merged whose relative
    deviations from their means agree.
    """
    mean = matrix.mean(axis=0)
    matrix, mean = matrix[:, mean > 0], mean[mean > 0]
    away = matrix / mean - 1
    widest = float(np.abs(away).max())
    if not 0 < widest < 1e-2:
        return Channel(matrix).merge().matrix
    # The deviations are compared to twelve digits, or to as many as floats hold.
    digits = min(12, int(np.log10(widest / 1e-15)))
    _, which = np.unique(np.round(away / widest, max(digits, 1)), axis=1, return_inverse=True)
    merged = np.zeros((len(matrix), int(which.max()) + 1))
    np.add.at(merged.T, which.reshape(-1), matrix.T)
    return stochastic(merged)


def _by_ratio(matrix: Array, p0: Array, p1: Array) -> npt.NDArray[np.intp]:
    """The outputs in order of likelihood ratio, the silent ones last."""
    return np.lexsort((posteriors(Pair.of(p0, p1), matrix), _silent(matrix, SILENT)))


def _by_favour(matrix: Array) -> list[int]:
    """The outputs in order of the inputs that they favour, the silent ones last."""
    favoured = matrix > 0.5 * (matrix.max(axis=0) + matrix.min(axis=0))
    silent = _silent(matrix, 1e-9)
    return sorted(
        range(matrix.shape[1]),
        key=lambda y: (bool(silent[y]), int(favoured[:, y].sum()), tuple(np.flatnonzero(favoured[:, y]))),
    )


def _silent(matrix: Array, share: float) -> npt.NDArray[np.bool_]:
    return np.asarray(np.ptp(matrix, axis=0) <= share * matrix.max(axis=0))


def _output_labels(matrix: Array, share: float) -> tuple[Label, ...] | None:
    """Numbers, with `ERASED` for the report that says nothing; None unless there is exactly one such report."""
    silent = _silent(matrix, share)
    if silent.sum() != 1:
        return None
    return tuple(ERASED if quiet else y for y, quiet in enumerate(silent.tolist()))
