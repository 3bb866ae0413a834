"""Weights of moments and excesses that bound mutual information (`information.proof_capacity`), in floats.

First the one moment whose bound is least when it is used alone: it keeps all digits however small the caps are. Then
the best mixture, by a linear program over a grid of s, in units of about that bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.design.constraints.base import ColumnConstraint, excess_cap, moment_bound
from ldpopt.design.information.proof_capacity import HIGHEST
from ldpopt.design.solve import SIMPLEX, solve
from ldpopt.divergences import KL
from ldpopt.errors import SolverError
from ldpopt.numbers.enclosures import FLOAT
from ldpopt.values.distribution import Array

# The orders whose moments are tried, besides the orders of the constraints.
ORDERS = (1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0)
GRID = 250  # How many points the grid has on each of four stretches: far below, below, above and far above 1
TOPS = 100  # The most different probabilities of answers that the linear program tells apart
# A coefficient counts as at most so many times what is needed at its s, so that solvers see the smaller ones.
MAX_WORTH = 1e5
# The weight of a single moment, relative to the least one on the grid: the proof looks between the grid's points.
GENEROUS = 1 + 3e-5


@dataclass(frozen=True, eq=False)
class PairwiseWeights:
    """Numbers as `PairwiseInformation` takes them."""

    orders: Array
    weights: Array
    reaches: Array
    above: Array
    below: Array
    slope: float


def pairwise_weights(prior: Array, constraints: Sequence[Any]) -> Iterator[PairwiseWeights]:
    """Weights whose bounds are small; none where the constraints cap no moment and no excess between all rows."""
    law = prior[prior > 0] / prior[prior > 0].sum()
    tops = np.unique(1 / np.maximum(law, 1e-300))
    if not (law > 1e-300).all():
        return  # an answer of next to no probability tells without end
    if len(tops) > TOPS:
        tops = tops[np.linspace(0, len(tops) - 1, TOPS).round().astype(np.intp)]
    known = [c for c in constraints if isinstance(c, ColumnConstraint)]
    orders, caps = _orders(known, float(tops[-1]))
    reaches = _reaches(known)
    beyond = np.array([float(excess_cap(tuple(constraints), reach, FLOAT).upper) for reach in reaches.tolist()])
    reaches, beyond = reaches[beyond < 1], beyond[beyond < 1]
    if not len(orders) + len(reaches):
        return
    bends = np.exp(np.append(reaches, -reaches))
    beside = np.geomspace(1e-3, 0.9, GRID)
    stretches = [np.geomspace(1e-9, 0.1, GRID), np.geomspace(1.9, max(tops[-1], 2.0), GRID)]
    s = np.unique(np.concatenate([*stretches, 1 - beside, np.ones(1), 1 + beside, tops, bends]))
    s = s[s <= tops[-1]]
    off = s[np.abs(s - 1) > 5e-4]
    alone = np.array([float((_excess(off) / _moment(order, off)).max()) for order in orders]) * GENEROUS
    none = np.zeros(len(reaches))
    price = float((alone * caps).min(initial=math.inf))
    if len(orders):
        best = int((alone * caps).argmin())
        single = np.where(np.arange(len(orders)) == best, alone, 0.0)
        yield PairwiseWeights(orders, single, reaches, none, none, 0.0)
    unit = min(price, float(_excess(s) @ np.ones(len(s)) / len(s)))
    if unit > 0:
        with suppress(SolverError):
            yield _mixed(law, tops, s, orders, caps, reaches, beyond, unit * float(law @ (1 - law)))


def _mixed(
    law: Array, tops: Array, s: Array, orders: Array, caps: Array, reaches: Array, beyond: Array, unit: float
) -> PairwiseWeights:
    """The mixture of least cost on the grid, in units of `unit`."""
    import cvxpy as cp

    apart = float(law @ (1 - law))
    ratio = np.exp(reaches)
    over = np.maximum(s[:, None] - ratio, 0.0)
    under = np.maximum(1 - s[:, None] * ratio, 0.0)
    moments = np.array([_moment(order, s) for order in orders]).reshape(len(orders), len(s)).T
    columns = np.hstack([moments, over, under])
    cost = apart * np.concatenate([caps, beyond, beyond])
    scale = unit / np.maximum(cost, 1e-9 * unit)
    weights, slope = cp.Variable(columns.shape[1], nonneg=True), cp.Variable()
    # t_x grows with 1/P_x: it is the sum of non-negative steps.
    left = cp.Variable(len(tops), nonneg=True)
    step = np.minimum(np.searchsorted(tops, s), len(tops) - 1)
    total = np.cumsum(np.eye(len(tops)), axis=1).T[step]
    size = np.maximum(_excess(s), unit)
    paid = np.minimum(columns * scale, MAX_WORTH * size[:, None]) @ weights + unit * ((s - 1) * slope + total @ left)
    place = np.searchsorted(tops, 1 / law)
    mass = np.array([law[place >= tier].sum() for tier in range(len(tops))])
    kept = [(paid - _excess(s)) / size >= 0]
    solve(
        cp.Problem(cp.Minimize((cost * scale / unit) @ weights + mass @ left), kept), "information from pairs", SIMPLEX
    )
    solved = np.maximum(np.asarray(weights.value), 0.0) * scale
    n, m = len(orders), len(reaches)
    return PairwiseWeights(orders, solved[:n], reaches, solved[n : n + m], solved[n + m :], float(slope.value) * unit)


def _orders(known: Sequence[ColumnConstraint], top: float) -> tuple[Array, Array]:
    """The orders whose moments are capped, and the caps."""
    named = [float(o) for c in known for o in (getattr(c, "order", 1.0), *getattr(c, "orders", ()))]
    caps = []
    for order in sorted({o for o in (*ORDERS, *named) if 1 <= o < math.inf}):
        cap = moment_bound(known, order, FLOAT)
        if cap is not None and math.isfinite(cap.upper) and order * math.log(max(top, 1e9)) < min(HIGHEST, 300.0):
            caps.append((order, float(cap.upper)))
    table = np.array(caps).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def _reaches(known: Sequence[ColumnConstraint]) -> Array:
    """0, and the epsilon of every constraint that caps an excess there."""
    named = [
        float(e) for c in known if (e := getattr(c, "epsilon", None)) is not None and c.beyond(e, FLOAT) is not None
    ]
    return np.array(sorted({0.0, *(e for e in named if e < 300)}))


def _excess(s: Array) -> Array:
    return np.asarray(KL.excess_of(s - 1, np.ones(len(s))))


def _moment(order: float, s: Array) -> Array:
    if order == 1:
        return np.asarray((s - 1) * np.log(s))
    return np.asarray(s**order + s ** (1 - order) - 1 - s)
