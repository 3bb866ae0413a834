"""The range of a likelihood ratio on the cells of a line: enclosed posteriors for two known distributions and cut
points.

Nothing is sampled. The log ratio g has the derivative sum c_i phi_i(x), of few functions phi_i whose range on an
interval is known, with exact coefficients. For distributions on the integers it has such differences g(k + 1) - g(k).
With its range [D, D'] on a cell (a, b] the mean value theorem encloses g from both ends. The value g(x) lies in g(a) +
[D, D'] [0, b - a] and in g(b) - [D, D'] [0, b - a]. If g is monotone, that gives the values at the ends; otherwise, a
little more than the range. If only one of the distributions has mass, the posterior is 0 or 1. The proof trusts
`scipy.stats` in floats: the densities at the cut points, with a margin for rounding, and the probabilities of the
cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce as fold
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.design.utilities.divergence import is_discrete, parameters
from ldpopt.errors import InvalidInput
from ldpopt.numbers.enclosures import FLOAT, Enclosure
from ldpopt.numbers.rounding import float_down, float_up
from ldpopt.numbers.tolerances import RATIO_DISAGREEMENT, SAME_END, SEEN_MASS
from ldpopt.values.distribution import Array

Mask = npt.NDArray[np.bool_]
End = Fraction | float
"""An end of a support: exact, or infinite."""
INF = math.inf


def _sign(x: Enclosure, c: Fraction) -> Enclosure:
    low, high = np.asarray(x.lower), np.asarray(x.upper)
    lower_sign, upper_sign = np.where(low >= float_up(c), 1.0, -1.0), np.where(high <= float_down(c), -1.0, 1.0)
    return FLOAT.between(np.minimum(lower_sign, upper_sign), np.maximum(lower_sign, upper_sign))


PHI: dict[str, Callable[..., Enclosure]] = {
    "1": lambda x: FLOAT.of(np.ones(x.shape)),
    "x": lambda x: x,
    "sign(x - c)": _sign,
    "tanh((x - c)/2s)": lambda x, c, s: 1 - 2 / (((x - c) / s).exp() + 1),
    "1/(x - c)": lambda x, c: 1 / (x - c),
    "log(x - c)/(x - c)": lambda x, c: (x - c).log() / (x - c),
    "(x - c)/(v + (x - c)^2)": lambda x, c, v: (x - c) / ((x - c).square() + v),
    "log(x - c)": lambda x, c: (x - c).log(),
    "log(c - x)": lambda x, c: (c - x).log(),
}
"""The functions phi on intervals `x`; the numbers after `x` are exact."""

Terms = dict[tuple[Any, ...], Any]
"""The coefficients, exact or enclosed, of the functions in `PHI`, each by its name and its numbers."""
Family = Callable[..., tuple[End, End, Terms]]


def _log(value: Fraction) -> Enclosure:
    return FLOAT.of(value).log()


def _gamma(loc: Fraction, scale: Fraction, a: Fraction) -> tuple[End, End, Terms]:
    return loc, INF, {("1/(x - c)", loc): a - 1, ("1",): -1 / scale}


def _student(loc: Fraction, scale: Fraction, v: Fraction) -> tuple[End, End, Terms]:
    return -INF, INF, {("(x - c)/(v + (x - c)^2)", loc, v * scale**2): -(v + 1)}


def _beta(loc: Fraction, scale: Fraction, a: Fraction, b: Fraction) -> tuple[End, End, Terms]:
    return loc, loc + scale, {("1/(x - c)", loc): a - 1, ("1/(x - c)", loc + scale): b - 1}


def _lognormal(loc: Fraction, scale: Fraction, s: Fraction) -> tuple[End, End, Terms]:
    over = _log(scale) / s**2 - 1
    return loc, INF, {("1/(x - c)", loc): over, ("log(x - c)/(x - c)", loc): -1 / s**2}


CONTINUOUS: dict[str, Family] = {
    "norm": lambda m, s: (-INF, INF, {("1",): m / s**2, ("x",): -1 / s**2}),
    "laplace": lambda m, s: (-INF, INF, {("sign(x - c)", m): -1 / s}),
    "logistic": lambda m, s: (-INF, INF, {("tanh((x - c)/2s)", m, s): -1 / s}),
    "expon": lambda m, s: (m, INF, {("1",): -1 / s}),
    "uniform": lambda m, s: (m, m + s, {}),
    "gamma": _gamma,
    "chi2": lambda m, s, v: _gamma(m, 2 * s, v / 2),
    "beta": _beta,
    "lognorm": _lognormal,
    "t": _student,
    "cauchy": lambda m, s: _student(m, s, Fraction(1)),
}
"""Location, scale and shapes of a family -> its support, and the derivative of its log density there."""

DISCRETE: dict[str, Family] = {
    "poisson": lambda m, _, mu: (m, INF, {("1",): _log(mu), ("log(x - c)", m - 1): Fraction(-1)}),
    "geom": lambda m, _, p: (m + 1, INF, {("1",): _log(1 - p)}),
    "nbinom": lambda m, _, r, p: (
        m, INF, {("1",): _log(1 - p), ("log(x - c)", m - 1): Fraction(-1), ("log(x - c)", m - r): Fraction(1)}
    ),
    "binom": lambda m, _, n, p: (
        m, m + n,
        {("1",): _log(p / (1 - p)), ("log(x - c)", m - 1): Fraction(-1), ("log(c - x)", m + n): Fraction(1)},
    ),
}  # fmt: skip
"""The same for laws on the integers, with the logarithm of p(x + 1)/p(x) for the derivative."""

SHAPE_RANGE = 1e-6, 1e6
"""Shape parameters between these are proved about; beyond, floats of `scipy.stats` lose too many digits."""
SCALE_RANGE = 1e-150, 1e150
"""Locations and scales are at most as large as this, and scales at least as large."""
LOG_DENSITY_RTOL = 2.0**-46
"""The relative error allowed to a log density of `scipy.stats`, of its own size and that of its terms."""
MIN_LOG_DENSITY = -690.0
"""The logarithm of a float below which its digits are lost."""


def are_both_known(p0: Any, p1: Any) -> bool:
    """Return True if both distributions are of families with proved ranges, which are quickly computed."""
    return all(p.dist.name in CONTINUOUS or p.dist.name in DISCRETE for p in (p0, p1))


def _is_scipy_family(dist: Any, family: Any) -> bool:
    """Return True if a distribution is the one of `scipy.stats`, on its support."""
    return type(dist) is type(family) and (dist.a, dist.b) == (family.a, family.b)


def _not_proved(reason: str) -> InvalidInput:
    return InvalidInput(f"not proved: {reason}")


@dataclass(frozen=True)
class KnownLaw:
    """A distribution of a family in the tables: its support, the terms of its derivative, and its rounding scale."""

    law: Any
    discrete: bool
    low: End
    high: End
    terms: Terms
    loc: float
    largest: float

    @classmethod
    def from_distribution(cls, law: Any) -> KnownLaw:
        """Check a distribution; raise `InvalidInput` with the reason if nothing is proved about it."""
        from scipy import stats

        name, discrete = str(getattr(law.dist, "name", "")), is_discrete(law)
        family, builder = getattr(stats, name, None), (DISCRETE if discrete else CONTINUOUS).get(name)
        if builder is None or family is None or not _is_scipy_family(law.dist, family):
            raise _not_proved(f"the likelihood ratio of the law {name!r} between two cut points is not known")
        shapes, loc, scale = parameters(law)
        has_valid_shapes = all(SHAPE_RANGE[0] <= shape <= SHAPE_RANGE[1] for shape in shapes)
        has_valid_scale = abs(loc) <= SCALE_RANGE[1] and SCALE_RANGE[0] <= scale <= SCALE_RANGE[1]
        if not has_valid_shapes or not has_valid_scale or (name in ("geom", "nbinom", "binom") and shapes[-1] >= 1):
            raise _not_proved(f"the parameters of the law {name!r} are beyond those that floats serve well")
        low, high, terms = builder(Fraction(loc), Fraction(scale), *map(Fraction, shapes))
        return cls(law, discrete, low, high, _subtract_terms(terms, {}), loc, max([1.0, *shapes]))

    def log_density(self, x: Array) -> Enclosure:
        """Enclose the log density or log mass at `x`; any number if `scipy.stats` returns nothing finite."""
        with np.errstate(all="ignore"):
            value = np.asarray(self.law.logpmf(x) if self.discrete else self.law.logpdf(x), dtype=np.float64)
            if self.discrete:
                terms = np.maximum(np.abs(x - self.loc), self.largest)
            else:
                slope = derivative(self.terms, FLOAT.of(x)).abs().upper
                terms = self.largest * math.log(2 + self.largest) + np.abs(x - self.loc) * np.asarray(slope)
            size = terms * np.log(2 + terms) if self.discrete else terms
            error = LOG_DENSITY_RTOL * (1 + np.abs(value) + size)
            # Some families take the logarithm of a density, which has lost its digits after underflow.
            method_name = "_logpmf" if self.discrete else "_logpdf"
            precise = (value > MIN_LOG_DENSITY) | (method_name in vars(type(self.law.dist)))
            value = np.where(np.isfinite(value + error) & precise, value, np.nan)
        return FLOAT.between(value, value) + FLOAT.between(-error, error)

    def alone(self, other: KnownLaw, left: Array, right: Array) -> Mask:
        """Return True for cells with points of this support outside of the other's."""
        step = int(self.discrete)
        cells_before = _intersecting_cells(self, left, right, self.low, min(self.high, other.low - step))
        return cells_before | _intersecting_cells(self, left, right, max(self.low, other.high + step), self.high)


def _intersecting_cells(law: KnownLaw, left: Array, right: Array, low: End, high: End) -> Mask:
    """Return True for cells with points from `low` to `high`."""
    if not (low <= high if law.discrete else low < high):
        return np.zeros(left.shape, dtype=bool)
    low_float, high_float = _floor(low), _ceil(high)
    return np.asarray(
        (left <= high_float) & (right >= low_float) if law.discrete else (left < high_float) & (right > low_float)
    )


def _floor(end: End) -> float:
    return float_down(end) if isinstance(end, Fraction) else end


def _ceil(end: End) -> float:
    return float_up(end) if isinstance(end, Fraction) else end


def derivative(terms: Terms, x: Enclosure) -> Enclosure:
    """Compute the sum of the terms on the intervals `x`."""
    parts = [PHI[name](x, *numbers) * factor for (name, *numbers), factor in terms.items()]
    return fold(lambda total, part: total + part, parts, FLOAT.zeros(x.shape))


def _subtract_terms(minuend: Terms, subtrahend: Terms) -> Terms:
    """Subtract the terms; those that cancel are omitted."""
    keys = dict.fromkeys([*minuend, *subtrahend])
    terms = {key: minuend.get(key, Fraction(0)) - subtrahend.get(key, Fraction(0)) for key in keys}
    return {key: factor for key, factor in terms.items() if isinstance(factor, Enclosure) or factor != 0}


def posterior_range(p0: Any, p1: Any, edges: Array) -> tuple[Array, Array]:
    """Compute the range of p0/(p0 + p1) of the densities on each of the cells (-inf, e_0], .., (e_n, inf).

    Both ends are rounded outward. A cell without mass under either distribution gets 0.5. Raises `InvalidInput`, which
    starts with "not proved", for distributions without a known range.
    """
    law0, law1 = KnownLaw.from_distribution(p0), KnownLaw.from_distribution(p1)
    if law0.discrete != law1.discrete:
        raise _not_proved("one law is discrete and the other is not")
    first, last = min(_floor(law0.low), _floor(law1.low)), max(_ceil(law0.high), _ceil(law1.high))
    left, right = np.concatenate([[-INF], edges]), np.concatenate([edges, [INF]])
    if law0.discrete:
        left, right = np.floor(left) + 1, np.floor(right)
    left, right = np.maximum(left, first), np.minimum(right, last)
    occurs = left <= right if law0.discrete else left < right
    only0, only1 = law0.alone(law1, left, right) & occurs, law1.alone(law0, left, right) & occurs
    # From here on, only points where both have mass count.
    left = np.maximum(left, max(_floor(law0.low), _floor(law1.low)))
    right = np.minimum(right, min(_ceil(law0.high), _ceil(law1.high)))
    is_common = left <= right if law0.discrete else left < right
    low, high = (
        1 / (1 + (-FLOAT.between(end, end)).exp())
        for end in _log_range(law0, law1, np.minimum(left, right), np.maximum(left, right))
    )
    lower = np.where(only1, 0.0, np.where(is_common, np.clip(low.lower, 0, 1), 1.0))
    upper = np.where(only0, 1.0, np.where(is_common, np.clip(high.upper, 0, 1), 0.0))
    # Posteriors too close to 0 or 1 for floats are moved outward, which costs less than the cells' masses.
    lower = np.where(lower < SAME_END, 0.0, np.minimum(lower, 1 - SAME_END))
    upper = np.where(upper > 1 - SAME_END, 1.0, np.maximum(upper, SAME_END))
    empty = ~(is_common | only0 | only1)
    return np.where(empty, 0.5, lower), np.where(empty, 0.5, upper)


def _log_range(law0: KnownLaw, law1: KnownLaw, left: Array, right: Array) -> tuple[Array, Array]:
    """Compute the range of log(p0/p1) on the points from `left` to `right`."""
    terms = _subtract_terms(law0.terms, law1.terms)
    reach = np.maximum(left, right - 1) if law0.discrete else right
    slope = derivative(terms, FLOAT.between(left, reach))
    with np.errstate(invalid="ignore"):
        width = FLOAT.between(0.0, np.where(right > left, np.nextafter(right - left, INF), 0.0))
    rise = FLOAT.where(right > left, slope * width, 0.0) if terms else FLOAT.zeros(left.shape)
    start, stop = (law0.log_density(x) - law1.log_density(x) for x in (left, right))
    from_start, from_stop = start + rise, stop - rise
    return np.maximum(from_start.lower, from_stop.lower), np.minimum(from_start.upper, from_stop.upper)


def check_masses(p0: Array, p1: Array, low: Array, high: Array) -> None:
    """Raise `InvalidInput` if the posterior of a cell's masses is not within the range of its likelihood ratio."""
    total = p0 + p1
    is_checked = total > SEEN_MASS
    s = p0[is_checked] / total[is_checked]
    if not ((s >= low[is_checked] - RATIO_DISAGREEMENT) & (s <= high[is_checked] + RATIO_DISAGREEMENT)).all():
        raise _not_proved("the probabilities that scipy.stats gives to cells contradict its densities")
