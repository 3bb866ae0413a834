"""Families of sets that treat all pairs of points alike: orbits under x -> a x + b over a prime field.

The orbit of a set holds its images under all these maps. As the maps take any two points to any other two, every two
points are together in equally many sets of an orbit: it is a 2-design, in which sum 1_A(x) (1 - 1_A(x')) is the same
for all pairs. On g points, the orbit of a union of cosets of a subgroup of f elements, with 0 or without, has at most
g (g - 1)/f sets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

LARGEST = 400
"""The most points."""

SETS = 3000
"""The most sets of an orbit."""


@dataclass(frozen=True)
class Orbit:
    """The orbit of a set of g points, g a prime: `cosets` cosets of a subgroup of `order` elements, and 0 if `zero`."""

    points: int
    order: int
    cosets: int
    zero: int

    @property
    def size(self) -> int:
        """The number of points in each set."""
        return self.order * self.cosets + self.zero

    @property
    def length(self) -> int:
        """The number of sets, at most."""
        return self.points * (self.points - 1) // self.order

    def sets(self) -> npt.NDArray[np.bool_]:
        """(n, points) the sets, each once."""
        g, parts = self.points, (self.points - 1) // self.order
        root = generator(g)
        power = np.array([pow(root, i, g) for i in range(g - 1)])
        picked = np.random.default_rng([g, self.order, self.cosets]).permutation(parts)[: self.cosets]
        members = np.concatenate([np.zeros(self.zero, dtype=np.int64), *(power[c::parts] for c in picked)])
        moved = (power[:parts, None, None] * members + np.arange(g)[None, :, None]) % g
        made = np.zeros((parts * g, g), dtype=bool)
        made[np.arange(parts * g)[:, None], moved.reshape(parts * g, -1)] = True
        return np.unique(made, axis=0)


def orbits(most: int) -> Iterator[Orbit]:
    """Orbits of at most `SETS` sets on at least 5 and at most `most` points."""
    for g in range(5, min(most, LARGEST) + 1):
        if any(g % p == 0 for p in range(2, int(g**0.5) + 1)):
            continue
        for order in range(1, (g - 1) // 2 + 1):
            if (g - 1) % order == 0:
                for cosets in range(1, (g - 1) // order):
                    for zero in (0, 1):
                        one = Orbit(g, order, cosets, zero)
                        if one.length <= SETS:
                            yield one
        yield Orbit(g, g - 1, 0, 1)  # each point alone


def generator(g: int) -> int:
    """The least primitive root of a prime: its powers are all numbers modulo g except 0."""
    return next(root for root in range(1, g) if len({pow(root, i, g) for i in range(g - 1)}) == g - 1)
