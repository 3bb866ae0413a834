"""From a candidate to a design: repair, measure, prove, judge. Every design is made here, and nowhere else.

`proofs` lists the certificates that a problem admits for a channel, in the order in which they are tried.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ldpopt.design.arrange import Arranged, arrange, rearranged
from ldpopt.design.candidate import Ask, Candidate, declared, refusal
from ldpopt.design.constraints.base import plain_of, stated_guarantees, within
from ldpopt.design.design import Design, is_certified, relative_gap
from ldpopt.design.kernel.certificate import Certificate, Unbounded, believed
from ldpopt.design.kernel.proof import Contraction, PartsBound, Relaxed
from ldpopt.design.problems.problem import Problem
from ldpopt.design.registry import METHOD_MODULES, inherits
from ldpopt.design.utilities.base import ColumnUtility
from ldpopt.errors import InvalidInput, SolverError
from ldpopt.numbers.enclosures import FLOAT, Enclosure
from ldpopt.numbers.rounding import ceil_digits
from ldpopt.numbers.tolerances import BRACKET_GAP, CERTIFIED_GAP, OTHER_PROCESSOR
from ldpopt.privacy import Guarantee

LISTED = ("PatternLP", "MarginalPatterns", "LevelLP", "BalancedSets", "PolicyLP")
"""The methods whose certificates are prices that hold for every column that the constraints allow."""


Proofs = Iterator[Certificate | str]
"""Certificates, and for a proof that could not be made the reason."""


def proofs(problem: Problem, candidate: Candidate, arranged: Arranged, near: Certificate | None, ask: Ask) -> Proofs:
    """Certificates for the arranged channel, computed one by one as they are asked for. near : the certificate of a
    neighbouring problem, whose numbers are tried first. Between two break points in eta, one set of multipliers proves
    every optimum.
    """
    fields = (problem.whole, problem.constraints, arranged.channel)
    if near is not None:
        yield near.of(*fields, edges=arranged.edges)
    if candidate.prove is not None:
        yield from candidate.prove(problem, arranged.channel)
    if inherits(problem.whole, "FisherInformation"):
        from ldpopt.design.estimation.proof import SharedInformation

        yield SharedInformation(*fields)
    if problem.whole.contracts and not problem.whole.continuous:
        yield Contraction(*fields)
    if problem.whole.information:
        yield from _by_capacity(problem, arranged)
    if problem.plain and problem.utility.pair is not None and math.isfinite(problem.epsilon):
        from ldpopt.design.two_hypotheses.method import envelope_duals

        yield from envelope_duals(problem, candidate, arranged)
    if problem.known is not None:
        yield from _without(problem, problem.known, arranged, ask)
        return
    if problem.given:
        yield from _without(problem, problem.free, arranged, ask)
        return
    if candidate.prove is None and isinstance(problem.utility, ColumnUtility) and problem.utility.pair is None:
        yield from _by_fewer(problem, arranged, ask)
    if problem.utility.parts():
        yield from _by_parts(problem, arranged, ask)


def _by_capacity(problem: Problem, arranged: Arranged) -> Proofs:
    """Certificates of mutual information by the capacity that the constraints leave."""
    from ldpopt.design.information.program import pairwise_weights
    from ldpopt.design.information.proof_capacity import InformationCapacity, PairwiseInformation

    fields = (problem.whole, problem.constraints, arranged.channel)
    yield InformationCapacity(*fields)
    if not problem.plain:
        for paid in pairwise_weights(problem.whole.prior, problem.constraints):
            yield PairwiseInformation(
                *fields, paid.orders, paid.weights, paid.reaches, paid.above, paid.below, paid.slope
            )


def _without(problem: Problem, fewer: Problem | None, arranged: Arranged, ask: Ask) -> Proofs:
    """The certificate of the problem with fewer constraints, whose optimum is at least as good."""
    if fewer is None or problem.deadline.over():
        return
    # Where that problem has no finite answer, or no solver finds it, this proof is lost, not the design.
    known = _certificate(ask, problem.whole, fewer.constraints)
    yield known if isinstance(known, str) else Relaxed(problem.whole, problem.constraints, arranged.channel, known)


def _certificate(ask: Ask, *problem: Any, **how: Any) -> Certificate | str:
    """The certificate of another problem's design, or why there is none."""
    try:
        design = ask(*problem, **how)
    except (SolverError, InvalidInput) as error:
        return str(error)
    return str(design.note) if design.certificate is None else design.certificate


def _by_fewer(problem: Problem, arranged: Arranged, ask: Ask) -> Proofs:
    """Certificates of the problem with fewer constraints, where `LISTED` has a method for it. Leaving constraints out
    makes the optimum no worse, so that the bounds hold for all constraints.
    """
    plain = tuple(c for c in problem.constraints if plain_of(c) is not None)
    for kept in ((plain,) if plain else ()) + tuple((c,) for c in problem.constraints if c not in plain):
        if len(kept) == len(problem.constraints):
            continue
        if problem.deadline.over():
            return
        fewer = replace(problem, constraints=kept)
        listed = (known for known in declared(METHOD_MODULES) if known.name in LISTED and known.may_apply(fewer))
        method = next((known.method for known in listed if not refusal(known.method, fewer)), None)
        if method is not None:
            known = _certificate(ask, problem.whole, kept, method=method)
            fields = (problem.whole, problem.constraints, arranged.channel)
            yield known if isinstance(known, str) else known.of(*fields)


def _by_parts(problem: Problem, arranged: Arranged, ask: Ask) -> Proofs:
    """A bound from the optimum of each part alone."""
    certificates = []
    for part in problem.whole.parts():
        if problem.deadline.over():
            return
        known = _certificate(ask, part, problem.constraints)
        if isinstance(known, str):
            yield known
            return
        certificates.append(known)
    yield PartsBound(problem.whole, problem.constraints, arranged.channel, tuple(certificates))


ENOUGH_GAP = 0.2  # No further proof is looked for once the relative gap is within this share of the tolerance.
NO_FORM = "no constraint has a column form"


def finish(problem: Problem, candidate: Candidate, certify: bool, near: Certificate | None, ask: Ask) -> Design:
    """The design of a candidate's channel, with the best of the proofs that the problem admits."""
    utility, constraints, arranged = problem.whole, problem.constraints, arrange(problem, candidate)
    if not within(arranged.channel, constraints):
        arranged = rearranged(problem, arranged)
    guarantees = stated_guarantees(arranged.channel, constraints)
    channel = arranged.channel
    nothing = Unbounded(utility, constraints, channel, edges=arranged.edges)
    value = _stated_value(nothing.enclosed_value(FLOAT), utility.error)
    tolerance = candidate.tolerance or (BRACKET_GAP if problem.cells is not None else CERTIFIED_GAP)
    best, bound, why = None, nothing.bound, ""
    if certify:
        best, bound, why = _best(problem, candidate, arranged, value, tolerance, near, ask)
        if best is not None:
            bound -= math.copysign(abs(bound) * max(best.room, OTHER_PROCESSOR), 1 if utility.error else -1)
    certified = best is not None and is_certified(value, bound, tolerance, utility.error, utility.logarithmic)
    lower, upper = (bound, value) if utility.error else (value, bound)
    note = "; ".join(_notes(problem, candidate, guarantees, value, bound, best, why, certify, certified))
    return Design(
        utility, constraints, channel, value, lower, upper, guarantees, candidate.method, best, certified, tolerance,
        note, arranged.edges,
    )  # fmt: skip


def _stated_value(enclosure: Enclosure, error: bool) -> float:
    """The worse end, and by the width of the enclosure worse: where another processor rounds otherwise, its enclosure
    holds the same number and is about as wide, so that it proves what is stated.
    """
    lower, upper = float(enclosure.lower), float(enclosure.upper)
    worse, away = (upper, 1.0) if error else (lower, -1.0)
    if math.isnan(worse):
        return away * math.inf
    room = min(upper - lower, 16 * OTHER_PROCESSOR * abs(worse))
    return worse + away * room if math.isfinite(room) else worse


def _best(
    problem: Problem, candidate: Candidate, arranged: Arranged, value: float, tolerance: float,
    near: Certificate | None, ask: Ask,
) -> tuple[Certificate | None, float, str]:  # fmt: skip
    """The certificate with the best bound, that bound, and why there is none: proofs are tried until one is tight."""
    utility = problem.whole
    best, bound = None, -math.inf if utility.error else math.inf
    reasons: list[str] = []
    for certificate in proofs(problem, candidate, arranged, near, ask):
        if isinstance(certificate, str):
            reasons.append(certificate)
            continue
        proved = certificate.bound_in(FLOAT)
        if proved.why:
            reasons.append(proved.why)
        elif best is None or (proved.value > bound if utility.error else proved.value < bound):
            best, bound = certificate, proved.value
        if relative_gap(value, bound, utility.logarithmic) <= min(ENOUGH_GAP * tolerance, CERTIFIED_GAP):
            break
        if best is not None and best.tight and problem.deadline.over():
            break
    return best, bound, "" if best else "; ".join(dict.fromkeys(reasons[-2:]))


def _notes(
    problem: Problem, candidate: Candidate, guarantees: Sequence[Guarantee], value: float, bound: float,
    best: Certificate | None, why: str, certify: bool, certified: bool,
) -> list[str]:  # fmt: skip
    """The notes of a design, half a sentence each."""
    notes = [candidate.note] if candidate.note else []
    if problem.deadline.late:
        notes.append(f"the time limit of {problem.deadline.seconds:g} s ended the search or its proof")
    variations = [guarantee.value for guarantee in guarantees if guarantee.notion == "total_variation"]
    if math.isfinite(problem.epsilon) and variations:
        if problem.cap is None:
            notes.append(f"eta = {ceil_digits(problem.eta)} does not bind: it is at least tanh(epsilon/2) [GI, Prop 2]")
        elif min(variations) < problem.eta * (1 - 1e-6):
            reached = ceil_digits(min(variations))
            notes.append(f"eta = {ceil_digits(problem.eta)} does not bind: the channel's total variation is {reached}")
    if certified and best is not None and not best.tight and problem.given:
        notes += ["the budget of outputs does not bind"] * all(not c.labelled for c in problem.given)
    if problem.given and not certified and best is not None and not best.tight:
        notes.append("the bound is that of a problem without the constraints on the outputs")
    if certified and (trusted := believed(problem.whole, problem.constraints)):
        notes.append(f"the proof takes on trust: {', '.join(trusted)}")
    if not certify:
        notes.append("no certificate was asked for, so nothing bounds the optimum")
    elif best is None:
        notes.append(f"no proof was found that bounds the optimum: {why or candidate.shortfall or NO_FORM}")
    elif value == 0 and bound != 0:
        notes.append("not certified: the channel keeps nothing that float64 can tell from 0, and the bound is above it")
    elif not certified and candidate.shortfall:
        notes.append(f"not certified: {candidate.shortfall}")
    elif not certified and not best.tight:
        notes.append("not certified: the bound is that of an easier problem, and holds for this one too")
    elif not certified:
        remedy = "allow more time" if problem.deadline.late else "try another method"
        notes.append(f"not certified: the bound is rigorous but not within the tolerance; {remedy}")
    return notes
