"""The range of a likelihood ratio on the cells of a line: two known laws and cut points in, enclosed posteriors out.

Nothing is sampled. The log ratio g has the derivative sum c_i phi_i(x), of few functions phi_i whose range on an
interval is known, with exact coefficients; for laws on the integers it has such differences g(k + 1) - g(k). With its
range [D, D'] on a cell (a, b] the mean value theorem encloses g from both ends: g(x) lies in g(a) + [D, D'] [0, b - a]
and in g(b) - [D, D'] [0, b - a]. Where g is monotone, that leaves the values at the ends; elsewhere, a little more than
the range. Where only one of the laws has mass, the posterior is 0 or 1. What is trusted is `scipy.stats` in floats: the
densities at the cut points, with a margin for rounding, and the probabilities of the cells.
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
from ldpopt.numbers.tolerances import DISAGREEMENT, SAME_END, SEEN_MASS
from ldpopt.values.distribution import Array

Mask = npt.NDArray[np.bool_]
End = Fraction | float
"""An end of a support: exact, or infinite."""
INF = math.inf


def _sign(x: Enclosure, c: Fraction) -> Enclosure:
    low, high = np.asarray(x.lower), np.asarray(x.upper)
    least, most = np.where(low >= float_up(c), 1.0, -1.0), np.where(high <= float_down(c), -1.0, 1.0)
    return FLOAT.between(np.minimum(least, most), np.maximum(least, most))


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

SHAPES = 1e-6, 1e6
"""Shape parameters between these are proved about; beyond, floats of `scipy.stats` lose too many digits."""
SIZES = 1e-150, 1e150
"""Locations and scales are at most as large as this, and scales at least as large."""
MARGIN = 2.0**-46
"""The relative error allowed to a log density of `scipy.stats`, of its own size and that of its terms."""
UNDERFLOW = -690.0
"""The logarithm of a float below which its digits are lost."""


def both_known(p0: Any, p1: Any) -> bool:
    """Whether both laws are of families of which ranges are proved, and which are quickly computed."""
    return all(p.dist.name in CONTINUOUS or p.dist.name in DISCRETE for p in (p0, p1))


def _same(dist: Any, family: Any) -> bool:
    """Whether a distribution is the one of `scipy.stats`, on its support."""
    return type(dist) is type(family) and (dist.a, dist.b) == (family.a, family.b)


def _unproved(why: str) -> InvalidInput:
    return InvalidInput(f"not proved: {why}")


@dataclass(frozen=True)
class Known:
    """A law of a family in the tables: its support, the terms of its derivative, and what rounding grows with."""

    law: Any
    discrete: bool
    low: End
    high: End
    terms: Terms
    loc: float
    largest: float

    @classmethod
    def of(cls, law: Any) -> Known:
        """Raises `InvalidInput`, which says why nothing is proved about the law."""
        from scipy import stats

        name, discrete = str(getattr(law.dist, "name", "")), is_discrete(law)
        family, builder = getattr(stats, name, None), (DISCRETE if discrete else CONTINUOUS).get(name)
        if builder is None or family is None or not _same(law.dist, family):
            raise _unproved(f"the likelihood ratio of the law {name!r} between two cut points is not known")
        shapes, loc, scale = parameters(law)
        shaped = all(SHAPES[0] <= shape <= SHAPES[1] for shape in shapes)
        sized = abs(loc) <= SIZES[1] and SIZES[0] <= scale <= SIZES[1]
        if not shaped or not sized or (name in ("geom", "nbinom", "binom") and shapes[-1] >= 1):
            raise _unproved(f"the parameters of the law {name!r} are beyond those that floats serve well")
        low, high, terms = builder(Fraction(loc), Fraction(scale), *map(Fraction, shapes))
        return cls(law, discrete, low, high, _difference(terms, {}), loc, max([1.0, *shapes]))

    def log_density(self, x: Array) -> Enclosure:
        """The log density or log mass at `x`, enclosed; any number where `scipy.stats` says nothing finite."""
        with np.errstate(all="ignore"):
            value = np.asarray(self.law.logpmf(x) if self.discrete else self.law.logpdf(x), dtype=np.float64)
            if self.discrete:
                terms = np.maximum(np.abs(x - self.loc), self.largest)
            else:
                slope = derivative(self.terms, FLOAT.of(x)).abs().upper
                terms = self.largest * math.log(2 + self.largest) + np.abs(x - self.loc) * np.asarray(slope)
            size = terms * np.log(2 + terms) if self.discrete else terms
            error = MARGIN * (1 + np.abs(value) + size)
            # Some families take the logarithm of a density, which has lost its digits where it underflows.
            own = "_logpmf" if self.discrete else "_logpdf"
            precise = (value > UNDERFLOW) | (own in vars(type(self.law.dist)))
            value = np.where(np.isfinite(value + error) & precise, value, np.nan)
        return FLOAT.between(value, value) + FLOAT.between(-error, error)

    def alone(self, other: Known, left: Array, right: Array) -> Mask:
        """The cells that hold points of this law's support outside of the other's."""
        step = int(self.discrete)
        before = _meet(self, left, right, self.low, min(self.high, other.low - step))
        return before | _meet(self, left, right, max(self.low, other.high + step), self.high)


def _meet(law: Known, left: Array, right: Array, low: End, high: End) -> Mask:
    """The cells that hold points from `low` to `high`."""
    if not (low <= high if law.discrete else low < high):
        return np.zeros(left.shape, dtype=bool)
    least, most = _floor(low), _ceil(high)
    return np.asarray((left <= most) & (right >= least) if law.discrete else (left < most) & (right > least))


def _floor(end: End) -> float:
    return float_down(end) if isinstance(end, Fraction) else end


def _ceil(end: End) -> float:
    return float_up(end) if isinstance(end, Fraction) else end


def derivative(terms: Terms, x: Enclosure) -> Enclosure:
    """The sum of the terms on the intervals `x`."""
    parts = [PHI[name](x, *numbers) * factor for (name, *numbers), factor in terms.items()]
    return fold(lambda total, part: total + part, parts, FLOAT.zeros(x.shape))


def _difference(own: Terms, other: Terms) -> Terms:
    """The terms of own - other; those that cancel are left out."""
    keys = dict.fromkeys([*own, *other])
    terms = {key: own.get(key, Fraction(0)) - other.get(key, Fraction(0)) for key in keys}
    return {key: factor for key, factor in terms.items() if isinstance(factor, Enclosure) or factor != 0}


def posterior_range(p0: Any, p1: Any, edges: Array) -> tuple[Array, Array]:
    """The least and the largest p0/(p0 + p1) of the densities on each of the cells (-inf, e_0], .., (e_n, inf).

    Both are rounded outward. A cell where neither law has mass says 0.5.

    Raises `InvalidInput`, which starts with "not proved", for laws of which no range is known.
    """
    law0, law1 = Known.of(p0), Known.of(p1)
    if law0.discrete != law1.discrete:
        raise _unproved("one law is discrete and the other is not")
    first, last = min(_floor(law0.low), _floor(law1.low)), max(_ceil(law0.high), _ceil(law1.high))
    left, right = np.concatenate([[-INF], edges]), np.concatenate([edges, [INF]])
    if law0.discrete:
        left, right = np.floor(left) + 1, np.floor(right)
    left, right = np.maximum(left, first), np.minimum(right, last)
    occurs = left <= right if law0.discrete else left < right
    only0, only1 = law0.alone(law1, left, right) & occurs, law1.alone(law0, left, right) & occurs
    # What follows is about the points where both have mass.
    left = np.maximum(left, max(_floor(law0.low), _floor(law1.low)))
    right = np.minimum(right, min(_ceil(law0.high), _ceil(law1.high)))
    both = left <= right if law0.discrete else left < right
    low, high = (
        1 / (1 + (-FLOAT.between(end, end)).exp())
        for end in _log_range(law0, law1, np.minimum(left, right), np.maximum(left, right))
    )
    least = np.where(only1, 0.0, np.where(both, np.clip(low.lower, 0, 1), 1.0))
    most = np.where(only0, 1.0, np.where(both, np.clip(high.upper, 0, 1), 0.0))
    # Posteriors nearer to 0 or 1 than floats can compare are moved outward: it costs less than the cells' masses do.
    least = np.where(least < SAME_END, 0.0, np.minimum(least, 1 - SAME_END))
    most = np.where(most > 1 - SAME_END, 1.0, np.maximum(most, SAME_END))
    empty = ~(both | only0 | only1)
    return np.where(empty, 0.5, least), np.where(empty, 0.5, most)


def _log_range(law0: Known, law1: Known, left: Array, right: Array) -> tuple[Array, Array]:
    """The range of log(p0/p1) on the points from `left` to `right`."""
    terms = _difference(law0.terms, law1.terms)
    reach = np.maximum(left, right - 1) if law0.discrete else right
    slope = derivative(terms, FLOAT.between(left, reach))
    with np.errstate(invalid="ignore"):
        width = FLOAT.between(0.0, np.where(right > left, np.nextafter(right - left, INF), 0.0))
    rise = FLOAT.where(right > left, slope * width, 0.0) if terms else FLOAT.zeros(left.shape)
    start, stop = (law0.log_density(x) - law1.log_density(x) for x in (left, right))
    up, down = start + rise, stop - rise
    return np.maximum(up.lower, down.lower), np.minimum(up.upper, down.upper)


def check_masses(p0: Array, p1: Array, low: Array, high: Array) -> None:
    """Raise `InvalidInput` where the posterior of a cell's masses is not within the range of its likelihood ratio."""
    total = p0 + p1
    seen = total > SEEN_MASS
    s = p0[seen] / total[seen]
    if not ((s >= low[seen] - DISAGREEMENT) & (s <= high[seen] + DISAGREEMENT)).all():
        raise _unproved("the probabilities that scipy.stats gives to cells contradict its densities")
