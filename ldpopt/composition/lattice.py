"""Privacy losses on a lattice, the multiples of one number: exact if they are such, else split to dominate."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ldpopt.composition.laws import MAX_CELLS, AtomLaw, LatticeLaw
from ldpopt.composition.parametric import RARE, ParametricPair, rare
from ldpopt.numbers.rounding import ULP
from ldpopt.numbers.tolerances import ON_LATTICE, ZERO_LOSS
from ldpopt.privacy.finite_pair import FinitePair
from ldpopt.values.distribution import Array

MAX_ATOMS = 20_000
"""Largest number of distinct outcomes of an enumerated composition."""

WINDOW_CELLS, COARSE_CELLS = 2**18, 2**14
"""The spacing of a grid is chosen so that a window of the composed law has about this many cells.

With pairs of densities it has the fewer: their finite pairs are grids already, which are coarser.
"""


def finite_part(pair: FinitePair) -> tuple[Array, Array]:
    """Return the finite losses of a pair, largest first, equal ones merged, and their masses."""
    # Losses of rare outcomes are raised by `RARE`.
    in_both = (pair.p > 0) & (pair.q > 0)
    losses, masses = pair.losses[in_both] + RARE * rare(pair)[in_both], pair.p[in_both]
    distinct, back = np.unique(losses, return_inverse=True)
    return distinct[::-1], collect(back, masses, len(distinct))[::-1]


def collect(place: npt.NDArray[np.intp], masses: Array, size: int) -> Array:
    """Sum the masses that fall on each of `size` places."""
    return np.asarray(np.bincount(place, masses, minlength=size), dtype=np.float64)


@dataclass(frozen=True)
class Rounding:
    """Bounds on the rounding errors of all single pairs together: of the total loss, and of log delta."""

    losses: float = 0.0
    masses: float = 0.0

    @classmethod
    def from_pairs(cls, parts: Iterable[tuple[FinitePair, int]], extra: Rounding) -> Rounding:
        """Sum the rounding errors of pairs with counts, added to `extra`.

        Masses are accurate to 4 units in the last place, and losses to 12 units absolutely and 4 relatively. Losses of
        pairs given by parameters are exact.
        """
        losses, masses = [extra.losses], [extra.masses]
        for pair, count in parts:
            in_both = (pair.p > 0) & (pair.q > 0)
            largest = float(np.abs(pair.losses[in_both]).max(initial=0.0))
            if largest > 0:
                if not isinstance(pair, ParametricPair):
                    losses.append(count * ULP * (12 + 4 * largest))
                masses.append(count * ULP * (8 + 2 * np.count_nonzero(in_both)))
        return cls(math.fsum(losses), math.fsum(masses))


EXACT = Rounding()
"""No rounding errors."""


def atom_law(parts: Sequence[tuple[Array, Array, int]], rounding: Rounding = EXACT) -> AtomLaw | None:
    """Enumerate every sum of losses with its mass; None if there are too many."""
    losses, masses, rounding_error = np.zeros(1), np.ones(1), 0.0  # the first addition, to zero, is exact
    for further, weights, count in parts:
        if count > 64:
            return None
        for _ in range(count):
            if len(losses) * len(further) > 20 * MAX_ATOMS:
                return None
            previous_losses = losses
            losses, back = np.unique((losses[:, None] + further).ravel(), return_inverse=True)
            masses = collect(back, (masses[:, None] * weights).ravel(), len(losses))
            rounding_error = rounding_error + ULP * float(np.abs(losses).max()) if len(previous_losses) > 1 else 0.0
            if len(losses) > MAX_ATOMS:
                return None
    return AtomLaw(losses[::-1], masses[::-1], rounding.losses + rounding_error, rounding.masses)


def exact_lattice(parts: Sequence[tuple[Array, Array, int]], rounding: Rounding = EXACT) -> LatticeLaw | None:
    """Compute the distribution on the lattice of all losses; None if no lattice is coarse enough."""
    # The distance of the losses from the lattice is slack.
    sizes = np.unique(np.concatenate([np.abs(part) for part, _, _ in parts]))
    sizes = sizes[sizes > min(ZERO_LOSS, 1e-6 * float(sizes[-1]))]
    if len(sizes) == 0:
        spacing = 1.0
    else:
        unit, parts_of_unit = float(sizes[0]), 1
        if len(sizes) > 4096:
            return None
        for size in sizes.tolist():
            fraction = Fraction(size / unit).limit_denominator(64)
            parts_of_unit = math.lcm(parts_of_unit, fraction.denominator)
            if parts_of_unit > 4096 or abs(float(fraction) * unit - size) > ON_LATTICE * size:
                return None
        spacing = unit / parts_of_unit
        if float(sizes[-1]) / spacing > 2**20:
            return None
    lattice_parts = []
    slack = rounding.losses
    variance = math.fsum(count * float(m @ (losses - m @ losses) ** 2) for losses, m, count in parts)
    if 26 * math.sqrt(variance) > spacing * MAX_CELLS / 2:
        return None
    for losses, masses, count in parts:
        positions = np.rint(losses / spacing).astype(np.int64)
        slack += count * float(np.abs(positions * spacing - losses).max())
        lattice_parts.append((positions, masses, count))
    return LatticeLaw(spacing, tuple(lattice_parts), slack, rounding.masses)


def grid(
    parts: Sequence[tuple[Array, Array, int]],
    cells: int = WINDOW_CELLS,
    spacing: float | None = None,
    rounding: Rounding = EXACT,
) -> tuple[LatticeLaw, float, float]:
    """Split losses between the lattice points around them: (distribution, drift, spread).

    An outcome becomes two at the lattice ratios around its own, with the same total p and q, so the new pair dominates.
    Under p the loss gains independent noise within one spacing: `drift` bounds the sum of its means, `spread` is the
    sum of its squared ranges. The spacing is given, or such that a window of the composed law has about `cells` cells.
    """
    if spacing is None:
        variance = math.fsum(count * float(m @ (losses - m @ losses) ** 2) for losses, m, count in parts)
        largest = max(float(np.abs(losses).max()) for losses, _, _ in parts)
        target_spacing = min(math.sqrt(variance) * 28 / cells, largest / 16)
        # Near epsilon = 700 the variance can underflow to 0: then the cells divide the largest loss itself.
        spacing = largest / (cells if largest > target_spacing * cells else math.ceil(largest / target_spacing))
    lattice_parts = []
    drift = spread = 0.0
    for losses, masses, count in parts:
        floors = np.floor(losses / spacing)
        remainder = np.clip(losses - floors * spacing, 0.0, spacing)
        upper_share = np.minimum(np.expm1(-remainder) / math.expm1(-spacing), 1.0)
        drift += count * max(0.0, float(masses @ (upper_share * spacing - remainder)))
        spread += count * spacing**2
        positions, back = np.unique(np.concatenate([floors + 1, floors]).astype(np.int64), return_inverse=True)
        split = np.concatenate([masses * upper_share, masses * (1 - upper_share)])
        lattice_parts.append((positions, collect(back, split, len(positions)), count))
    slack = rounding.losses + math.fsum(8 * count * ULP * float(np.abs(losses).max()) for losses, _, count in parts)
    return LatticeLaw(spacing, tuple(lattice_parts), slack, rounding.masses), drift, spread
