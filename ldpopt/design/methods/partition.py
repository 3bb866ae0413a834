"""Sort, partition, randomize: the optimum under epsilon-LDP, with a cap on total variation or without [SPR]."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.candidate import Ask, Candidate, Limit, Method
from ldpopt.design.certificates.base import Certificate
from ldpopt.design.methods.blocks import Blocks, merge_starts
from ldpopt.design.methods.plain import needs_pure_ldp
from ldpopt.design.methods.potentials import own_envelope_dual, own_in_time
from ldpopt.design.problems.problem import Problem
from ldpopt.distribution import Array, Index
from ldpopt.errors import invalid
from ldpopt.rounding import ULP

PARTITION_LIMIT = 20_000
"""The most inputs of distinct ratio for the dynamic program, whose time is quadratic; more inputs are merged."""


@dataclass(frozen=True)
class Partition(Method):
    """Sort, partition, randomize: the best partition of the sorted answers into blocks, for two hypotheses [SPR].

    Answers are sorted by likelihood ratio and cut into blocks of neighbours, and the report is randomized response on
    the number of the block. Dynamic programming finds the best blocks. That is optimal under `LocalDP`; with a cap on
    total variation, too, a public coin between at most two partitions is optimal, by the envelope theorem.
    """

    reference: ClassVar[str] = "[SPR]"
    preference: ClassVar[int] = 40

    def refuses(self, problem: Problem) -> str:
        """It needs two hypotheses under pure LDP, and not too many inputs."""
        return needs_pure_ldp(problem) or too_many(len(problem.reduction.pair), PARTITION_LIMIT)

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The best partition, or the best coin between two; each pass takes O(k^2)."""
        return _coin(problem, np.arange(len(problem.reduction.pair)), "partition")


@dataclass(frozen=True)
class MergedPartition(Method):
    """`Partition` on at most `bins` runs of answers of nearly equal ratio, which are merged; for any number of answers.

    >>> from ldpopt import Divergence, LocalDP, TotalVariation, optimal_channel
    >>> from ldpopt.divergences import KL
    >>> u = Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
    >>> merged = optimal_channel(u, LocalDP(1.0), method=MergedPartition(2))
    >>> bool(merged.value <= optimal_channel(u, LocalDP(1.0), method=Partition()).value)
    True
    """

    bins: int = 4000
    reference: ClassVar[str] = "[SPR]"
    preference: ClassVar[int] = 50

    def __post_init__(self) -> None:
        if not isinstance(self.bins, int) or self.bins < 2:
            raise invalid("bins", "an integer of at least 2", self.bins)

    def refuses(self, problem: Problem) -> str:
        """It needs two hypotheses under pure LDP."""
        return needs_pure_ldp(problem)

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The best partition of the merged inputs."""
        starts = merge_starts(problem.reduction.pair, self.bins)
        return _coin(problem, starts, f"partition of {len(starts)} merged inputs")


def too_many(count: int, most: int) -> str:
    """Why a method for up to `most` inputs refuses `count` of them."""
    why = f"there are {count} inputs of distinct likelihood ratio, and it takes at most {most}"
    return Limit(why) if count > most else ""


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
