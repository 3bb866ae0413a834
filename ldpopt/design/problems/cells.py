"""Continuous hypotheses cut into finitely many intervals (cells), and the finite pair that dominates them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from ldpopt.design.utilities.divergence import Divergence
from ldpopt.distribution import Array, Index
from ldpopt.divergences import FDivergence
from ldpopt.errors import invalid

ATOMS = 1e7
"""The most integers of a cell that are scanned. A longer cell is taken to hold every posterior."""

_INNER = np.linspace(0.0, 1.0, 9)


@dataclass(frozen=True, eq=False)
class Cells:
    """Two frozen `scipy.stats` distributions cut at `edges` (interior cut points, increasing).

    Cell i is (edges[i-1], edges[i]]. The likelihood ratio may be any function that does not oscillate inside a
    cell on a scale finer than an eighth of it: the range of the ratio is sampled there and widened by the largest
    step seen. Unbounded cells are taken to hold every ratio. Distributions on the integers are scanned, not sampled.
    """

    p0: Any
    p1: Any
    edges: Array

    @classmethod
    def of(cls, p0: Any, p1: Any, count: int) -> Cells:
        """About `count` cells, fine where either hypothesis has mass, down to a tail of 1e-12."""
        levels = np.concatenate([np.linspace(0, 1, count // 4)[1:-1], 10.0 ** np.linspace(-12, -2, count // 16)])
        points = [np.asarray(tail(levels), float) for p in (p0, p1) for tail in (p.ppf, p.isf)]
        edges = np.unique(np.concatenate(points))
        edges = edges[np.isfinite(edges)]
        # The quantile functions of both tails may give one point up to rounding: it is one edge, not two.
        edges = edges[np.concatenate([[True], np.diff(edges) > 1e-9 * (1 + np.abs(edges[1:]))])]
        if len(edges) < 2:
            raise invalid("p0 and p1", "distributions with at least three intervals of mass", "fewer")
        return cls(p0, p1, edges)

    @cached_property
    def masses(self) -> tuple[Array, Array]:
        """The probabilities of the cells under p0 and under p1, shape (cells,) each."""
        return _masses(self.p0, self.edges), _masses(self.p1, self.edges)

    def divergence(self, f: FDivergence) -> Divergence:
        """The divergence between the masses of the cells."""
        return Divergence(f, *self.masses, inputs=self.labels)

    def starts(self, starts: Index) -> Cells:
        """The coarser cells that begin at the cells `starts`, the first of which is 0."""
        return Cells(self.p0, self.p1, self.edges[np.asarray(starts)[1:] - 1])

    @property
    def labels(self) -> tuple[str, ...]:
        """The cells as text, e.g. ``"(-0.5, 0.25]"``."""
        ends = ["-inf", *(f"{edge:.9g}" for edge in self.edges), "inf"]
        return tuple(f"({a}, {b}]" if b != "inf" else f"({a}, inf)" for a, b in pairwise(ends))

    def endpoints(self) -> tuple[Array, Array]:
        """Masses (P0, P1) of a finite pair that dominates the hypotheses, shape (2 cells,) each.

        The mass of each cell is spread to two points, with the smallest and the largest ratio that the cell may hold.
        """
        p0, p1 = self.masses
        total = p0 + p1
        used = total > 0
        s = np.divide(p0, total, out=np.full_like(p0, 0.5), where=used)
        low, high = self._posterior_range()
        low, high = np.minimum(low, s), np.maximum(high, s)
        width = np.where(high > low, high - low, 1.0)
        up = total * np.where(high > low, (s - low) / width, 0.0)
        down = total - up
        return np.concatenate([low * down, high * up]), np.concatenate([(1 - low) * down, (1 - high) * up])

    def _posterior_range(self) -> tuple[Array, Array]:
        left, right = self.edges[:-1], self.edges[1:]
        first = (0.0, 1.0)
        if hasattr(self.p0.dist, "pmf"):
            low, high = np.array([self._atoms(a, b) for a, b in pairwise(self.edges)]).T
            start = min(self.p0.support()[0], self.p1.support()[0])
            first = self._atoms(start - 1, self.edges[0]) if np.isfinite(start) else first
        else:
            x = left[:, None] + (right - left)[:, None] * _INNER
            with np.errstate(all="ignore"):
                s = 1 / (1 + np.exp(self.p1.logpdf(x) - self.p0.logpdf(x)))
            s = np.where(np.isnan(s), 0.5, s)
            step = np.abs(np.diff(s, axis=1)).max(axis=1)
            low, high = s.min(axis=1) - step, s.max(axis=1) + step
        return (
            np.clip(np.concatenate([[first[0]], low, [0.0]]), 0, 1),
            np.clip(np.concatenate([[first[1]], high, [1.0]]), 0, 1),
        )

    def _atoms(self, left: float, right: float) -> tuple[float, float]:
        """The range of the posterior over the integers in (left, right]."""
        if not right - left <= ATOMS:
            return 0.0, 1.0
        x = np.arange(np.floor(left) + 1, np.floor(right) + 1)
        m0, m1 = self.p0.pmf(x), self.p1.pmf(x)
        used = m0 + m1 > 0
        s = m0[used] / (m0 + m1)[used]
        return (float(s.min()), float(s.max())) if s.size else (0.5, 0.5)


def _masses(p: Any, edges: Array) -> Array:
    below, above = p.cdf(edges), p.sf(edges)
    # Differences of the smaller tail keep relative accuracy on both sides.
    inner = np.where(below[1:] < 0.5, np.diff(below), -np.diff(above))
    mass = np.maximum(np.concatenate([[below[0]], inner, [above[-1]]]), 0.0)
    return np.asarray(mass / mass.sum())
