"""The columns that designs for estimation are made of: which there are, which would improve a design, and their gains.

The gain of a column is what it earns above its price at given multipliers (`prices`), per unit of probability. Pricing
a column means to compute its gain. A column is given by its logarithms (k,), in nats. Under plain LDP, columns are
staircase patterns, all priced in two halves or, for large alphabets, by local search and a relaxation. Under a policy
graph they are its extreme columns; these are listed or, where there are too many, found by local search, with a
relaxation again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from ldpopt.design.columns.branches import Branches, Sizes
from ldpopt.design.columns.prices import Charges, Prices
from ldpopt.design.columns.relaxation import PolicyRelaxation, Relaxation
from ldpopt.design.columns.thresholds import Scarf, Thresholds
from ldpopt.distribution import Array

BATCH = 200  # The most columns that join a design in one round.
AnyRelaxation = Relaxation | PolicyRelaxation | Branches | Sizes | Thresholds | Scarf


class Columns(ABC):
    """The columns of the channels within a constraint."""

    epsilon: float
    """The largest log-ratio of two entries of a column; inf where entries may be 0."""

    kind: str
    """The name of such columns in printed texts."""

    line: bool = False
    """Whether only a few sets can be the best ones, whatever the multipliers are (`columns.prices`)."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the columns in printed texts, with their number."""

    def values(self, heights: Array) -> Array:
        """The columns with these logarithms."""
        return np.asarray(np.exp(heights))

    @abstractmethod
    def start(self) -> Array:
        """Logarithms (n, k) of columns to begin with, some mixture of which is constant."""

    @abstractmethod
    def complete(self, heights: Array) -> bool:
        """Whether these are all columns."""

    @abstractmethod
    def paying(self, prices: Prices, used: Array, least: float) -> Array:
        """Logarithms (n, k) of columns that gain more than `least`: the best of all, or good ones near `used`."""

    @property
    @abstractmethod
    def exact(self) -> bool:
        """Whether a proof prices all columns; otherwise a relaxation bounds their gains."""

    @abstractmethod
    def most(self, charges: Charges, relaxed: AnyRelaxation | None) -> float:
        """A proved upper bound on the gain of every column, inf where none is proved. relaxed : used if not `exact`."""
