"""Two hypotheses on few inputs: sorted, merged where ratios are equal, cut into cells, or spread onto points.

Replace a channel by its average over a class of inputs with one ratio P0/P1. The weights Pr(x | class) are equal under
both hypotheses. This preserves both marginals and never raises a constraint that is jointly convex in pairs of rows, so
the reduced problem has the same optimum. Inputs that never occur need only some feasible row.

Continuous hypotheses are cut into finitely many intervals (cells), with a finite pair that dominates them. For large
alphabets, merging unequal inputs restricts the channel, which gives a lower bound. Every input can be spread between
two points of more extreme likelihood ratio, with the same masses under both hypotheses. The resulting pair dominates
the hypotheses in Blackwell's order, which gives an upper bound. On the scale s = P0/(P0+P1), the posterior, it is a
mean-preserving spread of the total mass.

The module also computes the marginals of columns, their posteriors and their contributions to a divergence.

Nearly equal hypotheses and nearly uninformative reports lose no digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.design.problems.likelihood import are_both_known, check_masses, posterior_range
from ldpopt.design.utilities.divergence import Divergence
from ldpopt.design.work import Work
from ldpopt.divergences import FDivergence
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.numbers.rounding import exact_sum
from ldpopt.numbers.tolerances import OUTER_SHARE, POSTERIOR_ROUNDING, WIDER_POINTS
from ldpopt.values.distribution import Array, Index

OPERATIONS_OF_UNKNOWN_LAW = 1e7  # For one probability of a `scipy.stats` distribution that is integrated numerically.
QUOTIENT_RTOL = 2.0**-50  # Quotients that are equal in exact numbers differ by at most this fraction in floats.


@dataclass(frozen=True, eq=False)
class Pair:
    """Two hypotheses on inputs in increasing order of likelihood ratio: masses `p0` and `p1`, shape (k,).

    difference : (k,) p0 - p1 of the distributions that the floats represent, computed without cancellation.
    """

    p0: Array
    p1: Array
    difference: Array

    def __len__(self) -> int:
        return len(self.p0)

    @classmethod
    def from_masses(cls, p0: Array, p1: Array) -> Pair:
        """Return the pair of the given masses, not normalized."""
        return cls(p0, p1, p0 - p1)

    @classmethod
    def from_distributions(cls, p0: Array, p1: Array) -> Pair:
        """Return the pair of the distributions proportional to floats that sum to one up to rounding."""
        # p / T = p - p (T - 1) / T, with T - 1 free of rounding.
        off0, off1 = (float(1 - 1 / summed) if (summed := exact_sum(p)) else 0.0 for p in (p0, p1))
        return cls(p0, p1, (p0 - p1) - (p0 * off0 - p1 * off1))

    @cached_property
    def posterior(self) -> Array:
        """p0 / (p0 + p1), shape (k,), in [0, 1]: the likelihood ratio on a scale without infinities."""
        return self.p0 / (self.p0 + self.p1)

    def merge(self, starts: npt.NDArray[np.intp]) -> Pair:
        """Merge each run of inputs that begins at an index in `starts` into a single input."""
        return Pair(*(np.add.reduceat(part, starts) for part in (self.p0, self.p1, self.difference)))


@dataclass(frozen=True, eq=False)
class Reduction:
    """A reduced pair, and for every original input the position of its class in it."""

    pair: Pair
    classes: npt.NDArray[np.intp]


def _equal_to_previous(a: Array, b: Array, ratio: Array) -> npt.NDArray[np.bool_]:
    """Return True for each ratio a/b equal to the one before it; fractions decide if floats cannot."""
    is_equal = (a[1:] == a[:-1]) & (b[1:] == b[:-1])
    with np.errstate(invalid="ignore"):
        is_larger = ratio[1:] > ratio[:-1] * (1 + QUOTIENT_RTOL)
    for i in np.flatnonzero(~is_equal & ~is_larger).tolist():
        is_equal[i] = Fraction(a[i]) * Fraction(b[i + 1]) == Fraction(a[i + 1]) * Fraction(b[i])
    return np.asarray(is_equal)


def reduce_pair(p0: Array, p1: Array) -> Reduction:
    """Sort by likelihood ratio p0/p1 and merge inputs whose ratios are equal.

    >>> r = reduce_pair(np.array([0.2, 0.4, 0.4, 0.0]), np.array([0.4, 0.2, 0.4, 0.0]))
    >>> r.classes, r.pair.p0
    (array([0, 2, 1, 1]), array([0.2, 0.4, 0.4]))
    """
    occurs = np.flatnonzero((p0 > 0) | (p1 > 0))
    pair = Pair.from_distributions(p0, p1)
    a, b = p0[occurs], p1[occurs]
    with np.errstate(divide="ignore", over="ignore"):
        ratio = a / b
    order = np.argsort(ratio, kind="stable")
    a, b, ratio, occurs = a[order], b[order], ratio[order], occurs[order]
    starts_class = np.concatenate([[True], ~_equal_to_previous(a, b, ratio)])
    position = np.cumsum(starts_class) - 1
    classes = np.full(len(p0), -1, dtype=np.intp)
    classes[occurs] = position
    # An input that never occurs takes the class of the nearest earlier input that does, else of the first.
    earlier_position = np.where(classes >= 0, np.arange(len(p0)), -1)
    last = np.maximum.accumulate(earlier_position)
    classes = classes[np.where(last >= 0, last, int(np.argmax(classes >= 0)))]
    return Reduction(Pair(a, b, pair.difference[occurs]).merge(np.flatnonzero(starts_class)), classes)


@dataclass(frozen=True, eq=False)
class Cells:
    """Two frozen `scipy.stats` distributions cut at `edges` (interior cut points, increasing).

    Cell i is (edges[i-1], edges[i]]. The cells' masses are those of `scipy.stats`, in floats.
    """

    p0: Any
    p1: Any
    edges: Array

    @classmethod
    def cut(cls, p0: Any, p1: Any, count: int) -> Cells:
        """Build about `count` cells, fine where either hypothesis has mass, down to a tail of 1e-12."""
        levels = np.concatenate([np.linspace(0, 1, count // 4)[1:-1], 10.0 ** np.linspace(-12, -2, count // 16)])
        points = [_evaluate_law(p, name, levels) for p in (p0, p1) for name in ("ppf", "isf")]
        edges = np.unique(np.concatenate(points))
        edges = edges[np.isfinite(edges)]
        # The quantile functions of both tails may give one point up to rounding: it is one edge, not two.
        edges = edges[np.concatenate([[True], np.diff(edges) > 1e-9 * (1 + np.abs(edges[1:]))])]
        if len(edges) < 2:
            raise invalid("p0 and p1", "distributions with at least three intervals of mass", "fewer")
        return cls(p0, p1, edges)

    def work(self) -> Work:
        """Bound the work for the masses and the ranges of ratios; unknown families may take long."""
        return Work.on(
            4 * (len(self.edges) + 1), 20_000.0 if are_both_known(self.p0, self.p1) else OPERATIONS_OF_UNKNOWN_LAW
        ).in_floats

    @cached_property
    def masses(self) -> tuple[Array, Array]:
        """The probabilities of the cells under p0 and under p1, shape (cells,) each."""
        return _masses(self.p0, self.edges), _masses(self.p1, self.edges)

    def divergence(self, f: FDivergence) -> Divergence:
        """Return the divergence between the masses of the cells."""
        return Divergence(f, *self.masses, inputs=self.labels)

    def starts(self, starts: Index) -> Cells:
        """Return the coarser cells that begin at the indices `starts`; the first is 0."""
        return Cells(self.p0, self.p1, self.edges[np.asarray(starts)[1:] - 1])

    @property
    def labels(self) -> tuple[str, ...]:
        """The cells as text, e.g. ``"(-0.5, 0.25]"``."""
        cuts = [f"{edge:.9g}" for edge in self.edges]
        if len(set(cuts)) < len(cuts):
            cuts = [repr(edge) for edge in self.edges.tolist()]
        ends = ["-inf", *cuts, "inf"]
        return tuple(f"({a}, {b}]" if b != "inf" else f"({a}, inf)" for a, b in pairwise(ends))

    def endpoints(self) -> tuple[Array, Array]:
        """Return masses (P0, P1) of a finite pair that dominates the hypotheses, shape (2 cells,) each.

        The mass of each cell is spread to two points, with the smallest and the largest ratio in the cell. Raises
        `InvalidInput` for distributions without a proved range.
        """
        p0, p1 = self.masses
        total = p0 + p1
        has_mass = total > 0
        s = np.divide(p0, total, out=np.full_like(p0, 0.5), where=has_mass)
        low, high = posterior_range(self.p0, self.p1, self.edges)
        check_masses(p0, p1, low, high)
        low, high = np.minimum(low, s), np.maximum(high, s)
        width = np.where(high > low, high - low, 1.0)
        upper_mass = total * np.where(high > low, (s - low) / width, 0.0)
        lower_mass = total - upper_mass
        return np.concatenate([low * lower_mass, high * upper_mass]), np.concatenate(
            [(1 - low) * lower_mass, (1 - high) * upper_mass]
        )


def _evaluate_law(p: Any, name: str, points: Array) -> Array:
    """Compute a function of a distribution at some points; raise `InvalidInput` if `scipy.stats` fails."""
    try:
        with np.errstate(all="ignore"):
            values = np.asarray(getattr(p, name)(points), dtype=np.float64)
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise InvalidInput(f"p0 and p1: expected laws that scipy.stats can evaluate, got {error} from {name}") from None
    if np.isnan(values).any():
        raise invalid("p0 and p1", "laws that scipy.stats can evaluate", Phrase(f"NaN from {name}"))
    return values


def _masses(p: Any, edges: Array) -> Array:
    cdf, survival = _evaluate_law(p, "cdf", edges), _evaluate_law(p, "sf", edges)
    # Differences of the smaller tail keep relative accuracy on both sides.
    inner = np.where(cdf[1:] < 0.5, np.diff(cdf), -np.diff(survival))
    mass = np.maximum(np.concatenate([[cdf[0]], inner, [survival[-1]]]), 0.0)
    return np.asarray(mass / mass.sum())


def spread_onto(p0: Array, p1: Array, knots: Array) -> Pair:
    """Return the pair on the posteriors `knots` that dominates (p0, p1).

    p0, p1 : masses (k,). knots : increasing, from the least posterior of the inputs or below to the largest or above.

    >>> pair = spread_onto(np.array([0.2, 0.8]), np.array([0.6, 0.4]), np.array([0.0, 0.5, 1.0]))
    >>> pair.p0.round(3), pair.p1.round(3)
    (array([0. , 0.6, 0.4]), array([0.4, 0.6, 0. ]))
    """
    total = p0 + p1
    used = total > 0
    total, s = total[used], np.clip(p0[used] / total[used], knots[0], knots[-1])
    right = np.clip(np.searchsorted(knots, s), 1, len(knots) - 1)
    upper_fraction = (s - knots[right - 1]) / (knots[right] - knots[right - 1])
    n = len(knots)
    mass = np.bincount(right, total * upper_fraction, n) + np.bincount(right - 1, total * (1 - upper_fraction), n)
    has_mass = mass > 0
    q0, q1 = knots[has_mass] * mass[has_mass], (1 - knots[has_mass]) * mass[has_mass]
    return Pair.from_masses(q0 / q0.sum(), q1 / q1.sum())


def dominating_pair(p0: Array, p1: Array, knots: Array) -> tuple[Array, Array]:
    """Return the masses of points near `knots` that dominate the pair (p0, p1), with a rounding margin."""
    low, high = float(knots[0]), float(knots[-1])
    # If the hypotheses are nearly equal, rounding is a larger fraction of their difference.
    share, margin = (max(minimum, POSTERIOR_ROUNDING / (high - low)) for minimum in (OUTER_SHARE, WIDER_POINTS))
    margin *= high - low
    low, high = max(0.0, low - margin), min(1.0, high + margin)
    inner = spread_onto(p0, p1, np.unique(np.concatenate([[low], knots[1:-1], [high]])))
    # The two outermost points alone, with both hypotheses' masses, are a pair that dominates all others between them.
    upper_fraction = 2 * (0.5 - low) / (high - low)
    outer0, outer1 = (
        np.array([low * (2 - upper_fraction), high * upper_fraction]),
        np.array([(1 - low) * (2 - upper_fraction), (1 - high) * upper_fraction]),
    )
    return (
        np.concatenate([(1 - share) * inner.p0, share * outer0]),
        np.concatenate([(1 - share) * inner.p1, share * outer1]),
    )


def knots_near_cuts(p0: Array, p1: Array, cuts: Array, base: int, steps: int, shrink: float = 1.5) -> Array:
    """Return posteriors to spread onto, dense where the bound depends on them.

    Spreading an input costs nothing if the channel treats both ends equally, only where the channel changes between
    them.

    - `cuts` : (c, 2), pairs of posteriors between which the channel changes. The knots approach both ends of each cut
      from either side in `steps` steps.
    - `shrink` : each step divides the distance by this factor.
    - `base` : the number of further knots, half of them uniform in the range and half in the mass.
    """
    total = p0 + p1
    has_mass = total > 0
    s, total = p0[has_mass] / total[has_mass], total[has_mass]
    order = np.argsort(s, kind="stable")
    s, mass = s[order], np.cumsum(total[order])
    first, last = s[0], s[-1]
    uniform = np.linspace(first, last, max(2, base - base // 2))
    quantiles = s[np.searchsorted(mass, np.linspace(0, mass[-1], base // 2 + 2)[1:-1])]
    distance = (last - first) * shrink ** -np.arange(1.0, steps + 1)
    knots_of_cuts = [np.concatenate([[low, high], low - distance, high + distance]) for low, high in cuts]
    posteriors = np.unique(np.concatenate([uniform, quantiles, *knots_of_cuts]))
    posteriors = posteriors[(posteriors >= first) & (posteriors <= last)]
    # Of points closer than rounding, only one remains.
    distinct_posteriors = posteriors[np.concatenate([[True], np.diff(posteriors) > 1e-13])]
    distinct_posteriors[-1] = last
    return np.asarray(distinct_posteriors)


def excess_at(f: FDivergence, posterior: Array) -> Array:
    """Compute the excess at (s, 1 - s) for posteriors s."""
    tilt = 2 * posterior - 1
    is_central = np.abs(tilt) < 0.5
    # The tilt is exact near one half, the posterior itself near the ends.
    inner = f.excess_of(np.where(is_central, tilt, 0.0), np.where(is_central, 1 - posterior, 1.0))
    outer = f.excess(np.where(is_central, 0.5, posterior), np.where(is_central, 0.5, 1 - posterior))
    return np.asarray(np.where(is_central, inner, outer))


def marginals(pair: Pair, matrix: Array) -> tuple[Array, Array, Array]:
    """Compute (P0 - P1).Q, P0.Q and P1.Q of a matrix (k, n) whose rows have equal sums."""
    # The common part of all rows has equal masses under both hypotheses, and is subtracted before rounding.
    return pair.difference @ (matrix - matrix.min(axis=0)), pair.p0 @ matrix, pair.p1 @ matrix


def values_of(f: FDivergence, pair: Pair, matrix: Array) -> Array:
    """Compute the contribution of each column of `matrix` (k, n) to the divergence, (n,)."""
    return excess_from_difference(f, *marginals(pair, matrix))


def excess_from_difference(f: FDivergence, d: Array, a: Array, b: Array) -> Array:
    """Compute the excess at marginals a = b + d, without cancellation."""
    is_large = np.abs(d) > 0.5 * b
    small_excess = f.excess_of(np.where(is_large, 0.0, np.maximum(d, -b)), b)
    return np.asarray(np.where(is_large, f.excess(np.maximum(a, 0.0), np.maximum(b, 0.0)), small_excess))


def value_of(f: FDivergence, pair: Pair, matrix: Array) -> float:
    """Compute the divergence of the two marginals of a matrix (k, n)."""
    return float(values_of(f, pair, matrix).sum())


def posteriors(pair: Pair, matrix: Array) -> Array:
    """Compute the posteriors a / (a + b) of the columns, (n,), one half if a column is zero."""
    d, a, b = marginals(pair, matrix)
    total = np.where(a + b > 0, a + b, 1.0)
    is_close = np.abs(d) < 0.5 * (a + b)
    return np.asarray(np.where(a + b > 0, np.where(is_close, 0.5 + d / total / 2, a / total), 0.5))
