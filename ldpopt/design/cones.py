"""A program over cones as plain numbers, without a solver (`solve.solve_cones`).

~~min cost . x   s.t.   right_i + sum of matrices times variables lies in the cone i |

The cones are those of `Kind`. A symmetric matrix is a vector of its upper triangle, column after column. Its
off-diagonal entries are multiplied by 2^(1/2) (`triangle`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ldpopt.values.distribution import Array

Kind = Literal["zero", "nonnegative", "second order", "semidefinite", "exponential"]
"""Of the second order, as of the exponential: one cone for every three numbers. Semidefinite: all numbers together."""
Indices = npt.NDArray[np.intp]


@dataclass(eq=False)
class ConeProgram:
    """Variables are reserved first, then blocks of them are constrained to cones.

    - `size` : the number of variables.
    - `blocks` : for each block its cone, its right side (m,), and pairs of the variables (n,) and their matrix (m, n),
      dense or sparse.
    """

    size: int = 0
    blocks: list[tuple[Kind, Array, tuple[tuple[Indices, Any], ...]]] = field(default_factory=list)

    def variables(self, count: int) -> Indices:
        """Reserve further variables and return their positions."""
        self.size += count
        return np.arange(self.size - count, self.size)

    def put(self, kind: Kind, right: Array, *parts: tuple[Indices, Any]) -> int:
        """Add a block and return its position among the dual values."""
        self.blocks.append((kind, right, parts))
        return len(self.blocks) - 1


def triangle(size: int) -> tuple[Indices, Indices, Array]:
    """Return rows, columns and factors of the entries of a symmetric (size, size) matrix in its vector."""
    j, i = np.tril_indices(size)
    return i, j, np.where(i == j, 1.0, np.sqrt(2))


def matrix_of(vector: Array) -> Array:
    """Return the symmetric matrix of such a vector."""
    size = int((2 * len(vector)) ** 0.5)
    i, j, factor = triangle(size)
    square = np.zeros((size, size))
    square[i, j] = square[j, i] = vector / factor
    return square
