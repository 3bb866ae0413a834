"""The columns that designs for estimation are made of: which there are, which pay, and what none of them exceeds.

A column is known by its logarithms (k,), in nats. Under plain LDP columns are staircase patterns, priced in halves or,
for large alphabets, by local search and a relaxation. Under a policy graph they are its extreme columns, listed, or,
where they are too many, those that local search meets, with a relaxation again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from ldpopt.design.columns.branches import Branches
from ldpopt.design.columns.charges import Charges
from ldpopt.design.columns.policy_relaxation import PolicyRelaxation
from ldpopt.design.columns.prices import Prices
from ldpopt.design.columns.relaxation import Relaxation
from ldpopt.design.columns.sizes import Sizes
from ldpopt.distribution import Array

BATCH = 200
"""Columns that join in a round."""


AnyRelaxation = Relaxation | PolicyRelaxation | Branches | Sizes


class Columns(ABC):
    """The columns of the channels within a constraint."""

    epsilon: float
    """The largest log-ratio of two entries of a column; inf where entries may be 0."""

    kind: str
    """What they are called in reports."""

    line: bool = False
    """Whether only a few sets can be the best ones, whatever the prices are (`columns.line`)."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What reports call them, with their number."""

    def values(self, heights: Array) -> Array:
        """The columns with these logarithms."""
        return np.asarray(np.exp(heights))

    @abstractmethod
    def start(self) -> Array:
        """Logarithms (n, k) of columns to begin with, of which some mixture is constant."""

    @abstractmethod
    def complete(self, heights: Array) -> bool:
        """Whether these are all columns."""

    @abstractmethod
    def paying(self, prices: Prices, used: Array, least: float) -> Array:
        """Columns priced above `least`, the best of them or ones near to `used`."""

    @property
    @abstractmethod
    def exact(self) -> bool:
        """Whether all of them are priced in a proof; else a relaxation bounds what they pay."""

    @abstractmethod
    def most(self, charges: Charges, relaxed: AnyRelaxation | None) -> float:
        """No column is priced above this, proved; inf where nothing is. `relaxed` counts where not `exact`."""
