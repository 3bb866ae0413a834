"""Designs whose outputs are given: search, mend, measure, and the better of two bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ldpopt.channel import Channel, Label
from ldpopt.design.alphabet_program import AlphabetProgram, Leaf, leaf_bound, parts
from ldpopt.design.branch import BranchAndBound
from ldpopt.design.branch_dual import Relaxed, outputs_of
from ldpopt.design.certificate import Certificate, Contraction, Verification
from ldpopt.design.column_utility import ColumnUtility
from ldpopt.design.constraints import (
    AlphabetConstraint,
    ApproximateLDP,
    Constraint,
    Invariant,
    LocalDP,
    Support,
    TotalVariation,
)
from ldpopt.design.design import Design
from ldpopt.design.expected_loss import ExpectedLoss
from ldpopt.design.interval_dual import verify_measured
from ldpopt.design.local_search import Climb, LocalSearch
from ldpopt.design.methods import Method
from ldpopt.design.problem import pose
from ldpopt.design.repair import Unrepairable
from ldpopt.design.utilities import Divergence
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


def mend(matrix: Array, constraints: Sequence[Constraint], inputs: tuple[Label, ...] | None) -> Array:
    """A matrix near `matrix` (k, m) that meets all constraints by measurement.

    Equations are restored first; then the matrix is mixed with a channel that meets everything with room to spare, a
    constant one where that can be, and the equations are restored again.
    """
    fixed = [constraint for constraint in constraints if isinstance(constraint, AlphabetConstraint)]

    def restored(q: Array) -> Array:
        for one in sorted(fixed, key=lambda one: isinstance(one, Invariant)):
            q = one.mend(q)
        return np.asarray(q / q.sum(axis=1, keepdims=True))

    epsilon = min((c.epsilon for c in constraints if isinstance(c, LocalDP) and c.symmetric), default=math.inf)
    clean = np.where(matrix > 1e-11, matrix, 0.0)
    start = restored(np.maximum(clean, clean.max(axis=0) * math.exp(-epsilon)))
    centre = _centre(matrix.shape, constraints, inputs, restored, start)
    weight = 0.0
    while weight <= 1e-3:
        channel = Channel(restored((1 - weight) * start + weight * centre), inputs)
        if _within([constraint.measure(channel) for constraint in constraints], constraints):
            return channel.matrix
        weight = max(1e-16, 2 * weight)
    raise Unrepairable(start)


def _centre(
    shape: tuple[int, int], constraints: Sequence[Constraint], inputs: Any, restored: Any, start: Array
) -> Array:
    """A channel that meets the constraints, constant if one does, else the most central one a solver finds."""
    rows = [one.constant(shape) for one in constraints if isinstance(one, AlphabetConstraint)]
    for row in [*(row for row in rows if row is not None), start.mean(axis=0)]:
        made = np.tile(row, (shape[0], 1))
        if _within([constraint.measure(Channel(made, inputs)) for constraint in constraints], constraints):
            return made
    # Half of what total variation allows leaves the middle of the set.
    tighter = [replace(c, eta=c.eta / 2) if isinstance(c, TotalVariation) else
               replace(c, delta=c.delta / 2) if isinstance(c, ApproximateLDP) else c for c in constraints]  # fmt: skip
    for tried in (tighter, constraints):
        terms, fixed, expressions = parts(tried, inputs or range(shape[0]))
        try:
            found = AlphabetProgram(shape, terms, fixed, expressions).solve(np.zeros((1, *shape[::-1])))[0]
        except SolverError:
            continue
        return np.asarray(restored(np.where(found > 1e-11, found, 0.0)))
    return start


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


def _within(guarantees: Sequence[Any], constraints: Sequence[Constraint]) -> bool:
    return all(g.value <= constraint.bound for g, constraint in zip(guarantees, constraints, strict=True))


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


@dataclass(frozen=True, eq=False, repr=False)
class AlphabetLossDual(Certificate):
    """Multipliers of the program of an expected loss whose constraints fix the decisions: linear, hence exact.

    constraints : all of them. leaf : the multipliers, checked against every decision.
    """

    constraints: tuple[Constraint, ...]
    leaf: Leaf

    argument = "linear-programming duality, one column a decision"

    @property
    def upper_bound(self) -> float:
        """The bound, recomputed."""
        terms, fixed, _ = parts(self.constraints, self.utility.inputs)
        return leaf_bound(self.leaf, _losses(self.utility), terms, fixed, None)

    def verify(self) -> Verification:
        """Recompute the guarantees, the loss and the bound from scratch."""
        return verify_measured(self, self.constraints)


def _losses(utility: ExpectedLoss) -> Array:
    """(priors, m, k) linear utilities."""
    return np.asarray(-(utility.priors[:, None, :] * utility.loss.T[None]))


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
