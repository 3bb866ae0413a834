"""What a list of columns is complete for: a cone, cut by the hyperplanes on which a price has a kink.

A proof over a list asks of every listed column that its price covers its worth. This holds for all columns of a cone if
each is a sum of listed ones that together are worth no less and pay no more. The worth is convex and homogeneous, so
that a sum is worth no more than its parts. A price `nu (c_x - r c_x')_+` is linear on either side of the hyperplane
`c_x = r c_x'`. So the cone is cut by these hyperplanes, and a column is divided into the extreme rays of its own piece.
The list must hold every extreme ray of every piece. Rays that lie on the cuts are among them: where the hyperplanes
`c_x = c_x'` cut, the constant column is one.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

Comparison = tuple[int, int, int]
"""(x, x', w), for the entries of x and of x' and the ratio r = E^w."""


@dataclass(frozen=True)
class Arrangement:
    """The cone of the columns c >= 0 of k inputs with c_x <= E^w c_x', cut by the hyperplanes c_x = E^w c_x'.

    Parameters
    ----------
    size : int
        The number k of inputs.
    limits, cuts : tuple of (x, x', w)
        The inequalities that define the cone, and the hyperplanes that cut it. w is a whole number, the ratio's
        logarithm in units of log E. E > 1 may be any ratio.
    """

    size: int
    limits: tuple[Comparison, ...] = ()
    cuts: tuple[Comparison, ...] = ()

    @classmethod
    def of(cls, size: int, limit: int | None = None, cut: int | None = None, ordered: bool = False) -> Arrangement:
        """Return the arrangement with the same limit, cut or both for every ordered pair of inputs.

        Parameters
        ----------
        size : int
            The number k of inputs.
        limit, cut : int or None
            The w of the limits and of the cuts; None for none.
        ordered : bool
            Whether the hyperplanes c_x = c_x' cut, too, as a cap on total variation needs.

        Returns
        -------
        Arrangement
        """
        every = tuple(itertools.permutations(range(size), 2))
        limits = () if limit is None else tuple((x, y, limit) for x, y in every)
        cuts = () if cut is None else tuple((x, y, cut) for x, y in every)
        return cls(size, limits, cuts + (in_order(size) if ordered else ()))


def in_order(size: int) -> tuple[Comparison, ...]:
    """Return the hyperplanes c_x = c_x', which cut a cone into the orders of the entries."""
    return tuple((x, y, 0) for x, y in itertools.combinations(range(size), 2))
