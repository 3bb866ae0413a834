"""Columns of a channel -> their best weights, and multipliers that pay for every column [KOV14, Thm 2].

A column is a constant base and the rise above it, in any scale, so that a solver sees how columns differ at any
epsilon. It has values mu_j, those of the utility's criteria less their tangents at the constant column, and excesses
v_i >= 0 of one input over another, whose sums are capped. The master program is

    max  min_j (constant_j + sum theta mu_j)   s.t.  sum theta rise = N for every input,   sum theta base + N <= 1,
                                                     sum theta v_i <= limit_i,

where erasure, an output that is equally likely under every input, takes what is missing to one. It has the form of
`kernel.listed`: multipliers lambda of the rows and nu >= 0 of the caps prove sum lambda + limit.nu where no
column gains, base sum lambda + lambda.rise + nu.v >= sum_j w_j mu_j.

Weights are in units in which no column alone exceeds a cap or the mass of one, rises in units of the largest, and
values in units of the weakest criterion's best column. So every number that the solver sees is near one, at any epsilon
and at any caps. A family of columns poses the program over some of them; those that gain at its dual values join.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.design.generate import generate
from ldpopt.design.solve import INTERIOR, SIMPLEX, solve
from ldpopt.design.utilities.base import ColumnUtility, gradients_of
from ldpopt.errors import SolverError
from ldpopt.numbers.enclosures import FLOAT
from ldpopt.numbers.tolerances import ASKED, CENTRAL_GAIN, COLUMN_GAP, VERTEX_GAIN
from ldpopt.values.deadline import UNLIMITED, Deadline
from ldpopt.values.distribution import Array, Index

# Up to how many columns are all in the program from the start, and the most columns that join in a round.
FIRST, JOIN = 1100, 400
# The most rounds at central dual values, and then at those of a vertex; if columns still gain, the bound is worse.
ROUNDS, VERTEX_ROUNDS = 40, 12
# The relative amount that every column pays in addition, so that rounding leaves none worth more than it pays.
PADDING = 2.0**-44
BLOCK = 2**14  # Columns that are looked at together


LEAST_CAP = 1e-290
"""The least positive cap that programs are solved for."""


@dataclass(frozen=True, eq=False)
class ExcessCaps:
    """For m caps, the excess of which input `left` over which input `right` adds up to at most `limits`, (m,) each.

    even : (m,) whether the excess is (c_left - c_right)_+. As rows have equal sums, its sum is the same in the other
    order of the inputs; half of the multiplier goes to either order, which leaves small multipliers of the rows.
    """

    left: Index
    right: Index
    limits: Array
    even: npt.NDArray[np.bool_]

    def __post_init__(self) -> None:
        # Excesses over a smaller cap overflow; what then exceeds the cap itself is mixed with a constant channel.
        limits = np.where(self.limits > 0, np.maximum(self.limits, LEAST_CAP), self.limits)
        object.__setattr__(self, "limits", limits)

    @classmethod
    def variation(cls, k: int, eta: float) -> ExcessCaps:
        """The caps on the total variation of k rows, in one order of every two inputs; none for eta of 1 or more."""
        left, right = np.triu_indices(k if eta < 1 else 1, 1)
        limit = eta if eta >= LEAST_CAP else 0.0  # rows that are no farther apart are equal to every precision
        return cls(left, right, np.full(len(left), limit), np.full(len(left), True))

    def and_(self, other: ExcessCaps) -> ExcessCaps:
        """These caps and others."""
        names = ("left", "right", "limits", "even")
        return ExcessCaps(*(np.concatenate([getattr(self, name), getattr(other, name)]) for name in names))

    def apart(self, rise: Array) -> Array:
        """(m, n) the excesses (c_left - c_right)_+ of columns with these rises (k, n)."""
        return np.maximum(rise[self.left] - rise[self.right], 0.0)

    def paid(self, rise: Array, excess: Array) -> Array:
        """(m, n) what a unit of each multiplier pays: the excess, or half of both orders' where these are even."""
        apart = (rise[self.left] - rise[self.right]) if self.even.any() else 0.0
        return excess - (self.even / 2)[:, None] * apart

    def matrix(self, prices: Array, k: int, part: slice = slice(None)) -> Array:
        """(k, k) the multipliers (m,) of some of the caps, by the ordered pair of inputs."""
        pairs, left, right = np.zeros((k, k)), self.left[part], self.right[part]
        half = np.where(self.even, prices / 2, 0.0)[part]
        np.add.at(pairs, (left, right), prices[part] - half)
        np.add.at(pairs, (right, left), half)
        return pairs


@dataclass(frozen=True, eq=False)
class Weighed:
    """Weights (n,) of columns, and multipliers: of rows (k,), of `caps` (m,), and of criteria, which sum to one."""

    weights: Array
    rows: Array
    prices: Array
    criteria: Array
    caps: ExcessCaps

    def pairs(self, part: slice = slice(None)) -> Array:
        """(k, k) the multipliers of some of the caps."""
        return self.caps.matrix(self.prices, len(self.rows), part)


def weigh(
    base: Array, rise: Array, excess: Array, caps: ExcessCaps, mu: Array, constant: Array,
    solvers: Sequence[str] = SIMPLEX,
) -> Weighed:  # fmt: skip
    """The best weights of columns base (n,) + rise (k, n) with excesses (m, n) and values mu (criteria, n).

    constant : (criteria,) the values that every channel has. Raises `SolverError` when no solver is accurate.
    """
    import cvxpy as cp

    k, used = len(rise), excess / caps.limits[:, None]
    unit = units(base, rise, excess, caps)
    highest = float((rise * unit).max()) or 1.0
    values = mu * unit
    scale = float(values.max(axis=1).min())
    scale = scale if scale > 0 else float(np.abs(values).max()) or 1.0
    # Each criterion is in units of its own best column. Of one that is worth far more than the weakest, a little more
    # is asked than is needed, because a solver takes coefficients below 1e-9 for zero.
    most = np.maximum(np.maximum(np.abs(values).max(axis=1), np.abs(constant)) / scale, 1.0)
    tau, level, least = cp.Variable(len(unit), nonneg=True), cp.Variable(), cp.Variable()
    balance = (rise * (unit / highest)) @ tau == level
    worst = (values / (scale * most)[:, None]) @ tau + constant / (scale * most) >= least * np.maximum(1 / most, ASKED)
    constraints: list[Any] = [balance, worst]
    cap = (used * unit) @ tau <= 1 if len(used) else None
    if cap is not None:
        constraints.append(cap)
    size = max(float((base * unit).max()), highest)
    mass = (base * (unit / size)) @ tau + highest / size * level <= 1 / size
    # Where every column uses so much of the caps that the mass stays below one, its row cannot bind, and is left out.
    over = (caps.paid(rise, excess) / caps.limits[:, None]).sum(axis=0) * unit
    binds = not (over > 0).all() or len(used) * float(((base + rise.max(axis=0)) * unit / over).max()) >= 1
    if binds:
        constraints.append(mass)
    solve(cp.Problem(cp.Maximize(least), constraints), "program of columns", solvers)
    criteria = np.maximum(np.asarray(worst.dual_value), 0.0).reshape(-1) / most
    whole = (float(criteria.sum()) or 1.0) / scale
    prices = np.zeros(0) if cap is None else np.maximum(cap.dual_value, 0.0) / caps.limits / whole
    rows = np.array(balance.dual_value).reshape(k) / highest / whole
    half = np.where(caps.even, prices / 2, 0.0)
    np.add.at(rows, caps.left, half)
    np.add.at(rows, caps.right, -half)
    # The rows must sum to the multiplier of the mass: the dual constraint of the level.
    rows = balanced(rows)
    total = max(0.0, float(mass.dual_value)) / size / whole if binds else 0.0
    rows = rows + total / k
    weights = unit * np.maximum(np.asarray(tau.value), 0.0)
    return Weighed(weights, rows, prices, criteria / (criteria.sum() or 1.0), caps)


def units(base: Array, rise: Array, excess: Array, caps: ExcessCaps) -> Array:
    """(n,) the weights at which columns alone reach a cap or a mass of one."""
    either = caps.paid(rise, excess) * (1.0 + caps.even)[:, None]  # the larger excess of either order of an even pair
    used = (either / caps.limits[:, None]).max(axis=0, initial=0.0)
    return np.asarray(1 / np.maximum(used, base + rise.max(axis=0)))


def balanced(rows: Array) -> Array:
    """Numbers close to the given ones that sum to zero exactly, because every column pays its base times their sum."""
    rows = rows - rows.mean()
    size = float(np.abs(rows).max())
    if size == 0:
        return rows
    unit = 2.0 ** (math.ceil(math.log2(size)) - 48)
    whole = np.round(rows / unit)
    whole[np.argmax(np.abs(whole))] -= whole.sum()
    return np.asarray(whole * unit)


def with_erasure(columns: Array) -> Array:
    """The columns (k, n) in use, and last an erasure with the probability that is missing to one."""
    erased = max(1.0 - float(columns.sum(axis=1).max(initial=0.0)), 0.0)
    return np.hstack([columns[:, columns.max(axis=0, initial=0.0) > 0], np.full((len(columns), 1), erased)])


@dataclass(frozen=True, eq=False)
class ColumnProgram:
    """The program over listed columns base (n,) + rise (k, n), of which one may be constant, with a rise of zero.

    excess : the excesses (m, ...) of some of the columns. mu : (criteria, n) the values of the columns, 0 where they
    are within rounding of that, and `top` floats above them.
    """

    base: Array
    rise: Array
    caps: ExcessCaps
    excess: Callable[[Any], Array]
    constant: Array
    mu: Array
    top: Array

    @classmethod
    def of(
        cls, utility: ColumnUtility, base: Array, rise: Array, caps: ExcessCaps,
        excess: Callable[[Any], Array] | None = None,
    ) -> ColumnProgram:  # fmt: skip
        """The program of a utility, with caps on total variation if no `excess` is given.

        Raises `SolverError` where a column is worth no finite number.
        """
        # The tangent at the constant column is subtracted: it has the same value on all channels.
        tangents = gradients_of(utility, np.ones((utility.size, 1)))[:, 0]
        constant, mu, top = tangents.sum(axis=1), [], []
        for some in _blocks(len(base)):
            enclosed = utility.enclosed_columns(FLOAT.of(base[some]), FLOAT.of(rise[:, some]))
            linear = base[some] * constant[:, None] + tangents @ rise[:, some]
            low, high = np.asarray(enclosed.lower) - linear, np.asarray(enclosed.upper) - linear
            mu.append(np.where((low <= 0) & (high >= 0), 0.0, low / 2 + high / 2))
            top.append(high + PADDING * (base[some] * np.abs(constant)[:, None] + np.abs(tangents) @ rise[:, some]))
        if not all(np.isfinite(high).all() for high in top):
            raise SolverError(f"program of columns: a column is worth no finite number of {utility.name}")
        own = excess or (lambda chosen: caps.apart(rise[:, chosen]))
        return cls(base, rise, caps, own, constant, np.concatenate(mu, axis=1), np.concatenate(top, axis=1))

    @cached_property
    def over(self) -> Array:
        """(n,) what every column pays where all caps have the multiplier one."""
        return self.charged(np.ones(len(self.caps.limits)))

    @cached_property
    def unit(self) -> Array:
        """(n,) the weights at which columns alone reach a cap or a mass of one."""
        unit = np.zeros(len(self.base))
        for some in _blocks(len(unit)):
            unit[some] = units(self.base[some], self.rise[:, some], self.excess(some), self.caps)
        return unit

    def charged(self, prices: Array) -> Array:
        """(n,) what every column pays for its excesses at these multipliers of the caps."""
        paid = np.zeros(len(self.base))
        for some in _blocks(len(paid) if prices.any() else 0):
            paid[some] = prices @ self.caps.paid(self.rise[:, some], self.excess(some))
        return paid

    def solve(self, deadline: Deadline = UNLIMITED) -> tuple[Index, Weighed]:
        """The columns in use with their best weights, and the multipliers with the best bound, where none gains."""
        mu, limits = self.mu, self.caps.limits
        if not float(mu.max(axis=1).min()) > 0 or not limits.min(initial=1.0) > 0:
            # Nothing can be gained: one criterion is zero on every column, or all rows are equal.
            nothing, weakest = np.zeros(len(limits)), np.eye(len(mu))[int(mu.max(axis=1).argmin())]
            none = Weighed(np.zeros(0), np.zeros(len(self.rise)), nothing, weakest, self.caps)
            return np.zeros(0, dtype=np.intp), self.raised(none, np.zeros(len(self.base)))
        pool, best_gain = self.first(), float((mu * self.unit).max(axis=1).min())
        best: tuple[float, Weighed] | None = None
        # Central dual values first: those of a vertex are extreme, and would let thousands of columns join.
        if len(pool) < int(self.rise.any(axis=0).sum()):
            central = _Pricing(self, INTERIOR, CENTRAL_GAIN * best_gain)
            found = generate(central, central, pool, ROUNDS, deadline=deadline)
            pool = found.pool
            best = None if found.multipliers is None else (found.bound, found.multipliers)
        vertex = _Pricing(self, SIMPLEX, VERTEX_GAIN * best_gain, best)
        found = generate(vertex, vertex, pool, VERTEX_ROUNDS, gap=COLUMN_GAP, deadline=deadline)
        assert found.multipliers is not None
        there, weighed = found.solved.pool, found.solved.weighed
        return there, replace(found.multipliers, weights=weighed.weights)

    def first(self) -> Index:
        """All of at most `FIRST` columns that are not constant; else those of the largest values and shares."""
        proper = np.flatnonzero(self.rise.any(axis=0))
        if len(proper) <= FIRST:
            return proper
        best = np.argsort(-self.mu * self.unit, axis=1)[:, :JOIN].ravel()
        entries = self.base + self.rise
        share = entries / entries.sum(axis=0)
        outstanding = [np.argsort(sign * share, axis=1, kind="stable")[:, :8].ravel() for sign in (1, -1)]
        return np.intersect1d(np.concatenate([best, *outstanding]), proper)

    def raised(self, weighed: Weighed, charged: Array) -> Weighed:
        """The same with multipliers raised until no column is worth more than it pays; charged : (n,) for the caps."""
        k, rows, prices, limits = len(self.rise), weighed.rows, weighed.prices, self.caps.limits
        size = self.base * k + self.rise.sum(axis=0)
        # Room for the rounding of these sums, and a little of the optimum, so that no column pays exactly nothing.
        rounded = self.base * abs(math.fsum(rows)) + np.abs(rows) @ self.rise + charged
        optimum = max(math.fsum(rows) + float(limits @ prices), 0.0)
        missing = weighed.criteria @ self.top - (self.base * math.fsum(rows) + rows @ self.rise + charged)
        missing = missing + PADDING * (rounded + size * optimum / k)
        least = max(float((missing / size)[self.over == 0].max(initial=0.0)), 0.0)
        rows, left_over = rows + least, missing - least * size
        with np.errstate(divide="ignore", invalid="ignore"):
            by_caps = max(float(np.where(self.over > 0, left_over / self.over, 0.0).max()), 0.0)
        by_rows = max(float((left_over / size).max()), 0.0)
        if float(limits.sum()) * by_caps <= k * by_rows:
            return replace(weighed, rows=rows, prices=prices + (1 + PADDING) * by_caps)
        return replace(weighed, rows=rows + by_rows)


@dataclass(frozen=True, eq=False)
class _Priced:
    """The solution over the columns at `pool`, and (n,) what every column is charged for its excesses."""

    pool: Index
    weighed: Weighed
    charged: Array


@dataclass(frozen=True, eq=False)
class _Pricing:
    """Master and oracle of a listed program: all columns are priced, and those that gain more than `short` join.

    known : a bound from an earlier stage, with its multipliers.
    """

    program: ColumnProgram
    solvers: Sequence[str]
    short: float
    known: tuple[float, Weighed] | None = None

    def solve(self, pool: Index, number: int) -> _Priced:
        """The best weights of the columns at `pool`."""
        of = self.program
        weighed = weigh(of.base[pool], of.rise[:, pool], of.excess(pool), of.caps, of.mu[:, pool], of.constant,
                        self.solvers)  # fmt: skip
        return _Priced(pool, weighed, of.charged(weighed.prices))

    def value(self, solved: _Priced) -> float:
        """The least criterion."""
        mu = self.program.mu[:, solved.pool]
        return float((mu @ solved.weighed.weights + self.program.constant).min())

    def price(self, solved: _Priced) -> Index:
        """The columns that gain, the most first."""
        of, weighed, pool = self.program, solved.weighed, solved.pool
        paid = of.base * math.fsum(weighed.rows) + weighed.rows @ of.rise + solved.charged
        gains = (weighed.criteria @ of.mu - paid) * of.unit
        gains[pool] = -math.inf
        joining = np.argsort(-gains, kind="stable")[:JOIN]
        return np.asarray(joining[gains[joining] > self.short])

    def prove(self, solved: _Priced, columns: Index, least: float) -> tuple[float, Weighed, Index]:
        """The bound of the multipliers, raised until no column gains."""
        raised = self.program.raised(solved.weighed, solved.charged)
        bound = math.fsum(raised.rows) + float(self.program.caps.limits @ raised.prices)
        bound += float(raised.criteria @ self.program.constant)
        return (*self.known, columns) if self.known is not None and self.known[0] <= bound else (bound, raised, columns)

    def join(self, pool: Index, columns: Index) -> Index | None:
        """The columns after those of the pool."""
        return np.concatenate([pool, columns]) if len(columns) else None


def _blocks(n: int) -> Iterator[slice]:
    for start in range(0, n, BLOCK):
        yield slice(start, min(start + BLOCK, n))
