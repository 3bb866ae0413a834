"""The f-divergence between the laws of the report under two hypotheses, and its tangents.

A tangent is a linear function of a column that touches the divergence at a given column, and lies below it everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ldpopt.channel import ChannelLike, Label
from ldpopt.design.registry import Asked
from ldpopt.design.utilities.base import ColumnUtility
from ldpopt.design.utilities.laws import Compared, Laws, f_divergence, labelled_laws
from ldpopt.divergences import FDivergence
from ldpopt.divergences.base import spellings
from ldpopt.divergences.enclosed import enclosed_excess
from ldpopt.errors import InvalidInput, invalid
from ldpopt.numbers.enclosures import FLOAT, Arithmetic, Enclosure
from ldpopt.values.distribution import Array

LARGEST_LOC = 1e12
"""The largest location of a law on the integers, so that floats tell its atoms apart."""


def tangents(f: FDivergence, p0: Array, p1: Array, matrix: Array) -> Array:
    """(n, k) gradients of mu at the columns of `matrix` (k, n): linear functions that touch mu there from below."""
    # Both laws sum to one, so that both marginals of a constant column are the constant itself, without rounding.
    base = matrix.min(axis=0)
    above = matrix - base
    return tangents_at(f, p0, p1, base + p0 @ above, base + p1 @ above)


def tangents_at(f: FDivergence, p0: Array, p1: Array, a: Array, b: Array) -> Array:
    """(n, k) gradients of mu at outputs with marginals `a` and `b`, shape (n,) each."""
    slope, level = tangents_of_ratios(f, np.clip(a, 1e-12, None) / np.clip(b, 1e-12, None))
    return np.asarray(slope[:, None] * p0 + level[:, None] * p1)


def tangents_of_ratios(f: FDivergence, ratios: Array) -> tuple[Array, Array]:
    """Coefficients of a and b of the tangent planes of mu(a, b) at a/b = ratio."""
    slope = np.asarray(f.derivative(ratios)) - f.derivative(1.0)
    return slope, np.asarray(f.excess(ratios, np.ones_like(ratios))) - ratios * slope


def tangents_apart(f: FDivergence, apart: Array, p1: Array, matrix: Array) -> Array:
    """The same from `apart` = P0 - P1 (k,), which keeps the digits of hypotheses that nearly agree."""
    d, b = apart @ matrix, p1 @ matrix
    ratio = np.clip(np.maximum(b + d, 1e-200) / np.maximum(b, 1e-200), 1e-100, 1e100)
    near = np.abs(d) < b / 2
    off = np.where(near, d / np.where(near, b, 1.0), ratio - 1)
    slope = np.asarray(f.derivative(ratio) - f.derivative(1.0))
    ones = np.ones_like(off)
    height = np.where(near, f.excess_of(np.where(near, off, 0.0), ones), f.excess(ratio, ones))
    # At a/b = 1 + x the plane is slope (a - b) + (height - x slope) b.
    return np.asarray(slope[:, None] * apart + (height - off * slope)[:, None] * p1)


@dataclass(frozen=True, eq=False)
class Divergence(ColumnUtility, f=f_divergence):
    """D_f(M0 || M1) of the laws M0 = P0 Q and M1 = P1 Q of the report under two hypotheses [GI, section VII].

    Parameters
    ----------
    f : an `FDivergence`, or its name, such as "kl" or "hockey-stick:1.5" (`divergences.parse_divergence`).
    p0, p1 : distributions of shape (k,), k >= 2 (pandas Series are aligned by their labels); or two frozen
        `scipy.stats` distributions.
    inputs : labels of the k answers, which designed channels carry; those of a Series by default.

    Raises `InvalidInput` for malformed distributions, for equal hypotheses (there is nothing to tell apart), and for
    hypotheses with disjoint supports (any answer tells them apart, and `mechanisms.binary` is optimal).

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
        Asked("p0", "Probabilities of P0, such as 0.5,0.3,0.2.", "P0", type=list),
        Asked("p1", "Probabilities of P1, such as 0.2,0.3,0.5.", "P1", type=list),
        Asked("divergence", f"Divergence to maximise: {spellings()}.", "NAME", "f", str),
    )

    if TYPE_CHECKING:  # what it takes; what it holds is the fields above

        def __init__(self, f: FDivergence | str, p0: Any, p1: Any, inputs: Iterable[Label] | None = None) -> None: ...

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.continuous:
            _check_frozen(self.p0, self.p1)
            return
        (p0, p1), inputs = labelled_laws((("p0", self.p0), ("p1", self.p1)), self.inputs)
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
        """Whether the hypotheses are `scipy.stats` distributions."""
        return is_frozen(self.p0) or is_frozen(self.p1)

    @property
    def size(self) -> int:
        """The number k of inputs."""
        return len(self.p0)

    @property
    def pair(self) -> tuple[Array, Array] | None:
        """The two hypotheses; None where they are continuous."""
        return None if self.continuous else (self.p0, self.p1)

    @property
    def compared(self) -> Compared | None:
        """The one comparison; None for continuous hypotheses."""
        return None if self.continuous else Compared.of([(0, 1.0, self.f, self.p0, self.p1)])

    def value(self, channel: ChannelLike) -> float:
        """D_f of the two marginals, in nats where f has a logarithm."""
        if self.continuous:
            raise invalid("utility", "finite distributions to evaluate a channel on", "scipy.stats distributions")
        return marginal_divergence(self.f, self.p0, self.p1, self.check(channel).matrix)

    def columns(self, matrix: Array) -> Array:
        """(1, n) values mu(P0.q, P1.q) of the columns."""
        return np.atleast_2d(self.f.excess(self.p0 @ matrix, self.p1 @ matrix))

    def gradients(self, matrix: Array) -> Array:
        """(1, n, k) tangents at each output's ratio."""
        return tangents(self.f, self.p0, self.p1, matrix)[None]

    def enclosed_columns(self, base: Enclosure, rise: Enclosure) -> Enclosure:
        """(1, n) values of the columns base + rise, enclosed."""
        laws = self.laws(base.arithmetic)
        # The laws sum to one, so that the constant part of a column has the same mass under both.
        m0, m1 = base + laws.p0 @ rise, base + laws.p1 @ rise
        return enclosed_excess(self.f, laws.apart @ rise, m1, m0)[None, :]

    def laws(self, arithmetic: Arithmetic) -> Laws:
        """The hypotheses, enclosed."""
        return Laws.of(self.p0, self.p1, arithmetic) if arithmetic.exact else self._float_laws

    @cached_property
    def _float_laws(self) -> Laws:
        return Laws.of(self.p0, self.p1, FLOAT)

    @property
    def name(self) -> str:
        """The name of the divergence, such as "KL divergence"."""
        return self.f.name

    @property
    def unprivate(self) -> float:
        """D_f(P0 || P1), what a channel without any privacy would keep."""
        return self.f.sum(self.p0, self.p1)

    def enclosed_unprivate(self, arithmetic: Arithmetic) -> Enclosure:
        """The same, enclosed."""
        laws = self.laws(arithmetic)
        return enclosed_excess(self.f, laws.apart, laws.p1).sum()

    def __repr__(self) -> str:
        size = "continuous" if self.continuous else f"{len(self.p0)} inputs"
        return f"Divergence({self.f.name}, {size})"


CELLS = 2**18
"""How many values of divergences are computed at a time."""


def enclosed_divergences(parts: Sequence[Divergence], base: Enclosure, rise: Enclosure) -> Iterator[Enclosure]:
    """Values (some parts, n), enclosed, of divergences of one f at the columns base + rise, part after part."""
    step = max(1, CELLS // max(base.shape[0], 1))
    for some in (parts[start : start + step] for start in range(0, len(parts), step)):
        laws = Laws.of(np.stack([part.p0 for part in some]), np.stack([part.p1 for part in some]), base.arithmetic)
        m0, m1 = base + laws.p0 @ rise, base + laws.p1 @ rise
        yield enclosed_excess(parts[0].f, laws.apart @ rise, m1, m0)


def marginal_divergence(f: FDivergence, p0: Array, p1: Array, matrix: Array) -> float:
    """D_f(p0 Q || p1 Q) for laws (k,) and a matrix Q (k, m); small differences of the marginals keep their digits."""
    m1 = p1 @ matrix
    # Rows sum to one only up to rounding, which must not count as a difference of the marginals.
    m0 = m1 + (p0 - p1) @ (matrix - matrix.mean(axis=0))
    return float(np.sum(f.excess(np.maximum(m0, 0.0), m1)))


def is_frozen(p: Any) -> bool:
    """Whether `p` is a frozen `scipy.stats` distribution."""
    return hasattr(p, "cdf") and hasattr(p, "ppf") and hasattr(p, "dist")


def is_discrete(law: Any) -> bool:
    """Whether a frozen `scipy.stats` distribution has atoms, not a density."""
    return hasattr(law.dist, "pmf")


def parameters(law: Any) -> tuple[list[float], float, float]:
    """The shapes, the location and the scale of a frozen `scipy.stats` distribution, each a single number."""
    try:
        shapes, loc, scale = law.dist._parse_args(*law.args, **law.kwds)
        return [float(shape) for shape in shapes], float(loc), float(scale)
    except (AttributeError, TypeError, ValueError):
        raise invalid("p0 and p1", "distributions with a number for each parameter", law.args or law.kwds) from None


def _check_frozen(p0: Any, p1: Any) -> None:
    """Raise `InvalidInput` unless both laws are of one kind, continuous or on the integers."""
    if not (is_frozen(p0) and is_frozen(p1)):
        raise invalid("p0 and p1", "two arrays or two scipy.stats distributions", "one of each")
    if is_discrete(p0) != is_discrete(p1):
        raise InvalidInput(
            "p0 and p1: expected two discrete or two continuous distributions, got one of each "
            "(every answer names its hypothesis; mechanisms.binary is the optimal channel)"
        )
    for law in (p0, p1):
        _, loc, _ = parameters(law)
        if is_discrete(law) and not (loc.is_integer() and abs(loc) <= LARGEST_LOC):
            raise invalid("p0 and p1", f"a discrete distribution with a whole loc up to {LARGEST_LOC:g} in size", loc)
