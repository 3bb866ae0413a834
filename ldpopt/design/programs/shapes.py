"""The program over unimodal level shapes: (epsilon, delta)-LDP for many inputs, sorted by likelihood ratio.

In every case that was looked at, unit vectors and the seven shapes of `columns.levels.SHAPES` were enough. That is not
proved, so that the result is a channel without a bound. Three facts keep the program small. The worth of a shape is a
function of sums over blocks, so that all shapes are priced by prefix sums. Where a shape has an excess, its level 0
lies at an end of the list, so that only pairs with the first or the last input are needed: about 3 k rows. Only shapes
that gain at the dual values join the program.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from ldpopt.deadline import UNLIMITED, Deadline
from ldpopt.design.columns.levels import SHAPES, Levels, level_shapes
from ldpopt.design.problems.reduction import Pair
from ldpopt.design.programs.levels import LevelColumns, Weighed, reach_of, weigh, with_erasure
from ldpopt.distribution import Array, Index
from ldpopt.divergences import FDivergence

ALL = 16
"""Up to this many inputs, all shapes are in the program from the start."""

JOIN = 40
"""The most shapes of one kind that join in one round."""

ROUNDS = 40
"""The most rounds."""

PAID = 1e-8
"""Gains below this share of the optimum are within the solver's accuracy."""


@dataclass(frozen=True, eq=False)
class Family:
    """All shapes of one kind: `digits` (blocks,) their levels, `edges` (n, blocks + 1) the ends of their blocks.

    value : (n,) the worth of each shape, scaled to a largest entry of one.
    """

    digits: Levels
    edges: Index
    value: Array

    @classmethod
    def of(cls, shape: str, f: FDivergence, pair: Pair, epsilon: float) -> Family:
        """The shapes of a kind on sorted inputs."""
        k, digits = len(pair), np.array([int(digit) for digit in shape], dtype=np.int64)
        cuts = np.array(list(itertools.combinations(range(1, k), len(shape) - 1)), dtype=np.intp)
        cuts = cuts.reshape(-1, len(shape) - 1)
        edges = np.hstack([np.zeros((len(cuts), 1), dtype=np.intp), cuts, np.full((len(cuts), 1), k, dtype=np.intp)])
        base, rise = _heights(digits, epsilon)
        # The constant part of a column has the same mass under both hypotheses: only the rises count.
        sums = [_blocks(part, edges) @ rise for part in (pair.difference, pair.p0, pair.p1)]
        return cls(digits, edges, _excess(f, sums[0], base + sums[1], base + sums[2]))

    def gains(self, best: Weighed, k: int, epsilon: float) -> Array:
        """(n,) the worth of each shape above its price; best.prices : of pairs with the first input, then the last."""
        base, rise = _heights(self.digits, epsilon)
        paid = base * math.fsum(best.rows) + _blocks(best.rows, self.edges) @ rise
        if self.digits.max() == 2:
            on_first, on_last = np.zeros(k), np.zeros(k)
            on_first[1:], on_last[:-1] = best.prices[: k - 1], best.prices[k - 1 :]
            top = int(self.digits.argmax())
            over = _blocks(on_first if self.digits[0] == 0 else on_last, self.edges)[:, top]
            paid = paid - math.expm1(-epsilon) * over
        return np.asarray(self.value - paid)

    def levels(self, at: Index, k: int) -> Levels:
        """(n, k) levels of some of the shapes."""
        block = (np.arange(k)[None, :, None] >= self.edges[at][:, None, 1:-1]).sum(axis=2)
        return np.asarray(self.digits[block])


def shape_program(f: FDivergence, pair: Pair, epsilon: float, delta: float, deadline: Deadline = UNLIMITED) -> Array:
    """The columns (k, n) of the best channel of unit vectors and unimodal shapes, within ApproximateLDP; erasure last.

    `pair` : sorted by ratio, without ties, at least two inputs. Raises `SolverError` when no solver is accurate.
    """
    k = len(pair)
    families = [Family.of(shape, f, pair, epsilon) for shape in SHAPES]
    levels = level_shapes(k) if k <= ALL else np.concatenate([_units(k), families[0].levels(np.arange(k - 1), k)])
    levels = levels if k <= ALL else np.concatenate([levels, families[1].levels(np.arange(k - 1), k)])
    first, last = np.arange(1, k), np.arange(k - 1)
    pairs = np.concatenate([first, last]), np.concatenate([np.zeros(k - 1, dtype=np.intp), np.full(k - 1, k - 1)])
    for _ in deadline.rounds(range(1 if k <= ALL else ROUNDS)):
        made = LevelColumns.of(levels, epsilon, delta, pairs)
        columns = made.base + made.rise
        mu = _excess(f, pair.difference @ made.rise, pair.p0 @ columns, pair.p1 @ columns)[None]
        best = weigh(made, mu, np.zeros(1), reach_of(epsilon, delta))
        optimum, joining = float(mu[0] @ best.weights), []
        for family in families if k > ALL else []:
            gain = family.gains(best, k, epsilon)
            most = np.argsort(-gain)[:JOIN]
            joining.append(family.levels(most[gain[most] > PAID * optimum], k))
        if not sum(map(len, joining)):
            break
        # Shapes that are far from gaining are dropped.
        short = mu[0] - made.paid(best.rows, best.prices) > -0.1 * np.abs(mu[0]).max()
        short[:k] = True
        levels = np.unique(np.concatenate([levels[short | (best.weights > 0)], *joining]), axis=0)
        levels = np.concatenate([_units(k), levels[levels.min(axis=1) >= 0]])
    return with_erasure(columns * best.weights)


def _units(k: int) -> Levels:
    return level_shapes(k)[:k] if k <= ALL else np.where(np.eye(k, dtype=bool), 0, -1).astype(np.int64)


def _heights(digits: Levels, epsilon: float) -> tuple[float, Array]:
    """The least entry of a shape whose largest entry is one, and the rise of each block above it."""
    height = int(digits.max())
    return math.exp(-height * epsilon), np.exp(-(height - digits) * epsilon) * -np.expm1(-digits * epsilon)


def _blocks(values: Array, edges: Index) -> Array:
    """(n, blocks) sums of `values` over the blocks."""
    running = np.concatenate([[0.0], np.cumsum(values)])
    return np.asarray(running[edges[:, 1:]] - running[edges[:, :-1]])


def _excess(f: FDivergence, d: Array, a: Array, b: Array) -> Array:
    """The excess at marginals a = b + d, without cancellation."""
    far = np.abs(d) > 0.5 * b
    near = f.excess_of(np.where(far, 0.0, np.maximum(d, -b)), b)
    return np.asarray(np.where(far, f.excess(np.maximum(a, 0.0), np.maximum(b, 0.0)), near))
