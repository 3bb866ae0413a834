"""From a candidate to a design: repair, measure, prove, judge. Every design is made here, and nowhere else."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ldpopt.design.arrange import Arranged, arrange, rearranged
from ldpopt.design.candidate import Ask, Candidate
from ldpopt.design.certificates.base import Certificate
from ldpopt.design.certificates.unbounded import Unbounded
from ldpopt.design.constraints.total_variation import TotalVariation
from ldpopt.design.design import Design
from ldpopt.design.judge import is_certified, relative_gap
from ldpopt.design.problems.problem import Problem
from ldpopt.design.prove import Unavailable, proofs
from ldpopt.enclosures import FLOAT
from ldpopt.privacy import Guarantee
from ldpopt.tolerances import BRACKET_GAP, CERTIFIED_GAP

ENOUGH = 0.2
"""No further proof is looked for once the relative gap is within this share of the tolerance."""

NO_FORM = "no constraint has a column form"


def finish(problem: Problem, candidate: Candidate, certify: bool, near: Certificate | None, ask: Ask) -> Design:
    """The design of a candidate's channel, with the best of the proofs that the problem admits."""
    utility, constraints, made = problem.whole, problem.constraints, arrange(problem, candidate)
    guarantees = tuple(constraint.measure(made.channel) for constraint in constraints)
    if not all(float(measured) <= c.bound for c, measured in zip(constraints, guarantees, strict=True)):
        made = rearranged(problem, made)
        guarantees = tuple(constraint.measure(made.channel) for constraint in constraints)
    channel = made.channel
    nothing = Unbounded(utility, constraints, channel, edges=made.edges)
    value = nothing.value_in(FLOAT)
    tolerance = candidate.tolerance or (BRACKET_GAP if problem.cells is not None else CERTIFIED_GAP)
    best, bound, why = None, nothing.bound, ""
    if certify:
        best, bound, why = _best(problem, candidate, made, value, tolerance, near, ask)
    certified = best is not None and is_certified(value, bound, tolerance, utility.error, utility.logarithmic)
    lower, upper = (bound, value) if utility.error else (value, bound)
    note = "; ".join(_notes(problem, candidate, guarantees, value, bound, best, why, certify, certified))
    return Design(
        utility, constraints, channel, value, lower, upper, guarantees, candidate.method, best, certified, tolerance,
        note, made.edges,
    )  # fmt: skip


def _best(
    problem: Problem, candidate: Candidate, made: Arranged, value: float, tolerance: float, near: Certificate | None,
    ask: Ask,
) -> tuple[Certificate | None, float, str]:  # fmt: skip
    """The certificate with the best bound, that bound, and why there is none: proofs are tried until one is tight."""
    utility = problem.whole
    best, bound = None, -math.inf if utility.error else math.inf
    reasons: list[str] = []
    for certificate in proofs(problem, candidate, made, near, ask):
        if isinstance(certificate, Unavailable):
            reasons.append(certificate.why)
            continue
        proved = certificate.bound_in(FLOAT)
        if proved.why:
            reasons.append(proved.why)
        elif best is None or (proved.value > bound if utility.error else proved.value < bound):
            best, bound = certificate, proved.value
        if relative_gap(value, bound, utility.logarithmic) <= min(ENOUGH * tolerance, CERTIFIED_GAP):
            break
        if best is not None and best.tight and problem.deadline.over():
            break
    return best, bound, "" if best else "; ".join(dict.fromkeys(reasons[-2:]))


def _notes(
    problem: Problem, candidate: Candidate, guarantees: Sequence[Guarantee], value: float, bound: float,
    best: Certificate | None, why: str, certify: bool, certified: bool,
) -> list[str]:  # fmt: skip
    """The notes of a design, half a sentence each."""
    told = [candidate.note] if candidate.note else []
    if problem.deadline.late:
        told.append(f"the time limit of {problem.deadline.seconds:g} s ended the search or its proof")
    if math.isfinite(problem.epsilon) and any(isinstance(c, TotalVariation) for c in problem.constraints):
        reach = min(
            g.value for c, g in zip(problem.constraints, guarantees, strict=True) if isinstance(c, TotalVariation)
        )
        if problem.cap is None:
            told.append(f"eta = {problem.eta:g} does not bind: it is at least tanh(epsilon/2) [GI, Prop 2]")
        elif reach < problem.eta * (1 - 1e-9):
            told.append(f"eta = {problem.eta:g} does not bind: the channel's total variation is {reach:.6g}")
    if certified and best is not None and not best.tight and problem.given:
        told += ["the budget of outputs does not bind"] * all(not c.labelled for c in problem.given)
    if problem.given and not certified and best is not None and not best.tight:
        told.append("the bound is that of a problem without the constraints on the outputs")
    if not certify:
        told.append("no certificate was asked for, so nothing bounds the optimum")
    elif best is None:
        told.append(f"no proof was found that bounds the optimum: {why or candidate.shortfall or NO_FORM}")
    elif value == 0 and bound != 0:
        told.append("not certified: the channel keeps nothing that float64 can tell from 0, and the bound is above it")
    elif not certified and candidate.shortfall:
        told.append(f"not certified: {candidate.shortfall}")
    elif not certified and not best.tight:
        told.append("not certified: the bound is that of an easier problem, and holds for this one too")
    elif not certified:
        remedy = "allow more time" if problem.deadline.late else "try another method"
        told.append(f"not certified: the bound is rigorous but not within the tolerance; {remedy}")
    return told
