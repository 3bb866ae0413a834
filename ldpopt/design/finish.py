"""Turn a candidate into a design: repair, measure, prove, judge. Every design is made here, and nowhere else.

`list_proofs` lists the certificates that a problem admits for a channel, in the order of their trial.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ldpopt.design.arrange import Arranged, arrange, rearrange
from ldpopt.design.candidate import Ask, Candidate, declared_methods, refusal
from ldpopt.design.constraints.base import meets_constraints, plain_of, stated_guarantees
from ldpopt.design.design import Design, is_certified, relative_gap
from ldpopt.design.kernel.certificate import Certificate, Unbounded, unproved_assumptions
from ldpopt.design.kernel.proof import Contraction, PartsBound, Relaxed
from ldpopt.design.problems.problem import Problem
from ldpopt.design.registry import METHOD_MODULES, inherits
from ldpopt.design.utilities.base import ColumnUtility
from ldpopt.errors import InvalidInput, SolverError
from ldpopt.numbers.enclosures import FLOAT, Enclosure
from ldpopt.numbers.rounding import ceil_digits
from ldpopt.numbers.tolerances import BRACKET_GAP, CERTIFIED_GAP, OTHER_PROCESSOR
from ldpopt.privacy import Guarantee

METHODS_WITH_COLUMN_PRICES = ("PatternLP", "MarginalPatterns", "LevelLP", "BalancedSets", "PolicyLP")
"""Methods whose certificates are prices that are valid for every column within the constraints."""


Proofs = Iterator[Certificate | str]
"""Certificates, and the reasons for proofs that could not be computed."""


def list_proofs(
    problem: Problem, candidate: Candidate, arrangement: Arranged, starting_certificate: Certificate | None, ask: Ask
) -> Proofs:
    """Generate certificates for the arranged channel, each computed when it is requested.

    starting_certificate : the certificate of a neighboring problem, whose numbers are tried first. Between two break
    points in eta, one set of multipliers proves every optimum.
    """
    fields = (problem.original_utility, problem.constraints, arrangement.channel)
    if starting_certificate is not None:
        yield starting_certificate.rebind(*fields, edges=arrangement.edges)
    if candidate.prove is not None:
        yield from candidate.prove(problem, arrangement.channel)
    if inherits(problem.original_utility, "FisherInformation"):
        from ldpopt.design.estimation.proof import SharedInformation

        yield SharedInformation(*fields)
    if problem.original_utility.contracts and not problem.original_utility.continuous:
        yield Contraction(*fields)
    if problem.original_utility.information:
        yield from _capacity_proofs(problem, arrangement)
    if problem.has_only_ldp_and_tv and problem.utility.pair is not None and math.isfinite(problem.epsilon):
        from ldpopt.design.two_hypotheses.method import envelope_duals

        yield from envelope_duals(problem, candidate, arrangement)
    if problem.without_user_constraints is not None:
        yield from _relaxation_proofs(problem, problem.without_user_constraints, arrangement, ask)
        return
    if problem.output_constraints:
        yield from _relaxation_proofs(problem, problem.without_output_constraints, arrangement, ask)
        return
    if candidate.prove is None and isinstance(problem.utility, ColumnUtility) and problem.utility.pair is None:
        yield from _fewer_constraints_proofs(problem, arrangement, ask)
    if problem.utility.parts():
        yield from _part_proofs(problem, arrangement, ask)


def _capacity_proofs(problem: Problem, arrangement: Arranged) -> Proofs:
    """Generate certificates of mutual information from the capacity that the constraints leave."""
    from ldpopt.design.information.program import pairwise_weights
    from ldpopt.design.information.proof_capacity import InformationCapacity, PairwiseInformation

    fields = (problem.original_utility, problem.constraints, arrangement.channel)
    yield InformationCapacity(*fields)
    if not problem.has_only_ldp_and_tv:
        for weights in pairwise_weights(problem.original_utility.prior, problem.constraints):
            yield PairwiseInformation(
                *fields,
                weights.orders,
                weights.weights,
                weights.reaches,
                weights.above,
                weights.below,
                weights.slope,
            )


def _relaxation_proofs(problem: Problem, relaxed_problem: Problem | None, arrangement: Arranged, ask: Ask) -> Proofs:
    """Generate the certificate of the problem with fewer constraints, whose optimum is at least as good."""
    if relaxed_problem is None or problem.deadline.over():
        return
    # If that problem has no finite solution, or no solver finds it, only this proof is lost, not the design.
    certificate = _certificate_of(ask, problem.original_utility, relaxed_problem.constraints)
    yield (
        certificate
        if isinstance(certificate, str)
        else Relaxed(problem.original_utility, problem.constraints, arrangement.channel, certificate)
    )


def _certificate_of(ask: Ask, *problem: Any, **options: Any) -> Certificate | str:
    """Return the certificate of the design of another problem, or the reason why there is none."""
    try:
        design = ask(*problem, **options)
    except (SolverError, InvalidInput) as error:
        return str(error)
    return str(design.note) if design.certificate is None else design.certificate


def _fewer_constraints_proofs(problem: Problem, arrangement: Arranged, ask: Ask) -> Proofs:
    """Generate certificates of the problem with fewer constraints.

    Only methods of `METHODS_WITH_COLUMN_PRICES` are used. Without some constraints the optimum is at least as good, so
    the bounds hold for all constraints.
    """
    pure_constraints = tuple(c for c in problem.constraints if plain_of(c) is not None)
    for subset in ((pure_constraints,) if pure_constraints else ()) + tuple(
        (c,) for c in problem.constraints if c not in pure_constraints
    ):
        if len(subset) == len(problem.constraints):
            continue
        if problem.deadline.over():
            return
        relaxed_problem = replace(problem, constraints=subset)
        entries = (
            entry
            for entry in declared_methods(METHOD_MODULES)
            if entry.name in METHODS_WITH_COLUMN_PRICES and entry.may_apply(relaxed_problem)
        )
        method = next((entry.method for entry in entries if not refusal(entry.method, relaxed_problem)), None)
        if method is not None:
            entry = _certificate_of(ask, problem.original_utility, subset, method=method)
            fields = (problem.original_utility, problem.constraints, arrangement.channel)
            yield entry if isinstance(entry, str) else entry.rebind(*fields)


def _part_proofs(problem: Problem, arrangement: Arranged, ask: Ask) -> Proofs:
    """Generate a bound from the optimum of each part alone."""
    certificates = []
    for part in problem.original_utility.parts():
        if problem.deadline.over():
            return
        certificate = _certificate_of(ask, part, problem.constraints)
        if isinstance(certificate, str):
            yield certificate
            return
        certificates.append(certificate)
    yield PartsBound(problem.original_utility, problem.constraints, arrangement.channel, tuple(certificates))


GAP_FRACTION = 0.2  # No further proof is computed once the relative gap is within this fraction of the tolerance.
NO_COLUMN_FORM = "no constraint has a column form"


def finish(
    problem: Problem, candidate: Candidate, certify: bool, starting_certificate: Certificate | None, ask: Ask
) -> Design:
    """Repair, measure and certify the channel of a candidate, with the best of the proofs that the problem admits."""
    utility, constraints, arrangement = problem.original_utility, problem.constraints, arrange(problem, candidate)
    if not meets_constraints(arrangement.channel, constraints):
        arrangement = rearrange(problem, arrangement)
    guarantees = stated_guarantees(arrangement.channel, constraints)
    channel = arrangement.channel
    no_bound = Unbounded(utility, constraints, channel, edges=arrangement.edges)
    value = _stated_value(no_bound.enclosed_value(FLOAT), utility.error)
    tolerance = candidate.tolerance or (BRACKET_GAP if problem.cells is not None else CERTIFIED_GAP)
    best, bound, reason = None, no_bound.bound, ""
    if certify:
        best, bound, reason = _best_certificate(
            problem, candidate, arrangement, value, tolerance, starting_certificate, ask
        )
        if best is not None:
            bound -= math.copysign(abs(bound) * max(best.rounding_margin, OTHER_PROCESSOR), 1 if utility.error else -1)
    certified = best is not None and is_certified(value, bound, tolerance, utility.error, utility.logarithmic)
    lower, upper = (bound, value) if utility.error else (value, bound)
    note = "; ".join(_notes(problem, candidate, guarantees, value, bound, best, reason, certify, certified))
    return Design(
        utility, constraints, channel, value, lower, upper, guarantees, candidate.method, best, certified, tolerance,
        note, arrangement.edges,
    )  # fmt: skip


def _stated_value(enclosure: Enclosure, error: bool) -> float:
    """Return the worse endpoint of the enclosure, made worse by the width of the enclosure.

    Another processor that rounds differently computes an enclosure of the same number of about the same width. So it
    proves the stated value.
    """
    lower, upper = float(enclosure.lower), float(enclosure.upper)
    worse_end, direction = (upper, 1.0) if error else (lower, -1.0)
    if math.isnan(worse_end):
        return direction * math.inf
    margin = min(upper - lower, 16 * OTHER_PROCESSOR * abs(worse_end))
    return worse_end + direction * margin if math.isfinite(margin) else worse_end


def _best_certificate(
    problem: Problem, candidate: Candidate, arrangement: Arranged, value: float, tolerance: float,
    starting_certificate: Certificate | None, ask: Ask,
) -> tuple[Certificate | None, float, str]:  # fmt: skip
    """Return the certificate with the best bound, that bound, and the reason if there is none.

    Proofs are tried until one is tight.
    """
    utility = problem.original_utility
    best, bound = None, -math.inf if utility.error else math.inf
    reasons: list[str] = []
    for certificate in list_proofs(problem, candidate, arrangement, starting_certificate, ask):
        if isinstance(certificate, str):
            reasons.append(certificate)
            continue
        result = certificate.bound_in(FLOAT)
        if result.reason:
            reasons.append(result.reason)
        elif best is None or (result.value > bound if utility.error else result.value < bound):
            best, bound = certificate, result.value
        if relative_gap(value, bound, utility.logarithmic) <= min(GAP_FRACTION * tolerance, CERTIFIED_GAP):
            break
        if best is not None and best.tight and problem.deadline.over():
            break
    return best, bound, "" if best else "; ".join(dict.fromkeys(reasons[-2:]))


def _notes(
    problem: Problem, candidate: Candidate, guarantees: Sequence[Guarantee], value: float, bound: float,
    best: Certificate | None, reason: str, certify: bool, has_certificate: bool,
) -> list[str]:  # fmt: skip
    """List the notes of a design, half a sentence each."""
    notes = [candidate.note] if candidate.note else []
    if problem.deadline.late:
        notes.append(f"the time limit of {problem.deadline.seconds:g} s ended the search or its proof")
    variations = [guarantee.value for guarantee in guarantees if guarantee.notion == "total_variation"]
    if math.isfinite(problem.epsilon) and variations:
        if problem.cap is None:
            notes.append(f"eta = {ceil_digits(problem.eta)} does not bind: it is at least tanh(epsilon/2) [GI, Prop 2]")
        elif min(variations) < problem.eta * (1 - 1e-6):
            measured_variation = ceil_digits(min(variations))
            notes.append(
                f"eta = {ceil_digits(problem.eta)} does not bind: the channel's total variation is {measured_variation}"
            )
    if has_certificate and best is not None and not best.tight and problem.output_constraints:
        notes += ["the budget of outputs does not bind"] * all(not c.labelled for c in problem.output_constraints)
    if problem.output_constraints and not has_certificate and best is not None and not best.tight:
        notes.append("the bound is that of a problem without the constraints on the outputs")
    if has_certificate and (assumptions := unproved_assumptions(problem.original_utility, problem.constraints)):
        notes.append(f"the proof takes on trust: {', '.join(assumptions)}")
    if not certify:
        notes.append("no certificate was asked for, so nothing bounds the optimum")
    elif best is None:
        notes.append(f"no proof was found that bounds the optimum: {reason or candidate.shortfall or NO_COLUMN_FORM}")
    elif value == 0 and bound != 0:
        notes.append("not certified: the channel keeps nothing that float64 can tell from 0, and the bound is above it")
    elif not has_certificate and candidate.shortfall:
        notes.append(f"not certified: {candidate.shortfall}")
    elif not has_certificate and not best.tight:
        notes.append("not certified: the bound is that of an easier problem, and holds for this one too")
    elif not has_certificate:
        remedy = "allow more time" if problem.deadline.late else "try another method"
        notes.append(f"not certified: the bound is rigorous but not within the tolerance; {remedy}")
    return notes
