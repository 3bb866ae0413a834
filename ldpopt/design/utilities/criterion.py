"""The shape of a criterion of optimal design: a number made of the errors of an estimate, and a proved bound on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from ldpopt.distribution import Array
from ldpopt.enclosures import Arithmetic, Enclosure


@dataclass(frozen=True, eq=False)
class Influence:
    """The best estimate in the sense of a criterion.

    value : the criterion. factor : F (k, r), of which F^T p is estimated; the trace of F^T C F is the value, or F^T C F
    is the identity. loadings : (r, m) the influence of every report on the estimate, less its mean, times the root of
    the report's probability.
    """

    value: float
    factor: Array
    loadings: Array


@runtime_checkable
class Criterion(Protocol):
    """A number that a design for estimation makes as small as possible, such as the sum of the variances."""

    @property
    def name(self) -> str:
        """The name of the criterion in designs and printed tables, such as "sum of variances"."""
        ...

    @property
    def logarithmic(self) -> bool:
        """Whether the criterion is a logarithm, so that gaps are differences."""
        ...

    def check(self, k: int) -> None:
        """Raises `InvalidInput` if the criterion does not fit k categories."""
        ...

    def value(self, covariance: Array) -> float:
        """The criterion of the covariance (k, k) of one report's estimate."""
        ...

    def influence(self, scores: Array) -> Influence:
        """The best unbiased estimate for `scores` (k-1, m), whose columns are sqrt(w_y) T^T u_y (see `criteria`).

        T is `differences(k)`.
        """
        ...

    def enclosed(self, scores: Enclosure) -> Enclosure | None:
        """The criterion of `scores`, enclosed; None where they do not surely tell the proportions apart."""
        ...

    def kernel_rows(self, k: int) -> int:
        """The number r of rows of a kernel K (r, k) for k categories."""
        ...

    def kernel(self, given: Array, arithmetic: Arithmetic) -> Enclosure:
        """The kernel that the numbers `given` (r, k) stand for."""
        ...

    def loadings(self, scores: Array) -> Array:
        """(r, m) K u_y sqrt(w_y) for the best kernel K of `scores`, up to weights of its rows."""
        ...

    def worth(self, kernel: Array, prior: Array) -> Array | None:
        """(r,) what each row of a kernel adds to the bound, where rows may have different weights; else None."""
        ...

    def bound(self, kernel: Enclosure, most: Enclosure, prior: Enclosure) -> Enclosure | None:
        """A lower bound on the criterion of every channel for which sum_y w_y |K u_y|^2 is at most `most` > 0.

        None where the kernel proves nothing.
        """
        ...


def differences(k: int) -> Array:
    """T (k, k-1): column i moves mass from the last proportion to proportion i."""
    return np.vstack([np.eye(k - 1), -np.ones((1, k - 1))])
