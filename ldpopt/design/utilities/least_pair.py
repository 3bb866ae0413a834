"""The pair of two sets that is least favourable for given channels, by linear programs that gain tangents in rounds.

A tangent of mu(a, b) = b f(a/b) is a linear function that touches mu where a/b is a given ratio, and lies below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.certificates.numbers import Unproved, nonnegative_array, nonnegative_list
from ldpopt.design.solve import INTERIOR, solve
from ldpopt.design.utilities.sets import HypothesisSet
from ldpopt.distribution import Array, Index
from ldpopt.divergences import FDivergence
from ldpopt.divergences.enclosed import enclosed_slopes
from ldpopt.enclosures import Arithmetic, Enclosure
from ldpopt.errors import SolverError
from ldpopt.results import ByValue

ROUNDS = 40


ACCURACY = 1e-9


NEAR = 1e-6
"""Ratios nearer than this share one tangent, which is off by about the square of their distance."""


GRID = np.geomspace(0.05, 20.0, 12)
"""The ratios of the first tangents."""

Sets = tuple[HypothesisSet, HypothesisSet]


@dataclass(frozen=True, eq=False)
class LowerLine(ByValue):
    """A linear function below the divergence: for every output, tangents of mu at `ratios` (n,) with `weights` (m, n).

    Each tangent lies below the convex mu, and so does any mixture of tangents. The least value of the mixture over the
    two sets is a lower bound for every pair.
    """

    ratios: Array
    weights: Array

    def enclosed_bound(self, f: FDivergence, sets: Sets, channel: Channel, arithmetic: Arithmetic) -> Enclosure:
        """A lower bound on the divergence of every pair of the sets, at least 0, enclosed.

        It holds for any ratios and weights; `Unproved` where these are malformed.
        """
        k, m = channel.shape
        if k != sets[0].size:
            raise Unproved(f"the channel has {k} inputs, and the sets have {sets[0].size}")
        ratios = nonnegative_list(self.ratios, "ratios of tangents")
        if not (ratios > 0).all():
            raise Unproved("the ratios of tangents are not all positive")
        given = nonnegative_array(self.weights, (m, len(ratios)), "weights of tangents")
        if not (given.sum(axis=1) > 0).all():
            raise Unproved("the weights of an output's tangents are all zero")
        weights, matrix = arithmetic.of(given), arithmetic.of(channel.matrix)
        shares, rows = (part / part.sum(axis=1)[:, None] for part in (weights, matrix))
        on_p0, on_p1 = (rows @ (shares @ slopes) for slopes in enclosed_slopes(f, ratios, arithmetic))
        first, second = sets
        return (first.enclosed_least(on_p0) + second.enclosed_least(on_p1)).positive()


@dataclass(frozen=True, eq=False)
class Worst:
    """The pair (p0, p1) for which the largest divergence that any of some channels leaves is least.

    value : that divergence, from below. coin : (channels,) the probabilities with which a choice among the channels
    keeps `value` against every pair. support : the proof of `value`, for a single channel. ratios : for every output of
    the channels, the ratios of its tangents.
    """

    p0: Array
    p1: Array
    value: float
    coin: Array
    support: LowerLine
    ratios: list[Array]


def tangents(f: FDivergence, ratios: Array) -> tuple[Array, Array]:
    """Coefficients of a and b of the tangent planes of mu(a, b) at a/b = ratio."""
    slope = np.asarray(f.derivative(ratios)) - f.derivative(1.0)
    return slope, np.asarray(f.excess(ratios, np.ones_like(ratios))) - ratios * slope


def least_pair(
    f: FDivergence,
    sets: Sets,
    channels: Sequence[Array],
    known: Sequence[Array] = (),
    solvers: Sequence[str] = INTERIOR,
) -> Worst:
    """The pair that attains the min over the sets of the max over `channels` (k, m_i) of the divergence.

    A linear program is solved in rounds; each adds the tangents at the ratios of the last pair. known : ratios to begin
    with, for the outputs of the first channels. solvers : interior-point by default, which finds a pair in the middle
    of equally bad ones. A vertex has fewer channels in the coin, but a pair at the edge.
    """
    import cvxpy as cp

    stacked, size = np.hstack(channels), sets[0].size
    owner = np.repeat(np.arange(len(channels)), [q.shape[1] for q in channels])
    at = [*known, *[GRID] * (stacked.shape[1] - len(known))]
    belongs = np.equal.outer(np.arange(len(channels)), owner).astype(float)
    centre = [s.centre @ stacked for s in sets]
    # The program is posed in units of its expected value, so that the solver's tolerances are small beside it.
    scale = float((belongs @ f.excess(*centre)).max())
    scale = scale if scale > 1e-9 else 1.0
    held: tuple[Index, Array, Array] | None = None
    gap, stale = np.inf, 0
    for _ in range(ROUNDS):
        p0, p1 = cp.Variable(size, nonneg=True), cp.Variable(size, nonneg=True)
        each, least = cp.Variable(stacked.shape[1]), cp.Variable()
        row = np.repeat(np.arange(stacked.shape[1]), [len(r) for r in at])
        ratios = np.concatenate(at)
        slope, level = (values / scale for values in tangents(f, ratios))
        above = each[row] >= (slope[:, None] * stacked.T[row]) @ p0 + (level[:, None] * stacked.T[row]) @ p1
        most = belongs @ each <= least * np.ones(len(channels))
        first, second = sets
        limits = [cp.sum(p0) == 1, cp.sum(p1) == 1, *first.expression(p0), *second.expression(p1)]
        try:
            solve(cp.Problem(cp.Minimize(least), [above, most, *limits]), "least favourable pair", solvers)
        except SolverError:
            # The tangents are too nearly equal for the solver: the result of the round before stands.
            if held is None:
                raise
            break
        a, b = (s.member(np.maximum(p.value, 0.0)) for s, p in zip(sets, (p0, p1), strict=True))
        m0, m1 = a @ stacked, b @ stacked
        value, reached = float(least.value) * scale, float((belongs @ f.excess(m0, m1)).max())
        held = (row, ratios, np.maximum(np.asarray(above.dual_value), 0.0))
        coin = np.maximum(np.asarray(most.dual_value), 0.0)
        stale = 0 if reached - value < 0.5 * gap else stale + 1
        gap = min(gap, reached - value)
        if gap <= ACCURACY * max(reached, 1e-3 * scale) or stale == 4:
            break
        ratio = np.clip(m0, 1e-12, None) / np.clip(m1, 1e-12, None)
        at = [np.append(old, r) if np.abs(old / r - 1).min() > NEAR else old for old, r in zip(at, ratio, strict=True)]
        scale = max(reached, 1e-2 * scale)
    assert held is not None
    row, ratios, duals = held
    every, where = np.unique(ratios, return_inverse=True)
    weights = np.zeros((stacked.shape[1], len(every)))
    np.add.at(weights, (row, where), duals)
    weights[weights.sum(axis=1) <= 0, int(np.argmin(np.abs(np.log(every))))] = 1.0
    # Tangents without weight are dropped, except the first ones.
    kept = [np.union1d(GRID, ratios[(row == y) & (duals > 0)]) for y in range(len(at))]
    return Worst(a, b, value, coin / coin.sum(), LowerLine(every, weights), kept)
