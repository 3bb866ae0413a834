"""Upper bounds for a designed channel: which certificates a problem admits, and the best of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import chain

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.certificates.base import Certificate
from ldpopt.design.certificates.contraction import Contraction
from ldpopt.design.certificates.patterns import PatternDual
from ldpopt.design.certificates.ratios import CutDual, LabelDual
from ldpopt.design.methods.column_generation import blocks_between, cut_multipliers
from ldpopt.design.problems.problem import Problem
from ldpopt.design.problems.reduction import Pair
from ldpopt.design.problems.spread import few_knots, knots, spread
from ldpopt.design.programs.patterns import LIMIT, pattern_lp
from ldpopt.design.programs.ratio_dual import dual_multipliers
from ldpopt.design.utilities.divergence import Divergence
from ldpopt.distribution import Array
from ldpopt.errors import SolverError
from ldpopt.tolerances import BRACKET_GAP, CERTIFIED_GAP

COARSE = 14
"""The most points that dominate the inputs under a TV cap, for the pattern program."""


EXACT = 200
"""The most inputs whose own multipliers are computed; above, points that dominate them serve."""


SPREAD = 80
"""About as many points dominate more inputs than that under a TV cap."""


def prove(
    problem: Problem, channel: Channel, value: float, cuts: Array, near: Certificate | None = None
) -> tuple[Certificate, float]:
    """The certificate with the smallest bound among those the problem admits, up to the first that is tight; its bound.

    `cuts` (c, 2): pairs of posteriors P0/(P0+P1) of neighbouring inputs that `channel` treats differently. `near` :
    that of a neighbouring problem, whose multipliers are tried first: between two break points in eta one set of
    multipliers proves every optimum.
    """
    best: Certificate | None = None
    least = math.inf
    for certificate in chain(_moved(problem, channel, near), _candidates(problem, channel, value, cuts)):
        bound = certificate.upper_bound
        if best is None or bound < least:
            best, least = certificate, bound
        if least - value <= _enough(problem, certificate) * least:
            break
    assert best is not None
    return best, least


def _enough(problem: Problem, certificate: Certificate) -> float:
    """The relative gap at which to stop looking."""
    return BRACKET_GAP / 4 if coarse(problem, certificate) else CERTIFIED_GAP / 100


def coarse(problem: Problem, certificate: Certificate) -> bool:
    """Whether the bound is for points that strictly dominate the hypotheses."""
    points = getattr(certificate, "points", None)
    return points is not None and (problem.cells is not None or len(points) < len(problem.reduction.pair))


def _moved(problem: Problem, channel: Channel, near: Certificate | None) -> Iterator[Certificate]:
    """The multipliers of `near` for this problem, where they are of its kind and for its hypotheses."""
    if isinstance(near, (CutDual, PatternDual, LabelDual)) and near.utility is problem.utility and near.cells is None:
        if isinstance(near, LabelDual) and problem.cap is not None:
            return
        yield replace(near, channel=channel, epsilon=problem.epsilon, eta=problem.eta)


def _candidates(problem: Problem, channel: Channel, value: float, cuts: Array) -> Iterator[Certificate]:
    fields = (problem.utility, channel, problem.epsilon, problem.eta)
    pair, f, exact = problem.reduction.pair, problem.utility.f, problem.cells is None
    if exact:
        yield Contraction(*fields)
    if math.isinf(problem.epsilon):
        return
    if value <= 0:
        # No column keeps anything: no multipliers are needed.
        yield LabelDual(*fields, np.column_stack([pair.p0, pair.p1]), np.zeros(len(pair)), None)
    source = (pair.p0, pair.p1) if problem.cells is None else problem.cells.endpoints()
    if problem.cap is not None and (not exact or len(pair) > LIMIT):
        steps = max(4, min(10, SPREAD // (2 * len(cuts) + 1)))
        # A solver that gives up costs a candidate, not the design.
        if not exact or len(pair) > SPREAD:
            with suppress(SolverError):
                yield _cut(problem, fields, spread(*source, knots(*source, cuts, SPREAD // 2, steps, 4.0)), value, cuts)
        if exact and len(pair) <= EXACT:
            with suppress(SolverError):
                yield _cut(problem, fields, pair, value, cuts)
    if exact and len(pair) <= LIMIT:
        yield _pattern(problem, fields, pair)
        return
    if problem.cap is not None:
        for near in (cuts, cuts[:0]):
            yield _pattern(problem, fields, spread(*source, few_knots(*source, near, COARSE)))
    steps = max(4, min(24, 240 // (2 * len(cuts) + 1)))
    points = pair if exact and len(pair) <= EXACT else spread(*source, knots(*source, cuts, 60, steps))
    m0, m1 = channel.push(problem.utility.p0), channel.push(problem.utility.p1)
    labels = np.unique(m0[m1 > 0] / m1[m1 > 0])
    # A solver that gives up costs this candidate, not the design.
    with suppress(SolverError):
        rows = dual_multipliers(f, points, problem.ratio, value if value > 0 else 1.0, labels, CERTIFIED_GAP / 100)
        yield LabelDual(*fields, np.column_stack([points.p0, points.p1]), rows, problem.cells)


def _cut(
    problem: Problem, fields: tuple[Divergence, Channel, float, float], pair: Pair, value: float, cuts: Array
) -> Certificate:
    start = blocks_between(pair.posterior, cuts.mean(axis=1))
    accuracy = CERTIFIED_GAP / 100 if problem.cells is None else BRACKET_GAP / 10
    rows, pairs = cut_multipliers(problem.utility.f, pair, problem.ratio, problem.eta, value, start, accuracy)
    return CutDual(*fields, np.column_stack([pair.p0, pair.p1]), rows, problem.cells, pairs)


def _pattern(problem: Problem, fields: tuple[Divergence, Channel, float, float], pair: Pair) -> Certificate:
    solution = pattern_lp(problem.utility.f, pair, problem.ratio, problem.cap)
    points = np.column_stack([pair.p0, pair.p1])
    return PatternDual(*fields, points, solution.rows, problem.cells, solution.pairs)
