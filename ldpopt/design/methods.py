"""The ways to find a channel, as objects to pass as `method=`. Each returns a matrix on the sorted, merged inputs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.certificate import Certificate
from ldpopt.design.partition import Blocks, merge_starts
from ldpopt.design.patterns import members, pattern_lp
from ldpopt.design.problem import Problem
from ldpopt.distribution import Array, Index
from ldpopt.errors import invalid
from ldpopt.rounding import toward_privacy

PARTITION_LIMIT = 20_000
"""Above this many inputs of distinct ratio the quadratic dynamic program gives way to merged inputs."""


@dataclass(frozen=True, eq=False)
class Found:
    """A channel on the reduced inputs, shape (k, m), how it was found, and the proof that came with it, if any."""

    matrix: Array
    method: str
    prove: Callable[[Problem, Channel], Certificate | None] | None = None


class Method(Protocol):
    """A way to find a channel."""

    def find(self, problem: Problem) -> Found:
        """A channel for `problem`, nearly feasible: it is repaired and measured afterwards."""
        ...


@dataclass(frozen=True)
class Partition:
    """Sort, partition, randomize: dynamic programming over blocks, and the envelope under a TV cap [SPR].

    Exact for epsilon-LDP. With a TV cap the optimum over coins between partitions, conjectured to be exact.
    """

    def find(self, problem: Problem) -> Found:
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

    def find(self, problem: Problem) -> Found:
        """The best partition of the merged inputs."""
        needs_epsilon(problem, "MergedPartition")
        starts = merge_starts(problem.reduction.pair, self.bins)
        return _coin(problem, starts, f"partition of {len(starts)} merged inputs")


@dataclass(frozen=True)
class PatternLP:
    """The staircase-pattern linear program [KOV14, Thm 4], with TV rows: exact for up to 16 distinct ratios."""

    def find(self, problem: Problem) -> Found:
        """The channel of the optimal pattern weights."""
        needs_epsilon(problem, "PatternLP")
        pair = problem.reduction.pair
        solution = pattern_lp(problem.utility.f, pair, problem.ratio, problem.cap)
        used = np.maximum(solution.theta, 0.0) > 1e-12
        inside = members(solution.masks[used], len(pair)).T
        matrix = np.where(inside, math.exp(toward_privacy(problem.epsilon)), 1.0) * solution.theta[used]
        return Found(matrix, f"pattern LP over {2 ** len(pair) - 1} staircase patterns")


@dataclass(frozen=True)
class Erasure:
    """Full disclosure with probability eta, erasure otherwise: the optimum under a TV cap alone [Dobrushin]."""

    def find(self, problem: Problem) -> Found:
        """The identity channel, erased with probability 1 - eta."""
        if not problem.plain:
            raise invalid("Erasure", "a TotalVariation constraint alone", "others")
        if math.isfinite(problem.epsilon):
            raise invalid("Erasure", "no LocalDP constraint (full disclosure is not private)", problem.epsilon)
        k = len(problem.reduction.pair)
        matrix = np.hstack([problem.eta * np.eye(k), np.full((k, 1), 1 - problem.eta)])
        return Found(matrix, "erasure")


def choose(problem: Problem) -> Method:
    """The method for a problem when the caller names none."""
    if not problem.plain:
        from ldpopt.design.constraints import ZCDP, RenyiLDP
        from ldpopt.design.labels import Exchange
        from ldpopt.design.tangent_exchange import TangentExchange

        given = problem.constraints
        smooth = all(isinstance(c, RenyiLDP) and c.order <= 1.2 for c in given)
        if not smooth and not any(isinstance(c, ZCDP) for c in given):
            return Exchange()
        # Beyond a dozen inputs the last digits take most of the time.
        return TangentExchange() if len(problem.reduction.pair) <= 12 else TangentExchange(accuracy=5e-6)
    if math.isinf(problem.epsilon):
        return Erasure()
    return Partition() if len(problem.reduction.pair) <= PARTITION_LIMIT else MergedPartition()


def needs_epsilon(problem: Problem, method: str) -> None:
    """`InvalidInput` unless the problem is epsilon-LDP, with a TV cap or without."""
    if not problem.plain:
        raise invalid(method, "LocalDP and TotalVariation between all inputs (Exchange takes any constraint)", "others")
    if math.isinf(problem.epsilon):
        raise invalid(method, "a LocalDP constraint (Erasure solves a TV cap alone)", "none")


def _coin(problem: Problem, starts: Index, how: str) -> Found:
    """The channel of the best partition of the runs at `starts`, or of the best coin between two."""
    pair = problem.reduction.pair
    blocks = Blocks(problem.utility.f, pair.merge(starts), problem.ratio)
    parts = ((1.0, blocks.optimum()),) if problem.cap is None else blocks.envelope(problem.cap)
    edges = np.append(starts, len(pair))
    columns = [weight * _randomized_blocks(edges[list(cut.cuts)], problem.epsilon) for weight, cut in parts if weight]
    sizes = " and ".join(f"{cut.blocks}" for weight, cut in parts if weight and cut.blocks > 1) or "1"
    erased = ", with erasure" if any(weight and cut.blocks == 1 for weight, cut in parts) and sizes != "1" else ""
    return Found(np.hstack(columns), f"{how} into {sizes} block{'s' * (sizes != '1')}{erased}")


def _randomized_blocks(cuts: Index, epsilon: float) -> Array:
    """m-ary randomized response on the label of the block [cuts[i], cuts[i+1]) that an input lies in: (k, m)."""
    ratio = math.exp(toward_privacy(epsilon))
    label = np.repeat(np.arange(len(cuts) - 1), np.diff(cuts))
    count = len(cuts) - 1
    matrix = np.full((len(label), count), 1 / (ratio + count - 1))
    matrix[np.arange(len(label)), label] *= ratio
    return matrix
