"""Designs whose outputs are decisions: one linear or cone program each."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.candidate import Ask, Candidate
from ldpopt.design.certificates.base import Certificate
from ldpopt.design.certificates.decisions import SamplingDual, linearised
from ldpopt.design.certificates.intervals import TermMultiplier
from ldpopt.design.certificates.losses import LossDual
from ldpopt.design.constraints.terms import Ratio
from ldpopt.design.methods.sizes import too_large
from ldpopt.design.problems.problem import Problem
from ldpopt.design.programs.labels import FARTHEST, label_program, scaled, term_expressions
from ldpopt.design.solve import INTERIOR, solve
from ldpopt.design.utilities.expected_loss import ExpectedLoss
from ldpopt.design.utilities.least_pair import GRID, NEAR, tangents
from ldpopt.design.utilities.private_sampling import PrivateSampling
from ldpopt.distribution import Array
from ldpopt.errors import SolverError

ROUNDS = 40


ACCURACY = 1e-9


ENTRIES = 250_000
"""The most decisions times inputs and constrained pairs of inputs."""


DRAWS = 1000
"""The most shares of a private sampling: every round adds a tangent to each, known by its share in all of them."""


@dataclass(frozen=True)
class DecisionProgram:
    """One linear (or cone) program on the decisions of an expected loss, which is linear in the channel."""

    reference: ClassVar[str] = ""

    def refuses(self, problem: Problem) -> str:
        """It needs an expected loss, and no constraint on the outputs."""
        if not isinstance(problem.utility, ExpectedLoss):
            return f"{problem.utility.name} is no expected loss"
        if problem.given:
            return "constraints fix the outputs"
        inputs, decisions = problem.utility.loss.shape
        return too_large(problem, inputs, decisions, ENTRIES)

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The channel of the smallest loss, and the multipliers of the program."""
        utility = problem.utility
        gains = -(utility.priors[:, None, :] * utility.loss.T[None])
        scale = float(np.abs(utility.loss).max()) or 1.0
        solved = label_program(gains / scale, problem.terms, problem.others)
        used = _stretched(np.maximum(solved.matrix, 0.0), max((term.farthest for term in problem.terms), default=1.0))
        used[:, used.max(axis=0) <= 1e-9] = 0.0
        multipliers = tuple(
            TermMultiplier(i, np.arange(len(term)), scaled(term, values, scale))
            for i, (term, values) in enumerate(zip(problem.terms, solved.multipliers, strict=True))
            if not isinstance(term, Ratio)
        )

        def prove(posed: Problem, channel: Channel) -> Iterator[Certificate]:
            if not posed.others:
                fields = (posed.whole, posed.constraints, channel)
                yield LossDual(*fields, solved.rows * scale, multipliers, solved.weights)
                most = np.tensordot(solved.weights, gains, 1).max(axis=0)
                for rows in _far_rows(solved.rows * scale, most, problem):
                    yield LossDual(*fields, rows, multipliers, solved.weights)

        return Candidate(used / used.sum(axis=1, keepdims=True), "linear program on the decisions", prove)


def _far_rows(rows: Array, most: Array, problem: Problem) -> Iterator[Array]:
    """Multipliers of the rows for a ratio beyond those where programs stop, from those of the program.

    most : (k,) what they are for an infinite ratio, where every input has its best decision. From there they fall with
    the inverse of the ratio, up to terms of its square.
    """
    ratio = max((term.farthest for term in problem.terms if isinstance(term, Ratio)), default=1.0)
    for farthest in FARTHEST:
        if ratio > farthest:
            yield most + (rows - most) * ((farthest - 1) / (ratio - 1))


def _stretched(matrix: Array, ratio: float) -> Array:
    """Entries at the ratio where programs stop, brought to that of the constraints; `repair` raises the rest."""
    if ratio <= FARTHEST[0]:
        return matrix
    share = matrix / np.where(matrix.max(axis=0) > 0, matrix.max(axis=0), 1.0)
    power = np.log(ratio) / np.log(FARTHEST[0])
    return np.where(share < 1e-6, matrix.max(axis=0) * share**power, matrix)


@dataclass(frozen=True)
class SamplingProgram:
    """Private sampling by tangents of its risks, added where they are missed."""

    reference: ClassVar[str] = "[PAL]"

    def refuses(self, problem: Problem) -> str:
        """It needs a private sampling, and no constraint on the outputs."""
        if not isinstance(problem.utility, PrivateSampling):
            return f"{problem.utility.name} is no private sampling"
        if problem.given:
            return "constraints fix the outputs"
        n, k = problem.utility.distributions.shape
        if n * k > DRAWS:
            return f"{n} distributions of {k} answers have {n * k} shares, and it takes at most {DRAWS}"
        return too_large(problem, n, k, ENTRIES)

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The channel of the smallest largest risk, and an expected loss below the risk as its proof."""
        utility = problem.utility
        matrix, ratios, mixture, prior = _program(problem)
        matrix = _stretched(matrix, max((term.farthest for term in problem.terms), default=1.0))
        shares = prior / prior.sum()

        def prove(posed: Problem, channel: Channel) -> Iterator[Certificate]:
            _, slopes = linearised(utility, ratios, mixture, shares)
            loss = ExpectedLoss(shares, slopes, utility.inputs, utility.answers)
            proof = ask(loss, posed.constraints).certificate
            if proof is not None:
                yield SamplingDual(posed.whole, posed.constraints, channel, ratios, mixture, shares, proof)

        return Candidate(matrix / matrix.sum(axis=1, keepdims=True), "linear program on tangents of the risks", prove)


def _program(problem: Problem) -> tuple[Array, Array, Array, Array]:
    import cvxpy as cp

    utility: PrivateSampling = problem.utility
    n, k = utility.distributions.shape
    terms = [term.within(FARTHEST[0])[0] for term in problem.terms]
    held = utility.distributions.ravel()
    at = [GRID if p > 0 else np.zeros(1) for p in held]
    best: tuple[Array, Array, Array, Array] | None = None
    gap, stale, scale = math.inf, 0, 1.0
    for _ in range(ROUNDS):
        q, each, worst = cp.Variable((n, k), nonneg=True), cp.Variable(n * k), cp.Variable()
        drawn = cp.reshape(q, (n * k,), order="C")
        place, ratios = np.repeat(np.arange(n * k), [len(r) for r in at]), np.concatenate(at)
        slope, level = tangents(utility.f, np.where(ratios > 0, ratios, 1.0))
        none = ratios == 0
        slope, level = (
            np.where(none, 0.0, slope),
            np.where(none, utility.f.excess(0.0, 1.0) if none.any() else 0, level),
        )
        slope, level = slope / scale, level / scale
        above = each[place] >= slope * held[place] + cp.multiply(level, drawn[place])
        most = cp.sum(cp.reshape(each, (n, k), order="C"), axis=1) <= worst * np.ones(n)
        limits = [cp.sum(q, axis=1) == 1, *term_expressions(terms, q)]
        limits += [made for expression in problem.others for made in expression(q)]
        try:
            # Central solutions: a vertex has rows at their limits that need not be, where tangents are then missed.
            solve(cp.Problem(cp.Minimize(worst), [above, most, *limits]), "private sampling", INTERIOR)
        except SolverError:
            # Tangents too nearly equal for the solver: what the round before has proved stands.
            if best is None:
                raise
            break
        matrix = np.maximum(np.asarray(q.value), 0.0)
        every, where = np.unique(ratios, return_inverse=True)
        mixture = np.zeros((n * k, len(every)))
        np.add.at(mixture, (place, where), np.maximum(np.asarray(above.dual_value), 0.0))
        first = np.array([np.searchsorted(every, r[0]) for r in at])
        idle = mixture.sum(axis=1) <= 0
        mixture[idle, first[idle]] = 1.0
        order = np.argsort(every == 0, kind="stable")
        every, mixture = (every[order], mixture[:, order]) if none.any() else (
            np.append(every, 0.0), np.hstack([mixture, np.zeros((n * k, 1))])
        )  # fmt: skip
        best = (matrix, every, mixture.reshape(n, k, -1), np.maximum(np.asarray(most.dual_value), 0.0))
        reached = float(utility.risks(matrix / matrix.sum(axis=1, keepdims=True)).max())
        missed = reached - float(worst.value) * scale
        stale = 0 if missed < 0.5 * gap else stale + 1
        gap = min(gap, missed)
        if gap <= ACCURACY * max(reached, 1e-3) or stale == 6:
            break
        scale = max(reached, 1e-2 * scale)
        now = held / np.maximum(matrix.ravel(), 1e-12)
        at = [
            np.append(old, r) if r > 0 and np.abs(old / r - 1).min() > NEAR else old
            for old, r in zip(at, now, strict=True)
        ]
    assert best is not None
    return best
