"""The certificates that a problem admits for a designed channel, in the order in which they are tried."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ldpopt.design.arrange import Arranged
from ldpopt.design.candidate import Ask, Candidate, Method
from ldpopt.design.certificates.base import Certificate
from ldpopt.design.certificates.capacity import InformationCapacity
from ldpopt.design.certificates.contraction import Contraction
from ldpopt.design.certificates.pairwise import PairwiseInformation
from ldpopt.design.certificates.parts import PartsBound
from ldpopt.design.certificates.relaxed import Relaxed
from ldpopt.design.constraints.base import plain_of
from ldpopt.design.methods.balanced import BalancedSets
from ldpopt.design.methods.levels import LevelLP
from ldpopt.design.methods.marginals import MarginalPatterns
from ldpopt.design.methods.partition import envelope_duals
from ldpopt.design.methods.patterns import PatternLP
from ldpopt.design.methods.policies import PolicyLP
from ldpopt.design.problems.problem import Problem
from ldpopt.design.programs.pairwise import pairwise_weights
from ldpopt.design.utilities.base import ColumnUtility
from ldpopt.errors import InvalidInput, SolverError

LISTED: tuple[Method, ...] = (PatternLP(), MarginalPatterns(), LevelLP(), BalancedSets(), PolicyLP())
"""The methods whose certificates are prices that hold for every column that the constraints allow."""


@dataclass(frozen=True)
class Unavailable:
    """A proof that could not be made, and why."""

    why: str


Proofs = Iterator[Certificate | Unavailable]


def proofs(problem: Problem, candidate: Candidate, made: Arranged, near: Certificate | None, ask: Ask) -> Proofs:
    """Certificates for `made`, computed one by one as they are asked for.

    near : the certificate of a neighbouring problem, whose numbers are tried first. Between two break points in eta,
    one set of multipliers proves every optimum.
    """
    fields = (problem.whole, problem.constraints, made.channel)
    if near is not None:
        yield near.of(*fields, edges=made.edges)
    if candidate.prove is not None:
        yield from candidate.prove(problem, made.channel)
    if problem.whole.contracts and not problem.whole.continuous:
        yield Contraction(*fields)
    if problem.whole.information:
        yield InformationCapacity(*fields)
    if problem.whole.information and not problem.plain:
        for paid in pairwise_weights(problem.whole.prior, problem.constraints):
            yield PairwiseInformation(
                *fields, paid.orders, paid.weights, paid.reaches, paid.above, paid.below, paid.slope
            )
    if problem.plain and problem.utility.pair is not None and math.isfinite(problem.epsilon):
        yield from envelope_duals(problem, candidate, made)
    if problem.given:
        yield from _without_given(problem, made, ask)
        return
    if candidate.prove is None and isinstance(problem.utility, ColumnUtility) and problem.utility.pair is None:
        yield from _by_fewer(problem, made, ask)
    if problem.utility.parts():
        yield from _by_parts(problem, made, ask)


def _without_given(problem: Problem, made: Arranged, ask: Ask) -> Proofs:
    """The certificate of the problem without constraints on the outputs, whose optimum is at least as good."""
    if problem.free is None or problem.deadline.over():
        return
    # Where that problem has no finite answer, or no solver finds it, this proof is lost, not the design.
    known = _certificate(ask, problem.whole, problem.free.constraints)
    if isinstance(known, Unavailable):
        yield known
    else:
        yield Relaxed(problem.whole, problem.constraints, made.channel, known)


def _certificate(ask: Ask, *problem: Any, **how: Any) -> Certificate | Unavailable:
    """The certificate of another problem's design, or why there is none."""
    try:
        design = ask(*problem, **how)
    except (SolverError, InvalidInput) as error:
        return Unavailable(str(error))
    return Unavailable(design.note) if design.certificate is None else design.certificate


def _by_fewer(problem: Problem, made: Arranged, ask: Ask) -> Proofs:
    """Certificates of the problem with fewer constraints, where `LISTED` has a method for it.

    Leaving constraints out makes the optimum no worse, so that the bounds hold for all constraints.
    """
    plain = tuple(c for c in problem.constraints if plain_of(c) is not None)
    for kept in ((plain,) if plain else ()) + tuple((c,) for c in problem.constraints if c not in plain):
        if len(kept) == len(problem.constraints):
            continue
        if problem.deadline.over():
            return
        fewer = replace(problem, constraints=kept)
        method = next((one for one in LISTED if not one.refuses(fewer)), None)
        if method is not None:
            known = _certificate(ask, problem.whole, kept, method=method)
            fields = (problem.whole, problem.constraints, made.channel)
            yield known if isinstance(known, Unavailable) else known.of(*fields)


def _by_parts(problem: Problem, made: Arranged, ask: Ask) -> Proofs:
    """A bound from the optimum of each part alone."""
    certificates = []
    for part in problem.whole.parts():
        if problem.deadline.over():
            return
        known = _certificate(ask, part, problem.constraints)
        if isinstance(known, Unavailable):
            yield known
            return
        certificates.append(known)
    yield PartsBound(problem.whole, problem.constraints, made.channel, tuple(certificates))
