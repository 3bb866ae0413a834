"""Channels over a denominator for many answers: the optimum without it, rounded, repaired and improved by moves."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.candidate import Ask, Candidate, Method
from ldpopt.design.certificates.base import Certificate
from ldpopt.design.columns.integer import Integers
from ldpopt.design.design import Design
from ldpopt.design.methods.integer_moves import Moves, worth_of
from ldpopt.design.methods.integer_search import Task, cost, polished, proofs, refusal, unrestricted
from ldpopt.design.problems.problem import Problem
from ldpopt.design.programs.integer import as_matrix, merged
from ldpopt.distribution import Array
from ldpopt.errors import SolverError
from ldpopt.exact_rounding import integers_near

POLISHED = 5_000
"""The most single-unit moves that are tried for each move that is made."""


@dataclass(frozen=True)
class Rounded(Method):
    """The best of several channels after rounding to the denominator; a better channel may exist.

    >>> from ldpopt import Denominator, Divergence, LocalDP, optimal_channel
    >>> from ldpopt.divergences import KL
    >>> u = Divergence(KL, [0.7, 0.3], [0.4, 0.6])
    >>> made = optimal_channel(u, [LocalDP(1.0), Denominator(6)], method=Rounded())
    >>> (6 * made.channel.matrix).round(9).tolist()
    [[4.0, 2.0], [2.0, 4.0]]
    """

    reference: ClassVar[str] = ""
    preference: ClassVar[int] = 20
    integral: ClassVar[bool] = True

    def refuses(self, problem: Problem) -> str:
        """It needs a denominator beside LocalDP and TotalVariation."""
        return refusal(problem)

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The best of the optimum without a denominator and of randomized responses, each of them rounded."""
        free = unrestricted(problem, ask)
        for tighter in (False, True):
            task = Task.of(problem, tighter)
            weights = roundings(task, free)
            if task.measured(weights):
                break
        else:
            raise SolverError("rounding to a denominator: the floats of what was found exceed the constraints")
        told = [cost(free, task.value(weights)), "rounded, not searched exhaustively: a better channel may exist"]

        def prove(posed: Problem, channel: Channel) -> Iterator[Certificate]:
            return proofs(free, posed, channel)

        return Candidate(
            as_matrix(weights, task.total), "repaired rounding, and units moved between outputs", prove,
            note="; ".join(one for one in told if one), shortfall="the bound is that of channels without a denominator",
        )  # fmt: skip


def roundings(task: Task, free: Design | None) -> Integers:
    """The best weights that rounding and moving units reach, from the optimum without a denominator and others."""
    starts = [] if free is None else [_rows(task.problem, free.channel.matrix)]
    starts.append(np.ones((task.inputs, 1)))  # says nothing, and is always there
    every = task.problem.deadline.rounds([*starts[:-1], *_simple(task), starts[-1]])
    tried = [made for start in every if (made := _rounded(task, start)) is not None]
    return max(
        tried or [np.full((task.inputs, 1), task.total, dtype=np.int64)],
        key=lambda one: (task.value(one), -one.shape[1]),
    )


def _rows(problem: Problem, matrix: Array) -> Array:
    """One row for each of the problem's merged inputs."""
    if problem.utility.pair is None:
        return matrix
    return np.asarray(matrix[np.unique(problem.reduction.classes, return_index=True)[1]])


def _simple(task: Task) -> Iterator[Array]:
    """Channels with few outputs: randomized response over blocks of neighbours, of every number of blocks."""
    k = task.inputs
    ratio = float(task.ratio) if task.ratio is not None else 1e9
    for blocks in range(2, k + 1):
        own = np.arange(k) * blocks // k
        raised = np.where(own[:, None] == np.arange(blocks), ratio, 1.0)
        yield raised / raised.sum(axis=1, keepdims=True)


def _rounded(task: Task, start: Array) -> Integers | None:
    k, m = start.shape
    if m > task.total:
        return None
    eta = Fraction(1) if task.cap is None else Fraction(task.cap, task.total)
    weights = merged(integers_near(start, task.total, task.ratio, eta))
    if (worth := worth_of(task)) is not None:
        return Moves(task, worth).best(weights)
    return polished(task, weights) if k * m * (m - 1) <= POLISHED and math.isfinite(task.value(weights)) else weights
