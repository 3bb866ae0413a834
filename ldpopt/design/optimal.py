"""The optimal channel: pose, find, repair, measure, prove."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import overload

import numpy as np
import numpy.typing as npt

from ldpopt.channel import ERASED, Channel, Label
from ldpopt.design.candidate import Candidate, Method
from ldpopt.design.certificates.base import Certificate
from ldpopt.design.constraints import ZCDP, Constraint, TotalVariation
from ldpopt.design.constraints.repair import Unrepairable, repair
from ldpopt.design.design import Design, EstimationDesign
from ldpopt.design.methods.choose import choose
from ldpopt.design.methods.column_patterns import best_columns
from ldpopt.design.methods.decisions import least_loss, least_risk
from ldpopt.design.methods.estimation import estimation_design
from ldpopt.design.methods.given_outputs import alphabet_design, on_alphabet
from ldpopt.design.methods.patterns import PatternLP
from ldpopt.design.methods.saddle import best_against
from ldpopt.design.problems.problem import Problem, listed, pose
from ldpopt.design.programs.patterns import LIMIT
from ldpopt.design.prove import coarse, prove
from ldpopt.design.utilities.against_set import AgainstSet
from ldpopt.design.utilities.column import ColumnUtility
from ldpopt.design.utilities.divergence import Divergence
from ldpopt.design.utilities.expected_loss import ExpectedLoss
from ldpopt.design.utilities.fisher_information import FisherInformation
from ldpopt.design.utilities.private_sampling import PrivateSampling
from ldpopt.distribution import Array
from ldpopt.errors import Phrase, invalid
from ldpopt.privacy import total_variation
from ldpopt.tolerances import BRACKET_GAP, CERTIFIED_GAP

_GAIN = 1e-9


@overload
def optimal_channel(
    utility: Divergence | ExpectedLoss | ColumnUtility | AgainstSet | PrivateSampling,
    constraints: Constraint | Iterable[Constraint],
    *,
    method: Method | None = None,
    certify: bool = True,
    near: Design | None = None,
) -> Design: ...


@overload
def optimal_channel(
    utility: FisherInformation,
    constraints: Constraint | Iterable[Constraint],
    *,
    method: None = None,
    certify: bool = True,
    near: None = None,
) -> EstimationDesign: ...


def optimal_channel(
    utility: Divergence | ExpectedLoss | ColumnUtility | AgainstSet | PrivateSampling | FisherInformation,
    constraints: Constraint | Iterable[Constraint],
    *,
    method: Method | None = None,
    certify: bool = True,
    near: Design | None = None,
) -> Design | EstimationDesign:
    """The channel that keeps the most of `utility` within `constraints`, with a proof of how close it is.

    max over channels Q of D_f(P0 Q || P1 Q)  subject to  Q epsilon-LDP, Q eta-TV          [GI, section VII]

    Parameters
    ----------
    utility : a `Divergence` between two hypotheses, finite or `scipy.stats` distributions; or a
        `FisherInformation`, whose criterion is an error and is made small (`estimation_design`); an `ExpectedLoss`;
        a `MutualInformation`, `Tests` or `WeightedSum`; an `AgainstSet`; a `PrivateSampling`.
    constraints : one or several of `LocalDP`, `TotalVariation`, `ApproximateLDP`, `RenyiLDP`, `ZCDP`, `TradeOff`; of
        `Outputs`, `Support`, `Invariant`, `CapacityBounded`, which fix the outputs; or one's own.
    method : a method object (`Partition()`, `PatternLP()`, `MergedPartition(bins)`, `ColumnGeneration()`, `Exchange()`,
        `Erasure()`, `LocalSearch(starts)`; `BranchAndBound(nodes)` where the outputs are fixed) for a `Divergence` or
        an `AgainstSet`; `PatternLP()` or `LocalSearch(starts)` for a `MutualInformation`, `Tests` or `WeightedSum`.
        Chosen by the problem when None. The other utilities are each one convex program and take no method.
    certify : False skips the certificate, and with it the upper bound.
    near : a design of the same `Divergence` for neighbouring caps on epsilon and eta, whose multipliers are tried as a
        proof before new ones are computed. Along eta they often suffice: the optimum is piecewise linear in it.

    Returns a `Design`. Its guarantees are those of the returned matrix, measured after repair. Raises
    `InvalidInput` for problems that cannot be posed or a method that does not apply, `SolverError` when no
    solver gives a usable answer.

    >>> from ldpopt import LocalDP, TotalVariation
    >>> from ldpopt.divergences import KL
    >>> u = Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
    >>> design = optimal_channel(u, [LocalDP(1.0), TotalVariation(0.3)])
    >>> round(design.value, 6), design.certified
    (0.029225, True)
    """
    given = listed(constraints)
    while True:
        try:
            return _designed(utility, given, method, certify, near)
        except Unrepairable as failure:
            # Constraints of infinitely many orders are posed for a few; those that the channel exceeds join.
            tighter = tuple((c.tightened(failure.matrix) or c) if isinstance(c, ZCDP) else c for c in given)
            if tighter == given:
                raise
            given = tighter


def _designed(
    utility: Divergence | ExpectedLoss | ColumnUtility | AgainstSet | PrivateSampling | FisherInformation,
    given: tuple[Constraint, ...],
    method: Method | None,
    certify: bool,
    near: Design | None,
) -> Design | EstimationDesign:
    if on_alphabet(given):
        if isinstance(utility, FisherInformation | AgainstSet | PrivateSampling):
            raise invalid("constraints", f"none on the outputs for a {type(utility).__name__}", Phrase("such a one"))
        return alphabet_design(utility, given, method, certify)
    if isinstance(utility, ExpectedLoss):
        if method is not None:
            raise invalid("method", "None (an expected loss is one linear program)", method)
        return least_loss(utility, given, certify)
    if isinstance(utility, PrivateSampling):
        if method is not None:
            raise invalid("method", "None (private sampling is one convex program)", method)
        return least_risk(utility, given, certify)
    if isinstance(utility, AgainstSet):
        return best_against(utility, given, method, certify)
    if isinstance(utility, ColumnUtility):
        return best_columns(utility, given, certify, method)
    if isinstance(utility, FisherInformation):
        if method is not None:
            raise invalid("method", "None for a FisherInformation, which has one method", method)
        return estimation_design(utility, given, certify=certify)
    if near is not None and not isinstance(near, Design):
        raise invalid("near", "a Design", type(near).__name__)
    problem = pose(utility, given)
    known = near.certificate if near is not None else None
    found = (method or choose(problem)).find(problem)
    design = _finish(problem, utility, found, certify, known)
    if method is None and certify and problem.plain and not design.certified and len(problem.reduction.pair) <= LIMIT:
        better = _finish(problem, utility, PatternLP().find(problem), certify, known)
        if better.value > design.value * (1 + _GAIN):
            return better
    return design


def _finish(
    problem: Problem, utility: Divergence, found: Candidate, certify: bool, near: Certificate | None = None
) -> Design:
    rows, classes = _rows(problem, found.matrix)
    edges = None
    if problem.cells is not None:
        # Neighbouring cells with one row are one input.
        starts = np.flatnonzero(np.concatenate([[True], np.diff(classes) != 0]))
        classes, cells = classes[starts], problem.cells.starts(starts)
        edges = cells.edges
        problem = replace(problem, utility=Divergence(utility.f, *cells.masses, inputs=cells.labels))
    finite = problem.utility
    channel = Channel(rows.matrix[classes], finite.inputs, rows.outputs)
    guarantees = tuple(constraint.measure(channel) for constraint in problem.constraints)
    value = finite.value(channel)
    certificate, proved = _certificate(problem, found, channel, value, near) if certify else (None, math.inf)
    bound = max(value, proved)
    # A gap below the rounding of the utility itself is no gap.
    gap = bound - value - 1e-13 * min(finite.unprivate, 1.0)
    bracketed = certificate is not None and coarse(problem, certificate) and gap > CERTIFIED_GAP * bound
    tolerance = BRACKET_GAP if bracketed else CERTIFIED_GAP
    certified = certificate is not None and gap <= tolerance * bound
    note = _note(problem, found, channel, certificate, certified)
    return Design(
        utility, problem.constraints, channel, value, bound, guarantees, found.method, certificate, certified,
        tolerance, note, edges,
    )  # fmt: skip


def _certificate(
    problem: Problem, found: Candidate, channel: Channel, value: float, near: Certificate | None
) -> tuple[Certificate | None, float]:
    """What proves the channel, and its bound: inf for none."""
    if found.prove is not None:
        certificate = found.prove(problem, channel)
        return certificate, certificate.upper_bound if certificate else math.inf
    return prove(problem, channel, value, _cuts(problem, found.matrix), near)


def _rows(problem: Problem, matrix: Array) -> tuple[Channel, npt.NDArray[np.intp]]:
    """The distinct rows of the repaired channel, outputs in order of likelihood ratio, and each input's row."""
    if problem.symmetric:
        distinct, which = np.unique(matrix, axis=0, return_inverse=True)
    else:
        distinct, which = matrix, np.arange(len(matrix))
    merged = Channel(distinct / distinct.sum(axis=1, keepdims=True)).merge().matrix
    which = which.reshape(-1)[problem.reduction.classes]
    k = len(distinct)
    m0 = np.bincount(which, problem.utility.p0, k) @ merged
    m1 = np.bincount(which, problem.utility.p1, k) @ merged
    merged = merged[:, np.argsort(m0 / (m0 + m1), kind="stable")]
    silent = np.flatnonzero(np.ptp(merged, axis=0) <= 1e-12 * merged.max(axis=0))
    merged = np.hstack([np.delete(merged, silent, axis=1), merged[:, silent]])
    outputs: list[Label] = list(range(merged.shape[1] - len(silent)))
    inputs = None if problem.symmetric else problem.utility.inputs
    repaired = repair(merged, problem.constraints, inputs)
    return Channel(repaired, None, (*outputs, *[ERASED][: len(silent)])), which


def _cuts(problem: Problem, matrix: Array) -> Array:
    """(c, 2) posteriors of the neighbouring inputs between which the rows of the channel change."""
    at = np.flatnonzero((matrix[1:] != matrix[:-1]).any(axis=1))
    posterior = problem.reduction.pair.posterior
    return np.column_stack([posterior[at], posterior[at + 1]])


def _note(
    problem: Problem, found: Candidate, channel: Channel, certificate: Certificate | None, certified: bool
) -> str:
    parts = []
    if math.isfinite(problem.epsilon) and any(isinstance(c, TotalVariation) for c in problem.constraints):
        reach = float(total_variation(channel))
        if problem.cap is None:
            parts.append(f"eta = {problem.eta:g} does not bind: it is at least tanh(epsilon/2) [GI, Prop 2]")
        elif reach < problem.eta * (1 - 1e-9):
            parts.append(f"eta = {problem.eta:g} does not bind: the channel's total variation is {reach:.6g}")
    if certificate is None:
        parts.append("no certificate was asked for, so nothing bounds the optimum")
    elif not certified:
        conjecture = "; that a coin between partitions is optimal under a TV cap is conjectured, not proved"
        partition = problem.cap is not None and found.method.startswith("partition")
        parts.append(
            "not certified: the bound is rigorous but not within the tolerance; try another method"
            + conjecture * partition
        )
    return "; ".join(parts)
