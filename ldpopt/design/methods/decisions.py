"""Designs whose outputs are decisions: one linear or cone program each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.certificates.decisions import LossDual, SamplingDual, linearised
from ldpopt.design.certificates.intervals import TermMultiplier
from ldpopt.design.constraints import ColumnConstraint, Constraint
from ldpopt.design.constraints.repair import repair
from ldpopt.design.constraints.terms import Ratio, Term
from ldpopt.design.design import Design
from ldpopt.design.programs.labels import Expression, label_program, scaled
from ldpopt.design.solve import INTERIOR, solve
from ldpopt.design.utilities.expected_loss import ExpectedLoss
from ldpopt.design.utilities.least_pair import GRID, NEAR, tangents
from ldpopt.design.utilities.private_sampling import PrivateSampling
from ldpopt.distribution import Array
from ldpopt.errors import SolverError
from ldpopt.tolerances import CERTIFIED_GAP


def least_loss(utility: ExpectedLoss, constraints: Iterable[Constraint], certify: bool) -> Design:
    """The channel of the smallest expected loss: one linear (or cone) program on the decisions themselves."""
    listed = tuple(constraints)
    terms: list[Term | Ratio] = []
    expressions: list[Expression] = []
    for constraint in listed:
        if isinstance(constraint, ColumnConstraint):
            terms += constraint.columns(utility.inputs)  # type: ignore[arg-type]
        else:
            expressions.append(constraint.expression)
    gains = -(utility.priors[:, None, :] * utility.loss.T[None])
    scale = float(np.abs(utility.loss).max()) or 1.0
    solved = label_program(gains / scale, terms, expressions)
    used = np.maximum(solved.matrix, 0.0)
    used[:, used.max(axis=0) <= 1e-9] = 0.0
    matrix = repair(used / used.sum(axis=1, keepdims=True), listed, utility.inputs)
    channel = Channel(matrix, utility.inputs, utility.decisions)
    value = utility.value(channel)
    certificate = None
    if certify and not expressions:
        multipliers = tuple(
            TermMultiplier(i, np.arange(len(term)), scaled(term, values, scale))
            for i, (term, values) in enumerate(zip(terms, solved.multipliers, strict=True))
            if not isinstance(term, Ratio)
        )
        certificate = LossDual(
            utility, channel, np.inf, 1.0, listed, solved.rows * scale, multipliers, solved.weights  # type: ignore[arg-type]
        )  # fmt: skip
    bound = max(value, certificate.upper_bound) if certificate else np.inf
    certified = certificate is not None and bound - value <= CERTIFIED_GAP * max(abs(bound), 1e-3 * scale)
    note = "" if certificate else "no certificate: not asked for, or a constraint without a column form"
    guarantees = tuple(constraint.measure(channel) for constraint in listed)
    how = "linear program on the decisions"
    return Design(
        utility, listed, channel, value, bound, guarantees, how, certificate, certified, CERTIFIED_GAP, note, None
    )  # fmt: skip


ROUNDS = 40


ACCURACY = 1e-9


def least_risk(utility: PrivateSampling, constraints: Sequence[Constraint], certify: bool) -> Design:
    """The channel of the smallest largest risk, by tangents added where they are missed."""
    given = tuple(constraints)
    matrix, ratios, mixture, prior = _program(utility, given)
    repaired = repair(matrix / matrix.sum(axis=1, keepdims=True), given, utility.inputs)
    channel = Channel(repaired, utility.inputs, utility.answers)
    value = utility.value(channel)
    certificate, bound = None, math.inf
    if certify:
        _, slopes = linearised(utility, ratios, mixture, prior)
        posed = ExpectedLoss(prior / prior.sum(), slopes, utility.inputs, utility.answers)
        proof = least_loss(posed, given, certify=True).certificate
        if proof is not None:
            certificate = SamplingDual(utility, channel, math.inf, 1.0, given, ratios, mixture, posed.priors[0], proof)
            bound = max(value, certificate.upper_bound)
    certified = certificate is not None and bound < math.inf and bound - value <= CERTIFIED_GAP * max(-value, 1e-3)
    note = "" if certificate else "no certificate: not asked for, or a constraint without a column form"
    guarantees = tuple(constraint.measure(channel) for constraint in given)
    how = "linear program on tangents of the risks"
    return Design(
        utility, given, channel, value, bound, guarantees, how, certificate, certified, CERTIFIED_GAP, note, None
    )  # fmt: skip


def _program(utility: PrivateSampling, constraints: Sequence[Constraint]) -> tuple[Array, Array, Array, Array]:
    import cvxpy as cp

    from ldpopt.design.constraints import ColumnConstraint
    from ldpopt.design.programs.labels import term_expressions

    n, k = utility.distributions.shape
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
        limits: list[Any] = [cp.sum(q, axis=1) == 1]
        for constraint in constraints:
            if isinstance(constraint, ColumnConstraint):
                limits += term_expressions(constraint.columns(utility.inputs), q)  # type: ignore[arg-type]
            else:
                limits += list(constraint.expression(q))
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
