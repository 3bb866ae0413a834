"""The piecewise mechanism: bounded reports of a number, whose mean is the number."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.distribution import Array
from ldpopt.mechanisms.window import Window


@dataclass(frozen=True)
class Piecewise(Window):
    """The piecewise mechanism: answers in [-1, 1], reports in [-c, c] whose mean is the answer [PM].

    The report is likely to fall into a window of width c - 1, whose middle is (c + 1) x/2 for the answer x, and has a
    low density elsewhere; c = (s + 1)/(s - 1) with s = e^{epsilon/2}. The mean of the reports is an unbiased estimate
    of the mean of the answers. epsilon in nats, at most 20; raises `InvalidInput` otherwise.

    >>> m = piecewise(1.0)
    >>> round(m.eta, 6), round(m.variance(0.0), 4), m.domain
    (0.393469, 3.6821, (-1.0, 1.0))
    """

    @property
    def _root(self) -> float:
        return math.expm1(self._inner / 2)

    @property
    def reach(self) -> float:
        """c, the largest report."""
        return 1 + 2 / self._root

    @property
    def domain(self) -> tuple[float, float]:
        """The interval of the answers, [-1, 1]."""
        return -1.0, 1.0

    @property
    def range(self) -> tuple[float, float]:
        """The interval of the reports, [-c, c]."""
        return -self.reach, self.reach

    @property
    def width(self) -> float:
        """The width of the window, c - 1."""
        return 2 / self._root

    def _starts(self, x: Array) -> Array:
        return np.asarray((self.reach + 1) / 2 * x - (self.reach - 1) / 2)

    def variance(self, x: Any) -> Any:
        """The variance of the report of an answer x: x^2/(s - 1) + (s + 3)/(3 (s - 1)^2) [PM, Lemma 1]."""
        x = self._answers(x)
        made = x**2 / self._root + (self._root + 4) / (3 * self._root**2)
        return float(made) if made.ndim == 0 else made


piecewise = Piecewise
