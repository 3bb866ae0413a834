"""The best channel against two sets of hypotheses, and the pair that is least favourable for all channels.

    max over Q of min over (P0, P1) of D_f(P0 Q || P1 Q)  =  min over (P0, P1) of max over Q

The right side is convex in the pair. Each round finds the pair that is worst for the channels so far, under the best
public coin between them. Then the best channel for that pair joins the channels. The design is the coin, which meets
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

MAX_EXCHANGE_ROUNDS = 100
MAX_TANGENT_ENTRIES = 200_000  # Of one channel: every round adds a channel.


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
        """Return the reason to refuse the problem.

        The method needs two sets of hypotheses, and no constraint on the outputs.
        """
        if not isinstance(problem.utility, AgainstSet):
            return f"{problem.utility.name} is not of two sets of hypotheses"
        if problem.output_constraints:
            return "constraints fix the outputs"
        # Channels under LocalDP have at least two reports; others may have one for each input, and one more.
        k = problem.utility.size
        entries = (
            len(INITIAL_RATIOS) * k * (2 if problem.has_only_ldp_and_tv and math.isfinite(problem.epsilon) else k + 1)
        )
        message = f"its programs would have {entries} entries, and it takes at most {MAX_TANGENT_ENTRIES}"
        return Limit(message) if entries > MAX_TANGENT_ENTRIES else ""

    def with_inner(self, method: Any) -> Saddle:
        """Replace the method for the pairs."""
        return Saddle(method)

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """Find the best coin between channels against the pair that is worst for it."""
        utility = problem.utility

        def design_for_pair(p0: Array, p1: Array, certify: bool) -> Any:
            pair_utility = Divergence(utility.f, p0, p1, inputs=utility.inputs)
            return ask(pair_utility, problem.constraints, method=self.method, certify=certify)

        pair = [s.centre for s in utility.sets]
        channels: list[Array] = []
        ratios: list[Array] = []
        lowest, best = math.inf, (pair[0], pair[1])
        for _ in problem.deadline.rounds(range(MAX_EXCHANGE_ROUNDS)):
            design = design_for_pair(pair[0], pair[1], certify=False)
            if design.value < lowest:
                lowest, best = design.value, (pair[0], pair[1])
            channels.append(design.channel.matrix)
            worst = least_pair(utility.f, utility.sets, channels, ratios)
            ratios, pair = worst.ratios, [worst.p0, worst.p1]
            if lowest - worst.value <= EXCHANGE_GAP * lowest:
                break
        coin = worst.coin
        with suppress(SolverError):  # A vertex has fewer channels; it is used unless its value is smaller.
            vertex = least_pair(utility.f, utility.sets, channels, worst.ratios, SIMPLEX)
            coin = vertex.coin if vertex.value >= worst.value * (1 - EXCHANGE_GAP) else coin
        used_channels = np.flatnonzero(coin > 1e-9)
        mixture = np.hstack([coin[i] * channels[i] for i in used_channels])

        def prove(reduced_problem: Problem, channel: Channel) -> Iterator[Certificate]:
            certificate = design_for_pair(*best, certify=True).certificate
            if certificate is not None:
                support = least_pair(utility.f, utility.sets, [channel.matrix]).support
                p0, p1 = certificate.utility.pair
                mixtures = tuple(s.mixture(p) for s, p in zip(utility.sets, (p0, p1), strict=True))
                yield SaddlePoint(
                    reduced_problem.original_utility,
                    reduced_problem.constraints,
                    channel,
                    p0,
                    p1,
                    mixtures,
                    certificate,
                    support,
                )

        channel_count = f"{len(used_channels)} channel{'s' * (len(used_channels) != 1)}"
        description = f"public coin between {channel_count}, best against {len(channels)} least favourable pairs"
        return Candidate(mixture / mixture.sum(axis=1, keepdims=True), description, prove)
