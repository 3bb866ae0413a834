"""The best channel against two sets of hypotheses, and the pair that is least favourable for all channels.

    max over Q of min over (P0, P1) of D_f(P0 Q || P1 Q)  =  min over (P0, P1) of max over Q

The right side is convex in the pair. Both players keep what they found: the pair answers with what is worst for the
channels so far, under the best public coin between them; then the best channel for that pair joins. The design is the
coin, which keeps every constraint that is a convex sum over outputs. The optimum of the pair bounds all channels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.candidate import Method
from ldpopt.design.certificates.saddle import SaddlePoint
from ldpopt.design.constraints import Constraint
from ldpopt.design.constraints.repair import repair
from ldpopt.design.design import Design
from ldpopt.design.solve import SIMPLEX
from ldpopt.design.utilities.against_set import AgainstSet
from ldpopt.design.utilities.divergence import Divergence
from ldpopt.design.utilities.least_pair import Worst, least_pair
from ldpopt.distribution import Array
from ldpopt.errors import SolverError
from ldpopt.tolerances import CERTIFIED_GAP

ROUNDS = 100


ACCURACY = 1e-8


def best_against(
    utility: AgainstSet, constraints: Sequence[Constraint], method: Method | None, certify: bool
) -> Design:
    """The coin between channels that keeps the most against the pair that is worst for it."""
    from ldpopt.design.optimal import optimal_channel

    given = tuple(constraints)

    def answer(p0: Array, p1: Array, certify: bool) -> Design:
        posed = Divergence(utility.f, p0, p1, inputs=utility.inputs)
        return optimal_channel(posed, given, method=method, certify=certify)

    pair = [s.centre for s in utility.sets]
    channels: list[Array] = []
    ratios: list[Array] = []
    lowest, best = math.inf, (pair[0], pair[1])
    for _ in range(ROUNDS):
        design = answer(pair[0], pair[1], certify=False)
        if design.value < lowest:
            lowest, best = design.value, (pair[0], pair[1])
        channels.append(design.channel.matrix)
        worst = least_pair(utility.f, utility.sets, channels, ratios)
        ratios, pair = worst.ratios, [worst.p0, worst.p1]
        if lowest - worst.value <= ACCURACY * lowest:
            break
    coin = _coin(utility, channels, worst)
    used = np.flatnonzero(coin > 1e-9)
    tossed = np.hstack([coin[i] * channels[i] for i in used])
    merged = Channel(tossed / tossed.sum(axis=1, keepdims=True)).merge().matrix
    channel = Channel(repair(merged, given, utility.inputs), utility.inputs)
    support = least_pair(utility.f, utility.sets, [channel.matrix]).support
    value = support.bound(utility.f, utility.sets, channel.matrix)
    certificate, bound = None, math.inf
    if certify:
        proved = answer(*best, certify=True).certificate
        if proved is not None:
            fields = (proved.epsilon, proved.eta, given, proved.utility.p0, proved.utility.p1, proved, support)
            certificate = SaddlePoint(utility, channel, *fields)
            bound = max(value, certificate.upper_bound)
    certified = certificate is not None and bound < math.inf and bound - value <= CERTIFIED_GAP * bound
    many = f"{len(used)} channel{'s' * (len(used) != 1)}"
    how = f"public coin between {many}, best against {len(channels)} least favourable pairs"
    guarantees = tuple(constraint.measure(channel) for constraint in given)
    return Design(
        utility, given, channel, value, bound, guarantees, how, certificate, certified, CERTIFIED_GAP,
        _note(certify, certificate, certified),
    )  # fmt: skip


def _coin(utility: AgainstSet, channels: list[Array], worst: Worst) -> Array:
    """The weights of a vertex solution, which tosses between fewer channels, unless it is worth less."""
    with suppress(SolverError):
        vertex = least_pair(utility.f, utility.sets, channels, worst.ratios, SIMPLEX)
        if vertex.value >= worst.value * (1 - ACCURACY):
            return vertex.coin
    return worst.coin


def _note(certify: bool, certificate: Any, certified: bool) -> str:
    if not certify:
        return "no certificate was asked for, so nothing bounds the optimum"
    if certificate is None:
        return "no certificate: a constraint has no column form"
    return "" if certified else "not certified: the bound is rigorous but not within the tolerance; try another method"
