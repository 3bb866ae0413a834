"""The pattern program for mutual information: a few inputs are taken whole, the rest as if it could be divided.

Over patterns (I, rho), a set I of the inputs taken whole and a share rho of the rest, with weights phi >= 0 of the
columns S = t + 1_A, t = 1/(e^epsilon - 1):

    max  sum phi h(P(I) + R rho)   s.t.  sum phi z_x = N for every input and for the rest,  t sum phi + N <= 1,
         sum phi z_x (1 - z_x') <= eta,  and on average over pairs of the rest  sum phi rho (1 - rho) <= eta spread,

where z is 1 on I, 0 on other inputs taken whole, and rho on the rest. Every channel gives a solution, by averaging over
the rest in proportion to the prior, so that the optimum is an upper bound; `information.proof` checks its dual
values. For a rest of many small inputs the bound is nearly reached, because sets of them have nearly any probability.
Patterns that gain at the dual values join, for each I with the best rho.

Weights of moments and excesses that bound mutual information (`information.proof_capacity`), in floats.

First the one moment whose bound is least when it is used alone: it keeps all digits however small the caps are. Then
the best mixture, by a linear program over a grid of s, in units of about that bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ldpopt.design.constraints.base import ColumnConstraint, excess_cap, moment_bound
from ldpopt.design.generate import generate
from ldpopt.design.information.proof_capacity import HIGHEST
from ldpopt.design.kernel.sets import best_share, information_of, members
from ldpopt.design.patterns.program import PRICE_PADDING, ExcessCaps, WeightedColumns, optimize_weights
from ldpopt.design.solve import INTERIOR, SIMPLEX, solve
from ldpopt.divergences import KL
from ldpopt.errors import SolverError
from ldpopt.numbers.enclosures import FLOAT
from ldpopt.numbers.tolerances import COLUMN_GAP, VERTEX_GAIN
from ldpopt.values.deadline import UNLIMITED, Deadline
from ldpopt.values.distribution import Array, Index

JOIN = 300  # The most patterns that join in one round
ROUNDS, INTERIOR_ROUNDS = 40, 25  # The most rounds of pricing, of which the first are at central dual values
STALLED = 5  # The number of rounds without progress after which pricing ends
# What patterns pay in addition, relative to the sizes of the row multipliers, for each of the terms of their sum.
ROUNDED = 2.0**-52


def cut_caps(size: int, eta: float | None, spread: float | None = None) -> ExcessCaps:
    """The caps on sum phi z_x (1 - z_x') for all pairs of inputs, and with a `spread` of the last one with itself."""
    caps = ExcessCaps.variation(size, 1.0 if eta is None else eta)
    if eta is None or not spread:
        return caps
    own = np.array([size - 1])
    return caps.join(ExcessCaps(own, own, np.array([eta * spread]), np.array([True])))


def weigh_sets(
    inside: Array, values: Array, level: float, caps: ExcessCaps, solvers: Sequence[str] = SIMPLEX
) -> WeightedColumns:
    """The best weights of columns t + `inside` (inputs, n) with information `values` (n,), and their multipliers."""
    excess = inside[caps.left] * (1 - inside[caps.right])
    return optimize_weights(np.full(len(values), level), inside, excess, caps, values[None], np.zeros(1), solvers)


@dataclass(frozen=True, eq=False)
class Shares:
    """Patterns of `sets` (m, n) with `shares` (m,) of the rest, their weights and information, and the multipliers.

    bound : what the multipliers prove once no pattern gains; before, inf.
    """

    sets: Array
    shares: Array
    phi: Array
    value: float
    rows: Array
    pairs: Array
    bound: float = math.inf


@dataclass(frozen=True, eq=False)
class SharesProgram:
    """own : probabilities of the inputs taken whole. rest : that of the others together. spread : 1 - sum (P_x/rest)^2.

    level : t. cap : eta where it can bind, else None.
    """

    own: Array
    rest: float
    spread: float
    level: float
    cap: float | None

    def worth(self, sets: Array, shares: Array) -> Array:
        """The information h of patterns of `sets` (m, n) with `shares` (m,) of the rest."""
        away = (1 - sets) @ self.own + self.rest * (1 - shares)
        return information_of(sets @ self.own + self.rest * shares, away, self.level)

    @cached_property
    def every(self) -> Array:
        """(2^n, n) all sets of the inputs taken whole."""
        n = len(self.own)
        return members(np.arange(2**n, dtype=np.int64), n).astype(np.float64)

    def price(self, sets: Array, rows: Array, pairs: Array) -> tuple[Array, Array]:
        """For each set the best share of the rest, and the pattern's gain above its price there, (m,) each."""
        n = len(self.own)
        slope = rows[n] + (1 - sets) @ pairs[n, :n] - sets @ pairs[:n, n]
        own, free = sets @ self.own, self.level * math.fsum(rows) + sets @ rows[:n]

        def gain(rho: Array) -> Array:
            return np.asarray(self.worth(sets, rho) - free - rows[n] * rho - self.cut(sets, rho, pairs))

        rho = best_share(own, self.rest, self.level, float(pairs[n, n]), slope)
        best = gain(rho)
        for end in (0.0, 1.0):
            there = gain(np.full(len(sets), end))
            rho, best = np.where(there > best, end, rho), np.maximum(best, there)
        return rho, best

    def cut(self, sets: Array, rho: Array, pairs: Array) -> Array:
        """(m,) what patterns of `sets` with the shares `rho` (m,) of the rest pay at multipliers of pairs."""
        n = len(self.own)
        proper = pairs[:n, :n] * ~np.eye(n, dtype=bool)
        own = ((sets @ proper) * (1 - sets)).sum(axis=1) + pairs[n, n] * rho * (1 - rho)
        return np.asarray(own + (sets @ pairs[:n, n]) * (1 - rho) + ((1 - sets) @ pairs[n, :n]) * rho)

    def raised(self, solved: Shares) -> Shares:
        """The multipliers raised until no pattern gains: rows in proportion to the prior, or pairs if cheaper."""
        rows, pairs, sets, weights = solved.rows, solved.pairs, self.every, np.append(self.own, self.rest)
        n, divided = len(self.own), self.rest > 0
        every = np.pad(1 - np.eye(n), (0, 1), constant_values=float(divided))  # a unit for each pair that has a cap
        cost = math.inf if self.cap is None else self.bound(0 * rows, every)
        for _ in range(6):
            rho, gain = self.price(sets, rows, pairs)
            by_rows = float((gain / (self.level + sets @ self.own + self.rest * rho)).max())
            if not by_rows > 0:
                break
            with np.errstate(divide="ignore", invalid="ignore"):
                by_pairs = float(np.where(gain > 0, gain / self.cut(sets, rho, every), 0.0).max())
            if cost * by_pairs < by_rows:
                pairs = pairs + 1.01 * by_pairs * every
            else:
                rows = rows + 1.01 * by_rows * weights
        # Rows may be far larger than the bound, so that the rounding of their sums counts, too.
        more = PRICE_PADDING * solved.value + ROUNDED * len(rows) * float(np.abs(rows).sum())
        rows = rows + more * weights
        return replace(solved, rows=rows, pairs=pairs, bound=self.bound(rows, pairs))

    def bound(self, rows: Array, pairs: Array) -> float:
        """The bound that multipliers prove at which no pattern gains, in floats."""
        n = len(self.own)
        proper = pairs * ~np.eye(n + 1, dtype=bool)
        return math.fsum(rows) + (self.cap or 0.0) * (float(proper.sum()) + self.spread * float(pairs[n, n]))

    def solve(self, deadline: Deadline = UNLIMITED) -> Shares:
        """Column generation, which begins with the patterns that are worth most for their mass."""
        n, every = len(self.own), self.every
        shares = np.linspace(0.0, 1.0, 9) if self.rest > 0 else np.zeros(1)
        values = np.stack([self.worth(every, np.full(len(every), rho)) for rho in shares])
        mean = self.level + every @ self.own + self.rest * shares[:, None]
        best = np.argsort(-(values / mean).max(axis=0))[:JOIN]
        chosen = np.unique(np.concatenate([best, [0, 2**n - 1], 2 ** np.arange(n), 2**n - 1 - 2 ** np.arange(n)]))
        pool = self.proper(np.repeat(chosen, len(shares)), np.tile(shares, len(chosen)))
        pricing = _Pricing(self, VERTEX_GAIN * float(np.abs(values).max()))
        found = generate(
            pricing, pricing, pool, ROUNDS, gap=COLUMN_GAP, progress=(STALLED, COLUMN_GAP), deadline=deadline
        )
        solved, proved = found.solution, found.multipliers
        assert proved is not None
        with suppress(SolverError):  # a vertex has few patterns, which cover all inputs alike
            solved = self.weighed(solved.sets, solved.shares, SIMPLEX)
        return replace(solved, rows=proved.rows, pairs=proved.pairs, bound=proved.bound)

    def proper(self, index: Index, share: Array) -> tuple[Index, Array]:
        """The positions in `every` and the shares of patterns that are not constant, as erasure is."""
        sets, divided = self.every[index], self.rest > 0
        size = sets.sum(axis=1) + share * divided
        kept = (size > 0) & (size < len(self.own) + divided)
        return index[kept], share[kept]

    def weighed(self, sets: Array, share: Array, solvers: Sequence[str]) -> Shares:
        """The best weights of patterns of `sets` (m, n) with `share` (m,) of the rest, which is last in multipliers."""
        n, divided = len(self.own), self.rest > 0
        caps = cut_caps(n + divided, self.cap, self.spread if divided else None)
        inside = np.vstack([sets.T, share]) if divided else sets.T
        values, none = self.worth(sets, share), (0, int(not divided))
        weighed = weigh_sets(inside, values, self.level, caps, solvers)
        value = float(values @ weighed.weights)
        return Shares(sets, share, weighed.weights, value, np.pad(weighed.rows, none), np.pad(weighed.pairs(), none))


class _Gaining(NamedTuple):
    """Positions in `SharesProgram.every`, and the shares of the rest."""

    sets: Index
    share: Array


@dataclass(frozen=True, eq=False)
class _Pricing:
    """Master and oracle: for each set of the inputs taken whole the best share, those that gain more than `short`."""

    program: SharesProgram
    short: float

    def solve(self, pool: tuple[Index, Array], number: int) -> Shares:
        """The best weights, at central dual values in the first rounds."""
        solvers = INTERIOR if number < INTERIOR_ROUNDS else SIMPLEX
        return self.program.weighed(self.program.every[pool[0]], pool[1], solvers)

    def value(self, solved: Shares) -> float:
        """The information."""
        return solved.value

    def price(self, solved: Shares) -> _Gaining:
        """The patterns that gain, the most first; none where the most is too little."""
        rho, gain = self.program.price(self.program.every, solved.rows, solved.pairs)
        new = np.argsort(-gain)[:JOIN]
        new = new[gain[new] > 0.0] if gain.max() > self.short else new[:0]
        return _Gaining(new, rho[new])

    def prove(self, solved: Shares, columns: _Gaining, least: float) -> tuple[float, Shares, _Gaining]:
        """The bound of the multipliers, raised until no pattern gains."""
        raised = self.program.raised(solved)
        return raised.bound, raised, columns

    def join(self, pool: tuple[Index, Array], columns: _Gaining) -> tuple[Index, Array] | None:
        """The patterns after those of the pool."""
        if not len(columns.sets):
            return None
        return self.program.proper(np.append(pool[0], columns.sets), np.append(pool[1], columns.share))


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
