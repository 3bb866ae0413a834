"""Designs whose outputs are given: search, mend, measure, and the better of two bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.candidate import Method
from ldpopt.design.certificates.base import Certificate
from ldpopt.design.certificates.contraction import Contraction
from ldpopt.design.certificates.decisions import AlphabetLossDual, _losses
from ldpopt.design.certificates.relaxed import Relaxed
from ldpopt.design.constraints import (
    AlphabetConstraint,
    Constraint,
    LocalDP,
    Support,
    TotalVariation,
)
from ldpopt.design.constraints.parts import outputs_of, parts
from ldpopt.design.design import Design
from ldpopt.design.methods.branch_and_bound import BranchAndBound
from ldpopt.design.methods.local_search import Climb, LocalSearch
from ldpopt.design.methods.mend import _within, mend
from ldpopt.design.problems.problem import pose
from ldpopt.design.programs.alphabet import AlphabetProgram
from ldpopt.design.utilities.column import ColumnUtility
from ldpopt.design.utilities.divergence import Divergence
from ldpopt.design.utilities.expected_loss import ExpectedLoss
from ldpopt.distribution import Array
from ldpopt.errors import InvalidInput, SolverError, invalid
from ldpopt.tolerances import CERTIFIED_GAP

STARTS = 12


def on_alphabet(constraints: Sequence[Constraint]) -> bool:
    """Whether some constraint says what the outputs are."""
    return any(isinstance(constraint, AlphabetConstraint) for constraint in constraints)


def alphabet_design(
    utility: Divergence | ColumnUtility | ExpectedLoss,
    constraints: tuple[Constraint, ...],
    method: Method | None,
    certify: bool,
) -> Design:
    """The best channel found for a utility whose constraints fix the outputs, and what bounds the optimum.

    The optimum without the constraints on the outputs bounds it; where that channel meets them, it is the answer.
    Otherwise a `Divergence` is branched on, and the smaller of the two bounds counts.
    """
    if not isinstance(utility, Divergence | ColumnUtility | ExpectedLoss):
        raise invalid("utility", "a Divergence, a column utility or an ExpectedLoss", type(utility).__name__)
    _possible(utility, constraints)
    if isinstance(utility, ExpectedLoss):
        return _loss(utility, constraints, certify)
    budgets = method is None and not any(_labelled(constraint) for constraint in constraints)
    rest = tuple(constraint for constraint in constraints if not isinstance(constraint, AlphabetConstraint))
    # Partitions and patterns are fast, so that they go first; the ratio-labelled program is asked when boxes fail.
    fast = isinstance(utility, Divergence) and all(
        isinstance(c, LocalDP | TotalVariation) and c.symmetric for c in rest
    )
    relaxed = None
    if budgets and (fast or not isinstance(utility, Divergence)):
        relaxed = _relaxed(utility, rest, certify)
        if relaxed is not None:
            guarantees = tuple(constraint.measure(relaxed.channel) for constraint in constraints)
            if _within(guarantees, constraints):
                certificate = relaxed.certificate and _wrap(utility, relaxed.channel, constraints, relaxed.certificate)
                note = "; ".join(filter(None, [relaxed.note, "the budget of outputs does not bind"]))
                return replace(
                    relaxed, constraints=constraints, guarantees=guarantees, certificate=certificate, note=note
                )
    if isinstance(utility, Divergence):
        matrix, how, proof, classes = _branched(utility, constraints, method, certify, relaxed)
    else:
        if method is not None:
            raise invalid("method", f"None for {utility.name}", method)
        matrix, how = _climbed(utility, constraints)
        proof, classes = None, np.arange(utility.size)
    inputs = utility.inputs
    matrix = mend(matrix, constraints, inputs if len(matrix) == len(classes) else None)[classes]
    labels = tuple(range(len(matrix))) if inputs is None else tuple(inputs)
    names = next((made for c in constraints if isinstance(c, AlphabetConstraint)
                  if (made := c.output_labels(labels)) is not None), None)  # fmt: skip
    channel = Channel(matrix, inputs, names)
    if not any(_labelled(c) for c in constraints):
        merged = channel.merge().matrix
        if isinstance(utility, Divergence):
            a, b = utility.p0 @ merged, utility.p1 @ merged
            merged = merged[:, np.argsort(a / (a + b), kind="stable")]
        channel = Channel(merged, inputs)
    value = utility.value(channel)
    best: Certificate | None = None
    bound = math.inf
    if certify:
        if isinstance(utility, Divergence):
            candidates = [Contraction(utility, channel, math.inf, 1.0)]
            candidates += [proof(pose(utility, constraints), channel)] if proof is not None else []
            best = min(candidates, key=lambda one: one.upper_bound)
        least = best.upper_bound if best else utility.unprivate
        if least - value > CERTIFIED_GAP * least:
            relaxed = relaxed or _relaxed(utility, rest, certify)
            if relaxed is not None and relaxed.upper_bound < least:
                least = relaxed.upper_bound
                best = relaxed.certificate and _wrap(utility, channel, constraints, relaxed.certificate)
        bound = max(value, least)
    certified = best is not None and bound - value <= CERTIFIED_GAP * bound + 1e-13
    guarantees = tuple(constraint.measure(channel) for constraint in constraints)
    return Design(
        utility, constraints, channel, value, bound, guarantees, how, best, certified, CERTIFIED_GAP,
        _note(certify, certified, best),
    )  # fmt: skip


def _branched(
    utility: Divergence, constraints: tuple[Constraint, ...], method: Method | None, certify: bool, relaxed: Any
) -> tuple[Array, str, Any, Any]:
    problem = pose(utility, constraints)
    chosen = method or BranchAndBound(starts=STARTS)
    if not isinstance(chosen, BranchAndBound | LocalSearch):
        raise invalid(
            "method", "BranchAndBound or LocalSearch where constraints fix the outputs", type(chosen).__name__
        )
    if isinstance(chosen, BranchAndBound) and not certify:
        chosen = LocalSearch(chosen.starts, chosen.rng)
    found = chosen.find(problem)
    return found.matrix, found.method, found.prove, problem.reduction.classes


def _climbed(utility: ColumnUtility, constraints: tuple[Constraint, ...]) -> tuple[Array, str]:
    k = utility.size
    terms, fixed, expressions = parts(constraints, utility.inputs or range(k))
    blank = utility.gradients(np.ones((k, 1)))
    program = AlphabetProgram((k, outputs_of(fixed, k)), terms, fixed, expressions, len(blank))
    climb = Climb(program, lambda q: float(utility.columns(q).sum(axis=1).min()), utility.gradients)
    return climb.best(STARTS, np.random.default_rng(0))[0], f"local search from {STARTS} starts"


def _relaxed(utility: Any, rest: tuple[Constraint, ...], certify: bool) -> Design | None:
    """The design without the constraints on the outputs; None where nothing is left, or nothing finite."""
    from ldpopt.design.optimal import optimal_channel

    if not rest:
        return None
    try:
        made: Design = optimal_channel(utility, rest, certify=certify)
        return made
    except (SolverError, InvalidInput):
        return None


def _wrap(utility: Any, channel: Channel, constraints: tuple[Constraint, ...], relaxation: Certificate) -> Relaxed:
    return Relaxed(utility, channel, relaxation.epsilon, relaxation.eta, constraints, relaxation)


def _labelled(constraint: Constraint) -> bool:
    return isinstance(constraint, AlphabetConstraint) and constraint.labelled


def _note(certify: bool, certified: bool, certificate: Certificate | None) -> str:
    if not certify:
        return "no certificate was asked for, so nothing bounds the optimum"
    if certified:
        return ""
    if isinstance(certificate, Relaxed | Contraction) or certificate is None:
        return "a local search: the upper bound is that of a relaxation, without the constraints on the outputs"
    return "not certified: the boxes ran out before the bound met the value; method=BranchAndBound(nodes) takes more"


def _possible(utility: Any, constraints: tuple[Constraint, ...]) -> None:
    """Raise `InvalidInput` for what theorems rule out."""
    if isinstance(utility, Divergence) and utility.continuous:
        raise InvalidInput("constraints: continuous hypotheses take LocalDP and TotalVariation only, got others")
    pure = any(isinstance(c, LocalDP) and c.symmetric for c in constraints)
    masks = [c.mask for c in constraints if isinstance(c, Support)]
    if pure and masks and not np.logical_and.reduce(masks).all(axis=0).any():
        raise InvalidInput(
            "constraints: expected an output that every input allows, because pure LDP makes what is impossible under "
            "one input impossible under all [GI, Def 6], got a mask without one"
        )


def _loss(utility: ExpectedLoss, constraints: tuple[Constraint, ...], certify: bool) -> Design:
    k, m = utility.loss.shape
    terms, fixed, expressions = parts(constraints, utility.inputs or ())
    count = outputs_of(fixed, k)
    if count != m and (count < m or any(one.labelled for one in fixed)):
        raise invalid("constraints", f"{m} outputs, one a decision of the loss", count)
    program = AlphabetProgram((k, m), terms, fixed, expressions, len(utility.priors))
    matrix, leaf = program.solve(_losses(utility))
    channel = Channel(mend(matrix, constraints, utility.inputs), utility.inputs, utility.decisions)
    value = utility.value(channel)
    certificate = AlphabetLossDual(utility, channel, math.inf, 1.0, constraints, leaf) if certify else None
    bound = max(value, certificate.upper_bound) if certificate else math.inf
    scale = float(np.abs(utility.loss).max())
    certified = certificate is not None and bound - value <= CERTIFIED_GAP * max(abs(bound), 1e-3 * scale)
    guarantees = tuple(constraint.measure(channel) for constraint in constraints)
    note = "" if certified else "not certified: the bound is rigorous but not within the tolerance"
    return Design(
        utility, constraints, channel, value, bound, guarantees, "linear program on the decisions", certificate,
        certified, CERTIFIED_GAP, note if certify else _note(certify, certified, certificate),
    )  # fmt: skip
