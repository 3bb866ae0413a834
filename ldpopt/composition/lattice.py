"""Privacy losses on a lattice: exactly when they are commensurable, else split outward between lattice points."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ldpopt.composition.laws import AtomLaw, LatticeLaw
from ldpopt.composition.parametric import ParametricPair
from ldpopt.distribution import Array
from ldpopt.privacy.finite_pair import FinitePair
from ldpopt.rounding import ULP
from ldpopt.tolerances import ROW_SUM

ATOMS = 20_000
"""Up to so many distinct outcomes a composition is enumerated."""

CELLS = 2**18
"""A grid is chosen so that a window of the composed law has about this many cells."""

_ZERO = 1e-14
"""A loss below this, and a millionth of the largest, counts as zero, at the price of that much slack in epsilon."""


RARE = 4 * ROW_SUM
"""More than dividing by the sum of a row, within `ROW_SUM` of 1, changes a loss where a mass is subnormal."""


def finite_part(pair: FinitePair) -> tuple[Array, Array]:
    """The finite losses of a pair, largest first, with their masses under p; equal losses merged.

    Losses of rare outcomes are raised by `RARE`, unless they are known.
    """
    inside = (pair.p > 0) & (pair.q > 0)
    losses, masses = pair.losses[inside] + RARE * _rare(pair)[inside], pair.p[inside]
    distinct, back = np.unique(losses, return_inverse=True)
    return distinct[::-1], collect(back, masses, len(distinct))[::-1]


def _rare(pair: FinitePair) -> npt.NDArray[np.bool_]:
    """Where a mass is too small to have, or to have had before it was merged with others, all its digits."""
    if isinstance(pair, ParametricPair):
        return np.zeros(len(pair.p), dtype=np.bool_)
    rarest = np.minimum(pair.p, pair.q)
    return np.asarray((rarest > 0) & (rarest < 2.0**-1000))


def rare_error(pair: FinitePair) -> float:
    """A bound on the rounding error of log p and of log q together, beyond a few ulps; 0 for most pairs."""
    return RARE if _rare(pair).any() else 0.0


def collect(place: npt.NDArray[np.intp], masses: Array, size: int) -> Array:
    """The masses that fall on each of `size` places."""
    return np.asarray(np.bincount(place, masses, minlength=size), dtype=np.float64)


@dataclass(frozen=True)
class Rounding:
    """What the rounding of single pairs adds up to: of the total loss, absolutely, and of log delta."""

    losses: float = 0.0
    masses: float = 0.0

    @classmethod
    def of(cls, parts: Iterable[tuple[FinitePair, int]], more: Rounding) -> Rounding:
        """That of pairs with counts, and `more`.

        Masses are right to 4 units, the losses taken from them to 8, and to 4 of themselves; known losses are exact.
        """
        losses, masses = [more.losses], [more.masses]
        for pair, count in parts:
            inside = (pair.p > 0) & (pair.q > 0)
            largest = float(np.abs(pair.losses[inside]).max(initial=0.0))
            if largest > 0:
                if not isinstance(pair, ParametricPair):
                    losses.append(count * ULP * (12 + 4 * largest))
                masses.append(count * ULP * (8 + 2 * np.count_nonzero(inside)))
        return cls(math.fsum(losses), math.fsum(masses))


EXACT = Rounding()
"""Nothing rounded."""


def atom_law(parts: Sequence[tuple[Array, Array, int]], rounding: Rounding = EXACT) -> AtomLaw | None:
    """Every sum of losses with its mass, by enumeration; None when there are too many."""
    losses, masses, added = np.zeros(1), np.ones(1), 0.0  # the first addition, to zero, is exact
    for at, weights, count in parts:
        if count > 64:
            return None
        for _ in range(count):
            if len(losses) * len(at) > 20 * ATOMS:
                return None
            before = losses
            losses, back = np.unique((losses[:, None] + at).ravel(), return_inverse=True)
            masses = collect(back, (masses[:, None] * weights).ravel(), len(losses))
            added = added + ULP * float(np.abs(losses).max()) if len(before) > 1 else 0.0
            if len(losses) > ATOMS:
                return None
    return AtomLaw(losses[::-1], masses[::-1], rounding.losses + added, rounding.masses)


def exact_lattice(parts: Sequence[tuple[Array, Array, int]], rounding: Rounding = EXACT) -> LatticeLaw | None:
    """The law on the lattice that all losses share; None when there is no coarse enough one.

    How far each loss is from its lattice point, a few ulps, goes into the slack.
    """
    sizes = np.unique(np.concatenate([np.abs(at) for at, _, _ in parts]))
    sizes = sizes[sizes > min(_ZERO, 1e-6 * float(sizes[-1]))]
    if len(sizes) == 0:
        spacing = 1.0
    else:
        unit = float(sizes[0])
        fractions = [Fraction(float(size) / unit).limit_denominator(64) for size in sizes[:4096]]
        close = all(abs(float(f) * unit - size) <= 1e-12 * size for f, size in zip(fractions, sizes, strict=False))
        parts_of_unit = math.lcm(*(f.denominator for f in fractions))
        spacing = unit / parts_of_unit
        if len(sizes) > 4096 or not close or parts_of_unit > 4096 or float(sizes[-1]) / spacing > 2**20:
            return None
    placed = []
    slack = rounding.losses
    for at, masses, count in parts:
        positions = np.rint(at / spacing).astype(np.int64)
        slack += count * float(np.abs(positions * spacing - at).max())
        placed.append((positions, masses, count))
    return LatticeLaw(spacing, tuple(placed), slack, rounding.masses)


def grid(
    parts: Sequence[tuple[Array, Array, int]],
    cells: int = CELLS,
    spacing: float | None = None,
    rounding: Rounding = EXACT,
) -> tuple[LatticeLaw, float, float]:
    """(law, drift, spread): losses split between the two lattice points around them, and what that costs.

    An outcome with masses (p, q) between two lattice ratios becomes two outcomes at those ratios with the
    same total p and q. Merging them gives the outcome back, so the new pair dominates the old one, and the
    error is of second order in the spacing. Under p the new loss is the old one plus independent noise within
    one spacing: `drift` bounds the sum of its means and `spread` is the sum of the squared ranges. `cells` sets
    the spacing through the window of the composed law, unless `spacing` is given.
    """
    if spacing is None:
        variance = math.fsum(count * float(m @ (at - m @ at) ** 2) for at, m, count in parts)
        largest = max(float(np.abs(at).max()) for at, _, _ in parts)
        wanted = min(math.sqrt(variance) * 28 / cells, largest / 16)
        # Near epsilon = 700 the variance can underflow to 0: then the cells divide the largest loss itself.
        spacing = largest / (cells if largest > wanted * cells else math.ceil(largest / wanted))
    placed = []
    drift = spread = 0.0
    for at, masses, count in parts:
        below = np.floor(at / spacing)
        over = np.clip(at - below * spacing, 0.0, spacing)
        share = np.minimum(np.expm1(-over) / math.expm1(-spacing), 1.0)
        drift += count * max(0.0, float(masses @ (share * spacing - over)))
        spread += count * spacing**2
        positions, back = np.unique(np.concatenate([below + 1, below]).astype(np.int64), return_inverse=True)
        split = np.concatenate([masses * share, masses * (1 - share)])
        placed.append((positions, collect(back, split, len(positions)), count))
    slack = rounding.losses + math.fsum(8 * count * ULP * float(np.abs(at).max()) for at, _, count in parts)
    return LatticeLaw(spacing, tuple(placed), slack, rounding.masses), drift, spread
