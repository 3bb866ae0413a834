"""The numbers of the proof by potentials (`certificates.envelope`), by one pass of the dynamic program."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.arrange import Arranged
from ldpopt.design.candidate import Candidate
from ldpopt.design.certificates.base import Certificate
from ldpopt.design.certificates.envelope import MOST, EnvelopeDual
from ldpopt.design.certificates.hypotheses import by_ratio
from ldpopt.design.methods.blocks import LARGEST, Blocks
from ldpopt.design.problems.problem import Problem
from ldpopt.design.problems.reduction import Pair, dominating, knots, reduce
from ldpopt.distribution import Array
from ldpopt.divergences import FDivergence

PADDING = 2.0**-49
"""The share by which the potential of each input is raised, so that rounding makes no difference of two too small."""

QUICK = 3000
"""Up to this many inputs all pairs of them are looked at in about a second."""

OWN_PADDING = 2.0**-28
"""The same for a user's own divergence, which the kernel knows to fewer digits."""

RAISED = 2.0**-44
"""The share by which the level is raised, because the kernel encloses 1/(e^epsilon - 1) only up to a few ulps."""


def own_in_time(problem: Problem) -> bool:
    """Whether the proof for the inputs themselves is made: for not too many, and for few when the time is over."""
    inputs = len(problem.utility.pair[0])
    return inputs <= MOST and (inputs <= QUICK or not problem.deadline.over())


def own_envelope_dual(problem: Problem, channel: Channel, price: float) -> EnvelopeDual:
    """The proof for the inputs themselves; price : of a block."""
    p0, p1 = (np.asarray(p) for p in problem.utility.pair)
    level, potentials = _numbers(problem.utility.f, p0, p1, problem.epsilon, price)
    return EnvelopeDual(problem.whole, problem.constraints, channel, level, potentials, None)


def envelope_duals(problem: Problem, candidate: Candidate, made: Arranged) -> Iterator[Certificate]:
    """Proofs for a channel of any method: for the inputs themselves if they are few, else for points that dominate."""
    pair, f = problem.reduction.pair, problem.utility.f
    if problem.cells is None and own_in_time(problem):
        blocks = Blocks(f, pair, problem.epsilon)
        yield own_envelope_dual(problem, made.channel, blocks.coin(problem.cap).price)
        return
    first, second = problem.utility.pair if problem.cells is None else problem.cells.endpoints()
    source = first / first.sum(), second / second.sum()
    # Points are dense between neighbouring inputs that the channel treats differently.
    at = np.flatnonzero((candidate.matrix[1:] != candidate.matrix[:-1]).any(axis=1))
    cuts = np.column_stack([pair.posterior[at], pair.posterior[at + 1]])
    for base, most in ((100, 800), (400, 2000)):
        steps = max(4, min(24, most // (2 * len(cuts) + 1)))
        p0, p1 = dominating(*source, knots(*source, cuts, base, steps))
        blocks = Blocks(f, reduce(p0, p1).pair, problem.epsilon)
        level, potentials = _numbers(f, p0, p1, problem.epsilon, blocks.coin(problem.cap).price)
        points = np.column_stack([p0, p1])
        fields = (problem.whole, problem.constraints, made.channel)
        fine = problem.cells.edges if problem.cells is not None else None
        yield EnvelopeDual(*fields, level, potentials, points, fine, edges=made.edges)


def _numbers(f: FDivergence, p0: Array, p1: Array, epsilon: float, price: float) -> tuple[float, Array]:
    """The level A and the potentials u of the sorted inputs."""
    order = by_ratio(p0, p1)
    whole = Pair.of(p0, p1)
    blocks = Blocks(f, Pair(p0[order], p1[order], whole.apart[order]), epsilon)
    reach, _ = blocks.potentials(price)
    padding = (PADDING if f.recipe else OWN_PADDING) * min(max(float(reach[-1]), 0.0), LARGEST)
    return price / blocks.level * (1 + RAISED), reach + padding * np.arange(len(reach))
