"""Exchanges of answers that leave an estimation problem as it is, found from its contrasts.

Two contrasts may be exchanged if some permutation of the inputs, of equal probabilities, exchanges them and leaves the
others. So may the answers to a question with even shares, together with the answers of those who are asked a later
question because of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ldpopt.values.distribution import Array

Permutation = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Exchanges:
    """The exchanges of inputs with probabilities (k,) and contrasts (k, d)."""

    prior: Array
    contrasts: Array

    @cached_property
    def _keys(self) -> Array:
        """The logarithm of the probability and the contrasts of every input (k, 1 + d), rounded."""
        scale = float(np.abs(self.contrasts).max()) or 1.0
        return np.column_stack([np.log(self.prior), self.contrasts / scale]).round(9) + 0.0

    @cached_property
    def classes(self) -> tuple[Permutation, ...]:
        """The positions of contrasts that may be exchanged with each other, for each class of two or more."""
        keys = self._keys
        rows = keys[np.lexsort(keys.T)]
        columns = [np.column_stack([keys[:, 0], column]) for column in keys[:, 1:].T]
        values = [column[np.lexsort(column.T)].tobytes() for column in columns]
        classes: list[list[int]] = []
        for position in range(len(columns)):
            for members in classes:
                if values[members[0]] == values[position]:
                    order = np.arange(keys.shape[1])
                    order[[members[0] + 1, position + 1]] = order[[position + 1, members[0] + 1]]
                    exchanged = keys[:, order]
                    if np.array_equal(exchanged[np.lexsort(exchanged.T)], rows):
                        members.append(position)
                        break
            else:
                classes.append([position])
        return tuple(np.array(members) for members in classes if len(members) > 1)

    def draw(self, rng: np.random.Generator) -> Permutation:
        """Draw a permutation (k,) of the inputs, from all products of exchanges, uniformly."""
        order = np.arange(self._keys.shape[1])
        for members in self.classes:
            order[members + 1] = rng.permutation(members) + 1
        permutation = np.empty(len(self.prior), dtype=np.intp)
        permutation[_sorted(self._keys[:, order], rng)] = _sorted(self._keys, rng)
        return permutation


def _sorted(keys: Array, rng: np.random.Generator) -> Permutation:
    """Return the order (k,) of rows; equal ones are in random order."""
    return np.asarray(np.lexsort(np.vstack([rng.random(len(keys)), keys.T])), dtype=np.intp)
