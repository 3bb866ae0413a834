"""Two hypotheses under plain constraints -> sort, partition, randomize [SPR], or erasure [Dobrushin], and their proof.

Under epsilon-LDP, with a cap on total variation or without, the best partition of the sorted inputs is optimal, and its
proof is by potentials (`two_hypotheses.proof`), whose numbers are those of one pass of the dynamic program. Under a
cap on total variation alone, full disclosure with probability eta is optimal.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.arrange import Arranged
from ldpopt.design.candidate import Ask, Candidate, Limit, Method, needs_pure_ldp
from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.kernel.hypotheses import by_ratio
from ldpopt.design.problems.problem import Problem
from ldpopt.design.problems.reduction import Pair, dominating_pair, knots_near_cuts, reduce_pair
from ldpopt.design.two_hypotheses.program import Blocks, merge_starts
from ldpopt.design.two_hypotheses.proof import MAX_POINTS, EnvelopeDual
from ldpopt.divergences import FDivergence
from ldpopt.divergences.rules import own_slack
from ldpopt.errors import InvalidInput
from ldpopt.numbers.rounding import ULP
from ldpopt.values.distribution import Array, Index, at_least_two

# The share by which the potential of each input is raised, so that rounding makes no difference of two too small.
PADDING, LESS = 2.0**-49, 2.0**-51  # the second one for more than `QUICK` inputs
QUICK = 20_000  # Up to this many inputs it takes about a second
OWN_PADDING = 2.0**-28  # The same for a user's own divergence, which the kernel knows to fewer digits
# The share by which the level is raised, because the kernel encloses 1/(e^epsilon - 1) only up to a few ulps.
RAISED = 2.0**-44


def own_in_time(problem: Problem, most: int = MAX_POINTS) -> bool:
    """Whether the proof for the inputs themselves is made: for not too many, and for few when the time is over."""
    inputs = len(problem.utility.pair[0])
    return inputs <= most and (inputs <= QUICK or not problem.deadline.over())


def own_envelope_dual(problem: Problem, channel: Channel, price: float) -> EnvelopeDual:
    """The proof for the inputs themselves; price : of a block."""
    p0, p1 = (np.asarray(p) for p in problem.utility.pair)
    level, potentials = _numbers(problem.utility.f, p0, p1, problem.epsilon, price)
    return EnvelopeDual(problem.original_utility, problem.constraints, channel, level, potentials, None)


def envelope_duals(problem: Problem, candidate: Candidate, arranged: Arranged) -> Iterator[Certificate | str]:
    """Proofs for a channel of any method: for the inputs themselves if they are few, else for points that dominate. The
    reason instead, for laws of which nothing is proved.
    """
    pair, f = problem.reduction.pair, problem.utility.f
    if problem.cells is None and own_in_time(problem, PARTITION_LIMIT):
        blocks = Blocks(f, pair, problem.epsilon)
        yield own_envelope_dual(problem, arranged.channel, blocks.coin(problem.cap).price)
        return
    try:
        first, second = problem.utility.pair if problem.cells is None else problem.cells.endpoints()
    except InvalidInput as error:
        yield str(error)
        return
    source = first / first.sum(), second / second.sum()
    # Points are dense between neighbouring inputs that the channel treats differently.
    changes = np.flatnonzero((candidate.matrix[1:] != candidate.matrix[:-1]).any(axis=1))
    cuts = np.column_stack([pair.posterior[changes], pair.posterior[changes + 1]])
    for base, most in ((100, 800), (400, 2000)):
        steps = max(4, min(24, most // (2 * len(cuts) + 1)))
        p0, p1 = dominating_pair(*source, knots_near_cuts(*source, cuts, base, steps))
        blocks = Blocks(f, reduce_pair(p0, p1).pair, problem.epsilon)
        level, potentials = _numbers(f, p0, p1, problem.epsilon, blocks.coin(problem.cap).price)
        points = np.column_stack([p0, p1])
        fields = (problem.original_utility, problem.constraints, arranged.channel)
        fine = problem.cells.edges if problem.cells is not None else None
        yield EnvelopeDual(*fields, level, potentials, points, fine, edges=arranged.edges)


def _numbers(f: FDivergence, p0: Array, p1: Array, epsilon: float, price: float) -> tuple[float, Array]:
    """The level A and the potentials u of the sorted inputs."""
    order = by_ratio(p0, p1)
    whole = Pair.from_distributions(p0, p1)
    blocks = Blocks(f, Pair(p0[order], p1[order], whole.difference[order]), epsilon)
    share = (PADDING if len(order) <= QUICK else LESS) if f.recipe else OWN_PADDING
    potentials = blocks.paying(price, share)
    if not f.recipe:  # Blocks that are worth nothing, as f has no kink among their ratios, pay for the kernel's margin.
        potentials[1:] += 4 * own_slack(f) * np.cumsum(np.abs(whole.difference[order]))
    return price / blocks.level * (1 + RAISED), potentials


# The most inputs of distinct ratio for the dynamic program; more inputs are merged.
PARTITION_LIMIT = 200_000


@dataclass(frozen=True)
class Partition(Method, reference="[SPR]", needs=(needs_pure_ldp,), preference=40):
    """Sort, partition, randomize: the best partition of the sorted answers into blocks, for two hypotheses [SPR].

    Answers are sorted by likelihood ratio and cut into blocks of neighbours, and the report is randomized response on
    the number of the block. Dynamic programming finds the best blocks. That is optimal under `LocalDP`; with a cap on
    total variation, too, a public coin between at most two partitions is optimal, by the envelope theorem.

    most : of more answers than this, some are merged (`MergedPartition`), which is quicker and less exact.
    """

    most: int = PARTITION_LIMIT

    def refuses(self, problem: Problem) -> str:
        """It needs two hypotheses under pure LDP, and not too many inputs."""
        k = len(problem.reduction.pair)
        many = f"there are {k} inputs of distinct likelihood ratio, and it takes at most {self.most}"
        return Limit(many) if k > self.most else ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The best partition, or the best coin between two."""
        return _coin(problem, np.arange(len(problem.reduction.pair)), "partition")


@dataclass(frozen=True)
class MergedPartition(Method, bins=at_least_two, reference="[SPR]", needs=(needs_pure_ldp,), preference=50):
    """`Partition` on at most `bins` runs of answers of nearly equal ratio, which are merged; for any number of answers.

    >>> from ldpopt import Divergence, LocalDP, TotalVariation, optimal_channel
    >>> from ldpopt.divergences import KL
    >>> u = Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
    >>> merged = optimal_channel(u, LocalDP(1.0), method=MergedPartition(2))
    >>> bool(merged.value <= optimal_channel(u, LocalDP(1.0), method=Partition()).value)
    True
    """

    bins: int = 4000

    def refuses(self, problem: Problem) -> str:
        """It needs two hypotheses under pure LDP."""
        return ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The best partition of the merged inputs."""
        starts = merge_starts(problem.reduction.pair, self.bins)
        return _coin(problem, starts, f"partition of {len(starts)} merged inputs")


def _coin(problem: Problem, starts: Index, how: str) -> Candidate:
    """The channel of the best partition of the runs at `starts`, or of the best coin between two."""
    pair = problem.reduction.pair
    blocks = Blocks(problem.utility.f, pair.merge(starts), problem.epsilon)
    coin = blocks.coin(problem.cap, problem.deadline)
    parts = coin.parts
    edges = np.append(starts, len(pair))
    if any(cut.blocks == 1 for _, cut in parts):
        # A share above all rounding goes to erasure, so that the cap holds without a repair. A repair would mix rows,
        # and raise entries as small as e^-epsilon by far more than its weight.
        kept = 1 - 2 * (8 + max(cut.blocks for _, cut in parts)) * ULP
        parts = tuple((weight * kept if cut.blocks > 1 else weight * kept + (1 - kept), cut) for weight, cut in parts)
    columns = [weight * _randomized_blocks(edges[list(cut.cuts)], problem.epsilon) for weight, cut in parts if weight]
    sizes = " and ".join(f"{cut.blocks}" for weight, cut in parts if weight and cut.blocks > 1) or "1"
    erased = ", with erasure" if any(weight and cut.blocks == 1 for weight, cut in parts) and sizes != "1" else ""

    def prove(posed: Problem, channel: Channel) -> Iterator[Certificate]:
        if len(starts) == len(pair) and posed.cells is None and own_in_time(posed):
            yield own_envelope_dual(posed, channel, coin.price)

    return Candidate(np.hstack(columns), f"{how} into {sizes} block{'s' * (sizes != '1')}{erased}", prove)


def _randomized_blocks(cuts: Index, epsilon: float) -> Array:
    """m-ary randomized response on the label of the block [cuts[i], cuts[i+1]) that an input lies in: (k, m)."""
    # This is for epsilon itself: `repair` gives up what rounding takes, which is less than any fixed margin.
    rest = math.exp(-epsilon)
    label = np.repeat(np.arange(len(cuts) - 1), np.diff(cuts))
    count = len(cuts) - 1
    matrix = np.full((len(label), count), rest / (1 + (count - 1) * rest))
    matrix[np.arange(len(label)), label] = 1 / (1 + (count - 1) * rest)
    return matrix


INPUTS = 2000  # The most inputs: full disclosure has a report for each, and measuring it compares all pairs of rows


@dataclass(frozen=True)
class Erasure(Method, reference="[Dobrushin]", preference=30):
    """Full disclosure with probability eta, erasure otherwise: the optimum under `TotalVariation` alone [Dobrushin].

    Erasure is a report that is equally likely under all answers, so that it says nothing.

    >>> from ldpopt import Divergence, LocalDP, TotalVariation, optimal_channel
    >>> from ldpopt.divergences import KL
    >>> u = Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
    >>> round(optimal_channel(u, TotalVariation(0.3), method=Erasure()).value / u.value_without_privacy, 9)
    0.3
    """

    def refuses(self, problem: Problem) -> str:
        """It needs a cap on total variation and nothing else, and a utility that full disclosure keeps finite.

        Where a cap is zero, other constraints do not matter.
        """
        if not problem.utility.contracts:
            return f"{problem.utility.name} is not known to contract with total variation"
        if _nothing(problem):
            return ""
        if not problem.has_only_ldp_and_tv or math.isfinite(problem.epsilon):
            return "it takes a cap on total variation alone: full disclosure is not private"
        if not math.isfinite(problem.utility.value_without_privacy):
            return (f"{problem.utility.name} is infinite for these hypotheses under a cap on total variation alone; "
                    "add LocalDP or take a bounded divergence")  # fmt: skip
        k = len(problem.inputs)
        return Limit(f"{k} inputs make a channel of {k} x {k + 1} (at most {INPUTS} inputs)") if k > INPUTS else ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The identity channel, erased with probability 1 - eta."""
        k = len(problem.inputs)
        if _nothing(problem):
            return Candidate(np.ones((k, 1)), "erasure of everything")
        matrix = np.hstack([problem.eta * np.eye(k), np.full((k, 1), 1 - problem.eta)])
        return Candidate(matrix, "erasure")


def _nothing(problem: Problem) -> bool:
    """Whether a cap of zero allows no report to depend on the answer."""
    return not problem.output_constraints and min(problem.epsilon, problem.eta) == 0
