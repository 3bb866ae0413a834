"""Feature maps: the functions of a report that a capacity-bounded adversary can compute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.distribution import Array, finite_array, positive_integer
from ldpopt.errors import invalid
from ldpopt.results import ByValue

_DEPENDENT = 1e-13
"""If the part of a function outside the span of earlier ones is relatively this small, it counts as in the span."""


@dataclass(frozen=True, eq=False)
class Polynomial(ByValue):
    """The polynomials of total degree at most `degree` in the features of an output [CIM, section 3].

    features : array (m,) or (m, d), one row of d numbers for each output of the channel. degree : at least 1.

    >>> Polynomial([0, 1, 2], 2).basis(3).shape
    (3, 3)
    """

    features: Any
    degree: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", _columns(self.features))
        object.__setattr__(self, "degree", positive_integer(self.degree, "degree"))

    def basis(self, outputs: int) -> Array:
        """Orthonormal functions on the outputs, array (m, r) with the constant first, that span the class."""
        x = self.features
        if len(x) != outputs:
            raise invalid("features", f"one row for each of the {outputs} outputs", len(x))
        x = x - (x.max(axis=0) + x.min(axis=0)) / 2
        x = x / np.where(np.abs(x).max(axis=0) > 0, np.abs(x).max(axis=0), 1.0)
        columns = [np.full(outputs, outputs**-0.5)]
        level = [(columns[0], 0)]
        for _ in range(self.degree):
            # Multiplying orthonormal functions instead of powers keeps high degrees well conditioned.
            grown = []
            for function, first in level:
                for j in range(first, x.shape[1]):
                    new = _outside(x[:, j] * function, columns)
                    if new is not None:
                        columns.append(new)
                    grown.append((x[:, j] * function if new is None else new, j))
            level = grown if len(columns) < outputs else []
        return np.stack(columns, axis=1)


@dataclass(frozen=True, eq=False)
class Affine(ByValue):
    """The functions a . phi(y) + b of the features phi of an output: linear adversaries [CIM, section 4].

    features : array (m,) or (m, d), the d features of each output of the channel. Any feature map can be given so.

    >>> Affine([0, 1, 2]).basis(3).shape
    (3, 2)
    """

    features: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", _columns(self.features))

    def basis(self, outputs: int) -> Array:
        """Orthonormal functions on the outputs, array (m, r) with the constant first, that span the class."""
        return Polynomial(self.features, 1).basis(outputs)


def feature_map(features: Any) -> Affine | Polynomial:
    """`features` itself, or an array of features as an affine class."""
    return features if isinstance(features, (Affine, Polynomial)) else Affine(features)


def _columns(features: Any) -> Array:
    flat = np.ndim(features) == 1
    array = finite_array(features, "features", 1 if flat else 2)
    if not array.size:
        raise invalid("features", "at least one feature of at least one output", f"shape {array.shape}")
    array = array[:, None] if flat else array
    array.setflags(write=False)
    return array


def _outside(function: Array, columns: list[Array]) -> Array | None:
    """The normalised part of `function` outside the span of orthonormal `columns`; None if there is none."""
    span = np.stack(columns, axis=1)
    size = float(np.linalg.norm(function))
    for _ in range(2):  # twice is enough [Kahan]
        function = function - span @ (span.T @ function)
    rest = float(np.linalg.norm(function))
    return function / rest if rest > _DEPENDENT * size and len(columns) < len(function) else None
