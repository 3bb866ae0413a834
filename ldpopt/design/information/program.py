"""The pattern program for mutual information: a few inputs are indivisible, the rest is treated as divisible.

Patterns are pairs (I, rho) of a set I of the indivisible inputs and a fraction rho of the rest. The program over
weights phi >= 0 of the columns S = t + 1_A, t = 1/(e^epsilon - 1), is

    max  sum phi h(P(I) + R rho)   s.t.  sum phi z_x = N for every input and for the rest,  t sum phi + N <= 1,
         sum phi z_x (1 - z_x') <= eta,  and on average over pairs of the rest  sum phi rho (1 - rho) <= eta spread,

where z is 1 on I, 0 on other indivisible inputs, and rho on the rest. Every channel gives a solution, by averaging over
the rest in proportion to the prior. So the optimum is an upper bound; `information.proof` checks its dual values. For a
rest of many small inputs the bound is nearly reached, because sets of them have nearly any probability. Patterns that
gain at the dual values join, for each I with the best rho.

Weights of moments and excesses that bound mutual information (`information.proof_capacity`), in floats.

The first bound uses one moment, the one whose bound is smallest alone: it keeps all digits however small the caps are.
The second is the best mixture, by a linear program over a grid of s, in units of about that bound.
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
from ldpopt.design.information.proof_capacity import MAX_LOG_POWER
from ldpopt.design.kernel.sets import best_share, information_of, members
from ldpopt.design.patterns.program import PRICE_PADDING, ExcessCaps, WeightedColumns, optimize_weights
from ldpopt.design.solve import INTERIOR, SIMPLEX, solve
from ldpopt.divergences import KL
from ldpopt.errors import SolverError
from ldpopt.numbers.enclosures import FLOAT
from ldpopt.numbers.tolerances import COLUMN_GAP, VERTEX_GAIN
from ldpopt.values.deadline import UNLIMITED, Deadline
from ldpopt.values.distribution import Array, Index

MAX_PATTERNS_PER_ROUND = 300
MAX_PRICING_ROUNDS, INTERIOR_ROUNDS = 40, 25  # The first rounds use central dual values.
MAX_STALLED_ROUNDS = 5  # Pricing ends after so many rounds without progress.
# An additional price of patterns, relative to the sizes of the row multipliers, for each term of their sum.
ROUNDING_CHARGE = 2.0**-52


def cut_caps(size: int, eta: float | None, spread: float | None = None) -> ExcessCaps:
    """Build the caps on sum phi z_x (1 - z_x') for all pairs of inputs.

    With a `spread`, the last input is also capped with itself.
    """
    caps = ExcessCaps.variation(size, 1.0 if eta is None else eta)
    if eta is None or not spread:
        return caps
    rest_indices = np.array([size - 1])
    return caps.join(ExcessCaps(rest_indices, rest_indices, np.array([eta * spread]), np.array([True])))


def weigh_sets(
    members: Array, column_worths: Array, level: float, caps: ExcessCaps, solvers: Sequence[str] = SIMPLEX
) -> WeightedColumns:
    """Solve for the best weights of columns t + `members` (inputs, n), and their multipliers.

    column_worths : (n,) the information of the columns.
    """
    excess = members[caps.left] * (1 - members[caps.right])
    return optimize_weights(
        np.full(len(column_worths), level), members, excess, caps, column_worths[None], np.zeros(1), solvers
    )


@dataclass(frozen=True, eq=False)
class Shares:
    """Patterns of `sets` (m, n) with `shares` (m,) of the rest, their weights and information, and the multipliers.

    bound : the bound of the multipliers once no pattern gains; before, inf.
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
    """The pattern program of one prior.

    - `indivisible` : probabilities of the indivisible inputs.
    - `rest` : the total probability of the others.
    - `spread` : 1 - sum (P_x/rest)^2.
    - `level` : t.
    - `cap` : eta where it can bind, else None.
    """

    indivisible: Array
    rest: float
    spread: float
    level: float
    cap: float | None

    def worth(self, sets: Array, shares: Array) -> Array:
        """Compute the information h of patterns of `sets` (m, n) with `shares` (m,) of the rest."""
        complement = (1 - sets) @ self.indivisible + self.rest * (1 - shares)
        return information_of(sets @ self.indivisible + self.rest * shares, complement, self.level)

    @cached_property
    def all_sets(self) -> Array:
        """All sets of the indivisible inputs, (2^n, n)."""
        n = len(self.indivisible)
        return members(np.arange(2**n, dtype=np.int64), n).astype(np.float64)

    def price(self, sets: Array, rows: Array, pairs: Array) -> tuple[Array, Array]:
        """Find for each set the best fraction of the rest, and the pattern's gain, (m,) each."""
        n = len(self.indivisible)
        rest_slope = rows[n] + (1 - sets) @ pairs[n, :n] - sets @ pairs[:n, n]
        mass, base_price = sets @ self.indivisible, self.level * math.fsum(rows) + sets @ rows[:n]

        def gain(rho: Array) -> Array:
            return np.asarray(self.worth(sets, rho) - base_price - rows[n] * rho - self.cut(sets, rho, pairs))

        rho = best_share(mass, self.rest, self.level, float(pairs[n, n]), rest_slope)
        best_gain = gain(rho)
        for end_fraction in (0.0, 1.0):
            gain_at_end = gain(np.full(len(sets), end_fraction))
            rho, best_gain = np.where(gain_at_end > best_gain, end_fraction, rho), np.maximum(best_gain, gain_at_end)
        return rho, best_gain

    def cut(self, sets: Array, rho: Array, pairs: Array) -> Array:
        """Compute (m,) the prices of patterns at multipliers of pairs.

        rho : (m,) the fractions of the rest.
        """
        n = len(self.indivisible)
        off_diagonal = pairs[:n, :n] * ~np.eye(n, dtype=bool)
        same_kind_price = ((sets @ off_diagonal) * (1 - sets)).sum(axis=1) + pairs[n, n] * rho * (1 - rho)
        return np.asarray(same_kind_price + (sets @ pairs[:n, n]) * (1 - rho) + ((1 - sets) @ pairs[n, :n]) * rho)

    def raise_prices(self, solution: Shares) -> Shares:
        """Raise the multipliers until no pattern gains.

        Rows rise in proportion to the prior; pairs rise where that is cheaper.
        """
        rows, pairs, sets, row_weights = (
            solution.rows,
            solution.pairs,
            self.all_sets,
            np.append(self.indivisible, self.rest),
        )
        n, has_rest = len(self.indivisible), self.rest > 0
        unit_pairs = np.pad(1 - np.eye(n), (0, 1), constant_values=float(has_rest))  # One unit per pair with a cap.
        cost_of_unit_pairs = math.inf if self.cap is None else self.bound(0 * rows, unit_pairs)
        for _ in range(6):
            rho, gain = self.price(sets, rows, pairs)
            row_increase = float((gain / (self.level + sets @ self.indivisible + self.rest * rho)).max())
            if not row_increase > 0:
                break
            with np.errstate(divide="ignore", invalid="ignore"):
                pair_increase = float(np.where(gain > 0, gain / self.cut(sets, rho, unit_pairs), 0.0).max())
            if cost_of_unit_pairs * pair_increase < row_increase:
                pairs = pairs + 1.01 * pair_increase * unit_pairs
            else:
                rows = rows + 1.01 * row_increase * row_weights
        # Rows may be far larger than the bound, so that the rounding of their sums counts, too.
        margin = PRICE_PADDING * solution.value + ROUNDING_CHARGE * len(rows) * float(np.abs(rows).sum())
        rows = rows + margin * row_weights
        return replace(solution, rows=rows, pairs=pairs, bound=self.bound(rows, pairs))

    def bound(self, rows: Array, pairs: Array) -> float:
        """Compute the bound, in floats, that multipliers prove if no pattern gains."""
        n = len(self.indivisible)
        off_diagonal = pairs * ~np.eye(n + 1, dtype=bool)
        return math.fsum(rows) + (self.cap or 0.0) * (float(off_diagonal.sum()) + self.spread * float(pairs[n, n]))

    def solve(self, deadline: Deadline = UNLIMITED) -> Shares:
        """Solve by column generation, from the patterns with the largest value for their mass."""
        n, all_sets = len(self.indivisible), self.all_sets
        fractions = np.linspace(0.0, 1.0, 9) if self.rest > 0 else np.zeros(1)
        pattern_worths = np.stack([self.worth(all_sets, np.full(len(all_sets), rho)) for rho in fractions])
        pattern_masses = self.level + all_sets @ self.indivisible + self.rest * fractions[:, None]
        best_sets = np.argsort(-(pattern_worths / pattern_masses).max(axis=0))[:MAX_PATTERNS_PER_ROUND]
        first_sets = np.unique(
            np.concatenate([best_sets, [0, 2**n - 1], 2 ** np.arange(n), 2**n - 1 - 2 ** np.arange(n)])
        )
        pool = self.proper(np.repeat(first_sets, len(fractions)), np.tile(fractions, len(first_sets)))
        pricing = _Pricing(self, VERTEX_GAIN * float(np.abs(pattern_worths).max()))
        generation = generate(
            pricing,
            pricing,
            pool,
            MAX_PRICING_ROUNDS,
            gap=COLUMN_GAP,
            progress=(MAX_STALLED_ROUNDS, COLUMN_GAP),
            deadline=deadline,
        )
        solution, multipliers = generation.solution, generation.multipliers
        assert multipliers is not None
        with suppress(SolverError):  # A vertex has few patterns, which cover all inputs equally.
            solution = self.weighed(solution.sets, solution.shares, SIMPLEX)
        return replace(solution, rows=multipliers.rows, pairs=multipliers.pairs, bound=multipliers.bound)

    def proper(self, set_indices: Index, fractions: Array) -> tuple[Index, Array]:
        """Select the patterns that are not constant, as erasure is.

        Returns their positions in `all_sets` and their fractions of the rest.
        """
        sets, has_rest = self.all_sets[set_indices], self.rest > 0
        set_sizes = sets.sum(axis=1) + fractions * has_rest
        is_proper = (set_sizes > 0) & (set_sizes < len(self.indivisible) + has_rest)
        return set_indices[is_proper], fractions[is_proper]

    def weighed(self, sets: Array, fractions: Array, solvers: Sequence[str]) -> Shares:
        """Solve for the best weights of patterns.

        `sets` is (m, n), with `fractions` (m,) of the rest, which is last in multipliers.
        """
        n, has_rest = len(self.indivisible), self.rest > 0
        cutting_caps = cut_caps(n + has_rest, self.cap, self.spread if has_rest else None)
        members = np.vstack([sets.T, fractions]) if has_rest else sets.T
        pattern_worths, padding = self.worth(sets, fractions), (0, int(not has_rest))
        weighted_sets = weigh_sets(members, pattern_worths, self.level, cutting_caps, solvers)
        value = float(pattern_worths @ weighted_sets.weights)
        return Shares(
            sets,
            fractions,
            weighted_sets.weights,
            value,
            np.pad(weighted_sets.rows, padding),
            np.pad(weighted_sets.pairs(), padding),
        )


class _Gaining(NamedTuple):
    """Positions in `SharesProgram.all_sets`, and the fractions of the rest."""

    sets: Index
    share: Array


@dataclass(frozen=True, eq=False)
class _Pricing:
    """Master and oracle: for each set of the indivisible inputs the best fraction, if it gains more than `short`."""

    program: SharesProgram
    short: float

    def solve(self, pool: tuple[Index, Array], number: int) -> Shares:
        """Solve for the best weights, at central dual values in the first rounds."""
        solvers = INTERIOR if number < INTERIOR_ROUNDS else SIMPLEX
        return self.program.weighed(self.program.all_sets[pool[0]], pool[1], solvers)

    def value(self, solution: Shares) -> float:
        """Return the information."""
        return solution.value

    def price(self, solution: Shares) -> _Gaining:
        """List the patterns that gain, largest gain first; none where the largest is too small."""
        rho, gain = self.program.price(self.program.all_sets, solution.rows, solution.pairs)
        gaining_sets = np.argsort(-gain)[:MAX_PATTERNS_PER_ROUND]
        gaining_sets = gaining_sets[gain[gaining_sets] > 0.0] if gain.max() > self.short else gaining_sets[:0]
        return _Gaining(gaining_sets, rho[gaining_sets])

    def prove(self, solution: Shares, columns: _Gaining, smallest_bound: float) -> tuple[float, Shares, _Gaining]:
        """Compute the bound of the multipliers, raised until no pattern gains."""
        raised_solution = self.program.raise_prices(solution)
        return raised_solution.bound, raised_solution, columns

    def join(self, pool: tuple[Index, Array], columns: _Gaining) -> tuple[Index, Array] | None:
        """Append the patterns to those of the pool."""
        if not len(columns.sets):
            return None
        return self.program.proper(np.append(pool[0], columns.sets), np.append(pool[1], columns.share))


# Orders of moments that are tried in addition to the orders of the constraints.
DEFAULT_ORDERS = (1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0)
POINTS_PER_STRETCH = 250  # Grid points on each of four stretches: far below, below, above and far above 1.
MAX_DISTINCT_TOPS = 100  # Different probabilities of answers that the linear program distinguishes.
# A coefficient counts as at most so many times the need at its s, so that solvers see the smaller ones.
MAX_RELATIVE_VALUE = 1e5
# The weight of a single moment, relative to the least one on the grid: the proof includes all points between.
SINGLE_MOMENT_FACTOR = 1 + 3e-5


@dataclass(frozen=True, eq=False)
class PairwiseWeights:
    """The numbers of a `PairwiseInformation` certificate."""

    orders: Array
    weights: Array
    reaches: Array
    above: Array
    below: Array
    slope: float


def pairwise_weights(prior: Array, constraints: Sequence[Any]) -> Iterator[PairwiseWeights]:
    """Generate weights whose bounds are small.

    There are none if the constraints cap no moment and no excess between all rows.
    """
    positive_prior = prior[prior > 0] / prior[prior > 0].sum()
    ratio_tops = np.unique(1 / np.maximum(positive_prior, 1e-300))
    if not (positive_prior > 1e-300).all():
        return  # The information of an answer with almost no probability is unbounded.
    if len(ratio_tops) > MAX_DISTINCT_TOPS:
        ratio_tops = ratio_tops[np.linspace(0, len(ratio_tops) - 1, MAX_DISTINCT_TOPS).round().astype(np.intp)]
    column_constraints = [c for c in constraints if isinstance(c, ColumnConstraint)]
    orders, caps = _orders(column_constraints, float(ratio_tops[-1]))
    reaches = _reaches(column_constraints)
    excess_caps = np.array([float(excess_cap(tuple(constraints), reach, FLOAT).upper) for reach in reaches.tolist()])
    reaches, excess_caps = reaches[excess_caps < 1], excess_caps[excess_caps < 1]
    if not len(orders) + len(reaches):
        return
    kinks = np.exp(np.append(reaches, -reaches))
    near_one = np.geomspace(1e-3, 0.9, POINTS_PER_STRETCH)
    grid_stretches = [
        np.geomspace(1e-9, 0.1, POINTS_PER_STRETCH),
        np.geomspace(1.9, max(ratio_tops[-1], 2.0), POINTS_PER_STRETCH),
    ]
    s = np.unique(np.concatenate([*grid_stretches, 1 - near_one, np.ones(1), 1 + near_one, ratio_tops, kinks]))
    s = s[s <= ratio_tops[-1]]
    away_from_one = s[np.abs(s - 1) > 5e-4]
    single_weights = (
        np.array([float((_excess(away_from_one) / _moment(order, away_from_one)).max()) for order in orders])
        * SINGLE_MOMENT_FACTOR
    )
    no_excess = np.zeros(len(reaches))
    least_cost = float((single_weights * caps).min(initial=math.inf))
    if len(orders):
        best_order_index = int((single_weights * caps).argmin())
        best_weight_alone = np.where(np.arange(len(orders)) == best_order_index, single_weights, 0.0)
        yield PairwiseWeights(orders, best_weight_alone, reaches, no_excess, no_excess, 0.0)
    unit = min(least_cost, float(_excess(s) @ np.ones(len(s)) / len(s)))
    if unit > 0:
        with suppress(SolverError):
            yield _mixture_weights(
                positive_prior,
                ratio_tops,
                s,
                orders,
                caps,
                reaches,
                excess_caps,
                unit * float(positive_prior @ (1 - positive_prior)),
            )


def _mixture_weights(
    positive_prior: Array,
    ratio_tops: Array,
    s: Array,
    orders: Array,
    caps: Array,
    reaches: Array,
    excess_caps: Array,
    unit: float,
) -> PairwiseWeights:
    """Solve for the mixture of least cost on the grid, in units of `unit`."""
    import cvxpy as cp

    pair_probability = float(positive_prior @ (1 - positive_prior))
    reach_ratios = np.exp(reaches)
    excess_above = np.maximum(s[:, None] - reach_ratios, 0.0)
    excess_below = np.maximum(1 - s[:, None] * reach_ratios, 0.0)
    moments = np.array([_moment(order, s) for order in orders]).reshape(len(orders), len(s)).T
    columns = np.hstack([moments, excess_above, excess_below])
    cost = pair_probability * np.concatenate([caps, excess_caps, excess_caps])
    column_scale = unit / np.maximum(cost, 1e-9 * unit)
    weights, slope = cp.Variable(columns.shape[1], nonneg=True), cp.Variable()
    # t_x grows with 1/P_x: it is the sum of non-negative steps.
    tier_steps = cp.Variable(len(ratio_tops), nonneg=True)
    step_indices = np.minimum(np.searchsorted(ratio_tops, s), len(ratio_tops) - 1)
    step_sums = np.cumsum(np.eye(len(ratio_tops)), axis=1).T[step_indices]
    row_scale = np.maximum(_excess(s), unit)
    right_side = np.minimum(columns * column_scale, MAX_RELATIVE_VALUE * row_scale[:, None]) @ weights + unit * (
        (s - 1) * slope + step_sums @ tier_steps
    )
    tiers = np.searchsorted(ratio_tops, 1 / positive_prior)
    tier_masses = np.array([positive_prior[tiers >= tier].sum() for tier in range(len(ratio_tops))])
    conditions = [(right_side - _excess(s)) / row_scale >= 0]
    solve(
        cp.Problem(cp.Minimize((cost * column_scale / unit) @ weights + tier_masses @ tier_steps), conditions),
        "information from pairs",
        SIMPLEX,
    )
    mixture_values = np.maximum(np.asarray(weights.value), 0.0) * column_scale
    n, m = len(orders), len(reaches)
    return PairwiseWeights(
        orders,
        mixture_values[:n],
        reaches,
        mixture_values[n : n + m],
        mixture_values[n + m :],
        float(slope.value) * unit,
    )


def _orders(column_constraints: Sequence[ColumnConstraint], top: float) -> tuple[Array, Array]:
    """List the orders whose moments are capped, and the caps."""
    constraint_orders = [
        float(o) for c in column_constraints for o in (getattr(c, "order", 1.0), *getattr(c, "orders", ()))
    ]
    caps = []
    for order in sorted({o for o in (*DEFAULT_ORDERS, *constraint_orders) if 1 <= o < math.inf}):
        cap = moment_bound(column_constraints, order, FLOAT)
        if cap is not None and math.isfinite(cap.upper) and order * math.log(max(top, 1e9)) < min(MAX_LOG_POWER, 300.0):
            caps.append((order, float(cap.upper)))
    table = np.array(caps).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def _reaches(column_constraints: Sequence[ColumnConstraint]) -> Array:
    """List 0, and the epsilon of every constraint that caps an excess there."""
    epsilons = [
        float(e)
        for c in column_constraints
        if (e := getattr(c, "epsilon", None)) is not None and c.beyond(e, FLOAT) is not None
    ]
    return np.array(sorted({0.0, *(e for e in epsilons if e < 300)}))


def _excess(s: Array) -> Array:
    return np.asarray(KL.excess_of(s - 1, np.ones(len(s))))


def _moment(order: float, s: Array) -> Array:
    if order == 1:
        return np.asarray((s - 1) * np.log(s))
    return np.asarray(s**order + s ** (1 - order) - 1 - s)
