"""The best channel against two sets of hypotheses, and the pair that is least favourable for all channels.

    max over Q of min over (P0, P1) of D_f(P0 Q || P1 Q)  =  min over (P0, P1) of max over Q

The right side is convex in the pair. In rounds, the pair is found that is worst for the channels so far, under the best
public coin between them; then the best channel for that pair joins the channels. The design is the coin, which meets
every constraint that is a convex sum over outputs. The optimum for the worst pair bounds all channels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.candidate import Ask, Candidate, Limit, Method
from ldpopt.design.hypothesis_sets.proof import SaddlePoint
from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.problems.problem import Problem
from ldpopt.design.solve import SIMPLEX
from ldpopt.design.utilities.against_set import INITIAL_RATIOS, AgainstSet, least_pair
from ldpopt.design.utilities.divergence import Divergence
from ldpopt.errors import SolverError
from ldpopt.numbers.tolerances import EXCHANGE_GAP
from ldpopt.values.distribution import Array

ROUNDS = 100
ENTRIES = 200_000  # The most entries of the tangents of one channel: every round adds a channel


@dataclass(frozen=True)
class Saddle(Method, reference="[HS; Huber]", solves=AgainstSet, preference=110, by_cvxpy=True):
    """A public coin between the best channels for pairs of the two sets, and the pair that is worst for all of them.

    method : the method for the optimum of each pair; None chooses one that suits the problem.

    >>> from ldpopt.design import AgainstSet, Around, Contamination, LocalDP, optimal_channel
    >>> from ldpopt.divergences import KL
    >>> near = Around([0.2, 0.3, 0.5], Contamination(0.1))
    >>> design = optimal_channel(AgainstSet(KL, [0.5, 0.3, 0.2], near), LocalDP(1.0))
    >>> round(design.value, 6), design.certified
    (0.027194, True)
    """

    method: Any = None

    def refuses(self, problem: Problem) -> str:
        """It needs two sets of hypotheses, and no constraint on the outputs."""
        if not isinstance(problem.utility, AgainstSet):
            return f"{problem.utility.name} is not of two sets of hypotheses"
        if problem.output_constraints:
            return "constraints fix the outputs"
        # Channels under LocalDP have at least two reports; others may have one for each input, and one more.
        k = problem.utility.size
        entries = (
            len(INITIAL_RATIOS) * k * (2 if problem.has_only_ldp_and_tv and math.isfinite(problem.epsilon) else k + 1)
        )
        why = f"its programs would have {entries} entries, and it takes at most {ENTRIES}"
        return Limit(why) if entries > ENTRIES else ""

    def with_inner(self, method: Any) -> Saddle:
        """The same with `method` for the pairs."""
        return Saddle(method)

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The coin between channels that keeps the most against the pair that is worst for it."""
        utility = problem.utility

        def answer(p0: Array, p1: Array, certify: bool) -> Any:
            posed = Divergence(utility.f, p0, p1, inputs=utility.inputs)
            return ask(posed, problem.constraints, method=self.method, certify=certify)

        pair = [s.centre for s in utility.sets]
        channels: list[Array] = []
        ratios: list[Array] = []
        lowest, best = math.inf, (pair[0], pair[1])
        for _ in problem.deadline.rounds(range(ROUNDS)):
            design = answer(pair[0], pair[1], certify=False)
            if design.value < lowest:
                lowest, best = design.value, (pair[0], pair[1])
            channels.append(design.channel.matrix)
            worst = least_pair(utility.f, utility.sets, channels, ratios)
            ratios, pair = worst.ratios, [worst.p0, worst.p1]
            if lowest - worst.value <= EXCHANGE_GAP * lowest:
                break
        coin = worst.coin
        with suppress(SolverError):  # a vertex tosses between fewer channels; it is taken unless it is worth less
            vertex = least_pair(utility.f, utility.sets, channels, worst.ratios, SIMPLEX)
            coin = vertex.coin if vertex.value >= worst.value * (1 - EXCHANGE_GAP) else coin
        used = np.flatnonzero(coin > 1e-9)
        tossed = np.hstack([coin[i] * channels[i] for i in used])

        def prove(posed: Problem, channel: Channel) -> Iterator[Certificate]:
            proved = answer(*best, certify=True).certificate
            if proved is not None:
                support = least_pair(utility.f, utility.sets, [channel.matrix]).support
                p0, p1 = proved.utility.pair
                mixtures = tuple(s.mixture(p) for s, p in zip(utility.sets, (p0, p1), strict=True))
                yield SaddlePoint(posed.original_utility, posed.constraints, channel, p0, p1, mixtures, proved, support)

        many = f"{len(used)} channel{'s' * (len(used) != 1)}"
        how = f"public coin between {many}, best against {len(channels)} least favourable pairs"
        return Candidate(tossed / tossed.sum(axis=1, keepdims=True), how, prove)
