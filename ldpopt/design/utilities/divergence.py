"""The f-divergence between the distributions of the report under two hypotheses, and its tangents.

A tangent is a linear function of a column that touches the divergence at a given column, and lies below it everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ldpopt.channel import ChannelLike, Label
from ldpopt.design.registry import Parameter
from ldpopt.design.utilities.base import ColumnUtility
from ldpopt.design.utilities.laws import LawPair, MarginalComparisons, f_divergence, labeled_distributions
from ldpopt.divergences import FDivergence
from ldpopt.divergences.base import spellings
from ldpopt.divergences.enclosed import enclosed_excess
from ldpopt.errors import InvalidInput, invalid
from ldpopt.numbers.enclosures import FLOAT, Arithmetic, Enclosure
from ldpopt.values.distribution import Array

MAX_INTEGER_LOC = 1e12
"""The largest location of a distribution on the integers, so that floats distinguish its atoms."""


def tangents(f: FDivergence, p0: Array, p1: Array, matrix: Array) -> Array:
    """Compute gradients of mu at the columns of `matrix` (k, n), shape (n, k).

    They are linear functions that touch mu there from below.
    """
    # Both distributions sum to one: both marginals of a constant column are the constant itself, without rounding.
    base = matrix.min(axis=0)
    rise = matrix - base
    return tangents_at(f, p0, p1, base + p0 @ rise, base + p1 @ rise)


def tangents_at(f: FDivergence, p0: Array, p1: Array, a: Array, b: Array) -> Array:
    """Compute gradients of mu at outputs with marginals `a` and `b`, (n,) each, shape (n, k)."""
    slope, level = tangents_of_ratios(f, np.clip(a, 1e-12, None) / np.clip(b, 1e-12, None))
    return np.asarray(slope[:, None] * p0 + level[:, None] * p1)


def tangents_of_ratios(f: FDivergence, ratios: Array) -> tuple[Array, Array]:
    """Return coefficients of a and b of the tangent planes of mu(a, b) at a/b = ratio."""
    slope = np.asarray(f.derivative(ratios)) - f.derivative(1.0)
    return slope, np.asarray(f.excess(ratios, np.ones_like(ratios))) - ratios * slope


def tangents_from_difference(f: FDivergence, difference: Array, p1: Array, matrix: Array) -> Array:
    """Compute the same from `difference` = P0 - P1 (k,), with all digits for nearly equal hypotheses."""
    d, b = difference @ matrix, p1 @ matrix
    ratio = np.clip(np.maximum(b + d, 1e-200) / np.maximum(b, 1e-200), 1e-100, 1e100)
    is_close = np.abs(d) < b / 2
    tilt = np.where(is_close, d / np.where(is_close, b, 1.0), ratio - 1)
    slope = np.asarray(f.derivative(ratio) - f.derivative(1.0))
    ones = np.ones_like(tilt)
    height = np.where(is_close, f.excess_of(np.where(is_close, tilt, 0.0), ones), f.excess(ratio, ones))
    # At a/b = 1 + x the plane is slope (a - b) + (height - x slope) b.
    return np.asarray(slope[:, None] * difference + (height - tilt * slope)[:, None] * p1)


@dataclass(frozen=True, eq=False)
class Divergence(ColumnUtility, f=f_divergence):
    """D_f(M0 || M1) of the distributions M0 = P0 Q and M1 = P1 Q of the report under two hypotheses [GI, section VII].

    Parameters
    ----------
    f : An `FDivergence`, or its name, such as "kl" or "hockey-stick:1.5" (`divergences.parse_divergence`).
    p0, p1 : Distributions of shape (k,), k >= 2 (pandas Series are aligned by their labels); or two frozen
        `scipy.stats` distributions.
    inputs : Labels of the k answers, which designed channels carry; those of a Series by default.

    Raises `InvalidInput` for malformed distributions, for equal hypotheses, and for hypotheses with disjoint supports
    (any answer identifies its hypothesis, and `mechanisms.binary` is optimal).

    >>> from ldpopt.divergences import KL
    >>> Divergence("kl", [0.5, 0.5], [0.25, 0.75])
    Divergence(KL divergence, 2 inputs)
    >>> Divergence("kl", [0.5, 0.5], [0.25, 0.75]) == Divergence(KL, [0.5, 0.5], [0.25, 0.75])
    True
    """

    f: FDivergence
    p0: Any
    p1: Any
    inputs: tuple[Label, ...] | None = None
    contracts = True
    asks = (
        Parameter("p0", "Probabilities of P0, such as 0.5,0.3,0.2.", "P0", type=list),
        Parameter("p1", "Probabilities of P1, such as 0.2,0.3,0.5.", "P1", type=list),
        Parameter("divergence", f"Divergence to maximize: {spellings()}.", "NAME", "f", str),
    )

    if TYPE_CHECKING:  # the accepted types; the fields above have the stored ones

        def __init__(self, f: FDivergence | str, p0: Any, p1: Any, inputs: Iterable[Label] | None = None) -> None: ...

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.continuous:
            _check_frozen(self.p0, self.p1)
            return
        (p0, p1), inputs = labeled_distributions((("p0", self.p0), ("p1", self.p1)), self.inputs)
        if np.abs(p0 - p1).max() <= 4 * np.finfo(float).eps:
            raise InvalidInput("p0 and p1: expected two different distributions, got equal ones")
        if not np.any((p0 > 0) & (p1 > 0)):
            raise InvalidInput(
                "p0 and p1: expected overlapping supports, got disjoint ones "
                "(every answer names its hypothesis; mechanisms.binary is the optimal channel)"
            )
        vars(self).update(p0=p0, p1=p1, inputs=inputs)

    @property
    def continuous(self) -> bool:
        """True if the hypotheses are `scipy.stats` distributions."""
        return is_scipy_distribution(self.p0) or is_scipy_distribution(self.p1)

    @property
    def size(self) -> int:
        """The number k of inputs."""
        return len(self.p0)

    @property
    def pair(self) -> tuple[Array, Array] | None:
        """The two hypotheses; None if they are continuous."""
        return None if self.continuous else (self.p0, self.p1)

    @property
    def compared(self) -> MarginalComparisons | None:
        """The one comparison; None for continuous hypotheses."""
        return None if self.continuous else MarginalComparisons.from_terms([(0, 1.0, self.f, self.p0, self.p1)])

    def value(self, channel: ChannelLike) -> float:
        """Compute D_f of the two marginals, in nats if f has a logarithm."""
        if self.continuous:
            raise invalid("utility", "finite distributions to evaluate a channel on", "scipy.stats distributions")
        return marginal_divergence(self.f, self.p0, self.p1, self.check(channel).matrix)

    def columns(self, matrix: Array) -> Array:
        """Compute the values mu(P0.q, P1.q) of the columns, (1, n)."""
        return np.atleast_2d(self.f.excess(self.p0 @ matrix, self.p1 @ matrix))

    def gradients(self, matrix: Array) -> Array:
        """Compute the tangents at each output's ratio, (1, n, k)."""
        return tangents(self.f, self.p0, self.p1, matrix)[None]

    def enclosed_columns(self, base: Enclosure, rise: Enclosure) -> Enclosure:
        """Enclose the values of the columns base + rise, (1, n)."""
        laws = self.laws(base.arithmetic)
        # The distributions sum to one: the constant part of a column has the same mass under both.
        m0, m1 = base + laws.p0 @ rise, base + laws.p1 @ rise
        return enclosed_excess(self.f, laws.difference @ rise, m1, m0)[None, :]

    def laws(self, arithmetic: Arithmetic) -> LawPair:
        """Enclose the hypotheses."""
        return LawPair.from_floats(self.p0, self.p1, arithmetic) if arithmetic.exact else self._float_laws

    @cached_property
    def _float_laws(self) -> LawPair:
        return LawPair.from_floats(self.p0, self.p1, FLOAT)

    @property
    def name(self) -> str:
        """The name of the divergence, such as "KL divergence"."""
        return self.f.name

    @property
    def value_without_privacy(self) -> float:
        """D_f(P0

        P1), the value of a channel without any privacy.
        """
        return self.f.sum(self.p0, self.p1)

    def enclosed_value_without_privacy(self, arithmetic: Arithmetic) -> Enclosure:
        """Enclose D_f(P0

        P1).
        """
        laws = self.laws(arithmetic)
        return enclosed_excess(self.f, laws.difference, laws.p1).sum()

    def __repr__(self) -> str:
        size = "continuous" if self.continuous else f"{len(self.p0)} inputs"
        return f"Divergence({self.f.name}, {size})"


VALUES_PER_BLOCK = 2**18
"""The number of values of divergences that are computed at a time."""


def enclosed_divergences(parts: Sequence[Divergence], base: Enclosure, rise: Enclosure) -> Iterator[Enclosure]:
    """Enclose the values of divergences of one f at the columns base + rise, (some parts, n), in blocks."""
    step = max(1, VALUES_PER_BLOCK // max(base.shape[0], 1))
    for block in (parts[start : start + step] for start in range(0, len(parts), step)):
        laws = LawPair.from_floats(
            np.stack([part.p0 for part in block]), np.stack([part.p1 for part in block]), base.arithmetic
        )
        m0, m1 = base + laws.p0 @ rise, base + laws.p1 @ rise
        yield enclosed_excess(parts[0].f, laws.difference @ rise, m1, m0)


def marginal_divergence(f: FDivergence, p0: Array, p1: Array, matrix: Array) -> float:
    """Compute D_f(p0 Q

    p1 Q) for distributions (k,) and a matrix Q (k, m).

    Small differences of the marginals keep their digits.
    """
    m1 = p1 @ matrix
    # Rows sum to one only up to rounding, which must not count as a difference of the marginals.
    m0 = m1 + (p0 - p1) @ (matrix - matrix.mean(axis=0))
    return float(np.sum(f.excess(np.maximum(m0, 0.0), m1)))


def is_scipy_distribution(p: Any) -> bool:
    """Return True if `p` is a frozen `scipy.stats` distribution."""
    return hasattr(p, "cdf") and hasattr(p, "ppf") and hasattr(p, "dist")


def is_discrete(law: Any) -> bool:
    """Return True if a frozen `scipy.stats` distribution has atoms, not a density."""
    return hasattr(law.dist, "pmf")


def parameters(law: Any) -> tuple[list[float], float, float]:
    """Return the shapes, the location and the scale of a frozen `scipy.stats` distribution, each a single number."""
    try:
        shapes, loc, scale = law.dist._parse_args(*law.args, **law.kwds)
        return [float(shape) for shape in shapes], float(loc), float(scale)
    except (AttributeError, TypeError, ValueError):
        raise invalid("p0 and p1", "distributions with a number for each parameter", law.args or law.kwds) from None


def _check_frozen(p0: Any, p1: Any) -> None:
    """Raise `InvalidInput` unless both distributions are continuous, or both on the integers."""
    if not (is_scipy_distribution(p0) and is_scipy_distribution(p1)):
        raise invalid("p0 and p1", "two arrays or two scipy.stats distributions", "one of each")
    if is_discrete(p0) != is_discrete(p1):
        raise InvalidInput(
            "p0 and p1: expected two discrete or two continuous distributions, got one of each "
            "(every answer names its hypothesis; mechanisms.binary is the optimal channel)"
        )
    for law in (p0, p1):
        _, loc, _ = parameters(law)
        if is_discrete(law) and not (loc.is_integer() and abs(loc) <= MAX_INTEGER_LOC):
            raise invalid(
                "p0 and p1", f"a discrete distribution with a whole loc up to {MAX_INTEGER_LOC:g} in size", loc
            )
