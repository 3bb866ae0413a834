"""Two hypotheses under plain constraints -> sort, partition, randomize [SPR], or erasure [Dobrushin], and their proof.

Under epsilon-LDP, with or without a cap on total variation, the best partition of the sorted inputs is optimal. Its
proof is by potentials (`two_hypotheses.proof`), which one pass of the dynamic program computes. Under a cap on total
variation alone, full disclosure with probability eta is optimal.
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
from ldpopt.design.kernel.hypotheses import likelihood_ratio_order
from ldpopt.design.problems.problem import Problem
from ldpopt.design.problems.reduction import Pair, dominating_pair, knots_near_cuts, reduce_pair
from ldpopt.design.two_hypotheses.program import Blocks, merge_starts
from ldpopt.design.two_hypotheses.proof import MAX_POINTS, EnvelopeDual
from ldpopt.divergences import FDivergence
from ldpopt.divergences.rules import custom_slack
from ldpopt.errors import InvalidInput
from ldpopt.numbers.rounding import ULP
from ldpopt.values.distribution import Array, Index, at_least_two

# Each potential is raised by this relative margin, so that rounding makes no difference of two too small.
POTENTIAL_MARGIN, POTENTIAL_MARGIN_LARGE = 2.0**-49, 2.0**-51  # For more than `MAX_INPUTS_FAST_PROOF` inputs.
MAX_INPUTS_FAST_PROOF = 20_000  # The proof of so many inputs takes about a second.
POTENTIAL_MARGIN_CUSTOM = 2.0**-28  # For a custom divergence, which the kernel knows to fewer digits.
# Relative margin of the level, because the kernel encloses 1/(e^epsilon - 1) only up to a few ulps.
LEVEL_MARGIN = 2.0**-44


def can_prove_inputs(problem: Problem, max_inputs: int = MAX_POINTS) -> bool:
    """Return True if the proof is for the inputs themselves, not for dominating_pair points.

    There must not be too many inputs, and few if the time limit has passed.
    """
    inputs = len(problem.utility.pair[0])
    return inputs <= max_inputs and (inputs <= MAX_INPUTS_FAST_PROOF or not problem.deadline.over())


def inputs_envelope_dual(problem: Problem, channel: Channel, price: float) -> EnvelopeDual:
    """Build the proof for the inputs themselves; price : of a block."""
    p0, p1 = (np.asarray(p) for p in problem.utility.pair)
    level, potentials = _level_and_potentials(problem.utility.f, p0, p1, problem.epsilon, price)
    return EnvelopeDual(problem.original_utility, problem.constraints, channel, level, potentials, None)


def envelope_duals(problem: Problem, candidate: Candidate, arrangement: Arranged) -> Iterator[Certificate | str]:
    """Generate proofs for a channel of any method.

    They are for the inputs themselves if these are few, else for points that dominate. The reason is generated instead
    if nothing can be proved of the distributions.
    """
    pair, f = problem.reduction.pair, problem.utility.f
    if problem.cells is None and can_prove_inputs(problem, MAX_PARTITION_INPUTS):
        blocks = Blocks(f, pair, problem.epsilon)
        yield inputs_envelope_dual(problem, arrangement.channel, blocks.coin(problem.cap).price)
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
    for base, max_knots in ((100, 800), (400, 2000)):
        steps = max(4, min(24, max_knots // (2 * len(cuts) + 1)))
        p0, p1 = dominating_pair(*source, knots_near_cuts(*source, cuts, base, steps))
        blocks = Blocks(f, reduce_pair(p0, p1).pair, problem.epsilon)
        level, potentials = _level_and_potentials(f, p0, p1, problem.epsilon, blocks.coin(problem.cap).price)
        points = np.column_stack([p0, p1])
        fields = (problem.original_utility, problem.constraints, arrangement.channel)
        finest_edges = problem.cells.edges if problem.cells is not None else None
        yield EnvelopeDual(*fields, level, potentials, points, finest_edges, edges=arrangement.edges)


def _level_and_potentials(f: FDivergence, p0: Array, p1: Array, epsilon: float, price: float) -> tuple[float, Array]:
    """Compute the level A and the potentials u of the sorted inputs."""
    order = likelihood_ratio_order(p0, p1)
    pair = Pair.from_distributions(p0, p1)
    blocks = Blocks(f, Pair(p0[order], p1[order], pair.difference[order]), epsilon)
    margin = (
        (POTENTIAL_MARGIN if len(order) <= MAX_INPUTS_FAST_PROOF else POTENTIAL_MARGIN_LARGE)
        if f.recipe
        else POTENTIAL_MARGIN_CUSTOM
    )
    potentials = blocks.paying(price, margin)
    if not f.recipe:  # Even blocks of value zero, where f has no kink, need the kernel's margin.
        potentials[1:] += 4 * custom_slack(f) * np.cumsum(np.abs(pair.difference[order]))
    return price / blocks.level * (1 + LEVEL_MARGIN), potentials


# Inputs of distinct ratio in the dynamic program; more inputs are merged.
MAX_PARTITION_INPUTS = 200_000


@dataclass(frozen=True)
class Partition(Method, reference="[SPR]", needs=(needs_pure_ldp,), preference=40):
    """Sort, partition, randomize: the best partition of the sorted answers into blocks, for two hypotheses [SPR].

    Answers are sorted by likelihood ratio and cut into blocks of neighbors. The report is randomized response on the
    number of the block. Dynamic programming computes the best blocks, which are optimal under `LocalDP`. With an
    additional cap on total variation, a public coin between at most two partitions is optimal, by the envelope theorem.

    max_inputs : the largest number of answers. If there are more, some are merged (`MergedPartition`), which is faster
        and less exact.
    """

    max_inputs: int = MAX_PARTITION_INPUTS

    def refuses(self, problem: Problem) -> str:
        """Return the reason to refuse the problem.

        The method needs two hypotheses under pure LDP, and not too many inputs.
        """
        k = len(problem.reduction.pair)
        message = f"there are {k} inputs of distinct likelihood ratio, and it takes at most {self.max_inputs}"
        return Limit(message) if k > self.max_inputs else ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """Find the best partition, or the best coin between two."""
        return _partition_candidate(problem, np.arange(len(problem.reduction.pair)), "partition")


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
        """Return the reason to refuse the problem; the method needs two hypotheses under pure LDP."""
        return ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """Find the best partition of the merged inputs."""
        starts = merge_starts(problem.reduction.pair, self.bins)
        return _partition_candidate(problem, starts, f"partition of {len(starts)} merged inputs")


def _partition_candidate(problem: Problem, starts: Index, description: str) -> Candidate:
    """Build the channel of the best partition of the runs at `starts`, or of the best coin between two."""
    pair = problem.reduction.pair
    blocks = Blocks(problem.utility.f, pair.merge(starts), problem.epsilon)
    coin = blocks.coin(problem.cap, problem.deadline)
    parts = coin.parts
    edges = np.append(starts, len(pair))
    if any(cut.blocks == 1 for _, cut in parts):
        # A weight above all rounding goes to erasure, so that the cap holds without a repair. A repair would mix rows,
        # and raise entries as small as e^-epsilon by far more than its weight.
        scale = 1 - 2 * (8 + max(cut.blocks for _, cut in parts)) * ULP
        parts = tuple(
            (weight * scale if cut.blocks > 1 else weight * scale + (1 - scale), cut) for weight, cut in parts
        )
    columns = [weight * _randomized_blocks(edges[list(cut.cuts)], problem.epsilon) for weight, cut in parts if weight]
    sizes = " and ".join(f"{cut.blocks}" for weight, cut in parts if weight and cut.blocks > 1) or "1"
    erasure_note = ", with erasure" if any(weight and cut.blocks == 1 for weight, cut in parts) and sizes != "1" else ""

    def prove(reduced_problem: Problem, channel: Channel) -> Iterator[Certificate]:
        if len(starts) == len(pair) and reduced_problem.cells is None and can_prove_inputs(reduced_problem):
            yield inputs_envelope_dual(reduced_problem, channel, coin.price)

    return Candidate(np.hstack(columns), f"{description} into {sizes} block{'s' * (sizes != '1')}{erasure_note}", prove)


def _randomized_blocks(cuts: Index, epsilon: float) -> Array:
    """Build m-ary randomized response on the label of the block [cuts[i], cuts[i+1]) of an input: (k, m)."""
    # This is for epsilon itself: `repair` corrects the rounding, which costs less than any fixed margin.
    likelihood_ratio = math.exp(-epsilon)
    label = np.repeat(np.arange(len(cuts) - 1), np.diff(cuts))
    count = len(cuts) - 1
    matrix = np.full((len(label), count), likelihood_ratio / (1 + (count - 1) * likelihood_ratio))
    matrix[np.arange(len(label)), label] = 1 / (1 + (count - 1) * likelihood_ratio)
    return matrix


MAX_ERASURE_INPUTS = 2000  # Full disclosure has a report for each input, and measuring it compares all pairs of rows.


@dataclass(frozen=True)
class Erasure(Method, reference="[Dobrushin]", preference=30):
    """Full disclosure with probability eta, erasure otherwise: the optimum under `TotalVariation` alone [Dobrushin].

    Erasure is a report that is equally likely under all answers, so that it is uninformative.

    >>> from ldpopt import Divergence, LocalDP, TotalVariation, optimal_channel
    >>> from ldpopt.divergences import KL
    >>> u = Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
    >>> round(optimal_channel(u, TotalVariation(0.3), method=Erasure()).value / u.value_without_privacy, 9)
    0.3
    """

    def refuses(self, problem: Problem) -> str:
        """Return the reason to refuse the problem.

        The method needs a cap on total variation and no other constraint, and a utility that is finite under full
        disclosure. Where a cap is zero, other constraints do not matter.
        """
        if not problem.utility.contracts:
            return f"{problem.utility.name} is not known to contract with total variation"
        if _allows_nothing(problem):
            return ""
        if not problem.has_only_ldp_and_tv or math.isfinite(problem.epsilon):
            return "it takes a cap on total variation alone: full disclosure is not private"
        if not math.isfinite(problem.utility.value_without_privacy):
            return (f"{problem.utility.name} is infinite for these hypotheses under a cap on total variation alone; "
                    "add LocalDP or take a bounded divergence")  # fmt: skip
        k = len(problem.inputs)
        return (
            Limit(f"{k} inputs make a channel of {k} x {k + 1} (at most {MAX_ERASURE_INPUTS} inputs)")
            if k > MAX_ERASURE_INPUTS
            else ""
        )

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """Build the identity channel, erased with probability 1 - eta."""
        k = len(problem.inputs)
        if _allows_nothing(problem):
            return Candidate(np.ones((k, 1)), "erasure of everything")
        matrix = np.hstack([problem.eta * np.eye(k), np.full((k, 1), 1 - problem.eta)])
        return Candidate(matrix, "erasure")


def _allows_nothing(problem: Problem) -> bool:
    """Return True if a cap of zero allows no report to depend on the answer."""
    return not problem.output_constraints and min(problem.epsilon, problem.eta) == 0
