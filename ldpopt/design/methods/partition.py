"""The ways to find a channel, as objects to pass as `method=`. Each returns a matrix on the sorted, merged inputs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ldpopt.design.candidate import Candidate
from ldpopt.design.methods.blocks import Blocks, merge_starts
from ldpopt.design.methods.plain import needs_epsilon
from ldpopt.design.problems.problem import Problem
from ldpopt.distribution import Array, Index
from ldpopt.errors import invalid
from ldpopt.rounding import toward_privacy

PARTITION_LIMIT = 20_000
"""Above this many inputs of distinct ratio the quadratic dynamic program gives way to merged inputs."""


@dataclass(frozen=True)
class Partition:
    """Sort, partition, randomize: dynamic programming over blocks, and the envelope under a TV cap [SPR].

    Exact for epsilon-LDP. With a TV cap the optimum over coins between partitions, conjectured to be exact.
    """

    def find(self, problem: Problem) -> Candidate:
        """The best partition, or the best coin between two, in O(k^2) a pass."""
        needs_epsilon(problem, "Partition")
        return _coin(problem, np.arange(len(problem.reduction.pair)), "partition")


@dataclass(frozen=True)
class MergedPartition:
    """`Partition` on at most `bins` runs of inputs of nearly equal ratio: a lower bound for any alphabet."""

    bins: int = 4000

    def __post_init__(self) -> None:
        if not isinstance(self.bins, int) or self.bins < 2:
            raise invalid("bins", "an integer of at least 2", self.bins)

    def find(self, problem: Problem) -> Candidate:
        """The best partition of the merged inputs."""
        needs_epsilon(problem, "MergedPartition")
        starts = merge_starts(problem.reduction.pair, self.bins)
        return _coin(problem, starts, f"partition of {len(starts)} merged inputs")


def _coin(problem: Problem, starts: Index, how: str) -> Candidate:
    """The channel of the best partition of the runs at `starts`, or of the best coin between two."""
    pair = problem.reduction.pair
    blocks = Blocks(problem.utility.f, pair.merge(starts), problem.ratio)
    parts = ((1.0, blocks.optimum()),) if problem.cap is None else blocks.envelope(problem.cap)
    edges = np.append(starts, len(pair))
    columns = [weight * _randomized_blocks(edges[list(cut.cuts)], problem.epsilon) for weight, cut in parts if weight]
    sizes = " and ".join(f"{cut.blocks}" for weight, cut in parts if weight and cut.blocks > 1) or "1"
    erased = ", with erasure" if any(weight and cut.blocks == 1 for weight, cut in parts) and sizes != "1" else ""
    return Candidate(np.hstack(columns), f"{how} into {sizes} block{'s' * (sizes != '1')}{erased}")


def _randomized_blocks(cuts: Index, epsilon: float) -> Array:
    """m-ary randomized response on the label of the block [cuts[i], cuts[i+1]) that an input lies in: (k, m)."""
    ratio = math.exp(toward_privacy(epsilon))
    label = np.repeat(np.arange(len(cuts) - 1), np.diff(cuts))
    count = len(cuts) - 1
    matrix = np.full((len(label), count), 1 / (ratio + count - 1))
    matrix[np.arange(len(label)), label] *= ratio
    return matrix
